//! Times as two numbers.

use std::time::{Duration, SystemTime};

const NANOS: u32 = 1_000_000_000;

/// Seconds and the nanoseconds after them. `None` if these are a second or more.
pub(crate) fn duration(seconds: u64, nanos: u32) -> Option<Duration> {
    (nanos < NANOS).then(|| Duration::new(seconds, nanos))
}

/// Whole seconds since 1970, negative before, and the nanoseconds after them.
pub(crate) fn parts_since_1970(time: SystemTime) -> (i64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (after.as_secs() as i64, after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            match before.subsec_nanos() {
                0 => (-(before.as_secs() as i64), 0),
                nanos => (-(before.as_secs() as i64) - 1, NANOS - nanos),
            }
        }
    }
}

/// The time at these. `None` if there is no such time.
pub(crate) fn since_1970(seconds: i64, nanos: u32) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = match seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
        _ => SystemTime::UNIX_EPOCH.checked_sub(whole),
    }?;
    second.checked_add(duration(0, nanos)?)
}
