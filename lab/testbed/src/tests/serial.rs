//! The serializability check of all engines, and bugs that it must find.

use std::sync::Arc;

use pmem::{Dram, Traced};
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::{TableId, Workload};

use super::scramble::Scramble;
use super::support::{
    RUNS_MAX, dram, smallbank, tpcc, tpcc_in_pieces, verified, with_commit_points, ycsb,
};
use crate::rival::Fault;
use crate::{
    Accesses, Dbx, DbxDisk, DbxDram, DbxNaive, DbxNvm, DbxSyncDisk, Dbxn, DbxnLines, DbxnNvm,
    DbxnParity, DbxnPastCache, Error, Report, Result, Rival, Session, Settings, Stop, Wbl, Zen,
    ZenMvcc, run,
};

const WORKERS: [usize; 3] = [1, 2, 4];

fn run_on<R: Rival<Device = Dram>, W: Workload>(
    workload: &W,
    settings: &Settings,
) -> Result<Report> {
    run::<R, W>(&dram(), workload, settings)
}

/// Whether an engine keeps anything.
fn keeps<R: Rival>() -> bool {
    R::NAME != "dbx-dram"
}

/// Runs on all numbers of workers.
fn serializable<R: Rival<Device = Dram>, W: Workload>(workload: &W, calls: u64) {
    for workers in WORKERS {
        let mut settings = verified(workers, calls);
        settings.recover = keeps::<R>();
        let report = run_on::<R, W>(workload, &settings).unwrap();
        assert_eq!(report.committed + report.aborted, calls);
    }
}

fn all_workloads<R: Rival<Device = Dram>>() {
    serializable::<R, _>(&ycsb(200, false), 3_000);
    serializable::<R, _>(&ycsb(200, true), 1_000);
    serializable::<R, _>(&smallbank(50), 10_000);
    serializable::<R, _>(&tpcc(), 1_500);
    for seed in 0..3 {
        serializable::<R, _>(&Scramble { seed }, 4_000);
    }
}

/// Many short runs on a slow device, each from the start: there most rows are inserted.
/// A rival shows writes at the end of a transaction, which may still be repeated after a commit
/// point.
fn with_points<R: Rival<Device = Dram>>() {
    let (smallbank, tpcc) = with_commit_points();
    serializable::<R, _>(&smallbank, 4_000);
    serializable::<R, _>(&tpcc, 1_000);
}

#[test]
fn commit_points_change_nothing_in_rivals() {
    with_points::<Zen<Dram>>();
    with_points::<ZenMvcc<Dram>>();
    with_points::<Wbl<Dram>>();
    with_points::<Dbx<Dram, Dbxn>>();
}

/// A rival runs a transaction with all its pieces on one thread.
fn with_pieces<R: Rival<Device = Dram>>() {
    for tpcc in tpcc_in_pieces() {
        serializable::<R, _>(&tpcc, 1_000);
    }
}

#[test]
fn pieces_change_nothing_in_rivals() {
    with_pieces::<Zen<Dram>>();
    with_pieces::<ZenMvcc<Dram>>();
    with_pieces::<Wbl<Dram>>();
    with_pieces::<Dbx<Dram, Dbxn>>();
}

fn short_histories<R: Rival<Device = Traced>>() {
    pmem::small_pages_only();
    for seed in 0..20 {
        let device = || Arc::new(Traced::new(64 << 20, 16 << 20).unwrap());
        let settings = verified(4, 60);
        run::<R, _>(&device(), &Scramble { seed }, &settings).unwrap();
    }
}

#[test]
fn short_histories_are_serializable() {
    short_histories::<Zen<Traced>>();
    short_histories::<ZenMvcc<Traced>>();
    short_histories::<Wbl<Traced>>();
    short_histories::<Dbx<Traced, DbxNvm>>();
    short_histories::<Dbx<Traced, DbxNaive>>();
    short_histories::<Dbx<Traced, Dbxn>>();
}

