//! Finds the rows of a source, in the canonical order.

use super::budget::bytes_of;
use super::entries::order;
use super::evaluate::{Evaluator, malformed};
use super::ordered::visit_ordered;
use super::path::{Key, KeyValues, Path, path};
use super::rows::{Entry, Rows};
use super::weight;
use crate::ir::{Access, Among, Expression, Index, Members, ObjectId, Relation, Source, Space};
use std::ops::ControlFlow;
use values::row::{IN_PIECES, Layout};
use values::{Datum, Error, Result, SqlState, Type, key};

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

/// What takes rows one after the other, until it breaks.
pub(super) type Each<'s, T> = dyn FnMut(T, &mut Evaluator<'_>) -> Result<ControlFlow<()>> + 's;

/// In which order rows are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// That of the access; if it says none, that of the primary key.
    Canonical,
    /// Any: nothing of it can show.
    Any,
}

/// What is wanted of the rows of a source.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) order: Order,
    /// How many rows may be enough.
    pub(super) enough: usize,
}

impl Wanted {
    /// All of them in order.
    pub(super) const ALL: Wanted = Wanted { order: Order::Canonical, enough: usize::MAX };
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
    visit(source, other, Wanted::ALL, evaluator, &mut |found, evaluator| {
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
    wanted: Wanted,
    evaluator: &mut Evaluator<'_>,
    each: &mut Each<'_, Found>,
) -> Result<()> {
    let Wanted { order, enough } = wanted;
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
    let (key, access) = (Key { relation, index }, &source.access);
    let Some(path) = path(key, access, other, enough, evaluator)? else { return Ok(()) };
    let among = access.among.as_ref().filter(|_| path.is_wide);
    let condition = among.map_or(&None, |among| &among.condition);
    let table = Scanned { key, layout: layout(relation), filter: &source.filter, condition };
    let held = path.held;
    match (access.order, index) {
        (Some(key_order), _) => visit_ordered(&table, key_order, path, evaluator, each)?,
        (None, Some(_)) if order == Order::Canonical => table.sorted(path, evaluator, each)?,
        (None, _) => table.scan(path, evaluator, each)?,
    }
    evaluator.memory.subtract(held);
    Ok(())
}

/// A table while its rows are visited.
pub(super) struct Scanned<'p> {
    pub(super) key: Key<'p>,
    layout: Layout,
    filter: &'p Option<Expression>,
    /// What else must hold of rows that count.
    condition: &'p Option<Expression>,
}

impl Scanned<'_> {
    /// The rows of a path that count, in its order.
    fn scan(
        &self,
        mut path: Path,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<()> {
        while let Some(page) = path.next_page(evaluator.rows)? {
            for entry in page {
                if self.give(entry, evaluator, each)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Gives the row that an entry leads to, if it counts.
    pub(super) fn give(
        &self,
        entry: Entry,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<ControlFlow<()>> {
        let found = self.found(entry, evaluator)?;
        self.give_found(found, evaluator, each)
    }

    /// The row that an entry leads to.
    pub(super) fn found(&self, entry: Entry, evaluator: &mut Evaluator<'_>) -> Result<Found> {
        evaluator.rows.steps(1)?;
        let (key, bytes) = row_of(self.key.relation, self.key.index, entry, evaluator)?;
        let row = read(self.key.relation, &self.layout, &bytes, evaluator)?;
        Ok(Found { key, row })
    }

    /// Gives a row, if it counts.
    pub(super) fn give_found(
        &self,
        found: Found,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<ControlFlow<()>> {
        let counts = evaluator.holds(self.filter, &found.row)?
            && evaluator.holds(self.condition, &found.row)?;
        if counts { each(found, evaluator) } else { Ok(ControlFlow::Continue(())) }
    }

    /// The same in the order of the primary key.
    fn sorted(
        &self,
        path: Path,
        evaluator: &mut Evaluator<'_>,
        each: &mut Each<'_, Found>,
    ) -> Result<()> {
        let mut waiting: Vec<(Vec<u8>, Option<Vec<Datum>>)> = Vec::new();
        let (mut held, mut rows_held) = (0, 0);
        let rows_max = evaluator.context.limits.memory_bytes_max / WAITING_PART;
        self.scan(path, evaluator, &mut |found, evaluator| {
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
        let relation = self.key.relation;
        let bytes = evaluator.rows.get(relation.space, key)?;
        let bytes = bytes.ok_or_else(|| Error::corrupted("a row of a scan is gone"))?;
        read(relation, &self.layout, &bytes, evaluator)
    }
}

/// Whether the source is the row of a whole primary key.
fn is_single(source: &Source) -> bool {
    source.relation.as_ref().is_some_and(|relation| {
        let access = &source.access;
        let is_whole = access.index.is_none() && access.equal.len() == relation.primary.len();
        is_whole && access.among.is_none()
    })
}

/// Whether the source has rows of whole primary keys that the plan states, and no others.
pub(super) fn is_keyed(source: &Source) -> bool {
    let Some(relation) = &source.relation else { return false };
    let access = &source.access;
    let is_whole = access.index.is_none() && access.columns_count() == relation.primary.len();
    is_whole && access.query().is_none()
}

/// Whether one row is read at most, by its whole primary key.
pub(super) fn reads_one(source: &Source) -> bool {
    let among = source.access.among.as_ref();
    let is_one = |among: &Among| matches!(&among.members, Members::Listed(rows) if rows.len() == 1);
    is_keyed(source) && among.is_none_or(|among| is_one(among))
}

/// The keys of the rows that an access of whole primary keys covers.
pub(super) fn keys(
    relation: &Relation,
    access: &Access,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Vec<u8>>> {
    let path = path(Key { relation, index: None }, access, &[], usize::MAX, evaluator)?;
    path.map_or_else(|| Ok(Vec::new()), Path::keys)
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
    let Some(index) = index else { return whole(relation, entry, evaluator.rows) };
    let key = primary_of(relation, index, &entry)?;
    let bytes = evaluator.rows.get(relation.space, &key)?.ok_or_else(|| {
        Error::corrupted(format!("index \"{}\" has an entry without a row", index.name))
    })?;
    Ok((key, bytes))
}

/// A row that a scan has found, also if it is kept in pieces: only a look-up gathers those.
pub(super) fn whole(relation: &Relation, entry: Entry, rows: &mut dyn Rows) -> Result<Entry> {
    if entry.1.first() != Some(&IN_PIECES) {
        return Ok(entry);
    }
    let bytes = rows.get(relation.space, &entry.0)?;
    Ok((entry.0, bytes.ok_or_else(|| Error::corrupted("a row of a scan is gone"))?))
}

/// The primary key that an entry of an index leads to: its value, or the end of its key.
pub(super) fn primary_of(relation: &Relation, index: &Index, entry: &Entry) -> Result<Vec<u8>> {
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

/// The key of the one row that an access covers, which states a whole primary key; `None` if a
/// value equals nothing.
fn single_key(
    relation: &Relation,
    access: &Access,
    other: &[Datum],
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Vec<u8>>> {
    let key = Key { relation, index: None };
    let mut bytes = relation.id.to_bytes().to_vec();
    let mut columns = relation.primary.iter();
    let mut values = KeyValues { key, other, evaluator };
    let is_there = values.push_all(&mut bytes, &access.equal, &mut columns)?;
    Ok(is_there.then(|| key::shorten(bytes)))
}

/// The most bytes of a key with columns of these types, if there is a most.
fn key_bytes_max(types: &[Type]) -> Option<usize> {
    columns_bytes_max(types).map(|bytes| ObjectId::BYTES + bytes)
}

/// The most bytes of columns of these types in a key, if there is a most.
pub(super) fn columns_bytes_max(types: &[Type]) -> Option<usize> {
    types.iter().map(|ty| key::fixed_bytes(*ty).map(|bytes| bytes + 1)).sum()
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
