//! Interrupts of statements. A statement that computes outside of a call polls its interrupt once a
//! slice. One that waits for the gate or a snapshot is woken by it. A submitted call is never
//! interrupted: its steps bound it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use values::{Error, Result, SqlState};

/// Why a statement is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// A cancel request.
    Request = 1,
    /// `statement_timeout`
    Timeout,
    /// Its client has disconnected.
    Disconnected,
    /// The server stops.
    Shutdown,
    /// The store cannot be read any more: what is under way may never end.
    Lost,
}

impl Cause {
    fn of(number: u8) -> Option<Cause> {
        use Cause::{Disconnected, Lost, Request, Shutdown, Timeout};
        let all = [Request, Timeout, Disconnected, Shutdown, Lost];
        all.into_iter().find(|cause| *cause as u8 == number)
    }

    /// Returns the error of a statement that is interrupted for this cause.
    pub(crate) fn error(self) -> Error {
        let cancel =
            |why| Error::new(SqlState::QUERY_CANCELED, format!("canceling statement due to {why}"));
        match self {
            Cause::Request => cancel("user request"),
            Cause::Timeout => cancel("statement timeout"),
            Cause::Disconnected => cancel("the end of its connection"),
            Cause::Shutdown => {
                let message = "terminating connection due to administrator command";
                Error::new(SqlState::ADMIN_SHUTDOWN, message)
            }
            Cause::Lost => {
                let message = "terminating connection because the store cannot be read";
                Error::new(SqlState::ADMIN_SHUTDOWN, message)
            }
        }
    }
}

/// The bit of a cause that was heard.
const HEARD: u8 = 1 << 7;

/// Interrupts one statement, or all statements of a connection.
#[derive(Default)]
pub(crate) struct Interrupt {
    cause: AtomicU8,
    told: Notify,
    /// The interrupt of the connection, which interrupts each of its statements.
    connection: Option<Arc<Interrupt>>,
    /// How long a statement waits for a lock, and where that time is taken.
    patience: Option<(Duration, Handle)>,
}

impl Interrupt {
    /// Creates the interrupt of a statement of a connection.
    #[cfg(test)]
    pub(super) fn within(connection: &Arc<Interrupt>) -> Arc<Interrupt> {
        Interrupt::with_lock_timeout(connection, None)
    }

    /// Creates the interrupt of a statement of a connection that waits for a lock at most so long.
    pub(super) fn with_lock_timeout(
        connection: &Arc<Interrupt>,
        lock_timeout: Option<Duration>,
    ) -> Arc<Interrupt> {
        let connection = Some(Arc::clone(connection));
        let patience = lock_timeout.zip(Handle::try_current().ok());
        Arc::new(Interrupt { connection, patience, ..Interrupt::default() })
    }

    /// Interrupts it. The first cause is kept.
    pub(crate) fn tell(&self, cause: Cause) {
        let _ = self.cause.compare_exchange(0, cause as u8, Ordering::AcqRel, Ordering::Relaxed);
        self.told.notify_waiters();
    }

    /// Takes the cause back, unless it was heard. Returns whether it did.
    pub(super) fn take_back(&self) -> bool {
        let told = self.cause.load(Ordering::Acquire);
        let (ordering, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        told & HEARD == 0 && self.cause.compare_exchange(told, 0, ordering, failed).is_ok()
    }

    /// Returns why it is itself interrupted, which is heard with that.
    fn own_cause(&self) -> Option<Cause> {
        if self.cause.load(Ordering::Acquire) == 0 {
            return None;
        }
        let hear = |told| (told != 0).then_some(told | HEARD);
        let told = self.cause.try_update(Ordering::AcqRel, Ordering::Acquire, hear).ok()?;
        Cause::of(told & !HEARD)
    }

    /// Returns why it is interrupted, itself or by its connection.
    fn cause(&self) -> Option<Cause> {
        let connection = || self.connection.as_ref().and_then(|outer| outer.cause());
        self.own_cause().or_else(connection)
    }

    /// Checks, before a statement begins, whether it was itself interrupted. The end of its
    /// connection does not count: statements that a client sent before still run.
    pub(super) fn check_own(&self) -> Result<()> {
        self.own_cause().map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// Returns the error of an interrupted statement.
    pub(super) fn check(&self) -> Result<()> {
        self.cause().map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// Waits for an interrupt.
    async fn come(&self) -> Error {
        let Some(connection) = &self.connection else {
            return self.told_itself().await.error();
        };
        tokio::select! {
            cause = self.told_itself() => cause.error(),
            cause = connection.told_itself() => cause.error(),
        }
    }

    async fn told_itself(&self) -> Cause {
        loop {
            let mut told = pin!(self.told.notified());
            // An interrupt from here on is not missed.
            told.as_mut().enable();
            if let Some(cause) = self.own_cause() {
                return cause;
            }
            told.await;
        }
    }

    /// Waits for a future or for an interrupt.
    ///
    /// # Errors
    /// The error of the interrupt.
    pub(super) async fn or<T>(&self, awaited: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            done = awaited => Ok(done),
            error = self.come() => Err(error),
        }
    }

    /// Waits for a lock, for an interrupt, or until `lock_timeout` is over.
    ///
    /// # Errors
    /// The error of the interrupt, or of the time.
    pub(super) async fn or_in_time<T>(&self, awaited: impl Future<Output = T>) -> Result<T> {
        let Some((time, runtime)) = &self.patience else { return self.or(awaited).await };
        let time = *time;
        let mut timer = Timer(runtime.spawn(async move { tokio::time::sleep(time).await }));
        tokio::select! {
            biased;
            done = self.or(awaited) => done,
            _ = &mut timer.0 => {
                let message = "canceling statement due to lock timeout";
                Err(Error::new(SqlState::LOCK_NOT_AVAILABLE, message))
            }
        }
    }
}

/// A task that ends with this.
struct Timer(tokio::task::JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_statement_hears_its_connection() {
        let connection = Arc::<Interrupt>::default();
        let (first, second) = (Interrupt::within(&connection), Interrupt::within(&connection));
        first.tell(Cause::Timeout);
        first.tell(Cause::Request);
        assert_eq!(first.cause(), Some(Cause::Timeout), "the first cause counts");
        assert!(first.check_own().is_err() && second.check().is_ok());
        assert!(!first.take_back(), "it was heard");
        second.tell(Cause::Request);
        assert!(second.take_back() && second.check().is_ok());
        let never = std::future::pending::<()>();
        assert!(first.or(never).await.is_err(), "what was told before is heard");
        let never = std::future::pending::<()>();
        let (ended, ()) = tokio::join!(second.or(never), async {
            connection.tell(Cause::Shutdown);
        });
        assert_eq!(ended.unwrap_err().state().code(), "57P01");
        assert!(second.check_own().is_ok() && second.check().is_err());
        assert_eq!(second.or(async { 7 }).await.ok(), Some(7), "what is there counts");
    }
}
