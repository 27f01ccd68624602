//! What a procedure's declarations are written with.
//!
//! Functions here do not fail one by one: the engine keeps the first mistake, and the call fails
//! with it when the declaration ends, in whatever way that does.

use std::any::Any;
use std::borrow::Borrow;
use std::ops::{Bound, ControlFlow};

use storage::TableId;

use crate::data::stored;
use crate::data::value::Data;
use crate::key::bytes::Key;
use crate::table::handle::{Scannable, Sequence, Shape, Table};
use crate::table::index::Index;
use crate::table::range::{Bytes, KeyRange, LAST_WORD};
use crate::table::rows::{FoundKeys, Of, RowPage, Rows, Source, Wanted, undecodable};
use crate::table::schema::Schema;

/// Allocates from sequences, and reads rows to decide about it.
pub struct Sequences<'a, 'e> {
    pub(crate) inner: &'a mut engine::Sequences<'e>,
    pub(crate) schema: &'a Schema,
}

impl<'a> Sequences<'a, '_> {
    /// The number of a handle's table; without one, notes the mistake.
    #[inline]
    fn number(&mut self, shape: &Shape) -> Option<TableId> {
        self.schema.number(shape).map_err(|what| self.inner.mistake(what)).ok()
    }

    /// Decodes what a lookup finds; notes the mistake if it is no `V`.
    fn decode<V: Data>(&mut self, shape: &Shape, number: TableId, key: &[u8]) -> Option<V> {
        let value = stored::read::<V>(self.inner.lookup(number, key)?);
        if value.is_none() {
            self.inner.mistake(undecodable::<V>(shape, "value"));
        }
        value
    }

    /// See [`Transaction::context`](crate::Transaction::context); without it the call fails.
    pub fn context<T: Any>(&mut self) -> Option<&'a T> {
        self.schema.context().map_err(|what| self.inner.mistake(what)).ok()
    }

    /// Allocates the next number of a sequence. The k-th transaction of an epoch that allocates
    /// from it gets the k-th number; read it later with `sequence_number`.
    pub fn allocate(&mut self, sequence: Sequence) {
        if let Some(number) = self.number(&sequence.shape) {
            self.inner.allocate(number, sequence.key);
        }
    }

    /// Looks at a sequence without allocating from it. Counts as an allocation for
    /// `sequence_number`, which tells the number that the next transaction to allocate from it
    /// gets, in serial order.
    pub fn peek(&mut self, sequence: Sequence) {
        if let Some(number) = self.number(&sequence.shape) {
            self.inner.peek(number, sequence.key);
        }
    }

    /// Reads a row as of the end of the previous epoch. If it is another one when the transaction
    /// runs, the transaction is deferred.
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Option<V> {
        let number = self.number(&table.shape)?;
        key.borrow().with_key(|key| self.decode(&table.shape, number, key))
    }
}

/// Declares what a transaction may write.
pub struct WriteSet<'a, 'e> {
    pub(crate) inner: &'a mut engine::WriteSet<'e>,
    pub(crate) schema: &'a Schema,
}

