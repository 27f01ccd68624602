//! Values of rows: a counter, the number of the row, and bytes that follow from both and that no
//! compression makes shorter.

use std::hint::black_box;

/// Bytes of the counter and of the number.
pub(crate) const VALUE_BYTES_MIN: usize = 16;
/// The longest value that every database takes.
pub(crate) const VALUE_BYTES_MAX: usize = 1 << 16;

/// The value of a row after so many updates.
pub(crate) fn value(row: u64, counter: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    let (words, rest) = value.as_chunks_mut::<8>();
    let mut random = Random::new(row.rotate_left(32) ^ counter);
    for (i, word) in words.iter_mut().enumerate() {
        *word = match i {
            0 => counter,
            1 => row,
            _ => random.next(),
        }
        .to_le_bytes();
    }
    let end = random.next().to_le_bytes();
    rest.copy_from_slice(&end[..rest.len()]);
    value
}

/// The counter, if it is a value of this row.
pub(crate) fn counter(row: u64, value: &[u8]) -> Option<u64> {
    let (words, _) = value.as_chunks::<8>();
    let [counter, of, ..] = words else { return None };
    (u64::from_le_bytes(*of) == row).then_some(u64::from_le_bytes(*counter))
}

/// The value after one more update.
pub(crate) fn updated(row: u64, before: &[u8]) -> Option<Vec<u8>> {
    Some(value(row, counter(row, before)? + 1, before.len()))
}

/// What a caller does with a value that it reads: looks at it. `None` if it is not the row's.
pub(crate) fn look_at(row: u64, value: &[u8]) -> Option<()> {
    black_box(counter(row, value)?);
    Some(())
}

/// The generator of Marsaglia: shifts and exclusive or.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Never 0, and different bits for seeds that hardly differ.
        let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_row_and_counter_and_differs_with_both() {
        for bytes in [16, 17, 100, 1000] {
            let first = value(7, 0, bytes);
            assert_eq!(first.len(), bytes);
            assert_eq!(counter(7, &first), Some(0));
            assert_eq!(counter(8, &first), None);
            let second = updated(7, &first).unwrap();
            assert_eq!(second, value(7, 1, bytes));
        }
        assert_ne!(value(7, 0, 100)[16..], value(7, 1, 100)[16..]);
        assert_ne!(value(7, 0, 100)[16..], value(8, 0, 100)[16..]);
        assert_eq!(counter(7, &[0; 15]), None);
    }
}
