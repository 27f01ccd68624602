//! Sums of products over lines, with keys that are the same for all rows.

use pmem::Line;

use crate::value::lines::LINE;

/// Words of 8 bytes in a line.
pub(super) const WORDS: usize = LINE / 8;

/// Lines of a block, which has numbers of its own: so many that most rows are one block.
pub(super) const BLOCK_LINES: usize = 16;

/// How far the keys of the second sum are from those of the first.
pub(super) const SHIFT: usize = 4;

/// Keys of the words of a block, line by line: SplitMix64 from 0 on.
pub(super) static KEYS: [u64; BLOCK_LINES * WORDS + SHIFT] = {
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

/// What a word adds to one of the sums, but for what zero adds.
#[inline]
pub(super) fn product(word: u64, key: u64) -> u64 {
    let low = (word as u32).wrapping_add(key as u32);
    let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
    u64::from(low) * u64::from(high)
}

/// What the sums of a block gain with lines that are replaced. The keys are those of the lines, and
/// some more.
#[inline]
pub(super) fn gain_of(keys: &[u64], old: &[Line], new: &[Line]) -> [u64; 2] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has it.
        return unsafe { avx2::gain_of(keys, old, new) };
    }
    portable_gain_of(keys, old, new)
}

/// [`gain_of`] on any processor.
#[inline(never)]
pub(super) fn portable_gain_of(keys: &[u64], old: &[Line], new: &[Line]) -> [u64; 2] {
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
