//! CREATE TABLE AS: a table of the columns of a query, which gets its rows.

use super::definition::{Definition, refuse_name_of_type};
use super::draft::Draft;
use super::rebuild::{count_on, too_many};
use super::table::{choose_spaces, new_draft, on_commit_of_other};
use super::temporary::{name_of_new, refuse_query};
use crate::bind::{Options, OutputColumn, Prepared, name_of, prepare};
use crate::catalog::{Catalog, ColumnInfo, Sequence};
use crate::ir::{Column, ColumnForm, ColumnNumber, Relation, SchemaId, Value};
use crate::parse::{Statement, TableAs};
use crate::run::{Context, Pass, Rows, encode_row, primary_key, run, sequence_number};
use crate::system::System;
use std::collections::BTreeSet;
use std::sync::Arc;
use values::row::COLUMNS_MAX;
use values::{Datum, Error, Result, SqlState, Type};

pub(super) fn create(
    catalog: &Catalog,
    statement: &Statement,
    tree: &TableAs,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    const TAG: &str = "CREATE TABLE AS";
    let own = name_of_new(catalog, &tree.name, tree.is_temporary)?;
    if tree.on_commit.is_some() && own.schema != SchemaId::TEMPORARY {
        return Err(on_commit_of_other());
    }
    if catalog.is_named(&own) {
        return Definition::existing(TAG, &own, tree.if_not_exists);
    }
    refuse_name_of_type(catalog, &own)?;
    let parameters = context.parameters.iter().map(Datum::kind).collect();
    let options = Options { parameters, zone: context.zone.clone(), ..Options::default() };
    let prepared = prepared(catalog, statement, tree, &options)?;
    if prepared.parameters.len() > context.parameters.len() {
        let message = format!("there is no parameter ${}", context.parameters.len() + 1);
        return Err(Error::new(SqlState::UNDEFINED_PARAMETER, message));
    }
    let mut draft = new_draft(catalog, statement, context, own);
    add_columns(&mut draft, tree, &prepared.columns)?;
    let hidden = draft.hide_key().expect("no key was stated");
    choose_spaces(&mut draft.table);
    let mut definition = Definition::new(TAG, Default::default());
    if tree.has_data {
        let count = fill(&mut draft, hidden, &prepared, rows)?;
        (definition.tag, definition.count) = ("SELECT", Some(count));
    }
    draft.delta.put_table(&draft.table);
    draft.delta.set_next_id(draft.next_id);
    definition.delta = draft.delta;
    Ok(definition)
}

/// The types of the parameters.
pub(super) fn parameters(
    catalog: &Catalog,
    statement: &Statement,
    tree: &TableAs,
    options: &Options,
) -> Result<Vec<Type>> {
    // What exists needs no query.
    if tree.if_not_exists && catalog.is_named(&name_of_new(catalog, &tree.name, tree.is_temporary)?)
    {
        return Ok(options.parameters.iter().map(|ty| ty.unwrap_or(Type::Text)).collect());
    }
    Ok(prepared(catalog, statement, tree, options)?.parameters)
}

fn prepared(
    catalog: &Catalog,
    statement: &Statement,
    tree: &TableAs,
    options: &Options,
) -> Result<Prepared> {
    let prepared = prepare(catalog, &statement.part(&tree.query), options)?;
    let own = name_of_new(catalog, &tree.name, tree.is_temporary)?;
    refuse_query(&prepared.plan, Some(&own), "CREATE TABLE AS")?;
    let refused = |what: &str| {
        let message = format!("CREATE TABLE AS of {what} is not supported");
        Err(Error::unsupported(message, "Use CREATE TABLE, then INSERT ... SELECT."))
    };
    if !prepared.plan.is_query() {
        return refused("a statement that writes");
    }
    if !prepared.plan.numbers().is_empty() {
        return refused("a query that takes numbers of sequences");
    }
    if prepared.plan.needs_seed() {
        return refused("a query with random values");
    }
    if prepared.plan.has_effects() || prepared.plan.notifies() {
        return refused("a query with advisory locks, pg_sleep or pg_notify");
    }
    Ok(prepared)
}

/// The columns of the query, by the names that the statement states.
fn add_columns(draft: &mut Draft<'_>, tree: &TableAs, columns: &[OutputColumn]) -> Result<()> {
    if tree.columns.len() > columns.len() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
    }
    if columns.len() >= COLUMNS_MAX {
        let message = format!("tables can have at most {} columns", COLUMNS_MAX - 1);
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    let stated = tree.columns.iter().map(|name| Some(name_of(name)));
    let mut names = BTreeSet::new();
    for (OutputColumn { name, kind }, stated) in
        columns.iter().zip(stated.chain(std::iter::repeat(None)))
    {
        let (name, kind) = (stated.unwrap_or_else(|| name.clone()), *kind);
        if !names.insert(name.clone()) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if kind.ty == Type::Record {
            let message = format!("column \"{name}\" has pseudo-type record");
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        if kind.ty.is_of_catalog() {
            let message = format!("a column of type {} is not supported", kind.ty.name());
            return Err(Error::unsupported(message, "Cast it to text or integer."));
        }
        let (nullable, missing, form) = (true, Value(Datum::Null), ColumnForm::Plain);
        draft.table.relation.columns.push(Column { name, kind, nullable, missing, form });
        draft.table.columns.push(ColumnInfo::default());
    }
    Ok(())
}

/// Writes the rows of the query, each with the next number of the hidden key; how many.
fn fill(
    draft: &mut Draft<'_>,
    hidden: ColumnNumber,
    prepared: &Prepared,
    rows: &mut dyn Rows,
) -> Result<usize> {
    let system = prepared.plan.needs_system().then(|| {
        let (catalog, session) = (Arc::new(draft.catalog.clone()), Arc::default());
        Arc::new(System { catalog, session, services: None })
    });
    let context = Context { system, ..draft.context.clone() };
    let id = draft.table.columns[usize::from(hidden)].sequence.expect("the key is numbered");
    let sequence = draft.sequences[&id].clone();
    let relation = &draft.table.relation;
    // As other queries it reads the rows of its beginning.
    let pass = Pass::new("rows of a query", &[], &(&prepared.plan, relation, &sequence));
    let count = pass.run(rows, |rows| write(prepared, &context, relation, &sequence, rows))?;
    count_on(draft, &sequence, count as u64)?;
    Ok(count)
}

fn write(
    prepared: &Prepared,
    context: &Context,
    relation: &Relation,
    sequence: &Sequence,
    rows: &mut dyn Rows,
) -> Result<usize> {
    let found = run(&prepared.plan, context, rows)?.rows;
    if found.len() > context.limits.filled_rows_max {
        return Err(too_many(context));
    }
    let count = found.len();
    for (number, mut row) in (0_u64..).zip(found) {
        rows.steps(1)?;
        row.push(Datum::Int8(sequence_number(sequence, number)?));
        rows.put(relation.space, &primary_key(relation, &row), &encode_row(relation, &row)?)?;
    }
    Ok(count)
}
