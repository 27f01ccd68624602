//! What the system is told of memory, and systems know of it. Linux knows all of this; others are
//! told nothing, which is slower and not wrong, or said to be so by what this returns.

use std::ffi::c_void;
use std::ops::Range;

use rustix::mm::MapFlags;

/// Flags of a mapping of persistent memory that is durable once lines are flushed; `None` where
/// there is no such mapping.
pub(crate) fn durable_flags() -> Option<MapFlags> {
    #[cfg(target_os = "linux")]
    return Some(MapFlags::SHARED_VALIDATE | MapFlags::SYNC);
    #[cfg(not(target_os = "linux"))]
    None
}

/// Flags of memory for a stack.
#[cfg_attr(feature = "shuttle", expect(dead_code, reason = "explored threads have other stacks"))]
pub(crate) fn stack_flags() -> MapFlags {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    #[cfg(target_os = "linux")]
    return flags | MapFlags::STACK;
    #[cfg(not(target_os = "linux"))]
    flags
}

/// This process gets no pages of 2 MiB from now on.
pub(crate) fn small_pages_only() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// A range should have pages of 2 MiB.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn huge_pages(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); the advice changes no byte.
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxHugepage) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// A range should have ordinary pages.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn small_pages(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); the advice changes no byte.
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxNoHugepage) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// The pages of a range go; what is touched next is as if it had never been touched.
///
/// # Safety
/// It is mapped, and no thread needs what it holds.
pub(crate) unsafe fn drop_pages(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); what it holds is not needed (promised).
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxDontNeed) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// The pages of some ranges go, as by [`drop_pages`]. Where the system can do that at once, other
/// processors forget once what they know of this memory, and not for each range.
///
/// # Safety
/// All are mapped, and no thread needs what they hold.
pub(crate) unsafe fn drop_ranges(ranges: &[Range<*mut u8>]) {
    // SAFETY: promised.
    if ranges.len() > 1 && unsafe { are_dropped_at_once(ranges) } {
        return;
    }
    for range in ranges {
        // SAFETY: promised; where a part went before, there is nothing left of it.
        unsafe { drop_pages(range.start.cast(), range.end.addr() - range.start.addr()) };
    }
}

/// # Safety
/// As for [`drop_ranges`].
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn are_dropped_at_once(ranges: &[Range<*mut u8>]) -> bool {
    /// This process (`PIDFD_SELF_THREAD_GROUP`, Linux 6.14): a descriptor would be the parent's in
    /// a child of `fork`.
    const SELF: libc::c_int = -10001;
    let part = |range: &Range<*mut u8>| libc::iovec {
        iov_base: range.start.cast(),
        iov_len: range.end.addr() - range.start.addr(),
    };
    let parts: Vec<libc::iovec> = ranges.iter().map(part).collect();
    let bytes: usize = parts.iter().map(|part| part.iov_len).sum();
    // SAFETY: the kernel reads the list, and drops what it names (promised).
    let dropped = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            SELF,
            parts.as_ptr(),
            parts.len(),
            libc::MADV_DONTNEED,
            0,
        )
    };
    usize::try_from(dropped) == Ok(bytes)
}

/// # Safety
/// None is needed.
#[cfg(any(not(target_os = "linux"), miri))]
unsafe fn are_dropped_at_once(_: &[Range<*mut u8>]) -> bool {
    false
}

/// The pages of a range should be present.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn populate(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); the advice changes no byte.
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxPopulateWrite) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// A child of `fork` should not have a range.
///
/// # Safety
/// It is mapped, and no child of `fork` uses it.
pub(crate) unsafe fn not_in_children(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); this process keeps it.
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxDontFork) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// A child of `fork` should have a range again.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn in_children(base: *mut c_void, len: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); this process keeps it.
    let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxDoFork) };
    #[cfg(not(target_os = "linux"))]
    let _ = (base, len);
}

/// What a range of 2 MiB holds should be moved to one page, now.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn collapse(base: *mut c_void, len: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        /// `MADV_COLLAPSE` of Linux 6.1 (`asm-generic/mman-common.h`): not in `rustix`.
        const COLLAPSE: i32 = 25;
        unsafe extern "C" {
            fn madvise(base: *mut c_void, len: usize, advice: i32) -> i32;
        }
        // SAFETY: mapped (promised); the advice changes no byte.
        let _ = unsafe { madvise(base, len, COLLAPSE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (base, len);
}

/// A range is zeros in each new child of `fork`; whether the system sees to that.
///
/// # Safety
/// It is mapped.
pub(crate) unsafe fn zeros_in_children(base: *mut c_void, len: usize) -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: mapped (promised); it changes in children only.
    return unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxWipeOnFork) }.is_ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (base, len);
        false
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::memory::{Mapping, PAGE_BYTES, Pages};

    /// What goes is zeros then, and all else stays, whether the system does it at once or not.
    #[test]
    fn ranges_go_and_what_is_between_them_stays() {
        const PAGES: u64 = 8;
        for at_once in [true, false] {
            let memory = Mapping::anonymous(PAGES * PAGE_BYTES, Pages::Small).unwrap();
            // SAFETY: the test owns the memory.
            (0..PAGES).for_each(|page| unsafe { memory.store_u64(page * PAGE_BYTES, page + 1) });
            let at = |page: u64| memory.base().wrapping_add((page * PAGE_BYTES) as usize);
            let ranges = [at(1)..at(2), at(4)..at(6)];
            let together = if at_once { ranges.len() } else { 1 };
            for some in ranges.chunks(together) {
                // SAFETY: mapped, and nothing needs it.
                unsafe { drop_ranges(some) };
            }
            let left: Vec<_> = (0..PAGES).map(|page| memory.load_u64(page * PAGE_BYTES)).collect();
            let is_dropped = !cfg!(target_os = "linux") || left == [1, 0, 3, 4, 0, 0, 7, 8];
            assert!(is_dropped, "{left:?}");
        }
    }
}
