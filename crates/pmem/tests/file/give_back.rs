//! Files become shorter: pages move to the front, and nothing is cut off that any state may need.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use pmem::{
    Compacted, Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File,
    FileOptions, FileUse, Outcome, PAGE_BYTES, PinnedSnapshot, PortState, UnfinishedCopy, compact,
};

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::scenario::{LOG_LIMIT_BYTES, fast_dir, open, options};

const PAGES: u64 = 64;
const ENOSPC: i32 = 28;

/// Stores the epoch into some pages and makes a snapshot.
fn snapshot(device: &File, epoch: u64, pages: impl Iterator<Item = u64>) {
    store(device, epoch, pages);
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(EpochNumber(epoch)).unwrap();
    device.settle().unwrap();
}

fn store(device: &File, epoch: u64, pages: impl Iterator<Item = u64>) {
    for page in pages {
        // SAFETY: the test owns the device.
        unsafe { device.store_u64(&mut PortState::default(), page * PAGE_BYTES + 8, epoch) };
    }
}

fn slots(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("data")).unwrap().len() / PAGE_BYTES
}

fn used(device: &File) -> FileUse {
    device.use_of_files().expect("it has files")
}

/// The last snapshot that wrote all pages.
const BURST: u64 = 3;

/// A database with pages at the end of a file that is longer than it should be: slots were kept
/// for a copy.
fn burst(dir: &Path, hook: Option<Arc<dyn DiskHook>>) -> File {
    let device = File::open(dir, &options(hook)).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    device.grow_log(8 * PAGE_BYTES).unwrap();
    snapshot(&device, 1, 0..PAGES);
    let pinned = PinnedSnapshot::open(dir, None).unwrap();
    (2..=BURST).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    drop(pinned);
    assert!(slots(dir) > 3 * PAGES, "{} slots", slots(dir));
    device
}

/// The page that a snapshot after the burst changes.
fn changed(epoch: u64) -> u64 {
    epoch * 7 % PAGES
}

/// Checks all pages, and which snapshot it is.
fn checked(dir: &Path, what: &str) -> u64 {
    let device = open(dir).unwrap_or_else(|error| panic!("{what}: {error}"));
    let EpochNumber(epoch) = device.snapshot_epoch().expect("a snapshot");
    for page in 0..PAGES {
        let later = (BURST + 1..=epoch).rev().find(|epoch| changed(*epoch) == page);
        let found = device.image().load_u64(page * PAGE_BYTES + 8);
        assert_eq!(found, later.unwrap_or(epoch.min(BURST)), "{what}: page {page} of {epoch}");
    }
    epoch
}

/// S6, S20: after a burst the file becomes shorter by itself, and no more pages move than may.
#[test]
fn s_20_a_file_becomes_shorter_when_less_is_written() {
    let dir = fast_dir();
    let device = burst(dir.path(), None);
    let (before, moved) = (slots(dir.path()), used(&device).pages_moved);
    for epoch in BURST + 1..BURST + 9 {
        let written = used(&device).pages_written;
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
        assert_eq!(used(&device).pages_written, written + 1);
    }
    let FileUse { pages, pages_moved, data_bytes, data_given_back_bytes, .. } = used(&device);
    let kept = 1 + 2 * PAGES;
    assert!(slots(dir.path()) <= kept + kept / 16 + 16, "{} slots", slots(dir.path()));
    assert_eq!(data_bytes / PAGE_BYTES, slots(dir.path()));
    assert!(data_given_back_bytes >= (before - slots(dir.path())) * PAGE_BYTES);
    assert!((1..=PAGES).contains(&(pages_moved - moved)), "{pages_moved} pages moved");
    assert_eq!(pages, PAGES);
    // It stays so, and pages stay where they are.
    let at_rest = (slots(dir.path()), used(&device).pages_moved);
    for epoch in BURST + 9..BURST + 30 {
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
    }
    assert_eq!((slots(dir.path()), used(&device).pages_moved), at_rest);
    drop(device);
    assert_eq!(checked(dir.path(), "at the end"), BURST + 29);
}

