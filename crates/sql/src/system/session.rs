//! What a query of the system catalog is answered from.

use crate::catalog::Catalog;
use crate::ir::SystemFunction;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

/// The user and the database that there are.
pub const NAME: &str = "nvcaracal";
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
}

/// The catalog that a query was planned with, and its session.
#[derive(Clone, Debug)]
pub struct System {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The session.
    pub session: Arc<Session>,
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
