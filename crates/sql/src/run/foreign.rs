//! Foreign keys: what becomes of the children of rows that a statement removes or changes, and
//! whether all children have parents behind it. No locks are needed: what is read here is the state
//! at the call's serial position, with the statement's own writes.

use super::cast::cast;
use super::changes::{Change, apply};
use super::deferred::{KeyCheck, Side};
use super::entries::{order, primary_key, unique_key};
use super::evaluate::{Evaluator, malformed};
use super::generated::generate;
use super::range::Range;
use super::scan::{layout, read, row_of};
use super::weight;
use crate::ir::{ColumnNumber, ForeignKey, Index, KeyColumn, Kind, Referential, Relation};
use std::collections::VecDeque;
use values::{Datum, Error, Result, SqlState, Strictness, Type, Zone, key, text};

/// Keeps the keys between tables, of the first of which these changes were made; `has_others` says
/// whether the same statement changes more than these.
pub(super) fn keep(
    relations: &[Relation],
    keys: &[ForeignKey],
    changes: Vec<Change>,
    has_others: bool,
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let mut later = Later { has_followed: has_others, ..Later::default() };
    let mut queue = VecDeque::from([(0, changes)]);
    while let Some((place, changes)) = queue.pop_front() {
        for key in keys {
            if usize::from(key.child) == place {
                later.note_children(relations, key, &changes, evaluator)?;
            }
        }
        for key in keys {
            if usize::from(key.parent) == place {
                let written = follow(relations, key, &changes, &mut later, evaluator)?;
                if !written.is_empty() {
                    later.has_followed = true;
                    queue.push_back((usize::from(key.child), written));
                }
            }
        }
    }
    later.check(relations, evaluator)
}

/// What is checked once all rows are written.
#[derive(Default)]
struct Later<'a> {
    /// Keys, and the values that parents had.
    parents: Vec<(&'a ForeignKey, Vec<Datum>)>,
    /// Keys, and children that are new or refer to another parent.
    children: Vec<(&'a ForeignKey, Vec<Datum>)>,
    /// Whether rows were changed behind the statement's own: children may be others by now.
    has_followed: bool,
}

/// Counts looking at a change for one key.
fn count_change(change: &Change, evaluator: &mut Evaluator<'_>) -> Result<()> {
    let rows = [&change.old, &change.new].into_iter().flatten();
    let bytes: usize = rows.map(|row| weight::heap_bytes(row)).sum();
    evaluator.rows.steps(1 + weight::of_bytes(bytes.saturating_mul(weight::READ_TIMES)))
}

/// The values of columns; `None` if one is NULL: then nothing is referred to.
fn values_of(row: &[Datum], columns: &[ColumnNumber]) -> Option<Vec<Datum>> {
    let value = |column: &ColumnNumber| row.get(usize::from(*column)).filter(|it| !it.is_null());
    columns.iter().map(|column| value(column).cloned()).collect()
}

/// Whether two values are one key.
fn is_same(left: &[Datum], right: &[Datum]) -> bool {
    let plain = key::Order { descending: false, nulls_first: false, nullable: true };
    let bytes = |values: &[Datum]| {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| key::push(&mut bytes, value, plain));
        bytes
    };
    bytes(left) == bytes(right)
}

/// Children's values as the parent's columns hold them, or the other way round; `None` if they
/// cannot.
fn converted(
    values: &[Datum],
    relation: &Relation,
    columns: &[ColumnNumber],
) -> Option<Vec<Datum>> {
    let convert = |(value, column): (&Datum, &ColumnNumber)| {
        let own = relation.columns[usize::from(*column)].kind;
        // The length of a `character` is in its keys; nothing else is rounded or cut.
        let kind = if own.ty == Type::Char { own } else { Kind::plain(own.ty) };
        cast(value.clone(), kind, Strictness::Assignment, &Zone::utc()).ok()
    };
    values.iter().zip(columns).map(convert).collect()
}

impl<'a> Later<'a> {
    fn note_children(
        &mut self,
        tables: &[Relation],
        key: &'a ForeignKey,
        changes: &[Change],
        evaluator: &mut Evaluator<'_>,
    ) -> Result<()> {
        let relation = &tables[usize::from(key.child)];
        for change in changes {
            count_change(change, evaluator)?;
            let Some(new) = &change.new else { continue };
            let Some(values) = values_of(new, &key.columns) else { continue };
            let old = change.old.as_ref().and_then(|old| values_of(old, &key.columns));
            if old.is_some_and(|old| is_same(&old, &values)) {
                continue;
            }
            assert!(new.len() == relation.columns.len(), "a row has a value for each column");
            let (values, side) = (&values[..], Side::Child);
            if evaluator.rows.defer(&KeyCheck { tables, key, values, side })? {
                continue;
            }
            self.children.push((key, new.clone()));
        }
        Ok(())
    }

