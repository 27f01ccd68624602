//! Damage is never taken for a state, and an open that is refused, or not accepted, leaves every
//! byte of every file as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmem::{Device, DiskCall, DiskFile, DiskHook, EpochNumber, File, Outcome, PortState};
use tempfile::TempDir;

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::open::{filled, killed};
use crate::scenario::{EPOCHS, Progress, check, fast_dir, open, options, run};

const FILES: [&str; 4] = ["meta", "data", "table", "log"];

/// Every file of a directory with its bytes.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| (name(&entry), fs::read(entry.path()).unwrap())).collect()
}

fn copy(files: &BTreeMap<String, Vec<u8>>) -> TempDir {
    let dir = fast_dir();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

/// Opens a damaged store: refused, or in a state that was saved. Returns the error or the
/// snapshot. Nothing may have changed, whichever it is.
fn opened(dir: &Path, what: &str) -> Result<Option<u64>, String> {
    let before = contents(dir);
    let result = open(dir).map(|device| {
        let epoch = check(&device, what);
        device.grow_image(device.image_bytes() + 4096).unwrap();
        epoch
    });
    assert!(contents(dir) == before, "{what}: an open that was not accepted changed a file");
    result.map_err(|error| error.to_string())
}

/// A store with all snapshots: killed, closed, and cut off as soon as the newest was committed.
fn stores() -> [(&'static str, BTreeMap<String, Vec<u8>>); 3] {
    let closed = fast_dir();
    let recorder = Arc::new(Recorder::default());
    let device = File::open(closed.path(), &options(Some(recorder.clone()))).unwrap();
    run(&device, None, &mut Progress::default()).unwrap();
    let changes = recorder.take();
    drop(device);
    let commit = |(file, change): &(DiskFile, Change)| {
        *file == DiskFile::Meta && matches!(change, Change::Sync)
    };
    let last = changes.iter().rposition(commit).unwrap();
    let mut disk = DiskContents::default();
    changes[..=last].iter().for_each(|(file, change)| disk.change(*file, change));
    let cut = fast_dir();
    disk.cut(Arrived::Nothing).write_to(cut.path());
    [
        ("killed", contents(filled().path())),
        ("closed", contents(closed.path())),
        ("cut", contents(cut.path())),
    ]
}

/// Damages every part of every file; returns how many opens were refused.
fn damage_all(damage: impl Fn(&mut Vec<u8>, usize)) -> usize {
    let mut refused = 0;
    for (store, files) in stores() {
        assert_eq!(opened(copy(&files).path(), store), Ok(Some(20)), "{store}");
        for name in FILES {
            for part in 0..files[name].len() / 512 {
                let mut damaged = files.clone();
                damage(damaged.get_mut(name).unwrap(), part * 512);
                if damaged[name] == files[name] {
                    continue;
                }
                let what = format!("{store}, {name} at {}", part * 512);
                match opened(copy(&damaged).path(), &what) {
                    Ok(Some(20)) => {}
                    Ok(other) => panic!("{what}: opened at {other:?}"),
                    Err(error) => {
                        assert!(error.contains(name), "{what}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    refused
}

#[test]
fn o_54_a_flipped_bit_anywhere() {
    assert!(damage_all(|bytes, at| bytes[at + at / 512 * 37 % 512] ^= 1 << (at / 512 % 8)) > 100);
}

#[test]
fn o_54_a_sector_of_zeros_anywhere() {
    assert!(damage_all(|bytes, at| bytes[at..at + 512].fill(0)) > 20);
}

#[test]
fn o_54_a_sector_from_elsewhere() {
    let from_elsewhere = |bytes: &mut Vec<u8>, at: usize| {
        let from = (at + 4096) % (bytes.len() / 512 * 512);
        bytes.copy_within(from..from + 512, at);
    };
    assert!(damage_all(from_elsewhere) > 20);
    assert!(damage_all(|bytes, at| bytes[at..].rotate_right(512)) > 100);
}

#[test]
fn o_54_a_file_cut_anywhere() {
    assert!(damage_all(|bytes, at| bytes.truncate(at)) > 100);
}

/// O-59: each file, and each two, of another store or of an earlier moment of the same store.
#[test]
fn o_59_files_of_another_store_or_moment() {
    // Another store, which holds something else, and the moments of one.
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    let mut donors = vec![("created", contents(dir.path()))];
    run(&device, None, &mut Progress::default()).unwrap();
    donors.push(("all snapshots", contents(killed(dir.path(), &device).path())));
    drop(device);
    donors.push(("closed", contents(dir.path())));
    let early = fast_dir();
    let device = open(early.path()).unwrap();
    device.accept().unwrap();
    device.grow_image(6 * 4096).unwrap();
    for epoch in [3, 4] {
        // SAFETY: this test owns the device.
        unsafe { device.store_u64(&mut pmem::PortState::default(), epoch * 64, epoch) };
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(epoch)).unwrap();
        let at = contents(killed(early.path(), &device).path());
        donors.push(("the same or another store, early", at));
    }
    drop(device);
    donors.push(("the other store, closed", contents(early.path())));
    let mut refused = 0;
    for (receiver, files) in &donors {
        for (donor, others) in &donors {
            for mask in 1..15_usize {
                let mut mixed = files.clone();
                for name in (0..4).filter(|bit| mask >> bit & 1 == 1).map(|bit| FILES[bit]) {
                    mixed.insert(name.to_string(), others[name].clone());
                }
                let what = format!("{receiver} with files {mask:#b} of {donor}");
                let dir = copy(&mixed);
                let before = contents(dir.path());
                match open(dir.path()) {
                    Err(error) => {
                        assert!(error.is_corrupt(), "{what}: {error}");
                        refused += 1;
                    }
                    // Only what is the same bytes as one of the two, but for the log.
                    Ok(device) => {
                        // SAFETY: no thread stores.
                        let image = unsafe { device.image().slice(0, device.image_bytes()) };
                        let is = |of: &BTreeMap<String, Vec<u8>>| {
                            let device = open(copy(of).path()).unwrap();
                            // SAFETY: no thread stores.
                            let other = unsafe { device.image().slice(0, device.image_bytes()) };
                            let both = image.len().min(other.len());
                            let mut rest = image[both..].iter().chain(&other[both..]);
                            image[..both] == other[..both] && rest.all(|byte| *byte == 0)
                        };
                        assert!(is(files) || is(others), "{what}");
                    }
                }
                assert!(contents(dir.path()) == before, "{what}: changed");
            }
        }
    }
    assert!(refused > donors.len() * donors.len() * 5, "{refused} were refused");
}

/// Damages one read of a file.
#[derive(Debug)]
struct Misread {
    file: DiskFile,
    at: usize,
    reads: AtomicUsize,
}

impl DiskHook for Misread {
    fn before(&self, _: &DiskCall<'_>) -> Outcome {
        Outcome::Proceed
    }

    fn after_read(&self, file: DiskFile, _: u64, bytes: &mut [u8]) {
        if file == self.file && self.reads.fetch_add(1, Ordering::SeqCst) == self.at {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        }
    }
}

/// A disk that errs makes no state: each read is checked, and what comes of it harms no file.
#[test]
fn o_54_every_read_is_checked() {
    let [.., (_, files)] = stores();
    for (file, least) in [(DiskFile::Data, 2), (DiskFile::Table, 2), (DiskFile::Meta, 2)] {
        for at in 0.. {
            let dir = copy(&files);
            let misread = Arc::new(Misread { file, at, reads: AtomicUsize::new(0) });
            let opened = File::open(dir.path(), &options(Some(misread.clone())));
            let was_read = misread.reads.load(Ordering::SeqCst) > at;
            // The last two reads of `meta` are those of its marks, which may be missing.
            let is_mark = file == DiskFile::Meta && at >= 4;
            assert_eq!(opened.is_err(), was_read && !is_mark, "{file:?}, read {at}: {opened:?}");
            if let Ok(device) = opened {
                assert_eq!(check(&device, "read rightly"), EPOCHS.last().copied());
                device.accept().unwrap();
            }
            let what = format!("{file:?} after read {at} was bad");
            assert_eq!(check(&open(dir.path()).unwrap(), &what), EPOCHS.last().copied(), "{what}");
            if !was_read {
                assert!(at >= least, "{file:?}: head and content are read: {at}");
                break;
            }
        }
    }
}

/// Nothing is put in place, named or extended by a device that goes away before its state was
/// accepted; and then all of it is.
#[test]
fn what_was_opened_is_written_when_it_is_accepted() {
    let [.., (_, files)] = stores();
    let dir = copy(&files);
    assert_eq!(opened(dir.path(), "not accepted"), Ok(Some(20)));
    let device = open(dir.path()).unwrap();
    let bytes = device.image_bytes();
    device.grow_image(bytes + 3 * 4096).unwrap();
    assert_eq!(device.image_bytes(), bytes + 3 * 4096);
    // SAFETY: this test owns the device.
    unsafe { device.store_u64(&mut pmem::PortState::default(), 64, 9) };
    device.accept().unwrap();
    device.accept().unwrap();
    drop(device);
    assert_eq!(opened(dir.path(), "accepted: the snapshot, and no store"), Ok(Some(20)));
    assert_eq!(open(dir.path()).unwrap().image_bytes(), bytes + 3 * 4096);
}

/// A caller that changes what it did not accept has a bug.
#[test]
fn before_a_state_is_accepted_nothing_can_be_saved() {
    let dir = filled();
    let device = open(dir.path()).unwrap();
    let caught = |what: &str, change: &dyn Fn()| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
        assert!(result.is_err(), "{what}");
    };
    caught("snapshot_part", &|| drop(device.snapshot_part(0, 1)));
    caught("snapshot_commit", &|| drop(device.snapshot_commit(EpochNumber(21))));
    caught("grow_log", &|| drop(device.grow_log(device.log_bytes() + 1)));
    caught("write_mark", &|| drop(device.write_mark(&[0; pmem::MARK_BYTES])));
    let mut port = pmem::PortState::default();
    let mut record = [0; 700];
    device.log_read(3000, &mut record).unwrap();
    device.log_write(&mut port, 3000, &record).unwrap();
    device.log_sync().unwrap();
}

/// Either slot of `meta` may have been the newer one: it is not known what it said.
#[test]
fn o_54_a_damaged_slot_of_meta_leaves_doubt() {
    let [_, (_, closed), _] = stores();
    for slot in [0, 4096] {
        let mut files = closed.clone();
        files.get_mut("meta").unwrap()[slot + 30] ^= 1;
        let error = opened(copy(&files).path(), "a damaged slot").unwrap_err();
        assert!(error.contains("/meta ") && error.contains("a slot is damaged"), "{slot}: {error}");
    }
}

/// Two copies of a store that both went on have snapshots of one number and different content.
#[test]
fn o_54_a_file_of_another_copy_is_refused() {
    let before = contents(filled().path());
    let [one, other] = [1, 2].map(|byte| {
        let dir = copy(&before);
        let device = open(dir.path()).unwrap();
        device.accept().unwrap();
        // SAFETY: no other thread uses the device.
        unsafe { device.store_bytes(&mut PortState::default(), 0, &[byte; 8]) };
        device.snapshot_part(0, 1).unwrap();
        device.snapshot_commit(EpochNumber(99)).unwrap();
        drop(device);
        contents(dir.path())
    });
    for name in ["table", "data"] {
        for (from, is_right) in [(&one, true), (&other, false)] {
            let mut files = one.clone();
            files.insert(name.to_string(), from[name].clone());
            let result = open(copy(&files).path()).map(drop);
            assert_eq!(result.is_ok(), is_right, "{name}: {result:?}");
        }
    }
}
