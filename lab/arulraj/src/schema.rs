//! Tables, keys and tuples, and the inlined form in which files hold them.

use crate::{Error, Result};

/// Words of the longest key.
pub(crate) const KEY_WORDS_MAX: usize = 6;
/// A field of at most this many bytes lies in the tuple; a longer one in a slot of its own (the
/// paper's 3.1).
pub(crate) const INLINE_BYTES: u32 = 8;
/// Columns of a table: each has a bit of a word, beside the kind of the entry.
const COLUMNS_MAX: usize = 48;

/// A key: big-endian words, so that the order of words is that of bytes. What a table's keys do not
/// use is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(pub(crate) [u64; KEY_WORDS_MAX]);

impl Key {
    /// Before every other key.
    pub const MIN: Self = Self([0; KEY_WORDS_MAX]);

    /// The key of a table whose keys have 8 bytes.
    #[must_use]
    pub fn of_u64(number: u64) -> Self {
        let mut words = [0; KEY_WORDS_MAX];
        words[0] = number;
        Self(words)
    }

    /// The key of these bytes, in a table whose longest key has `most`: with their number behind
    /// them, so that no two are equal, unless all keys have 8.
    ///
    /// # Errors
    /// [`Error::Limit`] for a longer key.
    pub fn of_bytes(bytes: &[u8], most: u32) -> Result<Self> {
        let most = most as usize;
        if bytes.len() > most || most == 8 && bytes.len() != 8 {
            return Err(Error::Limit(format!("a key of {} bytes, {most} fit", bytes.len())));
        }
        let mut padded = [0; KEY_WORDS_MAX * 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        if most != 8 {
            padded[most] = bytes.len() as u8;
        }
        let mut words = [0; KEY_WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(padded.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Ok(Self(words))
    }

    /// The bytes again.
    #[must_use]
    pub fn to_bytes(&self, most: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_be_bytes()).collect();
        let len = if most == 8 { 8 } else { usize::from(bytes[most as usize]) };
        bytes.truncate(len);
        bytes
    }

    pub(crate) fn of_words(words: &[u64]) -> Self {
        let mut key = Self::MIN;
        key.0[..words.len()].copy_from_slice(words);
        key
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Longest key in bytes; with 8 every key has 8.
    pub key_bytes_max: u32,
    /// Longest value of each column. A column of at most 8 bytes always has exactly so many.
    pub columns: Vec<u32>,
    /// Columns with a secondary index.
    pub indexes: Vec<usize>,
}

impl Table {
    pub(crate) fn key_words(&self) -> usize {
        let bytes = if self.key_bytes_max == 8 { 8 } else { self.key_bytes_max as usize + 1 };
        bytes.div_ceil(8)
    }

    pub(crate) fn is_inline(&self, column: usize) -> bool {
        self.columns[column] <= INLINE_BYTES
    }

    fn validate(&self) -> Result<()> {
        if self.key_words() > KEY_WORDS_MAX {
            return Err(Error::Limit(format!("keys of {} bytes", self.key_bytes_max)));
        }
        if self.columns.len() > COLUMNS_MAX {
            return Err(Error::Limit(format!("{} columns", self.columns.len())));
        }
        Ok(())
    }
}

/// All tables of a store. Behind those of the caller come the secondary indexes: each is a table
/// without columns, whose keys are a column's value and the primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub(crate) tables: Vec<Table>,
    pub(crate) indexes: Vec<Index>,
}

/// A secondary index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) of_table: usize,
    pub(crate) column: usize,
    /// The table of its entries.
    pub(crate) table: usize,
}

impl Schema {
    /// A schema of these tables.
    ///
    /// # Errors
    /// [`Error::Limit`] for tables that do not fit.
    pub fn new(mut tables: Vec<Table>) -> Result<Self> {
        let mut indexes = Vec::new();
        for of_table in 0..tables.len() {
            for column in tables[of_table].indexes.clone() {
                let key_bytes_max = tables[of_table].columns[column] + 1 + PRIMARY_BYTES;
                indexes.push(Index { of_table, column, table: tables.len() });
                tables.push(Table { key_bytes_max, columns: Vec::new(), indexes: Vec::new() });
            }
        }
        tables.iter().try_for_each(Table::validate)?;
        for index in &indexes {
            if tables[index.of_table].key_bytes_max != PRIMARY_BYTES {
                return Err(Error::Limit("an indexed table has keys of 8 bytes".into()));
            }
        }
        Ok(Self { tables, indexes })
    }
}

/// Bytes of the primary key in a key of a secondary index.
const PRIMARY_BYTES: u32 = 8;

impl Index {
    /// The key of the entry of a tuple: the value, padded, its length, the primary key.
    pub(crate) fn key(&self, schema: &Schema, value: &[u8], primary: &Key) -> Key {
        let most = schema.tables[self.of_table].columns[self.column] as usize;
        let mut bytes = vec![0; most + 1];
        bytes[..value.len()].copy_from_slice(value);
        bytes[most] = value.len() as u8;
        bytes.extend_from_slice(&primary.0[0].to_be_bytes());
        Key::of_bytes(&bytes, self.key_bytes(schema)).expect("the schema made the table for it")
    }

    /// The primary key in such a key.
    pub(crate) fn primary(&self, schema: &Schema, key: &Key) -> Key {
        let bytes = key.to_bytes(self.key_bytes(schema));
        Key::of_u64(u64::from_be_bytes(*bytes.last_chunk().expect("a primary key")))
    }

    fn key_bytes(&self, schema: &Schema) -> u32 {
        schema.tables[self.table].key_bytes_max
    }
}

/// What an entry says of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All of it.
    Full = 1,
    /// Some fields; older entries have the others.
    Partial = 2,
    /// There is none.
    Tombstone = 3,
}

