//! Free segments, promises, growth and a full log (O-43).

use crate::ids::{EpochNumber, Position};
use pmem::{AnyDevice, DeviceError};

use super::device::TestDevice;
use super::geometry::Geometry;
use super::space::{FreeMap, RESERVE_SEGMENTS};
use super::*;

#[test]
fn free_map_gives_low_neighbours_first() {
    let mut map = FreeMap::default();
    assert_eq!(map.take_run(1), None);
    map.grow(130);
    let take = |map: &mut FreeMap, max| map.take_run(max).map(|run| (run.first, run.len));
    assert_eq!(take(&mut map, 3), Some((0, 3)));
    assert_eq!(take(&mut map, 100), Some((3, 100)));
    for segment in [1, 2, 50, 70, 71, 72] {
        map.insert(segment);
    }
    assert_eq!(take(&mut map, 8), Some((1, 2)));
    assert_eq!(take(&mut map, 8), Some((50, 1)));
    assert_eq!(take(&mut map, 2), Some((70, 2)));
    assert_eq!(take(&mut map, 9), Some((72, 1)));
    assert_eq!(take(&mut map, 99), Some((103, 27)));
    assert_eq!(map.take_run(1), None);
    map.grow(200);
    assert_eq!(take(&mut map, 1), Some((130, 1)));
    map.insert(0);
    assert_eq!(take(&mut map, 1), Some((0, 1)));
}

#[test]
#[should_panic(expected = "segment 7 is freed once")]
fn free_map_refuses_a_second_free() {
    let mut map = FreeMap::default();
    map.grow(8);
    map.insert(7);
}

/// The segments of a long stream lie side by side, also when other streams are written at the same
/// time.
#[test]
fn long_streams_are_contiguous() {
    let device = Arc::new(TestDevice::new(1 << 30));
    let (log, _) = open(&device, 0).unwrap();
    log.begin(
        EpochNumber(1),
        Demand { streams: 2, bytes: 60 * PAYLOAD_BYTES as u64, deferred_bytes: 0 },
    )
    .unwrap();
    let mut workers: Vec<_> = (0..2)
        .map(|number| {
            let mut writer = log.stream_writer();
            writer.start(&log, EpochNumber(1), number);
            (writer, Port::new(AnyDevice::of(&device), u32::from(number)))
        })
        .collect();
    for _ in 0..60 {
        for (writer, port) in &mut workers {
            writer.append(&log, port, &[1; PAYLOAD_BYTES / 2]).unwrap();
        }
    }
    for (writer, port) in &mut workers {
        writer.finish(&log, port).unwrap();
    }
    let writes = device.take_history();
    for port in 0..2 {
        let offsets: Vec<u64> =
            writes.iter().filter(|write| write.port == port).map(|write| write.offset).collect();
        let jumps = offsets.windows(2).filter(|pair| pair[1] != pair[0] + SEGMENT_BYTES).count();
        assert!(jumps <= 6, "{} segments with {jumps} jumps", offsets.len());
    }
    assert_eq!(log.bytes_in_use(), 60 * SEGMENT_BYTES, "what was taken ahead is given back");
}

/// O-43: what `begin` accepted can be written, however it is spread over the streams, to the last
/// segment of a log that cannot grow, with the record of deferred calls; what it refuses changes
/// nothing.
#[test]
fn what_was_reserved_can_be_written() {
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let device = Arc::new(TestDevice::new((6 + random.below(40)) * SEGMENT_BYTES));
        let (log, _) = open(&device, 0).unwrap();
        let mut epoch = 1;
        for _ in 0..12 {
            let streams: Vec<Vec<u8>> = (0..random.below(6))
                .map(|_| vec![epoch as u8; random.below(5 * PAYLOAD_BYTES as u64) as usize])
                .collect();
            let deferred_bytes = random.below(3) * random.below(9000);
            let before = (log.bytes_in_use(), log.summary());
            match log.begin(EpochNumber(epoch), Demand { deferred_bytes, ..demand(&streams) }) {
                Ok(()) => log.abandon(EpochNumber(epoch)),
                Err(error) => {
                    assert!(matches!(error, LogError::Full { .. }) && error.is_limit());
                    assert_eq!((log.bytes_in_use(), log.summary()), before, "seed {seed}");
                    log.release(EpochNumber(epoch - 1));
                    continue;
                }
            }
            write_interleaved(&log, &device, epoch, &streams, deferred_bytes)
                .unwrap_or_else(|error| panic!("seed {seed}, epoch {epoch}: {error}"));
            epoch += 1;
        }
    }
}

