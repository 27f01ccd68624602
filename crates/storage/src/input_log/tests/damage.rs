//! Whatever happens to its bytes, an epoch reads back unchanged or not at all (O-24, O-54).

use super::device::TestDevice;
use super::format::SegmentHeader;
use super::*;
use crate::ids::EpochNumber;
use pmem::AnyDevice;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// Two committed epochs, small enough to try everything.
fn small_log() -> (Vec<u8>, Vec<Vec<Vec<u8>>>) {
    let device = Arc::new(TestDevice::new(16 * SEGMENT_BYTES));
    let (log, _) = open(&device, 0).unwrap();
    let mut random = Random::new(1);
    let epochs =
        vec![vec![random.bytes(70), random.bytes(PAYLOAD_BYTES + 9)], vec![random.bytes(33)]];
    for (at, streams) in epochs.iter().enumerate() {
        log_epoch(&log, &device, at as u64 + 1, streams).unwrap();
    }
    let mut bytes = device.log();
    bytes.truncate((log.bytes_in_use() + SEGMENT_BYTES) as usize); // one unused segment stays
    (bytes, epochs)
}

/// Opens a damaged log and returns the committed epochs, or `None` if the damage was reported.
fn check_damaged(log: Vec<u8>, epochs: &[Vec<Vec<u8>>], what: &str) -> Option<Vec<u64>> {
    let device = Arc::new(TestDevice::with_log(log, u64::MAX));
    match open(&device, 0) {
        Ok((log, recovered)) => {
            for epoch in committed(&recovered) {
                let read = log.read_epoch(EpochNumber(epoch)).unwrap();
                assert_eq!(read.streams, epochs[epoch as usize - 1], "{what}: epoch {epoch}");
                assert_eq!(read.commit.calls, epoch * 10, "{what}: epoch {epoch}");
            }
            Some(committed(&recovered))
        }
        Err(error) => {
            assert!(error.is_corrupt(), "{what}: {error}");
            assert!(error.to_string().contains("epoch 1"), "{what}: {error}");
            None
        }
    }
}

/// O-24: a stream that is whole by itself and of the same attempt, but not the one that was
/// committed: as a copy of the store has it that went on by itself.
#[test]
fn a_stream_of_a_copy_does_not_count() {
    let logged = |stream: Vec<u8>| {
        let device = Arc::new(TestDevice::new(16 * SEGMENT_BYTES));
        let (log, _) = open(&device, 0).unwrap();
        device.take_history();
        log_epoch(&log, &device, 1, &[stream]).unwrap();
        let write = device.take_history().remove(0);
        (device.log(), write)
    };
    let (own, segment) = logged(vec![1; 200]);
    for other in [vec![2; 200], vec![1; 199], vec![3; 300]] {
        let (_, stream) = logged(other);
        assert_eq!(stream.offset, segment.offset, "both took the same segment");
        let mut mixed = own.clone();
        mixed[stream.offset as usize..][..stream.bytes.len()].copy_from_slice(&stream.bytes);
        let found = open(&Arc::new(TestDevice::with_log(mixed, u64::MAX)), 0);
        // The last epoch of a log may be torn, so it is not committed then.
        let (_, recovered) = found.unwrap();
        assert!(committed(&recovered).is_empty(), "a stream of another past was read");
    }
}

/// O-24: flip every byte.
#[test]
fn every_flipped_byte_is_harmless_or_reported() {
    let (log, epochs) = small_log();
    let (mut untouched, mut reported, mut uncommitted) = (0, 0, 0);
    for at in 0..log.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut flipped = log.clone();
            flipped[at] ^= mask;
            match check_damaged(flipped, &epochs, &format!("byte {at} ^ {mask:#x}")) {
                None => reported += 1,
                Some(committed) if committed == [1, 2] => untouched += 1,
                Some(committed) => {
                    assert_eq!(committed, [1], "byte {at}: only the last epoch may seem torn");
                    uncommitted += 1;
                }
            }
        }
    }
    assert!(untouched > 0 && reported > 0 && uncommitted > 0);
}

/// O-24: truncate at every byte, once by zeros and once by a shorter log space.
#[test]
fn every_truncation_is_harmless_or_reported() {
    let (log, epochs) = small_log();
    for end in 0..log.len() {
        let mut zeroed = log.clone();
        zeroed[end..].fill(0);
        check_damaged(zeroed, &epochs, &format!("zeros from {end}"));
        let committed = check_damaged(log[..end].to_vec(), &epochs, &format!("cut at {end}"));
        assert!(end > 0 || committed == Some(Vec::new()));
    }
}

