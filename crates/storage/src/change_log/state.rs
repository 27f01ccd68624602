//! What a change log has in memory: its consumers, its files, and epochs of a replay.

use std::io;
use std::path::Path;

use crate::change_log::consumers::Followed;
use crate::change_log::record::{self, EpochChanges};
use crate::change_log::segments::{SEGMENT_BYTES, Segments};
use crate::ids::{EpochNumber, TableId};

/// What is kept of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The changes of all epochs after this one are here, up to the one that ended last.
    pub after: EpochNumber,
    /// Why changes of earlier epochs are missing, if that is known.
    pub why: Option<String>,
}

/// What the lock of a change log protects.
#[derive(Debug)]
pub(super) struct State {
    pub(super) followed: Followed,
    pub(super) segments: Segments,
    /// Whether positions were changed in memory and not in the file yet.
    pub(super) is_behind: bool,
    held: Held,
}

/// Epochs of a replay that may not write yet.
#[derive(Debug, Default)]
struct Held {
    records: Vec<Record>,
    bytes: u64,
    /// Epochs up to this one were too many bytes.
    lost: Option<EpochNumber>,
}

#[derive(Debug)]
struct Record {
    epoch: EpochNumber,
    bytes: Vec<u8>,
    are_too_many: bool,
}

impl State {
    pub(super) fn new(followed: Followed, segments: Segments) -> Self {
        Self { followed, segments, is_behind: false, held: Held::default() }
    }

    pub(super) fn kept(&self, table: TableId) -> Option<Kept> {
        let after = self.followed.after(table)?;
        if after >= self.segments.after() {
            let why = self.followed.were_lost().then(|| "the list of consumers was lost".into());
            return Some(Kept { after, why });
        }
        let why = self.segments.why().map(Into::into);
        Some(Kept { after: self.segments.after(), why })
    }

    pub(super) fn begin_store(&mut self, instance: u64, has_had: bool, directory: &Path) {
        let is_ours = self.followed.instance().is_none_or(|known| known == instance);
        if !is_ours {
            let what = format!("{} is of another store", directory.display());
            self.segments.forget(EpochNumber(0), what);
        }
        let were_lost = !is_ours || self.followed.instance().is_none() && has_had;
        self.followed.begin_store(instance, were_lost);
    }

    pub(super) fn begin_replay(&mut self, checkpoint: EpochNumber, directory: &Path) {
        self.held = Held::default();
        if self.followed.is_empty() || self.segments.last() >= checkpoint {
            return;
        }
        let why = self.segments.damage().map_or_else(
            || {
                let (directory, last) = (directory.display(), self.segments.last());
                format!("{directory} has no changes of epochs {} to {checkpoint}", last.next())
            },
            Into::into,
        );
        self.segments.forget(checkpoint, why);
    }

    pub(super) fn end_replay(&mut self, epoch: EpochNumber) {
        if self.followed.is_empty() {
            return;
        }
        let were_behind = self.followed.forget_positions_after(epoch);
        self.is_behind |= were_behind;
        if were_behind || self.segments.last() > epoch {
            let why = format!("those of later epochs than {epoch} were of another past");
            self.segments.forget(epoch, why);
        }
    }

    pub(super) fn add(
        &mut self,
        epoch: EpochNumber,
        changes: &EpochChanges,
        may_write: bool,
        (epoch_bytes_max, bytes_max): (u64, u64),
    ) -> io::Result<()> {
        if self.followed.is_empty() {
            return Ok(());
        }
        if may_write {
            self.write_held()?;
        }
        if epoch <= self.segments.last() {
            return Ok(());
        }
        // A table that was followed later has no changes in the record, as when it was made first.
        let is_kept = |table| self.followed.after(table).is_some_and(|after| after < epoch);
        let (bytes, are_too_many) = record::encode(epoch, changes, epoch_bytes_max, is_kept);
        if may_write {
            self.segments.append(epoch, &bytes, are_too_many)?;
            return self.trim(bytes_max);
        }
        self.held.add(Record { epoch, bytes, are_too_many }, 2 * (SEGMENT_BYTES + epoch_bytes_max));
        Ok(())
    }

    pub(super) fn settle(&mut self, epoch: EpochNumber) -> io::Result<()> {
        if self.followed.is_empty() {
            return Ok(());
        }
        self.write_held()?;
        assert!(self.segments.last() == epoch, "the log has each epoch, and {epoch} is the last");
        self.segments.sync()
    }

    fn write_held(&mut self) -> io::Result<()> {
        let Held { records, lost, .. } = std::mem::take(&mut self.held);
        if let Some(lost) = lost {
            let why = "a replay came to more of them than it holds in memory";
            self.segments.forget(lost, why.into());
        }
        for Record { epoch, bytes, are_too_many } in records {
            self.segments.append(epoch, &bytes, are_too_many)?;
        }
        Ok(())
    }

    /// Deletes files that no consumer needs, and the oldest beyond the limit.
    pub(super) fn trim(&mut self, bytes_max: u64) -> io::Result<()> {
        self.segments.trim(self.followed.least(), bytes_max)
    }
}

impl Held {
    /// A power cut takes no more than a file and a record, so only where more is missing is there
    /// more than `bytes_max` to be held.
    fn add(&mut self, record: Record, bytes_max: u64) {
        self.bytes += record.bytes.len() as u64;
        if self.bytes > bytes_max {
            *self = Self { lost: Some(record.epoch), ..Self::default() };
            return;
        }
        self.records.push(record);
    }
}
