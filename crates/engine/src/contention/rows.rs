//! The rows of an epoch that calls contended for: as each worker finds them, and as they are
//! reported.

use std::collections::BTreeMap;

use storage::TableId;

use crate::contention::waits::Waited;
use crate::index::EntryId;

/// A row that several calls of an epoch wrote, or for which a call waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContendedRow {
    /// Its table.
    pub table: TableId,
    /// Its key.
    pub key: Box<[u8]>,
    /// Calls that wrote it or had declared that they might, whether they committed or not: at least
    /// two; 0 if fewer did, and a call waited for it. The same for any number of workers.
    pub writers: u32,
    /// How often calls waited for a version of it, over all workers.
    pub waits: u64,
    /// Nanoseconds of these waits, added up; zero without a clock.
    pub waited_ns: u64,
}

/// Table and key of a row.
pub(crate) type RowName = (TableId, Box<[u8]>);

/// A row of which writers were counted, or for which this worker waited.
#[derive(Debug, Clone)]
pub(crate) struct CountedRow {
    pub(crate) id: EntryId,
    /// Table and key. Not here if the row was made and is deleted: then the list of those has them.
    pub(crate) name: Option<RowName>,
    pub(crate) writers: u32,
    pub(crate) waited: Waited,
}

/// What one worker knows of an epoch's contention.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    /// Rows of which it made the version array.
    pub(crate) arrays: Vec<EntryId>,
    pub(crate) found: Vec<CountedRow>,
}

/// What all workers found, by table and key.
#[derive(Debug, Default)]
pub(crate) struct ContendedRows(BTreeMap<RowName, (u32, Waited)>);

impl ContendedRows {
    /// A worker has counted the writers of a row. The larger count is right.
    pub(crate) fn add_writers(&mut self, table: TableId, key: &[u8], writers: u32) {
        let row = self.row(table, key);
        row.0 = row.0.max(writers);
    }

    /// A worker has waited for a row.
    pub(crate) fn add_waits(&mut self, table: TableId, key: &[u8], waited: Waited) {
        let row = self.row(table, key);
        row.1.waits += waited.waits;
        row.1.ns += waited.ns;
    }

    fn row(&mut self, table: TableId, key: &[u8]) -> &mut (u32, Waited) {
        self.0.entry((table, key.into())).or_default()
    }

    /// All of them, in the order of tables and keys.
    pub(crate) fn into_rows(self) -> Vec<ContendedRow> {
        let row = |(name, (writers, waited)): (RowName, (u32, Waited))| {
            let ((table, key), Waited { waits, ns }) = (name, waited);
            ContendedRow { table, key, writers, waits, waited_ns: ns }
        };
        self.0.into_iter().map(row).collect()
    }
}
