//! Indexes of tables that exist.

use super::definition::Definition;
use super::draft::{NamedColumn, entry_space, free_name, key_columns, named_columns};
use super::foreign::{refuse_drop, refuse_last};
use super::rebuild::{not_unique, too_many};
use crate::bind::{table_name, unsupported};
use crate::catalog::{Catalog, Delta, Table};
use crate::ir::{ColumnNumber, Index};
use crate::run::{Context, Pages, Rows, duplicate, index_entry, primary_key};
use sqlparser::ast::{CreateIndex, IndexType, ObjectName};
use values::{Error, Result, SqlState};

pub(super) fn create(
    catalog: &Catalog,
    tree: &CreateIndex,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    const TAG: &str = "CREATE INDEX";
    if !matches!(tree.using, None | Some(IndexType::BTree)) {
        return Err(unsupported("an index that is no btree"));
    }
    if tree.predicate.is_some() || !tree.include.is_empty() || tree.nulls_distinct == Some(false) {
        return Err(unsupported("an index with WHERE, INCLUDE or NULLS NOT DISTINCT"));
    }
    let own = table_name(&tree.table_name)?;
    let table = catalog.table(&own).ok_or_else(|| {
        Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{own}\" does not exist"))
    })?;
    let columns = named_columns(&tree.columns)?;
    let name = match &tree.name {
        Some(name) => table_name(name)?,
        None => made_name(catalog, &own, &columns),
    };
    if catalog.is_named(&name) {
        return Definition::existing(TAG, &name, tree.if_not_exists);
    }
    let mut next = Table::clone(table);
    let key = key_columns(table, &columns)?;
    let space = entry_space(table, &key, tree.unique);
    let index = Index { id: catalog.next_id(), name, space, unique: tree.unique, columns: key };
    fill(table, &index, context, rows)?;
    next.relation.indexes.push(index);
    let mut delta = Delta::default();
    delta.put_table(&next);
    delta.set_next_id(catalog.next_id().next());
    Ok(Definition::new(TAG, delta))
}

/// The name of an index that has none.
fn made_name(catalog: &Catalog, table: &str, columns: &[NamedColumn]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    free_name(&format!("{table}_{}_idx", names.join("_")), |name| catalog.is_named(name))
}

/// Writes the entries of all rows.
fn fill(table: &Table, index: &Index, context: &Context, rows: &mut dyn Rows) -> Result<()> {
    let relation = &table.relation;
    let all: Vec<ColumnNumber> = (0..relation.columns.len()).map(ColumnNumber::at).collect();
    let (mut pages, mut done) = (Pages::of(relation, &all), 0_usize);
    loop {
        let page = pages.next_page(rows)?;
        if page.is_empty() {
            return Ok(());
        }
        done += page.len();
        if done > context.limits.filled_rows_max {
            return Err(too_many(context));
        }
        for row in page {
            rows.steps(1)?;
            let (key, value) = index_entry(relation, index, &row, &primary_key(relation, &row));
            if index.unique && rows.get(index.space, &key)?.is_some() {
                let error = duplicate(relation, &index.name, &index.columns, &row);
                return Err(not_unique(&index.name, &error));
            }
            rows.put(index.space, &key, &value)?;
        }
    }
}

pub(super) fn drop(catalog: &Catalog, names: &[ObjectName], if_exists: bool) -> Result<Definition> {
    let mut definition = Definition::new("DROP INDEX", Delta::default());
    for name in names {
        let own = table_name(name)?;
        let Some((table, at)) = catalog.index(&own) else {
            let message = format!("index \"{own}\" does not exist");
            let error = Error::new(SqlState::UNDEFINED_OBJECT, message);
            definition.skip_missing(error, if_exists)?;
            continue;
        };
        let mut next = Table::clone(table);
        let index = next.relation.indexes.remove(at);
        refuse_drop(catalog, &next, "index", &index.name)?;
        refuse_last(catalog, &next, &index.name)?;
        definition.delta.clear(index.space, index.id);
        definition.delta.put_table(&next);
    }
    Ok(definition)
}

/// ALTER INDEX ... RENAME TO
pub(super) fn rename(catalog: &Catalog, own: &str, new: &str) -> Result<Definition> {
    const TAG: &str = "ALTER INDEX";
    if catalog.is_named(new) {
        return Definition::existing(TAG, new, false);
    }
    let mut delta = Delta::default();
    if let Some((table, at)) = catalog.index(own) {
        let mut next = Table::clone(table);
        new.clone_into(&mut next.relation.indexes[at].name);
        delta.put_table(&next);
    } else if let Some(table) = catalog.tables().find(|each| each.relation.primary_name == own) {
        let mut next = Table::clone(table);
        new.clone_into(&mut next.relation.primary_name);
        delta.put_table(&next);
    } else {
        let message = format!("relation \"{own}\" does not exist");
        return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
    }
    Ok(Definition::new(TAG, delta))
}
