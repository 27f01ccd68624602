//! Copies of a directory whose device goes on, and the pins that make them possible.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pmem::{
    Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File, LogSpace,
    Outcome, PAGE_BYTES, PinnedSnapshot, PortState, UnfinishedCopy,
};

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::scenario::{fast_dir, open, options};

const PAGES: u64 = 16;
const ENOSPC: i32 = 28;

/// Stores a byte into some pages and makes a snapshot.
fn snapshot(device: &File, epoch: u64, pages: impl Iterator<Item = u64>) {
    let mut port = PortState::default();
    for page in pages {
        // SAFETY: the test owns the device.
        unsafe { device.store_bytes(&mut port, page * PAGE_BYTES + 7, &[epoch as u8; 100]) };
    }
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(EpochNumber(epoch)).unwrap();
    device.settle().unwrap();
}

/// A database whose first snapshot has all pages.
fn first_snapshot(dir: &Path, hook: Option<Arc<dyn DiskHook>>) -> File {
    let device = File::open(dir, &options(hook)).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    device.grow_log(8 * PAGE_BYTES).unwrap();
    snapshot(&device, 1, 0..PAGES);
    device
}

fn data_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("data")).unwrap().len()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Pages that snapshot number `epoch` changes.
fn changed(epoch: u64) -> impl Iterator<Item = u64> {
    (0..3).map(move |at| (epoch * 3 + at) % PAGES)
}

/// Which snapshot a copy is of; all its pages are those of it.
fn checked(dir: &Path, what: &str) -> u64 {
    let copied = open(dir).unwrap_or_else(|error| panic!("{what}: {error}"));
    let EpochNumber(epoch) = copied.snapshot_epoch().expect("a copy has a snapshot");
    for page in 0..PAGES {
        let newest = (2..=epoch).rev().find(|epoch| changed(*epoch).any(|at| at == page));
        let byte = newest.unwrap_or(1) as u8;
        // SAFETY: no thread stores.
        let bytes = unsafe { copied.image().slice(page * PAGE_BYTES, PAGE_BYTES) };
        let is_right = bytes[7..107].iter().all(|found| *found == byte);
        assert!(is_right, "{what}: page {page} of snapshot {epoch} has {}", bytes[7]);
    }
    epoch
}

fn copy(pinned: &PinnedSnapshot, target: &Path) -> Result<(), DeviceError> {
    UnfinishedCopy::create(target, pinned, None)?.finish(pinned, None, |_, _| {}).map(drop)
}

/// S6: slots of a snapshot that is being copied are not written to, as long as no more are kept
/// than there are pages; afterwards they are free.
#[test]
fn s_6_what_is_copied_stays_while_snapshots_go_on() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = first_snapshot(&dir, None);
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    assert!(pinned.is_newest().unwrap());
    assert_eq!(LogSpace::log_bytes(&pinned), 8 * PAGE_BYTES);
    for epoch in 2..=6 {
        snapshot(&device, epoch, changed(epoch));
    }
    assert!(!pinned.is_newest().unwrap());
    assert_eq!((pinned.epoch(), pinned.pages()), (Some(EpochNumber(1)), PAGES));
    copy(&pinned, &target).unwrap();
    drop(pinned);
    assert_eq!(checked(&target, "the copy"), 1);
    assert_eq!(data_bytes(&target), (1 + PAGES) * PAGE_BYTES);
    // What was kept serves again: the file does not grow any more.
    snapshot(&device, 7, 0..1);
    let before = data_bytes(&dir);
    (8..40).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    assert!(data_bytes(&dir) <= before, "{} bytes", data_bytes(&dir));
}

/// Makes snapshots before the page table is read for the first time.
#[derive(Debug)]
struct Overtaking {
    device: File,
    epochs: Mutex<std::ops::Range<u64>>,
}

impl DiskHook for Overtaking {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        if call.file == DiskFile::Table && matches!(call.operation, DiskOperation::Read { .. }) {
            let epochs = std::mem::take(&mut *self.epochs.lock().unwrap());
            epochs.for_each(|epoch| snapshot(&self.device, epoch, changed(epoch)));
        }
        Outcome::Proceed
    }
}

