//! The thread that writes snapshots while the engine goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use super::checkpoint::{ImageSnapshot, SnapshotWriter};
use crate::epoch_number::EpochNumber;
use crate::failure::{DeviceError, Health, lock};
use crate::sync::background::{Condvar, Mutex, MutexGuard};
use crate::system::Process;

#[derive(Debug, Default)]
struct State {
    waiting: Option<ImageSnapshot>,
    busy: bool,
    stop: bool,
    snapshot_epoch: Option<EpochNumber>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The background writer, as seen from the device. Dropping it finishes what was handed over.
#[derive(Debug)]
pub(super) struct Background {
    shared: Arc<Shared>,
    health: Arc<Health>,
    thread: Option<JoinHandle<()>>,
    /// In which the thread is.
    process: Process,
}

impl Background {
    pub(super) fn start(
        mut writer: SnapshotWriter,
        snapshot_epoch: Option<EpochNumber>,
        health: Arc<Health>,
    ) -> std::io::Result<Self> {
        let state = Mutex::new(State { snapshot_epoch, ..State::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let (theirs, their_health) = (Arc::clone(&shared), Arc::clone(&health));
        let thread = std::thread::Builder::new()
            .name("pmem-snapshot".to_string())
            .spawn(move || run(&theirs, &their_health, &mut writer))?;
        Ok(Self { shared, health, thread: Some(thread), process: Process::current() })
    }

    /// Hands a snapshot over, after the one before is written; calls `submitted` in between.
    pub(super) fn submit(
        &self,
        mut snapshot: ImageSnapshot,
        submitted: impl FnOnce(&mut ImageSnapshot),
    ) -> Result<(), DeviceError> {
        let mut state = self.idle()?;
        assert!(!state.stop, "no snapshot is submitted when the writer was told to stop");
        let (newest, epoch) = (state.snapshot_epoch, snapshot.epoch);
        assert!(newest <= Some(epoch), "snapshot {epoch} comes after that of {newest:?}");
        submitted(&mut snapshot);
        state.waiting = Some(snapshot);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until everything handed over is written.
    pub(super) fn settle(&self) -> Result<(), DeviceError> {
        self.idle().map(drop)
    }

    pub(super) fn snapshot_epoch(&self) -> Option<EpochNumber> {
        lock(&self.shared.state).snapshot_epoch
    }

    /// Whether something that was handed over is not written yet.
    pub(super) fn is_busy(&self) -> bool {
        let state = lock(&self.shared.state);
        state.busy || state.waiting.is_some()
    }

    fn idle(&self) -> Result<MutexGuard<'_, State>, DeviceError> {
        let state = lock(&self.shared.state);
        let wait = self.shared.changed.wait_while(state, |s| s.busy || s.waiting.is_some());
        let state = wait.unwrap_or_else(PoisonError::into_inner);
        self.health.check()?;
        Ok(state)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.process.is_here() {
            // A child of `fork` has no such thread, and what it had locked stays so.
            return std::mem::forget(self.thread.take());
        }
        lock(&self.shared.state).stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was turned into a failure, and reported as such.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, health: &Health, writer: &mut SnapshotWriter) {
    while let Some(mut snapshot) = next(shared) {
        let epoch = snapshot.epoch;
        let committed = || lock(&shared.state).snapshot_epoch = Some(epoch);
        let result = health.check().and_then(|()| {
            let write = AssertUnwindSafe(|| writer.write(&mut snapshot, committed));
            catch_unwind(write).unwrap_or_else(|_| {
                let first = format!("the writer of snapshot {epoch} panicked");
                Err(DeviceError::Sticky { first })
            })
        });
        // The error reaches the caller with the next call: it is remembered.
        let _ = health.note(result);
        let mut state = lock(&shared.state);
        state.busy = false;
        shared.changed.notify_all();
    }
}

/// Waits for the next snapshot; `None` when there will be none.
fn next(shared: &Shared) -> Option<ImageSnapshot> {
    let state = lock(&shared.state);
    let wait = shared.changed.wait_while(state, |s| s.waiting.is_none() && !s.stop);
    let mut state = wait.unwrap_or_else(PoisonError::into_inner);
    let snapshot = state.waiting.take();
    state.busy = snapshot.is_some();
    snapshot
}
