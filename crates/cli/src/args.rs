//! The command line: every option, its unit, default and limits.

mod contention;
mod rows;

use std::path::PathBuf;

use bench::ablation::{WORKS, Work};
use bench::reproduce::Scale;
use bench::{AppendMethod, CachePolicy, Design};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use pmem::{DeviceSpec, Profile};

pub(crate) use contention::ContentionArguments;
pub(crate) use rows::{DumpArguments, Format, LoadArguments, StorePath};

/// A deterministic, epoch-based database engine: benchmarks and tools.
///
/// Exit codes: 0 all is well, 1 a failed run, check or verification, 2 a wrong command line, 3 a
/// salvage that lost rows or calls, 130 or 143 a run that SIGINT or SIGTERM interrupted.
#[derive(Debug, Parser)]
#[command(name = "nvcaracal", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum Command {
    /// Run a workload of the papers and report what it took, or measure the machine
    ///
    /// SIGINT (Ctrl-C) or SIGTERM interrupts a run in good order: it finishes the epoch that is
    /// running, skips the others, checks what ran, closes the store with a checkpoint, reports, and
    /// ends with exit code 130 or 143. A store that is kept goes on with --resume; a temporary one
    /// is removed. A second signal ends the process at once, without any of this.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Make the figures of the papers again, and say which of their statements hold here
    ///
    /// Figures are fig5 to fig12 (those of the NVCaracal paper, together nv), histograms (of the
    /// report of 2021), profiles (every design on every device profile), or all. Every run is a
    /// `bench` command in a process of its own; all series of a figure run once in each round.
    /// Writes runs.jsonl, report.json and report.html into a directory. SIGINT or SIGTERM ends it
    /// with a report of what has run, and the same command goes on where it stopped.
    ///
    /// Exit codes: 0 done, 1 a run failed, 2 a wrong command line, or a directory with runs of
    /// another scale or build, 130 or 143 interrupted. A design, device or option that this build
    /// does not have is noted in the report.
    Reproduce(ReproduceArguments),
    /// Read a whole store and say what is wrong with it; changes nothing
    ///
    /// Reports the epoch and the state digest of the checkpoint. Committed epochs after it, which
    /// the next open replays, are listed.
    Check(StoreArguments),
    /// Show what is in a store, or the format itself
    Inspect(InspectArguments),
    /// Write the rows of a store, of whichever program, as JSON lines or CSV; changes nothing
    ///
    /// Rows are shown by the types that the store has in words, in the order of their keys. Each
    /// table begins with a line that describes it (JSON lines) or with the names of its columns
    /// (CSV). What no type is known of is shown as bytes. In CSV texts are as they are, other
    /// values are JSON; a cell without anything is null, "" an empty text. CSV with --out has a
    /// file more, tables.jsonl, which describes the tables.
    ///
    /// Where the type of a table's values has several versions, each row says of which its value
    /// is, counted from 0: "version". What could not be had again from its form is "key_bytes" or
    /// "value_bytes" in JSON lines, and refused in CSV. With --out the files are read back and
    /// compared with the store's state hash; as long as the directory has a file dump.unfinished,
    /// nobody loads it.
    Dump(DumpArguments),
    /// Load rows that `dump` wrote into a new store, or into one that was closed
    ///
    /// A new store gets the tables that the files describe, and its program opens it as its own. In
    /// a store that is there, rows of the same keys are replaced; its tables must be of the same
    /// types, or of more versions of them. CSV says nothing of types: it is loaded into a table
    /// that is there, or with the tables.jsonl of its dump. Sequences are set.
    ///
    /// Everything is read and checked before anything is changed: types, lengths, keys that come
    /// twice. A load that is cut short leaves a store that every program and command refuses, until
    /// the same files are loaded again. Nothing is ever removed.
    Load(LoadArguments),
    /// Recover a store that `bench` made, and show how long each part took; check one of another
    /// program, which only that can recover; or decide what becomes of one that is refused
    ///
    /// --accept-loss-after and --skip-call work for every store, whichever program made it. They do
    /// one step and replay nothing: that does the next open.
    Recover(RecoverArguments),
    /// Crash small random histories at every store, flush and fence, and in recovery, and compare
    /// what is recovered with a serial oracle
    ///
    /// Shows how many images were recovered, in which phases they were cut, and whether any row of
    /// the crash matrix was never hit. On the first violation it stops and shows the seed, a small
    /// history, the crash, the obligations that it may belong to, and the command that repeats
    /// it; the exit code is 1 then. SIGINT or SIGTERM ends it with what was explored until then.
    Sim(SimArguments),
}

