//! Tables.

use super::definition::{Definition, refuse_name_of_type};
use super::door::{check_table, check_truncate};
use super::draft::{Draft, entry_space};
use super::foreign::{add_children, drop_keys, refuse_truncate};
use super::relation_kind::RelationKind;
use super::sequences::{DependentDefaults, replace};
use super::temporary::name_of_new;
use super::views::{drop_dependents, refuse_view};
use crate::bind::written_name;
use crate::catalog::{Catalog, Delta, RowSecurity, Sequence, Table, Written};
use crate::ir::{Name, ObjectId, Relation, SchemaId, Space};
use crate::parse::{Like, Statement};
use crate::run::{Context, space_for};
use sqlparser::ast::{
    CascadeOption, CreateTable, ObjectName, Spanned, Truncate, TruncateIdentityOption,
    TruncateTableTarget,
};
use std::collections::{BTreeMap, BTreeSet};
use values::row::COLUMNS_MAX;
use values::{Error, Result, SqlState, Type};

pub(super) fn create(
    catalog: &Catalog,
    statement: &Statement,
    tree: &CreateTable,
    context: &Context,
) -> Result<Definition> {
    const TAG: &str = "CREATE TABLE";
    check_table(tree)?;
    let own = name_of_new(catalog, &tree.name, tree.temporary).map_err(|error| {
        let place = || statement.lines.position(tree.name.span().start);
        let states = [SqlState::UNDEFINED_SCHEMA, SqlState::INVALID_TABLE_DEFINITION];
        let is_of_schema = states.contains(&error.state());
        if is_of_schema { error.at(place()) } else { error }
    })?;
    if tree.on_commit.is_some() && own.schema != SchemaId::TEMPORARY {
        return Err(on_commit_of_other());
    }
    if catalog.is_named(&own) {
        return Definition::existing(TAG, &own, tree.if_not_exists);
    }
    refuse_name_of_type(catalog, &own)?;
    if tree.columns.len() >= COLUMNS_MAX {
        return Err(too_many_columns());
    }
    let mut draft = new_draft(catalog, statement, context, own);
    let mut likes = Vec::new();
    for column in &tree.columns {
        match Like::of(column) {
            Some(like) => likes.extend(draft.add_like(&like)?),
            None => draft.add_column(column)?,
        }
    }
    if draft.table.relation.columns.len() >= COLUMNS_MAX {
        return Err(too_many_columns());
    }
    for constraint in &tree.constraints {
        draft.add_constraint(constraint)?;
    }
    draft.bind_like(likes)?;
    draft.bind_checks()?;
    draft.hide_key();
    draft.bind_keys()?;
    choose_spaces(&mut draft.table);
    draft.delta.put_table(&draft.table);
    let next_id = draft.next_id;
    let indexes = draft.table.relation.indexes.iter();
    assert!(indexes.map(|index| index.id).all(|id| id < next_id), "an id is of one object");
    draft.delta.set_next_id(next_id);
    Ok(Definition::new(TAG, draft.delta))
}

/// The error of ON COMMIT of a table that is not temporary.
pub(super) fn on_commit_of_other() -> Error {
    let message = "ON COMMIT can only be used on temporary tables";
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

fn too_many_columns() -> Error {
    let message = format!("tables can have at most {} columns", COLUMNS_MAX - 1);
    Error::new(SqlState::TOO_MANY_COLUMNS, message)
}

/// A table without columns.
pub(super) fn new_draft<'a>(
    catalog: &'a Catalog,
    statement: &'a Statement,
    context: &'a Context,
    name: Name,
) -> Draft<'a> {
    let relation = Relation {
        id: catalog.next_id(),
        name: name.clone(),
        space: Space::Row256,
        columns: Vec::new(),
        primary_name: String::new(),
        primary: Vec::new(),
        indexes: Vec::new(),
        checks: Vec::new(),
    };
    let table = Table { relation, columns: Vec::new(), row_security: RowSecurity::default() };
    Draft {
        next_id: catalog.next_id().next(),
        names: BTreeSet::from([name.own]),
        ..Draft::new(catalog, &statement.lines, context, table)
    }
}

pub(super) fn choose_spaces(table: &mut Table) {
    let relation = &table.relation;
    let types: Vec<Type> = relation.columns.iter().map(|column| column.kind.ty).collect();
    let key: Vec<Type> =
        relation.primary.iter().map(|each| types[usize::from(each.column)]).collect();
    table.relation.space = space_for(&key, &types);
    let spaces: Vec<Space> =
        table.relation.indexes.iter().map(|index| entry_space(&table.relation, index)).collect();
    for (index, space) in table.relation.indexes.iter_mut().zip(spaces) {
        index.space = space;
    }
}

