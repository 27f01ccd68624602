//! A folder of stores, each of which is a database.
//!
//! The default database is open as long as the server runs. Another one is opened by its first
//! session and stays open; if as many as may be are open, one without sessions is closed for it.
//! Stores are opened, closed, made and removed on threads of their own, as that takes long; a
//! [`Change`] has the new state of its database also if such a thread panics or never runs.

use super::files;
use super::name::{TEMPLATES, check, missing};
use super::opened::{InUse, Opened};
use crate::cancel::Sessions;
use crate::config::NAME;
use crate::store::{Backends, DeviceSpec, OpenError, Store, StoreOptions};
use sql::MemoryPool;
use sql::system::SessionActivity;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;
use values::{Error, Result, SqlState};

/// The database of PostgreSQL that clients connect to in order to make others. If there is none of
/// this name it is the default database.
const MAINTENANCE: &str = "postgres";
/// How long a DROP waits for sessions that end, as in PostgreSQL.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);

/// Where databases are, and how their stores are opened. Devices, names and the memory of
/// statements, which is that of `default`, are set for each.
#[derive(Debug)]
pub struct FolderOptions {
    /// The directory that has a directory for each database.
    pub directory: PathBuf,
    /// The options of the default database.
    pub default: StoreOptions,
    /// The options of each other database.
    pub others: StoreOptions,
    /// How many databases are open at a time, at most.
    pub open_max: usize,
}

pub(super) struct Folder {
    options: FolderOptions,
    memory: Arc<MemoryPool>,
    all: Mutex<BTreeMap<String, State>>,
    /// Notified after each [`Change`].
    changed: Notify,
    sessions: OnceLock<Arc<Sessions>>,
}

/// The state of a database.
enum State {
    /// Being made or removed: it does not exist.
    Absent,
    Closed,
    /// Being opened or closed.
    Busy,
    Open(Opened),
}

/// The end of what is being done to a database, which takes place when this is dropped.
struct Change {
    folder: Arc<Folder>,
    name: String,
    /// The state to come; without one the database is forgotten.
    end: Option<State>,
}

impl Drop for Change {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        let mut all = self.folder.all();
        match self.end.take() {
            Some(state) => all.insert(name, state),
            None => all.remove(&name),
        };
        drop(all);
        self.folder.changed.notify_waiters();
    }
}

/// What a session finds that wants a database.
enum Found {
    Open(InUse),
    /// It is being opened or closed.
    Wait,
    /// It was closed, and is to be opened after the other one is closed.
    Closed {
        name: String,
        idle: Option<(String, Opened)>,
    },
}

/// What a DROP finds.
enum Leaving {
    Missing,
    Wait,
    /// So many sessions use it.
    Used(usize),
    /// It was marked as absent.
    Marked(State),
}

