//! Queries.

use super::aggregate::{groups, identity};
use super::evaluate::Evaluator;
use super::join::joined;
use super::row_functions::{function_rows, system_rows};
use super::scan::find;
use super::set::combined;
use crate::ir::{Expression, Input, Query, Select, SortKey};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use values::{Datum, Error, Result, SqlState};

/// The rows of a query of one table.
pub(super) fn select(query: &Select, evaluator: &mut Evaluator<'_>) -> Result<Vec<Vec<Datum>>> {
    let window = Window::of(query, evaluator)?;
    if window.limit == 0 {
        return Ok(Vec::new());
    }
    let found = find(&query.source, evaluator, input_enough(query, &window))?;
    finish(query, &window, found.into_iter().map(|found| found.row).collect(), evaluator)
}

/// The rows of any query; `enough` are enough.
pub(super) fn rows_of(
    query: &Query,
    evaluator: &mut Evaluator<'_>,
    enough: usize,
) -> Result<Vec<Vec<Datum>>> {
    let select = &query.select;
    let mut window = Window::of(select, evaluator)?;
    window.limit = window.limit.min(enough);
    if window.limit == 0 {
        return Ok(Vec::new());
    }
    let enough = input_enough(select, &window);
    let input = match &query.input {
        Input::Source => {
            let found = find(&select.source, evaluator, enough)?;
            found.into_iter().map(|found| found.row).collect()
        }
        Input::Values(rows) => {
            let mut values = Vec::with_capacity(rows.len());
            for row in rows {
                values.push(evaluator.values(row, &[])?);
            }
            values
        }
        Input::Set(first, steps) => combined(*first, steps, evaluator)?,
        Input::Joins(joins) => joined(joins, evaluator, enough)?,
        Input::System(name) => system_rows(name, evaluator)?,
        Input::Functions(calls, numbered) => function_rows(calls, *numbered, evaluator, enough)?,
    };
    finish(select, &window, input, evaluator)
}

/// How many rows a query needs before the rest is done with them.
fn input_enough(query: &Select, window: &Window) -> usize {
    let plain =
        query.group.is_none() && query.having.is_none() && query.sort.is_empty() && !query.distinct;
    if plain { window.end() } else { usize::MAX }
}

/// What is done with rows: groups, order, columns.
fn finish(
    query: &Select,
    window: &Window,
    mut input: Vec<Vec<Datum>>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    if let Some(group) = &query.group {
        input = groups(group, input.into_iter(), evaluator)?;
    }
    if query.having.is_some() {
        let mut kept = Vec::new();
        for row in input {
            if evaluator.holds(&query.having, &row)? {
                kept.push(row);
            }
        }
        input = kept;
    }
    if !query.distinct {
        let sorted = sort(input, &query.sort, evaluator)?;
        let mut answer = Vec::new();
        for row in window.cut(sorted.iter()) {
            let output = evaluator.values(&query.output, row)?;
            evaluator.memory.add(&output)?;
            answer.push(output);
        }
        return Ok(answer);
    }
    let rows = distinct(query, input, evaluator)?;
    Ok(window.cut(rows.into_iter()).collect())
}

/// LIMIT and OFFSET.
struct Window {
    limit: usize,
    offset: usize,
}

impl Window {
    fn of(query: &Select, evaluator: &mut Evaluator<'_>) -> Result<Window> {
        let limit = count(&query.limit, evaluator, SqlState::INVALID_LIMIT, "LIMIT")?;
        let offset = count(&query.offset, evaluator, SqlState::INVALID_OFFSET, "OFFSET")?;
        Ok(Window { limit: limit.unwrap_or(usize::MAX), offset: offset.unwrap_or(0) })
    }

    /// The number of rows, from the first on, that are enough.
    fn end(&self) -> usize {
        self.limit.saturating_add(self.offset)
    }

    fn cut<T>(&self, rows: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        rows.skip(self.offset).take(self.limit)
    }
}

/// With DISTINCT the order is over the answer's rows, so both are computed before.
fn distinct(
    query: &Select,
    input: Vec<Vec<Datum>>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for row in input {
        let output = evaluator.values(&query.output, &row)?;
        if seen.insert(identity(&output)) {
            evaluator.memory.add(&output)?;
            let keys = query.sort.iter().map(|key| evaluator.value(&key.value, &row));
            kept.push((keys.collect::<Result<Vec<_>>>()?, output));
        }
    }
    kept.sort_by(|left, right| compare(&left.0, &right.0, &query.sort));
    Ok(kept.into_iter().map(|(_, output)| output).collect())
}

fn sort(
    input: Vec<Vec<Datum>>,
    keys: &[SortKey],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    if keys.is_empty() {
        return Ok(input);
    }
    let mut keyed = Vec::with_capacity(input.len());
    for row in input {
        let values = keys.iter().map(|key| evaluator.value(&key.value, &row));
        keyed.push((values.collect::<Result<Vec<_>>>()?, row));
    }
    // Stable: rows that are equal here stay in canonical order.
    keyed.sort_by(|left, right| compare(&left.0, &right.0, keys));
    Ok(keyed.into_iter().map(|(_, row)| row).collect())
}

fn compare(left: &[Datum], right: &[Datum], keys: &[SortKey]) -> Ordering {
    let pairs = left.iter().zip(right).zip(keys);
    pairs
        .map(|((left, right), key)| match (left.is_null(), right.is_null()) {
            (false, false) if key.descending => right.compare(left),
            (false, false) => left.compare(right),
            (left, right) if key.nulls_first => right.cmp(&left),
            (left, right) => left.cmp(&right),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The number of a LIMIT or OFFSET; NULL is none.
fn count(
    expression: &Option<Expression>,
    evaluator: &mut Evaluator<'_>,
    state: SqlState,
    name: &str,
) -> Result<Option<usize>> {
    let Some(expression) = expression else { return Ok(None) };
    match evaluator.value(expression, &[])? {
        Datum::Null => Ok(None),
        Datum::Int8(count) => match usize::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(Error::new(state, format!("{name} must not be negative"))),
        },
        _ => Err(Error::new(SqlState::DATA_CORRUPTED, format!("plan has a malformed {name}"))),
    }
}
