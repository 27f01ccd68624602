//! Power cuts between any two calls: what was made durable is always there, and nothing else is
//! ever half there (O-13, O-22, O-24, O-25).

use super::device::TestDevice;
use super::*;
use crate::ids::EpochNumber;
use pmem::AnyDevice;

const LIMIT: u64 = 256 * SEGMENT_BYTES;

/// What the log promised before the power cut.
#[derive(Debug, Default, Clone)]
struct Promised {
    checkpoint: u64,
    /// By epoch from 1: what was committed, durable or not.
    epochs: Vec<Vec<Vec<u8>>>,
    durable: usize,
    deferred_calls: Option<(u64, Vec<u8>)>,
    deferred_durable: bool,
}

/// Checks one image; returns how many epochs it has committed.
fn check_image(image: Vec<u8>, promised: &Promised, what: &str) -> usize {
    let device = Arc::new(TestDevice::with_log(image, LIMIT));
    let (log, recovered) =
        open(&device, promised.checkpoint).unwrap_or_else(|error| panic!("{what}: {error}"));
    let last = log.committed_epoch().0 as usize;
    let first = promised.checkpoint + 1;
    assert_eq!(committed(&recovered), (first..=last as u64).collect::<Vec<_>>(), "{what}");
    assert!(last >= promised.durable, "{what}: epoch {} was durable", promised.durable);
    assert!(last <= promised.epochs.len(), "{what}: epoch {last} was never committed");
    for epoch in first..=last as u64 {
        let read = log.read_epoch(EpochNumber(epoch)).unwrap();
        assert_eq!(read.streams, promised.epochs[epoch as usize - 1], "{what}: epoch {epoch}");
        assert_eq!(read.commit.seed, epoch * 7, "{what}");
    }
    if let Some((epoch, bytes)) = &promised.deferred_calls {
        match log.deferred_calls(EpochNumber(*epoch)).unwrap() {
            Some(read) => assert_eq!(&read, bytes, "{what}"),
            None => assert!(
                !promised.deferred_durable,
                "{what}: the record of deferred calls was durable"
            ),
        }
    }
    last
}

fn check_images(device: &TestDevice, promised: &Promised, random: &mut Random, what: &str) {
    for _ in 0..8 {
        check_image(device.crash_image(random), promised, what);
    }
    check_image(device.log(), promised, what); // a killed process loses nothing
}

/// Bytes that are the same in many records, so that one record may bring what another one lacks, or
/// such that no other record has.
fn some_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    if random.below(2) == 0 { vec![0; len] } else { random.bytes(len) }
}

/// One epoch, with a look at possible images after every step.
fn run_epoch(
    log: &InputLog,
    device: &Arc<TestDevice>,
    promised: &mut Promised,
    random: &mut Random,
    what: &str,
) {
    let epoch = promised.epochs.len() as u64 + 1;
    let streams: Vec<Vec<u8>> = (0..random.below(4))
        .map(|_| {
            let len = random.below(2 * PAYLOAD_BYTES as u64) as usize;
            some_bytes(random, len)
        })
        .collect();
    if let [bytes] = &streams[..] {
        log_whole(log, device, epoch, bytes).unwrap();
    } else {
        let info = log_streams(log, device, epoch, &streams).unwrap();
        check_images(device, promised, random, &format!("{what}: streams of {epoch}"));
        log.commit(&mut Port::new(AnyDevice::of(device), 0), &info).unwrap();
    }
    promised.epochs.push(streams);
    check_images(device, promised, random, &format!("{what}: commit record of {epoch}"));
    log.make_durable().unwrap();
    promised.durable = epoch as usize;
    check_images(device, promised, random, &format!("{what}: durable {epoch}"));
    if random.below(3) == 0 {
        let len = random.below(6000) as usize;
        let bytes = random.bytes(len);
        log.write_deferred_calls(
            &mut Port::new(AnyDevice::of(device), 0),
            EpochNumber(epoch + 1),
            &bytes,
        )
        .unwrap();
        (promised.deferred_calls, promised.deferred_durable) = (Some((epoch + 1, bytes)), false);
        check_images(
            device,
            promised,
            random,
            &format!("{what}: record of deferred calls to {}", epoch + 1),
        );
        log.make_durable().unwrap();
        promised.deferred_durable = true;
        check_images(
            device,
            promised,
            random,
            &format!("{what}: durable record of deferred calls"),
        );
    }
    if random.below(3) == 0 {
        // The checkpoint is durable elsewhere; from now on every image is opened with it.
        promised.checkpoint += random.below(epoch - promised.checkpoint + 1);
        if promised
            .deferred_calls
            .as_ref()
            .is_some_and(|(deferred_calls, _)| *deferred_calls <= promised.checkpoint)
        {
            promised.deferred_calls = None;
        }
        log.release(EpochNumber(promised.checkpoint));
    }
}

#[test]
fn every_power_cut_keeps_what_was_durable() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut device = Arc::new(TestDevice::new(LIMIT));
        let mut promised = Promised::default();
        let (mut log, _) = open(&device, 0).unwrap();
        for step in 0..12 {
            run_epoch(&log, &device, &mut promised, &mut random, &format!("seed {seed}/{step}"));
            if random.below(3) == 0 {
                (log, device) = power_cut(&log, &device, &mut promised, &mut random);
            }
        }
    }
}

/// Cuts the power in the middle of the next epoch and goes on with what is left.
fn power_cut(
    log: &InputLog,
    device: &Arc<TestDevice>,
    promised: &mut Promised,
    random: &mut Random,
) -> (InputLog, Arc<TestDevice>) {
    let epoch = promised.epochs.len() as u64 + 1;
    if random.below(2) == 0 {
        let bytes = some_bytes(random, 3500);
        log_whole(log, device, epoch, &bytes).unwrap();
        promised.epochs.push(vec![bytes]);
    } else {
        let streams = vec![some_bytes(random, 5000), some_bytes(random, 20)];
        let info = log_streams(log, device, epoch, &streams).unwrap();
        if random.below(2) == 0 {
            log.commit(&mut Port::new(AnyDevice::of(device), 0), &info).unwrap();
            promised.epochs.push(streams);
        }
    }
    let image = device.crash_image(random);
    let last = check_image(image.clone(), promised, "power cut");
    promised.epochs.truncate(last); // what was not committed was never started
    promised.durable = last;
    let device = Arc::new(TestDevice::with_log(image, LIMIT));
    let (log, _) = open(&device, promised.checkpoint).unwrap();
    log.harden(&mut Port::new(AnyDevice::of(&device), 0)).unwrap();
    (log, device)
}

/// O-22: a port that did not fence before the sync would lose its stream, so `finish` fences.
#[test]
fn every_port_is_fenced_before_the_sync() {
    let device = Arc::new(TestDevice::new(LIMIT));
    let (log, _) = open(&device, 0).unwrap();
    log_epoch(&log, &device, 1, &[vec![1; 9000], vec![2; 10], vec![3; 5000]]).unwrap();
    let ports: Vec<u32> = device.take_history().iter().map(|write| write.port).collect();
    assert!([0, 1, 2, 3].iter().all(|port| ports.contains(port)));
    let mut random = Random::new(0);
    assert_eq!(device.crash_image(&mut random), device.log(), "nothing is pending");
}
