//! The batch engines come to what the serial oracle does, with any number of workers, and the
//! check of it finds a bug in the main rule of each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use workloads::Workload;
use workloads::tpcc::{Tpcc, TpccSettings};

use super::scramble::Scramble;
use super::support::{
    RUNS_MAX, smallbank, tpcc, tpcc_in_pieces, updates, warehouses, with_commit_points, ycsb,
};
use crate::rival::Fault;
use crate::{
    Aria, BatchCounts, BatchEngine, BatchReport, Bcdb, Bohm, Calvin, Caracal, Error, Granola,
    Order, Orthrus, Pwv, Serial, Settings, run_batches,
};

const BATCHES: u64 = 3;

fn settings(workers: usize, calls: u64) -> Settings {
    let settings = Settings::new(workers, calls);
    Settings { rounds: BATCHES, warm_up_rounds: 0, verify: true, ..settings }
}

/// Runs on all numbers of workers; all come to the same state.
fn same_as_oracle<E: BatchEngine, W: Workload>(workload: &W, calls: u64) -> Vec<BatchReport> {
    let run = |workers| {
        let report = run_batches::<E, W>(workload, &settings(workers, calls)).unwrap();
        assert_eq!(report.calls(), BATCHES * calls);
        report
    };
    let reports: Vec<BatchReport> = [1, 2, 4].map(run).into();
    assert!(reports.iter().all(|report| report.digest == reports[0].digest));
    reports
}

fn all_workloads<E: BatchEngine>() {
    same_as_oracle::<E, _>(&ycsb(200, false), 800);
    same_as_oracle::<E, _>(&ycsb(200, true), 800);
    same_as_oracle::<E, _>(&smallbank(50), 3_000);
    same_as_oracle::<E, _>(&tpcc(), 500);
    same_as_oracle::<E, _>(&warehouses(), 500);
    let (smallbank, tpcc) = with_commit_points();
    same_as_oracle::<E, _>(&smallbank, 1_000);
    same_as_oracle::<E, _>(&tpcc, 300);
    for tpcc in tpcc_in_pieces() {
        let whole = TpccSettings { pieces: false, ..tpcc.settings().clone() };
        let whole = same_as_oracle::<E, _>(&Tpcc::new(whole).unwrap(), 400);
        let cut = same_as_oracle::<E, _>(&tpcc, 400);
        assert!(E::ORDER != Order::Given || cut[0].digest == whole[0].digest, "another state");
    }
    for seed in 0..3 {
        same_as_oracle::<E, _>(&Scramble { seed }, 1_500);
        same_as_oracle::<E, _>(&Scramble { seed }, 7);
    }
}

/// The check must find a bug, in one of some runs: whether it strikes may be chance.
/// Or a worker finds it before: a lock that is released by a call that runs too early may not be
/// held yet.
fn is_found<E: BatchEngine, W: Workload>(fault: Fault, workload: &W, calls: u64) {
    let mut settings = settings(4, calls);
    settings.options.fault = Some(fault);
    for _ in 0..RUNS_MAX {
        let run = AssertUnwindSafe(|| run_batches::<E, W>(workload, &settings));
        match catch_unwind(run) {
            Ok(Ok(_)) => {}
            Ok(Err(Error::Broken(_))) | Err(_) => return,
            Ok(Err(other)) => panic!("{fault:?}: {other}"),
        }
    }
    panic!("the check did not find {fault:?} in {}", E::NAME);
}

#[test]
fn serial_execution_is_what_the_oracle_does() {
    all_workloads::<Serial>();
}

#[test]
fn the_check_finds_writes_of_calls_that_gave_up() {
    is_found::<Serial, _>(Fault::KeepAborted, &Scramble { seed: 1 }, 300);
}

#[test]
fn calvin_keeps_the_order_of_the_batch() {
    all_workloads::<Calvin>();
}

#[test]
fn orthrus_keeps_the_order_of_the_batch() {
    all_workloads::<Orthrus>();
}

#[test]
fn locks_are_handed_over() {
    let reports = same_as_oracle::<Calvin, _>(&ycsb(200, false), 300);
    assert!(reports.iter().all(|report| report.counts.hand_overs > 300), "most calls meet");
    assert!(reports.iter().all(|report| report.counts.messages > 9 * 900), "10 keys each");
}

