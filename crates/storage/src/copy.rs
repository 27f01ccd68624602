//! A copy of a store in a directory, made while a process may go on with it: a backup, or a store
//! from one.
//!
//! 1. The newest snapshot of the image is pinned ([`pmem::PinnedSnapshot`]), and the newest epoch
//!    is noted that the log has begun.
//! 2. What the log has behind it is copied. If the snapshot is still the newest then, nothing that
//!    is needed was written over meanwhile; else the newest one is pinned, and the log copied anew.
//! 3. The copied log ends with the last epoch up to which all are whole. That is at least the one
//!    before the noted one, because the log of an epoch begins when the one before is durable, and
//!    at least that of the end mark. A source whose log lacks one of these is refused.
//! 4. The pages of the snapshot are copied, each checked, and the copy gets its name.
//!
//! So a copy has every epoch that was durable when it began. It is a store as any other: opening it
//! replays its log.

use std::path::{Path, PathBuf};

use pmem::{
    DeviceError, LogSpace, MARK_BYTES, Openings, PAGE_BYTES, PinnedSnapshot, Replaced,
    UnfinishedCopy,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::digest::StateHash;
use crate::error::{Result, StorageError};
use crate::format::{
    CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, CheckpointRecord, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET,
    Superblock,
};
use crate::ids::EpochNumber;
use crate::input_log::format::HEADER_BYTES;
use crate::input_log::{
    Archived, CopiedEnd, Geometry, LastUntil, LogError, Until, append_archived, copy_segments,
    end_of_copy, last_until, newest_begun,
};
use crate::store::{EndMark, checkpoint, good_copy};

/// So often a copy is begun anew because the store went on faster.
const TRIES: u32 = 10;
/// So often a copy is tried whose log lacks what is needed. A log that was written to meanwhile may
/// lack it, until it is copied anew; a damaged one always does.
const DAMAGED_TRIES: u32 = 3;
/// So often the log is copied because a snapshot was committed meanwhile.
const LOG_TRIES: u32 = 1000;

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Epoch of the image that was copied.
    pub checkpoint: EpochNumber,
    /// The last epoch of the copy: opening it replays those after the checkpoint.
    pub last: EpochNumber,
    /// The newest epoch of which the copy knows the state hash, and that hash. Opening it compares.
    pub hash: Option<(EpochNumber, StateHash)>,
    /// Bytes of pages that the copy has.
    pub page_bytes: u64,
    /// Bytes of pages that were written: those that had changed.
    pub written_bytes: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// The timestamp of the last epoch, in nanoseconds since 1970.
    pub timestamp_ns: u64,
}

/// How a copy is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyKind {
    /// With all that there is: to a new directory, or to an earlier copy, of which those pages are
    /// replaced that have changed.
    Backup,
    /// To a new directory, as a branch of its own.
    Restored(Restore),
}

/// How far a store is restored, and from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// How far.
    pub until: Until,
    /// Where the epochs are that the copy has not.
    pub archive: Option<PathBuf>,
}

