//! The state hash: a sum over the blocks of all live rows, so that it can be kept up by difference
//! and does not depend on where a row lies or who wrote it (O-48).
//!
//! It is kept up for every final write, of which most change a few words. So the hash is one that
//! can follow single words: a multilinear one (Carter and Wegman, "Universal Classes of Hash
//! Functions", 1979; Lemire and Kaser, "Strongly Universal String Hashing is Fast", 2014), the sum
//! of each word times a number that depends on its place. Were these numbers random, two states
//! would collide with a probability of 2^-64 at most; here they follow from table, key and place.
//! It tells mistakes, not attacks.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::line::{LINE, padded_line};
use crate::new_value::NewValue;

/// Bytes of a value that are hashed together: an update costs what it changes, not what the row
/// holds.
const BLOCK_BYTES: usize = LINE;

/// Words of a block.
const WORDS: usize = BLOCK_BYTES / 8;

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

/// Hash of one row, modulo 2^128: a number for its table, key and length, and for each block of its
/// value the sum of its words, each times that of its place, times a number for table, key and
/// block. The state hash is the sum of these.
#[inline]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    let seed = row_seed(table, key);
    blocks_hash(seed, value).wrapping_add(length_hash(seed, value.len()))
}

/// What a new value changes in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowChange {
    /// What the row's hash gains: [`row_hash`] of the new value less that of the old.
    pub hash: u128,
    /// A bit for each of the first 63 blocks of 64 bytes that differ, and one for all further ones.
    /// All are set if the values differ in length.
    pub blocks: u64,
}

/// Compares the values of a row, block by block, where they may differ. A new value of another
/// length must lie in one piece.
#[inline]
pub fn row_change(table: u16, key: &[u8], old: &[u8], new: &NewValue<'_>) -> RowChange {
    let seed = row_seed(table, key);
    if old.len() != new.len() {
        let new =
            new.in_one_piece().expect("only lines of a value of the same length are replaced");
        let [gain, loss] = [new, old]
            .map(|value| blocks_hash(seed, value).wrapping_add(length_hash(seed, value.len())));
        return RowChange { hash: gain.wrapping_sub(loss), blocks: u64::MAX };
    }
    let mut change = RowChange { hash: 0, blocks: 0 };
    match new.in_one_piece() {
        // The common case; it is what `against` says, too.
        Some(new) => change.add_lines(seed, 0, old, new),
        None => new.against(old).for_each(|(at, old, new)| change.add_lines(seed, at, old, new)),
    }
    change
}

/// The blocks in which the values of a row differ, as [`row_change`] finds them, where nobody needs
/// the hash.
#[inline]
pub fn changed_blocks(old: &[u8], new: &NewValue<'_>) -> u64 {
    if old.len() != new.len() {
        return u64::MAX;
    }
    let bit = |index: usize, differs: bool| u64::from(differs) << index.min(63);
    new.against(old).fold(0, |blocks, (at, old, new)| {
        let pairs = old.chunks(BLOCK_BYTES).zip(new.chunks(BLOCK_BYTES)).enumerate();
        pairs.fold(blocks, |blocks, (index, (before, after))| {
            blocks | bit(at / BLOCK_BYTES + index, before != after)
        })
    })
}

impl RowChange {
    /// Adds what lines gain that begin at an offset.
    #[inline(always)]
    fn add_lines(&mut self, seed: u64, at: usize, old: &[u8], new: &[u8]) {
        let (old_whole, old_rest) = old.as_chunks::<BLOCK_BYTES>();
        let (new_whole, new_rest) = new.as_chunks::<BLOCK_BYTES>();
        let first = at / BLOCK_BYTES;
        for (index, (before, after)) in old_whole.iter().zip(new_whole).enumerate() {
            if before != after {
                self.add_block(seed, first + index, before, after);
            }
        }
        self.add_block(seed, first + new_whole.len(), old_rest, new_rest);
    }

    /// Adds what a block gains, or the bytes of an incomplete one.
    #[inline(always)]
    fn add_block(&mut self, seed: u64, index: usize, old: &[u8], new: &[u8]) {
        let (mut sum, mut differs) = (0_u128, false);
        let mut add = |place: usize, old: u64, new: u64| {
            if old != new {
                let product = |word: u64| u128::from(word) * u128::from(FACTORS[place]);
                sum = sum.wrapping_add(product(new)).wrapping_sub(product(old));
                differs = true;
            }
        };
        let ((old, old_rest), (new, new_rest)) = (old.as_chunks::<8>(), new.as_chunks::<8>());
        for (place, (&old, &new)) in old.iter().zip(new).enumerate().take(WORDS) {
            add(place, u64::from_le_bytes(old), u64::from_le_bytes(new));
        }
        if !new_rest.is_empty() {
            add(new.len(), padded_word(old_rest), padded_word(new_rest));
        }
        if differs {
            self.hash = self.hash.wrapping_add(sum.wrapping_mul(block_factor(seed, index)));
            self.blocks |= 1 << index.min(63);
        }
    }
}

type Block = [u8; BLOCK_BYTES];

/// The last bytes of a value, less than a word, with zeros behind their end.
#[inline(always)]
fn padded_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// A word of a block.
#[inline(always)]
fn word(block: &Block, place: usize) -> u64 {
    u64::from_le_bytes(block.as_chunks::<8>().0[place])
}

/// What all numbers of a row follow from.
#[inline]
fn row_seed(table: u16, key: &[u8]) -> u64 {
    let table = u64::from(table) + 1;
    match key.try_into() {
        Ok(word) => {
            let word = u64::from_le_bytes(word) ^ SPREAD[0];
            fold(word, SPREAD[1].wrapping_mul(table << 1 | 1))
        }
        Err(_) => xxh3_64_with_seed(key, table),
    }
}