/// What to run or to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// YCSB: 10 reads or read-modify-writes of one table in a transaction (NV 6.2.1, CA 5.3)
    Ycsb(YcsbArguments),
    /// SmallBank: five types of transactions on bank accounts (NV 6.2.2)
    Smallbank(SmallBankArguments),
    /// TPC-C: a wholesale supplier, five types of transactions (NV 6.2.3, CA 5.4)
    Tpcc(TpccArguments),
    /// Not a workload: what memory, processor and disk of this machine can do, to read results
    /// against
    ///
    /// Measures random reads, streams, stores with flushes and fences, new memory, plain programs
    /// without an engine, the processor alone, and syncs of a file, each as the median of short
    /// repetitions, and shows them beside the figures of the machine on which the goals were
    /// measured. Takes 10 to 15 s, and memory-mib and some 130 MiB of memory.
    Roofline(RooflineArguments),
    /// Not a workload: how much slower than memory an emulated device is, beside what the paper
    /// measured of persistent memory
    ///
    /// One thread, and then two, write and read random blocks of 256 bytes of memory and of the
    /// device alternately: non-temporal writes with a fence every 16, and reads that do not depend
    /// on each other. The table has both throughputs, their ratio, that of the paper's machine (NV
    /// 6.1: 11.9 for writes, 3.2 for reads), and whether it is met within 15 %. Takes a second or
    /// two.
    Device(DeviceArguments),
    /// Not one workload but several, with some options of the engine: what each of them is worth,
    /// and what another build does in the same rounds
    ///
    /// Runs each work with the engine as it is, without the state hash, with append by row lock,
    /// YCSB with pieces, and with the program of --against, if there is one; every run is a `bench`
    /// command in a process of its own. All variants run in each round, and are compared within
    /// rounds. Takes a few minutes, and 2 GiB of memory. SIGINT or SIGTERM ends it with a table of
    /// what has run.
    Ablation(AblationArguments),
    /// What few hot rows cost callers of the library: with a write set on all workers, with one on
    /// one worker, and without one, also on a busy machine
    ///
    /// Many threads keep calls in flight that each add to one of the rows. The variants run in
    /// turns within each round; loops that only burn time run beside them in half of the settings.
    /// The rows hold as many additions as calls were answered, or the exit code is 1. Takes 2 to 3
    /// minutes, with --quick seconds.
    Contention(ContentionArguments),
    /// How long callers of the library wait for one durable update, beside redb, fjall and SQLite
    /// on the same disk
    ///
    /// Each caller updates one row at random, waits until that is durable, and goes on. All
    /// databases alternate for each number of callers; the disk's own fdatasync is measured
    /// before. At the end each must hold every update that it answered, or the exit code is 1.
    /// Takes 1 to 2 minutes, with --quick 20 s.
    Peers(PeersArguments),
}

/// How much transactions fight over few rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contention {
    Low,
    Medium,
    High,
}

/// How much of TPC-C's specification is in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mix {
    /// Customers by id, no rolled-back orders, as in the papers
    Paper,
    /// 60 % of customers by last name, 1 % rolled-back orders, as in the specification
    Full,
}

