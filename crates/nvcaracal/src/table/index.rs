//! Handles of secondary indexes: constants that name them and say what they hold.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use engine::{IndexDefinition, IndexKeyFn};
use storage::format::KEY_BYTES_MAX;

use crate::body;
use crate::data::text::short_name;
use crate::data::value::Data;
use crate::error::Result;
use crate::key::bytes::{Key, KeyBuffer};
use crate::table::handle::{Ordered, Shape, Table, tag_of_index};
use crate::table::range::{Bytes, KeyRange};
use crate::table::rows::row;

/// Names a secondary index of a table: its rows by keys `I` that a function makes of them, in
/// order.
///
/// A handle is a constant, made by [`Table::index`], [`Table::unique_index`] or, where a row has
/// several keys, [`Table::multi_index`], and is registered with each database that has the index
/// ([`Options::index`](crate::Options::index)). The database keeps it up with every write, in
/// memory, and builds it when it is opened.
///
/// ```
/// use nvcaracal::{Data, HashTable, Index, Table};
///
/// #[derive(Data)]
/// struct Order {
///     user: u64,
///     cents: i64,
///     is_paid: bool,
/// }
///
/// const ORDERS: Table<u64, Order> = Table::ordered("orders");
/// const BY_USER: Index<u64, u64, Order> = ORDERS.index("by user", |_, order| Some(order.user));
/// const UNPAID: Index<i64, u64, Order> =
///     ORDERS.index("unpaid", |_, order| (!order.is_paid).then_some(order.cents));
///
/// const NAMES: HashTable<u64, String> = Table::hash("names");
/// const BY_NAME: Index<str, u64, String, nvcaracal::Hashed> =
///     NAMES.unique_index("by name", |_, name| Some(name.clone()));
/// ```
///
/// * A row is not in the index where the function returns `None`, or no keys.
/// * The function must be pure, and should be quick: it runs with every write of the table. A panic
///   of it fails the call.
/// * Calls that predict what they write run on all cores, whether they change an index or not
///   ([`Procedure::write_set`]). Where an epoch has some that may change one, a call that reads an
///   index, or adds to a unique one, waits until those before it have ended.
/// * A call that would give two rows one key of a unique index is aborted when it ends, with code
///   [`Abort::NOT_UNIQUE`](crate::Abort::NOT_UNIQUE) and a message that names index and key. Within
///   a call keys may be swapped.
///
/// | limit | value |
/// |---|---|
/// | indexes of one database | 128 |
/// | key in an index | 256 bytes; text takes two more, and one more for each zero in it |
///
/// [`Procedure::write_set`]: crate::Procedure::write_set
pub struct Index<I: Key + ?Sized, K: Key + ?Sized, V, O = Ordered> {
    pub(crate) shape: IndexShape,
    pub(crate) table: Table<K, V, O>,
    keys: KeyFn<I, K, V>,
}

/// What makes the keys of a row in an index.
enum KeyFn<I: Key + ?Sized, K: Key + ?Sized, V> {
    /// One at most.
    One(fn(&K::Owned, &V) -> Option<I::Owned>),
    /// Any number.
    Several(fn(&K::Owned, &V) -> Vec<I::Owned>),
}

impl<I: Key + ?Sized, K: Key + ?Sized, V> Clone for KeyFn<I, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Key + ?Sized, K: Key + ?Sized, V> Copy for KeyFn<I, K, V> {}

/// What a handle says of its index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexShape {
    pub(crate) name: &'static str,
    pub(crate) table: Shape,
    pub(crate) is_unique: bool,
    pub(crate) tag: u64,
}

impl fmt::Display for IndexShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {:?} of {}", self.name, self.table)
    }
}

impl<I: Key + ?Sized, K: Key + ?Sized, V, O> Clone for Index<I, K, V, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Key + ?Sized, K: Key + ?Sized, V, O> Copy for Index<I, K, V, O> {}

impl<I: Key + ?Sized, K: Key + ?Sized, V, O> fmt::Debug for Index<I, K, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.fmt(f)
    }
}

impl<K: Key + ?Sized, V: Data, O> Table<K, V, O> {
    /// An index of this table: rows by the keys that `key` makes of them.
    #[must_use]
    pub const fn index<I: Key + ?Sized>(
        self,
        name: &'static str,
        key: fn(&K::Owned, &V) -> Option<I::Owned>,
    ) -> Index<I, K, V, O> {
        self.any_index(name, KeyFn::One(key), false)
    }

    /// The same in which no two rows may have one key.
    #[must_use]
    pub const fn unique_index<I: Key + ?Sized>(
        self,
        name: &'static str,
        key: fn(&K::Owned, &V) -> Option<I::Owned>,
    ) -> Index<I, K, V, O> {
        self.any_index(name, KeyFn::One(key), true)
    }

    /// An index in which a row has as many keys as `keys` makes of it, each once: tags of an
    /// article, words of a text. Reading it visits a row once under each of its keys.
    ///
    /// ```
    /// use nvcaracal::{Index, Table};
    ///
    /// const ARTICLES: Table<u64, String> = Table::ordered("articles");
    /// const BY_WORD: Index<str, u64, String> = ARTICLES
    ///     .multi_index("by word", |_, text| text.split(' ').map(String::from).collect());
    /// ```
    #[must_use]
    pub const fn multi_index<I: Key + ?Sized>(
        self,
        name: &'static str,
        keys: fn(&K::Owned, &V) -> Vec<I::Owned>,
    ) -> Index<I, K, V, O> {
        self.any_index(name, KeyFn::Several(keys), false)
    }

