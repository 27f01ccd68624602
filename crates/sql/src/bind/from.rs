//! FROM: tables, queries and joins in the order in which they are written.

use super::binder::{Binder, name_of, table_name, unsupported};
use super::conditions::Conjunct;
use super::items::{Untyped, identity};
use super::kinds::common;
use super::scope::{Mark, Resolved, visible_columns};
use crate::catalog::Table;
use crate::ir::{Function, Input, JoinKind, Kind, QueryNumber, Relation, Select};
use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, TableAlias, TableFactor,
    TableWithJoins,
};
use std::sync::Arc;
use values::{Error, Result, SqlState, Type};

/// A table or query of a FROM while it is bound.
pub(super) struct FromItem {
    /// What it is to the rows of the items before it.
    pub(super) kind: JoinKind,
    /// Its first column in the joined row.
    pub(super) begin: usize,
    pub(super) width: usize,
    pub(super) rows: FromRows,
    /// ON, over the joined row.
    pub(super) on: Vec<Conjunct>,
}

/// Where the rows of an item come from.
pub(super) enum FromRows {
    Table(Box<Relation>),
    Query(QueryNumber),
    /// A query that is computed for each row of the items before it.
    Lateral(QueryNumber),
}

/// The most tables and queries of a FROM.
pub(super) const ITEMS_MAX: usize = 64;
/// The most columns of a joined row.
const WIDTH_MAX: usize = 16_000;

