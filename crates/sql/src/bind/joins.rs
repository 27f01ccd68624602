//! Chooses how tables are joined, by rules: in which order, and how the rows of each are found.
//! Any choice gives the same answer: parts of conditions are looked at for each row where all that
//! they name is there, and the interpreter puts the rows in canonical order.

use super::access::{Choice, Chosen, EQUAL, SINGLE, choose, depends};
use super::binder::Binder;
use super::coerce::Bound;
use super::conditions::{Conjunct, all_of};
use super::from::{FromItem, FromRows};
use super::key_order::OrderWish;
use super::known::{Comparison, Known};
use super::members::{Membership, RowRange};
use crate::ir::{
    ColumnNumber, Expression, Function, Input, Item, ItemRows, JoinKind, Joins, Kind, Method, Op,
    Relation, Source,
};
use values::Type;

/// Items as bits.
type Items = u64;

/// A conjunct that is looked at where its items are there.
struct Pooled {
    conjunct: Conjunct,
    uses: Items,
    /// The first item at which it may be looked at: rows without partners come in behind.
    least: usize,
    is_used: bool,
}

/// What the choice is made of.
struct Planner<'p, 'a> {
    binder: &'p Binder<'a>,
    items: Vec<FromItem>,
    pool: Vec<Pooled>,
    joined: Joined,
}

/// What joined rows are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// A query.
    Read,
    /// The first table, whose rows a statement writes.
    Written,
}

/// How good it is to read an item next: by the first part in which two differ.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Whether one row is found at most.
    is_single: bool,
    /// Whether a condition joins it with what is placed.
    is_connected: bool,
    /// The score of a table some of whose columns have one value.
    equal_score: usize,
    /// Whether it leads to the rows of a table.
    leads: bool,
    score: usize,
}

/// How an item's rows are found, and what is left of the conditions.
struct Way {
    source: Source,
    method: Method,
    rest: Vec<Conjunct>,
}

impl Binder<'_> {
    /// The plan of a FROM with the conditions of its WHERE.
    pub(super) fn joins(
        &self,
        items: Vec<FromItem>,
        conditions: Vec<Conjunct>,
        joined: Joined,
    ) -> Joins {
        let mut planner = Planner { binder: self, items, pool: Vec::new(), joined };
        planner.fill(conditions);
        let order = planner.order();
        let mut placed = 0;
        let mut read = Vec::with_capacity(order.len());
        for at in &order {
            read.push(planner.item(*at, placed));
            placed |= 1 << at;
        }
        assert!(planner.pool.iter().all(|pooled| pooled.is_used), "each condition is looked at");
        let mut stated = vec![0; order.len()];
        for (place, at) in order.iter().enumerate() {
            stated[*at] = place as u16;
        }
        if stated.is_sorted() {
            stated.clear();
        }
        Joins { items: read, stated }
    }
}

impl Planner<'_, '_> {
    /// Collects what may be looked at apart from its place: WHERE, and ON of inner joins.
    fn fill(&mut self, conditions: Vec<Conjunct>) {
        let last_keeper =
            |items: &[FromItem]| items.iter().rposition(|item| item.kind.keeps_own()).unwrap_or(0);
        for at in 0..self.items.len() {
            let least = last_keeper(&self.items[..=at]);
            if self.items[at].kind != JoinKind::Inner {
                continue;
            }
            for conjunct in std::mem::take(&mut self.items[at].on) {
                let uses = self.uses(&conjunct.bound.code, at);
                self.pool.push(Pooled { conjunct, uses, least, is_used: false });
            }
        }
        let (least, last) = (last_keeper(&self.items), self.items.len() - 1);
        for conjunct in conditions {
            let uses = self.uses(&conjunct.bound.code, last);
            self.pool.push(Pooled { conjunct, uses, least, is_used: false });
        }
    }

    fn item_of(&self, column: ColumnNumber) -> usize {
        let column = usize::from(column);
        let is_of = |item: &FromItem| (item.begin..item.begin + item.width).contains(&column);
        self.items.iter().position(is_of).expect("a column is of an item")
    }

    /// The items that a program needs; all up to the last if it needs the whole row.
    fn uses(&self, code: &[Op], last: usize) -> Items {
        if !self.binder.is_movable(code) {
            return Items::MAX >> (Items::BITS as usize - 1 - last);
        }
        let columns = code.iter().filter_map(|op| match op {
            Op::Column(column) => Some(*column),
            _ => None,
        });
        columns.fold(0, |uses, column| uses | 1 << self.item_of(column))
    }

