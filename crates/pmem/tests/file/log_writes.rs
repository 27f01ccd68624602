//! Writes to the log that are durable when they return.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use pmem::{Device, DiskFile, File, Port};

use crate::disk::{Change, Recorder};
use crate::scenario::{fast_dir, open, options};

const PAGE: usize = 4096;

fn of_log(recorder: &Recorder) -> (usize, usize) {
    let changes = recorder.take();
    let count = |is: fn(&Change) -> bool| {
        changes.iter().filter(|(file, change)| *file == DiskFile::Log && is(change)).count()
    };
    (count(|c| matches!(c, Change::Write(..))), count(|c| matches!(c, Change::Sync)))
}

/// O-13: what is written at once is durable when the write has returned, and what is not is so
/// after the sync. The first sync is for what the process before has written.
#[test]
fn o_13_every_write_is_synced_once() {
    let dir = fast_dir();
    let recorder = Arc::new(Recorder::default());
    let device = Arc::new(File::open(dir.path(), &options(Some(recorder.clone()))).unwrap());
    device.accept().unwrap();
    device.grow_log(1 << 20).unwrap();
    let mut port = Port::new(Arc::clone(&device), 0);
    recorder.take();
    port.log_write_now(0, &[1; PAGE]).unwrap();
    assert_eq!(of_log(&recorder), (1, 0), "what was there before is not synced yet");
    device.log_sync().unwrap();
    assert_eq!(of_log(&recorder), (0, 1));
    device.log_sync().unwrap();
    assert_eq!(of_log(&recorder), (0, 0), "nothing was written");
    let can = device.description().note.contains("one direct write");
    assert_eq!(
        (device.log_unit(false), device.log_unit(true)),
        (PAGE, if can { 512 } else { PAGE })
    );
    for (at, bytes) in [(PAGE, vec![2; 2 * PAGE]), (PAGE, vec![3; device.log_unit(true)])] {
        port.log_write_now(at as u64, &bytes).unwrap();
        assert_eq!(of_log(&recorder), (1, usize::from(can)));
        device.log_sync().unwrap();
        assert_eq!(of_log(&recorder), (0, usize::from(!can)));
    }
    // A write that waits for its sync, and one behind it; parts of sectors; more than the room.
    for (offset, len, now) in
        [(0, PAGE, false), (0, 100, true), (100, PAGE, true), (0, 1 << 17, true)]
    {
        let bytes = vec![3; len];
        match now {
            true => port.log_write_now(offset, &bytes).unwrap(),
            false => port.log_write(offset, &bytes).unwrap(),
        }
        assert_eq!(of_log(&recorder), (1, 0), "{len} bytes at {offset}");
        device.log_sync().unwrap();
        assert_eq!(of_log(&recorder), (0, 1), "{len} bytes at {offset}");
    }
}

/// Direct writes and others of the same pages, in any order, leave what was written last.
#[test]
fn writes_of_both_kinds_mix() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = vec![0; 1 << 20];
    {
        let device = Arc::new(open(dir.path()).unwrap());
        device.accept().unwrap();
        device.grow_log(1 << 20).unwrap();
        let mut port = Port::new(Arc::clone(&device), 0);
        device.log_sync().unwrap();
        for number in 0..400_usize {
            let page = number * 37 % 64;
            let bytes = vec![(number % 250) as u8 + 1; (number % 5 + 1) * PAGE];
            let (at, len) = match number % 4 {
                0 => (page * PAGE + number, bytes.len() - 17),
                1 => (page * PAGE + number % 7 * 512, number % 5 * 512 + 512),
                _ => (page * PAGE, bytes.len()),
            };
            match number % 4 {
                0 => port.log_write(at as u64, &bytes[..len]).unwrap(),
                _ => port.log_write_now(at as u64, &bytes[..len]).unwrap(),
            }
            expected[at..at + len].copy_from_slice(&bytes[..len]);
            if number % 2 == 1 {
                device.log_sync().unwrap();
            }
            let mut found = vec![0; len];
            device.log_read(at as u64, &mut found).unwrap();
            assert_eq!(found, expected[at..at + len], "write {number}");
        }
    }
    let mut found = vec![0; expected.len()];
    let log = std::fs::File::open(dir.path().join("log")).unwrap();
    log.read_exact_at(&mut found, 0).unwrap();
    assert!(found == expected);
}
