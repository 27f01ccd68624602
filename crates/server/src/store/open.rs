//! Opening and closing.

use super::connection::Connection;
use super::options::{OpenError, StoreOptions};
use super::pool::Pool;
use super::statement::Parsed;
use sql::catalog::Catalog;
use sql::run::Memory;
use std::sync::{Arc, Mutex};
use values::{Error, Result, SqlState};

/// A store of SQL tables, which all connections share. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) pool: Arc<Pool>,
    pub(super) state: Mutex<(Arc<Catalog>, Memory)>,
}

impl Store {
    /// Opens a store, or makes it if there is none.
    ///
    /// # Errors
    /// Why it is not open; nothing was changed then.
    pub fn open(options: StoreOptions) -> Result<Store, OpenError> {
        let pool = Arc::new(Pool::new(options.threads).map_err(OpenError::Threads)?);
        let state = Mutex::new((Arc::new(Catalog::default()), Memory::new(options.steps_max)));
        Ok(Store { shared: Arc::new(Shared { pool, state }) })
    }

    /// A new client.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }

    /// Ends what runs, and closes the database.
    ///
    /// # Errors
    /// The database's.
    pub fn close(self) -> Result<(), OpenError> {
        self.shared.pool.end();
        Ok(())
    }

    pub(super) fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        let text: Arc<str> = text.into();
        let pool = Arc::clone(&self.shared.pool);
        let work = move || {
            let trees = sql::parse::parse(&text)?;
            let parsed = trees.into_iter().enumerate();
            Ok(parsed.map(|(at, tree)| Parsed::new(tree, text.clone(), at, pool.clone())).collect())
        };
        let ended = || Err(Error::new(SqlState::INTERNAL, "the text could not be parsed"));
        self.shared.pool.run(work).unwrap_or_else(ended)
    }
}
