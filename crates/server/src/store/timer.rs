//! Wakes what waits for a time on threads that have no clock of their own.

use super::pool::lock;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest that anything waits: points in time that are further off have no place on the clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

type Place = (Instant, u64);

#[derive(Default)]
struct State {
    waiting: BTreeMap<Place, Waker>,
    last: u64,
    thread: Option<JoinHandle<()>>,
    has_ended: bool,
}

/// A clock with a thread, which begins when something waits.
#[derive(Default)]
pub(super) struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

impl Timer {
    /// Waits for this long. After the end of the timer it does not wait.
    pub(super) fn sleep(self: &Arc<Timer>, time: Duration) -> Sleep {
        let until = Instant::now() + time.min(LONGEST);
        let mut state = lock(&self.state);
        state.last += 1;
        let place = (until, state.last);
        drop(state);
        Sleep { timer: Arc::clone(self), place }
    }

    /// Wakes all that waits, for good.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        let all = std::mem::take(&mut state.waiting);
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        all.into_values().for_each(Waker::wake);
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.has_ended {
            let now = Instant::now();
            let next = state.waiting.first_key_value().map(|((at, _), _)| *at);
            let left = next.map(|at| at.saturating_duration_since(now));
            if left == Some(Duration::ZERO) {
                let waker = state.waiting.pop_first();
                drop(state);
                waker.into_iter().for_each(|(_, waker)| waker.wake());
                state = lock(&self.state);
                continue;
            }
            let left = left.unwrap_or(LONGEST);
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Waits until a time.
pub(super) struct Sleep {
    timer: Arc<Timer>,
    place: Place,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let timer = &self.timer;
        let mut state = lock(&timer.state);
        if state.has_ended || Instant::now() >= self.place.0 {
            return Poll::Ready(());
        }
        if state.thread.is_none() {
            let own = Arc::downgrade(timer);
            let run = move || {
                if let Some(timer) = own.upgrade() {
                    timer.run();
                }
            };
            let thread = std::thread::Builder::new().name("nvcaracal-timer".to_owned());
            match thread.spawn(run) {
                Ok(thread) => state.thread = Some(thread),
                // Without a thread it cannot be waited for.
                Err(_) => return Poll::Ready(()),
            }
        }
        state.waiting.insert(self.place, context.waker().clone());
        timer.changed.notify_one();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let waker = lock(&self.timer.state).waiting.remove(&self.place);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::block_on;
    use super::*;

    #[test]
    fn what_waits_is_woken_in_time_and_at_the_end() {
        let timer = Arc::<Timer>::default();
        let began = Instant::now();
        let short = timer.sleep(Duration::from_millis(20));
        drop(timer.sleep(Duration::from_millis(1)));
        block_on(short);
        assert!(began.elapsed() >= Duration::from_millis(20));
        let long = timer.sleep(Duration::MAX);
        let own = Arc::clone(&timer);
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            own.end();
        });
        block_on(long);
        ends.join().unwrap();
    }
}
