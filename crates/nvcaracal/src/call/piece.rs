//! A running piece, with types.

use std::any::Any;
use std::borrow::Borrow;
use std::ops::RangeBounds;

use crate::data::stored;
use crate::data::value::Data;
use crate::key::bytes::Key;
use crate::stop::Stop;
use crate::table::handle::Table;
use crate::table::schema::Schema;

/// The update of one row that [`WriteSet::update_piece`](crate::WriteSet::update_piece) declared,
/// apart from the rest of its transaction.
///
/// It sees the state before the transaction, and writes nothing but its row. A mistake **stops the
/// database**, whether or not the piece passes the error on.
pub struct Piece<'a, 'e> {
    pub(crate) inner: &'a mut engine::Piece<'e>,
    pub(crate) schema: &'a Schema,
}

impl<'a> Piece<'a, '_> {
    /// Which of the transaction's pieces it is: they are numbered from 0 in the order of their
    /// declaration.
    #[must_use]
    pub fn number(&self) -> usize {
        self.inner.number()
    }

    /// Reads another row, as it was before the transaction.
    ///
    /// # Errors
    /// If the table is not registered, the key is beyond its limit, or the transaction may write
    /// the row.
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>, Stop> {
        let number = self.schema.number(&table.shape).map_err(|what| self.inner.mistake(what))?;
        key.borrow().with_key(|key| match self.inner.get(number, key)?.map(stored::read::<V>) {
            Some(None) => Err(self.undecodable::<V>()),
            value => Ok(value.flatten()),
        })
    }

    /// The row's value; `None` where it does not exist. `V` is the type of its table's values.
    ///
    /// # Errors
    /// If the value is no `V`.
    pub fn value<V: Data>(&mut self) -> Result<Option<V>, Stop> {
        match self.inner.value()?.map(stored::read::<V>) {
            Some(None) => Err(self.undecodable::<V>()),
            value => Ok(value.flatten()),
        }
    }

    /// Gives the row a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// If the value is beyond its limit.
    pub fn update<V: Data>(&mut self, value: &V) -> Result<bool, Stop> {
        let updated = stored::with_stored(value, |value| self.inner.update(value));
        Ok(updated.unwrap_or_else(|what| Err(self.inner.mistake(what)))?)
    }

    /// Changes some bytes of the row's value, as
    /// [`Transaction::modify_bytes`](crate::Transaction::modify_bytes) does; false where it does
    /// not exist. `V` is the type of its table's values.
    ///
    /// # Errors
    /// If `part` goes beyond the end of the value, or the type has [versions](Data::BEFORE).
    pub fn modify_bytes<V: Data>(
        &mut self,
        part: impl RangeBounds<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        if stored::has_versions::<V>() {
            return Err(self.inner.mistake(stored::MANY_VERSIONS.to_string()).into());
        }
        Ok(self.inner.modify_part(part, change)?)
    }

    /// See [`Transaction::context`](crate::Transaction::context).
    ///
    /// # Errors
    /// If the context is not of this type.
    pub fn context<T: Any>(&self) -> Result<&'a T, Stop> {
        Ok(self.schema.context().map_err(|what| self.inner.mistake(what))?)
    }

    /// The number that the transaction's `i`-th allocation got.
    ///
    /// # Panics
    /// If it drew less than that; the database stops.
    #[must_use]
    pub fn sequence_number(&self, i: usize) -> u64 {
        self.inner.sequence_number(i)
    }

    /// See [`Transaction::timestamp_ns`](crate::Transaction::timestamp_ns).
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        self.inner.timestamp_ns()
    }

    #[cold]
    fn undecodable<V>(&self) -> Stop {
        let kind = std::any::type_name::<V>();
        let what = "the value of a piece's row is no";
        self.inner.mistake(format!("{what} {kind}: it was written with another type")).into()
    }
}
