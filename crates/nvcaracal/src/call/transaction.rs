//! A running transaction, with types.

use std::any::Any;
use std::borrow::Borrow;
use std::ops::{Bound, ControlFlow, RangeBounds};

use storage::TableId;

use crate::call::piece_result::{PieceResult, other_type};
use crate::data::stored;
use crate::data::value::Data;
use crate::key::bytes::{Key, check_readable};
use crate::stop::Stop;
use crate::table::handle::{Scannable, Sequence, Shape, Table};
use crate::table::index::Index;
use crate::table::range::{Bytes, KeyRange, LAST_WORD};
use crate::table::rows::{FoundKeys, Of, RowPage, Rows, Source, undecodable};
use crate::table::schema::Schema;

/// Reads and writes rows, as of the transaction's place in the serial order.
///
/// Reads see what all earlier transactions wrote, and this one's own writes. Writes are private
/// until [`Procedure::run`](crate::Procedure::run) returns `Ok`.
///
/// The errors of these functions are mistakes of the procedure, to be passed on with `?`. After the
/// first one nothing that the transaction did or does takes place, and its caller gets that error,
/// whatever the procedure makes of it and returns.
pub struct Transaction<'a, 'e> {
    pub(crate) inner: &'a mut engine::Transaction<'e>,
    pub(crate) schema: &'a Schema,
}

/// The rows that a transaction sees.
struct OfTransaction<'t, 'e>(&'t mut engine::Transaction<'e>);

impl Source for OfTransaction<'_, '_> {
    type Error = Stop;

    /// Often the first row is all that is wanted.
    fn sizes(&self, _: Of) -> (usize, usize) {
        (1, 256)
    }

    fn part(
        &mut self,
        of: Of,
        range: &Bytes,
        is_descending: bool,
        rows_max: usize,
    ) -> Result<RowPage, Stop> {
        let (inner, low, high) = (&mut *self.0, &range.low, &range.high);
        let index = match of {
            Of::Table(table) => {
                return RowPage::of_table(rows_max, |each| {
                    Ok(inner.scan(table, low, high, is_descending, each)?)
                });
            }
            Of::Index(index) => index,
        };
        let table = inner.table_of_index(index)?;
        let mut found = FoundKeys::new(rows_max);
        let mut each = |entry: &[u8], key: &[u8]| found.add(entry, key);
        inner.scan_index(index, low, high, is_descending, &mut each)?;
        let mut part = RowPage::default();
        for key in found.keys() {
            part.add_found(key, inner.get(table, key)?);
        }
        part.last = found.last;
        Ok(part)
    }

    fn value(&mut self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.0.get(table, key)?.map(<[u8]>::to_vec))
    }

    fn mistake(&mut self, what: String) -> Stop {
        self.0.mistake(what).into()
    }
}

