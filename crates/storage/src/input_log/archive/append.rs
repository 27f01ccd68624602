//! Appends archived epochs to a copied log.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pmem::{DeviceError, LogSpace, Opening, Openings};

use super::super::error::LogError;
use super::super::format::Kind;
use super::super::geometry::Geometry;
use super::super::reader::{find_committed, timestamp_of};
use super::super::scan::Scan;
use super::file::{FileHeader, WholeFile, error, whole};
use super::listing::{all_files, files_of, io_error};
use crate::ids::EpochNumber;

/// Target of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The newest epoch of the archive.
    Newest,
    /// The end of an epoch.
    Epoch(EpochNumber),
    /// The last epoch with a timestamp up to this one, in nanoseconds since 1970.
    Time(u64),
}

impl Until {
    /// Whether an epoch is beyond the target by its number.
    fn is_before(self, epoch: EpochNumber) -> bool {
        matches!(self, Self::Epoch(last) if last < epoch)
    }
}

/// The archive, and where it continues the log of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Archived<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) geometry: Geometry,
    pub(crate) branch: u64,
    /// The last epoch of the copy.
    pub(crate) last: EpochNumber,
    /// The openings of the copy, if known.
    pub(crate) openings: Option<&'a Openings>,
    /// Whether the copy reaches the target itself, so that only the directory is checked.
    pub(crate) is_reached: bool,
    pub(crate) until: Until,
}

impl Archived<'_> {
    /// Refuses a file that goes on from another epoch than the last one of the copy: the opening
    /// that wrote its end began before that, and wrote it, too (S23).
    fn check_opening(&self, path: &Path, opening: Option<Opening>) -> Result<(), LogError> {
        let own = self.openings.and_then(|openings| openings.of_epoch(self.last));
        let began_before = opening.filter(|opening| opening.first <= self.last);
        match own.zip(began_before) {
            Some((own, archived)) if own != archived => Err(error(format!(
                "{} goes on from other epochs than the copy has from {} on: the database lost \
                 some, and has written others of these numbers; restore from another copy, or to \
                 epoch {}, the last one of this copy",
                path.display(),
                own.first.max(archived.first),
                self.last
            ))),
            _ => Ok(()),
        }
    }
}

/// Passes the segments of archived epochs after the copy's last one to `each`, up to the target,
/// with their offsets from `at` on. Returns whether the archive has an epoch with a timestamp after
/// the target.
///
/// # Errors
/// [`LogError::Archive`] if epochs are missing, with which; if a file is damaged; if it holds no
/// epochs, or those of other stores or branches only. The file system's, and those of `each`.
pub(crate) fn append_archived(
    archived: Archived<'_>,
    mut at: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<bool, LogError> {
    let Archived { dir, geometry, branch, last, is_reached, until, .. } = archived;
    let files = files_of(dir, geometry.instance, branch)?;
    check_any(dir, geometry, &files)?;
    if is_reached {
        return Ok(false);
    }
    let mut next = last.next();
    let mut programs = BTreeSet::new();
    let mut is_later_found = false;
    for file in files.iter().filter(|file| file.last > last) {
        if until.is_before(file.first) {
            break;
        }
        if file.last < next {
            continue;
        }
        let path = dir.join(file.name());
        let bytes = fs::read(&path).map_err(|e| io_error("read", &path, e))?;
        let Some(WholeFile { opening, segments: found }) = whole(&bytes, file) else {
            let (first, last) = (file.first, file.last);
            let path = path.display();
            return Err(error(format!("{path} is damaged, so epochs {first} to {last} are lost")));
        };
        // Before times are looked at: epochs that are missing may be of the time that is asked for.
        check_gap(dir, next, file.first)?;
        archived.check_opening(&path, opening)?;
        let times: Vec<u64> = found.iter().filter_map(|(_, bytes)| timestamp_of(bytes)).collect();
        let Until::Time(time) = until else {
            at = put(&found, file, &mut programs, Range { next, until, geometry, at }, &mut each)?;
            next = file.last.next();
            continue;
        };
        is_later_found = times.iter().any(|of_epoch| *of_epoch > time);
        if times.iter().all(|of_epoch| *of_epoch > time) {
            break;
        }
        at = put(&found, file, &mut programs, Range { next, until, geometry, at }, &mut each)?;
        next = file.last.next();
        if is_later_found {
            break;
        }
    }
    match until {
        Until::Epoch(asked) if asked >= next => Err(missing(dir, next, asked)),
        _ => Ok(is_later_found),
    }
}

/// The segments of a file up to the target, and their offset in the log.
#[derive(Debug, Clone, Copy)]
struct Range {
    next: EpochNumber,
    until: Until,
    geometry: Geometry,
    at: u64,
}

/// Passes the segments of a file to `each`. Returns the offset after them.
fn put(
    found: &[(super::super::format::SegmentHeader, &[u8])],
    file: &FileHeader,
    programs: &mut BTreeSet<(u64, u32)>,
    range: Range,
    each: &mut impl FnMut(u64, &[u8]) -> Result<(), DeviceError>,
) -> Result<u64, LogError> {
    let Range { next, until, geometry, mut at } = range;
    for (header, bytes) in found {
        if u64::from(header.segment_bytes.get()) != geometry.segment_bytes {
            return Err(error(format!("{} has segments of another size", file.name())));
        }
        let epoch = EpochNumber(header.epoch.get());
        let is_wanted = match Kind::from_number(header.kind.get()) {
            // Each file has the one that its epochs were logged under.
            Some(Kind::Program) => programs.insert((header.attempt.get(), header.ordinal.get())),
            _ => epoch >= next && !until.is_before(epoch),
        };
        if is_wanted {
            each(at, bytes)?;
            at += geometry.segment_bytes;
        }
    }
    Ok(at)
}

/// The last epoch of a log up to a timestamp.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastUntil {
    pub(crate) epoch: EpochNumber,
    pub(crate) timestamp_ns: u64,
    /// Whether the log has a later epoch.
    pub(crate) has_later: bool,
}

