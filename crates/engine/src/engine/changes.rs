//! Which tables are watched, and what changed in them in an epoch.

use pmem::Device;
use storage::{IndexKind, TableId};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::version::changes::{EpochChanges, WatchedTables};

impl<D: Device> Engine<D> {
    /// From the next epoch on, outcomes have the changes of the rows of these tables, and of no
    /// others ([`crate::EpochOutcome::changes`]): as long as those of an epoch take no more than so
    /// many bytes, of which each worker has its share. Where no table is watched nothing is noted.
    /// It changes no answer and no state.
    ///
    /// # Errors
    /// `Limit` for an unknown table and one of sequences.
    pub fn watch_changes(&mut self, tables: &[TableId], bytes_max: u64) -> Result<()> {
        for &table in tables {
            let table = self.core.table(table).map_err(EngineError::Limit)?;
            if table.kind == IndexKind::Sequence {
                return Err(EngineError::Limit(format!("table {:?} holds sequences", table.name)));
            }
        }
        let numbers = match tables.is_empty() {
            true => 0..0,
            false => 0..self.core.tables.len(),
        };
        let watched = numbers.map(|number| tables.contains(&TableId(number as u16)));
        self.watched_tables = WatchedTables { tables: watched.collect(), bytes_max };
        Ok(())
    }

    /// What the workers noted in the epoch.
    pub(super) fn take_changes(&mut self) -> EpochChanges {
        let mut all = EpochChanges::default();
        if !self.watched_tables.tables.is_empty() {
            for worker in &mut self.workers {
                all.add(worker.row_store.changes.take());
            }
            all.sort();
        }
        all
    }
}