    /// The same in which no two rows may have one key.
    #[must_use]
    pub const fn unique_multi_index<I: Key + ?Sized>(
        self,
        name: &'static str,
        keys: fn(&K::Owned, &V) -> Vec<I::Owned>,
    ) -> Index<I, K, V, O> {
        self.any_index(name, KeyFn::Several(keys), true)
    }

    const fn any_index<I: Key + ?Sized>(
        self,
        name: &'static str,
        keys: KeyFn<I, K, V>,
        is_unique: bool,
    ) -> Index<I, K, V, O> {
        let tag = tag_of_index(self.shape.tag, name, is_unique);
        let shape = IndexShape { name, table: self.shape, is_unique, tag };
        Index { shape, table: self, keys }
    }
}

impl<I, K, V, O> Index<I, K, V, O>
where
    I: Key<Owned: Borrow<I>> + ?Sized + 'static,
    K: Key + ?Sized + 'static,
    V: Data + 'static,
{
    /// What the engine is opened with; `table` is the position of the table.
    pub(crate) fn registration(self) -> IndexRegistration {
        let Self { shape, keys, .. } = self;
        let make: IndexKeyFn = Arc::new(move |row_key, value, into| {
            body::within(|| {
                let (row_key, value) = row::<K, V>(&shape.table, row_key, value)?;
                let add = |key: I::Owned| encode(key.borrow(), |bytes| into.add(bytes));
                match keys {
                    KeyFn::One(key) => key(&row_key, &value).map_or(Ok(()), add),
                    KeyFn::Several(keys) => keys(&row_key, &value).into_iter().try_for_each(add),
                }
            })
        });
        let types: fn() -> String = match keys {
            KeyFn::One(_) => || format!("{} by {}", short_name::<V>(), I::describe()),
            KeyFn::Several(_) => || format!("{} by each {}", short_name::<V>(), I::describe()),
        };
        IndexRegistration { shape, make, types }
    }
}

/// An index that was registered.
#[derive(Clone)]
pub(crate) struct IndexRegistration {
    pub(crate) shape: IndexShape,
    make: IndexKeyFn,
    types: fn() -> String,
}

impl IndexRegistration {
    /// Whether it is the same index, as far as that can be told.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.shape.tag == other.shape.tag && (self.types)() == (other.types)()
    }

    pub(crate) fn definition(&self, table: usize) -> IndexDefinition {
        IndexDefinition {
            name: self.shape.name.to_string(),
            table,
            is_unique: self.shape.is_unique,
            types: (self.types)(),
            key: Arc::clone(&self.make),
        }
    }
}

impl fmt::Debug for IndexRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.fmt(f)
    }
}

/// Encodes a key of an index as bytes that say where they end, for `then`. Fails for a key that is
/// too long.
fn encode<I: Key + ?Sized, R>(key: &I, then: impl FnOnce(&[u8]) -> R) -> Result<R, String> {
    let mut buffer = KeyBuffer::default();
    key.encode(&mut buffer);
    let most = KEY_BYTES_MAX as usize;
    if buffer.bytes().len() > most {
        return Err(format!(
            "a key of more than {most} bytes: make it of a shorter part of the row, or of a hash"
        ));
    }
    Ok(then(buffer.bytes()))
}

/// The entries of an index with keys in a range.
pub(crate) fn entries_in<I: Key + ?Sized>(range: &impl KeyRange<I>) -> Result<Bytes, String> {
    let (low, high) = range.bounds();
    let at = |key: &I| encode(key, <[u8]>::to_vec);
    let low = match low {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => at(key)?,
        Bound::Excluded(key) => behind(at(key)?),
    };
    let high = match high {
        Bound::Unbounded => LAST.to_vec(),
        Bound::Included(key) => behind(at(key)?),
        Bound::Excluded(key) => at(key)?,
    };
    Ok(Bytes::of_entries(low, high))
}

/// Behind all entries: keys of an index and of a row together are shorter.
const LAST: [u8; 2 * KEY_BYTES_MAX as usize + 1] = [0xff; 2 * KEY_BYTES_MAX as usize + 1];

/// The least bytes above all that begin with these.
fn behind(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return key;
        }
        key.pop();
    }
    LAST.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_all_entries_of_their_keys() {
        let entry = |key: u16, row: &[u8]| [&key.to_be_bytes(), row].concat();
        let range = entries_in::<u16>(&(255..=511)).unwrap();
        for (key, inside) in [(254, false), (255, true), (256, true), (511, true), (512, false)] {
            for row in [&[0; 8], &[0xff; 8]] {
                assert_eq!(range.contains(&entry(key, row)), inside, "{key}");
            }
        }
        let all = entries_in::<u16>(&(..)).unwrap();
        assert!(all.contains(&entry(0, &[])) && all.contains(&entry(u16::MAX, &[0xff; 256])));
        let above = entries_in::<u16>(&(Bound::Excluded(u16::MAX), Bound::Unbounded)).unwrap();
        assert!(!above.contains(&entry(u16::MAX, &[0xff; 8])));
        let texts = entries_in::<str>(&("a"..="b")).unwrap();
        let text = |text: &str| encode(text, |bytes| [bytes, &[7; 8]].concat()).unwrap();
        assert!(texts.contains(&text("a")) && texts.contains(&text("b")));
        assert!(texts.contains(&text("ab")) && !texts.contains(&text("b\0")));
        assert!(entries_in::<str>(&("x".repeat(300).as_str()..)).is_err());
    }
}
