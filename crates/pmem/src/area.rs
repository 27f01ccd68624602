//! Memory to measure a machine with: the loads, stores, flushes and fences of the `emulated` device
//! without added time, in a range that has one owner.
//!
//! A device leaves it to its callers who may store where, and is unsafe to store to. Here the
//! borrow checker knows: loads share the area, stores have it alone, and the device never leaves
//! it. So whoever only measures needs no unsafe code.

use std::sync::Arc;

use crate::{Device, DeviceError, Emulated, Port, Profile, prefetch};

/// A zero-filled range of memory of one owner. See the module's documentation.
pub struct MeasuringArea {
    /// The only port of a device that nobody else refers to.
    port: Port<Emulated>,
    bytes: u64,
}

impl MeasuringArea {
    /// Reserves `bytes` of address space, on huge pages where the system has them. Memory is taken
    /// when a page is first stored to.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn new(bytes: u64) -> Result<Self, DeviceError> {
        let device = Emulated::new(Profile::None, bytes, 0)?;
        device.grow_image(bytes)?;
        Ok(Self { port: Port::new(Arc::new(device), 0), bytes })
    }

    /// Number of bytes.
    #[inline(always)]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads one aligned 8-byte word.
    ///
    /// # Panics
    /// If the word is not aligned or not inside the area.
    #[inline(always)]
    #[must_use]
    pub fn load_u64(&self, offset: u64) -> u64 {
        self.port.load_u64(offset)
    }

    /// Borrows bytes.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline(always)]
    #[must_use]
    pub fn slice(&self, offset: u64, len: u64) -> &[u8] {
        // SAFETY: owned by the area, whose stores need it alone: none happens while the slice
        // lives.
        unsafe { self.port.device().image().slice(offset, len) }
    }

    /// Hints that the line at `offset` will be used soon.
    #[inline(always)]
    pub fn prefetch(&self, offset: u64) {
        prefetch(self.port.device().image().base().addr().wrapping_add(offset as usize));
    }

    /// Stores bytes with ordinary stores.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline(always)]
    pub fn store_bytes(&mut self, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the area, which the caller has alone.
        unsafe { self.port.store_bytes(offset, bytes) }
    }

    /// Stores bytes non-temporally; done after the next fence.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline(always)]
    pub fn store_nt(&mut self, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the area, which the caller has alone.
        unsafe { self.port.store_nt(offset, bytes) }
    }

    /// Starts writing the lines of a range back to memory; done after the next fence.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline(always)]
    pub fn flush(&mut self, offset: u64, len: u64) {
        self.port.flush(offset, len);
    }

    /// Waits until earlier flushes and non-temporal stores are done.
    #[inline(always)]
    pub fn fence(&mut self) {
        self.port.fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_see_every_kind_of_store() {
        let mut area = MeasuringArea::new(8192).unwrap();
        assert_eq!(area.bytes(), 8192);
        assert!(area.slice(0, 8192).iter().all(|byte| *byte == 0));
        area.store_bytes(64, &7_u64.to_le_bytes());
        area.flush(64, 8);
        area.store_nt(4096, &[1; 128]);
        area.fence();
        for offset in [64, 4096, u64::MAX] {
            area.prefetch(offset);
        }
        assert_eq!(area.load_u64(64), 7_u64.to_le());
        assert_eq!(area.slice(4096, 129), [[1; 128].as_slice(), &[0]].concat());
    }

    #[test]
    #[should_panic(expected = "outside the mapping")]
    fn a_store_beyond_the_end_is_refused() {
        let mut area = MeasuringArea::new(2 << 20).unwrap();
        area.store_nt((2 << 20) - 32, &[0; 64]);
    }
}
