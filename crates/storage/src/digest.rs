//! The state hash: a sum over the lines of all live rows, so that it can be maintained by
//! difference and does not depend on where a row lies or who wrote it (O-48).
//!
//! It is maintained for every final write, of which most change a few lines. So a line has the hash
//! of the family NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: Fast and Secure Message
//! Authentication", 1999): a sum of products of 32-bit words, of which a processor makes several
//! at once, and made twice, with other keys, for 64 bits of evidence. Were keys and numbers random,
//! two states would collide with a probability of about 2^-64; here they follow from table, key and
//! place. It tells mistakes, not attacks (docs/decisions/0018).

use std::slice::from_ref;

use pmem::Line;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::lines::{ALL_LINES, LINE, for_each_run, padded_line};
use crate::new_value::NewValue;

/// Words of 8 bytes in a line.
const WORDS: usize = LINE / 8;

/// Lines of a block, which has numbers of its own: so many that most rows are one block.
const BLOCK_LINES: usize = 16;

/// How far the keys of the second sum are from those of the first.
const SHIFT: usize = 4;

/// Keys of the words of a block, line by line: SplitMix64 from 0 on.
static KEYS: [u64; BLOCK_LINES * WORDS + SHIFT] = {
    let mut keys = [0; BLOCK_LINES * WORDS + SHIFT];
    let mut number = 0;
    while number < keys.len() {
        let mut key = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1);
        key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        keys[number] = key ^ key >> 31;
        number += 1;
    }
    keys
};

/// Odd multipliers that spread bits: digits of pi, made odd.
const SPREAD: [u64; 3] = [0x9216_d5d9_8979_fb1b, 0xd131_0ba6_98df_b5ad, 0x2ffd_72db_d01a_dfb7];

/// The sum of two numbers modulo 2^64 each, the first one in the low half.
#[inline(always)]
fn sum_of(a: u128, b: u128) -> u128 {
    join([0, 64].map(|half| ((a >> half) as u64).wrapping_add((b >> half) as u64)))
}

