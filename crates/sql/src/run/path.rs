//! The keys that an access covers: spans of one key, none over another, in its order or in the
//! opposite one.

use super::entries::order;
use super::evaluate::{Evaluator, malformed};
use super::range::Range;
use super::rows::{Entry, Rows};
use crate::ir::{Access, Among, Bound, Expression, Index, KeyColumn, Members, Relation, Space};
use values::{Datum, Numeric, Result, Type, key, without_blanks};

/// The key by which rows are found: that of an index, or the primary key.
#[derive(Clone, Copy)]
pub(super) struct Key<'p> {
    pub(super) relation: &'p Relation,
    pub(super) index: Option<&'p Index>,
}

/// Keys of a path that belong together.
#[derive(PartialEq, Eq)]
enum Span {
    /// The one key with all values of a unique key.
    One(Vec<u8>),
    /// Those from the first on and before the second.
    Range(Vec<u8>, Option<Vec<u8>>),
}

/// The entries that an access leads to, page by page.
pub(super) struct Path {
    space: Space,
    spans: std::vec::IntoIter<Span>,
    /// The range that is read now, with its first key.
    open: Option<(Range, Vec<u8>)>,
    is_backward: bool,
    /// The number of the key's columns that have one value in a span.
    pub(super) columns_count: usize,
    /// How many entries may be enough for who reads them.
    enough: usize,
    /// Whether some keys are too long to tell rows apart, so that rows come that do not count.
    pub(super) is_wide: bool,
    /// The memory that spans take.
    pub(super) held: usize,
}

impl<'p> Key<'p> {
    pub(super) fn columns(self) -> &'p [KeyColumn] {
        self.index.map_or(&self.relation.primary, |index| &index.columns)
    }

    /// Whether entries have only these columns as their keys.
    fn is_unique(self) -> bool {
        self.index.is_none_or(Index::is_unique)
    }

    /// The columns of the primary key, where they stand behind those of the key.
    pub(super) fn primary_behind(self) -> &'p [KeyColumn] {
        if self.is_unique() { &[] } else { &self.relation.primary }
    }

    fn space(self) -> Space {
        self.index.map_or(self.relation.space, |index| index.space)
    }

    fn prefix(self) -> Vec<u8> {
        self.index.map_or(self.relation.id, |index| index.id).to_bytes().to_vec()
    }
}

