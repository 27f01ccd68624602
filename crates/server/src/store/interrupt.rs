//! What ends a statement before its time. What computes outside of calls looks at it once a slice,
//! and what waits for the gate or a snapshot waits for it, too. A call that was submitted takes
//! place: its steps bound it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;
use values::{Error, Result, SqlState};

/// Why a statement ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// A client asked for it.
    Request = 1,
    /// `statement_timeout`
    Timeout,
    /// Its client has disconnected.
    Disconnected,
    /// The server stops.
    Shutdown,
}

impl Cause {
    fn of(number: u8) -> Option<Cause> {
        let all = [Cause::Request, Cause::Timeout, Cause::Disconnected, Cause::Shutdown];
        all.into_iter().find(|cause| *cause as u8 == number)
    }

    /// The error of a statement that ends so.
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
        }
    }
}

/// Tells one statement, or all of a connection, to end.
#[derive(Default)]
pub(crate) struct Interrupt {
    cause: AtomicU8,
    told: Notify,
    /// That of the connection, which all its statements hear.
    connection: Option<Arc<Interrupt>>,
}

impl Interrupt {
    /// Of a statement of a connection.
    pub(super) fn within(connection: &Arc<Interrupt>) -> Arc<Interrupt> {
        let connection = Some(Arc::clone(connection));
        Arc::new(Interrupt { connection, ..Interrupt::default() })
    }

    /// Tells it to end. The first cause counts.
    pub(crate) fn tell(&self, cause: Cause) {
        let _ = self.cause.compare_exchange(0, cause as u8, Ordering::AcqRel, Ordering::Relaxed);
        self.told.notify_waiters();
    }

    /// Why it shall end.
    fn cause(&self) -> Option<Cause> {
        let connection = || self.connection.as_ref().and_then(|outer| outer.cause());
        Cause::of(self.cause.load(Ordering::Acquire)).or_else(connection)
    }

    /// Whether it was itself told to: what has not begun does not begin then. What a client that
    /// has disconnected has sent before takes place.
    pub(super) fn check_own(&self) -> Result<()> {
        Cause::of(self.cause.load(Ordering::Acquire)).map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// The error of what shall end.
    pub(super) fn check(&self) -> Result<()> {
        self.cause().map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// Waits until it shall end.
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
            // What is told from here on is not missed.
            told.as_mut().enable();
            if let Some(cause) = Cause::of(self.cause.load(Ordering::Acquire)) {
                return cause;
            }
            told.await;
        }
    }

    /// Waits for something that may be left before it comes.
    ///
    /// # Errors
    /// Why it shall end.
    pub(super) async fn or<T>(&self, awaited: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            done = awaited => Ok(done),
            error = self.come() => Err(error),
        }
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
