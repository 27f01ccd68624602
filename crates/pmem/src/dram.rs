//! Plain memory: the fastest device, and the one that forgets everything.
//!
//! Flush and fence compile to nothing, so that this device shows what the engine costs without
//! persistence.

use crate::mapping::Pages;
use crate::memory::Memory;
use crate::{Description, Device, DeviceError, Mapping, PortState};

/// Memory without durability.
#[derive(Debug)]
pub struct Dram {
    memory: Memory,
}

impl Dram {
    /// A device with empty spaces that may grow up to the limits.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Result<Self, DeviceError> {
        Ok(Self { memory: Memory::new(image_limit_bytes, log_limit_bytes, Pages::Huge)? })
    }
}

impl Device for Dram {
    fn description(&self) -> Description {
        Description {
            name: "dram".to_string(),
            durable: false,
            note: "plain memory without flushes: nothing survives the process".to_string(),
        }
    }

    crate::memory::in_memory!();
    crate::memory::in_memory!(free_log_reads);

    #[inline(always)]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe { self.memory.image.mapping.store_bytes(offset, bytes) }
    }

    #[inline(always)]
    fn flush(&self, _: &mut PortState, _: u64, _: u64) {}

    #[inline(always)]
    fn fence(&self, _: &mut PortState) {}

    fn log_write(&self, _: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.memory.log_write(offset, bytes);
        Ok(())
    }

    fn log_fence(&self, _: &mut PortState) {}
}
