//! SET SCHEMA: moves a relation with its indexes and owned sequences into another schema.

use super::definition::{Definition, already_there, move_target};
use super::foreign::rename_in_keys;
use super::views::rename_in_users;
use crate::bind::written_name;
use crate::catalog::{Catalog, Delta, Sequence, Table, View};
use crate::ir::{Name, SchemaId};
use crate::parse::{MovedKind, SetSchema};
use values::{Error, Result, SqlState};

/// ALTER TABLE, VIEW or SEQUENCE ... SET SCHEMA
pub(super) fn set_schema(catalog: &Catalog, tree: &SetSchema) -> Result<Definition> {
    let mut definition = Definition::new(tree.kind.command(), Delta::default());
    let written = written_name(&tree.name)?;
    let Some(own) = definition.altered(catalog, &written, tree.if_exists)? else {
        return Ok(definition);
    };
    let moving = Moving { catalog, schema: move_target(catalog, &tree.schema)? };
    if moving.schema == own.schema {
        return Ok(definition);
    }
    if [moving.schema, own.schema].contains(&SchemaId::TEMPORARY) {
        let message = "cannot move objects into or out of temporary schemas";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let wrong =
        |kind: &str| Err(Error::new(SqlState::WRONG_OBJECT, format!("\"{own}\" is not {kind}")));
    let delta = &mut definition.delta;
    match (catalog.table(&own), catalog.view(&own), catalog.sequence(&own), tree.kind) {
        (Some(table), _, _, MovedKind::Table) => moving.table(table, delta)?,
        (_, Some(view), _, MovedKind::Table | MovedKind::View) => moving.view(view, delta)?,
        (_, _, Some(sequence), MovedKind::Table | MovedKind::Sequence) => {
            moving.sequence(sequence, delta)?;
        }
        (_, _, _, MovedKind::View) => return wrong("a view"),
        (_, _, _, MovedKind::Sequence) => return wrong("a sequence"),
        (_, _, _, MovedKind::Table) => return wrong("a table, view, or sequence"),
    }
    Ok(definition)
}

/// The target of a move.
struct Moving<'c> {
    catalog: &'c Catalog,
    schema: SchemaId,
}

impl Moving<'_> {
    /// Returns the name in the target schema.
    ///
    /// # Errors
    /// The target schema has a relation of this name.
    fn name(&self, own: &str) -> Result<Name> {
        let name = Name::new(self.schema, own);
        match self.catalog.is_named(&name) {
            true => Err(already_there("relation", &name, self.catalog)),
            false => Ok(name),
        }
    }

    fn table(&self, table: &Table, delta: &mut Delta) -> Result<()> {
        let mut next = table.clone();
        let old = &table.relation.name;
        next.relation.name = self.name(old)?;
        if !table.relation.has_hidden_key() {
            self.name(&table.relation.primary_name)?;
        }
        for index in table.relation.indexes.iter().filter(|index| !index.is_hidden()) {
            self.name(&index.name)?;
        }
        for (column, info) in table.relation.columns.iter().zip(&table.columns) {
            let owned = info.sequence.and_then(|id| self.catalog.sequence_by_id(id));
            let Some(sequence) = owned else { continue };
            let name = match column.is_hidden() {
                true => Name::new(self.schema, &*sequence.name),
                false => self.name(&sequence.name)?,
            };
            delta.put_sequence(&Sequence { name, ..Sequence::clone(sequence) });
        }
        rename_in_keys(self.catalog, old, &next.relation.name, delta);
        rename_in_users(self.catalog, old, &next.relation.name, delta)?;
        delta.put_table(&next);
        Ok(())
    }

    fn view(&self, view: &View, delta: &mut Delta) -> Result<()> {
        let name = self.name(&view.name)?;
        rename_in_users(self.catalog, &view.name, &name, delta)?;
        delta.put_view(&View { name, ..view.clone() });
        Ok(())
    }

    fn sequence(&self, sequence: &Sequence, delta: &mut Delta) -> Result<()> {
        let owns =
            |table: &Table| table.columns.iter().any(|info| info.sequence == Some(sequence.id));
        if let Some(table) = self.catalog.tables().find(|table| owns(table)) {
            let message = "cannot move an owned sequence into another schema";
            let (own, table) = (&sequence.name, &table.relation.name);
            let detail = format!("Sequence \"{own}\" is linked to table \"{table}\".");
            return Err(Error::unsupported(message, "").with_detail(detail));
        }
        let name = self.name(&sequence.name)?;
        delta.put_sequence(&Sequence { name, ..sequence.clone() });
        Ok(())
    }
}
