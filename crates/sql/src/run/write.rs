//! INSERT, UPDATE and DELETE, and the entrance for all plans.

use super::changes::{Change, apply, apply_each, check, check_nulls};
use super::context::{Answer, Context, Tag};
use super::entries::{primary_key, unique_key};
use super::evaluate::{Evaluator, malformed};
use super::foreign::keep;
use super::generated::generate;
use super::joined_change::change;
use super::overlay::Overlay;
use super::rows::Rows;
use super::scan::{Found, find, layout, read};
use super::select::select;
use super::weight;
use crate::ir::{
    Action, Assignment, ColumnNumber, Composed, Conflict, Delete, Expression, Index, Insert,
    InsertRows, Main, Op, Plan, Relation, Update, Writing,
};
use std::collections::BTreeSet;
use std::rc::Rc;
use values::row::Layout;
use values::{Datum, Error, Result, SqlState};

/// Runs a plan. Its writes reach `rows` all or, if there is an error, not at all.
pub fn run(plan: &Plan, context: &Context, rows: &mut dyn Rows) -> Result<Answer> {
    match plan {
        Plan::Select(query) => {
            let mut evaluator = Evaluator::new(context, rows);
            Ok(answer_of(select(query, &mut evaluator)?))
        }
        Plan::Composed(Composed { queries, main: Main::Query(number) }) => {
            // The evaluator keeps the rows for other queries of the statement, until it is dropped.
            let found = Evaluator::of(queries, context, rows).rows_of(*number, usize::MAX)?;
            Ok(answer_of(Rc::into_inner(found).expect("no evaluator keeps them any more")))
        }
        _ if writes_last(plan) && rows.are_undone() => guarded_write(plan, context, rows),
        _ => {
            let mut overlay = Overlay::new(rows);
            let answer = guarded_write(plan, context, &mut overlay)?;
            overlay.apply()?;
            Ok(answer)
        }
    }
}

/// Whether a plan reads nothing that it writes, but keys before it writes them. So its writes need
/// not be kept above the rows for as long as it runs.
fn writes_last(plan: &Plan) -> bool {
    let Plan::Insert(Insert { rows, conflict: None, .. }) = plan else { return false };
    matches!(rows, InsertRows::Listed(_) | InsertRows::Copied(..))
}

fn answer_of(rows: Vec<Vec<Datum>>) -> Answer {
    Answer { tag: Tag::Select(rows.len() as u64), rows }
}

/// Runs a plan that writes, and keeps the foreign keys that it touches.
fn guarded_write(plan: &Plan, context: &Context, rows: &mut dyn Rows) -> Result<Answer> {
    let (plan, guarded) = match plan {
        Plan::Guarded(guarded) => (&guarded.plan, Some(guarded)),
        Plan::Writing(plan) => return parts(plan, false, context, rows),
        Plan::Merge(plan) => return parts(plan, true, context, rows),
        plan => (plan, None),
    };
    let queries = match plan {
        Plan::Composed(plan) => &plan.queries[..],
        _ => &[],
    };
    let mut evaluator = Evaluator::of(queries, context, rows);
    evaluator.journal = guarded.map(|_| Vec::new());
    let answer = write(plan, &mut evaluator)?;
    if let Some(guarded) = guarded {
        let changes = evaluator.journal.take().unwrap_or_default();
        keep(&guarded.relations, &guarded.keys, changes, false, &mut evaluator)?;
    }
    Ok(answer)
}

fn write(plan: &Plan, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    match plan {
        Plan::Insert(plan) => insert(plan, evaluator),
        Plan::Update(plan) => update(plan, evaluator),
        Plan::Delete(plan) => delete(plan, evaluator),
        Plan::Composed(plan) => main(&plan.main, evaluator),
        Plan::Select(_) | Plan::Guarded(_) | Plan::Writing(_) | Plan::Merge(_) => Err(malformed()),
    }
}

fn main(plan: &Main, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    match plan {
        Main::Query(_) => Err(malformed()),
        Main::Insert(plan) => insert(plan, evaluator),
        Main::Update(plan) => update(plan, evaluator),
        Main::Delete(plan) => delete(plan, evaluator),
        Main::Change(plan) => change(plan, evaluator),
    }
}

