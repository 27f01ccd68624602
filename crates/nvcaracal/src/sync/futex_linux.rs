//! Threads that wait for a word to change, with the system's own calls for that.

use std::sync::atomic::AtomicU32;
use std::time::Instant;

use rustix::fs::Timespec;
use rustix::thread::futex::{self, Flags};

/// Threads that wait for a word to change.
#[derive(Debug, Default)]
pub(crate) struct Futex;

impl Futex {
    /// Waits while the word has this value, until it is woken, or `until` has come. May return
    /// early.
    pub(crate) fn wait(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // It fails where the value is another one by now, the time is over, or a signal came.
        let _ = futex::wait(word, Flags::PRIVATE, value, left.as_ref());
    }

    /// Wakes all threads that wait, with one system call.
    pub(crate) fn wake_all(&self, word: &AtomicU32) {
        let all = i32::MAX as u32;
        futex::wake(word, Flags::PRIVATE, all).expect("the address is right");
    }
}
