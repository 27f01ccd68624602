//! Foreign keys while tables are made, changed and dropped.

use super::definition::Definition;
use super::draft::{Draft, free_name, new_index};
use super::temporary::check_key;
use crate::bind::{leading_index, name_of, unique_index, unsupported, written_name};
use crate::catalog::{Catalog, Deferral, Delta, ForeignKey, Table};
use crate::ir::{ColumnNumber, Index, IndexForm, KeyColumn, Name, ObjectId, Referential};
use sqlparser::ast::{
    ConstraintReferenceMatchKind, DeferrableInitial, ForeignKeyConstraint, Ident, ObjectName,
    ReferentialAction,
};
use std::collections::BTreeSet;
use values::{Error, Result, SqlState, Type};

/// A foreign key that waits until all columns are there.
pub(super) struct LaterKey {
    pub(super) name: Option<String>,
    pub(super) columns: Vec<String>,
    pub(super) tree: ForeignKeyConstraint,
}

fn action(action: Option<ReferentialAction>) -> Referential {
    match action {
        None | Some(ReferentialAction::NoAction) => Referential::NoAction,
        Some(ReferentialAction::Restrict) => Referential::Restrict,
        Some(ReferentialAction::Cascade) => Referential::Cascade,
        Some(ReferentialAction::SetNull) => Referential::SetNull,
        Some(ReferentialAction::SetDefault) => Referential::SetDefault,
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_FOREIGN_KEY, message)
}

impl Draft<'_> {
    /// Makes the foreign keys, now that all columns are there; returns indexes that came for them.
    pub(super) fn bind_keys(&mut self) -> Result<()> {
        for later in std::mem::take(&mut self.later_keys) {
            let key = self.foreign_key(later)?;
            self.index_for(&key);
            self.delta.put_foreign_key(&key);
            self.keys.push(key);
        }
        Ok(())
    }

    fn foreign_key(&mut self, later: LaterKey) -> Result<ForeignKey> {
        let LaterKey { name, columns, tree } = later;
        if tree.index_name.is_some() {
            return Err(unsupported("the index of a constraint"));
        }
        let is_full = matches!(tree.match_kind, Some(ConstraintReferenceMatchKind::Full));
        if is_full && columns.len() > 1 || partial(&tree) {
            return Err(unsupported("MATCH FULL of several columns, or MATCH PARTIAL"));
        }
        let characteristics = tree.characteristics.as_ref();
        if characteristics.is_some_and(|each| each.enforced == Some(false)) {
            return Err(unsupported("NOT ENFORCED"));
        }
        let own = self.table.relation.name.clone();
        let (parent_name, parent) = self.parent(&tree.foreign_table)?;
        let is_deferrable = characteristics.is_some_and(|each| {
            each.deferrable == Some(true) || each.initially == Some(DeferrableInitial::Deferred)
        });
        check_key(&own, &parent_name, is_deferrable)?;
        let names = columns.join("_");
        let columns = numbers(&self.table, &columns)?;
        check_generated(&self.table, &columns, &tree)?;
        let referred = referred(&parent, &tree.referred_columns)?;
        if columns.len() != referred.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(wrong(message));
        }
        if unique_index(&parent.relation, &referred).is_none() {
            return Err(wrong(format!(
                "there is no unique constraint matching given keys for referenced table \
                 \"{parent_name}\""
            )));
        }
        let name = self.constraint_name(name, &format!("{own}_{names}_fkey"))?;
        check_types(&name, &self.table, &columns, &parent, &referred)?;
        let deferral = match characteristics {
            Some(each) if each.initially == Some(DeferrableInitial::Deferred) => Deferral::Deferred,
            Some(each) if each.deferrable == Some(true) => Deferral::Deferrable,
            _ => Deferral::No,
        };
        Ok(ForeignKey {
            id: self.new_id(),
            name,
            child: own,
            columns,
            parent: parent_name,
            referred,
            on_delete: action(tree.on_delete),
            on_update: action(tree.on_update),
            deferral,
        })
    }

    /// The table that a foreign key refers to, perhaps the one that is made.
    fn parent(&self, name: &ObjectName) -> Result<(Name, Table)> {
        let (written, own) = (written_name(name)?, &self.table.relation.name);
        let found = self.catalog.relation(&written)?;
        // The table that is made is not in the catalog yet.
        let in_own = self.catalog.new_name(&written).is_ok_and(|name| name == *own);
        if found == *own || in_own {
            return Ok((own.clone(), self.table.clone()));
        }
        let table = self.catalog.table(&found).ok_or_else(|| written.missing())?;
        Ok((found, Table::clone(table)))
    }

    /// The name of a constraint, which no other one of the table has.
    fn constraint_name(&mut self, stated: Option<String>, wanted: &str) -> Result<String> {
        let own = &self.table.relation.name;
        let taken = self.constraint_names();
        match stated {
            Some(name) if taken.contains(&name) => {
                let message =
                    format!("constraint \"{name}\" for relation \"{own}\" already exists");
                Err(Error::new(SqlState::DUPLICATE_OBJECT, message))
            }
            Some(name) => Ok(name),
            None => Ok(free_name(wanted, |name| taken.contains(name))),
        }
    }

    /// Foreign keys of before keep an index, where the one that they had has gone.
    pub(super) fn keep_key_indexes(&mut self, old: &Table) {
        let catalog = self.catalog;
        for key in catalog.foreign_keys().filter(|key| key.child == old.relation.name) {
            if !self.delta.drops_foreign_key(key.id) {
                self.index_for(key);
            }
        }
    }

    /// Children of a parent are found by an index, which is made if there is none.
    fn index_for(&mut self, key: &ForeignKey) {
        if leading_index(&self.table.relation, &key.columns).is_some() {
            return;
        }
        let id = self.new_id();
        let index = hidden_index(&self.table, id, key);
        self.table.relation.indexes.push(index);
    }
}

