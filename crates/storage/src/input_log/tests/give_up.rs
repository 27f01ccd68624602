//! The end of a log that is given up on purpose, and the records that belong to no stream.

use super::device::TestDevice;
use super::*;
use crate::ids::{EpochNumber, Position};
use crate::input_log::CommittedRange;
use pmem::AnyDevice;

const LIMIT: u64 = 64 * SEGMENT_BYTES;
const EPOCHS: u64 = 4;

fn streams_of(epoch: u64) -> Vec<Vec<u8>> {
    vec![Random::new(epoch).bytes(PAYLOAD_BYTES + 40 * epoch as usize)]
}

fn port(device: &Arc<TestDevice>) -> Port {
    Port::new(AnyDevice::of(device), 0)
}

/// Four epochs under a program; calls wait for epoch 3 (which took them) and for epoch 5.
fn logged() -> Arc<TestDevice> {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log.write_program(&mut port(&device), b"program").unwrap();
    for epoch in 1..=EPOCHS {
        log_epoch(&log, &device, epoch, &streams_of(epoch)).unwrap();
        if epoch == 2 || epoch == EPOCHS {
            log.write_deferred_calls(&mut port(&device), EpochNumber(epoch + 1), &[epoch as u8; 9])
                .unwrap();
            log.make_durable().unwrap();
        }
    }
    device
}

/// O-54: everything after the chosen epoch goes, everything before it stays, with the program and
/// the calls that wait for the next epoch; and the log goes on from there.
#[test]
fn o_54_what_is_given_up_is_all_after_an_epoch() {
    for last in 0..=EPOCHS {
        let device = logged();
        let (log, _) = open(&device, 0).unwrap();
        let before = log.bytes_in_use();
        drop(log);
        let given_up = InputLog::give_up(
            &AnyDevice::of(&device),
            INSTANCE,
            SEGMENT_BYTES,
            CommittedRange { checkpoint: EpochNumber(0), last: EpochNumber(last) },
        )
        .unwrap();
        let mut removed: Vec<u64> = (last + 1..=EPOCHS).collect();
        removed.extend((last < EPOCHS).then_some(EPOCHS + 1));
        assert_eq!(
            given_up.epochs.iter().map(|epoch| epoch.0).collect::<Vec<_>>(),
            removed,
            "after {last}"
        );

        let (log, recovered) = open(&device, 0).unwrap();
        assert_eq!(committed(&recovered), (1..=last).collect::<Vec<_>>());
        assert!(recovered.uncommitted.is_empty(), "after {last}: {:?}", recovered.uncommitted);
        for epoch in 1..=last {
            assert_eq!(log.read_epoch(EpochNumber(epoch)).unwrap().streams, streams_of(epoch));
        }
        assert_eq!(log.program().as_deref(), Some(&b"program"[..]), "after {last}");
        for epoch in [3, 5] {
            let is_kept = epoch <= last + 1;
            let deferred_calls = is_kept.then(|| vec![epoch as u8 - 1; 9]);
            assert_eq!(
                log.deferred_calls(EpochNumber(epoch)).unwrap(),
                deferred_calls,
                "after {last}, calls of {epoch}"
            );
        }
        let erased = u64::from(given_up.segments) * SEGMENT_BYTES;
        assert_eq!(log.bytes_in_use() + erased, before, "after {last}");
        log_epoch(&log, &device, last + 1, &[b"anew".to_vec()]).unwrap();
        drop(log);
        let (log, _) = open(&device, 0).unwrap();
        assert_eq!(log.read_epoch(EpochNumber(last + 1)).unwrap().streams, [b"anew"]);
    }
}

/// O-65: what committed epochs mean is not known without the program that logged them.
#[test]
fn o_65_a_log_that_lost_its_program_is_refused() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log.write_program(&mut port(&device), &[7; 100]).unwrap();
    log_epoch(&log, &device, 1, &streams_of(1)).unwrap();
    let mut bytes = device.log();
    // The first segment is the program's.
    bytes[..SEGMENT_BYTES as usize].fill(0);
    let device = Arc::new(TestDevice::with_log(bytes, LIMIT));
    let error = open(&device, 0).err().expect("epoch 1 is of a program");
    assert!(matches!(error, LogError::ProgramLost { epoch: EpochNumber(1) }), "{error}");
}

