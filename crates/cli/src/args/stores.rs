//! Options of the commands about a store.

use std::path::PathBuf;

use bench::FailPoint;
use clap::{Args, ValueEnum, value_parser};

use super::rows::StorePath;

/// A store.
#[derive(Debug, Args)]
pub struct StoreArguments {
    /// A directory (device file), a file (device dax), file:DIR or dax:PATH
    pub path: StorePath,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub json: bool,
}

/// A store to copy.
#[derive(Debug, Args)]
pub struct BackupArguments {
    /// A directory (device file), or file:DIR
    pub path: StorePath,
    /// The directory of the copy: a new one outside of any store, or an earlier copy of the same
    /// store
    pub target: PathBuf,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub json: bool,
}

/// A store to make of a copy.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// The copy
    pub copy: StorePath,
    /// The directory of the store, which must not be there
    pub target: PathBuf,
    /// Go on with what is archived there of the copied store, behind what the copy has itself
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Leave out what happened after this epoch; from that of the copy's checkpoint to its last, or
    /// the last that is archived
    #[arg(long, value_name = "EPOCH")]
    pub to_epoch: Option<u64>,
    /// Leave out the epochs whose timestamps are after this time, as 2026-11-27T18:30:00Z or
    /// 2026-11-27T18:30:00.25+01:00
    #[arg(long, value_name = "RFC3339", conflicts_with = "to_epoch",
          value_parser = super::time::parse)]
    pub to_time: Option<u64>,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub json: bool,
}

/// A store to recover.
#[derive(Debug, Args)]
pub struct RecoverArguments {
    /// The store.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Worker threads, 1 to 64 [default: all cores]
    #[arg(long, value_parser = value_parser!(u64).range(1..=64))]
    pub workers: Option<u64>,
    /// The input log is damaged: give up everything that happened after this epoch, and say what
    /// that is
    #[arg(long, value_name = "EPOCH", conflicts_with = "skip_call")]
    pub accept_loss_after: Option<u64>,
    /// A call of the last epoch stops every replay, and nothing of that epoch was answered: leave
    /// it out, so that it counts as failed
    #[arg(long, value_name = "EPOCH:POSITION", value_parser = parse_call)]
    pub skip_call: Option<(u64, u32)>,
    /// Rows are damaged: write all that can be read, as of the last checkpoint, into a new store in
    /// this directory, and list what cannot, with the calls after that checkpoint, which are not
    /// replayed. The damaged store is only read. Exit code 3 if rows or calls are lost
    #[arg(long, value_name = "NEWDIR", conflicts_with_all = ["accept_loss_after", "skip_call"])]
    pub salvage: Option<PathBuf>,
    /// For tests, with --accept-loss-after or --skip-call: end the process without warning before
    /// the Nth call of a kind that it makes to a file of file:DIR, as log-sync:3
    #[arg(long, value_name = "FILE-CALL[:N]", hide = true, conflicts_with = "salvage")]
    pub die_at: Option<FailPoint>,
}

fn parse_call(text: &str) -> Result<(u64, u32), String> {
    let wrong = || format!("{text:?} is not EPOCH:POSITION, for example 17:3");
    let (epoch, position) = text.split_once(':').ok_or_else(wrong)?;
    Ok((epoch.parse().map_err(|_| wrong())?, position.parse().map_err(|_| wrong())?))
}

/// A page about a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// Geometry, checkpoint
    Superblock,
    /// Slots and bytes of each pool of rows and values
    Pools,
    /// Tables, their rows and limits
    Tables,
    /// Epochs in the input log
    Log,
}

/// What is shown of a store.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// A store, named as for `check`; or the word `format`: every struct on the device with offsets
    pub path: StorePath,
    /// Which page [default: all of them]
    #[arg(value_enum)]
    pub page: Option<Page>,
    /// Show rows of this table instead, as of the checkpoint
    #[arg(long, conflicts_with = "page")]
    pub table: Option<String>,
    /// Only the row with this key, as it is shown: a number, a text, or JSON
    #[arg(long, requires = "table", allow_hyphen_values = true)]
    pub key: Option<String>,
    /// At most so many rows
    #[arg(long, requires = "table", default_value_t = 20)]
    pub limit: usize,
    /// Write the result as one JSON object to standard output
    #[arg(long)]
    pub json: bool,
}
