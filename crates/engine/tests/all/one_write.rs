//! What a small epoch asks of a disk before it is answered: one write of one place and one sync.

use std::sync::{Arc, Mutex};

use pmem::{
    AnyDevice, Device, DiskCall, DiskFile, DiskHook, DiskOperation, File, FileOptions, Outcome,
    PAGE_BYTES,
};
use sim::history::{Mix, Model, Pair, Random, Setup, batch, check_clean};

/// What was done to the files, in order; of a write its offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Write(DiskFile, u64, u64),
    Sync(DiskFile),
    Other(DiskFile),
}

impl Done {
    fn file(&self) -> DiskFile {
        let (Self::Write(file, ..) | Self::Sync(file) | Self::Other(file)) = self;
        *file
    }
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Done>>);

impl Recorder {
    fn take(&self) -> Vec<Done> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl DiskHook for Recorder {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        self.0.lock().unwrap().push(match call.operation {
            DiskOperation::Write { offset, bytes } => {
                Done::Write(call.file, offset, bytes.len() as u64)
            }
            DiskOperation::Sync => Done::Sync(call.file),
            _ => Done::Other(call.file),
        });
        Outcome::Proceed
    }
}

/// O-13, O-82: calls and commit record of a small epoch are one write of whole units, in a place
/// that was written before, and one sync; the end mark follows, in a file of its own, without a
/// sync.
#[test]
fn o_82_a_small_epoch_is_one_write_and_one_sync() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Arc::new(Recorder::default());
    let mut options = FileOptions::new(256 << 20, 64 << 20);
    options.hook = Some(recorder.clone());
    // No image snapshot: those are written beside the epochs.
    let setup = Setup { checkpoint_every: 1000, segment_bytes: 64 << 10, ..Setup::default() };
    let segment_bytes = setup.config().store.log_segment_bytes;
    let device = Arc::new(File::open(dir.path(), &options).unwrap());
    let mut pair = Pair::open(&AnyDevice::of(&device), &setup, Model::default()).unwrap();
    let (mut random, mix) = (Random::new(82), Mix { keys: 6, long_values: true, lookups: 20 });
    let mut sizes = Vec::new();
    for epoch in 1..=30 {
        recorder.take();
        // The first ones make the log as large as the others need it.
        pair.run(&batch(&mut random, &mix, if epoch <= 5 { 40 } else { 1 + epoch % 3 * 190 }))
            .unwrap();
        let mut done = recorder.take();
        if epoch <= 5 {
            continue;
        }
        // The image may grow before the epoch is logged.
        done.retain(|done| done.file() == DiskFile::Log || done.file() == DiskFile::Meta);
        let [
            Done::Write(DiskFile::Log, at, bytes),
            Done::Sync(DiskFile::Log),
            Done::Write(DiskFile::Meta, ..),
        ] = done[..]
        else {
            panic!("epoch {epoch}: {done:?}");
        };
        let unit = device.log_unit(true) as u64;
        assert!(at.is_multiple_of(segment_bytes) && bytes.is_multiple_of(unit), "{done:?}");
        sizes.push(bytes.div_ceil(PAGE_BYTES));
    }
    assert!(sizes.contains(&1) && sizes.iter().any(|pages| *pages > 1), "{sizes:?} pages");

    let Pair { engine, model, .. } = pair;
    drop((engine, device));
    let device = Arc::new(File::open(dir.path(), &FileOptions::new(256 << 20, 64 << 20)).unwrap());
    let pair = Pair::open(&AnyDevice::of(&device), &setup, model).unwrap();
    let Pair { engine, model, .. } = pair;
    engine.close().unwrap();
    check_clean(&AnyDevice::of(&device), &model).unwrap();
}
