//! ORDER BY, LIMIT and OFFSET.

use super::binder::{Binder, name_of, unsupported};
use super::coerce::Bound;
use super::door::check_order;
use super::items::Item;
use super::kinds::{Willing, check_compares};
use super::shape::has_column;
use crate::ir::{Direction, Expression, SortKey, Value};
use sqlparser::ast::{
    Distinct, Expr, Fetch, LimitClause, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort,
    Query, Select, Value as Literal,
};
use values::{Datum, Error, Position, Result, SqlState, Type};

impl Binder<'_> {
    pub(super) fn sort(
        &mut self,
        query: &Query,
        items: &[Item],
        distinct: bool,
        names_only: bool,
    ) -> Result<Vec<SortKey>> {
        let Some(order) = &query.order_by else { return Ok(Vec::new()) };
        let OrderByKind::Expressions(list) = &order.kind else {
            return Err(unsupported("ORDER BY ALL"));
        };
        let mut keys = Vec::new();
        for each in list {
            let value = self.sort_value(each, items, names_only)?;
            if distinct && !items.iter().any(|item| item.bound.code == value.code) {
                return Err(Error::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
                .at(self.position(&each.expr)));
            }
            check_compares(value.ty(), "ordering")
                .map_err(|error| error.at(self.position(&each.expr)))?;
            let key = sort_key(value, direction(each)?);
            // Rows that are equal by a value are equal by it further behind, in whatever direction.
            if !keys.iter().any(|known: &SortKey| known.value == key.value) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// DISTINCT ON: the order, which begins with its values, and those.
    pub(super) fn distinct_on(
        &mut self,
        tree: &Select,
        query: &Query,
        items: &[Item],
        mut sort: Vec<SortKey>,
    ) -> Result<(Vec<SortKey>, Option<Vec<Expression>>)> {
        let Some(Distinct::On(list)) = &tree.distinct else { return Ok((sort, None)) };
        let mut on: Vec<Expression> = Vec::new();
        for expr in list {
            let options = OrderByOptions { sort: None, nulls_first: None };
            let each = OrderByExpr { expr: expr.clone(), options, with_fill: None };
            let value = self.sort_value(&each, items, false);
            let value = value.map_err(|error| match ordinal(expr) {
                Some(at) => no_position("DISTINCT ON", at).at(self.position(expr)),
                None => error,
            })?;
            let value = Expression { code: value.code };
            if !on.contains(&value) {
                on.push(value);
            }
        }
        let first_other = sort.iter().position(|key| !on.contains(&key.value));
        let begin = first_other.unwrap_or(sort.len());
        let is_behind = sort[begin..].iter().any(|key| on.contains(&key.value));
        let is_missing = |value: &Expression| sort.iter().all(|key| key.value != *value);
        if is_behind || first_other.is_some() && on.iter().any(is_missing) {
            let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            let error = Error::new(SqlState::INVALID_COLUMN_REFERENCE, message);
            return Err(error.at(self.unmatched(list, query, begin, is_behind)));
        }
        let missing: Vec<Expression> =
            on.iter().filter(|value| is_missing(value)).cloned().collect();
        let ascending = |value| SortKey { value, descending: false, nulls_first: false };
        sort.extend(missing.into_iter().map(ascending));
        Ok((sort, Some(on)))
    }

    /// Where DISTINCT ON and ORDER BY differ.
    fn unmatched(
        &self,
        list: &[Expr],
        query: &Query,
        begin: usize,
        is_behind: bool,
    ) -> Option<Position> {
        let order = query.order_by.as_ref().map(|order| &order.kind);
        match order {
            Some(OrderByKind::Expressions(order)) if is_behind => {
                let (before, behind) = order.split_at_checked(begin)?;
                let is_in =
                    |all: &[OrderByExpr], expr: &Expr| all.iter().any(|each| each.expr == *expr);
                let is_behind = |expr: &&Expr| is_in(behind, expr) && !is_in(before, expr);
                list.iter().find(is_behind).and_then(|expr| self.position(expr))
            }
            Some(OrderByKind::Expressions(order)) => {
                let is_named = |expr: &&Expr| order.iter().any(|each| each.expr == **expr);
                list.iter().find(|expr| !is_named(expr)).and_then(|expr| self.position(expr))
            }
            _ => None,
        }
    }

    pub(super) fn sort_value(
        &mut self,
        each: &OrderByExpr,
        items: &[Item],
        names_only: bool,
    ) -> Result<Bound> {
        if let Some(at) = ordinal(&each.expr) {
            let item = items.get(at.wrapping_sub(1));
            let missing = || no_position("ORDER BY", at).at(self.position(&each.expr));
            return Ok(item.ok_or_else(missing)?.bound.clone());
        }
        if let Expr::Identifier(ident) = &each.expr {
            let name = name_of(ident);
            let mut named = items.iter().filter(|item| item.name == name);
            if let Some(item) = named.next() {
                if named.any(|other| other.bound.code != item.bound.code) {
                    let message = format!("ORDER BY \"{name}\" is ambiguous");
                    return Err(Error::new(SqlState::AMBIGUOUS_COLUMN, message)
                        .at(self.position(&each.expr)));
                }
                return Ok(item.bound.clone());
            }
            if names_only {
                return Err(super::scope::missing(None, &name).at(self.position(&each.expr)));
            }
        }
        if names_only {
            let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
            return Err(Error::unsupported(
                message,
                "Add the expression/function to every SELECT, or move the UNION into a FROM \
                 clause.",
            )
            .with_detail("Only result column names can be used, not expressions or functions.")
            .at(self.position(&each.expr)));
        }
        if let Some(item) = items.iter().find(|item| item.expr.as_ref() == Some(&each.expr)) {
            return Ok(item.bound.clone());
        }
        let bound = self.expression(&each.expr)?;
        self.settle(bound)
    }

    pub(super) fn limits(
        &mut self,
        query: &Query,
    ) -> Result<(Option<Expression>, Option<Expression>)> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(unsupported("this form of LIMIT")),
        };
        let limit = match &query.fetch {
            None => self.count(limit)?,
            Some(Fetch { quantity: Some(quantity), .. }) => self.count(Some(quantity))?,
            // FETCH FIRST ROW ONLY
            Some(_) => Some(Expression::constant(Value(Datum::Int8(1)))),
        };
        Ok((limit, self.count(offset)?))
    }

    fn count(&mut self, expr: Option<&Expr>) -> Result<Option<Expression>> {
        let Some(expr) = expr else { return Ok(None) };
        self.clause = "LIMIT";
        let bound = self.expression(expr)?;
        let bound = self.coerce(bound, Type::Int8, Willing::Assignment)?;
        let expression = bound.expression();
        if has_column(&expression.code) || !self.is_movable(&expression.code) {
            let message = "argument of LIMIT must not contain variables";
            return Err(
                Error::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(self.position(expr))
            );
        }
        Ok(Some(expression))
    }
}

/// How ORDER BY puts values in order.
pub(super) fn direction(each: &OrderByExpr) -> Result<Direction> {
    check_order(each)?;
    let descending = match &each.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(_)) => return Err(unsupported("ORDER BY USING")),
    };
    Ok(Direction { descending, nulls_first: each.options.nulls_first.unwrap_or(descending) })
}

/// A value that rows are put in order by.
pub(super) fn sort_key(value: Bound, direction: Direction) -> SortKey {
    let Direction { descending, nulls_first } = direction;
    SortKey { value: Expression { code: value.code }, descending, nulls_first }
}

pub(super) fn no_position(clause: &str, at: usize) -> Error {
    let message = format!("{clause} position {at} is not in select list");
    Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}

/// A literal whole number, which stands for a column of the answer.
pub(super) fn ordinal(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
