//! What can go wrong, in kinds that a program tells apart by asking.

use std::fmt;
use std::sync::Arc;

use engine::{Abort, EngineError};
use pmem::DeviceError;
use storage::StorageError;
use storage::input_log::LogError;

use crate::data::value::Data;
use crate::stop;

/// Why something did not happen.
///
/// Programs ask what kind it is; people read the text.
///
/// ```
/// # fn handle(error: nvcaracal::Error) {
/// if let Some(abort) = error.abort() {
///     println!("the procedure gave up: {}", abort.message);
/// } else if error.is_queue_full() {
///     println!("try again later");
/// } else if error.is_stopped() {
///     println!("open the database again: {error}");
/// }
/// # }
/// ```
///
/// `{:?}` shows the same text as `{}`, so that a `main` that returns an error ends with a sentence.
#[derive(Clone, thiserror::Error)]
#[error(transparent)]
pub struct Error {
    kind: Arc<Kind>,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What kind of error it is: [`Error::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The procedure gave up on purpose.
    Abort,
    /// The call failed by a mistake of its procedure.
    Failed,
    /// Too many calls wait.
    QueueFull,
    /// The disk has no room, or a limit of the size of the database is reached.
    Full,
    /// Another limit is reached: of an option, or of the length of something.
    Limit,
    /// The operating system failed to read or write.
    Io,
    /// The database holds other tables, rows or calls than the program takes them for.
    Schema,
    /// Data on the device is damaged or not ours.
    Corrupt,
    /// The database is open elsewhere, or another copy of it is being made.
    Locked,
    /// Something failed, and the database must be opened again.
    Stopped,
    /// A procedure did something else when it ran again, and the database has stopped.
    NotDeterministic,
    /// The database was closed.
    Closed,
    /// The program asked for what cannot be.
    Mistake,
}

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Engine(EngineError),
    #[error("{0}")]
    Abort(Abort),
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    Stopped(String),
    #[error("{0}")]
    NotDeterministic(String),
    #[error("the database is closed")]
    Closed,
    #[error("the queue is full: {calls} calls with {bytes} bytes are waiting")]
    QueueFull { calls: usize, bytes: usize },
    #[error("{0}")]
    Limit(String),
    #[error(
        "the changes after epoch {after} are not kept, only those after epoch {kept_after}{why}: \
         take a snapshot and go on after its epoch"
    )]
    ChangesGone { after: u64, kept_after: u64, why: String },
    #[error("{0}")]
    Mistake(String),
}

impl Error {
    fn new(kind: Kind) -> Self {
        Self { kind: Arc::new(kind) }
    }

    pub(crate) fn aborted(abort: &Abort) -> Self {
        Self::new(Kind::Abort(abort.clone()))
    }

    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::new(Kind::Failed(what.into()))
    }

    pub(crate) fn stopped(why: impl Into<String>) -> Self {
        Self::new(Kind::Stopped(why.into()))
    }

    pub(crate) fn not_deterministic(what: impl Into<String>) -> Self {
        Self::new(Kind::NotDeterministic(what.into()))
    }

    pub(crate) fn closed() -> Self {
        Self::new(Kind::Closed)
    }

    pub(crate) fn queue_full(calls: usize, bytes: usize) -> Self {
        Self::new(Kind::QueueFull { calls, bytes })
    }

    pub(crate) fn limit(what: impl Into<String>) -> Self {
        Self::new(Kind::Limit(what.into()))
    }

    pub(crate) fn changes_gone(after: u64, kept_after: u64) -> Self {
        Self::new(Kind::ChangesGone { after, kept_after, why: String::new() })
    }

    /// Changes are not in the change log either, for a reason that may be known.
    pub(crate) fn changes_lost(after: u64, kept_after: u64, why: Option<String>) -> Self {
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        Self::new(Kind::ChangesGone { after, kept_after, why })
    }

    #[cold]
    pub(crate) fn read_only() -> Self {
        Self::mistake("the database was opened for reading only")
    }

    #[cold]
    pub(crate) fn forked() -> Self {
        Self::mistake(
            "the database was opened by the process of which this one is a fork, and has its \
             threads there: open it here once that process has closed it",
        )
    }

    pub(crate) fn mistake(what: impl Into<String>) -> Self {
        Self::new(Kind::Mistake(what.into()))
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.kind {
            Kind::Engine(error) => kind_of(error),
            Kind::Abort(_) => ErrorKind::Abort,
            Kind::Failed(_) => ErrorKind::Failed,
            Kind::Stopped(_) => ErrorKind::Stopped,
            Kind::NotDeterministic(_) => ErrorKind::NotDeterministic,
            Kind::Closed => ErrorKind::Closed,
            Kind::QueueFull { .. } => ErrorKind::QueueFull,
            Kind::Limit(_) | Kind::ChangesGone { .. } => ErrorKind::Limit,
            Kind::Mistake(_) => ErrorKind::Mistake,
        }
    }

    /// What the procedure said when it gave up, if that is what happened.
    #[must_use]
    pub fn abort(&self) -> Option<&Abort> {
        match &*self.kind {
            Kind::Abort(abort) => Some(abort),
            _ => None,
        }
    }

    /// The value with which the procedure gave up, if it is of this type:
    /// [`Stop`](crate::Stop).
    #[must_use]
    pub fn abort_as<E: Data>(&self) -> Option<E> {
        stop::reason(self.abort()?)
    }

    /// Whether the procedure gave up on purpose. Its writes did not take place.
    #[must_use]
    pub fn is_user_abort(&self) -> bool {
        self.abort().is_some()
    }

    /// Whether the call failed by a mistake of the procedure: a panic, a table that is not
    /// registered, a key or value beyond its limit, in a procedure with pieces a write that it did
    /// not declare. Its writes did not take place, and the database goes on.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.kind() == ErrorKind::Failed
    }

    /// Whether a limit was reached: space, an option, or the length of something. What was asked
    /// for was not done, and the database goes on.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.kind(), ErrorKind::Limit | ErrorKind::Full | ErrorKind::QueueFull)
    }

    /// Whether there is no room on the disk, or within [`Options::data_bytes_max`] and
    /// [`Options::log_bytes_max`]. Calls fail with it until there is.
    ///
    /// [`Options::data_bytes_max`]: crate::Options::data_bytes_max
    /// [`Options::log_bytes_max`]: crate::Options::log_bytes_max
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind() == ErrorKind::Full
    }

    /// Whether the queue had no room.
    #[must_use]
    pub fn is_queue_full(&self) -> bool {
        self.kind() == ErrorKind::QueueFull
    }

    /// If a [feed of changes](crate::Changes) cannot go on because what comes next is not kept: the
    /// epoch after which changes are. A [snapshot](crate::Snapshot) that is made now is of a later
    /// epoch, or of that one.
    #[must_use]
    pub fn kept_after(&self) -> Option<u64> {
        match &*self.kind {
            Kind::ChangesGone { kept_after, .. } => Some(*kept_after),
            _ => None,
        }
    }

    /// Whether data on the device is damaged or not ours.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.kind() == ErrorKind::Corrupt
    }

    /// Whether the database runs no more: it was closed, or something failed and it must be opened
    /// again. What became of calls without an answer is unknown until then.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let kind = self.kind();
        matches!(kind, ErrorKind::Stopped | ErrorKind::NotDeterministic | ErrorKind::Closed)
    }

    /// Whether [`Options::check_determinism`](crate::Options::check_determinism) has found a
    /// procedure that is not deterministic: the text names it. The database has stopped
    /// ([`Error::is_stopped`]), and nothing of the epoch took place.
    #[must_use]
    pub fn is_not_deterministic(&self) -> bool {
        self.kind() == ErrorKind::NotDeterministic
    }

    /// Whether the database is open elsewhere, in this process or another one, or another copy of
    /// it is being made.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.kind() == ErrorKind::Locked
    }

    /// Whether the database holds other tables, rows or calls than the program takes them for. An
    /// open that is refused for this has changed nothing.
    #[must_use]
    pub fn is_schema(&self) -> bool {
        self.kind() == ErrorKind::Schema
    }

    /// Whether the program asked for what cannot be: two procedures of one name, a procedure or a
    /// table that was not registered, a path in a directory that is not there.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        self.kind() == ErrorKind::Mistake
    }
}

fn kind_of(error: &EngineError) -> ErrorKind {
    match error {
        EngineError::Storage(error) => kind_of_storage(error),
        EngineError::Limit(_) | EngineError::SnapshotEnded { .. } => ErrorKind::Limit,
        EngineError::OtherProgram(_)
        | EngineError::OtherTypes(_)
        | EngineError::NotKnown(_)
        | EngineError::OtherPast { .. } => ErrorKind::Schema,
        EngineError::StuckCall { .. } | EngineError::Poisoned(_) => ErrorKind::Stopped,
    }
}

fn kind_of_storage(error: &StorageError) -> ErrorKind {
    match error {
        StorageError::Device(device) | StorageError::Log(LogError::Device(device)) => {
            kind_of_device(device)
        }
        StorageError::Log(LogError::Full { .. }) => ErrorKind::Full,
        StorageError::Log(error) if !error.is_corrupt() => ErrorKind::Limit,
        StorageError::Log(_) | StorageError::Foreign(_) | StorageError::Corrupt(_) => {
            ErrorKind::Corrupt
        }
        StorageError::OtherTable(_) => ErrorKind::Schema,
        StorageError::Missing(_) => ErrorKind::Mistake,
        StorageError::Limit(_) => ErrorKind::Limit,
    }
}

fn kind_of_device(error: &DeviceError) -> ErrorKind {
    match error {
        DeviceError::Full { .. } => ErrorKind::Full,
        DeviceError::Locked { .. } | DeviceError::Copying { .. } => ErrorKind::Locked,
        DeviceError::Foreign { .. }
        | DeviceError::Corrupt { .. }
        | DeviceError::Unfinished { .. } => ErrorKind::Corrupt,
        DeviceError::Missing { .. }
        | DeviceError::InTheWay { .. }
        | DeviceError::Inside { .. }
        | DeviceError::ReadOnly { .. }
        | DeviceError::Refused(_) => ErrorKind::Mistake,
        DeviceError::Outrun { .. } => ErrorKind::Limit,
        // Others are of the operating system, as Io and Sticky are.
        _ => ErrorKind::Io,
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        Self::new(Kind::Engine(error))
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        EngineError::from(error).into()
    }
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_answers_one_question() {
        let abort = Error::aborted(&Abort { message: "no".into(), ..Abort::code(7) });
        assert!(abort.is_user_abort() && !abort.is_failed() && !abort.is_limit());
        assert_eq!(abort.abort().map(|a| a.code), Some(7));
        assert!(Error::queue_full(1, 2).is_limit() && Error::queue_full(1, 2).is_queue_full());
        assert!(Error::closed().is_stopped());
        let locked: Error = DeviceError::Locked { path: "db".into(), is_own: false }.into();
        assert!(locked.is_locked() && !locked.is_corrupt());
        let corrupt: Error = StorageError::Corrupt("x".into()).into();
        assert!(corrupt.is_corrupt() && !corrupt.is_stopped());
        let full = || DeviceError::Full { what: "a".into(), wanted_bytes: 2, limit_bytes: Some(1) };
        for full in [full().into(), Error::from(StorageError::from(LogError::Device(full())))] {
            assert!(full.is_full() && full.is_limit(), "{full}");
        }
        let other: Error = StorageError::OtherTable("x".into()).into();
        assert!(other.is_schema() && !other.is_limit() && !other.is_mistake());
        let io = DeviceError::Sticky { first: "no sync".into() };
        assert_eq!(Error::from(io).kind(), ErrorKind::Io);
        let text = format!("{:?}", Error::closed());
        assert_eq!(text, "the database is closed", "what a main shows that returns it");
    }
}
