//! Memory for large arrays: zeroed, on huge pages where the array is large enough, and touched
//! when it is mapped rather than line by line under a lock later.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Arrays of at least this size get pages of this size.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What every region is aligned to at least.
pub(super) const LINE_BYTES: usize = 64;

/// Owned, zeroed memory of a fixed size.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a region is plain memory that nothing but its owner refers to.
unsafe impl Send for Region {}

impl Region {
    /// Takes `bytes` of zeroed memory.
    ///
    /// # Panics
    ///
    /// If `bytes` is zero or overflows. A lack of memory ends the process as it does anywhere.
    pub(super) fn zeroed(bytes: usize) -> Self {
        assert!(bytes > 0, "a region holds something");
        let align = if bytes >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { LINE_BYTES };
        let layout = Layout::from_size_align(bytes, align).expect("a region fits in memory");
        let start = if is_mapped(&layout) {
            map(&layout)
        } else {
            // SAFETY: the layout has a size other than zero, as asserted above.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let Some(start) = start else { handle_alloc_error(layout) };
        assert!(start.addr().get().is_multiple_of(align));
        Self { start, layout }
    }

    /// The first byte, aligned to a line, and to a huge page if the region has that size.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The size.
    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if is_mapped(&self.layout) {
            unmap(self.start.as_ptr(), self.layout.size());
        } else {
            // SAFETY: `start` came from the same allocator with the same layout, and only now,
            // with its owner lost, is it given back.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Whether a region of this layout is mapped by itself. Miri knows no such mappings.
fn is_mapped(layout: &Layout) -> bool {
    cfg!(not(miri)) && layout.align() == HUGE_PAGE_BYTES
}

/// Maps fresh pages at an address aligned to the layout, which needs cutting a larger mapping.
fn map(layout: &Layout) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let bytes = layout.size();
    let total = bytes.checked_add(layout.align())?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the address, so that the mapping overlaps nothing in use.
    let allocated =
        unsafe { mmap_anonymous(std::ptr::null_mut(), total, access, MapFlags::PRIVATE) }.ok()?;
    let allocated = allocated.cast::<u8>();
    let before = allocated.align_offset(layout.align());
    assert!(before < layout.align());
    let start = allocated.wrapping_add(before);
    // The kernel rounds lengths up to its pages, which the mapping did as well.
    let end = start.wrapping_add(bytes.next_multiple_of(4096));
    let after = (allocated.addr() + total.next_multiple_of(4096)) - end.addr();
    if before > 0 {
        unmap(allocated, before);
    }
    if after > 0 {
        unmap(end, after);
    }
    advise(start, bytes);
    NonNull::new(start)
}

/// Hints: a kernel without them gives the same memory, only slower.
fn advise(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    for advice in [rustix::mm::Advice::LinuxHugepage, rustix::mm::Advice::LinuxPopulateWrite] {
        // SAFETY: the range is mapped and owned by the caller; neither hint changes what it holds.
        let _hint = unsafe { rustix::mm::madvise(start.cast(), bytes, advice) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// Gives mapped pages back.
fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: the range is mapped, owned by the caller, and not referred to after this.
    let outcome = unsafe { rustix::mm::munmap(start.cast(), bytes) };
    // It only fails for a range that is no mapping, or when the kernel cannot split one; the
    // memory then stays mapped and unused, which harms nothing but the accounting.
    debug_assert!(outcome.is_ok());
}

/// Asks for the cache line of `pointer`, which may be anything, without reading it.
#[inline]
pub(super) fn prefetch_line<T>(pointer: *const T) {
    pmem::prefetch(pointer.addr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_zeroed_and_aligned() {
        for bytes in [1, 64, 4096, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1, 3 * HUGE_PAGE_BYTES] {
            let region = Region::zeroed(bytes);
            assert_eq!(region.bytes(), bytes);
            // SAFETY: the region is mapped, initialised with zeros and owned here.
            let all = unsafe { std::slice::from_raw_parts_mut(region.start().as_ptr(), bytes) };
            assert_eq!((all[0], all[bytes - 1]), (0, 0));
            all[0] = 1;
            all[bytes - 1] = 1;
        }
    }
}
