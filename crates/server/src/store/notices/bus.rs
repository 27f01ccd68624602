//! The calls that notify and are not answered yet, and the order in which what they tell goes out.

use super::super::pending::{Promise, Reader, Slot};
use super::super::pool::lock;
use super::form::Noticed;
use super::mailbox::Channels;
use nvcaracal::Ticket;
use sql::run::Notice;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::task::Poll;

/// What a call tells: who has submitted it, channels and payloads.
type Told = (i32, Vec<Notice>);

#[derive(Default)]
struct State {
    /// How many calls there were.
    calls: u64,
    /// Calls whose answers were not seen yet.
    open: BTreeMap<u64, Arc<Slot>>,
    /// What calls tell that are answered, by their places in the serial order.
    answered: BTreeMap<u64, Told>,
}

/// Passes on what calls tell listeners.
#[derive(Default)]
pub(in super::super) struct Bus {
    /// Held from before a call is submitted until it is known here.
    submitting: RwLock<()>,
    state: Mutex<State>,
    pub(super) channels: Channels,
}

impl Bus {
    /// Submits a call that notifies, in an attempt that does not wait, and makes it known.
    ///
    /// # Errors
    /// Why it was not submitted, and the promise.
    pub(in super::super) fn submit(
        self: &Arc<Bus>,
        attempt: impl FnOnce() -> nvcaracal::Result<Ticket<Vec<u8>>>,
        process: i32,
        promise: Promise,
        reader: Reader,
    ) -> Result<Arc<Slot>, (nvcaracal::Error, Promise)> {
        let _known = self.enter();
        match attempt() {
            Ok(ticket) => Ok(self.called(ticket, process, promise, reader)),
            Err(error) => Err((error, promise)),
        }
    }

    /// Submits a call that notifies, and makes it known.
    ///
    /// # Errors
    /// Why it was not submitted, and the promise.
    pub(in super::super) async fn submit_async(
        self: &Arc<Bus>,
        submitted: impl Future<Output = nvcaracal::Result<Ticket<Vec<u8>>>>,
        process: i32,
        promise: Promise,
        reader: Reader,
    ) -> Result<Arc<Slot>, (nvcaracal::Error, Promise)> {
        let mut submitted = pin!(submitted);
        let mut rest = Some((promise, reader));
        poll_fn(|context| {
            let _known = self.enter();
            let Poll::Ready(ticket) = submitted.as_mut().poll(context) else {
                return Poll::Pending;
            };
            let (promise, reader) = rest.take().expect("it is submitted once");
            Poll::Ready(match ticket {
                Ok(ticket) => Ok(self.called(ticket, process, promise, reader)),
                Err(error) => Err((error, promise)),
            })
        })
        .await
    }

    fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.submitting.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call was submitted. Its answer is read once, when it is found first.
    fn called(
        self: &Arc<Bus>,
        ticket: Ticket<Vec<u8>>,
        process: i32,
        promise: Promise,
        reader: Reader,
    ) -> Arc<Slot> {
        let bus = Arc::clone(self);
        let open = move |answer: nvcaracal::Result<Vec<u8>>| match answer.map(|bytes| {
            let Noticed { serial, notices, answer } = Noticed::decode(&bytes)?;
            if !notices.is_empty() {
                lock(&bus.state).answered.insert(serial, (process, notices));
            }
            values::Result::Ok(answer)
        }) {
            Ok(Ok(answer)) => reader(Ok(answer)),
            Ok(Err(damaged)) => Err(damaged),
            Err(error) => reader(Err(error)),
        };
        let slot = promise.call_with(ticket, Box::new(open));
        let mut state = lock(&self.state);
        state.calls += 1;
        let number = state.calls;
        state.open.insert(number, Arc::clone(&slot));
        slot
    }

    /// Passes on what answered calls tell.
    pub(in super::super) fn pass_on(&self) {
        if lock(&self.state).open.is_empty() && lock(&self.state).answered.is_empty() {
            return;
        }
        self.look();
        let Some(last) = lock(&self.state).answered.last_key_value().map(|(serial, _)| *serial)
        else {
            return;
        };
        // Calls before that one were submitted before its epoch began. When none is between its
        // submission and here any more, all of them are known, and they are answered.
        drop(self.submitting.write().unwrap_or_else(PoisonError::into_inner));
        self.look();
        let mut state = lock(&self.state);
        let later = state.answered.split_off(&(last + 1));
        // Within the lock, so that all listeners see one order.
        for (process, notices) in std::mem::replace(&mut state.answered, later).into_values() {
            self.channels.tell(process, notices);
        }
    }

    /// Looks at the answers of all calls that are known.
    fn look(&self) {
        let state = lock(&self.state);
        let open: Vec<_> = state.open.iter().map(|(at, slot)| (*at, Arc::clone(slot))).collect();
        drop(state);
        let answered = open.iter().filter(|(_, slot)| slot.is_answered());
        let answered: Vec<u64> = answered.map(|(at, _)| *at).collect();
        let mut state = lock(&self.state);
        for at in answered {
            state.open.remove(&at);
        }
    }

    /// Passes on what a transaction tells that is no call, while no call is under way.
    pub(in super::super) fn tell_now(&self, process: i32, notices: Vec<Notice>) {
        self.pass_on();
        let _order = lock(&self.state);
        self.channels.tell(process, notices);
    }
}
