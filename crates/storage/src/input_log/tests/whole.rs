//! Epochs of one write: stream and commit record in one segment, or in neighbouring ones (O-82).

use super::device::TestDevice;
use super::*;
use crate::ids::EpochNumber;
use crate::input_log::RESERVE_SEGMENTS;
use crate::input_log::format::commit_bytes;
use pmem::AnyDevice;

const LIMIT: u64 = 64 * SEGMENT_BYTES;
const SECTOR: usize = 512;

fn new_log() -> (Arc<TestDevice>, InputLog) {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    (device, log)
}

/// O-82: what fits into a segment with its commit record is written at once, into one place; so are
/// a stream and its commit record in segments behind each other.
#[test]
fn o_82_a_small_epoch_is_one_write_in_one_place() {
    let most = PAYLOAD_BYTES - commit_bytes(1);
    let in_buffer = 15 * PAYLOAD_BYTES;
    for (len, writes, segments) in [
        (0, 1, 1),
        (1, 1, 1),
        (700, 1, 1),
        (most - 1, 1, 1),
        (most, 1, 1),
        (most + 1, 1, 2),
        (PAYLOAD_BYTES, 1, 2),
        (PAYLOAD_BYTES + 1, 1, 3),
        (in_buffer, 1, 16),
        (in_buffer + 1, 2, 17),
        (16 * PAYLOAD_BYTES + 1, 3, 18),
    ] {
        let (device, log) = new_log();
        let bytes = Random::new(len as u64).bytes(len);
        log_whole(&log, &device, 1, &bytes).unwrap();
        assert_eq!(device.take_history().len(), writes, "{len} bytes");
        log.make_durable().unwrap();
        let summary = log.summary();
        assert_eq!((summary[0].segments, summary[0].bytes), (segments, len as u64));
        let (again, recovered) = open(&device, 0).unwrap();
        assert_eq!(recovered.committed, summary);
        let read = again.read_epoch(EpochNumber(1)).unwrap();
        assert_eq!(read.streams, [bytes]);
        assert_eq!((read.commit.calls, read.commit.timestamp_ns, read.commit.seed), (10, 1000, 7));
        // It is held, and hardened as anything else.
        again.harden(&mut Port::new(AnyDevice::of(&device), 0)).unwrap();
        log_whole(&again, &device, 2, b"next").unwrap();
        again.make_durable().unwrap();
        assert_eq!(committed(&open(&device, 0).unwrap().1), [1, 2]);
        assert_eq!(committed(&open(&device, 1).unwrap().1), [2]);
    }
}

/// O-43: an epoch is one write also where it takes all that it was promised and nothing else is
/// free. Where what is free are no neighbours it is several.
#[test]
fn o_43_an_epoch_of_several_segments_needs_no_more_than_its_promise() {
    let bytes = Random::new(3).bytes(3 * PAYLOAD_BYTES);
    let promised = 5 + u64::from(RESERVE_SEGMENTS);
    for (more, writes) in [(0, 1), (1, 3)] {
        let device = Arc::new(TestDevice::new((promised + more) * SEGMENT_BYTES));
        let (log, _) = open(&device, 0).unwrap();
        if more > 0 {
            log.grow(promised * SEGMENT_BYTES, (promised + more) * SEGMENT_BYTES).unwrap();
            log.space().free.grow((promised + more) as u32);
            log.space().free.remove(2);
        }
        log_whole(&log, &device, 1, &bytes).unwrap();
        assert_eq!(device.take_history().len(), writes, "{more} segments more");
        log.make_durable().unwrap();
        let (again, _) = open(&device, 0).unwrap();
        assert_eq!(again.read_epoch(EpochNumber(1)).unwrap().streams, std::slice::from_ref(&bytes));
    }
}

/// What a log with one record may come to: nothing, or the record of one of two images.
fn check_mixture(image: Vec<u8>, checkpoint: u64, whole: [&[u8]; 2]) -> Option<usize> {
    let device = Arc::new(TestDevice::with_log(image, LIMIT));
    let (log, recovered) = open(&device, checkpoint).unwrap();
    if recovered.committed.is_empty() {
        return None;
    }
    assert_eq!(committed(&recovered), [checkpoint + 1]);
    let read = log.read_epoch(EpochNumber(checkpoint + 1)).unwrap();
    let which = whole.iter().position(|bytes| read.streams == [bytes.to_vec()]);
    assert!(which.is_some(), "the stream is neither the old one nor the new one");
    which
}

