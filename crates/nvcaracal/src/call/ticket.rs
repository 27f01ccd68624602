//! Tickets: where answers are waited for.
//!
//! The calls of one epoch share a [`Group`], which gets the whole outcome of the epoch in one step.
//! So handing out answers costs the sequencer one lock for an epoch, however many callers there
//! are, and it never waits for one of them. An answer that is there is read without a lock.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use engine::{Answer, EpochOutcome};
use pmem::Process;

use crate::body;
use crate::data::value::Data;
use crate::error::{Error, Result};
use crate::sync::event_count::EventCount;
use crate::sync::{Mutex, MutexGuard};

/// The answer to one call is here.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) outcome: Arc<EpochOutcome>,
    pub(crate) position: usize,
}

/// Where an answer is.
enum Found {
    /// In the outcome of the group's epoch.
    InOutcome,
    /// It came from elsewhere.
    Elsewhere(Result<Place>),
}

/// A group, as the tickets of a few threads hold it: all tickets of an epoch would count in one
/// place that their threads contend for.
pub(crate) type SharedGroup = Arc<Arc<Group>>;

/// Calls that were submitted for the same epoch, by their index in it.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Outcome of the epoch, and the position of the group's first call. Set with the state locked.
    outcome: OnceLock<Place>,
    state: Mutex<State>,
    /// Advances when answers have come.
    answered: EventCount,
    /// Where the answers come.
    process: Process,
}

#[derive(Debug, Default)]
struct State {
    /// Calls whose answers came from elsewhere: they were deferred, or their epoch was refused.
    others: HashMap<u32, Result<Place>>,
    /// What all calls get that have no answer yet.
    ended: Option<Error>,
    /// Tasks that wait for one call each.
    wakers: HashMap<u32, Waker>,
}

impl State {
    /// The answer of a call that did not come with the outcome of the group's epoch.
    fn find(&self, index: u32) -> Option<Result<Place>> {
        self.others.get(&index).cloned().or_else(|| self.ended.clone().map(Err))
    }
}

