//! Declaring: what a call allocates, what it may write, and what it reads to find that out.
//!
//! Lookups here read the state as of the end of the previous epoch: no row has been claimed by a
//! writer of the running one yet. Each is kept and checked again at execution (CA 3.7, O-10): the
//! row remembers what it was before the epoch; of what a scan saw a fingerprint is kept.

use std::ops::ControlFlow;

use storage::{EpochNumber, IndexKind, Position, SerialId, TableId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::declaration::overlay::{Overlay, OverlayValue};
use crate::declaration::places::Places;
use crate::declaration::{
    Allocation, AllocationKind, Declarations, Declared, DeclaredKind, DeclaredRange, Lookup,
    NO_ENTRY, NO_PIECE, PieceState, Span,
};
use crate::error::{EngineError, Words};
use crate::index::EntryId;
use crate::reads::{KeyRange, Reads, Visit};
use crate::state::core::Core;
use crate::table::{KeyWord, Table, word_of};
use crate::version::{ReadPhase, Stopped, Waiter};

/// Folds a row that a scan saw into a fingerprint.
pub(crate) fn fold(fingerprint: u64, key: &[u8], value: &[u8]) -> u64 {
    xxh3_64_with_seed(key, xxh3_64_with_seed(value, fingerprint ^ 1))
}

/// How many rows a scan visits at most when it is repeated.
pub(crate) const ALL: u64 = u64::MAX;

impl Core {
    /// What a point lookup sees at a serial position.
    pub(crate) fn look_up_in<'p>(
        &self,
        phase: ReadPhase<'p>,
        table: &Table,
        key: &[u8],
        sid: SerialId,
        waiter: &mut Waiter<'_>,
        reads: &Reads,
    ) -> Result<Option<&'p [u8]>, LookupError> {
        let word = table.word(key)?;
        self.bring_key(table, word);
        let Some(id) = self.find(table, word, reads) else {
            return Ok(None);
        };
        let seen = self.seen(id, sid, waiter)?;
        seen.word.charge(reads);
        Ok(seen.word.is_value().then(|| phase.bytes(seen.word)))
    }

    /// Scans at a serial position; returns the rows visited, [`ALL`] if the visitor never had
    /// enough.
    pub(crate) fn look_through(
        &self,
        table: TableId,
        keys: KeyRange<'_>,
        reader: Reader<'_, '_>,
        each: Visit<'_>,
    ) -> Result<u64, LookupError> {
        let Reader { phase, sid, waiter, reads } = reader;
        let table = self.table(table)?;
        let mut visited = 0;
        let mut range = self.range(table, keys.low, keys.high, reads)?;
        let mut next = || if keys.is_descending { range.next_back() } else { range.next() };
        while let Some((word, id)) = next() {
            let seen = self.seen(id, sid, waiter)?;
            if seen.word.is_value() {
                visited += 1;
                let mut room = [0; 8];
                let key = self.key(table, word, id, &mut room, reads);
                seen.word.charge(reads);
                if each(key, phase.bytes(seen.word)).is_break() {
                    return Ok(visited);
                }
            }
        }
        Ok(ALL)
    }
}

/// What a scan of a secondary index sees, in short.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexScan {
    /// Entries visited before the visitor had enough; [`ALL`]: all.
    pub(crate) visited: u64,
    pub(crate) fingerprint: u64,
    has_enough: bool,
}

impl IndexScan {
    /// An entry is visited, after which the visitor goes on or has enough.
    pub(crate) fn visit(&mut self, key: &[u8], flow: ControlFlow<()>) -> ControlFlow<()> {
        self.fingerprint = fold(self.fingerprint, key, &[]);
        self.visited += 1;
        self.has_enough |= flow.is_break();
        flow
    }

    /// The scan has come to its end.
    pub(crate) fn finish(self) -> Self {
        let visited = if self.has_enough { self.visited } else { ALL };
        Self { visited, ..self }
    }
}

/// How something is read at a serial position.
pub(crate) struct Reader<'r, 's> {
    pub(crate) phase: ReadPhase<'r>,
    pub(crate) sid: SerialId,
    pub(crate) waiter: &'r mut Waiter<'s>,
    pub(crate) reads: &'r Reads,
}