#[derive(Debug, Args)]
pub(crate) struct YcsbArguments {
    /// Keys of 10 that are hot: low 0, device 4, high 7 (NV Table 1) [default: low]
    #[arg(long, value_enum)]
    pub(crate) contention: Option<Contention>,
    /// Rows of the table (NV: 16 million) [default: 100000]
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// Bytes of a row's value, 8 to 262128 [default: 1000]
    #[arg(long)]
    pub(crate) value_bytes: Option<u32>,
    /// Bytes that an update overwrites, 8 to value-bytes [default: 100, or value-bytes if that is
    /// less]
    #[arg(long)]
    pub(crate) update_bytes: Option<u32>,
    /// Keys of 10 that are only read; the others are updated [default: 0]
    #[arg(long, value_parser = value_parser!(u32).range(0..=10))]
    pub(crate) read_ratio: Option<u32>,
    /// Zipf skew of the keys, between 0 and 1 (CA: 0.9) [default: uniform]
    #[arg(long)]
    pub(crate) theta: Option<f64>,
    /// How many rows are hot (CA: 77) [default: 256]
    #[arg(long)]
    pub(crate) hot_rows: Option<u64>,
    /// Keys of 10 that are hot, instead of the contention's
    #[arg(long, value_parser = value_parser!(u32).range(0..=10))]
    pub(crate) hot_keys: Option<u32>,
    /// Distance between the keys of neighbouring hot rows (CA: 131072) [default: 1]
    #[arg(long)]
    pub(crate) hot_spacing: Option<u64>,
    /// Each update is a piece of its transaction, which --split-threshold can split off (CA 3.4,
    /// 5.3); answers and state are the same
    #[arg(long)]
    pub(crate) pieces: bool,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SmallBankArguments {
    /// Customers that get 90 % of the transactions: low 1 of 18, medium 1 of 180, high 1 of 1,800
    /// (NV Table 2) [default: low]
    #[arg(long, value_enum)]
    pub(crate) contention: Option<Contention>,
    /// Customers (NV: 18 million) [default: 500000]
    #[arg(long)]
    pub(crate) customers: Option<u64>,
    /// Hot customers, instead of the contention's
    #[arg(long)]
    pub(crate) hot_customers: Option<u64>,
    /// Transactions have a commit point behind their last check, from which on others see each of
    /// their writes at once (NV 3.1.2); answers and state are the same
    #[arg(long)]
    pub(crate) commit_points: bool,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TpccArguments {
    /// Warehouses: low 8 (NV Table 3: 256), device 2, high 1 [default: device]
    #[arg(long, value_enum)]
    pub(crate) contention: Option<Contention>,
    /// Warehouses, instead of the contention's; about 250 MB each
    #[arg(long)]
    pub(crate) warehouses: Option<u32>,
    /// Which transactions [default: paper]
    #[arg(long, value_enum)]
    pub(crate) mix: Option<Mix>,
    /// Items, and stock rows of a warehouse; fewer than the specification's make small tests
    /// [default: 100000]
    #[arg(long)]
    pub(crate) items: Option<u32>,
    /// Customers of each of the 10 districts of a warehouse [default: 3000]
    #[arg(long)]
    pub(crate) customers_per_district: Option<u32>,
    /// NewOrder, Payment and Delivery have a commit point behind their last check, from which on
    /// others see each of their writes at once (NV 3.1.2); answers and state are the same
    #[arg(long)]
    pub(crate) commit_points: bool,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

/// When to measure what the machine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Limits {
    /// After runs of 5 s or more
    Long,
    /// After every run
    Always,
    /// Not at all
    Never,
}

/// What to measure the machine with.
#[derive(Debug, Args)]
pub(crate) struct RooflineArguments {
    /// MiB of memory that reads and stores go to, 1 to 1048576; far more than the caches hold
    #[arg(long, default_value_t = 1024, value_parser = value_parser!(u64).range(1..=1 << 20))]
    pub(crate) memory_mib: u64,
    /// Threads of the figure that all workers measure together, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) workers: Option<u64>,
    /// Where a file of 16 MiB is made, written, synced and removed [default: the system's
    /// temporary directory]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Which device to measure against memory.
#[derive(Debug, Args)]
pub(crate) struct DeviceArguments {
    /// Which device is imitated
    #[arg(long, default_value = "optane", value_parser = profile_parser())]
    pub(crate) profile: Profile,
    /// MiB of memory of each of up to two threads, and as many of the device, 1 to 4096; a power of
    /// two
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u64).range(1..=1 << 12))]
    pub(crate) memory_mib: u64,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

fn profile_parser() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name))
        .map(|name| name.parse().expect("one of those offered"))
}