#[inline(always)]
fn join([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// Hash of one row, two numbers modulo 2^64: for each a number for its table, key and length, and
/// for each word of its value a product, times a number for table, key and block. The state hash is
/// the sum of these.
#[inline]
pub fn row_hash(table: u16, key: &[u8], value: &[u8]) -> u128 {
    value_hash(row_seed(table, key), value)
}

/// What a new value changes in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowChange {
    /// What the row's hash gains: [`row_hash`] of the new value less that of the old.
    pub hash: u128,
    /// The lines that differ, or all of them if the values differ in length.
    pub lines: u64,
}

/// Compares the values of a row, line by line, where it is not known what they have in common. A
/// new value of another length must lie in one piece.
#[inline]
pub fn row_change(table: u16, key: &[u8], old: &[u8], new: &NewValue<'_>) -> RowChange {
    let seed = row_seed(table, key);
    if old.len() != new.len() {
        let new = new.in_one_piece().expect("lines are replaced in a value of the same length");
        return of_other_length(seed, old, new);
    }
    debug_assert!(is_changed_in_mask(old, new), "the mask has all lines that differ");
    if new.changed() == ALL_LINES {
        return compare(seed, old, new);
    }
    // Lines that are known to have changed are not compared.
    let mut gain = Gain::of(seed);
    for_each_run(new.changed(), old.len().div_ceil(LINE), |from, to| {
        (from..to).for_each(|line| gain.add(line, line_of(old, line), new.line(line)));
    });
    RowChange { hash: join(gain.of_row()), lines: new.changed() }
}

#[inline(never)]
fn of_other_length(seed: u64, old: &[u8], new: &[u8]) -> RowChange {
    let StateHash(hash) = StateHash(value_hash(seed, new)).less(value_hash(seed, old));
    RowChange { hash, lines: ALL_LINES }
}

/// [`row_change`] where the mask says nothing.
#[inline(never)]
fn compare(seed: u64, old: &[u8], new: &NewValue<'_>) -> RowChange {
    let (mut gain, mut lines) = (Gain::of(seed), 0);
    for_each_changed(old, new, |line, old, new| {
        gain.add(line, old, new);
        lines |= 1 << line.min(63);
    });
    RowChange { hash: join(gain.of_row()), lines }
}

/// What the hash of a row gains with some lines that are replaced: from a byte on, which begins a
/// line, up to the end of a line or of the value.
#[inline(always)]
pub fn lines_gain(table: u16, key: &[u8], at: usize, old: &[u8], new: &[u8]) -> u128 {
    let (seed, first) = (row_seed(table, key), at / LINE);
    let ((old, old_rest), (new, new_rest)) = (old.as_chunks(), new.as_chunks());
    let mut gain = Gain::of(seed);
    gain.enter(first / BLOCK_LINES);
    if new_rest.is_empty() && first % BLOCK_LINES + new.len() <= BLOCK_LINES {
        gain.of_block = gain_of(&KEYS[first % BLOCK_LINES * WORDS..], old, new);
        return join(gain.of_row());
    }
    for (line, (old, new)) in (first..).zip(old.iter().zip(new)) {
        gain.add(line, old, new);
    }
    if !new_rest.is_empty() {
        gain.add(first + new.len(), old_rest, new_rest);
    }
    join(gain.of_row())
}

/// What the hash of a row gains whose value is a line, or less with zeros behind it.
#[inline(always)]
pub fn only_line_gain(table: u16, key: &[u8], old: &Line, new: &Line) -> u128 {
    let mut gain = Gain::of(row_seed(table, key));
    gain.of_block = gain_of(&KEYS, from_ref(old), from_ref(new));
    join(gain.of_row())
}

/// [`row_hash`] of a value of some bytes that lie in a line, with zeros behind them.
#[inline(always)]
pub fn only_line_hash(table: u16, key: &[u8], line: &Line, len: usize) -> u128 {
    let seed = row_seed(table, key);
    let mut gain = Gain::of(seed);
    gain.of_block = gain_of(&KEYS, &ZEROS[..1], from_ref(line));
    sum_of(length_hash(seed, len), join(gain.of_row()))
}

/// What the hash of a row gains whose value is one word, see [`row_hash`].
#[inline(always)]
pub fn word_gain(table: u16, key: &[u8], old: u64, new: u64) -> u128 {
    let mut gain = Gain::of(row_seed(table, key));
    gain.of_block =
        [KEYS[0], KEYS[SHIFT]].map(|key| product(new, key).wrapping_sub(product(old, key)));
    join(gain.of_row())
}

/// The lines in which the values of a row differ, as [`row_change`] finds them, where the hash is
/// not needed.
pub fn changed_lines(old: &[u8], new: &NewValue<'_>) -> u64 {
    if old.len() != new.len() {
        return ALL_LINES;
    }
    if new.changed() != ALL_LINES {
        return new.changed();
    }
    let mut lines = 0;
    for_each_changed(old, new, |line, _, _| lines |= 1 << line.min(63));
    lines
}

/// Calls `each` with the lines in which two values of one length differ.
#[inline(always)]
fn for_each_changed(old: &[u8], new: &NewValue<'_>, mut each: impl FnMut(usize, &[u8], &[u8])) {
    for line in 0..old.len().div_ceil(LINE) {
        let (old, new) = (line_of(old, line), new.line(line));
        let is_same = match (<&Line>::try_from(old), <&Line>::try_from(new)) {
            // Without a call, which costs more than the comparison.
            (Ok(old), Ok(new)) => old == new,
            _ => old == new,
        };
        if !is_same {
            each(line, old, new);
        }
    }
}

/// Whether two values of one length differ in lines of the mask only.
fn is_changed_in_mask(old: &[u8], new: &NewValue<'_>) -> bool {
    let mut lines = old.chunks(LINE).enumerate();
    lines.all(|(line, old)| new.changed() >> line.min(63) & 1 != 0 || new.line(line) == old)
}

/// What the hash of a row gains, block by block.
struct Gain {
    seed: u64,
    block: usize,
    of_block: [u64; 2],
    of_blocks_before: [u64; 2],
}

impl Gain {
    #[inline(always)]
    fn of(seed: u64) -> Self {
        Self { seed, block: 0, of_block: [0; 2], of_blocks_before: [0; 2] }
    }

    /// What is added from here on is of this block.
    #[inline(always)]
    fn enter(&mut self, block: usize) {
        if block != self.block {
            self.of_blocks_before = self.of_row();
            (self.block, self.of_block) = (block, [0; 2]);
        }
    }

    #[inline(always)]
    fn of_row(&self) -> [u64; 2] {
        let factors = block_factors(self.seed, self.block);
        std::array::from_fn(|i| {
            self.of_blocks_before[i].wrapping_add(self.of_block[i].wrapping_mul(factors[i]))
        })
    }

    /// A line is replaced; fewer than 64 bytes of the last one.
    #[inline(always)]
    fn add(&mut self, line: usize, old: &[u8], new: &[u8]) {
        self.enter(line / BLOCK_LINES);
        let keys = &KEYS[line % BLOCK_LINES * WORDS..];
        let gain = match (old.try_into(), new.try_into()) {
            (Ok(old), Ok(new)) => gain_of(keys, from_ref(old), from_ref(new)),
            _ => gain_of(keys, &[padded_line(old)], &[padded_line(new)]),
        };
        self.of_block = [0, 1].map(|i| self.of_block[i].wrapping_add(gain[i]));
    }
}

/// The bytes of a line of a value; fewer than 64 of the last one.
#[inline(always)]
fn line_of(value: &[u8], line: usize) -> &[u8] {
    &value[line * LINE..value.len().min((line + 1) * LINE)]
}

/// What a word adds to one of the sums, but for what zero adds.
#[inline(always)]
fn product(word: u64, key: u64) -> u64 {
    let low = (word as u32).wrapping_add(key as u32);
    let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
    u64::from(low) * u64::from(high)
}

/// What the sums of a block gain with lines that are replaced. The keys are those of the lines, and
/// some more.
#[inline(always)]
fn gain_of(keys: &[u64], old: &[Line], new: &[Line]) -> [u64; 2] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has it.
        return unsafe { avx2::gain_of(keys, old, new) };
    }
    portable_gain_of(keys, old, new)
}

