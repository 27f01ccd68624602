//! UNION, INTERSECT and EXCEPT. The rows keep the order in which they came: those before, then the
//! others.

use super::budget::{bytes_of, bytes_of_entry};
use super::evaluate::Evaluator;
use super::scan::Each;
use crate::ir::{QueryNumber, SetOperator, SetStep};
use std::collections::btree_map::Entry;
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
    let mut rows = collected(first, is_once, evaluator)?;
    for step in steps {
        let others = collected(step.query, is_once, evaluator)?;
        evaluator.rows.steps((rows.len() + others.len()) as u64)?;
        rows = match step.operator {
            SetOperator::Union => {
                rows.extend(others);
                if step.all { rows } else { unique(rows, evaluator)? }
            }
            SetOperator::Intersect => matched(rows, others, step.all, true, evaluator)?,
            SetOperator::Except => matched(rows, others, step.all, false, evaluator)?,
        };
    }
    for row in rows {
        evaluator.memory.subtract(bytes_of(&row));
        if each(row, evaluator)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The rows of a query. Their memory is given back where a row is dropped.
fn collected(number: QueryNumber, is_once: bool, evaluator: &mut Evaluator<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    evaluator.visit_query(number, is_once, &mut |row, evaluator| {
        evaluator.memory.add(&row)?;
        rows.push(row);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// Each row once, where it came first.
fn unique(rows: Rows, evaluator: &mut Evaluator<'_>) -> Result<Rows> {
    let (mut seen, mut held) = (BTreeSet::new(), 0);
    let mut once = Rows::new();
    for row in rows {
        let identity = evaluator.identity(&row, seen.len())?;
        let bytes = bytes_of_entry(&identity, 0);
        if seen.insert(identity) {
            evaluator.memory.add_bytes(bytes)?;
            held += bytes;
            once.push(row);
        } else {
            evaluator.memory.subtract(bytes_of(&row));
        }
    }
    evaluator.memory.subtract(held);
    Ok(once)
}

/// The rows that are, or are not, among the others; with `all` each of those counts once.
fn matched(
    rows: Rows,
    others: Rows,
    all: bool,
    wanted: bool,
    evaluator: &mut Evaluator<'_>,
) -> Result<Rows> {
    let (mut counts, mut held) = (BTreeMap::new(), 0);
    for row in others {
        let identity = evaluator.identity(&row, counts.len())?;
        evaluator.memory.subtract(bytes_of(&row));
        drop(row);
        match counts.entry(identity) {
            Entry::Occupied(mut count) => *count.get_mut() += 1,
            Entry::Vacant(place) => {
                let bytes = bytes_of_entry(place.key(), size_of::<usize>());
                evaluator.memory.add_bytes(bytes)?;
                held += bytes;
                place.insert(1_usize);
            }
        }
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
        } else {
            evaluator.memory.subtract(bytes_of(&row));
        }
    }
    evaluator.memory.subtract(held);
    Ok(kept)
}
