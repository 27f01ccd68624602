//! Order of calls, failures of the device, and old attempts that still lie around.

use super::device::TestDevice;
use super::*;
use crate::ids::{EpochNumber, Position};
use pmem::AnyDevice;

const LIMIT: u64 = 64 * SEGMENT_BYTES;

/// O-24: the log of an attempt that a crash cut off has good checksums and the right epoch, and
/// must not complete the log of the attempt after it.
#[test]
fn segments_of_an_earlier_attempt_do_not_count() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_streams(&log, &device, 1, &[vec![1; 100], vec![2; 5000]]).unwrap();
    let old = device.log();
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!(recovered.uncommitted, [EpochNumber(1)]);
    // The same epoch again, somewhere else: nothing of the old attempt is overwritten.
    let mut port = Port::new(AnyDevice::of(&device), 9);
    let reason = "x".repeat(8 * PAYLOAD_BYTES);
    log.write_verdict(&mut port, &Verdict { epoch: EpochNumber(1), position: Position(0), reason })
        .unwrap();
    let mut image = device.log();
    image[..old.len()].copy_from_slice(&old);
    device.log_write(&mut pmem::PortState::default(), 0, &image).unwrap();
    device.take_history();
    log_epoch(&log, &device, 1, &[vec![3; 100], vec![4; 5000]]).unwrap();
    for write in device.take_history() {
        let mut torn = device.log();
        torn[write.offset as usize..][..64].fill(0);
        let (_, recovered) = open(&Arc::new(TestDevice::with_log(torn, LIMIT)), 0).unwrap();
        assert!(recovered.committed.is_empty(), "a piece of the old attempt took the place");
    }
    let (log, _) = open(&device, 0).unwrap();
    assert_eq!(log.read_epoch(EpochNumber(1)).unwrap().streams, [vec![3; 100], vec![4; 5000]]);
}

/// O-24: the log of the epoch before, good in every respect, is obsolete after its checkpoint.
#[test]
fn stale_epoch_with_good_checksums_is_ignored() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 100]]).unwrap();
    log_epoch(&log, &device, 2, &[vec![2; 100]]).unwrap();
    let (log, recovered) = open(&device, 1).unwrap();
    assert_eq!(committed(&recovered), [2]);
    assert!(matches!(
        log.read_epoch(EpochNumber(1)),
        Err(LogError::NotLogged { epoch: EpochNumber(1) })
    ));
    let (log, recovered) = open(&device, 2).unwrap();
    assert_eq!((recovered.committed, recovered.uncommitted), (vec![], vec![]));
    assert_eq!((log.bytes_in_use(), log.committed_epoch().0), (0, 2));
}

/// An epoch that was abandoned is begun again; its first segments do not count.
#[test]
fn abandoned_epoch_is_begun_again() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_streams(&log, &device, 1, &[vec![1; 9000], vec![2; 100]]).unwrap();
    assert!(log.bytes_in_use() > 0);
    log.abandon(EpochNumber(1));
    assert_eq!(log.bytes_in_use(), 0);
    log_epoch(&log, &device, 1, &[vec![3; 10]]).unwrap();
    let (log, _) = open(&device, 0).unwrap();
    assert_eq!(log.read_epoch(EpochNumber(1)).unwrap().streams, [vec![3; 10]]);
}

/// O-57: the first failed write or sync is final, and an epoch that was not synced is not durable.
#[test]
fn failures_of_the_device_are_reported() {
    let streams = [vec![1; 9000], vec![2; 100]];
    for writes in 0..3 {
        let device = Arc::new(TestDevice::new(LIMIT));
        let (log, _) = open(&device, 0).unwrap();
        device.fail_after(Some(writes), None);
        let error = log_epoch(&log, &device, 1, &streams).unwrap_err();
        assert!(matches!(error, LogError::Device(_)) && !error.is_limit(), "{error}");
        assert!(log.make_durable().is_err());
    }
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    device.fail_after(None, Some(1));
    log_epoch(&log, &device, 1, &streams).unwrap();
    assert!(log_epoch(&log, &device, 2, &streams).is_err());
    assert!(log.make_durable().is_err());
    device.fail_after(None, Some(0));
    assert!(open(&device, 0).is_err());
}

