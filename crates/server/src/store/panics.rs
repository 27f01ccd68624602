//! Panics in a statement: an error of its client alone. Where it was is said on standard error by
//! the panic itself.
//!
//! Nothing here is about the calls that are logged: the library catches a panic of a procedure, and
//! the call fails, now and in every replay.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use values::{Error, Result, SqlState};

/// Does the work; a panic is its error.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of(panic)))
}

/// Waits for the work; a panic is an error.
pub(crate) async fn caught_in<T>(work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            // It is not polled again: what it had is dropped.
            Err(panic) => Poll::Ready(Err(of(panic))),
        }
    })
    .await
}

/// The error of a panic whose text is not known.
pub(super) fn unknown() -> Error {
    error("the statement was cut off by a panic")
}

fn of(panic: Box<dyn Any + Send>) -> Error {
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => match panic.downcast::<&'static str>() {
            Ok(text) => (*text).to_owned(),
            Err(other) => {
                // Its drop may panic, too.
                std::mem::forget(other);
                return unknown();
            }
        },
    };
    error(&text)
}

fn error(text: &str) -> Error {
    let hint = "This is a mistake of the server, which goes on; its standard error says where. \
                Please report it.";
    Error::new(SqlState::INTERNAL, format!("internal error: {text}")).with_hint(hint)
}

/// Where tests let a statement panic.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Parse,
    Plan,
    Query,
    LookUp,
    Block,
    /// Where a snapshot is taken for a query.
    Snapshot,
    Definition,
    Message,
}

/// Panics if the text says so: `panic in Plan`.
#[cfg(test)]
pub(crate) fn planted(place: Place, text: &str) {
    assert!(!text.contains(&format!("panic in {place:?}")), "planted in {place:?}");
}

#[cfg(test)]
mod tests;