#[derive(Debug, Args)]
pub(crate) struct PeersArguments {
    /// 1 and 64 callers, 2 seconds each, instead of 1, 8 and 64 callers, 8 seconds each
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds of each measurement, 0.01 to 3600
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Rows of the table, 1 to 10000000
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub(crate) rows: u64,
    /// Where the databases are made, in a directory of their own that is removed; on the disk that
    /// is to be measured [default: the working directory]
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// What is run with each option.
#[derive(Debug, Args)]
pub(crate) struct AblationArguments {
    /// Tiny sizes, to see that it works: times mean nothing then
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds, 1 to 1000 [default: 3, with --quick 1]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) workers: Option<u64>,
    /// Names the data and the stream of calls
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the stores are: dram or emulated[:none|optane|eadr|cxl|low|high]
    #[arg(long, default_value = "emulated:none", value_parser = memory_device)]
    pub(crate) device: DeviceSpec,
    /// Only these works
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', value_parser = work_parser())]
    pub(crate) work: Vec<Work>,
    /// Another nvcaracal program, such as an older build, that runs the same works in the same
    /// rounds as one more variant
    #[arg(long, value_name = "BINARY")]
    pub(crate) against: Option<PathBuf>,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Which figures, how large, how often.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    /// fig5 to fig12, histograms, profiles; nv: fig5 to fig12; all [default: nv]
    pub(crate) figures: Vec<String>,
    /// How large the runs are
    #[arg(long, value_name = "SCALE", value_parser = scale_parser(), default_value = "small")]
    pub(crate) scale: Scale,
    /// Where runs and reports are kept; runs that are there already are not made again [default:
    /// reproduction-SCALE]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How often each run is made, 1 to 1000 [default: 1, 3 and 5 at scales smoke, small and full]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) rounds: Option<u64>,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) workers: Option<u64>,
    /// Names the data and the streams of calls
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Make no run: write the reports anew from the runs that are there, whichever build made them
    #[arg(long)]
    pub(crate) redraw: bool,
    /// Write report.json to standard output, too, instead of a summary
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

fn scale_parser() -> impl TypedValueParser<Value = Scale> {
    let scales = Scale::ALL;
    PossibleValuesParser::new(scales.map(|s| PossibleValue::new(s.name()).help(s.what()))).map(
        move |name| scales.into_iter().find(|s| s.name() == name).expect("one of those offered"),
    )
}

/// A device that leaves nothing behind.
fn memory_device(text: &str) -> Result<DeviceSpec, String> {
    match text.parse::<DeviceSpec>() {
        Ok(spec @ (DeviceSpec::Dram | DeviceSpec::Emulated(_))) => Ok(spec),
        Ok(_) => Err("only dram and emulated devices leave nothing behind".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn design_parser() -> impl TypedValueParser<Value = Design> {
    let designs = Design::all();
    let values = designs.iter().map(|design| PossibleValue::new(design.name()).help(design.what()));
    PossibleValuesParser::new(values).map(move |name| {
        let named = designs.iter().find(|design| design.name() == name);
        *named.expect("one of those offered")
    })
}

fn cache_policy_parser() -> impl TypedValueParser<Value = CachePolicy> {
    let policies = CachePolicy::ALL;
    let values =
        policies.iter().map(|policy| PossibleValue::new(policy.name()).help(policy.what()));
    PossibleValuesParser::new(values).map(move |name| {
        let named = policies.into_iter().find(|policy| policy.name() == name);
        named.expect("one of those offered")
    })
}

fn work_parser() -> impl TypedValueParser<Value = Work> {
    let works = WORKS.iter().map(|work| PossibleValue::new(work.name).help(work.what));
    PossibleValuesParser::new(works)
        .map(|name| WORKS.into_iter().find(|work| work.name == name).expect("one of those offered"))
}

/// What all workloads have in common.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Epochs of the stream, in all: with --resume, those of earlier runs count (NV: 49) [default:
    /// 10, tpcc: 5]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) epochs: Option<u64>,
    /// New transactions of an epoch, up to 16777215 [default: 100000]
    #[arg(long, value_parser = value_parser!(u64).range(1..=16_777_215))]
    pub(crate) epoch_size: Option<u64>,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) workers: Option<u64>,
    /// Where the store is: dram, emulated[:none|optane|eadr|cxl|low|high], dax:PATH, file:DIR,
    /// crash [default: file: and a new temporary directory, removed at the end]
    #[arg(long)]
    pub(crate) device: Option<DeviceSpec>,
    /// What keeps the rows: NVCaracal, or a design that it is compared with (NV 6.4, 6.7); those
    /// without a log run in memory, and recover no further than their last checkpoint
    #[arg(long, value_name = "DESIGN", value_parser = design_parser(),
          default_value = Design::default().name())]
    pub(crate) design: Design,
    /// Epochs between checkpoints, 1 to 1000000 [default: 100 on file, 1 elsewhere; with --recover
    /// more than there are epochs]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) checkpoint_every: Option<u64>,
    /// How rows that several calls of an epoch write get their versions
    #[arg(long, value_name = "METHOD", value_parser = append_parser(),
          default_value = AppendMethod::default().name())]
    pub(crate) append: AppendMethod,
    /// Bytes of DRAM for cached versions; 0: no cache [default: 268435456 on dax and on emulated
    /// devices that add latency, 0 elsewhere]
    #[arg(long)]
    pub(crate) cache_bytes: Option<u64>,
    /// K: epochs without access after which a cached version is evicted, 0 to 1000000
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(0..=1_000_000))]
    pub(crate) cache_epochs: u64,
    /// Which values are cached, where there is a cache
    #[arg(long, value_name = "POLICY", value_parser = cache_policy_parser(),
          default_value = CachePolicy::default().name())]
    pub(crate) cache_policy: CachePolicy,
    /// For experiments: a stale inline version is cleared by the major collector an epoch later,
    /// instead of being overwritten by the final write (NV 6.6)
    #[arg(long)]
    pub(crate) no_minor_gc: bool,
    /// Split-on-demand (CA 3.4): pieces that update rows with at least N versions in an epoch run
    /// apart from their transactions, packed onto few workers; 0: never. For ycsb --pieces
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) split_threshold: u32,
    /// Bytes of a persistent row with its inline heap, a multiple of 64, for every table but those
    /// of sequences; 0: both versions of values of up to 2,048 bytes fit inline, longer ones go to
    /// the value pool from rows of 256 bytes (NV: 256) [default: 0]
    #[arg(long)]
    pub(crate) row_bytes: Option<u32>,
    /// Bytes of an inline heap that both versions of a row share, a multiple of 8, for every table
    /// but those of sequences: a value that does not fit beside the version before it goes to the
    /// value pool (NV: 168, in rows of 256 bytes); 0: each version has a half of its own. Without
    /// --row-bytes rows are as small as they can be [default: 0]
    #[arg(long, value_name = "BYTES")]
    pub(crate) shared_heap_bytes: Option<u32>,
    /// Bytes of a segment of the store, a power of two, 4096 to 67108864 [default: 262144]
    #[arg(long)]
    pub(crate) segment_bytes: Option<u64>,
    /// Bytes that the store may grow to: address space, not memory or disk
    #[arg(long, default_value_t = bench::IMAGE_LIMIT_BYTES_DEFAULT,
          value_parser = value_parser!(u64).range(1 << 24..=1 << 46))]
    pub(crate) image_limit_bytes: u64,
    /// Bytes that its input log may grow to: address space, not memory or disk
    #[arg(long, default_value_t = bench::LOG_LIMIT_BYTES_DEFAULT,
          value_parser = value_parser!(u64).range(1 << 20..=1 << 46))]
    pub(crate) log_limit_bytes: u64,
    /// For experiments: maintain no hash of the state, so that recovery has nothing to compare the
    /// rows with; changes no answer and no state, and may differ from one --resume to the next
    #[arg(long)]
    pub(crate) no_state_hash: bool,
    /// Names the data and the stream of calls [default: 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Run the same calls one by one through a serial oracle, and compare every answer and the
    /// whole state
    #[arg(long)]
    pub(crate) verify: bool,
    /// After the run forget everything but the device, as the end of a killed process does, recover
    /// from it, and show how long each part took and what it read
    ///
    /// Works on every device, also on those that keep nothing after the process: there the same
    /// memory is opened again. Loading ends in a checkpoint, and what is replayed are the epochs
    /// after the last one: with the default of --checkpoint-every all that this run executed, with
    /// --checkpoint-every N those since the last multiple of N. The state digest must be the one
    /// before, or the command fails. A run that was interrupted is closed instead.
    #[arg(long)]
    pub(crate) recover: bool,
    /// Recover the store and go on where it stopped; parameters that are not given are the store's
    #[arg(long)]
    pub(crate) resume: bool,
    /// Write and sync one line `epoch digest` for each epoch when its answers are given; with
    /// --resume the file is continued, and the store must not be older than its last line
    #[arg(long, value_name = "FILE")]
    pub(crate) ack_log: Option<PathBuf>,
    /// Show everything that was measured: times, counts of work, accesses of the device, memory;
    /// with --clients the rows for which most calls contended in the last 100 epochs
    #[arg(long)]
    pub(crate) details: bool,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the temporary directory
    #[arg(long)]
    pub(crate) keep: bool,
    /// When to measure, after a run, what this machine's memory can do, and to show which share of
    /// that each phase reached; takes a second or two [default: long, that is after 5 s or
    /// more; without a value: always]
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "long", default_missing_value = "always", hide_default_value = true)]
    pub(crate) limits: Limits,
    /// Leave out the workload's own consistency check at the end
    #[arg(long)]
    pub(crate) no_check: bool,
    /// No progress bars; there are none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// For tests: end the process without warning before the Nth call of a kind that it makes to a
    /// file of file:DIR, as log-sync:3
    #[arg(long, value_name = "FILE-CALL[:N]", hide = true)]
    pub(crate) die_at: Option<bench::FailPoint>,
    #[command(flatten)]
    pub(crate) clients: ClientArguments,
}

