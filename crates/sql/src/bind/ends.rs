//! Orders and ends of tables by their keys: ORDER BY that sorts nothing, `min` and `max` of one
//! look-up each.

use super::access::{Way, order_wish};
use super::binder::Binder;
use super::items::Filtered;
use super::key_order::{OrderWish, is_canonical, key_order};
use super::known::Known;
use super::query::Parts;
use crate::ir::{
    Access, Aggregate, AggregateKind, ColumnNumber, Expression, Group, Input, Item, ItemRows,
    JoinKind, Joins, Method, Op, QueryNumber, Relation, Select, SortKey, Source, Value,
};
use values::{Datum, Result};

impl Binder<'_> {
    /// Finds rows by a key that has the order of the query, if there is one.
    pub(super) fn order_by_key(&self, parts: &mut Parts) {
        let Parts { input, select, table, .. } = parts;
        if select.sort.is_empty() || select.group.is_some() {
            return;
        }
        let wish = order_wish(&select.sort, select.limit.is_some());
        let is_ordered = match (input, table) {
            (Input::Source, Some(table)) => {
                let (source, is_ordered) =
                    self.source(&table.relation, table.conditions.clone(), wish);
                if is_ordered {
                    select.source = source;
                }
                is_ordered
            }
            (Input::Joins(joins), _) => orders_by_first(joins, wish),
            _ => false,
        };
        if is_ordered {
            select.sort.clear();
        }
    }

    /// Takes the least and the greatest value of a table from the ends of keys, if all that a query
    /// computes are such.
    pub(super) fn ends_by_key(&mut self, parts: &mut Parts) -> Result<()> {
        let Parts { input: Input::Source, select, table: Some(table), .. } = parts else {
            return Ok(());
        };
        let Some(group) = select.group.as_mut().filter(|group| group.keys.is_empty()) else {
            return Ok(());
        };
        let all = group.aggregates.iter().map(|aggregate| self.end(aggregate, table));
        let Some(sources) = all.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()) else {
            return Ok(());
        };
        let mut ends = Vec::with_capacity(sources.len());
        for (source, aggregate) in sources.into_iter().zip(&mut group.aggregates) {
            let value = std::mem::take(&mut aggregate.arguments);
            let limit = Some(Expression::constant(Value(Datum::Int8(1))));
            let first = Select { source, limit, ..Select::of(value) };
            let first = self.plan(Input::Source, first);
            aggregate.arguments = vec![Expression::of(Op::Column(ColumnNumber::at(0)))];
            ends.push(self.push_query(first)?);
        }
        parts.table = None;
        parts.input = match ends[..] {
            [end] => Input::Set(end, Vec::new()),
            _ => {
                let aggregates = std::mem::take(&mut group.aggregates);
                select.group = None;
                Input::Joins(self.ends_joined(ends, aggregates)?)
            }
        };
        parts.select.source = Source::default();
        Ok(())
    }

    /// The rows of a table of which the first has the least or the greatest value, if a key has
    /// them in this order.
    fn end(&self, aggregate: &Aggregate, table: &Filtered) -> Option<Source> {
        let descending = match aggregate.kind {
            AggregateKind::Minimum => false,
            AggregateKind::Maximum => true,
            _ => return None,
        };
        let ([value], None) = (&aggregate.arguments[..], &aggregate.filter) else { return None };
        let sort = [SortKey { value: value.clone(), descending, nulls_first: false }];
        let wish = OrderWish { has_nulls: false, ..order_wish(&sort, true) };
        let (source, is_ordered) = self.source(&table.relation, table.conditions.clone(), wish);
        let has_nulls = source.access.order.is_none_or(|order| order.has_nulls);
        let is_value = !has_nulls || is_never_null(&table.relation, value);
        (is_ordered && is_value).then_some(source)
    }

    /// One row of several aggregates, each of the one row of a query.
    fn ends_joined(&mut self, ends: Vec<QueryNumber>, aggregates: Vec<Aggregate>) -> Result<Joins> {
        let mut items = Vec::with_capacity(ends.len());
        for (place, (end, aggregate)) in ends.into_iter().zip(aggregates).enumerate() {
            let group = Some(Group { keys: Vec::new(), aggregates: vec![aggregate] });
            let value = Expression::of(Op::Column(ColumnNumber::at(0)));
            let select = Select { group, ..Select::of(vec![value]) };
            let query = self.plan(Input::Set(end, Vec::new()), select);
            items.push(Item {
                kind: JoinKind::Inner,
                begin: ColumnNumber::at(place),
                width: 1,
                rows: ItemRows::Query(self.push_query(query)?),
                method: Method::Loop,
                condition: None,
                filter: None,
            });
        }
        Ok(Joins { items, stated: Vec::new() })
    }
}

fn is_never_null(relation: &Relation, value: &Expression) -> bool {
    match value.code[..] {
        [Op::Column(column)] => {
            relation.columns.get(usize::from(column)).is_some_and(|column| !column.nullable)
        }
        _ => false,
    }
}

/// Whether joined rows come in an order that is wanted, as those of the first item do; its access
/// is changed for that.
fn orders_by_first(joins: &mut Joins, wish: OrderWish<'_>) -> bool {
    if !joins.stated.is_empty() || joins.items.iter().any(|item| item.kind.keeps_own()) {
        return false;
    }
    let Some(Item { rows: ItemRows::Table(source), method: Method::Loop, .. }) =
        joins.items.first_mut()
    else {
        return false;
    };
    let Source { relation: Some(relation), access, .. } = &mut **source else { return false };
    let known = Known::default();
    let wish = OrderWish { is_joined: true, ..wish };
    if is_canonical(relation, &known, wish.sort, wish.is_joined) {
        return true;
    }
    let order = |access: &Access| key_order(Way::of(relation, access.index, &known), access, wish);
    access.order = order(access);
    if access.order.is_some() || !access.is_whole() || !wish.has_limit {
        return access.order.is_some();
    }
    let is_of_all = |index: &&(usize, &crate::ir::Index)| index.1.predicate().is_empty();
    let indexes: Vec<_> = relation.indexes.iter().enumerate().collect();
    let mut ways = indexes.iter().filter(is_of_all).map(|(at, _)| *at as u16);
    let found = ways.find_map(|at| {
        let access = Access { index: Some(at), ..Access::default() };
        order(&access).map(|found| Access { order: Some(found), ..access })
    });
    match found {
        Some(found) => {
            *access = found;
            true
        }
        None => false,
    }
}
