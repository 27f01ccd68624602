//! WITH RECURSIVE: a query is computed again and again over the rows that it came to before.

use super::budget::{bytes_of, bytes_of_entry};
use super::evaluate::{Evaluator, malformed};
use super::scan::Each;
use crate::ir::{Input, Recursive};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use values::{Datum, Result};

type Rows = Vec<Vec<Datum>>;

/// Gives the rows of a recursive query to `each`, step by step.
pub(super) fn recursed(
    plan: &Recursive,
    is_once: bool,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let step = evaluator.queries.list.get(usize::from(plan.step)).ok_or_else(malformed)?;
    // One that is computed once would come to the same rows for ever.
    if !step.is_correlated {
        return Err(malformed());
    }
    let mut known = (!plan.all).then(Known::default);
    let mut rows = Rows::new();
    evaluator.visit_query(plan.first, is_once, &mut collect(&mut rows))?;
    loop {
        if let Some(known) = &mut known {
            rows = known.fresh(rows, evaluator)?;
        }
        evaluator.rows.steps(1 + rows.len() as u64)?;
        let bytes = rows.iter().map(|row| bytes_of(row)).sum();
        let mut flow = ControlFlow::Continue(());
        for row in &rows {
            let row = evaluator.copy(row)?;
            flow = each(row, evaluator)?;
            if flow.is_break() {
                break;
            }
        }
        if flow.is_break() || rows.is_empty() {
            evaluator.memory.subtract(bytes);
            break;
        }
        let mut next = Rows::new();
        let taken = evaluator.taken_bytes();
        let before = evaluator.queries.set_working(plan.working, Some(Rc::new(rows)));
        let result = evaluator.visit_anew(step, &mut collect(&mut next));
        evaluator.queries.set_working(plan.working, before);
        result?;
        // Of all that the step collected only its rows stay, and the rows before go.
        let next_bytes = next.iter().map(|row| bytes_of(row)).sum::<usize>();
        evaluator.memory.release(taken + evaluator.queries.kept + next_bytes);
        evaluator.memory.subtract(bytes);
        rows = next;
    }
    evaluator.memory.subtract(known.map_or(0, |known| known.held));
    Ok(())
}

/// Gives rows that are there, those of a working table or of a part of the statement, to `each`.
pub(super) fn given_rows(
    input: &Input,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Vec<Datum>>,
) -> Result<()> {
    let rows = match input {
        Input::Working(number) => evaluator.queries.working(*number)?,
        Input::Returned(number) => evaluator.queries.returned(*number)?,
        _ => return Err(malformed()),
    };
    for row in rows.iter() {
        evaluator.rows.steps(1)?;
        let row = evaluator.copy(row)?;
        if each(row, evaluator)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn collect(
    rows: &mut Rows,
) -> impl FnMut(Vec<Datum>, &mut Evaluator<'_>) -> Result<ControlFlow<()>> {
    |row, evaluator| {
        evaluator.memory.add(&row)?;
        rows.push(row);
        Ok(ControlFlow::Continue(()))
    }
}

/// All rows so far, of a UNION.
#[derive(Default)]
struct Known {
    identities: BTreeSet<Vec<u8>>,
    /// The memory that they take.
    held: usize,
}

impl Known {
    /// The rows that were not there before.
    fn fresh(&mut self, rows: Rows, evaluator: &mut Evaluator<'_>) -> Result<Rows> {
        let mut fresh = Rows::with_capacity(rows.len());
        for row in rows {
            let identity = evaluator.identity(&row, self.identities.len())?;
            let bytes = bytes_of_entry(&identity, 0);
            if self.identities.insert(identity) {
                evaluator.memory.add_bytes(bytes)?;
                self.held += bytes;
                fresh.push(row);
            } else {
                evaluator.memory.subtract(bytes_of(&row));
            }
        }
        Ok(fresh)
    }
}
