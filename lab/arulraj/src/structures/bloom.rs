//! A Bloom filter in memory: whether a run may have a key.

use pmem::Device;
use xxhash_rust::xxh3::xxh3_128;

use crate::Result;
use crate::ground::{Area, Nvm, Part};
use crate::schema::Key;

/// Bytes of a part of a filter.
const PART_BYTES: u64 = 4088;

/// A filter: the slots of its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bloom {
    pub(crate) parts: Vec<u64>,
    pub(crate) bits: u64,
    pub(crate) bits_of_key: u64,
}

impl Bloom {
    /// An empty filter for so many keys.
    pub(crate) fn create<D: Device>(nvm: &mut Nvm<D>, keys: u64, bits_of_key: u64) -> Result<Self> {
        let bits = (keys * bits_of_key).max(64).next_multiple_of(64);
        let mut parts = Vec::new();
        for at in (0..bits / 8).step_by(PART_BYTES as usize) {
            let len = (bits / 8 - at).min(PART_BYTES);
            let part = nvm.allocate(len, Area::Index)?;
            nvm.within(Part::Index, |nvm| nvm.memory.store(part, &vec![0; len as usize]));
            parts.push(part);
        }
        Ok(Self { parts, bits, bits_of_key })
    }

    /// The bytes of all parts.
    pub(crate) fn read<D: Device>(&self, nvm: &mut Nvm<D>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.parts {
            let len = (self.bits / 8 - bytes.len() as u64).min(PART_BYTES);
            bytes.extend_from_slice(nvm.memory.load(*part, len));
        }
        bytes
    }

    /// A filter with these bytes.
    pub(crate) fn load<D: Device>(
        nvm: &mut Nvm<D>,
        bytes: &[u8],
        bits_of_key: u64,
    ) -> Result<Self> {
        let mut parts = Vec::new();
        for part in bytes.chunks(PART_BYTES as usize) {
            let slot = nvm.allocate(part.len() as u64, Area::Index)?;
            nvm.within(Part::Index, |nvm| nvm.memory.store(slot, part));
            parts.push(slot);
        }
        Ok(Self { parts, bits: bytes.len() as u64 * 8, bits_of_key })
    }

    /// Where the bits of a key are: the word, and the bit in it.
    fn places(&self, table: usize, key: &Key) -> impl Iterator<Item = (u64, u64)> {
        let mut bytes = (table as u64).to_le_bytes().to_vec();
        key.0.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let hash = xxh3_128(&bytes);
        let (first, step) = (hash as u64, (hash >> 64) as u64 | 1);
        // As many probes as make a filter of this density wrong least often: bits times ln 2.
        let probes = (self.bits_of_key * 69 / 100).max(1);
        (0..probes).map(move |probe| {
            let bit = first.wrapping_add(step.wrapping_mul(probe)) % self.bits;
            let (word, bit) = (bit / 64 * 8, bit % 64);
            (self.parts[(word / PART_BYTES) as usize] + word % PART_BYTES, 1 << bit)
        })
    }

    pub(crate) fn add<D: Device>(&self, nvm: &mut Nvm<D>, table: usize, key: &Key) {
        nvm.within(Part::Index, |nvm| {
            for (at, bit) in self.places(table, key) {
                let word = nvm.memory.load_u64(at);
                nvm.memory.store_u64(at, word | bit);
            }
        });
    }

    pub(crate) fn may_have<D: Device>(&self, nvm: &mut Nvm<D>, table: usize, key: &Key) -> bool {
        let mut places = self.places(table, key);
        nvm.within(Part::Index, |nvm| places.all(|(at, bit)| nvm.memory.load_u64(at) & bit != 0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::Dram;

    use super::*;
    use crate::ground::Modelled;

    #[test]
    fn it_has_what_was_added_and_little_else() {
        let device = Arc::new(Dram::new(1 << 22, 0).unwrap());
        let mut nvm = Nvm::create(device, 1, Modelled::default()).unwrap();
        let bloom = Bloom::create(&mut nvm, 10_000, 10).unwrap();
        assert!(bloom.parts.len() > 1);
        (0..10_000).for_each(|i| bloom.add(&mut nvm, 0, &Key::of_u64(i)));
        let mut has = |table, i| bloom.may_have(&mut nvm, table, &Key::of_u64(i));
        assert!((0..10_000).all(|i| has(0, i)));
        let wrong = (0..10_000).filter(|i| has(1, *i)).count();
        assert!(wrong < 200, "{wrong} of 10000 are false");
    }
}
