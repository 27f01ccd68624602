//! Where the two values of a shared heap lie: one at its front, one at its back.

/// What the offset of a value is a multiple of, in the image. The value words of row entries count
/// on it; and no two values have bytes in one aligned word, which a power cut leaves old or new as
/// a whole.
const ALIGNMENT: u64 = 8;

/// Where the value in slot 1 begins in a shared heap.
pub(super) fn back_offset(heap_bytes: u64, len: u64) -> u64 {
    let start = heap_bytes.saturating_sub(len);
    start - start % ALIGNMENT
}

/// Whether values of these lengths, of slot 0 and slot 1, lie beside each other in a shared heap.
/// An empty value takes no place.
pub(super) fn fit_together(heap_bytes: u64, lens: [u64; 2]) -> bool {
    match lens {
        [len, 0] | [0, len] => len <= heap_bytes,
        [front, back] => back <= heap_bytes && front <= back_offset(heap_bytes, back),
    }
}
