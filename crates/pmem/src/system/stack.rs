//! Stacks of a known size, for code whose need is unknown.
//!
//! The size of a thread's stack is chosen where it is started: 8 MiB of the first, 2 MiB of most.
//! What must come to the same end on every thread runs on a stack made for it. Below each
//! lies a page that nothing may touch, so that a stack that is too small ends the process and
//! overwrites nothing.

use std::io;

use crate::memory::PAGE_BYTES;

/// What the database itself needs of a stack, besides the code that it is made for.
const OWN_BYTES: usize = 256 << 10;

/// Bytes of a stack on which so many are left for the code that it is made for.
#[must_use]
pub fn stack_bytes_with(bytes: usize) -> usize {
    bytes.saturating_add(OWN_BYTES).next_multiple_of(PAGE_BYTES as usize)
}

/// A stack on which one thread at a time runs something. Its memory comes from the system when
/// it is first touched.
#[derive(Debug)]
pub struct Stack {
    memory: system::Memory,
}

impl Stack {
    /// A stack on which so many bytes are left for the code that it is made for.
    ///
    /// # Errors
    /// If there is no address space for it.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { memory: system::Memory::new(stack_bytes_with(bytes))? })
    }

    /// Runs something on it, on this thread.
    ///
    /// # Panics
    /// If `run` does.
    pub fn run<R>(&mut self, run: impl FnOnce() -> R) -> R {
        use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

        // A panic must not leave the stack by itself: nothing is below its first frame.
        let result = self.memory.run(|| catch_unwind(AssertUnwindSafe(run)));
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

#[cfg(not(any(miri, feature = "shuttle")))]
mod system {
    use std::io;
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    use crate::memory::PAGE_BYTES;

    const PAGE: usize = PAGE_BYTES as usize;

    /// A page that cannot be touched, and above it the memory of a stack, which grows downwards.
    #[derive(Debug)]
    pub(super) struct Memory {
        base: NonNull<u8>,
        /// Bytes of the stack, without the page.
        len: usize,
    }

    // SAFETY: plain memory that stays mapped until drop, on whichever thread that happens; no
    // thread runs on it without a mutable borrow.
    unsafe impl Send for Memory {}

    impl Memory {
        pub(super) fn new(len: usize) -> io::Result<Self> {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = crate::system::advice::stack_flags();
            // SAFETY: a new mapping at an address of the system's choice touches no other memory.
            let base = unsafe { mmap_anonymous(null_mut(), PAGE + len, protection, flags) }?;
            let base = NonNull::new(base.cast()).expect("the system never maps page zero");
            let memory = Self { base, len };
            // SAFETY: mapped just now, and not used yet.
            unsafe { mprotect(base.as_ptr().cast(), PAGE, MprotectFlags::empty()) }?;
            Ok(memory)
        }

        /// Runs something that does not panic.
        pub(super) fn run<R>(&mut self, run: impl FnOnce() -> R) -> R {
            // SAFETY: inside the mapping.
            let base = unsafe { self.base.as_ptr().add(PAGE) };
            // SAFETY: mapped, aligned to pages, and owned by the caller, who borrows it mutably,
            // until
            // `run` returns, which does not unwind; below it lies the page that cannot be touched.
            unsafe { psm::on_stack(base, self.len, run) }
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: mapped by this object, unmapped once, and not run on any more. An error would
            // leave the memory mapped, nothing else.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), PAGE + self.len) };
        }
    }
}

/// The interpreter that checks our unsafe code has no stacks, and threads of the schedule explorer
/// have stacks of its own: run where we are.
#[cfg(any(miri, feature = "shuttle"))]
mod system {
    #[derive(Debug)]
    pub(super) struct Memory;

    impl Memory {
        pub(super) fn new(_: usize) -> std::io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn run<R>(&mut self, run: impl FnOnce() -> R) -> R {
            run()
        }
    }
}

#[cfg(all(test, not(any(miri, feature = "shuttle"))))]
mod tests {
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Takes at least a KiB of stack for each level.
    #[inline(never)]
    fn recurse(levels: u64) -> u64 {
        let frame = black_box([levels; 128]);
        if levels == 0 { frame[3] } else { recurse(levels - 1).wrapping_add(frame[5]) }
    }

    #[test]
    fn more_than_a_threads_stack_is_used_and_panics_come_out() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let run = || {
            let mut stack = Stack::new(64 << 20).unwrap();
            let mut sum = 0;
            for _ in 0..2 {
                sum += stack.run(|| recurse(8 << 10));
            }
            let panics = catch_unwind(AssertUnwindSafe(|| stack.run(|| panic!("deep down"))));
            assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"deep down"));
            sum + stack.run(|| recurse(1))
        };
        let levels = 8 << 10;
        let expected = levels * (levels + 1) + 1;
        assert_eq!(small.spawn(run).unwrap().join().unwrap(), expected);
    }

    #[test]
    fn a_stack_that_is_too_small_ends_the_process() {
        let child = || {
            let mut stack = Stack::new(64 << 10).unwrap();
            stack.run(|| recurse(1 << 20)) as u8
        };
        let error = crate::system::in_fork(child).unwrap_err();
        assert!(error.to_string().contains("it ended"), "{error}");
    }
}
