//! What a query of the system catalog is answered from.

use crate::catalog::Catalog;
use std::sync::Arc;

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
