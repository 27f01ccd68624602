//! `setval`: a sequence goes on behind a number, or with it.

use super::definition::Definition;
use super::sequences::replace;
use super::temporary::refuse_query;
use crate::bind::{Options, OutputColumn, Prepared, prepare};
use crate::catalog::{Catalog, Delta, Sequence, Written};
use crate::ir::{Kind, Name, Value};
use crate::parse::Statement;
use crate::run::{Context, Pass, Rows, run};
use crate::system::{System, name_parts};
use std::collections::BTreeMap;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type};

/// The types of the parameters, and the one column of the answer.
pub(super) fn described(
    catalog: &Catalog,
    statement: &Statement,
    options: &Options,
) -> Result<(Vec<Type>, Vec<OutputColumn>)> {
    let Some((query, name)) = statement.value_query() else { return Ok(Default::default()) };
    let prepared = prepare_query(catalog, &query, options)?;
    Ok((prepared.parameters, vec![OutputColumn { name, kind: Kind::plain(Type::Int8) }]))
}

fn prepare_query(catalog: &Catalog, query: &Statement, options: &Options) -> Result<Prepared> {
    let prepared = prepare(catalog, query, options)?;
    if prepared.plan.has_effects() || prepared.plan.notifies() {
        let message = "advisory locks, pg_sleep and pg_notify in an argument of setval";
        return Err(Error::unsupported(message, "Call them in a query of its own."));
    }
    refuse_query(&prepared.plan, None, "setval")?;
    if !prepared.plan.numbers().is_empty() {
        return Err(Error::unsupported(
            "an argument of setval that takes a number of a sequence",
            "Take the number before.",
        ));
    }
    Ok(prepared)
}

pub(super) fn set(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Option<Definition>> {
    let Some((query, _)) = statement.value_query() else { return Ok(None) };
    let parameters = context.parameters.iter().map(Datum::kind).collect();
    let options = Options { parameters, zone: context.zone.clone(), ..Options::default() };
    let prepared = prepare_query(catalog, &query, &options)?;
    let system = prepared.plan.needs_system().then(|| {
        let (catalog, session) = (Arc::new(catalog.clone()), Arc::default());
        Arc::new(System { catalog, session, services: None })
    });
    let context = Context { system, ..context.clone() };
    let pass = Pass::new("setval", &[], &prepared.plan);
    let asked = pass.run(rows, |rows| {
        let found = run(&prepared.plan, &context, rows)?.rows;
        let values = |row: Vec<Datum>| row.into_iter().map(Value).collect();
        Ok(found.into_iter().map(values).collect::<Vec<Vec<Value>>>())
    })?;
    let (mut set, mut answers) = (BTreeMap::new(), Vec::with_capacity(asked.len()));
    for arguments in asked {
        let [Value(name), Value(number), Value(is_called)] = &arguments[..] else {
            unreachable!("three were asked")
        };
        let (Datum::Text(name), Datum::Int8(number), Datum::Bool(is_called)) =
            (name, number, is_called)
        else {
            // As for all functions that are strict.
            answers.push(vec![Datum::Null]);
            continue;
        };
        let sequence = find(catalog, name)?;
        check(sequence, *number)?;
        set.insert(sequence.name.clone(), (*number, *is_called));
        answers.push(vec![Datum::Int8(*number)]);
    }
    let mut definition = Definition::new("SELECT", delta_of(catalog, &set));
    definition.count = Some(answers.len());
    definition.rows = answers;
    Ok(Some(definition))
}

/// The sequences count anew from ids that nothing has had.
fn delta_of(catalog: &Catalog, set: &BTreeMap<Name, (i64, bool)>) -> Delta {
    let (mut changed, mut delta) = (BTreeMap::new(), Delta::default());
    let mut id = catalog.next_id();
    for (name, (last, is_called)) in set {
        let Some(sequence) = catalog.sequence(name) else { continue };
        let next = Sequence { id, last: *last, is_called: *is_called, ..Sequence::clone(sequence) };
        replace(catalog, sequence.id, &next, &mut changed);
        delta.drop_sequence(sequence.id);
        delta.put_sequence(&next);
        id = id.next();
    }
    changed.values().for_each(|table| delta.put_table(table));
    if !set.is_empty() {
        delta.set_next_id(id);
    }
    delta
}

/// The sequence that text names.
pub(crate) fn find<'c>(catalog: &'c Catalog, text: &str) -> Result<&'c Arc<Sequence>> {
    let written = Written::of_parts(&name_parts(text)?)?;
    let name = catalog.relation(&written)?;
    match catalog.sequence(&name) {
        Some(sequence) => Ok(sequence),
        None if catalog.is_named(&name) => {
            let message = format!("\"{name}\" is not a sequence");
            Err(Error::new(SqlState::WRONG_OBJECT, message))
        }
        None => Err(written.missing()),
    }
}

fn check(sequence: &Sequence, number: i64) -> Result<()> {
    let Sequence { name, minimum, maximum, .. } = sequence;
    if (*minimum..=*maximum).contains(&number) {
        return Ok(());
    }
    let message = format!(
        "setval: value {number} is out of bounds for sequence \"{name}\" ({minimum}..{maximum})"
    );
    Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
}