    fn check(self, tables: &[Relation], evaluator: &mut Evaluator<'_>) -> Result<()> {
        for (key, values) in &self.parents {
            check_gone(tables, key, values, evaluator)?;
        }
        for (key, row) in &self.children {
            let relation = &tables[usize::from(key.child)];
            let row = match self.has_followed {
                false => Some(row.clone()),
                true => current(relation, row, evaluator)?,
            };
            if let Some(row) = row {
                check_child(tables, key, &row, evaluator)?;
            }
        }
        Ok(())
    }
}

/// Refuses a child that refers to no parent.
pub(super) fn check_child(
    tables: &[Relation],
    key: &ForeignKey,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    match values_of(row, &key.columns) {
        Some(values) if !has_parent(tables, key, &values, evaluator)? => {
            Err(orphan(tables, key, &values))
        }
        _ => Ok(()),
    }
}

/// The row with the same primary key, as it is now.
fn current(
    relation: &Relation,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Vec<Datum>>> {
    evaluator.rows.steps(1)?;
    let bytes = evaluator.rows.get(relation.space, &primary_key(relation, row))?;
    bytes.map(|bytes| read(relation, &layout(relation), &bytes, evaluator)).transpose()
}

/// What the key says of the children of rows that changed: they are written here, or looked at
/// later. Returns the changes.
fn follow<'a>(
    tables: &[Relation],
    key: &'a ForeignKey,
    changes: &[Change],
    later: &mut Later<'a>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Change>> {
    let relation = &tables[usize::from(key.child)];
    let mut written: Vec<Change> = Vec::new();
    for change in changes {
        count_change(change, evaluator)?;
        let Some(old) = change.old.as_ref().and_then(|old| values_of(old, &key.referred)) else {
            continue;
        };
        let new = change.new.as_ref().map(|new| values_of(new, &key.referred));
        if let Some(Some(new)) = &new
            && is_same(&old, new)
        {
            continue;
        }
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        match action {
            Referential::NoAction => {
                let (values, side) = (&old[..], Side::Parent);
                if !evaluator.rows.defer(&KeyCheck { tables, key, values, side })? {
                    later.parents.push((key, old));
                }
            }
            Referential::Restrict => check_gone(tables, key, &old, evaluator)?,
            Referential::Cascade | Referential::SetNull | Referential::SetDefault => {
                for child in children(tables, key, &old, usize::MAX, evaluator)? {
                    let next = match (action, &new) {
                        (Referential::Cascade, None) => None,
                        _ => Some(moved(relation, key, &child, action, &new, evaluator)?),
                    };
                    written.push(Change { old: Some(child), new: next });
                }
                // The default may be the key that goes: then children still refer to it.
                if action == Referential::SetDefault && !written.is_empty() {
                    later.parents.push((key, old));
                }
            }
        }
    }
    apply(relation, &written, evaluator)?;
    Ok(written)
}

/// The child with other values in the columns that refer.
fn moved(
    relation: &Relation,
    key: &ForeignKey,
    child: &[Datum],
    action: Referential,
    parent: &Option<Option<Vec<Datum>>>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    let values = match (action, parent) {
        (Referential::Cascade, Some(Some(new))) => {
            let fitted = new.iter().zip(&key.columns).map(|(value, column)| {
                let kind = relation.columns[usize::from(*column)].kind;
                cast(value.clone(), kind, Strictness::Assignment, &Zone::utc())
            });
            fitted.collect::<Result<Vec<_>>>()?
        }
        (Referential::SetDefault, _) => evaluator.values(&key.defaults, &[])?,
        _ => vec![Datum::Null; key.columns.len()],
    };
    let mut row = evaluator.copy(child)?;
    for (column, value) in key.columns.iter().zip(values) {
        row[usize::from(*column)] = value;
    }
    generate(relation, &mut row, evaluator)?;
    Ok(row)
}

/// Refuses children with these values, if no parent has them.
pub(super) fn check_orphans(
    tables: &[Relation],
    key: &ForeignKey,
    values: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let is_right = has_parent(tables, key, values, evaluator)?
        || children(tables, key, values, 1, evaluator)?.is_empty();
    if is_right { Ok(()) } else { Err(orphan(tables, key, values)) }
}

