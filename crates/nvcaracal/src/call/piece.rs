//! A running piece, with types.

use std::any::Any;
use std::borrow::Borrow;
use std::ops::{ControlFlow, RangeBounds};

use storage::TableId;

use crate::call::piece_result::{PieceResult, other_type};
use crate::data::stored;
use crate::data::value::Data;
use crate::key::bytes::{Key, check_readable};
use crate::stop::Stop;
use crate::table::handle::{Scannable, Sequence, Shape, Table};
use crate::table::range::{Bytes, KeyRange, LAST_WORD};
use crate::table::schema::Schema;

/// The update of one row that [`WriteSet::update_piece`](crate::WriteSet::update_piece) declared,
/// and of those that were declared for the same piece, apart from the rest of its transaction.
///
/// It sees the state before the transaction, and writes nothing but its rows. What it comes to is
/// there for the transaction and for its pieces with larger numbers. A mistake **stops the
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

    /// Reads a row: one of the piece's as it has written it, any other as it was before the
    /// transaction.
    ///
    /// # Errors
    /// If the table is not registered, the key is beyond its limit, or the rest of the transaction
    /// may write the row.
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>, Stop> {
        let number = self.number_of(&table.shape)?;
        key.borrow().with_key(|key| match self.inner.get(number, key)?.map(stored::read::<V>) {
            Some(None) => Err(self.undecodable::<V>()),
            value => Ok(value.flatten()),
        })
    }

    /// As [`Piece::get`], the bytes of the value.
    ///
    /// # Errors
    /// As there; or if the type has [versions](Data::BEFORE).
    pub fn get_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<&[u8]>, Stop> {
        let number = self.one_version::<V>(&table.shape)?;
        Ok(key.borrow().with_key(|key| self.inner.get(number, key))?)
    }

    /// Visits the rows of an ordered table in a range, in place, as
    /// [`Transaction::visit_bytes`](crate::Transaction::visit_bytes): as they were before the
    /// transaction, which may write none of them, nor may the piece.
    ///
    /// # Errors
    /// If the table is not registered, the type has [versions](Data::BEFORE), or one of the rows
    /// may be written.
    pub fn visit_bytes<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
        is_descending: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Stop> {
        let number = self.one_version::<V>(&table.shape)?;
        let range = Bytes::new(&table, &range);
        let mut flow = ControlFlow::Continue(());
        // The greatest of all 8-byte keys is in no range of bytes.
        if range.and_last && is_descending {
            flow = self.visit_last(number, &mut each)?;
        }
        if flow.is_continue() {
            let mut visit = |key: &[u8], value: &[u8]| {
                flow = each(key, value);
                flow
            };
            self.inner.scan(number, &range.low, &range.high, is_descending, &mut visit)?;
        }
        if range.and_last && !is_descending && flow.is_continue() {
            let _ = self.visit_last(number, &mut each)?;
        }
        Ok(())
    }

    fn visit_last(
        &mut self,
        table: TableId,
        each: engine::Visit<'_>,
    ) -> Result<ControlFlow<()>, Stop> {
        let value = self.inner.get(table, &LAST_WORD)?;
        Ok(value.map_or(ControlFlow::Continue(()), |value| each(&LAST_WORD, value)))
    }

    /// Inserts a row that was declared with
    /// [`WriteSet::insert_in_piece`](crate::WriteSet::insert_in_piece), or overwrites it where it
    /// exists.
    ///
    /// # Errors
    /// If it was not declared so, or key or value are beyond their limits, or do not read back from
    /// what is written of them.
    pub fn insert_row<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &V,
    ) -> Result<(), Stop> {
        let (number, key) = (self.number_of(&table.shape)?, key.borrow());
        check_readable(key).map_err(|what| self.inner.mistake(what))?;
        let inserted = stored::with_stored(value, |value| {
            key.with_key(|key| self.inner.insert_row(number, key, value))
        });
        Ok(inserted.unwrap_or_else(|what| Err(self.inner.mistake(what)))?)
    }

    /// As [`Piece::insert_row`], of the bytes of a value.
    ///
    /// # Errors
    /// As there; or if the bytes are no `V`, or the type has [versions](Data::BEFORE).
    pub fn insert_row_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &[u8],
    ) -> Result<(), Stop> {
        let (number, key) = (self.one_version::<V>(&table.shape)?, key.borrow());
        check_readable(key).map_err(|what| self.inner.mistake(what))?;
        if !V::is_value(value) {
            let (kind, len) = (std::any::type_name::<V>(), value.len());
            return Err(self.inner.mistake(format!("{len} bytes are written, no {kind}")).into());
        }
        Ok(key.with_key(|key| self.inner.insert_row(number, key, value))?)
    }

    /// Gives one of the piece's rows a new value; false, and nothing happens, where it does not
    /// exist.
    ///
    /// # Errors
    /// If the row was not declared for the piece, or the value is beyond its limit.
    pub fn update_row<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &V,
    ) -> Result<bool, Stop> {
        let (number, key) = (self.number_of(&table.shape)?, key.borrow());
        let updated = stored::with_stored(value, |value| {
            key.with_key(|key| self.inner.update_row(number, key, value))
        });
        Ok(updated.unwrap_or_else(|what| Err(self.inner.mistake(what)))?)
    }

    /// Changes some bytes of the value of one of the piece's rows, as [`Piece::modify_bytes`].
    ///
    /// # Errors
    /// As there; or if the row was not declared for the piece.
    pub fn modify_row_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        part: impl RangeBounds<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let number = self.one_version::<V>(&table.shape)?;
        Ok(key.borrow().with_key(|key| self.inner.modify_row(number, key, part, change))?)
    }

    /// Deletes one of the piece's rows; false where it does not exist.
    ///
    /// # Errors
    /// If the row was not declared for the piece.
    pub fn delete_row<K: Key + ?Sized, V, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<bool, Stop> {
        let number = self.number_of(&table.shape)?;
        Ok(key.borrow().with_key(|key| self.inner.delete_row(number, key))?)
    }

    /// What a piece of the transaction with a smaller number came to; waits for it if it runs
    /// apart.
    ///
    /// # Errors
    /// If its number is not smaller, or it came to something else than a `V`.
    pub fn result<V: Data>(&mut self, number: usize) -> Result<V, Stop> {
        let result = PieceResult(self.inner.result(number)?).read();
        result.ok_or_else(|| self.inner.mistake(other_type::<V>(number)).into())
    }

    /// The number of a handle's table.
    fn number_of(&self, shape: &Shape) -> Result<TableId, Stop> {
        Ok(self.schema.number(shape).map_err(|what| self.inner.mistake(what))?)
    }

    /// The same, if its values have one form only.
    fn one_version<V: Data>(&self, shape: &Shape) -> Result<TableId, Stop> {
        if stored::has_versions::<V>() {
            return Err(self.inner.mistake(stored::MANY_VERSIONS.to_string()).into());
        }
        self.number_of(shape)
    }

    /// The value of the row that [`WriteSet::update_piece`](crate::WriteSet::update_piece) named;
    /// `None` where it does not exist. `V` is the type of its table's values.
    ///
    /// # Errors
    /// If the value is no `V`.
    pub fn value<V: Data>(&mut self) -> Result<Option<V>, Stop> {
        match self.inner.value()?.map(stored::read::<V>) {
            Some(None) => Err(self.undecodable::<V>()),
            value => Ok(value.flatten()),
        }
    }

    /// Gives that row a new value; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// If the value is beyond its limit.
    pub fn update<V: Data>(&mut self, value: &V) -> Result<bool, Stop> {
        let updated = stored::with_stored(value, |value| self.inner.update(value));
        Ok(updated.unwrap_or_else(|what| Err(self.inner.mistake(what)))?)
    }

    /// Changes some bytes of that row's value, as
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

    /// What the first transaction of this epoch that allocates from a sequence gets.
    ///
    /// # Errors
    /// If the table is not registered.
    pub fn sequence_start(&self, sequence: Sequence) -> Result<u64, Stop> {
        let number = self.number_of(&sequence.shape)?;
        Ok(self.inner.sequence_start(number, sequence.key)?)
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
