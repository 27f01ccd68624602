//! FETCH ... WITH TIES: as a query around one that counts its rows, which takes those whose rank is
//! within the limit.

use super::binder::{Binder, name_of, unsupported};
use super::copies::check_copies;
use super::items::{Untyped, shown_name};
use super::order::ordinal;
use super::query::Parts;
use sqlparser::ast::{
    Expr, Fetch, Function, Ident, LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, Statement, TableFactor, Value, WindowType,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use values::{Error, Result, SqlState};

/// The query around: of the rows, the limit and the rows left out at the beginning.
const AROUND: &str = "SELECT * FROM (SELECT rank() OVER (ORDER BY 1) AS \"?rank?\", \
                      row_number() OVER (ORDER BY 1) AS \"?row?\") AS q \
                      WHERE 1 > 0 AND q.\"?rank?\" <= 1 + 2 AND q.\"?row?\" > 2 \
                      ORDER BY q.\"?row?\"";
/// The columns that are added.
const ADDED: usize = 2;

fn bug() -> Error {
    Error::new(SqlState::INTERNAL, "a query with ties is none")
}

/// The order of a query, by expressions of its rows.
fn order_of(query: &Query, tree: &Select) -> Result<Vec<OrderByExpr>> {
    let Some(OrderByKind::Expressions(list)) = query.order_by.as_ref().map(|order| &order.kind)
    else {
        let message = "WITH TIES cannot be specified without ORDER BY clause";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    };
    let expr_of = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.clone())
        }
        _ => None,
    };
    // A name is that of a column of the answer first, also where it is not stated.
    let of_alias = |ident: &Ident| {
        tree.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if name_of(alias) == name_of(ident) => {
                Some(expr.clone())
            }
            SelectItem::UnnamedExpr(expr) if shown_name(expr) == name_of(ident) => {
                Some(expr.clone())
            }
            _ => None,
        })
    };
    let meant = |each: &OrderByExpr| {
        let expr = match (ordinal(&each.expr), &each.expr) {
            (Some(at), _) => tree
                .projection
                .get(at.wrapping_sub(1))
                .and_then(expr_of)
                .ok_or_else(|| unsupported("this ORDER BY with WITH TIES"))?,
            (None, Expr::Identifier(ident)) => of_alias(ident).unwrap_or(each.expr.clone()),
            (None, expr) => expr.clone(),
        };
        Ok(OrderByExpr { expr, ..each.clone() })
    };
    list.iter().map(meant).collect()
}

/// Gives a call of a window function its order.
fn order_window(item: &mut SelectItem, order: &[OrderByExpr]) -> Result<()> {
    match item {
        SelectItem::ExprWithAlias {
            expr: Expr::Function(Function { over: Some(WindowType::WindowSpec(spec)), .. }),
            ..
        } => {
            spec.order_by = order.to_vec();
            Ok(())
        }
        _ => Err(bug()),
    }
}

/// The query around the rows of a query that ends WITH TIES.
fn around(tree: &Select, query: &Query, fetch: &Fetch) -> Result<Query> {
    check_copies(query, 1)?;
    let order = order_of(query, tree)?;
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, AROUND).map_err(|_| bug())?.pop();
    let Some(Statement::Query(mut made)) = parsed else { return Err(bug()) };
    let SetExpr::Select(outer) = &mut *made.body else { return Err(bug()) };
    let from = outer.from.first_mut().ok_or_else(bug)?;
    let TableFactor::Derived { subquery, .. } = &mut from.relation else { return Err(bug()) };
    let SetExpr::Select(inner) = &mut *subquery.body else { return Err(bug()) };
    let mut added = std::mem::take(&mut inner.projection);
    added.iter_mut().try_for_each(|item| order_window(item, &order))?;
    **inner = tree.clone();
    inner.projection.extend(added);
    let limit = fetch.quantity.clone();
    if matches!(&limit, Some(Expr::Value(value)) if value.value == Value::Null) {
        let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
        return Err(Error::new(SqlState::INVALID_LIMIT, message));
    }
    let limit = limit.unwrap_or_else(|| Expr::value(Value::Number("1".to_owned(), false)));
    let skipped = match &query.limit_clause {
        Some(LimitClause::LimitOffset { offset: Some(offset), .. }) => offset.value.clone(),
        _ => Expr::value(Value::Number("0".to_owned(), false)),
    };
    let Some(Expr::BinaryOp { left, right, .. }) = &mut outer.selection else { return Err(bug()) };
    let Expr::BinaryOp { left: some, right: last, .. } = &mut **left else { return Err(bug()) };
    let Expr::BinaryOp { left: limited, .. } = &mut **some else { return Err(bug()) };
    **limited = limit.clone();
    let Expr::BinaryOp { right: last, .. } = &mut **last else { return Err(bug()) };
    let Expr::BinaryOp { left: count, right: more, .. } = &mut **last else { return Err(bug()) };
    (**count, **more) = (limit, skipped.clone());
    let Expr::BinaryOp { right: first, .. } = &mut **right else { return Err(bug()) };
    **first = skipped;
    Ok(*made)
}

impl Binder<'_> {
    /// A query that ends WITH TIES.
    pub(super) fn with_ties(
        &mut self,
        query: &Query,
        fetch: &Fetch,
        untyped: Untyped,
    ) -> Result<Parts> {
        let SetExpr::Select(tree) = &*query.body else {
            return Err(unsupported("WITH TIES of other queries than SELECT"));
        };
        if tree.distinct.is_some() || !query.locks.is_empty() {
            return Err(unsupported("WITH TIES with DISTINCT or FOR UPDATE"));
        }
        let mut parts = self.query_parts(&around(tree, query, fetch)?, untyped)?;
        let width = parts.items.len().saturating_sub(ADDED);
        parts.items.truncate(width);
        parts.select.output.truncate(width);
        Ok(parts)
    }
}
