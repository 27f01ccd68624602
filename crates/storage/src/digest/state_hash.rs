//! The running state hash.

/// A running state hash: two sums modulo 2^64, the first one in the low half.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StateHash(pub u128);

impl StateHash {
    /// A row appears, or changes.
    #[inline]
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
    pub(super) fn less(self, hash: u128) -> Self {
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

/// The sum of two numbers modulo 2^64 each, the first one in the low half.
#[inline]
pub(super) fn sum_of(a: u128, b: u128) -> u128 {
    join([0, 64].map(|half| ((a >> half) as u64).wrapping_add((b >> half) as u64)))
}

#[inline]
pub(super) fn join([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}
