//! Options that a run of every workload has, and those of clients.

use std::path::PathBuf;

use bench::FailPoint;
use clap::{Args, value_parser};
use pmem::DeviceSpec;

use super::limits::LimitArguments;

/// What all workloads have in common.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Epochs of the stream, in all: with --resume, those of earlier runs count (NV: 49) [default:
    /// 10, tpcc: 5]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    pub epochs: Option<u64>,
    /// New transactions of an epoch, up to 16777215 [default: 100000]
    #[arg(long, value_parser = value_parser!(u64).range(1..=16_777_215))]
    pub epoch_size: Option<u64>,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub workers: Option<u64>,
    /// Where the store is: dram, emulated[:none|optane|optane-lines|eadr|cxl|low|high], dax:PATH,
    /// file:DIR [default: file: and a new temporary directory, removed at the end]
    #[arg(long)]
    pub device: Option<DeviceSpec>,
    /// Epochs between checkpoints, 1 to 1000000 [default: 100 on file, 1 elsewhere]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub checkpoint_every: Option<u64>,
    /// Bytes of DRAM for cached versions; 0: no cache [default: 268435456 on dax and on emulated
    /// devices that add latency, 0 elsewhere]
    #[arg(long)]
    pub cache_bytes: Option<u64>,
    /// K: epochs without access after which a cached version is evicted, 0 to 1000000
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(0..=1_000_000))]
    pub cache_epochs: u64,
    /// Split-on-demand (CA 3.4): pieces that update rows with at least N versions in an epoch run
    /// apart from their transactions, packed onto few workers; 0: never. For ycsb --pieces
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub split_threshold: u32,
    /// Bytes of a persistent row with its inline heap, a multiple of 64, for every table but those
    /// of sequences; 0: both versions of values of up to 2,048 bytes fit inline, longer ones go to
    /// the value pool from rows of 256 bytes (NV: 256) [default: 0]
    #[arg(long)]
    pub row_bytes: Option<u32>,
    /// Bytes of an inline heap that both versions of a row share, a multiple of 8, for every table
    /// but those of sequences: a value that does not fit beside the version before it goes to the
    /// value pool (NV: 168, in rows of 256 bytes); 0: each version has a half of its own. Without
    /// --row-bytes rows are as small as they can be [default: 0]
    #[arg(long, value_name = "BYTES")]
    pub shared_heap_bytes: Option<u32>,
    /// Bytes of a segment of the store, a power of two, 4096 to 67108864 [default: 262144]
    #[arg(long)]
    pub segment_bytes: Option<u64>,
    /// How far the store may grow.
    #[command(flatten)]
    pub limits: LimitArguments,
    /// Names the data and the stream of calls [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Run the same calls one by one through a serial oracle, and compare every answer and the
    /// whole state
    #[arg(long)]
    pub verify: bool,
    /// Recover the store and go on where it stopped; parameters that are not given are the store's
    #[arg(long)]
    pub resume: bool,
    /// Write and sync one line `epoch digest` for each epoch when its answers are given; with
    /// --resume the file is continued, and the store must not be older than its last line
    #[arg(long, value_name = "FILE")]
    pub ack_log: Option<PathBuf>,
    /// Show everything that was measured: times, counts of work, accesses of the device, memory;
    /// with --clients the rows for which most calls contended in the last 100 epochs
    #[arg(long)]
    pub details: bool,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep the temporary directory
    #[arg(long)]
    pub keep: bool,
    /// Leave out the workload's own consistency check at the end
    #[arg(long)]
    pub no_check: bool,
    /// No progress bars; there are none where standard error is not a terminal
    #[arg(long)]
    pub no_progress: bool,
    /// For tests: end the process without warning before the Nth call of a kind that it makes to a
    /// file of file:DIR, as log-sync:3
    #[arg(long, value_name = "FILE-CALL[:N]", hide = true)]
    pub die_at: Option<FailPoint>,
    /// Clients of the library.
    #[command(flatten)]
    pub clients: ClientArguments,
}

impl AsRef<Self> for RunArguments {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Clients of the library.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients")]
pub struct ClientArguments {
    /// N threads, 1 to 65536, make calls through the library and wait for answers
    ///
    /// --epoch-size is the most calls of an epoch then (20000 if it is not given).
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=65_536),
          conflicts_with_all = ["epochs", "verify", "resume", "ack_log", "die_at"])]
    pub clients: Option<u64>,
    /// Calls that all clients together have submitted and wait for, N to 10000000 [default: one
    /// for each client]
    #[arg(long, value_name = "M", requires = "clients",
          value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub in_flight: Option<u64>,
    /// Calls that a client submits together, once it has had as many answers; at most what it has
    /// in flight, 1 to 65536 [default: 1, which is one by one]
    #[arg(long, value_name = "CALLS", requires = "in_flight",
          value_parser = value_parser!(u64).range(1..=65_536))]
    pub batch: Option<u64>,
    /// How long clients submit calls, 0.01 to 86400 seconds [default: 5]
    #[arg(long, value_name = "S", requires = "clients", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Calls come at so many a second, all clients together, whether or not earlier ones were
    /// answered; latency counts from when a call was to come
    #[arg(long, value_name = "PER_SECOND", requires = "clients", conflicts_with = "in_flight",
          value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// More runs with these sizes of epochs: throughput against latency
    #[arg(long, value_name = "CALLS[,CALLS...]", requires = "clients", value_delimiter = ',',
          value_parser = value_parser!(u64).range(1..=16_777_215))]
    pub epoch_sizes: Vec<u64>,
}

pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
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