/// Clients of the library.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients")]
pub(crate) struct ClientArguments {
    /// Run the workload through the library: N threads, 1 to 65536, make calls and wait for
    /// answers; then the engine alone in epochs of the same size, and say which share of that the
    /// library gives
    ///
    /// --epoch-size is the most calls of an epoch then (20000 if it is not given).
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=65_536),
          conflicts_with_all = ["epochs", "verify", "recover", "resume", "ack_log", "append",
                                "no_state_hash", "limits", "die_at"])]
    pub(crate) clients: Option<u64>,
    /// Calls that all clients together have submitted and wait for, N to 10000000 [default: one
    /// for each client]
    #[arg(long, value_name = "M", requires = "clients",
          value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub(crate) in_flight: Option<u64>,
    /// Calls that a client submits together, once it has had as many answers; at most what it has
    /// in flight, 1 to 65536 [default: 1, which is one by one]
    #[arg(long, value_name = "CALLS", requires = "in_flight",
          value_parser = value_parser!(u64).range(1..=65_536))]
    pub(crate) batch: Option<u64>,
    /// How long clients submit calls, 0.01 to 86400 seconds; where the engine runs alone, too, in
    /// three parts, between which it does [default: 5]
    #[arg(long, value_name = "S", requires = "clients", value_parser = parse_seconds)]
    pub(crate) seconds: Option<f64>,
    /// Calls come at so many a second, all clients together, whether or not earlier ones were
    /// answered; latency counts from when a call was to come
    #[arg(long, value_name = "PER_SECOND", requires = "clients", conflicts_with = "in_flight",
          value_parser = parse_rate)]
    pub(crate) rate: Option<f64>,
    /// More runs with these sizes of epochs: throughput against latency
    #[arg(long, value_name = "CALLS[,CALLS...]", requires = "clients", value_delimiter = ',',
          value_parser = value_parser!(u64).range(1..=16_777_215))]
    pub(crate) epoch_sizes: Vec<u64>,
    /// Do not run the engine alone
    #[arg(long, requires = "clients")]
    pub(crate) no_engine: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds are a number from 0.01 to 86400".into()),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err("a rate is a number from 0.001 to 1000000000 calls a second".into()),
    }
}

