//! Queries: SELECT, VALUES, set operations.

use super::binder::{Binder, Grouping, name_of, unsupported};
use super::coerce::Bound;
use super::conditions::{Conjunct, filter_of};
use super::door::{check_query, check_select, check_values};
use super::from::{FromItem, FromRows};
use super::grouping_sets;
use super::items::{Bounded, Filtered, Item, Untyped, identity};
use super::joins::Joined;
use super::key_order::OrderWish;
use super::kinds::check_compares;
use super::locks::{LockedRow, claim_rows, refuse_locks, refuse_locks_of_values, without_rows};
use super::order::{no_position, ordinal};
use super::window_list::{Place, WindowList};
use crate::ir::{ColumnNumber, Expression, Group, Input, Op, Query as Plan, Select, Source};
use sqlparser::ast::{Distinct, Expr, GroupByExpr, Query, Select as Tree, SelectItem, SetExpr};
use values::Result;

/// A query while it is bound.
pub(super) struct Parts {
    pub(super) input: Input,
    pub(super) select: Select,
    pub(super) items: Vec<Item>,
    /// The table whose rows it filters and computes, if it does nothing else.
    pub(super) table: Option<Filtered>,
}

impl Binder<'_> {
    /// Binds a query by itself: it sees the tables of the queries that it is computed in, and not
    /// those of the one beside it.
    pub(super) fn query(&mut self, query: &Query, untyped: Untyped) -> Result<Bounded> {
        self.apart(|binder| {
            let named = binder.named.len();
            let parts = binder.query_parts(query, untyped);
            binder.named.truncate(named);
            let Parts { input, select, items, table } = parts?;
            Ok(Bounded { plan: binder.plan(input, select), items, table })
        })
    }

    /// Binds beside the current query: with no tables in sight but those of outer queries.
    pub(super) fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = std::mem::take(&mut self.scope);
        let grouping = self.grouping.take();
        let reaches = std::mem::replace(&mut self.reaches, usize::MAX);
        let working = std::mem::take(&mut self.recursion.working);
        let result = work(self);
        (self.scope, self.grouping) = (scope, grouping);
        self.reaches = self.reaches.min(reaches);
        self.recursion.working.extend(working);
        result
    }

    /// The current query, once all of it is bound.
    pub(super) fn plan(&self, input: Input, select: Select) -> Plan {
        let depth = self.levels.len();
        // The rows of a working table are others in each step.
        let is_correlated = self.reaches < depth || !self.recursion.working.is_empty();
        Plan { depth: depth as u16, is_correlated, input, select }
    }

    pub(super) fn query_parts(&mut self, query: &Query, untyped: Untyped) -> Result<Parts> {
        check_query(query)?;
        if let Some(with) = &query.with {
            self.with(with)?;
        }
        if let Some(fetch) = query.fetch.as_ref().filter(|fetch| fetch.with_ties) {
            return self.with_ties(query, fetch, untyped);
        }
        match &*query.body {
            SetExpr::Select(tree) => match grouping_sets::expanded(tree, query)? {
                Some(of_sets) => self.of_sets(&of_sets, untyped),
                None => self.select(tree, query, untyped),
            },
            SetExpr::Query(inner) => self.ordered(inner, query, untyped),
            SetExpr::SetOperation { .. } => {
                refuse_locks(&query.locks, "UNION/INTERSECT/EXCEPT")?;
                self.set_operation(query)
            }
            SetExpr::Values(values) => {
                check_values(values)?;
                refuse_locks_of_values(&query.locks)?;
                self.values(values, query, untyped)
            }
            _ => Err(unsupported("this form of query")),
        }
    }

    /// A query of grouping sets, as one for each set.
    fn of_sets(&mut self, query: &Query, untyped: Untyped) -> Result<Parts> {
        match &*query.body {
            SetExpr::Select(tree) => self.select(tree, query, untyped),
            _ => {
                refuse_locks(&query.locks, "GROUP BY")?;
                self.set_operation(query)
            }
        }
    }

    fn select(&mut self, tree: &Tree, query: &Query, untyped: Untyped) -> Result<Parts> {
        check_select(tree)?;
        let mut from = self.from(&tree.from)?;
        let locked = self.locked(&query.locks, &tree.from, &from)?;
        self.grouping = None;
        let items_before = from.len();
        let projection = self.rows_among_columns(&tree.projection, &mut from)?;
        let has_rows_among_columns = from.len() > items_before;
        let is_step = from.iter().any(|item| self.is_working(&item.rows));
        let mut conditions = self.conjuncts(tree.selection.as_ref(), "WHERE")?;
        conditions.extend(locked.iter().filter_map(LockedRow::condition));
        let (input, source, table) = self.input(from, conditions)?;
        let keys = self.group_keys(tree)?;
        let stated = !keys.is_empty() || tree.having.is_some();
        self.grouping = Some(Grouping { keys, ..Grouping::default() });
        self.named_windows(&tree.named_window)?;
        let mut items = self.at_place(Place::Columns, |binder| binder.items(&projection))?;
        if untyped == Untyped::Text {
            items = self.settled(items)?;
        }
        let having = match &tree.having {
            Some(having) => Some(self.condition(having, "HAVING")?.expression()),
            None => None,
        };
        let distinct = matches!(tree.distinct, Some(Distinct::Distinct));
        for item in items.iter().filter(|_| distinct) {
            check_compares(item.bound.ty(), "equality")?;
        }
        let (sort, on) = self.at_place(Place::Columns, |binder| {
            let sort = binder.sort(query, &items, distinct, false)?;
            binder.distinct_on(tree, query, &items, sort)
        })?;
        let grouping = self.grouping.take().unwrap_or_default();
        let grouped = stated || !grouping.aggregates.is_empty();
        if let (true, Some(error)) = (grouped, grouping.ungrouped) {
            return Err(error);
        }
        if is_step && !grouping.aggregates.is_empty() {
            return Err(super::working::aggregated().at(grouping.position));
        }
        let without_rows = without_rows(tree)
            .or((!grouping.aggregates.is_empty()).then_some("aggregate functions"))
            .or((!grouping.windows.is_empty()).then_some("window functions"))
            .or(has_rows_among_columns.then_some("set-returning functions in the target list"));
        if let Some(what) = without_rows {
            refuse_locks(&query.locks, what)?;
        }
        let group = grouped.then(|| Group {
            keys: grouping.keys.into_iter().map(|(_, bound)| bound.expression()).collect(),
            aggregates: grouping.aggregates,
        });
        let output = items.iter().map(|item| item.bound.clone().expression()).collect();
        let (limit, offset) = (None, None);
        let mut select = Select { source, group, having, output, distinct, sort, limit, offset };
        claim_rows(&mut select, &locked);
        let mut parts = Parts { input, select, items, table };
        if !grouping.windows.is_empty() {
            parts = self.over_windows(parts, &grouping.windows)?;
        }
        if let Some(on) = on {
            parts = self.over_distinct(parts, on, &grouping.windows)?;
        }
        (parts.select.limit, parts.select.offset) = self.limits(query)?;
        let is_sorted = !parts.select.sort.is_empty();
        self.order_by_key(&mut parts);
        self.ends_by_key(&mut parts)?;
        let table = parts.table.filter(|_| parts.select.is_plain() && locked.is_empty());
        parts.table = table.map(|table| Filtered { is_sorted, ..table });
        Ok(parts)
    }

    /// The columns of a query over rows with the results of window functions.
    fn over_windows(&mut self, mut parts: Parts, windows: &WindowList) -> Result<Parts> {
        let width = match &parts.select.group {
            Some(group) => group.keys.len() + group.aggregates.len(),
            None => self.scope.width(),
        };
        for item in &mut parts.items {
            windows.stand_behind(width, &mut item.bound.code);
        }
        let mut select = parts.select;
        let output = select.output.iter_mut();
        for expression in output.chain(select.sort.iter_mut().map(|key| &mut key.value)) {
            windows.stand_behind(width, &mut expression.code);
        }
        let Select { source, group, having, .. } = select;
        let inner = Select { source, group, having, ..Select::of(identity(width)) };
        let rows = self.plan(parts.input, inner);
        let rows = self.push_query(rows)?;
        let input = Input::Windows(windows.over(rows, width)?);
        let Select { output, distinct, sort, .. } = select;
        let select = Select { distinct, sort, ..Select::of(output) };
        Ok(Parts { input, select, items: parts.items, table: None })
    }

    /// The rows of a query of which the first of each set with equal values counts.
    fn over_distinct(
        &mut self,
        mut parts: Parts,
        on: Vec<Expression>,
        windows: &WindowList,
    ) -> Result<Parts> {
        let width = parts.items.len();
        let places = (width..width + on.len()).map(ColumnNumber::at).collect();
        let base = match &parts.input {
            Input::Windows(inner) => self.queries[usize::from(inner.rows)].select.output.len(),
            _ => 0,
        };
        for mut expression in on {
            windows.stand_behind(base, &mut expression.code);
            parts.select.output.push(expression);
        }
        let rows = self.plan(parts.input, parts.select);
        let rows = self.push_query(rows)?;
        for (at, item) in parts.items.iter_mut().enumerate() {
            // What has no type yet is a constant.
            if item.bound.kind.is_some() {
                item.bound.code = vec![Op::Column(ColumnNumber::at(at))];
            }
        }
        let output = parts.items.iter().map(|item| item.bound.clone().expression()).collect();
        let (input, select) = (Input::Distinct(rows, places), Select::of(output));
        Ok(Parts { input, select, items: parts.items, table: None })
    }

    /// The rows of a FROM that count. Those of one table are as they always were.
    fn input(
        &mut self,
        mut from: Vec<FromItem>,
        conditions: Vec<Conjunct>,
    ) -> Result<(Input, Source, Option<Filtered>)> {
        if let [] | [FromItem { rows: FromRows::Table(_), .. }] = from[..] {
            let Some(FromItem { rows: FromRows::Table(relation), on, .. }) = from.pop() else {
                let (filter, _) = filter_of(conditions);
                return Ok((Input::Source, Source { filter, ..Source::default() }, None));
            };
            let conditions = [on, conditions].concat();
            let (source, _) = self.source(&relation, conditions.clone(), OrderWish::default());
            let table = Filtered { relation, conditions, is_sorted: false };
            return Ok((Input::Source, source, Some(table)));
        }
        Ok((Input::Joins(self.joins(from, conditions, Joined::Read)), Source::default(), None))
    }

    /// A query in brackets, with an order or a limit behind them.
    fn ordered(&mut self, inner: &Query, query: &Query, untyped: Untyped) -> Result<Parts> {
        let plain =
            query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        if plain {
            return self.query_parts(inner, untyped);
        }
        let inner = self.query(inner, Untyped::Text)?;
        let items = over_columns(inner.items);
        let first = self.push_query(inner.plan)?;
        self.combined(Input::Set(first, Vec::new()), items, query)
    }

    /// The rows of other queries, with the order and limit of this one.
    pub(super) fn combined(
        &mut self,
        input: Input,
        items: Vec<Item>,
        query: &Query,
    ) -> Result<Parts> {
        let sort = self.sort(query, &items, false, true)?;
        let (limit, offset) = self.limits(query)?;
        let output = items.iter().map(|item| item.bound.clone().expression()).collect();
        let select = Select { sort, limit, offset, ..Select::of(output) };
        Ok(Parts { input, select, items, table: None })
    }

    /// Columns that have no type are text.
    pub(super) fn settled(&mut self, items: Vec<Item>) -> Result<Vec<Item>> {
        let settle = |item: Item| Ok(Item { bound: self.settle(item.bound)?, ..item });
        items.into_iter().map(settle).collect()
    }

    pub(super) fn group_keys(&mut self, tree: &Tree) -> Result<Vec<(Expr, Bound)>> {
        let GroupByExpr::Expressions(list, modifiers) = &tree.group_by else {
            return Err(unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(unsupported("ROLLUP or CUBE"));
        }
        self.clause = "GROUP BY";
        let mut keys = Vec::new();
        // A row in brackets is its parts.
        let parts = list.iter().flat_map(|expr| match expr {
            Expr::Tuple(parts) => &parts[..],
            one => std::slice::from_ref(one),
        });
        for expr in parts {
            let meant = self.group_meant(expr, &tree.projection)?;
            let bound = self.expression(&meant)?;
            check_compares(bound.ty(), "equality")
                .map_err(|error| error.at(self.position(expr)))?;
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
            if !matches!(self.scope.resolve(None, &name), Ok(Some(_))) {
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
}

impl Select {
    /// Whether it only filters rows and computes columns.
    fn is_plain(&self) -> bool {
        let is_whole = self.limit.is_none() && self.offset.is_none();
        is_whole && self.group.is_none() && self.having.is_none() && !self.distinct
    }
}

/// The columns of a query for one that has them as its rows.
pub(super) fn over_columns(items: Vec<Item>) -> Vec<Item> {
    let over = |(at, item): (usize, Item)| {
        let column = ColumnNumber::at(at);
        let kind = item.bound.kind.expect("it has a type");
        let bound = Bound::of_column(vec![Op::Column(column)], kind, Some(column));
        Item { name: item.name, bound, expr: None }
    };
    items.into_iter().enumerate().map(over).collect()
}
