//! Memory in which a value is written before it is copied.

use std::cell::Cell;

/// Most bytes that a thread keeps for the next value.
const SCRATCH_BYTES: usize = 1 << 16;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `then` with an empty vector, which a thread allocates once.
pub(crate) fn with_scratch<R>(then: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let result = then(&mut bytes);
    if bytes.capacity() <= SCRATCH_BYTES {
        SCRATCH.set(bytes);
    }
    result
}
