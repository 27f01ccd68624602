//! Writes rows with their index entries, and checks what must hold of them.
//!
//! Everything old goes before anything new comes, so uniqueness is that of the statement's final
//! rows.

pub(super) use super::change::Change;
use super::entries::{duplicate, duplicate_primary, entry_of, primary_key};
use super::evaluate::{Evaluator, malformed};
use super::rows::{Entry, Rows};
use super::scan::layout;
use super::weight;
use crate::ir::{Column, Relation, Space};
use values::row::Layout;
use values::{Datum, Error, Result, SqlState, Type, Zone, text};

/// What happens with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is made, or written over.
    Insert,
    /// It is written, if it exists.
    Update,
    /// It is deleted, if it exists.
    Delete,
}

/// A row that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where it is.
    pub space: Space,
    /// Its key.
    pub key: Vec<u8>,
    /// What happens with it.
    pub effect: Effect,
}

/// The keys of a row: its own, and its entry in each index that has one of it.
struct Keys {
    primary: Vec<u8>,
    entries: Vec<Option<Entry>>,
}

impl Keys {
    fn of(relation: &Relation, row: &[Datum], evaluator: &mut Evaluator<'_>) -> Result<Keys> {
        let bytes = weight::heap_bytes(row);
        evaluator.count_bytes(bytes.saturating_mul(1 + relation.indexes.len()))?;
        let primary = primary_key(relation, row);
        let mut entries = Vec::with_capacity(relation.indexes.len());
        for index in &relation.indexes {
            entries.push(entry_of(relation, index, row, &primary, evaluator)?);
        }
        Ok(Keys { primary, entries })
    }

    /// The key of the entry in the index with this number.
    fn entry_key(&self, index: usize) -> Option<&[u8]> {
        self.entries[index].as_ref().map(|(key, _)| &key[..])
    }
}

/// The keys of a row before and after a statement.
struct ChangedKeys {
    old: Option<Keys>,
    new: Option<Keys>,
}

impl ChangedKeys {
    fn of(
        relation: &Relation,
        change: &Change,
        evaluator: &mut Evaluator<'_>,
    ) -> Result<ChangedKeys> {
        let mut keys = |row: &Option<Vec<Datum>>| {
            row.as_ref().map(|row| Keys::of(relation, row, evaluator)).transpose()
        };
        Ok(ChangedKeys { old: keys(&change.old)?, new: keys(&change.new)? })
    }

    /// Whether the row has the same key before and after.
    fn stays(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => old.primary == new.primary,
            _ => false,
        }
    }

    /// Whether the entry in the index with this number is the same before and after.
    fn entry_stays(&self, index: usize) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                old.primary == new.primary && old.entry_key(index) == new.entry_key(index)
            }
            _ => false,
        }
    }
}

/// Appends the keys that a change writes, if it is not refused.
pub(super) fn push_keys(
    relation: &Relation,
    change: &Change,
    evaluator: &mut Evaluator<'_>,
    written: &mut Vec<Written>,
) -> Result<()> {
    let keys = ChangedKeys::of(relation, change, evaluator)?;
    let push = |written: &mut Vec<Written>, space, key: &[u8], effect| {
        written.push(Written { space, key: key.to_vec(), effect });
    };
    if let Some(old) = &keys.old {
        if !keys.stays() {
            push(written, relation.space, &old.primary, Effect::Delete);
        }
        for (at, index) in relation.indexes.iter().enumerate() {
            if let Some(key) = old.entry_key(at).filter(|_| !keys.entry_stays(at)) {
                push(written, index.space, key, Effect::Delete);
            }
        }
    }
    if let Some(new) = &keys.new {
        let effect = if keys.stays() { Effect::Update } else { Effect::Insert };
        push(written, relation.space, &new.primary, effect);
        for (at, index) in relation.indexes.iter().enumerate() {
            if let Some(key) = new.entry_key(at).filter(|_| !keys.entry_stays(at)) {
                push(written, index.space, key, Effect::Insert);
            }
        }
    }
    Ok(())
}

/// Whether these are values of the relation's columns: keys are made of no others.
pub(super) fn fits(relation: &Relation, row: &[Datum]) -> bool {
    row.len() == relation.columns.len()
        && row.iter().zip(&relation.columns).all(|(value, column)| {
            value.fits(column.kind.ty) && (column.nullable || !value.is_null())
        })
}

/// Writes all changes, or says what they break; then some of them may be written already.
pub(super) fn apply(
    relation: &Relation,
    changes: &[Change],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    apply_each(relation, changes, evaluator).map_err(|(_, error)| error)
}

