//! The instructions that move cache lines to persistent memory.
//!
//! Shared by the devices that really flush: `emulated` and `dax`. The choice of instruction is made
//! once, when a device is opened. Elsewhere than on x86-64 there is no flush that is known to reach
//! persistent memory: [`Cpu::CAN_PERSIST`] says so, and `dax` refuses.

#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(crate) use portable::Cpu;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use x86::Cpu;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{
        __cpuid, __cpuid_count, __m128i, _mm_clflush, _mm_loadu_si128, _mm_sfence, _mm_stream_si128,
    };

    const LINE: usize = crate::units::LINE_BYTES as usize;

    /// Which instructions this processor has.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Cpu {
        flush: Flush,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Flush {
        /// Writes the line back and keeps it in the cache.
        Clwb,
        /// Writes the line back and evicts it; not ordered with other flushes.
        ClflushOpt,
        /// Writes the line back and evicts it, one after the other.
        Clflush,
    }

    impl Cpu {
        /// Whether a flush and a fence are known to reach persistent memory.
        pub(crate) const CAN_PERSIST: bool = true;

        pub(crate) fn detect() -> Self {
            const CLFLUSHOPT: u32 = 1 << 23; // leaf 7, register ebx
            const CLWB: u32 = 1 << 24; // leaf 7, register ebx
            let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
            let flush = if features & CLWB != 0 {
                Flush::Clwb
            } else if features & CLFLUSHOPT != 0 {
                Flush::ClflushOpt
            } else {
                Flush::Clflush
            };
            Self { flush }
        }

        /// Starts writing back every line that the range touches.
        ///
        /// # Safety
        /// The range is mapped.
        #[inline]
        pub(crate) unsafe fn flush(self, start: *const u8, len: usize) {
            if len == 0 {
                return;
            }
            let mut line = start.wrapping_sub(start.addr() % LINE);
            let end = start.wrapping_add(len);
            while line < end {
                // SAFETY: the line holds at least one byte of the range, so it is mapped.
                unsafe { self.flush_line(line) };
                line = line.wrapping_add(LINE);
            }
        }

        /// Starts writing back a line.
        ///
        /// # Safety
        /// It is mapped.
        #[inline]
        pub(crate) unsafe fn flush_line(self, line: *const u8) {
            // SAFETY: mapped; the feature was detected. No Rust-visible memory changes.
            unsafe {
                match self.flush {
                    Flush::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack)),
                    Flush::ClflushOpt => asm!("clflushopt [{}]", in(reg) line, options(nostack)),
                    Flush::Clflush => _mm_clflush(line),
                }
            }
        }

        /// Stores a line non-temporally. Durable after the next fence.
        ///
        /// # Safety
        /// The line at `to` is mapped and owned by the caller in this phase.
        #[inline]
        pub(crate) unsafe fn store_line(self, to: *mut u8, line: &[u8; LINE]) {
            // SAFETY: forwarded to the caller.
            unsafe { stream_line(to, line) }
        }

        /// Waits until this core's flushes and non-temporal stores are done.
        #[inline]
        pub(crate) fn fence(self) {
            // SAFETY: every x86-64 processor has it.
            unsafe { _mm_sfence() }
        }

        /// Stores non-temporally: whole lines with such stores, ragged ends with ordinary
        /// stores and a flush. Durable after the next fence.
        ///
        /// # Safety
        /// The range at `to` is mapped and owned by the caller in this phase.
        #[inline]
        pub(crate) unsafe fn store_nt(self, to: *mut u8, bytes: &[u8]) {
            if (to.addr() | bytes.len()).is_multiple_of(LINE) {
                // SAFETY: whole lines of the caller's range.
                unsafe { stream(to, bytes) }
            } else {
                // SAFETY: forwarded to the caller.
                unsafe { self.store_nt_ragged(to, bytes) }
            }
        }

        /// # Safety
        /// As for `store_nt`.
        #[inline(never)]
        unsafe fn store_nt_ragged(self, to: *mut u8, bytes: &[u8]) {
            let head = to.align_offset(LINE).min(bytes.len());
            let (head, rest) = bytes.split_at(head);
            let (body, tail) = rest.split_at(rest.len() - rest.len() % LINE);
            let body_to = to.wrapping_add(head.len());
            let tail_to = body_to.wrapping_add(body.len());
            // SAFETY: the three pieces make up the range of the caller, and `body_to` is aligned to
            // a line unless the body is empty.
            unsafe {
                self.store_ragged(to, head);
                stream(body_to, body);
                self.store_ragged(tail_to, tail);
            }
        }

        /// # Safety
        /// As for `store_nt`.
        #[inline]
        unsafe fn store_ragged(self, to: *mut u8, bytes: &[u8]) {
            if !bytes.is_empty() {
                // SAFETY: mapped and owned by the caller in this phase.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                    self.flush(to, bytes.len());
                }
            }
        }
    }

    /// 16 bytes at a time on every processor: the four pieces of a line leave the core together
    /// all the same, and the 64-byte stores of AVX-512 make some processors run slower for a
    /// millisecond after each (docs/decisions/0016).
    ///
    /// # Safety
    /// `to` is aligned to a line, mapped and owned by the caller in this phase; `bytes` are whole
    /// lines.
    // SAFETY: the caller keeps what is asked for above.
    unsafe fn stream(to: *mut u8, bytes: &[u8]) {
        for (i, line) in bytes.as_chunks::<LINE>().0.iter().enumerate() {
            // SAFETY: a line of the caller's range.
            unsafe { stream_line(to.add(i * LINE), line) };
        }
    }

    /// # Safety
    /// As for `stream`.
    #[inline]
    unsafe fn stream_line(to: *mut u8, line: &[u8; LINE]) {
        for (i, piece) in line.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: reads 16 bytes of `piece`; writes as many of the caller's line.
            unsafe {
                let value = _mm_loadu_si128(piece.as_ptr().cast());
                _mm_stream_si128(to.add(i * 16).cast::<__m128i>(), value);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_variant_stores_what_was_asked() {
            let detected = Cpu::detect();
            let source: Vec<u8> = (0..512_u32).map(|i| (i * 7 + 1) as u8).collect();
            for cpu in [detected, Cpu { flush: Flush::Clflush }] {
                for start in [0, 1, 8, 63, 64, 65] {
                    for len in [0, 1, 8, 63, 64, 65, 127, 128, 200, 320] {
                        let mut room = vec![0_u8; 1024];
                        let aligned = room.as_mut_ptr().align_offset(LINE);
                        let to = room[aligned + start..].as_mut_ptr();
                        // SAFETY: the range lies inside `room`, which this test owns.
                        unsafe { cpu.store_nt(to, &source[..len]) };
                        cpu.fence();
                        let first = aligned + start;
                        assert_eq!(&room[first..first + len], &source[..len]);
                        assert!(room[..first].iter().all(|b| *b == 0));
                        assert!(room[first + len..].iter().all(|b| *b == 0));
                    }
                }
            }
        }
    }
}

