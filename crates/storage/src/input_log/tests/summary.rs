//! What the log says that it holds.

use crate::ids::{EpochNumber, Position};
use pmem::{AnyDevice, Dram};

use super::*;

fn epochs(log: &InputLog) -> Vec<u64> {
    log.summary().iter().map(|summary| summary.epoch.0).collect()
}

/// Epochs count from their commit record on, until they are released; records of deferred calls and
/// verdicts are no epochs.
#[test]
fn only_committed_epochs_are_held() {
    let device = AnyDevice::new(Dram::new(0, 1 << 20).unwrap());
    let (log, recovered) = open(&device, 0).unwrap();
    assert_eq!(recovered.scanned_bytes, 0);
    let mut port = Port::new(AnyDevice::of(&device), 0);
    let streams = [vec![1; 100]];
    log_epoch(&log, &device, 1, &streams).unwrap();
    log.write_deferred_calls(&mut port, EpochNumber(2), &[5; 16]).unwrap();
    let info = log_streams(&log, &device, 2, &streams).unwrap();
    assert_eq!(epochs(&log), [1], "epoch 2 is not committed");
    log.commit(&mut port, &info).unwrap();
    log.make_durable().unwrap();
    let verdict =
        Verdict { epoch: EpochNumber(2), position: Position(0), reason: "left out".into() };
    log.write_verdict(&mut port, &verdict).unwrap();
    assert_eq!(epochs(&log), [1, 2]);
    let (_, recovered) = open(&device, 0).unwrap();
    assert_eq!((committed(&recovered), recovered.verdicts), (vec![1, 2], vec![verdict]));

    // O-49: what a verdict takes is freed with its epoch.
    log.release(EpochNumber(2));
    assert_eq!((epochs(&log), log.bytes_in_use()), (vec![], 0));
}
