//! Which sessions there are, and how one connection ends the statement of another.
//!
//! A request is for what runs when it arrives, or for the message that has arrived before it. It
//! stays until that hears it, so that none is lost between two steps of a message; it is dropped
//! as soon as nothing is left that it can be for, before the client sees the last answer. So it
//! never ends what a client sends later, not even the rest of a message.

use crate::store::Activity;
use crate::store::Backends;
use sql::system::SessionActivity;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The sessions by the number that clients know them by.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    last: i32,
    all: HashMap<i32, (i32, Arc<Requests>)>,
}

/// A session that is in the list until this is dropped.
pub(crate) struct Registered {
    sessions: Arc<Sessions>,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    /// The requests to cancel its statements.
    pub(crate) requests: Arc<Requests>,
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session. `secret` is random.
    pub(crate) fn register(
        self: &Arc<Sessions>,
        secret: i32,
        requests: Arc<Requests>,
    ) -> Registered {
        let mut known = self.known();
        while known.last == 0 || known.all.contains_key(&known.last) {
            known.last = known.last.checked_add(1).unwrap_or(1);
        }
        let process = known.last;
        known.last = process.checked_add(1).unwrap_or(1);
        known.all.insert(process, (secret, Arc::clone(&requests)));
        Registered { sessions: self.clone(), process, secret, requests }
    }

    /// Ends what all sessions wait for, which may never come: the store cannot be read any more.
    pub(crate) fn lose(&self) {
        for (_, requests) in self.known().all.values() {
            requests.state().is_lost = true;
            requests.changed.notify_waiters();
        }
    }

    fn requests_of(&self, process: i32) -> Option<Arc<Requests>> {
        self.known().all.get(&process).map(|(_, requests)| Arc::clone(requests))
    }

    /// Ends what the session does, if it does anything and the secret is right. A call that was
    /// submitted takes place and is answered.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        let known = self.known().all.get(&process).cloned();
        if let Some((own, requests)) = known
            && own == secret
        {
            requests.make();
        }
    }
}

impl Backends for Sessions {
    fn cancel(&self, process: i32) -> bool {
        let requests = self.requests_of(process);
        requests.inspect(|requests| requests.make()).is_some()
    }

    fn terminate(&self, process: i32) -> bool {
        let requests = self.requests_of(process);
        let end = |requests: &Arc<Requests>| {
            requests.state().is_terminated = true;
            requests.changed.notify_waiters();
        };
        requests.inspect(end).is_some()
    }

    fn activity(&self) -> Vec<SessionActivity> {
        let all: Vec<_> = self.known().all.values().map(|(_, own)| Arc::clone(own)).collect();
        let mut all: Vec<_> = all.iter().filter_map(|requests| requests.activity.now()).collect();
        all.sort_unstable_by_key(|shown| shown.process);
        all
    }

    fn databases(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.sessions.known().all.remove(&self.process);
    }
}

/// The cancel requests of a session, and whether there is anything that they can be for.
pub(crate) struct Requests {
    state: Mutex<State>,
    changed: Notify,
    /// What others see of the session.
    pub(crate) activity: Activity,
    /// Whether the system has bytes of the client that were not read.
    has_unread: Box<dyn Fn() -> bool + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// Whether there is a request that nothing has heard.
    is_made: bool,
    /// Whether a message was read and is not done, or bytes that may be one were just received.
    has_message: bool,
    /// Whether statements of messages that are done are still held.
    holds: bool,
    /// The number of executions in the queue without an answer.
    unanswered: usize,
    /// Whether what is under way may never end.
    is_lost: bool,
    /// Whether another session has ended this one.
    is_terminated: bool,
}

impl State {
    /// Whether there is anything that the session has read, and not done.
    fn is_busy(&self) -> bool {
        self.has_message || self.holds || self.unanswered > 0
    }
}

impl Requests {
    pub(crate) fn new(has_unread: impl Fn() -> bool + Send + Sync + 'static) -> Requests {
        let (state, changed, activity) = Default::default();
        Requests { state, changed, activity, has_unread: Box::new(has_unread) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request. It is ignored if the session is idle.
    fn make(&self) {
        self.change(|state| state.is_made = true);
    }

    /// Changes the state. Drops a request that nothing is left for; tells those that wait for one
    /// that stays.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        if !state.is_made {
            return;
        }
        state.is_made = state.is_busy() || (self.has_unread)();
        self.changed.notify_waiters();
    }

