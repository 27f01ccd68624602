//! What INSERT, UPDATE and DELETE write: a table, or a view that only filters the rows of one and
//! whose columns are columns of it. Such a view stands for its table.

use super::binder::{Binder, name_of, own_name, unsupported};
use super::conditions::Conjunct;
use super::door::check_factor;
use super::items::{Filtered, Item};
use super::scope::Resolved;
use crate::catalog::{Catalog, Table, View};
use crate::ir::{ColumnNumber, Kind};
use crate::parse::Lines;
use sqlparser::ast::{ObjectName, TableAlias, TableFactor, TableWithJoins};
use std::sync::Arc;
use values::{Error, Result, SqlState, Type, Zone};

/// What a statement does with rows.
#[derive(Clone, Copy)]
pub(super) enum Writing {
    Insert,
    Update,
    Delete,
}

/// The columns of a view over those of its table, and which rows it has.
struct OfView {
    columns: Vec<Resolved>,
    conditions: Vec<Conjunct>,
}

/// A table that is written, perhaps as a view shows it.
pub(super) struct WrittenTable {
    pub(super) table: Arc<Table>,
    /// As the statement calls it.
    own: String,
    view: Option<OfView>,
}

impl Writing {
    fn verb(self) -> &'static str {
        match self {
            Writing::Insert => "insert into",
            Writing::Update => "update",
            Writing::Delete => "delete from",
        }
    }
}

impl Binder<'_> {
    /// The table that a statement writes, by its name or that of a view.
    pub(super) fn written_table(
        &mut self,
        name: &ObjectName,
        writing: Writing,
    ) -> Result<WrittenTable> {
        match self.catalog.view(&self.relation_name(name)?).cloned() {
            Some(view) => self.written_view(&view, writing),
            None => Ok(WrittenTable::plain(self.table(name)?)),
        }
    }

    fn written_view(&mut self, view: &View, writing: Writing) -> Result<WrittenTable> {
        let bound = self.view(view)?;
        let Some(Filtered { relation, conditions, .. }) = bound.table else {
            return Err(not_updatable(view, writing));
        };
        let mut tables = self.catalog.tables();
        let found = tables.find(|table| table.relation.id == relation.id).cloned();
        let Some(table) = found else { return Err(not_updatable(view, writing)) };
        let own = view.name.own.clone();
        let column = |item: Item| Resolved {
            code: item.bound.code,
            kind: item.bound.kind.unwrap_or(Kind::plain(Type::Text)),
            table: own.clone(),
            name: item.name,
            origin: None,
        };
        let columns = bound.items.into_iter().map(column).collect();
        Ok(WrittenTable { table, own, view: Some(OfView { columns, conditions }) })
    }

    /// The table of an UPDATE or DELETE, which becomes the scope.
    pub(super) fn scanned_table(
        &mut self,
        table: &TableWithJoins,
        writing: Writing,
    ) -> Result<WrittenTable> {
        check_factor(&table.relation)?;
        let TableFactor::Table { name, alias, args: None, .. } = &table.relation else {
            return Err(unsupported("a change of what is no table"));
        };
        if !table.joins.is_empty() {
            return Err(unsupported("a change of a join"));
        }
        let written = self.written_table(name, writing)?;
        self.scope = Default::default();
        let own = written.own.clone();
        self.add_written(&written, &own, alias.as_ref())?;
        Ok(written)
    }

    fn add_written(
        &mut self,
        written: &WrittenTable,
        own: &str,
        alias: Option<&TableAlias>,
    ) -> Result<()> {
        let Some(view) = &written.view else {
            return self.add_scanned(&written.table, own, alias);
        };
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            return Err(unsupported("names for the columns of a view that is written"));
        }
        let name = alias.map_or_else(|| own.to_owned(), |alias| name_of(&alias.name));
        let called = |column: &Resolved| Resolved { table: name.clone(), ..column.clone() };
        let columns = view.columns.iter().map(called).collect();
        self.scope.add_resolved(&name, written.table.relation.columns.len(), columns);
        Ok(())
    }

    /// The table, or view, is the scope.
    pub(super) fn over_written(&mut self, own: &str, written: &WrittenTable) {
        match &written.view {
            None => self.over(own, &written.table.relation),
            Some(view) => {
                self.scope = Default::default();
                let width = written.table.relation.columns.len();
                let called =
                    |column: &Resolved| Resolved { table: own.to_owned(), ..column.clone() };
                self.scope.add_resolved(own, width, view.columns.iter().map(called).collect());
            }
        }
    }

    /// The column of the table that a name means.
    pub(super) fn target(
        &self,
        written: &WrittenTable,
        name: &ObjectName,
        writing: Writing,
    ) -> Result<ColumnNumber> {
        let own = own_name(name)?;
        let missing = || {
            let relation = &written.own;
            let message = format!("column \"{own}\" of relation \"{relation}\" does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message).at(self.position(name))
        };
        let Some(view) = &written.view else {
            return written.table.column(&own).ok_or_else(missing);
        };
        let column = view.columns.iter().find(|column| column.name == own).ok_or_else(missing)?;
        written.column(column, writing)
    }
}

/// Which columns of a view statements can write, if they can write its rows.
pub(crate) fn writable_columns(catalog: &Catalog, view: &View) -> Option<Vec<bool>> {
    let (lines, zone) = (Lines::of(""), Zone::utc());
    let mut binder = Binder::new(catalog, &lines, &zone, &[]);
    binder.no_queries = None;
    let written = binder.written_view(view, Writing::Update).ok()?;
    let columns = written.view?.columns;
    Some(columns.iter().map(|column| column.column().is_some()).collect())
}

impl WrittenTable {
    /// A table that is no view.
    pub(super) fn plain(table: Arc<Table>) -> WrittenTable {
        WrittenTable { own: table.relation.name.own.clone(), table, view: None }
    }

    /// Whether it is a view.
    pub(super) fn is_view(&self) -> bool {
        self.view.is_some()
    }

    /// All columns that statements can name.
    pub(super) fn all_targets(&self) -> Result<Vec<ColumnNumber>> {
        let Some(view) = &self.view else {
            let columns = self.table.relation.columns.iter().enumerate();
            let shown = columns.filter(|(_, column)| !column.is_hidden());
            return Ok(shown.map(|(at, _)| ColumnNumber::at(at)).collect());
        };
        view.columns.iter().map(|column| self.column(column, Writing::Insert)).collect()
    }

    fn column(&self, column: &Resolved, writing: Writing) -> Result<ColumnNumber> {
        column.column().ok_or_else(|| {
            let (verb, name, view) = (writing.verb(), &column.name, &self.own);
            let message = format!("cannot {verb} column \"{name}\" of view \"{view}\"");
            let detail =
                "View columns that are not columns of their base relation are not updatable.";
            Error::unsupported(message, "Write to the table that it selects from.")
                .with_detail(detail)
        })
    }

    /// The conditions of the view, which rows that are changed or removed meet.
    pub(super) fn conditions(&self) -> Vec<Conjunct> {
        self.view.as_ref().map(|view| view.conditions.clone()).unwrap_or_default()
    }
}

fn not_updatable(view: &View, writing: Writing) -> Error {
    let message = format!("cannot {} view \"{}\"", writing.verb(), view.name);
    let detail =
        "Only views that filter the rows of one table, and compute columns, are updatable.";
    Error::new(SqlState::WRONG_STATE, message)
        .with_detail(detail)
        .with_hint("Write to the table that it selects from.")
}
