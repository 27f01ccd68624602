//! Where inline values lie in a row, and which are inline (NV 5.3).
//!
//! An inline heap is two fixed halves, one for each version slot, or it is *shared*: the value in
//! slot 0 lies at its front, that in slot 1 at its back. Then where a value lies follows from its
//! slot and its length, and whether a new one is inline depends on what the other slot holds and
//! has to keep: values that fit alone but not together go to the pool (O-32). The bytes of both are
//! computed from their pointers each time, because sizes of their own could be torn.

use super::layout::RowLayout;
use super::shared_heap::{back_offset, fit_together};
use crate::format::ValuePointer;

impl RowLayout {
    /// Offset of an inline value.
    #[inline]
    pub fn inline_offset(&self, row: u64, slot: usize, len: u64) -> u64 {
        if self.shared_heap_bytes == 0 || slot == 0 {
            return self.half_offset(row, slot);
        }
        row + self.heap_offset + back_offset(self.shared_heap_bytes, len)
    }

    /// Bytes from the offset of an inline value on that are its own, whatever the other version is.
    #[inline]
    pub(super) fn inline_room(&self, len: u64) -> u64 {
        if self.shared_heap_bytes == 0 { self.half_bytes } else { len }
    }

    /// Whether a value is inline where the other slot holds nothing that has to stay.
    #[inline]
    pub fn fits_alone(&self, len: u64) -> bool {
        len <= self.half_bytes || len <= self.shared_heap_bytes
    }

    /// Whether a value is inline whatever else its row holds.
    pub fn fits_always(&self, len: u64) -> bool {
        let longest = self.value_bytes_max;
        match self.shared_heap_bytes {
            0 => self.fits_half(len),
            heap => [[len, longest], [longest, len]].iter().all(|&lens| fit_together(heap, lens)),
        }
    }

    /// Whether the new value of a slot is inline. The version in the other slot, which has the
    /// pointer `other`, has to stay as it is.
    pub fn fits_beside(&self, slot: usize, len: u64, other: ValuePointer) -> bool {
        if self.shared_heap_bytes == 0 {
            return self.fits_half(len);
        }
        let mut lens = [inline_bytes(other); 2];
        lens[slot] = len;
        fit_together(self.shared_heap_bytes, lens)
    }

    /// Whether the values of the two slots have bytes in common; each must be one that can be.
    pub fn overlap(&self, pointers: [ValuePointer; 2]) -> bool {
        self.shared_heap_bytes > 0
            && !fit_together(self.shared_heap_bytes, pointers.map(inline_bytes))
    }
}

/// Bytes that a version takes in the inline heap.
fn inline_bytes(pointer: ValuePointer) -> u64 {
    if pointer.is_inline() { pointer.value_bytes() } else { 0 }
}

#[cfg(test)]
mod tests;
