//! What a server does and shows for queries, beside the catalog and the session.

use super::objects::{OWNER, database_id};
use super::rows::Row;
use super::session::System;
use crate::ir::{ObjectId, SystemFunction};
use std::sync::Arc;
use values::{Datum, Error, Result, Timestamp};

/// What a server does for one run of a query.
pub trait Services: std::fmt::Debug + Send + Sync {
    /// Does what a function says that [has an effect](SystemFunction::has_effect).
    ///
    /// # Errors
    /// What is wrong, or that the query is to be repeated from its beginning.
    fn call(&self, function: SystemFunction, arguments: &[Datum]) -> Result<Datum>;

    /// The advisory locks that sessions have or wait for.
    fn locks(&self) -> Vec<AdvisoryLock>;

    /// The channels that the session listens to.
    fn channels(&self) -> Vec<String>;

    /// What all sessions do.
    fn sessions(&self) -> Vec<SessionActivity>;

    /// How many numbers a sequence has given.
    ///
    /// # Errors
    /// That it cannot be read.
    fn given(&self, sequence: ObjectId) -> Result<u64>;

    /// The names of the server's databases; none if it has one store alone.
    fn databases(&self) -> Vec<String>;
}

/// What a session does, as `pg_stat_activity` shows it.
#[derive(Clone, Debug)]
pub struct SessionActivity {
    /// `pg_backend_pid()`
    pub process: i32,
    /// The user.
    pub user: &'static str,
    /// The database.
    pub database: Arc<str>,
    /// `application_name`
    pub application: String,
    /// Where the client is; `None` of a Unix socket.
    pub address: Option<String>,
    /// PostgreSQL's word for whether it runs or waits for its client.
    pub state: &'static str,
    /// The statement that it runs, or has run last.
    pub text: String,
    /// When the session began.
    pub began: Timestamp,
    /// When its transaction began.
    pub transaction_began: Option<Timestamp>,
    /// When its last statement began.
    pub statement_began: Option<Timestamp>,
    /// When its state changed.
    pub changed: Timestamp,
}

impl SessionActivity {
    /// A row of `pg_stat_activity`; `waits` says that it waits for an advisory lock.
    pub(super) fn row(&self, row: Row, waits: bool) -> Row {
        let at = |time: Option<Timestamp>| time.map_or(Datum::Null, Datum::Timestamptz);
        let waits_for = |what: &str| if waits { Datum::text(what) } else { Datum::Null };
        let unset = ["leader_pid", "backend_xid", "backend_xmin", "query_id", "client_hostname"];
        let row = unset.iter().fold(row, |row, name| row.set(name, Datum::Null));
        let port = if self.address.is_some() { Datum::Null } else { Datum::Int4(-1) };
        row.set("datid", database_id(&self.database))
            .set("datname", &*self.database)
            .set("usename", self.user)
            .set("pid", self.process)
            .set("usesysid", OWNER)
            .set("application_name", self.application.as_str())
            .set("client_addr", self.address.clone().map_or(Datum::Null, Datum::text))
            .set("client_port", port)
            .set("backend_start", at(Some(self.began)))
            .set("xact_start", at(self.transaction_began))
            .set("query_start", at(self.statement_began))
            .set("state_change", at(Some(self.changed)))
            .set("wait_event_type", waits_for("Lock"))
            .set("wait_event", waits_for("advisory"))
            .set("state", self.state)
            .set("query", self.text.as_str())
            .set("backend_type", "client backend")
    }
}

/// The rows of `pg_stat_activity`.
pub(super) fn activity(services: &dyn Services, new: &dyn Fn() -> Row) -> Vec<Row> {
    let locks = services.locks();
    let waits = |process| locks.iter().any(|lock| lock.process == process && lock.since.is_some());
    let row = |one: SessionActivity| one.row(new(), waits(one.process));
    services.sessions().into_iter().map(row).collect()
}

/// An advisory lock of a session, as `pg_locks` shows it.
#[derive(Clone, Copy, Debug)]
pub struct AdvisoryLock {
    /// The columns `classid`, `objid` and `objsubid`.
    pub place: (i32, i32, i16),
    /// `pg_backend_pid()` of the session.
    pub process: i32,
    /// Whether others may share it.
    pub is_shared: bool,
    /// Since when it is waited for; `None` of one that the session has.
    pub since: Option<Timestamp>,
}

impl AdvisoryLock {
    /// PostgreSQL's name of the mode of a lock.
    pub fn mode(is_shared: bool) -> &'static str {
        if is_shared { "ShareLock" } else { "ExclusiveLock" }
    }

    pub(super) fn row(&self, row: Row, database: i32) -> Row {
        let (class, object, part) = self.place;
        let unset = ["relation", "page", "tuple", "transactionid"];
        let row = unset.iter().fold(row, |row, name| row.set(name, Datum::Null));
        row.set("locktype", "advisory")
            .set("database", database)
            .set("classid", class)
            .set("objid", object)
            .set("objsubid", part)
            .set("virtualtransaction", format!("{}/0", self.process))
            .set("pid", self.process)
            .set("mode", AdvisoryLock::mode(self.is_shared))
            .set("granted", self.since.is_none())
            .set("waitstart", self.since.map_or(Datum::Null, Datum::Timestamptz))
    }
}

impl System {
    /// What the server does for the query.
    pub(super) fn services(&self) -> Result<&dyn Services> {
        self.services.as_deref().ok_or_else(|| {
            let message = "advisory locks and pg_sleep are for queries of their own";
            Error::unsupported(message, "Call them before.")
        })
    }

    /// The channels that the session listens to.
    pub(crate) fn channels(&self) -> Result<Vec<String>> {
        Ok(self.services()?.channels())
    }
}
