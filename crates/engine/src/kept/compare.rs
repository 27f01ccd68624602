//! Comparing kept indexes with the rows that a scan has found.

use std::ops::Bound;

use pmem::Device;
use storage::{StorageError, Store};

use super::{Attached, AttachedTable};
use crate::error::Result;
use crate::index::{EntryId, ExactWords};
use crate::table::{Table, order_word};

/// Rows of a table, and what is needed to look at them.
struct Rows<'a> {
    attached: &'a Attached,
    indexes: &'a AttachedTable,
    table: Table,
    /// Offsets of the rows, sorted.
    found: Vec<u64>,
    image_base: usize,
}

impl Attached {
    /// Compares them with all rows: the offsets of those of each table.
    ///
    /// # Errors
    /// `Corrupt` with the first row that they do not name, or name wrongly.
    pub(crate) fn compare(&self, store: &Store, rows: &[Vec<u64>]) -> Result<()> {
        let image_base = store.device().image().base() as usize;
        for ((indexes, stored), found) in self.tables.iter().zip(store.tables()).zip(rows) {
            let mut found = found.clone();
            found.sort_unstable();
            let table = Table::new(stored);
            let rows = Rows { attached: self, indexes, table, found, image_base };
            let compared = rows.compare_hash().and_then(|()| rows.compare_order());
            compared.map_err(|what| {
                StorageError::Corrupt(format!(
                    "the kept indexes of table {:?} are not those of its rows: {what}",
                    rows.table.name
                ))
            })?;
        }
        Ok(())
    }
}

impl Rows<'_> {
    /// The row of an id, if it is one of these.
    fn row_of(&self, id: EntryId) -> Option<u64> {
        let entries = &self.attached.entries;
        let row = entries.has_row(id).then(|| entries.row_of(id))?;
        self.found.binary_search(&row).is_ok().then_some(row)
    }

    fn key_at(&self, row: u64) -> &[u8] {
        self.attached.entries.key_at(self.image_base, row)
    }

    /// Each row is in the hash index, and nothing else is.
    fn compare_hash(&self) -> std::result::Result<(), String> {
        let hash = &self.indexes.hash;
        if !hash.is_sound() {
            return Err("a bucket has more entries than there is room for".into());
        }
        for &row in &self.found {
            let key = self.key_at(row);
            let word = self.table.word(key)?.hash;
            if hash.find(word, |id| self.row_of(id) == Some(row)).is_none() {
                return Err(format!("the row at {row} ({key:02x?}) is not in the hash index"));
            }
        }
        self.compare_counts(hash.len())
    }

    /// Each row is in the ordered index, in the order of the keys, and nothing else is.
    fn compare_order(&self) -> std::result::Result<(), String> {
        let Some(ordered) = &self.indexes.ordered else { return Ok(()) };
        if !ordered.is_sound() {
            return Err("a chunk has more entries than there is room for".into());
        }
        let mut before: Option<&[u8]> = None;
        let mut count = 0;
        for (word, id) in ordered.range(Bound::Unbounded, Bound::Unbounded, &ExactWords) {
            let row = self.row_of(id).ok_or("the ordered index names what is no row")?;
            let key = self.key_at(row);
            if order_word(key) != word || before.is_some_and(|before| before >= key) {
                return Err(format!("the ordered index has {key:02x?} where it is not"));
            }
            (before, count) = (Some(key), count + 1);
        }
        self.compare_counts(count)
    }

    fn compare_counts(&self, entries: usize) -> std::result::Result<(), String> {
        let rows = self.found.len();
        if entries == rows { Ok(()) } else { Err(format!("{entries} entries of {rows} rows")) }
    }
}