/// O-24: an epoch is committed if and only if every segment that was written for it is there.
#[test]
fn every_subset_of_segments() {
    let device = Arc::new(TestDevice::new(64 * SEGMENT_BYTES));
    let (log, _) = open(&device, 0).unwrap();
    let mut random = Random::new(2);
    let streams =
        vec![random.bytes(10), random.bytes(4 * PAYLOAD_BYTES), Vec::new(), random.bytes(5000)];
    let mut full = device.log();
    let before = full.clone();
    log_epoch(&log, &device, 1, &streams).unwrap();
    full.resize(device.log().len(), 0);
    let writes = device.take_segments();
    assert_eq!(writes.len(), 8, "seven segments of streams and a commit record");
    for subset in 0..1_u32 << writes.len() {
        let mut image = before.clone();
        image.resize(full.len(), 0);
        for (at, write) in writes.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1) {
            assert!(at < writes.len());
            image[write.offset as usize..][..write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let device = Arc::new(TestDevice::with_log(image, u64::MAX));
        let (log, recovered) = open(&device, 0).unwrap();
        let complete = subset == (1 << writes.len()) - 1;
        assert_eq!(committed(&recovered), if complete { vec![1] } else { vec![] });
        let torn = if complete || subset == 0 { vec![] } else { vec![EpochNumber(1)] };
        assert_eq!(recovered.uncommitted, torn);
        if complete {
            assert_eq!(log.read_epoch(EpochNumber(1)).unwrap().streams, streams);
        } else {
            assert_eq!(log.bytes_in_use(), 0, "what is not committed is free");
        }
    }
}

/// O-24: present but incomplete is not an error, unless a later epoch proves that it once was
/// complete.
#[test]
fn damage_before_a_committed_epoch_names_the_place() {
    let (log, epochs) = small_log();
    let mut payload = log.clone();
    payload[HEADER_BYTES + 3] ^= 1; // first segment: stream 0 of epoch 1
    let open_error = |log: Vec<u8>| {
        open(&Arc::new(TestDevice::with_log(log, u64::MAX)), 0).map(|_| ()).unwrap_err()
    };
    match open_error(payload) {
        LogError::Damaged { epoch: EpochNumber(1), stream: 0, ordinal: 0, offset: 0, what } => {
            assert!(what.contains("checksum"));
        }
        other => panic!("{other}"),
    }
    let mut header = log.clone();
    header[2 * SEGMENT_BYTES as usize..][..64].fill(0); // second segment of stream 1
    match open_error(header) {
        LogError::Damaged {
            epoch: EpochNumber(1),
            stream: 1,
            ordinal: 1,
            offset: SEGMENT_BYTES,
            ..
        } => {}
        other => panic!("{other}"),
    }
    let mut commit = log.clone();
    commit[3 * SEGMENT_BYTES as usize..][..64].fill(0);
    assert!(matches!(
        open_error(commit),
        LogError::Gap {
            missing: EpochNumber(1),
            committed: EpochNumber(2),
            checkpoint: EpochNumber(0)
        }
    ));
    // What is left of the second epoch was written after the first was durable.
    let mut both = log.clone();
    for segment in [0, 4] {
        both[segment * SEGMENT_BYTES as usize..][..64].fill(0);
    }
    match open_error(both) {
        LogError::Damaged { epoch: EpochNumber(1), .. }
        | LogError::Gap { missing: EpochNumber(1), committed: EpochNumber(2), .. } => {}
        other => panic!("{other}"),
    }
    let mut end = log;
    end[4 * SEGMENT_BYTES as usize..][..64].fill(0);
    assert_eq!(check_damaged(end, &epochs, "the last epoch is torn"), Some(vec![1]));
}

/// A log of another store, of another build, or of another segment size.
#[test]
fn segments_of_others() {
    let (log, _) = small_log();
    let device = Arc::new(TestDevice::with_log(log.clone(), u64::MAX));
    let (foreign, recovered) =
        InputLog::open(AnyDevice::of(&device), INSTANCE + 1, SEGMENT_BYTES, EpochNumber(0))
            .unwrap();
    assert_eq!((committed(&recovered), foreign.bytes_in_use()), (vec![], 0));
    assert_eq!(recovered.foreign, Some(INSTANCE), "the store that it is of");

    let change = |change: &dyn Fn(&mut SegmentHeader)| {
        let mut log = log.clone();
        let mut header = SegmentHeader::parse(&log).unwrap();
        change(&mut header);
        let header = SegmentHeader { header_crc: U32::ZERO, ..header };
        let crc = crc32fast::hash(&header.as_bytes()[..60]);
        log[..60].copy_from_slice(&header.as_bytes()[..60]);
        log[60..64].copy_from_slice(&crc.to_le_bytes());
        Arc::new(TestDevice::with_log(log, u64::MAX))
    };
    let newer = change(&|header| header.version = U16::new(99));
    assert!(matches!(open(&newer, 0), Err(LogError::Codec { version: 99, offset: 0, .. })));
    assert!(open(&newer, 1).is_ok(), "obsolete segments of another build do not matter");
    let beyond = change(&|header| header.attempt = U64::new(u64::MAX));
    let error = open(&beyond, 0).err().expect("no such attempt");
    assert!(error.is_corrupt() && error.to_string().contains("any store reaches"), "{error}");
    let unknown = change(&|header| header.kind = U16::new(9));
    assert!(matches!(open(&unknown, 0), Err(LogError::Codec { kind: 9, .. })));
    let device = Arc::new(TestDevice::with_log(log, u64::MAX));
    let larger = |checkpoint| InputLog::open(AnyDevice::of(&device), INSTANCE, 8192, checkpoint);
    assert!(matches!(
        larger(EpochNumber(0)),
        Err(LogError::OtherSegmentBytes { stored: 4096, .. })
    ));
    assert!(larger(EpochNumber(2)).is_ok(), "obsolete segments of another size do not matter");
    for given in [0, 2048, 5000, 32 << 20] {
        let opened = InputLog::open(AnyDevice::of(&device), INSTANCE, given, EpochNumber(0));
        assert!(matches!(opened, Err(LogError::SegmentBytes { .. })));
    }
}

/// Bytes that change after `open` are found by `read_epoch`.
#[test]
fn damage_after_open_is_found() {
    let (log, _) = small_log();
    let device = Arc::new(TestDevice::with_log(log, u64::MAX));
    let (log, _) = open(&device, 0).unwrap();
    device.log_write(&mut pmem::PortState::default(), 100, &[0xff; 4]).unwrap();
    assert!(matches!(
        log.read_epoch(EpochNumber(1)),
        Err(LogError::Damaged { epoch: EpochNumber(1), stream: 0, .. })
    ));
    assert!(log.read_epoch(EpochNumber(2)).is_ok());
}

/// Found by the crash lab: a sector that read wrongly while the log was hardened was written back,
/// over the right bytes of an epoch that had been answered.
#[test]
fn o_54_hardening_does_not_write_a_bad_read_back() {
    let (bytes, _) = small_log();
    for at in [HEADER_BYTES + 3, 20, 0] {
        let device = Arc::new(TestDevice::with_log(bytes.clone(), u64::MAX));
        let (log, _) = open(&device, 0).unwrap();
        let mut port = Port::new(AnyDevice::of(&device), 0);
        port.log_write(at as u64, &[bytes[at] ^ 1]).unwrap();
        device.take_history();
        let error = log.harden(&mut port).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("not any more"), "{error}");
        let written = device.take_history();
        assert!(written.iter().all(|write| write.offset != 0), "segment 0 was written");
    }
}

/// The same where the sector is that of another segment, which is intact.
#[test]
fn o_54_hardening_does_not_write_another_segment_back() {
    let (bytes, _) = small_log();
    let segment = |number: usize| &bytes[number * SEGMENT_BYTES as usize..][..PAYLOAD_BYTES];
    let epoch_of = |number| SegmentHeader::parse(segment(number)).unwrap().epoch.get();
    let other = (0..5).find(|&number| epoch_of(number) == 2).unwrap();
    assert_eq!(epoch_of(0), 1);
    let device = Arc::new(TestDevice::with_log(bytes.clone(), u64::MAX));
    let (log, _) = open(&device, 0).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    port.log_write(0, segment(other)).unwrap();
    let error = log.harden(&mut port).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("not any more"), "{error}");
}