impl<'a> Transaction<'a, '_> {
    #[inline]
    fn number(&self, shape: &Shape) -> Result<TableId, Stop> {
        Ok(self.schema.number(shape).map_err(|what| self.inner.mistake(what))?)
    }

    /// Adds the key as its program knows it: the engine knows it as bytes.
    #[cold]
    fn with_key<K: Key + ?Sized>(&self, stop: engine::Stop, key: &K) -> Stop {
        self.inner.explain(stop, format_args!(" (key {key:?})")).into()
    }

    #[cold]
    fn undecodable<V>(&self, shape: Shape) -> Stop {
        self.inner.mistake(undecodable::<V>(&shape, "value")).into()
    }

    #[inline]
    fn check_one_version<V: Data>(&self, shape: &Shape) -> Result<(), Stop> {
        match stored::has_versions::<V>() {
            false => Ok(()),
            true => {
                Err(Stop::from(self.inner.mistake(format!("{shape}: {}", stored::MANY_VERSIONS))))
            }
        }
    }

    #[inline]
    fn check_bytes<V: Data>(&self, shape: &Shape, value: &[u8]) -> Result<(), Stop> {
        self.check_one_version::<V>(shape)?;
        if V::is_value(value) { Ok(()) } else { Err(self.no_value::<V>(*shape, value)) }
    }

    #[cold]
    fn no_value<V>(&self, shape: Shape, value: &[u8]) -> Stop {
        let (kind, len) = (std::any::type_name::<V>(), value.len());
        self.inner.mistake(format!("{shape}: {len} bytes are written that are no {kind}")).into()
    }

    /// Reads a row.
    ///
    /// # Errors
    /// If the table is not registered, or the key is beyond its limit.
    #[inline]
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>, Stop> {
        let number = self.number(&table.shape)?;
        key.borrow().with_key(|key| match self.inner.get(number, key)? {
            None => Ok(None),
            Some(bytes) => match stored::read(bytes) {
                Some(value) => Ok(Some(value)),
                None => Err(self.undecodable::<V>(table.shape)),
            },
        })
    }

    /// Reads the bytes of a row's value in place.
    ///
    /// # Errors
    /// As [`Transaction::get`]; or if the type has [versions](Data::BEFORE), of which the bytes may
    /// be any.
    #[inline]
    pub fn get_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<&[u8]>, Stop> {
        let number = self.number(&table.shape)?;
        self.check_one_version::<V>(&table.shape)?;
        Ok(key.borrow().with_key(|key| self.inner.get(number, key))?)
    }

    /// Reads many rows of a table: what is there for each key, in the order of the keys, as
    /// [`Transaction::get`] one by one would find it. They are fetched from memory together, so
    /// this is faster for keys that the transaction did not declare.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_many<K: Key + ?Sized, V: Data, O, B: Borrow<K>>(
        &mut self,
        table: Table<K, V, O>,
        keys: impl IntoIterator<Item = B>,
    ) -> Result<Vec<Option<V>>, Stop> {
        let (mut values, mut undecoded) = (Vec::new(), false);
        self.visit_many(&table.shape, keys, |found| {
            let value = found.and_then(stored::read::<V>);
            undecoded |= found.is_some() && value.is_none();
            values.push(value);
        })?;
        if undecoded {
            return Err(self.undecodable::<V>(table.shape));
        }
        Ok(values)
    }

    /// As [`Transaction::get_many`], in place: `each` gets the bytes of what is there for each key.
    ///
    /// # Errors
    /// As [`Transaction::get_bytes`].
    pub fn get_many_bytes<K: Key + ?Sized, V: Data, O, B: Borrow<K>>(
        &mut self,
        table: Table<K, V, O>,
        keys: impl IntoIterator<Item = B>,
        each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        self.check_one_version::<V>(&table.shape)?;
        self.visit_many(&table.shape, keys, each)
    }

    fn visit_many<K: Key + ?Sized, B: Borrow<K>>(
        &mut self,
        shape: &Shape,
        keys: impl IntoIterator<Item = B>,
        each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stop> {
        let number = self.number(shape)?;
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for key in keys {
            key.borrow().with_key(|key| bytes.extend_from_slice(key));
            ends.push(bytes.len());
        }
        let keys = ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        Ok(self.inner.get_many(number, keys, each)?)
    }

    /// Inserts a row, or overwrites it where it exists.
    ///
    /// # Errors
    /// If key or value are beyond their limits, or do not read back from what is written of them.
    /// For a row that was not declared with [`WriteSet::insert`](crate::WriteSet::insert) the call
    /// is deferred ([`Procedure::write_set`](crate::Procedure::write_set)): pass that on with `?`,
    /// too.
    #[inline]
    pub fn insert<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &V,
    ) -> Result<(), Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        check_readable(key).map_err(|what| self.inner.mistake(what))?;
        stored::with_stored(value, |value| {
            key.with_key(|key| self.inner.insert(number, key, value))
        })
        .unwrap_or_else(|what| Err(self.inner.mistake(what)))
        .map_err(|stop| self.with_key(stop, key))
    }

    /// Updates a row; false, and nothing happens, where it does not exist.
    ///
    /// # Errors
    /// If key or value are beyond their limits, or the value does not read back from what is
    /// written of it. For a row that was not declared the call is deferred, as by
    /// [`Transaction::insert`].
    #[inline]
    pub fn update<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &V,
    ) -> Result<bool, Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        stored::with_stored(value, |value| {
            key.with_key(|key| self.inner.update(number, key, value))
        })
        .unwrap_or_else(|what| Err(self.inner.mistake(what)))
        .map_err(|stop| self.with_key(stop, key))
    }

    /// As [`Transaction::insert`], of the bytes of a value: the way to write what is there as
    /// bytes, without a value being made of it.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; or if the bytes are no `V`, or the type has
    /// [versions](Data::BEFORE).
    #[inline]
    pub fn insert_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &[u8],
    ) -> Result<(), Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        check_readable(key).map_err(|what| self.inner.mistake(what))?;
        self.check_bytes::<V>(&table.shape, value)?;
        key.with_key(|bytes| self.inner.insert(number, bytes, value))
            .map_err(|stop| self.with_key(stop, key))
    }

    /// As [`Transaction::update`], of the bytes of a value.
    ///
    /// # Errors
    /// As [`Transaction::update`] and [`Transaction::insert_bytes`].
    #[inline]
    pub fn update_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        value: &[u8],
    ) -> Result<bool, Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        self.check_bytes::<V>(&table.shape, value)?;
        key.with_key(|bytes| self.inner.update(number, bytes, value))
            .map_err(|stop| self.with_key(stop, key))
    }

    /// Changes some bytes of a row's value, or all with `..`; false where it does not exist.
    /// `change` gets the value, and a copy of the bytes in `part`, which take their place. The rest
    /// is neither copied nor written: the way to change little of a long row, such as the first
    /// fields of a [`Plain`](crate::Plain) type.
    ///
    /// # Errors
    /// If the key is beyond its limit, or `part` goes beyond the end of the value; or if the type
    /// has [versions](Data::BEFORE), of which the bytes may be any. For a row that was not declared
    /// the call is deferred, as by [`Transaction::insert`].
    #[inline]
    pub fn modify_bytes<K: Key + ?Sized, V: Data, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
        part: impl RangeBounds<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        self.check_one_version::<V>(&table.shape)?;
        key.with_key(|bytes| self.inner.modify_part(number, bytes, part, change))
            .map_err(|stop| self.with_key(stop, key))
    }

    /// Deletes a row; false where it does not exist.
    ///
    /// # Errors
    /// If the key is beyond its limit. For a row that was not declared the call is deferred, as by
    /// [`Transaction::insert`].
    #[inline]
    pub fn delete<K: Key + ?Sized, V, O>(
        &mut self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<bool, Stop> {
        let (number, key) = (self.number(&table.shape)?, key.borrow());
        key.with_key(|bytes| self.inner.delete(number, bytes))
            .map_err(|stop| self.with_key(stop, key))
    }

    /// The rows of an ordered table in a range, in the order of their keys, from both ends. Nothing
    /// else can be done with the transaction until they are dropped.
    ///
    /// An error, a mistake of the procedure, is the last item.
    pub fn range<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> Rows<'_, K, V, Stop> {
        let wanted = self.schema.rows(&table, &range);
        let wanted = wanted.map_err(|what| self.inner.mistake(what).into());
        Rows::new(OfTransaction(self.inner), wanted)
    }

    /// Visits the rows of an ordered table in a range, in place, in the order of their keys or in
    /// the opposite one, until `each` breaks: the way to read many rows and keep little of them.
    /// `each` gets the bytes of key and value.
    ///
    /// # Errors
    /// As [`Transaction::get_bytes`].
    pub fn visit_bytes<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
        is_descending: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Stop> {
        let number = self.number(&table.shape)?;
        self.check_one_version::<V>(&table.shape)?;
        let range = Bytes::new(&table, &range);
        // The greatest of all 8-byte keys is in no range of bytes.
        let has_last = range.and_last && self.inner.get(number, &LAST_WORD)?.is_some();
        let mut flow = ControlFlow::Continue(());
        if has_last && is_descending {
            flow = self.visit_one(number, &LAST_WORD, &mut each)?;
        }
        if flow.is_continue() {
            self.inner.scan(
                number,
                &range.low,
                &range.high,
                is_descending,
                &mut |key, value| {
                    flow = each(key, value);
                    flow
                },
            )?;
        }
        if has_last && !is_descending && flow.is_continue() {
            let _ = self.visit_one(number, &LAST_WORD, &mut each)?;
        }
        Ok(())
    }

    fn visit_one(
        &mut self,
        table: TableId,
        key: &[u8],
        each: engine::Visit<'_>,
    ) -> Result<ControlFlow<()>, Stop> {
        let value = self.inner.get(table, key)?;
        Ok(value.map_or(ControlFlow::Continue(()), |value| each(key, value)))
    }

    /// How many rows of an ordered table are in a range.
    ///
    /// # Errors
    /// If the table is not registered.
    pub fn count<K: Key + ?Sized, V: Data, O: Scannable>(
        &mut self,
        table: Table<K, V, O>,
        range: impl KeyRange<K>,
    ) -> Result<u64, Stop> {
        let number = self.number(&table.shape)?;
        let range = Bytes::new(&table, &range);
        let mut count = 0;
        self.inner.scan(number, &range.low, &range.high, false, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        if range.and_last && self.inner.get(number, &LAST_WORD)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// The rows that an index has under keys in a range, in the order of those keys, from both
    /// ends; own writes included. Nothing else can be done with the transaction until they are
    /// dropped.
    ///
    /// An error, a mistake of the procedure, is the last item.
    pub fn range_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &mut self,
        index: Index<I, K, V, O>,
        range: impl KeyRange<I>,
    ) -> Rows<'_, K, V, Stop> {
        let wanted = self.schema.rows_by(&index, &range);
        let wanted = wanted.map_err(|what| self.inner.mistake(what).into());
        Rows::new(OfTransaction(self.inner), wanted)
    }

    /// The first row that an index has under a key: of a unique index the only one.
    ///
    /// # Errors
    /// If the index is not registered, or the key is longer than 256 bytes.
    pub fn get_by<I: Key + ?Sized, K: Key + ?Sized, V: Data, O>(
        &mut self,
        index: Index<I, K, V, O>,
        key: impl Borrow<I>,
    ) -> Result<Option<(K::Owned, V)>, Stop> {
        let key = key.borrow();
        self.range_by(index, (Bound::Included(key), Bound::Included(key))).next().transpose()
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
    ///
    /// # Errors
    /// If the sequence is not registered.
    pub fn sequence_start(&self, sequence: Sequence) -> Result<u64, Stop> {
        let number = self.number(&sequence.shape)?;
        Ok(self.inner.sequence_start(number, sequence.key)?)
    }

    /// What the program gave to its procedures with [`Options::context`](crate::Options::context).
    ///
    /// # Errors
    /// If that is not of this type.
    #[inline]
    pub fn context<T: Any>(&self) -> Result<&'a T, Stop> {
        Ok(self.schema.context().map_err(|what| self.inner.mistake(what))?)
    }

    /// When the epoch began, in nanoseconds since 1970: the only clock a procedure may use. Never
    /// goes back from one epoch to the next, also where the machine's clock is set back, and not
    /// when the database is opened again: then time stands still until the clock is there.
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        self.inner.timestamp_ns()
    }

    /// A seed for random numbers, different for each transaction, the same when it is replayed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.inner.seed()
    }

    /// The place in the serial order of all transactions: greater than that of every earlier one.
    #[must_use]
    pub fn serial_id(&self) -> u64 {
        self.inner.serial_id()
    }

    /// From here on the transaction cannot give up: what it wrote is seen by later ones at once,
    /// which helps where many of them wait for a row. A row that was written before must not be
    /// written again.
    ///
    /// An error or a panic after this **stops the database**, because half of the transaction was
    /// seen. Use it where that cannot happen.
    ///
    /// # Errors
    /// If the database is being stopped.
    pub fn commit_point(&mut self) -> Result<(), Stop> {
        Ok(self.inner.commit_point()?)
    }

    /// What a piece of this transaction came to, by its number; waits for it if it runs apart. This
    /// is a [commit point](Transaction::commit_point), too. To put results into the answer,
    /// [`Procedure::finish`](crate::Procedure::finish) is better: it makes no caller wait.
    ///
    /// # Errors
    /// If there is no such piece, it came to something else than a `V`, or the database is being
    /// stopped.
    pub fn piece_result<V: Data>(&mut self, number: usize) -> Result<V, Stop> {
        let result = PieceResult(self.inner.piece_result(number)?).read();
        result.ok_or_else(|| self.inner.mistake(other_type::<V>(number)).into())
    }
}