/// A snapshot moves one page for eight that it writes, and 256: so the file becomes shorter over
/// several.
#[test]
fn s_20_a_snapshot_moves_few_pages() {
    const PAGES: u64 = 6000;
    let dir = fast_dir();
    let limits = FileOptions::new(64 << 20, LOG_LIMIT_BYTES);
    let device = File::open(dir.path(), &limits).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    device.reserve_pages(PAGES, true).unwrap();
    // Written twice, all pages are in the second half of the file.
    (1..3).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    let mut moved = Vec::new();
    for epoch in 3..100 {
        let before = used(&device).pages_moved;
        snapshot(&device, epoch, 0..16);
        moved.push(used(&device).pages_moved - before);
    }
    assert!(moved.iter().all(|pages| *pages <= 2 + 256), "{moved:?}");
    assert!(moved.iter().filter(|pages| **pages > 0).count() >= 4, "{moved:?}");
    let kept = 1 + PAGES + 4096 + 16;
    assert!(slots(dir.path()) <= kept + kept / 16 + 16, "{} slots, {moved:?}", slots(dir.path()));
    // Nothing moves where there is nothing to write.
    device.snapshot_commit(EpochNumber(100)).unwrap();
    device.settle().unwrap();
    drop(device);
    let device = File::open(dir.path(), &limits).unwrap();
    for page in 0..PAGES {
        let found = device.image().load_u64(page * PAGE_BYTES + 8);
        assert_eq!(found, if page < 16 { 99 } else { 2 }, "page {page}");
    }
}

/// S6, S7: a power cut at any call while pages move and the file is cut off, with any sectors and
/// lengths arrived, leaves the snapshot before or the new one.
#[test]
fn s_6_power_cuts_while_pages_move_and_the_file_becomes_shorter() {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = burst(dir.path(), Some(Arc::clone(&recorder) as _));
    let mut contents = DiskContents::of(dir.path());
    recorder.take();
    let mut cut = 0;
    for epoch in BURST + 1..BURST + 7 {
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
        for (at, (file, change)) in recorder.take().into_iter().enumerate() {
            contents.change(file, &change);
            cut += u64::from(matches!(change, Change::Truncate(_)));
            let random = (0..4).map(|seed| Arrived::Random(at as u64 * 31 + seed));
            for arrived in [Arrived::Nothing, Arrived::Everything].into_iter().chain(random) {
                let what =
                    format!("snapshot {epoch}, call {at}, {change:?}", change = name(&change));
                let after = fast_dir();
                contents.cut(arrived).write_to(after.path());
                let found = checked(after.path(), &what);
                assert!((epoch - 1..=epoch).contains(&found), "{what}: {found}");
            }
        }
    }
    assert!(cut >= 1, "the file became shorter");
}

fn name(change: &Change) -> (&'static str, u64) {
    match change {
        Change::Write(offset, _) => ("write", *offset),
        Change::Allocate(len) => ("allocate", *len),
        Change::Truncate(len) => ("truncate", *len),
        Change::Sync => ("sync", 0),
    }
}

/// S6: no slot of a snapshot that is being copied is cut off, nor do pages move while that goes on.
#[test]
fn s_6_what_is_copied_is_not_cut_off() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = burst(&dir, None);
    let before = slots(&dir);
    let moved = used(&device).pages_moved;
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    for epoch in BURST + 1..BURST + 9 {
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
    }
    assert_eq!((slots(&dir), used(&device).pages_moved), (before, moved));
    UnfinishedCopy::create(&target, &pinned, None)
        .unwrap()
        .finish(&pinned, None, |_, _| {})
        .unwrap();
    drop(pinned);
    assert_eq!(checked(&target, "the copy"), BURST);
    // What was kept is free with the next one; then it becomes shorter.
    for epoch in BURST + 9..BURST + 12 {
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
    }
    assert!(slots(&dir) < before, "{} slots", slots(&dir));
}

