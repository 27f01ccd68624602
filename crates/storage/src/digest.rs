//! The state hash: a sum over all live rows, so that it can be kept up by difference and does not
//! depend on where a row lies or who wrote it (O-48).

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Hash of one row; the state hash is the sum of these, modulo 2^128.
#[inline]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    xxh3_128_with_seed(value, xxh3_64_with_seed(key, u64::from(table) + 1))
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
