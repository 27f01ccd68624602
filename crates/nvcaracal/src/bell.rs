//! Waking all threads that wait for one thing with one system call.
//!
//! Woken one by one, the first of them may take the processor from whoever wakes them, and the
//! others sleep until it is done.

use std::time::Instant;

use crate::sync::Futex;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Threads wait here until something has changed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// How often it has rung.
    rings: AtomicU32,
    /// Threads that wait, or are about to.
    waiting: AtomicU32,
    futex: Futex,
}

impl Bell {
    /// How often it has rung: to be asked before a thread looks whether it has to wait.
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Waits until it has rung since it had rung so often, or `until` has come. May return early.
    pub(crate) fn wait(&self, rings: u32, until: Option<Instant>) {
        // Whoever rings after this finds the thread, or the kernel finds that it has rung.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.futex.wait(&self.rings, rings, until);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes all who wait, after what they wait for has changed.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.futex.wake_all(&self.rings);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Longer than anything here takes. A thread that is not woken sleeps so long, and fails.
    const LONG: Duration = Duration::from_secs(20);

    /// Waits until `is_done`.
    fn wait_for(bell: &Bell, is_done: impl Fn() -> bool) {
        let until = Instant::now() + LONG;
        loop {
            let rings = bell.rings();
            if is_done() {
                return assert!(Instant::now() < until, "it was not woken");
            }
            bell.wait(rings, Some(until));
        }
    }

    #[test]
    fn all_who_wait_are_woken() {
        for round in 0..200 {
            let (bell, is_done, start) = (Bell::default(), AtomicBool::new(false), Barrier::new(4));
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        start.wait();
                        wait_for(&bell, || is_done.load(Ordering::Relaxed));
                    });
                }
                start.wait();
                // It rings before they sleep, or when they sleep.
                thread::sleep(Duration::from_micros(round));
                is_done.store(true, Ordering::Relaxed);
                bell.ring();
            });
            assert_eq!(bell.waiting.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn it_wakes_a_thread_that_goes_to_sleep_while_it_rings() {
        let (bells, turn) = ([Bell::default(), Bell::default()], AtomicU32::new(0));
        thread::scope(|scope| {
            for me in 0..2 {
                let (bells, turn) = (&bells, &turn);
                scope.spawn(move || {
                    for _ in 0..50_000 {
                        wait_for(&bells[me as usize], || turn.load(Ordering::Relaxed) == me);
                        turn.store(1 - me, Ordering::Relaxed);
                        bells[1 - me as usize].ring();
                    }
                });
            }
        });
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
