//! The tables of a workload as the library has them.

use nvcaracal::{HashTable, Sequence, Table};
use workloads::TableId;

pub(super) type Bytes = Vec<u8>;

/// A table of a workload. Keys that always have 8 bytes are numbers to the library.
#[derive(Debug, Clone, Copy)]
pub(super) enum Handle {
    HashWords(HashTable<u64, Bytes>),
    Hash(HashTable<[u8], Bytes>),
    OrderedWords(Table<u64, Bytes>),
    Ordered(Table<[u8], Bytes>),
    Sequence(Sequence),
}

/// All tables of a workload: the context of its procedures.
pub(super) struct Handles(pub(super) Vec<Handle>);

/// Why a table has rows and a sequence has numbers.
pub(super) const KINDS: &str = "workloads allocate sequence numbers, and from nothing else";

impl Handles {
    pub(super) fn sequence(&self, table: TableId, key: &[u8]) -> Sequence {
        match self.0[usize::from(table.0)] {
            Handle::Sequence(sequence) => sequence.at(word(key)),
            _ => panic!("{KINDS}"),
        }
    }
}

pub(super) fn word(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("all keys of this table have 8 bytes"))
}

/// Does the same with a table and a key, whatever types they have.
macro_rules! with_row {
    ($handles:expr, $id:expr, $key:expr, |$table:ident, $typed:ident| $do:expr) => {
        match &$handles.0[usize::from($id.0)] {
            Handle::HashWords($table) => {
                let ($table, $typed) = (*$table, word($key));
                $do
            }
            Handle::Hash($table) => {
                let ($table, $typed) = (*$table, $key);
                $do
            }
            Handle::OrderedWords($table) => {
                let ($table, $typed) = (*$table, word($key));
                $do
            }
            Handle::Ordered($table) => {
                let ($table, $typed) = (*$table, $key);
                $do
            }
            Handle::Sequence(_) => panic!("{KINDS}"),
        }
    };
}

/// Does the same with an ordered table and a range of its keys; `$bytes` turns a key into bytes.
macro_rules! with_range {
    ($handles:expr, $id:expr, $low:expr, $high:expr, |$table:ident, $range:ident, $bytes:ident|
        $do:expr) => {
        match $handles.0[usize::from($id.0)] {
            Handle::OrderedWords($table) => {
                let ($range, $bytes) = (word($low)..word($high), |key: u64| key.to_be_bytes());
                $do
            }
            Handle::Ordered($table) => {
                let $range = (Included($low), Excluded($high));
                let $bytes = |key: Bytes| key;
                $do
            }
            _ => panic!("only ordered tables are scanned"),
        }
    };
}

pub(super) use {with_range, with_row};
