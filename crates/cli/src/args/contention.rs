//! The options of `bench contention`.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::run::parse_seconds;

/// How hot, how busy, how long.
#[derive(Debug, Args)]
pub struct ContentionArguments {
    /// Short runs, to see that it works: times mean nothing then
    #[arg(long)]
    pub quick: bool,
    /// Numbers of hot rows, each 1 to 1000000
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', default_value = "1,8,64,1000",
          value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub rows: Vec<u64>,
    /// Numbers of loops that burn processor time beside the database, each 0 to 64
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', default_value = "0,2",
          value_parser = value_parser!(u64).range(0..=64))]
    pub busy: Vec<u64>,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub workers: Option<u64>,
    /// Threads that make calls, 1 to 1024
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u64).range(1..=1024))]
    pub clients: u64,
    /// Calls that each of them has in flight, 1 to 10000
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    pub in_flight: u64,
    /// Bytes of a value, 8 to 1000
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u64).range(8..=1000))]
    pub value_bytes: u64,
    /// Other rows that each call reads, 0 to 10000
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(0..=10_000))]
    pub reads: u64,
    /// Write row k in proportion to 1 / (k + 1), instead of all rows alike
    #[arg(long)]
    pub zipf: bool,
    /// Rounds, 1 to 1000 [default: 5, with --quick 1]
    #[arg(long, value_parser = value_parser!(u64).range(1..=1000))]
    pub rounds: Option<u64>,
    /// How long each variant runs in a round, 0.01 to 86400 seconds [default: 1, with --quick 0.05]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub no_progress: bool,
}