/// Returns the last epoch up to a timestamp in a log that continues a checkpoint with a timestamp.
///
/// # Errors
/// [`LogError::TooEarly`] if the checkpoint is of a later time, or is none yet, and the first epoch
/// is of a later time; the log's.
pub(crate) fn last_until<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    checkpoint: (EpochNumber, u64),
    time: u64,
) -> Result<LastUntil, LogError> {
    let (mut epoch, mut timestamp_ns) = checkpoint;
    let too_early =
        |epoch, timestamp_ns| LogError::TooEarly { asked_ns: time, epoch, timestamp_ns };
    if timestamp_ns > time {
        return Err(too_early(epoch, timestamp_ns));
    }
    let scan = Scan::read(log, geometry, epoch)?;
    let (epochs, _) = find_committed(log, geometry, &scan)?;
    while let Some(next) = epochs.get(&epoch.next()) {
        if next.info.timestamp_ns > time {
            // What is before the first epoch of all has no time.
            if epoch == EpochNumber(0) {
                return Err(too_early(epoch.next(), next.info.timestamp_ns));
            }
            return Ok(LastUntil { epoch, timestamp_ns, has_later: true });
        }
        (epoch, timestamp_ns) = (epoch.next(), next.info.timestamp_ns);
    }
    Ok(LastUntil { epoch, timestamp_ns, has_later: false })
}

fn check_gap(dir: &Path, next: EpochNumber, first: EpochNumber) -> Result<(), LogError> {
    if first <= next { Ok(()) } else { Err(missing(dir, next, first.previous())) }
}

fn missing(dir: &Path, first: EpochNumber, last: EpochNumber) -> LogError {
    error(format!(
        "{} lacks epochs {first} to {last} of this database: put the files that have them there, \
         or restore to epoch {} at most",
        dir.display(),
        first.previous()
    ))
}

/// Refuses a directory that has no epochs of this store and branch.
fn check_any(dir: &Path, geometry: Geometry, files: &[FileHeader]) -> Result<(), LogError> {
    if !files.is_empty() {
        return Ok(());
    }
    let all = all_files(dir)?;
    if all.is_empty() {
        return Err(error(format!(
            "{} has no archived epochs: name the directory that the database archives to, or \
             restore without an archive",
            dir.display()
        )));
    }
    let is_branch = all.iter().any(|file| file.instance == geometry.instance);
    let what = if is_branch { "another branch of this database" } else { "other databases" };
    Err(error(format!("{} has epochs of {what} only", dir.display())))
}