/// The methods of the append step.
fn append_parser() -> impl TypedValueParser<Value = AppendMethod> {
    let methods = AppendMethod::ALL;
    PossibleValuesParser::new(methods.map(|m| PossibleValue::new(m.name()).help(m.what()))).map(
        move |name| methods.into_iter().find(|m| m.name() == name).expect("one of those offered"),
    )
}

/// A store.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// A directory (device file), a file (device dax), file:DIR or dax:PATH
    pub(crate) path: StorePath,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// A store to recover.
#[derive(Debug, Args)]
pub(crate) struct RecoverArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub(crate) workers: Option<u64>,
    /// The input log is damaged: give up everything that happened after this epoch, and say what
    /// that is
    #[arg(long, value_name = "EPOCH", conflicts_with = "skip_call")]
    pub(crate) accept_loss_after: Option<u64>,
    /// A call of the last epoch stops every replay, and nothing of that epoch was answered: leave
    /// it out, so that it counts as failed
    #[arg(long, value_name = "EPOCH:POSITION", value_parser = parse_call)]
    pub(crate) skip_call: Option<(u64, u32)>,
    /// Rows are damaged: write all that can be read, as of the last checkpoint, into a new store in
    /// this directory, and list what cannot, with the calls after that checkpoint, which are not
    /// replayed. The damaged store is only read. Exit code 3 if rows or calls are lost
    #[arg(long, value_name = "NEWDIR", conflicts_with_all = ["accept_loss_after", "skip_call"])]
    pub(crate) salvage: Option<PathBuf>,
    /// For tests, with --accept-loss-after or --skip-call: end the process without warning before
    /// the Nth call of a kind that it makes to a file of file:DIR, as log-sync:3
    #[arg(long, value_name = "FILE-CALL[:N]", hide = true, conflicts_with = "salvage")]
    pub(crate) die_at: Option<bench::FailPoint>,
}

