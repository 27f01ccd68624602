//! What NOWAIT says of what others have.

use super::super::shared::Shared;
use super::table::Target;
use values::{Error, SqlState};

/// The error of a statement that does not wait for what others have.
pub(in super::super) fn refused(shared: &Shared, target: &Target) -> Error {
    let catalog = shared.catalog();
    let is_it = |id| target.relation() == Some(id);
    let table = catalog.tables().find(|table| is_it(table.relation.id));
    let name = table.map_or("", |table| &table.relation.name);
    let what = match target {
        Target::Relation(_) => "relation",
        Target::Row(_) => "row in relation",
    };
    Error::new(SqlState::LOCK_NOT_AVAILABLE, format!("could not obtain lock on {what} \"{name}\""))
}
