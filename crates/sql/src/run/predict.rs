//! Which rows a plan will write, said before it runs, where its parameters or the rows of stated
//! keys decide that.

use super::changes::{Change, Effect, Written, fits, push_keys};
use super::context::Context;
use super::evaluate::{Evaluator, malformed};
use super::generated::generate;
use super::rows::Rows;
use super::scan::{is_keyed, keys, layout, read, reads_one};
use super::write::assigned;
use crate::ir::{
    Action, Assignment, ColumnNumber, Conflict, Delete, Guarded, Index, Insert, InsertRows, Plan,
    Relation, Update,
};
use std::collections::BTreeSet;
use values::Result;

/// Whether [`predict`] can say what the plan writes.
pub fn is_predicted(plan: &Plan) -> bool {
    match plan {
        Plan::Select(_) | Plan::Composed(_) | Plan::Writing(_) | Plan::Merge(_) => false,
        Plan::Insert(Insert {
            rows: InsertRows::Queried(..) | InsertRows::Composed(..) | InsertRows::Copied(..),
            ..
        }) => false,
        Plan::Insert(plan) => match &plan.conflict {
            None => true,
            Some(conflict) => writes_only_proposed(&plan.relation, conflict),
        },
        Plan::Update(plan) => is_keyed(&plan.source) && !counts_on(&plan.assignments),
        Plan::Delete(plan) => is_keyed(&plan.source),
        Plan::Guarded(guarded) => is_predicted(&guarded.plan) && !may_follow(guarded),
    }
}

/// Whether children may be written, too. Which ones only the run can say.
fn may_follow(guarded: &Guarded) -> bool {
    // The statement's table is the first; children of children follow only what follows it.
    let mut own = guarded.keys.iter().filter(|key| key.parent == 0);
    match &guarded.plan {
        Plan::Delete(_) => own.any(|key| key.on_delete.writes()),
        Plan::Update(plan) => own.any(|key| {
            let relation = guarded.relations.first();
            let changed = relation.map(|relation| changed(relation, &plan.assignments));
            let moves = |column: &ColumnNumber| key.referred.contains(column);
            key.on_update.writes() && changed.is_none_or(|all| all.iter().any(moves))
        }),
        // ON CONFLICT whose writes can be said changes no key.
        _ => false,
    }
}

/// Whether ON CONFLICT changes no row but those with the primary keys of the new ones, and none of
/// their index entries.
fn writes_only_proposed(relation: &Relation, conflict: &Conflict) -> bool {
    match &conflict.action {
        Action::Nothing => true,
        Action::Update { assignments, .. } => {
            conflict.arbiters == [None] && !changes_keys(relation, assignments)
        }
    }
}

/// Whether a value comes from a sequence or the statement's seed: the run takes more of them.
fn counts_on(assignments: &[Assignment]) -> bool {
    assignments.iter().any(|each| each.value.takes_number() || each.value.needs_seed())
}

/// The columns that an update changes.
fn changed(relation: &Relation, assignments: &[Assignment]) -> BTreeSet<ColumnNumber> {
    relation.changed_by(&assignments.iter().map(|each| each.column).collect())
}

/// Whether a column is assigned to that a key is of, or whether a row has an entry.
fn changes_keys(relation: &Relation, assignments: &[Assignment]) -> bool {
    let primary = relation.primary.iter().map(|key| key.column);
    let changed = changed(relation, assignments);
    let mut keys = primary.chain(relation.indexes.iter().flat_map(Index::columns_used));
    keys.any(|column| changed.contains(&column))
}

/// Whether a plan is a query that reads at most one row, once, by its key.
pub fn is_lookup(plan: &Plan) -> bool {
    matches!(plan, Plan::Select(select) if reads_one(&select.source))
}

/// The rows that a plan may write of which [`is_predicted`] is true. `rows` gives numbers of
/// sequences, and where a row that is there decides, looks it up. An error or a row that is refused
/// here ends the run, too.
pub fn predict(plan: &Plan, context: &Context, rows: &mut dyn Rows) -> Result<Vec<Written>> {
    assert!(is_predicted(plan), "the plan's writes can be said before");
    let plan = match plan {
        Plan::Guarded(guarded) => &guarded.plan,
        plan => plan,
    };
    let mut evaluator = Evaluator::new(context, rows);
    let mut written = Vec::new();
    match plan {
        Plan::Insert(plan) => insert(plan, &mut evaluator, &mut written)?,
        Plan::Update(plan) => update(plan, &mut evaluator, &mut written)?,
        Plan::Delete(plan) => delete(plan, &mut evaluator, &mut written)?,
        Plan::Select(_)
        | Plan::Composed(_)
        | Plan::Guarded(_)
        | Plan::Writing(_)
        | Plan::Merge(_) => {
            return Err(malformed());
        }
    }
    Ok(written)
}

fn insert(plan: &Insert, evaluator: &mut Evaluator<'_>, written: &mut Vec<Written>) -> Result<()> {
    let InsertRows::Listed(list) = &plan.rows else { return Err(malformed()) };
    for row in list {
        let mut row = evaluator.values(row, &[])?;
        generate(&plan.relation, &mut row, evaluator)?;
        if !fits(&plan.relation, &row) {
            return Err(malformed());
        }
        push_keys(&plan.relation, &Change { old: None, new: Some(row) }, evaluator, written)?;
    }
    Ok(())
}

fn update(plan: &Update, evaluator: &mut Evaluator<'_>, written: &mut Vec<Written>) -> Result<()> {
    let relation = plan.source.relation.as_ref().ok_or_else(malformed)?;
    let keys = keys(relation, &plan.source.access, evaluator)?;
    if !changes_keys(relation, &plan.assignments) {
        let space = relation.space;
        let updated = keys.into_iter().map(|key| Written { space, key, effect: Effect::Update });
        written.extend(updated);
        return Ok(());
    }
    let layout = layout(relation);
    for key in keys {
        let Some(bytes) = evaluator.rows.get(relation.space, &key)? else { continue };
        let old = read(relation, &layout, &bytes, evaluator)?;
        let new = assigned(relation, &plan.assignments, &old, &old, evaluator)?;
        if !fits(relation, &new) {
            return Err(malformed());
        }
        let change = Change { old: Some(old), new: Some(new) };
        push_keys(relation, &change, evaluator, written)?;
    }
    Ok(())
}

fn delete(plan: &Delete, evaluator: &mut Evaluator<'_>, written: &mut Vec<Written>) -> Result<()> {
    let relation = plan.source.relation.as_ref().ok_or_else(malformed)?;
    let keys = keys(relation, &plan.source.access, evaluator)?;
    if relation.indexes.is_empty() {
        let space = relation.space;
        let deleted = keys.into_iter().map(|key| Written { space, key, effect: Effect::Delete });
        written.extend(deleted);
        return Ok(());
    }
    let layout = layout(relation);
    for key in keys {
        let Some(bytes) = evaluator.rows.get(relation.space, &key)? else { continue };
        let old = read(relation, &layout, &bytes, evaluator)?;
        push_keys(relation, &Change { old: Some(old), new: None }, evaluator, written)?;
    }
    Ok(())
}