/// S6: the last slots of the file have the snapshot that is being copied, and nothing else.
#[test]
fn s_6_the_end_of_the_file_is_not_cut_off_while_it_is_copied() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = burst(&dir, None);
    let before = slots(&dir);
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    snapshot(&device, BURST + 1, 0..PAGES);
    assert_eq!(slots(&dir), before);
    let copied = UnfinishedCopy::create(&target, &pinned, None).unwrap();
    copied.finish(&pinned, None, |_, _| {}).unwrap();
    drop(pinned);
    assert_eq!(checked(&target, "the copy"), BURST);
    (BURST + 2..BURST + 4).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    assert!(slots(&dir) < before, "{} slots", slots(&dir));
}

/// S6: a copy whose slots were given up says that it was outrun, also where they were cut off.
#[test]
fn s_6_a_copy_that_was_given_up_reads_nothing_that_was_cut_off() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = burst(&dir, None);
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    drop(device);
    // Another process does not know of the copy, and begins with giving it up.
    let device = open(&dir).unwrap();
    device.accept().unwrap();
    snapshot(&device, BURST + 1, std::iter::once(changed(BURST + 1)));
    device.save_again().unwrap();
    drop(device);
    std::fs::OpenOptions::new().write(true).open(dir.join("data")).unwrap().set_len(4096).unwrap();
    let copied = UnfinishedCopy::create(&target, &pinned, None).unwrap();
    let error = copied.finish(&pinned, None, |_, _| {}).unwrap_err();
    assert!(matches!(error, DeviceError::Outrun { .. }), "{error}");
}

/// From some moment on there is no room for more.
#[derive(Debug, Default)]
struct FullDisk(AtomicBool);

impl DiskHook for FullDisk {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let grows = matches!(call.operation, DiskOperation::Allocate { .. });
        match grows && self.0.load(Ordering::SeqCst) {
            true => Outcome::Fail(ENOSPC),
            false => Outcome::Proceed,
        }
    }
}

/// O-58: pages move into slots that are there, so a full disk does not keep the file long.
#[test]
fn o_58_a_file_becomes_shorter_on_a_full_disk() {
    let dir = fast_dir();
    let disk = Arc::new(FullDisk::default());
    let device = burst(dir.path(), Some(Arc::clone(&disk) as _));
    let before = slots(dir.path());
    device.reserve_pages(8, false).unwrap();
    disk.0.store(true, Ordering::SeqCst);
    for epoch in BURST + 1..BURST + 9 {
        device.reserve_pages(1, true).unwrap();
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
    }
    assert!(slots(dir.path()) < before && used(&device).pages_moved > 0);
    drop(device);
    assert_eq!(checked(dir.path(), "full"), BURST + 8);
}

/// A page that is damaged where it lies is not written elsewhere as if it were whole: it stays, and
/// that is told; snapshots go on.
#[test]
fn s_13_a_damaged_page_is_not_moved() {
    #[derive(Debug, Default)]
    struct BadReads(AtomicBool);
    impl DiskHook for BadReads {
        fn before(&self, _: &DiskCall<'_>) -> Outcome {
            Outcome::Proceed
        }
        fn after_read(&self, file: DiskFile, _: u64, bytes: &mut [u8]) {
            if file == DiskFile::Data && self.0.load(Ordering::SeqCst) {
                bytes[9] ^= 1;
            }
        }
    }
    let dir = fast_dir();
    let disk = Arc::new(BadReads::default());
    let device = burst(dir.path(), Some(Arc::clone(&disk) as _));
    disk.0.store(true, Ordering::SeqCst);
    let before = slots(dir.path());
    for epoch in BURST + 1..BURST + 5 {
        snapshot(&device, epoch, std::iter::once(changed(epoch)));
    }
    let told = used(&device).not_moved.expect("it is told");
    assert!(told.contains("data is corrupt: page"), "{told}");
    assert_eq!(slots(dir.path()), before);
    drop(device);
    assert_eq!(checked(dir.path(), "the file is whole"), BURST + 4);
}

