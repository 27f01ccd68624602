//! The serializability check of all engines, and bugs that it must find.

use pmem::Dram;
use workloads::Workload;

use super::support::{dram, smallbank, tpcc, verified, ycsb};
use crate::rival::Planted;
use crate::{Error, Report, Result, Rival, Settings, Wbl, Zen, ZenMvcc, run};

const WORKERS: [usize; 3] = [1, 2, 4];

fn run_on<R: Rival<Device = Dram>, W: Workload>(
    workload: &W,
    settings: &Settings,
) -> Result<Report> {
    run::<R, W>(&dram(), workload, settings)
}

/// Runs on all numbers of workers; how many calls had to run again.
fn serializable<R: Rival<Device = Dram>, W: Workload>(workload: &W, calls: u64) -> u64 {
    let mut retries = 0;
    for workers in WORKERS {
        let report = run_on::<R, W>(workload, &verified(workers, calls)).unwrap();
        assert_eq!(report.committed + report.aborted, calls);
        retries += report.retries;
    }
    retries
}

fn all_workloads<R: Rival<Device = Dram>>() {
    let retries = serializable::<R, _>(&ycsb(200, false), 3_000);
    assert!(retries > 0, "transactions must have been in each other's way");
    serializable::<R, _>(&ycsb(200, true), 1_000);
    serializable::<R, _>(&smallbank(50), 10_000);
    serializable::<R, _>(&tpcc(), 1_500);
}

/// The check must find a bug on a workload, in one of some runs: whether it strikes is chance.
fn is_found<R: Rival<Device = Dram>, W: Workload>(planted: Planted, workload: &W) {
    let mut settings = verified(4, 4_000);
    settings.options.planted = Some(planted);
    for _ in 0..20 {
        match run_on::<R, W>(workload, &settings) {
            Ok(_) => {}
            Err(Error::Broken(_)) => return,
            Err(other) => panic!("{planted:?}: {other}"),
        }
    }
    panic!("the check did not find {planted:?}");
}

#[test]
fn zen_is_serializable() {
    all_workloads::<Zen<Dram>>();
}

#[test]
fn zen_with_snapshots_is_serializable() {
    all_workloads::<ZenMvcc<Dram>>();
}

#[test]
fn wbl_is_serializable() {
    all_workloads::<Wbl<Dram>>();
}

#[test]
fn zen_is_serializable_with_a_small_cache() {
    for workers in WORKERS {
        let mut settings = verified(workers, 6_000);
        settings.options.cache_bytes = 1 << 20;
        let report = run_on::<Zen<Dram>, _>(&ycsb(20_000, false), &settings).unwrap();
        assert!(report.tally.evictions > 1_000, "{:?}", report.tally);
        assert!(report.tally.cache_misses > 1_000, "{:?}", report.tally);
    }
}

#[test]
fn the_check_finds_reads_that_are_not_validated() {
    is_found::<Zen<Dram>, _>(Planted::NoReadValidation, &ycsb(200, false));
    is_found::<ZenMvcc<Dram>, _>(Planted::NoReadValidation, &ycsb(200, false));
    is_found::<Wbl<Dram>, _>(Planted::NoReadValidation, &ycsb(200, false));
}
