//! What becomes of a page that cannot be read: an error, or, if a thread waits for it, the end.

use std::sync::{Arc, OnceLock};

use crate::failure::{DeviceError, Health, lock};
use crate::side_files::remove_made;
use crate::sync::background::Mutex;
use crate::system::death::take_note_back;

/// Where the errors go of pages that no thread waits for: the device fails, and who asks first gets
/// the error itself.
#[derive(Debug)]
pub(super) struct Failures {
    health: Arc<Health>,
    first: Mutex<Option<DeviceError>>,
}

impl Failures {
    pub(super) fn of(health: &Arc<Health>) -> Self {
        Self { health: Arc::clone(health), first: Mutex::default() }
    }

    pub(super) fn note(&self, error: DeviceError) {
        let mut first = lock(&self.first);
        if let Err(error) = self.health.note::<()>(Err(error)) {
            first.get_or_insert(error);
        }
    }

    /// Fails if the device has.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        self.health.check().map_err(|sticky| lock(&self.first).take().unwrap_or(sticky))
    }
}

/// What ends the process instead of an abort.
static END: OnceLock<fn(&str) -> !> = OnceLock::new();

/// From now on `end` ends this process where a thread waits for a page that cannot be read, and can
/// have no error. It is told why, may be called by several threads, and is not called by threads
/// that hold a lock of the store; the thread that waits for the page never goes on. Without one the
/// process is aborted, with a message on standard error. Only the first call counts.
pub fn on_lost_page(end: fn(&str) -> !) {
    // There is one already.
    let _ = END.set(end);
}

/// A thread waits for a page that will never be there, and can have no error.
pub(super) fn end_process(what: &str) -> ! {
    // It is not the call's doing.
    take_note_back();
    remove_made();
    let what = format!(
        "{what}; this process ends, because a call waits for it. What was answered is in the log; \
         open the store again when the disk can be read, or restore a copy"
    );
    if let Some(end) = END.get() {
        end(&what);
    }
    eprintln!("nvcaracal: {what}");
    std::process::abort()
}
