//! How long a device is busy, whichever port made it so: together they get no more than its
//! bandwidth.
//!
//! Time is in nanoseconds since the device was opened. Each direction has a word with the time
//! until which it is busy. A port that moved something pushes it on by as long as the device takes
//! for that, and waits until then. Nothing is reserved for each access: a port does it when it
//! pays.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::PAY_ABOVE_NS;

/// So much of what an idle device could have done is made up for: ports report what they moved only
/// when they pay, up to [`PAY_ABOVE_NS`] of it and the time in which they moved it later.
const LATE_NS: u64 = 2 * PAY_ABOVE_NS;

/// One direction of a device. In a line of its own, because beside it is what every access reads.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Direction {
    busy_until_ns: AtomicU64,
}

impl Direction {
    /// Takes the device for so long, as soon as it is free; when it has done that.
    pub(super) fn take(&self, now_ns: u64, for_ns: u64) -> u64 {
        if for_ns == 0 {
            return now_ns;
        }
        let idle = now_ns.saturating_sub(LATE_NS);
        let until = |busy: u64| busy.max(idle) + for_ns;
        // Nothing is published by this word: it is only a number that all agree on.
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = self.busy_until_ns.fetch_update(set, fetch, |busy| Some(until(busy)));
        let (Ok(before) | Err(before)) = before;
        until(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_after_what_was_taken_before() {
        let direction = Direction::default();
        assert_eq!(direction.take(100, 50), 50);
        assert_eq!(direction.take(100, 3000), 3050);
        assert_eq!(direction.take(100, 0), 100, "nothing to wait for");
        assert_eq!(direction.take(1000, 10), 3060);
    }

    #[test]
    fn an_idle_device_makes_up_for_little() {
        let direction = Direction::default();
        let now_ns = 1_000_000;
        assert_eq!(direction.take(now_ns, 5000), now_ns - LATE_NS + 5000);
        assert_eq!(direction.take(now_ns, 5000), now_ns - LATE_NS + 10_000);
    }

    #[test]
    fn two_threads_owe_twice() {
        let direction = Direction::default();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (0..1000).for_each(|_| {
                        direction.take(0, 7);
                    })
                });
            }
        });
        assert_eq!(direction.take(0, 1), 2 * 1000 * 7 + 1);
    }
}
