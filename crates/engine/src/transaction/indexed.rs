//! Secondary indexes in a running transaction.

use storage::TableId;

use super::{Stop, Transaction, changes_index};
use crate::declaration::may_change;
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
        let core = self.core;
        if self.is_serial() || core.secondary.are_for_the_serial_part {
            let scanned = core.secondary.scan(index, keys, each);
            return scanned.map_err(|what| self.mistake(what));
        }
        let position = self.sid.position();
        let waited = self.publisher.wait_for_index_writers(self.local, position);
        let changes = waited.map_err(|stopped| self.first_error.note(stopped.into()))?;
        let own = &self.local.index_changes;
        let scanned = match changes {
            true => core.secondary.scan_at(index, keys, position, own, each),
            // No call of the epoch may change an index, this one included.
            false => core.secondary.scan(index, keys, each),
        };
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

    /// Writes a row of a table with indexes in the parallel part, and notes what that changes in
    /// them, which others see when the call has committed (O-97).
    #[inline(never)]
    pub(super) fn with_indexes<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        write: impl FnOnce(&mut Self) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        assert!(!self.is_serial(), "indexes follow the writes of the serial part (O-97)");
        let before = self.try_get(table, key)?.map(<[u8]>::to_vec);
        let result = write(self)?;
        let (core, keeps_to_its_set) = (self.core, self.keeps_to_its_set());
        let is_noted = !keeps_to_its_set && !core.secondary.are_for_the_serial_part;
        let mut changes = std::mem::take(&mut self.local.index_changes);
        let after = self.try_get(table, key)?;
        let write = RowWrite { before: before.as_deref(), after };
        let differs = match is_noted {
            true => core.secondary.note(table, key, write, &mut changes).map(|()| false),
            false => core.secondary.differ(table, key, write),
        };
        self.local.index_changes = changes;
        match differs? {
            false => Ok(result),
            true if keeps_to_its_set => Err(changes_index(&core.tables[table.index()], key)),
            true => Err(Stop::Deferred),
        }
    }

    /// Whether it declared to write rows of a table with indexes, and can be deferred.
    pub(super) fn may_change_indexes(&self) -> bool {
        if self.core.secondary.is_empty() || !self.call.pieces().is_empty() {
            return false;
        }
        let ranges = &self.call.lists.ranges[self.call.extra.ranges.range()];
        may_change(&self.core.secondary, self.call.declared, ranges)
    }
}