#[test]
fn the_check_finds_locks_that_do_not_exclude() {
    is_found::<Calvin, _>(Fault::GrantAtOnce, &ycsb(200, false), 2_000);
    is_found::<Orthrus, _>(Fault::OneManagerGrants, &ycsb(200, false), 2_000);
}

#[test]
fn bohm_keeps_the_order_of_the_batch() {
    all_workloads::<Bohm>();
}

#[test]
fn bohm_runs_the_calls_that_it_waits_for() {
    let producers = |_| {
        let reports = same_as_oracle::<Bohm, _>(&ycsb(200, false), 2_000);
        reports.iter().any(|report| report.counts.producer_runs > 0)
    };
    assert!((0..RUNS_MAX).any(producers), "no call was run for another one");
}

#[test]
fn caracal_keeps_the_order_of_the_batch() {
    all_workloads::<Caracal>();
}

/// More batches than the major collector waits for: each row of a batch that was written before is
/// collected by the minor collector, or by the major one where it was not written for long.
#[test]
fn old_versions_of_caracal_are_collected_by_the_one_or_the_other() {
    for (rows, calls) in [(200, 1_000), (50_000, 20)] {
        let settings = Settings { rounds: 30, ..settings(2, calls) };
        let report = run_batches::<Caracal, _>(&ycsb(rows, false), &settings).unwrap();
        let BatchCounts { minor_collections, major_collections, .. } = report.counts;
        assert!(minor_collections > 0, "{rows} rows");
        assert_eq!(major_collections > 0, rows > 200, "{rows} rows");
    }
    let settings = Settings { rounds: 40, ..settings(4, 60) };
    run_batches::<Caracal, _>(&Scramble { seed: 4 }, &settings).unwrap();
}

#[test]
fn the_check_finds_reads_of_older_versions() {
    is_found::<Bohm, _>(Fault::SkipPending, &ycsb(200, false), 2_000);
    is_found::<Caracal, _>(Fault::SkipPending, &ycsb(200, false), 2_000);
}

#[test]
fn granola_keeps_the_order_of_the_batch() {
    all_workloads::<Granola>();
    let reports = same_as_oracle::<Granola, _>(&updates(), 500);
    for report in reports {
        let pieces = if report.workers == 1 { 1 } else { 8 };
        assert!(report.counts.messages >= pieces * report.calls(), "10 updates each");
        assert_eq!(report.counts.hand_overs, 0, "updates are independent");
    }
    for report in same_as_oracle::<Granola, _>(&warehouses(), 500) {
        let dependent = report.counts.hand_overs;
        assert!(dependent * 5 < report.calls(), "only calls of several warehouses: {dependent}");
    }
}

#[test]
fn the_check_finds_partitions_that_do_not_meet() {
    is_found::<Granola, _>(Fault::NoRendezvous, &ycsb(200, false), 2_000);
}

#[test]
fn pwv_keeps_the_order_of_the_batch() {
    all_workloads::<Pwv>();
    same_as_oracle::<Pwv, _>(&updates(), 500);
}

#[test]
fn the_check_finds_graphs_without_reads() {
    is_found::<Pwv, _>(Fault::NoReadEdges, &ycsb(200, false), 2_000);
}

#[test]
fn aria_comes_to_what_its_order_does() {
    all_workloads::<Aria>();
}

#[test]
fn aria_reorders_and_falls_back() {
    let reports = same_as_oracle::<Aria, _>(&ycsb(200, false), 500);
    for report in &reports {
        assert!(report.counts.reruns > 0 && report.counts.fallbacks > 0, "{:?}", report.counts);
    }
    assert!(reports.iter().all(|report| report.counts.reruns == reports[0].counts.reruns));
}

#[test]
fn bcdb_comes_to_what_its_order_does() {
    all_workloads::<Bcdb>();
}

#[test]
fn the_check_finds_commits_that_have_no_order() {
    is_found::<Aria, _>(Fault::NoReadEdges, &smallbank(50), 300);
    is_found::<Bcdb, _>(Fault::NoPivots, &ycsb(200, false), 300);
}
