//! One number for a whole state, so that engines, runs and recoveries can be compared.
//!
//! The digest is a sum over rows, so it does not depend on the order in which they are visited. A
//! sequence that was drawn from counts as a row of its table, its next number as 8 little-endian
//! bytes; one that was never drawn from does not count, because an engine need not know that it
//! exists.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::api::{TableId, TableSpec, View};

/// Bytes of a value that are hashed together.
const BLOCK_BYTES: usize = 64;

/// The hash of one row: the wrapping sum over the 64-byte blocks of its value, of which an empty
/// value has one. Table, key and the block's number are in the seed, so that two rows which swap
/// their values change the sum, and so does a row that swaps two blocks.
#[must_use]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    let seed = xxh3_64_with_seed(key, u64::from(table) + 1);
    (0..value.len().div_ceil(BLOCK_BYTES).max(1)).fold(0, |sum, number| {
        let from = number * BLOCK_BYTES;
        let block = &value[from..value.len().min(from + BLOCK_BYTES)];
        sum.wrapping_add(xxh3_128_with_seed(block, seed.wrapping_add(number as u64)))
    })
}

/// The wrapping sum of [`row_hash`] over all rows of all tables.
#[must_use]
pub fn state_digest(tables: &[TableSpec], view: &dyn View) -> u128 {
    let mut sum = 0_u128;
    for table in 0..tables.len() as u16 {
        view.for_each(TableId(table), &mut |key, value| {
            sum = sum.wrapping_add(row_hash(table, key, value));
        });
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_key_and_value_all_count() {
        let hash = row_hash(1, b"key", b"value");
        assert_ne!(hash, row_hash(2, b"key", b"value"));
        assert_ne!(hash, row_hash(1, b"kez", b"value"));
        assert_ne!(hash, row_hash(1, b"key", b"valuf"));
        assert_eq!(hash, row_hash(1, b"key", b"value"));
    }

    #[test]
    fn swapped_values_do_not_cancel() {
        let straight = row_hash(0, b"a", b"1").wrapping_add(row_hash(0, b"b", b"2"));
        let swapped = row_hash(0, b"a", b"2").wrapping_add(row_hash(0, b"b", b"1"));
        assert_ne!(straight, swapped);
    }
}