impl<'a> WriteSet<'a, '_> {
    /// The number of a handle's table; without one, notes the mistake.
    #[inline]
    fn number(&mut self, shape: &Shape) -> Option<TableId> {
        self.schema.number(shape).map_err(|what| self.inner.mistake(what)).ok()
    }

    /// Decodes what a lookup finds; notes the mistake if it is no `V`.
    fn decode<V: Data>(&mut self, shape: &Shape, number: TableId, key: &[u8]) -> Option<V> {
        let value = stored::read::<V>(self.inner.lookup(number, key)?);
        if value.is_none() {
            self.inner.mistake(undecodable::<V>(shape, "value"));
        }
        value
    }

    /// See [`Transaction::context`](crate::Transaction::context); without it the call fails.
    pub fn context<T: Any>(&mut self) -> Option<&'a T> {
        self.schema.context().map_err(|what| self.inner.mistake(what)).ok()
    }

    /// The timestamp that the body has, in nanoseconds since 1970
    /// ([`Transaction::timestamp_ns`](crate::Transaction::timestamp_ns)): for keys that follow from
    /// it.
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        self.inner.timestamp_ns()
    }

    /// What the transaction will write cannot be said: it is deferred, and runs alone.
    pub fn unknown(&mut self) {
        self.inner.is_unknown();
    }

    /// The transaction may insert this row; or update or delete it.
    #[inline]
    pub fn insert<K: Key + ?Sized, V, O>(&mut self, table: Table<K, V, O>, key: impl Borrow<K>) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.insert(number, key));
        }
    }

    /// The transaction may update this row, if it exists by then.
    #[inline]
    pub fn update<K: Key + ?Sized, V, O>(&mut self, table: Table<K, V, O>, key: impl Borrow<K>) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.update(number, key));
        }
    }

    /// A piece of the transaction may update or delete this row, if it exists by then, and nothing
    /// else of it may write the row. For rows that many transactions of an epoch want, such as a
    /// counter or a sum: where
    /// [`Tuning::split_threshold`](crate::Tuning::split_threshold) says that the row is contended,
    /// [`Procedure::piece`](crate::Procedure::piece) runs apart from the rest of the transaction,
    /// next to the other updates of the row; else with it, after its body (CA 3.4). What follows
    /// from the row and is not contended itself may belong to the same piece
    /// ([`WriteSet::insert_in_piece`], [`WriteSet::update_in_piece`]).
    ///
    /// `weight` estimates the work of the piece: 1 for an ordinary update.
    pub fn update_piece<K: Key + ?Sized, V, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        weight: u32,
    ) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.update_piece(number, key, weight));
        }
    }

    /// The piece that was declared last may insert this row, too; or update or delete it. Nothing
    /// else of the transaction may write it.
    pub fn insert_in_piece<K: Key + ?Sized, V, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.insert_in_piece(number, key));
        }
    }

    /// The piece that was declared last may update or delete this row, too, if it exists by then.
    /// Nothing else of the transaction may write it.
    pub fn update_in_piece<K: Key + ?Sized, V, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.update_in_piece(number, key));
        }
    }

    /// The piece that was declared last may update or delete any row of an ordered table in a
    /// range, too, if it exists by then. A row that is declared by its key, too, is for whom that
    /// says; one in several ranges is the body's, or that of the first of the pieces.
    pub fn update_range_in_piece<K: Key + ?Sized, V, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) {
        let Some(number) = self.number(&table.shape) else {
            return;
        };
        let range = Bytes::new(&table, &range);
        self.inner.update_range_in_piece(number, &range.low, &range.high);
        if range.and_last {
            self.inner.update_in_piece(number, &LAST_WORD);
        }
    }

    /// The transaction may delete this row, if it exists by then.
    #[inline]
    pub fn delete<K: Key + ?Sized, V, O>(&mut self, table: Table<K, V, O>, key: impl Borrow<K>) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.delete(number, key));
        }
    }

    /// A hint, never needed: the transaction will read this row.
    #[inline]
    pub fn will_read<K: Key + ?Sized, V, O>(&mut self, table: Table<K, V, O>, key: impl Borrow<K>) {
        if let Some(number) = self.number(&table.shape) {
            key.borrow().with_key(|key| self.inner.will_read(number, key));
        }
    }

    /// The transaction may update or delete any row of an ordered table in a range, if it exists by
    /// then.
    pub fn update_range<K: Key + ?Sized, V, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) {
        let Some(number) = self.number(&table.shape) else {
            return;
        };
        let range = Bytes::new(&table, &range);
        self.inner.update_range(number, &range.low, &range.high);
        if range.and_last {
            self.inner.update(number, &LAST_WORD);
        }
    }

    /// The number that this transaction's `i`-th allocation got.
    ///
    /// # Panics
    /// If it drew less than that; the call fails.
    #[must_use]
    pub fn sequence_number(&self, i: usize) -> u64 {
        self.inner.sequence_number(i)
    }

    /// What the first transaction of this epoch that allocates from a sequence gets.
    pub fn sequence_start(&mut self, sequence: Sequence) -> u64 {
        match self.number(&sequence.shape) {
            Some(number) => self.inner.sequence_start(number, sequence.key),
            None => 0,
        }
    }

    /// Reads a row as of the end of the previous epoch, to find out what to declare. If it is
    /// another one when the transaction runs, the transaction is deferred.
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Option<V> {
        let number = self.number(&table.shape)?;
        key.borrow().with_key(|key| self.decode(&table.shape, number, key))
    }

    /// The rows of an ordered table in a range as of the end of the previous epoch, in the order of
    /// their keys, from both ends. As with [`WriteSet::get`], a change defers the transaction: also
    /// one of a few rows behind those that were asked for.
    pub fn range<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = (K::Owned, V)> {
        let wanted = self.schema.rows(&table, &range);
        self.rows::<K, V>(wanted)
    }

    /// Without a table or an index there are no rows, and the mistake is noted.
    fn rows<K: Key + ?Sized, V: Data>(
        &mut self,
        wanted: Result<Wanted, String>,
    ) -> impl DoubleEndedIterator<Item = (K::Owned, V)> {
        let wanted = wanted.map_err(|what| self.inner.mistake(what));
        let rows: Rows<'_, K, V, ()> = Rows::new(OfWriteSet(self.inner), wanted);
        // Nothing follows an error.
        rows.filter_map(Result::ok)
    }

    /// The rows that an index has under keys in a range, in the order of those keys, from both
    /// ends, as of the end of the previous epoch and of what ran before this one's parallel part. A
    /// change of a row that was read defers the transaction.
    pub fn range_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &mut self,
        index: Index<I, K, V, O>,
        range: impl KeyRange<I>,
    ) -> impl DoubleEndedIterator<Item = (K::Owned, V)> {
        let wanted = self.schema.rows_by(&index, &range);
        self.rows::<K, V>(wanted)
    }

    /// The first row that an index has under a key: of a unique index the only one. As
    /// [`WriteSet::range_by`].
    pub fn get_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &mut self,
        index: Index<I, K, V, O>,
        key: impl Borrow<I>,
    ) -> Option<(K::Owned, V)> {
        let key = key.borrow();
        self.range_by(index, (Bound::Included(key), Bound::Included(key))).next()
    }

    /// How many rows of an ordered table are in a range as of the end of the previous epoch. A
    /// change of any of them defers the transaction, as with [`WriteSet::get`].
    pub fn count<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> u64 {
        let Some(number) = self.number(&table.shape) else {
            return 0;
        };
        let range = Bytes::new(&table, &range);
        let mut count = 0;
        self.inner.lookup_scan(number, &range.low, &range.high, false, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        });
        count + u64::from(range.and_last && self.inner.lookup(number, &LAST_WORD).is_some())
    }
}

