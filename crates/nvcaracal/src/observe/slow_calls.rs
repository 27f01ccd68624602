//! Calls that run longer than a program expects, or do not end: a thread of its own looks which
//! call has been the first one for too long, also while a log is replayed. No call is slower for
//! it, and nothing is stopped: a call runs to its end.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::{RunningCall, RunningCalls};

use crate::observe::events;

/// Which call runs, and since when it has been seen.
#[derive(Debug, Default)]
pub(crate) struct SameCall {
    seen: Option<(RunningCall, Instant)>,
}

impl SameCall {
    /// Notes the call that runs now: for how long it has been the same.
    pub(crate) fn look(&mut self, now: Option<RunningCall>) -> Option<(&RunningCall, Duration)> {
        let is_same = self.seen.as_ref().map(|(call, _)| call) == now.as_ref();
        if !is_same {
            self.seen = now.map(|call| (call, Instant::now()));
        }
        self.seen.as_ref().map(|(call, since)| (call, since.elapsed()))
    }
}

/// Watches for slow calls until it is dropped.
#[derive(Debug)]
pub(crate) struct SlowCalls {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    watch: Mutex<Watch>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Watch {
    /// Slow calls by the names of their procedures.
    counts: BTreeMap<String, u64>,
    has_ended: bool,
}

/// Between two looks, of which there are four in the time after which a call is slow.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(1);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

impl SlowCalls {
    /// Tells of each call that runs for so long; of none, if that is zero.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn watch(running: RunningCalls, warning: Duration) -> io::Result<Self> {
        if warning.is_zero() {
            return Ok(Self { shared: None });
        }
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("nvcaracal slow".into());
        // It ends with the watch, for which it is not waited.
        thread.spawn(move || of_thread.run(&running, warning))?;
        Ok(Self { shared: Some(shared) })
    }

    /// Slow calls of a procedure, since the database was opened.
    pub(crate) fn count(&self, procedure: &str) -> u64 {
        let count = |shared: &Shared| shared.watch().counts.get(procedure).copied();
        self.shared.as_deref().and_then(count).unwrap_or(0)
    }
}

impl Drop for SlowCalls {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.watch().has_ended = true;
            shared.ended.notify_all();
        }
    }
}

impl Shared {
    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, running: &RunningCalls, warning: Duration) {
        let every = (warning / 4).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX);
        let (mut same, mut told) = (SameCall::default(), None);
        loop {
            let watch = self.watch();
            let wait = self.ended.wait_timeout_while(watch, every, |watch| !watch.has_ended);
            let (mut watch, _) = wait.unwrap_or_else(PoisonError::into_inner);
            if watch.has_ended {
                return;
            }
            let Some((call, time)) = same.look(running.first()) else { continue };
            if time < warning || told.as_ref() == Some(call) {
                continue;
            }
            *watch.counts.entry(call.procedure.clone()).or_default() += 1;
            // What listens may ask for the counts.
            drop(watch);
            events::slow_call(call, time);
            told = Some(call.clone());
        }
    }
}
