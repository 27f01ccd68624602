//! Handles of tables and sequences: constants that name them and know their types.
//!
//! A handle has a 64-bit tag of everything the database must agree on (name, index, lengths),
//! computed by the compiler. A database looks the tag up in a small array
//! ([`crate::table::schema`]), so a handle costs one load for each use, and one handle serves any
//! number of databases.

use std::fmt;
use std::marker::PhantomData;

use engine::TableSchema;
use storage::{IndexKind, TableDefinition};

use crate::data::stored;
use crate::data::tags::{FOLD_START, fold, spread};
use crate::data::value::Data;
use crate::key::bytes::{Key, WORD_BYTES, key_bytes_max};

/// Longest value of a type without a fixed length, if the table does not say otherwise.
const VALUE_BYTES_DEFAULT: u32 = 1024;
/// Row size of values without a fixed length (NV 5.3).
const ROW_BYTES_VARIABLE: u32 = 256;

/// What a handle says of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) index: IndexKind,
    pub(crate) key_bytes_max: u32,
    pub(crate) value_bytes_max: u32,
    /// Bytes of a row; 0: as they are, and `row_bytes_if_new` in a new table.
    row_bytes: u32,
    row_bytes_if_new: u32,
    /// Bytes of a heap that both versions share; 0: each has a half, or as they are.
    shared_heap_bytes: u32,
    /// Versions of the type of the values.
    pub(crate) versions: u8,
    pub(crate) tag: u64,
    pub(crate) types: Types,
}

/// Says of which types keys and values are, for each version of those of values. Which tables are
/// the same, the tag says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types(fn() -> Vec<String>);

impl PartialEq for Types {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Types {}

fn types<K: Key + ?Sized, V: Data>() -> Vec<String> {
    let key = K::describe();
    stored::versions::<V>().into_iter().map(|value| format!("{key} -> {value}")).collect()
}

/// The tag of an index of a table, by that of the table.
pub(crate) const fn tag_of_index(table: u64, name: &str, is_unique: bool) -> u64 {
    let hash = fold(table, name.as_bytes());
    let hash = fold(hash, &[0xfe, is_unique as u8]);
    spread(hash)
}

/// The tag of a table: of its name and of what it is.
pub(crate) const fn tag_of_table(
    name: &str,
    index: IndexKind,
    key_bytes_max: u32,
    value_bytes_max: u32,
    versions: u8,
) -> u64 {
    let hash = fold(FOLD_START, name.as_bytes());
    let hash = fold(hash, &[index as u8]);
    let hash = fold(hash, &key_bytes_max.to_le_bytes());
    let hash = fold(hash, &value_bytes_max.to_le_bytes());
    spread(if versions > 1 { fold(hash, &[versions]) } else { hash })
}

impl Shape {
    const fn tagged(mut self) -> Self {
        let Self { name, index, key_bytes_max, value_bytes_max, versions, .. } = self;
        self.tag = tag_of_table(name, index, key_bytes_max, value_bytes_max, versions);
        self
    }

    /// What the engine is opened with.
    pub(crate) fn schema(&self) -> TableSchema {
        let definition = TableDefinition {
            name: self.name.to_string(),
            index: self.index,
            key_bytes_max: self.key_bytes_max,
            value_bytes_max: self.value_bytes_max,
            row_bytes: self.row_bytes,
            shared_heap_bytes: self.shared_heap_bytes,
        };
        let Self { row_bytes_if_new, types: Types(types), .. } = *self;
        TableSchema { definition, row_bytes_if_new, types: types() }
    }

    /// Whether every key has 8 bytes.
    pub(crate) fn has_word_keys(&self) -> bool {
        self.key_bytes_max as usize == WORD_BYTES
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, key_bytes_max: key, value_bytes_max: value, .. } = self;
        match self.index {
            IndexKind::Hash => write!(f, "table {name:?} (hash, "),
            IndexKind::Ordered => write!(f, "table {name:?} (ordered, "),
            IndexKind::Sequence => return write!(f, "sequence {name:?}"),
        }?;
        write!(f, "keys of up to {key} bytes, values of up to {value})")
    }
}