/// Copies the store of a directory. `progress` is called with bytes that are done, and all of
/// them.
///
/// # Errors
/// As [`pmem::PinnedSnapshot::open`] and [`pmem::UnfinishedCopy::update`]; `Missing` if the
/// directory holds no store; the log's, if it is damaged or has not the epoch that is asked for;
/// `Outrun` if the store goes on so fast that it cannot be copied.
pub fn copy_store(
    source: &Path,
    target: &Path,
    kind: CopyKind,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Copied> {
    let mut damaged_tries = 1;
    for _ in 1..TRIES {
        match try_copy(source, target, &kind, progress) {
            Ok(Some(copied)) => return Ok(copied),
            Err(StorageError::Log(error))
                if error.is_corrupt() && damaged_tries < DAMAGED_TRIES =>
            {
                damaged_tries += 1;
            }
            Ok(None) => {}
            Err(StorageError::Device(DeviceError::Outrun { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    let outrun = DeviceError::Outrun { path: source.to_path_buf() };
    try_copy(source, target, &kind, progress)?.ok_or(StorageError::Device(outrun))
}

/// `None`: the store went on, and the copy is to begin anew.
fn try_copy(
    source: &Path,
    target: &Path,
    kind: &CopyKind,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Copied>> {
    let mut pinned = PinnedSnapshot::open(source, None)?;
    let Superblock { instance, log_segment_bytes, .. } = superblock(&pinned, source)?;
    let (mut copy, restore) = match kind {
        CopyKind::Backup => (UnfinishedCopy::update(target, &mut pinned, None)?, None),
        CopyKind::Restored(restore) => {
            (UnfinishedCopy::create(target, &pinned, None)?, Some(restore))
        }
    };
    if restore.is_some() {
        copy.begin_branch();
    }
    let geometry = Geometry { instance, segment_bytes: log_segment_bytes };
    let Some(log) = copy_log(&mut pinned, &copy, geometry)? else { return Ok(None) };
    let checkpoint = log.checkpoint;
    let last = match restore {
        None => None,
        Some(restore) => until(&pinned, &copy, geometry, checkpoint, restore)?,
    };
    let end = end_of_copy(&copy, geometry, checkpoint, last);
    let end = end.map_err(|error| of_two_programs(error, restore))?;
    if !end.has_program {
        return Err(LogError::emptied(end.last).into());
    }
    if last.is_none() {
        log.check_end(end.last, restore.is_some_and(|restore| restore.archive.is_some()))?;
    }
    // What is noted later is of later epochs than those that were copied.
    let openings = pinned.openings()?;
    if let Some(earlier) = copy.replaced()? {
        check_replaces(&earlier, end.last, openings.as_ref())?;
    }
    if let Some(openings) = openings {
        copy.keep_openings(openings.until(end.last));
    }
    cut_log(&copy, &end)?;
    let timestamp_ns = match end.last == checkpoint {
        true => checkpoint_record(&pinned)?.timestamp_ns,
        false => end.timestamp_ns,
    };
    let known = log.mark.filter(|mark| EndMark::decode(mark).is_some_and(|m| m.epoch <= end.last));
    let mark = match end.last > checkpoint {
        true => Some(mark_of_copy(known.as_ref(), end.last)),
        false => known,
    };
    let pages = |done: u64, all: u64| progress(done * PAGE_BYTES, all * PAGE_BYTES);
    let written = copy.finish(&pinned, mark.as_ref(), pages)?;
    Ok(Some(Copied {
        checkpoint,
        last: end.last,
        hash: known.as_ref().and_then(known_hash),
        page_bytes: pinned.pages() * PAGE_BYTES,
        written_bytes: written * PAGE_BYTES,
        log_bytes: end.bytes,
        timestamp_ns,
    }))
}

/// An earlier copy is replaced by one that has all of its epochs: as many, and written by the same
/// openings as far as these are known (S23).
fn check_replaces(
    earlier: &Replaced,
    last: EpochNumber,
    openings: Option<&Openings>,
) -> Result<()> {
    let of_copy = earlier.openings.as_ref();
    let saved = EpochNumber(earlier.epoch.map_or(0, |epoch| epoch.0));
    let ended = earlier.mark.as_ref().and_then(EndMark::decode).map(|mark| mark.epoch);
    let earlier = ended.map_or(saved, |ended| ended.max(saved));
    if earlier > last {
        return Err(LogError::EarlierIsLonger { earlier, last }.into());
    }
    let since = openings.zip(of_copy).and_then(|(a, b)| a.first_difference(b, earlier));
    since.map_or(Ok(()), |since| Err(LogError::EarlierIsOther { since, earlier }.into()))
}

/// Epochs that are archived may be of a later program than those of the copy.
fn of_two_programs(error: LogError, restore: Option<&Restore>) -> LogError {
    match error {
        LogError::ProgramLost { epoch } if restore.is_some_and(|r| r.archive.is_some()) => {
            let what = format!(
                "epoch {epoch} was logged by another program than later ones, and they cannot be \
                 replayed in one go: restore a copy that was made after the program was deployed, \
                 or to an earlier epoch"
            );
            LogError::Archive { what }
        }
        error => error,
    }
}

/// Puts what the archive has behind the log of the copy; returns the epoch with which it is to
/// end.
fn until(
    pinned: &PinnedSnapshot,
    copy: &UnfinishedCopy,
    geometry: Geometry,
    checkpoint: EpochNumber,
    restore: &Restore,
) -> Result<Option<EpochNumber>> {
    let Restore { until, archive } = restore;
    let checkpoint_ns = checkpoint_record(pinned)?.timestamp_ns;
    let last_until = |time| last_until(copy, geometry, (checkpoint, checkpoint_ns), time);
    let mut is_later_found = false;
    if let Some(dir) = archive {
        let end = end_of_copy(copy, geometry, checkpoint, None)?;
        cut_log(copy, &end)?;
        let is_reached = match *until {
            Until::Newest => false,
            Until::Epoch(asked) => asked <= end.last,
            Until::Time(time) => last_until(time)?.has_later,
        };
        let (branch, last, openings) = (pinned.branch(), end.last, pinned.openings()?);
        let openings = openings.as_ref();
        let at = end.bytes.next_multiple_of(geometry.segment_bytes);
        let mut bytes = at;
        let until = *until;
        let archived = Archived { dir, geometry, branch, last, openings, is_reached, until };
        is_later_found = append_archived(archived, at, |at, segment| {
            bytes = at + geometry.segment_bytes;
            copy.log_write(at, segment)
        })?;
        copy.log_end(bytes)?;
    }
    Ok(match *until {
        Until::Epoch(epoch) => Some(epoch),
        Until::Time(time) => {
            let found = last_until(time)?;
            if !found.has_later && !is_later_found && found.timestamp_ns < time {
                let LastUntil { epoch, timestamp_ns, .. } = found;
                return Err(LogError::NotReached { asked_ns: time, epoch, timestamp_ns }.into());
            }
            Some(found.epoch)
        }
        // What the archive gave has no gap.
        Until::Newest => None,
    })
}

/// The checkpoint of the snapshot.
fn checkpoint_record(pinned: &PinnedSnapshot) -> Result<CheckpointRecord> {
    let mut copies = [CheckpointRecord::new_zeroed(); 2];
    for (copy, number) in copies.iter_mut().zip(0..) {
        pinned.image_read(CHECKPOINTS_OFFSET + number * CHECKPOINT_STRIDE, copy.as_mut_bytes())?;
    }
    checkpoint::newest(copies)
}

/// The mark of a copy that ends with `last`: a log that is cut later is damaged, and not one whose
/// end was never written. `known` is the mark of the source; the hash of an earlier epoch is in the
/// commit record of the next one.
fn mark_of_copy(known: Option<&[u8; MARK_BYTES]>, last: EpochNumber) -> [u8; MARK_BYTES] {
    let known = known.and_then(EndMark::decode).filter(|mark| mark.epoch == last);
    known.unwrap_or(EndMark { epoch: last, hash: None }).encode()
}

fn known_hash(mark: &[u8; MARK_BYTES]) -> Option<(EpochNumber, StateHash)> {
    let EndMark { epoch, hash } = EndMark::decode(mark)?;
    Some((epoch, hash?))
}

/// The geometry of the store.
fn superblock(pinned: &PinnedSnapshot, source: &Path) -> Result<Superblock> {
    let mut copies = [Superblock::new_zeroed(); 2];
    for (copy, number) in copies.iter_mut().zip(0..) {
        pinned.image_read(SUPERBLOCKS_OFFSET + number * SUPERBLOCK_STRIDE, copy.as_mut_bytes())?;
    }
    good_copy(&copies)?.ok_or_else(|| {
        StorageError::Missing(format!("{} has files, and no store in them yet", source.display()))
    })
}

/// The log as it was copied.
struct CopiedLog {
    /// Epoch of the snapshot that it goes on from.
    checkpoint: EpochNumber,
    /// What was there before it was copied: the newest mark, and the newest epoch that was begun.
    mark: Option<[u8; MARK_BYTES]>,
    begun: EpochNumber,
    /// What the last opening found was there before it, too.
    found: Option<EpochNumber>,
    /// What shows that its file was cut off, if it was.
    short: Option<String>,
}

impl CopiedLog {
    /// Checks that the source, whose newest state is copied, has lost nothing of its log, as an
    /// open would: the copy would hide that. `last` is the epoch with which the copy ends;
    /// `is_completed`: an archive gave what the log lacks.
    fn check_end(&self, last: EpochNumber, is_completed: bool) -> Result<()> {
        let ended = self.mark.as_ref().and_then(EndMark::decode).map(|mark| mark.epoch);
        if let Some(ended) = ended.max(self.found).filter(|ended| *ended > last) {
            return Err(LogError::ended(last, ended).into());
        }
        if last < self.begun.previous() {
            let begun = self.begun;
            let what = format!("it has begun epoch {begun}, and of epoch {} a part", last.next());
            return Err(LogError::Lost { last, what }.into());
        }
        match &self.short {
            // The mark says that the archive had all.
            Some(what) if !is_completed || ended.is_none() => {
                Err(LogError::Lost { last, what: what.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Copies what the log has behind the newest snapshot, so often until that still is the newest when
/// it is done. `None`: there always was a newer one.
fn copy_log(
    from: &mut PinnedSnapshot,
    to: &UnfinishedCopy,
    geometry: Geometry,
) -> Result<Option<CopiedLog>> {
    for _ in 0..LOG_TRIES {
        from.renew()?;
        let checkpoint = EpochNumber(from.epoch().map_or(0, |epoch| epoch.0));
        let mark = from.mark()?;
        let begun = newest_begun(from, geometry)?;
        let found = from.openings()?.and_then(|openings| openings.found_last());
        to.log_end(0)?;
        copy_segments(from, geometry, checkpoint, |offset, bytes| to.log_write(offset, bytes))?;
        to.log_end(to.log_bytes().next_multiple_of(geometry.segment_bytes))?;
        let short = from.log_is_short()?;
        if from.is_newest()? {
            return Ok(Some(CopiedLog { checkpoint, mark, begun, found, short }));
        }
    }
    Ok(None)
}

/// Erases what is not kept.
fn cut_log(copy: &UnfinishedCopy, end: &CopiedEnd) -> Result<()> {
    for offset in &end.erased {
        copy.log_write(*offset, &[0; HEADER_BYTES])?;
    }
    Ok(copy.log_end(end.bytes.next_multiple_of(PAGE_BYTES))?)
}
