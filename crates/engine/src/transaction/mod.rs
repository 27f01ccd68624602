//! A running transaction, as its body sees it.
//!
//! Reads see the newest version with a smaller serial id, own writes included. Writes are private
//! until the body returns `Ok`, so a body may abort or panic anywhere (O-03, O-05), unless it
//! called [`Transaction::commit_point`]. A mistake fails the call even where the body ignores it
//! (`first_error.rs`). Knows no device: publishing is done by the worker that runs the body.

mod first_error;
mod indexed;
mod modify;
pub(crate) mod piece;
mod read;
mod serial;
mod slots;

use storage::{Position, SerialId, TableId};

pub(crate) use self::first_error::FirstError;
pub(crate) use self::modify::{Bounds, change_lines, change_part};
use crate::call::answers::Abort;
use crate::declaration::declare::LookupError;
use crate::declaration::overlay::Overlay;
use crate::declaration::{CallView, DeclaredKind, NO_ENTRY, PieceResult, Span};
use crate::error::Words;
use crate::index::EntryId;
use crate::memory::{Local, PrefetchedRow, PrivateWrite};
use crate::reads::{KeyRange, Visit};
use crate::state::core::Core;
use crate::table::{KeyWord, Table};
use crate::version::{ReadPhase, Stopped, Waiter};

/// Why a body ends without committing. Bodies pass it on with `?`; a call of which a function has
/// failed does not commit though its body returns `Ok`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The transaction gives up on purpose.
    Abort(Box<Abort>),
    /// The same with a code and nothing else, which allocates nothing.
    Code(u32),
    /// A mistake of the body: unknown table, key or value beyond its limit; in a call with pieces
    /// also a write that was not declared.
    Mistake(Words),
    /// It wrote what its write set did not predict, or predicted nothing: it runs again, in the
    /// serial part of the next epoch, whatever its body makes of this.
    Deferred,
    /// Another worker failed; the engine is stopped.
    Stopped,
}

impl Stop {
    /// A mistake, in words.
    #[cold]
    pub fn mistake(what: impl Into<String>) -> Self {
        Self::Mistake(Box::new(what.into()))
    }
}

const _: () = assert!(size_of::<Stop>() == 16);

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        match abort.is_code() {
            true => Self::Code(abort.code),
            false => Self::Abort(Box::new(abort)),
        }
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::mistake(what)
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
            LookupError::Mistake(what) => Self::mistake(what),
            LookupError::Stopped => Self::Stopped,
        }
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Abort(abort) => abort.fmt(f),
            Self::Code(code) => Abort::code(*code).fmt(f),
            Self::Mistake(what) => f.write_str(what),
            Self::Deferred => f.write_str("the call is deferred to the next epoch"),
            Self::Stopped => f.write_str("the engine was stopped"),
        }
    }
}

