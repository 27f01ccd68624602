//! `bench arulraj`: one of the six storage engines for persistent memory, on YCSB or TPC-C.

use arulraj::{CacheShape, EngineName, Modelled, Options, Settings, TpccSize, render};
use cli::output::{Done, Failure, JsonTarget};

use crate::args::{ArulrajArguments, OneOfSeven, Workload};

/// Runs a `bench arulraj` command.
pub(super) fn run(arguments: &ArulrajArguments) -> Done {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let partitions = arguments.partitions.unwrap_or(cores.min(64));
    let tpcc = (arguments.workload == Workload::Tpcc).then_some(TpccSize {
        items: arguments.items,
        customers_per_district: arguments.customers_per_district,
    });
    if tpcc.is_none() && arguments.tuples / partitions < 10 {
        let tuples = arguments.tuples;
        return Err(Failure::usage(format!(
            "--tuples is {tuples}, at least 10 for each of {partitions} partitions"
        )));
    }
    let settings = Settings {
        engine: match arguments.engine {
            OneOfSeven::Six(engine) => engine,
            // Which of the six would run is nothing that NVCaracal asks.
            OneOfSeven::NvCaracal => EngineName::NvmInp,
        },
        device: arguments.device.clone(),
        partitions,
        tuples: arguments.tuples,
        transactions: arguments.transactions,
        tpcc,
        mix: arguments.mix,
        skew: arguments.skew,
        seed: arguments.seed,
        settle: arguments.settle,
        verify: arguments.verify,
        recover: arguments.recover,
        cost: arguments.cost,
        shares: arguments.shares,
        options: options(arguments),
    };
    let target = JsonTarget::open(arguments.json.as_deref())?;
    let report = match arguments.engine {
        OneOfSeven::Six(_) => {
            arulraj::run(&settings).map_err(|error| Failure::new(error.to_string()))?
        }
        OneOfSeven::NvCaracal => lab::run_beside(&settings)?,
    };
    target.write(&report, || render(&report))
}

fn options(arguments: &ArulrajArguments) -> Options {
    let cache = (arguments.cache_kib > 0).then(|| CacheShape {
        flush_evicts: !arguments.clwb,
        ..CacheShape::of_bytes(arguments.cache_kib << 10)
    });
    Options {
        group_transactions: arguments.group,
        checkpoint_transactions: arguments.checkpoint,
        gzip_level: arguments.gzip,
        node_bytes: arguments.node_bytes - arguments.node_bytes % 8,
        page_bytes: arguments.page_bytes - arguments.page_bytes % 8,
        cached_pages: arguments.cached_pages as usize,
        memtable_bytes: arguments.memtable_kib << 10,
        growth: arguments.growth,
        first_level_runs: arguments.first_level_runs as usize,
        bloom_bits: arguments.bloom_bits,
        modelled: Modelled {
            cache,
            system_call_ns: arguments.system_call_ns,
            ..Modelled::default()
        },
    }
}
