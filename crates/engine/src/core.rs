//! What all workers share and no device type is needed for: tables, entries, procedures, the stop
//! flag.

use std::collections::HashMap;

use pmem::sync::atomic::{AtomicBool, Ordering};
use pmem::sync::{Mutex, RwLock};

use crate::config::EngineConfig;
use crate::index::EntryId;
use crate::procedure::ProcedureTable;
use crate::table::Table;
use crate::version::EntrySlab;

/// A sequence: what the next drawer gets, and its row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SequenceState {
    pub(crate) next: u64,
    /// The last epoch that drew from it, and what the first drawer of that epoch got.
    pub(crate) drawn_in: u64,
    pub(crate) start: u64,
    pub(crate) id: Option<EntryId>,
}

/// Shared by all workers.
pub(crate) struct Core {
    pub(crate) config: EngineConfig,
    pub(crate) tables: Vec<Table>,
    pub(crate) entries: EntrySlab,
    pub(crate) procedures: ProcedureTable,
    /// Address of the image's first byte.
    pub(crate) image_base: usize,
    /// All sequences ever drawn from, by table and key. Changed by the first worker only.
    pub(crate) sequences: RwLock<HashMap<(u16, u64), SequenceState>>,
    stopped: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Core {
    pub(crate) fn new(
        config: EngineConfig,
        tables: Vec<Table>,
        entries: EntrySlab,
        procedures: ProcedureTable,
        image_base: usize,
    ) -> Self {
        Self {
            config,
            tables,
            entries,
            procedures,
            image_base,
            sequences: RwLock::new(HashMap::new()),
            stopped: AtomicBool::new(false),
            reason: Mutex::new(None),
        }
    }

    /// The flag that waiting workers watch.
    pub(crate) fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Stops the engine: no epoch runs any more, nobody waits any more (O-50). The first reason
    /// counts.
    pub(crate) fn stop(&self, reason: String) {
        let mut first = self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(reason);
        self.stopped.store(true, Ordering::Release);
    }

    /// Why the engine was stopped, if it was.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        if !self.stopped.load(Ordering::Acquire) {
            return None;
        }
        let reason = self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(reason.clone().unwrap_or_else(|| "a worker failed".into()))
    }

    /// What the first drawer of a sequence gets in `epoch`: its next number as of the end of the
    /// epoch before. 0 if nobody ever drew.
    pub(crate) fn sequence_start(&self, table: u16, key: u64, epoch: u64) -> Result<u64, String> {
        let t = self.table(table)?;
        if t.kind != storage::IndexKind::Sequence {
            return Err(format!("table {:?} holds rows, not sequences", t.name));
        }
        let sequences = self.sequences.read().expect("no panic while locked");
        Ok(sequences
            .get(&(table, key))
            .map_or(0, |state| if state.drawn_in == epoch { state.start } else { state.next }))
    }

    /// The table of rows with an id.
    #[inline]
    pub(crate) fn row_table(&self, id: u16) -> Result<&Table, String> {
        let table = self.table(id)?;
        if table.kind == storage::IndexKind::Sequence { Err(no_rows(table)) } else { Ok(table) }
    }

    /// The table with an id.
    #[inline]
    pub(crate) fn table(&self, id: u16) -> Result<&Table, String> {
        self.tables.get(id as usize).ok_or_else(|| self.unknown_table(id))
    }

    #[cold]
    fn unknown_table(&self, id: u16) -> String {
        format!("table {id} does not exist, there are {}", self.tables.len())
    }
}

#[cold]
fn no_rows(table: &Table) -> String {
    format!("table {:?} holds sequences, not rows: draw from it", table.name)
}
