//! Waking all threads that wait for one thing with one system call.
//!
//! Woken one by one, the first of them may take the processor from whoever wakes them, and the
//! others sleep until it is done.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::fs::Timespec;
use rustix::thread::futex::{self, Flags};

/// Threads wait here until something has changed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// How often it has rung.
    rings: AtomicU32,
    /// Threads that wait, or are about to.
    waiting: AtomicU32,
}

impl Bell {
    /// How often it has rung: to be asked before a thread looks whether it has to wait.
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Waits until it has rung since it had rung so often, or `until` has come. May return early.
    pub(crate) fn wait(&self, rings: u32, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Whoever rings after this finds the thread, or the kernel finds that it has rung.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // It fails where the number is another one by now, the time is over, or a signal came.
        let _ = futex::wait(&self.rings, Flags::PRIVATE, rings, left.as_ref());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who wait, after what they wait for has changed.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let all = i32::MAX as u32;
            futex::wake(&self.rings, Flags::PRIVATE, all).expect("the address is right");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Barrier};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Longer than anything here takes. A thread that is not woken sleeps so long, and fails.
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn all_who_wait_are_woken_whenever_it_rings() {
        for round in 0..2000 {
            let (bell, is_done) = (Arc::new(Bell::default()), Arc::new(AtomicBool::new(false)));
            let start = Arc::new(Barrier::new(4));
            let sleepers: Vec<_> = (0..3)
                .map(|_| {
                    let (bell, is_done, start) = (bell.clone(), is_done.clone(), start.clone());
                    thread::spawn(move || {
                        let until = Instant::now() + LONG;
                        start.wait();
                        loop {
                            let rings = bell.rings();
                            if is_done.load(Ordering::Relaxed) {
                                return assert!(Instant::now() < until, "it was not woken");
                            }
                            bell.wait(rings, Some(until));
                        }
                    })
                })
                .collect();
            start.wait();
            // It rings while they look, while they go to sleep, and when they sleep.
            thread::sleep(Duration::from_nanos(round * 50));
            is_done.store(true, Ordering::Relaxed);
            bell.ring();
            sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
            assert_eq!(bell.waiting.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_thread_waits_until_its_time_has_come() {
        let bell = Bell::default();
        let until = Instant::now() + Duration::from_millis(20);
        while Instant::now() < until {
            bell.wait(bell.rings(), Some(until));
        }
        // It has rung since: it does not wait at all.
        let before = bell.rings();
        bell.ring();
        bell.wait(before, Some(Instant::now() + LONG));
        assert!(Instant::now() < until + LONG);
    }
}
