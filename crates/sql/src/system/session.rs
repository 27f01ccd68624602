//! What a query of the system catalog is answered from.

use super::relations::Known;
use super::rows::{Row, array};
use super::services::Services;
use crate::catalog::Catalog;
pub use crate::catalog::NAME;
use crate::ir::SystemFunction;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Timestamp, Type};

/// The version of PostgreSQL that clients are told: what they do depends on it.
pub const SERVER_VERSION: &str = "15.0";

/// `version()`
pub fn version() -> String {
    format!("PostgreSQL {SERVER_VERSION} (NVCaracal {})", env!("CARGO_PKG_VERSION"))
}

/// What a session shows of itself.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// `pg_backend_pid()`
    pub process: i32,
    /// Settings with their values, by name.
    pub settings: Vec<(String, String)>,
    /// Its prepared statements.
    pub prepared: Vec<PreparedStatement>,
    /// The cursors that it has declared.
    pub cursors: Vec<OpenCursor>,
}

/// A prepared statement, as `pg_prepared_statements` shows it.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    /// Its name.
    pub name: String,
    /// The text that it came with.
    pub text: Arc<str>,
    /// When it was prepared.
    pub at: Timestamp,
    /// The types of its parameters.
    pub parameters: Vec<Type>,
    /// Whether PREPARE made it, and no message of the protocol.
    pub is_sql: bool,
}

/// A cursor, as `pg_cursors` shows it.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    /// Its name.
    pub name: String,
    /// The text that declared it.
    pub text: Arc<str>,
    /// When it was declared.
    pub at: Timestamp,
    /// Whether it is WITH HOLD.
    pub is_held: bool,
    /// Whether it can go back.
    pub is_scrollable: bool,
    /// Whether it is BINARY.
    pub is_binary: bool,
}

/// The rows of a relation that is about the session alone; `None` of any other one.
pub(super) fn rows(session: &Session, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let types = |all: &[Type]| {
        // PostgreSQL has an array of `regtype`, which is shown as names, too.
        let names = all.iter().map(|ty| Datum::text(ty.name()));
        array(Type::Text, names)
    };
    let prepared = |one: &PreparedStatement| {
        Row::of(relation)
            .set("name", one.name.as_str())
            .set("statement", &*one.text)
            .set("prepare_time", Datum::Timestamptz(one.at))
            .set("parameter_types", types(&one.parameters))
            .set("from_sql", one.is_sql)
            // All plans are made for values that are not known.
            .set("generic_plans", 0_i64)
            .set("custom_plans", 0_i64)
    };
    let cursor = |one: &OpenCursor| {
        Row::of(relation)
            .set("name", one.name.as_str())
            .set("statement", &*one.text)
            .set("creation_time", Datum::Timestamptz(one.at))
            .set("is_holdable", one.is_held)
            .set("is_scrollable", one.is_scrollable)
            .set("is_binary", one.is_binary)
    };
    Some(match own {
        "pg_prepared_statements" => session.prepared.iter().map(prepared).collect(),
        "pg_cursors" => session.cursors.iter().map(cursor).collect(),
        _ => return None,
    })
}

/// The catalog that a query was planned with, and its session.
#[derive(Clone, Debug)]
pub struct System {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The session.
    pub session: Arc<Session>,
    /// What the server does for it; `None` of a definition.
    pub services: Option<Arc<dyn Services>>,
}

/// What functions of the session are computed from while a statement is planned.
#[derive(Clone, Debug)]
pub struct SessionValues {
    /// The session.
    pub session: Arc<Session>,
    /// The values of the statement's parameters.
    pub parameters: Vec<Datum>,
}

impl Session {
    /// The value of a function of the session; `None` of a function that asks for anything else.
    pub(crate) fn value(
        &self,
        function: SystemFunction,
        arguments: &[Datum],
    ) -> Result<Option<Datum>> {
        match (function, arguments) {
            (SystemFunction::ProcessId, []) => Ok(Some(Datum::Int4(self.process))),
            (SystemFunction::CurrentSetting, all) if all.iter().any(Datum::is_null) => {
                Ok(Some(Datum::Null))
            }
            (SystemFunction::CurrentSetting, [Datum::Text(name), rest @ ..]) => {
                self.setting(name, rest.first()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The value of a setting; NULL of one that there is not, if `missing_ok` is true.
    pub(super) fn setting(&self, name: &str, missing_ok: Option<&Datum>) -> Result<Datum> {
        let found = self.settings.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        match found {
            Some((_, value)) => Ok(Datum::text(value.as_str())),
            None if matches!(missing_ok, Some(Datum::Bool(true))) => Ok(Datum::Null),
            None => {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
            }
        }
    }
}
