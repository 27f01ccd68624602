//! The instructions of restricted transactional memory, where the processor has them.
//!
//! A region begins with [`begin`]. It returns [`STARTED`], and from then on nothing that this
//! thread stores is seen by others until [`end`]; or the processor takes back all stores and
//! registers since then, and `begin` returns once more, with the reason. Nothing here knows what a
//! region is for. Intel's servers up to Ice Lake have the instructions. Where they are missing only
//! their encoding is tested, and regions are locks.

#![expect(unsafe_code, reason = "the instructions have no safe names")]
#![cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    expect(dead_code, reason = "no region begins on other processors")
)]

/// What [`begin`] returns when a region has begun.
pub(crate) const STARTED: u32 = u32::MAX;
/// The code with which a region gives up because the fall-back lock is held.
pub(crate) const LOCK_IS_HELD: u32 = 0xff;
/// The code with which a region gives up because its own check failed.
pub(crate) const GAVE_UP: u32 = 0x01;
/// The code with which a region gives up before an instruction that would abort it.
pub(crate) const FORBIDDEN: u32 = 0x02;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};

    use super::{FORBIDDEN, GAVE_UP, LOCK_IS_HELD, STARTED};

    /// Whether the processor has the instructions, and does not abort every region.
    pub(crate) fn is_there() -> bool {
        const RTM: u32 = 1 << 11; // leaf 7, register ebx
        const ALWAYS_ABORTS: u32 = 1 << 11; // leaf 7, register edx
        if __cpuid(0).eax < 7 {
            return false;
        }
        let features = __cpuid_count(7, 0);
        features.ebx & RTM != 0 && features.edx & ALWAYS_ABORTS == 0
    }

    /// See the module's documentation. Only where [`is_there`] says so.
    #[inline]
    pub(crate) fn begin() -> u32 {
        let mut status = STARTED;
        // SAFETY: on an abort the processor restores registers and all memory, so that the
        // compiled code goes on as if the instruction had only set `eax`.
        unsafe { asm!("xbegin 2f", "2:", inout("eax") status, options(nostack)) };
        status
    }

    /// Makes the stores of the running region visible, all at once.
    #[inline]
    pub(crate) fn end() {
        // SAFETY: a region has begun on this thread (the rule of the one caller).
        unsafe { asm!("xend", options(nostack)) };
    }

    /// Ends the running region without its stores; the status has the code. Does nothing outside
    /// of a region.
    #[inline]
    pub(crate) fn abort(code: u32) {
        // SAFETY: takes back stores of the running region only, see `begin`.
        unsafe {
            match code {
                LOCK_IS_HELD => asm!("xabort 0xff", options(nostack)),
                FORBIDDEN => asm!("xabort 0x02", options(nostack)),
                _ => {
                    debug_assert_eq!(code, GAVE_UP);
                    asm!("xabort 0x01", options(nostack));
                }
            }
        }
    }

    /// The processor's clock. As the last thing in a region it is its place in the serial order:
    /// regions that are in each other's way are never between their conflict and their end at the
    /// same time.
    ///
    /// That needs both fences. A store conflicts with nothing while it waits in the store buffer.
    /// Without `mfence` it may wait there beyond the clock: another region reads what was before
    /// it, ends, and has a later place. `lfence` keeps the clock behind the loads.
    #[inline]
    pub(crate) fn clock() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: every x86-64 processor has it. Nothing that the compiler knows of moves over it.
        unsafe {
            asm!("mfence", "lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[inline(never)]
        fn all_of_them() -> u32 {
            let status = begin();
            if status == STARTED {
                abort(GAVE_UP);
                end();
            }
            status
        }

        /// Where no processor runs them, they must still be what the manual says.
        #[test]
        fn the_code_has_the_instructions() {
            let start = (all_of_them as fn() -> u32) as usize as *const u8;
            // SAFETY: code of this program, more than these bytes before the end of its section.
            let code = unsafe { std::slice::from_raw_parts(start, 160) };
            let has = |wanted: &[u8]| code.windows(wanted.len()).any(|bytes| bytes == wanted);
            assert!(has(&[0xc7, 0xf8]), "xbegin: {code:02x?}");
            assert!(has(&[0x0f, 0x01, 0xd5]), "xend: {code:02x?}");
            assert!(has(&[0xc6, 0xf8, 0x01]), "xabort 1: {code:02x?}");
        }

        #[test]
        fn a_region_starts_where_the_processor_has_them() {
            if is_there() {
                assert_ne!(all_of_them(), STARTED, "it gave up");
            }
        }

        #[test]
        fn the_clock_goes_on() {
            let before = clock();
            assert!(clock() >= before && before > 0);
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod instructions {
    pub(crate) fn is_there() -> bool {
        false
    }

    pub(crate) fn begin() -> u32 {
        0
    }

    pub(crate) fn end() {}

    pub(crate) fn abort(_: u32) {}

    pub(crate) fn clock() -> u64 {
        0
    }
}

pub(crate) use instructions::{abort, begin, clock, end, is_there};
