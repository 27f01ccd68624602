//! Finds the rows of a source, in the canonical order.

use super::budget::bytes_of;
use super::entries::order;
use super::evaluate::{Evaluator, malformed};
use super::range::Range;
use super::rows::Entry;
use super::weight;
use crate::ir::{Access, Expression, Index, KeyColumn, ObjectId, Relation, Source, Space};
use std::ops::ControlFlow;
use values::row::Layout;
use values::{Datum, Error, Result, SqlState, Type, key, without_blanks};

/// A row with the key that it has in the store.
pub(super) struct Found {
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<Datum>,
}

/// The layout of a relation's rows.
pub(super) fn layout(relation: &Relation) -> Layout {
    Layout::new(relation.columns.iter().map(|column| column.kind.ty).collect())
}

/// A row's values: what the row does not have yet is what the catalog says.
pub(super) fn decode(relation: &Relation, layout: &Layout, bytes: &[u8]) -> Result<Vec<Datum>> {
    let mut row = layout.decode(bytes)?;
    row.extend(relation.columns[row.len()..].iter().map(|column| match &column.missing.0 {
        Datum::Text(text) if column.kind.ty == Type::Char => Datum::Char(text.clone()),
        missing => missing.clone(),
    }));
    if row.iter().zip(&relation.columns).any(|(value, column)| value.is_null() && !column.nullable)
    {
        return Err(Error::corrupted("row is damaged: NULL in a column that has none"));
    }
    Ok(row)
}

/// The same while a statement runs: it takes steps for the bytes.
pub(super) fn read(
    relation: &Relation,
    layout: &Layout,
    bytes: &[u8],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Datum>> {
    evaluator.count_bytes(weight::READ_TIMES * bytes.len())?;
    decode(relation, layout, bytes)
}

/// Appends what a plan compares a key's column with. Columns have their types when rows are read;
/// this has it only if the plan is one of a binder. Returns false if no value of the column is
/// equal: NULL is to none, and a `character` to none that is shorter.
fn push_equal(
    bytes: &mut Vec<u8>,
    value: &Datum,
    key: &Key<'_>,
    column: &KeyColumn,
) -> Result<bool> {
    let Some(kind) = key.relation.key_kind(key.index, column) else { return Err(malformed()) };
    if value.is_null() {
        return Ok(false);
    }
    if !value.fits(kind.ty) {
        return Err(malformed());
    }
    let order = order(key.relation, column);
    match value {
        Datum::Text(text) | Datum::Char(text) if kind.ty == Type::Char => {
            let length = kind.modifier.length().ok_or_else(malformed)?;
            let text = without_blanks(text);
            let Some(blanks) = length.checked_sub(text.chars().count()) else { return Ok(false) };
            let own = [text, &" ".repeat(blanks)].concat();
            key::push(bytes, &Datum::Char(own.into()), order);
        }
        value => key::push(bytes, value, order),
    }
    Ok(true)
}

/// Appends the end of a range of a key's column. Keys of `character` are not in the order of their
/// values, as blanks are in them: no range is of one.
fn push_bound(bytes: &mut Vec<u8>, value: &Datum, key: &Key<'_>, column: &KeyColumn) -> Result<()> {
    let ty = key.relation.key_type(key.index, column);
    if !ty.is_some_and(|ty| ty != Type::Char && value.fits(ty)) {
        return Err(malformed());
    }
    key::push(bytes, value, order(key.relation, column));
    Ok(())
}

/// The key by which rows are found: that of an index, or the primary key.
struct Key<'p> {
    relation: &'p Relation,
    index: Option<&'p Index>,
}

/// What takes rows one after the other, until it breaks.
pub(super) type Each<'s, T> = dyn FnMut(T, &mut Evaluator<'_>) -> Result<ControlFlow<()>> + 's;

/// In which order rows are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// That of the primary key.
    Canonical,
    /// Any: nothing of it can show.
    Any,
}

/// The part of a statement's memory that rows may take which wait to be put in order; of further
/// ones only the keys are kept, and they are read again.
const WAITING_PART: usize = 16;

/// All rows of the source that count, in the order of the primary key.
pub(super) fn find(source: &Source, evaluator: &mut Evaluator<'_>) -> Result<Vec<Found>> {
    find_for(source, &[], evaluator)
}

