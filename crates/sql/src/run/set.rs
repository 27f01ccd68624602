//! UNION, INTERSECT and EXCEPT. The rows keep the order in which they came: those before, then the
//! others.

use super::evaluate::Evaluator;
use super::scan::Each;
use crate::ir::{QueryNumber, SetOperator, SetStep};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use values::{Datum, Result};

type Rows = Vec<Vec<Datum>>;

/// Gives the rows of a query, combined with those of others, to `each`.
pub(super) fn combined(
    first: QueryNumber,
    steps: &[SetStep],
    is_once: bool,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    if steps.iter().all(|step| step.operator == SetOperator::Union && step.all) {
        let mut flow = ControlFlow::Continue(());
        for number in std::iter::once(first).chain(steps.iter().map(|step| step.query)) {
            evaluator.visit_query(number, is_once, &mut |row, evaluator| {
                evaluator.rows.steps(1)?;
                flow = each(row, evaluator)?;
                Ok(flow)
            })?;
            if flow.is_break() {
                break;
            }
        }
        return Ok(());
    }
    let rows = evaluator.rows_of(first, usize::MAX)?;
    let rows = rows.iter().map(|row| evaluator.copy(row));
    let mut rows = rows.collect::<Result<Rows>>()?;
    for step in steps {
        let other = evaluator.rows_of(step.query, usize::MAX)?;
        evaluator.rows.steps((rows.len() + other.len()) as u64)?;
        rows = match step.operator {
            SetOperator::Union => {
                for row in other.iter() {
                    evaluator.memory.add(row)?;
                    rows.push(evaluator.copy(row)?);
                }
                if step.all { rows } else { unique(rows, evaluator)? }
            }
            SetOperator::Intersect => matched(rows, &other, step.all, true, evaluator)?,
            SetOperator::Except => matched(rows, &other, step.all, false, evaluator)?,
        };
    }
    for row in rows {
        if each(row, evaluator)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Each row once, where it came first.
fn unique(rows: Rows, evaluator: &mut Evaluator<'_>) -> Result<Rows> {
    let mut seen = BTreeSet::new();
    let mut once = Rows::new();
    for row in rows {
        if seen.insert(evaluator.identity(&row, seen.len())?) {
            once.push(row);
        }
    }
    Ok(once)
}

/// The rows that are, or are not, among the others; with `all` each of those counts once.
fn matched(
    rows: Rows,
    others: &[Vec<Datum>],
    all: bool,
    wanted: bool,
    evaluator: &mut Evaluator<'_>,
) -> Result<Rows> {
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for row in others {
        let identity = evaluator.identity(row, counts.len())?;
        *counts.entry(identity).or_default() += 1;
    }
    let rows = if all { rows } else { unique(rows, evaluator)? };
    let mut kept = Rows::new();
    for row in rows {
        let identity = evaluator.identity(&row, counts.len())?;
        let found = match counts.get_mut(&identity) {
            Some(0) | None => false,
            Some(count) => {
                *count -= usize::from(all);
                true
            }
        };
        if found == wanted {
            kept.push(row);
        }
    }
    Ok(kept)
}