/// Makes the private writes of the running call visible; what a commit point needs of the device.
pub(crate) trait PublishNow {
    /// Publishes everything that is written and not published yet.
    fn publish_written(&mut self, local: &mut Local, call: &CallView<'_>) -> Result<(), Stopped>;
    /// Runs pieces of smaller serial ids in this worker's queue; whether there were any that could
    /// run.
    fn run_pieces_before(&mut self, local: &mut Local, position: Position)
    -> Result<bool, Stopped>;
    /// Waits until all calls before a position have ended that may change a secondary index.
    /// Whether the epoch has any such calls.
    fn wait_for_index_writers(
        &mut self,
        local: &mut Local,
        position: Position,
    ) -> Result<bool, Stopped>;
    /// The result of a piece of the running call, which commits; with what the serial part has
    /// written, if the call is of it.
    fn piece_result(
        &mut self,
        local: &mut Local,
        serial: Option<&mut Overlay>,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stop>;
    /// The result of a piece of a call, for one of its pieces that comes later.
    fn earlier_result(
        &mut self,
        local: &mut Local,
        call: &CallView<'_>,
        number: usize,
    ) -> Result<PieceResult, Stopped>;
}

/// Rows of a scan that are prefetched: at its start, and at most.
const SCAN_AHEAD_FIRST: usize = 4;
const SCAN_AHEAD_MAX: usize = 32;

/// A declared key, or the member of a declared range: the index of its private write, and its row.
#[derive(Debug, Clone, Copy)]
struct Slot {
    write: usize,
    id: EntryId,
    kind: DeclaredKind,
}

/// A running transaction.
pub struct Transaction<'a> {
    pub(crate) core: &'a Core,
    pub(crate) local: &'a mut Local,
    pub(crate) publisher: &'a mut dyn PublishNow,
    pub(crate) phase: ReadPhase<'a>,
    pub(crate) waiter: Waiter<'a>,
    pub(crate) call: &'a CallView<'a>,
    /// Which declared key, and which member of a range, comes after the one that was asked for
    /// last. Bodies mostly go through them in order, and often read what they write then: this one
    /// is tried first, and then the same again.
    pub(crate) next_declared: usize,
    /// See `next_declared`.
    pub(crate) next_member: usize,
    pub(crate) sid: SerialId,
    pub(crate) timestamp_ns: u64,
    pub(crate) seed: u64,
    pub(crate) committed: bool,
    /// What the serial part has written, if it runs there.
    pub(crate) serial: Option<&'a mut Overlay>,
    /// What its functions have failed with; every one that the body calls notes it.
    pub(crate) first_error: &'a FirstError,
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

    /// The number that this call's `i`-th allocation got, or its `i`-th look saw.
    ///
    /// # Panics
    /// If the call drew less than that; the call fails.
    pub fn sequence_number(&self, i: usize) -> u64 {
        self.call.lists.allocations[self.call.extra.allocations.range()][i].value
    }

    /// What the first call that allocates from a sequence gets in this epoch; see
    /// [`crate::WriteSet::sequence_start`].
    ///
    /// # Errors
    /// [`Stop`] if the table holds no sequences.
    pub fn sequence_start(&self, table: TableId, key: u64) -> Result<u64, Stop> {
        let start = self.core.sequence_start(table, key, self.sid.epoch());
        start.map_err(|what| self.mistake(what))
    }

    /// The answer: append bytes here. Dropped if the body does not return `Ok`.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.local.answers.output
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table or a key beyond its limit.
    #[inline]
    pub fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if let Some(slot) = self.next_slot(table, key)
            && self.is_unwritten(slot)
        {
            if let Some(value) = self.see_planned(slot) {
                return Ok(Some(value));
            }
            let seen = self.see_declared(slot).map_err(|stopped| self.note(stopped))?;
            if seen.is_some() {
                self.local.writes[slot.write] = PrivateWrite::Seen;
            }
            return Ok(seen);
        }
        self.get_any(table, key)
    }

    /// [`Transaction::get`] of any row.
    #[inline(never)]
    fn get_any(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let first_error = self.first_error;
        if self.is_serial() {
            return self.serial_get(table, key).map_err(|stop| first_error.note(stop));
        }
        self.try_get(table, key).map_err(|stop| first_error.note(stop))
    }

    /// Whether a row exists in the indexes and the call left it as it was until now.
    #[inline]
    fn is_unwritten(&self, slot: Slot) -> bool {
        slot.id != NO_ENTRY
            && matches!(self.local.writes[slot.write], PrivateWrite::None | PrivateWrite::Seen)
    }

    #[cold]
    fn note(&self, stopped: Stopped) -> Stop {
        self.first_error.note(stopped.into())
    }