/// [`gain_of`] on any processor.
#[inline(never)]
fn portable_gain_of(keys: &[u64], old: &[Line], new: &[Line]) -> [u64; 2] {
    let mut gains = [0_u64; 2];
    for (line, (old, new)) in old.iter().zip(new).enumerate() {
        let words = old.as_chunks().0.iter().zip(new.as_chunks().0);
        for (number, (old, new)) in (line * WORDS..).zip(words) {
            let (old, new) = (u64::from_le_bytes(*old), u64::from_le_bytes(*new));
            for (gain, key) in gains.iter_mut().zip([keys[number], keys[number + SHIFT]]) {
                *gain = gain.wrapping_add(product(new, key)).wrapping_sub(product(old, key));
            }
        }
    }
    gains
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_add_epi32,
        _mm256_add_epi64, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_mul_epu32, _mm256_setzero_si256, _mm256_srli_epi64, _mm256_sub_epi64,
        _mm256_unpackhi_epi64, _mm256_unpacklo_epi64,
    };

    use pmem::Line;

    use super::{SHIFT, WORDS};

    /// Four words at a time.
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    pub(super) fn gain_of(keys: &[u64], old: &[Line], new: &[Line]) -> [u64; 2] {
        assert!(old.len() == new.len() && keys.len() >= new.len() * WORDS + SHIFT);
        let mut sums = [_mm256_setzero_si256(); 2];
        for (line, (old, new)) in old.iter().zip(new).enumerate() {
            for half in 0..2 {
                let number = line * WORDS + half * 4;
                // SAFETY: half a line each; there are keys for all words, as asserted above.
                let (old, new, keys) = unsafe {
                    let [old, new] = [old, new]
                        .map(|line| _mm256_loadu_si256(line.as_ptr().add(half * 32).cast()));
                    let keys = [number, number + SHIFT]
                        .map(|at| _mm256_loadu_si256(keys.as_ptr().add(at).cast()));
                    (old, new, keys)
                };
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = _mm256_add_epi64(*sum, products(new, key));
                    *sum = _mm256_sub_epi64(*sum, products(old, key));
                }
            }
        }
        let low = _mm256_unpacklo_epi64(sums[0], sums[1]);
        let both = _mm256_add_epi64(low, _mm256_unpackhi_epi64(sums[0], sums[1]));
        let high = _mm256_extracti128_si256::<1>(both);
        let both = _mm_add_epi64(_mm256_castsi256_si128(both), high);
        [_mm_cvtsi128_si64(both) as u64, _mm_extract_epi64::<1>(both) as u64]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn products(words: __m256i, keys: __m256i) -> __m256i {
        let keyed = _mm256_add_epi32(words, keys);
        _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed))
    }
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

