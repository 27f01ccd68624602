//! A running piece, as its function sees it: the update of one row that may be contended, and of
//! others that are its own, apart from the rest of its call (CA 3.4).
//!
//! It sees the state before its call, and writes nothing but its rows. Where its row is contended
//! the rest of the call may run at the same time on another worker, so neither sees what the other
//! writes; what passes between them is its result. A mistake stops the engine, also if the
//! piece ignores it; but in the serial part it is the failure of its call.

use std::ops::RangeBounds;

use storage::TableId;

use crate::declaration::overlay::PieceRow;
use crate::declaration::{Declared, DeclaredKind, NO_ENTRY, PieceResult, PieceState, Span};
use crate::index::EntryId;
use crate::memory::PieceWrite;
use crate::reads::{KeyRange, Visit};
use crate::table::{KeyWord, Table};
use crate::transaction::{Bounds, Stop, Transaction, change_lines, change_part};
use crate::version::ValueWord;

/// A running piece.
pub struct Piece<'a> {
    /// Only for reading: what a transaction writes belongs to its body.
    tx: Transaction<'a>,
    number: usize,
}

/// One of a piece's rows.
#[derive(Debug, Clone, Copy)]
struct OwnRow {
    table: TableId,
    /// Which of its private writes; [`OwnRow::NO_WRITE`]: no row has the key.
    write: usize,
    id: EntryId,
    kind: DeclaredKind,
}

impl OwnRow {
    const NO_WRITE: usize = usize::MAX;
}

impl<'a> Piece<'a> {
    /// A piece begins, of a transaction that has done nothing.
    pub(crate) fn new(tx: Transaction<'a>, number: usize) -> Self {
        let call = tx.call;
        assert!(number < call.pieces().len(), "a piece is one of its call");
        let piece = &call.pieces()[number];
        tx.local.piece.begin(1 + piece.keys.len() + piece.members.len());
        Self { tx, number }
    }

    /// Reads that waited.
    pub(crate) fn waits(&self) -> u64 {
        self.tx.waiter.waits
    }

