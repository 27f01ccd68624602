//! Reads from any thread, while epochs run: of the newest state, here, and of snapshots.

use std::sync::Arc;

use pmem::Device;
use storage::{EpochNumber, IndexKind, Position, SerialId, TableId};

use crate::declaration::declare::LookupError;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::reads::{Reading, Reads};
use crate::state::core::Core;
use crate::state::read_gate::{Inside, NoEntry};
use crate::table::{KeyWord, Table};
use crate::version::{ReadPhase, Waiter};

/// Charges reads.
type Charge = Arc<dyn Fn(&mut Reads) + Send + Sync>;

/// Reads rows as of the end of the last finished epoch, or of a snapshot, from any thread, also
/// while an epoch runs (see `state/read_gate.rs`). It keeps the indexes in memory, but not the
/// device: once the engine is gone, nothing is read any more.
#[derive(Clone)]
pub struct Reader {
    pub(super) core: Arc<Core>,
    /// Charges reads, on devices on which they cost something.
    pub(super) charge: Option<Charge>,
}

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// There is a row.
    Found,
    /// There is none.
    Missing,
    /// Indexes change at this moment, and the reader does not wait.
    Later,
    /// The engine was stopped or is gone.
    Ended,
}

/// Shuts the gate of reads when the engine goes, before its device does.
pub(crate) struct ShutsGate(pub(crate) Arc<Core>);

impl Drop for ShutsGate {
    fn drop(&mut self) {
        self.0.gate.shut();
    }
}

impl Engine {
    /// Reads from any thread, as long as the engine lives.
    pub fn reader(&self) -> Reader {
        let device = Arc::downgrade(self.store.device());
        let image_base = self.core.image_base;
        let charge = move |reads: &mut Reads| {
            if let Some(device) = device.upgrade() {
                let mut reading = Reading::new(&device);
                std::mem::swap(&mut reading.reads, reads);
                reading.end_step(image_base);
            }
        };
        let is_charged = self.store.device().charges_loads();
        let charge = is_charged.then(|| -> Charge { Arc::new(charge) });
        Reader { core: Arc::clone(&self.core), charge }
    }
}

impl Reader {
    /// The newest epoch whose end readers see.
    pub fn epoch(&self) -> EpochNumber {
        self.core.gate.epoch()
    }

    /// Reads a row into `value`, whose content is replaced; waits where indexes change. `slot` is
    /// any number: threads that read at the same time should have different ones.
    ///
    /// # Errors
    /// `Limit` for an unknown table, one of sequences, and a key beyond its limit.
    pub fn get(
        &self,
        slot: usize,
        table: TableId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<ReadOutcome> {
        let core = &*self.core;
        self.read(table, key, value, || core.gate.enter(slot, || core.is_stopped()))
    }

    /// [`Reader::get`] that does not wait.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn try_get(
        &self,
        slot: usize,
        table: TableId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<ReadOutcome> {
        self.read(table, key, value, || self.core.gate.try_enter(slot))
    }

    fn read<'g>(
        &'g self,
        table: TableId,
        key: &[u8],
        value: &mut Vec<u8>,
        enter: impl FnOnce() -> std::result::Result<Inside<'g>, NoEntry>,
    ) -> Result<ReadOutcome> {
        let core = &*self.core;
        let table = core.table(table).map_err(EngineError::Limit)?;
        if table.kind == IndexKind::Sequence {
            return Err(EngineError::Limit(format!("table {:?} holds sequences", table.name)));
        }
        if core.is_stopped() {
            return Ok(ReadOutcome::Ended);
        }
        let inside = match enter() {
            Ok(inside) => inside,
            Err(NoEntry::Closed) => return Ok(ReadOutcome::Later),
            Err(NoEntry::Ended) => return Ok(ReadOutcome::Ended),
        };
        let mut reads = Reads::new(self.charge.is_some());
        let word = table.word(key).map_err(EngineError::Limit)?;
        let kept = core.kept_row(table, word);
        let found = match &kept {
            Some(kept) => Some(kept.value()),
            None => self.look_up(&inside, table, word, &reads)?,
        };
        value.clear();
        value.extend_from_slice(found.unwrap_or_default());
        let outcome = found.map_or(ReadOutcome::Missing, |_| ReadOutcome::Found);
        drop(inside);
        self.charge(&mut reads);
        Ok(outcome)
    }

    /// What a reader inside the gate finds of a row, which is kept from then on if it may be.
    fn look_up<'g>(
        &self,
        inside: &'g Inside<'_>,
        table: &Table,
        word: KeyWord<'_>,
        reads: &Reads,
    ) -> Result<Option<&'g [u8]>> {
        let core = &*self.core;
        core.bring_key(table, word);
        let Some(id) = core.find(table, word, reads) else { return Ok(None) };
        let sid = SerialId::new(inside.epoch.next(), Position(0));
        let seen = core.seen(id, sid, &mut Waiter::new(core.stopped()));
        let seen = seen.map_err(|stopped| LookupError::from(stopped).of_reader(core))?;
        seen.word.charge(reads);
        if !seen.word.is_value() {
            return Ok(None);
        }
        let value = ReadPhase::of(inside).bytes(seen.word);
        if seen.untouched {
            core.keep_row(table, word, core.written(id, seen.word), value);
        }
        Ok(Some(value))
    }

    pub(super) fn charge(&self, reads: &mut Reads) {
        if let Some(charge) = &self.charge {
            charge(reads);
        }
    }
}
