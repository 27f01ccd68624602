//! Why a call can commit no more, whatever its body makes of the error.
//!
//! A body that ignores a mistake would commit half of what it means to do. So every function of a
//! transaction notes its error here before it returns it, and the worker that runs the body looks
//! here when it has come to its end (O-02). Errors are made on cold paths: a call without one is
//! compared once.

use std::cell::Cell;
use std::panic::resume_unwind;

use super::{Stop, Transaction};

/// What the functions of a running transaction have failed with: the first mistake; or that it is
/// deferred, which counts more (O-66); or that the engine was stopped, which counts most.
#[derive(Default)]
pub(crate) struct FirstError(Cell<Option<Box<Stop>>>, Cell<u32>);

/// A body that goes on after so many errors tries the same again and again: it is ended by an
/// unwinding like that of a panic.
const ERRORS_MAX: u32 = 1 << 16;

/// How much an error counts.
fn rank(stop: &Stop) -> u8 {
    match stop {
        Stop::Abort(_) | Stop::Code(_) | Stop::Mistake(_) => 0,
        Stop::Deferred => 1,
        Stop::Stopped => 2,
    }
}

impl FirstError {
    /// Notes an error, and gives it back.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&self, stop: Stop) -> Stop {
        let noted = match self.0.take() {
            Some(before) if rank(&before) >= rank(&stop) => before,
            _ => Box::new(stop.clone()),
        };
        self.0.set(Some(noted));
        self.1.set(self.1.get() + 1);
        if self.1.get() == ERRORS_MAX {
            self.1.set(0);
            resume_unwind(Box::new("it went on after many errors"));
        }
        stop
    }

    /// What was noted, if the call may not go on.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Stop> {
        let noted = self.0.take();
        let result = noted.as_deref().cloned().map_or(Ok(()), Err);
        self.0.set(noted);
        result
    }

    /// Whether nothing was noted.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        let noted = self.0.take();
        let is_clean = noted.is_none();
        self.0.set(noted);
        is_clean
    }

    /// What was noted, at the end.
    #[inline]
    pub(crate) fn take(&self) -> Option<Stop> {
        self.0.take().map(|noted| *noted)
    }
}

impl Transaction<'_> {
    /// For layers above that find a mistake themselves, such as a value of another type: notes it,
    /// so that the call fails whether or not its body passes it on.
    #[cold]
    pub fn mistake(&self, what: String) -> Stop {
        self.first_error.note(Stop::mistake(what))
    }

    /// For layers above that know more about an error that a function of this transaction returned:
    /// adds words to a mistake, also where it was noted as the first one.
    #[cold]
    pub fn explain(&self, stop: Stop, more: std::fmt::Arguments<'_>) -> Stop {
        let Stop::Mistake(what) = &stop else { return stop };
        let explained = Stop::mistake(format!("{what}{more}"));
        if self.first_error.check().as_ref() == Err(&stop) {
            self.first_error.0.set(Some(Box::new(explained.clone())));
        }
        explained
    }
}
