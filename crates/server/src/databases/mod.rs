//! The databases of a server: one store, or a folder of stores with a name each.
//!
//! A session has one of them from its beginning to its end. Databases of a folder share the
//! sessions of the server and the memory of statements, and nothing else: each is an engine of its
//! own with its log.

mod files;
mod folder;
mod name;
mod opened;

pub use folder::FolderOptions;
pub(crate) use name::missing;
pub(crate) use opened::InUse;

use self::folder::Folder;
use crate::cancel::Sessions;
use crate::config::NAME;
use crate::store::{Backends, OpenError, Store};
use std::sync::Arc;
use values::{Error, Result};

/// What a server serves.
#[derive(Clone)]
pub struct Databases(Kind);

#[derive(Clone)]
enum Kind {
    One(Store),
    Folder(Arc<Folder>),
}

impl From<Store> for Databases {
    fn from(store: Store) -> Databases {
        Databases(Kind::One(store))
    }
}

impl Databases {
    /// Opens the default database of a folder, which is made if there is none, and finds the
    /// others. What a process that was killed has half made or half dropped is deleted.
    ///
    /// # Errors
    /// Why the folder cannot be used, or the default database is not open.
    pub fn open(options: FolderOptions) -> std::result::Result<Databases, OpenError> {
        Ok(Databases(Kind::Folder(Folder::open(options)?)))
    }

    /// Returns the store of the default database.
    #[must_use]
    pub fn default_store(&self) -> Store {
        match &self.0 {
            Kind::One(store) => store.clone(),
            Kind::Folder(folder) => folder.default_store(),
        }
    }

    /// Returns the error of an open store that runs no more.
    pub(crate) fn stopped(&self) -> Option<nvcaracal::Error> {
        match &self.0 {
            Kind::One(store) => store.database().stopped(),
            Kind::Folder(folder) => folder.stopped(),
        }
    }

    /// Tells the stores of the sessions of the server.
    pub(crate) fn serve(&self, sessions: &Arc<Sessions>) {
        match &self.0 {
            Kind::One(store) => store.serves(Arc::clone(sessions) as Arc<dyn Backends>),
            Kind::Folder(folder) => folder.serve(sessions),
        }
    }

    /// Finds a database for a session, and opens it unless it is open.
    ///
    /// # Errors
    /// There is no such database (3D000), or why it cannot be opened.
    pub(crate) async fn connect(&self, name: &str) -> Result<InUse> {
        match &self.0 {
            Kind::One(store) if name == NAME => Ok(InUse::always(store.clone())),
            Kind::One(_) => Err(missing(name).with_hint(format!("The database is called {NAME}."))),
            Kind::Folder(folder) => folder.connect(name).await,
        }
    }

    /// Makes an empty database.
    ///
    /// # Errors
    /// It exists (42P04), its name cannot be one (42602), or why it cannot be made.
    pub(crate) async fn create(&self, name: &str) -> Result<()> {
        self.folder("CREATE DATABASE")?.create(name).await
    }

    /// Drops a database. `is_forced` ends its sessions. Returns false if there is none.
    ///
    /// # Errors
    /// Sessions use it (55006), or why it cannot be dropped.
    pub(crate) async fn remove(&self, name: &str, is_forced: bool) -> Result<bool> {
        self.folder("DROP DATABASE")?.remove(name, is_forced).await
    }

    fn folder(&self, command: &str) -> Result<&Arc<Folder>> {
        match &self.0 {
            Kind::Folder(folder) => Ok(folder),
            Kind::One(_) => {
                let message = format!("{command} is not supported by a server of one store");
                let hint = "Start the server with --databases DIR for a folder of databases.";
                Err(Error::unsupported(message, hint))
            }
        }
    }

    /// Closes all stores that are open.
    ///
    /// # Errors
    /// The first error.
    pub(crate) fn close(self) -> std::result::Result<(), OpenError> {
        match self.0 {
            Kind::One(store) => store.close(),
            Kind::Folder(folder) => folder.close(),
        }
    }
}
