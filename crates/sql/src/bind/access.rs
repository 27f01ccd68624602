//! Chooses how the rows of a table are found. Any choice gives the same answer: the filter looks at
//! each row, and the interpreter puts them in canonical order.

use super::known::{Comparison, Known};
use crate::ir::{Access, Bound, Function, Index, KeyColumn, Op, Relation};
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

/// The access with the highest score.
pub(super) fn choose(relation: &Relation, known: &Known, choice: Choice) -> Access {
    scored(relation, known, choice).1
}

/// The score of an access that finds one row at most.
pub(super) const SINGLE: usize = 10_000;

/// The access with the highest score, and the score.
pub(super) fn scored(relation: &Relation, known: &Known, choice: Choice) -> (usize, Access) {
    let mut best = (0, Access::default());
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
        let (access, score) = access(relation, way, &known.comparisons);
        if score > best.0 {
            best = (score, access);
        }
    }
    best
}

/// The access by one key: that of an index, or the primary key. All columns of a unique key are
/// best; each equal column counts more than a range. A part of the table is better than all of it.
fn access(
    relation: &Relation,
    way: Option<(u16, &Index)>,
    comparisons: &[Comparison],
) -> (Access, usize) {
    let (columns, unique) = match way {
        Some((_, index)) => (&index.columns, index.is_unique()),
        None => (&relation.primary, true),
    };
    let kind = |column: &KeyColumn| relation.key_kind(way.map(|(_, index)| index), column);
    // Keys of `character` have its blanks: equal ones are found by a length, none by order.
    let is_sorted = |column| kind(column).is_some_and(|kind| kind.ty != Type::Char);
    let has_length = |column| kind(column).is_some_and(|kind| kind.modifier.length().is_some());
    let is_of = |column: &KeyColumn, subject: &[Op]| match way
        .and_then(|(_, index)| index.expression_of(column))
    {
        Some(computed) => computed.value.code == subject,
        None => subject == [Op::Column(column.column)],
    };
    let of = |column: &KeyColumn, functions: &[Function]| {
        let mut all = comparisons.iter();
        all.find(|each| functions.contains(&each.function) && is_of(column, &each.subject))
    };
    let mut access = Access { index: way.map(|(at, _)| at), ..Access::default() };
    let mut rest = columns.iter();
    for column in rest.by_ref() {
        let equal = of(column, &[Function::Equal]);
        match equal.filter(|_| is_sorted(column) || has_length(column)) {
            Some(comparison) => access.equal.push(comparison.value.clone()),
            None if !is_sorted(column) => break,
            None => {
                let bound = |comparison: &Comparison, inclusive| Bound {
                    value: comparison.value.clone(),
                    inclusive: comparison.function == inclusive,
                };
                access.lower = of(column, &[Function::Greater, Function::GreaterEqual])
                    .map(|comparison| bound(comparison, Function::GreaterEqual));
                access.upper = of(column, &[Function::Less, Function::LessEqual])
                    .map(|comparison| bound(comparison, Function::LessEqual));
                break;
            }
        }
    }
    let ranges = bounds(&access).count();
    let whole = access.equal.len() == columns.len() && unique;
    assert!(access.equal.len() + usize::from(ranges > 0) <= columns.len(), "a range has a column");
    let score = access.equal.len() * 8 + ranges * 2;
    let better = match way {
        // The primary key needs no second look-up.
        None => score > 0,
        Some((_, index)) => !index.predicate().is_empty(),
    };
    (access, score + usize::from(better) + if whole { SINGLE } else { 0 })
}

pub(super) fn bounds(access: &Access) -> impl Iterator<Item = &Bound> {
    access.lower.iter().chain(&access.upper)
}
