//! Waking all threads that wait for one thing with one system call.
//!
//! Woken one by one, the first of them may take the processor from the thread that wakes them, and
//! the others sleep until it is done.

use std::time::Instant;

use crate::sync::Futex;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Threads wait here until something has changed.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    /// How often it has advanced.
    count: AtomicU32,
    /// Threads that wait, or are about to.
    waiting: AtomicU32,
    futex: Futex,
}

impl EventCount {
    /// How often it has advanced: to be asked before a thread looks whether it has to wait.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until it has advanced since it had advanced so often, or `until` has come. May return
    /// early.
    pub(crate) fn wait(&self, count: u32, until: Option<Instant>) {
        // A thread that advances after this finds the thread, or the kernel finds that it has
        // advanced.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.futex.wait(&self.count, count, until);
        let waiting = self.waiting.fetch_sub(1, Ordering::Relaxed);
        assert!(waiting > 0, "a thread waited that was not counted");
    }

    /// Wakes all who wait, after what they wait for has changed.
    pub(crate) fn notify(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.futex.wake_all(&self.count);
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
    fn wait_for(event: &EventCount, is_done: impl Fn() -> bool) {
        let until = Instant::now() + LONG;
        loop {
            let count = event.count();
            if is_done() {
                return assert!(Instant::now() < until, "it was not woken");
            }
            event.wait(count, Some(until));
        }
    }

    #[test]
    fn all_who_wait_are_woken() {
        for round in 0..200 {
            let (event, is_done, start) =
                (EventCount::default(), AtomicBool::new(false), Barrier::new(4));
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        start.wait();
                        wait_for(&event, || is_done.load(Ordering::Relaxed));
                    });
                }
                start.wait();
                // It advances before they sleep, or when they sleep.
                thread::sleep(Duration::from_micros(round));
                is_done.store(true, Ordering::Relaxed);
                event.notify();
            });
            assert_eq!(event.waiting.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn it_wakes_a_thread_that_goes_to_sleep_while_it_rings() {
        let (events, turn) = ([EventCount::default(), EventCount::default()], AtomicU32::new(0));
        thread::scope(|scope| {
            for me in 0..2 {
                let (events, turn) = (&events, &turn);
                scope.spawn(move || {
                    for _ in 0..50_000 {
                        wait_for(&events[me as usize], || turn.load(Ordering::Relaxed) == me);
                        turn.store(1 - me, Ordering::Relaxed);
                        events[1 - me as usize].notify();
                    }
                });
            }
        });
    }

    #[test]
    fn a_thread_waits_until_its_time_has_come() {
        let event = EventCount::default();
        let until = Instant::now() + Duration::from_millis(20);
        while Instant::now() < until {
            event.wait(event.count(), Some(until));
        }
        // It has advanced since: it does not wait at all.
        let before = event.count();
        event.notify();
        event.wait(before, Some(Instant::now() + LONG));
        assert!(Instant::now() < until + LONG);
    }
}
