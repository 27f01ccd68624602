//! Erasing what a crash left of records that do not count.
//!
//! A record that a power cut has torn lacks some of its sectors (on memory: words). Whatever is
//! written in its place later may bring just these: calls that are the same, or zeros of a padding.
//! If another power cut leaves the old header beside them the record is whole, although its epoch
//! was logged again elsewhere and answered (O-24, O-82). So the header goes, durably, before
//! anything else is written to the log.

use pmem::{Device, Port};

use super::error::LogError;
use super::format::HEADER_BYTES;
use super::log::InputLog;

impl InputLog {
    /// Erases what was found at open and does not count. Not done by the open itself, which changes
    /// nothing; a crash on the way leaves less of the same.
    ///
    /// # Errors
    /// The device's, sticky (O-57).
    pub(super) fn erase_leftovers(&self) -> Result<(), LogError> {
        let mut space = self.space();
        let leftovers = std::mem::take(&mut space.leftovers);
        if leftovers.is_empty() {
            return Ok(());
        }
        let are_free = leftovers.iter().all(|&segment| space.free.contains(segment));
        assert!(are_free, "nothing that the log holds is erased (O-82)");
        drop(space);
        let mut port = Port::new(self.device.clone(), u32::MAX);
        for segment in leftovers {
            port.log_write(self.geometry.offset(segment), &[0; HEADER_BYTES])?;
        }
        port.log_fence();
        Ok(self.device.log_sync()?)
    }
}