/// The state at the end of the epoch before, which declarations read.
#[derive(Clone, Copy)]
pub(crate) struct StateBefore<'p> {
    pub(crate) core: &'p Core,
    pub(crate) phase: ReadPhase<'p>,
    /// The epoch that declares.
    pub(crate) epoch: EpochNumber,
    /// Its timestamp.
    pub(crate) timestamp_ns: u64,
}

/// The value that a row had before an epoch, in which it is not written yet.
pub(crate) fn value_before<'p>(
    core: &Core,
    phase: ReadPhase<'p>,
    id: EntryId,
    epoch: EpochNumber,
    reads: &Reads,
) -> Option<&'p [u8]> {
    let sid = SerialId::new(epoch, Position(0));
    let seen = core.entry(id).read(sid, &mut Waiter::new(core.stopped()));
    let word = seen.expect("the row is not written yet").word;
    word.charge(reads);
    word.is_value().then(|| phase.bytes(word))
}

/// Why a lookup failed: a mistake of the procedure, or the engine was stopped.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// Wrong table or key.
    Mistake(String),
    /// Another worker failed.
    Stopped,
}

impl LookupError {
    /// The same to a reader from outside of an epoch.
    pub(crate) fn of_reader(self, core: &Core) -> EngineError {
        match self {
            Self::Mistake(what) => EngineError::Limit(what),
            Self::Stopped => EngineError::Poisoned(
                core.stop_reason().unwrap_or_else(|| "the engine was stopped".into()),
            ),
        }
    }
}

impl From<String> for LookupError {
    fn from(what: String) -> Self {
        Self::Mistake(what)
    }
}

impl From<Stopped> for LookupError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What both steps of a declaration need.
pub(crate) struct Declaration<'a> {
    pub(crate) core: &'a Core,
    pub(crate) lists: &'a mut Declarations,
    pub(crate) reads: &'a Reads,
    pub(crate) phase: ReadPhase<'a>,
    pub(crate) epoch: EpochNumber,
    timestamp_ns: u64,
    /// First declared key of this call.
    pub(crate) first: usize,
    /// What the serial part has written, if the call runs there.
    pub(crate) overlay: Option<&'a mut Overlay>,
    /// What this call declared may be in here; what is not was not declared.
    pub(crate) filter: KeyFilter,
    /// Where the call's keys are, if it declared many.
    places: Places,
    /// The first mistake: the call fails with it, however its function ends.
    pub(crate) mistake: Option<Words>,
    /// Nothing is predicted.
    pub(crate) is_unknown: bool,
}

/// One bit for each of 1024 hashes, so that most new keys need not be compared with all the others
/// of a call.
#[derive(Debug, Default)]
pub(crate) struct KeyFilter([u64; 16]);

impl KeyFilter {
    /// Adds a key; false if it is certainly new.
    #[inline]
    fn add(&mut self, table: TableId, word: u64) -> bool {
        let mixed = (word ^ u64::from(table.0) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (place, bit) = ((mixed >> 60) as usize, 1 << (mixed >> 54 & 63));
        let before = self.0[place] & bit != 0;
        self.0[place] |= bit;
        before
    }
}

impl<'a> Declaration<'a> {
    /// The declaration of a call that has declared nothing yet.
    #[inline]
    pub(crate) fn new(
        before: StateBefore<'a>,
        lists: &'a mut Declarations,
        reads: &'a Reads,
    ) -> Self {
        let StateBefore { core, phase, epoch, timestamp_ns } = before;
        let (first, filter) = (lists.declared.len(), KeyFilter::default());
        Self {
            core,
            lists,
            reads,
            phase,
            epoch,
            timestamp_ns,
            first,
            overlay: None,
            filter,
            places: Places::default(),
            mistake: None,
            is_unknown: false,
        }
    }

    /// The same of a call of the serial part, which looks up what that has written until now.
    pub(crate) fn serial(
        before: StateBefore<'a>,
        lists: &'a mut Declarations,
        reads: &'a Reads,
        overlay: &'a mut Overlay,
    ) -> Self {
        Self { overlay: Some(overlay), ..Self::new(before, lists, reads) }
    }

    /// The value of a row as it was before the epoch.
    fn value_before(&self, id: EntryId) -> Option<&'a [u8]> {
        value_before(self.core, self.phase, id, self.epoch, self.reads)
    }

