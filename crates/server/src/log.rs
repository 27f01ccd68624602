//! What is told to those who run the server: events of `tracing`.
//!
//! | level | event |
//! |---|---|
//! | error | an error of class XX (a bug or damage) or 58 (a file) |
//! | warn | a client that is not let in; a statement that took long; an error of class 53 (memory, disk, connections), once a second |
//! | info | a session that the server ends |
//! | debug | each other error that a client is sent; sessions that begin |
//!
//! Texts of statements are cut as in `pg_stat_activity`. Values of parameters are not told.

use crate::shared::Peer;
use crate::store::Activity;
use sql::system::SessionActivity;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, debug, enabled, error, info, warn};
use values::{Error, SqlState};

/// How often an event is told that may come in thousands.
const PAUSE: Duration = Duration::from_secs(1);

/// Errors of class 53 that clients were sent.
static SCARCITY: Rare = Rare(Mutex::new(None));

/// A kind of event that is told at most once a [`PAUSE`].
struct Rare(Mutex<Option<Told>>);

struct Told {
    at: Instant,
    /// Events since then that were not told.
    omitted: u64,
}

impl Rare {
    /// Returns how many events were omitted since the last one, if this one is to be told.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some(told) if now.duration_since(told.at) < PAUSE => {
                told.omitted += 1;
                None
            }
            told => {
                let omitted = told.as_ref().map_or(0, |told| told.omitted);
                *told = Some(Told { at: now, omitted: 0 });
                Some(omitted)
            }
        }
    }
}

/// An event of a session. A macro, as levels are constants.
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

/// Tells of an error that the client of a session is sent.
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

/// Tells of the error with which the server ends a session. One for each session that a shutdown
/// ends says nothing more.
pub(crate) fn ended(session: &Activity, error: &Error) {
    let is_told = error.state() != SqlState::ADMIN_SHUTDOWN || enabled!(Level::DEBUG);
    match session.now().filter(|_| is_told) {
        Some(_) if error.state().code().starts_with("XX") => failed(session, error),
        Some(session) => of_session!(info, &session, error, "{}", error.message()),
        None => {}
    }
}

/// Tells of a session that begins.
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

/// Tells of a client that is not let in.
pub(crate) fn refused(peer: &Peer, error: &Error) {
    let address = peer.address.map(tracing::field::display);
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

/// Tells of a statement that took long.
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
    fn what_comes_in_thousands_is_told_once_a_pause() {
        let kind = Rare(Mutex::new(None));
        let begin = Instant::now();
        let told = [0, 1, 999, 1_000, 1_001, 5_000].map(|ms| {
            let now = begin + Duration::from_millis(ms);
            kind.due(now)
        });
        assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