/// Lets the writer commit only when it is told to.
#[derive(Debug, Default)]
struct Held {
    is_held: Mutex<bool>,
    told: Condvar,
    full: FullDisk,
}

impl DiskHook for Held {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        if (call.file, call.operation) == (DiskFile::Meta, DiskOperation::Sync) {
            let held = self.is_held.lock().unwrap();
            drop(self.told.wait_while(held, |held| *held).unwrap());
        }
        self.full.before(call)
    }
}

/// S21: what was promised to an epoch is not given back, though no snapshot of late needed it; what
/// nothing needs is.
#[test]
fn s_21_room_that_was_promised_stays() {
    const PAGES: u64 = 6000;
    for promised in [false, true] {
        let disk = Arc::new(Held::default());
        let hook: Arc<dyn DiskHook> = Arc::clone(&disk) as _;
        let limits = FileOptions::new(64 << 20, LOG_LIMIT_BYTES);
        let dir = fast_dir();
        let device = File::open(dir.path(), &FileOptions { hook: Some(hook), ..limits }).unwrap();
        device.accept().unwrap();
        device.grow_image(PAGES * PAGE_BYTES).unwrap();
        device.reserve_pages(PAGES, true).unwrap();
        snapshot(&device, 1, 0..PAGES);
        let all = 1 + 2 * PAGES;
        assert_eq!(slots(dir.path()), all.max(slots(dir.path())));
        for epoch in 2..60 {
            // Without it the file would become shorter before the last of them.
            device.reserve_pages(PAGES, true).unwrap();
            *disk.is_held.lock().unwrap() = true;
            store(&device, epoch, 0..1);
            device.snapshot_part(0, 1).unwrap();
            device.snapshot_commit(EpochNumber(epoch)).unwrap();
            if promised {
                device.reserve_pages(PAGES, true).unwrap();
            }
            *disk.is_held.lock().unwrap() = false;
            disk.told.notify_all();
            device.settle().unwrap();
            if !promised && slots(dir.path()) < all {
                break;
            }
        }
        assert_eq!(slots(dir.path()) >= all, promised, "{} slots", slots(dir.path()));
        assert!(slots(dir.path()) > PAGES + 4096, "what is kept for those that free space");
        if promised {
            disk.full.0.store(true, Ordering::SeqCst);
            snapshot(&device, 60, 0..PAGES);
        }
    }
}

/// The log is cut when no root names what goes; a power cut at any call leaves a log that is as
/// long as the newest root says.
#[test]
fn s_7_the_log_is_cut_behind_the_root() {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(Arc::clone(&recorder) as _))).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGE_BYTES).unwrap();
    device.grow_log(64 * PAGE_BYTES).unwrap();
    device.log_write(&mut PortState::default(), 0, &[7; 4096]).unwrap();
    device.log_sync().unwrap();
    snapshot(&device, 1, 0..1);
    let mut contents = DiskContents::of(dir.path());
    recorder.take();
    assert!(!device.shrink_log(8 * PAGE_BYTES).unwrap(), "snapshot 1 names 64 pages");
    assert_eq!(device.log_bytes(), 64 * PAGE_BYTES);
    snapshot(&device, 2, 0..1);
    assert!(device.shrink_log(8 * PAGE_BYTES).unwrap());
    assert_eq!(device.log_bytes(), 8 * PAGE_BYTES);
    assert_eq!(used(&device).log_given_back_bytes, 56 * PAGE_BYTES);
    device.grow_log(16 * PAGE_BYTES).unwrap();
    let mut read = vec![1; 4096];
    device.log_read(9 * PAGE_BYTES, &mut read).unwrap();
    assert!(read.iter().all(|byte| *byte == 0), "what grows is zero");
    device.log_write(&mut PortState::default(), 12 * PAGE_BYTES, &[8; 4096]).unwrap();
    device.log_sync().unwrap();
    assert!(!device.shrink_log(4 * PAGE_BYTES).unwrap(), "snapshot 2 names 8 pages");
    device.save_again().unwrap();
    assert!(device.shrink_log(4 * PAGE_BYTES).unwrap());
    let mut cut = 0;
    for (at, (file, change)) in recorder.take().into_iter().enumerate() {
        contents.change(file, &change);
        cut += u64::from(matches!(change, Change::Truncate(_)));
        for arrived in [Arrived::Nothing, Arrived::Everything, Arrived::Random(at as u64)] {
            let what = format!("call {at}, {:?}", name(&change));
            let after = fast_dir();
            contents.cut(arrived).write_to(after.path());
            let device = open(after.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(device.log_bytes() >= 4 * PAGE_BYTES, "{what}");
            device.log_read(0, &mut read).unwrap();
            assert!(read.iter().all(|byte| *byte == 7), "{what}");
        }
    }
    assert_eq!(cut, 2);
}

