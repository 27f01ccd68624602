//! Indexes of tables that exist.

use super::definition::{Definition, Dropping};
use super::door::check_index;
use super::draft::{free_name, included, kept, key_order, new_index, refuse_key_kind};
use super::foreign::{Needed, drop_needing, hidden_index, hidden_name};
use super::rebuild::too_many;
use super::relation_kind::RelationKind;
use crate::bind::{
    Binder, KeyPart, index_column_name, is_index_element, leading_index, name_of, own_name,
    written_name,
};
use crate::catalog::{Catalog, Delta, ForeignKey, Table};
use crate::ir::{
    ColumnNumber, ExtendedIndex, Index, IndexForm, KeyColumn, Name, Relation, SpecialIndex,
};
use crate::parse::Statement;
use crate::run::{Context, Pages, Pass, Rows, fill_entry};
use sqlparser::ast::{CreateIndex, Expr, IndexColumn};
use std::collections::BTreeSet;
use values::{Error, Result, SqlState};

pub(super) fn create(
    catalog: &Catalog,
    statement: &Statement,
    tree: &CreateIndex,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    const TAG: &str = "CREATE INDEX";
    check_index(tree)?;
    if tree.concurrently {
        return Err(beside_writers("CREATE INDEX CONCURRENTLY", "Leave CONCURRENTLY out."));
    }
    let written = written_name(&tree.table_name)?;
    let own = catalog.relation(&written)?;
    let table = catalog.table(&own).ok_or_else(|| written.missing())?;
    let name = match &tree.name {
        Some(name) => own.beside(own_name(name)?),
        None => made_name(catalog, &own, tree),
    };
    let mut binder = Binder::without_parameters(catalog, &statement.lines, &context.zone);
    binder.over(&own, &table.relation);
    let mut special = SpecialIndex { unique: tree.unique, ..SpecialIndex::default() };
    let columns = key(&mut binder, table, &tree.columns, &mut special)?;
    if let Some(predicate) = &tree.predicate {
        for condition in binder.index_predicate(predicate)? {
            let condition = kept(condition, "the predicate of an index")?;
            binder.refuse_mutable(&condition, &table.relation, "predicate")?;
            special.predicate.push(condition);
        }
    }
    let form = ExtendedIndex {
        is_constraint: false,
        nulls_are_equal: tree.unique && tree.nulls_distinct == Some(false),
        included: included(table, &tree.include)?,
        special,
    };
    // As in PostgreSQL, what is wrong within the statement is told first.
    if catalog.is_named(&name) {
        return Definition::existing(TAG, &name, tree.if_not_exists);
    }
    let (form, mut delta, mut next) = (form.form(), Delta::default(), Table::clone(table));
    let is_same = |own: &&mut Index| own.is_hidden() && own.columns == columns;
    if form == IndexForm::Plain
        && let Some(own) = next.relation.indexes.iter_mut().find(is_same)
    {
        // It has the entries already.
        (own.name, own.form) = (name.own, form);
        delta.put_table(&next);
        return Ok(Definition::new(TAG, delta));
    }
    let index = new_index(table, catalog.next_id(), name.own, form, columns);
    fill(table, &index, context, rows)?;
    next.relation.indexes.push(index);
    delta.put_table(&next);
    delta.set_next_id(catalog.next_id().next());
    Ok(Definition::new(TAG, delta))
}

/// The error of what would be made while the table's own rows change.
pub(super) fn beside_writers(what: &str, hint: &str) -> Error {
    let message = format!("{what} is not supported, as writers of the table wait for it");
    Error::unsupported(message, hint)
}

/// The columns of the key; expressions go to the index.
fn key(
    binder: &mut Binder<'_>,
    table: &Table,
    elements: &[IndexColumn],
    special: &mut SpecialIndex,
) -> Result<Vec<KeyColumn>> {
    let mut key: Vec<KeyColumn> = Vec::new();
    for element in elements {
        let expr = &element.column.expr;
        if !is_index_element(expr) {
            let message = "an expression in an index needs brackets";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let (descending, nulls_first) = key_order(element)?;
        let column = match binder.key_part(expr)? {
            KeyPart::Column(column) => {
                let known = &table.relation.columns[usize::from(column)];
                refuse_key_kind(&format!("column \"{}\"", known.name), known.kind)?;
                if key.iter().any(|other| other.column == column) {
                    let message = format!("column \"{}\" appears twice in a key", known.name);
                    return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
                }
                column
            }
            KeyPart::Computed(mut computed) => {
                computed.value = kept(computed.value, "an expression of an index")?;
                binder.refuse_mutable(&computed.value, &table.relation, "expression")?;
                refuse_key_kind("an expression", computed.kind)?;
                special.computed.push(computed);
                KeyColumn::of_expression(special.computed.len() - 1)
            }
        };
        key.push(KeyColumn { column, descending, nulls_first });
    }
    Ok(key)
}

/// The name of an index that has none.
fn made_name(catalog: &Catalog, table: &Name, tree: &CreateIndex) -> Name {
    let mut names = BTreeSet::new();
    let own = |element: &IndexColumn| match &element.column.expr {
        Expr::Identifier(ident) => name_of(ident),
        expr => index_column_name(expr),
    };
    let all = tree.columns.iter().map(own).chain(tree.include.iter().map(name_of));
    let name = |own: String| {
        let own = free_name(&own, |name| names.contains(name));
        names.insert(own.clone());
        own
    };
    let list: Vec<String> = all.map(name).collect();
    let wanted = format!("{table}_{}_idx", list.join("_"));
    table.beside(free_name(&wanted, |name| catalog.is_named(&table.beside(name))))
}

/// Writes the entries of all rows that have one.
fn fill(table: &Table, index: &Index, context: &Context, rows: &mut dyn Rows) -> Result<()> {
    let relation = &table.relation;
    let pass = Pass::new("index", &[relation.id], &(relation, index));
    pass.run(rows, |rows| fill_all(relation, index, context, rows))
}

fn fill_all(
    relation: &Relation,
    index: &Index,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<()> {
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
            fill_entry(relation, index, &row, context, rows)?;
        }
    }
}

