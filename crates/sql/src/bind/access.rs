//! Chooses how the rows of a table are found. Any choice gives the same answer: the filter looks at
//! each row, and the interpreter puts them in canonical order.

use crate::ir::{Access, Bound, ColumnNumber, Expression, Function, KeyColumn, Relation};
use values::Type;

/// A comparison of a column with what can be known before there is a row of its table.
#[derive(Clone, Debug)]
pub(super) struct Predicate {
    pub(super) column: ColumnNumber,
    pub(super) function: Function,
    pub(super) value: Expression,
    /// The type of both.
    pub(super) ty: Type,
}

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
pub(super) fn choose(relation: &Relation, predicates: &[Predicate], choice: Choice) -> Access {
    scored(relation, predicates, choice).1
}

/// The score of an access that finds one row at most.
pub(super) const SINGLE: usize = 10_000;

/// The access with the highest score, and the score.
pub(super) fn scored(
    relation: &Relation,
    predicates: &[Predicate],
    choice: Choice,
) -> (usize, Access) {
    let mut best = (0, Access::default());
    let indexes = relation.indexes.iter().enumerate();
    let ways = std::iter::once((None, &relation.primary, true))
        .chain(indexes.map(|(at, index)| (Some(at as u16), &index.columns, index.unique)));
    for (index, columns, unique) in ways {
        let wanted = match choice {
            Choice::Best | Choice::Backward => true,
            Choice::Scan | Choice::Loop => false,
            Choice::Only(number) => index.map_or(0, |at| at + 1) == number,
        };
        if !wanted {
            continue;
        }
        let (access, score) = access(index, columns, unique, predicates);
        if score > best.0 {
            best = (score, access);
        }
    }
    best
}

/// The access by one key. All columns of a unique key are best; each equal column counts more than
/// a range.
fn access(
    index: Option<u16>,
    columns: &[KeyColumn],
    unique: bool,
    predicates: &[Predicate],
) -> (Access, usize) {
    let of = |column: &KeyColumn, functions: &[Function]| {
        let column = column.column;
        predicates.iter().find(|each| each.column == column && functions.contains(&each.function))
    };
    let mut access = Access { index, ..Access::default() };
    let mut rest = columns.iter();
    for column in rest.by_ref() {
        match of(column, &[Function::Equal]) {
            Some(predicate) => access.equal.push(predicate.value.clone()),
            None => {
                let bound = |predicate: &Predicate, inclusive| Bound {
                    value: predicate.value.clone(),
                    inclusive: predicate.function == inclusive,
                };
                access.lower = of(column, &[Function::Greater, Function::GreaterEqual])
                    .map(|predicate| bound(predicate, Function::GreaterEqual));
                access.upper = of(column, &[Function::Less, Function::LessEqual])
                    .map(|predicate| bound(predicate, Function::LessEqual));
                break;
            }
        }
    }
    let ranges = bounds(&access).count();
    let whole = access.equal.len() == columns.len() && unique;
    assert!(access.equal.len() + usize::from(ranges > 0) <= columns.len(), "a range has a column");
    // The primary key needs no second look-up.
    let score = access.equal.len() * 8 + ranges * 2;
    let primary = usize::from(score > 0 && index.is_none());
    (access, score + primary + if whole { SINGLE } else { 0 })
}

pub(super) fn bounds(access: &Access) -> impl Iterator<Item = &Bound> {
    access.lower.iter().chain(&access.upper)
}
