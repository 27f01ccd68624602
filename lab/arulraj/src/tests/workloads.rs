//! The laboratory's workloads on each engine, compared with the serial oracle, and recovered.

use std::sync::Arc;

use pmem::Dram;
use testbed::Settings;
use workloads::Workload;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::ycsb::{Contention, Ycsb, YcsbSettings};

use crate::engines::Engine;
use crate::rival::AsRival;
use crate::{Cow, Inp, Log, NvmCow, NvmInp, NvmLog};

fn is_serial<E: Engine<Dram> + Send + 'static, W: Workload>(workload: &W, calls: u64) {
    pmem::small_pages_only();
    let device = Arc::new(Dram::new(1 << 30, 1 << 20).unwrap());
    let mut settings =
        Settings { warm_up_rounds: 0, verify: true, recover: true, ..Settings::new(1, calls) };
    settings.options.group_calls = 7;
    testbed::run::<AsRival<Dram, E>, W>(&device, workload, &settings)
        .unwrap_or_else(|error| panic!("{} on {}: {error}", E::NAME, workload.name()));
}

fn all<E: Engine<Dram> + Send + 'static>() {
    let rows = YcsbSettings { hot_rows: 16, ..YcsbSettings::paper(100, Contention::High) };
    is_serial::<E, _>(&Ycsb::new(rows).unwrap(), 200);
    let accounts = SmallBankSettings { hot_customers: 4, ..SmallBankSettings::high(20) };
    is_serial::<E, _>(&SmallBank::new(accounts).unwrap(), 500);
    let tiny = TpccSettings::tiny(1, Mix::Full);
    let warehouse = TpccSettings { items: 200, customers_per_district: 20, ..tiny };
    is_serial::<E, _>(&Tpcc::new(warehouse).unwrap(), 300);
}

#[test]
fn traditional_engines_run_all_workloads() {
    all::<Inp<Dram>>();
    all::<Cow<Dram>>();
    all::<Log<Dram>>();
}

#[test]
fn engines_for_persistent_memory_run_all_workloads() {
    all::<NvmInp<Dram>>();
    all::<NvmCow<Dram>>();
    all::<NvmLog<Dram>>();
}
