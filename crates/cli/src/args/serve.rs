//! The options of `serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

use super::limits::LimitArguments;
use super::rows::StorePath;

/// What is served, where, and to which clients.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// A directory, which is made if there is none, or a device: file:DIR, dax:PATH, dram
    #[arg(required_unless_present = "databases")]
    pub path: Option<StorePath>,
    /// Serve several databases instead: each directory of this one is the store of one. CREATE
    /// DATABASE and DROP DATABASE make and remove them; nvcaracal is there always, and clients that
    /// ask for postgres have it, too, unless there is one of that name. With --memory-limit-bytes
    /// nvcaracal has half of what is not for statements, and each of at most 4 others that are open
    /// at a time an eighth; otherwise 63 others are open at a time
    #[arg(long, value_name = "DIR", conflicts_with_all = ["path", "archive"])]
    pub databases: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5433")]
    pub listen: Vec<String>,
    /// Listen at a Unix socket in this directory, too: for psql's --host=DIR
    #[arg(long, value_name = "DIR")]
    pub socket_dir: Option<PathBuf>,
    /// A file whose first line is the password of user nvcaracal; needed to listen at an address
    /// that other machines reach. Refused if all users of this one have access to it (chmod 600).
    /// Without it every client of this machine is let in
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Clients at a time, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = value_parser!(u64).range(1..=10_000))]
    pub connections: u64,
    /// How many milliseconds a statement may take, unless its session sets statement_timeout itself
    /// [default: no limit]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=2_147_483_647))]
    pub statement_timeout_ms: Option<u64>,
    /// Bytes of memory for all statements together: what they collect, answers until they are sent,
    /// cursors, blocks, and what is kept of their texts. One that needs more than is left fails
    /// with 53200, and others go on [default: a quarter of --memory-limit-bytes, or of the memory
    /// of the machine or its control group, whichever is the least]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1 << 24..=1 << 42))]
    pub statement_memory_bytes: Option<u64>,
    /// Keep the log of all epochs in files of this directory, so that a backup can be restored to
    /// any later moment; neither in the store nor around it. If it cannot be written the log of the
    /// store grows
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Seconds after its answer until a change is in the archive, 1 to 3600, also if nothing else
    /// comes; each time makes a file. CHECKPOINT has all of it written at once
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "archive",
          value_parser = value_parser!(u64).range(1..=3600))]
    pub archive_delay: u64,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub workers: Option<u64>,
    /// How far the store may grow.
    #[command(flatten)]
    pub limits: LimitArguments,
    /// The log.
    #[command(flatten)]
    pub log: LogArguments,
    /// Say where it listens as one JSON object on one line
    #[arg(long)]
    pub json: bool,
}

/// The log on standard error.
#[derive(Debug, Args)]
pub struct LogArguments {
    /// Log events of this level and of those before it
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
    /// The format of an event
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Log statements that take so many milliseconds or more, with their text [default: none]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=2_147_483_647))]
    pub log_min_duration_ms: Option<u64>,
}

/// The levels of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Damage and failures
    Error,
    /// Rejected clients, lack of memory or disk, slow statements
    Warn,
    /// Start, end and checkpoints
    Info,
    /// Sessions, errors of statements, epochs
    Debug,
}

/// The formats of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for people
    Text,
    /// A JSON object on a line
    Json,
}
