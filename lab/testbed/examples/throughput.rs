//! Answers per second of all rivals on all workloads, at a small scale: a look, not a measurement.
//! Arguments, each of them optional: workers, calls, profile, and a part of the engine's and the
//! workload's name.
//!
//!     cargo run --release -p nvcaracal-testbed --example throughput -- 2 50000 optane 'zen ycsb'

use std::error::Error;
use std::sync::Arc;

use pmem::{Emulated, Profile};
use testbed::{Rival, Settings, Wbl, Zen, ZenMvcc, run};
use workloads::Workload;
use workloads::smallbank::{SmallBank, SmallBankSettings};
use workloads::tpcc::{Mix, Tpcc, TpccSettings};
use workloads::ycsb::{Contention, Ycsb, YcsbSettings};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let workers = args.next().map_or(Ok(2), |text| text.parse())?;
    let calls = args.next().map_or(Ok(50_000), |text| text.parse())?;
    let profile = args.next().map_or(Ok(Profile::Optane), |text| text.parse())?;
    let only = args.next().unwrap_or_default();
    let settings = Settings { recover: true, ..Settings::new(workers, calls) };
    println!(
        "{:<9}{:<22}{:>10}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}{:>9}",
        "engine",
        "workload",
        "calls/s",
        "retries",
        "p50 us",
        "p99 us",
        "stored",
        "lines",
        "fences",
        "reads",
        "recover"
    );
    let ycsb = |contention| Ycsb::new(YcsbSettings::paper(100_000, contention));
    let smallbank = |settings| SmallBank::new(settings);
    all("ycsb low", &ycsb(Contention::Low)?, &only, profile, &settings)?;
    all("ycsb high", &ycsb(Contention::High)?, &only, profile, &settings)?;
    all("smallbank low", &smallbank(SmallBankSettings::low(180_000))?, &only, profile, &settings)?;
    all(
        "smallbank high",
        &smallbank(SmallBankSettings::high(180_000))?,
        &only,
        profile,
        &settings,
    )?;
    let tpcc = Tpcc::new(TpccSettings { items: 10_000, ..TpccSettings::standard(1, Mix::Paper) })?;
    all("tpcc 1 warehouse", &tpcc, &only, profile, &settings)
}

fn all<W: Workload>(
    name: &str,
    workload: &W,
    only: &str,
    profile: Profile,
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    one::<Zen<Emulated>, W>(name, workload, only, profile, settings)?;
    one::<ZenMvcc<Emulated>, W>(name, workload, only, profile, settings)?;
    one::<Wbl<Emulated>, W>(name, workload, only, profile, settings)
}

fn one<R: Rival<Device = Emulated>, W: Workload>(
    name: &str,
    workload: &W,
    only: &str,
    profile: Profile,
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    if !format!("{} {name}", R::NAME).contains(only) {
        return Ok(());
    }
    let device = Arc::new(Emulated::new(profile, 8 << 30, 16 << 20)?);
    let report = run::<R, W>(&device, workload, settings)?;
    let us = |quantile| report.latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    let recovery = report.recovery.as_ref();
    println!(
        "{:<9}{name:<22}{:>10.0}{:>9.4}{:>9.1}{:>9.1}{:>9.0}{:>8.1}{:>8.2}{:>8.1}{:>7.0}ms",
        report.engine,
        report.calls_per_second(),
        report.per_call(report.retries),
        us(0.5),
        us(0.99),
        report.per_call(report.counters.bytes_stored),
        report.per_call(report.counters.lines_written),
        report.per_call(report.counters.fences),
        report.per_call(report.counters.lines_read),
        recovery.map_or(0.0, |r| (r.find_committed_ns + r.build_ns + r.finish_ns) as f64 / 1e6),
    );
    Ok(())
}
