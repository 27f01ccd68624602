//! Queries in expressions.

use super::binder::{Binder, Level, row_parts};
use super::coerce::Bound;
use super::expression::{negate_if, unsupported};
use super::items::{Bounded, Untyped};
use super::kinds::Quantifier;
use super::operators::comparison;
use crate::ir::{Expression, Function, Kind, Op, Query as Plan, QueryNumber, Use};
use sqlparser::ast::Spanned;
use sqlparser::ast::{BinaryOperator, Expr, Query};
use values::{Error, Position, Result, SqlState, Type};

impl Binder<'_> {
    /// Binds a query that is computed in rows of the current one.
    pub(super) fn inner(&mut self, query: &Query) -> Result<Bounded> {
        if let Some(place) = self.no_queries {
            let message = format!("cannot use subquery in {place}");
            return Err(Error::unsupported(message, "").at(self.position_of(query)));
        }
        self.recursion.expressions += 1;
        let result = self.lateral(query);
        self.recursion.expressions -= 1;
        result
    }

    /// The same in FROM.
    pub(super) fn lateral(&mut self, query: &Query) -> Result<Bounded> {
        let scope = std::mem::take(&mut self.scope);
        let grouping = self.grouping.take();
        self.levels.push(Level { scope, grouping });
        let result = self.query(query, Untyped::Text);
        let Level { scope, grouping } = self.levels.pop().expect("it was pushed");
        (self.scope, self.grouping) = (scope, grouping);
        result
    }

    /// The query of an expression, with the type of its one column.
    fn single_column(&mut self, query: &Query) -> Result<(QueryNumber, Kind)> {
        let bound = self.inner(query)?;
        let [item] = &bound.items[..] else {
            let message = "subquery must return only one column";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(self.position_of(query)));
        };
        let kind = item.bound.kind.unwrap_or(Kind::plain(Type::Text));
        Ok((self.push_query(bound.plan)?, kind))
    }

    /// The bracket before a query.
    pub(super) fn position_of(&self, query: &Query) -> Option<Position> {
        self.position_of_bracket(query)
    }

    /// The bracket before what begins behind it.
    pub(super) fn position_of_bracket(&self, part: &impl Spanned) -> Option<Position> {
        let number = self.position(part)?.number();
        Position::new(number.saturating_sub(1))
    }

    pub(super) fn scalar(&mut self, query: &Query) -> Result<Bound> {
        let (number, kind) = self.single_column(query)?;
        Ok(Bound::new(vec![Op::Query(Use::Value, number)], kind))
    }

    pub(super) fn exists(&mut self, query: &Query, negated: bool) -> Result<Bound> {
        let bound = self.inner(query)?;
        self.exists_of(bound, negated)
    }

    fn exists_of(&mut self, mut bound: Bounded, negated: bool) -> Result<Bound> {
        self.without_columns(&mut bound.plan);
        if let Some(exists) = self.exists_in_set(&bound)? {
            return Ok(negate_if(negated, exists));
        }
        let number = self.push_query(bound.plan)?;
        let exists = Bound::new(vec![Op::Query(Use::Exists, number)], Kind::plain(Type::Bool));
        Ok(negate_if(negated, exists))
    }

    /// Whether there are rows depends on no column of these: they are not computed.
    fn without_columns(&self, plan: &mut Plan) {
        let select = &mut plan.select;
        let decides = select.group.is_some() || select.distinct && select.offset.is_some();
        let sorted = select.sort.iter().map(|key| &key.value);
        let is_needed = |column: &Expression| !self.is_movable(&column.code);
        if decides || select.output.iter().chain(sorted).any(is_needed) {
            return;
        }
        select.output.clear();
        select.sort.clear();
        select.distinct = false;
    }

    pub(super) fn array_of_query(&mut self, query: &Query) -> Result<Bound> {
        let (number, kind) = self.single_column(query)?;
        let ty = kind.ty.array().ok_or_else(|| {
            Error::unsupported(format!("ARRAY of {}", kind.ty.name()), "Use another type.")
        })?;
        let how = match kind.ty.enum_type() {
            None => Use::Array(kind.ty.code()),
            Some(_) => Use::ArrayOf(Kind::plain(kind.ty)),
        };
        let code = vec![Op::Query(how, number)];
        Ok(Bound::new(code, Kind::plain(ty)))
    }

    /// IN and NOT IN.
    pub(super) fn in_query(&mut self, left: &Expr, query: &Query, negated: bool) -> Result<Bound> {
        let any = self.quantified(left, &BinaryOperator::Eq, query, Quantifier::Any)?;
        Ok(negate_if(negated, any))
    }

    /// A comparison of a value, or of a row, with the rows of a query.
    pub(super) fn quantified(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        query: &Query,
        quantifier: Quantifier,
    ) -> Result<Bound> {
        let (bound, lefts, function) = self.compared_with_rows(left, op, query)?;
        let count = lefts.len() as u16;
        let number = self.push_query(bound.plan)?;
        let mut code: Vec<Op> = lefts.into_iter().flat_map(|left| left.code).collect();
        code.push(Op::Query(
            match quantifier {
                Quantifier::Any => Use::Any(function, count),
                Quantifier::All => Use::All(function, count),
            },
            number,
        ));
        Ok(Bound::new(code, Kind::plain(Type::Bool)))
    }

    /// The rows of a query and values, of one type each, that are compared with them.
    fn compared_with_rows(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        query: &Query,
    ) -> Result<(Bounded, Vec<Bound>, Function)> {
        let function = comparison(op)
            .ok_or_else(|| Error::unsupported(format!("operator {op} with ANY or ALL"), ""))?;
        let lefts = row_parts(left).unwrap_or_else(|| vec![left]);
        let orders = !matches!(function, Function::Equal | Function::NotEqual);
        if orders && lefts.len() > 1 {
            return Err(unsupported(left));
        }
        let lefts =
            lefts.into_iter().map(|left| self.expression(left)).collect::<Result<Vec<_>>>()?;
        let mut bound = self.inner(query)?;
        if bound.items.len() != lefts.len() {
            let many = if bound.items.len() > lefts.len() { "many" } else { "few" };
            let message = format!("subquery has too {many} columns");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut compared = Vec::with_capacity(lefts.len());
        for (at, (left, item)) in lefts.into_iter().zip(&bound.items).enumerate() {
            let column = Bound {
                code: bound.plan.select.output[at].code.clone(),
                ..Bound::new(Vec::new(), item.bound.kind.unwrap_or(Kind::plain(Type::Text)))
            };
            let both = self.comparable(left, op, column)?;
            let [left, column] = <[Bound; 2]>::try_from(both).expect("two in, two out");
            compared.push(left);
            bound.plan.select.output[at].code = column.code;
        }
        Ok((bound, compared, function))
    }

    /// IN as a condition that must be true: of a query that depends on the row around it, whether
    /// there are rows with the values.
    pub(super) fn is_in_query(&mut self, left: &Expr, query: &Query) -> Result<Bound> {
        let (mut bound, lefts, function) =
            self.compared_with_rows(left, &BinaryOperator::Eq, query)?;
        if self.equal_to_row_around(&mut bound, &lefts) {
            return self.exists_of(bound, false);
        }
        let count = lefts.len() as u16;
        let number = self.push_query(bound.plan)?;
        let mut code: Vec<Op> = lefts.into_iter().flat_map(|left| left.code).collect();
        code.push(Op::Query(Use::Any(function, count), number));
        Ok(Bound::new(code, Kind::plain(Type::Bool)))
    }
}