/// Appends what a plan compares a key's column with. Columns have their types when rows are read;
/// this has it only if the plan is one of a binder. Returns false if no value of the column is
/// equal: NULL is to none, and a `character` to none that is shorter.
fn push_equal(
    bytes: &mut Vec<u8>,
    value: &Datum,
    key: Key<'_>,
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

/// Appends a value that may be of a wider type than an integer column, and then equals one of its
/// values or none. Returns what [`push_equal`] does.
fn push_member(
    bytes: &mut Vec<u8>,
    value: &Datum,
    key: Key<'_>,
    column: &KeyColumn,
) -> Result<bool> {
    let ty = key.relation.key_type(key.index, column).ok_or_else(malformed)?;
    if value.is_null() || value.fits(ty) {
        return push_equal(bytes, value, key, column);
    }
    let whole = match value {
        Datum::Int2(value) => Some(i64::from(*value)),
        Datum::Int4(value) => Some(i64::from(*value)),
        Datum::Int8(value) => Some(*value),
        // A number is rounded, unless it is whole.
        Datum::Numeric(value) => {
            value.to_i64().ok().filter(|whole| Numeric::from(*whole) == *value)
        }
        _ => return Err(malformed()),
    };
    let own = match ty {
        Type::Int2 => whole.and_then(|whole| i16::try_from(whole).ok()).map(Datum::Int2),
        Type::Int4 => whole.and_then(|whole| i32::try_from(whole).ok()).map(Datum::Int4),
        Type::Int8 => whole.map(Datum::Int8),
        _ => return Err(malformed()),
    };
    own.map_or(Ok(false), |own| push_equal(bytes, &own, key, column))
}

/// Appends the end of a range of a key's column. Keys of `character` are not in the order of their
/// values, as blanks are in them: no range is of one.
fn push_bound(bytes: &mut Vec<u8>, value: &Datum, key: Key<'_>, column: &KeyColumn) -> Result<()> {
    let ty = key.relation.key_type(key.index, column);
    if !ty.is_some_and(|ty| ty != Type::Char && value.fits(ty)) {
        return Err(malformed());
    }
    key::push(bytes, value, order(key.relation, column));
    Ok(())
}

/// What a key's columns are compared with: values over another row.
pub(super) struct KeyValues<'v, 'e> {
    pub(super) key: Key<'v>,
    pub(super) other: &'v [Datum],
    pub(super) evaluator: &'v mut Evaluator<'e>,
}

impl KeyValues<'_, '_> {
    fn value(&mut self, expression: &Expression) -> Result<Datum> {
        self.evaluator.value(expression, self.other)
    }

    /// Appends a value for each of these columns; false if a value equals nothing.
    pub(super) fn push_all<'c>(
        &mut self,
        bytes: &mut Vec<u8>,
        values: &[Expression],
        columns: &mut impl Iterator<Item = &'c KeyColumn>,
    ) -> Result<bool> {
        for expression in values {
            let column = columns.next().ok_or_else(malformed)?;
            let value = self.value(expression)?;
            if !push_equal(bytes, &value, self.key, column)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The path of an access, which sees another row; `None` if a value equals nothing.
pub(super) fn path(
    key: Key<'_>,
    access: &Access,
    other: &[Datum],
    enough: usize,
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Path>> {
    let mut prefix = key.prefix();
    let mut columns = key.columns().iter();
    let mut values = KeyValues { key, other, evaluator };
    if !values.push_all(&mut prefix, &access.equal, &mut columns)? {
        return Ok(None);
    }
    let mut prefixes = Prefixes { all: Vec::new(), bytes: 0 };
    match &access.among {
        None => prefixes.all.push(prefix),
        Some(among) => prefixes.fill(&prefix, among, columns.as_slice(), &mut values)?,
    }
    let rest = key.columns().get(access.columns_count()..).ok_or_else(malformed)?;
    let ends = match rest.split_first() {
        Some((column, behind)) => {
            let behind: Vec<_> = behind.iter().chain(key.primary_behind()).collect();
            let ends = Ends::of(column, &behind, access, &mut values)?;
            let Some(ends) = ends else { return Ok(None) };
            ends
        }
        None => Ends::default(),
    };
    let is_wide = prefixes.all.iter().any(|prefix| prefix.len() > key::KEY_HEAD_BYTES);
    let is_one = rest.is_empty() && key.is_unique();
    let span = |prefix: Vec<u8>| match is_one {
        true => Span::One(key::shorten(prefix)),
        false => ends.span(&prefix),
    };
    let mut spans: Vec<Span> = prefixes.all.into_iter().map(span).collect();
    // Those of long keys with the same beginning are one.
    spans.dedup();
    Ok(Some(Path {
        space: key.space(),
        spans: spans.into_iter(),
        open: None,
        columns_count: access.columns_count(),
        is_backward: access.order.is_some_and(|order| order.is_backward),
        enough,
        is_wide: is_wide && !is_one,
        held: prefixes.bytes,
    }))
}

/// What keys of a range have behind the equal columns: the first ones and the last ones. The values
/// of bounds may be covered although they do not count: the filter looks again.
#[derive(Default)]
struct Ends {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Ends {
    /// Those of a range of this column; `None` if a bound is NULL.
    fn of(
        column: &KeyColumn,
        behind: &[&KeyColumn],
        access: &Access,
        values: &mut KeyValues<'_, '_>,
    ) -> Result<Option<Ends>> {
        let key = values.key;
        let mut ends = Ends::default();
        let (lower_rest, upper_rest) = access.rest();
        let has_bound = access.lower.is_some() || access.upper.is_some();
        let counts_null = !has_bound && access.order.is_none_or(|order| order.has_nulls);
        if key.relation.is_nullable(column) && !counts_null {
            ends = Ends { first: vec![key::MARK_VALUE], last: vec![key::MARK_VALUE] };
        }
        for (bound, rest, is_lower) in
            [(&access.lower, lower_rest, true), (&access.upper, upper_rest, false)]
        {
            let Some(Bound { value, .. }) = bound else { continue };
            let value = values.value(value)?;
            if value.is_null() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            push_bound(&mut bytes, &value, key, column)?;
            if rest.len() > behind.len() {
                return Err(malformed());
            }
            for (value, column) in rest.iter().zip(behind) {
                let value = values.value(value)?;
                // No row is larger or smaller by what is NULL, but by a value before it.
                if value.is_null() {
                    break;
                }
                push_bound(&mut bytes, &value, key, column)?;
            }
            match is_lower != column.descending {
                true => ends.first = bytes,
                false => ends.last = bytes,
            }
        }
        Ok(Some(ends))
    }

    /// The keys with this beginning that are in the range.
    fn span(&self, prefix: &[u8]) -> Span {
        let last = key::bound([prefix, &self.last[..]].concat());
        Span::Range(key::bound([prefix, &self.first[..]].concat()), key::after_prefix(&last))
    }
}

/// The beginnings of keys with each of several values: sorted, and each once.
struct Prefixes {
    all: Vec<Vec<u8>>,
    /// The memory that they take.
    bytes: usize,
}

impl Prefixes {
    fn fill(
        &mut self,
        prefix: &[u8],
        among: &Among,
        columns: &[KeyColumn],
        values: &mut KeyValues<'_, '_>,
    ) -> Result<()> {
        let (own, behind) = columns.split_at_checked(among.width()).ok_or_else(malformed)?;
        let mut tail = Vec::new();
        if !values.push_all(&mut tail, &among.equal, &mut behind.iter())? {
            return Ok(());
        }
        let KeyValues { key, other, ref mut evaluator } = *values;
        let mut add = |values: &[&Datum], evaluator: &mut Evaluator<'_>| {
            let mut bytes = prefix.to_vec();
            if values.len() != own.len() {
                return Err(malformed());
            }
            evaluator.rows.steps(1)?;
            for (value, column) in values.iter().zip(own) {
                if !push_member(&mut bytes, value, key, column)? {
                    return Ok(());
                }
            }
            bytes.extend_from_slice(&tail);
            let held = size_of::<Span>() + 2 * bytes.len();
            self.bytes += held;
            self.all.push(bytes);
            evaluator.memory.add_bytes(held)
        };
        match &among.members {
            Members::Listed(rows) => {
                for row in rows {
                    let values = evaluator.values(row, other)?;
                    add(&values.iter().collect::<Vec<_>>(), evaluator)?;
                }
            }
            Members::Array(array) => match evaluator.value(array, other)? {
                Datum::Null => {}
                Datum::Array(array) => {
                    for item in array.items() {
                        add(&[item], evaluator)?;
                    }
                }
                _ => return Err(malformed()),
            },
            Members::Query(number, places) => {
                for row in evaluator.rows_of(*number, usize::MAX)?.iter() {
                    let place = |place: &u16| row.get(usize::from(*place)).ok_or_else(malformed);
                    let values = places.iter().map(place).collect::<Result<Vec<&Datum>>>()?;
                    add(&values, evaluator)?;
                }
            }
        }
        evaluator.count_sort(self.bytes, self.all.len())?;
        self.all.sort_unstable();
        self.all.dedup();
        Ok(())
    }
}

impl Path {
    /// The next entries; `None` behind the last ones.
    pub(super) fn next_page(&mut self, rows: &mut dyn Rows) -> Result<Option<Vec<Entry>>> {
        loop {
            if let Some((range, _)) = &mut self.open {
                if let Some(page) = range.next_page(rows)? {
                    return Ok(Some(page));
                }
                self.open = None;
            }
            let span = match self.is_backward {
                true => self.spans.next_back(),
                false => self.spans.next(),
            };
            match span {
                None => return Ok(None),
                Some(Span::One(key)) => {
                    if let Some(value) = rows.get(self.space, &key)? {
                        return Ok(Some(vec![(key, value)]));
                    }
                }
                Some(Span::Range(from, to)) => {
                    let range = Range::new(self.space, from.clone(), to);
                    let range = if self.is_backward { range.backward() } else { range };
                    self.open = Some((range.with_enough(self.enough), from));
                }
            }
        }
    }

    /// The keys, of a path of whole keys.
    pub(super) fn keys(self) -> Result<Vec<Vec<u8>>> {
        let keys = self.spans.map(|span| match span {
            Span::One(key) => Ok(key),
            Span::Range(..) => Err(malformed()),
        });
        keys.collect()
    }

    /// Whether the span of the last page has keys behind it.
    pub(super) fn has_more(&self) -> bool {
        self.open.as_ref().is_some_and(|(range, _)| range.has_more())
    }

    /// Goes on with the keys before `to` of the span of the last page, of a path in the opposite
    /// order.
    pub(super) fn go_on_before(&mut self, to: Vec<u8>) {
        if let Some((range, from)) = &mut self.open {
            range.go_on_before(to, from);
        }
    }

    /// The keys of the last page's span from `from` on and before `to`, in their order.
    pub(super) fn within(&self, from: &[u8], to: Vec<u8>) -> Range {
        let from = match &self.open {
            Some((_, first)) => from.max(&first[..]),
            None => from,
        };
        Range::new(self.space, from.to_vec(), Some(to)).with_enough(self.enough)
    }
}
