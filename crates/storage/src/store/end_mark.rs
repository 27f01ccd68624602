//! The end mark: how far the engine had come before its process ended.
//!
//! At the end of each epoch the engine leaves epoch and state hash with the device, without a sync
//! ([`pmem::Device::write_mark`]). After a killed process recovery knows from it which epoch was
//! the last one to end and what it came to; after a power cut it may find an older mark or none,
//! which says less and nothing wrong: a mark is written when the log of its epoch is durable.

use pmem::{AnyDevice, Device, MARK_BYTES};

use crate::digest::StateHash;
use crate::error::Result;
use crate::ids::EpochNumber;

/// An epoch that ended, and the state that it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndMark {
    /// The epoch.
    pub epoch: EpochNumber,
    /// State hash at its end, if it is maintained.
    pub hash: Option<StateHash>,
}

impl EndMark {
    /// Leaves the mark with the device.
    ///
    /// # Errors
    /// The device's, sticky.
    pub fn write(&self, device: &AnyDevice) -> Result<()> {
        Ok(device.write_mark(&self.encode())?)
    }

    /// The bytes of the mark.
    pub(crate) fn encode(&self) -> [u8; MARK_BYTES] {
        let StateHash(hash) = self.hash.unwrap_or_default();
        let known = u64::from(self.hash.is_some());
        let words = [self.epoch.0, hash as u64, (hash >> 64) as u64, known];
        let mut mark = [0; MARK_BYTES];
        for (bytes, word) in mark.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        mark
    }

    /// The newest mark that the device found.
    pub fn read(device: &AnyDevice) -> Option<Self> {
        Self::decode(&device.mark()?)
    }

    /// Reads the bytes of a mark.
    pub(crate) fn decode(mark: &[u8; MARK_BYTES]) -> Option<Self> {
        let words: [[u8; 8]; 4] = *mark.as_chunks().0.first_chunk()?;
        let [epoch, low, high, known] = words.map(u64::from_le_bytes);
        let hash = StateHash(u128::from(low) | u128::from(high) << 64);
        Some(Self { epoch: EpochNumber(epoch), hash: (known == 1).then_some(hash) })
    }
}
