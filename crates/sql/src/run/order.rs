//! The order of rows by sort keys.

use crate::ir::{Direction, SortKey};
use std::cmp::Ordering;
use values::Datum;

/// The order of two rows by the values of sort keys.
pub(super) fn compare(
    left: &[Datum],
    right: &[Datum],
    directions: impl IntoIterator<Item = Direction>,
) -> Ordering {
    let pairs = left.iter().zip(right).zip(directions);
    pairs
        .map(|((left, right), key)| match (left.is_null(), right.is_null()) {
            (false, false) if key.descending => right.compare(left),
            (false, false) => left.compare(right),
            (left, right) if key.nulls_first => right.cmp(&left),
            (left, right) => left.cmp(&right),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The directions of sort keys.
pub(super) fn directions(keys: &[SortKey]) -> impl Iterator<Item = Direction> + '_ {
    keys.iter().map(SortKey::direction)
}
