//! A running transaction, as its body sees it.
//!
//! Reads see the newest version with a smaller serial id, own writes included. Writes are private
//! until the body returns `Ok`, so a body may abort or panic anywhere (O-03, O-05), unless it
//! called [`Transaction::commit_point`]. Knows no device: publishing is done by whoever runs the
//! body.

use std::cell::Cell;

use storage::SerialId;

use crate::calls::Abort;
use crate::core::Core;
use crate::declare::{LookupError, Visit};
use crate::index::EntryId;
use crate::local::{CallView, Declared, DeclaredKind, Local, Member, NO_ENTRY, PrivateWrite, Span};
use crate::table::{KeyWord, Table, order_word};
use crate::version::{Fetched, LINES_HEAD, ReadPhase, Stopped, Waiter};

/// Why a body ends without committing. Bodies pass it on with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The transaction gives up on purpose.
    Abort(Abort),
    /// A mistake of the body: undeclared write, unknown table, key or value beyond its limit.
    Mistake(String),
    /// Another worker failed; the engine is stopped.
    Stopped,
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Mistake(what)
    }
}

impl From<Stopped> for Stop {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<LookupError> for Stop {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Mistake(what) => Self::Mistake(what),
            LookupError::Stopped => Self::Stopped,
        }
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Abort(abort) => abort.fmt(f),
            Self::Mistake(what) => f.write_str(what),
            Self::Stopped => f.write_str("the engine was stopped"),
        }
    }
}

/// Makes the private writes of the running call visible; what a commit point needs of the device.
pub(crate) trait PublishNow {
    /// Publishes everything that is written and not published yet.
    fn publish_written(&mut self, local: &mut Local, call: CallView<'_>) -> Result<(), Stopped>;
}

/// Rows of a scan that are fetched ahead: at its start, and at most.
const SCAN_AHEAD_FIRST: usize = 4;
const SCAN_AHEAD_MAX: usize = 32;

/// Where a declared write is kept: index of its private write.
#[derive(Debug, Clone, Copy)]
struct Slot {
    write: usize,
    id: EntryId,
    may_insert: bool,
}

/// A running transaction.
pub struct Transaction<'a> {
    pub(crate) core: &'a Core,
    pub(crate) local: &'a mut Local,
    pub(crate) publisher: &'a mut dyn PublishNow,
    pub(crate) phase: ReadPhase<'a>,
    pub(crate) waiter: Waiter<'a>,
    pub(crate) call: CallView<'a>,
    /// Which declared key, and which member of a range, was asked for last. Bodies mostly go
    /// through them in order, and often read what they write then: the next one is tried first, and
    /// then the same again.
    pub(crate) last_declared: Cell<usize>,
    /// See `last_declared`.
    pub(crate) last_member: Cell<usize>,
    pub(crate) sid: SerialId,
    pub(crate) timestamp_ns: u64,
    pub(crate) seed: u64,
    pub(crate) committed: bool,
}

impl<'a> Transaction<'a> {
    /// The epoch's timestamp, nanoseconds since 1970: the only clock a body may use (O-47).
    pub fn timestamp_ns(&self) -> u64 {
        self.timestamp_ns
    }