    #[inline(always)]
    fn try_get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let (core, t) = (self.core, self.core.row_table(table)?);
        let word = t.word(key)?;
        match self.find_slot(t, table, word) {
            Some(slot) => self.get_declared(slot.write, slot.id),
            None => match core.find(t, word, &self.local.reads) {
                Some(id) => Ok(self.see(id, false)?),
                None => Ok(None),
            },
        }
    }

    /// Reads a row that this call may write: what it wrote, or what it sees.
    #[inline(always)]
    fn get_declared(&mut self, write: usize, id: EntryId) -> Result<Option<&[u8]>, Stop> {
        match self.local.writes[write] {
            PrivateWrite::Value(span) => Ok(Some(&self.local.scratch[span.range()])),
            PrivateWrite::Lines(part) => {
                let span = self.make_whole(write, part);
                Ok(Some(&self.local.scratch[span.range()]))
            }
            PrivateWrite::Tombstone => Ok(None),
            _ if id == NO_ENTRY => Ok(None),
            PrivateWrite::Published => self.see_own(id),
            PrivateWrite::None | PrivateWrite::Seen => {
                let seen = self.see(id, false)?;
                if seen.is_some() {
                    self.local.writes[write] = PrivateWrite::Seen;
                }
                Ok(seen)
            }
        }
    }

    /// Reads many rows of one table, as [`Transaction::get`] does one by one: `each` gets what is
    /// there for each key, in order. Index buckets, row entries and values of a group of keys are
    /// fetched together, so that their misses overlap.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table or a key beyond its limit.
    pub fn get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        let first_error = self.first_error;
        let result = match self.is_serial() {
            true => self.serial_get_many(table, keys, each),
            false => self.try_get_many(table, keys, each),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline]
    fn try_get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        mut each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        let (core, t) = (self.core, self.core.row_table(table)?);
        let mut rows = std::mem::take(&mut self.local.prefetched);
        rows.clear();
        for key in keys.clone() {
            let word = t.word(key)?.hash;
            t.hash.prefetch(word);
            rows.push(PrefetchedRow { word, id: NO_ENTRY, seen: None });
        }
        for (key, row) in keys.clone().zip(&mut rows) {
            if let Some(found) = core.find(t, KeyWord { hash: row.word, key }, &self.local.reads) {
                core.entries.prefetch(found);
                row.id = found;
            }
        }
        self.read_prefetched_rows(&mut rows);
        for (key, row) in keys.zip(&rows) {
            each(match self.find_slot(t, table, KeyWord { hash: row.word, key }) {
                Some(slot) => self.get_declared(slot.write, slot.id)?,
                None if row.id == NO_ENTRY => None,
                None => self.see_prefetched(row)?,
            });
        }
        self.local.prefetched = rows;
        Ok(())
    }

    /// Scans the rows with `low <= key < high` of an ordered table, own writes included; `each`
    /// returns `Break` when it has seen enough.
    ///
    /// # Errors
    /// [`Stop`] for an unknown or unordered table.
    pub fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let keys = KeyRange { low, high, is_descending: descending };
        if self.is_serial() {
            let result = self.serial_scan(table, keys, each);
            return result.map_err(|stop| self.first_error.note(stop));
        }
        let mut rows = std::mem::take(&mut self.local.prefetched);
        let result = self.scan_in_groups(table, keys, each, &mut rows);
        self.local.prefetched = rows;
        result.map_err(|stop| self.first_error.note(stop))
    }

    /// Scans rows some at a time, so that their misses overlap: more of them the longer the scan
    /// goes on.
    fn scan_in_groups(
        &mut self,
        table: TableId,
        keys: KeyRange<'_>,
        each: Visit<'_>,
        rows: &mut Vec<PrefetchedRow>,
    ) -> Result<(), Stop> {
        let core = self.core;
        let t = core.row_table(table)?;
        let mut range = core.range(t, keys.low, keys.high, &self.local.reads)?;
        let mut next = || if keys.is_descending { range.next_back() } else { range.next() };
        let mut group = SCAN_AHEAD_FIRST;
        loop {
            rows.clear();
            while rows.len() < group
                && let Some((word, id)) = next()
            {
                core.entries.prefetch(id);
                rows.push(PrefetchedRow { word, id, seen: None });
            }
            self.read_prefetched_rows(rows);
            for row in &*rows {
                let mut room = [0; 8];
                // The value may be the call's own, so what the key reads is noted before it.
                let key = core.key(t, row.word, row.id, &mut room, &self.local.reads);
                if let Some(value) = self.scanned(table, row)?
                    && each(key, value).is_break()
                {
                    return Ok(());
                }
            }
            if rows.len() < group {
                return Ok(());
            }
            group = (2 * group).min(SCAN_AHEAD_MAX);
        }
    }

    /// What a scan sees of a row.
    fn scanned(&mut self, table: TableId, row: &PrefetchedRow) -> Result<Option<&[u8]>, Stop> {
        let unwritten = |write| matches!(write, PrivateWrite::None | PrivateWrite::Seen);
        match self.own_write(table, row.word, row.id) {
            Some(write) if !unwritten(self.local.writes[write]) => self.get_declared(write, row.id),
            _ => Ok(self.see_prefetched(row)?),
        }
    }

    /// Inserts a row that was declared with `insert`, or overwrites it where it exists.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key or a value beyond the table's limit.
    pub fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let first_error = self.first_error;
        let result = match self.is_serial() {
            true => self.serial_insert(table, key, value),
            false if self.is_indexed(table) => {
                self.with_indexes(table, key, |tx| tx.try_insert(table, key, value))
            }
            false => self.try_insert(table, key, value),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline(always)]
    fn try_insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let slot = self.writable(table, key)?;
        if slot.kind != DeclaredKind::Insert {
            return Err(self.may_not_insert(table, key));
        }
        self.write_value(table, slot, value)
    }

    /// Updates a declared row; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key or a value beyond the table's limit.
    pub fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let first_error = self.first_error;
        let result = match self.is_serial() {
            true => self.serial_update(table, key, value),
            false if self.is_indexed(table) => {
                self.with_indexes(table, key, |tx| tx.try_update(table, key, value))
            }
            false => self.try_update(table, key, value),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline(always)]
    fn try_update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        if !self.exists(slot)? {
            return Ok(false);
        }
        self.write_value(table, slot, value)?;
        Ok(true)
    }

    /// Deletes a declared row; false where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for an undeclared key.
    pub fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let first_error = self.first_error;
        let result = match self.is_serial() {
            true => self.serial_delete(table, key),
            false if self.is_indexed(table) => {
                self.with_indexes(table, key, |tx| tx.try_delete(table, key))
            }
            false => self.try_delete(table, key),
        };
        result.map_err(|stop| first_error.note(stop))
    }

    #[inline(always)]
    fn try_delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let slot = self.writable(table, key)?;
        if !self.exists(slot)? {
            return Ok(false);
        }
        self.put(slot.write, PrivateWrite::Tombstone)?;
        Ok(true)
    }

    /// From here on the transaction cannot abort: what it wrote becomes visible now, and what it
    /// writes later becomes visible at once (early write visibility, NV 3.1.2). After this, writing
    /// a key again that is already visible is a mistake; an `Err` or a panic stops the engine,
    /// because half of the transaction has been seen (O-49).
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped, or if the body made a mistake before, which it may have
    /// ignored: such a call does not commit.
    pub fn commit_point(&mut self) -> Result<(), Stop> {
        self.first_error.check()?;
        if self.is_serial() || self.may_change_indexes() {
            // In the serial part no other call runs, so that nothing is gained, and the call may
            // still fail; one that may change an index may still leave a key that is not unique.
            return Ok(());
        }
        self.committed = true;
        let result = self.publisher.publish_written(self.local, self.call);
        result.map_err(|stopped| self.first_error.note(stopped.into()))
    }

    /// What a piece of this call comes to, numbered in the order of declaration. From here on the
    /// transaction cannot abort, as after [`Transaction::commit_point`], which this includes: the
    /// piece may run on another worker, and others may see what it writes.
    ///
    /// A procedure that only puts the results into its answer better leaves that to
    /// [`crate::FinishFn`], which never waits.
    ///
    /// # Errors
    /// [`Stop`] if there is no such piece, and as [`Transaction::commit_point`].
    pub fn piece_result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        let count = self.call.pieces().len();
        if number >= count {
            return Err(self.mistake(format!("the result of piece {number} of {count}")));
        }
        self.commit_point()?;
        let serial = self.serial.as_deref_mut();
        let result = self.publisher.piece_result(self.local, serial, self.call, number);
        result.map_err(|stop| self.first_error.note(stop))
    }

    /// For a piece: reads a row that its call does not write.
    pub(crate) fn get_before(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if self.is_serial() {
            return self.serial_get_before(table, key);
        }
        let (core, t) = (self.core, self.core.row_table(table)?);
        let word = t.word(key)?;
        let Some(id) = core.find(t, word, &self.local.reads) else { return Ok(None) };
        // A row that does not exist may have an entry, because a call of this epoch inserts it.
        let value = self.see(id, false)?;
        if value.is_some() && self.is_of_call(id) {
            return Err(of_its_call(t, key));
        }
        Ok(value)
    }

    /// Whether the call may write a row, in its body or in a piece.
    fn is_of_call(&self, id: EntryId) -> bool {
        let call = self.call;
        let of_pieces = call.pieces().iter().flat_map(|piece| call.members_of(piece));
        call.declared.iter().any(|d| d.id == id && d.kind != DeclaredKind::Read)
            || call.members().iter().chain(of_pieces).any(|m| m.id == id)
    }

    /// For a piece: scans rows that its call does not write.
    pub(crate) fn scan_before(
        &mut self,
        table: TableId,
        keys: KeyRange<'_>,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if self.is_serial() {
            return self.serial_scan_before(table, keys, each);
        }
        let (core, t) = (self.core, self.core.row_table(table)?);
        let mut range = core.range(t, keys.low, keys.high, &self.local.reads)?;
        let mut next = || if keys.is_descending { range.next_back() } else { range.next() };
        while let Some((word, id)) = next() {
            let mut room = [0; 8];
            let key = core.key(t, word, id, &mut room, &self.local.reads);
            let Some(value) = self.see(id, false)? else { continue };
            if self.is_of_call(id) {
                return Err(of_its_call(t, key));
            }
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn keep_value(&mut self, value: &[u8]) -> Span {
        let from = self.local.scratch.len() as u32;
        match <&[u8; 8]>::try_from(value) {
            // Copied by one instruction instead of a call.
            Ok(word) => self.local.scratch.extend_from_slice(word),
            Err(_) => self.local.scratch.extend_from_slice(value),
        }
        let to = self.local.scratch.len();
        assert!(to <= u32::MAX as usize, "values that a call writes have spans");
        Span { from, to: to as u32 }
    }

    #[inline]
    pub(crate) fn check_length(&self, table: TableId, value: &[u8]) -> Result<(), Stop> {
        let t = &self.core.tables[table.index()];
        if value.len() as u64 > t.layout.value_bytes_max {
            return Err(too_long(t, value.len()));
        }
        Ok(())
    }

    #[inline(always)]
    fn write_value(&mut self, table: TableId, slot: Slot, value: &[u8]) -> Result<(), Stop> {
        self.check_length(table, value)?;
        let span = self.keep_value(value);
        self.put(slot.write, PrivateWrite::Value(span))
    }

    #[inline]
    fn put(&mut self, at: usize, write: PrivateWrite) -> Result<(), Stop> {
        debug_assert!(self.serial.is_none(), "the serial part writes to the overlay");
        let place = &mut self.local.writes[at];
        if *place == PrivateWrite::Published {
            return Err(written_again());
        }
        *place = write;
        if self.committed {
            self.publisher.publish_written(self.local, self.call)?;
        }
        Ok(())
    }
}

