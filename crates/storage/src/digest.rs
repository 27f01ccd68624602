//! The state hash: a sum over the blocks of all live rows, so that it can be kept up by difference
//! and does not depend on where a row lies or who wrote it (O-48).

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Bytes of a value that are hashed together: an update costs what it changes, not what the row
/// holds.
const BLOCK_BYTES: usize = 64;

/// Hash of one row: the sum of the hashes of its value's blocks, modulo 2^128. Table, key and place
/// in the value are in the seed of each; an empty value has one empty block. The state hash is the
/// sum of these.
#[inline]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    hash_from(row_seed(table, key), 0, value)
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

/// Compares the values of a row, block by block.
#[inline]
pub fn row_change(table: u16, key: &[u8], old: &[u8], new: &[u8]) -> RowChange {
    let seed = row_seed(table, key);
    let (old_whole, old_rest) = old.as_chunks::<BLOCK_BYTES>();
    let (new_whole, new_rest) = new.as_chunks::<BLOCK_BYTES>();
    let mut change = RowChange { hash: 0, blocks: 0 };
    for (index, (before, after)) in old_whole.iter().zip(new_whole).enumerate() {
        if before != after {
            let gain = block_hash(seed, index, after);
            change.hash =
                change.hash.wrapping_add(gain).wrapping_sub(block_hash(seed, index, before));
            change.blocks |= 1 << index.min(63);
        }
    }
    let common = old_whole.len().min(new_whole.len());
    if old.len() != new.len() {
        change.blocks = u64::MAX;
    } else if old_rest == new_rest {
        return change;
    } else {
        change.blocks |= 1 << common.min(63);
    }
    let gain = hash_from(seed, common, new);
    change.hash = change.hash.wrapping_add(gain).wrapping_sub(hash_from(seed, common, old));
    change
}

fn row_seed(table: u16, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, u64::from(table) + 1)
}

fn block_hash(seed: u64, index: usize, block: &[u8]) -> u128 {
    xxh3_128_with_seed(block, seed.wrapping_add(index as u64))
}

/// The hash of the blocks from one on.
fn hash_from(seed: u64, from: usize, value: &[u8]) -> u128 {
    let rest = &value[from * BLOCK_BYTES..];
    if value.is_empty() {
        return block_hash(seed, 0, rest);
    }
    let blocks = rest.chunks(BLOCK_BYTES).zip(from..);
    blocks.fold(0, |sum, (block, index)| sum.wrapping_add(block_hash(seed, index, block)))
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
                    let change = row_change(3, b"key", &old, &new);
                    assert_eq!(change.hash, whole);
                    assert_eq!(whole == 0, old == new, "{old_len} to {new_len}, {salt}");
                    let differing = match old_len == new_len {
                        true if salt < new_len => 1 << (salt / 64),
                        true => 0,
                        false => u64::MAX,
                    };
                    assert_eq!(change.blocks, differing, "{old_len} to {new_len}, {salt}");
                }
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
