//! Random numbers for data and call streams: fast, and the same on every machine for the same seed.
//!
//! A generator is keyed by numbers (seed, epoch, position), so any call of a stream can be made on
//! its own, in any order and by any thread. Statistical quality is enough, secrecy is not needed.
//! Only [`Zipf`] uses floating point, whose `powf` may differ in the last bit between platforms:
//! streams are compared on one machine, and engines see the arguments, never the distribution.

/// One step of splitmix64: a good mix of 64 bits into 64 bits.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A xoshiro256++ generator.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// A generator for one place of one stream: different places give independent numbers.
    #[must_use]
    pub fn new(seed: u64, stream: u64, position: u64) -> Self {
        let key = mix(mix(mix(seed) ^ stream) ^ position);
        let mut state = [0; 4];
        for (i, word) in state.iter_mut().enumerate() {
            *word = mix(key.wrapping_add(i as u64));
        }
        // All zero is the one state that never leaves itself.
        state[0] |= 1;
        Self { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`; 0 where the bound is 0. The bias of at most `bound / 2^64` does not
    /// matter.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A fraction in `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in `percent` of 100 cases.
    #[inline]
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Fills `bytes` with random bytes. Four xorshift generators side by side: shifts and xors run
    /// in vector registers, so a payload of 1,000 bytes does not outweigh the rest of a call.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        // Zero is the one state that xorshift never leaves.
        let mut states: [u64; 4] = std::array::from_fn(|_| self.next_u64() | 1);
        let mut chunks = bytes.chunks_exact_mut(32);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&step(&mut states));
        }
        let rest = chunks.into_remainder();
        rest.copy_from_slice(&step(&mut states)[..rest.len()]);
    }

    /// TPC-C's non-uniform choice of a number in `low..=high` (clause 2.1.6). `a` is one less than
    /// a power of two; `c` is the constant that is allocated once for a run.
    #[inline]
    pub fn nurand(&mut self, a: u64, c: u64, low: u64, high: u64) -> u64 {
        let mixed = self.between(0, a) | self.between(low, high);
        (mixed + c) % (high - low + 1) + low
    }
}

