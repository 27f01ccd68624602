//! Answers that are waited for.

use super::pool::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use values::{Datum, Result};

/// The answer to a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The command tag.
    pub tag: String,
    /// The rows of a query or of RETURNING.
    pub rows: Vec<Vec<Datum>>,
    /// What the client is told although it is no error.
    pub notice: Option<String>,
}

/// Where an answer comes.
#[derive(Default)]
pub(super) struct Slot {
    answer: Mutex<Option<Result<Answer>>>,
}

/// An answer that is to come: a future for tasks of any runtime, and for threads, which wait.
/// Whether it is waited for or dropped, the statement takes place.
#[must_use = "the answer says whether the statement took place"]
pub struct Pending {
    pub(super) slot: Arc<Slot>,
}

impl Slot {
    pub(super) fn answered(answer: Result<Answer>) -> Arc<Slot> {
        Arc::new(Slot { answer: Mutex::new(Some(answer)) })
    }
}

impl Future for Pending {
    type Output = Result<Answer>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<Answer>> {
        match lock(&self.slot.answer).take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

impl Pending {
    /// Waits on this thread.
    ///
    /// # Errors
    /// The statement's.
    pub fn wait(self) -> Result<Answer> {
        block_on(self)
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
