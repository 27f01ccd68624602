//! INSERT, UPDATE and DELETE.

use super::binder::{Binder, name_of, own_name, unsupported, written_name};
use super::coerce::Bound;
use super::door::{check_delete, check_insert, check_update, check_values, is_only_body};
use super::from::{FromItem, FromRows};
use super::index::{KeyPart, is_of};
use super::items::{Item, Untyped, identity};
use super::joins::Joined;
use super::key_order::OrderWish;
use super::kinds::Willing;
use super::output::OutputColumn;
use super::scope::visible_columns;
use super::written::{Writing, WrittenTable};
use crate::catalog::{Identity, Table};
use crate::ir::{
    Action, Assignment, Change, ColumnNumber, Conflict, Delete, Expression, Index, Input, Insert,
    InsertRows, JoinKind, Main as Statement, Op, QueryNumber, Select, Source, Update, Value,
};
use crate::parse::place_of_expression;
use sqlparser::ast::{
    Assignment as AssignmentTree, AssignmentTarget, ConflictTarget, Delete as DeleteTree, Expr,
    FromTable, Ident, Insert as InsertTree, InsertOverriding, ObjectName, OnConflict,
    OnConflictAction, OnInsert, Query, SelectItem, SetExpr, TableObject, TableWithJoins,
    Update as UpdateTree, UpdateTableFromKind,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

/// `DEFAULT` where a value may be.
fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// What a row gets that states no value for the column.
pub(super) fn default_of(table: &Table, column: ColumnNumber) -> Expression {
    let stated = table.columns[usize::from(column)].default.clone();
    stated.unwrap_or_else(|| Expression::constant(Value(Datum::Null)))
}

impl Binder<'_> {
    pub(super) fn insert(&mut self, tree: &InsertTree) -> Result<(Insert, Vec<OutputColumn>)> {
        check_insert(tree)?;
        let TableObject::TableName(name) = &tree.table else {
            return Err(unsupported("INSERT into what is no table"));
        };
        let written = self.written_table(name, Writing::Insert)?;
        let table = Arc::clone(&written.table);
        let own = match &tree.table_alias {
            Some(alias) => name_of(&alias.alias),
            None => written_name(name)?.own,
        };
        let targets = self.targets(&written, &tree.columns)?;
        let rows = self.insert_rows(tree, &table, &targets)?;
        self.grouping = None;
        self.over_written(&own, &written);
        let conflict = match &tree.on {
            None => None,
            Some(_) if written.is_view() => {
                return Err(unsupported("ON CONFLICT of a view"));
            }
            Some(OnInsert::OnConflict(conflict)) => Some(self.conflict(conflict, &own, &written)?),
            Some(_) => return Err(unsupported("this form of ON")),
        };
        self.over_written(&own, &written);
        let (returning, columns) = self.returning(tree.returning.as_deref())?;
        Ok((Insert { relation: table.relation.clone(), rows, conflict, returning }, columns))
    }

    /// The columns that the values are for.
    pub(super) fn targets(
        &self,
        written: &WrittenTable,
        names: &[ObjectName],
    ) -> Result<Vec<ColumnNumber>> {
        if names.is_empty() {
            return written.all_targets();
        }
        let mut seen = BTreeSet::new();
        let mut targets = Vec::new();
        for name in names {
            let column = self.target(written, name, Writing::Insert)?;
            if !seen.insert(column) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(Error::new(SqlState::DUPLICATE_COLUMN, message).at(self.position(name)));
            }
            targets.push(column);
        }
        Ok(targets)
    }

    fn insert_rows(
        &mut self,
        tree: &InsertTree,
        table: &Table,
        targets: &[ColumnNumber],
    ) -> Result<InsertRows> {
        let all = (0..table.relation.columns.len()).map(ColumnNumber::at);
        let defaults: Vec<Expression> = all.map(|column| default_of(table, column)).collect();
        let Some(query) = &tree.source else { return Ok(InsertRows::Listed(vec![defaults])) };
        let list = match &*query.body {
            SetExpr::Values(list) if is_only_body(query) => list,
            _ => return self.queried_rows(tree, query, table, targets, defaults),
        };
        check_values(list)?;
        self.clause = "VALUES";
        self.scope = Default::default();
        let mut rows = Vec::with_capacity(list.rows.len());
        for values in &list.rows {
            let values = &values.content;
            self.check_width(values.len(), targets.len(), tree.columns.is_empty())?;
            let mut row = defaults.clone();
            for (expr, target) in values.iter().zip(targets) {
                if is_default(expr) {
                    continue;
                }
                let position = self.position(expr);
                let bound = self.expression(expr)?;
                let bound = self.stated(tree, table, *target, bound);
                // PostgreSQL says no place of values for columns that take none.
                let place = |error: Error| match error.state() {
                    SqlState::GENERATED_ALWAYS => error,
                    _ => error.at(position),
                };
                row[usize::from(*target)] = bound.map_err(place)?.expression();
            }
            assert_eq!(
                row.len(),
                table.relation.columns.len(),
                "a row has a value for each column"
            );
            rows.push(row);
        }
        Ok(InsertRows::Listed(rows))
    }

    fn queried_rows(
        &mut self,
        tree: &InsertTree,
        query: &Query,
        table: &Table,
        targets: &[ColumnNumber],
        defaults: Vec<Expression>,
    ) -> Result<InsertRows> {
        let bound = self.query(query, Untyped::Kept)?;
        self.check_width(bound.items.len(), targets.len(), tree.columns.is_empty())?;
        let mut row = defaults;
        for (at, (item, target)) in bound.items.iter().zip(targets).enumerate() {
            let value = match item.bound.kind {
                Some(kind) => Bound::new(vec![Op::Column(ColumnNumber::at(at))], kind),
                None => item.bound.clone(),
            };
            row[usize::from(*target)] = self.stated(tree, table, *target, value)?.expression();
        }
        if self.queries.is_empty() && bound.plan.input == Input::Source {
            return Ok(InsertRows::Queried(Box::new(bound.plan.select), row));
        }
        Ok(InsertRows::Composed(self.push_query(bound.plan)?, row))
    }

    /// A value that the statement states for a column.
    fn stated(
        &mut self,
        tree: &InsertTree,
        table: &Table,
        target: ColumnNumber,
        bound: Bound,
    ) -> Result<Bound> {
        let column = &table.relation.columns[usize::from(target)];
        if column.generated().is_some() {
            let name = &column.name;
            let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            return Err(computed(message, name));
        }
        let identity = table.columns[usize::from(target)].identity;
        match tree.overriding {
            Some(InsertOverriding::User) if identity.is_some() => {
                return Ok(Bound::new(default_of(table, target).code, column.kind));
            }
            None if identity == Some(Identity::Always) => {
                let name = &column.name;
                let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
                return Err(
                    generated(message, name).with_hint("Use OVERRIDING SYSTEM VALUE to override.")
                );
            }
            _ => {}
        }
        self.assign_to(bound, column)
    }

    fn assign_to(&mut self, bound: Bound, column: &crate::ir::Column) -> Result<Bound> {
        let from = bound.type_name();
        self.assign(bound, column.kind, Willing::Assignment).map_err(|error| {
            if error.state() != SqlState::CANNOT_COERCE {
                return error;
            }
            Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{}\" is of type {} but expression is of type {from}",
                    column.name,
                    column.kind.ty.name()
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")
        })
    }

    fn check_width(&self, values: usize, targets: usize, short_allowed: bool) -> Result<()> {
        let refused = |message: &str| Err(Error::new(SqlState::SYNTAX_ERROR, message.to_owned()));
        if values > targets {
            return refused("INSERT has more expressions than target columns");
        }
        if values < targets && !short_allowed {
            return refused("INSERT has more target columns than expressions");
        }
        Ok(())
    }

    fn conflict(
        &mut self,
        tree: &OnConflict,
        own: &str,
        written: &WrittenTable,
    ) -> Result<Conflict> {
        let table = &*written.table;
        let arbiters = match &tree.conflict_target {
            None => Vec::new(),
            Some(ConflictTarget::Columns { columns, predicate }) => {
                self.arbiters(columns, predicate.as_ref(), table)?
            }
            Some(ConflictTarget::OnConstraint(name)) => vec![named_arbiter(name, table)?],
        };
        let action = match &tree.action {
            OnConflictAction::DoNothing => Action::Nothing,
            OnConflictAction::DoUpdate(_) if arbiters.is_empty() => {
                return Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                )
                .with_hint("For example, ON CONFLICT (column_name)."));
            }
            OnConflictAction::DoUpdate(update) => {
                let (relation, columns) = (&table.relation, visible_columns(&table.relation));
                self.scope.add_qualified("excluded", relation.columns.len(), columns);
                // A query in it would have to see the rows as they were before.
                self.no_queries = Some("ON CONFLICT DO UPDATE");
                let assignments = self.assignments(&update.assignments, written)?;
                let filter = match &update.selection {
                    Some(selection) => Some(self.condition(selection, "WHERE")?.expression()),
                    None => None,
                };
                self.over(own, &table.relation);
                Action::Update { assignments, filter }
            }
        };
        Ok(Conflict { arbiters, action })
    }

    /// The keys that are just of these columns and expressions: one of all rows, or all those of
    /// rows that meet the predicate.
    fn arbiters(
        &mut self,
        columns: &[Ident],
        predicate: Option<&Expr>,
        table: &Table,
    ) -> Result<Vec<Option<u16>>> {
        let queries = self.no_queries;
        let parts = columns.iter().map(|ident| self.conflict_part(ident, table));
        let parts = parts.collect::<Result<Vec<KeyPart>>>()?;
        let known = self.known_by(predicate)?;
        self.no_queries = queries;
        let relation = &table.relation;
        if is_of(None, &relation.primary, &parts) {
            return Ok(vec![None]);
        }
        let fits = |index: &Index| index.is_unique() && is_of(Some(index), &index.columns, &parts);
        let fitting = relation.indexes.iter().enumerate().filter(|(_, index)| fits(index));
        let fitting: Vec<_> = fitting.filter(|(_, index)| known.covers(index)).collect();
        let whole = fitting.iter().position(|(_, index)| index.predicate().is_empty());
        let found = whole.map_or(&fitting[..], |at| &fitting[at..=at]);
        if found.is_empty() {
            return Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            ));
        }
        Ok(found.iter().map(|(at, _)| Some(*at as u16)).collect())
    }

    /// A column or an expression of the target of ON CONFLICT.
    fn conflict_part(&mut self, ident: &Ident, table: &Table) -> Result<KeyPart> {
        let place = place_of_expression(ident);
        if let Some(expr) = place.and_then(|place| self.expressions.get(place)) {
            return self.key_part(expr);
        }
        let name = name_of(ident);
        let column = table.column(&name).ok_or_else(|| {
            let message = format!("column \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message).at(self.position_of_name(ident))
        })?;
        Ok(KeyPart::Column(column))
    }

    fn assignments(
        &mut self,
        list: &[AssignmentTree],
        written: &WrittenTable,
    ) -> Result<Vec<Assignment>> {
        let table = &*written.table;
        self.clause = "UPDATE";
        let mut seen = BTreeSet::new();
        let mut assignments = Vec::new();
        for assignment in self.single_assignments(list)? {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(unsupported("assignment to several columns at once"));
            };
            let target = self.target(written, name, Writing::Update)?;
            if !seen.insert(target) {
                let message = format!("multiple assignments to same column \"{name}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).at(self.position(name)));
            }
            let column = &table.relation.columns[usize::from(target)];
            let default = is_default(&assignment.value);
            let always = table.columns[usize::from(target)].identity == Some(Identity::Always);
            if column.generated().is_some() && !default {
                let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
                return Err(computed(message, &column.name));
            }
            if always && !default {
                let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
                return Err(generated(message, &column.name));
            }
            let value = if default && written.is_view() {
                // The columns of a view have no defaults.
                Expression::constant(Value(Datum::Null))
            } else if default {
                default_of(table, target)
            } else {
                let position = self.position(&assignment.value);
                let bound = self.expression(&assignment.value)?;
                self.assign_to(bound, column).map_err(|error| error.at(position))?.expression()
            };
            assignments.push(Assignment { column: target, value });
        }
        Ok(assignments)
    }

    pub(super) fn update(&mut self, tree: &UpdateTree) -> Result<(Statement, Vec<OutputColumn>)> {
        check_update(tree)?;
        let table = self.scanned_table(&tree.table, Writing::Update)?;
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) =
            &tree.from
        {
            let items = self.joined_tables(&table, from)?;
            let assignments = self.assignments(&tree.assignments, &table)?;
            let rows = self.joined_rows(&table, items, tree.selection.as_ref())?;
            let (returning, columns) = self.returning(tree.returning.as_deref())?;
            let (relation, assignments) = (table.table.relation.clone(), Some(assignments));
            let change = Change { relation, rows, assignments, returning };
            return Ok((Statement::Change(change), columns));
        }
        let assignments = self.assignments(&tree.assignments, &table)?;
        let source = self.changed_rows(&table, tree.selection.as_ref())?;
        let (returning, columns) = self.returning(tree.returning.as_deref())?;
        Ok((Statement::Update(Update { source, assignments, returning }), columns))
    }

    pub(super) fn delete(&mut self, tree: &DeleteTree) -> Result<(Statement, Vec<OutputColumn>)> {
        check_delete(tree)?;
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &tree.from;
        let [table] = &from[..] else { return Err(unsupported("DELETE from several tables")) };
        let table = self.scanned_table(table, Writing::Delete)?;
        if let Some(using) = &tree.using {
            let items = self.joined_tables(&table, using)?;
            let rows = self.joined_rows(&table, items, tree.selection.as_ref())?;
            let (returning, columns) = self.returning(tree.returning.as_deref())?;
            let relation = table.table.relation.clone();
            let change = Change { relation, rows, assignments: None, returning };
            return Ok((Statement::Change(change), columns));
        }
        let source = self.changed_rows(&table, tree.selection.as_ref())?;
        let (returning, columns) = self.returning(tree.returning.as_deref())?;
        Ok((Statement::Delete(Delete { source, returning }), columns))
    }

    /// The table of an UPDATE or DELETE, and those that it is joined with.
    fn joined_tables(
        &mut self,
        written: &WrittenTable,
        from: &[TableWithJoins],
    ) -> Result<Vec<FromItem>> {
        let table = &written.table;
        let mut items = vec![FromItem {
            kind: JoinKind::Inner,
            begin: 0,
            width: table.relation.columns.len(),
            rows: FromRows::Table(Box::new(table.relation.clone())),
            on: Vec::new(),
        }];
        self.add_from(from, &mut items)?;
        Ok(items)
    }

    /// The query that finds them.
    fn joined_rows(
        &mut self,
        written: &WrittenTable,
        items: Vec<FromItem>,
        selection: Option<&Expr>,
    ) -> Result<QueryNumber> {
        let mut conditions = written.conditions();
        conditions.extend(self.conjuncts(selection, "WHERE")?);
        let joins = self.joins(items, conditions, Joined::Written);
        let select = Select::of(identity(self.scope.width()));
        self.push_query(self.plan(Input::Joins(joins), select))
    }

    /// The rows that a statement changes or removes.
    fn changed_rows(&mut self, written: &WrittenTable, selection: Option<&Expr>) -> Result<Source> {
        let conjuncts = self.conjuncts(selection, "WHERE")?;
        let conditions = [written.conditions(), conjuncts].concat();
        Ok(self.source(&written.table.relation, conditions, OrderWish::default()).0)
    }

    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
    ) -> Result<(Vec<Expression>, Vec<OutputColumn>)> {
        self.clause = "RETURNING";
        // A query in it would have to see the rows as they were before.
        self.no_queries = Some("RETURNING");
        let items = self.items(items.unwrap_or_default())?;
        let items = self.settled(items)?;
        let columns = items.iter().map(Item::column).collect();
        Ok((items.into_iter().map(|item| item.bound.expression()).collect(), columns))
    }
}

fn generated(message: String, column: &str) -> Error {
    Error::new(SqlState::GENERATED_ALWAYS, message).with_detail(format!(
        "Column \"{column}\" is an identity column defined as GENERATED ALWAYS."
    ))
}

/// The error of a value for a generated column.
fn computed(message: String, column: &str) -> Error {
    Error::new(SqlState::GENERATED_ALWAYS, message)
        .with_detail(format!("Column \"{column}\" is a generated column."))
}

fn named_arbiter(name: &ObjectName, table: &Table) -> Result<Option<u16>> {
    let own = own_name(name)?;
    if own == table.relation.primary_name {
        return Ok(None);
    }
    let named = |index: &Index| index.is_constraint() && index.name == own;
    let at = table.relation.indexes.iter().position(named).ok_or_else(|| {
        let message =
            format!("constraint \"{own}\" for table \"{}\" does not exist", table.relation.name);
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })?;
    Ok(Some(at as u16))
}
