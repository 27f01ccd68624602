//! SELECT.

use super::access::choose;
use super::binder::{Binder, Grouping, name_of, table_name, unsupported};
use super::coerce::Bound;
use super::kinds::Willing;
use super::prepare::OutputColumn;
use crate::catalog::Table;
use crate::ir::{Expression, Group, Select, SortKey, Source};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, LimitClause, OrderByExpr, OrderByKind, OrderBySort, Query,
    Select as Tree, SelectItem, SetExpr, TableFactor, TableWithJoins, Value as Literal,
};
use std::sync::Arc;
use values::{Error, Result, SqlState, Type};

/// A column of an answer while it is bound.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) bound: Bound,
    expr: Option<Expr>,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &Query) -> Result<(Select, Vec<OutputColumn>)> {
        if query.with.is_some() {
            return Err(unsupported("WITH"));
        }
        // FOR UPDATE and FOR SHARE lock nothing: a block whose rows others change is refused when
        // it commits.
        let tree = match &*query.body {
            SetExpr::Select(tree) => tree,
            SetExpr::SetOperation { op, .. } => return Err(unsupported(&op.to_string())),
            _ => return Err(unsupported("this form of query")),
        };
        refuse_clauses(tree)?;
        let source = self.source(&tree.from)?;
        self.grouping = None;
        let (filter, predicates) = self.filter(tree.selection.as_ref())?;
        let access = match &source {
            Some(relation) => choose(relation, &predicates, self.choice),
            None => Default::default(),
        };
        let keys = self.group_keys(tree)?;
        let stated = !keys.is_empty() || tree.having.is_some();
        self.grouping = Some(Grouping { keys, ..Grouping::default() });
        let items = self.items(&tree.projection)?;
        let having = match &tree.having {
            Some(having) => Some(self.condition(having, "HAVING")?.expression()),
            None => None,
        };
        let distinct = match &tree.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return Err(unsupported("DISTINCT ON")),
        };
        let sort = self.sort(query, &items, distinct)?;
        let grouping = self.grouping.take().unwrap_or_default();
        let grouped = stated || !grouping.aggregates.is_empty();
        if let (true, Some(error)) = (grouped, grouping.ungrouped) {
            return Err(error);
        }
        let group = grouped.then(|| Group {
            keys: grouping.keys.into_iter().map(|(_, bound)| bound.expression()).collect(),
            aggregates: grouping.aggregates,
        });
        let (limit, offset) = self.limits(query)?;
        let columns = items.iter().map(|item| OutputColumn::of(&item.name, &item.bound)).collect();
        let output = items.into_iter().map(|item| item.bound.expression()).collect();
        let source = Source { relation: source, access, filter };
        Ok((Select { source, group, having, output, distinct, sort, limit, offset }, columns))
    }

    /// The table of a FROM, which becomes the scope.
    fn source(&mut self, from: &[TableWithJoins]) -> Result<Option<crate::ir::Relation>> {
        self.scope = Default::default();
        match from {
            [] => Ok(None),
            [table] => Ok(Some(self.scanned_table(table)?.relation.clone())),
            _ => Err(unsupported("a join")),
        }
    }

    pub(super) fn scanned_table(&mut self, table: &TableWithJoins) -> Result<Arc<Table>> {
        if !table.joins.is_empty() {
            return Err(unsupported("a join"));
        }
        let TableFactor::Table { name, alias, args: None, .. } = &table.relation else {
            return Err(unsupported("a subquery or function in FROM"));
        };
        let found = self.table(name)?;
        let own = match alias {
            Some(alias) if !alias.columns.is_empty() => {
                return Err(unsupported("an alias of columns"));
            }
            Some(alias) => name_of(&alias.name),
            None => table_name(name)?,
        };
        self.over(&own, &found.relation);
        Ok(found)
    }

    fn group_keys(&mut self, tree: &Tree) -> Result<Vec<(Expr, Bound)>> {
        let GroupByExpr::Expressions(list, modifiers) = &tree.group_by else {
            return Err(unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(unsupported("ROLLUP or CUBE"));
        }
        let mut keys = Vec::new();
        for expr in list {
            let meant = self.group_meant(expr, &tree.projection)?;
            let bound = self.expression(&meant)?;
            keys.push((meant, self.settle(bound)?));
        }
        Ok(keys)
    }

    /// GROUP BY 1 and GROUP BY a name of the answer; a column of the table comes before that.
    fn group_meant(&self, expr: &Expr, projection: &[SelectItem]) -> Result<Expr> {
        if let Some(at) = ordinal(expr) {
            return match projection.get(at.wrapping_sub(1)) {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                    Ok(expr.clone())
                }
                _ => Err(no_position("GROUP BY", at).at(self.position(expr))),
            };
        }
        if let Expr::Identifier(ident) = expr {
            let name = name_of(ident);
            if self.scope.resolve(None, &name).is_err() {
                for item in projection {
                    if let SelectItem::ExprWithAlias { expr, alias } = item
                        && name_of(alias) == name
                    {
                        return Ok(expr.clone());
                    }
                }
            }
        }
        Ok(expr.clone())
    }

    /// The columns of an answer, by SELECT or RETURNING.
    pub(super) fn items(&mut self, projection: &[SelectItem]) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let bound = self.expression(expr)?;
                    let bound = self.settle(bound)?;
                    items.push(Item { name: shown_name(expr), bound, expr: Some(expr.clone()) });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let bound = self.expression(expr)?;
                    let bound = self.settle(bound)?;
                    items.push(Item { name: name_of(alias), bound, expr: Some(expr.clone()) });
                }
                SelectItem::Wildcard(_) => self.wildcard(None, &mut items)?,
                SelectItem::QualifiedWildcard(
                    sqlparser::ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => self.wildcard(Some(&table_name(name)?), &mut items)?,
                _ => return Err(unsupported("this form of column")),
            }
        }
        Ok(items)
    }

    fn wildcard(&mut self, table: Option<&str>, items: &mut Vec<Item>) -> Result<()> {
        let wanted: Vec<_> = self
            .scope
            .all()
            .filter(|column| column.table != "excluded")
            .filter(|column| table.is_none_or(|table| column.table == table))
            .collect();
        if wanted.is_empty() {
            let message = match table {
                Some(table) => format!("missing FROM-clause entry for table \"{table}\""),
                None => "SELECT * with no tables specified is not valid".to_owned(),
            };
            let state =
                if table.is_some() { SqlState::UNDEFINED_TABLE } else { SqlState::SYNTAX_ERROR };
            return Err(Error::new(state, message));
        }
        for column in wanted {
            let quoted = sqlparser::ast::Ident::with_quote('"', column.name.clone());
            let parts = vec![sqlparser::ast::Ident::with_quote('"', column.table.clone()), quoted];
            let expr = Expr::CompoundIdentifier(parts);
            let bound = self.expression(&expr)?;
            items.push(Item { name: column.name, bound, expr: None });
        }
        Ok(())
    }

    fn sort(&mut self, query: &Query, items: &[Item], distinct: bool) -> Result<Vec<SortKey>> {
        let Some(order) = &query.order_by else { return Ok(Vec::new()) };
        let OrderByKind::Expressions(list) = &order.kind else {
            return Err(unsupported("ORDER BY ALL"));
        };
        let mut keys = Vec::new();
        for each in list {
            let value = self.sort_value(each, items)?;
            if distinct && !items.iter().any(|item| item.bound.code == value.code) {
                return Err(Error::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
                .at(self.position(&each.expr)));
            }
            let descending = match &each.options.sort {
                None | Some(OrderBySort::Asc) => false,
                Some(OrderBySort::Desc) => true,
                Some(OrderBySort::Using(_)) => return Err(unsupported("ORDER BY USING")),
            };
            let nulls_first = each.options.nulls_first.unwrap_or(descending);
            keys.push(SortKey { value: Expression { code: value.code }, descending, nulls_first });
        }
        Ok(keys)
    }

    fn sort_value(&mut self, each: &OrderByExpr, items: &[Item]) -> Result<Bound> {
        if let Some(at) = ordinal(&each.expr) {
            let item = items.get(at.wrapping_sub(1));
            let missing = || no_position("ORDER BY", at).at(self.position(&each.expr));
            return Ok(item.ok_or_else(missing)?.bound.clone());
        }
        if let Expr::Identifier(ident) = &each.expr {
            let name = name_of(ident);
            if let Some(item) = items.iter().find(|item| item.name == name) {
                return Ok(item.bound.clone());
            }
        }
        if let Some(item) = items.iter().find(|item| item.expr.as_ref() == Some(&each.expr)) {
            return Ok(item.bound.clone());
        }
        let bound = self.expression(&each.expr)?;
        self.settle(bound)
    }

    fn limits(&mut self, query: &Query) -> Result<(Option<Expression>, Option<Expression>)> {
        let (mut limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(unsupported("this form of LIMIT")),
        };
        if let Some(fetch) = &query.fetch {
            if fetch.with_ties || fetch.percent {
                return Err(unsupported("FETCH WITH TIES"));
            }
            limit = fetch.quantity.as_ref();
        }
        Ok((self.count(limit)?, self.count(offset)?))
    }

    fn count(&mut self, expr: Option<&Expr>) -> Result<Option<Expression>> {
        let Some(expr) = expr else { return Ok(None) };
        let bound = self.expression(expr)?;
        let bound = self.coerce(bound, Type::Int8, Willing::Assignment)?;
        let expression = bound.expression();
        if !expression.is_fixed() {
            let message = "argument of LIMIT must not contain variables";
            return Err(
                Error::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(self.position(expr))
            );
        }
        Ok(Some(expression))
    }
}