/// The check must find a bug on a workload, in one of some runs: whether it strikes is chance.
fn is_found<R: Rival<Device = Dram>, W: Workload>(fault: Fault, workload: &W) {
    let mut settings = verified(4, 4_000);
    settings.options.fault = Some(fault);
    for _ in 0..RUNS_MAX {
        match run_on::<R, W>(workload, &settings) {
            Ok(_) => {}
            Err(Error::Broken(_)) => return,
            Err(other) => panic!("{fault:?}: {other}"),
        }
    }
    panic!("the check did not find {fault:?}");
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
fn dbx_without_a_log_is_serializable() {
    all_workloads::<Dbx<Dram, DbxDram>>();
}

#[test]
fn dbx_with_groups_is_serializable() {
    all_workloads::<Dbx<Dram, DbxNvm>>();
    serializable::<Dbx<Dram, DbxDisk>, _>(&smallbank(50), 10_000);
}

#[test]
fn dbx_with_logs_under_locks_is_serializable() {
    all_workloads::<Dbx<Dram, DbxNaive>>();
    serializable::<Dbx<Dram, DbxSyncDisk>, _>(&smallbank(50), 10_000);
}

#[test]
fn dbxn_is_serializable() {
    all_workloads::<Dbx<Dram, Dbxn>>();
}

#[test]
fn dbxn_with_all_data_on_the_device_is_serializable() {
    all_workloads::<Dbx<Dram, DbxnNvm>>();
}

#[test]
fn the_steps_of_dbxn_are_serializable() {
    serializable::<Dbx<Dram, DbxnParity>, _>(&smallbank(50), 10_000);
    serializable::<Dbx<Dram, DbxnLines>, _>(&tpcc(), 1_500);
    serializable::<Dbx<Dram, DbxnPastCache>, _>(&Scramble { seed: 1 }, 4_000);
}

fn small_cache<R: Rival<Device = Dram>>() {
    let cold = SmallBankSettings { hot_probability: 0.1, ..SmallBankSettings::low(20_000) };
    let cold = SmallBank::new(cold).unwrap();
    for workers in WORKERS {
        let mut settings = verified(workers, 6_000);
        settings.options.cache_bytes = 1 << 20;
        for counts in [
            run_on::<R, _>(&ycsb(20_000, false), &settings).unwrap().counts,
            run_on::<R, _>(&cold, &settings).unwrap().counts,
        ] {
            assert!(counts.evictions > 500, "{counts:?}");
            assert!(counts.cache_misses > 500, "{counts:?}");
        }
    }
}

#[test]
fn zen_is_serializable_with_a_small_cache() {
    small_cache::<Zen<Dram>>();
}

#[test]
fn zen_with_snapshots_is_serializable_with_a_small_cache() {
    small_cache::<ZenMvcc<Dram>>();
}

#[test]
fn transactions_are_in_each_others_way() {
    let workload = ycsb(200, false);
    let meet = |_| run_on::<Zen<Dram>, _>(&workload, &verified(4, 3_000)).unwrap().retries > 0;
    assert!((0..RUNS_MAX).any(meet), "a check of transactions that never meet means nothing");
}

#[test]
fn snapshots_are_of_old_versions() {
    let meet = |_| {
        let report = run_on::<ZenMvcc<Dram>, _>(&smallbank(50), &verified(4, 10_000)).unwrap();
        report.counts.old_versions_read > 0
    };
    assert!((0..RUNS_MAX).any(meet), "no transaction ever met a newer version");
}

#[test]
fn the_check_finds_reads_that_are_not_validated() {
    is_found::<Zen<Dram>, _>(Fault::NoReadValidation, &ycsb(200, false));
    is_found::<ZenMvcc<Dram>, _>(Fault::NoReadValidation, &ycsb(200, false));
    is_found::<Wbl<Dram>, _>(Fault::NoReadValidation, &ycsb(200, false));
    is_found::<Dbx<Dram, Dbxn>, _>(Fault::NoReadValidation, &ycsb(200, false));
    is_found::<Dbx<Dram, DbxNaive>, _>(Fault::NoReadValidation, &ycsb(200, false));
}

#[test]
fn the_check_finds_snapshots_that_are_none() {
    is_found::<ZenMvcc<Dram>, _>(Fault::NewestInSnapshot, &smallbank(50));
}

#[test]
fn the_check_finds_phantoms() {
    is_found::<Zen<Dram>, _>(Fault::NoNodeValidation, &Scramble { seed: 1 });
    is_found::<Dbx<Dram, Dbxn>, _>(Fault::NoNodeValidation, &Scramble { seed: 1 });
}

/// Two transactions find that a row is not there and insert it, one after the other in the same
/// thread: the one that looked first must not overwrite what the other inserted.
fn two_insert_what_was_missing<R: Rival<Device = Dram>>() {
    let tables = Scramble { seed: 0 }.tables();
    for (table, key) in [(0, [7_u8; 8].as_slice()), (1, &[7; 8]), (2, &[7; 20]), (3, &[7; 12])] {
        let table = TableId(table);
        let rival = R::create(dram(), &tables, &verified(2, 0).options).unwrap();
        let (mut first, mut second) = (rival.session(0), rival.session(1));
        first.begin();
        assert!(first.get(table, key).unwrap().is_none());
        first.insert(table, key, b"first").unwrap();
        second.begin();
        assert!(second.get(table, key).unwrap().is_none());
        second.insert(table, key, b"second").unwrap();
        second.commit().unwrap();
        assert!(matches!(first.commit(), Err(Stop::Conflict)));
        first.roll_back();
        assert_eq!(rival.get(table, key).as_deref(), Some(b"second".as_slice()));
    }
}

#[test]
fn an_insert_relies_on_what_was_missing() {
    two_insert_what_was_missing::<Zen<Dram>>();
    two_insert_what_was_missing::<ZenMvcc<Dram>>();
    two_insert_what_was_missing::<Wbl<Dram>>();
    two_insert_what_was_missing::<Dbx<Dram, Dbxn>>();
}
