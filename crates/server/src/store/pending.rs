//! Answers that are waited for.

use super::call::decode_answer;
use super::interrupt::{Cause, Interrupt};
use super::pool::lock;
use super::{failure, panics};
use nvcaracal::Ticket;
use sql::Grant;
use sql::run::bytes_of;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use values::{Datum, Error, Result};

/// The answer to a statement.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The command tag.
    pub tag: String,
    /// The rows of a query or of RETURNING.
    pub rows: Vec<Vec<Datum>>,
    /// What the client is told although it is no error.
    pub notice: Option<String>,
    /// What may be a mistake of the client.
    pub warnings: Vec<Error>,
    /// The memory of the rows, which is given back when no part of them is left.
    pub memory: Option<Arc<Grant>>,
    /// The steps that its query did, if they are known.
    pub steps: Option<u64>,
}

impl Answer {
    /// An answer whose rows have `memory`.
    pub(super) fn of(answer: sql::run::Answer, memory: Option<Arc<Grant>>) -> Answer {
        let memory = memory.filter(|grant| grant.bytes() > 0);
        let tag = answer.tag.to_string();
        Answer { tag, rows: answer.rows, memory, ..Answer::default() }
    }
}

/// Gives back what a statement has had beside the rows that it is answered with.
pub(super) fn keep_rows(memory: &Grant, result: &Result<sql::run::Answer>) {
    if memory.bytes() > 0 {
        let rows = result.iter().flat_map(|answer| &answer.rows);
        memory.shrink_to(rows.map(|row| bytes_of(row)).sum());
    }
}

/// The same to a client, whatever memory it has.
impl PartialEq for Answer {
    fn eq(&self, other: &Answer) -> bool {
        (&self.tag, &self.rows, &self.notice) == (&other.tag, &other.rows, &other.notice)
    }
}

impl From<sql::run::Answer> for Answer {
    fn from(answer: sql::run::Answer) -> Answer {
        Answer::of(answer, None)
    }
}

/// Makes the answer to a statement of that to a call.
pub(super) type Reader = Box<dyn FnOnce(nvcaracal::Result<Vec<u8>>) -> Result<Answer> + Send>;

/// How far a statement is.
#[derive(Default)]
enum State {
    /// Not a call yet.
    #[default]
    Waiting,
    /// A call, which will be answered, and what reads its answer if it is not [`read_as`].
    Called(Ticket<Vec<u8>>, Option<Reader>),
    Answered(Result<Answer>),
    /// Its answer was read.
    Taken,
}

/// Where an answer comes. The client waits for it, and so may later statements.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    interrupt: Arc<Interrupt>,
    /// Never locked while the library is called: it wakes while it holds locks of its own.
    wakers: Mutex<Vec<Waker>>,
    /// What ends when the answer is there, whether or not that is read.
    kept: Mutex<Option<Box<dyn Send>>>,
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.release();
        self.wake_all();
    }
}

impl Slot {
    /// Keeps something until the call is answered, and drops it then.
    pub(super) fn keep_until_answered(self: &Arc<Slot>, kept: impl Send + 'static) {
        *lock(&self.kept) = Some(Box::new(kept));
        // From here on the call wakes this when its answer is there.
        if self.is_answered() {
            self.release();
        }
    }

    fn release(&self) {
        let kept = lock(&self.kept).take();
        drop(kept);
    }

    fn wake_all(&self) {
        let wakers = std::mem::take(&mut *lock(&self.wakers));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the answer is there; if not, wakes the task when it may be.
    fn poll_answered(self: &Arc<Slot>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut wakers = lock(&self.wakers);
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
        }
        let mut state = lock(&self.state);
        if let State::Called(ticket, reader) = &mut *state {
            let waker = Arc::clone(self).into();
            match Pin::new(ticket).poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => {
                    let answer = match reader.take() {
                        None => read_as(answer),
                        Some(reader) => reader(answer),
                    };
                    *state = State::Answered(answer);
                }
            }
            drop(state);
            self.release();
            self.wake_all();
            return Poll::Ready(());
        }
        match *state {
            State::Waiting => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Waits until the answer is there.
    pub(super) async fn answered(self: &Arc<Slot>) {
        poll_fn(|context| self.poll_answered(context)).await;
    }

    fn set(&self, next: State) {
        {
            let mut state = lock(&self.state);
            assert!(matches!(*state, State::Waiting), "a statement has one answer");
            *state = next;
        }
        self.wake_all();
    }

    pub(super) fn is_answered(self: &Arc<Slot>) -> bool {
        self.poll_answered(&mut Context::from_waker(Waker::noop())).is_ready()
    }
}

/// Reads the answer to a call of one statement.
pub(super) fn read_as(answer: nvcaracal::Result<Vec<u8>>) -> Result<Answer> {
    let bytes = answer.map_err(|error| failure::of_call(&error))?;
    decode_answer(&bytes).map(Answer::from)
}

/// The last call of a connection: those before it are answered before it.
#[derive(Default)]
pub(super) struct Last(Mutex<Option<Arc<Slot>>>);

impl Last {
    pub(super) fn set(&self, slot: Arc<Slot>) {
        *lock(&self.0) = Some(slot);
    }