/// S6: what is pinned is the newest snapshot, also where others come between its root and its page
/// table, which may be written anew meanwhile.
#[test]
fn s_6_a_snapshot_that_is_replaced_while_it_is_looked_at_is_not_pinned() {
    for snapshots in [1, 2, 3, 10, 11, 40, 300] {
        let room = fast_dir();
        let (dir, target) = (room.path().join("store"), room.path().join("copy"));
        let device = first_snapshot(&dir, None);
        let epochs = Mutex::new(2..2 + snapshots);
        let hook = Arc::new(Overtaking { device, epochs });
        let opened = PinnedSnapshot::open(&dir, Some(Arc::clone(&hook) as _));
        let pinned = opened.unwrap_or_else(|error| panic!("{snapshots} snapshots: {error}"));
        assert!(hook.epochs.lock().unwrap().is_empty(), "the table was read");
        assert!(pinned.is_newest().unwrap(), "{snapshots} snapshots: {:?}", pinned.epoch());
        copy(&pinned, &target).unwrap();
        assert_eq!(checked(&target, "the copy"), 1 + snapshots);
    }
}

/// The first reads of `meta` bring what is half written.
#[derive(Debug)]
struct HalfWritten(AtomicU64);

impl DiskHook for HalfWritten {
    fn before(&self, _: &DiskCall<'_>) -> Outcome {
        Outcome::Proceed
    }

    fn after_read(&self, file: DiskFile, _: u64, bytes: &mut [u8]) {
        let less = |left: u64| left.checked_sub(1);
        let is_left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        if file == DiskFile::Meta && is_left {
            bytes[40] ^= 1;
        }
    }
}

/// A root that seems damaged may be written just now: it is read again, and not for ever.
#[test]
fn s_6_a_root_that_is_being_written_is_read_again() {
    let room = fast_dir();
    let dir = room.path().join("store");
    drop(first_snapshot(&dir, None));
    let pinned =
        |reads: u64| PinnedSnapshot::open(&dir, Some(Arc::new(HalfWritten(reads.into())) as _));
    for reads in 0..5 {
        assert_eq!(pinned(reads).unwrap().epoch(), Some(EpochNumber(1)), "{reads} reads");
    }
    let error = pinned(u64::MAX).unwrap_err();
    assert!(error.is_corrupt(), "{error}");
}

/// Notes how long `data` is allocated; nothing is written behind that.
#[derive(Debug, Default)]
struct Allocated(AtomicU64);

impl DiskHook for Allocated {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        match call.operation {
            _ if call.file != DiskFile::Data => (),
            DiskOperation::Allocate { len } => drop(self.0.fetch_max(len, Ordering::SeqCst)),
            DiskOperation::Write { offset, bytes } => {
                let end = offset + bytes.len() as u64;
                assert!(end <= self.0.load(Ordering::SeqCst), "{end} bytes have room");
            }
            _ => (),
        }
        Outcome::Proceed
    }
}

/// O-58: a copy asks for the room of all its pages before it writes the first one.
#[test]
fn o_58_a_copy_has_its_room_before_it_writes_pages() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    drop(first_snapshot(&dir, None));
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    let hook = Arc::new(Allocated::default());
    let unfinished =
        UnfinishedCopy::create(&target, &pinned, Some(Arc::clone(&hook) as _)).unwrap();
    unfinished.finish(&pinned, None, |_, _| {}).unwrap();
    assert_eq!(hook.0.load(Ordering::SeqCst), (1 + PAGES) * PAGE_BYTES);
}

/// S6: a copy that takes too long, or has stopped, costs a bounded number of slots. Then it is
/// told that it is too late, and leaves nothing.
#[test]
fn s_6_a_copy_that_is_outrun_says_so_and_leaves_nothing() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = first_snapshot(&dir, None);
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    (2..30).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    let error = copy(&pinned, &target).unwrap_err();
    assert!(matches!(error, DeviceError::Outrun { .. }), "{error}");
    assert_eq!(names(room.path()), ["store"]);
    let kept = data_bytes(&dir) / PAGE_BYTES - 1;
    assert!(kept <= 4 * PAGES, "{kept} slots for {PAGES} pages, copied or not");
}

/// S6: a process that opens the database anew does not know what is being copied. Its first
/// snapshot ends the copy, whether or not it writes over a page of it.
#[test]
fn s_6_another_process_ends_a_copy() {
    for pages in [0, 3] {
        let room = fast_dir();
        let (dir, target) = (room.path().join("store"), room.path().join("copy"));
        let device = first_snapshot(&dir, None);
        let pinned = PinnedSnapshot::open(&dir, None).unwrap();
        snapshot(&device, 2, changed(2));
        drop(device);
        let again = open(&dir).unwrap();
        again.accept().unwrap();
        snapshot(&again, 3, changed(3).take(pages));
        let error = copy(&pinned, &target).unwrap_err();
        assert!(matches!(error, DeviceError::Outrun { .. }), "{pages}: {error}");
        drop(pinned);
        copy(&PinnedSnapshot::open(&dir, None).unwrap(), &target).unwrap();
        assert_eq!(open(&target).unwrap().snapshot_epoch(), Some(EpochNumber(3)));
    }
}

