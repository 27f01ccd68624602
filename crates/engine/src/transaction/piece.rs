//! A running piece, as its function sees it: the update of one row, apart from the rest of its call
//! (CA 3.4).
//!
//! It sees the state before its call, and writes nothing but its row. Where the row is contended
//! the rest of the call may run at the same time on another worker, so neither sees what the other
//! writes; the call gets a number from it. A mistake stops the engine, also if the piece ignores
//! it; but in the serial part it is the failure of its call.

use std::ops::RangeBounds;

use storage::TableId;

use crate::declaration::{Declared, NO_ENTRY};
use crate::transaction::{Bounds, Stop, Transaction, change_lines, change_part};
use crate::version::ValueWord;

/// A running piece.
pub struct Piece<'a> {
    /// Only for reading: what a transaction writes belongs to its body.
    pub(crate) tx: Transaction<'a>,
    pub(crate) number: usize,
    pub(crate) write: PieceWrite,
}

/// What a piece has written, in `Local::piece_value`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PieceWrite {
    /// Nothing.
    None,
    /// A value.
    Value,
    /// Lines that replace those at an offset of the value that it saw.
    Lines { seen: ValueWord, at: usize },
}

impl Piece<'_> {
    /// What its call declared for it.
    fn declared(&self) -> Declared {
        let call = self.tx.call;
        assert!(self.number < call.pieces().len(), "a piece is one of its call");
        *call.declared_of(&call.pieces()[self.number])
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

    /// Reads another row, as it was before the call.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table, a key beyond its limit, or a row that the call may write: its
    /// new value may be there or not.
    pub fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let first_error = self.tx.first_error;
        self.tx.get_before(table, key).map_err(|stop| first_error.note(stop))
    }

    /// The row's value before the call, or what the piece has made of it; `None` where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn value(&mut self) -> Result<Option<&[u8]>, Stop> {
        match self.write {
            PieceWrite::None if self.tx.is_serial() => self.serial_value(),
            PieceWrite::None => Ok(self.see()?.map(|(_, value)| value)),
            PieceWrite::Value => Ok(Some(&self.tx.local.piece_value)),
            PieceWrite::Lines { seen, at } => {
                self.make_whole(seen, at);
                Ok(Some(&self.tx.local.piece_value))
            }
        }
    }

    /// For layers above that find a mistake themselves; see [`Transaction::mistake`].
    #[cold]
    pub fn mistake(&self, what: String) -> Stop {
        self.tx.mistake(what)
    }

    /// Changes the row in a private copy of its value; its length stays. False where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Stop> {
        if !self.copy_to_change()? {
            return Ok(false);
        }
        change(&mut self.tx.local.piece_value);
        Ok(true)
    }

    /// Changes a part of the row, as [`Transaction::modify_part`] does. False where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] for a part that goes beyond the end of the value, or if the engine was stopped.
    pub fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: impl RangeBounds<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        let part = Bounds::of(&part);
        if self.tx.is_serial() || !matches!(self.write, PieceWrite::None) {
            return self.modify_part_again(part, change);
        }
        let Some((seen, value)) = self.see()? else { return Ok(false) };
        let at = change_lines(value, part, &mut self.tx.local.piece_value, change)
            .map_err(|stop| self.tx.first_error.note(stop))?;
        self.write = PieceWrite::Lines { seen, at };
        Ok(true)
    }

    /// [`Piece::modify_part`] of what the piece has written itself.
    fn modify_part_again<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Bounds,
        change: F,
    ) -> Result<bool, Stop> {
        if !self.copy_to_change()? {
            return Ok(false);
        }
        let whole = &mut self.tx.local.piece_value;
        let all = 0..whole.len();
        change_part(whole, all, part, change).map_err(|stop| self.tx.first_error.note(stop))?;
        Ok(true)
    }

    /// Gives the row a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for a value beyond the table's limit.
    pub fn update(&mut self, value: &[u8]) -> Result<bool, Stop> {
        let table = self.declared().table;
        self.tx.check_length(table, value).map_err(|stop| self.tx.first_error.note(stop))?;
        if self.value()?.is_none() {
            return Ok(false);
        }
        self.tx.local.piece_value.clear();
        self.tx.local.piece_value.extend_from_slice(value);
        self.write = PieceWrite::Value;
        Ok(true)
    }
}

impl<'a> Piece<'a> {
    /// The row's value before the call.
    fn see(&mut self) -> Result<Option<(ValueWord, &'a [u8])>, Stop> {
        let id = self.declared().id;
        if id == NO_ENTRY {
            return Ok(None);
        }
        self.tx.see_word(id).map_err(|stopped| self.tx.first_error.note(stopped.into()))
    }

    /// The row's value in the serial part.
    fn serial_value(&mut self) -> Result<Option<&[u8]>, Stop> {
        let declared = self.declared();
        let key = self.tx.key_of(&declared);
        let first_error = self.tx.first_error;
        self.tx.serial_get(declared.table, &key).map_err(|stop| first_error.note(stop))
    }

    /// Makes a private copy of the value if there is none; false where the row does not exist.
    fn copy_to_change(&mut self) -> Result<bool, Stop> {
        match self.write {
            PieceWrite::Value => {}
            PieceWrite::Lines { seen, at } => self.make_whole(seen, at),
            PieceWrite::None if self.tx.is_serial() => {
                let Some(value) = self.serial_value()?.map(<[u8]>::to_vec) else {
                    return Ok(false);
                };
                self.tx.local.piece_value = value;
                self.write = PieceWrite::Value;
            }
            PieceWrite::None => {
                let Some((_, value)) = self.see()? else { return Ok(false) };
                self.tx.local.piece_value.extend_from_slice(value);
                self.write = PieceWrite::Value;
            }
        }
        Ok(true)
    }

    /// Puts the whole value where only lines of it are.
    #[cold]
    fn make_whole(&mut self, seen: ValueWord, at: usize) {
        let value = self.tx.phase.bytes(seen);
        let whole = &mut self.tx.local.piece_value;
        let end = at + whole.len();
        assert!(end <= value.len(), "lines that were changed are in the value");
        whole.extend_from_slice(&value[end..]);
        whole.splice(0..0, value[..at].iter().copied());
        self.write = PieceWrite::Value;
    }
}