/// Refuses actions that would write to generated columns.
fn check_generated(
    table: &Table,
    columns: &[ColumnNumber],
    tree: &ForeignKeyConstraint,
) -> Result<()> {
    let is_generated =
        |column: &ColumnNumber| table.relation.columns[usize::from(*column)].generated().is_some();
    if !columns.iter().any(is_generated) {
        return Ok(());
    }
    let (on_delete, on_update) = (action(tree.on_delete), action(tree.on_update));
    let sets = |action| matches!(action, Referential::SetNull | Referential::SetDefault);
    let event = match () {
        () if on_update.writes() => "UPDATE",
        () if sets(on_delete) => "DELETE",
        () => return Ok(()),
    };
    Err(Error::new(
        SqlState::SYNTAX_ERROR,
        format!("invalid ON {event} action for foreign key constraint containing generated column"),
    ))
}

/// The index by which a foreign key finds children where no other one does.
pub(super) fn hidden_index(table: &Table, id: ObjectId, key: &ForeignKey) -> Index {
    let column = |column: &ColumnNumber| KeyColumn {
        column: *column,
        descending: false,
        nulls_first: false,
    };
    let columns: Vec<KeyColumn> = key.columns.iter().map(column).collect();
    new_index(table, id, hidden_name(key), IndexForm::OfKey, columns)
}

/// What EXPLAIN calls the index of a foreign key.
pub(super) fn hidden_name(key: &ForeignKey) -> String {
    format!("{}_idx", key.name)
}

/// Drops the indexes of foreign keys that have gone, or find children by other ones now.
pub(super) fn drop_spare(catalog: &Catalog, definition: &mut Definition) -> Result<()> {
    let has_hidden = |catalog: &Catalog| {
        let mut all = catalog.tables().flat_map(|table| &table.relation.indexes);
        all.any(Index::is_hidden)
    };
    if definition.delta.is_empty() || !has_hidden(catalog) {
        return Ok(());
    }
    let next = catalog.with(&definition.delta)?;
    for table in next.tables() {
        let mut kept = Table::clone(table);
        let hidden = table.relation.indexes.iter().filter(|index| index.is_hidden());
        for index in hidden {
            let at = kept.relation.indexes.iter().position(|own| own.id == index.id);
            let Some(at) = at else { continue };
            let own = kept.relation.indexes.remove(at);
            let name = &kept.relation.name;
            let mut keys = next.foreign_keys().filter(|key| key.child == *name);
            if keys.any(|key| leading_index(&kept.relation, &key.columns).is_none()) {
                kept.relation.indexes.insert(at, own);
            } else {
                definition.delta.clear(own.space, own.id);
            }
        }
        if kept.relation.indexes.len() < table.relation.indexes.len() {
            definition.delta.put_table(&kept);
        }
    }
    Ok(())
}

