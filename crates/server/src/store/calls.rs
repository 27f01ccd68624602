//! Calls from their submission to their answers, and to what they tell listeners.

use super::call::MORE_NUMBERS;
use super::failure;
use super::pending::{Answer, Promise, Reader, Slot, read_as};
use super::pipeline::{Pipeline, Work};
use super::pool::lock;
use super::statement::Statement;
use nvcaracal::Ticket;
use sql::ir::ObjectId;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use values::{Error, Result, SqlState};

/// How often a statement is submitted for more numbers of sequences.
pub(super) const TRIES_MAX: u32 = 16;

/// How many numbers of each sequence a call takes.
pub(super) type Numbers = BTreeMap<ObjectId, u32>;

/// Reads the answer to a statement.
pub(super) fn reader_of(statement: &Arc<Statement>) -> Reader {
    let statement = Arc::clone(statement);
    Box::new(move |answer| Ok(statement.said(read_as(answer)?)))
}

impl Pipeline {
    fn process(&self) -> i32 {
        self.locks.process.load(Ordering::Relaxed)
    }

    /// Submits a statement that notifies; returns it if that would have to wait.
    pub(super) fn notify_now(&self, work: Work, is_predicted: bool, bytes: &[u8]) -> Option<Work> {
        let Work { statement, parameters, now, zone, session, promise } = work;
        let (submitter, procedure) = (self.submitter(is_predicted), self.shared.procedure);
        let attempt = || submitter.try_submit_raw(procedure, bytes);
        let reader = reader_of(&statement);
        match self.shared.bus.submit(attempt, self.process(), promise, reader) {
            Ok(slot) => self.notifies(slot),
            Err((error, promise)) if error.is_queue_full() => {
                return Some(Work { statement, parameters, now, zone, session, promise });
            }
            Err((error, promise)) => promise.answer(Err(failure::of_call(&error))),
        }
        None
    }

    /// Submits a call, which may notify. Returns where its answer comes, if it was submitted.
    pub(super) async fn called(
        &self,
        submitted: impl Future<Output = nvcaracal::Result<Ticket<Vec<u8>>>>,
        notifies: bool,
        promise: Promise,
        read: Reader,
    ) -> Option<Arc<Slot>> {
        if notifies {
            return self.notify(submitted, promise, read).await;
        }
        match submitted.await {
            Ok(ticket) => {
                let slot = promise.call_with(ticket, read);
                self.last.set(Arc::clone(&slot));
                Some(slot)
            }
            Err(error) => {
                promise.answer(Err(failure::of_call(&error)));
                None
            }
        }
    }

    /// Submits a call until it has as many numbers of sequences as it takes; `bytes` encodes it
    /// with numbers.
    pub(super) async fn counted_call(
        &self,
        bytes: impl Fn(Numbers) -> Result<Vec<u8>>,
        mut numbers: Numbers,
        notifies: bool,
        tries_max: u32,
    ) -> Result<nvcaracal::Result<Vec<u8>>> {
        let submitter = self.submitter(false);
        for tried in 0..tries_max {
            let bytes = bytes(numbers)?;
            let submitted = submitter.submit_raw_async(self.shared.procedure, &bytes);
            let answer = match notifies {
                true => self.notified(submitted).await?,
                false => submitted.await.map_err(|error| failure::of_call(&error))?.await,
            };
            match more_numbers(&answer, tried)? {
                Some(more) => numbers = more,
                None => return Ok(answer),
            }
        }
        let message = "could not count the numbers that the statement takes, as its rows change";
        Err(Error::new(SqlState::SERIALIZATION_FAILURE, message))
    }

    /// Submits a call that notifies.
    async fn notify(
        &self,
        submitted: impl Future<Output = nvcaracal::Result<Ticket<Vec<u8>>>>,
        promise: Promise,
        read: Reader,
    ) -> Option<Arc<Slot>> {
        match self.shared.bus.submit_async(submitted, self.process(), promise, read).await {
            Ok(slot) => {
                self.notifies(Arc::clone(&slot));
                Some(slot)
            }
            Err((error, promise)) => {
                promise.answer(Err(failure::of_call(&error)));
                None
            }
        }
    }

    /// A call was submitted: what it tells goes out when it is answered, also if its client has
    /// gone.
    fn notifies(&self, slot: Arc<Slot>) {
        self.last.set(Arc::clone(&slot));
        let bus = Arc::clone(&self.shared.bus);
        self.shared.pool.spawn(async move {
            slot.answered().await;
            bus.pass_on();
        });
    }

    /// Submits a call that notifies, and waits for its answer.
    pub(super) async fn notified(
        &self,
        submitted: impl Future<Output = nvcaracal::Result<Ticket<Vec<u8>>>>,
    ) -> Result<nvcaracal::Result<Vec<u8>>> {
        let found = Arc::<Mutex<Option<nvcaracal::Result<Vec<u8>>>>>::default();
        let own = Arc::clone(&found);
        let read = Box::new(move |answer| {
            *lock(&own) = Some(answer);
            Ok(Answer::default())
        });
        let (promise, pending) = Promise::new(Arc::default());
        self.notify(submitted, promise, read).await;
        pending.await?;
        let answer = lock(&found).take();
        answer.ok_or_else(|| Error::corrupted("answer of a call is damaged"))
    }

    /// Passes on what a transaction tells that was no call. No call is under way.
    pub(super) fn tell_now(&self, notices: Vec<sql::run::Notice>) {
        if !notices.is_empty() {
            self.shared.bus.tell_now(self.process(), notices);
        }
    }
}

/// The numbers for the next try of a call that got too few.
fn more_numbers(answer: &nvcaracal::Result<Vec<u8>>, tried: u32) -> Result<Option<Numbers>> {
    let Err(error) = answer else { return Ok(None) };
    let abort = error.abort().filter(|abort| abort.code == MORE_NUMBERS);
    let Some(abort) = abort else { return Ok(None) };
    let wanted = postcard::from_bytes::<Numbers>(&abort.payload)
        .map_err(|_| Error::corrupted("answer of a call is damaged"))?;
    // Rows that come meanwhile want more: later tries have some to spare.
    let with_more = |(id, count): (ObjectId, u32)| (id, count + (count >> 3) * tried.min(8));
    Ok(Some(wanted.into_iter().map(with_more).collect()))
}
