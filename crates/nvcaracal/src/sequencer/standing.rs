//! The standing snapshot: a snapshot of the newest epoch, which all readers share.
//!
//! The engine takes snapshots between two epochs. While readers ask for snapshots, the sequencer
//! takes one at the end of each epoch, before the epoch's calls are answered. Readers get that one
//! at once, and do not wait for the epoch that runs. If no reader asks during an epoch nor for a
//! second it ends, and epochs keep nothing for it any more.
//!
//! A reader for whom none stands waits here. All who wait get the next one that is taken: at the
//! end of the epoch that runs, or where none runs by a request of the sequencer. They do not wait
//! for other work, such as the rest of a batch of calls that runs in several epochs.
//!
//! Invariant: a standing snapshot has all calls that were answered.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use storage::EpochNumber;

use crate::error::{Error, Result};
use crate::host::driver::Driver;
use crate::sequencer::run::Shared;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Rows that are freed at least between two epochs when a snapshot has ended.
const FREED_ROWS_MAX: usize = 4096;
/// How long after the last reader asked a standing snapshot is renewed.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// A snapshot of the engine, until it is released.
pub(crate) struct Held {
    /// The database; its snapshots end with it.
    shared: Weak<Shared>,
    pub(crate) epoch: EpochNumber,
}

impl Held {
    /// A snapshot that the engine has made.
    pub(crate) fn of(shared: &Arc<Shared>, epoch: EpochNumber) -> Arc<Held> {
        Arc::new(Held { shared: Arc::downgrade(shared), epoch })
    }

    /// Releases the snapshot between two epochs, on the sequencer's thread.
    fn release(mut self, shared: &Arc<Shared>, driver: &mut Driver) {
        self.shared = Weak::new();
        let rows = driver.snapshot_rows(self.epoch);
        driver.release_snapshot(self.epoch);
        // Twice as many as came, so that what others have left goes in the end.
        sweep(shared, driver, FREED_ROWS_MAX.max(2 * rows));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let (epoch, of_sweeps) = (self.epoch, Arc::clone(&shared));
        // Of a database that is closed there is nothing to release.
        let _ = shared.queue.request(Box::new(move |driver| {
            if let Ok(driver) = driver {
                driver.release_snapshot(epoch);
                sweep(&of_sweeps, driver, FREED_ROWS_MAX);
            }
        }));
    }
}

/// Frees at most `rows_max` rows that ended snapshots have left, and the rest after later epochs.
fn sweep(shared: &Arc<Shared>, driver: &mut Driver, rows_max: usize) {
    if driver.sweep_snapshots(rows_max) {
        let again = Arc::clone(shared);
        let _ = shared.queue.request(Box::new(move |driver| {
            if let Ok(driver) = driver {
                sweep(&again, driver, FREED_ROWS_MAX);
            }
        }));
    }
}

/// What a reader that waits does with its snapshot, or with the reason why there is none.
pub(crate) type Waiting = Box<dyn FnOnce(Result<Arc<Held>>) + Send>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Standing {
    /// Whether there is one, or a reader waits.
    is_wanted: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Arc<Held>>,
    /// When a reader asked last.
    asked: Option<Instant>,
    /// Whether one has asked since the last epoch ended.
    is_asked: bool,
    waiting: Vec<Waiting>,
}

impl State {
    fn note_asked(&mut self) {
        self.asked = Some(Instant::now());
        self.is_asked = true;
    }

    /// Whether there is to be a snapshot of the epoch that has just ended.
    fn goes_on(&mut self) -> bool {
        let is_new = self.asked.is_some_and(|asked| asked.elapsed() < KEPT_FOR);
        std::mem::take(&mut self.is_asked) || is_new
    }

    /// The snapshot, if it is of the epoch `newest` or a later one.
    fn of(&self, newest: EpochNumber) -> Option<Arc<Held>> {
        self.snapshot.as_ref().filter(|held| held.epoch >= newest).map(Arc::clone)
    }
}