impl Group {
    /// The answer of a call that came with the outcome of the group's epoch.
    #[inline]
    fn in_outcome(&self, index: u32) -> Option<Answer<'_>> {
        let Place { outcome, position: first } = self.outcome.get()?;
        let position = first + index as usize;
        assert!(position < outcome.len(), "call {index} of another group");
        let answer = outcome.answer(position);
        (answer != Answer::Deferred).then_some(answer)
    }

    /// Where the answer of a call is, if it is there.
    fn find(&self, index: u32, state: &State) -> Option<Found> {
        match self.in_outcome(index) {
            Some(_) => Some(Found::InOutcome),
            None => state.find(index).map(Found::Elsewhere),
        }
    }

    /// Reads an answer, without the lock: types of users decode it.
    fn read<T: Data>(&self, index: u32, found: Found) -> Result<T> {
        match found {
            Found::InOutcome => decode(self.in_outcome(index).expect("it stays there")),
            Found::Elsewhere(place) => {
                let Place { outcome, position } = place?;
                decode(outcome.answer(position))
            }
        }
    }

    /// The tasks whose calls have their answers now.
    fn take_answered(&self, state: &mut State) -> Vec<Waker> {
        let mut wakers = std::mem::take(&mut state.wakers);
        let answered = wakers.extract_if(|index, _| self.find(*index, state).is_some());
        let answered = answered.map(|(_, waker)| waker).collect();
        state.wakers = wakers;
        answered
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let wakers = self.take_answered(&mut state);
        // A task may run at once on this thread, and look at its ticket.
        drop(state);
        self.answered.notify();
        body::wake(wakers);
    }

    /// Answers all calls but those that were deferred.
    pub(crate) fn answer_all(&self, first: Place) {
        assert!(first.position <= first.outcome.len(), "the group begins behind its epoch");
        self.change(|state| {
            assert!(state.others.is_empty(), "some calls were answered one by one");
            self.outcome.set(first).expect("an epoch has one outcome");
        });
    }

    /// Answers one call.
    pub(crate) fn answer_one(&self, index: u32, answer: Result<Place>) {
        assert!(self.in_outcome(index).is_none(), "call {index} is answered already");
        self.change(|state| {
            let before = state.others.insert(index, answer);
            assert!(before.is_none(), "call {index} is answered twice");
        });
    }

    /// Answers all calls that have no answer.
    pub(crate) fn end(&self, error: &Error) {
        self.change(|state| state.ended = Some(error.clone()));
    }

    /// Why an answer must not be looked for: a procedure would come to something else when it runs
    /// again, and in a child of `fork` there are no answers, and locks that are never released.
    fn check_usable(&self) -> Result<()> {
        body::check_outside()?;
        if self.process.is_here() { Ok(()) } else { Err(Error::forked()) }
    }

    /// The answer, if it is there.
    fn try_read<T: Data>(&self, index: u32) -> Option<Result<T>> {
        if let Err(error) = self.check_usable() {
            return Some(Err(error));
        }
        if let Some(answer) = self.in_outcome(index) {
            return Some(decode(answer));
        }
        let found = self.find(index, &self.state())?;
        Some(self.read(index, found))
    }

    /// Looks for an answer; if there is none yet, wakes the task when it is there.
    fn poll<T: Data>(&self, index: u32, waker: &Waker) -> Poll<Result<T>> {
        if let Some(answer) = self.try_read(index) {
            return Poll::Ready(answer);
        }
        // Cloning and dropping wakers runs code of the task's runtime: no lock is held.
        let waker = waker.clone();
        let mut state = self.state();
        match self.find(index, &state) {
            Some(found) => {
                drop(state);
                Poll::Ready(self.read(index, found))
            }
            None => {
                let before = state.wakers.insert(index, waker);
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }

    /// Waits until a call has its answer.
    pub(crate) fn wait_answered(&self, index: u32) -> Result<()> {
        self.check_usable()?;
        self.wait_until_found(index, None).map(drop)
    }

    /// Waits until the answer is there, or `until` has come.
    fn wait<T: Data>(&self, index: u32, until: Option<Instant>) -> Option<Result<T>> {
        if let Err(error) = self.check_usable() {
            return Some(Err(error));
        }
        if let Some(answer) = self.in_outcome(index) {
            return Some(decode(answer));
        }
        match self.wait_until_found(index, until) {
            Ok(found) => Some(self.read(index, found?)),
            Err(error) => Some(Err(error)),
        }
    }

    fn wait_until_found(&self, index: u32, until: Option<Instant>) -> Result<Option<Found>> {
        loop {
            let count = self.answered.count();
            let found = match self.in_outcome(index) {
                Some(_) => Some(Found::InOutcome),
                None => self.find(index, &self.state()),
            };
            if found.is_some() || until.is_some_and(|until| until <= Instant::now()) {
                return Ok(found);
            }
            body::check_may_wait()?;
            self.answered.wait(count, until);
        }
    }
}

/// A claim on the answer to one call.
///
/// The answer comes when the epoch's log is durable and the result is known; the call takes place
/// even if the ticket is dropped. Wait for it on a thread, or in a task of any runtime: a ticket is
/// a future of what [`Ticket::wait`] returns. An answered ticket keeps the answers of its whole
/// epoch in memory, so take answers rather than collect tickets.
#[must_use = "the answer says whether the call committed"]
pub struct Ticket<T> {
    group: SharedGroup,
    index: u32,
    output: PhantomData<fn() -> T>,
}

impl<T: Data> Ticket<T> {
    pub(crate) fn new(group: SharedGroup, index: u32) -> Self {
        Self { group, index, output: PhantomData }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Why the call did not commit: it gave up ([`Error::is_user_abort`]), it failed
    /// ([`Error::is_failed`]), its epoch had no space ([`Error::is_limit`]). If the database
    /// stopped ([`Error::is_stopped`]), the call may have committed or not.
    pub fn wait(self) -> Result<T> {
        self.group.wait(self.index, None).unwrap_or_else(|| Err(Error::closed()))
    }

    /// The answer, if it is there by now.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn try_get(&self) -> Option<Result<T>> {
        self.group.try_read(self.index)
    }

    /// Waits for the answer, but no longer than this.
    ///
    /// # Errors
    /// As [`Ticket::wait`].
    pub fn wait_timeout(&self, most: Duration) -> Option<Result<T>> {
        let until = Instant::now().checked_add(most);
        self.group.wait(self.index, until)
    }
}

impl<T: Data> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.group.poll(self.index, context.waker())
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a lock, which a procedure's thread or a parent may hold.
        let answered = self.group.in_outcome(self.index).is_some();
        f.debug_struct("Ticket").field("index", &self.index).field("answered", &answered).finish()
    }
}

fn decode<T: Data>(answer: Answer<'_>) -> Result<T> {
    match answer {
        Answer::Committed(bytes) => T::from_bytes(bytes).ok_or_else(|| {
            // It was read back when it was made: the ticket is for another call.
            let of = std::any::type_name::<T>();
            Error::mistake(format!("the call committed, but its answer is no {of}"))
        }),
        Answer::Aborted(abort) => Err(Error::aborted(abort)),
        Answer::Failed(what) => Err(Error::failed(what)),
        Answer::Deferred => unreachable!("no place is given to a call that runs again"),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_gave_up_waiting_waits_again_and_is_woken() {
        let group = Arc::new(Group::default());
        let ticket = Ticket::<()>::new(Arc::new(Arc::clone(&group)), 0);
        for _ in 0..5 {
            assert!(ticket.wait_timeout(Duration::from_millis(1)).is_none());
        }
        let waits = thread::spawn(move || ticket.wait());
        thread::sleep(Duration::from_millis(5));
        // An answer for another caller wakes it, and it sleeps on.
        group.answer_one(1, Err(Error::closed()));
        thread::sleep(Duration::from_millis(5));
        assert!(!waits.is_finished());
        group.end(&Error::closed());
        assert!(waits.join().unwrap().unwrap_err().is_stopped());
    }
}
