//! The end of a database: its thread is waited for, but not for a call that does not end.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::{RunningCall, RunningCalls, text_of};

use crate::error::{Error, Result};
use crate::observe::slow_calls::{SameCall, SlowCalls};
use crate::sequencer::run::{Shared, panicked};
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, HAS_TIME, Mutex, wait_timeout};

/// Between two looks which call runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is known of the calls that run.
pub(crate) struct CallTimes {
    pub(crate) running: RunningCalls,
    pub(crate) slow: SlowCalls,
    /// Longest time for which closing waits for one call.
    pub(crate) close_wait_max: Duration,
}

/// Whether the sequencer's thread has come to its end.
#[derive(Default)]
pub(crate) struct Ended {
    has_ended: Mutex<bool>,
    told: Condvar,
}

/// Says so when the thread ends, however it does.
pub(crate) struct SaysEnded(pub(crate) Arc<Ended>);

impl Drop for SaysEnded {
    fn drop(&mut self) {
        *self.0.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.told.notify_all();
    }
}

impl Ended {
    /// Waits for it, or for some time.
    fn wait(&self, most: Duration) -> bool {
        let mut has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_ended {
            has_ended = wait_timeout(&self.told, &self.has_ended, has_ended, most);
        }
        *has_ended
    }
}

impl CallTimes {
    /// Waits for the sequencer's thread to end, which was told to. If a call does not end, what
    /// waits behind it is given up, and the thread is left alone with it.
    ///
    /// # Errors
    /// The thread's; [`Error::is_stopped`] with the name of the call.
    pub(crate) fn join(
        &self,
        thread: JoinHandle<Result<()>>,
        ended: &Ended,
        shared: &Shared,
    ) -> Result<()> {
        let mut same = SameCall::default();
        while HAS_TIME && !ended.wait(LOOK_EVERY) {
            let Some((call, time)) = same.look(self.running.first()) else { continue };
            if is_too_long(time, self.close_wait_max) {
                let error = does_not_end(call, time);
                shared.queue.fail(&error);
                shared.feeds.end(&error);
                return Err(error);
            }
        }
        let joined = thread.join();
        joined.unwrap_or_else(|panic| Err(Error::stopped(panicked(&text_of(panic)))))
    }
}

/// Whether closing gives up a call that has run for some time, where it waits for so long at most.
fn is_too_long(time: Duration, most: Duration) -> bool {
    time >= most
}

fn does_not_end(call: &RunningCall, time: Duration) -> Error {
    let RunningCall { epoch, position, procedure } = call;
    Error::stopped(format!(
        "call {position} of epoch {epoch} ({procedure}) has run for {} s and does not end: its \
         thread is left with it, and the database is open until it ends or the process does",
        time.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_given_up_when_it_has_run_for_the_longest_time_and_not_before() {
        let most = Duration::from_secs(5);
        for (millis, gives_up) in [(0, false), (4999, false), (5000, true), (6000, true)] {
            assert_eq!(is_too_long(Duration::from_millis(millis), most), gives_up, "{millis} ms");
        }
        assert!(is_too_long(Duration::ZERO, Duration::ZERO));
    }
}