    /// What is known of it.
    fn state(&self) -> &'a PieceState {
        &self.tx.call.pieces()[self.number]
    }

    /// Which piece of its call it is, in the order of their declaration.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The epoch's timestamp, nanoseconds since 1970 (O-47).
    pub fn timestamp_ns(&self) -> u64 {
        self.tx.timestamp_ns()
    }

    /// The same seed as the body's.
    pub fn seed(&self) -> u64 {
        self.tx.seed()
    }

    /// The serial id of its call.
    pub fn serial_id(&self) -> u64 {
        self.tx.serial_id()
    }

    /// The number that its call's `i`-th allocation got.
    ///
    /// # Panics
    /// If the call drew less than that; the engine stops.
    pub fn sequence_number(&self, i: usize) -> u64 {
        self.tx.sequence_number(i)
    }

    /// What the first call that allocates from a sequence gets in this epoch; see
    /// [`crate::WriteSet::sequence_start`].
    ///
    /// # Errors
    /// [`Stop`] if the table holds no sequences.
    pub fn sequence_start(&self, table: TableId, key: u64) -> Result<u64, Stop> {
        self.tx.sequence_start(table, key)
    }

    /// For layers above that find a mistake themselves; see [`Transaction::mistake`].
    #[cold]
    pub fn mistake(&self, what: String) -> Stop {
        self.tx.mistake(what)
    }

    /// What a piece of its call with a smaller number came to; waits for it if it runs apart.
    ///
    /// # Errors
    /// [`Stop`] if the number is not smaller, or if the engine was stopped.
    pub fn result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        if number >= self.number {
            let own = self.number;
            return Err(self.mistake(format!("piece {own} asks for the result of piece {number}")));
        }
        let result = self.tx.publisher.earlier_result(self.tx.local, self.tx.call, number);
        result.map_err(|stopped| self.note(stopped.into()))
    }

    /// Reads a row: one of its own as it has written it, any other as it was before the call.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table, a key beyond its limit, or a row that the rest of its call
    /// may write: its new value may be there or not.
    pub fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let first_error = self.tx.first_error;
        self.try_get(table, key).map_err(|stop| first_error.note(stop))
    }

    fn try_get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        match self.find(table, key)? {
            Some(row) => self.read(row, key),
            None => self.tx.get_before(table, key),
        }
    }

    /// Scans the rows with `low <= key < high` of an ordered table, as they were before the call;
    /// `each` returns `Break` when it has seen enough.
    ///
    /// # Errors
    /// [`Stop`] for an unknown or unordered table, or if the call, or the piece itself, may write
    /// one of the rows.
    pub fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        let keys = KeyRange { low, high, is_descending: descending };
        let first_error = self.tx.first_error;
        self.tx.scan_before(table, keys, each).map_err(|stop| first_error.note(stop))
    }

    /// The value of the row that may be contended, before the call or what the piece has made of
    /// it; `None` where the row does not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn value(&mut self) -> Result<Option<&[u8]>, Stop> {
        let (first_error, row) = (self.tx.first_error, self.first());
        let key = self.serial_key();
        self.read(row, &key).map_err(|stop| first_error.note(stop))
    }

    /// Changes that row in a private copy of its value; its length stays. False where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Stop> {
        let (row, key) = (self.first(), self.serial_key());
        let changed = self.change_whole(row, &key, |_, value| change(value), Bounds::of(&(..)));
        changed.map_err(|stop| self.note(stop))
    }

    /// Changes a part of that row, as [`Transaction::modify_part`] does. False where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] for a part that goes beyond the end of the value, or if the engine was stopped.
    pub fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: impl RangeBounds<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        let (row, key) = (self.first(), self.serial_key());
        let changed = self.change(row, &key, Bounds::of(&part), change);
        changed.map_err(|stop| self.note(stop))
    }

    /// Gives that row a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for a value beyond the table's limit.
    pub fn update(&mut self, value: &[u8]) -> Result<bool, Stop> {
        let (row, key) = (self.first(), self.serial_key());
        self.replace(row, &key, Some(value)).map_err(|stop| self.note(stop))
    }

    /// Inserts one of its rows that was declared with
    /// [`insert_in_piece`](crate::WriteSet::insert_in_piece), or overwrites it where it exists.
    ///
    /// # Errors
    /// [`Stop`] for a key that was not declared so, or a value beyond the table's limit.
    pub fn insert_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.try_insert(table, key, value).map_err(|stop| self.note(stop))
    }

    fn try_insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let row = self.own(table, key)?;
        if !row.kind.inserts() {
            return Err(self.tx.may_not_insert(table, key));
        }
        self.tx.check_length(table, value)?;
        self.write(row, key, Some(value));
        Ok(())
    }

    /// Gives one of its rows a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for a key that was not declared for it, or a value beyond the table's limit.
    pub fn update_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let row = self.own(table, key);
        let updated = row.and_then(|row| self.replace(row, key, Some(value)));
        updated.map_err(|stop| self.note(stop))
    }

    /// Deletes one of its rows; false where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for a key that was not declared for it.
    pub fn delete_row(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let row = self.own(table, key);
        row.and_then(|row| self.replace(row, key, None)).map_err(|stop| self.note(stop))
    }

    /// Changes a part of one of its rows, as [`Transaction::modify_part`] does. False where it does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] for a key that was not declared for it, or a part that goes beyond the end of the
    /// value.
    pub fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: impl RangeBounds<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        let row = self.own(table, key);
        let changed = row.and_then(|row| self.change(row, key, Bounds::of(&part), change));
        changed.map_err(|stop| self.note(stop))
    }

    #[cold]
    fn note(&self, stop: Stop) -> Stop {
        self.tx.first_error.note(stop)
    }
}

