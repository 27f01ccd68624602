//! What a statement knows of the rows that count, and whether all of them are in a partial index.

use super::members::{Membership, RowRange};
use crate::ir::{Expression, Function, Index, Op};
use std::cmp::Ordering;
use values::Datum;

/// A comparison of a column, or of an expression over columns, with what can be known before there
/// is a row of the table.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// What is compared: a program over the row.
    pub(super) subject: Vec<Op>,
    pub(super) function: Function,
    pub(super) value: Expression,
}

/// What is true of all rows of a table that count.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) comparisons: Vec<Comparison>,
    /// The conditions themselves, as programs over the row.
    pub(super) facts: Vec<Vec<Op>>,
    /// Values that are one of several.
    pub(super) memberships: Vec<Membership>,
    /// Rows of values that are smaller or larger than others.
    pub(super) row_ranges: Vec<RowRange>,
}

impl Known {
    /// Whether an index has an entry of each row that counts. `false` may be wrong: rows are then
    /// found in another way.
    pub(super) fn covers(&self, index: &Index) -> bool {
        index.predicate().iter().all(|condition| self.implies(&condition.code))
    }

    fn implies(&self, condition: &[Op]) -> bool {
        if self.facts.iter().any(|fact| fact == condition) {
            return true;
        }
        let about = |subject: &[Op], test: &dyn Fn(&Comparison) -> bool| {
            self.comparisons.iter().any(|own| own.subject == subject && test(own))
        };
        let is_true = |own: &Comparison| {
            own.function == Function::Equal && constant(&own.value.code) == Some(&Datum::Bool(true))
        };
        if about(condition, &is_true) {
            return true;
        }
        match condition {
            // A comparison with NULL is not true.
            [subject @ .., Op::Call(Function::IsNotNull, 1)] => about(subject, &|_| true),
            [subject @ .., Op::Constant(wanted), Op::Call(function, 2)] => {
                about(subject, &|own| follows(own, *function, &wanted.0))
            }
            [list @ .., Op::Call(Function::In, count)] => {
                let begin = list.len().checked_sub(*count as usize - 1);
                let Some((subject, items)) = begin.and_then(|at| list.split_at_checked(at)) else {
                    return false;
                };
                let is_in = |own: &Comparison| is_one_of(own, items);
                about(subject, &is_in)
            }
            _ => false,
        }
    }
}

fn constant(code: &[Op]) -> Option<&Datum> {
    match code {
        [Op::Constant(value)] => Some(&value.0),
        _ => None,
    }
}

/// Whether a value equals one of these constants.
fn is_one_of(known: &Comparison, items: &[Op]) -> bool {
    let Some(own) = constant(&known.value.code) else { return false };
    let is_own = |item: &Op| matches!(item, Op::Constant(item) if item.0 == *own);
    known.function == Function::Equal && items.iter().any(is_own)
}

/// Whether a comparison with a constant implies one of the same value with another constant.
fn follows(known: &Comparison, function: Function, wanted: &Datum) -> bool {
    let Some(own) = constant(&known.value.code) else { return false };
    if own.is_null() || wanted.is_null() || own.kind() != wanted.kind() {
        return false;
    }
    use Function::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let order = own.compare(wanted);
    match (known.function, function) {
        (Equal, Equal) => order.is_eq(),
        (Equal, NotEqual) => order.is_ne(),
        (Equal, Less) | (LessEqual, Less | NotEqual) => order.is_lt(),
        (Equal, LessEqual) | (Less | LessEqual, LessEqual) | (Less, Less | NotEqual) => {
            order.is_le()
        }
        (Equal, Greater) | (GreaterEqual, Greater | NotEqual) => order == Ordering::Greater,
        (Equal, GreaterEqual)
        | (Greater | GreaterEqual, GreaterEqual)
        | (Greater, Greater | NotEqual) => order.is_ge(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{ColumnNumber, Value};

    fn knows(function: Function, value: i32) -> Known {
        let constant = |value| Expression::constant(Value(Datum::Int4(value)));
        let subject = vec![Op::Column(ColumnNumber::at(0))];
        let value = constant(value);
        let comparison = Comparison { subject, function, value };
        Known { comparisons: vec![comparison], ..Known::default() }
    }

    /// Each pair of comparisons with numbers around each other, against all numbers between.
    #[test]
    fn what_is_implied_is_true_of_all_that_counts_and_little_else_is_missed() {
        use Function::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        let holds = |function, left: i32, right: i32| match function {
            Equal => left == right,
            NotEqual => left != right,
            Less => left < right,
            LessEqual => left <= right,
            Greater => left > right,
            _ => left >= right,
        };
        let all = [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual];
        for known in [Equal, Less, LessEqual, Greater, GreaterEqual] {
            for wanted in all {
                for (own, other) in (0..5).flat_map(|own| (0..5).map(move |other| (own, other))) {
                    let condition = [
                        Op::Column(ColumnNumber::at(0)),
                        Op::Constant(Value(Datum::Int4(other))),
                        Op::Call(wanted, 2),
                    ];
                    let mut rows = (-20..20).filter(|row| holds(known, *row, own));
                    let is_true = rows.all(|row| holds(wanted, row, other));
                    let implied = knows(known, own).implies(&condition);
                    assert!(!implied || is_true, "{known:?} {own} {wanted:?} {other}");
                    // Numbers have a next one, which the rules do not know.
                    let is_near = (own - other).abs() == 1;
                    assert!(implied || !is_true || is_near, "{known:?} {own} {wanted:?} {other}");
                }
            }
        }
    }

    #[test]
    fn a_comparison_says_that_its_subject_is_not_null() {
        let condition = |op| [Op::Column(ColumnNumber::at(0)), op];
        let known = knows(Function::Less, 3);
        assert!(known.implies(&condition(Op::Call(Function::IsNotNull, 1))));
        assert!(!known.implies(&condition(Op::Call(Function::IsNull, 1))));
        let other = [Op::Column(ColumnNumber::at(1)), Op::Call(Function::IsNotNull, 1)];
        assert!(!known.implies(&other));
    }
}
