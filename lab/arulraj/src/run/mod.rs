//! Runs an engine on YCSB or TPC-C, a thread for each partition, and reports.

pub(crate) mod clock;
pub(crate) mod report;
mod settings;
mod tpcc;

use std::sync::{Arc, Barrier};
use std::time::Instant;

use pmem::{Device, DeviceSpec, Dram, Emulated};

use crate::engines::{Cow, Engine, Inp, Log, NvmCow, NvmInp, NvmLog};
use crate::partition::Partition;
use crate::ycsb::{COLUMNS, Work, Ycsb};
use crate::{Error, Result};

use clock::thread_cpu_ns;
use report::{Done, cost, report, shares};
use tpcc::run_tpcc;

pub use report::{Counts, RecoveryCounts, Report, render};
pub use settings::{EngineName, Settings, TpccSize, share};
pub use tpcc::warehouse;

/// Runs an engine.
///
/// # Errors
/// The engine's; [`Error::Corrupt`] if a tuple is not what it must be.
pub fn run(settings: &Settings) -> Result<Report> {
    let parts = run_once(settings)?;
    let mut report = report(settings, &parts);
    if settings.cost && report.modelled_ns.is_some() {
        let mut plain = settings.clone();
        plain.options.modelled.cache = None;
        plain.options.modelled.is_timed = settings.shares;
        (plain.device, plain.verify, plain.recover) = (DeviceSpec::Dram, false, false);
        let plain = run_once(&plain)?;
        let cpu_ns: u64 = plain.iter().map(|done| done.cpu_ns).sum();
        let mut cost = cost(cpu_ns as f64 / settings.transactions.max(1) as f64, &report.counts);
        cost.shares = settings.shares.then(|| shares(&plain, &parts));
        report.cost = Some(cost);
    }
    Ok(report)
}

/// What each partition came to.
fn run_once(settings: &Settings) -> Result<Vec<Done>> {
    match settings.engine {
        EngineName::Inp => on_device::<Inp<Dram>, Inp<Emulated>>(settings),
        EngineName::Cow => on_device::<Cow<Dram>, Cow<Emulated>>(settings),
        EngineName::Log => on_device::<Log<Dram>, Log<Emulated>>(settings),
        EngineName::NvmInp => on_device::<NvmInp<Dram>, NvmInp<Emulated>>(settings),
        EngineName::NvmCow => on_device::<NvmCow<Dram>, NvmCow<Emulated>>(settings),
        EngineName::NvmLog => on_device::<NvmLog<Dram>, NvmLog<Emulated>>(settings),
    }
}

fn on_device<A, B>(settings: &Settings) -> Result<Vec<Done>>
where
    A: Engine<Dram> + Send + 'static,
    B: Engine<Emulated> + Send + 'static,
{
    // Address space; memory is mapped when it is used.
    let of_data = match settings.tpcc {
        Some(size) => size.bytes() * settings.partitions,
        None => settings.tuples * 16_000,
    };
    let of_all = of_data + settings.transactions * 16_000 + (1 << 30);
    let limit = (of_all / settings.partitions).min(1 << 40);
    match settings.device {
        DeviceSpec::Dram => on_partitions::<_, A>(settings, || Ok(Dram::new(limit, 0)?)),
        DeviceSpec::Emulated(profile) => {
            on_partitions::<_, B>(settings, || Ok(Emulated::new(profile, limit, 0)?))
        }
        _ => Err(Error::Limit("the engines run on dram and emulated devices".into())),
    }
}