    #[cold]
    fn note(&mut self, what: String) {
        self.mistake.get_or_insert_with(|| Box::new(what));
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        if self.overlay.is_some() {
            return self.look_in_overlay(table, key);
        }
        let core = self.core;
        let found = core.row_table(table).and_then(|t| Ok(core.find(t, t.word(key)?, self.reads)));
        match found {
            Ok(Some(id)) => {
                self.lists.lookups.push(Lookup::Row(id));
                self.value_before(id)
            }
            Ok(None) => {
                let key = self.lists.keep_key(key);
                self.lists.lookups.push(Lookup::NoRow { table, key });
                None
            }
            Err(what) => {
                self.note(what);
                None
            }
        }
    }

    fn look_in_overlay(&mut self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        let core = self.core;
        let word = match core.row_table(table).and_then(|t| t.word(key)) {
            Ok(word) => word,
            Err(what) => {
                self.note(what);
                return None;
            }
        };
        let overlay = self.overlay.as_deref().expect("the serial part");
        match overlay.look(core, table, word, self.reads) {
            OverlayValue::Kept(kept) => Some(overlay.bytes(kept)),
            OverlayValue::Before(id) => self.value_before(id),
            OverlayValue::Absent => None,
        }
    }

    fn note_error(&mut self, error: LookupError) {
        match error {
            LookupError::Mistake(what) => self.note(what),
            LookupError::Stopped => self.note("the engine was stopped".into()),
        }
    }

    /// Declares a key; returns its place among all that the worker's calls declared, unless there
    /// is a mistake.
    #[inline(always)]
    fn declare(&mut self, table: TableId, key: &[u8], kind: DeclaredKind) -> Option<usize> {
        if let Some(t) = self.core.tables.get(table.index())
            && t.has_word_keys
            && let Some(word) = word_of(key)
            && !self.filter.add(table, word)
        {
            return Some(self.push(table, word, None, kind));
        }
        self.declare_any(table, key, kind)
    }

    /// Notes a key that is declared for the first time: its word, and its bytes unless the word is
    /// all of it.
    #[inline]
    fn push(&mut self, table: TableId, word: u64, key: Option<Span>, kind: DeclaredKind) -> usize {
        let at = self.lists.declared.len();
        if kind.inserts() {
            self.lists.inserts.push(at as u32);
        }
        let (is_word, key) = (key.is_none(), key.unwrap_or(Span::EMPTY));
        let (appended, id) = (false, NO_ENTRY);
        self.lists.declared.push(Declared { word, key, table, kind, is_word, appended, id });
        at
    }

    /// [`Declaration::declare`] of a key that may have been declared before, of any table.
    #[inline(never)]
    fn declare_any(&mut self, table: TableId, key: &[u8], kind: DeclaredKind) -> Option<usize> {
        let core = self.core;
        let (t, word) = match core.row_table(table).and_then(|t| Ok((t, t.word(key)?))) {
            Ok(found) => found,
            Err(what) => {
                self.note(what);
                return None;
            }
        };
        if self.filter.add(table, word.hash)
            && let Some(at) = self.find_declared(t, table, word)
        {
            return self.declare_again(t, key, kind, at);
        }
        let key = (!t.exact).then(|| self.lists.keep_key(key));
        Some(self.push(table, word.hash, key, kind))
    }

    /// The place of a key that this call declared before.
    #[inline(never)]
    fn find_declared(&mut self, t: &Table, table: TableId, word: KeyWord<'_>) -> Option<usize> {
        let Declarations { declared, keys, .. } = &*self.lists;
        let same = |d: &Declared| t.exact || &keys[d.key.range()] == word.key;
        let found = self.places.find(&declared[self.first..], table, word.hash, same);
        found.map(|at| self.first + at)
    }

    /// A key counts once in a write set, with the strongest kind (O-02); but what a piece writes
    /// nothing else may write.
    #[inline(never)]
    fn declare_again(
        &mut self,
        t: &Table,
        key: &[u8],
        kind: DeclaredKind,
        at: usize,
    ) -> Option<usize> {
        let before = self.lists.declared[at].kind;
        let are_writes = before != DeclaredKind::Read && kind != DeclaredKind::Read;
        if are_writes && (before.is_of_piece() || kind.is_of_piece()) {
            self.note(format!("table {:?}: key {key:02x?} of a piece is declared twice", t.name));
            return None;
        }
        if (before as u8) < kind as u8 {
            self.lists.declared[at].kind = kind;
            if kind.inserts() {
                self.lists.inserts.push(at as u32);
            }
        }
        Some(at)
    }
}