/// Bytes of a log that is full when epochs and their records have so many segments.
fn full_with(segments: u64) -> u64 {
    (segments + u64::from(RESERVE_SEGMENTS)) * SEGMENT_BYTES
}

/// O-29, O-43: a full log had room for the record of deferred calls of its last epoch once. A crash
/// after the record of deferred calls and before the checkpoint left it there, and recovery, which
/// writes it again, found no room for a second one: the store did not open any more.
#[test]
fn deferred_record_again_needs_no_more_space() {
    let device = Arc::new(TestDevice::new(full_with(3)));
    let (log, _) = open(&device, 0).unwrap();
    write_interleaved(&log, &device, 1, &[vec![1; 10]], 100).unwrap();
    for crash in 0..4 {
        assert_eq!(log.bytes_in_use(), 3 * SEGMENT_BYTES);
        let (log, recovered) = open(&device, 0).unwrap();
        assert_eq!(committed(&recovered), [1], "crash {crash}");
        log.write_deferred_calls(
            &mut Port::new(AnyDevice::of(&device), 0),
            EpochNumber(2),
            &[1; 100],
        )
        .unwrap();
        log.make_durable().unwrap();
        let (log, _) = open(&device, 1).unwrap();
        assert_eq!(
            log.deferred_calls(EpochNumber(2)).unwrap(),
            Some(vec![1; 100]),
            "crash {crash}"
        );
        assert_eq!(log.bytes_in_use(), SEGMENT_BYTES, "crash {crash}");
    }
}

/// O-43, O-49: the verdict on a call of the last epoch of a full log had no room, or took that of
/// the calls to be made again: the store did not open any more.
#[test]
fn o_43_verdicts_fit_into_a_full_log() {
    let device = Arc::new(TestDevice::new(full_with(3)));
    let (log, _) = open(&device, 0).unwrap();
    log.begin(EpochNumber(1), Demand { deferred_bytes: 100, ..demand(&[vec![1; 10]]) }).unwrap();
    commit_interleaved(&log, &device, 1, &[vec![1; 10]]).unwrap();
    for position in 0..40 {
        let mut port = Port::new(AnyDevice::of(&device), 0);
        let (log, recovered) = open(&device, 0).unwrap();
        let known: Vec<u32> = recovered.verdicts.iter().map(|known| known.position.0).collect();
        assert_eq!(known, (0..position).collect::<Vec<_>>());
        let reason = "a long reason ".repeat(100);
        log.write_verdict(
            &mut port,
            &Verdict { epoch: EpochNumber(1), position: Position(position), reason },
        )
        .unwrap();
        assert_eq!(log.bytes_in_use(), 3 * SEGMENT_BYTES, "one record holds all verdicts");
        let full = log
            .begin(EpochNumber(2), Demand { streams: 1, bytes: 1, deferred_bytes: 0 })
            .unwrap_err();
        assert!(full.is_limit());
    }
    let (log, mut port) = (open(&device, 0).unwrap().0, Port::new(AnyDevice::of(&device), 0));
    // The crash came before the calls were kept that wait for the next epoch; replay does it.
    log.write_deferred_calls(&mut port, EpochNumber(2), &[1; 100]).unwrap();
    log.write_program(&mut port, b"another").unwrap();
    log.release(EpochNumber(1));
    assert_eq!(open(&device, 1).unwrap().1.verdicts, []);
}