/// Odd numbers for a block of a row.
#[inline(always)]
fn block_factors(seed: u64, index: usize) -> [u64; 2] {
    let seed = seed.wrapping_add((index as u64).wrapping_mul(SPREAD[2]));
    let product = u128::from(seed) * u128::from(SPREAD[0]);
    [product as u64 | 1, (product >> 64) as u64 ^ seed.rotate_left(32) | 1]
}

/// Numbers for the length of a row's value, which say that the row exists.
#[inline(always)]
fn length_hash(seed: u64, len: usize) -> u128 {
    let mixed = fold(seed ^ SPREAD[2], SPREAD[1].wrapping_mul((len as u64) << 1 | 1));
    join([mixed.wrapping_mul(SPREAD[0]) ^ seed, mixed])
}

/// A block of zeros, which adds nothing.
static ZEROS: [Line; BLOCK_LINES] = [[0; LINE]; BLOCK_LINES];

/// What the value of a row adds to the state hash.
#[inline]
fn value_hash(seed: u64, value: &[u8]) -> u128 {
    let mut gain = Gain::of(seed);
    for (number, block) in value.chunks(BLOCK_LINES * LINE).enumerate() {
        let (lines, rest) = block.as_chunks();
        gain.enter(number);
        gain.of_block = gain_of(&KEYS, &ZEROS[..lines.len()], lines);
        if !rest.is_empty() {
            gain.add(number * BLOCK_LINES + lines.len(), &[], rest);
        }
    }
    sum_of(length_hash(seed, value.len()), join(gain.of_row()))
}

/// A running state hash: two sums modulo 2^64, the first one in the low half.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StateHash(pub u128);

impl StateHash {
    /// A row appears, or changes.
    #[inline(always)]
    pub fn add(&mut self, hash: u128) {
        self.0 = sum_of(self.0, hash);
    }

    /// A row disappears.
    #[inline]
    pub fn remove(&mut self, hash: u128) {
        *self = self.less(hash);
    }

    /// The hash without a row.
    #[inline]
    fn less(self, hash: u128) -> Self {
        let less = |half| ((self.0 >> half) as u64).wrapping_sub((hash >> half) as u64);
        Self(join([0, 64].map(less)))
    }

