//! The serial id of a call, as it lies in a row.

use crate::ids::{EpochNumber, Position};

/// Epoch in the high 40 bits, position in the epoch in the low 24; total order of everything
/// (O-01). Epochs count from 1, so 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SerialId(pub u64);

/// Bits of the position.
pub const POSITION_BITS: u32 = 24;
/// Most transactions of an epoch.
pub const EPOCH_CALLS_MAX: u64 = (1 << POSITION_BITS) - 1;
/// Last epoch number: at a thousand epochs a second, 34 years times a thousand.
pub const EPOCH_MAX: u64 = (1 << (64 - POSITION_BITS)) - 1;

impl SerialId {
    /// The serial id of a position in an epoch.
    #[inline]
    pub fn new(epoch: EpochNumber, position: Position) -> Self {
        debug_assert!(epoch.0 <= EPOCH_MAX, "epoch {epoch} is beyond the last one");
        debug_assert!(u64::from(position.0) <= EPOCH_CALLS_MAX, "no epoch has a call {position}");
        Self(epoch.0 << POSITION_BITS | u64::from(position.0))
    }

    /// Epoch part.
    #[inline]
    pub fn epoch(self) -> EpochNumber {
        EpochNumber(self.0 >> POSITION_BITS)
    }

    /// Position part.
    #[inline]
    pub fn position(self) -> Position {
        Position((self.0 & EPOCH_CALLS_MAX) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_01_serial_ids_order_by_epoch_then_position() {
        let position = Position(EPOCH_CALLS_MAX as u32);
        let last = SerialId::new(EpochNumber(7), position);
        assert!(last < SerialId::new(EpochNumber(8), Position(0)));
        assert_eq!((last.epoch(), last.position()), (EpochNumber(7), position));
        let epoch = EpochNumber(EPOCH_MAX);
        assert_eq!(SerialId::new(epoch, Position(5)).epoch(), epoch);
    }
}
