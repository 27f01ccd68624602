//! Workloads: their data, their calls, and what must be true of the answers.

use crate::api::tables::{TableId, TableSpec};
use crate::api::transaction::Register;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Committed, with the bytes it put out.
    Committed(&'a [u8]),
    /// Aborted on purpose with this code.
    Aborted(u32),
    /// Not executed yet: what it read in reconnaissance changed; it runs again in a later epoch.
    Deferred,
    /// Anything else (panic, a mistake).
    Failed,
}

/// Read access to a whole state between epochs, for consistency checks and digests.
pub trait View {
    /// Reads one row.
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>>;
    /// Visits all rows of a table; in key order if it is ordered, else in any order. For a table of
    /// kind `Sequence` the value is the next number, 8 little-endian bytes.
    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8]));
}

/// A generated call: procedure number and arguments are written by the workload.
pub type ProcedureId = u16;

/// An epoch of the stream of calls, counted from 0: loading epochs do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamEpoch(pub u64);

/// A benchmark: tables, procedures, data, the stream of calls, and a check that can fail.
pub trait Workload: Send + Sync {
    /// `ycsb`, `smallbank`, `tpcc`.
    fn name(&self) -> &'static str;
    /// The tables, in the order of their ids.
    fn tables(&self) -> Vec<TableSpec>;
    /// Registers the procedures, in the order of their ids.
    fn register<R: Register>(&self, to: &mut R)
    where
        Self: Sized;
    /// How many loading transactions there are. They run first, in epochs of their own.
    fn load_count(&self) -> u64;
    /// Appends the arguments of loading transaction `i` to `args`.
    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId;
    /// Appends the arguments of the transaction at `position` of `epoch` to `args`. Depends on
    /// nothing but these numbers and the workload's own settings.
    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId;
    /// About how many rows so many transactions insert, by table; no entry for a table that does
    /// not grow. Lets a run make room before its clock starts.
    fn inserts(&self, transactions: u64) -> Vec<(TableId, u64)> {
        let _ = transactions;
        Vec::new()
    }
    /// The home of a row: a number that rows which are used together share, such as that of their
    /// warehouse. Engines that divide the data among workers give all rows of a home to one.
    /// Unless a workload says something else, a row has a home of its own.
    fn home(&self, table: TableId, key: &[u8]) -> u64 {
        let _ = table;
        key.iter().fold(0, |home, byte| home << 8 | u64::from(*byte))
    }
    /// A fresh observer of answers, which starts from the state in `view`.
    fn observer(&self, view: &dyn View) -> Box<dyn Observer>;
}

/// Sees every answer, then checks a state against them.
pub trait Observer: Send {
    /// One answered transaction.
    fn observe(&mut self, procedure: ProcedureId, args: &[u8], answer: Answer<'_>);
    /// The workload's consistency check: one line for each thing that is wrong. Empty: all is well.
    fn check(&self, view: &dyn View) -> Vec<String>;
}
