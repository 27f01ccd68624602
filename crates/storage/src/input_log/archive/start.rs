//! The archive of a log that is opened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pmem::{AnyDevice, Device, LogSpace};

use super::super::error::LogError;
use super::super::format::Kind;
use super::super::geometry::Geometry;
use super::super::reader::find_committed;
use super::super::scan::Scan;
use super::super::summary::CommittedRange;
use super::file::{FileHeader, error};
use super::keeper::{Archive, Job, Place, write_file};
use super::listing::{files_of, io_error};
use super::unfinished::remove_unfinished;
use crate::ids::EpochNumber;

/// Begins to archive the log of a device, if it is to be: first what the checkpoint has made
/// obsolete and is still there.
///
/// # Errors
/// [`LogError::Archive`] if the directory has later epochs of the store than the store; the file
/// system's.
pub(in super::super) fn start(
    device: &Arc<AnyDevice>,
    geometry: Geometry,
    range: CommittedRange,
) -> Result<Option<Archive>, LogError> {
    let Some(dir) = device.archive() else { return Ok(None) };
    let place = Place { dir: dir.to_path_buf(), geometry, branch: device.branch() };
    pmem::private::create_directories(dir).map_err(|e| io_error("create directory", dir, e))?;
    remove_unfinished(dir)?;
    let files = files_of(dir, geometry.instance, place.branch)?;
    let archived = files.iter().map(|file| file.last).max().unwrap_or_default();
    if archived > range.last {
        return Err(error(format!(
            "{} has epochs of this database up to {archived}, and its own last one is {}: it is an \
             earlier copy of what was archived; make a database of it with `nvcaracal restore`, \
             which begins a branch of its own",
            dir.display(),
            range.last
        )));
    }
    if let Some(newest) = files.iter().max_by_key(|file| file.last) {
        check_openings(device, dir, newest)?;
    }
    if let Some(job) = left_over(device.as_ref(), geometry, archived, range.checkpoint)? {
        write_file(device.as_ref(), &place, &job)?;
    }
    Archive::begin(device, place, range.checkpoint.max(archived)).map(Some)
}

/// Refuses a directory whose last epoch of the store is not the one that the store has (S23).
fn check_openings(device: &AnyDevice, dir: &Path, newest: &FileHeader) -> Result<(), LogError> {
    let last = newest.last;
    let own = device.openings().and_then(|openings| openings.of_epoch(last));
    let archived = FileHeader::read(&dir.join(newest.name()))?.and_then(|header| header.opening);
    match own.zip(archived) {
        Some((own, archived)) if own != archived => Err(error(format!(
            "{} has epochs of this database up to {last} that it does not have itself: it lost \
             them, or is an older state that was put back, and has written others of these \
             numbers; archive to another directory, or make a database of a copy with `nvcaracal \
             restore`, which begins a branch of its own",
            dir.display()
        ))),
        _ => Ok(()),
    }
}

/// What the log still has of the epochs behind those that are archived, up to a checkpoint: the
/// last ones without a gap. A process that was killed has not archived them.
fn left_over<L: LogSpace>(
    log: &L,
    geometry: Geometry,
    archived: EpochNumber,
    checkpoint: EpochNumber,
) -> Result<Option<Job>, LogError> {
    if archived >= checkpoint {
        return Ok(None);
    }
    // What is obsolete may hold anything: then nothing of it can be archived.
    let Ok(scan) = Scan::read(log, geometry, archived) else { return Ok(None) };
    let Ok((epochs, _)) = find_committed(log, geometry, &scan) else { return Ok(None) };
    let mut first = checkpoint.next();
    while first > archived.next() && epochs.contains_key(&first.previous()) {
        first = first.previous();
    }
    if first > checkpoint {
        return Ok(None);
    }
    let newest_program = scan.attempts(Kind::Program).into_iter().map(|(_, attempt)| attempt).max();
    let is_in = |epoch: EpochNumber| (first..=checkpoint).contains(&epoch);
    // Of the records of one epoch that do not count the last attempt is the one that does.
    let mut deferred: BTreeMap<EpochNumber, u64> = BTreeMap::new();
    for (epoch, attempt) in scan.attempts(Kind::Deferred) {
        let newest = deferred.entry(epoch).or_default();
        *newest = attempt.max(*newest);
    }
    let counts = scan.found.iter().filter(|(key, found)| {
        let committed = epochs.get(&key.epoch).map(|epoch| epoch.attempt);
        found.intact
            && match key.kind {
                Kind::Program => Some(key.attempt) == newest_program,
                Kind::Deferred => is_in(key.epoch) && deferred[&key.epoch] == key.attempt,
                Kind::Verdict => is_in(key.epoch),
                _ => is_in(key.epoch) && committed == Some(key.attempt),
            }
    });
    let segments = counts.map(|(_, found)| found.segment).collect();
    Ok(Some(Job { first, last: checkpoint, segments }))
}