/// Which row is meant.
impl<'a> Piece<'a> {
    /// The row that may be contended.
    fn first(&self) -> OwnRow {
        let &Declared { table, id, kind, .. } = self.tx.call.declared_of(self.state());
        OwnRow { table, write: 0, id, kind }
    }

    /// Its key, which only the serial part needs.
    #[inline]
    fn serial_key(&self) -> Vec<u8> {
        match self.tx.is_serial() {
            true => self.tx.key_of(self.tx.call.declared_of(self.state())),
            false => Vec::new(),
        }
    }

    /// The row of a key that belongs to the piece.
    fn own(&mut self, table: TableId, key: &[u8]) -> Result<OwnRow, Stop> {
        if let Some(row) = self.find(table, key)? {
            return Ok(row);
        }
        // A key in its range without a row at this position. It may not belong to another part.
        let number = self.number as u32;
        if self.tx.call.is_in_range(number, table, key) {
            self.tx.get_before(table, key)?;
            let (id, kind) = (NO_ENTRY, DeclaredKind::PieceUpdate);
            return Ok(OwnRow { table, write: OwnRow::NO_WRITE, id, kind });
        }
        Err(not_of_piece(&self.tx.core.tables[table.index()], key))
    }

    /// The row of a key that was declared for the piece, or is in its range.
    fn find(&mut self, table: TableId, key: &[u8]) -> Result<Option<OwnRow>, Stop> {
        let t = self.tx.core.row_table(table)?;
        let word = t.word(key)?;
        let (call, piece) = (self.tx.call, self.state());
        let same = |d: &Declared| {
            d.word == word.hash && d.table == table && (t.exact || call.key(d.key) == word.key)
        };
        if let Some((write, d)) = call.keys_of(piece).enumerate().find(|(_, d)| same(d)) {
            return Ok(Some(OwnRow { table, write, id: d.id, kind: d.kind }));
        }
        match self.tx.is_serial() {
            false => Ok(self.find_member(table, t, word)),
            true => {
                let is_own = call.is_in_range(self.number as u32, table, key)
                    && self.tx.is_free_for(self.number, t, table, word);
                let (id, kind) = (NO_ENTRY, DeclaredKind::PieceUpdate);
                Ok(is_own.then_some(OwnRow { table, write: OwnRow::NO_WRITE, id, kind }))
            }
        }
    }

    fn find_member(&self, table: TableId, t: &Table, word: KeyWord<'_>) -> Option<OwnRow> {
        let piece = self.state();
        let members = self.tx.call.members_of(piece);
        let at = self.tx.search_members(members, t, table, word.key)?;
        let (id, kind) = (members[at].id, DeclaredKind::PieceUpdate);
        Some(OwnRow { table, write: 1 + piece.keys.len() + at, id, kind })
    }
}

/// Reading and writing a row of the piece. In the serial part its key says which one it is.
impl<'a> Piece<'a> {
    fn read(&mut self, row: OwnRow, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        if self.tx.is_serial() {
            return self.tx.serial_get_of_piece(self.serial_row(row, key));
        }
        match self.written(row) {
            PieceWrite::Value(span) => Ok(Some(self.tx.local.piece.value(span))),
            PieceWrite::Lines { seen, at, lines } => {
                let span = self.make_whole(row, seen, at, lines);
                Ok(Some(self.tx.local.piece.value(span)))
            }
            PieceWrite::Tombstone => Ok(None),
            PieceWrite::None => Ok(self.see(row)?.map(|(_, value)| value)),
        }
    }

    /// Gives a row that exists a value, or deletes it; false where it does not exist.
    fn replace(&mut self, row: OwnRow, key: &[u8], value: Option<&[u8]>) -> Result<bool, Stop> {
        if let Some(value) = value {
            self.tx.check_length(row.table, value)?;
        }
        let exists = self.read(row, key)?.is_some();
        if exists {
            self.write(row, key, value);
        }
        Ok(exists)
    }

