//! The same promises on the devices of `pmem`: every power cut of a short run on `Crash`, and a
//! directory that is opened again on `File`.

use crate::ids::EpochNumber;
use pmem::{
    Adversary, AllNewest, AllOldest, AnyDevice, Crash, File, FileOptions, OneLineEarly, OneLineLate,
};

use super::*;

const LOG_BYTES: u64 = 24 * SEGMENT_BYTES;
const EPOCHS: u64 = 5;

fn streams_of(epoch: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(epoch);
    vec![random.bytes(90), random.bytes(PAYLOAD_BYTES - 60 + 40 * epoch as usize)]
}

fn defer_to(epoch: u64) -> Vec<u8> {
    Random::new(epoch ^ 0xff).bytes(50)
}

/// What had been promised when the power was cut.
#[derive(Debug, Default)]
struct AtCut {
    durable: u64,
    checkpoint: u64,
    deferred_calls: u64,
}

/// Five epochs with records of deferred calls; the log of all but the newest two is released and
/// written again.
fn run(device: &Arc<Crash>) -> AtCut {
    let mut at_cut = AtCut::default();
    let (log, _) = open(device, 0).unwrap();
    for epoch in 1..=EPOCHS {
        log_epoch(&log, device, epoch, &streams_of(epoch)).unwrap();
        if !device.is_cut() {
            at_cut.durable = epoch;
        }
        log.write_deferred_calls(
            &mut Port::new(AnyDevice::of(device), 0),
            EpochNumber(epoch + 1),
            &defer_to(epoch + 1),
        )
        .unwrap();
        log.make_durable().unwrap();
        if !device.is_cut() {
            at_cut.deferred_calls = epoch + 1;
        }
        if epoch >= 2 {
            log.release(EpochNumber(epoch - 1));
            if !device.is_cut() {
                at_cut.checkpoint = epoch - 1;
            }
        }
    }
    at_cut
}

/// O-13, O-22, O-23, O-24: recovers from one image, and goes on.
fn check(device: &Crash, at_cut: &AtCut, adversary: &mut dyn Adversary, what: &str) {
    let device = Arc::new(device.image_after_power_cut(adversary));
    let (log, recovered) =
        open(&device, at_cut.checkpoint).unwrap_or_else(|error| panic!("{what}: {error}"));
    let last = log.committed_epoch();
    assert_eq!(
        committed(&recovered),
        (at_cut.checkpoint + 1..=last.0).collect::<Vec<_>>(),
        "{what}"
    );
    assert!(last >= EpochNumber(at_cut.durable), "{what}: epoch {} was durable", at_cut.durable);
    for epoch in at_cut.checkpoint + 1..=last.0 {
        assert_eq!(
            log.read_epoch(EpochNumber(epoch)).unwrap().streams,
            streams_of(epoch),
            "{what}"
        );
    }
    for epoch in at_cut.checkpoint + 1..=last.next().0 {
        let deferred_calls = log.deferred_calls(EpochNumber(epoch)).unwrap();
        assert!(
            deferred_calls.is_some() || epoch == 1 || epoch > at_cut.deferred_calls,
            "{what}: record of deferred calls to {epoch}"
        );
        assert!(
            deferred_calls.is_none_or(|deferred_calls| deferred_calls == defer_to(epoch)),
            "{what}: record of deferred calls to {epoch}"
        );
    }
    log.harden(&mut Port::new(AnyDevice::of(&device), 0)).unwrap();
    log_epoch(&log, &device, last.next().0, &[b"next".to_vec()]).unwrap();
    let (log, _) = open(&device, at_cut.checkpoint).unwrap();
    assert_eq!(log.committed_epoch(), last.next(), "{what}");
}

#[test]
fn every_power_cut_of_a_short_run() {
    let device = Arc::new(Crash::new(0, LOG_BYTES).unwrap());
    assert_eq!(run(&device).durable, EPOCHS);
    let events = device.events();
    let mut images = 0;
    for event in 0..=events {
        let device = Arc::new(Crash::new(0, LOG_BYTES).unwrap());
        device.cut_at(event);
        let at_cut = run(&device);
        let what = format!("power cut at event {event} of {events}");
        check(&device, &at_cut, &mut AllOldest, &what);
        check(&device, &at_cut, &mut AllNewest, &what);
        for seed in 0..4 {
            check(&device, &at_cut, &mut pmem::Random::new(seed ^ event << 8), &what);
        }
        let lines = device.undurable_lines();
        for line in 0..lines {
            check(&device, &at_cut, &mut OneLineLate(line), &format!("{what}, line {line} late"));
            check(&device, &at_cut, &mut OneLineEarly(line), &format!("{what}, line {line} early"));
        }
        images += 6 + lines * 2;
    }
    assert!(images > 900, "{images} images");
}

/// The log of a directory: closed and opened again, with what was not committed forgotten.
#[test]
fn file_device_keeps_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let device = || {
        let options = FileOptions::new(1 << 20, LOG_BYTES);
        Arc::new(File::open(dir.path(), &options).unwrap())
    };
    for epoch in 1..=EPOCHS {
        let device = device();
        let checkpoint = epoch.saturating_sub(3);
        let (log, recovered) = open(&device, checkpoint).unwrap();
        assert_eq!(committed(&recovered), (checkpoint + 1..epoch).collect::<Vec<_>>());
        for epoch in checkpoint + 1..epoch {
            assert_eq!(log.read_epoch(EpochNumber(epoch)).unwrap().streams, streams_of(epoch));
        }
        // What was read is believed from here on: before that no file may change.
        device.accept().unwrap();
        log.harden(&mut Port::new(AnyDevice::of(&device), 0)).unwrap();
        log_epoch(&log, &device, epoch, &streams_of(epoch)).unwrap();
        log_streams(&log, &device, epoch + 1, &[b"not committed".to_vec()]).unwrap();
        let full =
            log.begin(EpochNumber(epoch + 2), Demand { bytes: LOG_BYTES, ..Demand::default() });
        assert!(full.unwrap_err().is_limit());
    }
    let (log, recovered) = open(&device(), EPOCHS).unwrap();
    assert_eq!((recovered.committed, log.bytes_in_use()), (vec![], 0));
}
