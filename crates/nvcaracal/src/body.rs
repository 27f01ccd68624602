//! Code of users that a database runs: it must not wait for the database that waits for it.
//!
//! Procedures, and functions of indexes, may use no database at all. Callbacks (wakers, what
//! listens to `tracing` and `metrics`) run on threads that all callers wait for, at any moment
//! between two steps: they may leave calls, and must not wait.

use std::cell::Cell;
use std::task::Waker;

use engine::caught;

use crate::error::{Error, Result};

/// What a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The program, which called a database or did not.
    Program,
    /// For a database, a callback.
    Callback,
    /// For a database, a procedure or a function of an index.
    Procedure,
}

crate::sync::thread_local! {
    static RUNS: Cell<Runs> = const { Cell::new(Runs::Program) };
}

fn runs() -> Runs {
    RUNS.with(Cell::get)
}

/// Sets the mark back, also when what it is for panics.
struct Mark(Runs);

impl Drop for Mark {
    fn drop(&mut self) {
        RUNS.with(|runs| runs.set(self.0));
    }
}

/// Runs a part of a procedure, or a function of an index.
#[inline]
pub(crate) fn within<R>(run: impl FnOnce() -> R) -> R {
    let _mark = Mark(RUNS.with(|runs| runs.replace(Runs::Procedure)));
    run()
}

/// Does a part of a database's work, in which callbacks may run.
pub(crate) fn working<R>(work: impl FnOnce() -> R) -> R {
    let before = runs();
    let _mark = Mark(before);
    if before == Runs::Program {
        RUNS.with(|runs| runs.set(Runs::Callback));
    }
    work()
}

/// Runs a callback. If it panics only the hook of panics hears of it: it is no call.
pub(crate) fn callback(run: impl FnOnce()) {
    let _ = caught(|| working(run));
}

/// Wakes tasks, each of which may run at once on this thread. Locks of the database are not held.
pub(crate) fn wake(tasks: impl IntoIterator<Item = Waker>) {
    tasks.into_iter().for_each(|task| callback(|| task.wake()));
}

/// Whether this thread may wait for a database.
///
/// # Errors
/// A mistake if a database runs a procedure or a callback on it.
#[inline]
pub(crate) fn check_may_wait() -> Result<()> {
    match runs() {
        Runs::Program => Ok(()),
        Runs::Callback => Err(in_callback()),
        Runs::Procedure => Err(in_procedure()),
    }
}

/// Whether this thread may use a database where that never waits.
///
/// # Errors
/// A mistake if a database runs a procedure on it.
#[inline]
pub(crate) fn check_outside() -> Result<()> {
    if runs() == Runs::Procedure { Err(in_procedure()) } else { Ok(()) }
}

#[cold]
fn in_procedure() -> Error {
    Error::mistake(
        "a procedure, or a function of an index, used a database, which waits for it: use the \
         transaction that it was given, and call from outside",
    )
}

#[cold]
fn in_callback() -> Error {
    Error::mistake(
        "a waker, or what listens to tracing or metrics, would wait for a database, which waits \
         for it: leave calls with try_submit or submit_async, and wait on another thread",
    )
}
