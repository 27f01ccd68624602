//! Delivers the notifications of calls in serial order, once their epoch is durable.

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

/// The notifications of a call: process number of the sender, channels and payloads.
type Told = (i32, Vec<Notice>);

#[derive(Default)]
struct State {
    /// Number of calls so far.
    calls: u64,
    /// Calls whose answers were not read yet.
    open: BTreeMap<u64, Arc<Slot>>,
    /// Notifications of answered calls, by serial number.
    answered: BTreeMap<u64, Told>,
}

/// Delivers notifications to the mailboxes of listeners.
#[derive(Default)]
pub(in super::super) struct Bus {
    /// Shared from before a call is submitted until `State::open` has it.
    submitting: RwLock<()>,
    state: Mutex<State>,
    pub(super) channels: Channels,
}

impl Bus {
    /// Submits a call that notifies, without waiting for room, and adds it to the open calls.
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

    /// Submits a call that notifies, and adds it to the open calls.
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

    /// Adds a submitted call to the open ones. Its answer is decoded once, by the first reader.
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

    /// Delivers the notifications of all answered calls.
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

    /// Decodes the answers of open calls, and removes answered ones.
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

    /// Delivers the notifications of a definition. No call is under way meanwhile.
    pub(in super::super) fn tell_now(&self, process: i32, notices: Vec<Notice>) {
        self.pass_on();
        let _order = lock(&self.state);
        self.channels.tell(process, notices);
    }
}