    /// A seed for random numbers, different for each transaction and the same in replay (O-47).
    pub fn seed(&self) -> u64 {
        self.seed ^ self.sid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The serial id: epoch in the high 40 bits, position in the low 24.
    pub fn serial_id(&self) -> u64 {
        self.sid.0
    }

    /// The number that this call's `i`-th draw got, or its `i`-th look saw.
    ///
    /// # Panics
    /// If the call drew less than that; the call fails.
    pub fn drawn(&self, i: usize) -> u64 {
        self.call.lists.draws[self.call.txn.draws.range()][i].value
    }

    /// What the first drawer of a sequence gets in this epoch; see
    /// [`crate::WriteSet::sequence_start`].
    ///
    /// # Errors
    /// [`Stop`] if the table holds no sequences.
    pub fn sequence_start(&self, table: u16, key: u64) -> Result<u64, Stop> {
        Ok(self.core.sequence_start(table, key, self.sid.epoch())?)
    }

    /// The answer: append bytes here. Dropped if the body does not return `Ok`.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.local.answers.output
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table or a key beyond its limit.
    pub fn get(&mut self, table: u16, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let (core, t) = (self.core, self.core.row_table(table)?);
        let word = t.word(key)?;
        self.get_row(t, table, word, || t.find(core, word).unwrap_or(NO_ENTRY))
    }

    /// Reads the row of a key: what this call wrote, or the row that `find` finds.
    #[inline]
    fn get_row(
        &mut self,
        t: &Table,
        table: u16,
        word: KeyWord<'_>,
        find: impl FnOnce() -> EntryId,
    ) -> Result<Option<&[u8]>, Stop> {
        let id = match self.find_declared(t, table, word.hash, word.key) {
            Some((write, id, _)) => match self.local.writes[write] {
                PrivateWrite::Value(span) => return Ok(Some(&self.local.scratch[span.range()])),
                PrivateWrite::Tombstone => return Ok(None),
                PrivateWrite::Published => return self.see(id, true),
                PrivateWrite::None => id,
            },
            None => find(),
        };
        if id == NO_ENTRY {
            return Ok(None);
        }
        self.see(id, false)
    }

    /// Reads many rows of one table, as [`Transaction::get`] does one by one: `each` gets what is
    /// there for each key, in order. Index buckets, row entries and values of a group of keys are
    /// fetched together, so that their misses overlap.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table or a key beyond its limit.
    pub fn get_many<'k>(
        &mut self,
        table: u16,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        mut each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        let (core, t) = (self.core, self.core.row_table(table)?);
        if !core.config.techniques.prefetch {
            for key in keys {
                each(self.get(table, key)?);
            }
            return Ok(());
        }
        let mut rows = std::mem::take(&mut self.local.ahead);
        rows.clear();
        for key in keys.clone() {
            let hash = t.word(key)?.hash;
            t.hash.prefetch(hash);
            rows.push((hash, NO_ENTRY));
        }
        for (key, (hash, id)) in keys.clone().zip(&mut rows) {
            if let Some(found) = t.find(core, KeyWord { hash: *hash, key }) {
                core.entries.prefetch(found);
                *id = found;
            }
        }
        let there = |&&(_, id): &&(u64, EntryId)| id != NO_ENTRY;
        let entries = || rows.iter().filter(there).map(|&(_, id)| core.entries.get(id));
        let mut arrays = false;
        for entry in entries() {
            arrays |= entry.fetch(self.sid, LINES_HEAD) == Fetched::Array;
        }
        if arrays {
            entries().for_each(|entry| entry.fetch_from_array(self.sid, LINES_HEAD));
        }
        for (key, &(hash, id)) in keys.zip(&rows) {
            each(self.get_row(t, table, KeyWord { hash, key }, || id)?);
        }
        self.local.ahead = rows;
        Ok(())
    }

    /// Scans the rows with `low <= key < high` of an ordered table, own writes included; `each`
    /// returns `Break` when it has seen enough.
    ///
    /// # Errors
    /// [`Stop`] for an unknown or unordered table.
    pub fn scan(
        &mut self,
        table: u16,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let core = self.core;
        let t = core.row_table(table)?;
        let mut rows = t.range(core, low, high)?;
        let mut next = || if descending { rows.next_back() } else { rows.next() };
        let fetches = core.config.techniques.prefetch;
        let (mut group, most) = if fetches { (SCAN_AHEAD_FIRST, SCAN_AHEAD_MAX) } else { (1, 1) };
        let mut room = [(0, NO_ENTRY); SCAN_AHEAD_MAX];
        loop {
            // Rows are fetched some at a time, so that their misses overlap: more of them the
            // longer the scan goes on.
            let mut count = 0;
            while count < group
                && let Some(entry) = next()
            {
                if fetches {
                    core.entries.prefetch(entry.1);
                }
                room[count] = entry;
                count += 1;
            }
            let found = &room[..count];
            for &(_, id) in found.iter().filter(|_| fetches) {
                core.entries.get(id).fetch(self.sid, LINES_HEAD);
            }
            for &(word, id) in found {
                let mut room = [0; 8];
                if let Some(value) = self.scanned(table, word, id)?
                    && each(core.key(t, (word, id), &mut room), value).is_break()
                {
                    return Ok(());
                }
            }
            if count < group {
                return Ok(());
            }
            group = (2 * group).min(most);
        }
    }

    /// What a scan sees of a row.
    fn scanned(&mut self, table: u16, word: u64, id: EntryId) -> Result<Option<&[u8]>, Stop> {
        match self.own_write(table, word, id) {
            PrivateWrite::Value(span) => Ok(Some(&self.local.scratch[span.range()])),
            PrivateWrite::Tombstone => Ok(None),
            before => self.see(id, before == PrivateWrite::Published),
        }
    }

