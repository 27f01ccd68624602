//! The state hash: a sum over the blocks of all live rows, so that it can be maintained by
//! difference and does not depend on where a row lies or who wrote it (O-48).
//!
//! It is maintained for every final write, of which most change a few words. So the hash is one
//! that can follow single words: a multilinear one (Carter and Wegman, "Universal Classes of Hash
//! Functions", 1979; Lemire and Kaser, "Strongly Universal String Hashing is Fast", 2014), the sum
//! of each word times a number that depends on its place. Were these numbers random, two states
//! would collide with a probability of 2^-64 at most; here they follow from table, key and place.
//! It tells mistakes, not attacks.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::lines::{ALL_LINES, LINE, for_each_run, padded_line};
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
    /// The lines that differ, or all of them if the values differ in length.
    pub lines: u64,
}

/// Compares the values of a row, line by line, where they may differ. A new value of another length
/// must lie in one piece.
#[inline]
pub fn row_change(table: u16, key: &[u8], old: &[u8], new: &NewValue<'_>) -> RowChange {
    let seed = row_seed(table, key);
    if old.len() != new.len() {
        let new = new.in_one_piece().expect("lines are replaced in a value of the same length");
        return of_other_length(seed, old, new);
    }
    debug_assert!(is_changed_in_mask(old, new), "the mask has all lines that differ");
    if let Some((at, part)) = new.only_part() {
        // Whoever replaces lines replaces them by others.
        let hash = part_gain(seed, at / LINE, &old[at..at + part.len()], part);
        return RowChange { hash, lines: new.changed() };
    }
    let mut change = RowChange { hash: 0, lines: 0 };
    for_each_changed(old, new, |line, old, new| {
        change.hash = change.hash.wrapping_add(part_gain(seed, line, old, new));
        change.lines |= 1 << line.min(63);
    });
    change
}

/// What the hash of a row gains with some lines that are replaced: from a byte on, which begins a
/// line, up to the end of a line or of the value.
#[inline(always)]
pub fn lines_gain(table: u16, key: &[u8], at: usize, old: &[u8], new: &[u8]) -> u128 {
    part_gain(row_seed(table, key), at / LINE, old, new)
}

/// What the hash of a row gains with some lines that are replaced, from a line on.
#[inline(always)]
fn part_gain(seed: u64, first: usize, old: &[u8], new: &[u8]) -> u128 {
    let (old, old_rest) = old.as_chunks::<BLOCK_BYTES>();
    let (new, new_rest) = new.as_chunks::<BLOCK_BYTES>();
    let mut gain = 0_u128;
    for (line, (old, new)) in (first..).zip(old.iter().zip(new)) {
        gain = gain.wrapping_add(block_gain(old, new).wrapping_mul(block_factor(seed, line)));
    }
    if !new_rest.is_empty() {
        let rest = rest_gain(old_rest, new_rest);
        gain = gain.wrapping_add(rest.wrapping_mul(block_factor(seed, first + new.len())));
    }
    gain
}

/// What the hash of a row gains whose value is one word, see [`row_hash`].
#[inline(always)]
pub fn word_gain(table: u16, key: &[u8], old: u64, new: u64) -> u128 {
    let mut gain = Gain::default();
    gain.add(FACTORS[0], old, new);
    gain.0.wrapping_mul(block_factor(row_seed(table, key), 0))
}

#[inline(never)]
fn of_other_length(seed: u64, old: &[u8], new: &[u8]) -> RowChange {
    let whole =
        |value: &[u8]| blocks_hash(seed, value).wrapping_add(length_hash(seed, value.len()));
    RowChange { hash: whole(new).wrapping_sub(whole(old)), lines: ALL_LINES }
}

/// The lines in which the values of a row differ, as [`row_change`] finds them, where nobody needs
/// the hash.
pub fn changed_lines(old: &[u8], new: &NewValue<'_>) -> u64 {
    if old.len() != new.len() {
        return ALL_LINES;
    }
    let mut lines = 0;
    for_each_changed(old, new, |line, _, _| lines |= 1 << line.min(63));
    lines
}

/// Calls `each` with the lines in which two values of one length differ.
#[inline(always)]
fn for_each_changed(old: &[u8], new: &NewValue<'_>, mut each: impl FnMut(usize, &[u8], &[u8])) {
    for_each_run(new.changed(), old.len().div_ceil(LINE), |from, to| {
        for line in from..to {
            let at = line * LINE;
            let (old, new) = (&old[at..old.len().min(at + LINE)], new.line(line));
            let is_same = match (<&Block>::try_from(old), <&Block>::try_from(new)) {
                // Without a call, which costs more than the comparison.
                (Ok(old), Ok(new)) => old == new,
                _ => old == new,
            };
            if !is_same {
                each(line, old, new);
            }
        }
    });
}