/// The same; an error comes with the place of its change.
pub(super) fn apply_each(
    relation: &Relation,
    changes: &[Change],
    evaluator: &mut Evaluator<'_>,
) -> Result<(), (usize, Error)> {
    for (at, change) in changes.iter().enumerate() {
        assert!(change.old.is_some() || change.new.is_some(), "a change has a row");
        if let Some(new) = &change.new {
            check(relation, new, evaluator).map_err(|error| (at, error))?;
        }
    }
    let mut keys = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        keys.push(ChangedKeys::of(relation, change, evaluator).map_err(|error| (at, error))?);
    }
    let before = evaluator.rows.see_writes(true);
    for (at, keys) in keys.iter().enumerate() {
        remove_old(relation, keys, evaluator.rows).map_err(|error| (at, error))?;
    }
    let mut encoder = Encoder { layout: layout(relation), bytes: Vec::new() };
    for (at, (change, keys)) in changes.iter().zip(&keys).enumerate() {
        if let Some(row) = &change.new {
            write_new(relation, &mut encoder, row, keys, evaluator).map_err(|error| (at, error))?;
        }
    }
    evaluator.rows.see_writes(before);
    if let Some(touched) = &mut evaluator.touched {
        let keys = keys.into_iter().flat_map(|keys| [keys.old, keys.new]).flatten();
        touched.extend(keys.map(|keys| keys.primary));
    }
    if evaluator.journal.is_some() {
        let rows = changes.iter().flat_map(|change| [&change.old, &change.new]).flatten();
        let bytes = rows.map(|row| weight::heap_bytes(row)).sum();
        evaluator.count_bytes(bytes).map_err(|error| (0, error))?;
    }
    if let Some(journal) = &mut evaluator.journal {
        journal.extend_from_slice(changes);
    }
    Ok(())
}

/// Deletes what of the old row does not stay.
fn remove_old(relation: &Relation, keys: &ChangedKeys, rows: &mut dyn Rows) -> Result<()> {
    let Some(old) = &keys.old else { return Ok(()) };
    rows.steps(1 + relation.indexes.len() as u64)?;
    if !keys.stays() {
        rows.delete(relation.space, &old.primary)?;
    }
    for (at, index) in relation.indexes.iter().enumerate() {
        if let Some(key) = old.entry_key(at).filter(|_| !keys.entry_stays(at)) {
            rows.delete(index.space, key)?;
        }
    }
    Ok(())
}

/// Makes bytes of rows, all in the same room.
struct Encoder {
    layout: Layout,
    bytes: Vec<u8>,
}

impl Encoder {
    fn encode(&mut self, row: &[Datum]) -> &[u8] {
        self.bytes.clear();
        self.layout.encode_to(row, &mut self.bytes);
        &self.bytes
    }
}

/// Writes the new row, and its entries where they are new.
fn write_new(
    relation: &Relation,
    encoder: &mut Encoder,
    row: &[Datum],
    keys: &ChangedKeys,
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let Some(new) = &keys.new else { return Ok(()) };
    evaluator.rows.steps(1 + relation.indexes.len() as u64)?;
    if !keys.stays() && evaluator.rows.get(relation.space, &new.primary)?.is_some() {
        return Err(duplicate_primary(relation, row));
    }
    let bytes = encoder.encode(row);
    check_length(bytes.len())?;
    match keys.stays() {
        true => evaluator.rows.put(relation.space, &new.primary, bytes)?,
        false => evaluator.rows.insert(relation.space, &new.primary, bytes)?,
    }
    for (at, index) in relation.indexes.iter().enumerate() {
        let Some((key, value)) = new.entries[at].as_ref().filter(|_| !keys.entry_stays(at)) else {
            continue;
        };
        if index.is_unique() && evaluator.rows.get(index.space, key)?.is_some() {
            return Err(duplicate(relation, index, row, evaluator)?);
        }
        evaluator.rows.insert(index.space, key, value)?;
    }
    Ok(())
}

/// The longest row; longer ones than the store takes are kept in pieces.
const ROW_BYTES_MAX: usize = 16 << 20;

pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes > ROW_BYTES_MAX {
        let message = format!("row has {bytes} bytes, at most {ROW_BYTES_MAX} are stored");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// Checks that columns which are NOT NULL have values: keys are made of those.
pub(super) fn check_nulls(relation: &Relation, row: &[Datum]) -> Result<()> {
    let mut columns = relation.columns.iter().zip(row);
    match columns.find(|(column, value)| value.is_null() && !column.nullable) {
        Some((column, _)) => Err(null_in(relation, column, row)),
        None => Ok(()),
    }
}

fn null_in(relation: &Relation, column: &Column, row: &[Datum]) -> Error {
    let message = format!(
        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
        column.name, relation.name
    );
    Error::new(SqlState::NOT_NULL_VIOLATION, message)
        .with_detail(format!("Failing row contains ({}).", shown(relation, row)))
        .with_table(&relation.name)
        .with_column(&column.name)
}

/// Checks what `row` must fulfil by itself: types, NOT NULL, length and CHECK.
pub(super) fn check(
    relation: &Relation,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<()> {
    let mut bytes = 0;
    for (column, value) in relation.columns.iter().zip(row) {
        if !value.fits(column.kind.ty) {
            return Err(malformed());
        }
        if value.is_null() && !column.nullable {
            return Err(null_in(relation, column, row));
        }
        bytes += match value {
            Datum::Text(text) | Datum::Char(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            value if value.kind().and_then(Type::fixed_bytes).is_some() => 16,
            value => value.memory_bytes(),
        };
    }
    // Before the bytes are made: what is far too long makes none.
    check_length(bytes)?;
    evaluator.count_bytes(weight::WRITE_TIMES * bytes)?;
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
            .with_detail(format!("Failing row contains ({}).", shown(relation, row)))
            .with_table(&relation.name)
            .with_constraint(&check.name));
        }
    }
    Ok(())
}

/// The values of the columns that statements can name.
fn shown(relation: &Relation, row: &[Datum]) -> String {
    let zone = Zone::utc();
    let named = relation.columns.iter().zip(row).filter(|(column, _)| !column.is_hidden());
    let values = named.map(|(_, value)| match value {
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
