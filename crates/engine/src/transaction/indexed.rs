//! Secondary indexes in a running transaction.

use storage::TableId;

use super::{Stop, Transaction, changes_index};
use crate::declaration::DeclaredKind;
use crate::reads::{KeyRange, Visit};
use crate::secondary::RowWrite;

impl Transaction<'_> {
    /// Visits the rows that a secondary index has with `low <= key < high`, own writes included:
    /// the key there, which ends with the row's own, and the row's own; `each` returns `Break` when
    /// it has seen enough.
    ///
    /// # Errors
    /// [`Stop`] for an unknown index.
    pub fn scan_index(
        &mut self,
        index: u16,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let keys = KeyRange { low, high, is_descending: descending };
        let scanned = self.core.secondary.scan(index, keys, each);
        scanned.map_err(|what| self.mistake(what))
    }

    /// The table of a secondary index.
    ///
    /// # Errors
    /// [`Stop`] for an unknown index.
    pub fn table_of_index(&self, index: u16) -> Result<TableId, Stop> {
        self.core.secondary.table(index).map_err(|what| self.mistake(what))
    }

    /// Whether writes of a table may change an index.
    #[inline]
    pub(super) fn is_indexed(&self, table: TableId) -> bool {
        !self.core.secondary.is_empty() && self.core.secondary.are_of(table)
    }

    /// Writes a row of a table with indexes in the parallel part, where no index changes: a write
    /// that would change one was not predicted (O-97).
    #[inline(never)]
    pub(super) fn keeping_indexes<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        write: impl FnOnce(&mut Self) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        assert!(!self.is_serial(), "indexes follow the writes of the serial part (O-97)");
        let before = self.try_get(table, key)?.map(<[u8]>::to_vec);
        let result = write(self)?;
        let core = self.core;
        let after = self.try_get(table, key)?;
        if !core.secondary.differ(table, key, RowWrite { before: before.as_deref(), after })? {
            return Ok(result);
        }
        Err(match self.keeps_to_its_set() {
            true => changes_index(&core.tables[table.index()], key),
            false => Stop::Deferred,
        })
    }

    /// Whether it declared to write rows of a table with indexes, and can be deferred.
    pub(super) fn may_change_indexes(&self) -> bool {
        if self.core.secondary.is_empty() || !self.call.pieces().is_empty() {
            return false;
        }
        let ranges = &self.call.lists.ranges[self.call.extra.ranges.range()];
        let declared = self.call.declared.iter().filter(|d| d.kind != DeclaredKind::Read);
        let mut tables = declared.map(|d| d.table).chain(ranges.iter().map(|range| range.table));
        tables.any(|table| self.core.secondary.are_of(table))
    }
}