impl Folder {
    pub(super) fn open(options: FolderOptions) -> std::result::Result<Arc<Folder>, OpenError> {
        files::prepare(&options.directory).map_err(OpenError::Folder)?;
        let StoreOptions { statement_memory_bytes, reclaim, .. } = options.default;
        let folder = Folder {
            memory: MemoryPool::with_reclaim(statement_memory_bytes, reclaim),
            options,
            all: Mutex::default(),
            changed: Notify::new(),
            sessions: OnceLock::new(),
        };
        // First: it is locked, so that no other process uses the folder.
        let default = Store::open(folder.options_of(NAME))?;
        let names = files::find(&folder.options.directory).map_err(OpenError::Folder)?;
        let mut all = folder.all();
        all.extend(names.into_iter().map(|name| (name, State::Closed)));
        all.insert(NAME.to_owned(), State::Open(Opened::new(default)));
        drop(all);
        Ok(Arc::new(folder))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options_of(&self, name: &str) -> StoreOptions {
        let options = match name {
            NAME => &self.options.default,
            _ => &self.options.others,
        };
        StoreOptions {
            device: DeviceSpec::File(files::directory(&self.options.directory, name)),
            database: name.into(),
            shared_memory: Some(Arc::clone(&self.memory)),
            ..options.clone()
        }
    }

    pub(super) fn default_store(&self) -> Store {
        match self.all().get(NAME) {
            Some(State::Open(opened)) => opened.store.clone(),
            _ => unreachable!("it is open until the folder is closed"),
        }
    }

    pub(super) fn stopped(&self) -> Option<nvcaracal::Error> {
        self.all().values().find_map(|state| match state {
            State::Open(opened) => opened.store.database().stopped(),
            _ => None,
        })
    }

    /// Returns the names of the databases that exist.
    fn names(&self) -> Vec<String> {
        let all = self.all();
        let exists = |(name, state): &(&String, &State)| match state {
            State::Absent => false,
            State::Closed => files::has_store(&self.options.directory, name),
            State::Busy | State::Open(_) => true,
        };
        let exist = all.iter().filter(exists);
        exist.map(|(name, _)| name.clone()).collect()
    }

    /// Tells the stores of the sessions of the server: those that are open, and each that will be.
    pub(super) fn serve(self: &Arc<Folder>, sessions: &Arc<Sessions>) {
        // A folder has one server.
        let _ = self.sessions.set(Arc::clone(sessions));
        self.introduce(&self.default_store());
    }

    fn introduce(self: &Arc<Folder>, store: &Store) {
        let Some(sessions) = self.sessions.get() else { return };
        let (sessions, folder) = (Arc::clone(sessions), Arc::downgrade(self));
        store.serves(Arc::new(Neighbours { sessions, folder }));
    }

    pub(super) async fn connect(self: &Arc<Folder>, name: &str) -> Result<InUse> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // A change from here on is not missed.
            changed.as_mut().enable();
            match self.look(name)? {
                Found::Open(in_use) => return Ok(in_use),
                Found::Wait => changed.await,
                Found::Closed { name, idle } => {
                    let idle = idle.map(|(name, opened)| self.change(name, State::Open(opened)));
                    let change = self.change(name, State::Closed);
                    blocking(move || open(change, idle)).await?;
                }
            }
        }
    }

    fn change(self: &Arc<Folder>, name: String, end: State) -> Change {
        Change { folder: Arc::clone(self), name, end: Some(end) }
    }

    /// The states of all databases, with that of this name if it came into the folder since they
    /// were looked for.
    fn all_with(&self, name: &str) -> MutexGuard<'_, BTreeMap<String, State>> {
        let mut all = self.all();
        let is_new = !all.contains_key(name) && check(name).is_ok();
        if is_new && files::has_store(&self.options.directory, name) {
            all.insert(name.to_owned(), State::Closed);
        }
        all
    }

    /// Finds a database for a session. One that is closed is busy from then on.
    fn look(&self, name: &str) -> Result<Found> {
        let mut all = self.all_with(name);
        let name = match all.get(name) {
            None | Some(State::Absent) if name == MAINTENANCE => NAME,
            _ => name,
        };
        match all.get(name) {
            None | Some(State::Absent) if TEMPLATES.contains(&name) => {
                let message = format!("database \"{name}\" is not currently accepting connections");
                Err(Error::new(SqlState::WRONG_STATE, message))
            }
            None | Some(State::Absent) => Err(missing(name)),
            Some(State::Busy) => Ok(Found::Wait),
            Some(State::Open(opened)) => Ok(Found::Open(opened.for_session())),
            Some(State::Closed) => {
                let idle = self.make_room(&mut all)?;
                all.insert(name.to_owned(), State::Busy);
                Ok(Found::Closed { name: name.to_owned(), idle })
            }
        }
    }

    /// Finds an open database without sessions that is to be closed, if as many as may be are open.
    fn make_room(&self, all: &mut BTreeMap<String, State>) -> Result<Option<(String, Opened)>> {
        let is_open = |state: &&State| matches!(state, State::Open(_) | State::Busy);
        if all.values().filter(is_open).count() < self.options.open_max {
            return Ok(None);
        }
        let is_idle = |state: &State| matches!(state, State::Open(own) if own.users() == 0);
        let mut idle = all.iter_mut().filter(|(name, state)| *name != NAME && is_idle(state));
        match idle.next().map(|(name, state)| (name, std::mem::replace(state, State::Busy))) {
            Some((name, State::Open(opened))) => Ok(Some((name.clone(), opened))),
            _ => {
                let message = "too many databases are in use at a time";
                let hint = format!("Sessions use {} databases at most.", self.options.open_max);
                Err(Error::new(SqlState::TOO_MANY_CONNECTIONS, message).with_hint(hint))
            }
        }
    }

    pub(super) async fn create(self: &Arc<Folder>, name: &str) -> Result<()> {
        check(name)?;
        {
            let mut all = self.all_with(name);
            if TEMPLATES.contains(&name) || all.contains_key(name) {
                let message = format!("database \"{name}\" already exists");
                return Err(Error::new(SqlState::DUPLICATE_DATABASE, message));
            }
            all.insert(name.to_owned(), State::Absent);
        }
        let change = Change { folder: Arc::clone(self), name: name.to_owned(), end: None };
        blocking(move || make(change)).await
    }

    pub(super) async fn remove(self: &Arc<Folder>, name: &str, is_forced: bool) -> Result<bool> {
        if TEMPLATES.contains(&name) {
            let message = "cannot drop a template database";
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        if name == NAME {
            let message = format!("cannot drop the default database \"{NAME}\"");
            return Err(Error::new(SqlState::OBJECT_IN_USE, message));
        }
        let end = Instant::now() + PATIENCE;
        let last = loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.mark_absent(name) {
                Leaving::Missing => return Ok(false),
                Leaving::Wait => changed.await,
                Leaving::Marked(last) => break last,
                Leaving::Used(sessions) if Instant::now() > end => {
                    return Err(used(name, sessions));
                }
                Leaving::Used(_) => {
                    if is_forced {
                        self.end_sessions(name);
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        };
        let change = self.change(name.to_owned(), last);
        blocking(move || remove(change)).await
    }

    /// Marks a database that no session uses as absent.
    fn mark_absent(&self, name: &str) -> Leaving {
        let mut all = self.all_with(name);
        match all.get_mut(name) {
            None | Some(State::Absent) => Leaving::Missing,
            Some(State::Busy) => Leaving::Wait,
            Some(State::Open(opened)) if opened.users() > 0 => Leaving::Used(opened.users()),
            Some(state) => Leaving::Marked(std::mem::replace(state, State::Absent)),
        }
    }

    /// Ends the sessions of a database.
    fn end_sessions(&self, name: &str) {
        let Some(sessions) = self.sessions.get() else { return };
        for session in sessions.activity().iter().filter(|session| &*session.database == name) {
            sessions.terminate(session.process);
        }
    }

    pub(super) fn close(&self) -> std::result::Result<(), OpenError> {
        let all = std::mem::take(&mut *self.all());
        let mut closed = Ok(());
        for state in all.into_values() {
            if let State::Open(opened) = state {
                closed = closed.and(opened.store.close());
            }
        }
        closed
    }
}

/// Runs what takes long on a thread of its own. It ends also if its caller is gone.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = format!("work on a database has not ended: {error}");
        Err(Error::new(SqlState::INTERNAL, message))
    })
}