/// Clauses that PostgreSQL has and this does not, or that are of other dialects.
fn refuse_clauses(tree: &Tree) -> Result<()> {
    let refused = [
        (tree.into.is_some(), "SELECT INTO"),
        (tree.top.is_some(), "TOP"),
        (!tree.lateral_views.is_empty(), "LATERAL VIEW"),
        (!tree.named_window.is_empty(), "WINDOW"),
        (tree.qualify.is_some(), "QUALIFY"),
        (tree.prewhere.is_some(), "PREWHERE"),
        (!tree.connect_by.is_empty(), "CONNECT BY"),
        (!tree.sort_by.is_empty() || !tree.cluster_by.is_empty(), "SORT BY"),
        (!tree.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (tree.exclude.is_some() || tree.value_table_mode.is_some(), "this form of SELECT"),
    ];
    match refused.iter().find(|(present, _)| *present) {
        Some((_, name)) => Err(unsupported(name)),
        None => Ok(()),
    }
}

fn no_position(clause: &str, at: usize) -> Error {
    let message = format!("{clause} position {at} is not in select list");
    Error::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}

/// A literal whole number, which stands for a column of the answer.
fn ordinal(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The name that PostgreSQL gives a column without one.
fn shown_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => name_of(ident),
        Expr::CompoundIdentifier(parts) => parts.last().map(name_of).unwrap_or_default(),
        Expr::Nested(inner) => shown_name(inner),
        Expr::Cast { expr, data_type, .. } => match shown_name(expr).as_str() {
            "?column?" => super::kinds::kind_of(data_type)
                .map_or_else(|_| "?column?".to_owned(), |kind| cast_name(kind.ty)),
            name => name.to_owned(),
        },
        Expr::Function(function) => {
            let shown = function.name.to_string().to_ascii_lowercase();
            shown.rsplit('.').next().unwrap_or_default().to_owned()
        }
        Expr::Case { else_result: Some(otherwise), .. } => match shown_name(otherwise).as_str() {
            "?column?" => "case".to_owned(),
            name => name.to_owned(),
        },
        Expr::Case { .. } => "case".to_owned(),
        Expr::Array(_) => "array".to_owned(),
        Expr::Extract { .. } => "extract".to_owned(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Trim { .. } => "btrim".to_owned(),
        Expr::Position { .. } => "position".to_owned(),
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        _ => "?column?".to_owned(),
    }
}

/// PostgreSQL's short names of types.
fn cast_name(ty: Type) -> String {
    let short = match ty.element().unwrap_or(ty) {
        Type::Bool => "bool",
        Type::Int2 => "int2",
        Type::Int4 => "int4",
        Type::Int8 => "int8",
        Type::Float4 => "float4",
        Type::Float8 => "float8",
        Type::Varchar => "varchar",
        Type::Char => "bpchar",
        Type::Timestamp => "timestamp",
        Type::Timestamptz => "timestamptz",
        other => return other.name(),
    };
    short.to_owned()
}
