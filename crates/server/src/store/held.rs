//! Tables whose writers wait, as a definition goes through their rows. All others go on.

use super::pool::lock;
use sql::ir::ObjectId;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The tables that are held, by the ids of their rows.
#[derive(Default)]
pub(super) struct Held {
    tables: Mutex<BTreeSet<ObjectId>>,
    /// Whether there are some. Tables are held by who has the gate alone: who is within it sees it.
    is_any: AtomicBool,
    released: Arc<Notify>,
}

/// Tables that are held until this is dropped.
pub(super) struct Hold<'h> {
    held: &'h Held,
    tables: BTreeSet<ObjectId>,
}

impl Held {
    /// Whether one of these tables is held.
    pub(super) fn has(&self, tables: &BTreeSet<ObjectId>) -> bool {
        self.is_any.load(Ordering::Acquire) && !lock(&self.tables).is_disjoint(tables)
    }

    /// Comes when some table is released; `None` if none of these is held.
    pub(super) fn released(
        &self,
        tables: &BTreeSet<ObjectId>,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let held = lock(&self.tables);
        if held.is_disjoint(tables) {
            return None;
        }
        // Made under the lock: no release is missed.
        let mut released = Box::pin(Arc::clone(&self.released).notified_owned());
        released.as_mut().enable();
        Some(released)
    }

    /// Holds these tables, none of which is held. Their writers are outside of the gate.
    pub(super) fn hold(&self, tables: BTreeSet<ObjectId>) -> Hold<'_> {
        let mut held = lock(&self.tables);
        assert!(held.is_disjoint(&tables), "one definition at a time holds a table");
        held.extend(&tables);
        self.is_any.store(!held.is_empty(), Ordering::Release);
        Hold { held: self, tables }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.held.tables);
        held.retain(|table| !self.tables.contains(table));
        self.held.is_any.store(!held.is_empty(), Ordering::Release);
        self.held.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_release_wakes_who_waits_for_any() {
        let held = Held::default();
        let set = |numbers: &[u32]| numbers.iter().map(|id| ObjectId::new(*id)).collect();
        assert!(!held.has(&set(&[1])) && held.released(&set(&[1])).is_none());
        let (first, second) = (held.hold(set(&[1, 2])), held.hold(set(&[3])));
        assert!(held.has(&set(&[2, 9])) && !held.has(&set(&[9])) && !held.has(&set(&[])));
        let released = held.released(&set(&[3])).expect("it is held");
        drop(first);
        released.await;
        assert!(held.has(&set(&[3])) && !held.has(&set(&[1])));
        let released = held.released(&set(&[3])).expect("it is held again");
        drop(second);
        released.await;
        assert!(held.released(&set(&[3])).is_none());
    }
}
