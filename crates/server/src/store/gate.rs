//! Statements go through the gate; a definition closes it, so that no plan meets a catalog that it
//! was not made for.

use super::pool::lock;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

#[derive(Default)]
struct State {
    inside: usize,
    is_closed: bool,
    waiting: Vec<Waker>,
}

/// Open for many, or closed by one.
#[derive(Clone, Default)]
pub(super) struct Gate {
    state: Arc<Mutex<State>>,
}

/// A statement is inside: from the look at the catalog until it is queued.
pub(super) struct Inside {
    gate: Gate,
}

/// Nothing else is inside.
pub(super) struct Closed {
    gate: Gate,
}

impl Gate {
    /// Goes in, if the gate is open.
    pub(super) fn try_enter(&self) -> Option<Inside> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return None;
        }
        state.inside += 1;
        Some(Inside { gate: self.clone() })
    }

    /// Goes in once the gate is open.
    pub(super) async fn enter(&self) -> Inside {
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.is_closed {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            state.inside += 1;
            Poll::Ready(Inside { gate: self.clone() })
        })
        .await
    }

    /// Closes the gate and waits until nothing is inside.
    pub(super) async fn close(&self) -> Closed {
        let closed = poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.is_closed {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            state.is_closed = true;
            Poll::Ready(Closed { gate: self.clone() })
        })
        .await;
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.inside == 0 {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
        closed
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let waiting = if state.is_closed && state.inside > 0 {
            Vec::new()
        } else {
            std::mem::take(&mut state.waiting)
        };
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.gate.change(|state| state.inside -= 1);
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.gate.change(|state| state.is_closed = false);
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::block_on;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn what_closes_the_gate_is_alone() {
        let (gate, inside) = (Gate::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    for _ in 0..200 {
                        if number < 6 {
                            let entered = block_on(gate.enter());
                            inside.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(entered);
                        } else {
                            let closed = block_on(gate.close());
                            assert_eq!(inside.load(Ordering::SeqCst), 0);
                            assert!(gate.try_enter().is_none());
                            drop(closed);
                        }
                    }
                });
            }
        });
        assert!(gate.try_enter().is_some());
    }
}
