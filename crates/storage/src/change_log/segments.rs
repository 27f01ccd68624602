//! The files of the change log: a head, then a record for each epoch, without a gap.
//!
//! | bytes | the head |
//! |---|---|
//! | 8 | `NVCCHG01` |
//! | 8 | the epoch before the first one of the file (little endian) |
//!
//! A file has the name of its first epoch.

mod reading;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use self::reading::Reading;
use crate::change_log::hook::{ChangeLogCall, ChangeLogHook};
use crate::ids::EpochNumber;

/// A new file is begun when the last one has as many bytes. The one before is synced then, so a
/// power cut takes away no more than that, and one record.
pub(super) const SEGMENT_BYTES: u64 = 8 << 20;
const SUFFIX: &str = ".changes";
const MAGIC: [u8; 8] = *b"NVCCHG01";
const HEAD_OF_FILE_BYTES: u64 = 16;

/// One file.
#[derive(Debug, Clone)]
struct Segment {
    path: PathBuf,
    /// The epoch before its first one.
    before: EpochNumber,
    /// The last epoch in it, or `before`.
    last: EpochNumber,
    /// Bytes up to the end of the last whole record.
    bytes: u64,
    /// Where and how it is damaged, if anything follows the last whole record.
    damage: Option<String>,
}

/// The files of a change log, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Segments {
    directory: PathBuf,
    files: VecDeque<Segment>,
    /// Changes of epochs up to this one are not in the files.
    after: EpochNumber,
    /// Why changes of earlier epochs are missing, if that is known.
    why: Option<String>,
    /// Files of epochs that are not kept, to be removed before the next write.
    left_over: Vec<PathBuf>,
    /// The last file, once something was appended.
    open: Option<File>,
    /// Whether something was appended since the last sync.
    is_unsynced: bool,
    hook: Option<Arc<dyn ChangeLogHook>>,
}

