//! A database that sessions use.

use crate::store::Store;
use std::sync::Arc;

/// An open database of a folder.
pub(super) struct Opened {
    pub(super) store: Store,
    /// Each session that uses the database has a clone.
    uses: Arc<()>,
}

impl Opened {
    pub(super) fn new(store: Store) -> Opened {
        Opened { store, uses: Arc::default() }
    }

    /// Returns the number of sessions that use the database.
    pub(super) fn users(&self) -> usize {
        Arc::strong_count(&self.uses) - 1
    }

    /// Returns the database for another session.
    pub(super) fn for_session(&self) -> InUse {
        InUse { store: self.store.clone(), _use: Arc::clone(&self.uses) }
    }
}

/// The database of a session, which stays open until this is dropped.
pub(crate) struct InUse {
    pub(crate) store: Store,
    _use: Arc<()>,
}

impl InUse {
    /// Returns a database that is open as long as the server runs.
    pub(super) fn always(store: Store) -> InUse {
        InUse { store, _use: Arc::default() }
    }
}