impl Kind {
    pub(crate) fn of(number: u64) -> Result<Self> {
        match number {
            1 => Ok(Self::Full),
            2 => Ok(Self::Partial),
            3 => Ok(Self::Tombstone),
            _ => Err(Error::Corrupt(format!("an entry of kind {number}"))),
        }
    }
}

/// An entry for a key: a tuple, or what changed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// A value for each column, or none if the column is not in the entry.
    pub(crate) columns: Vec<Option<Vec<u8>>>,
}

/// The values of a tuple's columns.
pub type Row = Vec<Vec<u8>>;

/// New values of some columns.
pub type Changes<'a> = &'a [(usize, &'a [u8])];

impl Entry {
    pub(crate) fn full(row: &[Vec<u8>]) -> Self {
        Self { kind: Kind::Full, columns: row.iter().cloned().map(Some).collect() }
    }

    pub(crate) fn partial(columns: usize, changes: Changes<'_>) -> Self {
        let mut entry = Self { kind: Kind::Partial, columns: vec![None; columns] };
        for (column, value) in changes {
            entry.columns[*column] = Some(value.to_vec());
        }
        entry
    }

    pub(crate) fn tombstone(columns: usize) -> Self {
        Self { kind: Kind::Tombstone, columns: vec![None; columns] }
    }

    /// The values that the entry has.
    pub(crate) fn changes(&self) -> Vec<(usize, &[u8])> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(column, value)| Some((column, value.as_deref()?))).collect()
    }

    /// Puts a newer entry on top of this one.
    pub(crate) fn put_over(&mut self, newer: Self) {
        match newer.kind {
            Kind::Full | Kind::Tombstone => *self = newer,
            Kind::Partial => {
                for (mine, theirs) in self.columns.iter_mut().zip(newer.columns) {
                    *mine = theirs.or(mine.take());
                }
            }
        }
    }

    /// The tuple, if the entry is one.
    pub(crate) fn into_row(self) -> Option<Row> {
        match self.kind {
            Kind::Full => Some(self.columns.into_iter().map(Option::unwrap_or_default).collect()),
            Kind::Partial | Kind::Tombstone => None,
        }
    }

    /// The head word: kind, and a bit for each column that is there.
    pub(crate) fn head(&self) -> u64 {
        let bits = self.columns.iter().enumerate();
        let bits = bits.fold(0, |bits, (i, value)| bits | u64::from(value.is_some()) << i);
        bits << 8 | self.kind as u64
    }

    /// Appends the inlined form.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.head().to_le_bytes());
        for value in self.columns.iter().flatten() {
            into.extend_from_slice(&(value.len() as u32).to_le_bytes());
            into.extend_from_slice(value);
        }
    }

    /// Reads the inlined form, and moves `bytes` behind it.
    pub(crate) fn decode(columns: usize, bytes: &mut &[u8]) -> Result<Self> {
        let head = take_u64(bytes)?;
        let kind = Kind::of(head & 0xff)?;
        let mut entry = Self { kind, columns: vec![None; columns] };
        for column in 0..columns {
            if head >> (8 + column) & 1 == 1 {
                let len = u32::from_le_bytes(*take(bytes, 4)?.first_chunk().expect("4 bytes"));
                entry.columns[column] = Some(take(bytes, len as usize)?.to_vec());
            }
        }
        Ok(entry)
    }
}

/// Takes bytes from the front.
pub(crate) fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Result<&'b [u8]> {
    let (front, rest) = bytes
        .split_at_checked(len)
        .ok_or_else(|| Error::Corrupt(format!("{len} bytes wanted, {} there", bytes.len())))?;
    *bytes = rest;
    Ok(front)
}

/// Takes a word from the front.
pub(crate) fn take_u64(bytes: &mut &[u8]) -> Result<u64> {
    Ok(u64::from_le_bytes(*take(bytes, 8)?.first_chunk().expect("8 bytes")))
}

/// Appends a key.
pub(crate) fn encode_key(table: &Table, key: &Key, into: &mut Vec<u8>) {
    key.0[..table.key_words()].iter().for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
}

/// Takes a key from the front.
pub(crate) fn decode_key(table: &Table, bytes: &mut &[u8]) -> Result<Key> {
    let mut key = Key::MIN;
    for word in &mut key.0[..table.key_words()] {
        *word = take_u64(bytes)?;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_bytes_and_come_back() {
        let texts: [&[u8]; 5] = [b"", b"a", b"a\0", b"ab", b"b"];
        let keys: Vec<Key> = texts.iter().map(|t| Key::of_bytes(t, 20).unwrap()).collect();
        assert!(keys.is_sorted());
        for (text, key) in texts.iter().zip(&keys) {
            assert_eq!(key.to_bytes(20), *text);
        }
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(Key::of_bytes(b"1234567", 8).is_err());
    }

    #[test]
    fn entries_come_back_and_lie_on_each_other() {
        let mut tuple = Entry::full(&[b"one".to_vec(), b"two".to_vec()]);
        let change = Entry::partial(2, &[(1, b"three")]);
        let mut bytes = Vec::new();
        tuple.encode(&mut bytes);
        change.encode(&mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(Entry::decode(2, &mut rest).unwrap(), tuple);
        assert_eq!(Entry::decode(2, &mut rest).unwrap(), change);
        assert!(rest.is_empty() && Entry::decode(2, &mut &bytes[..9]).is_err());
        tuple.put_over(change);
        assert_eq!(tuple.clone().into_row().unwrap(), [b"one".to_vec(), b"three".to_vec()]);
        tuple.put_over(Entry::tombstone(2));
        assert_eq!(tuple.into_row(), None);
    }
}
