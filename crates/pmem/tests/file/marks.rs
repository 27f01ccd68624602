//! The record that is replaced with every epoch, and the words that outlive a process.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{Device, DiskCall, DiskFile, DiskHook, File, MARK_BYTES, Outcome};

use crate::disk::{Arrived, Change, DiskContents, Recorder};
use crate::open::{edit, killed};
use crate::refused::contents;
use crate::scenario::{Progress, check, fast_dir, open, options, run};

fn mark(number: u8) -> [u8; MARK_BYTES] {
    std::array::from_fn(|at| number.wrapping_add(at as u8))
}

#[test]
fn the_newest_mark_survives_the_process() {
    let dir = fast_dir();
    for open_number in 0..3_u8 {
        let device = open(dir.path()).unwrap();
        let before = open_number.checked_sub(1).map(|last| mark(last * 10 + 4));
        assert_eq!(device.mark(), before);
        device.accept().unwrap();
        for number in 0..=4 {
            device.write_mark(&mark(open_number * 10 + number)).unwrap();
        }
        assert_eq!(device.mark(), before, "what was found at the open");
        assert_eq!(open(killed(dir.path(), &device).path()).unwrap().mark(), {
            Some(mark(open_number * 10 + 4))
        });
    }
}

#[test]
fn a_torn_mark_leaves_the_one_before_or_none() {
    let dir = fast_dir();
    let device = open(dir.path()).unwrap();
    device.accept().unwrap();
    device.write_mark(&mark(1)).unwrap();
    device.write_mark(&mark(2)).unwrap();
    drop(device);
    // The second is in the first slot.
    edit(dir.path(), "meta", |bytes| bytes[2 * 4096 + 40] ^= 1);
    assert_eq!(open(dir.path()).unwrap().mark(), Some(mark(1)));
    edit(dir.path(), "meta", |bytes| bytes[3 * 4096 + 40] ^= 1);
    let device = open(dir.path()).unwrap();
    assert_eq!(device.mark(), None);
    device.accept().unwrap();
    device.write_mark(&mark(3)).unwrap();
    drop(device);
    assert_eq!(open(dir.path()).unwrap().mark(), Some(mark(3)));
    // A mark of another database is none.
    edit(dir.path(), "meta", |bytes| bytes[2 * 4096..].fill(0));
    let other = fast_dir();
    let device = open(other.path()).unwrap();
    device.accept().unwrap();
    device.write_mark(&mark(9)).unwrap();
    let meta = fs::read(other.path().join("meta")).unwrap();
    edit(dir.path(), "meta", |bytes| bytes[2 * 4096..].copy_from_slice(&meta[2 * 4096..]));
    assert_eq!(open(dir.path()).unwrap().mark(), None);
}

/// One short write, no sync; after a power cut one of the marks is there, or none, and the state
/// is none the worse.
#[test]
fn a_mark_is_one_write_and_is_not_synced() {
    let recorder = Arc::new(Recorder::default());
    let dir = fast_dir();
    let device = File::open(dir.path(), &options(Some(recorder.clone()))).unwrap();
    run(&device, None, &mut Progress::default()).unwrap();
    let mut contents = DiskContents::default();
    let mut follow = |changes: Vec<(DiskFile, Change)>| {
        changes.iter().for_each(|(file, change)| contents.change(*file, change));
        contents.clone()
    };
    follow(recorder.take());
    for number in 1..=9 {
        device.write_mark(&mark(number)).unwrap();
        let changes = recorder.take();
        let [(DiskFile::Meta, Change::Write(offset, bytes))] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert!(bytes.len() <= 128 && *offset >= 2 * 4096, "{} at {offset}", bytes.len());
        let contents = follow(changes);
        for arrived in [Arrived::Nothing, Arrived::Everything, Arrived::Random(number.into())] {
            let dir = fast_dir();
            contents.cut(arrived).write_to(dir.path());
            let device = open(dir.path()).unwrap();
            assert_eq!(check(&device, "marked"), Some(20));
            let found = (1..=number).find(|number| device.mark() == Some(mark(*number)));
            assert_eq!(found.is_none(), device.mark().is_none());
            assert!(!matches!(arrived, Arrived::Everything) || found == Some(number));
        }
    }
}

#[test]
fn replay_marks_stay_until_they_are_removed() {
    let dir = fast_dir();
    run(&open(dir.path()).unwrap(), None, &mut Progress::default()).unwrap();
    let before = contents(dir.path());
    for open_number in 0..3 {
        let device = open(dir.path()).unwrap();
        let marks = device.replay_marks().unwrap().expect("a file device has them");
        assert_eq!(marks.words().len(), 512);
        for (at, word) in (0..).zip(marks.words()) {
            let expected = if open_number == 0 { 0 } else { at * 1000 + open_number };
            assert_eq!(word.swap(at * 1000 + open_number + 1, Ordering::Relaxed), expected);
        }
        // The device goes away without having been accepted: that file is all that is left.
        drop((marks, device));
        let mut after = contents(dir.path());
        assert_eq!(after.remove("replay").map(|bytes| bytes.len()), Some(4096));
        assert!(after == before);
    }
    let device = open(dir.path()).unwrap();
    device.replay_marks().unwrap().unwrap().remove().unwrap();
    assert!(contents(dir.path()) == before);
    let marks = device.replay_marks().unwrap().unwrap();
    assert!(marks.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

/// A disk without room for one more file.
#[derive(Debug)]
struct NoFileMore;

impl DiskHook for NoFileMore {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        match call.file {
            DiskFile::Replay => Outcome::Fail(28),
            _ => Outcome::Proceed,
        }
    }
}

/// That the disk is full is told from a failure, and in words.
#[test]
fn replay_marks_on_a_full_disk_are_refused() {
    let dir = fast_dir();
    run(&open(dir.path()).unwrap(), None, &mut Progress::default()).unwrap();
    let before = contents(dir.path());
    let device = File::open(dir.path(), &options(Some(Arc::new(NoFileMore)))).unwrap();
    let full = device.replay_marks().unwrap_err();
    assert!(full.is_limit(), "{full:?}");
    let text = full.to_string();
    assert!(text.starts_with("the disk is full: the file system of "), "{text}");
    assert!(
        text.contains("/replay has no room for 4096 bytes") && !text.contains("limit"),
        "{text}"
    );
    drop(device);
    assert!(contents(dir.path()) == before);
}