impl Binder<'_> {
    /// The items of a FROM, which become the scope.
    pub(super) fn from(&mut self, list: &[TableWithJoins]) -> Result<Vec<FromItem>> {
        self.scope = Default::default();
        let mut items = Vec::new();
        self.add_from(list, &mut items)?;
        Ok(items)
    }

    /// Adds items behind others.
    pub(super) fn add_from(
        &mut self,
        list: &[TableWithJoins],
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        for table in list {
            let keeps_own = |join: &Join| {
                kind_of_join(&join.join_operator).is_ok_and(|(kind, _)| kind.keeps_own())
            };
            if !items.is_empty() && table.joins.iter().any(keeps_own) {
                // Its rows without partners are not those of the tables before the comma.
                self.nested_join(table, items)?;
            } else {
                self.chain(table, items)?;
            }
        }
        Ok(())
    }

    /// One table with its joins.
    fn chain(&mut self, table: &TableWithJoins, items: &mut Vec<FromItem>) -> Result<()> {
        let begin = self.scope.mark();
        match &table.relation {
            TableFactor::NestedJoin { table_with_joins, alias: None } if items.is_empty() => {
                self.chain(table_with_joins, items)?;
            }
            factor => self.factor(factor, JoinKind::Inner, items)?,
        }
        for join in &table.joins {
            let (kind, constraint) = kind_of_join(&join.join_operator)?;
            let middle = self.scope.mark();
            self.factor(&join.relation, kind, items)?;
            let on = self.constraint(constraint, kind, begin, middle)?;
            if let Some(item) = items.last_mut() {
                item.on = on;
            }
        }
        Ok(())
    }

    /// A join in brackets is a query of its own, whose tables can be named outside of it.
    fn nested_join(&mut self, table: &TableWithJoins, items: &mut Vec<FromItem>) -> Result<()> {
        let (plan, scope) = self.apart(|binder| {
            let mut inner = Vec::new();
            binder.chain(table, &mut inner)?;
            let joins = binder.joins(inner, Vec::new());
            let width = binder.scope.width();
            let plan = binder.plan(Input::Joins(joins), Select::of(identity(width)));
            Ok((plan, std::mem::take(&mut binder.scope)))
        })?;
        let rows = FromRows::Query(self.push_query(plan)?);
        let (begin, width) = (self.scope.width(), scope.width());
        for name in scope.tables() {
            self.check_alias(name)?;
        }
        self.check_joined_width(width)?;
        self.scope.append(scope);
        self.add_item(FromItem { kind: JoinKind::Inner, begin, width, rows, on: Vec::new() }, items)
    }

    pub(super) fn add_item(&mut self, item: FromItem, items: &mut Vec<FromItem>) -> Result<()> {
        if items.len() >= ITEMS_MAX {
            let message = format!("FROM has more than {ITEMS_MAX} tables");
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        items.push(item);
        Ok(())
    }

    /// One table or query.
    fn factor(
        &mut self,
        factor: &TableFactor,
        kind: JoinKind,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                self.table_item(name, alias.as_ref(), kind, items)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                self.derived_item(*lateral, subquery, alias.as_ref(), kind, items)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.nested_join(table_with_joins, items)?;
                if let Some(item) = items.last_mut() {
                    item.kind = kind;
                }
                Ok(())
            }
            factor => self.function_item(factor, kind, items),
        }
    }

    fn table_item(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        kind: JoinKind,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let begin = self.scope.width();
        if let Some(named) = self.named_query(name) {
            let own = named.name.clone();
            let (number, columns) = self.use_named(&named);
            let width = columns.len();
            self.add_table(&own, alias, width, columns)?;
            let rows = FromRows::Query(number);
            return self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items);
        }
        if let Some(known) = super::system::relation_named(name) {
            return self.system_item(known, alias, kind, items);
        }
        let table = self.table(name)?;
        self.add_scanned(&table, &table_name(name)?, alias)?;
        let width = table.relation.columns.len();
        let rows = FromRows::Table(Box::new(table.relation.clone()));
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    fn add_scanned(
        &mut self,
        table: &Arc<Table>,
        own: &str,
        alias: Option<&TableAlias>,
    ) -> Result<()> {
        let columns = visible_columns(&table.relation).collect();
        self.add_table(own, alias, table.relation.columns.len(), columns)?;
        self.scope.set_primary(&table.relation);
        Ok(())
    }

    /// The table of an UPDATE or DELETE, which becomes the scope.
    pub(super) fn scanned_table(&mut self, table: &TableWithJoins) -> Result<Arc<Table>> {
        let TableFactor::Table { name, alias, args: None, .. } = &table.relation else {
            return Err(unsupported("a change of what is no table"));
        };
        if !table.joins.is_empty() {
            return Err(unsupported("a change of a join"));
        }
        let found = self.table(name)?;
        self.scope = Default::default();
        self.add_scanned(&found, &table_name(name)?, alias.as_ref())?;
        Ok(found)
    }

    fn derived_item(
        &mut self,
        lateral: bool,
        query: &Query,
        alias: Option<&TableAlias>,
        kind: JoinKind,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let Some(alias) = alias else {
            let message = "subquery in FROM must have an alias";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("For example, FROM (SELECT ...) [AS] foo.")
                .at(self.position_of(query)));
        };
        if lateral && kind.keeps_own() {
            return Err(unsupported("LATERAL on the right side of RIGHT or FULL JOIN"));
        }
        let bound = if lateral {
            self.inner(query)?
        } else {
            let before = self.beside.len();
            self.beside.extend(self.scope.tables().map(str::to_owned));
            let bound = self.query(query, Untyped::Text);
            self.beside.truncate(before);
            bound?
        };
        let is_lateral = lateral && bound.plan.is_correlated;
        let columns = bound.items.iter().enumerate().map(|(at, item)| {
            (at, item.name.clone(), item.bound.kind.unwrap_or(Kind::plain(Type::Text)))
        });
        let columns: Vec<_> = columns.collect();
        let (begin, width) = (self.scope.width(), columns.len());
        let number = self.push_query(bound.plan)?;
        let rows = if is_lateral { FromRows::Lateral(number) } else { FromRows::Query(number) };
        self.add_table("", Some(alias), width, columns)?;
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    /// Brings a table into the scope, by its alias if it has one.
    pub(super) fn add_table(
        &mut self,
        own: &str,
        alias: Option<&TableAlias>,
        width: usize,
        mut columns: Vec<(usize, String, Kind)>,
    ) -> Result<()> {
        let name = alias.map_or_else(|| own.to_owned(), |alias| name_of(&alias.name));
        let renamed = alias.map(|alias| &alias.columns[..]).unwrap_or_default();
        if renamed.len() > columns.len() {
            let message = format!(
                "table \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                renamed.len()
            );
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        for (column, alias) in columns.iter_mut().zip(renamed) {
            column.1 = name_of(&alias.name);
        }
        self.check_alias(&name)?;
        self.check_joined_width(width)?;
        self.scope.add_columns(&name, width, columns);
        Ok(())
    }

    fn check_joined_width(&self, width: usize) -> Result<()> {
        if self.scope.width() + width > WIDTH_MAX {
            let message = format!("joined rows have more than {WIDTH_MAX} columns");
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(())
    }

    fn check_alias(&self, name: &str) -> Result<()> {
        if self.scope.has_table(name) {
            let message = format!("table name \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_ALIAS, message));
        }
        Ok(())
    }

    fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        kind: JoinKind,
        begin: Mark,
        middle: Mark,
    ) -> Result<Vec<Conjunct>> {
        match constraint {
            JoinConstraint::On(condition) => {
                self.scope.hide_before(Some(begin));
                let conjuncts = self.conjuncts(Some(condition), "JOIN/ON");
                self.scope.hide_before(None);
                conjuncts
            }
            JoinConstraint::Using(names) => {
                let mut columns = Vec::new();
                for name in names {
                    let [part] = &name.0[..] else { return Err(unsupported("this USING")) };
                    let ident = part.as_ident().ok_or_else(|| unsupported("this USING"))?;
                    columns.push(ident.clone());
                }
                self.using(&columns, kind, begin, middle)
            }
            JoinConstraint::Natural => {
                let (left, right) = self.scope.sides(begin, middle);
                let is_common =
                    |column: &&Resolved| right.iter().any(|own| own.name == column.name);
                let names = left.iter().filter(is_common).map(|column| column.name.clone());
                let names: Vec<Ident> = names.map(|name| Ident::with_quote('"', name)).collect();
                self.using(&names, kind, begin, middle)
            }
            JoinConstraint::None => Ok(Vec::new()),
            JoinConstraint::UsingAlias(..) => Err(unsupported("USING with an alias")),
        }
    }

    /// USING: equal columns of both sides become one.
    fn using(
        &mut self,
        names: &[Ident],
        kind: JoinKind,
        begin: Mark,
        middle: Mark,
    ) -> Result<Vec<Conjunct>> {
        let (mut conjuncts, mut merged) = (Vec::new(), Vec::new());
        for ident in names {
            let name = name_of(ident);
            let (left, right) = self.scope.sides(begin, middle);
            let left = self.using_column(left, &name, "left")?;
            let right = self.using_column(right, &name, "right")?;
            let both = vec![left.bound(), right.bound()];
            let (Some(ty), [left_bound, right_bound]) =
                (common(left.kind.ty, right.kind.ty), &both[..])
            else {
                let message = format!(
                    "JOIN/USING types {} and {} cannot be matched",
                    left.kind.ty.name(),
                    right.kind.ty.name()
                );
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
            };
            let one = match kind {
                JoinKind::Inner | JoinKind::Left => left_bound.clone(),
                JoinKind::Right => right_bound.clone(),
                JoinKind::Full => self.coalesce(both.clone())?,
            };
            let one = if one.ty() == Some(ty) || kind == JoinKind::Full {
                one
            } else {
                self.coerce(one, ty, super::kinds::Willing::Implicit)?
            };
            merged.push(Resolved {
                kind: one.kind.unwrap_or(left.kind),
                code: one.code,
                table: left.table.clone(),
                name,
            });
            let equal = self.unify(both)?;
            conjuncts.push(self.compared(Function::Equal, equal));
        }
        self.scope.merge(begin, merged);
        Ok(conjuncts)
    }

    fn using_column(&self, side: &[Resolved], name: &str, which: &str) -> Result<Resolved> {
        let mut found = side.iter().filter(|column| column.name == name);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column.clone()),
            (None, _) => {
                let message = format!(
                    "column \"{name}\" specified in USING clause does not exist in {which} table"
                );
                Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
            }
            (Some(_), Some(_)) => {
                let message = format!(
                    "common column name \"{name}\" appears more than once in {which} table"
                );
                Err(Error::new(SqlState::AMBIGUOUS_COLUMN, message))
            }
        }
    }
}

/// What a join is, and its condition.
fn kind_of_join(operator: &JoinOperator) -> Result<(JoinKind, &JoinConstraint)> {
    Ok(match operator {
        JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None) => {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "a join needs ON, USING or NATURAL"));
        }
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (JoinKind::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinKind::Left, constraint)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (JoinKind::Right, constraint)
        }
        JoinOperator::FullOuter(constraint) => (JoinKind::Full, constraint),
        JoinOperator::CrossJoin(constraint @ JoinConstraint::None) => (JoinKind::Inner, constraint),
        _ => return Err(unsupported("this form of join")),
    })
}
