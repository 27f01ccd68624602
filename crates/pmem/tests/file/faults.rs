//! Every call to the file system may fail: the first failure is final, and what was durable stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::{
    Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File,
    FileOptions, Outcome, PAGE_BYTES, PortState,
};

use crate::disk::{Change, Recorder};
use crate::scenario::{
    EPOCHS, LOG_LIMIT_BYTES, Progress, check, check_log, fast_dir, open, options, run,
};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EOPNOTSUPP: i32 = 95;

/// Gives one call, counted from zero, an outcome of its own.
#[derive(Debug)]
struct FaultAt {
    at: usize,
    outcome: Outcome,
    calls: AtomicUsize,
}

impl DiskHook for FaultAt {
    fn before(&self, _: &DiskCall<'_>) -> Outcome {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at {
            self.outcome
        } else {
            Outcome::Proceed
        }
    }
}

/// Runs the scenario with the fault at each call in turn, until there is no such call.
/// `each` is told whether the call was made.
fn sweep(outcome: Outcome, each: impl Fn((usize, bool), &File, Result<(), DeviceError>)) {
    for at in 0.. {
        let fault = Arc::new(FaultAt { at, outcome, calls: AtomicUsize::new(0) });
        let dir = fast_dir();
        let what = format!("{outcome:?} at call {at}");
        let mut progress = Progress::default();
        match File::open(dir.path(), &options(Some(fault.clone()))) {
            Ok(device) => {
                let result = run(&device, None, &mut progress);
                progress.saved = device.snapshot_epoch().map(|epoch| epoch.0);
                let was_made = fault.calls.load(Ordering::SeqCst) > at;
                each((at, was_made), &device, result);
            }
            Err(error) => each_open_error(&what, outcome, &error),
        }
        let device = open(dir.path()).unwrap_or_else(|e| panic!("{what}, reopened: {e}"));
        assert!(check(&device, &what) >= progress.saved, "{what}: a snapshot was lost");
        check_log(&device, progress.logged, &what);
        if fault.calls.load(Ordering::SeqCst) <= at {
            assert_eq!(progress.saved, EPOCHS.last().copied());
            assert!(at > 60, "only {at} calls were swept");
            return;
        }
    }
}

fn each_open_error(what: &str, outcome: Outcome, error: &DeviceError) {
    assert!(matches!(outcome, Outcome::Fail(EIO | ENOSPC)), "{what}: {error}");
}

fn assert_sticky(device: &File, what: &str) {
    let mut port = PortState::default();
    let results = [
        ("log_write", device.log_write(&mut port, 0, &[])),
        ("log_sync", device.log_sync()),
        ("grow_image", device.grow_image(device.image_bytes() + 1)),
        ("grow_log", device.grow_log(device.log_bytes() + 1)),
        ("snapshot_part", device.snapshot_part(0, 1)),
        ("snapshot_commit", device.snapshot_commit(EpochNumber(99))),
        ("settle", device.settle()),
        ("write_mark", device.write_mark(&[1; pmem::MARK_BYTES])),
    ];
    for (call, result) in results {
        assert!(matches!(result, Err(DeviceError::Sticky { .. })), "{what}: {call}: {result:?}");
    }
}

#[test]
fn o_57_an_input_output_error_is_final() {
    sweep(Outcome::Fail(EIO), |(at, was_made), device, result| {
        assert_eq!(result.is_err(), was_made, "call {at} failed");
        if let Err(error) = result {
            assert!(!error.is_limit(), "call {at}: {error}");
            assert!(error.to_string().contains("os error 5"), "call {at}: {error}");
            assert_sticky(device, &format!("call {at}"));
        }
    });
}

#[test]
fn o_58_a_full_file_system_while_growing_can_be_tried_again() {
    let refused = AtomicUsize::new(0);
    sweep(Outcome::Fail(ENOSPC), |(at, _), device, result| {
        let Err(error) = result else { return };
        // Found by the crash lab: no room for a write in place looked like a refusal, too.
        if error.is_limit() {
            device.log_sync().unwrap_or_else(|e| panic!("call {at}: refused, then {e}"));
            assert!(error.to_string().contains("free space"), "call {at}: {error}");
            refused.fetch_add(1, Ordering::SeqCst);
            let from = {
                let _ = device.settle();
                device.snapshot_epoch().map(|epoch| epoch.0)
            };
            let mut progress = Progress::default();
            run(device, from, &mut progress).unwrap_or_else(|e| panic!("call {at}: {e}"));
        } else {
            assert_sticky(device, &format!("call {at}"));
        }
    });
    assert!(refused.into_inner() >= 4, "data, table and log grow");
}

#[test]
fn o_58_interrupted_calls_and_short_writes_change_nothing() {
    for outcome in [Outcome::Fail(EINTR), Outcome::Short(1), Outcome::Short(100)] {
        sweep(outcome, |(at, _), _, result| {
            result.unwrap_or_else(|e| panic!("{outcome:?} at call {at}: {e}"));
        });
    }
}