/// O-54: of a log that another store left, everything goes, and a program that was lost is written
/// as one that is not known.
#[test]
fn o_54_a_lost_program_is_one_that_is_not_known() {
    let device = logged();
    let other = INSTANCE + 1;
    let given_up = InputLog::give_up(
        &AnyDevice::of(&device),
        other,
        SEGMENT_BYTES,
        CommittedRange { checkpoint: EpochNumber(0), last: EpochNumber(0) },
    )
    .unwrap();
    assert!(given_up.segments > EPOCHS as u32, "{given_up:?}");
    let (log, recovered) =
        InputLog::open(AnyDevice::of(&device), other, SEGMENT_BYTES, EpochNumber(0)).unwrap();
    assert_eq!((committed(&recovered), log.program()), (vec![], Some(vec![])));
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!((committed(&recovered), log.program()), (vec![], None));
}

/// O-54: if what is to be kept cannot be read, nothing is given up.
#[test]
fn o_54_nothing_is_given_up_unless_the_rest_is_whole() {
    let mut image = logged().log();
    // Every segment of the second epoch, wherever they lie: their payloads are damaged.
    let segments = image.len() / SEGMENT_BYTES as usize;
    for segment in 0..segments {
        let segment = &mut image[segment * SEGMENT_BYTES as usize..][..SEGMENT_BYTES as usize];
        let is_second = format::SegmentHeader::parse(segment).is_some_and(|h| h.epoch.get() == 2);
        if is_second {
            segment[HEADER_BYTES + 3] ^= 1;
        }
    }
    for last in 2..=EPOCHS {
        let device = Arc::new(TestDevice::with_log(image.clone(), LIMIT));
        let error = InputLog::give_up(
            &AnyDevice::of(&device),
            INSTANCE,
            SEGMENT_BYTES,
            CommittedRange { checkpoint: EpochNumber(0), last: EpochNumber(last) },
        )
        .unwrap_err();
        assert!(error.to_string().contains("epoch 2"), "{error}");
        assert_eq!(device.log(), image);
    }
    let device = Arc::new(TestDevice::with_log(image, LIMIT));
    InputLog::give_up(
        &AnyDevice::of(&device),
        INSTANCE,
        SEGMENT_BYTES,
        CommittedRange { checkpoint: EpochNumber(0), last: EpochNumber(1) },
    )
    .unwrap();
    assert_eq!(committed(&open(&device, 0).unwrap().1), [1]);
}

/// O-49: a verdict is found again with its epoch, its position and its reason, until the epoch is
/// released.
#[test]
fn o_49_a_verdict_lives_as_long_as_its_epoch() {
    let device = logged();
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!(recovered.verdicts, []);
    let verdict = Verdict {
        epoch: EpochNumber(4),
        position: Position(0x0102_0304),
        reason: "of no use".into(),
    };
    log.write_verdict(&mut port(&device), &verdict).unwrap();
    drop(log);
    let (log, recovered) = open(&device, 3).unwrap();
    assert_eq!(recovered.verdicts, [verdict]);
    log.release(EpochNumber(4));
    drop(log);
    assert_eq!(open(&device, 4).unwrap().1.verdicts, []);
}

/// O-49: the epoch may be released while the log that took the verdict is still open.
#[test]
fn o_49_a_verdict_is_released_with_its_epoch() {
    let device = logged();
    let (log, _) = open(&device, 3).unwrap();
    let before = log.bytes_in_use();
    let verdict = Verdict { epoch: EpochNumber(4), position: Position(1), reason: String::new() };
    log.write_verdict(&mut port(&device), &verdict).unwrap();
    assert!(log.bytes_in_use() > before);
    log.release(EpochNumber(4));
    assert!(log.bytes_in_use() < before);
}

/// A newer program takes the place of the one before it, also in space.
#[test]
fn o_65_the_newest_program_counts() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    assert_eq!(log.program(), None);
    for length in [3, 0, 2 * PAYLOAD_BYTES, 7] {
        let program = Random::new(length as u64).bytes(length);
        log.write_program(&mut port(&device), &program).unwrap();
        assert_eq!(log.program().as_ref(), Some(&program));
        let (again, _) = open(&device, 0).unwrap();
        assert_eq!(again.program().as_ref(), Some(&program));
        assert_eq!(again.bytes_in_use(), log.bytes_in_use(), "of the one before nothing is left");
    }
}
