//! The directory: what may be in it, how a creation is repeated, and who may have it open.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::{
    Device, DeviceError, DiskCall, DiskFile, DiskHook, DiskOperation, EpochNumber, File,
    FileOptions, Outcome,
};

use crate::open::filled;
use crate::refused::contents;
use crate::scenario::{EPOCHS, Progress, check, fast_dir, open, options, run};

const ENOSPC: i32 = 28;

fn only_open() -> FileOptions {
    FileOptions { create: false, ..options(None) }
}

/// Regression: creating a store destroyed files that happened to have its names.
#[test]
fn a_directory_with_something_else_in_it_is_refused() {
    for name in ["log", "meta", "data", "table", "replay", "loading", "letter.txt"] {
        let dir = fast_dir();
        fs::write(dir.path().join(name), "Dear Sir,\n").unwrap();
        fs::write(dir.path().join("zeros.txt"), [0; 10]).unwrap();
        let before = contents(dir.path());
        let error = open(dir.path()).unwrap_err();
        assert!(matches!(error, DeviceError::Foreign { .. }), "{name}: {error}");
        assert!(error.to_string().contains(&format!("/{name} ")), "{name}: {error}");
        let error = File::open(dir.path(), &only_open()).unwrap_err();
        let none = matches!(error, DeviceError::Missing { .. });
        assert!(none || name == "meta", "{name}: {error}");
        assert!(contents(dir.path()) == before, "{name}: something was touched");
    }
    let dir = fast_dir();
    fs::create_dir(dir.path().join("log")).unwrap();
    assert!(open(dir.path()).unwrap_err().is_corrupt());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Zeros are nothing, however many, and of several files the first by name is spoken of.
#[test]
fn the_first_file_with_content_is_in_the_way() {
    let dir = fast_dir();
    // More than is read at once, and no whole number of that.
    fs::write(dir.path().join("data"), vec![0; 5_000_001]).unwrap();
    File::open(dir.path(), &FileOptions::new(16 << 20, 1 << 20)).unwrap();
    let dir = fast_dir();
    let names: Vec<String> = (0..40).map(|n| format!("{:02}.txt", (n + 20) % 40)).collect();
    for name in &names {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("/00.txt "), "{error}");
}

/// What cannot be looked into may be anything, so it is not taken for nothing.
#[test]
fn what_cannot_be_looked_into_is_in_the_way() {
    let dir = fast_dir();
    let looping = dir.path().join("data");
    symlink(&looping, &looping).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(error.to_string().starts_with("cannot look into"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was created");
    // A link to nowhere is a name without content.
    fs::remove_file(&looping).unwrap();
    symlink(dir.path().join("nowhere"), &looping).unwrap();
    assert!(open(dir.path()).is_ok());
}

#[test]
fn names_that_the_caller_has_beside_a_store_are_not_in_the_way() {
    let dir = fast_dir();
    fs::write(dir.path().join("manifest"), "mine").unwrap();
    assert!(open(dir.path()).unwrap_err().is_corrupt());
    let options = FileOptions { beside: &["manifest"], ..options(None) };
    run(&File::open(dir.path(), &options).unwrap(), None, &mut Progress::default()).unwrap();
    // Once there is a store, it does not matter.
    assert_eq!(check(&open(dir.path()).unwrap(), "beside"), EPOCHS.last().copied());
    assert_eq!(fs::read(dir.path().join("manifest")).unwrap(), b"mine");
}

/// Refuses to create files from one on.
#[derive(Debug)]
struct NoInodes {
    from: usize,
    created: AtomicUsize,
}

impl DiskHook for NoInodes {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        match call.operation {
            DiskOperation::Open { create: true, .. }
                if self.created.fetch_add(1, Ordering::SeqCst) >= self.from =>
            {
                Outcome::Fail(ENOSPC)
            }
            _ => Outcome::Proceed,
        }
    }
}

#[test]
fn o_58_a_creation_without_inodes_can_be_repeated() {
    for from in 0..4 {
        let dir = fast_dir();
        for _ in 0..2 {
            let hook = Arc::new(NoInodes { from, created: AtomicUsize::new(0) });
            let error = File::open(dir.path(), &options(Some(hook))).unwrap_err();
            assert!(error.to_string().contains("os error 28"), "{from} files: {error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), from);
        let error = File::open(dir.path(), &only_open()).unwrap_err();
        assert!(matches!(error, DeviceError::Missing { .. }), "{from} files: {error}");
        run(&open(dir.path()).unwrap(), None, &mut Progress::default()).unwrap();
        assert_eq!(check(&open(dir.path()).unwrap(), "repeated"), EPOCHS.last().copied());
    }
}

/// A store that lost a file is not a place for a new one, nor is the file made up.
#[test]
fn a_lost_file_is_named_and_not_replaced() {
    for name in ["meta", "data", "table", "log"] {
        let dir = filled();
        fs::remove_file(dir.path().join(name)).unwrap();
        let before = contents(dir.path());
        for options in [options(None), only_open()] {
            let error = File::open(dir.path(), &options).unwrap_err();
            assert!(error.is_corrupt(), "{name}: {error}");
            assert!(error.to_string().contains(&format!("/{name} ")), "{name}: {error}");
        }
        assert!(contents(dir.path()) == before, "{name}: something was touched");
    }
}

/// O-52: what is locked cannot be removed from under the lock.
#[test]
fn o_52_no_removed_file_lets_a_second_one_in() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    for name in ["meta", "table", "data", "log"] {
        let _ = fs::remove_file(dir.path().join(name));
        assert!(open(dir.path()).unwrap_err().is_locked(), "without {name}");
    }
    drop(device);
}

#[test]
fn o_52_two_paths_to_one_directory_exclude_each_other() {
    let dir = filled();
    let links = fast_dir();
    let link = links.path().join("link");
    symlink(dir.path(), &link).unwrap();
    let device = open(dir.path()).unwrap();
    let other: &Path = &link;
    for path in [other, &dir.path().join(".")] {
        assert!(open(path).unwrap_err().is_locked());
    }
    drop(device);
    assert_eq!(open(&link).unwrap().snapshot_epoch(), EPOCHS.last().copied().map(EpochNumber));
    assert!(!dir.path().join("lock").exists(), "no file is there only to be locked");
}

/// The instance is that of the files, and another one for each store.
#[test]
fn an_instance_stays_and_is_nobody_elses() {
    let (one, other) = (filled(), filled());
    let instance = |dir: &Path| open(dir).unwrap().instance().unwrap();
    assert_eq!(instance(one.path()), instance(one.path()));
    assert_ne!(instance(one.path()), instance(other.path()));
    let meta = fs::read(one.path().join(DiskFile::Meta.name())).unwrap();
    assert_eq!(meta[16..24], instance(one.path()).to_le_bytes());
}

/// Regression: a program whose directory another one had removed, or moved away and replaced, went
/// on for ever and answered everything; nothing of it was found again.
#[test]
fn a_directory_that_is_removed_or_replaced_stops_its_device() {
    let replaced = |path: &Path| {
        fs::rename(path, path.with_extension("aside")).unwrap();
        fs::create_dir(path).unwrap();
    };
    let removed = |path: &Path| fs::remove_dir_all(path).unwrap();
    let data_replaced = |path: &Path| {
        let data = path.join("data");
        fs::copy(&data, path.join("copy")).unwrap();
        fs::rename(path.join("copy"), data).unwrap();
    };
    let changes: [fn(&Path); 3] = [replaced, removed, data_replaced];
    for (number, change) in changes.into_iter().enumerate() {
        let snapshot = |device: &File| {
            device
                .snapshot_part(0, 1)
                .and_then(|()| device.snapshot_commit(EpochNumber(1)))
                .unwrap_err()
        };
        let grow_log =
            |device: &File| device.grow_log(device.log_bytes() + (64 << 10)).unwrap_err();
        let grow_image = |device: &File| device.grow_image(512 << 10).unwrap_err();
        let steps: [fn(&File) -> DeviceError; 3] = [snapshot, grow_log, grow_image];
        for step in steps {
            let room = fast_dir();
            let path = room.path().join("db");
            fs::create_dir(&path).unwrap();
            let device = open(&path).unwrap();
            device.accept().unwrap();
            device.grow_log(32 << 10).unwrap();
            change(&path);
            let error = step(&device).to_string();
            assert!(error.contains("removed or replaced"), "{number}: {error}");
            let error = device.log_sync().unwrap_err().to_string();
            assert!(error.contains("failed earlier"), "{number}: {error}");
            drop(device);
            if number == 0 {
                assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "the new one is left alone");
            }
        }
    }
}

/// A relative path and a link are names as good as others, also when they lead elsewhere later.
#[test]
fn a_link_that_leads_elsewhere_later_stops_nobody() {
    let (dir, other, links) = (filled(), fast_dir(), fast_dir());
    let link = links.path().join("link");
    symlink(dir.path(), &link).unwrap();
    let device = open(&link).unwrap();
    device.accept().unwrap();
    fs::remove_file(&link).unwrap();
    symlink(other.path(), &link).unwrap();
    device.snapshot_part(0, 1).and_then(|()| device.snapshot_commit(EpochNumber(30))).unwrap();
    device.settle().unwrap();
}

/// A load that was cut short is a load's affair.
#[test]
fn the_mark_of_a_load_keeps_everybody_else_out() {
    let dir = filled();
    let device = open(dir.path()).unwrap();
    let mark = device.load_mark().expect("a durable device has one");
    assert_eq!(mark.read().unwrap(), None);
    mark.set("half").unwrap();
    drop(device);
    let before = contents(dir.path());
    for options in [options(None), FileOptions { read_only: true, ..options(None) }] {
        let error = File::open(dir.path(), &options).unwrap_err();
        assert!(matches!(error, DeviceError::Unfinished { .. }) && error.is_corrupt(), "{error}");
    }
    assert!(contents(dir.path()) == before, "something was touched");
    let loading = FileOptions { loading: true, ..options(None) };
    let device = File::open(dir.path(), &loading).unwrap();
    let mark = device.load_mark().expect("a durable device has one");
    assert_eq!(mark.read().unwrap().as_deref(), Some("half"));
    mark.clear().unwrap();
    drop(device);
    assert!(open(dir.path()).is_ok());
}

/// Regression: `check` of a named pipe waited for ever.
#[test]
fn what_is_no_file_is_refused_at_once() {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for name in ["meta", "data", "table", "log"] {
        let dir = filled();
        let path = dir.path().join(name);
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        for options in [options(None), FileOptions { read_only: true, ..options(None) }] {
            let error = File::open(dir.path(), &options).unwrap_err().to_string();
            assert!(error.contains("named pipe"), "{name}: {error}");
        }
    }
    let dir = fast_dir();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("table"), mode).unwrap();
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("/table is not ours: it is in the way"), "{error}");
}