/// Step one of a declaration: allocating sequence numbers (design: the k-th call that allocates
/// from an epoch, in serial order, gets base + k).
pub struct Sequences<'a> {
    pub(crate) declaration: Declaration<'a>,
    pub(crate) position: Position,
}

impl Sequences<'_> {
    /// Allocates the next number of a sequence; the write set and the body read it with
    /// `sequence_number`.
    pub fn allocate(&mut self, table: TableId, key: u64) {
        self.rank(table, key, AllocationKind::Allocate, 0);
    }

    /// Looks at a sequence without allocating: `sequence_number` tells, at this allocation's place,
    /// the number that the next call that allocates after this call's own allocations gets in
    /// serial order.
    pub fn peek(&mut self, table: TableId, key: u64) {
        self.rank(table, key, AllocationKind::Peek, 0);
    }

    /// Sets a sequence: the next call that allocates in serial order gets `next`, whatever was
    /// allocated before. For tools that put a store together; numbers that were allocated are
    /// allocated again if it goes back.
    pub fn set(&mut self, table: TableId, key: u64, next: u64) {
        self.rank(table, key, AllocationKind::Set, next);
    }

    /// For layers above that find a mistake themselves: the call fails with the first one.
    #[cold]
    pub fn mistake(&mut self, what: String) {
        self.declaration.note(what);
    }

    fn rank(&mut self, table: TableId, key: u64, kind: AllocationKind, value: u64) {
        match self.declaration.core.table(table) {
            Ok(t) if t.kind == IndexKind::Sequence => {
                let allocation = Allocation { position: self.position, table, kind, key, value };
                self.declaration.lists.allocations.push(allocation);
            }
            Ok(t) => {
                let what = format!("table {:?} holds rows, not sequences", t.name);
                self.declaration.note(what);
            }
            Err(what) => self.declaration.note(what),
        }
    }

    /// Reads a row as of the end of the previous epoch.
    pub fn lookup(&mut self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        self.declaration.lookup(table, key)
    }
}

/// Step two of a declaration: the write set. A mistake (unknown table, key beyond its limit) fails
/// the call.
pub struct WriteSet<'a> {
    pub(crate) declaration: Declaration<'a>,
    pub(crate) allocations: Span,
    /// Pieces that calls before declared.
    pieces_from: usize,
}

impl<'a> WriteSet<'a> {
    /// The write set of a call that has declared nothing yet, and has made these allocations.
    #[inline]
    pub(crate) fn new(declaration: Declaration<'a>, allocations: Span) -> Self {
        let pieces_from = declaration.lists.pieces.len();
        Self { declaration, allocations, pieces_from }
    }

    /// For layers above that find a mistake themselves: the call fails with the first one.
    #[cold]
    pub fn mistake(&mut self, what: String) {
        self.declaration.note(what);
    }

    /// The epoch's timestamp, as [`crate::Transaction::timestamp_ns`]: a call that is deferred
    /// declares again, with that of the epoch in which it runs.
    pub fn timestamp_ns(&self) -> u64 {
        self.declaration.timestamp_ns
    }

    /// What the call will write is not known: it is deferred, to run in the serial part of the next
    /// epoch. Such calls better go to the serial part at once
    /// ([`crate::Calls::push_serial`]).
    #[cold]
    pub fn is_unknown(&mut self) {
        self.declaration.is_unknown = true;
    }

    /// The call may insert or overwrite `key`, update or delete it.
    #[inline]
    pub fn insert(&mut self, table: TableId, key: &[u8]) {
        self.declaration.declare(table, key, DeclaredKind::Insert);
    }

    /// The call may update `key` if it exists at its serial position.
    #[inline]
    pub fn update(&mut self, table: TableId, key: &[u8]) {
        self.declaration.declare(table, key, DeclaredKind::Update);
    }