    fn write(&mut self, row: OwnRow, key: &[u8], value: Option<&[u8]>) {
        if self.tx.is_serial() {
            return self.tx.serial_write_later(self.serial_row(row, key), value);
        }
        let piece = &mut self.tx.local.piece;
        piece.writes[row.write] = match value {
            Some(value) => PieceWrite::Value(piece.keep(value)),
            None => PieceWrite::Tombstone,
        };
    }

    fn change(
        &mut self,
        row: OwnRow,
        key: &[u8],
        part: Bounds,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        if self.tx.is_serial() || !matches!(self.written(row), PieceWrite::None) {
            return self.change_whole(row, key, change, part);
        }
        let Some((seen, value)) = self.see(row)? else { return Ok(false) };
        let piece = &mut self.tx.local.piece;
        let from = piece.values.len();
        let at = change_lines(value, part, &mut piece.values, change)? as u32;
        let lines = Span::up_to(from, piece.values.len());
        piece.writes[row.write] = PieceWrite::Lines { seen, at, lines };
        Ok(true)
    }

    /// [`Piece::change`] in a copy of the whole value, which is made unless there is one.
    fn change_whole(
        &mut self,
        row: OwnRow,
        key: &[u8],
        change: impl FnOnce(&[u8], &mut [u8]),
        part: Bounds,
    ) -> Result<bool, Stop> {
        if self.tx.is_serial() {
            let Some(mut value) = self.read(row, key)?.map(<[u8]>::to_vec) else {
                return Ok(false);
            };
            let all = 0..value.len();
            change_part(&mut value, all, part, change)?;
            self.write(row, key, Some(&value));
            return Ok(true);
        }
        let span = match self.written(row) {
            PieceWrite::Value(span) => span,
            PieceWrite::Lines { seen, at, lines } => self.make_whole(row, seen, at, lines),
            PieceWrite::Tombstone => return Ok(false),
            PieceWrite::None => {
                let Some((_, value)) = self.see(row)? else { return Ok(false) };
                self.tx.local.piece.keep(value)
            }
        };
        let piece = &mut self.tx.local.piece;
        change_part(&mut piece.values, span.range(), part, change)?;
        piece.writes[row.write] = PieceWrite::Value(span);
        Ok(true)
    }

    fn written(&self, row: OwnRow) -> PieceWrite {
        let writes = &self.tx.local.piece.writes;
        writes.get(row.write).copied().unwrap_or(PieceWrite::None)
    }

    /// A row's value before the call.
    fn see(&mut self, row: OwnRow) -> Result<Option<(ValueWord, &'a [u8])>, Stop> {
        match row.id {
            NO_ENTRY => Ok(None),
            id => Ok(self.tx.see_word(id)?),
        }
    }

    /// Puts the whole value where only lines of it are.
    #[cold]
    fn make_whole(&mut self, row: OwnRow, seen: ValueWord, at: u32, lines: Span) -> Span {
        let value = self.tx.phase.bytes(seen);
        let piece = &mut self.tx.local.piece;
        let span = piece.keep(value);
        let to = span.from as usize + at as usize;
        assert!(to + lines.len() <= span.to as usize, "lines that were changed are in the value");
        piece.values.copy_within(lines.range(), to);
        piece.writes[row.write] = PieceWrite::Value(span);
        span
    }

    fn serial_row<'k>(&self, row: OwnRow, key: &'k [u8]) -> PieceRow<'k> {
        PieceRow { piece: self.number, table: row.table, key }
    }
}

#[cold]
fn not_of_piece(t: &Table, key: &[u8]) -> Stop {
    let name = &t.name;
    Stop::mistake(format!(
        "table {name:?}: a piece writes key {key:02x?}, which was not declared for it"
    ))
}