/// O-82: each way to mix the sectors of a record with those of the one that was in its place: of an
/// older epoch, of another attempt to log the same epoch, and of another store.
#[test]
fn o_82_a_record_counts_only_whole() {
    let (old, new) = (Random::new(1).bytes(2900), Random::new(2).bytes(3100));
    let image = |epochs: &[(u64, &[u8])], instance| {
        let device = Arc::new(TestDevice::new(LIMIT));
        let (log, _) =
            InputLog::open(AnyDevice::of(&device), instance, SEGMENT_BYTES, EpochNumber(0))
                .unwrap();
        for (epoch, bytes) in epochs {
            log_whole(&log, &device, *epoch, bytes).unwrap();
            log.make_durable().unwrap();
            if *epoch < epochs.last().unwrap().0 {
                log.release(EpochNumber(*epoch));
            }
        }
        device.log()[..SEGMENT_BYTES as usize].to_vec()
    };
    let longer = Random::new(3).bytes(3500);
    for (before, after, checkpoint) in [
        (image(&[(1, &old)], INSTANCE), image(&[(1, &old), (2, &new)], INSTANCE), 1),
        (image(&[(1, &longer)], INSTANCE), image(&[(1, &longer), (2, &new)], INSTANCE), 1),
        (image(&[(1, &old)], INSTANCE), image(&[(1, &new)], INSTANCE), 0),
        (image(&[(1, &old)], INSTANCE + 1), image(&[(1, &new)], INSTANCE), 0),
        (vec![0; SEGMENT_BYTES as usize], image(&[(1, &new)], INSTANCE), 0),
    ] {
        let mut counts = [0; 3];
        for mask in 0..1_u32 << (SEGMENT_BYTES as usize / SECTOR) {
            let mut mixed = before.clone();
            for sector in 0..SEGMENT_BYTES as usize / SECTOR {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                if mask >> sector & 1 == 1 {
                    mixed[range.clone()].copy_from_slice(&after[range]);
                }
            }
            match check_mixture(mixed, checkpoint, [&old, &new]) {
                None => counts[2] += 1,
                Some(which) => counts[which] += 1,
            }
        }
        // Sectors behind the record do not count.
        assert!(counts[1] >= 1 && counts[1] <= 4, "{counts:?}");
        assert!(counts[2] > 100, "{counts:?}");
    }
}

/// O-82: a record that a write has cut off anywhere is none.
#[test]
fn o_82_a_cut_record_is_none() {
    let (device, log) = new_log();
    let bytes = Random::new(9).bytes(300);
    log_whole(&log, &device, 1, &bytes).unwrap();
    let end = HEADER_BYTES + bytes.len() + commit_bytes(1);
    for cut in 0..end {
        let mut image = device.log();
        image[cut..].fill(0);
        let is_committed = check_mixture(image.clone(), 0, [&bytes, &bytes]).is_some();
        // Zeros that were there anyway are no loss.
        assert_eq!(is_committed, image[..end] == device.log()[..end], "cut at {cut}");
    }
}

