//! Options of `bench arulraj` and `bench interfaces`.

use std::path::PathBuf;

use arulraj::{EngineName, Interface, Mix, Order, SLOT_BYTES, Skew};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, value_parser};
use lab::BESIDE;
use pmem::DeviceSpec;

use super::memory_device;

/// What the engines run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// One table; a transaction reads a tuple or changes a column of one
    Ycsb,
    /// The full mix, a warehouse in each partition, and only transactions of one partition; a row
    /// is a tuple of one column
    Tpcc,
}

/// Which engine runs what, and how the engine is made.
#[derive(Debug, Args)]
pub(crate) struct ArulrajArguments {
    /// The storage engine; nvcaracal has one worker for a partition, and its indexes in DRAM
    #[arg(long, value_parser = engine_parser(), default_value = "nvm-inp")]
    pub(crate) engine: OneOfSeven,
    /// Where the stores are, one for each partition: dram or
    /// emulated[:none|optane|optane-lines|eadr|cxl|low|high]
    #[arg(long, default_value = "emulated:low", value_parser = memory_device)]
    pub(crate) device: DeviceSpec,
    /// The workload
    #[arg(long, value_enum, default_value = "ycsb")]
    pub(crate) workload: Workload,
    /// How many transactions of YCSB read: 100, 90, 50 or 10 of 100
    #[arg(long, value_parser = mix_parser(), default_value = "balanced")]
    pub(crate) mix: Mix,
    /// low: half of the transactions use a fifth of the tuples; high: 90 of 100 use a tenth
    #[arg(long, value_parser = skew_parser(), default_value = "low")]
    pub(crate) skew: Skew,
    /// Partitions, 1 to 64, with a thread each [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) partitions: Option<u64>,
    /// Tuples of YCSB of all partitions, 10 a partition to 100000000
    #[arg(long, default_value_t = 20_000)]
    #[arg(value_parser = value_parser!(u64).range(10..=100_000_000))]
    pub(crate) tuples: u64,
    /// Items of a warehouse of TPC-C, 100 to 10000000
    #[arg(long, default_value_t = 10_000)]
    #[arg(value_parser = value_parser!(u32).range(100..=10_000_000))]
    pub(crate) items: u32,
    /// Customers of a district of TPC-C, 10 to 4000
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u32).range(10..=4000))]
    pub(crate) customers_per_district: u32,
    /// Transactions of all partitions, 1 to 10000000000
    #[arg(long, default_value_t = 80_000)]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000_000_000))]
    pub(crate) transactions: u64,
    /// Names the data and the transactions
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// KiB of the processor's cache of a partition that is modelled, so that only misses and
    /// write-backs reach the device; 0: none is, and every access does
    #[arg(long, default_value_t = 2560, value_parser = value_parser!(u64).range(0..=1 << 30))]
    pub(crate) cache_kib: u64,
    /// A flush leaves the line in the modelled cache, as CLWB does, and not CLFLUSH
    #[arg(long)]
    pub(crate) clwb: bool,
    /// Nanoseconds of a system call beside its copy (inp, cow, log)
    #[arg(long, default_value_t = 500, value_parser = value_parser!(u64).range(0..=1_000_000))]
    pub(crate) system_call_ns: u64,
    /// Transactions of a group, 1 or more (inp, cow, log, nvm-cow)
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..))]
    pub(crate) group: u64,
    /// Transactions of a partition between two checkpoints, 1 or more (inp)
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..))]
    pub(crate) checkpoint: u64,
    /// Level of compression of a checkpoint (inp)
    #[arg(long, default_value_t = 6, value_parser = value_parser!(u32).range(0..=9))]
    pub(crate) gzip: u32,
    /// Bytes of a node of the B+trees
    #[arg(long, default_value_t = 512, value_parser = value_parser!(u64).range(128..=1024))]
    pub(crate) node_bytes: u64,
    /// Bytes of a page of the copy-on-write trees (cow, nvm-cow)
    #[arg(long, default_value_t = 4096, value_parser = value_parser!(u64).range(2560..=32768))]
    pub(crate) page_bytes: u64,
    /// Pages of a partition's page cache (cow)
    #[arg(long, default_value_t = 16_384, value_parser = value_parser!(u64).range(1..))]
    pub(crate) cached_pages: u64,
    /// KiB of a MemTable (log, nvm-log)
    #[arg(long, default_value_t = 1024, value_parser = value_parser!(u64).range(1..=1 << 30))]
    pub(crate) memtable_kib: u64,
    /// How many times as large each level is as the one above, 2 or more (log, nvm-log)
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(2..=1000))]
    pub(crate) growth: u64,
    /// Runs of the first level before they are merged (log, nvm-log)
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u64).range(1..=100))]
    pub(crate) first_level_runs: u64,
    /// Bits of a Bloom filter for each key (log, nvm-log)
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) bloom_bits: u64,
    /// After the load make a checkpoint (inp) or empty the MemTable (log, nvm-log), so that a
    /// recovery finds the log of the transactions only
    #[arg(long)]
    pub(crate) settle: bool,
    /// Compare every tuple at the end with what the transactions made of it
    #[arg(long)]
    pub(crate) verify: bool,
    /// End as if the program had been killed, and recover
    #[arg(long)]
    pub(crate) recover: bool,
    /// Run the same once more in DRAM without a modelled cache, and show what a transaction costs:
    /// time of the processor there, and modelled time of the device
    #[arg(long)]
    pub(crate) cost: bool,
    /// With --cost: measure what the time is for (the allocator and files, recovery, indexes,
    /// other), which makes it longer
    #[arg(long, requires = "cost")]
    pub(crate) shares: bool,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// How which chunks are written.
