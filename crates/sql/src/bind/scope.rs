//! The columns that names in a statement mean.

use super::coerce::Bound;
use crate::ir::{ColumnNumber, Kind, ObjectId, Op, Relation, SchemaId};
use crate::parse::Stars;
use crate::system::TABLE_ID;
use sqlparser::tokenizer::Location;
use std::collections::{BTreeMap, BTreeSet};
use values::{EnumType, Error, Result, SqlState};

/// The table of functions among the columns of a query. No name of a statement has its first
/// character.
pub(super) const AMONG_COLUMNS: &str = "\0rows";

/// The tables of a query, one after the other in the row.
#[derive(Clone, Default)]
pub(super) struct Scope {
    tables: Vec<ScopeTable>,
    /// What `*` and names without a table mean: the columns of the tables, but that those which
    /// USING has merged are one and come first.
    shown: Vec<Resolved>,
    /// Tables and columns before these are there but cannot be named: ON sees only its own join.
    hidden: (usize, usize),
    width: usize,
}

#[derive(Clone)]
struct ScopeTable {
    name: String,
    /// The schema that may stand before its name: that of a table without an alias.
    schema: Option<SchemaId>,
    /// Its first column in the row.
    begin: usize,
    columns: Vec<Resolved>,
    /// The columns of its primary key; none of a query.
    primary: Vec<ColumnNumber>,
}

/// A column that a name means.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resolved {
    pub(super) code: Vec<Op>,
    pub(super) kind: Kind,
    pub(super) table: String,
    pub(super) name: String,
    /// The column of a table or view that it is.
    pub(super) origin: Option<Origin>,
}

/// A column of a table or view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) relation: ObjectId,
    pub(super) column: ColumnNumber,
}

/// What is noted of a view's query while it is bound for the first time.
#[derive(Default)]
pub(crate) struct Noted {
    /// The columns that each `*` means: later ones of a table are not the view's.
    pub(super) stars: Stars,
    pub(super) relations: BTreeSet<ObjectId>,
    pub(super) columns: BTreeSet<Origin>,
    pub(super) places: BTreeMap<Location, NamedPlace>,
    /// Where types are named that statements have made.
    pub(super) types: BTreeMap<Location, TypePlace>,
}

/// Where a view's text names a type that a statement has made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypePlace {
    /// The type of which the text may name the arrays.
    pub(crate) ty: EnumType,
    /// Where the name of its schema is, if that is before it.
    pub(crate) schema: Option<Location>,
}

/// Where a view's text names a relation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedPlace {
    /// The relation.
    pub(crate) relation: ObjectId,
    /// Whether it has an alias there.
    pub(crate) has_alias: bool,
    /// Where the name of its schema is, if that is before it.
    pub(crate) schema: Option<Location>,
}

impl Resolved {
    /// Its column of the row, if it is just that.
    pub(super) fn column(&self) -> Option<ColumnNumber> {
        match self.code[..] {
            [Op::Column(column)] => Some(column),
            _ => None,
        }
    }

    pub(super) fn bound(&self) -> Bound {
        Bound::of_column(self.code.clone(), self.kind, self.column())
    }
}

/// A place among the tables of a scope: what comes behind it is the right side of a join.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    table: usize,
    shown: usize,
}

impl Scope {
    /// Adds a table after the others, whose columns can be named.
    pub(super) fn add(&mut self, name: &str, relation: &Relation) {
        let columns = visible_columns(relation);
        self.add_columns(name, relation.columns.len(), columns);
        self.set_primary(relation);
    }

    /// Adds a table with so many columns, of which those with these places can be named.
    pub(super) fn add_columns(
        &mut self,
        table: &str,
        width: usize,
        columns: impl IntoIterator<Item = (usize, String, Kind)>,
    ) {
        let resolved = |(at, name, kind)| Resolved {
            code: vec![Op::Column(ColumnNumber::at(self.width + at))],
            kind,
            table: table.to_owned(),
            name,
            origin: None,
        };
        let columns: Vec<Resolved> = columns.into_iter().map(resolved).collect();
        self.add_resolved(table, width, columns);
    }

    /// Adds a table as `add_columns` does, but columns of it must be named after the table.
    pub(super) fn add_qualified(
        &mut self,
        table: &str,
        width: usize,
        columns: impl IntoIterator<Item = (usize, String, Kind)>,
    ) {
        let shown = self.shown.len();
        self.add_columns(table, width, columns);
        self.shown.truncate(shown);
    }

