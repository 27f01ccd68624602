//! Procedures and readers must not wait for the database that waits for them.

use std::cell::Cell;

use crate::{Error, Result};

thread_local! {
    /// Whether this thread runs a procedure or a reader.
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Sets the mark back, also when what it is for panics.
struct Mark(bool);

impl Drop for Mark {
    fn drop(&mut self) {
        IS_WITHIN.set(self.0);
    }
}

/// Runs a part of a procedure, or a reader.
#[inline]
pub(crate) fn within<R>(run: impl FnOnce() -> R) -> R {
    let _mark = Mark(IS_WITHIN.replace(true));
    run()
}

/// Whether this thread may wait for a database.
///
/// # Errors
/// A mistake if a procedure or a reader runs on it.
pub(crate) fn check_outside() -> Result<()> {
    if IS_WITHIN.get() { Err(inside()) } else { Ok(()) }
}

#[cold]
fn inside() -> Error {
    Error::mistake(
        "a procedure or a reader called a database, which waits for it: use the transaction or the \
         view that it was given, and call from outside",
    )
}