/// The same where the access sees another row.
pub(super) fn find_for(
    source: &Source,
    other: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    visit(source, other, Order::Canonical, evaluator, &mut |found, evaluator| {
        evaluator.memory.add(&found.row)?;
        all.push(found);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(all)
}

/// Gives the rows of the source that count to `each`. The access sees another row.
pub(super) fn visit(
    source: &Source,
    other: &[Datum],
    order: Order,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Found>,
) -> Result<()> {
    let Some(relation) = &source.relation else {
        if evaluator.holds(&source.filter, &[])? {
            let _ = each(Found { key: Vec::new(), row: Vec::new() }, evaluator)?;
        }
        return Ok(());
    };
    if is_single(source) {
        if let Some(found) = find_single(relation, source, other, evaluator)? {
            let _ = each(found, evaluator)?;
        }
        return Ok(());
    }
    let index = match source.access.index {
        Some(at) => Some(relation.indexes.get(usize::from(at)).ok_or_else(|| {
            Error::new(SqlState::DATA_CORRUPTED, "plan names an index that its table does not have")
        })?),
        None => None,
    };
    let Some(range) = range(relation, index, &source.access, other, evaluator)? else {
        return Ok(());
    };
    let table = Scanned { relation, layout: layout(relation), filter: &source.filter };
    match index {
        Some(_) if order == Order::Canonical => table.sorted(index, range, evaluator, each),
        _ => table.scan(index, range, evaluator, each),
    }
}

/// A table while its rows are visited.
struct Scanned<'p> {
    relation: &'p Relation,
    layout: Layout,
    filter: &'p Option<Expression>,
}

impl Scanned<'_> {
    /// The rows of a range that count, in its order.
    fn scan(
        &self,
        index: Option<&Index>,
        mut range: Range,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<()> {
        while let Some(page) = range.next_page(evaluator.rows)? {
            for entry in page {
                evaluator.rows.steps(1)?;
                let (key, bytes) = row_of(self.relation, index, entry, evaluator)?;
                let row = read(self.relation, &self.layout, &bytes, evaluator)?;
                if evaluator.holds(self.filter, &row)?
                    && each(Found { key, row }, evaluator)?.is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The same in the order of the primary key.
    fn sorted(
        &self,
        index: Option<&Index>,
        range: Range,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<()> {
        let mut waiting: Vec<(Vec<u8>, Option<Vec<Datum>>)> = Vec::new();
        let (mut held, mut rows_held) = (0, 0);
        let rows_max = evaluator.context.limits.memory_bytes_max / WAITING_PART;
        self.scan(index, range, evaluator, &mut |found, evaluator| {
            let Found { key, row } = found;
            let row_bytes = bytes_of(&row);
            let row = (rows_held + row_bytes <= rows_max).then_some(row);
            let kept = if row.is_some() { row_bytes } else { 0 };
            let bytes = key.len() + size_of::<(Vec<u8>, Option<Vec<Datum>>)>() + kept;
            evaluator.memory.add_bytes(bytes)?;
            (held, rows_held) = (held + bytes, rows_held + kept);
            waiting.push((key, row));
            Ok(ControlFlow::Continue(()))
        })?;
        waiting.sort_by(|left, right| left.0.cmp(&right.0));
        for (key, row) in waiting {
            let row = match row {
                Some(row) => row,
                None => self.again(&key, evaluator)?,
            };
            if each(Found { key, row }, evaluator)?.is_break() {
                break;
            }
        }
        evaluator.memory.subtract(held);
        Ok(())
    }

    /// A row that was there before.
    fn again(&self, key: &[u8], evaluator: &mut Evaluator<'_>) -> Result<Vec<Datum>> {
        evaluator.rows.steps(1)?;
        let bytes = evaluator.rows.get(self.relation.space, key)?;
        let bytes = bytes.ok_or_else(|| Error::corrupted("a row of a scan is gone"))?;
        read(self.relation, &self.layout, &bytes, evaluator)
    }
}

/// Whether the source is the row of a whole primary key.
pub(super) fn is_single(source: &Source) -> bool {
    source.relation.as_ref().is_some_and(|relation| {
        source.access.index.is_none() && source.access.equal.len() == relation.primary.len()
    })
}

/// The row of a whole primary key, if it is there and counts.
fn find_single(
    relation: &Relation,
    source: &Source,
    other: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Found>> {
    let Some(key) = single_key(relation, &source.access, other, evaluator)? else {
        return Ok(None);
    };
    let Some(bytes) = evaluator.rows.get(relation.space, &key)? else { return Ok(None) };
    evaluator.rows.steps(1)?;
    let row = read(relation, &layout(relation), &bytes, evaluator)?;
    Ok(evaluator.holds(&source.filter, &row)?.then_some(Found { key, row }))
}

/// The row that an entry of a scan leads to. Entries of rows always lead to a row.
pub(super) fn row_of(
    relation: &Relation,
    index: Option<&Index>,
    entry: Entry,
    evaluator: &mut Evaluator<'_>,
) -> Result<Entry> {
    let Some(index) = index else { return Ok(entry) };
    let key = primary_of(relation, index, &entry)?;
    let bytes = evaluator.rows.get(relation.space, &key)?.ok_or_else(|| {
        Error::corrupted(format!("index \"{}\" has an entry without a row", index.name))
    })?;
    Ok((key, bytes))
}

/// The primary key that an entry of an index leads to: its value, or the end of its key.
fn primary_of(relation: &Relation, index: &Index, entry: &Entry) -> Result<Vec<u8>> {
    let (key, value) = entry;
    if !value.is_empty() {
        return Ok(value.clone());
    }
    let mut rest = key
        .get(ObjectId::BYTES..)
        .ok_or_else(|| Error::corrupted("entry of an index is damaged"))?;
    for column in &index.columns {
        let ty = relation.key_type(Some(index), column).ok_or_else(malformed)?;
        rest = key::skip(rest, ty, order(relation, column))?;
    }
    Ok([&relation.id.to_bytes(), rest].concat())
}

/// The keys that an access covers; `None` if a value equals nothing.
fn range(
    relation: &Relation,
    index: Option<&Index>,
    access: &Access,
    other: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Range>> {
    let (id, space, columns) = match index {
        Some(index) => (index.id, index.space, &index.columns),
        None => (relation.id, relation.space, &relation.primary),
    };
    let key = Key { relation, index };
    let mut prefix = id.to_bytes().to_vec();
    let mut columns = columns.iter();
    for (expression, column) in access.equal.iter().zip(columns.by_ref()) {
        let value = evaluator.value(expression, other)?;
        if !push_equal(&mut prefix, &value, &key, column)? {
            return Ok(None);
        }
    }
    let (mut from, mut to) = (prefix.clone(), key::after_prefix(&key::bound(prefix.clone())));
    if let Some(column) = columns.next() {
        for (bound, is_lower) in [(&access.lower, true), (&access.upper, false)] {
            let Some(bound) = bound else { continue };
            let value = evaluator.value(&bound.value, other)?;
            if value.is_null() {
                return Ok(None);
            }
            let mut bytes = prefix.clone();
            push_bound(&mut bytes, &value, &key, column)?;
            // The value itself may be covered although it does not count: the filter looks again.
            if is_lower != column.descending {
                from = bytes;
            } else {
                to = key::after_prefix(&key::bound(bytes));
            }
        }
    }
    Ok(Some(Range::new(space, key::bound(from), to)))
}

/// The key of the one row that an access covers, which states a whole primary key; `None` if a
/// value equals nothing.
pub(super) fn single_key(
    relation: &Relation,
    access: &Access,
    other: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Vec<u8>>> {
    let key = Key { relation, index: None };
    let mut bytes = relation.id.to_bytes().to_vec();
    for (expression, column) in access.equal.iter().zip(&relation.primary) {
        let value = evaluator.value(expression, other)?;
        if !push_equal(&mut bytes, &value, &key, column)? {
            return Ok(None);
        }
    }
    Ok(Some(key::shorten(bytes)))
}

/// The most bytes of a key with columns of these types, if there is a most.
fn key_bytes_max(types: &[Type]) -> Option<usize> {
    let columns: Option<usize> =
        types.iter().map(|ty| key::fixed_bytes(*ty).map(|bytes| bytes + 1)).sum();
    columns.map(|bytes| ObjectId::BYTES + bytes)
}

/// The space of a relation whose key and rows have these types.
pub(crate) fn space_for(key_types: &[Type], row_types: &[Type]) -> Space {
    let wide = row_types.len() > 16 || row_types.contains(&Type::Jsonb);
    match key_bytes_max(key_types) {
        Some(..=64) => Space::Key64,
        _ if wide => Space::Row1k,
        _ => Space::Row256,
    }
}

/// The space of an index's entries.
pub(crate) fn entry_space_for(key_types: &[Type]) -> Space {
    match key_bytes_max(key_types) {
        Some(..=24) => Space::Short,
        Some(..=64) => Space::Key64,
        _ => Space::Row256,
    }
}
