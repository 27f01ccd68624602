//! Plain memory: the fastest device, and the one that forgets everything.
//!
//! Flush and fence compile to nothing, so that this device shows what the engine costs without
//! persistence.

use crate::device::{Description, Device, Kind, PortState, Shortcuts};
use crate::failure::DeviceError;
use crate::memory::{Mapping, Memory, Pages};

/// Bytes of a log that are copied at once.
const COPIED_AT_ONCE: usize = 64 << 10;

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

    /// A device with the image and the log that another one shows now, and with limits of its own.
    /// Words of the image that are stored to meanwhile may be old or new.
    ///
    /// # Errors
    /// As [`Dram::new`]; [`DeviceError::Full`] if the limits are too small for what is there.
    pub fn copy_of<D: Device>(
        device: &D,
        image_limit_bytes: u64,
        log_limit_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let copy = Self::new(image_limit_bytes, log_limit_bytes)?;
        copy.grow_image(device.image_bytes())?;
        for offset in (0..device.image_bytes()).step_by(size_of::<u64>()) {
            let word = device.image().load_u64(offset);
            // What is zero is there, and takes no memory.
            if word != 0 {
                // SAFETY: the word is aligned and inside; the copy is not shared.
                unsafe { copy.memory.image.mapping.store_u64(offset, word) };
            }
        }
        copy.grow_log(device.log_bytes())?;
        let mut chunk = vec![0; COPIED_AT_ONCE];
        for offset in (0..device.log_bytes()).step_by(COPIED_AT_ONCE) {
            let len = (device.log_bytes() - offset).min(COPIED_AT_ONCE as u64) as usize;
            device.log_read(offset, &mut chunk[..len])?;
            if chunk[..len].iter().any(|&byte| byte != 0) {
                copy.memory.log_write(offset, &chunk[..len]);
            }
        }
        Ok(copy)
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

    fn shortcuts(&self) -> Shortcuts {
        Shortcuts(Kind::Memory)
    }

    crate::memory::in_memory!();
    crate::memory::in_memory!(free_log_reads);

    #[inline]
    // SAFETY: the contract of the trait: the caller owns the range in this phase.
    unsafe fn store_nt(&self, _: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe { self.memory.image.mapping.store_bytes(offset, bytes) }
    }

    #[inline]
    fn flush(&self, _: &mut PortState, _: u64, _: u64) {}

    #[inline]
    fn fence(&self, _: &mut PortState) {}

    fn log_write(&self, _: &mut PortState, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.memory.log_write(offset, bytes);
        Ok(())
    }

    fn log_fence(&self, _: &mut PortState) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::Port;

    #[test]
    fn a_copy_shows_what_the_device_showed_and_nothing_later() {
        let device = Arc::new(Dram::new(1 << 20, 1 << 20).expect("address space"));
        device.grow_image(100_000).expect("within the limit");
        device.grow_log(200_000).expect("within the limit");
        let mut port = Port::new(Arc::clone(&device), 0);
        let store = |port: &mut Port<Dram>, offset: u64, word: u64| {
            // SAFETY: no other thread uses the device.
            unsafe { port.store_u64(offset, word) };
        };
        store(&mut port, 8, 7);
        store(&mut port, 99_992, u64::MAX);
        port.log_write(150_000, b"logged").expect("there is room");
        let copy = Dram::copy_of(&*device, 1 << 20, 1 << 20).expect("a copy");
        store(&mut port, 8, 8);
        assert_eq!((copy.image_bytes(), copy.log_bytes()), (device.image_bytes(), 200_704));
        let words = [0, 8, 99_992].map(|offset| copy.image().load_u64(offset));
        assert_eq!(words, [0, 7, u64::MAX]);
        let mut logged = [0; 8];
        copy.log_read(149_999, &mut logged).expect("memory");
        assert_eq!(&logged, b"\0logged\0");
        assert!(Dram::copy_of(&*device, 4096, 1 << 20).is_err(), "no room");
    }
}