    /// The order in which the items are read: outer joins, and queries that see the rows before
    /// them, keep their places.
    fn order(&self) -> Vec<usize> {
        let is_free = |item: &&FromItem| {
            item.kind == JoinKind::Inner && !matches!(item.rows, FromRows::Lateral(_))
        };
        let fixed = self.items.iter().any(|item| item.kind.keeps_own());
        let free = if fixed { 0 } else { self.items.iter().take_while(is_free).count() };
        let mut order: Vec<usize> = Vec::with_capacity(self.items.len());
        match self.binder.choice {
            Choice::Backward => order.extend((0..free).rev()),
            Choice::Loop => order.extend(0..free),
            _ => {
                let mut placed = 0;
                while order.len() < free {
                    let left = (0..free).rev().filter(|at| placed & (1 << at) == 0);
                    let best = left.max_by_key(|at| self.rank(*at, placed));
                    let best = best.expect("an item is left");
                    placed |= 1 << best;
                    order.push(best);
                }
            }
        }
        order.extend(free..self.items.len());
        order
    }

    /// How good it is to read an item next.
    fn rank(&self, at: usize, placed: Items) -> Rank {
        let own = 1 << at;
        let joins = |pooled: &Pooled| {
            pooled.uses & own != 0
                && pooled.uses & placed != 0
                && pooled.uses & !(own | placed) == 0
        };
        let is_connected = placed == 0 || self.pool.iter().any(joins);
        let score = self.score(at, placed);
        let equal_score = if score >= EQUAL { score } else { 0 };
        let leads = placed == 0 && equal_score == 0 && self.leads(at);
        Rank { is_single: score >= SINGLE, is_connected, equal_score, leads, score }
    }

    /// How good a table is read next.
    fn score(&self, at: usize, placed: Items) -> usize {
        let FromRows::Table(relation) = &self.items[at].rows else { return 0 };
        let conjuncts = self.pool.iter().map(|pooled| &pooled.conjunct);
        let known = self.known(at, placed, conjuncts);
        choose(relation, &known, self.binder.choice, OrderWish::default()).score
    }

    /// Whether rows of a query lead to those of a table by equal columns, so that the table is not
    /// read as a whole. Rows that are read in another order than stated wait to be sorted: a query
    /// must have few, unless all rows wait to be written anyway.
    fn leads(&self, at: usize) -> bool {
        let FromRows::Query(number) = self.items[at].rows else { return false };
        let query = &self.binder.queries[usize::from(number)];
        let is_listed =
            matches!(query.input, Input::Values(_) | Input::Functions(..) | Input::Returned(_));
        let is_short = is_listed || query.select.limit.is_some();
        if self.joined == Joined::Read && !is_short {
            return false;
        }
        let is_table = |other: usize| matches!(self.items[other].rows, FromRows::Table(_));
        let is_led = |other: usize| {
            self.items[other].kind == JoinKind::Inner
                && is_table(other)
                && self.score(other, 0) < EQUAL
                && self.score(other, 1 << at) >= EQUAL
        };
        (0..self.items.len()).any(is_led)
    }

