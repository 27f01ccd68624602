//! What a session does, as others see it.

use crate::config::NAME;
use crate::log;
use sql::system::SessionActivity;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use values::Timestamp;

/// How much of a text others see.
const TEXT_BYTES_MAX: usize = 1_023;
/// The state of a session whose statement runs.
const ACTIVE: &str = "active";

/// What others see of a session.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    shown: Mutex<Option<SessionActivity>>,
    /// The duration from which on a statement is logged.
    slow: OnceLock<Duration>,
}

impl Activity {
    fn shown(&self) -> MutexGuard<'_, Option<SessionActivity>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session begins.
    pub(crate) fn begin(
        &self,
        process: i32,
        database: Arc<str>,
        address: Option<IpAddr>,
        now: Timestamp,
    ) {
        *self.shown() = Some(SessionActivity {
            process,
            user: NAME,
            database,
            application: String::new(),
            address: address.map(|address| address.to_string()),
            state: "idle",
            text: String::new(),
            began: now,
            transaction_began: None,
            statement_began: None,
            changed: now,
        });
    }

    /// Logs statements that take `slow` or longer.
    pub(crate) fn log_slow(&self, slow: Option<Duration>) {
        if let Some(slow) = slow {
            self.slow.get_or_init(|| slow);
        }
    }

    /// Logs the statement that has run if it was slow.
    fn has_run(&self, shown: &SessionActivity, now: Timestamp) {
        let (Some(slow), Some(began)) = (self.slow.get(), shown.statement_began) else { return };
        let took = now.bits().saturating_sub(began.bits());
        let took = Duration::from_micros(u64::try_from(took).unwrap_or(0));
        if shown.state == ACTIVE && took >= *slow {
            log::slow(shown, took);
        }
    }

    fn change(&self, change: impl FnOnce(&mut SessionActivity)) {
        if let Some(shown) = &mut *self.shown() {
            change(shown);
        }
    }

    /// The client calls itself so.
    pub(crate) fn is_called(&self, application: &str) {
        self.change(|shown| application.clone_into(&mut shown.application));
    }

    /// A statement with this text begins.
    pub(crate) fn runs(&self, text: &str, now: Timestamp) {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        self.change(|shown| {
            // The one before it in the same text or pipeline.
            self.has_run(shown, now);
            text[..end].clone_into(&mut shown.text);
            shown.state = ACTIVE;
            (shown.statement_began, shown.changed) = (Some(now), now);
            shown.transaction_began.get_or_insert(now);
        });
    }

    /// The session waits for its client: outside of a block (`I`), in one (`T`), or in one that has
    /// failed (`E`).
    pub(crate) fn waits(&self, standing: u8, now: Timestamp) {
        self.change(|shown| {
            self.has_run(shown, now);
            shown.state = match standing {
                b'T' => "idle in transaction",
                b'E' => "idle in transaction (aborted)",
                _ => "idle",
            };
            shown.changed = now;
            if standing == b'I' {
                shown.transaction_began = None;
            }
        });
    }

    /// What others see now.
    pub(crate) fn now(&self) -> Option<SessionActivity> {
        self.shown().clone()
    }
}
