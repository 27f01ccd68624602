//! Which sessions there are, and how one connection ends the statement of another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The sessions by the number that clients know them by.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    last: i32,
    all: HashMap<i32, (i32, Arc<Notify>)>,
}

/// A session that is in the list until this is dropped.
pub(crate) struct Registered {
    sessions: Arc<Sessions>,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    /// Tells whatever waits for a read of this session that it shall not.
    pub(crate) cancelled: Arc<Notify>,
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session. `secret` is random.
    pub(crate) fn register(self: &Arc<Sessions>, secret: i32) -> Registered {
        let mut known = self.known();
        while known.last == 0 || known.all.contains_key(&known.last) {
            known.last = known.last.checked_add(1).unwrap_or(1);
        }
        let (process, cancelled) = (known.last, Arc::new(Notify::new()));
        known.last = process.checked_add(1).unwrap_or(1);
        known.all.insert(process, (secret, cancelled.clone()));
        Registered { sessions: self.clone(), process, secret, cancelled }
    }

    /// Ends the read that the session waits for, if there is one and the secret is right. A call
    /// that was submitted takes place and is answered.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        if let Some((own, cancelled)) = self.known().all.get(&process)
            && *own == secret
        {
            cancelled.notify_waiters();
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.sessions.known().all.remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_secret_cancels() {
        let sessions = Arc::new(Sessions::default());
        let (first, second) = (sessions.register(7), sessions.register(7));
        assert_ne!(first.process, second.process);
        let cancelled = first.cancelled.clone();
        let waiting = cancelled.notified();
        tokio::pin!(waiting);
        waiting.as_mut().enable();
        sessions.cancel(first.process, 8);
        sessions.cancel(second.process, 7);
        assert!(!waiting.as_mut().enable());
        sessions.cancel(first.process, 7);
        assert!(waiting.as_mut().enable());
        let process = first.process;
        drop(first);
        sessions.cancel(process, 7);
    }
}