/// The error of the index of a constraint.
fn required(table: &Table, name: &str) -> Error {
    let table = &table.relation.name;
    let message =
        format!("cannot drop index {name} because constraint {name} on table {table} requires it");
    Error::new(SqlState::DEPENDENT_OBJECTS, message)
        .with_hint(format!("You can drop constraint {name} on table {table} instead."))
}

/// DROP INDEX. Where a foreign key found children by an index that goes, it keeps one.
pub(super) fn drop(
    catalog: &Catalog,
    dropping: &Dropping<'_>,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP INDEX", Delta::default());
    // Tables without the indexes that are dropped so far: several may be of one table.
    let mut changed: Vec<(Table, Vec<Index>)> = Vec::new();
    for name in dropping.names {
        let written = written_name(name)?;
        let found = definition.found(catalog.relation(&written), dropping.if_exists)?;
        let Some(own) = found else { continue };
        if let Some(table) = catalog.table_of_primary(&own) {
            return Err(required(table, &own));
        }
        let Some((table, at)) = catalog.index(&own) else {
            definition.not_of_kind(catalog, &own, RelationKind::Index, dropping.if_exists)?;
            continue;
        };
        let id = table.relation.indexes[at].id;
        if table.relation.indexes[at].is_constraint() {
            return Err(required(table, &own));
        }
        let known = changed.iter().position(|(next, _)| next.relation.id == table.relation.id);
        let known = known.unwrap_or_else(|| {
            changed.push((Table::clone(table), Vec::new()));
            changed.len() - 1
        });
        let (next, removed) = &mut changed[known];
        let Some(at) = next.relation.indexes.iter().position(|index| index.id == id) else {
            // It is named twice.
            continue;
        };
        removed.push(next.relation.indexes.remove(at));
        let needed = Needed { what: format!("index {own}"), index: &own };
        let delta = &mut definition.delta;
        if let Some(notice) = drop_needing(catalog, next, &needed, dropping.cascade, delta)? {
            definition.notice = Some(notice);
        }
    }
    let mut next_id = catalog.next_id();
    for (mut next, mut removed) in changed {
        for key in catalog.foreign_keys().filter(|key| key.child == next.relation.name) {
            let is_dropped = definition.delta.drops_foreign_key(key.id);
            if !is_dropped && leading_index(&next.relation, &key.columns).is_none() {
                let kept = taken_over(&next, key, &mut removed);
                let is_new = kept.is_none();
                let index = kept.unwrap_or_else(|| hidden_index(&next, next_id, key));
                if is_new {
                    next_id = next_id.next();
                    fill(&next, &index, context, rows)?;
                }
                next.relation.indexes.push(index);
            }
        }
        removed.iter().for_each(|index| definition.delta.clear(index.space, index.id));
        definition.delta.put_table(&next);
    }
    if next_id != catalog.next_id() {
        definition.delta.set_next_id(next_id);
    }
    Ok(definition)
}

/// The index that a foreign key takes over with its entries, of those that are dropped.
fn taken_over(table: &Table, key: &ForeignKey, removed: &mut Vec<Index>) -> Option<Index> {
    let finds = |index: &Index| {
        let mut relation = table.relation.clone();
        relation.indexes = vec![index.clone()];
        index.form == IndexForm::Plain && leading_index(&relation, &key.columns).is_some()
    };
    let index = removed.remove(removed.iter().position(finds)?);
    Some(Index { name: hidden_name(key), form: IndexForm::OfKey, ..index })
}

/// ALTER INDEX ... RENAME TO
pub(super) fn rename(catalog: &Catalog, own: &Name, new: &Name) -> Result<Definition> {
    const TAG: &str = "ALTER INDEX";
    if catalog.is_named(new) {
        return Definition::existing(TAG, new, false);
    }
    let mut delta = Delta::default();
    if let Some((table, at)) = catalog.index(own) {
        let mut next = Table::clone(table);
        next.relation.indexes[at].name.clone_from(&new.own);
        delta.put_table(&next);
    } else if let Some(table) = catalog.table_of_primary(own) {
        let mut next = Table::clone(table);
        next.relation.primary_name.clone_from(&new.own);
        delta.put_table(&next);
    } else {
        let message = format!("\"{own}\" is not an index");
        return Err(Error::new(SqlState::WRONG_OBJECT, message));
    }
    Ok(Definition::new(TAG, delta))
}
