//! What was logged is what is read, whatever its shape.

use pmem::{AnyDevice, Dram};

use super::format::{
    CODEC_VERSION, Kind, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
    SegmentHeader, layout,
};
use super::*;
use crate::format::FieldLayout;
use crate::ids::EpochNumber;

fn check_round_trip(streams: &[Vec<u8>], segment_bytes: u64) {
    let device = AnyDevice::new(Dram::new(0, 256 << 20).unwrap());
    let open = || InputLog::open(device.clone(), INSTANCE, segment_bytes, EpochNumber(4)).unwrap();
    let (log, recovered) = open();
    assert_eq!(recovered, Recovered::default());
    let info = log_epoch(&log, &device, 5, streams).unwrap();
    let next: Vec<Vec<u8>> = streams.iter().rev().cloned().collect();
    log_epoch(&log, &device, 6, &next).unwrap();

    let (reopened, recovered) = open();
    assert_eq!(committed(&recovered), [5, 6]);
    assert_eq!(reopened.summary(), recovered.committed);
    assert_eq!(reopened.summary(), log.summary());
    assert_eq!(reopened.bytes_in_use(), log.bytes_in_use());
    assert_eq!(recovered.committed[0].bytes, demand(streams).bytes);
    let read = reopened.read_epoch(EpochNumber(5)).unwrap();
    assert_eq!(read.streams, streams);
    assert_eq!(read.commit, info);
    assert_eq!(reopened.read_epoch(EpochNumber(6)).unwrap().streams, next);
    assert_eq!(reopened.deferred_calls(EpochNumber(5)).unwrap(), None);
    assert!(matches!(
        reopened.read_epoch(EpochNumber(7)),
        Err(LogError::NotLogged { epoch: EpochNumber(7) })
    ));
}

#[test]
fn one_to_eight_streams_of_every_interesting_length() {
    let lengths = [
        0,
        1,
        PAYLOAD_BYTES - 1,
        PAYLOAD_BYTES,
        PAYLOAD_BYTES + 1,
        3 * PAYLOAD_BYTES,
        20 * PAYLOAD_BYTES + 5,
        100,
    ];
    for count in 0..=lengths.len() {
        for shift in 0..lengths.len() {
            let mut random = Random::new(shift as u64);
            let streams: Vec<Vec<u8>> =
                (0..count).map(|at| random.bytes(lengths[(at + shift) % lengths.len()])).collect();
            check_round_trip(&streams, SEGMENT_BYTES);
        }
    }
}

#[test]
fn every_segment_size() {
    let mut bytes = SEGMENT_BYTES_MIN;
    while bytes <= SEGMENT_BYTES_MAX {
        check_round_trip(&[Random::new(1).bytes(70_000), Vec::new()], bytes);
        bytes *= 2;
    }
    assert!(SEGMENT_BYTES_DEFAULT.is_power_of_two());
}

#[test]
fn commit_record_of_many_streams_takes_several_segments() {
    let streams: Vec<Vec<u8>> = (0..400).map(|at| vec![at as u8; at % 3]).collect();
    check_round_trip(&streams, SEGMENT_BYTES);
}

#[test]
fn append_splits_large_and_joins_small_pieces() {
    let device = AnyDevice::new(Dram::new(0, 8 << 20).unwrap());
    let (log, _) = open(&device, 0).unwrap();
    let bytes = Random::new(3).bytes(5 * PAYLOAD_BYTES + 17);
    let mut port = Port::new(AnyDevice::of(&device), 0);
    let mut writer = log.stream_writer();
    for (epoch, piece) in [(1, 1), (2, 63), (3, PAYLOAD_BYTES), (4, bytes.len())] {
        log.begin(EpochNumber(epoch), Demand { streams: 1, ..Demand::default() }).unwrap();
        writer.start(&log, EpochNumber(epoch), 0);
        for piece in bytes.chunks(piece) {
            writer.append(&log, &mut port, piece).unwrap();
            writer.append(&log, &mut port, &[]).unwrap();
        }
        let streams = vec![writer.finish(&log, &mut port).unwrap()];
        assert_eq!(streams[0].segments, 6);
        log.commit(
            &mut port,
            &CommitInfo { epoch: EpochNumber(epoch), streams, ..CommitInfo::default() },
        )
        .unwrap();
        log.make_durable().unwrap();
    }
    let (log, _) = open(&device, 0).unwrap();
    for epoch in 1..=4 {
        assert_eq!(
            log.read_epoch(EpochNumber(epoch)).unwrap().streams,
            std::slice::from_ref(&bytes)
        );
    }
}

#[test]
fn workers_append_at_the_same_time() {
    let device = AnyDevice::new(Dram::new(0, 64 << 20).unwrap());
    let (log, _) = open(&device, 0).unwrap();
    let streams: Vec<Vec<u8>> =
        (0..4).map(|seed| Random::new(seed).bytes(100 * PAYLOAD_BYTES)).collect();
    for epoch in 1..=3 {
        log.begin(EpochNumber(epoch), demand(&streams)).unwrap();
        let worker = |number: usize| {
            let mut port = Port::new(AnyDevice::of(&device), number as u32);
            let mut writer = log.stream_writer();
            writer.start(&log, EpochNumber(epoch), number as u16);
            for piece in streams[number].chunks(999) {
                writer.append(&log, &mut port, piece).unwrap();
            }
            writer.finish(&log, &mut port).unwrap()
        };
        let summaries = std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..4).map(|number| scope.spawn(move || worker(number))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        let info =
            CommitInfo { epoch: EpochNumber(epoch), streams: summaries, ..CommitInfo::default() };
        log.commit(&mut Port::new(AnyDevice::of(&device), 9), &info).unwrap();
        log.make_durable().unwrap();
    }
    let (log, _) = open(&device, 0).unwrap();
    for epoch in 1..=3 {
        assert_eq!(log.read_epoch(EpochNumber(epoch)).unwrap().streams, streams);
    }
}

#[test]
fn layout_covers_every_byte_of_every_struct() {
    for entry in layout() {
        let mut end = 0;
        for FieldLayout { name, offset, bytes, meaning } in &entry.fields {
            assert_eq!(*offset, end, "{}.{name} follows the field before", entry.name);
            assert!(!meaning.is_empty());
            end += bytes;
        }
        assert_eq!(end, entry.bytes, "{}", entry.name);
    }
}

/// O-24: the checksum of zeros must not be valid, whatever the payload.
#[test]
fn zeros_are_not_a_header() {
    assert!(SegmentHeader::parse(&[0; 4096]).is_none());
    assert!(SegmentHeader::parse(&[0; 63]).is_none());
    assert_ne!(crc32fast::hash(&[0; 60]), 0);
    assert_eq!(Kind::from_number(0), None);
    assert_ne!(CODEC_VERSION, 0);
}
