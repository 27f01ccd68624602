//! Places in the serial order, made of timestamps: between two transactions that write is a place
//! for all those that read the state which the first one left.

/// The place of a transaction with a timestamp.
pub(crate) fn place_at(timestamp: u64) -> u64 {
    timestamp * 2
}

/// The place of those that read the state which the transaction with a timestamp left.
pub(crate) fn place_behind(timestamp: u64) -> u64 {
    timestamp.saturating_mul(2).saturating_add(1)
}
