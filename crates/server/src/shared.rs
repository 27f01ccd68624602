//! What connections have in common, and what is known of each from its socket.

use crate::auth::{Failures, Verifier};
use crate::cancel::{Requests, Sessions};
use crate::config::ServerOptions;
use crate::databases::Databases;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What all connections have in common.
pub(crate) struct Shared {
    pub(crate) databases: Databases,
    pub(crate) sessions: Arc<Sessions>,
    /// That of the password, if there is one.
    pub(crate) verifier: Option<Verifier>,
    pub(crate) failures: Failures,
    /// The `statement_timeout` of sessions that set none, in milliseconds.
    pub(crate) statement_timeout: Option<u128>,
    /// The duration from which on a statement is logged.
    pub(crate) log_min_duration: Option<Duration>,
    stop: watch::Receiver<bool>,
}

impl Shared {
    pub(crate) fn new(
        databases: Databases,
        verifier: Option<Verifier>,
        options: &ServerOptions,
        stop: watch::Receiver<bool>,
    ) -> Shared {
        let sessions = Arc::<Sessions>::default();
        databases.serve(&sessions);
        let failures = Failures::default();
        let statement_timeout = options.statement_timeout.map(|time| time.as_millis().max(1));
        let log_min_duration = options.log_min_duration;
        Shared {
            databases,
            sessions,
            verifier,
            failures,
            statement_timeout,
            log_min_duration,
            stop,
        }
    }

    /// Waits until the server stops, or another session ends this one.
    pub(crate) async fn ended(&self, requests: &Requests) {
        tokio::select! {
            () = self.stopped() => {}
            () = requests.terminated() => {}
        }
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(&self) {
        // An error says that the server has ended, which is the same.
        let _ = self.stop.clone().wait_for(|stops| *stops).await;
    }
}

/// What is known of a client from its connection.
pub(crate) struct Peer {
    /// `None` of a Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// Whether there are fewer connections than may be.
    pub(crate) has_room: bool,
}
