//! VALUES, UNION, INTERSECT and EXCEPT: the columns of several rows or queries become of one type.

use super::binder::{Binder, unsupported};
use super::coerce::Bound;
use super::items::{Bounded, COLUMNS_MAX, Item, Untyped};
use super::kinds::{Willing, check_compares, may_cast};
use super::query::{Parts, over_columns};
use crate::ir::{Expression, Input, Kind, Select, SetOperator, SetStep};
use sqlparser::ast::{self, Query, SetExpr, SetQuantifier, Values};
use values::{Error, Position, Result, SqlState, Type};

impl Binder<'_> {
    /// VALUES as a query.
    pub(super) fn values(
        &mut self,
        values: &Values,
        query: &Query,
        untyped: Untyped,
    ) -> Result<Parts> {
        self.clause = "VALUES";
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut rows: Vec<Vec<Bound>> = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                let at = row.content.first().and_then(|expr| self.position(expr));
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            let row = row.content.iter().map(|expr| self.expression(expr));
            rows.push(row.collect::<Result<_>>()?);
        }
        if width == 0 || width > COLUMNS_MAX {
            return Err(unsupported("this number of columns"));
        }
        let mut items = Vec::with_capacity(width);
        for at in 0..width {
            let mut ty = None;
            for (row, tree) in rows.iter().zip(&values.rows) {
                let matched = self.matched("VALUES", ty, row[at].ty());
                ty = matched.map_err(|error| error.at(self.position(&tree.content[at])))?;
            }
            let is_literal = rows.len() == 1 && ty.is_none() && untyped == Untyped::Kept;
            let name = format!("column{}", at + 1);
            if is_literal {
                items.push(Item { name, bound: rows[0][at].clone(), expr: None });
                continue;
            }
            let kinds: Vec<_> = rows.iter().map(|row| row[at].kind).collect();
            let ty = ty.unwrap_or(Type::Text);
            for row in &mut rows {
                let bound =
                    std::mem::replace(&mut row[at], Bound::new(Vec::new(), Kind::plain(ty)));
                row[at] = self.coerce(bound, ty, Willing::Implicit)?;
            }
            let kind = match kinds[0] {
                Some(first) if kinds.iter().all(|kind| *kind == Some(first)) => first,
                _ => Kind::plain(ty),
            };
            items.push(Item { name, bound: Bound::new(Vec::new(), kind), expr: None });
        }
        let all = rows.into_iter().map(|row| row.into_iter().map(Bound::expression).collect());
        let input = Input::Values(all.collect());
        let untyped: Vec<Option<Bound>> = items
            .iter()
            .map(|item| item.bound.kind.is_none().then(|| item.bound.clone()))
            .collect();
        let typed = items.into_iter().map(|mut item| {
            item.bound.kind.get_or_insert(Kind::plain(Type::Text));
            item
        });
        let mut items = over_columns(typed.collect());
        for (item, literal) in items.iter_mut().zip(untyped) {
            if let Some(literal) = literal {
                item.bound = literal;
            }
        }
        self.combined(input, items, query)
    }

    /// A chain of set operations: those on the left come first, so they are one list.
    pub(super) fn set_operation(&mut self, query: &Query) -> Result<Parts> {
        let mut chain = Vec::new();
        let mut left = &*query.body;
        while let SetExpr::SetOperation { left: before, op, set_quantifier, right } = left {
            let operator = match op {
                ast::SetOperator::Union => SetOperator::Union,
                ast::SetOperator::Intersect => SetOperator::Intersect,
                ast::SetOperator::Except => SetOperator::Except,
                ast::SetOperator::Minus => return Err(unsupported("MINUS")),
            };
            let all = match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::Distinct | SetQuantifier::None => false,
                _ => return Err(unsupported("BY NAME")),
            };
            chain.push((operator, all, &**right));
            left = before;
        }
        let uses_begin = self.recursion.uses_count();
        let mut branches = vec![self.branch(left)?];
        let mut types: Vec<Option<Type>> = own_types(&branches[0]);
        for (operator, all, right) in chain.iter().rev() {
            let uses_before = self.recursion.uses_count();
            let branch = self.branch(right)?;
            let name = name_of(*operator);
            let refused_from = match operator {
                SetOperator::Intersect | SetOperator::Except if *all => uses_begin,
                SetOperator::Union | SetOperator::Intersect => self.recursion.uses_count(),
                SetOperator::Except => uses_before,
            };
            if self.recursion.uses_count() > refused_from {
                return Err(self.recursion.refused(refused_from, &format!("within {name}")));
            }
            if branch.items.len() != types.len() {
                let message = format!("each {name} query must have the same number of columns");
                let at = branch.items.first().and_then(|item| self.position_of_item(item));
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            for (ty, item) in types.iter_mut().zip(&branch.items) {
                let matched = self.matched(name, *ty, item.bound.ty());
                let matched = matched.map_err(|error| error.at(self.position_of_item(item)))?;
                *ty = Some(matched.unwrap_or(Type::Text));
                if !(*all && *operator == SetOperator::Union) {
                    check_compares(*ty, "equality")?;
                }
            }
            branches.push(branch);
        }
        let items = self.common_columns(&mut branches, &types)?;
        let mut numbers = Vec::with_capacity(branches.len());
        for branch in branches {
            numbers.push(self.push_query(branch.plan)?);
        }
        let steps = chain.iter().rev().zip(&numbers[1..]);
        let steps = steps.map(|((operator, all, _), query)| SetStep {
            operator: *operator,
            all: *all,
            query: *query,
        });
        self.combined(Input::Set(numbers[0], steps.collect()), items, query)
    }

    pub(super) fn position_of_item(&self, item: &Item) -> Option<Position> {
        item.expr.as_ref().and_then(|expr| self.position(expr))
    }

    /// A query of a set operation.
    fn branch(&mut self, tree: &SetExpr) -> Result<Bounded> {
        self.query(&query_of(tree), Untyped::Kept)
    }

    /// The type of a column that has had this one so far.
    pub(super) fn matched(
        &self,
        what: &str,
        so_far: Option<Type>,
        own: Option<Type>,
    ) -> Result<Option<Type>> {
        let (Some(left), Some(right)) = (so_far, own) else { return Ok(so_far.or(own)) };
        let ty = if left == right {
            left
        } else if left.is_text() && right.is_text() {
            if matches!(left, Type::Char | Type::Varchar) { left } else { Type::Text }
        } else if may_cast(right, left, Willing::Implicit) {
            // The first one also where both would do, as of oid and regclass.
            left
        } else if may_cast(left, right, Willing::Implicit) {
            right
        } else {
            let (left, right) = (left.name(), right.name());
            let message = format!("{what} types {left} and {right} cannot be matched");
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        };
        Ok(Some(ty))
    }

    /// Gives all branches the same types. The columns of their rows.
    fn common_columns(
        &mut self,
        branches: &mut [Bounded],
        types: &[Option<Type>],
    ) -> Result<Vec<Item>> {
        let mut items = branches[0].items.clone();
        for (at, ty) in types.iter().enumerate() {
            let ty = ty.unwrap_or(Type::Text);
            let kind = items[at].bound.kind.filter(|first| {
                branches.iter().all(|branch| branch.items[at].bound.kind == Some(*first))
            });
            for branch in &mut *branches {
                let output = &mut branch.plan.select.output[at];
                let bound = match branch.items[at].bound.kind {
                    Some(kind) => Bound::new(std::mem::take(&mut output.code), kind),
                    None => branch.items[at].bound.clone(),
                };
                *output = self.coerce(bound, ty, Willing::Implicit)?.expression();
            }
            items[at].bound.kind = Some(kind.unwrap_or(Kind::plain(ty)));
        }
        Ok(over_columns(items))
    }
}

/// A query of nothing but this.
pub(super) fn query_of(tree: &SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(tree.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

fn own_types(branch: &Bounded) -> Vec<Option<Type>> {
    branch.items.iter().map(|item| item.bound.ty()).collect()
}

fn name_of(operator: SetOperator) -> &'static str {
    match operator {
        SetOperator::Union => "UNION",
        SetOperator::Intersect => "INTERSECT",
        SetOperator::Except => "EXCEPT",
    }
}

impl Select {
    /// A query that only computes these columns.
    pub(super) fn of(output: Vec<Expression>) -> Select {
        Select {
            source: Default::default(),
            group: None,
            having: None,
            output,
            distinct: false,
            sort: Vec::new(),
            limit: None,
            offset: None,
        }
    }
}
