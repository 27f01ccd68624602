//! OVERLAPS of two periods, each of its two ends in any order, or of its begin and its length.

use super::binder::Binder;
use super::coerce::Bound;
use super::expression::{call, no_operator};
use super::operators::joined;
use crate::ir::Function;
use sqlparser::ast::{BinaryOperator, Expr};
use values::{Error, Result, SqlState, Type};

/// A period: its ends as they were written, and the first of them.
struct Period {
    ends: [Bound; 2],
    first: Bound,
}

fn compared(function: Function, left: &Bound, right: &Bound) -> Bound {
    call(function, vec![left.clone(), right.clone()], Type::Bool)
}

fn and(left: Bound, right: Bound) -> Bound {
    joined(left, right, false, Function::And)
}

fn or(left: Bound, right: Bound) -> Bound {
    joined(left, right, true, Function::Or)
}

impl Period {
    /// Whether it ends after a point in time that is not before its begin. An end that is NULL may
    /// be any, so NULL is the answer if the other one does not decide.
    fn ends_after(&self, at: &Bound) -> Bound {
        let is_after = |end| compared(Function::Less, at, end);
        or(is_after(&self.ends[0]), is_after(&self.ends[1]))
    }

    /// False; NULL if an end is.
    fn unknown(&self) -> Bound {
        let differs = |end: &Bound| compared(Function::NotEqual, end, end);
        or(differs(&self.ends[0]), differs(&self.ends[1]))
    }

    /// Whether this period, which begins after another one, begins within it.
    fn is_within(&self, other: &Period) -> Bound {
        let is_later = compared(Function::Greater, &self.first, &other.first);
        and(is_later, or(other.ends_after(&self.first), self.unknown()))
    }
}

impl Binder<'_> {
    /// `(a, b) OVERLAPS (c, d)`: also where both begin at once.
    pub(super) fn overlaps(&mut self, left: &[&Expr], right: &[&Expr]) -> Result<Bound> {
        for (side, row) in [("left", left), ("right", right)] {
            if row.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
        let ends = self.period_ends([left[0], left[1], right[0], right[1]])?;
        let ty = ends.iter().find_map(Bound::ty).unwrap_or(Type::Timestamptz);
        let [first, second, third, last] = ends;
        let of = |ends: [Bound; 2]| {
            let first = call(Function::Least, ends.to_vec(), ty);
            Period { ends, first }
        };
        let (one, other) = (of([first, second]), of([third, last]));
        let begin_at_once = compared(Function::Equal, &one.first, &other.first);
        let not = |bound| call(Function::Not, vec![bound], Type::Bool);
        let are_known = and(not(one.unknown()), not(other.unknown()));
        let within = or(one.is_within(&other), other.is_within(&one));
        Ok(or(within, and(begin_at_once, are_known)))
    }

    /// The four ends, all of one type.
    fn period_ends(&mut self, exprs: [&Expr; 4]) -> Result<[Bound; 4]> {
        let mut ends = Vec::with_capacity(exprs.len());
        for (at, expr) in exprs.into_iter().enumerate() {
            let mut end = self.expression(expr)?;
            if at % 2 == 1
                && end.ty() == Some(Type::Interval)
                && let Some(begin) = ends.last().cloned()
            {
                end = self.sum(begin, end)?;
            }
            ends.push(end);
        }
        let is_time =
            |ty: Type| matches!(ty, Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz);
        let types: Vec<Type> = ends.iter().filter_map(Bound::ty).collect();
        let has = |ty: Type| types.contains(&ty);
        let ty = [Type::Timestamptz, Type::Timestamp, Type::Date].into_iter().find(|ty| has(*ty));
        let ty = ty.or(types.first().copied()).unwrap_or(Type::Timestamptz);
        if !types.iter().all(|own| is_time(*own) && (*own == Type::Time) == (ty == Type::Time)) {
            return Err(no_operator("OVERLAPS of these types"));
        }
        let all = self.all_as(ends, Some(ty))?;
        all.try_into().map_err(|_| Error::new(SqlState::INTERNAL, "a period has two ends"))
    }

    fn sum(&mut self, begin: Bound, length: Bound) -> Result<Bound> {
        self.arithmetic(Function::Add, begin, &BinaryOperator::Plus, length)
    }
}
