//! Options of `power-cuts`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use peers::{Database, FileSystem};

/// Which databases lose their power, and how often.
#[derive(Debug, Args)]
pub(crate) struct PowerCutArguments {
    /// Power cuts of each database, 1 to 1000000
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) cuts: u64,
    /// Names the calls and, but for times, the cuts [default: a new one, shown]
    #[arg(long, value_parser = value_parser!(u64).range(0..1 << 32))]
    pub(crate) seed: Option<u64>,
    /// Only these databases, or all that this build has
    #[arg(long, value_name = "NAME[,NAME...]", value_delimiter = ',', default_value = "nvcaracal",
          value_parser = database_or_all())]
    pub(crate) database: Vec<AnyOf>,
    /// The file system that they are on
    #[arg(long, default_value = "ext4", value_parser = file_system_parser())]
    pub(crate) file_system: FileSystem,
    /// Answers do not wait for the disk, so that calls must be lost, or the lab sees nothing;
    /// nvcaracal has no such way
    #[arg(long)]
    pub(crate) unsynced: bool,
    /// Where images of disks are made, in directories that are removed: some 400 MiB;
    /// memory will do [default: /dev/shm, or the system's temporary directory]
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
    /// Where files of databases that are not right are kept, as they were after the cut
    #[arg(long, default_value = ".")]
    pub(crate) keep: PathBuf,
    /// Write the result as one JSON object; `-`: to standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar; there is none where standard error is not a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// This process has mounts of its own, which end with it
    #[arg(long, hide = true)]
    pub(crate) own_mounts: bool,
}

/// One database, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnyOf {
    /// All that this build has.
    All,
    One(Database),
}

fn database_or_all() -> impl TypedValueParser<Value = AnyOf> {
    let names = Database::ALL.map(Database::name).into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| {
        let one = Database::ALL.into_iter().find(|database| database.name() == name);
        one.map_or(AnyOf::All, AnyOf::One)
    })
}

fn file_system_parser() -> impl TypedValueParser<Value = FileSystem> {
    PossibleValuesParser::new(FileSystem::ALL.map(FileSystem::name)).map(|name| {
        let named = FileSystem::ALL.into_iter().find(|of| of.name() == name);
        named.expect("one of those offered")
    })
}