#[cold]
fn too_long(t: &Table, len: usize) -> Stop {
    let most = t.layout.value_bytes_max;
    Stop::mistake(format!(
        "table {:?}: a value of {len} bytes, at most {most}: Table::with_value_bytes allows more",
        t.name
    ))
}

#[cold]
fn undeclared(t: &Table, key: &[u8]) -> Stop {
    Stop::mistake(format!("table {:?}: write of undeclared key {key:02x?}", t.name))
}

#[cold]
fn of_its_call(t: &Table, key: &[u8]) -> Stop {
    let name = &t.name;
    Stop::mistake(format!("table {name:?}: a piece reads key {key:02x?}, which its call may write"))
}

#[cold]
fn for_a_piece(t: &Table, key: &[u8]) -> Stop {
    let name = &t.name;
    Stop::mistake(format!(
        "table {name:?}: write of key {key:02x?}, which was declared for a piece"
    ))
}

#[cold]
fn changes_index(t: &Table, key: &[u8]) -> Stop {
    let name = &t.name;
    Stop::mistake(format!(
        "table {name:?}: write of key {key:02x?} changes an index, which a call with pieces, or \
         behind its commit point, may not do"
    ))
}

#[cold]
fn written_again() -> Stop {
    let what = "a key was written again after the commit point had made it visible";
    Stop::mistake(what)
}
