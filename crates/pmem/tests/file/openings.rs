//! The list of openings: which of them wrote which epochs.

use std::path::Path;
use std::sync::Arc;

use pmem::{Device, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File, Outcome};

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::refused::contents;
use crate::scenario::{fast_dir, open, options};

/// Opens a database for writing, and notes that.
fn note(dir: &Path, hook: Option<Arc<dyn DiskHook>>, first: u64) {
    let device = File::open(dir, &options(hook)).unwrap();
    device.accept().unwrap();
    device.note_opening(EpochNumber(first)).unwrap();
}

/// The first epochs of the openings of a database.
fn firsts(dir: &Path) -> Vec<u64> {
    let openings = open(dir).unwrap().openings();
    openings.map_or(Vec::new(), |list| list.list().iter().map(|o| o.first.0).collect())
}

/// S23: any number of openings leaves the newest ones, in a file that does not grow.
#[test]
fn s_23_the_newest_of_2000_openings_are_kept() {
    let dir = fast_dir();
    for first in 1..=2000 {
        note(dir.path(), None, first);
        // One that wrote nothing is replaced.
        if first % 100 == 0 {
            note(dir.path(), None, first);
        }
    }
    assert_eq!(firsts(dir.path()), (977..=2000).collect::<Vec<_>>());
    assert_eq!(contents(dir.path())["openings"].len(), 40_960);
}

/// S23, O-54: a power cut at any step of a note leaves the list of before or the new one, and the
/// new one when the note has returned.
#[test]
fn s_23_a_note_is_whole_or_not_there() {
    let dir = fast_dir();
    note(dir.path(), None, 1);
    std::fs::remove_file(dir.path().join("openings")).unwrap();
    let mut disk = DiskContents::of(dir.path());
    let mut before = Vec::new();
    for first in [5, 70, 71, 80] {
        let recorder = Arc::new(Recorder::default());
        note(dir.path(), Some(recorder.clone()), first);
        let after: Vec<u64> = before.iter().copied().chain([first]).collect();
        for (file, change) in recorder.take() {
            disk.change(file, &change);
            for arrived in
                (0..20).map(Arrived::Random).chain([Arrived::Nothing, Arrived::Everything])
            {
                let cut = fast_dir();
                disk.cut(arrived).write_to(cut.path());
                let found = firsts(cut.path());
                assert!(found == before || found == after, "{first}: {found:?} after {change:?}");
            }
        }
        let cut = fast_dir();
        disk.cut(Arrived::Nothing).write_to(cut.path());
        assert_eq!(firsts(cut.path()), after, "it is durable");
        before = after;
    }
}

/// Where nothing is accepted, or only looked at, nothing is noted.
#[test]
fn an_open_changes_no_list() {
    let dir = fast_dir();
    note(dir.path(), None, 3);
    let before = contents(dir.path());
    drop(open(dir.path()).unwrap());
    let looking = pmem::FileOptions { read_only: true, detached: true, ..options(None) };
    let device = File::open(dir.path(), &looking).unwrap();
    device.accept().unwrap();
    device.note_opening(EpochNumber(9)).unwrap();
    assert_eq!(device.openings().unwrap().list().len(), 1);
    drop(device);
    assert!(contents(dir.path()) == before);
}

/// A disk without room for one more file, or without room at all.
#[derive(Debug)]
struct NoRoom(fn(&DiskOperation<'_>) -> bool);

impl DiskHook for NoRoom {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        match call.file == DiskFile::Openings && (self.0)(&call.operation) {
            true => Outcome::Fail(28),
            false => Outcome::Proceed,
        }
    }
}

/// A database of before is opened on a full disk, without a list; one that has a list needs no
/// room.
#[test]
fn a_full_disk_keeps_no_database_from_being_opened() {
    let creates = |operation: &DiskOperation<'_>| {
        matches!(operation, DiskOperation::Open { create: true, .. })
    };
    let grows = |operation: &DiskOperation<'_>| matches!(operation, DiskOperation::Allocate { .. });
    for fails in [creates as fn(&DiskOperation<'_>) -> bool, grows] {
        let dir = fast_dir();
        drop(open(dir.path()).unwrap());
        note(dir.path(), Some(Arc::new(NoRoom(fails))), 1);
        assert_eq!(firsts(dir.path()), [0; 0]);
        note(dir.path(), None, 4);
        note(dir.path(), Some(Arc::new(NoRoom(fails))), 7);
        assert_eq!(firsts(dir.path()), [4, 7]);
    }
}

/// A list is that of its database.
#[test]
fn o_59_a_list_of_another_database_is_refused() {
    let (dir, other) = (fast_dir(), fast_dir());
    for dir in [&dir, &other] {
        note(dir.path(), None, 1);
    }
    std::fs::copy(other.path().join("openings"), dir.path().join("openings")).unwrap();
    let before = contents(dir.path());
    let error = open(dir.path()).unwrap_err();
    let text = error.to_string();
    assert!(error.is_corrupt() && text.contains("openings") && text.contains("another"), "{text}");
    assert!(contents(dir.path()) == before);
    let is_change = |change: &Change| !matches!(change, Change::Sync);
    let recorder = Arc::new(Recorder::default());
    assert!(File::open(dir.path(), &options(Some(recorder.clone()))).is_err());
    assert!(!recorder.take().iter().any(|(_, change)| is_change(change)));
}
