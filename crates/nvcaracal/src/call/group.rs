//! The answers to the calls of one epoch.
//!
//! The calls of one epoch share a [`Group`], which gets the whole outcome of the epoch in one step.
//! So handing out answers costs the sequencer one lock for an epoch, however many callers there
//! are, and it never waits for one of them. An answer that is there is read without the group's
//! lock.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use engine::{Answer, EpochOutcome};

use crate::body;
use crate::data::value::Data;
use crate::error::{Error, Result};
use crate::sync::event_count::EventCount;
use crate::sync::{Mutex, MutexGuard};

/// Where the answers of a group are.
#[derive(Debug, Clone)]
pub(crate) struct OutcomePlace {
    pub(crate) outcome: Arc<EpochOutcome>,
    pub(crate) position: usize,
}

/// An answer by itself.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The bytes of the output.
    pub(crate) output: Result<Box<[u8]>>,
    /// Whether the call was deferred.
    pub(crate) was_deferred: bool,
}

impl Told {
    /// A copy of an answer.
    pub(crate) fn copy_of(answer: Answer<'_>, was_deferred: bool) -> Self {
        Self { output: bytes(answer).map(Box::from), was_deferred }
    }

    pub(crate) fn read<T: Data>(&self) -> Result<T> {
        decode(self.output.as_ref().map_err(Error::clone)?)
    }
}

/// Where an answer is.
pub(crate) enum AnswerSource {
    /// In the outcome of the group's epoch.
    InOutcome,
    /// It came from elsewhere.
    Elsewhere(Told),
}

/// Calls that were submitted for the same epoch, by their index in it.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Outcome of the epoch, and the position of the group's first call. Set with the state locked.
    outcome: OnceLock<OutcomePlace>,
    state: Mutex<State>,
    /// Advances when answers have come.
    answered: EventCount,
}

#[derive(Debug, Default)]
struct State {
    /// Calls whose answers came from elsewhere: they were deferred, or their epoch was refused.
    others: HashMap<u32, Told>,
    /// What all calls get that have no answer yet.
    ended: Option<Error>,
    /// Tasks that wait for one call each.
    wakers: HashMap<u32, Waker>,
}

impl State {
    /// The answer of a call that did not come with the outcome of the group's epoch.
    fn find(&self, index: u32) -> Option<Told> {
        let ended =
            || self.ended.clone().map(|ended| Told { output: Err(ended), was_deferred: false });
        self.others.get(&index).cloned().or_else(ended)
    }
}

impl Group {
    /// The answer of a call that came with the outcome of the group's epoch.
    #[inline]
    fn in_outcome(&self, index: u32) -> Option<Answer<'_>> {
        let OutcomePlace { outcome, position: first } = self.outcome.get()?;
        let position = first + index as usize;
        assert!(position < outcome.len(), "call {index} of another group");
        let answer = outcome.answer(position);
        (answer != Answer::Deferred).then_some(answer)
    }

    /// Where the answer of a call is, if it is there.
    fn find(&self, index: u32, state: &State) -> Option<AnswerSource> {
        match self.in_outcome(index) {
            Some(_) => Some(AnswerSource::InOutcome),
            None => state.find(index).map(AnswerSource::Elsewhere),
        }
    }

    /// Reads an answer, without the lock: types of users decode it.
    fn read<T: Data>(&self, index: u32, found: AnswerSource) -> Result<T> {
        match found {
            AnswerSource::InOutcome => {
                decode(bytes(self.in_outcome(index).expect("it stays there"))?)
            }
            AnswerSource::Elsewhere(told) => told.read(),
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
    pub(crate) fn answer_all(&self, first: OutcomePlace) {
        assert!(first.position <= first.outcome.len(), "the group begins behind its epoch");
        self.change(|state| {
            assert!(state.others.is_empty(), "some calls were answered one by one");
            self.outcome.set(first).expect("an epoch has one outcome");
        });
    }

    /// Answers one call.
    pub(crate) fn answer_one(&self, index: u32, answer: Told) {
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

    /// The answer, if it is there.
    pub(crate) fn try_read<T: Data>(&self, index: u32) -> Option<Result<T>> {
        if let Some(answer) = self.in_outcome(index) {
            return Some(bytes(answer).and_then(decode));
        }
        let found = self.find(index, &self.state())?;
        Some(self.read(index, found))
    }

    /// Whether a call was deferred, once it has its answer.
    pub(crate) fn was_deferred(&self, index: u32) -> Option<bool> {
        if self.in_outcome(index).is_some() {
            return Some(false);
        }
        self.state().find(index).map(|told| told.was_deferred)
    }

    /// Whether a call has come to its end with the epoch of its group. Without a lock.
    pub(crate) fn is_in_outcome(&self, index: u32) -> bool {
        self.in_outcome(index).is_some()
    }

    /// Copies of the answers to some calls, if all of them are there.
    pub(crate) fn copies(&self, calls: &[u32]) -> Option<Vec<(u32, Told)>> {
        let state = self.state();
        let copy = |&index: &u32| match self.in_outcome(index) {
            Some(answer) => Some((index, Told::copy_of(answer, false))),
            None => Some((index, state.find(index)?)),
        };
        calls.iter().map(copy).collect()
    }

    /// Looks for an answer; if there is none yet, wakes the task when it is there.
    pub(crate) fn poll<T: Data>(&self, index: u32, waker: &Waker) -> Poll<Result<T>> {
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
        self.wait_until_found(index, None).map(drop)
    }

    /// Waits until the answer is there, or `until` has come.
    pub(crate) fn wait<T: Data>(&self, index: u32, until: Option<Instant>) -> Option<Result<T>> {
        if let Some(answer) = self.in_outcome(index) {
            return Some(bytes(answer).and_then(decode));
        }
        match self.wait_until_found(index, until) {
            Ok(found) => Some(self.read(index, found?)),
            Err(error) => Some(Err(error)),
        }
    }

    fn wait_until_found(&self, index: u32, until: Option<Instant>) -> Result<Option<AnswerSource>> {
        loop {
            let count = self.answered.count();
            let found = match self.in_outcome(index) {
                Some(_) => Some(AnswerSource::InOutcome),
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

/// The output of an answer.
#[inline]
fn bytes(answer: Answer<'_>) -> Result<&[u8]> {
    match answer {
        Answer::Committed(bytes) => Ok(bytes),
        Answer::Aborted(abort) => Err(Error::aborted(abort)),
        Answer::Failed(what) => Err(Error::failed(what)),
        Answer::Deferred => unreachable!("no answer is given to a call that runs again"),
    }
}

#[inline]
fn decode<T: Data>(bytes: &[u8]) -> Result<T> {
    T::from_bytes(bytes).ok_or_else(|| {
        // It was read back when it was made: the ticket is for another call.
        let of = std::any::type_name::<T>();
        Error::mistake(format!("the call committed, but its answer is no {of}"))
    })
}
