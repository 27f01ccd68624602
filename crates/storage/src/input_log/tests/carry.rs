//! Calls that an epoch hands over to the next one.

use super::device::TestDevice;
use super::*;

const LIMIT: u64 = 64 * SEGMENT_BYTES;

fn write_carry(log: &InputLog<TestDevice>, device: &Arc<TestDevice>, epoch: u64, bytes: &[u8]) {
    log.write_carry(&mut Port::new(device.clone(), 0), epoch, bytes).unwrap();
    log.make_durable().unwrap();
}

#[test]
fn carry_round_trip_and_release() {
    for len in [0, 1, PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 5 * PAYLOAD_BYTES + 3] {
        let device = Arc::new(TestDevice::new(LIMIT));
        let (log, _) = open(&device, 0).unwrap();
        log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
        let bytes = Random::new(len as u64).bytes(len);
        write_carry(&log, &device, 2, &bytes);
        assert_eq!(log.carry(2).unwrap().as_ref(), Some(&bytes));
        log.release(1);
        assert_eq!(log.carry(2).unwrap().as_ref(), Some(&bytes), "still needed by epoch 2");

        let (log, recovered) = open(&device, 1).unwrap();
        assert!(recovered.sealed.is_empty() && recovered.unsealed.is_empty());
        assert_eq!(log.carry(2).unwrap(), Some(bytes));
        assert_eq!((log.carry(1).unwrap(), log.carry(3).unwrap()), (None, None));
        log_epoch(&log, &device, 2, &[]).unwrap();
        assert_eq!(log.summary()[0].carry_bytes, Some(len as u64));
        log.release(2);
        assert_eq!((log.carry(2).unwrap(), log.bytes_in_use()), (None, 0));
        let (log, _) = open(&device, 2).unwrap();
        assert_eq!((log.carry(2).unwrap(), log.bytes_in_use()), (None, 0));
    }
}

/// A torn carry of an epoch that is not sealed reads as none; the checkpoint knows whether it must
/// exist.
#[test]
fn torn_carry_reads_as_none() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    device.take_history();
    write_carry(&log, &device, 2, &[7; 2 * PAYLOAD_BYTES]);
    for write in device.take_history() {
        let mut image = device.log();
        image[write.offset as usize + 70] ^= 1;
        let (log, _) = open(&Arc::new(TestDevice::with_log(image, LIMIT)), 1).unwrap();
        assert_eq!((log.carry(2).unwrap(), log.bytes_in_use()), (None, 0));
    }
}

/// A carry that is written again replaces that of its own epoch, and no other one.
#[test]
fn a_carry_replaces_that_of_its_epoch() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    for epoch in 1..=3 {
        log_epoch(&log, &device, epoch, &[vec![1; 10]]).unwrap();
        write_carry(&log, &device, epoch + 1, &[epoch as u8; 20]);
    }
    let in_use = log.bytes_in_use();
    write_carry(&log, &device, 4, b"again");
    assert_eq!(log.bytes_in_use(), in_use);
    let (log, _) = open(&device, 0).unwrap();
    write_carry(&log, &device, 4, b"and again");
    for (epoch, bytes) in [(2, &[1; 20][..]), (3, &[2; 20]), (4, b"and again")] {
        assert_eq!(log.carry(epoch).unwrap().as_deref(), Some(bytes), "epoch {epoch}");
    }
    assert_eq!(log.bytes_in_use(), in_use);
}

/// The seal names the carry: losing it would make replay compute something else.
#[test]
fn lost_carry_of_a_sealed_epoch_is_corruption() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    device.take_history();
    write_carry(&log, &device, 2, &[7; 99]);
    let carry = device.take_history().remove(0);
    log_epoch(&log, &device, 2, &[vec![2; 10]]).unwrap();
    let mut image = device.log();
    image[carry.offset as usize + 64] ^= 1;
    let damaged = Arc::new(TestDevice::with_log(image, LIMIT));
    let error = open(&damaged, 1).map(|_| ()).unwrap_err();
    assert!(matches!(error, LogError::CarryDamaged { epoch: 2, bytes: 99 }), "{error}");
    let (log, recovered) = open(&damaged, 0).unwrap();
    assert_eq!(sealed(&recovered), [1, 2], "replay of epoch 1 makes the carry again");
    assert_eq!(log.carry(2).unwrap(), None);
}

/// Replay writes a carry again, over the first one; it is freed with its epoch.
#[test]
fn carry_written_again_by_replay() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 10]]).unwrap();
    write_carry(&log, &device, 2, b"same");
    drop(log);
    let (log, _) = open(&device, 0).unwrap();
    write_carry(&log, &device, 2, b"same");
    let (log, _) = open(&device, 1).unwrap();
    assert_eq!(log.carry(2).unwrap().unwrap(), b"same");
    assert_eq!(log.bytes_in_use(), SEGMENT_BYTES);
    log_epoch(&log, &device, 2, &[]).unwrap();
    log.release(2);
    assert_eq!(log.bytes_in_use(), 0);
}

/// A carry whose epoch could still be undone by a crash would survive what it follows from.
#[test]
#[should_panic(expected = "carry to epoch 2 but only 0 is durable")]
fn carry_from_an_epoch_that_is_not_durable() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    let info = log_streams(&log, &device, 1, &[]).unwrap();
    log.seal(&mut Port::new(device.clone(), 0), &info).unwrap();
    let _ = log.write_carry(&mut Port::new(device.clone(), 0), 2, b"early");
}
