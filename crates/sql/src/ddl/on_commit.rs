//! ON COMMIT DROP of temporary tables.

use super::definition::Definition;
use super::table::drop_tables;
use crate::catalog::{Catalog, Delta, OnCommit, Temporary};
use crate::ir::ObjectId;
use values::Result;

/// The temporary objects without the tables that are dropped at the end of a transaction, and what
/// depends on them.
///
/// # Errors
/// None that is expected.
pub fn dropped_on_commit(temporary: &Temporary, all: &Catalog, version: u64) -> Result<Temporary> {
    let over = temporary.over(all);
    let is_dropped = |id: &ObjectId| temporary.on_commit().get(id) == Some(&OnCommit::Drop);
    let tables = over.tables().map(|table| &table.relation);
    let names = tables.filter(|own| is_dropped(&own.id)).map(|own| own.name.clone()).collect();
    let mut definition = Definition::new("", Delta::default());
    drop_tables(&over, &names, true, &mut definition)?;
    temporary.with(&definition.delta, None, version)
}