/// A database that is not open becomes as short as its pages are, in its own bytes; a power cut at
/// any call changes no page.
#[test]
fn s_6_power_cuts_while_a_database_is_compacted() {
    let dir = fast_dir();
    drop(burst(dir.path(), None));
    let mut contents = DiskContents::of(dir.path());
    let before = slots(dir.path());
    let recorder = Arc::new(Recorder::default());
    let mut seen = Vec::new();
    let hook: Arc<dyn DiskHook> = Arc::clone(&recorder) as _;
    let mut progress = |done: u64, all: u64| seen.push((done, all));
    let compacted = compact(dir.path(), Some(hook), &mut progress).unwrap();
    let Compacted { bytes_before, bytes_after, bytes_used, moved_bytes, not_moved } = compacted;
    assert_eq!((bytes_before, bytes_after), (before * PAGE_BYTES, (1 + PAGES) * PAGE_BYTES));
    assert_eq!((bytes_used, not_moved), (PAGES * PAGE_BYTES, None));
    assert!((PAGE_BYTES..=PAGES * PAGE_BYTES).contains(&moved_bytes), "{moved_bytes}");
    assert_eq!(slots(dir.path()), 1 + PAGES);
    let goal = bytes_before - bytes_after;
    assert_eq!(seen.last(), Some(&(goal, goal)));
    for (at, (file, change)) in recorder.take().into_iter().enumerate() {
        contents.change(file, &change);
        for arrived in [Arrived::Nothing, Arrived::Everything, Arrived::Random(at as u64)] {
            let after = fast_dir();
            contents.cut(arrived).write_to(after.path());
            let what = format!("call {at}, {:?}", name(&change));
            assert_eq!(checked(after.path(), &what), BURST, "{what}");
        }
    }
    assert_eq!(checked(dir.path(), "compacted"), BURST);
    // Nothing is left to be done, and it goes on from there.
    let again = compact(dir.path(), None, &mut |_, _| {}).unwrap();
    assert_eq!((again.bytes_after, again.moved_bytes), (bytes_after, 0));
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    snapshot(&device, BURST + 1, std::iter::once(changed(BURST + 1)));
    drop(device);
    assert_eq!(checked(dir.path(), "afterwards"), BURST + 1);
}

/// What is open or being copied is not compacted; a full disk does not matter.
#[test]
fn o_52_an_open_database_is_not_compacted() {
    let dir = fast_dir();
    let device = burst(dir.path(), None);
    let compacted = || compact(dir.path(), None, &mut |_, _| {});
    assert!(compacted().unwrap_err().is_locked());
    drop(device);
    let pinned = PinnedSnapshot::open(dir.path(), None).unwrap();
    assert!(matches!(compacted().unwrap_err(), DeviceError::Copying { .. }));
    drop(pinned);
    let disk = Arc::new(FullDisk::default());
    disk.0.store(true, Ordering::SeqCst);
    compact(dir.path(), Some(disk as _), &mut |_, _| {}).unwrap();
    assert_eq!(slots(dir.path()), 1 + PAGES);
    let none = fast_dir();
    let error = compact(&none.path().join("none"), None, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, DeviceError::Missing { .. }), "{error}");
}
