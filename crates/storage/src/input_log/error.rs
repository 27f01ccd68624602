//! What can go wrong with the input log: what, where, and what to do about it.

use crate::ids::EpochNumber;
use pmem::DeviceError;

/// Why the input log could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The log space cannot grow as far as an epoch needs. Nothing of the epoch was committed; a
    /// smaller epoch, or this one after the next checkpoint, may fit.
    #[error(
        "input log is full: epoch {epoch} needs {wanted_bytes} bytes more, {free_bytes} of \
         {log_bytes} bytes are free, and the log cannot grow ({reason}): make smaller epochs, take \
         checkpoints more often or raise the limit"
    )]
    Full {
        /// The epoch that needs the space.
        epoch: EpochNumber,
        /// Bytes of the segments that are missing.
        wanted_bytes: u64,
        /// Bytes of free segments that are not promised to anything else.
        free_bytes: u64,
        /// Bytes of all segments.
        log_bytes: u64,
        /// Why the device did not grow, with its limit.
        reason: DeviceError,
    },
    /// The option is not a segment size.
    #[error(
        "{given} is not a segment size of the input log: choose a power of two from {min} to {max} \
         bytes"
    )]
    SegmentBytes {
        /// The value given.
        given: u64,
        /// Smallest size.
        min: u64,
        /// Largest size.
        max: u64,
    },
    /// The log holds epochs that are still needed, written with another segment size.
    #[error(
        "input log has segments of {stored} bytes (epoch {epoch}, at offset {offset}) but was \
         opened with {given}: open it with {stored} bytes until a checkpoint made that epoch \
         obsolete"
    )]
    OtherSegmentBytes {
        /// Epoch of the segment found.
        epoch: EpochNumber,
        /// Where it was found in the log space.
        offset: u64,
        /// The size it was written with.
        stored: u64,
        /// The size given now.
        given: u64,
    },
    /// A segment that is still needed was written in a way that this build does not know.
    #[error(
        "input log segment at offset {offset} (epoch {epoch}) has codec version {version} and kind \
         {kind}; this program is of release {release} and reads version {known} and kinds 1 to 5: \
         open it with the release that wrote it",
        release = env!("CARGO_PKG_VERSION")
    )]
    Codec {
        /// Where the segment is in the log space.
        offset: u64,
        /// Its epoch.
        epoch: EpochNumber,
        /// Its codec version.
        version: u16,
        /// Its kind.
        kind: u16,
        /// The codec version of this build.
        known: u16,
    },
    /// A later epoch is committed, but this one has no complete commit record. Epochs are committed
    /// in order, each durable before the next, so a crash cannot leave this.
    #[error(
        "input log is corrupt: epoch {missing} is missing between checkpoint {checkpoint} and the \
         logged epoch {committed}: restore a backup, or accept the loss of epoch {missing} and all \
         after it with `nvcaracal recover --accept-loss-after {} PATH`",
        .missing.previous()
    )]
    Gap {
        /// First epoch that is missing.
        missing: EpochNumber,
        /// First committed epoch after it.
        committed: EpochNumber,
        /// The checkpoint that the store was opened at.
        checkpoint: EpochNumber,
    },
    /// A committed epoch cannot be read back.
    #[error(
        "input log is corrupt: epoch {epoch}, stream {stream}, segment {ordinal} of the stream \
         near offset {offset}: {what}; restore a backup, or accept the loss of this epoch and all \
         after it with `nvcaracal recover --accept-loss-after {} PATH`",
        .epoch.previous()
    )]
    Damaged {
        /// The epoch.
        epoch: EpochNumber,
        /// The stream.
        stream: u16,
        /// Position of the segment in the stream.
        ordinal: u32,
        /// Offset of the segment in the log space; of the stream's first segment if its header is
        /// lost.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The calls deferred to a committed epoch are not there, although its commit record names
    /// them.
    #[error(
        "input log is corrupt: the {bytes} bytes of calls deferred to the committed epoch \
         {epoch} are missing or damaged: restore a backup, or accept the loss of this epoch and \
         all after it with `nvcaracal recover --accept-loss-after {} PATH`",
        .epoch.previous()
    )]
    DeferredCallsDamaged {
        /// The epoch that the calls belong to.
        epoch: EpochNumber,
        /// Bytes that the commit record names.
        bytes: u64,
    },
    /// What a committed epoch's inputs mean is not known any more.
    #[error(
        "input log is corrupt: the record of the program that logged epoch {epoch} is missing or \
         damaged: restore a backup, or accept the loss of this epoch and all after it with \
         `nvcaracal recover --accept-loss-after {} PATH`",
        .epoch.previous()
    )]
    ProgramLost {
        /// The first epoch that was logged under it.
        epoch: EpochNumber,
    },
    /// The log lacks what is known to have been in it.
    #[error(
        "the input log has lost epochs: {what}; restore a backup, or accept the loss of everything \
         after epoch {last} with `nvcaracal recover --accept-loss-after {last} PATH`"
    )]
    Lost {
        /// The last epoch that can be recovered.
        last: EpochNumber,
        /// What shows it.
        what: String,
    },
    /// Two complete logs of one epoch.
    #[error(
        "input log is corrupt: epoch {epoch} is committed twice, by attempts {first} and {second}: \
         check whether two copies of the store were mixed"
    )]
    Conflict {
        /// The epoch.
        epoch: EpochNumber,
        /// One attempt.
        first: u64,
        /// The other.
        second: u64,
    },
    /// The archive cannot give what is asked for, or is not that of this store.
    #[error("archive of the log: {what}")]
    Archive {
        /// What is wrong.
        what: String,
    },
    /// A store is to be restored to a time, and no epoch behind it is known: later ones up to that
    /// time may be missing.
    #[error(
        "no epoch is there of {asked_ns} ns after the beginning of 1970 or later, so it is not \
         known whether all up to then are: the newest is {epoch}, of {timestamp_ns} ns; restore to \
         that epoch or time, or from an archive that has later ones"
    )]
    NotReached {
        /// The time.
        asked_ns: u64,
        /// The newest epoch.
        epoch: EpochNumber,
        /// Its time.
        timestamp_ns: u64,
    },
    /// A store is to be restored to a time before the first state that its copy has.
    #[error(
        "the copy has no state of {asked_ns} ns after the beginning of 1970: it begins with epoch \
         {epoch}, which is of a later time, {timestamp_ns} ns; restore to that time or a later \
         one, or from an earlier copy"
    )]
    TooEarly {
        /// The time.
        asked_ns: u64,
        /// Epoch of the checkpoint of the copy; without one the first epoch of all.
        epoch: EpochNumber,
        /// Its time.
        timestamp_ns: u64,
    },
    /// A store is to be restored to an epoch that its copy does not have.
    #[error(
        "epoch {asked} is {} the copy, which has epochs {first} to {last}: restore to one of \
         these, or from {}",
        if .asked < .first { "before the checkpoint of" } else { "after the last one of" },
        if .asked < .first { "an earlier copy" } else { "an archive that has later ones" }
    )]
    NotCopied {
        /// The epoch.
        asked: EpochNumber,
        /// Epoch of the checkpoint of the copy.
        first: EpochNumber,
        /// The last epoch of the copy.
        last: EpochNumber,
    },
    /// A backup would replace an earlier copy that has epochs more.
    #[error(
        "the earlier copy has epochs up to {earlier}, and the database up to {last}: a backup \
         would lose those between; choose another directory"
    )]
    EarlierIsLonger {
        /// The last epoch of the earlier copy.
        earlier: EpochNumber,
        /// The last epoch that a new one would have.
        last: EpochNumber,
    },
    /// A backup would replace an earlier copy that has other epochs of the same numbers.
    #[error(
        "the earlier copy has epochs {since} to {earlier} that this database does not have: it \
         lost them, or is an older state that was put back, and has written others of these \
         numbers; keep that copy, and make this one in another directory"
    )]
    EarlierIsOther {
        /// The first epoch that another opening of the database wrote.
        since: EpochNumber,
        /// The last epoch of the earlier copy.
        earlier: EpochNumber,
    },
    /// The epoch was not found committed when the log was opened, or was released since.
    #[error(
        "epoch {epoch} is not in the input log: only committed epochs after the checkpoint can be \
         read"
    )]
    NotLogged {
        /// The epoch asked for.
        epoch: EpochNumber,
    },
}

impl LogError {
    /// The log lacks the record of a program, with which every log of a store begins.
    pub(crate) fn emptied(last: EpochNumber) -> Self {
        let what = "nothing of what every log of a store begins with is in it: it was emptied, \
                    cut off or shifted";
        Self::Lost { last, what: what.to_string() }
    }

    /// An epoch that the log lacks had ended.
    pub(crate) fn ended(last: EpochNumber, ended: EpochNumber) -> Self {
        let what = format!("epoch {ended} had ended, and the log holds no epoch after {last}");
        Self::Lost { last, what }
    }

    /// Whether space ran out; a smaller epoch may fit.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Device(source) => source.is_limit(),
            _ => false,
        }
    }

    /// Whether what is on the device is damaged.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        match self {
            Self::Gap { .. }
            | Self::Damaged { .. }
            | Self::DeferredCallsDamaged { .. }
            | Self::ProgramLost { .. }
            | Self::Lost { .. }
            | Self::Conflict { .. } => true,
            Self::Device(source) => source.is_corrupt(),
            _ => false,
        }
    }
}
