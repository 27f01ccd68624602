//! The standing snapshot: a snapshot of the newest epoch, which all readers share.
//!
//! The engine takes snapshots between two epochs. While readers ask for snapshots, the sequencer
//! takes one at the end of each epoch, before the epoch's calls are answered. Readers get that one
//! at once, and do not wait for the epoch that runs. A second after the last reader has asked it
//! ends, and epochs keep nothing for it any more.
//!
//! Invariant: a standing snapshot has all calls that were answered.

use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use storage::EpochNumber;

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
    fn release(mut self, shared: &Arc<Shared>, driver: &mut dyn Driver) {
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
fn sweep(shared: &Arc<Shared>, driver: &mut dyn Driver, rows_max: usize) {
    if driver.sweep_snapshots(rows_max) {
        let again = Arc::clone(shared);
        let _ = shared.queue.request(Box::new(move |driver| {
            if let Ok(driver) = driver {
                sweep(&again, driver, FREED_ROWS_MAX);
            }
        }));
    }
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Standing {
    /// Whether there is one; changes between epochs only.
    is_kept: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    snapshot: Option<Arc<Held>>,
    /// When a reader asked last.
    asked: Option<Instant>,
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The standing snapshot, if it is of the epoch `newest` or a later one. It is of an earlier
    /// one for the moment between the end of an epoch and its answers.
    pub(crate) fn get(&self, newest: EpochNumber) -> Option<Arc<Held>> {
        if !self.is_kept.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        state.asked = Some(Instant::now());
        state.snapshot.as_ref().filter(|held| held.epoch >= newest).map(Arc::clone)
    }

    /// Takes a snapshot for a reader between two epochs, which stands from then on.
    pub(crate) fn begin(&self, shared: &Arc<Shared>, driver: &mut dyn Driver) -> Arc<Held> {
        let epoch = driver.status().epoch;
        let mut state = self.state();
        state.asked = Some(Instant::now());
        if let Some(held) = state.snapshot.as_ref().filter(|held| held.epoch == epoch) {
            return Arc::clone(held);
        }
        let held = Held::of(shared, driver.snapshot());
        let old = state.snapshot.replace(Arc::clone(&held));
        self.is_kept.store(true, Ordering::Release);
        drop(state);
        release(old, shared, driver);
        held
    }

    /// Goes on to the epoch that has just ended, before its calls are answered.
    pub(crate) fn renew(&self, shared: &Arc<Shared>, driver: &mut dyn Driver) {
        if !self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        let is_wanted = state.asked.is_some_and(|asked| asked.elapsed() < KEPT_FOR);
        let next = is_wanted.then(|| Held::of(shared, driver.snapshot()));
        let old = std::mem::replace(&mut state.snapshot, next);
        self.is_kept.store(is_wanted, Ordering::Release);
        drop(state);
        release(old, shared, driver);
    }

    /// The database has ended.
    pub(crate) fn end(&self) {
        self.is_kept.store(false, Ordering::Release);
        let old = self.state().snapshot.take();
        drop(old);
    }
}

/// Releases a snapshot that does not stand any more, if no reader has it.
fn release(old: Option<Arc<Held>>, shared: &Arc<Shared>, driver: &mut dyn Driver) {
    if let Some(held) = old.and_then(Arc::into_inner) {
        held.release(shared, driver);
    }
}
