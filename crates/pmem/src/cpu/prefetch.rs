//! Prefetching of cache lines.

/// Hints that the cache line at an address will be used soon. The address may be anything: nothing
/// is read as far as the program can tell.
#[inline]
pub fn prefetch(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and never faults, whether the address is mapped or not.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}

/// [`prefetch`] for a line that will be written: it also takes the line from other cores' caches,
/// so that the store need not wait for them.
#[inline]
pub fn prefetch_to_write(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as a prefetch; processors that do not know the instruction do nothing.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    let _ = address;
}