/// Makes a database.
fn make(mut change: Change) -> Result<()> {
    let (folder, name) = (&change.folder, &change.name);
    let made = files::make(&folder.options.directory, folder.options_of(name), name);
    made.map_err(|error| cannot_be("made", name, &error))?;
    change.end = Some(State::Closed);
    Ok(())
}

/// Opens a database, after an idle one is closed.
fn open(mut change: Change, idle: Option<Change>) -> Result<()> {
    if let Some(mut idle) = idle {
        close(&mut idle);
    }
    let directory = &change.folder.options.directory;
    if !files::has_store(directory, &change.name) {
        let path = files::directory(directory, &change.name);
        let detail = format!("There is no store in {}.", path.display());
        return Err(missing(&change.name).with_detail(detail));
    }
    let opened = Store::open(change.folder.options_of(&change.name));
    let store = opened.map_err(|error| cannot_be("opened", &change.name, &error))?;
    change.folder.introduce(&store);
    change.end = Some(State::Open(Opened::new(store)));
    Ok(())
}

/// Closes a database. One that fails meanwhile is replayed at its next open.
fn close(change: &mut Change) {
    if let Some(State::Open(opened)) = change.end.replace(State::Closed)
        && let Err(error) = opened.store.close()
    {
        warn!("{}", cannot_be("closed", &change.name, &error));
    }
}

/// Closes a database, and takes its directory away.
fn remove(mut change: Change) -> Result<bool> {
    close(&mut change);
    let removed = files::remove(&change.folder.options.directory, &change.name);
    removed.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => {
            let message = format!("database \"{}\" is being accessed by other users", change.name);
            let detail = "Another process has its store open.";
            Error::new(SqlState::OBJECT_IN_USE, message).with_detail(detail)
        }
        _ => cannot_be("dropped", &change.name, &error),
    })?;
    change.end = None;
    Ok(true)
}

fn cannot_be(done: &str, name: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(SqlState::IO_ERROR, format!("database \"{name}\" cannot be {done}: {error}"))
}

fn used(name: &str, sessions: usize) -> Error {
    let message = format!("database \"{name}\" is being accessed by other users");
    let (be, plural) = if sessions == 1 { ("is", "") } else { ("are", "s") };
    let detail = format!("There {be} {sessions} other session{plural} using the database.");
    Error::new(SqlState::OBJECT_IN_USE, message).with_detail(detail)
}

/// The sessions of the server, for a store of its folder.
struct Neighbours {
    sessions: Arc<Sessions>,
    folder: Weak<Folder>,
}

impl Backends for Neighbours {
    fn cancel(&self, process: i32) -> bool {
        Backends::cancel(&*self.sessions, process)
    }

    fn terminate(&self, process: i32) -> bool {
        self.sessions.terminate(process)
    }

    fn activity(&self) -> Vec<SessionActivity> {
        self.sessions.activity()
    }

    fn databases(&self) -> Vec<String> {
        self.folder.upgrade().map(|folder| folder.names()).unwrap_or_default()
    }
}