/// Names a table of rows with keys `K` and values `V`.
///
/// A handle is a constant; it belongs to no database, and is registered with each one that has the
/// table ([`Options::table`](crate::Options::table)).
///
/// ```
/// use nvcaracal::{HashTable, Table};
///
/// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
/// const NAMES: Table<str, String> =
///     Table::ordered("names").with_key_bytes(100).with_value_bytes(4000);
/// const LINES: Table<(u32, u32), [u64; 4]> = Table::ordered("lines");
/// ```
///
/// | limit | value |
/// |---|---|
/// | name | 1 to 48 bytes |
/// | key | 1 to 256 bytes; 64 by default for text and bytes |
/// | value | 0 to 262,128 bytes; 1,024 by default for types without a fixed length |
/// | tables of one database, sequences included | 128 |
pub struct Table<K: ?Sized, V, O = Ordered> {
    pub(crate) shape: Shape,
    types: PhantomData<Marks<K, V, O>>,
}

/// The types of a table, as something that is only passed around.
type Marks<K, V, O> = fn(&K) -> (V, O);

/// A table of which single rows are read and written; made by [`Table::hash`].
pub type HashTable<K, V> = Table<K, V, Hashed>;

/// Marks tables that have their rows in the order of their keys.
#[derive(Debug)]
pub enum Ordered {}

/// Marks tables that have their rows in no order.
#[derive(Debug)]
pub enum Hashed {}

/// Tables of which ranges can be read. Of hash tables none can:
///
/// ```compile_fail,E0277
/// # use nvcaracal::{HashTable, Snapshot, Table};
/// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
///
/// fn report(snapshot: &Snapshot) {
///     let rows = snapshot.range(ACCOUNTS, ..); // a hash table has no ranges
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a hash table has no ranges: its rows are in no order",
    label = "this table was made with `Table::hash`",
    note = "make it with `Table::ordered` to read ranges of it; all rows of a hash table are in \
            `Snapshot::all`"
)]
pub trait Scannable: sealed::Sealed {}

impl Scannable for Ordered {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Ordered {}
}

impl<K: Key + ?Sized, V: Data> HashTable<K, V> {
    /// A table for reading and writing single rows.
    #[must_use]
    pub const fn hash(name: &'static str) -> Self {
        Self::new(name, IndexKind::Hash)
    }
}

impl<K: Key + ?Sized, V: Data> Table<K, V> {
    /// A table of which ranges can be read in the order of its keys, too.
    #[must_use]
    pub const fn ordered(name: &'static str) -> Self {
        Self::new(name, IndexKind::Ordered)
    }
}

impl<K: Key + ?Sized, V: Data, O> Table<K, V, O> {
    const fn new(name: &'static str, index: IndexKind) -> Self {
        let (value_bytes_max, row_bytes_if_new) = match stored::bytes_max::<V>() {
            Some(bytes) => (bytes as u32, 0),
            None => (VALUE_BYTES_DEFAULT, ROW_BYTES_VARIABLE),
        };
        let shape = Shape {
            name,
            index,
            key_bytes_max: key_bytes_max::<K>(),
            value_bytes_max,
            row_bytes: 0,
            row_bytes_if_new,
            shared_heap_bytes: 0,
            versions: stored::version::<V>() + 1,
            tag: 0,
            types: Types(types::<K, V>),
        };
        Self { shape: shape.tagged(), types: PhantomData }
    }

    /// Longest key, for keys of text or bytes. Fixed once the table was created.
    ///
    /// # Panics
    /// While compiling, if all keys of this type have the same length.
    #[must_use]
    pub const fn with_key_bytes(mut self, most: u32) -> Self {
        assert!(K::BYTES.is_none(), "all keys of this type have the same length");
        // Exactly 8 would mean to the engine that no key is shorter.
        self.shape.key_bytes_max = if most as usize == WORD_BYTES { most + 1 } else { most };
        if self.shape.row_bytes_if_new != 0 {
            self.shape.row_bytes_if_new = (most + ROW_BYTES_VARIABLE).next_multiple_of(64);
        }
        self.shape = self.shape.tagged();
        self
    }

    /// Longest value, for values without a fixed length. May grow from one open to another. A value
    /// of a type with [versions](Data::BEFORE) takes up to two bytes more than its own.
    ///
    /// # Panics
    /// While compiling, if all values of this type have the same length.
    #[must_use]
    pub const fn with_value_bytes(mut self, most: u32) -> Self {
        let are_of_one_length = stored::bytes_max::<V>().is_some();
        assert!(!are_of_one_length, "all values of this type have the same length");
        self.shape.value_bytes_max = most;
        self.shape = self.shape.tagged();
        self
    }

