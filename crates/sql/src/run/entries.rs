//! The keys of rows, and the entries that indexes have of them.

use super::context::Context;
use super::evaluate::{Evaluator, malformed};
use super::path::Key;
use super::rows::{Entry, Rows};
use crate::catalog::Catalog;
use crate::ir::{Index, KeyColumn, ObjectId, Relation};
use crate::system::{Columns, Writer, key_text};
use values::{Datum, Error, Result, SqlState, Zone, key, text};

/// Room for most keys, so that they do not grow while they are made.
const KEY_BYTES_USUAL: usize = 64;

/// How a key column stands in keys.
pub(super) fn order(relation: &Relation, column: &KeyColumn) -> key::Order {
    key::Order {
        descending: column.descending,
        nulls_first: column.nulls_first,
        nullable: relation.is_nullable(column),
    }
}

/// What the keys of an index are made of.
#[derive(Clone, Copy)]
struct Values<'v> {
    row: &'v [Datum],
    /// The values of the index's expressions for the row.
    computed: &'v [Datum],
}

impl<'v> Values<'v> {
    fn of(self, column: &KeyColumn) -> Result<&'v Datum> {
        let value = match column.computed() {
            Some(place) => self.computed.get(place),
            None => self.row.get(usize::from(column.column)),
        };
        value.ok_or_else(malformed)
    }

    /// The beginning of a key: the id and the values of these columns, and whether one is NULL.
    fn key(
        self,
        relation: &Relation,
        id: ObjectId,
        columns: &[KeyColumn],
    ) -> Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::with_capacity(KEY_BYTES_USUAL);
        bytes.extend_from_slice(&id.to_bytes());
        let mut has_null = false;
        for column in columns {
            let value = self.of(column)?;
            has_null |= value.is_null();
            key::push(&mut bytes, value, order(relation, column));
        }
        Ok((bytes, has_null))
    }
}

/// The bytes of a row's values in columns of a key, which are never cut.
pub(super) fn key_values(
    key: Key<'_>,
    columns: &[&KeyColumn],
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<u8>> {
    let computed = match key.index {
        Some(index) => computed(index, row, evaluator)?.ok_or_else(malformed)?,
        None => Vec::new(),
    };
    let values = Values { row, computed: &computed };
    let mut bytes = Vec::with_capacity(KEY_BYTES_USUAL);
    for column in columns {
        key::push(&mut bytes, values.of(column)?, order(key.relation, column));
    }
    Ok(bytes)
}

/// The key of a row.
pub(crate) fn primary_key(relation: &Relation, row: &[Datum]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES_USUAL);
    bytes.extend_from_slice(&relation.id.to_bytes());
    for column in &relation.primary {
        key::push(&mut bytes, &row[usize::from(column.column)], order(relation, column));
    }
    key::shorten(bytes)
}

