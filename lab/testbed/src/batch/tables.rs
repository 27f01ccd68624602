//! The tables of all batch engines: one flat index, one allocator and one form of rows, so that a
//! comparison of engines compares nothing but their concurrency control.
//!
//! A row is a run of words: whether it exists and how long its value is, two words that belong to
//! the engine, the key, the value. A key that was once inserted keeps its row; a deleted row is one
//! that does not exist. All words are atomics with relaxed order: that no two threads are at one
//! row is the engine's business, and what orders their accesses is how it hands rows over.

use workloads::{IndexKind, TableId, TableSpec, View};
use zerocopy::IntoBytes;

use super::flat::{Flat, Wanted};
use super::rows::{Layout, Pool, Row, RowId, Rows};
use super::sequences::Sequences;
use crate::error::{Error, Result};
use crate::index::{Found, Index, Key, KeyBytes, Range};

/// Rows that a scan takes from an index at a time.
const SCAN_ROWS: usize = 32;

/// A table. See the module's documentation.
pub(super) struct Table {
    flat: Flat,
    /// Keys in order, beside the flat index, where the table is ordered.
    ordered: Option<Index>,
    rows: Rows,
    has_numbers: bool,
    name: &'static str,
}

/// All tables and sequences of a store.
pub(super) struct Tables {
    tables: Vec<Table>,
    pub(super) sequences: Sequences,
}

impl Table {
    fn new(spec: &TableSpec, workers: usize) -> Result<Self> {
        let is_ordered = spec.index == IndexKind::Ordered;
        Ok(Self {
            flat: Flat::new()?,
            ordered: is_ordered.then(|| Index::new(spec, workers)),
            rows: Rows::new(Layout::new(spec)?)?,
            has_numbers: spec.key_bytes_max == 8,
            name: spec.name,
        })
    }

    /// What a key is found by: keys of 8 bytes by themselves, others by their hash.
    fn wanted(&self, key: &[u8]) -> Wanted {
        if self.has_numbers {
            let tag = <u64 as Key>::of(key);
            return Wanted { hash: tag.mixed(), tag };
        }
        let tag = xxhash_rust::xxh3::xxh3_64(key);
        Wanted { hash: tag, tag }
    }

    fn grow(&mut self, more: u64) -> Result<()> {
        let has_numbers = self.has_numbers;
        self.flat
            .grow(more, |_, tag| Wanted { hash: if has_numbers { tag.mixed() } else { tag }, tag })
    }

    fn has_key(&self, row: u32, key: &[u8]) -> bool {
        self.has_numbers || row != u32::MAX && self.rows.get(row).has_key(key)
    }
}

/// The keys from `low` on and before `high`, and in which order.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyRange<'a> {
    pub(super) low: &'a [u8],
    pub(super) high: &'a [u8],
    pub(super) descending: bool,
}

impl Tables {
    pub(super) fn new(specs: &[TableSpec], workers: usize) -> Result<Self> {
        let tables = specs.iter().map(|spec| Table::new(spec, workers)).collect::<Result<_>>()?;
        Ok(Self { tables, sequences: Sequences::default() })
    }

    /// How many there are, sequences included.
    pub(super) fn count(&self) -> usize {
        self.tables.len()
    }

    fn table(&self, table: TableId) -> &Table {
        &self.tables[usize::from(table.0)]
    }

