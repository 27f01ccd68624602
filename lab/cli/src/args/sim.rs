//! Options of the crash lab.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

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

/// What to explore, and for how long.
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