/// Other processors, and the interpreter that checks our unsafe code: stores only.
#[cfg(any(not(target_arch = "x86_64"), miri))]
mod portable {
    use std::sync::atomic::{Ordering, fence};

    /// No instructions that persist anything.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Cpu;

    impl Cpu {
        /// Whether a flush and a fence are known to reach persistent memory.
        pub(crate) const CAN_PERSIST: bool = false;

        pub(crate) fn detect() -> Self {
            Self
        }

        /// # Safety
        /// The range is mapped.
        pub(crate) unsafe fn flush(self, _: *const u8, _: usize) {}

        /// # Safety
        /// The line is mapped.
        pub(crate) unsafe fn flush_line(self, _: *const u8) {}

        /// # Safety
        /// The line at `to` is mapped and owned by the caller in this phase.
        pub(crate) unsafe fn store_line(self, to: *mut u8, line: &crate::units::Line) {
            // SAFETY: forwarded to the caller.
            unsafe { self.store_nt(to, line) }
        }

        pub(crate) fn fence(self) {
            fence(Ordering::SeqCst);
        }

        /// # Safety
        /// The range at `to` is mapped and owned by the caller in this phase.
        pub(crate) unsafe fn store_nt(self, to: *mut u8, bytes: &[u8]) {
            // SAFETY: mapped and owned by the caller in this phase.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
        }
    }
}