pub(super) fn drop(
    catalog: &Catalog,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP TABLE", Delta::default());
    let written = names.iter().map(written_name).collect::<Result<Vec<Written>>>()?;
    let all = written.iter().filter_map(|name| catalog.relation(name).ok());
    let all = all.filter(|name| catalog.table(name).is_some()).collect();
    drop_tables(catalog, &all, cascade, &mut definition)?;
    for written in written {
        let Some(own) = definition.found(catalog.relation(&written), if_exists)? else { continue };
        if catalog.table(&own).is_none() {
            definition.not_of_kind(catalog, &own, RelationKind::Table, if_exists)?;
        }
    }
    Ok(definition)
}

/// Drops tables with their sequences, and what depends on them or refuses to.
pub(super) fn drop_tables(
    catalog: &Catalog,
    names: &BTreeSet<Name>,
    cascade: bool,
    definition: &mut Definition,
) -> Result<()> {
    drop_keys(catalog, names, cascade, definition)?;
    drop_dependents(catalog, "table", names, cascade, definition)?;
    let tables: Vec<_> = names.iter().filter_map(|name| catalog.table(name)).collect();
    let columns = tables.iter().flat_map(|table| &table.columns);
    let sequences: Vec<_> = columns.filter_map(|column| column.sequence).collect();
    let what = match &tables[..] {
        [one] => format!("table {}", catalog.shown(&one.relation.name)),
        _ => "desired object(s)".to_owned(),
    };
    let defaults =
        DependentDefaults::of(catalog, &sequences, |table, _| names.contains(&table.relation.name));
    for notice in defaults.dropped(&what, cascade)? {
        definition.add_notice(&notice);
    }
    defaults.changed.iter().for_each(|table| definition.delta.put_table(table));
    tables.iter().for_each(|table| definition.delta.drop_table(table));
    sequences.iter().for_each(|sequence| definition.delta.drop_sequence(*sequence));
    Ok(())
}

/// The table goes on without rows under ids that no row has: the old rows lead nowhere at once,
/// however many there are.
pub(super) fn truncate(catalog: &Catalog, tree: &Truncate) -> Result<Definition> {
    check_truncate(tree)?;
    let mut changed: BTreeMap<ObjectId, Table> = BTreeMap::new();
    let mut definition = Definition::new("TRUNCATE TABLE", Delta::default());
    let mut next_id = catalog.next_id();
    let named = |target: &TruncateTableTarget| {
        let written = written_name(&target.name)?;
        let own = catalog.relation(&written)?;
        if catalog.is_named(&own) { Ok(own) } else { Err(written.missing()) }
    };
    let names = tree.table_names.iter().map(named);
    let mut names = names.collect::<Result<Vec<Name>>>()?;
    if tree.cascade == Some(CascadeOption::Cascade) {
        definition.notice = add_children(catalog, &mut names);
    }
    let mut truncated = BTreeSet::new();
    for own in names {
        refuse_view(catalog, &own)?;
        let table = catalog.table(&own).ok_or_else(|| {
            Error::new(SqlState::WRONG_OBJECT, format!("\"{own}\" is not a table"))
        })?;
        truncated.insert(own);
        let old = table.relation.id;
        let next = changed.entry(old).or_insert_with(|| Table::clone(table));
        if next.relation.id != old {
            continue; // named twice
        }
        next.relation.id = take_id(&mut next_id);
        next.relation.indexes.iter_mut().for_each(|index| index.id = take_id(&mut next_id));
        if let Some(TruncateIdentityOption::Restart) = tree.identity {
            let sequences = table.columns.iter().filter_map(|column| column.sequence);
            for sequence in sequences.filter_map(|id| catalog.sequence_by_id(id)) {
                let id = take_id(&mut next_id);
                // It counts anew from a new id.
                let (last, is_called) = (sequence.start, false);
                let next = Sequence { id, last, is_called, ..Sequence::clone(sequence) };
                replace(catalog, sequence.id, &next, &mut changed);
                definition.delta.drop_sequence(sequence.id);
                definition.delta.put_sequence(&next);
            }
        }
    }
    refuse_truncate(catalog, &truncated)?;
    for (old, table) in &changed {
        if table.relation.id != *old {
            let before = catalog.tables().find(|table| table.relation.id == *old);
            definition.delta.drop_table(before.expect("it was found by its name"));
        }
        definition.delta.put_table(table);
    }
    definition.delta.set_next_id(next_id);
    Ok(definition)
}

fn take_id(next: &mut ObjectId) -> ObjectId {
    let id = *next;
    *next = id.next();
    id
}
