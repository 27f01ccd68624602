//! Calls that an epoch hands over to the next one.

use super::device::TestDevice;
use super::*;
use crate::ids::EpochNumber;
use pmem::AnyDevice;

const LIMIT: u64 = 64 * SEGMENT_BYTES;

fn write_deferred_calls(log: &InputLog, device: &Arc<TestDevice>, epoch: u64, bytes: &[u8]) {
    log.write_deferred_calls(&mut Port::new(AnyDevice::of(device), 0), EpochNumber(epoch), bytes)
        .unwrap();
    log.make_durable().unwrap();
}

#[test]
fn deferred_record_round_trip_and_release() {
    for len in [0, 1, PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 5 * PAYLOAD_BYTES + 3] {
        let device = Arc::new(TestDevice::new(LIMIT));
        let (log, _) = open(&device, 0).unwrap();
        log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
        let bytes = Random::new(len as u64).bytes(len);
        write_deferred_calls(&log, &device, 2, &bytes);
        assert_eq!(log.deferred_calls(EpochNumber(2)).unwrap().as_ref(), Some(&bytes));
        log.release(EpochNumber(1));
        assert_eq!(
            log.deferred_calls(EpochNumber(2)).unwrap().as_ref(),
            Some(&bytes),
            "still needed by epoch 2"
        );

        let (log, recovered) = open(&device, 1).unwrap();
        assert!(recovered.committed.is_empty() && recovered.uncommitted.is_empty());
        assert_eq!(log.deferred_calls(EpochNumber(2)).unwrap(), Some(bytes));
        assert_eq!(
            (
                log.deferred_calls(EpochNumber(1)).unwrap(),
                log.deferred_calls(EpochNumber(3)).unwrap()
            ),
            (None, None)
        );
        log_epoch(&log, &device, 2, &[]).unwrap();
        assert_eq!(log.summary()[0].deferred_bytes, Some(len as u64));
        log.release(EpochNumber(2));
        assert_eq!((log.deferred_calls(EpochNumber(2)).unwrap(), log.bytes_in_use()), (None, 0));
        let (log, _) = open(&device, 2).unwrap();
        assert_eq!((log.deferred_calls(EpochNumber(2)).unwrap(), log.bytes_in_use()), (None, 0));
    }
}

/// A torn record of deferred calls of an epoch that is not committed reads as none; the checkpoint
/// knows whether it must exist.
#[test]
fn torn_deferred_record_reads_as_none() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    device.take_history();
    write_deferred_calls(&log, &device, 2, &[7; 2 * PAYLOAD_BYTES]);
    for write in device.take_history() {
        let mut image = device.log();
        image[write.offset as usize + 70] ^= 1;
        let (log, _) = open(&Arc::new(TestDevice::with_log(image, LIMIT)), 1).unwrap();
        assert_eq!((log.deferred_calls(EpochNumber(2)).unwrap(), log.bytes_in_use()), (None, 0));
    }
}

/// A record of deferred calls that is written again replaces that of its own epoch, and no other
/// one.
#[test]
fn a_deferred_record_replaces_that_of_its_epoch() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    for epoch in 1..=3 {
        log_epoch(&log, &device, epoch, &[vec![1; 10]]).unwrap();
        write_deferred_calls(&log, &device, epoch + 1, &[epoch as u8; 20]);
    }
    let in_use = log.bytes_in_use();
    write_deferred_calls(&log, &device, 4, b"again");
    assert_eq!(log.bytes_in_use(), in_use);
    let (log, _) = open(&device, 0).unwrap();
    write_deferred_calls(&log, &device, 4, b"and again");
    for (epoch, bytes) in [(2, &[1; 20][..]), (3, &[2; 20]), (4, b"and again")] {
        assert_eq!(
            log.deferred_calls(EpochNumber(epoch)).unwrap().as_deref(),
            Some(bytes),
            "epoch {epoch}"
        );
    }
    assert_eq!(log.bytes_in_use(), in_use);
}

/// The commit record names the record of deferred calls: losing it would make replay compute
/// something else.
#[test]
fn lost_deferred_record_of_a_committed_epoch_is_corruption() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    device.take_history();
    write_deferred_calls(&log, &device, 2, &[7; 99]);
    let deferred_calls = device.take_history().remove(0);
    log_epoch(&log, &device, 2, &[vec![2; 10]]).unwrap();
    let mut image = device.log();
    image[deferred_calls.offset as usize + 64] ^= 1;
    let damaged = Arc::new(TestDevice::with_log(image, LIMIT));
    let error = open(&damaged, 1).map(|_| ()).unwrap_err();
    assert!(
        matches!(error, LogError::DeferredCallsDamaged { epoch: EpochNumber(2), bytes: 99 }),
        "{error}"
    );
    let (log, recovered) = open(&damaged, 0).unwrap();
    assert_eq!(
        committed(&recovered),
        [1, 2],
        "replay of epoch 1 makes the record of deferred calls again"
    );
    assert_eq!(log.deferred_calls(EpochNumber(2)).unwrap(), None);
}

/// Replay writes a record of deferred calls again, over the first one; it is freed with its epoch.
#[test]
fn deferred_record_written_again_by_replay() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    write_deferred_calls(&log, &device, 2, b"same");
    drop(log);
    let (log, _) = open(&device, 0).unwrap();
    write_deferred_calls(&log, &device, 2, b"same");
    let (log, _) = open(&device, 1).unwrap();
    assert_eq!(log.deferred_calls(EpochNumber(2)).unwrap().unwrap(), b"same");
    assert_eq!(log.bytes_in_use(), SEGMENT_BYTES);
    log_epoch(&log, &device, 2, &[]).unwrap();
    log.release(EpochNumber(2));
    assert_eq!(log.bytes_in_use(), 0);
}

/// A record of deferred calls whose epoch could still be undone by a crash would survive what it
/// follows from.
#[test]
#[should_panic(expected = "record of deferred calls to epoch 2 but only 0 is durable")]
fn deferred_record_from_an_epoch_that_is_not_durable() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    let info = log_streams(&log, &device, 1, &[]).unwrap();
    log.commit(&mut Port::new(AnyDevice::of(&device), 0), &info).unwrap();
    let _ = log.write_deferred_calls(
        &mut Port::new(AnyDevice::of(&device), 0),
        EpochNumber(2),
        b"early",
    );
}