/// Runs the parts of a statement. What they read is what was there before; what they write they see
/// only where they write.
fn parts(plan: &Writing, is_merge: bool, context: &Context, rows: &mut dyn Rows) -> Result<Answer> {
    let mut evaluator = Evaluator::of(&plan.queries, context, rows);
    evaluator.touched = Some(BTreeSet::new());
    evaluator.refuses_second = is_merge;
    evaluator.rows.see_writes(false);
    let mut journals = Vec::new();
    let (mut last, mut count): (Option<Answer>, u64) = (None, 0);
    for part in &plan.parts {
        if let Some(before) = last.take() {
            evaluator.queries.add_returned(before.rows);
        }
        evaluator.journal = (!part.keys.is_empty()).then(Vec::new);
        last = Some(match &part.main {
            Main::Query(number) => {
                let found = evaluator.rows_of(*number, usize::MAX)?;
                answer_of(Rc::try_unwrap(found).unwrap_or_else(|kept| (*kept).clone()))
            }
            written => main(written, &mut evaluator)?,
        });
        count += last.as_ref().map_or(0, |answer| answer.tag.count());
        journals.push(evaluator.journal.take());
    }
    evaluator.rows.see_writes(true);
    for (part, changes) in plan.parts.iter().zip(journals) {
        if let Some(changes) = changes {
            keep(&part.relations, &part.keys, changes, true, &mut evaluator)?;
        }
    }
    let answer = last.ok_or_else(malformed)?;
    Ok(if is_merge { Answer { tag: Tag::Merge(count), ..answer } } else { answer })
}

fn insert(plan: &Insert, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    let relation = &plan.relation;
    let mut proposed = Vec::new();
    match &plan.rows {
        InsertRows::Listed(list) => {
            for row in list {
                proposed.push(evaluator.values(row, &[])?);
            }
        }
        InsertRows::Queried(query, columns) => {
            for row in select(query, evaluator)? {
                proposed.push(evaluator.values(columns, &row)?);
            }
        }
        InsertRows::Composed(number, columns) => {
            for row in evaluator.rows_of(*number, usize::MAX)?.iter() {
                proposed.push(evaluator.values(columns, row)?);
            }
        }
        InsertRows::Copied(targets, columns) => {
            return copy(relation, targets, columns, evaluator);
        }
    }
    for row in &mut proposed {
        generate(relation, row, evaluator)?;
        evaluator.memory.add(row)?;
        if row.len() != relation.columns.len() {
            return Err(malformed());
        }
    }
    let written = match &plan.conflict {
        None => {
            let new = |row| Change { old: None, new: Some(row) };
            let changes: Vec<Change> = proposed.into_iter().map(new).collect();
            if let Err((at, error)) = apply_each(relation, &changes, evaluator) {
                return Err(first_error(plan, &changes[..at], error, evaluator));
            }
            changes.into_iter().filter_map(|change| change.new).collect()
        }
        Some(conflict) => insert_or(relation, conflict, proposed, evaluator)?,
    };
    let count = written.len() as u64;
    let rows = returning(&plan.returning, &written, evaluator)?;
    Ok(Answer { tag: Tag::Insert(count), rows })
}

/// The error that a client is told if `error` is of the row behind `before`: of several errors the
/// first one if each row is written, and RETURNING computed of it, before the next one.
fn first_error(
    plan: &Insert,
    before: &[Change],
    error: Error,
    evaluator: &mut Evaluator<'_>,
) -> Error {
    let is_limit =
        |error: &Error| ["53", "54"].iter().any(|class| error.state().code().starts_with(class));
    if before.is_empty() || is_limit(&error) {
        return error;
    }
    let is_conflict = error.state() == SqlState::UNIQUE_VIOLATION;
    let (whole, error) = match is_conflict {
        // The rows before it are written.
        true => (before.len(), error),
        false => match apply_each(&plan.relation, before, evaluator) {
            Err((at, first)) if !is_limit(&first) => (at, first),
            _ => (before.len(), error),
        },
    };
    let rows: Vec<Vec<Datum>> =
        before[..whole].iter().filter_map(|change| change.new.clone()).collect();
    match returning(&plan.returning, &rows, evaluator) {
        Err(first) if !is_limit(&first) => first,
        _ => error,
    }
}