fn name_of(first: EpochNumber) -> String {
    format!("{:020}{SUFFIX}", first.0)
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

impl Segments {
    /// No files, in a directory that need not be there.
    pub(super) fn of(directory: &Path, hook: Option<Arc<dyn ChangeLogHook>>) -> Self {
        Self { directory: directory.to_path_buf(), hook, ..Self::default() }
    }

    /// Reads the files of a directory. A record that is damaged ends its file, and epochs before a
    /// gap are not kept.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn open(directory: &Path, hook: Option<Arc<dyn ChangeLogHook>>) -> io::Result<Self> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name();
            let first = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
            names.extend(first.filter(|&first| first > 0).map(EpochNumber));
        }
        names.sort_unstable();
        let mut segments = Self::of(directory, hook);
        for first in names {
            segments.open_file(first)?;
        }
        Ok(segments)
    }

    fn open_file(&mut self, first: EpochNumber) -> io::Result<()> {
        let path = self.directory.join(name_of(first));
        let before = first.previous();
        if !reading::has_head(&path, before)? {
            // It was just begun, or it is damaged: then there is a gap behind the file before.
            self.left_over.push(path);
            return Ok(());
        }
        self.join(before);
        let mut segment =
            Segment { path, before, last: before, bytes: HEAD_OF_FILE_BYTES, damage: None };
        for record in segment.reading()?.records() {
            match record {
                Ok((epoch, changes, bytes)) => {
                    (segment.last, segment.bytes) = (epoch, segment.bytes + bytes);
                    if changes.are_too_many {
                        self.note_too_many(epoch);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    segment.damage = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        self.files.push_back(segment);
        Ok(())
    }

    /// A file begins behind an epoch: what comes before is kept if it ends there.
    fn join(&mut self, before: EpochNumber) {
        let Some(last) = self.files.back() else {
            let damaged = self.left_over.first();
            self.why = damaged.map(|path| format!("{} is damaged at byte 0", path.display()));
            self.after = before;
            return;
        };
        if last.last != before {
            let (directory, end) = (self.directory.display(), last.last.next());
            let what = last.damage.clone().unwrap_or_else(|| {
                format!("in {directory} those of epochs {end} to {before} are missing")
            });
            self.forget(before, what);
        }
    }

    /// Begins anew, without files: changes of the epochs after this one will be kept.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn begin(&mut self, after: EpochNumber) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.to_str().is_some_and(|path| path.ends_with(SUFFIX)) {
                fs::remove_file(path)?;
            }
        }
        sync_directory(&self.directory)?;
        self.files.clear();
        self.left_over.clear();
        (self.after, self.why, self.open, self.is_unsynced) = (after, None, None, false);
        self.add_file()
    }

    /// Says that changes up to an epoch are not kept, and why. Removes nothing yet.
    pub(super) fn forget(&mut self, after: EpochNumber, why: String) {
        self.left_over.extend(self.files.drain(..).map(|segment| segment.path));
        (self.after, self.why, self.open) = (after, Some(why), None);
    }

    fn note_too_many(&mut self, epoch: EpochNumber) {
        self.after = epoch;
        self.why = Some(format!("epoch {epoch} has changed more than is kept of one epoch"));
    }

    /// Changes of epochs up to this one are not here.
    pub(super) fn after(&self) -> EpochNumber {
        self.after
    }

    /// Why changes of earlier epochs are missing, if that is known.
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The last epoch whose changes are here.
    pub(super) fn last(&self) -> EpochNumber {
        self.files.back().map_or(self.after, |segment| segment.last)
    }

    /// What is damaged at the end of the last file.
    pub(super) fn damage(&self) -> Option<&str> {
        self.files.back()?.damage.as_deref()
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|segment| segment.bytes).sum()
    }

    fn reach(&self, call: ChangeLogCall) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook.reach(call))
    }

    /// Begins a file behind the last one.
    fn add_file(&mut self) -> io::Result<()> {
        self.sync()?;
        for path in std::mem::take(&mut self.left_over) {
            fs::remove_file(path)?;
        }
        let before = self.last();
        let path = self.directory.join(name_of(before.next()));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(&MAGIC)?;
        file.write_all(&before.0.to_le_bytes())?;
        file.sync_all()?;
        sync_directory(&self.directory)?;
        self.reach(ChangeLogCall::Synced)?;
        let bytes = HEAD_OF_FILE_BYTES;
        self.files.push_back(Segment { path, before, last: before, bytes, damage: None });
        self.open = Some(file);
        Ok(())
    }

    /// Opens the last file to go on behind its last whole record. What follows that is cut off
    /// first, durably, so that no power cut brings it back behind other records.
    fn go_on(&mut self) -> io::Result<()> {
        let segment = self.files.back_mut().expect("there is a last file");
        let mut file = OpenOptions::new().write(true).open(&segment.path)?;
        if file.metadata()?.len() != segment.bytes {
            file.set_len(segment.bytes)?;
            file.sync_all()?;
        }
        segment.damage = None;
        file.seek(SeekFrom::End(0))?;
        self.open = Some(file);
        Ok(())
    }

    /// Appends the record of the epoch behind the last one.
    ///
    /// # Errors
    /// The file system's. Nothing was appended then.
    pub(super) fn append(
        &mut self,
        epoch: EpochNumber,
        record: &[u8],
        are_too_many: bool,
    ) -> io::Result<()> {
        assert!(epoch == self.last().next(), "epoch {epoch} comes after {}", self.last());
        if self.files.back().is_none_or(|segment| segment.bytes >= SEGMENT_BYTES) {
            self.add_file()?;
        } else if self.open.is_none() {
            self.go_on()?;
        }
        self.reach(ChangeLogCall::Append)?;
        let file = self.open.as_mut().expect("it was just opened");
        if let Err(error) = file.write_all(record) {
            // The next record is written in its place.
            self.open = None;
            return Err(error);
        }
        let segment = self.files.back_mut().expect("there is a last file");
        segment.bytes += record.len() as u64;
        segment.last = epoch;
        self.is_unsynced = true;
        if are_too_many {
            self.note_too_many(epoch);
        }
        Ok(())
    }

    /// Makes all records durable, those of an earlier process, too.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.open.is_none() && !self.files.is_empty() {
            // A killed process may have left what is in the page cache only.
            self.go_on()?;
            self.is_unsynced = true;
        }
        if let (Some(file), true) = (&self.open, self.is_unsynced) {
            self.reach(ChangeLogCall::Sync)?;
            file.sync_data()?;
            self.reach(ChangeLogCall::Synced)?;
        }
        self.is_unsynced = false;
        Ok(())
    }

    /// Deletes files of epochs up to `needed_after`, all if that is `None`, and the oldest ones
    /// while there are more than `bytes_max` bytes. The last file stays.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn trim(
        &mut self,
        needed_after: Option<EpochNumber>,
        bytes_max: u64,
    ) -> io::Result<()> {
        let mut bytes = self.bytes();
        while self.files.len() > 1 {
            let oldest = &self.files[0];
            let is_needed = needed_after.is_some_and(|after| oldest.last > after);
            if is_needed && bytes <= bytes_max {
                break;
            }
            fs::remove_file(&oldest.path)?;
            bytes -= oldest.bytes;
            if oldest.last > self.after {
                self.after = oldest.last;
                self.why = is_needed.then(|| {
                    format!("more than {bytes_max} bytes of changes were kept for consumers")
                });
            }
            self.files.pop_front();
        }
        Ok(())
    }

    /// Opens the files that have changes of epochs after this one.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn files_after(&self, after: EpochNumber) -> io::Result<Vec<Reading>> {
        let of = self.files.iter().filter(|segment| segment.last > after);
        of.map(Segment::reading_whole).collect()
    }
}