/// What came of a question for a snapshot.
pub(crate) enum Asked {
    Has(Arc<Held>),
    /// The reader waits. Whether it is the first one, who has to make a request.
    Waits {
        is_first: bool,
    },
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The standing snapshot, if it is of the epoch `newest` or a later one. It is of an earlier
    /// one for the moment between the end of an epoch and its answers.
    pub(crate) fn get(&self, newest: EpochNumber) -> Option<Arc<Held>> {
        if !self.is_wanted.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        state.note_asked();
        state.of(newest)
    }

    /// The same, for a reader that waits if there is none.
    pub(crate) fn ask(&self, newest: EpochNumber, waiting: Waiting) -> Asked {
        let mut state = self.state();
        state.note_asked();
        if let Some(held) = state.of(newest) {
            return Asked::Has(held);
        }
        let is_first = state.waiting.is_empty();
        state.waiting.push(waiting);
        self.is_wanted.store(true, Ordering::Release);
        Asked::Waits { is_first }
    }

    /// Takes a snapshot for readers that wait, between two epochs, unless they have got theirs by
    /// now.
    pub(crate) fn begin(&self, shared: &Arc<Shared>, driver: &mut Driver) {
        let epoch = driver.status().epoch;
        let mut state = self.state();
        if state.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut state.waiting);
        let (held, old) = match state.of(epoch) {
            Some(held) => (held, None),
            None => {
                let held = Held::of(shared, driver.snapshot());
                let old = state.snapshot.replace(Arc::clone(&held));
                (held, old)
            }
        };
        drop(state);
        tell(waiting, &Ok(held));
        release(old, shared, driver);
    }

    /// Goes on to the epoch that has just ended, before its calls are answered.
    pub(crate) fn renew(&self, shared: &Arc<Shared>, driver: &mut Driver) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        let is_wanted = state.goes_on();
        let next = is_wanted.then(|| Held::of(shared, driver.snapshot()));
        let old = std::mem::replace(&mut state.snapshot, next.clone());
        let waiting = std::mem::take(&mut state.waiting);
        self.is_wanted.store(is_wanted, Ordering::Release);
        drop(state);
        if let Some(held) = next {
            tell(waiting, &Ok(held));
        } else {
            assert!(waiting.is_empty(), "who waits has asked since the last epoch");
        }
        release(old, shared, driver);
    }

    /// There will be no snapshot any more.
    pub(crate) fn fail(&self, error: &Error) {
        let waiting = std::mem::take(&mut self.state().waiting);
        tell(waiting, &Err(error.clone()));
    }

    /// The database has ended.
    pub(crate) fn end(&self, error: &Error) {
        let old = self.state().snapshot.take();
        drop(old);
        self.fail(error);
    }
}

/// Tells readers what came of their question: code of theirs, for which no lock is held.
fn tell(waiting: Vec<Waiting>, made: &Result<Arc<Held>>) {
    waiting.into_iter().for_each(|waiting| waiting(made.clone()));
}

/// Releases a snapshot that does not stand any more, if no reader has it.
fn release(old: Option<Arc<Held>>, shared: &Arc<Shared>, driver: &mut Driver) {
    if let Some(held) = old.and_then(Arc::into_inner) {
        held.release(shared, driver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An epoch may take longer than a snapshot is kept for a reader that has not asked again.
    #[test]
    fn a_snapshot_stands_as_long_as_a_reader_asks_in_each_epoch() {
        let mut state = State::default();
        assert!(!state.goes_on(), "no reader has asked");
        let long_ago = Instant::now().checked_sub(2 * KEPT_FOR).expect("the clock has run so long");
        for _ in 0..3 {
            state.note_asked();
            state.asked = Some(long_ago);
            assert!(state.goes_on());
        }
        assert!(!state.goes_on(), "not in this epoch, nor in the last second");
        state.note_asked();
        assert!(state.goes_on() && state.goes_on(), "a second has not passed");
    }
}