    /// The call may delete `key` if it exists at its serial position.
    #[inline]
    pub fn delete(&mut self, table: TableId, key: &[u8]) {
        self.declaration.declare(table, key, DeclaredKind::Update);
    }

    /// A piece of the call may update or delete `key` if it exists at its serial position, and
    /// nothing else of the call may write it (CA 3.4, `ApplyRowUpdate`). Where the row is contended
    /// the piece runs apart from the body, on a worker that runs other updates of the row; else
    /// with the body, after it. `weight` is an estimate of its work, 1 for an ordinary update.
    ///
    /// Pieces are numbered in the order of their declaration, from 0.
    pub fn update_piece(&mut self, table: TableId, key: &[u8], weight: u32) {
        if let Some(at) = self.declare_for_piece(table, key, DeclaredKind::PieceUpdate) {
            let lists = &mut *self.declaration.lists;
            let piece = PieceState::new(at as u32, weight.max(1), lists.piece_keys.len());
            lists.pieces.push(piece);
        }
    }

    /// The piece that was declared last may insert or overwrite `key`, too, update or delete it,
    /// and nothing else of the call may write it.
    pub fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.declare_in_piece(table, key, DeclaredKind::PieceInsert);
    }

    /// The piece that was declared last may update or delete `key`, too, if it exists at the call's
    /// serial position, and nothing else of the call may write it. Where the row is contended, the
    /// piece waits for it; which row decides where the piece runs is what
    /// [`WriteSet::update_piece`] named.
    pub fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.declare_in_piece(table, key, DeclaredKind::PieceUpdate);
    }

    /// The piece that was declared last may update or delete any row with `low <= key < high` of an
    /// ordered table, as [`WriteSet::update_range`]. A row that is declared by its key belongs to
    /// whom that was for; one in several ranges to the body, or to the first of the pieces.
    pub fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        if let Some(piece) = self.last_piece()
            && self.may_be_of_piece(table)
        {
            self.add_range(table, low, high, piece);
        }
    }

    fn declare_in_piece(&mut self, table: TableId, key: &[u8], kind: DeclaredKind) {
        if self.last_piece().is_some()
            && let Some(at) = self.declare_for_piece(table, key, kind)
        {
            let lists = &mut *self.declaration.lists;
            lists.piece_keys.push(at as u32);
            lists.pieces.last_mut().expect("there is one").keys.to += 1;
        }
    }

    fn declare_for_piece(
        &mut self,
        table: TableId,
        key: &[u8],
        kind: DeclaredKind,
    ) -> Option<usize> {
        if !self.may_be_of_piece(table) {
            return None;
        }
        self.declaration.declare(table, key, kind)
    }

    /// The number of the piece that this call declared last; without one, notes the mistake.
    fn last_piece(&mut self) -> Option<u32> {
        let pieces = self.declaration.lists.pieces.len() - self.pieces_from;
        if pieces == 0 {
            self.declaration.note("a key or range of a piece comes before every piece".into());
        }
        (pieces as u32).checked_sub(1)
    }

    /// Whether pieces may write rows of a table; if not, notes the mistake.
    fn may_be_of_piece(&mut self, table: TableId) -> bool {
        let core = self.declaration.core;
        let has_indexes = core.secondary.are_of(table);
        if has_indexes {
            let name = &core.tables[table.index()].name;
            let what = format!("table {name:?} has indexes: no piece can write its rows");
            self.declaration.note(what);
        }
        !has_indexes
    }

    /// A hint: the body will read `key`, which the engine prefetches.
    #[inline]
    pub fn will_read(&mut self, table: TableId, key: &[u8]) {
        self.declaration.declare(table, key, DeclaredKind::Read);
    }

    /// The call may update or delete any row with `low <= key < high` of an ordered table that
    /// exists at its serial position (CA 3.2).
    pub fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.add_range(table, low, high, NO_PIECE);
    }

    fn add_range(&mut self, table: TableId, low: &[u8], high: &[u8], piece: u32) {
        let ordered = self.declaration.core.table(table).and_then(|t| {
            let right = t.ordered.is_some() && (!t.exact || low.len() == 8 && high.len() == 8);
            let why = "cannot be scanned, or the bounds have another length than its keys";
            right.then_some(()).ok_or_else(|| format!("table {:?} {why}", t.name))
        });
        if let Err(what) = ordered {
            return self.declaration.note(what);
        }
        let (low, high) =
            (self.declaration.lists.keep_key(low), self.declaration.lists.keep_key(high));
        self.declaration.lists.ranges.push(DeclaredRange { table, piece, low, high });
    }

    /// The number that this call's `i`-th allocation got, or its `i`-th look saw: allocations and
    /// looks count together.
    ///
    /// # Panics
    /// If the call drew less than that; the call fails.
    pub fn sequence_number(&self, i: usize) -> u64 {
        self.declaration.lists.allocations[self.allocations.range()][i].value
    }

    /// What the first call that allocates from a sequence gets in this epoch: its next number as of
    /// the end of the previous one, 0 if none was ever allocated from it. The same for all calls of
    /// an epoch, so never checked again.
    pub fn sequence_start(&mut self, table: TableId, key: u64) -> u64 {
        let declaration = &mut self.declaration;
        declaration.core.sequence_start(table, key, declaration.epoch).unwrap_or_else(|what| {
            declaration.note(what);
            0
        })
    }

    /// Reads a row as of the end of the previous epoch.
    pub fn lookup(&mut self, table: TableId, key: &[u8]) -> Option<&[u8]> {
        self.declaration.lookup(table, key)
    }

    /// Visits the rows that a secondary index has with `low <= key < high` behind the serial part
    /// of this epoch. Checked again when the call runs, if calls before it may have changed an
    /// index: then it is deferred if it would see other rows.
    pub fn scan_index(
        &mut self,
        index: u16,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) {
        let declaration = &mut self.declaration;
        let keys = KeyRange { low, high, is_descending: descending };
        let secondary = &declaration.core.secondary;
        if declaration.overlay.is_some() || secondary.are_for_the_serial_part {
            let scanned = secondary.scan(index, keys, each);
            return scanned.unwrap_or_else(|what| declaration.note(what));
        }
        let mut scan = IndexScan::default();
        let scanned = secondary.scan(index, keys, &mut |key, own| scan.visit(key, each(key, own)));
        if let Err(what) = scanned {
            return declaration.note(what);
        }
        let lists = &mut *declaration.lists;
        let (low, high) = (lists.keep_key(low), lists.keep_key(high));
        let IndexScan { visited, fingerprint, .. } = scan.finish();
        let is_descending = descending;
        let lookup = Lookup::Index { index, low, high, is_descending, visited, fingerprint };
        lists.lookups.push(lookup);
    }

    /// The table of a secondary index; notes the mistake if there is none.
    pub fn table_of_index(&mut self, index: u16) -> Option<TableId> {
        let table = self.declaration.core.secondary.table(index);
        table.map_err(|what| self.declaration.note(what)).ok()
    }

    /// Scans `low <= key < high` of an ordered table as of the end of the previous epoch, in either
    /// direction.
    pub fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        is_descending: bool,
        each: Visit<'_>,
    ) {
        let declaration = &mut self.declaration;
        let keys = KeyRange { low, high, is_descending };
        if let Some(overlay) = declaration.overlay.as_deref_mut() {
            let (core, phase, reads) = (declaration.core, declaration.phase, declaration.reads);
            let epoch = declaration.epoch;
            let mut before = |id| value_before(core, phase, id, epoch, reads);
            if let Err(what) = overlay.scan(core, table, keys, reads, &mut before, each) {
                declaration.note(what);
            }
            return;
        }
        let sid = SerialId::new(declaration.epoch, Position(0));
        let mut waiter = Waiter::new(declaration.core.stopped());
        let mut fingerprint = 0;
        let mut visit = |key: &[u8], value: &[u8]| {
            fingerprint = fold(fingerprint, key, value);
            each(key, value)
        };
        let (phase, reads) = (declaration.phase, declaration.reads);
        let reader = Reader { phase, sid, waiter: &mut waiter, reads };
        let result = declaration.core.look_through(table, keys, reader, &mut visit);
        match result {
            Ok(visited) => {
                let (low, high) =
                    (declaration.lists.keep_key(low), declaration.lists.keep_key(high));
                let lookup = Lookup::Scan { table, low, high, is_descending, visited, fingerprint };
                declaration.lists.lookups.push(lookup);
            }
            Err(error) => declaration.note_error(error),
        }
    }
}