/// The rows of a COPY; errors say in which line.
fn copy(
    relation: &Relation,
    targets: &[ColumnNumber],
    columns: &[Expression],
    evaluator: &mut Evaluator<'_>,
) -> Result<Answer> {
    let Some(Datum::Bytea(bytes)) = evaluator.context.parameters.first() else {
        return Err(malformed());
    };
    let types = targets.iter().map(|target| {
        let column = relation.columns.get(usize::from(*target)).ok_or_else(malformed)?;
        Ok(column.kind.ty)
    });
    let layout = Layout::new(types.collect::<Result<Vec<_>>>()?);
    evaluator.count_bytes(weight::READ_TIMES * bytes.len())?;
    let rest = behind_copied(targets, columns);
    let (mut lines, mut changes) = (Vec::new(), Vec::new());
    for row in crate::copy::read(bytes, &layout) {
        let (line, mut row) = row?;
        match rest {
            Some(rest) => {
                evaluator.rows.steps(targets.len() as u64)?;
                let more = evaluator.values(rest, &row)?;
                row.extend(more);
            }
            None => row = evaluator.values(columns, &row)?,
        }
        generate(relation, &mut row, evaluator)?;
        evaluator.memory.add(&row)?;
        if row.len() != relation.columns.len() {
            return Err(malformed());
        }
        lines.push(line);
        changes.push(Change { old: None, new: Some(row) });
    }
    apply_each(relation, &changes, evaluator).map_err(|(at, error)| {
        error.with_context(format!("COPY {}, line {}", relation.name, lines[at]))
    })?;
    Ok(Answer { tag: Tag::Copy(changes.len() as u64), rows: Vec::new() })
}

/// The columns behind those that COPY gives, if these are the first ones as they come: then a row
/// begins with the values that were copied.
fn behind_copied<'p>(
    targets: &[ColumnNumber],
    columns: &'p [Expression],
) -> Option<&'p [Expression]> {
    let (first, rest) = columns.split_at_checked(targets.len())?;
    let is_copied =
        |(at, column): (usize, &Expression)| column.code == [Op::Column(ColumnNumber::at(at))];
    first.iter().enumerate().all(is_copied).then_some(rest)
}

pub(super) fn returning(
    columns: &[Expression],
    rows: &[Vec<Datum>],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let mut answer = Vec::with_capacity(rows.len());
    for row in rows {
        let output = evaluator.values(columns, row)?;
        evaluator.memory.add(&output)?;
        answer.push(output);
    }
    Ok(answer)
}

/// Row by row, as each may meet one that the statement has written before.
fn insert_or(
    relation: &Relation,
    conflict: &Conflict,
    proposed: Vec<Vec<Datum>>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let before = evaluator.rows.see_writes(true);
    let arbiters = Arbiters::of(relation, conflict)?;
    let mut written = Vec::new();
    let mut touched = evaluator.touched.clone().unwrap_or_default();
    for row in proposed {
        check_nulls(relation, &row)?;
        let Some(old) = arbiters.existing(&row, evaluator)? else {
            let change = Change { old: None, new: Some(row) };
            apply(relation, std::slice::from_ref(&change), evaluator)?;
            let row = change.new.ok_or_else(malformed)?;
            touched.insert(primary_key(relation, &row));
            written.push(row);
            continue;
        };
        // A row that is not inserted must be one that could be.
        check(relation, &row, evaluator)?;
        let Action::Update { assignments, filter } = &conflict.action else { continue };
        if touched.contains(&primary_key(relation, &old)) {
            return Err(Error::new(
                SqlState::CARDINALITY_VIOLATION,
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
            )
            .with_hint(
                "Ensure that no rows proposed for insertion within the same command have \
                 duplicate constrained values.",
            ));
        }
        evaluator.count_bytes(weight::heap_bytes(&old) + weight::heap_bytes(&row))?;
        let both = [&old[..], &row].concat();
        if !evaluator.holds(filter, &both)? {
            continue;
        }
        let new = assigned(relation, assignments, &old, &both, evaluator)?;
        let change = Change { old: Some(old), new: Some(new) };
        apply(relation, std::slice::from_ref(&change), evaluator)?;
        let new = change.new.ok_or_else(malformed)?;
        touched.insert(primary_key(relation, &new));
        written.push(new);
    }
    evaluator.rows.see_writes(before);
    Ok(written)
}