/// O-82: a record that was torn stays out of the log, whatever is written over it later: other
/// calls and the padding behind them may bring just the sectors that it lacked.
#[test]
fn o_82_a_later_record_completes_no_torn_one() {
    const SECTORS: usize = SEGMENT_BYTES as usize / SECTOR;
    // Zeros are what calls and paddings of all epochs have in common.
    let (noise, zeros) = (Random::new(4).bytes(3500), vec![0; 3500]);
    for shorter in [3500, 600] {
        for lacks in 1..SECTORS - 1 {
            let what = format!("sector {lacks} is lacking, then {shorter} bytes");
            let device = Arc::new(TestDevice::new(LIMIT));
            let (log, _) = open(&device, 0).unwrap();
            for epoch in [1, 2] {
                log_whole(&log, &device, epoch, &noise).unwrap();
                log.make_durable().unwrap();
            }
            // Epoch 3 keeps the first segment, and 4 is torn in the second.
            log.release(EpochNumber(2));
            log_whole(&log, &device, 3, &noise).unwrap();
            log.make_durable().unwrap();
            let before = device.log();
            log_whole(&log, &device, 4, &zeros).unwrap();
            let mut torn = device.log();
            let sector = SEGMENT_BYTES as usize + lacks * SECTOR;
            torn[sector..sector + SECTOR].copy_from_slice(&before[sector..sector + SECTOR]);

            // It is logged again, in the first segment, and answered; then 5 takes its place.
            let device = Arc::new(TestDevice::with_log(torn, LIMIT));
            let (log, recovered) = open(&device, 3).unwrap();
            assert_eq!(
                (committed(&recovered), recovered.uncommitted),
                (vec![], vec![EpochNumber(4)]),
                "{what}"
            );
            log_whole(&log, &device, 4, b"answered").unwrap();
            log.make_durable().unwrap();
            let before = device.log();
            log_whole(&log, &device, 5, &zeros[..shorter]).unwrap();
            let after = device.log();
            for mask in 0..1_u32 << SECTORS {
                let mut mixed = before.clone();
                for sector in (0..SECTORS).filter(|sector| mask >> sector & 1 == 1) {
                    let at = SEGMENT_BYTES as usize + sector * SECTOR;
                    mixed[at..at + SECTOR].copy_from_slice(&after[at..at + SECTOR]);
                }
                let device = Arc::new(TestDevice::with_log(mixed, LIMIT));
                let (log, _) = open(&device, 3)
                    .unwrap_or_else(|error| panic!("{what}, sectors {mask:b}: {error}"));
                let read = log.read_epoch(EpochNumber(4)).unwrap();
                assert_eq!(read.streams, [b"answered".to_vec()], "{what}, sectors {mask:b}");
            }
        }
    }
}

/// O-24, O-82: what a crash has left is no longer there, durably, before anything else is written;
/// an open alone changes nothing, and a crash in between leaves less of the same.
#[test]
fn o_24_leftovers_are_erased_before_anything_is_logged() {
    let mut erased = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (device, log) = new_log();
        log_whole(&log, &device, 1, &random.bytes(3000)).unwrap();
        log.make_durable().unwrap();
        match seed % 2 {
            0 => log_whole(&log, &device, 2, &random.bytes(3000)).unwrap(),
            _ => drop(log_streams(&log, &device, 2, &[random.bytes(9000), vec![1]]).unwrap()),
        }
        let device = Arc::new(TestDevice::with_log(device.crash_image(&mut random), LIMIT));
        let (log, recovered) = open(&device, 0).unwrap();
        assert!(device.take_history().is_empty(), "seed {seed}: an open writes nothing");
        let last = log.committed_epoch();
        let is_torn = !log.space().leftovers.is_empty();
        assert!(is_torn || recovered.uncommitted.is_empty(), "seed {seed}");

        device.fail_after(Some(log.space().leftovers.len() as u64), Some(0));
        let failed = log.begin(last.next(), demand(&[]));
        assert_eq!(failed.is_err(), is_torn, "seed {seed}: it is erased before the epoch is begun");
        let erasing = device.take_history();
        assert!(erasing.iter().all(|write| write.bytes == [0; HEADER_BYTES]), "seed {seed}");
        erased += erasing.len();
        for image in [device.crash_image(&mut random), device.log()] {
            let device = Arc::new(TestDevice::with_log(image, LIMIT));
            let (log, _) = open(&device, 0).unwrap();
            assert_eq!(log.committed_epoch(), last, "seed {seed}");
            log.begin(last.next(), demand(&[vec![0; 10]])).unwrap();
            let (log, recovered) = open(&device, 0).unwrap();
            assert_eq!(recovered.uncommitted, [], "seed {seed}");
            assert!(log.space().leftovers.is_empty(), "seed {seed}: all of it is erased");
            assert_eq!(device.crash_image(&mut random), device.log(), "seed {seed}: durably");
        }
    }
    assert!(erased > 100, "{erased} headers");
}