/// Refuses children that still refer to a parent that is gone.
pub(super) fn check_gone(
    tables: &[Relation],
    key: &ForeignKey,
    values: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let parent = &tables[usize::from(key.parent)];
    let child = &tables[usize::from(key.child)];
    // Another row may have the key by now.
    if is_there(parent, key.parent_index, &key.referred, values, evaluator)?
        || children(tables, key, values, 1, evaluator)?.is_empty()
    {
        return Ok(());
    }
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        parent.name, key.name, child.name
    );
    let shown = shown(parent, &key.referred, values);
    Err(Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
        .with_detail(format!("Key {shown} is still referenced from table \"{}\".", child.name))
        .with_table(&child.name)
        .with_constraint(&key.name))
}

fn orphan(tables: &[Relation], key: &ForeignKey, values: &[Datum]) -> Error {
    let parent = &tables[usize::from(key.parent)];
    let child = &tables[usize::from(key.child)];
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        child.name, key.name
    );
    let shown = shown(child, &key.columns, values);
    Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
        .with_detail(format!("Key {shown} is not present in table \"{}\".", parent.name))
        .with_table(&child.name)
        .with_constraint(&key.name)
}

/// `(a, b)=(1, 2)`
fn shown(relation: &Relation, columns: &[ColumnNumber], values: &[Datum]) -> String {
    let names: Vec<&str> =
        columns.iter().map(|column| relation.columns[usize::from(*column)].name.as_str()).collect();
    let zone = Zone::utc();
    let values: Vec<String> = values.iter().map(|value| text::print(value, &zone)).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

fn has_parent(
    tables: &[Relation],
    key: &ForeignKey,
    values: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<bool> {
    let parent = &tables[usize::from(key.parent)];
    match converted(values, parent, &key.referred) {
        Some(values) => is_there(parent, key.parent_index, &key.referred, &values, evaluator),
        None => Ok(false),
    }
}

/// A row of which only these columns are known.
fn partial(relation: &Relation, columns: &[ColumnNumber], values: &[Datum]) -> Vec<Datum> {
    let mut row = vec![Datum::Null; relation.columns.len()];
    for (column, value) in columns.iter().zip(values) {
        row[usize::from(*column)] = value.clone();
    }
    row
}

/// Whether a unique key of these values exists.
fn is_there(
    relation: &Relation,
    index: Option<u16>,
    columns: &[ColumnNumber],
    values: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<bool> {
    evaluator.rows.steps(1)?;
    let row = partial(relation, columns, values);
    let found = match index_at(relation, index)? {
        None => evaluator.rows.get(relation.space, &primary_key(relation, &row))?,
        Some(index) => match unique_key(relation, index, &row, evaluator)? {
            Some(key) => evaluator.rows.get(index.space, &key)?,
            None => None,
        },
    };
    Ok(found.is_some())
}

fn index_at(relation: &Relation, index: Option<u16>) -> Result<Option<&Index>> {
    match index {
        Some(at) => relation.indexes.get(usize::from(at)).map(Some).ok_or_else(malformed),
        None => Ok(None),
    }
}

/// The rows that refer to a parent with these values, at most so many.
fn children(
    tables: &[Relation],
    key: &ForeignKey,
    values: &[Datum],
    rows_max: usize,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let relation = &tables[usize::from(key.child)];
    evaluator.rows.steps(1)?;
    // What does not fit the child's columns is in none of its rows.
    let Some(values) = converted(values, relation, &key.columns) else { return Ok(Vec::new()) };
    let index = index_at(relation, key.child_index)?;
    let (id, space, columns): (_, _, &[KeyColumn]) = match index {
        Some(index) => (index.id, index.space, &index.columns),
        None => (relation.id, relation.space, &relation.primary),
    };
    let row = partial(relation, &key.columns, &values);
    let mut prefix = id.to_bytes().to_vec();
    for column in &columns[..key.columns.len()] {
        key::push(&mut prefix, &row[usize::from(column.column)], order(relation, column));
    }
    let prefix = key::bound(prefix);
    let to = key::after_prefix(&prefix);
    let mut range = Range::new(space, prefix, to);
    let (layout, mut found) = (layout(relation), Vec::new());
    while let Some(page) = range.next_page(evaluator.rows)? {
        for entry in page {
            evaluator.rows.steps(1)?;
            let (_, bytes) = row_of(relation, index, entry, evaluator)?;
            let row = read(relation, &layout, &bytes, evaluator)?;
            let own = values_of(&row, &key.columns);
            // Long keys are cut: the row says what it refers to.
            if own.is_some_and(|own| is_same(&own, &values)) {
                evaluator.memory.add(&row)?;
                found.push(row);
                if found.len() >= rows_max {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}