fn parse_call(text: &str) -> Result<(u64, u32), String> {
    let wrong = || format!("{text:?} is not EPOCH:POSITION, for example 17:3");
    let (epoch, position) = text.split_once(':').ok_or_else(wrong)?;
    Ok((epoch.parse().map_err(|_| wrong())?, position.parse().map_err(|_| wrong())?))
}

/// What the crash lab crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimDevice {
    /// Persistent memory: cache lines and non-temporal stores
    Crash,
    /// The `file` device on a simulated disk: power cuts, kills, faults, bad reads
    File,
    /// Closed and killed stores on `file`, damaged from outside: bits, zeros, cuts, shifts, files
    /// of other stores and of other moments. Each must be refused untouched or recovered
    Damage,
}

#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Seconds to explore, 1 to 1000000 [default: 60, or no limit with --cases]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: Option<u64>,
    /// The first case; those of the following seeds come after it [default: a new one, shown]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Cases to explore: 1 repeats the one of --seed [default: no limit]
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub(crate) cases: Option<u64>,
    /// What is crashed
    #[arg(long, value_enum, default_value = "crash")]
    pub(crate) device: SimDevice,
    /// Threads that explore, 1 to 1024 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1024))]
    pub(crate) jobs: Option<u64>,
    /// How many crashes deep recoveries are cut, 0 to 3 (`crash` only)
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u64).range(0..=3))]
    pub(crate) depth: u64,
    /// Epochs that a store runs on after some recoveries before it is crashed again; 0: never
    /// (`crash` only)
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(0..=10_000))]
    pub(crate) run_on: u64,
    /// Most images of one case (`crash` only) [default: 30000]
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub(crate) images_per_case: Option<u64>,
    /// Show a violation as it was found, and try no smaller histories (`crash` only)
    #[arg(long)]
    pub(crate) no_minimise: bool,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// A page about a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// Geometry, checkpoint
    Superblock,
    /// Slots and bytes of each pool of rows and values
    Pools,
    /// Tables, their rows and limits
    Tables,
    /// Epochs in the input log
    Log,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A store, named as for `check`; or the word `format`: every struct on the device with offsets
    pub(crate) path: StorePath,
    /// Which page [default: all of them]
    #[arg(value_enum)]
    pub(crate) page: Option<Page>,
    /// Show rows of this table instead, as of the checkpoint
    #[arg(long, conflicts_with = "page")]
    pub(crate) table: Option<String>,
    /// Only the row with this key, as it is shown: a number, a text, or JSON
    #[arg(long, requires = "table", allow_hyphen_values = true)]
    pub(crate) key: Option<String>,
    /// At most so many rows
    #[arg(long, requires = "table", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
