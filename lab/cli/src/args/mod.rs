//! The command line: every option, its unit, default and limits.

mod arulraj;
mod peers;
mod power_cuts;
mod run;
mod sim;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, value_parser};
use cli::args::{SmallBankArguments, StoreCommand, TpccArguments, YcsbArguments};
use lab::ablation::{WORKS, Work};
use lab::reproduce::Scale;
use pmem::{DeviceSpec, Profile};

pub(crate) use arulraj::{ArulrajArguments, InterfacesArguments, OneOfSeven, Workload};
pub(crate) use peers::PeersArguments;
pub(crate) use power_cuts::{AnyOf, PowerCutArguments};
pub(crate) use run::{LabRunArguments, Limits};
pub(crate) use sim::{SimArguments, SimDevice};

/// The laboratory of NVCaracal: the engine alone, other engines, the machine, the crash lab.
///
/// Exit codes: 0 all is well, 1 a failed run, check or verification, 2 a wrong command line, 3 a
/// salvage that lost rows or calls, 130 or 143 a run that SIGINT or SIGTERM interrupted.
#[derive(Debug, Parser)]
#[command(name = "nvcaracal-lab", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum Command {
    /// Run a workload of the papers on the engine alone, or on another one, and report what it
    /// took; or measure the machine
    ///
    /// SIGINT (Ctrl-C) or SIGTERM interrupts a run in good order: it finishes the epoch that is
    /// running, skips the others, checks what ran, closes the store with a checkpoint, reports, and
    /// ends with exit code 130 or 143. A store that is kept goes on with --resume; a temporary one
    /// is removed. A second signal ends the process at once, without any of this.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Make the figures of the papers again, and say which of their statements hold here
    ///
    /// Figures are fig5 to fig12 (those of the NVCaracal paper, together nv), ca5 to ca12 and
    /// ca-cores (of the Caracal paper, together caracal; where they say so they are of a model),
    /// ar1 to ar16 (of the six storage engines of Arulraj et al., together arulraj), dbx3, dbx4,
    /// dbx9 to dbx12 and dbx-latency (of the DBX family, together dbx), histograms (of the report
    /// of 2021), profiles (every design on every device profile), or all. Every run is a `bench`
    /// command in a process of its own; all series of a figure run once in each round. Writes
    /// runs.jsonl, report.json and report.html into a directory. SIGINT or SIGTERM ends it with a
    /// report of what has run, and the same command goes on where it stopped.
    ///
    /// Exit codes: 0 done, 1 a run failed, 2 a wrong command line, or a directory with runs of
    /// another scale or build, 130 or 143 interrupted. A design, device or option that this build
    /// does not have is noted in the report.
    Reproduce(ReproduceArguments),
    /// Crash small random histories at every store, flush and fence, and in recovery, and compare
    /// what is recovered with a serial oracle
    ///
    /// Shows how many images were recovered, in which phases they were cut, and whether any row of
    /// the crash matrix was never hit. On the first violation it stops and shows the seed, a small
    /// history, the crash, the obligations that it may belong to, and the command that repeats
    /// it; the exit code is 1 then. SIGINT or SIGTERM ends it with what was explored until then.
    Sim(SimArguments),
    /// Cut the power of a real file system under the library, and under other databases
    ///
    /// A database is on a small file system whose disk is a loop device. Callers wait for durable
    /// answers. At a random moment (while it is made, opened and recovers, is used, or is closed)
    /// the file system ends without writing anything more; or its disk does, and loses of what was
    /// not flushed any part. The process is stopped before, or runs on and meets errors. Then the
    /// file system is mounted again, and the database must open, find itself whole, and hold every
    /// call that was answered once, and every other one whole or not at all. It goes on with the
    /// same files; after 40 cuts, or a violation, it begins anew.
    ///
    /// Needs root, loop devices and mkfs. Nothing stays mounted, however the command ends. SIGINT
    /// or SIGTERM ends it with what was found until then. The exit code is 1 if the library loses
    /// something; what others lose is in the table.
    PowerCuts(PowerCutArguments),
    /// The process of one database of `power-cuts`: a task from standard input
    #[command(hide = true)]
    PowerCutProcess,
    /// What is done with a store.
    #[command(flatten)]
    Store(StoreCommand),
}

