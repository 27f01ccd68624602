//! WHERE and ON: the parts that all must hold, and what they say about single columns.

use super::access::{Chosen, choose};
use super::binder::Binder;
use super::coerce::{Bound, Form};
use super::expression::call;
use super::key_order::{OrderWish, is_canonical};
use super::known::{Comparison, Known};
use super::members::{Fixed, Membership, RowRange};
use super::operators::{comparison, joined};
use super::shape::{has_column, is_of_row, turned};
use super::symmetric::has_mark;
use crate::ir::{ColumnNumber, Expression, Function, Op, QueryNumber, Relation, Source};
use sqlparser::ast::{BinaryOperator, Expr, InTarget};
use values::{Result, Type};

/// A part of a condition.
#[derive(Clone)]
pub(super) struct Conjunct {
    pub(super) bound: Bound,
    /// What it says about columns and expressions: any of it follows from the whole.
    pub(super) notes: Vec<Comparison>,
}

impl Binder<'_> {
    /// The parts of a condition.
    pub(super) fn conjuncts(
        &mut self,
        condition: Option<&Expr>,
        clause: &'static str,
    ) -> Result<Vec<Conjunct>> {
        let Some(condition) = condition else { return Ok(Vec::new()) };
        let before = std::mem::replace(&mut self.clause, clause);
        let mut parts = Vec::new();
        split(condition, &mut parts);
        let conjuncts = parts.into_iter().map(|part| self.conjunct(part));
        let conjuncts = conjuncts.collect::<Result<Vec<_>>>();
        self.clause = before;
        conjuncts
    }

    fn conjunct(&mut self, expr: &Expr) -> Result<Conjunct> {
        let mut notes = Vec::new();
        let bound = match expr {
            Expr::BinaryOp { left, op, right } if !matches!(**left, Expr::Tuple(_)) => {
                let Some(function) = comparison(op) else {
                    return Ok(Conjunct { bound: self.condition(expr, self.clause)?, notes });
                };
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let position = self.position(expr);
                let both = self.comparable(left, op, right).map_err(|error| error.at(position))?;
                return Ok(self.compared(function, both));
            }
            Expr::Between { expr: value, negated: false, low, high } if !has_mark(low) => {
                let bound = self.condition(expr, self.clause)?;
                for (limit, function, op) in [
                    (low, Function::GreaterEqual, BinaryOperator::GtEq),
                    (high, Function::LessEqual, BinaryOperator::LtEq),
                ] {
                    let (left, right) = (self.expression(value)?, self.expression(limit)?);
                    let both = self.comparable(left, &op, right)?;
                    self.note(function, &both[0], &both[1], &mut notes);
                }
                bound
            }
            Expr::Like { negated: false, any: false, expr: text, escape_char: None, .. } => {
                return self.like_conjunct(expr, text);
            }
            Expr::In { expr: left, target: InTarget::Subquery(query), negated: false, .. } => {
                let position = self.position(expr);
                self.is_in_query(left, query).map_err(|error| error.at(position))?
            }
            _ => self.condition(expr, self.clause)?,
        };
        Ok(Conjunct { bound, notes })
    }

    /// The comparison of two values of one type.
    pub(super) fn compared(&self, function: Function, both: Vec<Bound>) -> Conjunct {
        let mut notes = Vec::new();
        self.note(function, &both[0], &both[1], &mut notes);
        if let Some(turned) = turned(function) {
            self.note(turned, &both[1], &both[0], &mut notes);
        }
        Conjunct { bound: call(function, both, Type::Bool), notes }
    }

    /// The rows of a table for which conditions hold, and whether they come in the order that is
    /// wanted.
    pub(super) fn source(
        &self,
        relation: &Relation,
        mut conjuncts: Vec<Conjunct>,
        wish: OrderWish<'_>,
    ) -> (Source, bool) {
        let known = self.known_of(&conjuncts);
        let Chosen { mut access, covered, .. } = choose(relation, &known, self.choice, wish);
        let is_ordered =
            access.order.is_some() || is_canonical(relation, &known, wish.sort, wish.is_joined);
        if let (Some(place), Some(among)) = (covered, &mut access.among) {
            among.condition = Some(conjuncts.remove(place).bound.expression());
        }
        let filter = all_of(conjuncts.into_iter().map(|conjunct| conjunct.bound));
        (Source { relation: Some(relation.clone()), access, filter }, is_ordered)
    }

    /// What conditions say about the rows of the one table that they are over.
    fn known_of(&self, conjuncts: &[Conjunct]) -> Known {
        let mut known = filter_of(conjuncts.to_vec()).1;
        for (place, code) in known.facts.iter().enumerate() {
            known.memberships.extend(Membership::of(code, place, self));
            known.row_ranges.extend(RowRange::of(code, self));
        }
        known
    }

    pub(super) fn note(
        &self,
        function: Function,
        subject: &Bound,
        value: &Bound,
        notes: &mut Vec<Comparison>,
    ) {
        let is_noted = match subject.form {
            Form::Column(_) => true,
            // An index may be over the expression.
            _ => has_column(&subject.code) && is_of_row(&subject.code),
        };
        if is_noted && self.is_movable(&value.code) {
            let value = Expression { code: value.code.clone() };
            notes.push(Comparison { subject: subject.code.clone(), function, value });
        }
    }

    /// Whether a program can run wherever its columns are there: how often makes no difference,
    /// and no query is computed in the whole row.
    pub(super) fn is_movable(&self, code: &[Op]) -> bool {
        !code.iter().any(|op| match op {
            Op::Next(_) | Op::Random(_) | Op::Unclaimed(_) | Op::Claim(_) => true,
            op if op.has_effect() => true,
            Op::Query(_, number) => self.queries[usize::from(*number)].is_correlated,
            _ => false,
        })
    }
}

impl Conjunct {
    /// The same over a row in which the columns begin at another place.
    pub(super) fn moved(mut self, begin: usize) -> Conjunct {
        self.bound.code = moved(self.bound.code, begin);
        for note in &mut self.notes {
            note.subject = moved(std::mem::take(&mut note.subject), begin);
            note.value.code = moved(std::mem::take(&mut note.value.code), begin);
        }
        self
    }
}

/// A program over a row in which its columns begin at another place.
pub(super) fn moved(mut code: Vec<Op>, begin: usize) -> Vec<Op> {
    for op in &mut code {
        if let Op::Column(column) = op {
            *column = ColumnNumber::at(begin + usize::from(*column));
        }
    }
    code
}

impl Fixed for Binder<'_> {
    fn is_fixed(&self, code: &[Op]) -> bool {
        !has_column(code) && self.is_movable(code)
    }

    fn is_once(&self, number: QueryNumber) -> bool {
        !self.queries[usize::from(number)].is_correlated
    }
}

/// One condition of all, and what is known of its rows without another row.
pub(super) fn filter_of(conjuncts: Vec<Conjunct>) -> (Option<Expression>, Known) {
    let notes = conjuncts.iter().flat_map(|conjunct| &conjunct.notes);
    let comparisons = notes.filter(|note| !has_column(&note.value.code)).cloned().collect();
    let facts = conjuncts.iter().map(|conjunct| conjunct.bound.code.clone()).collect();
    let filter = all_of(conjuncts.into_iter().map(|conjunct| conjunct.bound));
    (filter, Known { comparisons, facts, ..Known::default() })
}

/// One condition of all; none of nothing.
pub(super) fn all_of(parts: impl IntoIterator<Item = Bound>) -> Option<Expression> {
    let both = |left, right| joined(left, right, false, Function::And);
    parts.into_iter().reduce(both).map(Bound::expression)
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
