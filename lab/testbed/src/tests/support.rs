//! Small workloads, and devices for them.

use std::sync::Arc;

use pmem::Dram;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::ycsb::{Contention, Ycsb, YcsbSettings};

use crate::Settings;

/// Runs of which one must meet what chance brings about: the first does on two idle cores, none of
/// a hundred may on one that has other work.
pub(super) const RUNS_MAX: u64 = 2_000;

/// YCSB with small rows, many of them hot.
pub(super) fn ycsb(rows: u64, pieces: bool) -> Ycsb {
    let settings = YcsbSettings { hot_rows: 16, read_keys: 3, pieces, ..small(rows) };
    Ycsb::new(settings).unwrap()
}

/// YCSB whose calls only update, each row in a piece.
pub(super) fn updates() -> Ycsb {
    let settings = YcsbSettings { hot_rows: 16, read_keys: 0, pieces: true, ..small(200) };
    Ycsb::new(settings).unwrap()
}

fn small(rows: u64) -> YcsbSettings {
    YcsbSettings::small_rows(rows, Contention::High)
}

/// SmallBank on few customers.
pub(super) fn smallbank(customers: u64) -> SmallBank {
    SmallBank::new(SmallBankSettings { hot_customers: 4, ..SmallBankSettings::high(customers) })
        .unwrap()
}

/// TPC-C with everything that the specification asks for.
pub(super) fn tpcc() -> Tpcc {
    let tiny = TpccSettings::tiny(1, Mix::Full);
    Tpcc::new(TpccSettings { items: 200, customers_per_district: 20, ..tiny }).unwrap()
}

/// The same with three warehouses, without calls that give up.
pub(super) fn warehouses() -> Tpcc {
    let tiny = TpccSettings::tiny(3, Mix::Paper);
    Tpcc::new(TpccSettings { items: 100, customers_per_district: 20, ..tiny }).unwrap()
}

/// The same with commit points.
pub(super) fn with_commit_points() -> (SmallBank, Tpcc) {
    let (smallbank, tpcc) = (smallbank(50), tpcc());
    let bank = SmallBankSettings { commit_points: true, ..smallbank.settings().clone() };
    let tpcc = TpccSettings { commit_points: true, ..tpcc.settings().clone() };
    (SmallBank::new(bank).unwrap(), Tpcc::new(tpcc).unwrap())
}

/// TPC-C cut into pieces: all of it, and with commit points of three warehouses.
pub(super) fn tpcc_in_pieces() -> [Tpcc; 2] {
    let (all, some) = (tpcc().settings().clone(), warehouses().settings().clone());
    let all = TpccSettings { pieces: true, ..all };
    let some = TpccSettings { pieces: true, commit_points: true, ..some };
    [all, some].map(|settings| Tpcc::new(settings).unwrap())
}

pub(super) fn dram() -> Arc<Dram> {
    Arc::new(Dram::new(1 << 30, 1 << 28).unwrap())
}

/// A run that is compared with the oracle, and recovered at its end.
pub(super) fn verified(workers: usize, calls: u64) -> Settings {
    let mut settings = Settings {
        warm_up_rounds: 0,
        verify: true,
        recover: true,
        ..Settings::new(workers, calls)
    };
    settings.options.page_bytes = 16 << 10;
    settings.options.group_us = 0;
    settings
}