/// From some moment on there is no room for more slots.
#[derive(Debug, Default)]
struct FullDisk(AtomicBool);

impl DiskHook for FullDisk {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let grows = matches!(call.operation, DiskOperation::Allocate { .. });
        if call.file == DiskFile::Data && grows && self.0.load(Ordering::SeqCst) {
            return Outcome::Fail(ENOSPC);
        }
        Outcome::Proceed
    }
}

/// O-58, S6: where the disk is full a snapshot comes before a copy.
#[test]
fn o_58_a_copy_never_makes_a_snapshot_fail() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let disk = Arc::new(FullDisk::default());
    let device = first_snapshot(&dir, Some(Arc::clone(&disk) as _));
    device.reserve_pages(PAGES, false).unwrap();
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    disk.0.store(true, Ordering::SeqCst);
    (2..12).for_each(|epoch| snapshot(&device, epoch, 0..PAGES));
    let error = copy(&pinned, &target).unwrap_err();
    assert!(matches!(error, DeviceError::Outrun { .. }), "{error}");
    assert_eq!(device.snapshot_epoch(), Some(EpochNumber(11)));
}

/// One copy is made at a time, to a new directory; a pin is no lock of the database.
#[test]
fn copies_are_made_one_at_a_time_and_replace_nothing() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let error = PinnedSnapshot::open(&dir, None).unwrap_err();
    assert!(matches!(error, DeviceError::Missing { .. }), "{error}");
    drop(first_snapshot(&dir, None));
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    let error = PinnedSnapshot::open(&dir, None).unwrap_err();
    assert!(matches!(error, DeviceError::Copying { .. }), "{error}");
    let again = open(&dir).unwrap();
    again.accept().unwrap();
    // What a killed copy left is removed.
    let left = room.path().join("copy.incomplete");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("data"), [1; 100]).unwrap();
    copy(&pinned, &target).unwrap();
    assert_eq!(names(room.path()), ["copy", "store"]);
    for (place, what) in [
        (target, "is not empty"),
        (dir.join("meta"), "is no directory"),
        (room.path().join("no/.."), "has no name of its own"),
    ] {
        let error = copy(&pinned, &place).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("letter"), [1; 100]).unwrap();
    let error = copy(&pinned, &room.path().join("copy2")).map(|()| "copied").unwrap();
    assert_eq!(error, "copied");
    std::fs::remove_dir_all(room.path().join("copy")).unwrap();
    let error = copy(&pinned, &room.path().join("copy")).unwrap_err().to_string();
    assert!(error.contains("copy.incomplete is not empty"), "{error}");
    assert!(left.join("letter").exists(), "a copy removes what is its own");
}

/// Notes for each file whether all that was written is synced.
#[derive(Debug, Default)]
struct Synced(Mutex<std::collections::BTreeMap<DiskFile, bool>>);

impl DiskHook for Synced {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let is_synced = match call.operation {
            DiskOperation::Sync => true,
            DiskOperation::Write { .. } | DiskOperation::Allocate { .. } => {
                let others = self.0.lock().unwrap();
                let is_root = matches!(call.operation, DiskOperation::Write { offset: ..8192, .. })
                    && call.file == DiskFile::Meta;
                if is_root && others.contains_key(&DiskFile::Data) {
                    let mut needed = others.iter().filter(|(file, _)| **file != DiskFile::Meta);
                    assert!(needed.all(|(_, synced)| *synced), "the root comes last");
                }
                false
            }
            _ => return Outcome::Proceed,
        };
        self.0.lock().unwrap().insert(call.file, is_synced);
        Outcome::Proceed
    }
}

/// O-56, S7: what has the name of a copy is durable, its root last.
#[test]
fn o_56_a_copy_is_durable_before_it_has_its_name() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    drop(first_snapshot(&dir, None));
    let pinned = PinnedSnapshot::open(&dir, None).unwrap();
    let synced = Arc::new(Synced::default());
    let unfinished =
        UnfinishedCopy::create(&target, &pinned, Some(Arc::clone(&synced) as _)).unwrap();
    unfinished.log_write(0, &[5; 4096]).unwrap();
    unfinished.log_end(PAGE_BYTES).unwrap();
    assert_eq!(LogSpace::log_bytes(&unfinished), PAGE_BYTES);
    unfinished.finish(&pinned, Some(&[9; pmem::MARK_BYTES]), |_, _| {}).unwrap();
    let synced = synced.0.lock().unwrap();
    assert_eq!(synced.len(), 5, "{synced:?}");
    assert!(synced.values().all(|is_synced| *is_synced), "{synced:?}");
    let copied = open(&target).unwrap();
    assert_eq!(copied.mark(), Some([9; pmem::MARK_BYTES]));
    let mut log = [0; 100];
    Device::log_read(&copied, 0, &mut log).unwrap();
    assert_eq!(log, [5; 100]);
}