fn partial(tree: &ForeignKeyConstraint) -> bool {
    matches!(tree.match_kind, Some(ConstraintReferenceMatchKind::Partial))
}

fn numbers(table: &Table, names: &[String]) -> Result<Vec<ColumnNumber>> {
    let mut numbers = Vec::new();
    for name in names {
        let number = table.column(name).ok_or_else(|| {
            let message =
                format!("column \"{name}\" referenced in foreign key constraint does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        if numbers.contains(&number) {
            return Err(unsupported("a column that is twice in a foreign key"));
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// The columns that are named, or those of the primary key.
fn referred(parent: &Table, names: &[Ident]) -> Result<Vec<ColumnNumber>> {
    if !names.is_empty() {
        return numbers(parent, &names.iter().map(name_of).collect::<Vec<_>>());
    }
    let relation = &parent.relation;
    let columns: Vec<ColumnNumber> = relation.primary.iter().map(|each| each.column).collect();
    if columns.iter().any(|column| relation.columns[usize::from(*column)].is_hidden()) {
        let message = format!("there is no primary key for referenced table \"{}\"", relation.name);
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    }
    Ok(columns)
}

/// Values of both sides must be comparable without loss.
fn check_types(
    name: &str,
    child: &Table,
    columns: &[ColumnNumber],
    parent: &Table,
    referred: &[ColumnNumber],
) -> Result<()> {
    for (column, other) in columns.iter().zip(referred) {
        let own = &child.relation.columns[usize::from(*column)];
        let other = &parent.relation.columns[usize::from(*other)];
        let (from, to): (Type, Type) = (own.kind.ty, other.kind.ty);
        let is_text = |ty: Type| ty == Type::Text || ty == Type::Varchar;
        let same =
            from == to || (from.is_integer() && to.is_integer()) || (is_text(from) && is_text(to));
        if !same {
            let message = format!("foreign key constraint \"{name}\" cannot be implemented");
            let detail = format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                other.name,
                from.name(),
                to.name()
            );
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail));
        }
        if !from.may_be_key() {
            return Err(unsupported("a foreign key of this type"));
        }
    }
    Ok(())
}

/// What DROP TABLE does with the foreign keys of the tables and those that refer to them.
pub(super) fn drop_keys(
    catalog: &Catalog,
    tables: &BTreeSet<Name>,
    cascade: bool,
    definition: &mut Definition,
) -> Result<()> {
    let mut depending = Vec::new();
    for key in catalog.foreign_keys() {
        if tables.contains(&key.child) {
            definition.delta.drop_foreign_key(key.id);
        } else if tables.contains(&key.parent) {
            definition.delta.drop_foreign_key(key.id);
            depending.push(key);
        }
    }
    if depending.is_empty() {
        return Ok(());
    }
    let shown = |key: &ForeignKey| {
        format!("constraint {} on table {}", key.name, catalog.shown(&key.child))
    };
    if cascade {
        definition.notice = Some(match &depending[..] {
            [one] => format!("drop cascades to {}", shown(one)),
            several => format!("drop cascades to {} other objects", several.len()),
        });
        return Ok(());
    }
    let lines = depending
        .iter()
        .map(|key| format!("{} depends on table {}", shown(key), catalog.shown(&key.parent)));
    let message = match tables.len() {
        1 => format!(
            "cannot drop table {} because other objects depend on it",
            tables.first().map(|name| catalog.shown(name)).unwrap_or_default()
        ),
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    Err(dependent(message, lines.collect()))
}

fn dependent(message: String, lines: Vec<String>) -> Error {
    Error::new(SqlState::DEPENDENT_OBJECTS, message)
        .with_detail(lines.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// An index that is dropped, by which foreign keys may look parents up.
pub(super) struct Needed<'a> {
    /// What the statement drops, in words.
    pub(super) what: String,
    /// The name of the index.
    pub(super) index: &'a str,
}

/// Drops the foreign keys that look parents up by an index, or refuses to drop it; `next` is the
/// table without the index. Returns a notice for the client.
pub(super) fn drop_needing(
    catalog: &Catalog,
    next: &Table,
    needed: &Needed<'_>,
    cascade: bool,
    delta: &mut Delta,
) -> Result<Option<String>> {
    let Needed { what, index: name } = needed;
    let relation = &next.relation;
    let needs = |key: &&std::sync::Arc<ForeignKey>| {
        let is_parent = key.parent == relation.name && !delta.drops_foreign_key(key.id);
        is_parent && unique_index(relation, &key.referred).is_none()
    };
    let needing: Vec<_> = catalog.foreign_keys().filter(needs).collect();
    let shown = |key: &ForeignKey| {
        format!("constraint {} on table {}", key.name, catalog.shown(&key.child))
    };
    if !cascade && !needing.is_empty() {
        let message = format!("cannot drop {what} because other objects depend on it");
        let lines = needing.iter().map(|key| format!("{} depends on index {name}", shown(key)));
        return Err(dependent(message, lines.collect()));
    }
    for key in &needing {
        delta.drop_foreign_key(key.id);
    }
    Ok(match &needing[..] {
        [] => None,
        [one] => Some(format!("drop cascades to {}", shown(one))),
        several => Some(format!("drop cascades to {} other objects", several.len())),
    })
}

/// TRUNCATE ... CASCADE: adds the tables that refer to these; what the client is told.
pub(super) fn add_children(catalog: &Catalog, tables: &mut Vec<Name>) -> Option<String> {
    let mut notices = Vec::new();
    let mut at = 0;
    while let Some(parent) = tables.get(at).cloned() {
        for key in catalog.foreign_keys().filter(|key| key.parent == parent) {
            if !tables.contains(&key.child) {
                notices.push(format!("truncate cascades to table \"{}\"", key.child));
                tables.push(key.child.clone());
            }
        }
        at += 1;
    }
    (!notices.is_empty()).then(|| notices.join("\n"))
}

/// Tables that others refer to are truncated with them only.
pub(super) fn refuse_truncate(catalog: &Catalog, tables: &BTreeSet<Name>) -> Result<()> {
    let left = |key: &&std::sync::Arc<ForeignKey>| {
        tables.contains(&key.parent) && !tables.contains(&key.child)
    };
    match catalog.foreign_keys().find(left) {
        None => Ok(()),
        Some(key) => {
            let message = "cannot truncate a table referenced in a foreign key constraint";
            Err(Error::unsupported(
                message,
                &format!(
                    "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                    key.child
                ),
            )
            .with_detail(format!("Table \"{}\" references \"{}\".", key.child, key.parent)))
        }
    }
}

/// Drops a foreign key of a table by its name, if there is one.
pub(super) fn drop_key(catalog: &Catalog, table: &Name, name: &str, delta: &mut Delta) -> bool {
    let found = catalog.foreign_keys().find(|key| key.child == *table && key.name == name);
    if let Some(key) = found {
        delta.drop_foreign_key(key.id);
    }
    found.is_some()
}

/// What DROP COLUMN does with foreign keys: those of the column go with it.
pub(super) fn drop_keys_of_column(
    draft: &mut Draft<'_>,
    column: ColumnNumber,
    cascade: bool,
) -> Result<()> {
    let Draft { catalog, delta, table, .. } = draft;
    let (table, name) = (&table.relation.name, &table.relation.columns[usize::from(column)].name);
    let mut lines = Vec::new();
    for key in catalog.foreign_keys() {
        if key.parent == *table && key.referred.contains(&column) {
            let shown = format!("constraint {} on table {}", key.name, key.child);
            lines.push(format!("{shown} depends on column {name} of table {table}"));
            delta.drop_foreign_key(key.id);
        } else if key.child == *table && key.columns.contains(&column) {
            delta.drop_foreign_key(key.id);
        }
    }
    if lines.is_empty() || cascade {
        return Ok(());
    }
    let message =
        format!("cannot drop column {name} of table {table} because other objects depend on it");
    Err(dependent(message, lines))
}

/// Foreign keys name their tables.
pub(super) fn rename_in_keys(catalog: &Catalog, old: &Name, new: &Name, delta: &mut Delta) {
    for key in catalog.foreign_keys() {
        if key.child != *old && key.parent != *old {
            continue;
        }
        let mut key = ForeignKey::clone(key);
        for name in [&mut key.child, &mut key.parent] {
            if *name == *old {
                name.clone_from(new);
            }
        }
        delta.put_foreign_key(&key);
    }
}