    /// Name of a table, for messages.
    pub(super) fn name(&self, table: TableId) -> &'static str {
        self.table(table).name
    }

    /// Whether a table can be scanned.
    pub(super) fn is_ordered(&self, table: TableId) -> bool {
        self.table(table).ordered.is_some()
    }

    /// The row of a key, if it was ever inserted.
    pub(super) fn find(&self, table: TableId, key: &[u8]) -> Option<RowId> {
        let of = self.table(table);
        let row = of.flat.get(of.wanted(key), |row| of.has_key(row, key))?;
        Some(RowId::new(table, row))
    }

    /// Asks for what [`Self::find`] will look at.
    pub(super) fn prefetch(&self, table: TableId, key: &[u8]) {
        let table = self.table(table);
        table.flat.prefetch(table.wanted(key));
    }

    /// The row with an id.
    pub(super) fn row(&self, id: RowId) -> Row<'_> {
        self.table(id.table()).rows.get(id.number())
    }

    /// A row for a version of a table's row: without a key, not in the index.
    ///
    /// # Errors
    /// No room.
    pub(super) fn take(&self, table: TableId, pool: &mut Pool) -> Result<RowId> {
        Ok(RowId::new(table, self.table(table).rows.take(pool.of(table))?))
    }

    /// The row of a key, inserted as one that does not exist if need be, and whether it was; `None`
    /// if the index must grow before.
    ///
    /// # Errors
    /// No room, or a sequence.
    pub(super) fn find_or_insert(
        &self,
        table: TableId,
        key: &[u8],
        worker: usize,
        pool: &mut Pool,
    ) -> Result<Option<(RowId, bool)>> {
        let of = self.table(table);
        if let Some(row) = self.find(table, key) {
            return Ok(Some((row, false)));
        }
        if !of.flat.has_room(1) {
            return Ok(None);
        }
        let make = || of.rows.make(pool.of(table), key);
        let (row, is_new) =
            of.flat.get_or_insert(of.wanted(key), |row| of.has_key(row, key), make)?;
        if let (true, Some(ordered)) = (is_new, &of.ordered)
            && ordered.insert(worker, key, u64::from(row)).is_err()
        {
            return Err(Error::Broken(format!("a new key of {} was in its index", of.name)));
        }
        Ok(Some((RowId::new(table, row), is_new)))
    }

    /// Makes room for so many more keys in each table.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn grow(&mut self, more: &[u64]) -> Result<()> {
        self.tables.iter_mut().zip(more).try_for_each(|(table, more)| table.grow(*more))
    }

    /// Makes the indexes larger that have no room for one more key.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn grow_full(&mut self) -> Result<()> {
        let full = self.tables.iter_mut().filter(|table| !table.flat.has_room(1));
        full.into_iter().try_for_each(|table| table.grow(1))
    }

    /// Visits the keys of a range with their rows, whether these exist or not, until `each` says
    /// that it is enough. `found` is memory for what comes from the index.
    ///
    /// # Errors
    /// A table that is not ordered, and what `each` fails with.
    pub(super) fn range<E: From<Error>>(
        &self,
        table: TableId,
        range: KeyRange<'_>,
        found: &mut Found,
        mut each: impl FnMut(&[u8], RowId) -> Result<bool, E>,
    ) -> Result<(), E> {
        let of = self.table(table);
        let Some(ordered) = &of.ordered else {
            return Err(Error::Broken(format!("{} is not ordered", of.name)).into());
        };
        let descending = range.descending;
        let [mut low, mut high] = [range.low, range.high].map(KeyBytes::from_slice);
        while low < high {
            let range = Range { low: &low, high: &high, descending, limit: SCAN_ROWS };
            ordered.scan(0, range, found);
            for i in 0..found.len() {
                let (key, row) = found.get(i);
                if !each(key, RowId::new(table, row as u32))? {
                    return Ok(());
                }
            }
            match found.rest.take() {
                Some(rest) if descending => high = rest,
                Some(rest) => low = rest,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The state between batches, where the newest version of each row is in the row itself or in the
/// one that [`Row::current`] names.
impl View for Tables {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(next) = self.sequences.get(table, key) {
            return Some(next.to_le_bytes().to_vec());
        }
        let mut words = Vec::new();
        let row = self.row(self.row(self.find(table, key)?).current(table));
        let bytes = row.copy_value(&mut words)?;
        Some(words.as_bytes()[..bytes].to_vec())
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.sequences.for_each(table, each);
        let of = self.table(table);
        let mut words = Vec::new();
        let mut visit = |key: &[u8], row: Row<'_>| {
            words.clear();
            if let Some(bytes) = self.row(row.current(table)).copy_value(&mut words) {
                each(key, &words.as_bytes()[..bytes]);
            }
        };
        match &of.ordered {
            Some(ordered) => {
                ordered.for_each(|key, row| visit(key, of.rows.get(row as u32)));
            }
            None => of.flat.for_each(|number| {
                let row = of.rows.get(number);
                visit(&row.key(), row);
            }),
        }
    }
}
