//! Addresses from which wrong passwords came: guessing gets slower.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong passwords without a delay.
const FREE: u32 = 5;
const DELAY: Duration = Duration::from_secs(1);
/// After this time an address is as any other.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// How often each address failed, and when last.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Failures {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<IpAddr, (u32, Instant)>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long a client of this address waits for its answer.
    pub(crate) fn delay(&self, address: IpAddr, now: Instant) -> Duration {
        self.with(|all| match all.get(&address) {
            Some((count, last)) if *count >= FREE && now - *last < FORGOTTEN_AFTER => DELAY,
            _ => Duration::ZERO,
        })
    }

    /// A wrong password came.
    pub(crate) fn failed(&self, address: IpAddr, now: Instant) {
        self.with(|all| {
            if all.len() >= ADDRESSES_MAX {
                all.retain(|_, (_, last)| now - *last < FORGOTTEN_AFTER);
            }
            if all.len() >= ADDRESSES_MAX {
                all.clear();
            }
            let entry = all.entry(address).or_insert((0, now));
            let count = if now - entry.1 < FORGOTTEN_AFTER { entry.0 } else { 0 };
            *entry = (count.saturating_add(1), now);
        });
    }

    /// The right one came.
    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.with(|all| all.remove(&address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_guess_waits() {
        let (failures, now) = (Failures::default(), Instant::now());
        let address = IpAddr::from([127, 0, 0, 1]);
        for _ in 0..FREE {
            assert_eq!(failures.delay(address, now), Duration::ZERO);
            failures.failed(address, now);
        }
        assert_eq!(failures.delay(address, now), DELAY);
        assert_eq!(failures.delay(address, now + FORGOTTEN_AFTER), Duration::ZERO);
        failures.succeeded(address);
        assert_eq!(failures.delay(address, now), Duration::ZERO);
    }
}