    /// Bytes of a persistent row, a multiple of 64: 64 for its header, the rest for two inline
    /// versions of its value; values that do not fit are stored elsewhere and cost one more access.
    /// In rows of 64 bytes the header has room for both where keys and values have at most 8 bytes.
    /// The default keeps values of a fixed length of up to 2,048 bytes inline, and is 256
    /// otherwise, and leaves an existing table as it is; given here, it must be what an existing
    /// table has.
    #[must_use]
    pub const fn with_row_bytes(mut self, bytes: u32) -> Self {
        self.shape.row_bytes = bytes;
        self
    }

    /// Bytes of an inline heap that both versions of a row share, a multiple of 8 and at most what
    /// the row has behind its header: a value is inline if it fits beside the version before it.
    /// So a row holds one long and one short version, where two halves would have room for
    /// short ones only; but where all values fit into halves, these are faster. Without
    /// [`with_row_bytes`](Self::with_row_bytes) the rows of a new table are the smallest with room
    /// for it. By default each version has a half; an existing table stays as it is.
    ///
    /// ```
    /// use nvcaracal::Table;
    ///
    /// const NOTES: Table<u64, String> =
    ///     Table::ordered("notes").with_row_bytes(256).with_shared_heap_bytes(168);
    /// ```
    #[must_use]
    pub const fn with_shared_heap_bytes(mut self, bytes: u32) -> Self {
        self.shape.shared_heap_bytes = bytes;
        self
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.shape.name
    }
}

impl<K: ?Sized, V, O> Clone for Table<K, V, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized, V, O> Copy for Table<K, V, O> {}

impl<K: ?Sized, V, O> fmt::Debug for Table<K, V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.fmt(f)
    }
}

/// Names a sequence, or a family of them: numbers 0, 1, 2... in the order of the transactions that
/// allocate. None is given twice. One is given to no transaction where a transaction gives up,
/// fails or is deferred after it drew, so that numbers have gaps: where there must be none, keep
/// the next one in a row.
///
/// ```
/// use nvcaracal::Sequence;
///
/// const ORDER_IDS: Sequence = Sequence::new("order_ids");
/// let of_district_7 = ORDER_IDS.at(7);
/// assert_ne!(of_district_7, ORDER_IDS);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    pub(crate) shape: Shape,
    pub(crate) key: u64,
}

impl Sequence {
    /// A sequence with a name of 1 to 48 bytes, different from all tables' names.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let shape = Shape {
            name,
            index: IndexKind::Sequence,
            key_bytes_max: 8,
            value_bytes_max: 8,
            row_bytes: 0,
            row_bytes_if_new: 0,
            shared_heap_bytes: 0,
            versions: 1,
            tag: 0,
            types: Types(|| vec!["sequence".to_string()]),
        };
        Self { shape: shape.tagged(), key: 0 }
    }

    /// Another sequence of the same family, which has 2^64 of them. `Sequence::new` names number 0.
    #[must_use]
    pub const fn at(self, key: u64) -> Self {
        Self { key, ..self }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.shape.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_differ_in_their_tags_if_their_tables_differ() {
        let hash: HashTable<u64, u64> = Table::hash("t");
        let shapes = [
            hash.shape,
            HashTable::<u64, u64>::hash("u").shape,
            Table::<u64, u64>::ordered("t").shape,
            HashTable::<u64, u32>::hash("t").shape,
            HashTable::<str, u64>::hash("t").shape,
            HashTable::<str, u64>::hash("t").with_key_bytes(20).shape,
            Sequence::new("t").shape,
        ];
        for (i, a) in shapes.iter().enumerate() {
            for b in &shapes[i + 1..] {
                assert_ne!(a.tag, b.tag, "{a} and {b}");
            }
        }
        assert_eq!(
            hash.shape.tag,
            HashTable::<i64, [u8; 8]>::hash("t").with_row_bytes(512).shape.tag
        );
    }

    #[test]
    fn text_keys_never_look_like_words_to_the_engine() {
        let table: HashTable<str, u64> = Table::hash("t").with_key_bytes(8);
        assert!(!table.shape.has_word_keys());
    }
}
