//! Handles of tables of bytes, whose names are known at run time.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::table::handle::{HashTable, Table};

/// A table of which ranges can be read: with keys and values of up to so many bytes, which come in
/// the order of the bytes of the keys. Kept as all tables with keys of variable length.
#[must_use]
pub fn ordered(name: &str, key_bytes_max: u32, value_bytes_max: u32) -> Table<[u8], Vec<u8>> {
    let table = Table::ordered(name_for_ever(name));
    table.with_key_bytes(key_bytes_max).with_value_bytes(value_bytes_max)
}

/// A table for reading and writing single rows: with keys and values of up to so many bytes.
#[must_use]
pub fn hash(name: &str, key_bytes_max: u32, value_bytes_max: u32) -> HashTable<[u8], Vec<u8>> {
    let table = HashTable::hash(name_for_ever(name));
    table.with_key_bytes(key_bytes_max).with_value_bytes(value_bytes_max)
}

/// The same name, to be kept by handles, which are constants elsewhere: each name takes its memory
/// once, for as long as the process lives.
pub(crate) fn name_for_ever(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