#[derive(Debug, Args)]
pub(crate) struct InterfacesArguments {
    /// allocator: stores, flushes and a fence; file: a write and an fsync
    #[arg(long, value_parser = PossibleValuesParser::new(["allocator", "file"]).map(interface))]
    #[arg(default_value = "allocator")]
    pub(crate) interface: Interface,
    /// Where a chunk is written: sequential or random
    #[arg(long, value_parser = PossibleValuesParser::new(["sequential", "random"]).map(order))]
    #[arg(default_value = "sequential")]
    pub(crate) order: Order,
    /// Bytes of a chunk, 1 to 60000
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u64).range(1..=SLOT_BYTES))]
    pub(crate) chunk_bytes: u64,
    /// Chunks, 1 to 1000000000
    #[arg(long, default_value_t = 100_000)]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) writes: u64,
    /// KiB of the processor's cache that is modelled
    #[arg(long, default_value_t = 2560, value_parser = value_parser!(u64).range(1..=1 << 30))]
    pub(crate) cache_kib: u64,
    /// Nanoseconds of a system call beside its copy
    #[arg(long, default_value_t = 500, value_parser = value_parser!(u64).range(0..=1_000_000))]
    pub(crate) system_call_ns: u64,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

fn interface(name: String) -> Interface {
    if name == "file" { Interface::File } else { Interface::Allocator }
}

fn order(name: String) -> Order {
    if name == "random" { Order::Random } else { Order::Sequential }
}

/// One of the six engines, or NVCaracal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OneOfSeven {
    Six(EngineName),
    NvCaracal,
}

fn engine_parser() -> impl TypedValueParser<Value = OneOfSeven> {
    let engines = EngineName::ALL;
    let mut values: Vec<_> =
        engines.iter().map(|e| PossibleValue::new(e.name()).help(e.what())).collect();
    values.push(PossibleValue::new(BESIDE).help("epochs; a log of inputs; beside the others"));
    PossibleValuesParser::new(values).map(move |name| {
        let engine = engines.into_iter().find(|e| e.name() == name);
        engine.map_or(OneOfSeven::NvCaracal, OneOfSeven::Six)
    })
}

fn mix_parser() -> impl TypedValueParser<Value = Mix> {
    PossibleValuesParser::new(Mix::ALL.map(Mix::name)).map(|name| {
        Mix::ALL.into_iter().find(|mix| mix.name() == name).expect("one of those offered")
    })
}

fn skew_parser() -> impl TypedValueParser<Value = Skew> {
    PossibleValuesParser::new(Skew::ALL.map(Skew::name)).map(|name| {
        Skew::ALL.into_iter().find(|skew| skew.name() == name).expect("one of those offered")
    })
}