/// The values of an index's expressions for a row; `None` if the index has no entry of it.
fn computed(
    index: &Index,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Vec<Datum>>> {
    let Some(special) = index.special() else { return Ok(Some(Vec::new())) };
    for condition in &special.predicate {
        if evaluator.value(condition, row)? != Datum::Bool(true) {
            return Ok(None);
        }
    }
    let mut values = Vec::with_capacity(special.computed.len());
    for computed in &special.computed {
        let value = evaluator.value(&computed.value, row)?;
        if !value.fits(computed.kind.ty) {
            return Err(malformed());
        }
        values.push(value);
    }
    Ok(Some(values))
}

/// The entry of a row in an index: key and value; `None` if its predicate does not hold.
pub(super) fn entry_of(
    relation: &Relation,
    index: &Index,
    row: &[Datum],
    primary: &[u8],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Entry>> {
    let Some(computed) = computed(index, row, evaluator)? else { return Ok(None) };
    let values = Values { row, computed: &computed };
    let (mut bytes, has_null) = values.key(relation, index.id, &index.columns)?;
    if index.is_unique() && (!has_null || index.are_nulls_equal()) {
        return Ok(Some((key::shorten(bytes), primary.to_vec())));
    }
    bytes.extend_from_slice(&primary[ObjectId::BYTES..]);
    // What is cut off cannot be read from the key.
    let value = if bytes.len() > key::KEY_BYTES_MAX { primary.to_vec() } else { Vec::new() };
    Ok(Some((key::shorten(bytes), value)))
}

/// The key of the entry that keeps another row with the values of this one out of a unique index;
/// `None` if none does.
pub(super) fn unique_key(
    relation: &Relation,
    index: &Index,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(computed) = computed(index, row, evaluator)? else { return Ok(None) };
    let values = Values { row, computed: &computed };
    let (bytes, has_null) = values.key(relation, index.id, &index.columns)?;
    Ok((!has_null || index.are_nulls_equal()).then(|| key::shorten(bytes)))
}

/// Writes the entry of a row in an index that is made, if it has one; refuses one that is there in
/// a unique index.
pub(crate) fn fill_entry(
    relation: &Relation,
    index: &Index,
    row: &[Datum],
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<()> {
    let mut evaluator = Evaluator::new(context, rows);
    let primary = primary_key(relation, row);
    let entry = entry_of(relation, index, row, &primary, &mut evaluator)?;
    let Some((key, value)) = entry else { return Ok(()) };
    if index.is_unique() && evaluator.rows.get(index.space, &key)?.is_some() {
        let error = duplicate(relation, index, row, &mut evaluator)?;
        return Err(not_unique(relation, &index.name, &error));
    }
    evaluator.rows.put(index.space, &key, &value)
}

/// The error of rows that have the same key while an index is made.
fn not_unique(relation: &Relation, name: &str, error: &Error) -> Error {
    let detail = error.detail().unwrap_or_default().replace("already exists", "is duplicated");
    Error::new(SqlState::UNIQUE_VIOLATION, format!("could not create unique index \"{name}\""))
        .with_detail(detail)
        .with_table(&relation.name)
        .with_constraint(name)
}

/// The error of a key of an index that exists.
pub(super) fn duplicate(
    relation: &Relation,
    index: &Index,
    row: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Error> {
    let computed = computed(index, row, evaluator)?.unwrap_or_default();
    let values = Values { row, computed: &computed };
    let values = index.columns.iter().map(|column| values.of(column));
    let values = values.collect::<Result<Vec<&Datum>>>()?;
    // No expression of an index names a sequence.
    let catalog = &Catalog::default();
    let writer = Writer { catalog, columns: Columns::Of(relation), pretty: true, source: None };
    let name = |column: &KeyColumn| match index.expression_of(column) {
        Some(computed) => key_text(&writer, &computed.value),
        None => relation.columns[usize::from(column.column)].name.clone(),
    };
    let names = index.columns.iter().map(name).collect();
    Ok(exists(relation, &index.name, names, &values))
}

/// The error of a primary key that exists.
pub(super) fn duplicate_primary(relation: &Relation, row: &[Datum]) -> Error {
    let columns = relation.primary.iter().map(|column| usize::from(column.column));
    let names = columns.clone().map(|at| relation.columns[at].name.clone()).collect();
    let values: Vec<&Datum> = columns.map(|at| &row[at]).collect();
    exists(relation, &relation.primary_name, names, &values)
}

/// Refuses a primary key that is there while rows are written anew.
pub(crate) fn refuse_primary(
    relation: &Relation,
    row: &[Datum],
    primary: &[u8],
    rows: &mut dyn Rows,
) -> Result<()> {
    match rows.get(relation.space, primary)? {
        Some(_) => {
            let error = duplicate_primary(relation, row);
            Err(not_unique(relation, &relation.primary_name, &error))
        }
        None => Ok(()),
    }
}

fn exists(relation: &Relation, constraint: &str, names: Vec<String>, values: &[&Datum]) -> Error {
    let zone = Zone::utc();
    let shown = |value: &&Datum| match value {
        Datum::Null => "null".to_owned(),
        value => text::print(value, &zone),
    };
    let shown: Vec<String> = values.iter().map(shown).collect();
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{constraint}\""),
    )
    .with_detail(format!("Key ({})=({}) already exists.", names.join(", "), shown.join(", ")))
    .with_table(&relation.name)
    .with_constraint(constraint)
}
