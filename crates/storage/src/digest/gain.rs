//! What a row's hash gains with lines that are replaced.

use std::slice::from_ref;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::digest::state_hash::join;
use crate::digest::sums::{BLOCK_LINES, KEYS, WORDS, gain_of};
use crate::ids::TableId;
use crate::value::lines::padded_line;

/// Odd multipliers that spread bits: digits of pi, made odd.
const SPREAD: [u64; 3] = [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ad, 0x2ffd_72db_d01a_dfb7];

/// What the hash of a row gains, block by block.
pub(super) struct Gain {
    seed: u64,
    block: usize,
    pub(super) of_block: [u64; 2],
    of_blocks_before: [u64; 2],
}

impl Gain {
    #[inline(always)]
    pub(super) fn of(seed: u64) -> Self {
        Self { seed, block: 0, of_block: [0; 2], of_blocks_before: [0; 2] }
    }

    /// What is added from here on is of this block.
    #[inline(always)]
    pub(super) fn enter(&mut self, block: usize) {
        if block != self.block {
            self.of_blocks_before = self.of_row();
            (self.block, self.of_block) = (block, [0; 2]);
        }
    }

    #[inline(always)]
    pub(super) fn of_row(&self) -> [u64; 2] {
        let factors = block_factors(self.seed, self.block);
        std::array::from_fn(|i| {
            self.of_blocks_before[i].wrapping_add(self.of_block[i].wrapping_mul(factors[i]))
        })
    }

    /// A line is replaced; fewer than 64 bytes of the last one.
    #[inline(always)]
    pub(super) fn add(&mut self, line: usize, old: &[u8], new: &[u8]) {
        debug_assert!(line / BLOCK_LINES >= self.block, "lines come in order");
        self.enter(line / BLOCK_LINES);
        let keys = &KEYS[line % BLOCK_LINES * WORDS..];
        let gain = match (old.try_into(), new.try_into()) {
            (Ok(old), Ok(new)) => gain_of(keys, from_ref(old), from_ref(new)),
            _ => gain_of(keys, &[padded_line(old)], &[padded_line(new)]),
        };
        self.of_block = [0, 1].map(|i| self.of_block[i].wrapping_add(gain[i]));
    }
}

/// What all numbers of a row follow from.
#[inline(always)]
pub(super) fn row_seed(table: TableId, key: &[u8]) -> u64 {
    let table = u64::from(table.0) + 1;
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
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Odd numbers for a block of a row.
#[inline(always)]
fn block_factors(seed: u64, index: usize) -> [u64; 2] {
    let seed = seed.wrapping_add((index as u64).wrapping_mul(SPREAD[2]));
    let product = u128::from(seed) * u128::from(SPREAD[0]);
    [product as u64 | 1, (product >> 64) as u64 ^ seed.rotate_left(32) | 1]
}

/// Numbers for the length of a row's value, which say that the row exists.
#[inline(always)]
pub(super) fn length_hash(seed: u64, len: usize) -> u128 {
    let mixed = fold(seed ^ SPREAD[2], SPREAD[1].wrapping_mul((len as u64) << 1 | 1));
    join([mixed.wrapping_mul(SPREAD[0]) ^ seed, mixed])
}
