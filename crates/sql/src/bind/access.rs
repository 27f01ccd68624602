//! Chooses how the rows of a table are found, and in which order they come. Any choice gives the
//! same answer: the filter looks at each row, and the interpreter puts them in canonical order or,
//! where the statement wants another one that a key has, in that.

use super::key_order::{OrderWish, key_order};
use super::known::{Comparison, Known};
use super::members::{Membership, RowRange};
use super::shape::has_column;
use crate::ir::{
    Access, Among, Bound, Expression, Function, Index, KeyColumn, Op, Relation, SortKey,
};
use values::Type;

/// Which way to take, for tests that compare them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one that reads least, by rules.
    #[default]
    Best,
    /// The whole table.
    Scan,
    /// The primary key (0) or an index (from 1), if it helps at all.
    Only(u16),
    /// The whole table, and joins that try each pair of rows.
    Loop,
    /// The best one, and joins that begin with the last table.
    Backward,
}

/// An access that was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) access: Access,
    /// How good it is.
    pub(super) score: usize,
    /// The place of a condition that all its rows meet, among those that are known. The access has
    /// to have it where the filter does not.
    pub(super) covered: Option<usize>,
}

/// The score of an access that finds one row at most.
pub(super) const SINGLE: usize = 10_000;
/// That of each column with one value.
pub(super) const EQUAL: usize = 16;
/// That of each column with several values, and with those of a query's rows.
const AMONG: usize = 14;
const AMONG_QUERIED: usize = 12;
/// That of each end of a range.
const RANGE: usize = 4;
/// That of an order that a limit cuts short, and of one that spares sorting.
const ORDER_LIMITED: usize = 3;
const ORDER: usize = 1;
/// That of what is a little better than another way as good.
const BETTER: usize = 2;

/// The access with the highest score.
pub(super) fn choose(
    relation: &Relation,
    known: &Known,
    choice: Choice,
    wish: OrderWish<'_>,
) -> Chosen {
    let mut best = Chosen::default();
    let indexes = relation.indexes.iter().enumerate();
    let ways = std::iter::once(None).chain(indexes.map(|(at, index)| Some((at as u16, index))));
    for way in ways {
        let wanted = match choice {
            Choice::Best | Choice::Backward => true,
            Choice::Scan | Choice::Loop => false,
            Choice::Only(number) => way.map_or(0, |(at, _)| at + 1) == number,
        };
        if !wanted || way.is_some_and(|(_, index)| !known.covers(index)) {
            continue;
        }
        let chosen = Way::of(relation, way.map(|(at, _)| at), known).access(wish);
        if chosen.score > best.score {
            best = chosen;
        }
    }
    best
}

/// A key by which rows may be found: that of an index, or the primary key.
#[derive(Clone, Copy)]
pub(super) struct Way<'w> {
    pub(super) relation: &'w Relation,
    at: Option<u16>,
    pub(super) known: &'w Known,
}

