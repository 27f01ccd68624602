//! Which tables are watched: those of feeds, and those of the change log.

use std::sync::Arc;

use pmem::Device;
use storage::format::FEATURE_CONSUMERS;
use storage::{ChangeLog, IndexKind, TableId};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::version::changes::Watched;

impl Engine {
    /// From the next epoch on, outcomes have the changes of the rows of these tables
    /// ([`crate::EpochOutcome::changes`]), beside those of tables of the change log: as long as
    /// those of an epoch take no more than so many bytes, of which each worker has its share. Where
    /// no table is watched nothing is noted. It changes no answer and no state.
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
        let watched = &mut self.watched_tables;
        (watched.fed, watched.fed_bytes_max) = (tables.to_vec(), bytes_max);
        self.watch();
        Ok(())
    }

    /// Watches what feeds and the change log want, from the next epoch on.
    pub fn watch(&mut self) {
        let log = self.core.config.change_log.as_ref();
        let logged = log.map(|log| log.tables()).unwrap_or_default();
        let fed = &self.watched_tables.fed;
        let numbers = match fed.is_empty() && logged.is_empty() {
            true => 0..0,
            false => 0..self.core.tables.len(),
        };
        let watched = |number: usize| {
            let table = TableId(number as u16);
            match (logged.contains_key(&table), fed.contains(&table)) {
                (true, _) => Watched::Logged,
                (false, true) => Watched::Fed,
                (false, false) => Watched::No,
            }
        };
        let tables = numbers.map(watched).collect();
        let logged_bytes_max = log.map_or(0, |log| log.epoch_bytes_max());
        self.watched_tables.tables = tables;
        self.watched_tables.logged_bytes_max = logged_bytes_max;
    }

    /// The change log that the engine was opened with.
    pub fn change_log(&self) -> Option<Arc<ChangeLog>> {
        self.core.config.change_log.clone()
    }

    /// Makes the store one that has consumers: durably, so that no program opens it any more that
    /// does not know of them.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub fn require_consumers(&mut self) -> Result<()> {
        assert!(self.store.device().takes_snapshots(), "consumers are for files");
        if self.store.has_feature(FEATURE_CONSUMERS) {
            return Ok(());
        }
        self.store.require_feature(&mut self.workers[0].row_store.port, FEATURE_CONSUMERS);
        self.checkpoint_anew(true)
    }

    /// Before a replay: the change log has what was before it.
    pub(crate) fn begin_changes(&mut self) {
        if let Some(log) = &self.core.config.change_log {
            let had_consumers = self.store.has_feature(FEATURE_CONSUMERS);
            log.begin_store(self.store.superblock().instance, had_consumers);
            log.begin_replay(self.epoch());
        }
        self.watch();
    }

    /// After a replay: the change log has nothing of another past.
    pub(crate) fn end_changes(&self) {
        if let Some(log) = &self.core.config.change_log {
            log.end_replay(self.epoch());
        }
    }

    /// Makes the change log durable: an image of the state between two epochs is about to count.
    pub(crate) fn settle_changes(&self) -> Result<()> {
        Ok(self.core.config.change_log.as_ref().map_or(Ok(()), |log| log.settle(self.epoch()))?)
    }
}
