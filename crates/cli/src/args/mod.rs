//! The command line: every option, its unit, default and limits.

mod contention;
pub(crate) mod limits;
mod rows;
mod run;
#[cfg(feature = "server")]
mod serve;
mod stores;
pub mod time;
mod workloads;

use clap::{Parser, Subcommand};

pub use contention::ContentionArguments;
pub use rows::{DumpArguments, Format, LoadArguments, StorePath};
pub use run::{ClientArguments, RunArguments};
#[cfg(feature = "server")]
pub use serve::{LogArguments, LogFormat, LogLevel, ServeArguments};
pub use stores::{
    BackupArguments, InspectArguments, Page, RecoverArguments, RestoreArguments, StoreArguments,
};
pub use workloads::{Contention, Mix, SmallBankArguments, TpccArguments, YcsbArguments};

/// A transactional database for many clients and few hot rows: a server for PostgreSQL's clients,
/// tools for stores, and benchmarks of the library.
///
/// To begin: `nvcaracal serve bank`, and in another terminal
/// `psql -h 127.0.0.1 -p 5433 -U nvcaracal nvcaracal`.
///
/// Exit codes: 0 all is well, 1 a failed run, check or verification, 2 a wrong command line, 3 a
/// salvage that lost rows or calls, 4 a server whose store has failed, 130 or 143 a run that SIGINT
/// or SIGTERM interrupted.
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
    /// Serve a store to psql and to drivers of PostgreSQL
    ///
    /// Says one line on standard output when it listens, and on standard error what the open came
    /// to, a line to paste, and how it ends. User and database are called nvcaracal; with
    /// --databases there are others.
    /// Without a password only clients of this machine can connect, and all of them may do
    /// everything. There is no TLS.
    ///
    /// SIGINT (Ctrl-C) or SIGTERM ends it in good order: what was submitted is answered, and the
    /// store is closed with a checkpoint; the exit code is 0. A second signal ends the process at
    /// once; nothing that was answered is lost by that. SIGHUP changes nothing. If a file of the
    /// store cannot be read or written it ends with exit code 4.
    #[cfg(feature = "server")]
    Serve(ServeArguments),
    /// What is done with a store.
    #[command(flatten)]
    Store(StoreCommand),
    /// Run a workload of the papers through the library, and report what its callers get
    ///
    /// Clients make calls for a time and wait for their answers: two of them with 10000 calls in
    /// flight, unless --clients says otherwise. With --epochs, --verify, --resume or --ack-log the
    /// workload's stream runs instead, one epoch after the other: one thread submits the calls of
    /// an epoch together and takes their answers, so that runs can be verified, killed, resumed and
    /// compared. The engine alone, and other engines, are run by nvcaracal-lab.
    ///
    /// SIGINT (Ctrl-C) or SIGTERM interrupts a run in good order: it finishes the epoch that is
    /// running, skips the others, checks what ran, closes the store with a checkpoint, reports, and
    /// ends with exit code 130 or 143. A stream whose store is kept goes on with --resume; a
    /// temporary store is removed. A second signal ends the process at once, without any of this.
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// What is done with a store, whichever program made it.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
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
    /// it is never loaded.
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
    /// Copy a store to a new directory, or bring an earlier copy up to date, also while a program
    /// or a server goes on with it
    ///
    /// An earlier copy gets the pages that have changed since, and the new log. If that is cut
    /// short it is a copy of the earlier or the later moment. One that was opened since is refused.
    ///
    /// Every call that was answered before is in the copy, which is a store as any other: check it
    /// with `check`. The program goes on meanwhile; what it replaces of the checkpoint that is
    /// copied is kept until the end, so its files may grow by half. While more is written than that
    /// the copy begins anew, and gives up at last.
    Backup(BackupArguments),
    /// Make a store of a copy, as it was when it was made or at the end of another epoch
    ///
    /// With --archive it goes on with the epochs that were archived since the copy was made, up to
    /// the last one, an epoch or a time. Opening it runs them, and compares the state after each
    /// with what was logged. If epochs are missing in between, nothing is made, and they are named.
    /// What is made is a branch of its own: its epochs are archived apart from those of the same
    /// numbers that it leaves out, and never mixed with them.
    Restore(RestoreArguments),
    /// Give the space of a store that no program has open back to the file system
    ///
    /// Pages move to the front of the file with the pages, and it becomes as short as they are;
    /// nothing else changes. It may be cut short: what has become shorter stays so. While a
    /// program has the store open that happens by itself, in small steps, but for the room that
    /// its next checkpoints need; the log becomes shorter when the store is closed. Exit code 1 if
    /// a page is damaged: it stays where it is.
    Compact(StoreArguments),
    /// Recover a store that `bench` made, and show how long each part took; check one of another
    /// program, which only that can recover; or decide what becomes of one that is refused
    ///
    /// --accept-loss-after and --skip-call work for every store, whichever program made it. They do
    /// one step and replay nothing: that does the next open.
    Recover(RecoverArguments),
}

/// What to run or to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// YCSB: 10 reads or read-modify-writes of one table in a transaction (NV 6.2.1, CA 5.3)
    Ycsb(YcsbArguments<RunArguments>),
    /// SmallBank: five types of transactions on bank accounts (NV 6.2.2)
    Smallbank(SmallBankArguments<RunArguments>),
    /// TPC-C: a wholesale supplier, five types of transactions (NV 6.2.3, CA 5.4)
    Tpcc(TpccArguments<RunArguments>),
    /// What few hot rows cost callers of the library: with a write set on all workers, with one on
    /// one worker, and without one, also on a busy machine
    ///
    /// Many threads keep calls in flight that each add to one of the rows. The variants run in
    /// turns within each round; loops that only burn time run beside them in half of the settings.
    /// The rows hold as many additions as calls were answered, or the exit code is 1. Takes 2 to 3
    /// minutes, with --quick seconds.
    Contention(ContentionArguments),
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
