//! One number for a whole state, so that engines, runs and recoveries can be compared.
//!
//! The digest is a sum over rows, so it does not depend on the order in which they are visited. A
//! sequence that was allocated from counts as a row of its table, its next number as 8
//! little-endian bytes; one that was never allocated from does not count, because an engine need
//! not know that it exists.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::api::{TableId, TableSpec, View};

/// Words of a block of 1024 bytes.
const WORDS: usize = 128;

/// How far the keys of the second sum are from those of the first.
const SHIFT: usize = 4;

/// Odd multipliers that spread bits: more digits of pi, made odd.
const SPREAD: [u64; 3] = [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ad, 0x2ffd_72db_d01a_dfb7];

/// The hash of one row as it is defined, without any of the shortcuts that an engine may take: two
/// numbers modulo 2^64. Each is the sum of a number for table, key and length, and for each block
/// of the value of a sum of products, one for each word of 8 bytes, times a number for table, key
/// and block. The product is that of the halves of the word, to which those of a key for its place
/// in the block are added modulo 2^32, less the same product of zero. Words are padded with zeros.
#[must_use]
pub fn row_hash(table: TableId, key: &[u8], value: &[u8]) -> u128 {
    let table = u64::from(table.0) + 1;
    let seed = match key.try_into() {
        Ok(key) => fold(u64::from_le_bytes(key) ^ SPREAD[0], SPREAD[1].wrapping_mul(2 * table + 1)),
        Err(_) => xxh3_64_with_seed(key, table),
    };
    let length = fold(seed ^ SPREAD[2], SPREAD[1].wrapping_mul(2 * value.len() as u64 + 1));
    let mut sums = [length.wrapping_mul(SPREAD[0]) ^ seed, length];
    for (number, bytes) in value.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let block = seed.wrapping_add(SPREAD[2].wrapping_mul((number / WORDS) as u64));
        let spread = u128::from(block) * u128::from(SPREAD[0]);
        let factors = [spread as u64 | 1, (spread >> 64) as u64 ^ block.rotate_left(32) | 1];
        for (sum, (shift, factor)) in sums.iter_mut().zip([0, SHIFT].into_iter().zip(factors)) {
            let key = key_of_word((number % WORDS + shift) as u64);
            let of_word = product(u64::from_le_bytes(word), key).wrapping_sub(product(0, key));
            *sum = sum.wrapping_add(of_word.wrapping_mul(factor));
        }
    }
    u128::from(sums[0]) | u128::from(sums[1]) << 64
}

/// The halves of a word and of its key, added and multiplied.
fn product(word: u64, key: u64) -> u64 {
    let low = (word as u32).wrapping_add(key as u32);
    let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
    u64::from(low) * u64::from(high)
}

/// The key of a word in its block: SplitMix64.
fn key_of_word(number: u64) -> u64 {
    let key = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

/// Both halves of a product.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The sums of [`row_hash`] over all rows of all tables.
#[must_use]
pub fn state_digest(tables: &[TableSpec], view: &dyn View) -> u128 {
    let mut sums = [0_u64; 2];
    for table in (0..tables.len() as u16).map(TableId) {
        view.for_each(table, &mut |key, value| {
            let hash = row_hash(table, key, value);
            sums[0] = sums[0].wrapping_add(hash as u64);
            sums[1] = sums[1].wrapping_add((hash >> 64) as u64);
        });
    }
    u128::from(sums[0]) | u128::from(sums[1]) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_key_and_value_all_count() {
        let hash = row_hash(TableId(1), b"key", b"value");
        assert_ne!(hash, row_hash(TableId(2), b"key", b"value"));
        assert_ne!(hash, row_hash(TableId(1), b"kez", b"value"));
        assert_ne!(hash, row_hash(TableId(1), b"key", b"valuf"));
        assert_eq!(hash, row_hash(TableId(1), b"key", b"value"));
    }

    #[test]
    fn swapped_values_do_not_cancel() {
        let straight =
            row_hash(TableId(0), b"a", b"1").wrapping_add(row_hash(TableId(0), b"b", b"2"));
        let swapped =
            row_hash(TableId(0), b"a", b"2").wrapping_add(row_hash(TableId(0), b"b", b"1"));
        assert_ne!(straight, swapped);
    }
}
