//! What the program of a condition says, read from the program: conditions that say the same are
//! the same, however a statement wrote them.

use crate::ir::{Function, Op, QueryNumber, Use};

/// The last operation of a program, and the programs of its operands.
pub(super) enum Shape<'c> {
    And(&'c [Op], &'c [Op]),
    Or(&'c [Op], &'c [Op]),
    Call(Function, Vec<&'c [Op]>),
    /// Whether values are one of the rows of a query.
    InQuery(Vec<&'c [Op]>, QueryNumber),
    Other,
}

/// The shape of a program.
pub(super) fn shape(code: &[Op]) -> Shape<'_> {
    let Some((last, before)) = code.split_last() else { return Shape::Other };
    match last {
        Op::Call(Function::And, 2) => {
            sides(before).map_or(Shape::Other, |(left, right)| Shape::And(left, right))
        }
        Op::Call(Function::Or, 2) => {
            sides(before).map_or(Shape::Other, |(left, right)| Shape::Or(left, right))
        }
        Op::Call(function, count) => operands(before, *count as usize)
            .map_or(Shape::Other, |operands| Shape::Call(*function, operands)),
        Op::Query(Use::Any(Function::Equal, count), number) => {
            operands(before, usize::from(*count))
                .map_or(Shape::Other, |operands| Shape::InQuery(operands, *number))
        }
        _ => Shape::Other,
    }
}

/// Both sides of AND or OR: the left one leaves out the right one by a jump behind the whole.
fn sides(code: &[Op]) -> Option<(&[Op], &[Op])> {
    let end = code.len() + 1;
    let ends_there = |at: usize, op: &Op| match op {
        Op::JumpIf(_, count) => at + 1 + *count as usize == end,
        _ => false,
    };
    let at = (0..code.len()).rev().find(|at| ends_there(*at, &code[*at]))?;
    Some((&code[..at], &code[at + 1..]))
}

/// The `count` programs without jumps, one after the other, that leave one value each.
fn operands(code: &[Op], count: usize) -> Option<Vec<&[Op]>> {
    let mut all = Vec::with_capacity(count);
    let mut end = code.len();
    for _ in 0..count {
        let (mut at, mut missing) = (end, 1);
        while missing > 0 {
            at = at.checked_sub(1)?;
            if code[at].leaves_out().is_some() {
                return None;
            }
            let (takes, gives) = code[at].takes_and_gives();
            missing = (missing + takes).checked_sub(gives)?;
        }
        all.push(&code[at..end]);
        end = at;
    }
    all.reverse();
    (end == 0).then_some(all)
}

/// The parts of a chain of ORs, in their order.
pub(super) fn alternatives(code: &[Op]) -> Vec<&[Op]> {
    chain(code, |shape| match shape {
        Shape::Or(left, right) => Some((left, right)),
        _ => None,
    })
}

/// The parts of a chain of ANDs, in their order.
pub(super) fn parts(code: &[Op]) -> Vec<&[Op]> {
    chain(code, |shape| match shape {
        Shape::And(left, right) => Some((left, right)),
        _ => None,
    })
}

fn chain<'c>(
    code: &'c [Op],
    split: impl Fn(Shape<'c>) -> Option<(&'c [Op], &'c [Op])>,
) -> Vec<&'c [Op]> {
    let (mut parts, mut open) = (Vec::new(), vec![code]);
    while let Some(code) = open.pop() {
        match split(shape(code)) {
            Some((left, right)) => open.extend([right, left]),
            None => parts.push(code),
        }
    }
    parts
}

/// A comparison, with what depends on a row of the table on the left.
pub(super) struct Compared<'c> {
    pub(super) function: Function,
    pub(super) subject: &'c [Op],
    pub(super) value: &'c [Op],
}

/// The comparison that a program is, of a value of the row with one that no row decides.
pub(super) fn compared(code: &[Op]) -> Option<Compared<'_>> {
    let Shape::Call(function, operands) = shape(code) else { return None };
    let [left, right] = operands[..] else { return None };
    let turned = turned(function)?;
    if is_subject(left) && !has_column(right) {
        return Some(Compared { function, subject: left, value: right });
    }
    let is_turned = is_subject(right) && !has_column(left);
    is_turned.then_some(Compared { function: turned, subject: right, value: left })
}

/// Whether a program is a value of a row.
pub(super) fn is_subject(code: &[Op]) -> bool {
    has_column(code) && is_of_row(code)
}

/// Whether a program needs a column of its row.
pub(super) fn has_column(code: &[Op]) -> bool {
    code.iter().any(|op| matches!(op, Op::Column(_)))
}

/// Whether a program is the same for the same row of its own query, wherever it is.
pub(super) fn is_of_row(code: &[Op]) -> bool {
    code.iter().all(|op| {
        let is_other = matches!(
            op,
            Op::Next(_) | Op::Random(_) | Op::Query(..) | Op::Outer(..) | Op::System(..)
        );
        !is_other && !op.has_effect()
    })
}

/// The comparison with its sides exchanged.
pub(super) fn turned(function: Function) -> Option<Function> {
    Some(match function {
        Function::Equal => Function::Equal,
        Function::Less => Function::Greater,
        Function::LessEqual => Function::GreaterEqual,
        Function::Greater => Function::Less,
        Function::GreaterEqual => Function::LessEqual,
        _ => return None,
    })
}
