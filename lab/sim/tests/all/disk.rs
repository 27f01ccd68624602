//! The `file` device on a simulated disk.

use sim::disk::{Fault, Options, Report, explore, explore_large_snapshots, sweep};
use sim::history::effort;

/// O-25, O-29, O-30, O-48, O-54, O-56 to O-58: cuts, faults and bad reads of random histories.
#[test]
fn o_29_random_histories_on_a_bad_disk() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let keep = effort("NVCARACAL_KEEP", 0) == 1;
    let mut report = Report::default();
    for seed in first..first + effort("NVCARACAL_DISKS", 6) {
        let fault_stride = effort("NVCARACAL_FAULT_STRIDE", Options::default().fault_stride);
        let options = Options { keep, fault_stride, ..Options::default() };
        report.add(&explore(seed, &options).unwrap_or_else(|failure| panic!("{failure}")));
    }
    println!("{report}");
    assert!(report.images > 0 && report.call_kinds.len() >= 12, "{report}");
}

/// O-25, O-29, O-54: snapshots of more pages than other histories have, cut before they count.
#[test]
fn o_29_snapshots_of_thousands_of_pages() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let mut report = Report::default();
    for seed in first..first + effort("NVCARACAL_DISKS", 2) {
        let options = Options { cuts: 6, ..Options::default() };
        let explored = explore_large_snapshots(seed, &options);
        report.add(&explored.unwrap_or_else(|failure| panic!("{failure}")));
    }
    println!("{report}");
    assert!(report.images > 0, "{report}");
}

fn swept(fault: Fault) -> Report {
    let seed = effort("NVCARACAL_FIRST_SEED", 5);
    // Few calls ask for room.
    let stride = if fault == Fault::FullForLong { 1 } else { effort("NVCARACAL_DISK_STRIDE", 7) };
    let report = sweep(seed, fault, stride);
    report.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

#[test]
fn o_57_nothing_is_answered_after_a_failed_call() {
    let report = swept(Fault::Broken);
    assert!(report.failures * 10 >= report.faults * 9, "{report}");
}

#[test]
fn o_58_without_room_an_epoch_is_refused_and_runs_later() {
    let report = swept(Fault::FullForLong);
    assert!(report.refusals > 0, "{report}");
    swept(Fault::Full);
}

#[test]
fn o_58_interruptions_and_short_writes_are_nothing() {
    for fault in [Fault::Interrupted, Fault::Short] {
        let report = swept(fault);
        assert!(report.faults > 0 && report.failures == 0, "{report}");
    }
}
