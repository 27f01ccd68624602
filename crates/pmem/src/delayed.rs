//! Memory for tests, in which non-temporal stores arrive late: not before the thread that made
//! them orders or fences its stores. Real ones are seldom late for longer than a reader takes to
//! find them, so that a missing order shows once in many hours.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::thread::{self, ThreadId};

use crate::device::{Description, Device, PortState};
use crate::failure::DeviceError;
use crate::memory::{Mapping, Memory, Pages};
use crate::sync::background::{Mutex, MutexGuard};

/// Offset and bytes of a store that has not arrived.
type Store = (u64, Box<[u8]>);

/// Memory with late stores.
#[derive(Debug)]
pub struct Delayed {
    memory: Memory,
    delayed: Mutex<HashMap<ThreadId, Vec<Store>>>,
}

impl Delayed {
    /// A device with empty spaces that may grow up to the limits.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(image_limit_bytes: u64, log_limit_bytes: u64) -> Result<Self, DeviceError> {
        let memory = Memory::new(image_limit_bytes, log_limit_bytes, Pages::Huge)?;
        Ok(Self { memory, delayed: Mutex::default() })
    }

    fn delayed(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<Store>>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Delayed {
    fn description(&self) -> Description {
        Description {
            name: "late".to_string(),
            durable: false,
            note: "memory in which non-temporal stores arrive late: for tests".to_string(),
        }
    }

    crate::memory::in_memory!();
    crate::memory::in_memory!(free_log_reads);

    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        self.delayed().entry(thread::current().id()).or_default().push((offset, bytes.into()));
    }

    fn order_stores(&self) {
        let stores = self.delayed().remove(&thread::current().id());
        for (offset, bytes) in stores.into_iter().flatten() {
            // SAFETY: the caller of `store_nt` owns the range until the end of the phase.
            unsafe { self.memory.image.mapping.store_bytes(offset, &bytes) };
        }
    }

    fn flush(&self, _: &mut PortState, _: u64, _: u64) {}

    fn fence(&self, _: &mut PortState) {
        self.order_stores();
    }

    fn log_write(&self, _: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.memory.log_write(offset, bytes);
        Ok(())
    }

    fn log_fence(&self, _: &mut PortState) {}
}
