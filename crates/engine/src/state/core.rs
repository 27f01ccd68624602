//! What all workers share and no device type is needed for: tables, entries, the stop flag;
//! and what needs a table with its entries: looking keys up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Bound;
use std::sync::Arc;

use pmem::BringsPages;
use pmem::sync::atomic::{AtomicBool, Ordering};
use pmem::sync::{Mutex, RwLock};
use storage::{EpochNumber, RowLayout, SerialId, TableId};

use crate::error::EngineError;
use crate::index::{EntryId, ExactWords, KeyOrder, Range, SearchKey};
use crate::kept::KeptIndexes;
use crate::reads::Reads;
use crate::secondary::SecondaryIndexes;
use crate::state::config::EngineConfig;
use crate::state::read_gate::ReadGate;
use crate::state::row_cache::RowCache;
use crate::table::{KeyWord, Table, order_word};
use crate::version::before_images::Snapshots;
use crate::version::{
    EntrySlab, RowEntry, RowPlace, Seen, Stopped, ValueWord, Waiter, newest_version,
};

/// A sequence: what the next call that allocates gets, and its row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SequenceState {
    pub(crate) next: u64,
    /// The last epoch that allocated from it, and what the first call of that epoch that allocates
    /// got.
    pub(crate) allocated_in: EpochNumber,
    pub(crate) start: u64,
    pub(crate) id: Option<EntryId>,
}

/// A map by table and key of a sequence.
pub(crate) type BySequence<T> = HashMap<(TableId, u64), T, BuildHasherDefault<NumberHasher>>;