    /// What conjuncts say about an item's rows, given the items that are placed.
    fn known<'c>(
        &self,
        at: usize,
        placed: Items,
        conjuncts: impl Iterator<Item = &'c Conjunct>,
    ) -> Known {
        let (begin, last) = (self.items[at].begin, self.items.len() - 1);
        let has_parts = match &self.items[at].rows {
            FromRows::Table(relation) => {
                relation.indexes.iter().any(|index| !index.predicate().is_empty())
            }
            FromRows::Query(_) | FromRows::Lateral(_) => false,
        };
        let mut known = Known::default();
        for (place, conjunct) in conjuncts.enumerate() {
            for note in &conjunct.notes {
                let uses = self.uses(&note.value.code, last);
                if self.uses(&note.subject, last) == 1 << at && uses & !placed == 0 {
                    let subject = at_beginning(note.subject.clone(), begin);
                    known.comparisons.push(Comparison { subject, ..note.clone() });
                }
            }
            if !self.is_own(at, conjunct) {
                continue;
            }
            let code = &conjunct.bound.code;
            let membership = Membership::of(code, place, self.binder);
            known.memberships.extend(membership.map(|each| each.at_beginning(begin)));
            let range = RowRange::of(code, self.binder);
            known.row_ranges.extend(range.map(|each| each.at_beginning(begin)));
            if has_parts {
                known.facts.push(at_beginning(code.clone(), begin));
            }
        }
        known
    }

    /// Whether a conjunct is only about an item.
    fn is_own(&self, at: usize, conjunct: &Conjunct) -> bool {
        let code = &conjunct.bound.code;
        self.binder.is_movable(code) && self.uses(code, at) == 1 << at
    }

    /// The plan of an item behind those that are placed.
    fn item(&mut self, at: usize, placed: Items) -> Item {
        let known = placed | 1 << at;
        let mut here = Vec::new();
        for pooled in &mut self.pool {
            if !pooled.is_used && pooled.uses & !known == 0 && pooled.least <= at {
                pooled.is_used = true;
                here.push(pooled.conjunct.clone());
            }
        }
        let on = std::mem::take(&mut self.items[at].on);
        let kind = self.items[at].kind;
        let (way, condition, filter) = if kind == JoinKind::Inner {
            let mut way = self.way(at, placed, here);
            let filter = std::mem::take(&mut way.rest);
            (way, Vec::new(), filter)
        } else {
            let mut way = self.way(at, placed, on);
            let condition = std::mem::take(&mut way.rest);
            (way, condition, here)
        };
        let rows = match &self.items[at].rows {
            FromRows::Table(_) => ItemRows::Table(Box::new(way.source)),
            FromRows::Query(number) | FromRows::Lateral(number) => ItemRows::Query(*number),
        };
        let all = |conjuncts: Vec<Conjunct>| all_of(conjuncts.into_iter().map(|each| each.bound));
        Item {
            kind,
            begin: ColumnNumber::at(self.items[at].begin),
            width: self.items[at].width as u16,
            rows,
            method: way.method,
            condition: all(condition),
            filter: all(filter),
        }
    }

    /// How the rows are found for which these conjuncts hold.
    fn way(&self, at: usize, placed: Items, conjuncts: Vec<Conjunct>) -> Way {
        let item = &self.items[at];
        let mut way = Way { source: Source::default(), method: Method::Loop, rest: conjuncts };
        match &item.rows {
            FromRows::Lateral(_) => {
                way.method = Method::Lookup;
                return way;
            }
            FromRows::Query(_) => {}
            FromRows::Table(relation) => {
                way.source.relation = Some((**relation).clone());
                if !item.kind.keeps_own() && self.find(at, placed, relation, &mut way) {
                    way.method = Method::Lookup;
                    return way;
                }
            }
        }
        if self.binder.choice != Choice::Loop {
            self.map(at, placed, &mut way);
        }
        way
    }

    /// Chooses the access of a table, and moves the conjuncts that are only about it to its
    /// filter. Whether rows are looked up for each row of the items before.
    fn find(&self, at: usize, placed: Items, relation: &Relation, way: &mut Way) -> bool {
        let choice = self.binder.choice;
        let [access, fixed] = [placed, 0].map(|placed| {
            let known = self.known(at, placed, way.rest.iter());
            choose(relation, &known, choice, OrderWish::default())
        });
        let begin = self.items[at].begin;
        let has_map = way.rest.iter().any(|each| self.equality(at, placed, each).is_some());
        let is_looked_up = depends(&access.access) && (!access.access.equal.is_empty() || !has_map);
        let Chosen { mut access, covered, .. } = if is_looked_up { access } else { fixed };
        if let (Some(place), Some(among)) = (covered, &mut access.among) {
            among.condition = Some(moved(way.rest.remove(place).bound, begin).expression());
        }
        way.source.access = access;
        let (own, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut way.rest).into_iter().partition(|each| self.is_own(at, each));
        way.rest = rest;
        way.source.filter = all_of(own.into_iter().map(|conjunct| moved(conjunct.bound, begin)));
        is_looked_up
    }

    /// Finds rows by values that must be equal, if there are such.
    fn map(&self, at: usize, placed: Items, way: &mut Way) {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        way.rest.retain(|conjunct| {
            let Some(note) = self.equality(at, placed, conjunct) else { return true };
            own.push(Expression { code: note.subject.clone() });
            other.push(note.value.clone());
            false
        });
        if !own.is_empty() {
            way.method = Method::Map { own, other };
        }
    }

    /// What a conjunct says is equal to a value of the item's row in all rows before it.
    fn equality<'c>(
        &self,
        at: usize,
        placed: Items,
        conjunct: &'c Conjunct,
    ) -> Option<&'c Comparison> {
        conjunct.notes.iter().find(|note| {
            let last = self.items.len() - 1;
            let uses = self.uses(&note.value.code, last);
            note.function == Function::Equal
                && self.uses(&note.subject, last) == 1 << at
                && uses != 0
                && uses & !placed == 0
        })
    }
}

/// The same over the row of the item alone.
fn moved(bound: Bound, begin: usize) -> Bound {
    Bound::new(at_beginning(bound.code, begin), Kind::plain(Type::Bool))
}

/// A program over the row of the item that begins here alone.
fn at_beginning(mut code: Vec<Op>, begin: usize) -> Vec<Op> {
    for op in &mut code {
        if let Op::Column(column) = op {
            *column = ColumnNumber::at(usize::from(*column) - begin);
        }
    }
    code
}