    /// Adds a table with so many columns, from which these are computed.
    pub(super) fn add_resolved(&mut self, table: &str, width: usize, columns: Vec<Resolved>) {
        self.shown.extend(columns.iter().cloned());
        let (name, begin) = (table.to_owned(), self.width);
        self.tables.push(ScopeTable { name, schema: None, begin, columns, primary: Vec::new() });
        self.width += width;
    }

    /// The last table has another column, which only its name after the table's means.
    pub(super) fn add_unshown(&mut self, at: usize, name: &str, kind: Kind) {
        if let Some(table) = self.tables.last_mut() {
            let code = vec![Op::Column(ColumnNumber::at(at))];
            let (own, name) = (table.name.clone(), name.to_owned());
            table.columns.push(Resolved { code, kind, table: own, name, origin: None });
        }
    }

    /// Adds all tables of another scope after the others.
    pub(super) fn append(&mut self, other: Scope) {
        let begin = self.width;
        let moved = |mut column: Resolved| {
            for op in &mut column.code {
                if let Op::Column(column) = op {
                    *column = ColumnNumber::at(begin + usize::from(*column));
                }
            }
            column
        };
        self.shown.extend(other.shown.into_iter().map(moved));
        self.tables.extend(other.tables.into_iter().map(|table| {
            ScopeTable {
                columns: table.columns.into_iter().map(moved).collect(),
                primary: table
                    .primary
                    .into_iter()
                    .map(|column| ColumnNumber::at(begin + usize::from(column)))
                    .collect(),
                begin: begin + table.begin,
                name: table.name,
                schema: table.schema,
            }
        }));
        self.width += other.width;
    }

    /// The names of the tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// The last table is this one.
    pub(super) fn set_primary(&mut self, relation: &Relation) {
        let begin = self.width - relation.columns.len();
        if let Some(table) = self.tables.last_mut() {
            let numbers = relation.primary.iter().map(|key| usize::from(key.column));
            table.primary = numbers.map(|at| ColumnNumber::at(begin + at)).collect();
        }
    }

    /// The last table is called by its own name, which may stand behind its schema.
    pub(super) fn set_schema(&mut self, schema: SchemaId) {
        if let Some(table) = self.tables.last_mut() {
            table.schema = Some(schema);
        }
    }

    /// The column of a table that is named after its schema; `None` if there is no such table.
    pub(super) fn resolve_in(
        &self,
        schema: SchemaId,
        table: &str,
        name: &str,
    ) -> Result<Option<Resolved>> {
        match self.all_in(schema, table) {
            Some(columns) => only(columns.iter(), name),
            None => Ok(None),
        }
    }

    /// The columns that `schema.table.*` means; `None` if there is no such table.
    pub(super) fn all_in(&self, schema: SchemaId, table: &str) -> Option<&[Resolved]> {
        let mut all = self.tables.iter().skip(self.hidden.0);
        let found = all.find(|own| own.schema == Some(schema) && own.name == table);
        found.map(|own| &own.columns[..])
    }

    /// Whether a table of this name and schema may be added: another one is not called so, unless
    /// both are called by their own names and their schemas are two.
    pub(super) fn may_add(&self, name: &str, schema: Option<SchemaId>) -> bool {
        let differs = |own: &ScopeTable| match (own.schema, schema) {
            (Some(own), Some(schema)) => own != schema,
            _ => false,
        };
        self.tables.iter().all(|own| own.name != name || differs(own))
    }

    /// The columns of the last table are these of a relation.
    pub(super) fn set_origin(&mut self, relation: ObjectId, columns: &[usize]) {
        let Some(table) = self.tables.last_mut() else { return };
        let count = table.columns.len();
        let begin = self.shown.len().saturating_sub(count);
        let shown = self.shown[begin..].iter_mut();
        for ((own, shown), at) in table.columns.iter_mut().zip(shown).zip(columns) {
            let origin = Some(Origin { relation, column: ColumnNumber::at(*at) });
            (own.origin, shown.origin) = (origin, origin);
        }
    }

    /// Whether columns, among which are these keys, decide another one.
    pub(super) fn is_decided(&self, found: &Resolved, is_key: impl Fn(&[Op]) -> bool) -> bool {
        self.tables.iter().any(|table| {
            !table.primary.is_empty()
                && table.columns.iter().any(|own| own.code == found.code)
                && table.primary.iter().all(|column| is_key(&[Op::Column(*column)]))
        })
    }

