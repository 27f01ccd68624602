//! What a run needs beside rows, and what it answers.

use crate::ir::{Main, Plan};
use crate::memory::Grant;
use crate::system::System;
use std::sync::Arc;
use values::{Datum, Error, SqlState, Timestamp, Zone};

/// What comes from outside of the statement: from the call, never from a clock.
#[derive(Clone, Debug)]
pub struct Context {
    /// The parameters, of the types that the plan was made for.
    pub parameters: Vec<Datum>,
    /// `now()`
    pub now: Timestamp,
    /// The session's zone.
    pub zone: Zone,
    /// What a statement may take.
    pub limits: Limits,
    /// The system catalog and the session; none in calls, as a replay knows neither.
    pub system: Option<Arc<System>>,
    /// Where its memory comes from; none in calls, whose answer is the same whatever others do.
    pub grant: Option<Arc<Grant>>,
}

/// What a statement may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of rows that it collects to sort, group, change or answer.
    pub memory_bytes_max: usize,
    /// Rows that a definition writes, or makes entries of.
    pub filled_rows_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes_max: 64 << 20, filled_rows_max: 100_000 }
    }
}

impl Context {
    /// A context without parameters, at a time, in UTC.
    pub fn at(now: Timestamp) -> Context {
        Context {
            parameters: Vec::new(),
            now,
            zone: Zone::utc(),
            limits: Limits::default(),
            system: None,
            grant: None,
        }
    }
}

/// What a statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Rows of a query.
    Select(u64),
    /// Rows added, or changed by ON CONFLICT.
    Insert(u64),
    /// Rows changed.
    Update(u64),
    /// Rows removed.
    Delete(u64),
    /// Rows that COPY added.
    Copy(u64),
    /// Rows that MERGE added, changed or removed.
    Merge(u64),
}

impl Tag {
    /// The tag of a plan that answers no rows: the kind is the statement's, the count 0.
    pub fn of_none(plan: &Plan) -> Tag {
        let of_main = |main: &Main| match main {
            Main::Query(_) => Tag::Select(0),
            Main::Insert(_) => Tag::Insert(0),
            Main::Update(_) => Tag::Update(0),
            Main::Delete(_) => Tag::Delete(0),
            Main::Change(change) if change.assignments.is_some() => Tag::Update(0),
            Main::Change(_) => Tag::Delete(0),
        };
        match plan {
            Plan::Select(_) => Tag::Select(0),
            Plan::Insert(_) => Tag::Insert(0),
            Plan::Update(_) => Tag::Update(0),
            Plan::Delete(_) => Tag::Delete(0),
            Plan::Composed(plan) => of_main(&plan.main),
            Plan::Guarded(guarded) => Tag::of_none(&guarded.plan),
            Plan::Merge(_) => Tag::Merge(0),
            Plan::Writing(plan) => plan.last().map_or(Tag::Select(0), of_main),
        }
    }
}

impl Tag {
    /// The number of rows.
    pub fn count(self) -> u64 {
        match self {
            Tag::Select(count)
            | Tag::Insert(count)
            | Tag::Update(count)
            | Tag::Delete(count)
            | Tag::Copy(count)
            | Tag::Merge(count) => count,
        }
    }
}

impl std::fmt::Display for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tag::Select(count) => write!(f, "SELECT {count}"),
            Tag::Insert(count) => write!(f, "INSERT 0 {count}"),
            Tag::Update(count) => write!(f, "UPDATE {count}"),
            Tag::Delete(count) => write!(f, "DELETE {count}"),
            Tag::Copy(count) => write!(f, "COPY {count}"),
            Tag::Merge(count) => write!(f, "MERGE {count}"),
        }
    }
}

/// The answer to a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was done.
    pub tag: Tag,
    /// The rows of a query or of RETURNING.
    pub rows: Vec<Vec<Datum>>,
}

/// The error of a plan that no binder makes.
pub(super) fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan is malformed")
}
