//! The pointer of a version to its value.

use crate::format::limits::VALUE_BYTES_MAX;

/// Where a persistent value is: bits 0-1 kind (0 none, 1 in the row's inline heap, 2 in the value
/// pool), bits 2-19 length in bytes, bits 20-63 offset of the pool slot in 16-byte units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ValuePointer(pub u64);

impl ValuePointer {
    /// A value in the inline heap.
    pub fn inline(len: u64) -> Self {
        debug_assert!(len <= u64::from(VALUE_BYTES_MAX), "no value has {len} bytes");
        Self(1 | len << 2)
    }

    /// A value in a pool slot.
    pub fn external(offset: u64, len: u64) -> Self {
        debug_assert!(len <= u64::from(VALUE_BYTES_MAX), "no value has {len} bytes");
        debug_assert!(offset.is_multiple_of(16), "a pointer has no room for offset {offset}");
        debug_assert!(offset < 1 << 48, "offset {offset} is in no image");
        Self(2 | len << 2 | (offset / 16) << 20)
    }

    /// Length of the value in bytes.
    pub fn value_bytes(self) -> u64 {
        self.0 >> 2 & 0x3ffff
    }

    /// Whether there is no value.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Offset of the pool slot, if the value is in one.
    pub fn external_offset(self) -> Option<u64> {
        (self.0 & 3 == 2).then_some((self.0 >> 20) * 16)
    }

    /// Whether the value is in the inline heap.
    pub fn is_inline(self) -> bool {
        self.0 & 3 == 1
    }

    /// Whether the word can be one of ours.
    pub fn is_valid(self) -> bool {
        self.0 == 0
            || self.value_bytes() <= u64::from(VALUE_BYTES_MAX)
                && (self.is_inline() && self.0 >> 20 == 0 || self.external_offset().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_42_pointers_keep_length_and_offset_at_their_limits() {
        for len in [0, 1, 4097, u64::from(VALUE_BYTES_MAX)] {
            let p = ValuePointer::external((1 << 48) - 16, len);
            assert_eq!((p.value_bytes(), p.external_offset()), (len, Some((1 << 48) - 16)));
            assert!(p.is_valid());
            let p = ValuePointer::inline(len);
            assert_eq!((p.value_bytes(), p.external_offset(), p.is_null()), (len, None, false));
            assert!(p.is_inline() && p.is_valid());
        }
    }

    /// O-54: what no pointer of ours looks like is damage.
    #[test]
    fn o_54_other_words_are_no_pointers() {
        let too_long = u64::from(VALUE_BYTES_MAX) + 1;
        for (word, is_valid) in [
            (0, true),
            (3, false),
            (4, false),
            (1 | too_long << 2, false),
            (2 | too_long << 2 | 5 << 20, false),
            (1 | 8 << 2 | 1 << 20, false),
            (1 | 8 << 2 | 1 << 63, false),
            (3 | 8 << 2 | 5 << 20, false),
        ] {
            assert_eq!(ValuePointer(word).is_valid(), is_valid, "{word:#x}");
        }
    }
}
