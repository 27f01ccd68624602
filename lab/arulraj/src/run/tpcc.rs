//! TPC-C as the paper has it (5.1): a warehouse in each partition, and only transactions of one
//! partition. Data, calls and oracle are the laboratory's; a row is a tuple of one column.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use pmem::Device;
use testbed::check::check;
use testbed::{Answered, Calls, Procedures, RivalView, Session, load};
use workloads::Workload;
use workloads::tpcc::{Mix, Tpcc, TpccSettings};

use super::clock::thread_cpu_ns;
use super::report::{Done, RecoveryCounts};
use super::settings::{Settings, TpccSize, share};
use crate::engines::Engine;
use crate::rival::AsRival;
use crate::{Error, Result};

/// The workload of a partition: its warehouse.
///
/// # Errors
/// [`Error::Limit`] for sizes that TPC-C does not have.
pub fn warehouse(size: TpccSize, seed: u64, partition: u64) -> Result<Tpcc> {
    let settings = TpccSettings {
        items: size.items,
        customers_per_district: size.customers_per_district,
        seed: seed.wrapping_add(partition.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        ..TpccSettings::standard(1, Mix::Full)
    };
    Tpcc::new(settings).map_err(|error| Error::Limit(error.to_string()))
}

/// What a partition's calls came to.
struct Ran {
    history: Vec<Answered>,
    /// How many of them are durable.
    durable: usize,
}

/// Runs the part of the transactions that falls to a partition.
pub(crate) fn run_tpcc<D, E, F>(
    settings: &Settings,
    size: TpccSize,
    partition: u64,
    device: &F,
    begins: &Barrier,
) -> Result<Done>
where
    D: Device,
    E: Engine<D> + Send + 'static,
    F: Fn() -> Result<D> + Sync,
{
    let loaded = warehouse(size, settings.seed, partition).and_then(|tpcc| {
        let device = Arc::new(device()?);
        let tables = tpcc.tables();
        let of = AsRival::<D, E>::create_with(Arc::clone(&device), &tables, &settings.options)?;
        load(&of, &tpcc, 1)?;
        if settings.settle {
            of.settle()?;
        }
        Ok((tpcc, device, of))
    });
    // All come here, those that failed too.
    begins.wait();
    let (tpcc, device, of) = loaded?;
    let count = share(settings.transactions, settings.partitions, partition);
    let calls = Calls::of_stream(&tpcc, 0..count);
    let before = of.traffic();
    let (start, cpu_start_ns) = (Instant::now(), thread_cpu_ns());
    let mut ran = run_calls(&of, &tpcc, &calls, settings)?;
    let (seconds, cpu_ns) = (start.elapsed().as_secs_f64(), thread_cpu_ns() - cpu_start_ns);
    let (traffic, footprint) = (of.traffic().since(&before), of.footprint_max());
    let mut done = Done { seconds, cpu_ns, traffic, footprint, recovery: None };
    let of = match settings.recover {
        false => of,
        true => {
            drop(of);
            let start = Instant::now();
            let (of, did) = AsRival::<D, E>::open_with(device, &tpcc.tables(), &settings.options)?;
            done.recovery = Some(RecoveryCounts::of(&did, start.elapsed(), ran.durable as u64));
            of
        }
    };
    if settings.verify {
        ran.history.truncate(ran.durable);
        check(&tpcc, &calls, &mut ran.history, &RivalView(&of)).map_err(Error::Corrupt)?;
    }
    Ok(done)
}

/// Runs calls one after the other; the last group stays open for a recovery.
fn run_calls<D: Device, E: Engine<D> + Send + 'static>(
    of: &AsRival<D, E>,
    tpcc: &Tpcc,
    calls: &Calls,
    settings: &Settings,
) -> Result<Ran> {
    let mut procedures = Procedures::default();
    tpcc.register(&mut procedures);
    let mut session = testbed::Rival::session(of, 0);
    let (mut history, mut output, mut serials) = (Vec::new(), Vec::new(), Vec::new());
    for call in 0..calls.len() {
        let (procedure, args) = calls.get(call);
        let done = procedures.run(&mut session, procedure, args, &mut output)?;
        serials.push(done.serial);
        if settings.verify {
            history.push(Answered::new(call, &done, &output));
        }
    }
    if !settings.recover {
        session.finish()?;
    }
    let durable = session.durable();
    Ok(Ran { history, durable: serials.partition_point(|serial| *serial <= durable) })
}
