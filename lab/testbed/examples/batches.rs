//! What the deterministic rivals do on all workloads, at a small scale: a look, not a measurement.
//! Arguments, each of them optional: workers, calls of a batch, batches, and a part of the engine's
//! and the workload's name.
//!
//!     cargo run --release -p nvcaracal-testbed --example batches -- 2 4000 5 'calvin ycsb'

use std::error::Error;

use testbed::{
    Aria, BatchEngine, Bcdb, Bohm, Calvin, Caracal, Granola, Orthrus, Pwv, Serial, Settings,
    run_batches,
};
use workloads::Workload;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::ycsb::{Contention, Ycsb, YcsbSettings};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let workers = args.next().map_or(Ok(2), |text| text.parse())?;
    let calls = args.next().map_or(Ok(2_000), |text| text.parse())?;
    let rounds = args.next().map_or(Ok(3), |text| text.parse())?;
    let only = args.next().unwrap_or_default();
    let settings = Settings { rounds, ..Settings::new(workers, calls) };
    println!(
        "{:<9}{:<20}{:>10}{:>8}{:>9}{:>9}{:>9}{:>9}{:>8}",
        "engine",
        "workload",
        "calls/s",
        "waits",
        "spins",
        "handed",
        "messages",
        "versions",
        "reruns"
    );
    let ycsb = |contention| Ycsb::new(YcsbSettings::paper(20_000, contention));
    all("ycsb low", &ycsb(Contention::Low)?, &only, &settings)?;
    all("ycsb high", &ycsb(Contention::High)?, &only, &settings)?;
    let pieces = YcsbSettings { pieces: true, ..YcsbSettings::paper(20_000, Contention::High) };
    all("ycsb high, pieces", &Ycsb::new(pieces)?, &only, &settings)?;
    all("smallbank", &SmallBank::new(SmallBankSettings::low(18_000))?, &only, &settings)?;
    for (name, warehouses) in [("tpcc 1 warehouse", 1), ("tpcc 2 warehouses", 2)] {
        let standard = TpccSettings::standard(warehouses, Mix::Paper);
        let small = TpccSettings { items: 2_000, customers_per_district: 100, ..standard };
        all(name, &Tpcc::new(small)?, &only, &settings)?;
    }
    Ok(())
}

fn all<W: Workload>(
    name: &str,
    workload: &W,
    only: &str,
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    one::<Serial, W>(name, workload, only, settings)?;
    one::<Calvin, W>(name, workload, only, settings)?;
    one::<Orthrus, W>(name, workload, only, settings)?;
    one::<Bohm, W>(name, workload, only, settings)?;
    one::<Caracal, W>(name, workload, only, settings)?;
    one::<Granola, W>(name, workload, only, settings)?;
    one::<Pwv, W>(name, workload, only, settings)?;
    one::<Aria, W>(name, workload, only, settings)?;
    one::<Bcdb, W>(name, workload, only, settings)
}

fn one<E: BatchEngine, W: Workload>(
    name: &str,
    workload: &W,
    only: &str,
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    if !format!("{} {name}", E::NAME).contains(only) {
        return Ok(());
    }
    let report = run_batches::<E, W>(workload, settings)?;
    let per_call = |count: u64| count as f64 / report.calls().max(1) as f64;
    let counts = &report.counts;
    println!(
        "{:<9}{name:<20}{:>10.0}{:>8.3}{:>9.1}{:>9.3}{:>9.2}{:>9.2}{:>8.3}",
        report.engine,
        report.calls_per_second(),
        per_call(counts.waits.waits),
        per_call(counts.waits.spins),
        per_call(counts.hand_overs),
        per_call(counts.messages),
        per_call(counts.versions),
        per_call(counts.reruns),
    );
    Ok(())
}