/// Of a long log all is read that may have to be replayed. Of what a checkpoint settled only the
/// headers are.
#[test]
fn of_a_settled_log_only_headers_are_read() {
    let segments = (1 << 20) / SEGMENT_BYTES + 7;
    let device = Arc::new(TestDevice::new(segments * SEGMENT_BYTES));
    device.grow_log(segments * SEGMENT_BYTES).unwrap();
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; (segments as usize - 4) * PAYLOAD_BYTES]]).unwrap();
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!(committed(&recovered), [1]);
    let headers = segments * HEADER_BYTES as u64;
    let read = headers + (segments - 4) * SEGMENT_BYTES;
    assert!((read..read + SEGMENT_BYTES).contains(&recovered.scanned_bytes));
    assert_eq!(log.bytes_in_use(), (segments - 3) * SEGMENT_BYTES);

    let (log, settled) = open(&device, 1).unwrap();
    assert_eq!((log.bytes_in_use(), settled.scanned_bytes), (0, headers));
}

/// `harden` writes again exactly what it found, and nothing else.
#[test]
fn harden_rewrites_what_was_found() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 9000], vec![2; 100]]).unwrap();
    log.write_deferred_calls(&mut Port::new(AnyDevice::of(&device), 0), EpochNumber(2), &[3; 5000])
        .unwrap();
    log_streams(&log, &device, 2, &[vec![4; 100]]).unwrap();
    let mut expected = device.take_segments();
    expected.pop(); // the stream of the epoch that is not committed
    let before = device.log();
    // A kernel that forgot a failed sync: everything is readable and nothing is on the device.
    let cached = Arc::new(TestDevice::with_log(before.clone(), LIMIT));
    let (log, _) = open(&cached, 0).unwrap();
    log.harden(&mut Port::new(AnyDevice::of(&cached), 0)).unwrap();
    let mut written = cached.take_history();
    for writes in [&mut expected, &mut written] {
        writes.sort_by_key(|write| write.offset);
    }
    let places = |writes: &[super::device::Write]| -> Vec<(u64, Vec<u8>)> {
        writes.iter().map(|write| (write.offset, write.bytes.clone())).collect()
    };
    assert_eq!(places(&written), places(&expected));
    assert_eq!(cached.log(), before);
}

/// O-13: committing in any other order could leave a gap after a crash.
#[test]
#[should_panic(expected = "epoch 1 is durable before the next is committed")]
fn commit_waits_for_the_epoch_before() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    let info = log_streams(&log, &device, 1, &[]).unwrap();
    log.commit(&mut port, &info).unwrap();
    let info = log_streams(&log, &device, 2, &[]).unwrap();
    let _ = log.commit(&mut port, &info);
}

#[test]
#[should_panic(expected = "epoch 2 is committed after 0")]
fn commit_leaves_no_gap() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    let _ = log_epoch(&log, &device, 2, &[]);
}

/// What is released cannot be read any more, as its segments are free, and what follows can.
#[test]
fn a_released_epoch_is_not_read() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    (1..=3).for_each(|epoch| drop(log_epoch(&log, &device, epoch, &[vec![7; 100]]).unwrap()));
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!(recovered.committed.len(), 3);
    log.release(EpochNumber(2));
    let is_there = [1, 2, 3].map(|epoch| match log.read_epoch(EpochNumber(epoch)) {
        Ok(_) => true,
        Err(LogError::NotLogged { .. }) => false,
        Err(other) => panic!("{other}"),
    });
    assert_eq!(is_there, [false, false, true]);
}

#[test]
#[should_panic(expected = "epoch 1 is committed before it is released")]
fn release_of_an_open_epoch() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log.begin(EpochNumber(1), Demand::default()).unwrap();
    log.release(EpochNumber(1));
}

#[test]
#[should_panic(expected = "epoch 1 is begun once")]
fn begin_twice() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log.begin(EpochNumber(1), Demand::default()).unwrap();
    let _ = log.begin(EpochNumber(1), Demand::default());
}

#[test]
#[should_panic(expected = "epoch 1 was not begun, or is committed or abandoned")]
fn start_after_abandon() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log.begin(EpochNumber(1), Demand::default()).unwrap();
    log.abandon(EpochNumber(1));
    log.stream_writer().start(&log, EpochNumber(1), 0);
}
