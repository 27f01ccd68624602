//! Memory to measure a machine with, or a profile of the `emulated` device: loads, stores, flushes
//! and fences in a range that has one owner.
//!
//! A device leaves it to its callers who may store where, and is unsafe to store to. Here the
//! borrow checker knows: loads share the area, stores have it alone, and the device never leaves
//! it. So a caller that only measures needs no unsafe code.

use std::sync::Arc;

use crate::cpu::prefetch;
use crate::device::{Counters, Device, Port};
use crate::emulated::Emulated;
use crate::failure::DeviceError;

/// A zero-filled range of memory of one owner. See the module's documentation.
pub struct MeasuringArea {
    /// The only port to this part of a device.
    port: Port<Emulated>,
    /// Where the part begins in the device.
    begin: u64,
    bytes: u64,
}

impl MeasuringArea {
    /// Areas of a device that is not shared, of `bytes` each, for as many threads.
    pub(crate) fn of_device(
        device: &Arc<Emulated>,
        bytes: u64,
        areas: usize,
    ) -> Result<Vec<Self>, DeviceError> {
        let all_bytes = bytes.saturating_mul(areas as u64);
        device.grow_image(all_bytes)?;
        let area = |id| {
            let port = Port::new(Arc::clone(device), id);
            Self { port, begin: u64::from(id) * bytes, bytes }
        };
        Ok((0..areas as u32).map(area).collect())
    }

    /// Where a range of the area is in the device.
    #[inline]
    fn place(&self, offset: u64, len: u64) -> u64 {
        let inside = len <= self.bytes && offset <= self.bytes - len;
        assert!(inside, "{len} bytes at {offset} are outside the area of {} bytes", self.bytes);
        self.begin + offset
    }

    /// Number of bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads one aligned 8-byte word.
    ///
    /// # Panics
    /// If the word is not aligned or not inside the area.
    #[inline]
    #[must_use]
    pub fn load_u64(&self, offset: u64) -> u64 {
        self.port.load_u64(self.place(offset, 8))
    }

    /// Borrows bytes.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline]
    #[must_use]
    pub fn slice(&self, offset: u64, len: u64) -> &[u8] {
        // SAFETY: owned by the area, whose stores need it alone: none happens while the slice
        // lives.
        unsafe { self.port.device().image().slice(self.place(offset, len), len) }
    }

    /// Borrows bytes, which the profile charges for.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline]
    pub fn read(&mut self, offset: u64, len: u64) -> &[u8] {
        let at = self.place(offset, len);
        // SAFETY: owned by the area, as above.
        unsafe { self.port.read(at, len) }
    }

    /// Hints that the line at `offset` will be used soon.
    #[inline]
    pub fn prefetch(&self, offset: u64) {
        prefetch(
            self.port
                .device()
                .image()
                .base()
                .addr()
                .wrapping_add((self.begin.wrapping_add(offset)) as usize),
        );
    }

    /// Stores bytes with ordinary stores.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline]
    pub fn store_bytes(&mut self, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the area, which the caller has alone.
        unsafe { self.port.store_bytes(self.place(offset, bytes.len() as u64), bytes) }
    }

    /// Stores bytes non-temporally; done after the next fence.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline]
    pub fn store_nt(&mut self, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the area, which the caller has alone.
        unsafe { self.port.store_nt(self.place(offset, bytes.len() as u64), bytes) }
    }

    /// Starts writing the lines of a range back to memory; done after the next fence.
    ///
    /// # Panics
    /// If the range is not inside the area.
    #[inline]
    pub fn flush(&mut self, offset: u64, len: u64) {
        self.port.flush(self.place(offset, len), len);
    }

    /// Waits until earlier flushes and non-temporal stores are done.
    #[inline]
    pub fn fence(&mut self) {
        self.port.fence();
    }

    /// Waits for as long as the profile still charges for.
    pub fn pay_owed_time(&mut self) {
        self.port.pay_owed_time();
    }

    /// What was done since the last time.
    pub fn take_counters(&mut self) -> Counters {
        self.port.take_counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulated::Profile;

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
    fn areas_of_one_device_are_apart() {
        let mut areas = MeasuringArea::of_profile(Profile::None, 4096, 2).unwrap();
        areas[0].store_bytes(4032, &[1; 64]);
        areas[1].store_bytes(0, &[2; 64]);
        assert_eq!(areas[0].read(4032, 64), [1; 64]);
        assert_eq!(areas[1].read(0, 65), [[2; 64].as_slice(), &[0]].concat());
        assert_eq!(areas[1].take_counters().lines_read, 2);
    }

    #[test]
    #[should_panic(expected = "outside the area")]
    fn a_store_beyond_the_end_is_refused() {
        let mut area = MeasuringArea::new(2 << 20).unwrap();
        area.store_nt((2 << 20) - 32, &[0; 64]);
    }
}