/// O-43: of two records of deferred calls that crashes left of one epoch the newer one counts, and
/// only that one takes room.
#[test]
fn an_older_deferred_record_takes_no_space() {
    let device = Arc::new(TestDevice::new(5 * SEGMENT_BYTES));
    let (log, _) = open(&device, 0).unwrap();
    write_interleaved(&log, &device, 1, &[vec![1; 10]], 100).unwrap();
    // The first one stays whole, in another place.
    let image = device.log();
    let (log, _) = open(&device, 0).unwrap();
    log.write_deferred_calls(&mut Port::new(AnyDevice::of(&device), 0), EpochNumber(2), &[1; 100])
        .unwrap();
    let mut both = device.log();
    let deferred_calls = 2 * SEGMENT_BYTES as usize..3 * SEGMENT_BYTES as usize;
    let rewritten = both[deferred_calls.clone()] != image[deferred_calls.clone()];
    assert!(rewritten, "the second is written over the first");
    let (old, at) = (image[deferred_calls].to_vec(), 4 * SEGMENT_BYTES as usize);
    both.resize(5 * SEGMENT_BYTES as usize, 0);
    both[at..].copy_from_slice(&old);
    let device = Arc::new(TestDevice::with_log(both, 5 * SEGMENT_BYTES));
    let (log, _) = open(&device, 1).unwrap();
    assert_eq!(log.deferred_calls(EpochNumber(2)).unwrap(), Some(vec![1; 100]));
    assert_eq!(log.bytes_in_use(), SEGMENT_BYTES);
}

/// All streams are written at the same time, so that each may hold segments that it does not need.
fn write_interleaved(
    log: &InputLog,
    device: &Arc<TestDevice>,
    epoch: u64,
    streams: &[Vec<u8>],
    deferred_bytes: u64,
) -> Result<(), LogError> {
    log.begin(EpochNumber(epoch), Demand { deferred_bytes, ..demand(streams) })?;
    commit_interleaved(log, device, epoch, streams)?;
    if deferred_bytes > 0 {
        let mut port = Port::new(AnyDevice::of(device), 0);
        log.write_deferred_calls(
            &mut port,
            EpochNumber(epoch + 1),
            &vec![1; deferred_bytes as usize],
        )?;
    }
    Ok(())
}

fn commit_interleaved(
    log: &InputLog,
    device: &Arc<TestDevice>,
    epoch: u64,
    streams: &[Vec<u8>],
) -> Result<(), LogError> {
    let mut port = Port::new(AnyDevice::of(device), 0);
    let mut writers: Vec<_> = streams.iter().map(|_| log.stream_writer()).collect();
    for (number, writer) in writers.iter_mut().enumerate() {
        writer.start(log, EpochNumber(epoch), number as u16);
    }
    for at in 0..6 {
        for (writer, bytes) in writers.iter_mut().zip(streams) {
            let from = (at * PAYLOAD_BYTES).min(bytes.len());
            let to = (from + PAYLOAD_BYTES).min(bytes.len());
            writer.append(log, &mut port, &bytes[from..to])?;
        }
    }
    let summaries =
        writers.iter_mut().map(|writer| writer.finish(log, &mut port)).collect::<Result<_, _>>()?;
    log.commit(
        &mut port,
        &CommitInfo { epoch: EpochNumber(epoch), streams: summaries, ..CommitInfo::default() },
    )?;
    log.make_durable()
}

/// A tiny log is full with figures that help, and usable again after a checkpoint.
#[test]
fn full_log_says_so_and_recovers() {
    let device = Arc::new(TestDevice::new(full_with(4)));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 5000]]).unwrap();
    let error = log_epoch(&log, &device, 2, &[vec![1; 5000]]).unwrap_err();
    let text = error.to_string();
    assert!(error.is_limit() && !error.is_corrupt());
    assert!(text.contains("epoch 2 needs 12288 bytes more, 0 of 20480 bytes are free"), "{text}");
    assert!(text.contains("limit 24576 bytes"), "{text}");
    log.release(EpochNumber(1));
    log_epoch(&log, &device, 2, &[vec![1; 5000]]).unwrap();
    assert_eq!(log.segments_total(), 3 + RESERVE_SEGMENTS, "space is reused before the log grows");
    let absurd = Demand { bytes: u64::MAX, deferred_bytes: u64::MAX, streams: 1 };
    assert!(matches!(log.begin(EpochNumber(3), absurd), Err(LogError::Full { .. })));
}

