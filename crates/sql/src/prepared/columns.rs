//! What EXPLAIN calls the columns of rows: a plan has their numbers only.

use super::explain::Explainer;
use crate::ir::{
    Aggregate, AggregateKind, Expression, Group, Input, Item, ItemRows, Joins, Op, Query, Relation,
    Select,
};
use crate::system::{ColumnName, quoted};

/// The longest text that stands for a column: texts of queries in queries could double in each.
const TEXT_BYTES_MAX: usize = 200;

/// The columns of a table.
pub(super) fn names_of_table(relation: &Relation) -> Vec<ColumnName> {
    let name = |column: &crate::ir::Column| ColumnName {
        text: Some(quoted(&column.name)),
        ty: Some(column.kind.ty),
    };
    relation.columns.iter().map(name).collect()
}

/// The columns of a table as other tables' rows see them.
pub(super) fn names_with_table(relation: &Relation) -> Vec<ColumnName> {
    let (mut names, table) = (names_of_table(relation), quoted(&relation.name));
    for column in names.iter_mut().filter_map(|column| column.text.as_mut()) {
        *column = format!("{table}.{column}");
    }
    names
}

impl<'p> Explainer<'p> {
    /// Names the columns of the answers of a statement's queries, each of which needs only those
    /// before it.
    pub(super) fn name_queries(&mut self, queries: &'p [Query]) {
        self.queries = queries;
        for query in queries {
            let names = self.names_of_answer(query);
            self.outputs.push(names);
        }
    }

    /// The columns of the rows of a query before they are grouped.
    pub(super) fn names_before(&self, select: &Select, input: Option<&Input>) -> Vec<ColumnName> {
        match input {
            None | Some(Input::Source) => {
                select.source.relation.as_ref().map(names_of_table).unwrap_or_default()
            }
            Some(Input::Joins(joins)) => self.names_of_joins(joins),
            Some(Input::Set(first, _) | Input::Distinct(first, _)) => self.answer(*first),
            Some(Input::Recursive(recursive)) => self.answer(recursive.first),
            Some(Input::Windows(windows)) => self.answer(windows.rows),
            Some(Input::Working(number)) => self.names_of_working(*number),
            Some(Input::Values(rows)) => {
                let count = rows.first().map_or(0, Vec::len);
                let name = |at| ColumnName { text: Some(format!("column{at}")), ty: None };
                (1..=count).map(name).collect()
            }
            Some(Input::System(_) | Input::Functions(..) | Input::Returned(_)) => Vec::new(),
        }
    }

    /// The columns of groups of such rows: their keys, and the aggregates.
    pub(super) fn names_of_groups(&self, group: &Group, rows: &[ColumnName]) -> Vec<ColumnName> {
        let keys = group.keys.iter().map(|key| self.name(rows, key));
        let aggregates = group.aggregates.iter();
        keys.chain(aggregates.map(|own| self.name_of_aggregate(own, rows))).collect()
    }

    fn answer(&self, query: crate::ir::QueryNumber) -> Vec<ColumnName> {
        self.outputs.get(usize::from(query)).cloned().unwrap_or_default()
    }

    /// The rows that a step of a recursive query adds have the columns of its first part.
    fn names_of_working(&self, number: u16) -> Vec<ColumnName> {
        let first = self.queries.iter().find_map(|query| match &query.input {
            Input::Recursive(recursive) if recursive.working == number => Some(recursive.first),
            _ => None,
        });
        first.map(|first| self.answer(first)).unwrap_or_default()
    }

    /// The columns of tables have the table's name before theirs.
    fn names_of_joins(&self, joins: &Joins) -> Vec<ColumnName> {
        let end = |item: &Item| usize::from(item.begin) + usize::from(item.width);
        let width = joins.items.iter().map(end).max().unwrap_or_default();
        let mut all = vec![ColumnName::default(); width];
        for item in &joins.items {
            let own = match &item.rows {
                ItemRows::Query(number) => self.answer(*number),
                ItemRows::Table(source) => {
                    let Some(relation) = &source.relation else { continue };
                    names_with_table(relation)
                }
            };
            let places = all.iter_mut().skip(usize::from(item.begin)).take(item.width.into());
            places.zip(own).for_each(|(place, own)| *place = own);
        }
        all
    }

    /// The columns of a query's answer.
    fn names_of_answer(&self, query: &Query) -> Vec<ColumnName> {
        let rows = self.names_before(&query.select, Some(&query.input));
        let rows = match &query.select.group {
            Some(group) => self.names_of_groups(group, &rows),
            None => rows,
        };
        query.select.output.iter().map(|own| self.name(&rows, own)).collect()
    }

    /// A column stays what it is called; anything else is its text.
    fn name(&self, rows: &[ColumnName], expression: &Expression) -> ColumnName {
        match &expression.code[..] {
            [Op::Column(column)] => rows.get(usize::from(*column)).cloned().unwrap_or_default(),
            _ => {
                let text = self.text(rows, expression).map(|text| format!("({text})"));
                let text = text.filter(|text| text.len() <= TEXT_BYTES_MAX);
                ColumnName { text, ty: None }
            }
        }
    }

    fn name_of_aggregate(&self, aggregate: &Aggregate, rows: &[ColumnName]) -> ColumnName {
        let function = match &aggregate.kind {
            AggregateKind::CountRows => {
                return ColumnName { text: Some("count(*)".into()), ty: None };
            }
            AggregateKind::First => {
                return aggregate
                    .arguments
                    .first()
                    .map(|own| self.name(rows, own))
                    .unwrap_or_default();
            }
            AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Average => "avg",
            AggregateKind::Minimum => "min",
            AggregateKind::Maximum => "max",
            AggregateKind::BoolAnd => "bool_and",
            AggregateKind::BoolOr => "bool_or",
            _ => return ColumnName::default(),
        };
        let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
        let arguments: Option<Vec<String>> =
            aggregate.arguments.iter().map(|argument| self.text(rows, argument)).collect();
        let shown = |all: Vec<String>| format!("{function}({distinct}{})", all.join(", "));
        let text = arguments.map(shown).filter(|text| text.len() <= TEXT_BYTES_MAX);
        ColumnName { text, ty: None }
    }
}