/// Both halves of a product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// An odd number for a block of a row.
#[inline(always)]
fn block_factor(seed: u64, index: usize) -> u128 {
    let seed = seed.wrapping_add((index as u64).wrapping_mul(SPREAD[2]));
    let product = u128::from(seed) * u128::from(SPREAD[0]);
    product ^ u128::from(seed.rotate_left(32)) << 64 | 1
}

/// A number for the length of a row's value, which says that the row exists.
#[inline(always)]
fn length_hash(seed: u64, len: usize) -> u128 {
    let mixed = fold(seed ^ SPREAD[2], SPREAD[1].wrapping_mul((len as u64) << 1 | 1));
    u128::from(mixed) << 64 | u128::from(mixed.wrapping_mul(SPREAD[0]) ^ seed)
}

#[inline(always)]
fn block_hash(seed: u64, index: usize, block: &Block) -> u128 {
    let product = |place: usize| u128::from(word(block, place)) * u128::from(FACTORS[place]);
    let sum = (0..WORDS).fold(0_u128, |sum, place| sum.wrapping_add(product(place)));
    sum.wrapping_mul(block_factor(seed, index))
}

/// The sum over all blocks of a value.
#[inline]
fn blocks_hash(seed: u64, value: &[u8]) -> u128 {
    let (whole, rest) = value.as_chunks::<BLOCK_BYTES>();
    let mut sum = 0_u128;
    for (index, block) in whole.iter().enumerate() {
        sum = sum.wrapping_add(block_hash(seed, index, block));
    }
    if rest.is_empty() {
        return sum;
    }
    sum.wrapping_add(block_hash(seed, whole.len(), &padded_line(rest)))
}

/// A running state hash.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StateHash(pub u128);

impl StateHash {
    /// A row appears.
    #[inline]
    pub fn add(&mut self, hash: u128) {
        self.0 = self.0.wrapping_add(hash);
    }

    /// A row disappears.
    #[inline]
    pub fn remove(&mut self, hash: u128) {
        self.0 = self.0.wrapping_sub(hash);
    }

    /// Takes in what another worker summed.
    pub fn merge(&mut self, other: StateHash) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl std::fmt::Display for StateHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_value::lines_around;

    /// O-48: keeping the hash up by difference is the same as hashing both values whole.
    #[test]
    fn o_48_a_change_is_the_difference_of_two_hashes() {
        let value = |len: usize, salt: usize| -> Vec<u8> {
            (0..len).map(|i| if i == salt { 7 } else { i as u8 }).collect()
        };
        let lengths = [0, 1, 8, 63, 64, 65, 127, 128, 129, 300, 1000];
        for old_len in lengths {
            for new_len in lengths {
                for salt in [0, 64, 200, 5000] {
                    let (old, new) = (value(old_len, 9999), value(new_len, salt));
                    let whole = row_hash(3, b"key", &new).wrapping_sub(row_hash(3, b"key", &old));
                    let change = row_change(3, b"key", &old, &NewValue::whole(&new));
                    assert_eq!(change.hash, whole);
                    assert_eq!(whole == 0, old == new, "{old_len} to {new_len}, {salt}");
                    let differing = match old_len == new_len {
                        true if salt < new_len => 1 << (salt / 64),
                        true => 0,
                        false => u64::MAX,
                    };
                    assert_eq!(change.blocks, differing, "{old_len} to {new_len}, {salt}");
                    assert_eq!(changed_blocks(&old, &NewValue::whole(&new)), differing);
                    if old_len == new_len && salt < new_len {
                        let lines = lines_around(&(salt..salt + 1), new_len);
                        let by_lines = NewValue::with_lines(&old, lines.start, &new[lines]);
                        assert_eq!(row_change(3, b"key", &old, &by_lines), change);
                        assert_eq!(changed_blocks(&old, &by_lines), differing);
                    }
                }
            }
        }
    }

    /// O-48: every bit of a value, of its key and of its length counts.
    #[test]
    fn o_48_every_bit_counts() {
        let value: Vec<u8> = (0..150_u8).map(|i| i.wrapping_mul(37)).collect();
        for key in [&b"12345678"[..], b"a longer key"] {
            let mut seen = std::collections::BTreeSet::new();
            let mut is_new = |hash: u128| seen.insert(hash);
            assert!(is_new(row_hash(1, key, &value)));
            for bit in 0..value.len() * 8 {
                let mut flipped = value.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(is_new(row_hash(1, key, &flipped)), "bit {bit} of the value");
            }
            for bit in 0..key.len() * 8 {
                let mut flipped = key.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(is_new(row_hash(1, &flipped, &value)), "bit {bit} of the key");
            }
            for zeros in 1..100 {
                let longer = [&value[..], &vec![0; zeros]].concat();
                assert!(is_new(row_hash(1, key, &longer)), "{zeros} zeros more");
            }
        }
    }

    /// O-48: values that hold the same blocks at other places, or swap rows, hash differently.
    #[test]
    fn o_48_places_and_rows_count() {
        let (a, b) = ([1_u8; 64], [2_u8; 64]);
        assert_ne!(row_hash(0, b"k", &[a, b].concat()), row_hash(0, b"k", &[b, a].concat()));
        let straight = row_hash(0, b"k", &a).wrapping_add(row_hash(0, b"l", &b));
        assert_ne!(straight, row_hash(0, b"k", &b).wrapping_add(row_hash(0, b"l", &a)));
        assert_ne!(row_hash(0, b"k", &a), row_hash(1, b"k", &a));
    }
}