/// Brings a copy up to date; returns how many pages were written.
fn update(
    source: &Path,
    target: &Path,
    log: u8,
    hook: Option<Arc<dyn DiskHook>>,
) -> Result<u64, DeviceError> {
    let mut pinned = PinnedSnapshot::open(source, None)?;
    let unfinished = UnfinishedCopy::update(target, &mut pinned, hook)?;
    unfinished.log_write(0, &[log; 4096])?;
    unfinished.finish(&pinned, Some(&[log; pmem::MARK_BYTES]), |_, _| {})
}

/// The log of a copy, all of whose bytes are one.
fn log_of(dir: &Path) -> u8 {
    let log = std::fs::read(dir.join("log")).unwrap();
    assert!(log.len() == 4096 && log.iter().all(|byte| *byte == log[0]));
    log[0]
}

#[test]
fn a_copy_is_brought_up_to_date_with_what_changed() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = first_snapshot(&dir, None);
    assert_eq!(update(&dir, &target, 1, None).unwrap(), PAGES);
    for epoch in 2..=40 {
        snapshot(&device, epoch, changed(epoch));
        if epoch % 3 != 0 {
            let since = if epoch % 3 == 1 { 6 } else { 3 };
            let written = update(&dir, &target, epoch as u8, None).unwrap();
            assert_eq!(written, since, "epoch {epoch}");
            assert_eq!(checked(&target, "the copy"), epoch);
            assert_eq!(log_of(&target), epoch as u8);
        }
    }
    assert_eq!(update(&dir, &target, 50, None).unwrap(), 0, "nothing has changed");
    assert_eq!((checked(&target, "the copy"), log_of(&target)), (40, 50));
    assert!(data_bytes(&target) <= (1 + PAGES + 6) * PAGE_BYTES, "free slots serve again");
    assert_eq!(names(room.path()), ["copy", "store"]);
    // Where the page table was written anew meanwhile all pages are copied.
    (41..3000).for_each(|epoch| snapshot(&device, epoch, changed(epoch)));
    assert_eq!(update(&dir, &target, 51, None).unwrap(), PAGES);
    assert_eq!(checked(&target, "the copy"), 2999);
}

/// Where in `table` the entries of the newest root begin.
fn entries_start(dir: &Path) -> u64 {
    let meta = std::fs::read(dir.join("meta")).unwrap();
    let word = |at: usize| u64::from_le_bytes(*meta[at..].first_chunk().unwrap());
    let newest = [0, 4096].into_iter().max_by_key(|root| word(root + 24)).unwrap();
    word(newest + 64)
}

/// A table that was written anew may begin where the one before the last did, with other entries.
#[test]
fn a_table_that_was_written_anew_is_not_taken_for_the_one_before() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = first_snapshot(&dir, None);
    update(&dir, &target, 1, None).unwrap();
    let start = entries_start(&dir);
    let mut epochs = 2..;
    for is_there in [true, false] {
        while (entries_start(&dir) == start) == is_there {
            snapshot(&device, epochs.next().unwrap(), 0..PAGES);
        }
    }
    for epoch in epochs.take(20) {
        snapshot(&device, epoch, 0..1);
    }
    assert_eq!(update(&dir, &target, 2, None).unwrap(), PAGES);
    let copied = open(&target).unwrap();
    // SAFETY: no thread stores.
    let [ours, theirs] = [&device, &copied].map(|of| unsafe { of.image().slice(0, PAGES * 4096) });
    assert!(ours == theirs, "the copy is what it is a copy of");
}

