//! Looking at a store without a handle that could write to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pmem::{
    Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File,
    FileOptions, MARK_BYTES, Outcome, Port,
};

use crate::open::filled;
use crate::refused::contents;
use crate::scenario::{EPOCHS, check, check_log, fast_dir, open, options};

/// Panics at every call that could change a file; notes what is opened.
#[derive(Debug, Default)]
struct OnlyReads(Mutex<Vec<DiskFile>>);

impl DiskHook for OnlyReads {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        match call.operation {
            DiskOperation::Open { write: false, create: false } => {
                self.0.lock().unwrap().push(call.file);
            }
            DiskOperation::Read { .. } => {}
            other => panic!("{:?} of {:?}", other, call.file),
        }
        Outcome::Proceed
    }
}

fn read_only(hook: Option<Arc<dyn DiskHook>>) -> FileOptions {
    FileOptions { read_only: true, ..options(hook) }
}

/// Files below a directory that this process has open for writing.
fn handles_for_writing(dir: &Path) -> Vec<PathBuf> {
    let is_for_writing = |number: &std::ffi::OsStr| {
        let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some(u32::from_str_radix(flags.trim(), 8).unwrap() & 3 != 0)
    };
    let handles = fs::read_dir("/proc/self/fd").unwrap().map(|handle| handle.unwrap());
    let writing = handles.filter(|handle| is_for_writing(&handle.file_name()) == Some(true));
    let paths = writing.filter_map(|handle| fs::read_link(handle.path()).ok());
    paths.filter(|path| path.starts_with(dir)).collect()
}

#[test]
fn a_store_is_looked_at_without_a_handle_for_writing() {
    let dir = filled();
    let before = contents(dir.path());
    let hook = Arc::new(OnlyReads::default());
    let device = File::open(dir.path(), &read_only(Some(hook.clone()))).unwrap();
    assert_eq!(check(&device, "read only"), EPOCHS.last().copied());
    assert_eq!(handles_for_writing(dir.path()), Vec::<PathBuf>::new());
    check_log(&device, EPOCHS.last().copied(), "read only");
    device.log_sync().unwrap();
    device.settle().unwrap();
    assert!(device.replay_marks().unwrap().is_none());
    let error = device.accept().unwrap_err();
    assert!(matches!(error, DeviceError::ReadOnly { .. }), "{error}");
    assert!(device.instance().is_some());
    drop(device);
    assert_eq!(hook.0.lock().unwrap().len(), 5, "four files and the directory");
    assert!(contents(dir.path()) == before);
}

#[test]
fn o_52_a_reader_is_alone_or_among_readers() {
    let dir = filled();
    let reader = File::open(dir.path(), &read_only(None)).unwrap();
    let other = File::open(dir.path(), &read_only(None)).unwrap();
    assert!(open(dir.path()).unwrap_err().is_locked());
    drop((reader, other));
    let writer = open(dir.path()).unwrap();
    assert!(File::open(dir.path(), &read_only(None)).unwrap_err().is_locked());
    drop(writer);
}

#[test]
fn nothing_is_created_to_be_looked_at() {
    let dir = fast_dir();
    for path in [dir.path().to_path_buf(), dir.path().join("nowhere")] {
        let error = File::open(&path, &read_only(None)).unwrap_err();
        assert!(matches!(error, DeviceError::Missing { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// What is changed after the accept stays in memory.
#[test]
fn a_detached_device_takes_changes_and_keeps_none() {
    let dir = filled();
    let before = contents(dir.path());
    let hook = Arc::new(OnlyReads::default());
    let detached = FileOptions { detached: true, ..read_only(Some(hook)) };
    for _ in 0..2 {
        let device = Arc::new(File::open(dir.path(), &detached).unwrap());
        let newest = EPOCHS.last().copied();
        assert_eq!(check(&device, "detached"), newest);
        device.accept().unwrap();
        device.accept().unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        let (image_bytes, log_bytes) = (device.image_bytes(), device.log_bytes());
        device.grow_image(2 * image_bytes).unwrap();
        device.grow_log(2 * log_bytes).unwrap();
        // SAFETY: nobody else knows the device.
        unsafe { port.store_bytes(image_bytes, &[7; 64]) };
        port.log_write(log_bytes, &[7; 64]).unwrap();
        device.log_sync().unwrap();
        device.write_mark(&[7; MARK_BYTES]).unwrap();
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(1_000)).unwrap();
        device.settle().unwrap();
        // The image in memory is that of this epoch. That the files keep theirs, the next round
        // finds.
        assert_eq!(device.snapshot_epoch(), Some(EpochNumber(1_000)));
        let mut beyond = [1; 64];
        device.log_read(log_bytes, &mut beyond).unwrap();
        assert_eq!(beyond, [0; 64]);
        drop((port, device));
        assert!(contents(dir.path()) == before);
    }
}
