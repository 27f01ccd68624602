//! FROM: tables, queries and joins in the order in which they are written.

use super::binder::{Binder, name_of, unsupported};
use super::conditions::{Conjunct, moved};
use super::door::{check_factor, check_join};
use super::items::{Bounded, Filtered, Untyped, identity};
use super::joins::Joined;
use super::kinds::common;
use super::records::records_of;
use super::scope::{Mark, Resolved, visible_columns};
use super::without_brackets::is_function_name;
use crate::catalog::Table;
use crate::ir::{
    Expression, Function, Input, JoinKind, Kind, Op, QueryNumber, Relation, SchemaId, Select,
};
use sqlparser::ast::{
    BinaryOperator, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, TableAlias,
    TableFactor, TableWithJoins,
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

/// Places, names and types of columns.
type Columns = Vec<(usize, String, Kind)>;

/// A query of a FROM that was bound.
struct Derived {
    bound: Bounded,
    kind: JoinKind,
    is_lateral: bool,
    /// Whether rows may lack it.
    may_lack: bool,
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
        let keeps_own =
            |join: &Join| kind_of_join(&join.join_operator).is_ok_and(|(kind, _)| kind.keeps_own());
        let may_lack = list.iter().flat_map(|table| &table.joins).any(keeps_own);
        for table in list {
            if !items.is_empty() && table.joins.iter().any(keeps_own) {
                // Its rows without partners are not those of the tables before the comma.
                self.nested_join(table, items)?;
            } else {
                self.chain(table, may_lack, items)?;
            }
        }
        Ok(())
    }

    /// One table with its joins; `may_lack` says whether rows may lack any of the tables.
    fn chain(
        &mut self,
        table: &TableWithJoins,
        may_lack: bool,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let begin = self.scope.mark();
        let uses_begin = self.recursion.uses_count();
        let may_lack = may_lack || table.joins.iter().any(keeps_own);
        match &table.relation {
            TableFactor::NestedJoin { table_with_joins, alias: None } if items.is_empty() => {
                self.chain(table_with_joins, may_lack, items)?;
            }
            factor => self.factor(factor, JoinKind::Inner, may_lack, items)?,
        }
        for join in &table.joins {
            check_join(join)?;
            let (kind, constraint) = kind_of_join(&join.join_operator)?;
            let middle = self.scope.mark();
            let uses_middle = self.recursion.uses_count();
            self.factor(&join.relation, kind, may_lack, items)?;
            if kind.keeps_own() && uses_middle > uses_begin {
                return Err(self.recursion.refused(uses_begin, "within an outer join"));
            }
            if kind.keeps_other() && self.recursion.uses_count() > uses_middle {
                return Err(self.recursion.refused(uses_middle, "within an outer join"));
            }
            let on = self.constraint(constraint, kind, begin, middle)?;
            if let Some(item) = items.last_mut() {
                item.on.extend(on);
            }
        }
        Ok(())
    }

    /// A join in brackets is a query of its own, whose tables can be named outside of it.
    fn nested_join(&mut self, table: &TableWithJoins, items: &mut Vec<FromItem>) -> Result<()> {
        let (plan, scope) = self.apart(|binder| {
            let mut inner = Vec::new();
            binder.chain(table, true, &mut inner)?;
            let joins = binder.joins(inner, Vec::new(), Joined::Read);
            let width = binder.scope.width();
            let plan = binder.plan(Input::Joins(joins), Select::of(identity(width)));
            Ok((plan, std::mem::take(&mut binder.scope)))
        })?;
        let rows = FromRows::Query(self.push_query(plan)?);
        let (begin, width) = (self.scope.width(), scope.width());
        for name in scope.tables() {
            self.check_alias(name, None)?;
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
        may_lack: bool,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        if let Some(records) = records_of(factor)? {
            let bound = self.lateral(&records.query)?;
            let derived = Derived { bound, kind, is_lateral: true, may_lack };
            return self.derived_item(derived, "", Some(&records.alias), items);
        }
        check_factor(factor)?;
        match factor {
            TableFactor::Table { name, args: None, .. } if is_function_name(name) => {
                self.function_item(factor, kind, items)
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                self.table_item(name, alias.as_ref(), kind, may_lack, items)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let alias = self.derived_alias(subquery, alias.as_ref())?;
                let bound = self.derived(*lateral, subquery, kind)?;
                let derived = Derived { bound, kind, is_lateral: *lateral, may_lack };
                self.derived_item(derived, "", Some(alias), items)
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
        may_lack: bool,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let begin = self.scope.width();
        if let Some(named) = self.named_query(name) {
            let own = named.name.clone();
            let (number, columns) = self.use_named(&named, name)?;
            self.of_with.insert(number);
            let width = columns.len();
            self.add_table(&own, alias, width, columns)?;
            let rows = FromRows::Query(number);
            return self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items);
        }
        if let Some(known) = super::system::relation_named(self.catalog, name) {
            return self.system_item(known, alias, kind, items);
        }
        let own = self.relation_name(name)?;
        if let Some(view) = self.catalog.view(&own) {
            let bound = self.view(view)?;
            let derived = Derived { bound, kind, is_lateral: false, may_lack };
            self.derived_item(derived, &own, alias, items)?;
            self.note_relation(view.id);
            self.note_place(name, view.id, alias.is_some());
            let columns: Vec<usize> = (0..view.columns.len()).collect();
            self.scope.set_origin(view.id, &columns);
            return Ok(());
        }
        if let Some(sequence) = self.catalog.sequence(&own) {
            let bound = self.sequence_row(sequence)?;
            let derived = Derived { bound, kind, is_lateral: false, may_lack };
            return self.derived_item(derived, &own, alias, items);
        }
        let table = self.table(name)?;
        self.add_scanned(&table, &own, alias)?;
        self.note_place(name, table.relation.id, alias.is_some());
        let width = table.relation.columns.len();
        let rows = FromRows::Table(Box::new(table.relation.clone()));
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    pub(super) fn add_scanned(
        &mut self,
        table: &Arc<Table>,
        own: &str,
        alias: Option<&TableAlias>,
    ) -> Result<()> {
        let columns: Vec<_> = visible_columns(&table.relation).collect();
        let places: Vec<usize> = columns.iter().map(|(at, ..)| *at).collect();
        let schema = alias.is_none().then_some(table.relation.name.schema);
        let (name, columns) = self.named_columns(own, alias, columns, schema)?;
        self.check_joined_width(table.relation.columns.len())?;
        self.scope.add_columns(&name, table.relation.columns.len(), columns);
        schema.into_iter().for_each(|schema| self.scope.set_schema(schema));
        self.scope.set_primary(&table.relation);
        self.scope.set_origin(table.relation.id, &places);
        self.note_relation(table.relation.id);
        Ok(())
    }

    /// A query in FROM must have a name.
    fn derived_alias<'t>(
        &self,
        query: &Query,
        alias: Option<&'t TableAlias>,
    ) -> Result<&'t TableAlias> {
        alias.ok_or_else(|| {
            let message = "subquery in FROM must have an alias";
            Error::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("For example, FROM (SELECT ...) [AS] foo.")
                .at(self.position_of(query))
        })
    }

    fn derived(&mut self, lateral: bool, query: &Query, kind: JoinKind) -> Result<Bounded> {
        if lateral && kind.keeps_own() {
            return Err(unsupported("LATERAL on the right side of RIGHT or FULL JOIN"));
        }
        if lateral {
            return self.lateral(query);
        }
        let before = self.beside.len();
        self.beside.extend(self.scope.tables().map(str::to_owned));
        let bound = self.query(query, Untyped::Text);
        self.beside.truncate(before);
        bound
    }

    /// A query of FROM, with a name of its own or an alias.
    fn derived_item(
        &mut self,
        mut derived: Derived,
        own: &str,
        alias: Option<&TableAlias>,
        items: &mut Vec<FromItem>,
    ) -> Result<()> {
        let (begin, kind) = (self.scope.width(), derived.kind);
        derived.may_lack |= kind != JoinKind::Inner;
        let names = derived.bound.items.iter().enumerate().map(|(at, item)| {
            (at, item.name.clone(), item.bound.kind.unwrap_or(Kind::plain(Type::Text)))
        });
        let names: Vec<_> = names.collect();
        if let Some(table) = self.pulled_up(&derived) {
            let (name, names) = self.named_columns(own, alias, names, None)?;
            let width = table.relation.columns.len();
            self.check_joined_width(width)?;
            let output = derived.bound.plan.select.output;
            let columns = names.into_iter().zip(output).map(|((_, column, kind), output)| {
                let code = moved(output.code, begin);
                Resolved { code, kind, table: name.clone(), name: column, origin: None }
            });
            self.scope.add_resolved(&name, width, columns.collect());
            let on = table.conditions.into_iter().map(|each| each.moved(begin)).collect();
            let rows = FromRows::Table(table.relation);
            return self.add_item(FromItem { kind, begin, width, rows, on }, items);
        }
        let is_lateral = derived.is_lateral && derived.bound.plan.is_correlated;
        let width = names.len();
        let number = self.push_query(derived.bound.plan)?;
        let rows = if is_lateral { FromRows::Lateral(number) } else { FromRows::Query(number) };
        self.add_table(own, alias, width, names)?;
        self.add_item(FromItem { kind, begin, width, rows, on: Vec::new() }, items)
    }

    /// The table that stands for a query of FROM which only filters its rows and computes columns
    /// of each: then conditions of the statement find rows by its keys.
    fn pulled_up(&self, derived: &Derived) -> Option<Filtered> {
        let table = derived.bound.table.as_ref().filter(|table| !table.is_sorted)?;
        let output = &derived.bound.plan.select.output;
        let is_column = |each: &Expression| matches!(each.code[..], [Op::Column(_)]);
        // Where rows without partners come in, computed columns would not be NULL in them. Columns
        // may be named many times, so that long ones would make the plan much longer.
        let may_stand = output.iter().all(is_column)
            || !derived.may_lack && output.iter().map(|each| each.code.len()).sum::<usize>() <= 64;
        let conditions = table.conditions.iter().map(|conjunct| &conjunct.bound.code);
        let mut all = output.iter().map(|each| &each.code).chain(conditions);
        let is_fit = may_stand && !derived.is_lateral && !derived.kind.keeps_own();
        (is_fit && all.all(|code| self.is_movable(code))).then(|| table.clone())
    }

    /// Brings a table into the scope, by its alias if it has one.
    pub(super) fn add_table(
        &mut self,
        own: &str,
        alias: Option<&TableAlias>,
        width: usize,
        columns: Columns,
    ) -> Result<()> {
        let (name, columns) = self.named_columns(own, alias, columns, None)?;
        self.check_joined_width(width)?;
        self.scope.add_columns(&name, width, columns);
        Ok(())
    }

    /// The name of a table of FROM, which no other one has, and those of its columns.
    fn named_columns(
        &self,
        own: &str,
        alias: Option<&TableAlias>,
        mut columns: Columns,
        schema: Option<SchemaId>,
    ) -> Result<(String, Columns)> {
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
        self.check_alias(&name, schema)?;
        Ok((name, columns))
    }

    fn check_joined_width(&self, width: usize) -> Result<()> {
        if self.scope.width() + width > WIDTH_MAX {
            let message = format!("joined rows have more than {WIDTH_MAX} columns");
            return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(())
    }

    fn check_alias(&self, name: &str, schema: Option<SchemaId>) -> Result<()> {
        if !self.scope.may_add(name, schema) {
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
            self.note_column(&left);
            self.note_column(&right);
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
                origin: left.origin,
            });
            let equal =
                self.comparable(left_bound.clone(), &BinaryOperator::Eq, right_bound.clone())?;
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

/// Whether rows of the right side stay that have no partner.
fn keeps_own(join: &Join) -> bool {
    kind_of_join(&join.join_operator).is_ok_and(|(kind, _)| kind.keeps_own())
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
