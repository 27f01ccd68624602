//! Stores while a snapshot is written.

use std::sync::{Arc, Condvar, Mutex};

use pmem::{
    Device, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File, FileOptions, Outcome,
    PAGE_BYTES, PortState,
};

use crate::open::killed;
use crate::scenario::{LOG_LIMIT_BYTES, fast_dir};

const PAGES: u64 = 1_000;

/// Writes of pages wait until it is open.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap() = is_open;
        self.opened.notify_all();
    }
}

impl DiskHook for Gate {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        if call.file == DiskFile::Data && matches!(call.operation, DiskOperation::Write { .. }) {
            let is_open = self.is_open.lock().unwrap();
            drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        }
        Outcome::Proceed
    }
}

fn store_all(device: &File, value: u64) {
    let mut port = PortState::default();
    for page in 0..PAGES {
        // SAFETY: the test owns the device.
        unsafe { device.store_u64(&mut port, page * PAGE_BYTES + 8, value + page) };
        // SAFETY: as above.
        unsafe { device.store_bytes(&mut port, page * PAGE_BYTES + 100, &value.to_le_bytes()) };
    }
}

fn snapshot(device: &File, epoch: u64) {
    (0..2).for_each(|part| device.snapshot_part(part, 2).unwrap());
    device.snapshot_commit(EpochNumber(epoch)).unwrap();
}

/// S9: a snapshot is of one moment, whether a page was saved before the store or not. Some pages
/// are when the first of them waits to be written, most are not.
#[test]
fn s9_what_is_stored_behind_a_snapshot_is_in_the_next_one() {
    let (dir, gate) = (fast_dir(), Arc::new(Gate::default()));
    let hook = Some(Arc::clone(&gate) as Arc<dyn DiskHook>);
    let options = FileOptions { hook, ..FileOptions::new(PAGES * PAGE_BYTES, LOG_LIMIT_BYTES) };
    gate.set(true);
    let device = File::open(dir.path(), &options).unwrap();
    device.accept().unwrap();
    device.grow_image(PAGES * PAGE_BYTES).unwrap();
    for round in 1..4 {
        gate.set(false);
        store_all(&device, round * 10_000);
        assert_eq!(device.changed_bytes(), PAGES * PAGE_BYTES);
        snapshot(&device, round);
        assert!(device.is_saving());
        store_all(&device, (round + 1) * 10_000);
        gate.set(true);
        let found = killed(dir.path(), &device);
        assert!(!device.is_saving());
        let found = File::open(found.path(), &FileOptions { hook: None, ..options.clone() });
        let found = found.unwrap();
        assert_eq!(found.snapshot_epoch(), Some(EpochNumber(round)));
        for page in 0..PAGES {
            let [number, bytes] =
                [8, 100 / 8 * 8].map(|at| found.image().load_u64(page * 4096 + at));
            assert_eq!(number, round * 10_000 + page, "page {page} of snapshot {round}");
            assert_eq!(bytes >> 32, round * 10_000, "page {page} of snapshot {round}");
        }
    }
}
