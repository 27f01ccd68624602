//! What can go wrong, in kinds that a program tells apart by asking.

use std::sync::Arc;

use engine::{Abort, EngineError};
use pmem::DeviceError;
use storage::StorageError;

use crate::{Data, stop};

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
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Error {
    kind: Arc<Kind>,
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
    #[error("the database is closed")]
    Closed,
    #[error("the queue is full: {calls} calls with {bytes} bytes are waiting")]
    QueueFull { calls: usize, bytes: usize },
    #[error("{0}")]
    Limit(String),
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

    pub(crate) fn closed() -> Self {
        Self::new(Kind::Closed)
    }

    pub(crate) fn queue_full(calls: usize, bytes: usize) -> Self {
        Self::new(Kind::QueueFull { calls, bytes })
    }

    pub(crate) fn limit(what: impl Into<String>) -> Self {
        Self::new(Kind::Limit(what.into()))
    }

    pub(crate) fn mistake(what: impl Into<String>) -> Self {
        Self::new(Kind::Mistake(what.into()))
    }

    fn device(&self) -> Option<&DeviceError> {
        match &*self.kind {
            Kind::Engine(EngineError::Storage(StorageError::Device(device))) => Some(device),
            _ => None,
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

    /// The value with which the procedure gave up, if it is of this type; see [`Stop`](crate::Stop).
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
        matches!(&*self.kind, Kind::Failed(_))
    }

    /// Whether a limit was reached: space, an option, or the length of something. What was asked
    /// for was not done, and the database goes on.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        match &*self.kind {
            Kind::Limit(_) | Kind::QueueFull { .. } => true,
            Kind::Engine(error) => error.is_limit(),
            _ => false,
        }
    }

    /// Whether the queue had no room.
    #[must_use]
    pub fn is_queue_full(&self) -> bool {
        matches!(&*self.kind, Kind::QueueFull { .. })
    }

    /// Whether data on the medium is damaged or not ours.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        match &*self.kind {
            Kind::Engine(error) => {
                error.is_corrupt() || self.device().is_some_and(DeviceError::is_corrupt)
            }
            _ => false,
        }
    }

    /// Whether the database runs no more: it was closed, or something failed and it must be opened
    /// again. What became of calls without an answer is unknown until then.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(
            &*self.kind,
            Kind::Stopped(_) | Kind::Closed | Kind::Engine(EngineError::Poisoned(_))
        )
    }

    /// Whether the database is open elsewhere, in this process or another one.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.device().is_some_and(DeviceError::is_locked)
    }

    /// Whether the program asked for what cannot be: two procedures of one name, a procedure or a
    /// table that was not registered, a path in a directory that is not there.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        matches!(
            &*self.kind,
            Kind::Mistake(_)
                | Kind::Engine(
                    EngineError::OtherProgram(_)
                        | EngineError::OtherTypes(_)
                        | EngineError::OtherPast { .. }
                )
        )
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
        let locked: Error = DeviceError::Locked { path: "db".into() }.into();
        assert!(locked.is_locked() && !locked.is_corrupt());
        let corrupt: Error = StorageError::Corrupt("x".into()).into();
        assert!(corrupt.is_corrupt() && !corrupt.is_stopped());
    }
}