/// Steps four xorshift generators.
#[inline]
fn step(states: &mut [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (state, word) in states.iter_mut().zip(bytes.chunks_exact_mut(8)) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Ranks `0..count`, rank 0 the most frequent, frequency proportional to `1 / (rank + 1)^theta`:
/// the method of Gray et al. (SIGMOD 1994) that YCSB uses. Ranks are not scrambled; the caller maps
/// them to keys.
#[derive(Debug, Clone)]
pub struct Zipf {
    count: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// A sampler of `count >= 1` ranks with `0 < theta < 1`.
    #[must_use]
    pub fn new(count: u64, theta: f64) -> Self {
        let zeta = zeta(count, theta);
        let two = 1.0 + 0.5_f64.powf(theta);
        let eta = if count > 2 {
            (1.0 - (2.0 / count as f64).powf(1.0 - theta)) / (1.0 - two / zeta)
        } else {
            0.0
        };
        Self { count, theta, zeta, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// Allocates a rank.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let scaled = u * self.zeta;
        if scaled < 1.0 || self.count == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) || self.count == 2 {
            return 1;
        }
        let rank = self.count as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count - 1)
    }
}

/// The sum of `1 / i^theta` for `i` in `1..=count`. Beyond a million terms the Euler-Maclaurin
/// formula is exact to more digits than matter, and opening a table of many rows stays quick.
fn zeta(count: u64, theta: f64) -> f64 {
    let exact = count.min(1_000_000);
    let sum: f64 = (1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    if exact == count {
        return sum;
    }
    let (low, high) = (exact as f64, count as f64);
    let integral = (high.powf(1.0 - theta) - low.powf(1.0 - theta)) / (1.0 - theta);
    sum + integral + (high.powf(-theta) - low.powf(-theta)) / 2.0
}

/// A pseudo-random permutation of `0..count`, computed one element at a time: a Feistel network
/// over the next even number of bits, walked until it lands inside.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The permutation of `0..count` that `seed` names; `1 <= count <= 2^62`.
    #[must_use]
    pub fn new(count: u64, seed: u64) -> Self {
        assert!(count >= 1, "a permutation of nothing");
        assert!(count <= 1 << 62, "too many elements to permute: {count}");
        let bits = 64 - (count - 1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `index < count` goes.
    #[must_use]
    pub fn apply(&self, index: u64) -> u64 {
        assert!(index < self.count, "{index} is not below {}", self.count);
        let mut value = self.round_trip(index);
        while value >= self.count {
            value = self.round_trip(value);
        }
        value
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4 {
            let f = mix(self.seed ^ mix(right ^ (round << 60))) & mask;
            (left, right) = (right, left ^ f);
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_key_same_numbers() {
        let allocate = |seed, epoch, position| {
            let mut random = Random::new(seed, epoch, position);
            [random.next_u64(), random.next_u64(), random.below(1000)]
        };
        assert_eq!(allocate(1, 2, 3), allocate(1, 2, 3));
        assert_ne!(allocate(1, 2, 3), allocate(1, 3, 2));
        assert_ne!(allocate(1, 2, 3), allocate(2, 2, 3));
    }

    #[test]
    fn bounds_hold_and_are_reached() {
        let mut random = Random::new(7, 0, 0);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[(random.between(10, 15) - 10) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }

    #[test]
    fn fill_covers_odd_lengths() {
        let mut bytes = [0_u8; 101];
        Random::new(1, 1, 1).fill(&mut bytes);
        assert!(bytes[92..].iter().any(|&b| b != 0));
        assert!(bytes.iter().filter(|&&b| b == 0).count() < 10);
    }

    #[test]
    fn nurand_stays_in_range_and_is_not_uniform() {
        let mut random = Random::new(3, 0, 0);
        let mut counts = vec![0_u32; 3001];
        for _ in 0..300_000 {
            counts[random.nurand(1023, 259, 1, 3000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        let top: u32 = counts[counts.len() - 300..].iter().sum();
        assert!(top > 60_000, "the busiest tenth got only {top} of 300000");
    }

    #[test]
    fn zipf_is_skewed_as_its_theta_says() {
        let zipf = Zipf::new(1_000, 0.9);
        let mut random = Random::new(5, 0, 0);
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..200_000 {
            counts[zipf.sample(&mut random) as usize] += 1;
        }
        let expected = 200_000.0 / zeta(1_000, 0.9);
        assert!((f64::from(counts[0]) / expected - 1.0).abs() < 0.05, "{}", counts[0]);
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio / 2.0_f64.powf(0.9) - 1.0).abs() < 0.1, "{ratio}");
        assert!(counts[0] > counts[10] && counts[10] > counts[500]);
    }

    #[test]
    fn small_zipfs_stay_in_range() {
        let mut random = Random::new(5, 0, 1);
        for count in 1..5 {
            let zipf = Zipf::new(count, 0.9);
            assert!((0..1000).all(|_| zipf.sample(&mut random) < count));
        }
    }

    #[test]
    fn zeta_of_many_terms_agrees_with_the_plain_sum() {
        let count = 1_500_000;
        let plain: f64 = (1..=count).map(|i| (i as f64).powf(-0.9)).sum();
        assert!((zeta(count, 0.9) / plain - 1.0).abs() < 1e-9);
    }

    #[test]
    fn permutations_hit_every_element_once() {
        for count in [1, 2, 3, 10, 77, 3000] {
            let permutation = Permutation::new(count, 11);
            let mut seen = vec![false; count as usize];
            for i in 0..count {
                let to = permutation.apply(i) as usize;
                assert!(!seen[to]);
                seen[to] = true;
            }
        }
    }
}