/// What ON CONFLICT looks for rows by, once for all rows of the statement.
struct Arbiters<'a> {
    relation: &'a Relation,
    layout: Layout,
    /// The primary key (`None`) and indexes that count.
    keys: Vec<Option<&'a Index>>,
}

impl<'a> Arbiters<'a> {
    fn of(relation: &'a Relation, conflict: &Conflict) -> Result<Arbiters<'a>> {
        let keys = if conflict.arbiters.is_empty() {
            let unique = relation.indexes.iter().filter(|index| index.is_unique());
            std::iter::once(None).chain(unique.map(Some)).collect()
        } else {
            let named = conflict.arbiters.iter().map(|arbiter| match arbiter {
                Some(at) => relation.indexes.get(usize::from(*at)).map(Some).ok_or_else(malformed),
                None => Ok(None),
            });
            named.collect::<Result<Vec<_>>>()?
        };
        Ok(Arbiters { relation, layout: layout(relation), keys })
    }

    /// The row that has one of the keys that the new row would have.
    fn existing(&self, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<Option<Vec<Datum>>> {
        let relation = self.relation;
        for arbiter in &self.keys {
            evaluator.rows.steps(1)?;
            let key = match arbiter {
                None => self.has_primary(row).then(|| primary_key(relation, row)),
                Some(index) => match unique_key(relation, index, row, evaluator)? {
                    Some(key) => evaluator.rows.get(index.space, &key)?,
                    None => None,
                },
            };
            let Some(key) = key else { continue };
            if let Some(bytes) = evaluator.rows.get(relation.space, &key)? {
                return read(relation, &self.layout, &bytes, evaluator).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether a row that is proposed has values in its primary key.
    fn has_primary(&self, row: &[Datum]) -> bool {
        let mut columns = self.relation.primary.iter();
        columns.all(|column| !row[usize::from(column.column)].is_null())
    }
}

/// The row after its assignments, which all see `input`, and with what is computed of it.
pub(super) fn assigned(
    relation: &Relation,
    assignments: &[Assignment],
    old: &[Datum],
    input: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    let mut new = evaluator.copy(old)?;
    for Assignment { column, value } in assignments {
        *new.get_mut(usize::from(*column)).ok_or_else(malformed)? =
            evaluator.value(value, input)?;
    }
    generate(relation, &mut new, evaluator)?;
    Ok(new)
}

fn update(plan: &Update, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    let relation = plan.source.relation.as_ref().ok_or_else(malformed)?;
    let found = untouched(find(&plan.source, evaluator)?, evaluator);
    let mut changes = Vec::with_capacity(found.len());
    for found in found {
        let new = assigned(relation, &plan.assignments, &found.row, &found.row, evaluator)?;
        evaluator.memory.add(&new)?;
        changes.push(Change { old: Some(found.row), new: Some(new) });
    }
    apply(relation, &changes, evaluator)?;
    let written: Vec<Vec<Datum>> = changes.into_iter().filter_map(|change| change.new).collect();
    let rows = returning(&plan.returning, &written, evaluator)?;
    Ok(Answer { tag: Tag::Update(written.len() as u64), rows })
}

/// The rows that no other part of the statement has written: of several that write a row, the first
/// does it.
fn untouched(mut found: Vec<Found>, evaluator: &Evaluator<'_>) -> Vec<Found> {
    if let Some(touched) = &evaluator.touched {
        found.retain(|found| !touched.contains(&found.key));
    }
    found
}

fn delete(plan: &Delete, evaluator: &mut Evaluator<'_>) -> Result<Answer> {
    let relation = plan.source.relation.as_ref().ok_or_else(malformed)?;
    let found = untouched(find(&plan.source, evaluator)?, evaluator);
    let changes: Vec<Change> =
        found.into_iter().map(|found| Change { old: Some(found.row), new: None }).collect();
    apply(relation, &changes, evaluator)?;
    let removed: Vec<Vec<Datum>> = changes.into_iter().filter_map(|change| change.old).collect();
    let rows = returning(&plan.returning, &removed, evaluator)?;
    Ok(Answer { tag: Tag::Delete(removed.len() as u64), rows })
}
