//! Memory of the allocator that nothing uses. All of this is about that of glibc, and does nothing
//! elsewhere.

/// Has the allocator keep at most a mebibyte of freed memory at the end of each of its heaps, and
/// gives what is larger a mapping of its own. Otherwise it keeps more after each large value that
/// was freed. Small pieces that are freed are joined with their neighbours at once: glibc's lists
/// of small pieces (fastbins) serve only requests of exactly the same size, so that short values
/// which are made and dropped beside a growing set make the heap twice as large as the set. To be
/// called by a process at its start.
pub fn keep_little_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: all parameters have such values; what is allocated already is not touched.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_MXFAST, 0);
    }
}

/// Gives memory that was freed back to the system, but for the ends of heaps. Takes some
/// milliseconds for each hundred megabytes; allocations of other threads wait meanwhile.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of memory that was freed and that the allocator has, whether or not it was given back: a
/// number that wraps, of which differences count. Takes the longer the more pieces there are.
#[must_use]
pub fn freed_bytes() -> u32 {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        // SAFETY: it may be called at any time, from any thread.
        unsafe { libc::mallinfo() }.fordblks.cast_unsigned()
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    {
        0
    }
}
