//! The archive of a log gets epochs some time after they were answered, also those of a database
//! that is idle: a thread of its own asks for it, between two epochs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use storage::{EpochNumber, StorageError};

use super::handle::Database;
use crate::error::{Error, Result};
use crate::host::driver::Driver;
use crate::observe::events;
use crate::sequencer::run::Shared;

/// Asks until it is dropped.
#[derive(Debug)]
pub(super) struct Archiving(Arc<End>);

#[derive(Debug, Default)]
struct End {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl Archiving {
    /// Asks so often that epochs are being archived after half of a delay: the rest is for writing
    /// them. Never, if there is no delay.
    ///
    /// # Errors
    /// [`Error::is_stopped`] if there can be no thread; `shared` is closed then.
    pub(super) fn begin(shared: &Arc<Shared>, delay: Option<Duration>) -> Result<Option<Self>> {
        let Some(delay) = delay else { return Ok(None) };
        let end = Arc::<End>::default();
        let (of_thread, theirs) = (Arc::clone(&end), Arc::clone(shared));
        let thread = std::thread::Builder::new().name("nvcaracal archive".into());
        // It ends with this, for which it is not waited.
        match thread.spawn(move || of_thread.run(&theirs, delay / 2)) {
            Ok(_) => Ok(Some(Self(end))),
            Err(error) => {
                shared.queue.close();
                let what = "cannot start the thread that has the log archived";
                Err(Error::stopped(format!("{what}: {error}")))
            }
        }
    }
}

impl Drop for Archiving {
    fn drop(&mut self) {
        *self.0.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

impl End {
    fn run(&self, shared: &Arc<Shared>, every: Duration) {
        loop {
            let ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self.changed.wait_timeout_while(ended, every, |ended| !*ended);
            let (ended, _) = wait.unwrap_or_else(PoisonError::into_inner);
            let has_ended = *ended;
            drop(ended);
            let told = Arc::clone(shared);
            let request = shared.queue.request(Box::new(move |driver| {
                let Ok(driver) = driver else { return };
                driver.archive_log();
                tell(&told, driver);
            }));
            if has_ended || request.is_err() {
                return;
            }
        }
    }
}

impl Database {
    /// Waits until the archive of the log has all epochs up to `epoch`. It does not have them
    /// sooner for that: [`Options::archive_delay`](crate::Options::archive_delay) says when they
    /// come, and [`Database::checkpoint`] brings them there at once.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the log is not archived; why it could not be, which is tried again;
    /// [`Error::is_stopped`] if the database is closed meanwhile.
    pub fn wait_archived(&self, epoch: u64) -> Result<()> {
        let watch = self.inner.request(|driver| Ok(driver.archive_watch()))?;
        let watch = watch.ok_or_else(|| {
            Error::mistake("the log is not archived: open the database with Options::archive")
        })?;
        match watch.wait(EpochNumber(epoch)).map_err(StorageError::from)? {
            true => Ok(()),
            false => Err(Error::closed()),
        }
    }
}

/// Tells how the archive is, where that has changed.
pub(super) fn tell(shared: &Shared, driver: &Driver) {
    let (error, mut has_changed) = (driver.archive_error(), false);
    shared.record(|recorder| has_changed = recorder.archive(error.clone()));
    if has_changed {
        events::archive(driver.status().epoch, error.as_deref());
    }
}
