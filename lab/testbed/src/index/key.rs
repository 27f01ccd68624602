//! Keys as indexes keep them: without memory of their own, and ordered as their bytes are.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use xxhash_rust::xxh3::xxh3_64;

/// Longest key. With it, the header of a slot and the key lie in one cache line.
pub(crate) const KEY_BYTES_MAX: usize = 47;

/// A key in one of its forms.
pub(crate) trait Key: Copy + Ord + Hash + Send + Sync + 'static {
    /// The key with these bytes.
    fn of(bytes: &[u8]) -> Self;
    /// Hands out the bytes.
    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R;
    /// A hash whose upper bits are good, too.
    fn mixed(&self) -> u64;
}

impl Key for u64 {
    fn of(bytes: &[u8]) -> Self {
        Self::from_be_bytes(bytes.try_into().expect("every key of this table has 8 bytes"))
    }

    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(&self.to_be_bytes())
    }

    fn mixed(&self) -> u64 {
        let product = u128::from(*self ^ 0x9216_d5d9_8979_fb1b) * 0x9e37_79b9_7f4a_7c15;
        product as u64 ^ (product >> 64) as u64
    }
}

/// A key of up to [`KEY_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LongKey {
    // Padded with zeros, so that this order with the length behind it is that of the bytes.
    bytes: [u8; KEY_BYTES_MAX],
    len: u8,
}

impl Key for LongKey {
    fn of(from: &[u8]) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..from.len()].copy_from_slice(from);
        Self { bytes, len: from.len() as u8 }
    }

    fn with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        take(&self.bytes[..usize::from(self.len)])
    }

    fn mixed(&self) -> u64 {
        self.with_bytes(xxh3_64)
    }
}

impl Hash for LongKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

/// Takes one number, and mixes it.
#[derive(Debug, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.mixed();
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are hashed as numbers")
    }
}

pub(super) type BuildMixer = BuildHasherDefault<Mixer>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_bytes() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"b"];
        for (low, high) in keys.iter().zip(&keys[1..]) {
            assert!(LongKey::of(low) < LongKey::of(high), "{low:?} {high:?}");
        }
        assert!(u64::of(&[0, 0, 0, 0, 0, 0, 1, 0]) > u64::of(&[0, 0, 0, 0, 0, 0, 0, 255]));
    }
}
