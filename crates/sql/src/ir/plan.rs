//! Plans of statements.

use super::change::{Delete, Insert, Update};
use super::query::Select;
use serde::{Deserialize, Serialize};

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Plan {
    /// Reads rows.
    Select(Select),
    /// Adds rows.
    Insert(Insert),
    /// Changes rows.
    Update(Update),
    /// Removes rows.
    Delete(Delete),
}
