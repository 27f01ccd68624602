//! A range of address space whose base never moves.
//!
//! The whole range is reserved at once, and memory comes from the system when a page is first
//! touched. That lets an image grow in place: offsets stay valid, and so do pointers made from
//! them.
//!
//! A mapping knows its length but not how much of it a device has made usable: the device checks
//! that when it grows, and a caller that goes beyond it reads zeros and stores bytes that are never
//! keeps.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::DeviceError;

/// Bytes of one page: images and logs are sized, saved and written in this unit.
pub const PAGE_BYTES: u64 = 4096;
/// Alignment of a mapping, so that the processor can use pages of this size.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages a mapping asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// 2 MiB pages where the system has them: random reads are about 1.5 times faster.
    Huge,
    /// Ordinary pages: cheaper for images that are made and dropped by the thousand.
    Small,
}

/// A reserved, zero-filled range of memory. See the module's documentation.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory that stays mapped until drop, on whichever thread that happens.
unsafe impl Send for Mapping {}
// SAFETY: shared access is either to atomic words, or through unsafe methods whose callers promise
// that they own the range in the current phase.
unsafe impl Sync for Mapping {}

/// From now on this process gets no pages of 2 MiB, whatever is asked for. For programs that open
/// thousands of small stores: there the zeroing of large pages costs more than all the rest. A
/// hint: a system that does not know it does nothing.
pub fn small_pages_only() {
    #[cfg(not(miri))]
    crate::system::advice::small_pages_only();
}

/// Rounds up to whole pages; what is larger than any address space stays so.
pub(crate) fn page_ceil(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX - u64::MAX % PAGE_BYTES)
}

/// No address space has as much.
#[cfg_attr(miri, expect(dead_code, reason = "the interpreter has no address space"))]
const ADDRESS_BYTES_MAX: u64 = 1 << 56;

impl Mapping {
    /// Reserves at least `bytes` of zero-filled memory, backed by huge pages where the system has
    /// them.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when the address space cannot be reserved.
    pub fn reserve(bytes: u64) -> Result<Self, DeviceError> {
        Self::anonymous(bytes, Pages::Huge)
    }

    /// Reserves `most` bytes, or, where the system allows less address space, the half of it, and
    /// so on down to `least`.
    ///
    /// # Errors
    /// [`DeviceError::Io`] when `least` bytes cannot be reserved either.
    pub fn reserve_up_to(most: u64, least: u64) -> Result<Self, DeviceError> {
        let mut bytes = most;
        loop {
            match Self::reserve(bytes) {
                Err(_) if bytes / 2 >= least => bytes /= 2,
                result => return result,
            }
        }
    }