/// The rows that a declaration sees. Its mistakes are noted where it ends.
struct OfWriteSet<'s, 'e>(&'s mut engine::WriteSet<'e>);

impl Source for OfWriteSet<'_, '_> {
    type Error = ();

    /// What was read and not asked for defers without need.
    fn sizes(&self, _: Of) -> (usize, usize) {
        (1, 256)
    }

    fn part(
        &mut self,
        of: Of,
        range: &Bytes,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<RowPage, ()> {
        let (inner, low, high) = (&mut *self.0, &range.low, &range.high);
        let index = match of {
            Of::Table(table) => {
                return RowPage::of_table(rows_max, |each| {
                    inner.lookup_scan(table, low, high, is_descending, each);
                    Ok(())
                });
            }
            Of::Index(index) => index,
        };
        let table = inner.table_of_index(index).ok_or(())?;
        let mut found = FoundKeys::new(rows_max);
        let mut each = |entry: &[u8], key: &[u8]| found.add(entry, key);
        inner.scan_index(index, low, high, is_descending, &mut each);
        let mut part = RowPage::default();
        for key in found.keys() {
            part.add_found(key, inner.lookup(table, key));
        }
        part.last = found.last;
        Ok(part)
    }

    fn value(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, ()> {
        Ok(self.0.lookup(table, key).map(<[u8]>::to_vec))
    }

    fn mistake(&mut self, what: String) {
        self.0.mistake(what);
    }
}
