//! A power cut between any two calls, with any sectors arrived, leaves the snapshot before or the
//! one being written, whole and with the right number; and so does a power cut while that is
//! recovered.

use std::sync::Arc;

use pmem::{Device, DiskFile, EpochNumber, File, FileOptions, PAGE_BYTES, PortState};

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::scenario::{EPOCHS, Progress, check, check_log, fast_dir, open, options, run};

fn arrivals() -> Vec<Arrived> {
    let random = (0..6).map(|seed| Arrived::Random(seed * 7919 + 1));
    [Arrived::Nothing, Arrived::Everything].into_iter().chain(random).collect()
}

/// Records a whole run, from creation on.
fn recorded_run() -> Vec<(DiskFile, Change)> {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(recorder.clone()))).unwrap();
    let mut progress = Progress::default();
    run(&device, None, &mut progress).unwrap();
    assert_eq!(progress.saved, EPOCHS.last().copied());
    drop(device);
    recorder.take()
}

/// What must have survived after so many changes: snapshots are committed by a sync of `meta` that
/// follows the write of a root, log records by a sync of the log that follows a small write to it.
#[derive(Debug, Default)]
struct Promised {
    snapshots: usize,
    records: usize,
    root_written: bool,
    record_written: bool,
}

/// Whether these bytes are a root of a snapshot, and not that of a new database.
fn has_epoch(root: &[u8]) -> bool {
    root[12] == 1
}

impl Promised {
    fn change(&mut self, file: DiskFile, change: &Change) {
        match (file, change) {
            (DiskFile::Meta, Change::Write(0 | 4096, bytes)) if has_epoch(bytes) => {
                self.root_written = true
            }
            (DiskFile::Meta, Change::Sync) if self.root_written => {
                self.snapshots += 1;
                self.root_written = false;
            }
            (DiskFile::Log, Change::Write(_, bytes)) if bytes.len() == 700 => {
                self.record_written = true;
            }
            (DiskFile::Log, Change::Sync) if self.record_written => {
                self.records += 1;
                self.record_written = false;
            }
            _ => {}
        }
    }

    fn check(&self, contents: &DiskContents, what: &str) {
        let dir = fast_dir();
        contents.write_to(dir.path());
        let device = open(dir.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let epoch = check(&device, what);
        let snapshots = EPOCHS.iter().filter(|made| Some(**made) <= epoch).count();
        let possible = self.snapshots..=self.snapshots + 1;
        assert!(possible.contains(&snapshots), "{what}: {snapshots} snapshots of {possible:?}");
        check_log(&device, EPOCHS[..self.records].last().copied(), what);
        // And it goes on from there to the same end.
        let mut progress = Progress::default();
        run(&device, epoch, &mut progress).unwrap_or_else(|e| panic!("{what}: {e}"));
        drop(device);
        assert_eq!(check(&open(dir.path()).unwrap(), what), EPOCHS.last().copied(), "{what}");
    }
}

#[test]
fn o_56_at_every_call() {
    let changes = recorded_run();
    let mut contents = DiskContents::default();
    let mut promised = Promised::default();
    for at in 0..=changes.len() {
        for arrived in arrivals() {
            promised.check(&contents.cut(arrived), &format!("cut at call {at}, {arrived:?}"));
        }
        if let Some((file, change)) = changes.get(at) {
            contents.change(*file, change);
            promised.change(*file, change);
        }
    }
    assert_eq!(promised.snapshots, EPOCHS.len());
}

#[test]
fn at_every_call_of_the_recovery_from_a_power_cut() {
    let changes = recorded_run();
    let mut contents = DiskContents::default();
    let mut promised = Promised::default();
    for (at, (file, change)) in changes.iter().enumerate() {
        contents.change(*file, change);
        promised.change(*file, change);
        let cut = contents.cut(Arrived::Random(at as u64));
        let dir = fast_dir();
        cut.write_to(dir.path());
        let recorder = Arc::new(Recorder::default());
        File::open(dir.path(), &options(Some(recorder.clone()))).unwrap().accept().unwrap();
        let mut again = cut;
        for (nested, (file, change)) in recorder.take().iter().enumerate() {
            let what = format!("cut at call {at}, then at call {nested} of the recovery");
            let seed = (at * 100 + nested) as u64;
            promised.check(&again.cut(Arrived::Random(seed)), &what);
            again.change(*file, change);
        }
    }
}

/// O-56: what growth returned is there after a power cut, before anything was saved or synced.
#[test]
fn o_56_growth_is_durable_when_it_returns() {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(recorder.clone()))).unwrap();
    device.accept().unwrap();
    let mut contents = DiskContents::default();
    for pages in [1, 7, 40] {
        device.grow_image(pages * PAGE_BYTES).unwrap();
        device.grow_log((pages + 1) * PAGE_BYTES).unwrap();
        for (file, change) in recorder.take() {
            contents.change(file, &change);
        }
        let dir = fast_dir();
        contents.cut(Arrived::Nothing).write_to(dir.path());
        let after = open(dir.path()).unwrap();
        assert_eq!(after.image_bytes(), pages * PAGE_BYTES);
        assert_eq!(after.log_bytes(), (pages + 1) * PAGE_BYTES);
    }
}

