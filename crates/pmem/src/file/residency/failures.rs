//! What becomes of a page that cannot be read: an error, or, if a thread waits for it, the end.

use std::sync::{Arc, Mutex};

use crate::failure::{DeviceError, Health, lock};
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

/// A thread waits for a page that will never be there, and can have no error.
pub(super) fn end_process(what: &str) -> ! {
    // It is not the call's doing.
    take_note_back();
    eprintln!(
        "nvcaracal: {what}; this process ends, because a call waits for it. What was answered is \
         in the log; open the store again when the disk can be read, or restore a copy"
    );
    std::process::abort()
}