impl<'w> Way<'w> {
    /// The way by an index, or by the primary key.
    pub(super) fn of(relation: &'w Relation, at: Option<u16>, known: &'w Known) -> Way<'w> {
        Way { relation, at, known }
    }

    /// The way by the primary key of the table.
    pub(super) fn primary(self) -> Way<'w> {
        Way { at: None, ..self }
    }

    pub(super) fn index(self) -> Option<&'w Index> {
        self.at.and_then(|at| self.relation.indexes.get(usize::from(at)))
    }

    pub(super) fn columns(self) -> &'w [KeyColumn] {
        self.index().map_or(&self.relation.primary, |index| &index.columns)
    }

    pub(super) fn is_unique(self) -> bool {
        self.index().is_none_or(Index::is_unique)
    }

    /// The columns of the primary key, where they stand behind those of the key.
    pub(super) fn primary_behind(self) -> &'w [KeyColumn] {
        if self.is_unique() { &[] } else { &self.relation.primary }
    }

    /// Whether a program is a column of the key.
    pub(super) fn is_of(self, column: &KeyColumn, subject: &[Op]) -> bool {
        match self.index().and_then(|index| index.expression_of(column)) {
            Some(computed) => computed.value.code == subject,
            None => subject == [Op::Column(column.column)],
        }
    }

    /// Whether keys are in the order of a column's values: those of `character` have its blanks, so
    /// equal ones are found by a length, none by order.
    pub(super) fn is_sorted(self, column: &KeyColumn) -> bool {
        self.relation.key_type(self.index(), column).is_some_and(|ty| ty != Type::Char)
    }

    fn finds_equal(self, column: &KeyColumn) -> bool {
        let kind = self.relation.key_kind(self.index(), column);
        self.is_sorted(column) || kind.is_some_and(|kind| kind.modifier.length().is_some())
    }

    fn comparison(self, column: &KeyColumn, functions: &[Function]) -> Option<&'w Comparison> {
        let mut all = self.known.comparisons.iter();
        all.find(|each| functions.contains(&each.function) && self.is_of(column, &each.subject))
    }

    /// The one value that a column of the key has in all rows.
    pub(super) fn equal(self, column: &KeyColumn) -> Option<&'w Expression> {
        let found = self.comparison(column, &[Function::Equal]);
        found.filter(|_| self.finds_equal(column)).map(|found| &found.value)
    }

    /// The access by the key. All columns of a unique key are best; each equal column counts more
    /// than a range, and a part of the table is better than all of it.
    fn access(self, wish: OrderWish<'_>) -> Chosen {
        let columns = self.columns();
        let mut chosen =
            Chosen { access: Access { index: self.at, ..Access::default() }, ..Chosen::default() };
        let mut at = 0;
        while let Some(column) = columns.get(at) {
            if let Some(value) = self.equal(column) {
                chosen.add_equal(value.clone());
                at += 1;
            } else if let Some((membership, places)) = self.membership(&chosen, &columns[at..]) {
                chosen.add_among(membership, &places);
                at += places.len();
            } else {
                if self.is_sorted(column) {
                    let behind = columns[at + 1..].iter().chain(self.primary_behind());
                    self.add_range(&mut chosen, column, &behind.collect::<Vec<_>>());
                }
                break;
            }
        }
        let is_single = chosen.access.equal.len() == columns.len() && self.is_unique();
        chosen.score += if is_single { SINGLE } else { 0 };
        let is_better = match self.index() {
            // The primary key needs no second look-up.
            None => chosen.score > 0,
            Some(index) => !index.predicate().is_empty(),
        };
        chosen.score += if is_better { BETTER } else { 0 };
        self.add_order(&mut chosen, wish);
        chosen
    }

    /// What says most of the next columns of the key, if several values do, and the places of the
    /// columns in it.
    fn membership(
        self,
        chosen: &Chosen,
        columns: &[KeyColumn],
    ) -> Option<(&'w Membership, Vec<usize>)> {
        if chosen.access.among.is_some() || !columns.first().is_some_and(|it| self.finds_equal(it))
        {
            return None;
        }
        let with_places = |each: &'w Membership| {
            let mut places = each.places(self.relation, self.index(), columns);
            let fitting = columns.iter().take_while(|column| self.finds_equal(column)).count();
            places.truncate(fitting);
            (each, places)
        };
        let all = self.known.memberships.iter().map(with_places);
        let rank = |(each, places): &(&Membership, Vec<usize>)| (places.len(), !each.is_query());
        let found = all.rev().max_by_key(rank);
        found.filter(|(_, places)| !places.is_empty())
    }

    /// The range of a column, and of those behind it where rows are compared.
    fn add_range(self, chosen: &mut Chosen, column: &KeyColumn, behind: &[&KeyColumn]) {
        use Function::{Greater, GreaterEqual, Less, LessEqual};
        let access = &mut chosen.access;
        for (strict, inclusive, is_lower) in
            [(Greater, GreaterEqual, true), (Less, LessEqual, false)]
        {
            let is_it = |range: &&RowRange| {
                [strict, inclusive].contains(&range.function)
                    && self.is_of(column, &range.subjects[0])
            };
            let (bound, rest) = if let Some(range) = self.known.row_ranges.iter().find(is_it) {
                let rest = self.rest_of(range, column, behind);
                let is_whole = rest.len() + 1 == range.subjects.len();
                let inclusive = range.function == inclusive || !is_whole;
                (Some(Bound { value: range.values[0].clone(), inclusive }), rest)
            } else {
                let found = self.comparison(column, &[strict, inclusive]);
                let bound = |found: &Comparison| Bound {
                    value: found.value.clone(),
                    inclusive: found.function == inclusive,
                };
                (found.map(bound), Vec::new())
            };
            chosen.score += if bound.is_some() { RANGE } else { 0 };
            if !rest.is_empty() {
                let both = access.rest.get_or_insert_default();
                *(if is_lower { &mut both.lower } else { &mut both.upper }) = rest;
            }
            *(if is_lower { &mut access.lower } else { &mut access.upper }) = bound;
        }
    }

    /// The values behind the first one of a row that columns behind the first one are compared
    /// with.
    fn rest_of(
        self,
        range: &RowRange,
        first: &KeyColumn,
        behind: &[&KeyColumn],
    ) -> Vec<Expression> {
        let pairs = behind.iter().zip(range.subjects.iter().zip(&range.values).skip(1));
        let fitting = pairs.take_while(|(column, (subject, _))| {
            self.is_of(column, subject)
                && self.is_sorted(column)
                && column.descending == first.descending
        });
        fitting.map(|(_, (_, value))| value.clone()).collect()
    }

    fn add_order(self, chosen: &mut Chosen, wish: OrderWish<'_>) {
        let Some(order) = key_order(self, &chosen.access, wish) else { return };
        let worth = match wish.has_limit {
            true => ORDER_LIMITED,
            // To read all rows by another key takes longer than to sort them.
            false if chosen.score > 0 || self.at.is_none() => ORDER,
            false => return,
        };
        chosen.access.order = Some(order);
        chosen.score += worth;
    }
}

impl Chosen {
    fn add_equal(&mut self, value: Expression) {
        self.score += EQUAL;
        match &mut self.access.among {
            Some(among) => among.equal.push(value),
            None => self.access.equal.push(value),
        }
    }

    fn add_among(&mut self, membership: &Membership, places: &[usize]) {
        let each = if membership.is_query() { AMONG_QUERIED } else { AMONG };
        self.score += each * places.len();
        self.covered = membership.is_all(places).then_some(membership.place);
        let members = membership.members(places);
        let among = Among { members, equal: Vec::new(), condition: None };
        self.access.among = Some(Box::new(among));
    }
}

pub(super) fn bounds(access: &Access) -> impl Iterator<Item = &Bound> {
    access.lower.iter().chain(&access.upper)
}

/// Whether an access needs the rows of other items.
pub(super) fn depends(access: &Access) -> bool {
    let (lower, upper) = access.rest();
    let rest = lower.iter().chain(upper);
    let behind = access.among.iter().flat_map(|among| &among.equal);
    let values = access.equal.iter().chain(behind).chain(rest);
    values.chain(bounds(access).map(|bound| &bound.value)).any(|value| has_column(&value.code))
}

/// An order that a statement wants no rows to be sorted for.
pub(super) fn order_wish(sort: &[SortKey], has_limit: bool) -> OrderWish<'_> {
    OrderWish { sort, has_limit, has_nulls: true, is_joined: false }
}
