//! Writes rows with their index entries, and checks what must hold of them.
//!
//! Everything old goes before anything new comes, so uniqueness is that of the statement's final
//! rows.

use super::evaluate::Evaluator;
use super::scan::{key_of, layout};
use crate::ir::{Index, KeyColumn, Relation};
use values::{Datum, Error, Result, SqlState, Type, Zone, key, text};

/// A row before and after a statement.
pub(super) struct Change {
    pub(super) old: Option<Vec<Datum>>,
    pub(super) new: Option<Vec<Datum>>,
}

/// The key of a row.
pub(super) fn primary_key(relation: &Relation, row: &[Datum]) -> Vec<u8> {
    key::shorten(key_of(relation, relation.id, &relation.primary, row))
}

/// The entry of a row in an index: key and value.
fn entry(relation: &Relation, index: &Index, row: &[Datum]) -> (Vec<u8>, Vec<u8>) {
    let primary = primary_key(relation, row);
    let mut bytes = key_of(relation, index.id, &index.columns, row);
    let null = index.columns.iter().any(|column| row[usize::from(column.column)].is_null());
    if index.unique && !null {
        return (key::shorten(bytes), primary);
    }
    bytes.extend_from_slice(&primary[4..]);
    // What is cut off cannot be read from the key.
    let value = if bytes.len() > key::KEY_BYTES_MAX { primary } else { Vec::new() };
    (key::shorten(bytes), value)
}

/// The entries of a row in one index, for filling it.
pub(crate) fn index_entries(
    relation: &Relation,
    index: &Index,
    row: &[Datum],
) -> (Vec<u8>, Vec<u8>) {
    entry(relation, index, row)
}

/// Writes all changes, or says what they break; then some of them may be written already.
pub(super) fn apply(
    relation: &Relation,
    changes: &[Change],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    for change in changes {
        if let Some(new) = &change.new {
            check(relation, new, evaluator)?;
        }
    }
    let indexes = || relation.indexes.iter();
    for change in changes {
        let Some(old) = &change.old else { continue };
        evaluator.rows.steps(1 + relation.indexes.len() as u64)?;
        let old_key = primary_key(relation, old);
        let new_key = change.new.as_ref().map(|new| primary_key(relation, new));
        if new_key.as_ref() != Some(&old_key) {
            evaluator.rows.delete(relation.space, &old_key)?;
        }
        for index in indexes() {
            let (old_entry, _) = entry(relation, index, old);
            let stays =
                change.new.as_ref().is_some_and(|new| entry(relation, index, new).0 == old_entry);
            if !stays || new_key.as_ref() != Some(&old_key) {
                evaluator.rows.delete(index.space, &old_entry)?;
            }
        }
    }
    let layout = layout(relation);
    for change in changes {
        let Some(new) = &change.new else { continue };
        evaluator.rows.steps(1 + relation.indexes.len() as u64)?;
        let new_key = primary_key(relation, new);
        let old_key = change.old.as_ref().map(|old| primary_key(relation, old));
        let moved = old_key.as_ref() != Some(&new_key);
        if moved && evaluator.rows.get(relation.space, &new_key)?.is_some() {
            return Err(duplicate(relation, &relation.primary_name, &relation.primary, new));
        }
        evaluator.rows.put(relation.space, &new_key, &layout.encode(new))?;
        for index in indexes() {
            let (key, value) = entry(relation, index, new);
            let stays = change.old.as_ref().is_some_and(|old| entry(relation, index, old).0 == key);
            if stays && !moved {
                continue;
            }
            if index.unique && evaluator.rows.get(index.space, &key)?.is_some() {
                return Err(duplicate(relation, &index.name, &index.columns, new));
            }
            evaluator.rows.put(index.space, &key, &value)?;
        }
    }
    Ok(())
}

/// The error of a key that exists.
pub(crate) fn duplicate(
    relation: &Relation,
    name: &str,
    columns: &[KeyColumn],
    row: &[Datum],
) -> Error {
    let names: Vec<&str> = columns
        .iter()
        .map(|column| relation.columns[usize::from(column.column)].name.as_str())
        .collect();
    let zone = Zone::utc();
    let shown: Vec<String> =
        columns.iter().map(|column| text::print(&row[usize::from(column.column)], &zone)).collect();
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{name}\""),
    )
    .with_detail(format!("Key ({})=({}) already exists.", names.join(", "), shown.join(", ")))
    .with_constraint(name)
}

/// The longest row that the store takes.
const ROW_BYTES_MAX: usize = 262_128;

fn check(relation: &Relation, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<()> {
    let mut bytes = 0;
    for (column, value) in relation.columns.iter().zip(row) {
        if value.is_null() && !column.nullable {
            return Err(Error::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    column.name, relation.name
                ),
            )
            .with_detail(format!("Failing row contains ({}).", shown(row))));
        }
        bytes += match value {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            value if value.kind().and_then(Type::fixed_bytes).is_some() => 16,
            value => value.memory_bytes(),
        };
    }
    if bytes > ROW_BYTES_MAX {
        let message = format!("row has {bytes} bytes, at most {ROW_BYTES_MAX} are stored");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    for check in &relation.checks {
        // NULL passes, as the standard says.
        if evaluator.value(&check.condition, row)? == Datum::Bool(false) {
            return Err(Error::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    relation.name, check.name
                ),
            )
            .with_detail(format!("Failing row contains ({}).", shown(row)))
            .with_constraint(&check.name));
        }
    }
    Ok(())
}

fn shown(row: &[Datum]) -> String {
    let zone = Zone::utc();
    let values = row.iter().map(|value| match value {
        Datum::Null => "null".to_owned(),
        value => {
            let shown = text::print(value, &zone);
            match shown.char_indices().nth(64) {
                Some((end, _)) => format!("{}...", &shown[..end]),
                None => shown,
            }
        }
    });
    values.collect::<Vec<_>>().join(", ")
}