#[test]
fn a_write_that_makes_no_progress_is_an_error() {
    #[derive(Debug)]
    struct Stuck;
    impl DiskHook for Stuck {
        fn before(&self, call: &DiskCall<'_>) -> Outcome {
            match (call.file, call.operation) {
                (DiskFile::Log, DiskOperation::Write { .. }) => Outcome::Short(0),
                _ => Outcome::Proceed,
            }
        }
    }
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(Arc::new(Stuck)))).unwrap();
    device.accept().unwrap();
    let error = device.grow_log(4096).unwrap_err();
    assert!(error.to_string().contains("write 4096 bytes at offset 0 of"), "{error}");
    assert_sticky(&device, "stuck");
}

/// A file system that cannot reserve space gets zeros written, to the same length in every file.
#[test]
fn where_space_cannot_be_reserved_zeros_are_written() {
    #[derive(Debug)]
    struct NoReserving;
    impl DiskHook for NoReserving {
        fn before(&self, call: &DiskCall<'_>) -> Outcome {
            match call.operation {
                DiskOperation::Allocate { .. } => Outcome::Fail(EOPNOTSUPP),
                _ => Outcome::Proceed,
            }
        }
    }
    let lengths = [None, Some(Arc::new(NoReserving) as Arc<dyn DiskHook>)].map(|hook| {
        let dir = fast_dir();
        let limits = FileOptions::new(8 << 20, 8 << 20);
        let device = File::open(dir.path(), &FileOptions { hook, ..limits }).unwrap();
        device.accept().unwrap();
        // Not whole pieces of what is written at once.
        device.grow_image(6 << 20).unwrap();
        device.grow_log(5 << 20).unwrap();
        ["meta", "data", "table", "log"]
            .map(|name| std::fs::metadata(dir.path().join(name)).unwrap().len())
    });
    assert_eq!(lengths[0], lengths[1]);
    assert!(lengths[0][1] >= 6 << 20);
}

/// The error says how much room there would have to be.
#[test]
fn no_room_for_zeros_names_the_size_that_was_wanted() {
    #[derive(Debug)]
    struct NoRoomBehind(u64);
    impl DiskHook for NoRoomBehind {
        fn before(&self, call: &DiskCall<'_>) -> Outcome {
            match call.operation {
                DiskOperation::Allocate { .. } => Outcome::Fail(EOPNOTSUPP),
                DiskOperation::Write { offset, .. } if offset >= self.0 => Outcome::Fail(ENOSPC),
                _ => Outcome::Proceed,
            }
        }
    }
    let dir = fast_dir();
    let hook: Arc<dyn DiskHook> = Arc::new(NoRoomBehind(3 << 20));
    let options = FileOptions { hook: Some(hook), ..FileOptions::new(8 << 20, 8 << 20) };
    let device = File::open(dir.path(), &options).unwrap();
    device.accept().unwrap();
    let error = device.grow_log(5 << 20).unwrap_err();
    let DeviceError::Full { wanted_bytes, .. } = error else { panic!("{error}") };
    assert!((3 << 20..=5 << 20).contains(&wanted_bytes), "{wanted_bytes}");
}

/// O-56, S21: a snapshot of as many pages as were reserved asks for no room, whether the image grew
/// before or not; besides what only those may take that free space stays.
#[test]
fn s_21_a_snapshot_needs_no_room_that_was_not_reserved() {
    const PAGES: u64 = 6000;
    let recorder = Arc::new(Recorder::default());
    let limits = FileOptions::new(64 << 20, LOG_LIMIT_BYTES);
    let options = FileOptions { hook: Some(recorder.clone()), ..limits };
    for frees in [true, false] {
        let dir = fast_dir();
        let device = File::open(dir.path(), &options).unwrap();
        device.accept().unwrap();
        device.grow_image(PAGES * PAGE_BYTES).unwrap();
        let slots = || std::fs::metadata(dir.path().join("data")).unwrap().len() / PAGE_BYTES;
        assert_eq!(slots(), 1 + PAGES + 4096, "what is kept for those that free space");
        device.reserve_pages(1000, true).unwrap();
        assert_eq!(slots(), 1 + PAGES + 4096, "which they may take");
        device.reserve_pages(PAGES - 4096 + 1000 * u64::from(frees), frees).unwrap();
        for snapshot in 1..=3 {
            let pages = if frees { PAGES - 3096 } else { PAGES };
            for page in 0..pages {
                // SAFETY: this test owns the device.
                unsafe { device.store_u64(&mut PortState::default(), page * PAGE_BYTES, snapshot) };
            }
            assert_eq!(device.changed_bytes(), pages * PAGE_BYTES);
            recorder.take();
            device.snapshot_part(0, 1).unwrap();
            device.snapshot_commit(EpochNumber(snapshot)).unwrap();
            device.settle().unwrap();
            assert_eq!(device.changed_bytes(), 0);
            let grown = |(_, change): &(DiskFile, Change)| matches!(change, Change::Allocate(_));
            assert!(!recorder.take().iter().any(grown), "{pages} pages, snapshot {snapshot}");
        }
    }
}
