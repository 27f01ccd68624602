//! A running piece, as its function sees it: the update of one row, apart from the rest of its call
//! (CA 3.4).
//!
//! It sees the state before its call, and writes nothing but its row. Where the row is contended
//! the rest of the call may run at the same time on another worker, so neither sees what the other
//! writes; the call gets a number from it.

use crate::local::{Declared, NO_ENTRY};
use crate::transaction::{Stop, Transaction};

/// A running piece.
pub struct Piece<'a> {
    /// Only for reading: what a transaction writes belongs to its body.
    pub(crate) tx: Transaction<'a>,
    pub(crate) number: usize,
    /// The new value is in `Local::piece_value`.
    pub(crate) is_written: bool,
}

impl Piece<'_> {
    /// What its call declared for it.
    fn declared(&self) -> Declared {
        let call = self.tx.call;
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

    /// The number that its call's `i`-th draw got.
    ///
    /// # Panics
    /// If the call drew less than that; the engine stops.
    pub fn drawn(&self, i: usize) -> u64 {
        self.tx.drawn(i)
    }

    /// Reads another row, as it was before the call.
    ///
    /// # Errors
    /// [`Stop`] for an unknown table, a key beyond its limit, or a row that the call may write: its
    /// new value may be there or not.
    pub fn get(&mut self, table: u16, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.tx.get_before(table, key)
    }

    /// The row's value before the call, or what the piece has made of it; `None` where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn value(&mut self) -> Result<Option<&[u8]>, Stop> {
        if self.is_written {
            return Ok(Some(&self.tx.local.piece_value));
        }
        let id = self.declared().id;
        if id == NO_ENTRY { Ok(None) } else { Ok(self.tx.see(id, false)?) }
    }

    /// Changes the row in a private copy of its value; its length stays. False where the row does
    /// not exist.
    ///
    /// # Errors
    /// [`Stop`] if the engine was stopped.
    pub fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Stop> {
        if !self.is_written {
            let id = self.declared().id;
            if id == NO_ENTRY {
                return Ok(false);
            }
            let Some(value) = self.tx.see(id, false)? else {
                return Ok(false);
            };
            self.tx.local.piece_value.extend_from_slice(value);
            self.is_written = true;
        }
        change(&mut self.tx.local.piece_value);
        Ok(true)
    }

    /// Gives the row a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// [`Stop`] for a value beyond the table's limit.
    pub fn update(&mut self, value: &[u8]) -> Result<bool, Stop> {
        self.tx.check_length(self.declared().table, value)?;
        if self.value()?.is_none() {
            return Ok(false);
        }
        self.tx.local.piece_value.clear();
        self.tx.local.piece_value.extend_from_slice(value);
        self.is_written = true;
        Ok(true)
    }
}
