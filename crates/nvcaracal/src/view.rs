//! Reading between two epochs.

use std::borrow::Borrow;
use std::ops::ControlFlow;

use storage::IndexKind;

use crate::driver::Driver;
use crate::range::{Bytes, KeyRange, LAST_WORD};
use crate::transaction::{row, undecodable};
use crate::{Data, Error, Key, Result, Sequence, Table};

/// The state at the end of an epoch; see [`Database::read`](crate::Database::read).
pub struct View<'a> {
    driver: &'a dyn Driver,
}

impl<'a> View<'a> {
    pub(crate) fn new(driver: &'a dyn Driver) -> Self {
        Self { driver }
    }

    fn number(&self, shape: &crate::table::Shape) -> Result<u16> {
        self.driver.schema().number(shape).map_err(Error::mistake)
    }

    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the table is not registered, [`Error::is_limit`] if the key is
    /// beyond its limit.
    pub fn get<K: Key + ?Sized, V: Data>(
        &self,
        table: Table<K, V>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>> {
        key.borrow().with_key(|key| self.get_encoded(table, key))
    }

    pub(crate) fn get_encoded<K: Key + ?Sized, V: Data>(
        &self,
        table: Table<K, V>,
        key: &[u8],
    ) -> Result<Option<V>> {
        let number = self.number(&table.shape)?;
        let Some(bytes) = self.driver.get(number, key)? else {
            return Ok(None);
        };
        let value = V::from_bytes(&bytes);
        value.map(Some).ok_or_else(|| Error::mistake(undecodable::<V>(&table.shape, "value")))
    }

    /// All rows in a range: of an ordered table in ascending order, of a hash table in no order. Of
    /// a hash table it visits all rows, whatever the range.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the table is not registered.
    pub fn scan<K: Key + ?Sized, V: Data>(
        &self,
        table: Table<K, V>,
        range: impl KeyRange<K>,
    ) -> Result<Vec<(K::Owned, V)>> {
        let mut rows = Vec::new();
        self.for_each(table, range, |key, value| rows.push((key, value)))?;
        Ok(rows)
    }

    /// As [`View::scan`], row by row.
    ///
    /// # Errors
    /// As [`View::scan`].
    pub fn for_each<K: Key + ?Sized, V: Data>(
        &self,
        table: Table<K, V>,
        range: impl KeyRange<K>,
        mut each: impl FnMut(K::Owned, V),
    ) -> Result<()> {
        let number = self.number(&table.shape)?;
        let range = Bytes::new(&table, &range);
        let mut mistake = None;
        let mut visit = |key: &[u8], value: &[u8]| match row::<K, V>(&table.shape, key, value) {
            Ok((key, value)) => each(key, value),
            Err(what) => drop(mistake.get_or_insert(what)),
        };
        if table.shape.index == IndexKind::Ordered {
            self.driver.scan(number, &range, &mut |key, value| {
                visit(key, value);
                ControlFlow::Continue(())
            })?;
            if range.and_last
                && let Some(value) = self.driver.get(number, &LAST_WORD)?
            {
                visit(&LAST_WORD, &value);
            }
        } else {
            self.driver.for_each(number, &mut |key, value| {
                if range.contains(key) {
                    visit(key, value);
                }
            })?;
        }
        mistake.map_or(Ok(()), |what| Err(Error::mistake(what)))
    }

    /// What the next transaction that draws from a sequence gets. Visits the whole family.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the sequence is not registered.
    pub fn sequence(&self, sequence: Sequence) -> Result<u64> {
        let number = self.number(&sequence.shape)?;
        let mut next = 0;
        self.driver.for_each(number, &mut |key, value| {
            if key == sequence.key.to_be_bytes() {
                next = value.try_into().map_or(0, u64::from_le_bytes);
            }
        })?;
        Ok(next)
    }
}