/// Whether two values of one length differ in lines of the mask only.
fn is_changed_in_mask(old: &[u8], new: &NewValue<'_>) -> bool {
    let mut lines = old.chunks(LINE).enumerate();
    lines.all(|(line, old)| new.changed() >> line.min(63) & 1 != 0 || new.line(line) == old)
}

/// What a block's sum of products gains.
#[inline(always)]
fn block_gain(old: &Block, new: &Block) -> u128 {
    let mut gain = Gain::default();
    for (place, factor) in FACTORS.into_iter().enumerate() {
        gain.add(factor, word(old, place), word(new, place));
    }
    gain.0
}

/// [`block_gain`] of the last bytes of a value.
#[inline(always)]
fn rest_gain(old: &[u8], new: &[u8]) -> u128 {
    if new.len() > BLOCK_BYTES / 2 {
        return block_gain(&padded_line(old), &padded_line(new));
    }
    let mut gain = Gain::default();
    let ((old, old_rest), (new, new_rest)) = (old.as_chunks::<8>(), new.as_chunks::<8>());
    for (factor, (old, new)) in FACTORS.into_iter().zip(old.iter().zip(new)) {
        gain.add(factor, u64::from_le_bytes(*old), u64::from_le_bytes(*new));
    }
    if !new_rest.is_empty() {
        gain.add(FACTORS[new.len()], padded_word(old_rest), padded_word(new_rest));
    }
    gain.0
}

/// What a sum of products gains.
#[derive(Default)]
struct Gain(u128);

impl Gain {
    // Two products take fewer instructions than the difference of two words and its sign.
    #[inline(always)]
    fn add(&mut self, factor: u64, old: u64, new: u64) {
        let product = |word: u64| u128::from(word) * u128::from(factor);
        self.0 = self.0.wrapping_add(product(new)).wrapping_sub(product(old));
    }
}

/// The last bytes of a value, less than a word, with zeros behind their end.
#[inline(always)]
fn padded_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

type Block = [u8; BLOCK_BYTES];

/// A word of a block.
#[inline(always)]
fn word(block: &Block, place: usize) -> u64 {
    u64::from_le_bytes(block.as_chunks::<8>().0[place])
}

/// What all numbers of a row follow from.
#[inline(always)]
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

    /// O-102: a line that changed and is missing in the mask would be neither stored nor hashed.
    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the mask has all lines that differ")]
    fn o_102_a_line_missing_in_the_mask_is_noticed() {
        let (old, mut new) = ([1; 200], [1; 200]);
        (new[0], new[190]) = (2, 2);
        row_change(3, b"key", &old, &NewValue::with_lines(&new, 0, &new[..64], 0));
    }

    /// O-48: maintaining the hash by difference is the same as hashing both values whole.
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
                    assert_eq!(change.lines, differing, "{old_len} to {new_len}, {salt}");
                    assert_eq!(changed_lines(&old, &NewValue::whole(&new)), differing);
                    if old_len == new_len && salt < new_len {
                        let lines = lines_around(&(salt..salt + 1), new_len);
                        let by_lines = NewValue::with_lines(&old, lines.start, &new[lines], 0);
                        assert_eq!(row_change(3, b"key", &old, &by_lines), change);
                        assert_eq!(changed_lines(&old, &by_lines), differing);
                    }
                }
            }
        }
    }

    #[test]
    fn o_48_a_word_changes_the_hash_as_any_value_does() {
        for (old, new) in [(0, 0), (0, 1), (1, 0), (5, u64::MAX), (u64::MAX, 5), (1 << 63, 7)] {
            for key in [&b"12345678"[..], b"a longer key"] {
                let [old_hash, new_hash] =
                    [old, new].map(|word: u64| row_hash(3, key, &word.to_le_bytes()));
                assert_eq!(word_gain(3, key, old, new), new_hash.wrapping_sub(old_hash));
            }
        }
    }

    /// The state hash lies in checkpoints, and a store is refused if its rows come to another one:
    /// so these numbers change with the format version only.
    #[test]
    fn o_48_the_hash_is_that_of_stores_that_exist() {
        let value: Vec<u8> = (0..150_u8).map(|i| i.wrapping_mul(37)).collect();
        let cases = [
            (0, &b"12345678"[..], 0),
            (7, b"12345678", 64),
            (7, b"12345678", 65),
            (511, b"a longer key", 150),
        ];
        let hashes = cases.map(|(table, key, len)| row_hash(table, key, &value[..len]));
        let expected = [
            186414165196754903755489565197836752685,
            45074552881510375064106073279787742353,
            204230796741541710290035973249497400093,
            89093628758105835097286297757712013135,
        ];
        assert_eq!(hashes, expected);
        assert_eq!(StateHash(0xab << 96).to_string(), "000000ab000000000000000000000000");
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
