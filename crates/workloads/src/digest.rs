//! One number for a whole state, so that engines, runs and recoveries can be compared.
//!
//! The digest is a sum over rows, so it does not depend on the order in which they are visited. A
//! sequence that was drawn from counts as a row of its table, its next number as 8 little-endian
//! bytes; one that was never drawn from does not count, because an engine need not know that it
//! exists.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::api::{TableId, TableSpec, View};

/// Words of a block of 64 bytes.
const WORDS: usize = 8;

/// Multipliers of the words of a block: digits of pi.
const FACTORS: [u64; WORDS] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
];

/// Odd multipliers that spread bits: more digits of pi, made odd.
const SPREAD: [u64; 3] = [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ad, 0x2ffd_72db_d01a_dfb7];

/// The hash of one row modulo 2^128, as it is defined, without any of the shortcuts that an engine
/// may take: a number for table, key and length, and for each word of the value, padded with zeros,
/// the word times a number for its place in its block of 64 bytes, times a number for table, key
/// and block.
#[must_use]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    let table = u64::from(table) + 1;
    let seed = match key.try_into() {
        Ok(key) => fold(u64::from_le_bytes(key) ^ SPREAD[0], SPREAD[1].wrapping_mul(2 * table + 1)),
        Err(_) => xxh3_64_with_seed(key, table),
    };
    let length = fold(seed ^ SPREAD[2], SPREAD[1].wrapping_mul(2 * value.len() as u64 + 1));
    let low = length.wrapping_mul(SPREAD[0]) ^ seed;
    let mut sum = u128::from(length) << 64 | u128::from(low);
    for (number, bytes) in value.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let block = seed.wrapping_add(SPREAD[2].wrapping_mul((number / WORDS) as u64));
        let spread = u128::from(block) * u128::from(SPREAD[0]);
        let of_block = (spread ^ u128::from(block.rotate_left(32)) << 64) | 1;
        let product = u128::from(u64::from_le_bytes(word)) * u128::from(FACTORS[number % WORDS]);
        sum = sum.wrapping_add(product.wrapping_mul(of_block));
    }
    sum
}

/// Both halves of a product.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
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
