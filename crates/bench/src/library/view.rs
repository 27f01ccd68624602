//! The state of a workload's database.

use nvcaracal::{Database, Snapshot};
use workloads::{TableId, View};

use super::handles::{Handle, Handles, KINDS, with_row, word};
use super::options::Tables;
use crate::Result;

/// The state of a database, all of one moment.
pub struct LibraryView {
    snapshot: Snapshot,
    handles: Handles,
}

/// Why reading cannot fail, if no call writes meanwhile.
const READS: &str = "the workload's tables are in the database, which was not stopped";

impl LibraryView {
    /// The state of a database as it is now.
    ///
    /// # Errors
    /// The library's.
    pub fn new(tables: &Tables, database: &Database) -> Result<Self> {
        Ok(Self { snapshot: database.snapshot()?, handles: Handles(tables.handles()?) })
    }
}

impl View for LibraryView {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        if let Handle::Sequence(sequence) = self.handles.0[usize::from(table.0)] {
            let next = self.snapshot.sequence(sequence.at(word(key))).expect(READS);
            return (next > 0).then(|| next.to_le_bytes().to_vec());
        }
        with_row!(self.handles, table, key, |t, k| self.snapshot.get(t, k)).expect(READS)
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        match self.handles.0[usize::from(table.0)] {
            Handle::HashWords(t) => self.snapshot.all(t).for_each(|row| {
                let (key, value) = row.expect(READS);
                each(&key.to_be_bytes(), &value);
            }),
            Handle::Hash(t) => self.snapshot.all(t).for_each(|row| {
                let (key, value) = row.expect(READS);
                each(&key, &value);
            }),
            Handle::OrderedWords(t) => self.snapshot.range(t, ..).for_each(|row| {
                let (key, value) = row.expect(READS);
                each(&key.to_be_bytes(), &value);
            }),
            Handle::Ordered(t) => self.snapshot.range(t, ..).for_each(|row| {
                let (key, value) = row.expect(READS);
                each(&key, &value);
            }),
            Handle::Sequence(_) => panic!("the numbers of a sequence are read one by one"),
        }
    }
}
