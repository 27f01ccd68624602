//! Which process something belongs to.
//!
//! A child of `fork` begins with a copy of its parent's memory and shares the parent's files, but
//! has none of its threads. Whatever writes files or waits for threads must not go on there. To ask
//! the system who one is takes longer than all that a call checks besides; so the answer is a word
//! in a page that the system clears in each child.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The process in which this was made. A copy of it in a child of `fork` is that of the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u64);

impl Process {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        Self(number())
    }

    /// Whether it is this process.
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        number() == self.0
    }
}

impl Default for Process {
    fn default() -> Self {
        Self::current()
    }
}

/// The number of this process: none of those that it descends from has the same.
#[inline]
fn number() -> u64 {
    match cleared_word() {
        Some(word) => match word.load(Ordering::Relaxed) {
            0 => name(word),
            number => number,
        },
        None => u64::from(std::process::id()),
    }
}

/// Gives this process its number. The counter is in ordinary memory: a child goes on where its
/// parent was, so that it gets another number than all whose memory it may have.
#[cold]
fn name(word: &AtomicU64) -> u64 {
    static NAMED: AtomicU64 = AtomicU64::new(0);
    let number = NAMED.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => number,
        Err(named) => named,
    }
}

/// A word that is 0 in each new child of `fork`; `None` where the system has no such memory.
#[inline]
fn cleared_word() -> Option<&'static AtomicU64> {
    static WORD: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *WORD.get_or_init(map_cleared_word)
}

#[cfg(miri)]
fn map_cleared_word() -> Option<&'static AtomicU64> {
    None
}

#[cfg(not(miri))]
fn map_cleared_word() -> Option<&'static AtomicU64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    let len = crate::memory::PAGE_BYTES as usize;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the system chooses touches no other memory.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: mapped just now, and known here only. Cleared memory is a valid word.
    if !unsafe { super::advice::zeros_in_children(page, len) } {
        // SAFETY: mapped just now, and there is no reference into it.
        let _ = unsafe { munmap(page, len) };
        return None;
    }
    // SAFETY: mapped for as long as the process lives, aligned to a page, and from here on used as
    // an atomic only.
    Some(unsafe { AtomicU64::from_ptr(page.cast()) })
}

/// For tests: runs something in a child of `fork`, and returns what it returned, or 101 if it
/// panicked. The child has this thread only: if it waits for what another one had locked, it is
/// ended after a minute, which is an error.
///
/// # Errors
/// If the system forks no more, or the child was ended.
#[doc(hidden)]
pub fn in_fork(child: impl FnOnce() -> u8) -> std::io::Result<u8> {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

    unsafe extern "C" {
        safe fn fork() -> i32;
        safe fn _exit(code: i32) -> !;
    }

    let id = fork();
    if id == 0 {
        let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(101);
        _exit(i32::from(code));
    }
    let Some(id) = Pid::from_raw(id).filter(|_| id > 0) else {
        return Err(std::io::Error::last_os_error());
    };
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some((_, status)) = waitpid(Some(id), WaitOptions::NOHANG)? {
            let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
            return code.ok_or_else(|| std::io::Error::other(format!("it ended: {status:?}")));
        }
        if Instant::now() > until {
            let _ = kill_process(id, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// O-52: threads and their children are told apart by processes.
    #[test]
    fn o_52_a_child_and_its_child_are_other_processes() {
        let parent = Process::current();
        assert!(std::thread::spawn(move || parent.is_here()).join().unwrap());
        let child = || {
            if parent.is_here() {
                return 1;
            }
            let child = Process::current();
            let is_other = child != parent && child.is_here();
            let of_child = in_fork(|| u8::from(parent.is_here() || child.is_here())).unwrap();
            if is_other && child.is_here() { of_child } else { 2 }
        };
        assert_eq!(in_fork(child).unwrap(), 0);
        assert!(parent.is_here());
    }
}