/// What to run or to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// YCSB: 10 reads or read-modify-writes of one table in a transaction (NV 6.2.1, CA 5.3)
    Ycsb(YcsbArguments<LabRunArguments>),
    /// SmallBank: five types of transactions on bank accounts (NV 6.2.2)
    Smallbank(SmallBankArguments<LabRunArguments>),
    /// TPC-C: a wholesale supplier, five types of transactions (NV 6.2.3, CA 5.4)
    Tpcc(TpccArguments<LabRunArguments>),
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
    /// Durable transactions of the library's callers, beside redb, fjall, SQLite, LMDB and RocksDB
    /// on the same disk
    ///
    /// Each caller runs a transaction of --operations rows, waits until it is durable, and goes on.
    /// Each database runs in a process of its own, with the fastest durable way that it offers. For
    /// each load (callers, share of reads, rows that they choose from) all databases alternate in
    /// --rounds rounds; the disk's own fdatasync is measured before. Shown are throughput, latency
    /// (also in units of one fdatasync), processor time and bytes written for a transaction, and
    /// bytes on the disk. At the end each is closed and opened again, and must hold what it
    /// answered, row by row, or the exit code is 1. RocksDB is in builds with --features rocksdb.
    /// A measurement takes 1.1 times --seconds; the defaults are 14 loads in 3 rounds for each
    /// database, those of --quick 2 loads in one.
    ///
    /// With --memory each process is in a control group of its own with that limit, which counts
    /// pages of files, too; a database that does not run with it stays in the tables.
    Peers(PeersArguments),
    /// The process of one database of `bench peers`: orders from standard input
    #[command(hide = true)]
    PeerProcess,
    /// One of the six storage engines for persistent memory of Arulraj, Pavlo and Dulloor (SIGMOD
    /// 2015), on YCSB or TPC-C as their paper has it
    ///
    /// YCSB: one table of ten columns of 100 bytes; a transaction reads a tuple or changes a column
    /// of one. TPC-C: a warehouse in each partition. Every partition has a thread, an engine and a
    /// device of its own, so nothing conflicts.
    /// Shows throughput, what reached the device of each transaction, the most memory in use by
    /// what it is for, and, with --recover, what the recovery did. A processor's cache is modelled
    /// for each partition; by default 2.5 MiB, the paper's 20 MiB over 8 partitions.
    Arulraj(ArulrajArguments),
    /// Not a workload: how fast small chunks become durable through the allocator and through files
    /// of those engines (their paper's Figure 1)
    ///
    /// Writes chunks into 8 MB of memory, each durable by itself: stores, flushes and a fence, or a
    /// write and an fsync. Time is that of the processor, measured in DRAM, and the device's by the
    /// lines that a modelled cache missed and wrote back.
    Interfaces(InterfacesArguments),
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
    /// Where the stores are: dram or emulated[:none|optane|optane-lines|eadr|cxl|low|high]
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
    /// fig5 to fig12, histograms, profiles; nv: fig5 to fig12; caracal: ca5 to ca12 and ca-cores;
    /// arulraj: ar1, ar5 to ar9 and ar12 to ar16; dbx: dbx3, dbx4, dbx9 to dbx12 and dbx-latency;
    /// all [default: nv]
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

fn work_parser() -> impl TypedValueParser<Value = Work> {
    let works = WORKS.iter().map(|work| PossibleValue::new(work.name).help(work.what));
    PossibleValuesParser::new(works)
        .map(|name| WORKS.into_iter().find(|work| work.name == name).expect("one of those offered"))
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