/// More than was reserved is written if there is room; if not, the epoch is abandoned.
#[test]
fn more_than_reserved() {
    let device = Arc::new(TestDevice::new(full_with(8)));
    let (log, _) = open(&device, 0).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    let mut writer = log.stream_writer();
    log.begin(EpochNumber(1), Demand { streams: 1, ..Demand::default() }).unwrap();
    writer.start(&log, EpochNumber(1), 0);
    let error = writer.append(&log, &mut port, &[1; 20 * PAYLOAD_BYTES]).unwrap_err();
    assert!(error.is_limit());
    log.abandon(EpochNumber(1));
    assert_eq!(log.bytes_in_use(), 0);
    log.begin(EpochNumber(1), Demand { streams: 1, ..Demand::default() }).unwrap();
    writer.start(&log, EpochNumber(1), 0);
    writer.append(&log, &mut port, &[1; 6 * PAYLOAD_BYTES]).unwrap();
    let streams = vec![writer.finish(&log, &mut port).unwrap()];
    log.commit(&mut port, &CommitInfo { epoch: EpochNumber(1), streams, ..CommitInfo::default() })
        .unwrap();
}

/// The log grows in large pieces where it may.
#[test]
fn growth_is_rare() {
    let device = Arc::new(TestDevice::new(1 << 30));
    let (log, _) = open(&device, 0).unwrap();
    let mut sizes = vec![0];
    for epoch in 1..=40 {
        log_epoch(&log, &device, epoch, &[vec![1; 1 << 20]]).unwrap();
        if sizes.last() != Some(&log.segments_total()) {
            sizes.push(log.segments_total());
        }
    }
    assert!(sizes.len() < 12, "{sizes:?}");
    let piece_min = u32::try_from((4 << 20) / SEGMENT_BYTES).unwrap();
    for pair in sizes.windows(2) {
        assert_eq!(pair[1] - pair[0], (pair[0] / 4).max(piece_min), "{sizes:?}");
    }
}

/// A log has as many segments as their numbers allow, and the device is not asked for more.
#[test]
fn growth_ends_where_segments_have_no_number() {
    const LIMIT: u64 = u32::MAX as u64 * SEGMENT_BYTES;
    let device = Arc::new(TestDevice::new(0));
    let (log, _) = open(&device, 0).unwrap();
    let refused = |exact, roomy| match log.grow(exact, roomy).unwrap_err() {
        DeviceError::Full { wanted_bytes, limit_bytes, .. } => (wanted_bytes, limit_bytes),
        other => panic!("{other}"),
    };
    assert_eq!(refused(LIMIT + 1, LIMIT + 1), (LIMIT + 1, Some(LIMIT)));
    // Otherwise it is the device that has no room.
    assert_eq!(refused(LIMIT, LIMIT + 1), (LIMIT, Some(0)));
    assert_eq!(refused(LIMIT, LIMIT), (LIMIT, Some(0)));
    assert_eq!(refused(1, LIMIT), (1, Some(0)));
}

/// A worker that logs nothing takes nothing, and one that fills its segments takes no other one.
#[test]
fn streams_have_no_empty_segments() {
    for (bytes, segments) in [(0, 0), (1, 1), (PAYLOAD_BYTES, 1), (3 * PAYLOAD_BYTES, 3)] {
        let device = Arc::new(TestDevice::new(1 << 20));
        let (log, _) = open(&device, 0).unwrap();
        log_epoch(&log, &device, 1, &[vec![], vec![1; bytes]]).unwrap();
        assert_eq!(
            log.bytes_in_use(),
            (segments + 1) * SEGMENT_BYTES,
            "{bytes}, and the commit record"
        );
    }
}

/// What an epoch may take: each stream and the commit record may leave a segment filled in part.
#[test]
fn an_epoch_takes_what_its_bytes_fill_and_a_segment_for_each_end() {
    let geometry = Geometry { instance: INSTANCE, segment_bytes: SEGMENT_BYTES };
    let segments =
        |streams, bytes| geometry.epoch_segments(&Demand { streams, bytes, ..Demand::default() });
    assert_eq!(segments(1, 0), 2);
    assert_eq!(segments(64, 1), 65);
    assert_eq!(segments(3, 5 * PAYLOAD_BYTES as u64), 9);
    assert_eq!(segments(3, 5 * PAYLOAD_BYTES as u64 - 1), 8);
}
