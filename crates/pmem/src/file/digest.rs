//! The digest by which an image is known: of which snapshot it is, and whether every page is whole.
//!
//! It is a sum over all pages, so that a snapshot that changes a few pages changes it by a few
//! terms. A page of zeros adds nothing, so neither do holes nor growth.

use crate::memory::PAGE_BYTES;

/// CRC-32 of a page of zeros.
pub(super) const ZERO_PAGE_CRC: u32 = 0xC71C_0011;

/// CRC-32 of every page of an image, and the digest that follows from them.
#[derive(Debug, Default)]
pub(super) struct ImageDigest {
    crcs: Vec<u32>,
    sum: u64,
}

impl ImageDigest {
    /// An image of zeros.
    pub(super) fn of_zeros(bytes: u64) -> Self {
        Self { crcs: vec![ZERO_PAGE_CRC; (bytes / PAGE_BYTES) as usize], sum: 0 }
    }

    pub(super) fn value(&self) -> u64 {
        self.sum
    }

    /// What a page was last said to be; pages that were never named are zero.
    pub(super) fn crc(&self, page: u64) -> u32 {
        self.crcs.get(page as usize).copied().unwrap_or(ZERO_PAGE_CRC)
    }

    /// Says what a page is now.
    pub(super) fn set(&mut self, page: u64, crc: u32) {
        let old = self.crc(page);
        self.sum = self.sum.wrapping_sub(share(page, old)).wrapping_add(share(page, crc));
        if page as usize >= self.crcs.len() {
            self.crcs.resize(page as usize + 1, ZERO_PAGE_CRC);
        }
        self.crcs[page as usize] = crc;
    }
}

/// The digest that the headers of a [`super::File`] must have for these bytes of `image`: for tools
/// and tests that make such files.
#[must_use]
pub fn image_digest(image: &[u8]) -> u64 {
    let mut digest = ImageDigest::default();
    for (page, bytes) in (0..).zip(image.chunks_exact(PAGE_BYTES as usize)) {
        digest.set(page, crc32fast::hash(bytes));
    }
    digest.value()
}

/// What a page adds to the digest.
fn share(page: u64, crc: u32) -> u64 {
    if crc == ZERO_PAGE_CRC { 0 } else { mix(mix(page) ^ u64::from(crc)) }
}

/// The mixer of SplitMix64: each bit of the argument changes about half of the result.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of SplitMix64 from seed 0, as published. Stores are known by what follows
    /// from the mixer, so it can never change.
    #[test]
    fn the_mixer_is_that_of_splitmix64() {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(STEP), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(mix(STEP.wrapping_mul(2)), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn zeros_add_nothing() {
        assert_eq!(crc32fast::hash(&[0; PAGE_BYTES as usize]), ZERO_PAGE_CRC);
        let mut digest = ImageDigest::of_zeros(2 * PAGE_BYTES);
        assert_eq!(digest.value(), 0);
        digest.set(9, ZERO_PAGE_CRC);
        assert_eq!((digest.value(), digest.crc(100)), (0, ZERO_PAGE_CRC));
        digest.set(1, 5);
        assert_ne!(digest.value(), 0);
        digest.set(1, ZERO_PAGE_CRC);
        assert_eq!(digest.value(), 0);
    }

    #[test]
    fn the_order_of_changes_does_not_matter_but_the_place_does() {
        let of = |changes: &[(u64, u32)]| {
            let mut digest = ImageDigest::default();
            changes.iter().for_each(|(page, crc)| digest.set(*page, *crc));
            digest.value()
        };
        assert_eq!(of(&[(0, 1), (7, 2)]), of(&[(7, 9), (0, 1), (7, 2)]));
        assert_ne!(of(&[(0, 1), (7, 2)]), of(&[(0, 2), (7, 1)]));
        assert_ne!(of(&[(0, 1)]), of(&[(1, 1)]));
    }
}
