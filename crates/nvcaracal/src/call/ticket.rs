//! Tickets: where answers are waited for.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::call::group::Told;
use crate::call::share::Share;
use crate::data::value::Data;
use crate::error::{Error, Result};

/// A claim on the answer to one call.
///
/// The answer comes when the epoch's log is durable and the result is known; the call takes place
/// even if the ticket is dropped. Wait for it on a thread, or in a task of any runtime: a ticket is
/// a future of what [`Ticket::wait`] returns. Tickets may be collected: one that was answered some
/// epochs ago keeps no more in memory than the answers to a few calls of its thread, or to those of
/// its [`Batch`](crate::Batch).
#[must_use = "the answer says whether the call committed"]
pub struct Ticket<T> {
    share: Arc<Share>,
    index: u32,
    output: PhantomData<fn() -> T>,
}

impl<T: Data> Ticket<T> {
    pub(crate) fn new(share: Arc<Share>, index: u32) -> Self {
        Self { share, index, output: PhantomData }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Why the call did not commit: it gave up ([`Error::is_user_abort`]), it failed
    /// ([`Error::is_failed`]), its epoch had no space ([`Error::is_limit`]). If the database
    /// stopped ([`Error::is_stopped`]), the call may have committed or not.
    pub fn wait(self) -> Result<T> {
        self.wait_until(None).unwrap_or_else(|| Err(Error::closed()))
    }

    /// The answer, if it is there by now.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn try_get(&self) -> Option<Result<T>> {
        if let Err(error) = self.share.check_usable() {
            return Some(Err(error));
        }
        let index = self.index;
        self.share.look(index, |group| group.try_read(index), |told| Some(told.read()))
    }

    /// Whether the call was deferred ([`Procedure::write_set`](crate::Procedure::write_set)): it
    /// ran in the epoch after the one that it was submitted to. Known once the answer is there.
    /// Where many calls of a kind are deferred they are better submitted to the
    /// [serial part](crate::Part::Serial).
    pub fn was_deferred(&self) -> Option<bool> {
        self.share.check_usable().ok()?;
        let index = self.index;
        self.share.look(index, |group| group.was_deferred(index), |told| Some(told.was_deferred))
    }

    /// Waits for the answer, but no longer than this.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn wait_timeout(&self, most: Duration) -> Option<Result<T>> {
        let until = Instant::now().checked_add(most);
        self.wait_until(until)
    }

    fn wait_until(&self, until: Option<Instant>) -> Option<Result<T>> {
        if let Err(error) = self.share.check_usable() {
            return Some(Err(error));
        }
        let index = self.index;
        self.share.look(index, |group| group.wait(index, until), |told| Some(told.read()))
    }
}

impl<T: Data> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let Err(error) = self.share.check_usable() {
            return Poll::Ready(Err(error));
        }
        let index = self.index;
        let in_answer = |told: &Told| Poll::Ready(told.read());
        self.share.look(index, |group| group.poll(index, context.waker()), in_answer)
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without waiting for a lock, which a procedure's thread or a parent may hold.
        let answered = self.share.is_answered(self.index);
        f.debug_struct("Ticket").field("index", &self.index).field("answered", &answered).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::call::group::Group;

    #[test]
    fn a_thread_that_gave_up_waiting_waits_again_and_is_woken() {
        let group = Arc::new(Group::default());
        let ticket = Ticket::<()>::new(Share::of(Arc::clone(&group)), 0);
        for _ in 0..5 {
            assert!(ticket.wait_timeout(Duration::from_millis(1)).is_none());
        }
        let waits = thread::spawn(move || ticket.wait());
        thread::sleep(Duration::from_millis(5));
        // An answer for another caller wakes it, and it sleeps on.
        group.answer_one(1, Told { output: Err(Error::closed()), was_deferred: false });
        thread::sleep(Duration::from_millis(5));
        assert!(!waits.is_finished());
        group.end(&Error::closed());
        assert!(waits.join().unwrap().unwrap_err().is_stopped());
    }
}
