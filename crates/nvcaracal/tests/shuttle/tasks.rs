//! Callers in tasks, without a runtime: a future moves from task to task, so that only its last
//! waker counts, or is dropped.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use shuttle::sync::{Condvar, Mutex};
use sim::history::Random;

use crate::World;
use crate::callers::call;

/// Calls of a task, at most.
const CALLS: u64 = 3;

/// Tells the thread that runs a task that it was woken.
struct Signal {
    is_woken: Mutex<bool>,
    told: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.told.notify_all();
    }
}

impl Signal {
    fn wait(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.told.wait(is_woken).unwrap();
        }
    }
}

/// Polls a future, each time as part of another task, and waits until the last of these is woken,
/// or moves it before. `None`: it was dropped.
fn finish<F: Future>(mut future: Pin<&mut F>, random: &mut Random) -> Option<F::Output> {
    loop {
        let signal = Signal { is_woken: Mutex::new(false), told: Condvar::new() };
        let signal = Arc::new(signal);
        let waker = Waker::from(Arc::clone(&signal));
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        match random.below(10) {
            0 => return None,
            1..5 => shuttle::thread::yield_now(),
            _ => signal.wait(),
        }
    }
}

/// Submits calls, each as a future that waits for room, and then for its answer.
pub(crate) fn run(world: &World, caller: u64, random: &mut Random) {
    for step in 0..1 + random.below(CALLS) {
        if random.percent(30) {
            let answered = world.answers();
            if let Some(made) = finish(pin!(world.db.snapshot_async()), random) {
                world.has_all(made, answered);
            }
        }
        let count = call(caller, step);
        let number = count.call;
        let ticket = match finish(pin!(world.db.submit_async(count)), random) {
            None => continue,
            Some(Ok(ticket)) => ticket,
            Some(Err(error)) => {
                assert!(error.is_stopped(), "{error}");
                continue;
            }
        };
        match finish(pin!(ticket), random) {
            None => {}
            Some(Ok(counted)) => world.answered(number, counted),
            Some(Err(error)) => panic!("call {number:x} was accepted: {error}"),
        }
    }
}