/// Hashes a few numbers. Who can choose them can make them collide, which costs time and nothing
/// else.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(32) ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Spreads a number over all 64 bits.
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Says what a body has asked for that is not there, in words.
pub type Missing = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Shared by all workers.
pub(crate) struct Core {
    pub(crate) config: EngineConfig,
    pub(crate) tables: Vec<Table>,
    pub(crate) entries: EntrySlab,
    /// Address of the image's first byte.
    pub(crate) image_base: usize,
    /// Brings pages of the image, which may be larger than memory, by their offset and bytes.
    pub(crate) brings_pages: Option<BringsPages>,
    /// Rows that readers have read, where the image may be larger than memory.
    pub(crate) row_cache: Option<RowCache>,
    /// Where indexes are kept, if they are.
    pub(crate) kept: Option<KeptIndexes>,
    /// All sequences ever allocated from, by table and key. Changed by the first worker only.
    pub(crate) sequences: RwLock<BySequence<SequenceState>>,
    /// Secondary indexes.
    pub(crate) secondary: SecondaryIndexes,
    /// While the log of a program of before is replayed: what a body asked for that is not there.
    pub(crate) missing: Option<Missing>,
    /// When rows may be read from outside of an epoch.
    pub(crate) gate: ReadGate,
    /// Snapshots, which are read through the gate.
    pub(crate) snapshots: Snapshots,
    stopped: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Core {
    pub(crate) fn new(
        config: EngineConfig,
        tables: Vec<Table>,
        entries: EntrySlab,
        image_base: usize,
    ) -> Self {
        Self {
            config,
            tables,
            entries,
            image_base,
            brings_pages: None,
            row_cache: None,
            kept: None,
            sequences: RwLock::default(),
            secondary: SecondaryIndexes::default(),
            missing: None,
            gate: ReadGate::default(),
            snapshots: Snapshots::default(),
            stopped: AtomicBool::new(false),
            reason: Mutex::new(None),
        }
    }

    /// Whether bodies have found all that they asked for, where they run for a log of a program of
    /// before. Asked before anything counts that they did (O-107).
    ///
    /// # Errors
    /// `OtherProgram` with what was not there.
    pub(crate) fn check_missing(&self) -> Result<(), EngineError> {
        match self.missing.as_ref().and_then(|missing| missing()) {
            None => Ok(()),
            Some(what) => Err(EngineError::OtherProgram(what)),
        }
    }

    /// The flag that waiting workers watch.
    pub(crate) fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Whether the engine was stopped.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Stops the engine: no epoch runs any more, no worker waits any more (O-50). The first reason
    /// counts.
    pub(crate) fn stop(&self, reason: String) {
        let mut first = self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(reason);
        self.stopped.store(true, Ordering::Release);
    }

    /// Why the engine was stopped, if it was.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        if !self.is_stopped() {
            return None;
        }
        let reason = self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(reason.clone().unwrap_or_else(|| "a worker failed".into()))
    }

    /// What the first call that allocates from a sequence gets in `epoch`: its next number as of
    /// the end of the epoch before. 0 if none was ever allocated.
    pub(crate) fn sequence_start(
        &self,
        table: TableId,
        key: u64,
        epoch: EpochNumber,
    ) -> Result<u64, String> {
        let t = self.table(table)?;
        if t.kind != storage::IndexKind::Sequence {
            return Err(format!("table {:?} holds rows, not sequences", t.name));
        }
        let sequences = self.sequences.read().expect("no panic while locked");
        Ok(sequences
            .get(&(table, key))
            .map_or(0, |state| if state.allocated_in == epoch { state.start } else { state.next }))
    }

    /// The table of rows with an id.
    #[inline]
    pub(crate) fn row_table(&self, id: TableId) -> Result<&Table, String> {
        let table = self.table(id)?;
        if table.kind == storage::IndexKind::Sequence { Err(no_rows(table)) } else { Ok(table) }
    }

    /// The table with an id.
    #[inline]
    pub(crate) fn table(&self, id: TableId) -> Result<&Table, String> {
        self.tables.get(id.index()).ok_or_else(|| self.unknown_table(id))
    }

    /// The entry with an id, filled if it was not touched yet. What the row's writers and readers
    /// of this epoch have touched is found by `entries` alone.
    #[inline]
    pub(crate) fn entry(&self, id: EntryId) -> &RowEntry {
        let entry = self.entries.get(id);
        if !entry.is_filled() {
            self.fill(id, entry);
        }
        entry
    }

    /// Fills an entry by what is with its row: no call of this epoch writes it, or its entry would
    /// be filled.
    #[cold]
    #[inline(never)]
    fn fill(&self, id: EntryId, entry: &RowEntry) {
        let row = self.entries.row_of(id);
        let (word, layout) = self.newest_version(id);
        entry.fill(RowPlace::new(row, layout), word);
        self.entries.touch(id);
    }

    /// The newest version of a row that no call of this epoch writes, by what is with the row. Only
    /// on devices that take image snapshots, where a row has no version of an epoch that a crash
    /// has cut off.
    fn newest_version(&self, id: EntryId) -> (ValueWord, &RowLayout) {
        let row = self.entries.row_of(id);
        newest_version(self.image_base, row, |table| &self.tables[table.index()].layout)
    }

    /// The entry with an id for a reader from outside, `None` if it says nothing of its row. Where
    /// entries are let go, readers fill none: only epochs let them go, and there may be none for
    /// long.
    #[inline]
    fn filled_entry(&self, id: EntryId) -> Option<&RowEntry> {
        let may_fill = !self.entries.are_let_go() || self.entries.get(id).is_filled();
        may_fill.then(|| self.entry(id))
    }

    /// What a reader from outside sees of a row at a serial position.
    #[inline]
    pub(crate) fn seen(
        &self,
        id: EntryId,
        sid: SerialId,
        waiter: &mut Waiter<'_>,
    ) -> Result<Seen, Stopped> {
        if let Some(entry) = self.filled_entry(id) {
            let seen = entry.read(sid, waiter)?;
            self.bring_value(seen.word);
            return Ok(seen);
        }
        self.bring_row(id);
        let (word, _) = self.newest_version(id);
        if !self.is_in_row(id, word) {
            self.bring_value(word);
        }
        Ok(Seen { word, untouched: true })
    }

    /// The newest persistent version of a row, for a reader from outside.
    pub(crate) fn persistent_version(&self, id: EntryId) -> ValueWord {
        match self.filled_entry(id) {
            Some(entry) => entry.persistent_version(),
            None => self.newest_version(id).0,
        }
    }

    /// Finds a key's entry. Not in the insert step.
    #[inline]
    pub(crate) fn find(&self, table: &Table, word: KeyWord<'_>, reads: &Reads) -> Option<EntryId> {
        if table.finds_exactly() {
            table.hash.find_first(word.hash)
        } else {
            table.hash.find(word.hash, |id| self.key_of(id, reads) == word.key)
        }
    }

    /// Entries with `low <= key < high`, ascending. Not in the insert step.
    pub(crate) fn range<'t>(
        &self,
        table: &'t Table,
        low: &[u8],
        high: &[u8],
        reads: &Reads,
    ) -> Result<Range<'t>, String> {
        let Some(ordered) = &table.ordered else {
            return Err(format!("table {:?} is not ordered: it cannot be scanned", table.name));
        };
        let bounds = (
            Bound::Included(SearchKey { word: order_word(low), key: low }),
            Bound::Excluded(SearchKey { word: order_word(high), key: high }),
        );
        if table.exact {
            if low.len() != 8 || high.len() != 8 {
                return Err(format!(
                    "table {:?}: range bounds of {} and {} bytes, all keys have 8",
                    table.name,
                    low.len(),
                    high.len()
                ));
            }
            return Ok(ordered.range(bounds.0, bounds.1, &ExactWords));
        }
        Ok(ordered.range(bounds.0, bounds.1, &RowKeys { core: self, reads }))
    }

    /// The key of a row that the index has under a word, if it has words: an exact key is the word,
    /// and is put into `room`; any other is with the row.
    #[inline]
    pub(crate) fn key<'k>(
        &'k self,
        table: &Table,
        word: impl Into<Option<u64>>,
        id: EntryId,
        room: &'k mut [u8; 8],
        reads: &Reads,
    ) -> &'k [u8] {
        match word.into() {
            Some(word) if table.exact => {
                *room = word.to_be_bytes();
                room
            }
            _ => self.key_of(id, reads),
        }
    }

    /// The key of an entry's row, where rows have their keys from the insert step on: in tables
    /// whose keys are not exact, and wherever the index has no words.
    #[inline]
    pub(crate) fn key_of(&self, id: EntryId, reads: &Reads) -> &[u8] {
        let row = self.entries.row_of(id);
        let key = self.entries.key_at(self.image_base, row);
        reads.charge_key(self.image_base, row, key);
        key
    }

    /// Asks for the line of a row that has the key, or where it begins.
    #[inline]
    pub(crate) fn prefetch_key(&self, id: EntryId) {
        pmem::prefetch(self.image_base + self.entries.row_of(id) as usize);
    }

    #[cold]
    fn unknown_table(&self, id: TableId) -> String {
        format!("table {id} does not exist, there are {}", self.tables.len())
    }
}

#[cold]
fn no_rows(table: &Table) -> String {
    format!("table {:?} holds sequences, not rows: allocate from it", table.name)
}

/// Compares entries by the keys in their persistent rows.
pub(crate) struct RowKeys<'c> {
    pub(crate) core: &'c Core,
    /// Where these reads are noted.
    pub(crate) reads: &'c Reads,
}

impl KeyOrder for RowKeys<'_> {
    const EXACT: bool = false;

    fn compare(&self, a: EntryId, b: EntryId) -> std::cmp::Ordering {
        self.core.key_of(a, self.reads).cmp(self.core.key_of(b, self.reads))
    }

    fn compare_key(&self, a: EntryId, key: &[u8]) -> std::cmp::Ordering {
        self.core.key_of(a, self.reads).cmp(key)
    }
}