    /// A second handle of the range, which does not give it back.
    ///
    /// # Safety
    /// The caller keeps the mapping for as long as the handle.
    pub(crate) unsafe fn alias(&self) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self { base: self.base, len: self.len })
    }

    /// Number of bytes of the reserved range.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether nothing was reserved; never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, for prefetching and for address arithmetic by the caller.
    #[inline]
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Reads one aligned 8-byte word (relaxed).
    ///
    /// # Panics
    /// If the word is not aligned or not inside the mapping.
    #[inline]
    #[must_use]
    pub fn load_u64(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    /// Stores one aligned 8-byte word (relaxed). Devices that track stores do not see it: go
    /// through a [`crate::Port`] unless you are one.
    ///
    /// # Safety
    /// The word is aligned and inside the mapping. The caller owns it in this phase, or all sides
    /// access it as an atomic.
    #[inline]
    // SAFETY: the caller owns the word, see above.
    pub unsafe fn store_u64(&self, offset: u64, value: u64) {
        debug_assert!(offset.is_multiple_of(8), "word not aligned");
        // SAFETY: inside the mapping and aligned, as the caller says, and every bit pattern is a
        // valid word.
        let word = unsafe { AtomicU64::from_ptr(self.owned(offset, 8).cast()) };
        word.store(value, Ordering::Relaxed);
    }

    /// Stores bytes. Devices that track stores do not see it: go through a [`crate::Port`] unless
    /// you are one.
    ///
    /// # Safety
    /// The range is inside the mapping, and the caller owns it in this phase: no other thread reads
    /// or writes it meanwhile.
    #[inline]
    // SAFETY: the caller owns the range, see above.
    pub unsafe fn store_bytes(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: mapped and owned by the caller in this phase; `bytes` cannot overlap because
        // no thread holds a slice of a range that the caller owns for storing.
        unsafe {
            let to = self.owned(offset, bytes.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Borrows bytes.
    ///
    /// # Safety
    /// No thread stores to the range while the slice lives (phase rule of the caller).
    ///
    /// # Panics
    /// If the range is not inside the mapping.
    #[inline]
    #[must_use]
    // SAFETY: the caller keeps the range from being stored to, see above.
    pub unsafe fn slice(&self, offset: u64, len: u64) -> &[u8] {
        let from = self.at(offset, len as usize);
        // SAFETY: mapped and initialised (zero-filled at first), and not stored to while borrowed.
        unsafe { std::slice::from_raw_parts(from, len as usize) }
    }

    /// Address of a range that was checked to lie inside the mapping.
    #[inline]
    pub(crate) fn at(&self, offset: u64, len: usize) -> *mut u8 {
        let inside = len <= self.len && offset <= (self.len - len) as u64;
        assert!(inside, "range outside the mapping");
        // SAFETY: the offset lies inside the mapping.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    /// Address of a range of the caller's, which debug builds check.
    ///
    /// # Safety
    /// The range is inside the mapping.
    #[inline]
    pub(crate) unsafe fn owned(&self, offset: u64, len: usize) -> *mut u8 {
        debug_assert!(offset as usize + len <= self.len, "range outside the mapping");
        // SAFETY: the offset lies inside the mapping, as the caller says.
        unsafe { self.base.as_ptr().add(offset as usize) }
    }

    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "word not aligned");
        // SAFETY: mapped (checked by `at`), aligned (checked above; the initial version is
        // page-aligned), and every bit pattern is a valid word.
        unsafe { AtomicU64::from_ptr(self.at(offset, 8).cast()) }
    }
}

#[cfg(not(miri))]
mod system {
    use std::os::fd::BorrowedFd;
    use std::path::Path;
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{self, MapFlags, ProtFlags};

    use super::{ADDRESS_BYTES_MAX, HUGE_PAGE_BYTES, Mapping, Pages};
    use crate::failure::DeviceError;
    use crate::system::advice;

    impl Mapping {
        pub(crate) fn anonymous(bytes: u64, pages: Pages) -> Result<Self, DeviceError> {
            let len = usize::try_from(bytes.clamp(1, ADDRESS_BYTES_MAX)).expect("64-bit sizes");
            let len = len.next_multiple_of(HUGE_PAGE_BYTES);
            let wide = len + HUGE_PAGE_BYTES;
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: a new anonymous mapping at an address of the kernel's choice aliases nothing.
            let start = unsafe {
                mm::mmap_anonymous(null_mut(), wide, ProtFlags::READ | ProtFlags::WRITE, flags)
            }
            .map_err(|e| {
                let what = format!("reserve {len} bytes of address space for");
                DeviceError::io(what, Path::new("memory"), e)
            })?;
            let before = start.addr().next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
            let base = start.cast::<u8>().wrapping_add(before);
            // SAFETY: both ranges are page-aligned ends of the mapping made above, outside
            // `base..base + len`, and nothing refers to them yet.
            unsafe {
                if before > 0 {
                    let _ = mm::munmap(start, before);
                }
                let _ = mm::munmap(base.wrapping_add(len).cast(), HUGE_PAGE_BYTES - before);
                if pages == Pages::Huge {
                    // Only advice: a system without huge pages is slower, not wrong.
                    advice::huge_pages(base.cast(), len);
                }
            }
            Ok(Self { base: NonNull::new(base).expect("the kernel never maps page zero"), len })
        }

        /// Makes the pages of a range present, so that touching them first costs nothing later. A
        /// hint: it changes no byte, and a system that does not know it does nothing.
        ///
        /// # Panics
        /// If the range is not inside the mapping.
        pub fn populate(&self, offset: u64, len: u64) {
            let start = self.at(offset, len as usize);
            let before = start.addr() % HUGE_PAGE_BYTES;
            let (start, len) = (start.wrapping_sub(before), len as usize + before);
            // SAFETY: the range lies inside the mapping, whose start is aligned as `start` is; the
            // advice does not change what the pages hold.
            unsafe { advice::populate(start.cast(), len) };
        }

        /// Asks for ordinary pages: fewer bytes are touched with a word of one, and they can go one
        /// by one. A hint, for mappings that nothing has touched.
        pub fn use_small_pages(&self) {
            // SAFETY: mapped; the advice changes no byte.
            unsafe { advice::small_pages(self.base().cast(), self.len) };
        }

        /// Gives pages back to the system: they are zeros when they are touched next, where the
        /// system knows that, and else as they were.
        ///
        /// # Safety
        /// No thread needs what they hold, or touches them meanwhile.
        ///
        /// # Panics
        /// If the range is not inside the mapping.
        // SAFETY: the contract is above.
        pub unsafe fn drop_pages(&self, offset: u64, len: u64) {
            debug_assert!((offset | len).is_multiple_of(super::PAGE_BYTES), "whole pages");
            let start = self.at(offset, len as usize);
            // SAFETY: inside the mapping; no thread needs them (promised).
            unsafe { advice::drop_pages(start.cast(), len as usize) };
        }

        /// Maps the first `bytes` of a file with the given flags. Touching pages beyond the end of
        /// the file is fatal for the process, so the device must not hand them out.
        pub(crate) fn of_file(
            fd: BorrowedFd<'_>,
            bytes: u64,
            flags: MapFlags,
        ) -> Result<Self, rustix::io::Errno> {
            let len = usize::try_from(bytes.clamp(1, ADDRESS_BYTES_MAX)).expect("64-bit sizes");
            let len = len.next_multiple_of(HUGE_PAGE_BYTES);
            // SAFETY: a new mapping at an address of the kernel's choice aliases no Rust object;
            // the file is locked by us, so no other process of ours changes it.
            let base = unsafe {
                mm::mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags, fd, 0)
            }?;
            // A child of `fork` would store to the file of its parent. A hint: where the system
            // does not know it, users of the mapping must not. SAFETY: mapped just now. In a
            // child there is nothing, which no access can miss.
            unsafe { advice::not_in_children(base.cast(), len) };
            Ok(Self {
                base: NonNull::new(base.cast()).expect("the kernel never maps page zero"),
                len,
            })
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: mapped by this object, unmapped once, and no borrow outlives the object. An
            // error would mean that the range was not ours; the memory is lost then, nothing else.
            let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

/// The interpreter that checks our unsafe code knows no system calls: take the memory from the
/// heap.
#[cfg(miri)]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::mem::ManuallyDrop;
    use std::os::fd::BorrowedFd;
    use std::ptr::NonNull;

    use rustix::mm::MapFlags;

    use super::{Mapping, PAGE_BYTES, Pages, page_ceil};
    use crate::failure::DeviceError;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, PAGE_BYTES as usize).expect("small sizes")
    }

    impl Mapping {
        pub(crate) fn anonymous(bytes: u64, _: Pages) -> Result<Self, DeviceError> {
            let len = page_ceil(bytes.max(1)) as usize;
            // SAFETY: the layout is never empty.
            let base = NonNull::new(unsafe { alloc_zeroed(layout(len)) }).expect("memory");
            Ok(Self { base, len })
        }

        /// Only checks the range.
        pub fn populate(&self, offset: u64, len: u64) {
            let _ = self.at(offset, len as usize);
        }

        /// Does nothing.
        pub fn use_small_pages(&self) {}

        /// Only checks the range.
        ///
        /// # Safety
        /// As outside of the interpreter.
        // SAFETY: nothing is done.
        pub unsafe fn drop_pages(&self, offset: u64, len: u64) {
            let _ = self.at(offset, len as usize);
        }

        pub(crate) fn of_file(
            _: BorrowedFd<'_>,
            _: u64,
            _: MapFlags,
        ) -> Result<Self, rustix::io::Errno> {
            Err(rustix::io::Errno::OPNOTSUPP)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: allocated by this object with the same layout, freed once.
            unsafe { dealloc(self.base.as_ptr(), layout(self.len)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_zero_and_aligned() {
        let mapping = Mapping::reserve(1 << 20).unwrap();
        assert_eq!(mapping.load_u64(0), 0);
        assert_eq!(mapping.load_u64((1 << 20) - 8), 0);
        #[cfg(not(miri))]
        assert!(mapping.base().addr().is_multiple_of(HUGE_PAGE_BYTES));
    }

    #[test]
    fn populating_changes_no_byte() {
        let mapping = Mapping::reserve_up_to(8 << 20, 1 << 20).unwrap();
        // SAFETY: owned by this test.
        unsafe { mapping.store_u64(3 << 20, 7) };
        mapping.populate(2 << 20, (4 << 20) + 5);
        assert_eq!((mapping.load_u64(3 << 20), mapping.load_u64(5 << 20)), (7, 0));
    }

    #[test]
    fn less_address_space_will_do() {
        let mapping = Mapping::reserve_up_to(1 << 62, 4096).unwrap();
        assert!((4096..1 << 62).contains(&mapping.len()));
    }

    #[test]
    #[should_panic(expected = "outside the mapping")]
    fn refuses_a_word_beyond_the_end() {
        let mapping = Mapping::reserve(1).unwrap();
        let _ = mapping.load_u64(mapping.len());
    }

    #[test]
    #[should_panic(expected = "outside the mapping")]
    fn refuses_a_range_that_overflows() {
        let mapping = Mapping::reserve(1).unwrap();
        // SAFETY: nothing is stored; the call panics before it borrows.
        let _ = unsafe { mapping.slice(u64::MAX - 3, 8) };
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn refuses_a_word_that_is_not_aligned() {
        let _ = Mapping::reserve(64).unwrap().load_u64(4);
    }
}