/// What is no copy of the database, or is one no more, is refused and stays as it is.
#[test]
fn only_a_copy_as_it_was_made_is_brought_up_to_date() {
    let room = fast_dir();
    let place = |name: &str| room.path().join(name);
    let device = first_snapshot(&place("store"), None);
    drop(first_snapshot(&place("other"), None));
    update(&place("store"), &place("copy"), 1, None).unwrap();
    let refused = |target: &str, what: &str| {
        let error = update(&place("store"), &place(target), 2, None).unwrap_err();
        assert!(matches!(error, DeviceError::InTheWay { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    refused("other", "holds another database");
    // A copy of a copy is none of what that goes on as.
    update(&place("copy"), &place("second"), 1, None).unwrap();
    let copied = open(&place("copy")).unwrap();
    let error = update(&place("store"), &place("copy"), 2, None).unwrap_err();
    assert!(error.is_locked(), "{error}");
    copied.accept().unwrap();
    copied.log_write(&mut PortState::default(), 0, &[7; 10]).unwrap();
    drop(copied);
    refused("copy", "was opened and changed");
    // What its log has cannot be told: then it is not known whether it was changed.
    let log = place("second").join("log");
    std::fs::rename(&log, place("log")).unwrap();
    std::fs::create_dir(&log).unwrap();
    let error = update(&place("copy"), &place("second"), 2, None).unwrap_err();
    assert!(!matches!(error, DeviceError::InTheWay { .. }), "{error}");
    assert!(error.to_string().contains("read"), "{error}");
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(place("log"), &log).unwrap();
    std::fs::remove_file(place("second").join("origin")).unwrap();
    refused("second", "not one of its copies");
    drop(device);
}

/// The first so many calls are made, and the next one fails.
#[derive(Debug)]
struct Dies(std::sync::atomic::AtomicUsize);

impl DiskHook for Dies {
    fn before(&self, _: &DiskCall<'_>) -> Outcome {
        let left = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1)));
        if left == Ok(0) { Outcome::Fail(5) } else { Outcome::Proceed }
    }
}

/// Bringing a copy up to date may end at any call: it is of the moment before, or of the new one,
/// and the next time completes it.
#[test]
fn a_copy_that_is_brought_up_to_date_is_always_one() {
    let room = fast_dir();
    let (dir, made) = (room.path().join("store"), room.path().join("made"));
    let device = first_snapshot(&dir, None);
    update(&dir, &made, 1, None).unwrap();
    snapshot(&device, 2, changed(2));
    let (mut calls, mut found) = (0, Vec::new());
    loop {
        let target = room.path().join("copy");
        std::fs::create_dir(&target).unwrap();
        for name in names(&made) {
            std::fs::copy(made.join(&name), target.join(&name)).unwrap();
        }
        let dies = Arc::new(Dies(calls.into()));
        let ended = update(&dir, &target, 2, Some(dies as _));
        let what = format!("{calls} calls");
        found.push((checked(&target, &what), log_of(&target)));
        update(&dir, &target, 3, None).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((checked(&target, &what), log_of(&target)), (2, 3), "{what}");
        std::fs::remove_dir_all(&target).unwrap();
        if ended.is_ok() {
            break;
        }
        calls += 1;
    }
    assert!(calls > 20, "{calls} calls");
    found.dedup();
    assert_eq!(found, [(1, 1), (2, 1), (2, 2)]);
}

/// S7: a power cut at any call leaves the snapshot before or the new one, with any sectors arrived.
#[test]
fn s_7_power_cuts_while_a_copy_is_brought_up_to_date() {
    let room = fast_dir();
    let (dir, target) = (room.path().join("store"), room.path().join("copy"));
    let device = first_snapshot(&dir, None);
    update(&dir, &target, 1, None).unwrap();
    let mut contents = DiskContents::default();
    for file in [DiskFile::Meta, DiskFile::Data, DiskFile::Table] {
        let bytes = std::fs::read(target.join(file.name())).unwrap();
        contents.change(file, &Change::Write(0, bytes));
        contents.change(file, &Change::Sync);
    }
    contents.change(DiskFile::Directory, &Change::Sync);
    snapshot(&device, 2, changed(2));
    let recorder = Arc::new(Recorder::default());
    update(&dir, &target, 1, Some(Arc::clone(&recorder) as _)).unwrap();
    let mut found = std::collections::BTreeSet::new();
    let mut check = |contents: &DiskContents, at: usize| {
        for arrived in [Arrived::Nothing, Arrived::Everything, Arrived::Random(at as u64)] {
            let after = fast_dir();
            contents.cut(arrived).write_to(after.path());
            std::fs::copy(target.join("log"), after.path().join("log")).unwrap();
            found.insert(checked(after.path(), &format!("call {at}, {arrived:?}")));
        }
    };
    // The log is a new file, which gets its name when it is whole.
    let changes = recorder.take();
    for (at, (file, change)) in changes.iter().enumerate().filter(|(_, (f, _))| *f != DiskFile::Log)
    {
        contents.change(*file, change);
        check(&contents, at);
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [1, 2]);
}
