//! The serial id of a call, as it lies in a row.

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
    #[inline(always)]
    pub fn new(epoch: u64, position: u64) -> Self {
        debug_assert!(epoch <= EPOCH_MAX && position <= EPOCH_CALLS_MAX);
        Self(epoch << POSITION_BITS | position)
    }

    /// Epoch part.
    #[inline(always)]
    pub fn epoch(self) -> u64 {
        self.0 >> POSITION_BITS
    }

    /// Position part.
    #[inline(always)]
    pub fn position(self) -> u64 {
        self.0 & EPOCH_CALLS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_01_serial_ids_order_by_epoch_then_position() {
        let last = SerialId::new(7, EPOCH_CALLS_MAX);
        assert!(last < SerialId::new(8, 0));
        assert_eq!((last.epoch(), last.position()), (7, EPOCH_CALLS_MAX));
        assert_eq!(SerialId::new(EPOCH_MAX, 5).epoch(), EPOCH_MAX);
    }
}
