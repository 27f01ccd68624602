//! Queries.

use super::aggregate::{groups, identity};
use super::context::Context;
use super::evaluate::Evaluator;
use super::rows::Rows;
use super::scan::{Memory, find};
use crate::ir::{Expression, Select, SortKey};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use values::{Datum, Error, Result, SqlState};

/// The rows of a query.
pub(super) fn select(
    query: &Select,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Vec<Vec<Datum>>> {
    let mut evaluator = Evaluator::new(context, rows);
    let mut memory = Memory::new(context.limits.memory_bytes_max);
    let window = Window::of(query, &mut evaluator)?;
    if window.limit == 0 {
        return Ok(Vec::new());
    }
    let plain = query.group.is_none() && query.sort.is_empty() && !query.distinct;
    let enough = if plain { window.end() } else { usize::MAX };
    let found = find(&query.source, &mut evaluator, &mut memory, enough)?;
    let mut input: Vec<Vec<Datum>> = found.into_iter().map(|found| found.row).collect();
    if let Some(group) = &query.group {
        input = groups(group, input.into_iter(), &mut evaluator, &mut memory)?;
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
        let sorted = sort(input, &query.sort, &mut evaluator)?;
        let mut answer = Vec::new();
        for row in window.cut(sorted.iter()) {
            let output = evaluator.values(&query.output, row)?;
            memory.add(&output)?;
            answer.push(output);
        }
        return Ok(answer);
    }
    let rows = distinct(query, input, &mut evaluator, &mut memory)?;
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
    memory: &mut Memory,
) -> Result<Vec<Vec<Datum>>> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for row in input {
        let output = evaluator.values(&query.output, &row)?;
        if seen.insert(identity(&output)) {
            memory.add(&output)?;
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
