//! Numbers by tags: 64-bit hashes that are known when a database is opened.

/// What a hash begins with.
pub(crate) const FOLD_START: u64 = 0xcbf2_9ce4_8422_2325;
/// Low bits of a place hold the number plus one, so that an empty place is zero. Tags that are the
/// same in all other bits are the same.
const NUMBER_BITS: u32 = 16;
/// Factors that are tried before there are more places.
const TRIES: u64 = 64;

/// A table that was made so that no two tags have the same place: a lookup is one load and one
/// comparison.
#[derive(Debug)]
pub(crate) struct Tags {
    /// A power of two of them.
    places: Box<[u64]>,
    /// A tag's place are the upper bits of its product with this.
    factor: u64,
    shift: u32,
}

impl Tags {
    /// A table of these tags and their numbers; `None` if two tags are the same.
    pub(crate) fn new(tags: &[(u64, u16)]) -> Option<Self> {
        let mut sorted: Vec<u64> = tags.iter().map(|(tag, _)| tag >> NUMBER_BITS).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        let bits = (2 * tags.len().max(1)).next_power_of_two().ilog2();
        // Different tags differ in the bits that a product with an odd number mixes upwards, so
        // some factor or some more places keep them apart.
        let mut sizes = (bits..).flat_map(|bits| (0..TRIES).map(move |of_size| (bits, of_size)));
        sizes.find_map(|(bits, of_size)| Self::with_factor(tags, bits, factor(of_size)))
    }

    fn with_factor(tags: &[(u64, u16)], bits: u32, factor: u64) -> Option<Self> {
        let places = vec![0; 1 << bits].into();
        let mut table = Self { places, factor, shift: u64::BITS - bits };
        for &(tag, number) in tags {
            let place = table.place(tag);
            assert!(number < u16::MAX, "number {number} has no room in a place");
            if table.places[place] != 0 {
                return None;
            }
            table.places[place] = tag >> NUMBER_BITS << NUMBER_BITS | u64::from(number + 1);
        }
        Some(table)
    }

    #[inline]
    fn place(&self, tag: u64) -> usize {
        // Only what is compared decides, or tags that count as the same would have two places.
        ((tag >> NUMBER_BITS).wrapping_mul(self.factor) >> self.shift) as usize
    }

    /// The number of a tag, if it has one.
    #[inline]
    pub(crate) fn find(&self, tag: u64) -> Option<u16> {
        let place = *self.places.get(self.place(tag))?;
        let number = place & ((1 << NUMBER_BITS) - 1);
        let is_of_tag = (place ^ tag) >> NUMBER_BITS == 0 && number != 0;
        is_of_tag.then(|| number as u16 - 1)
    }
}

/// Odd, and different for each try.
fn factor(of_size: u64) -> u64 {
    0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * of_size + 1)
}

pub(crate) const fn fold(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

/// A hash of texts, of which each ends.
pub(crate) fn fold_all(texts: &[&[u8]]) -> u64 {
    texts.iter().fold(FOLD_START, |hash, text| fold(fold(hash, text), &[0xff]))
}

/// The tag of a hash: its upper bits choose the place in a table of tags, so that they are spread.
pub(crate) const fn spread(hash: u64) -> u64 {
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_with_their_numbers() {
        let spread = |i: u64| (i + 1).wrapping_mul(0xd134_2543_de82_ef95);
        // Tags that differ in few bits only are harder to keep apart.
        let near = |i: u64| i << NUMBER_BITS;
        let far = |i: u64| i << 56;
        for count in [0, 1, 7, 8, 9, 256] {
            for tag in [spread, near, far] {
                let tags: Vec<_> = (0..count).map(|i| (tag(i.into()), 300 - i)).collect();
                let table = Tags::new(&tags).unwrap();
                for &(tag, number) in &tags {
                    assert_eq!(table.find(tag), Some(number));
                    assert_eq!(table.find(tag ^ 1 << NUMBER_BITS << 20), None);
                }
                assert_eq!(table.find(tag(1000) ^ 1 << 40), None);
                assert!(table.places.len() <= 128 * tags.len().max(1), "{}", table.places.len());
            }
        }
        assert!(Tags::new(&[(5 << NUMBER_BITS, 0), (5 << NUMBER_BITS | 1, 1)]).is_none());
    }
}
