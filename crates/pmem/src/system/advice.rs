//! What the system is told of memory, and systems know of it. Linux knows all of this; others are
//! told nothing, which is slower and not wrong, or said to be so by what this returns.

use std::ffi::c_void;

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
