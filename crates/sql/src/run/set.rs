//! UNION, INTERSECT and EXCEPT. The rows keep the order in which they came: those before, then the
//! others.

use super::evaluate::Evaluator;
use super::scan::Each;
use crate::ir::{QueryNumber, SetOperator, SetStep};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use values::{Datum, Result, identity};

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
    let mut rows = evaluator.rows_of(first, usize::MAX)?.to_vec();
    for step in steps {
        let other = evaluator.rows_of(step.query, usize::MAX)?;
        evaluator.rows.steps((rows.len() + other.len()) as u64)?;
        rows = match step.operator {
            SetOperator::Union => {
                for row in other.iter() {
                    evaluator.memory.add(row)?;
                }
                rows.extend(other.iter().cloned());
                if step.all { rows } else { unique(rows) }
            }
            SetOperator::Intersect => matched(rows, &other, step.all, true),
            SetOperator::Except => matched(rows, &other, step.all, false),
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
fn unique(rows: Rows) -> Rows {
    let mut seen = BTreeSet::new();
    rows.into_iter().filter(|row| seen.insert(identity::of(row))).collect()
}

/// The rows that are, or are not, among the others; with `all` each of those counts once.
fn matched(rows: Rows, others: &[Vec<Datum>], all: bool, wanted: bool) -> Rows {
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for row in others {
        *counts.entry(identity::of(row)).or_default() += 1;
    }
    let rows = if all { rows } else { unique(rows) };
    let is_wanted = |row: &Vec<Datum>| {
        let found = match counts.get_mut(&identity::of(row)) {
            Some(0) | None => false,
            Some(count) => {
                *count -= usize::from(all);
                true
            }
        };
        found == wanted
    };
    rows.into_iter().filter(is_wanted).collect()
}
