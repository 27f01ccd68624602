//! The log of the server: events of `tracing`.
//!
//! | level | event |
//! |---|---|
//! | error | errors of class XX (a bug or damage) and 58 (files) |
//! | warn | rejected clients; slow statements |
//! | warn | errors of class 53 (memory, disk, connections), at most one a second |
//! | info | sessions that the server ends |
//! | debug | other errors of statements; new sessions |
//!
//! Statements are cut as in `pg_stat_activity`. Parameter values are not logged.

use crate::store::Activity;
use sql::system::SessionActivity;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, debug, enabled, error, info, warn};
use values::{Error, SqlState};

/// The time between two events of a rate-limited kind.
const PAUSE: Duration = Duration::from_secs(1);

/// Errors of class 53.
static SCARCITY: Limited = Limited(Mutex::new(None));

/// A kind of event, logged at most once per [`PAUSE`].
struct Limited(Mutex<Option<Last>>);

/// The last logged event.
struct Last {
    at: Instant,
    /// The number of events not logged since then.
    omitted: u64,
}

impl Limited {
    /// Returns the number of omitted events since the last one, or `None` to omit this one.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some(last) if now.duration_since(last.at) < PAUSE => {
                last.omitted += 1;
                None
            }
            last => {
                let omitted = last.as_ref().map_or(0, |last| last.omitted);
                *last = Some(Last { at: now, omitted: 0 });
                Some(omitted)
            }
        }
    }
}

/// Logs an event of a session. A macro, because levels are constants.
macro_rules! of_session {
    ($tell:ident, $session:expr, $error:expr, $($more:tt)*) => {{
        let (session, error): (&SessionActivity, &Error) = ($session, $error);
        $tell!(
            process = session.process,
            database = &*session.database,
            address = session.address.as_deref(),
            application = session.application,
            state = error.state().code(),
            detail = error.detail(),
            text = session.text,
            $($more)*
        );
    }};
}

/// Logs an error sent to the client of a session.
pub(crate) fn failed(session: &Activity, error: &Error) {
    let message = error.message();
    match &error.state().code()[..2] {
        "XX" | "58" => {
            if let Some(session) = session.now() {
                of_session!(error, &session, error, "{message}");
            }
        }
        "53" => {
            if let (Some(omitted), Some(session)) = (SCARCITY.due(Instant::now()), session.now()) {
                of_session!(warn, &session, error, omitted, "{message}");
            }
        }
        _ if !enabled!(Level::DEBUG) => {}
        _ => {
            if let Some(session) = session.now() {
                of_session!(debug, &session, error, "{message}");
            }
        }
    }
}

/// Logs the error that ends a session. Those of a shutdown are for level debug.
pub(crate) fn ended(session: &Activity, error: &Error) {
    let is_logged = error.state() != SqlState::ADMIN_SHUTDOWN || enabled!(Level::DEBUG);
    match session.now().filter(|_| is_logged) {
        Some(_) if error.state().code().starts_with("XX") => failed(session, error),
        Some(session) => of_session!(info, &session, error, "{}", error.message()),
        None => {}
    }
}

/// Logs a new session.
pub(crate) fn began(session: &Activity) {
    if enabled!(Level::DEBUG)
        && let Some(session) = session.now()
    {
        debug!(
            process = session.process,
            database = &*session.database,
            address = session.address,
            "a session begins"
        );
    }
}

/// Logs a rejected client.
pub(crate) fn refused(address: Option<IpAddr>, error: &Error) {
    let address = address.map(tracing::field::display);
    let state = error.state();
    let (state, message) = (state.code(), error.message());
    if error.state() == SqlState::TOO_MANY_CONNECTIONS {
        if let Some(omitted) = SCARCITY.due(Instant::now()) {
            warn!(address, state, omitted, "a client is refused: {message}");
        }
        return;
    }
    warn!(address, state, "a client is refused: {message}");
}

/// Logs a slow statement.
pub(crate) fn slow(session: &SessionActivity, took: Duration) {
    warn!(
        process = session.process,
        database = &*session.database,
        address = session.address,
        application = session.application,
        ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        text = session.text,
        "a statement took long"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limited_kind_is_logged_once_per_pause() {
        let kind = Limited(Mutex::new(None));
        let begin = Instant::now();
        let told = [0, 1, 999, 1_000, 1_001, 5_000].map(|ms| {
            let now = begin + Duration::from_millis(ms);
            kind.due(now)
        });
        assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