    /// The call, if it is not answered.
    pub(super) fn outstanding(&self) -> Option<Arc<Slot>> {
        // Looked at without the lock: wakers of clients are called.
        let last = lock(&self.0).clone();
        last.filter(|slot| !slot.is_answered())
    }
}

/// The duty to answer: a statement whose run is cut off is answered with an error.
pub(super) struct Promise {
    slot: Option<Arc<Slot>>,
}

impl Promise {
    /// Of a statement that hears `interrupt`.
    pub(super) fn new(interrupt: Arc<Interrupt>) -> (Promise, Pending) {
        let slot = Arc::new(Slot { interrupt, ..Slot::default() });
        (Promise { slot: Some(Arc::clone(&slot)) }, Pending { slot })
    }

    /// What ends the statement before its time.
    pub(super) fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.slot.as_ref().expect("it is there until the answer").interrupt)
    }

    /// What a run of the statement looks at. That of a query ends, too, when its answer is dropped.
    pub(super) fn watch(&self, is_query: bool) -> Watch {
        let slot = self.slot.as_ref().filter(|_| is_query);
        Watch { interrupt: self.interrupt(), awaited: slot.map(Arc::downgrade) }
    }

    /// The call will be answered.
    pub(super) fn call(self, ticket: Ticket<Vec<u8>>) -> Arc<Slot> {
        self.called(ticket, None)
    }

    /// The call will be answered, and that is read in a way of its own.
    pub(super) fn call_with(self, ticket: Ticket<Vec<u8>>, reader: Reader) -> Arc<Slot> {
        self.called(ticket, Some(reader))
    }

    fn called(mut self, ticket: Ticket<Vec<u8>>, reader: Option<Reader>) -> Arc<Slot> {
        let slot = self.slot.take().expect("it is there until the answer");
        slot.set(State::Called(ticket, reader));
        slot
    }

    pub(super) fn answer(mut self, answer: Result<Answer>) {
        let slot = self.slot.take().expect("it is there until the answer");
        slot.set(State::Answered(answer));
    }
}

/// What a run looks at to learn whether it shall end.
#[derive(Clone)]
pub(super) struct Watch {
    interrupt: Arc<Interrupt>,
    /// The answer of a query, which ends when that is dropped.
    awaited: Option<Weak<Slot>>,
}

impl Watch {
    /// What hears an interrupt, and is no query.
    pub(super) fn of(interrupt: Arc<Interrupt>) -> Watch {
        Watch { interrupt, awaited: None }
    }

    /// What waits beside the run hears the same.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// The error of a run that shall end.
    pub(super) fn check(&self) -> Result<()> {
        // The promise has one of them.
        if self.awaited.as_ref().is_some_and(|slot| slot.strong_count() <= 1) {
            self.interrupt.tell(Cause::Request);
        }
        self.interrupt.check()
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let error = match std::thread::panicking() {
                true => panics::unknown(),
                false => failure::cut_off(),
            };
            slot.set(State::Answered(Err(error)));
        }
    }
}

/// An answer that is to come: a future for tasks of any runtime, and for threads, which wait.
/// Whether it is waited for or dropped, the statement takes place.
#[must_use = "the answer says whether the statement took place"]
pub struct Pending {
    slot: Arc<Slot>,
}

impl Future for Pending {
    type Output = Result<Answer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Answer>> {
        if self.slot.poll_answered(context).is_pending() {
            return Poll::Pending;
        }
        match std::mem::replace(&mut *lock(&self.slot.state), State::Taken) {
            State::Answered(answer) => Poll::Ready(answer),
            _ => panic!("an answer is read once"),
        }
    }
}

impl Pending {
    /// Lets the statement end before its time, if it is no call yet.
    pub(crate) fn interrupt(&self, cause: Cause) -> Interrupted {
        self.slot.interrupt.tell(cause);
        let is_call = matches!(*lock(&self.slot.state), State::Called(..));
        Interrupted { interrupt: Arc::clone(&self.slot.interrupt), is_call }
    }

    /// Waits on this thread.
    ///
    /// # Errors
    /// The statement's.
    pub fn wait(self) -> Result<Answer> {
        block_on(self)
    }
}

/// What was told a statement that is waited for.
pub(crate) struct Interrupted {
    interrupt: Arc<Interrupt>,
    /// Whether it was a call, which takes place.
    is_call: bool,
}

impl Interrupted {
    /// Takes it back when the statement is answered, if that had been done already. Returns whether
    /// it did.
    pub(crate) fn take_back(self) -> bool {
        !self.is_call && self.interrupt.take_back()
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