    /// What this call wrote to a row that a scan met.
    fn own_write(&self, table: u16, word: u64, id: EntryId) -> PrivateWrite {
        let (declared, members) = (self.call.declared(), self.call.members());
        let by_key = declared.iter().position(|d| d.id == id && d.kind != DeclaredKind::Read);
        let write = by_key.or_else(|| {
            let at = members.binary_search(&Member { table, word, id }).ok()?;
            Some(declared.len() + at)
        });
        write.map_or(PrivateWrite::None, |write| self.local.writes[write])
    }

    /// Inserts a row that was declared with `insert`, or overwrites it where it exists.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key or a value beyond the table's limit.
    pub fn insert(&mut self, table: u16, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let slot = self.writable(table, key)?;
        if !slot.may_insert {
            let name = &self.core.tables[table as usize].name;
            return Err(Stop::Mistake(format!(
                "table {name:?}: insert of key {key:02x?}, which was declared for update only"
            )));
        }
        self.write_value(table, slot, value)
    }

    /// Updates a declared row; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key or a value beyond the table's limit.
    pub fn update(&mut self, table: u16, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        if !self.exists(slot)? {
            return Ok(false);
        }
        self.write_value(table, slot, value)?;
        Ok(true)
    }

    /// Changes a declared row in a private copy of its newest value; its length stays. False where
    /// the row does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key.
    pub fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: u16,
        key: &[u8],
        change: F,
    ) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        let span = match self.local.writes[slot.write] {
            PrivateWrite::Value(span) => span,
            PrivateWrite::Tombstone => return Ok(false),
            PrivateWrite::None | PrivateWrite::Published => {
                if slot.id == NO_ENTRY {
                    return Ok(false);
                }
                let published = self.local.writes[slot.write] == PrivateWrite::Published;
                let Some(seen) = self.see(slot.id, published)? else {
                    return Ok(false);
                };
                self.keep_value(seen)
            }
        };
        change(&mut self.local.scratch[span.range()]);
        self.put(slot, PrivateWrite::Value(span))?;
        Ok(true)
    }

    /// Deletes a declared row; false where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key.
    pub fn delete(&mut self, table: u16, key: &[u8]) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        if !self.exists(slot)? {
            return Ok(false);
        }
        self.put(slot, PrivateWrite::Tombstone)?;
        Ok(true)
    }

    /// From here on the transaction cannot abort: what it wrote becomes visible now, and what it
    /// writes later becomes visible at once (early write visibility, NV 3.1.2). After this, writing
    /// a key again that is already visible is a mistake; an `Err` or a panic stops the engine,
    /// because half of the transaction has been seen (O-49).
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn commit_point(&mut self) -> Result<(), Stop> {
        self.committed = true;
        self.publisher.publish_written(self.local, self.call)?;
        Ok(())
    }

    /// Reads a row's version. An own write that is already visible (`own`) is read like everybody
    /// else's: at the next serial position.
    #[inline]
    fn see(&mut self, id: EntryId, own: bool) -> Result<Option<&'a [u8]>, Stop> {
        let entry = self.core.entries.get(id);
        let sid = if own { SerialId(self.sid.0 + 1) } else { self.sid };
        let seen = entry.read(sid, &mut self.waiter)?;
        let word = seen.word;
        if !word.is_value() {
            return Ok(None);
        }
        let bytes = self.phase.bytes(word);
        if word.is_on_medium() {
            self.local.reads.note(word.address(), word.len());
            self.local.work.cache_misses += 1;
            let written_now = !seen.untouched && word != entry.base();
            self.local.work.final_versions_read += u64::from(written_now);
            if seen.untouched && self.local.cache.is_on() {
                self.cache(id, bytes, word.slot());
            }
        } else if word.is_cached() {
            self.local.work.cache_hits += 1;
        } else if !self.local.pool.holds(word.address()) {
            self.local.work.versions_handed_over += 1;
        }
        Ok(Some(bytes))
    }

    /// Keeps a copy of a value that was read from the medium.
    fn cache(&mut self, id: EntryId, bytes: &[u8], slot: usize) {
        let epoch = self.sid.epoch();
        if let Some(word) = self.local.cache.create(id, bytes, slot, epoch)
            && !self.core.entries.get(id).install_cached(word)
        {
            self.local.cache.discard(word, epoch);
        }
    }

    fn exists(&mut self, slot: Slot) -> Result<bool, Stop> {
        match self.local.writes[slot.write] {
            PrivateWrite::Value(_) => Ok(true),
            PrivateWrite::Tombstone => Ok(false),
            _ if slot.id == NO_ENTRY => Ok(false),
            before => {
                let own = before == PrivateWrite::Published;
                let sid = if own { SerialId(self.sid.0 + 1) } else { self.sid };
                let entry = self.core.entries.get(slot.id);
                Ok(entry.read(sid, &mut self.waiter)?.word.is_value())
            }
        }
    }

    fn keep_value(&mut self, value: &[u8]) -> Span {
        let from = self.local.scratch.len() as u32;
        self.local.scratch.extend_from_slice(value);
        Span { from, to: self.local.scratch.len() as u32 }
    }

    fn write_value(&mut self, table: u16, slot: Slot, value: &[u8]) -> Result<(), Stop> {
        let t = &self.core.tables[table as usize];
        if value.len() as u64 > t.layout.value_bytes_max {
            return Err(Stop::Mistake(format!(
                "table {:?}: a value of {} bytes, at most {}",
                t.name,
                value.len(),
                t.layout.value_bytes_max
            )));
        }
        let span = self.keep_value(value);
        self.put(slot, PrivateWrite::Value(span))
    }

    fn put(&mut self, slot: Slot, write: PrivateWrite) -> Result<(), Stop> {
        let place = &mut self.local.writes[slot.write];
        if *place == PrivateWrite::Published {
            let what = "a key was written again after the commit point had made it visible";
            return Err(Stop::Mistake(what.into()));
        }
        *place = write;
        if self.committed {
            self.publisher.publish_written(self.local, self.call)?;
        }
        Ok(())
    }

    /// The private write of a declared key.
    fn writable(&mut self, table: u16, key: &[u8]) -> Result<Slot, Stop> {
        let t = self.core.row_table(table)?;
        let word = t.word(key)?;
        if let Some((write, id, kind)) = self.find_declared(t, table, word.hash, key)
            && kind != DeclaredKind::Read
        {
            return Ok(Slot { write, id, may_insert: kind == DeclaredKind::Insert });
        }
        if !self.call.txn.ranges.is_empty() && t.ordered.is_some() {
            if let Some(slot) = self.find_member(t, table, key) {
                return Ok(slot);
            }
            if self.in_declared_range(table, key) {
                // Covered, but no row existed at this position: reading says so, writing does
                // nothing.
                let write = self.local.writes.len();
                self.local.writes.push(PrivateWrite::None);
                return Ok(Slot { write, id: NO_ENTRY, may_insert: false });
            }
        }
        Err(Stop::Mistake(format!("table {:?}: write of undeclared key {key:02x?}", t.name)))
    }

    #[inline]
    fn find_declared(
        &self,
        t: &Table,
        table: u16,
        word: u64,
        key: &[u8],
    ) -> Option<(usize, EntryId, DeclaredKind)> {
        // No key is both declared for writing and the member of a range, but it may be hinted at
        // and a member.
        if let Some(slot) = self.find_member(t, table, key) {
            return Some((slot.write, slot.id, DeclaredKind::Update));
        }
        let declared = self.call.declared();
        let same = |d: &Declared| {
            d.word == word && d.table == table && (t.exact || self.call.key(d.key) == key)
        };
        let last = self.last_declared.get();
        let is_same = |&at: &usize| declared.get(at).is_some_and(same);
        let near = [last + 1, last].into_iter().find(is_same);
        let at = near.or_else(|| declared.iter().position(same))?;
        self.last_declared.set(at);
        Some((at, declared[at].id, declared[at].kind))
    }

    #[inline]
    fn find_member(&self, t: &Table, table: u16, key: &[u8]) -> Option<Slot> {
        let members = self.call.members();
        if members.is_empty() || t.ordered.is_none() {
            return None;
        }
        let word = order_word(key);
        let before = |m: &Member| (m.table, m.word) < (table, word);
        let is_first = |at: usize| {
            members.get(at).is_some_and(|m| !before(m)) && (at == 0 || before(&members[at - 1]))
        };
        let last = self.last_member.get();
        let first = [last + 1, last].into_iter().find(|&at| is_first(at));
        let first = first.unwrap_or_else(|| members.partition_point(before));
        self.last_member.set(first);
        let same = members[first..].iter().take_while(|m| (m.table, m.word) == (table, word));
        let (at, member) =
            same.enumerate().find(|(_, m)| t.exact || self.core.key_of(m.id) == key)?;
        let write = self.call.declared().len() + first + at;
        Some(Slot { write, id: member.id, may_insert: false })
    }

    fn in_declared_range(&self, table: u16, key: &[u8]) -> bool {
        let CallView { lists, txn } = self.call;
        lists.ranges[txn.ranges.range()].iter().any(|range| {
            range.table == table
                && &lists.keys[range.low.range()] <= key
                && key < &lists.keys[range.high.range()]
        })
    }
}
