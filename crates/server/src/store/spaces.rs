//! The library's tables, in which all relations are.

use nvcaracal::{Options, Sequence, Table, raw};
use sql::ir::{ObjectId, Space};

/// What the names of all tables and sequences of a server's store begin with.
pub const TABLE_PREFIX: &str = "sql: ";

/// A table of bytes.
pub(super) type Bytes = Table<[u8], Vec<u8>>;

/// Rows and index entries are no longer than this.
const VALUE_BYTES_MAX: u32 = 262_128;
const KEY_BYTES_MAX: u32 = 256;

/// All spaces, by their numbers in calls.
pub(super) const ALL: [Space; 5] =
    [Space::Short, Space::Key64, Space::Row256, Space::Row1k, Space::Catalog];

/// All of it is read when a store is opened.
const CATALOG: &str = "sql: catalog";

const NUMBERS: Sequence = Sequence::new("sql: sequences");

/// The tables of the spaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spaces([Bytes; 5]);

impl Spaces {
    pub(super) fn new() -> Spaces {
        Spaces([
            // An entry of a unique index has a primary key as its value.
            raw::ordered("sql: short", 24, KEY_BYTES_MAX),
            raw::ordered("sql: key64", 64, VALUE_BYTES_MAX),
            raw::ordered("sql: row256", KEY_BYTES_MAX, VALUE_BYTES_MAX),
            raw::ordered("sql: row1k", KEY_BYTES_MAX, VALUE_BYTES_MAX).with_row_bytes(2048),
            raw::ordered(CATALOG, 8, VALUE_BYTES_MAX),
        ])
    }

    pub(super) fn table(&self, space: Space) -> Bytes {
        self.0[space as usize]
    }

    /// Adds the tables, and the sequences.
    pub(super) fn register(&self, options: Options) -> Options {
        let options = options.sequence(NUMBERS).read_at_open(CATALOG);
        self.0.iter().fold(options, |options, table| options.table(*table))
    }
}

/// The library's sequence that counts for one of SQL.
pub(super) fn sequence(id: ObjectId) -> Sequence {
    NUMBERS.at(u64::from(id.number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_space_has_its_table() {
        for (at, space) in ALL.into_iter().enumerate() {
            assert_eq!(space as usize, at);
        }
    }

    #[test]
    fn all_names_begin_with_the_prefix() {
        let spaces = Spaces::new();
        let tables = ALL.map(|space| spaces.table(space).name());
        for name in tables.into_iter().chain([CATALOG, NUMBERS.name()]) {
            assert!(name.starts_with(TABLE_PREFIX), "{name}");
        }
    }
}