fn on_partitions<D: Device, E: Engine<D> + Send + 'static>(
    settings: &Settings,
    device: impl Fn() -> Result<D> + Sync,
) -> Result<Vec<Done>> {
    let begins = Barrier::new(settings.partitions as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.partitions)
            .map(|partition| {
                let (begins, device) = (&begins, &device);
                scope.spawn(move || match settings.tpcc {
                    Some(size) => run_tpcc::<D, E, _>(settings, size, partition, device, begins),
                    None => one_partition::<D, E, _>(settings, partition, device, begins),
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("a partition panicked"));
        ended.collect()
    })
}

fn one_partition<D: Device, E: Engine<D>, F: Fn() -> Result<D> + Sync>(
    settings: &Settings,
    partition: u64,
    device: &F,
    begins: &Barrier,
) -> Result<Done> {
    let ycsb = Ycsb {
        tuples: share(settings.tuples, settings.partitions, partition),
        mix: settings.mix,
        skew: settings.skew,
        seed: settings.seed,
        partition,
    };
    let loaded = ycsb.check().and_then(|()| {
        let device = Arc::new(device()?);
        let schema = Ycsb::schema()?;
        let mut to = Partition::<D, E>::create(Arc::clone(&device), &schema, &settings.options)?;
        load(&ycsb, &mut to)?;
        if settings.settle {
            to.settle()?;
        }
        Ok((device, to))
    });
    // All come here, those that failed too.
    begins.wait();
    let (device, mut to) = loaded?;
    let before = to.engine().traffic();
    let count = share(settings.transactions, settings.partitions, partition);
    let committed_before = ycsb.tuples;
    let (start, cpu_start_ns) = (Instant::now(), thread_cpu_ns());
    let mut newest = vec![0; ycsb.tuples as usize * COLUMNS];
    for position in 0..count {
        match ycsb.transaction(position) {
            Work::Read(tuple) => {
                to.get(0, &Ycsb::key(tuple))?;
            }
            Work::Update { tuple, column } => {
                let value = ycsb.value(tuple, column, position + 1);
                to.update(0, &Ycsb::key(tuple), &[(column, &value)])?;
            }
        }
        to.commit()?;
    }
    if !settings.recover {
        to.flush()?;
    }
    let (seconds, cpu_ns) = (start.elapsed().as_secs_f64(), thread_cpu_ns() - cpu_start_ns);
    let traffic = to.engine().traffic().since(&before);
    let (_, footprint) = to.engine().footprint();
    let durable = to.engine().durable() - committed_before;
    for position in 0..durable {
        if let Work::Update { tuple, column } = ycsb.transaction(position) {
            newest[tuple as usize * COLUMNS + column] = position + 1;
        }
    }
    let mut done = Done { seconds, cpu_ns, traffic, footprint, recovery: None };
    if settings.recover {
        drop(to);
        let (recovered, counts) = recover::<D, E>(device, settings, durable)?;
        to = recovered;
        done.recovery = Some(counts);
    }
    if settings.verify {
        verify(&ycsb, &mut to, &newest)?;
    }
    Ok(done)
}

fn load<D: Device, E: Engine<D>>(ycsb: &Ycsb, to: &mut Partition<D, E>) -> Result<()> {
    for tuple in 0..ycsb.tuples {
        to.insert(0, &Ycsb::key(tuple), &ycsb.row(tuple))?;
        to.commit()?;
    }
    to.flush()
}

fn recover<D: Device, E: Engine<D>>(
    device: Arc<D>,
    settings: &Settings,
    durable: u64,
) -> Result<(Partition<D, E>, RecoveryCounts)> {
    let start = Instant::now();
    let (recovered, did) = Partition::open(device, &Ycsb::schema()?, &settings.options)?;
    Ok((recovered, RecoveryCounts::of(&did, start.elapsed(), durable)))
}

/// Compares every tuple with what the transactions made of it; `newest` has the position of the
/// last update of each column.
fn verify<D: Device, E: Engine<D>>(
    ycsb: &Ycsb,
    of: &mut Partition<D, E>,
    newest: &[u64],
) -> Result<()> {
    for tuple in 0..ycsb.tuples {
        let row = of.get(0, &Ycsb::key(tuple))?;
        let row = row.ok_or_else(|| Error::Corrupt(format!("tuple {tuple} is not there")))?;
        for (column, value) in row.iter().enumerate() {
            let position = newest[tuple as usize * COLUMNS + column];
            if *value != ycsb.value(tuple, column, position) {
                return Err(Error::Corrupt(format!(
                    "column {column} of tuple {tuple} is not as transaction {position} left it"
                )));
            }
        }
    }
    Ok(())
}
