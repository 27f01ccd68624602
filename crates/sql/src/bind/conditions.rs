//! WHERE: the filter, and what it says about single columns.

use super::access::Predicate;
use super::binder::Binder;
use super::coerce::{Bound, Form};
use super::expression::call;
use super::operators::{comparison, joined};
use crate::ir::{Expression, Function};
use sqlparser::ast::{BinaryOperator, Expr};
use values::{Result, Type};

impl Binder<'_> {
    /// The filter of a WHERE, and those of its parts that compare a column with what needs no row.
    pub(super) fn filter(
        &mut self,
        selection: Option<&Expr>,
    ) -> Result<(Option<Expression>, Vec<Predicate>)> {
        let mut predicates = Vec::new();
        let Some(selection) = selection else { return Ok((None, predicates)) };
        let mut conjuncts = Vec::new();
        split(selection, &mut conjuncts);
        let mut filter: Option<Bound> = None;
        for conjunct in conjuncts {
            let bound = self.conjunct(conjunct, &mut predicates)?;
            filter = Some(match filter {
                Some(left) => joined(left, bound, false, Function::And),
                None => bound,
            });
        }
        Ok((filter.map(Bound::expression), predicates))
    }

    fn conjunct(&mut self, expr: &Expr, predicates: &mut Vec<Predicate>) -> Result<Bound> {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                let Some(function) = comparison(op) else { return self.condition(expr, "WHERE") };
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let position = self.position(expr);
                let both = self.comparable(left, op, right).map_err(|error| error.at(position))?;
                note(function, &both[0], &both[1], predicates);
                if let Some(turned) = turned(function) {
                    note(turned, &both[1], &both[0], predicates);
                }
                Ok(call(function, both, Type::Bool))
            }
            Expr::Between { expr: value, negated: false, low, high } => {
                let bound = self.condition(expr, "WHERE")?;
                for (limit, function, op) in [
                    (low, Function::GreaterEqual, BinaryOperator::GtEq),
                    (high, Function::LessEqual, BinaryOperator::LtEq),
                ] {
                    let (left, right) = (self.expression(value)?, self.expression(limit)?);
                    let both = self.comparable(left, &op, right)?;
                    note(function, &both[0], &both[1], predicates);
                }
                Ok(bound)
            }
            _ => self.condition(expr, "WHERE"),
        }
    }
}

/// The parts of a chain of ANDs, without recursion along it.
fn split<'e>(expr: &'e Expr, conjuncts: &mut Vec<&'e Expr>) {
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                open.push(right);
                open.push(left);
            }
            Expr::Nested(inner) => open.push(inner),
            other => conjuncts.push(other),
        }
    }
}

fn note(function: Function, column: &Bound, value: &Bound, predicates: &mut Vec<Predicate>) {
    let Form::Column(number) = column.form else { return };
    let value = Expression { code: value.code.clone() };
    if value.is_fixed() {
        predicates.push(Predicate { column: number, function, value });
    }
}

/// The comparison with its sides exchanged.
fn turned(function: Function) -> Option<Function> {
    Some(match function {
        Function::Equal => Function::Equal,
        Function::Less => Function::Greater,
        Function::LessEqual => Function::GreaterEqual,
        Function::Greater => Function::Less,
        Function::GreaterEqual => Function::LessEqual,
        _ => return None,
    })
}