    /// Takes in what another worker summed.
    pub fn merge(&mut self, other: StateHash) {
        self.add(other.0);
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
        let lengths = [0, 1, 8, 9, 16, 63, 64, 65, 127, 128, 129, 300, 1000, 1024, 1025, 2500];
        for old_len in lengths {
            for new_len in lengths {
                for salt in [0, 64, 200, 1024, 5000] {
                    let (old, new) = (value(old_len, 9999), value(new_len, salt));
                    let whole =
                        StateHash(row_hash(3, b"key", &new)).less(row_hash(3, b"key", &old)).0;
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

    /// O-48: lines that are replaced in several blocks at once, by which a value may end.
    #[test]
    fn o_48_a_part_of_several_blocks_is_the_difference_of_two_hashes() {
        let old: Vec<u8> = (0..2500_u32).map(|i| i.wrapping_mul(37) as u8).collect();
        for range in [0..64, 960..1024, 960..1088, 1024..2048, 64..2112, 960..2500, 0..2500] {
            let mut new = old.clone();
            new[range.clone()].iter_mut().for_each(|byte| *byte = !*byte);
            let whole = StateHash(row_hash(3, b"key", &new)).less(row_hash(3, b"key", &old)).0;
            let (part, at) = (&new[range.clone()], range.start);
            assert_eq!(lines_gain(3, b"key", at, &old[range.clone()], part), whole, "{range:?}");
        }
    }

    /// O-48: the hash is the same on every processor.
    #[test]
    fn o_48_all_processors_come_to_the_same_sums() {
        let bytes: Vec<u8> = (0..64 * 32_u32).map(|i| (i * i / 7) as u8).collect();
        let (lines, _) = bytes.as_chunks::<LINE>();
        for first in 0..BLOCK_LINES {
            for count in 0..=BLOCK_LINES - first {
                let keys = &KEYS[first * WORDS..];
                let (old, new) = (&lines[..count], &lines[16..16 + count]);
                assert_eq!(gain_of(keys, old, new), portable_gain_of(keys, old, new));
            }
        }
        let line = padded_line(&bytes[..45]);
        assert_eq!(only_line_hash(3, b"key", &line, 45), row_hash(3, b"key", &bytes[..45]));
        let old = padded_line(&bytes[100..145]);
        let whole =
            StateHash(row_hash(3, b"key", &bytes[..45])).less(row_hash(3, b"key", &old[..45])).0;
        assert_eq!(only_line_gain(3, b"key", &old, &line), whole);
    }

    #[test]
    fn o_48_a_word_changes_the_hash_as_any_value_does() {
        for (old, new) in [(0, 0), (0, 1), (1, 0), (5, u64::MAX), (u64::MAX, 5), (1 << 63, 7)] {
            for key in [&b"12345678"[..], b"a longer key"] {
                let [old_hash, new_hash] =
                    [old, new].map(|word: u64| row_hash(3, key, &word.to_le_bytes()));
                assert_eq!(word_gain(3, key, old, new), StateHash(new_hash).less(old_hash).0);
            }
        }
    }

    /// The state hash lies in checkpoints, and a store is refused if its rows come to another one:
    /// so these numbers change with the format version only.
    #[test]
    fn o_48_the_hash_is_that_of_stores_that_exist() {
        let value: Vec<u8> = (0..2500_u32).map(|i| i.wrapping_mul(37) as u8).collect();
        let cases = [
            (0, &b"12345678"[..], 0),
            (7, b"12345678", 64),
            (7, b"12345678", 65),
            (511, b"a longer key", 150),
            (511, b"a longer key", 2500),
        ];
        let hashes = cases.map(|(table, key, len)| row_hash(table, key, &value[..len]));
        let expected = [
            186414165196754903755489565197836752685,
            63346337345599246649122842456429340881,
            21939730740152698004042829657255875997,
            14672094887396754684586537588090547419,
            92767222042554826147781990632323312069,
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
        let straight = sum_of(row_hash(0, b"k", &a), row_hash(0, b"l", &b));
        assert_ne!(straight, sum_of(row_hash(0, b"k", &b), row_hash(0, b"l", &a)));
        assert_ne!(row_hash(0, b"k", &a), row_hash(1, b"k", &a));
    }
}