/// New log space is written with zeros where small epochs will be synced; a large epoch would write
/// everything twice.
#[test]
fn little_log_space_is_written_before_it_is_used() {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let options = FileOptions { log_limit_bytes: 1 << 30, ..options(Some(recorder.clone())) };
    let device = File::open(dir.path(), &options).unwrap();
    device.accept().unwrap();
    let zeroed = |bytes: u64| {
        recorder.take();
        device.grow_log(bytes).unwrap();
        let written = |(_, change)| match change {
            Change::Write(_, bytes) => bytes.len() as u64,
            Change::Allocate(_) | Change::Truncate(_) | Change::Sync => 0,
        };
        recorder.take().into_iter().map(written).sum::<u64>()
    };
    assert_eq!(zeroed(4 << 20), 4 << 20);
    assert_eq!(zeroed(20 << 20), 16 << 20);
    assert_eq!(zeroed((36 << 20) + PAGE_BYTES), 0);
    assert!(whole_log(&device).is_empty(), "all of it reads as zeros");
}

fn whole_log(device: &File) -> Vec<u8> {
    let mut log = vec![0; device.log_bytes() as usize];
    device.log_read(0, &mut log).unwrap();
    log.truncate(log.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
    log
}

/// After `kill -9` the files show every write, synced or not. A power cut after the next open must
/// still find what that open found: recovery does not build on writes that are not on the device.
#[test]
fn after_a_killed_process() {
    let changes = recorded_run();
    for at in 0..changes.len() {
        let mut contents = DiskContents::default();
        for (file, change) in &changes[..at] {
            contents.change(*file, change);
        }
        let dir = fast_dir();
        contents.cut(Arrived::Everything).write_to(dir.path());
        let recorder = Arc::new(Recorder::default());
        let device = File::open(dir.path(), &options(Some(recorder.clone()))).unwrap();
        let found = check(&device, "after the kill");
        let log_found = whole_log(&device);
        if at % 2 == 0 {
            device.accept().unwrap();
        }
        drop(device);
        for (file, change) in recorder.take() {
            contents.change(file, &change);
        }
        let what = format!("killed at call {at}, then a power cut");
        let dir = fast_dir();
        contents.cut(Arrived::Nothing).write_to(dir.path());
        let device = open(dir.path()).unwrap();
        assert_eq!(check(&device, &what), found, "{what}");
        assert!(whole_log(&device) == log_found, "{what}: the log is another");
    }
}

/// S7: a table that is written anew is not written over the one that counts. Cuts around each time,
/// with any sectors arrived, leave the snapshot before or this one.
#[test]
fn s_7_at_every_call_around_a_table_that_is_written_anew() {
    const PAGES: u64 = 64;
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(recorder.clone()))).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    let mut contents = DiskContents::default();
    let mut entries_begin = None;
    let mut written_anew = 0;
    for epoch in 1..=220 {
        for page in 0..PAGES {
            // SAFETY: this test owns the device.
            unsafe { device.store_u64(&mut PortState::default(), page * PAGE_BYTES, epoch) };
        }
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        device.settle().unwrap();
        let changes = recorder.take();
        // Where the root says that the entries begin.
        let begin = changes.iter().find_map(|(file, change)| match (file, change) {
            (DiskFile::Meta, Change::Write(_, bytes)) if has_epoch(bytes) => {
                Some(u64::from_le_bytes(*bytes[64..].first_chunk().unwrap()))
            }
            _ => None,
        });
        let is_new = entries_begin.is_some() && entries_begin != begin;
        entries_begin = begin;
        written_anew += u64::from(is_new);
        for (number, (file, change)) in changes.iter().enumerate() {
            for arrived in arrivals().into_iter().filter(|_| is_new) {
                let what = format!("snapshot {epoch} cut at call {number}, {arrived:?}");
                let dir = fast_dir();
                contents.cut(arrived).write_to(dir.path());
                let device = open(dir.path()).unwrap_or_else(|e| panic!("{what}: {e}"));
                let found = device.snapshot_epoch().unwrap().0;
                assert!((epoch - 1..=epoch).contains(&found), "{what}: {found}");
                let pages = (0..PAGES).map(|page| device.image().load_u64(page * PAGE_BYTES));
                assert!(pages.into_iter().all(|value| value == found), "{what}");
            }
            contents.change(*file, change);
        }
    }
    assert!(written_anew >= 3, "{written_anew}");
}
