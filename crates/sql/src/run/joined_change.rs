//! UPDATE ... FROM and DELETE ... USING.

use super::changes::{self, apply};
use super::context::{Answer, Tag};
use super::entries::primary_key;
use super::evaluate::{Evaluator, malformed};
use super::write::{assigned, returning};
use crate::ir::Change;
use std::collections::BTreeSet;
use values::{Error, Result, SqlState};

/// Changes or removes each row that is joined once, as its first partner says.
pub(super) fn change(plan: &Change, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    let width = plan.relation.columns.len();
    let joined = evaluator.rows_of(plan.rows, usize::MAX)?;
    let mut seen = BTreeSet::new();
    let mut changed = Vec::new();
    let mut answered = Vec::new();
    for row in joined.iter() {
        let old = row.get(..width).ok_or_else(malformed)?;
        if !changes::fits(&plan.relation, old) {
            return Err(malformed());
        }
        let key = primary_key(&plan.relation, old);
        evaluator.memory.add_bytes(key.len())?;
        let is_touched = evaluator.touched.as_ref().is_some_and(|touched| touched.contains(&key));
        if is_touched || !seen.insert(key) {
            if evaluator.refuses_second {
                return Err(second_time());
            }
            continue;
        }
        let new = match &plan.assignments {
            Some(assignments) => Some(assigned(&plan.relation, assignments, old, row, evaluator)?),
            None => None,
        };
        evaluator.memory.add(row)?;
        let mut whole = evaluator.copy(row)?;
        if let Some(new) = &new {
            whole[..width].clone_from_slice(new);
        }
        answered.push(whole);
        changed.push(changes::Change { old: Some(evaluator.copy(old)?), new });
    }
    apply(&plan.relation, &changed, evaluator)?;
    let count = changed.len() as u64;
    let tag = if plan.assignments.is_some() { Tag::Update(count) } else { Tag::Delete(count) };
    Ok(Answer { tag, rows: returning(&plan.returning, &answered, evaluator)? })
}

/// The error of a row that several rows of the source of MERGE match.
fn second_time() -> Error {
    let message = "MERGE command cannot affect row a second time";
    let hint = "Ensure that not more than one source row matches any one target row.";
    Error::new(SqlState::CARDINALITY_VIOLATION, message).with_hint(hint)
}
