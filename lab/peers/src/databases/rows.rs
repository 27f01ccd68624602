//! What the databases have in common: how rows are loaded and named.

use std::ops::Range;

use crate::peer::{Error, Result, Shape};

/// Rows that are loaded in one transaction, which may have a limit or be in memory.
const ROWS_AT_ONCE: usize = 1000;
/// The same for bytes of values.
const BYTES_AT_ONCE: usize = 1 << 20;

/// All rows, in the parts that are loaded at once.
pub(super) fn parts(shape: Shape) -> impl Iterator<Item = Range<u64>> {
    let at_once = (BYTES_AT_ONCE / shape.value_bytes).clamp(1, ROWS_AT_ONCE);
    let from = (0..shape.rows).step_by(at_once);
    from.map(move |from| from..shape.rows.min(from + at_once as u64))
}

/// A row that is not there, or that is another one's.
pub(super) fn missing(who: &str, row: u64) -> Error {
    Error::lost(who, format!("row {row} is missing, or is not what was written"))
}

/// The number of a row, from a key of 8 bytes, highest first.
pub(super) fn row_of(who: &str, key: &[u8]) -> Result<u64> {
    let key = <[u8; 8]>::try_from(key);
    Ok(u64::from_be_bytes(key.map_err(|_| Error::lost(who, "a key has not 8 bytes"))?))
}