    /// Reads from the client's socket; `read` returns whether any bytes have come. A request sees
    /// them either unread or as a message.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> (T, bool)) -> T {
        let mut state = self.state();
        let (done, has_come) = read();
        state.has_message |= has_come;
        done
    }

    /// A message is done; `has_next` says whether all of the next one was received, and `holds`
    /// whether its statements are held.
    pub(crate) fn message_done(&self, has_next: bool, holds: bool) {
        self.change(|state| (state.has_message, state.holds) = (has_next, holds));
    }

    /// Waits for a message that `next` reads. While a part of it is missing no request is for it.
    pub(crate) async fn waiting<T>(&self, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        poll_fn(|context| {
            let polled = next.as_mut().poll(context);
            if polled.is_pending() {
                self.change(|state| state.has_message = false);
            }
            polled
        })
        .await
    }

    /// Notes whether statements of messages that are done are still held.
    pub(crate) fn hold(&self, holds: bool) {
        self.change(|state| state.holds = holds);
    }

    /// Counts an execution in the queue until its answer is there.
    pub(crate) fn queued(self: &Arc<Requests>) -> Unanswered {
        self.state().unanswered += 1;
        Unanswered(Arc::clone(self))
    }

    /// Takes a request for the execution whose answer is the next one to be sent, once one is made.
    pub(crate) async fn of_sent(&self) {
        self.requested(|_| true).await;
    }

    /// Takes a request for the message that is handled, once one is made. Requests are for
    /// executions in the queue first: they are older.
    pub(crate) async fn of_message(&self) {
        self.requested(|state| state.unanswered == 0).await;
    }

    /// Gives a request back that has ended nothing. It stays only while there is anything else that
    /// it can be for.
    pub(crate) fn give_back(&self) {
        self.make();
    }

    /// Takes the request for the message that is handled, if one is made.
    pub(crate) fn take_of_message(&self) -> bool {
        let mut state = self.state();
        state.unanswered == 0 && std::mem::take(&mut state.is_made)
    }

    async fn requested(&self, is_for: impl Fn(&State) -> bool) {
        self.until(|state| is_for(state) && std::mem::take(&mut state.is_made)).await;
    }

    /// Waits until what is under way may never end.
    pub(crate) async fn lost(&self) {
        self.until(|state| state.is_lost).await;
    }

    /// Waits until another session ends this one.
    pub(crate) async fn terminated(&self) {
        self.until(|state| state.is_terminated).await;
    }

    async fn until(&self, has_come: impl Fn(&mut State) -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // A change from here on is not missed.
            changed.as_mut().enable();
            if has_come(&mut self.state()) {
                return;
            }
            changed.await;
        }
    }
}

/// An execution in the queue without an answer.
pub(crate) struct Unanswered(Arc<Requests>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.change(|state| state.unanswered -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether there is a request that a message hears.
    fn is_heard(requests: &Requests) -> bool {
        requests.take_of_message()
    }

    fn idle() -> Arc<Requests> {
        Arc::new(Requests::new(|| false))
    }

    fn received(requests: &Requests) {
        requests.reading(|| ((), true));
    }

    #[test]
    fn only_the_right_secret_cancels() {
        let sessions = Arc::new(Sessions::default());
        let first = sessions.register(7, idle());
        let second = sessions.register(7, idle());
        assert_ne!(first.process, second.process);
        received(&first.requests);
        sessions.cancel(first.process, 8);
        sessions.cancel(second.process, 7);
        assert!(!is_heard(&first.requests));
        sessions.cancel(first.process, 7);
        assert!(is_heard(&first.requests));
        let process = first.process;
        drop(first);
        sessions.cancel(process, 7);
    }

    #[test]
    fn a_request_is_for_what_has_arrived_before_it() {
        let unread = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&unread);
        let requests = Arc::new(Requests::new(move || seen.load(Ordering::Relaxed)));
        // An idle session ignores it.
        requests.make();
        received(&requests);
        assert!(!is_heard(&requests));
        requests.message_done(false, false);
        // What the system has counts.
        unread.store(true, Ordering::Relaxed);
        requests.make();
        unread.store(false, Ordering::Relaxed);
        received(&requests);
        assert!(is_heard(&requests));
        requests.make();
        requests.message_done(true, false);
        assert!(is_heard(&requests));
        // One that a message did not hear is not for a later one.
        requests.make();
        requests.message_done(false, false);
        received(&requests);
        assert!(!is_heard(&requests));
        requests.message_done(false, false);
        // What is unread then hears it.
        received(&requests);
        requests.make();
        unread.store(true, Ordering::Relaxed);
        requests.message_done(false, false);
        unread.store(false, Ordering::Relaxed);
        received(&requests);
        assert!(is_heard(&requests));
        // And a statement that is held.
        requests.make();
        requests.message_done(false, true);
        assert!(is_heard(&requests));
        requests.make();
        requests.hold(false);
        received(&requests);
        assert!(!is_heard(&requests));
    }

    #[tokio::test]
    async fn a_request_is_for_no_message_of_which_a_part_is_missing() {
        let requests = idle();
        let (first, second) = (Notify::new(), Notify::new());
        let mut next = pin!(requests.waiting(async {
            for part in [&first, &second] {
                part.notified().await;
                received(&requests);
            }
        }));
        let is_waiting =
            async |next| tokio::time::timeout(std::time::Duration::ZERO, next).await.is_err();
        first.notify_one();
        assert!(is_waiting(next.as_mut()).await);
        requests.make();
        second.notify_one();
        next.await;
        assert!(!is_heard(&requests));
        requests.make();
        assert!(is_heard(&requests));
    }

    #[tokio::test]
    async fn the_oldest_statement_hears_a_request() {
        let requests = idle();
        received(&requests);
        let first = requests.queued();
        let second = requests.queued();
        requests.make();
        assert!(!is_heard(&requests));
        drop(first);
        assert!(!is_heard(&requests));
        requests.of_sent().await;
        requests.make();
        let mut message = pin!(requests.of_message());
        let waiting = tokio::time::timeout(std::time::Duration::ZERO, message.as_mut()).await;
        assert!(waiting.is_err(), "an older one has no answer");
        drop(second);
        message.await;
        // What was asked while the last one ran is not for what comes later.
        requests.message_done(false, false);
        let last = requests.queued();
        requests.make();
        drop(last);
        received(&requests);
        assert!(!is_heard(&requests));
    }
}
