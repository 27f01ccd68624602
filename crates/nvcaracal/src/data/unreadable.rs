//! Where a value that does not read back is noted: `encode` has no way to fail.

use std::any::type_name;
use std::cell::Cell;

thread_local! {
    /// The type of the last part that did not read back, until it is looked at.
    static UNREADABLE: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Notes that a value does not read back.
#[cold]
pub(crate) fn note<T>() {
    UNREADABLE.set(Some(type_name::<T>()));
}

/// Forgets what was noted.
pub(super) fn forget() {
    UNREADABLE.set(None);
}

/// The type of the last part that was noted.
pub(super) fn noted() -> Option<&'static str> {
    UNREADABLE.get()
}