    /// The columns of the row so far.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The first column of the table that is called so.
    pub(super) fn begin_of(&self, name: &str) -> Option<usize> {
        self.tables.iter().find(|table| table.name == name).map(|table| table.begin)
    }

    /// Whether a table is called so.
    pub(super) fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }

    /// The place behind all tables so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { table: self.tables.len(), shown: self.shown.len() }
    }

    /// Only what comes behind the mark can be named, until this is called with none.
    pub(super) fn hide_before(&mut self, mark: Option<Mark>) {
        self.hidden = mark.map_or((0, 0), |mark| (mark.table, mark.shown));
    }

    /// The column of a name, perhaps after a table's; `None` if an outer query may have it.
    pub(super) fn resolve(&self, table: Option<&str>, name: &str) -> Result<Option<Resolved>> {
        let Some(table) = table else {
            let shown = only(self.shown.iter().skip(self.hidden.1), name)?;
            if shown.is_some() || name != TABLE_ID {
                return Ok(shown);
            }
            // The tables of the catalog have it, though `*` does not show it.
            let tables = self.tables.iter().skip(self.hidden.0);
            return only(tables.flat_map(|table| &table.columns), name);
        };
        let mut all = self.tables.iter().enumerate();
        let Some((at, found)) = all.find(|(_, own)| own.name == table) else { return Ok(None) };
        if at < self.hidden.0 {
            return Err(hidden(Some(table), name));
        }
        // Only the table that a statement changes may be called as the one that ON CONFLICT adds.
        if all.any(|(_, own)| own.name == table) {
            let message = format!("table reference \"{table}\" is ambiguous");
            return Err(Error::new(SqlState::AMBIGUOUS_ALIAS, message));
        }
        match only(found.columns.iter(), name)? {
            Some(column) => Ok(Some(column)),
            None => {
                let message = format!("column {table}.{name} does not exist");
                Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
            }
        }
    }

    /// The columns that `*` means.
    pub(super) fn all(&self) -> &[Resolved] {
        &self.shown
    }

    /// The columns that `table.*` means; `None` if there is no such table.
    pub(super) fn all_of(&self, table: &str) -> Option<&[Resolved]> {
        self.tables.iter().find(|own| own.name == table).map(|own| &own.columns[..])
    }

    /// The columns of the left and the right side of a join, between the marks and behind.
    pub(super) fn sides(&self, begin: Mark, middle: Mark) -> (&[Resolved], &[Resolved]) {
        (&self.shown[begin.shown..middle.shown], &self.shown[middle.shown..])
    }

    /// Puts columns that USING merged in the place of both their originals.
    pub(super) fn merge(&mut self, begin: Mark, merged: Vec<Resolved>) {
        let mut rest = self.shown.split_off(begin.shown);
        rest.retain(|column| merged.iter().all(|own| own.name != column.name));
        self.shown.extend(merged);
        self.shown.extend(rest);
    }
}

/// The column of this name among these.
fn only<'c>(columns: impl Iterator<Item = &'c Resolved>, name: &str) -> Result<Option<Resolved>> {
    let mut found = columns.filter(|column| column.name == name);
    let first = found.next();
    if found.next().is_some() {
        let message = format!("column reference \"{name}\" is ambiguous");
        return Err(Error::new(SqlState::AMBIGUOUS_COLUMN, message));
    }
    Ok(first.cloned())
}

/// The columns of a table that statements can name: their places, names and types.
pub(super) fn visible_columns(
    relation: &Relation,
) -> impl Iterator<Item = (usize, String, Kind)> + '_ {
    let all = relation.columns.iter().enumerate();
    all.filter(|(_, column)| !column.is_hidden())
        .map(|(at, column)| (at, column.name.clone(), column.kind))
}

/// The error of a table that is in the statement, but not in sight.
pub(super) fn hidden(table: Option<&str>, _name: &str) -> Error {
    let table = table.unwrap_or_default();
    let message = format!("invalid reference to FROM-clause entry for table \"{table}\"");
    Error::new(SqlState::UNDEFINED_TABLE, message).with_hint(format!(
        "There is an entry for table \"{table}\", but it cannot be referenced from this part of \
         the query."
    ))
}

/// The error of a name that no table in sight has.
pub(super) fn missing(table: Option<&str>, name: &str) -> Error {
    match table {
        Some(table) => {
            let message = format!("missing FROM-clause entry for table \"{table}\"");
            Error::new(SqlState::UNDEFINED_TABLE, message)
        }
        None => Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")),
    }
}
