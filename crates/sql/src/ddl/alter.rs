//! ALTER TABLE: a draft of the table is changed, operation by operation; what that means for the
//! rows is done in one pass at the end.

use super::comments::drop_of_constraint;
use super::definition::Definition;
use super::door::check_alter;
use super::draft::{Draft, named_columns};
use super::foreign::{Needed, drop_key, drop_needing, rename_in_keys};
use super::rebuild::Rebuild;
use super::{indexes, sequences, views};
use crate::bind::{name_of, own_name, unsupported, written_name};
use crate::catalog::{Catalog, Delta, ForeignKey, Table};
use crate::ir::{ColumnNumber, Index, Name};
use crate::parse::Statement;
use crate::run::{Context, Rows};
use sqlparser::ast::{
    AlterTable, AlterTableOperation, DropBehavior, Ident, RenameTableNameKind, TableConstraint,
};
use values::row::COLUMNS_MAX;
use values::{Error, Result, SqlState};

const TAG: &str = "ALTER TABLE";

pub(super) fn alter(
    catalog: &Catalog,
    statement: &Statement,
    tree: &AlterTable,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let mut definition = Definition::new(TAG, Delta::default());
    check_alter(tree)?;
    let written = written_name(&tree.name)?;
    let Some(own) = definition.altered(catalog, &written, tree.if_exists)? else {
        return Ok(definition);
    };
    let renames = tree.operations.iter().any(is_rename);
    if renames && tree.operations.len() > 1 {
        let message = "RENAME is no part of a list of changes";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    if let [AlterTableOperation::RenameTable { table_name: to }] = &tree.operations[..]
        && catalog.table(&own).is_none()
        && catalog.is_named(&own)
    {
        let new = own.beside(new_name(to)?);
        return match catalog.view(&own) {
            Some(view) => views::rename(catalog, view, &new, TAG),
            None => rename_other(catalog, &own, &new),
        };
    }
    if let ([AlterTableOperation::OwnerTo { .. }], None) =
        (&tree.operations[..], catalog.table(&own))
        && catalog.is_named(&own)
    {
        // All objects belong to the one user.
        return Ok(definition);
    }
    if tree.operations.len() == 1 {
        views::refuse_view(catalog, &own)?;
    }
    let Some(table) = catalog.table(&own) else {
        return Err(written.missing());
    };
    let draft = Draft::new(catalog, &statement.lines, context, Table::clone(table));
    let (rebuild, notices) = (Rebuild::default(), Vec::new());
    let mut altering = Altering { draft, old: table, rebuild, notices };
    // What goes makes room for what comes.
    let places = tree.operations.iter().enumerate();
    let (goes, comes): (Vec<_>, Vec<_>) = places.partition(|(_, operation)| is_drop(operation));
    for (place, operation) in goes.into_iter().chain(comes) {
        let mut identities = statement.identities.iter();
        match (operation, identities.find(|(at, _)| *at == place)) {
            (AlterTableOperation::AlterColumn { column_name, .. }, Some((_, change))) => {
                altering.change_identity(column_name, change, rows)?;
            }
            _ => altering.operation(operation, rows)?,
        }
    }
    let notices = std::mem::take(&mut altering.notices);
    definition.notice = (!notices.is_empty()).then(|| notices.join("\n"));
    definition.delta = altering.finish(rows)?;
    Ok(definition)
}

/// A table while it is changed.
pub(super) struct Altering<'a> {
    pub(super) draft: Draft<'a>,
    pub(super) old: &'a Table,
    pub(super) rebuild: Rebuild,
    notices: Vec<String>,
}

/// Refuses more columns than a table may have.
pub(super) fn check_columns(count: usize) -> Result<()> {
    if count > COLUMNS_MAX {
        let message = format!("tables can have at most {COLUMNS_MAX} columns");
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    Ok(())
}

fn is_rename(operation: &AlterTableOperation) -> bool {
    matches!(
        operation,
        AlterTableOperation::RenameTable { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::RenameConstraint { .. }
    )
}

fn is_drop(operation: &AlterTableOperation) -> bool {
    use AlterTableOperation::{DropColumn, DropConstraint};
    matches!(operation, DropColumn { .. } | DropConstraint { .. })
}

fn new_name(name: &RenameTableNameKind) -> Result<String> {
    let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = name;
    own_name(name)
}

/// Indexes and sequences can be named in ALTER TABLE, too.
fn rename_other(catalog: &Catalog, own: &Name, new: &Name) -> Result<Definition> {
    let renamed = match catalog.sequence(own) {
        Some(sequence) => sequences::rename(catalog, sequence, new)?,
        None => indexes::rename(catalog, own, new)?,
    };
    Ok(Definition { tag: TAG, ..renamed })
}

/// The error of a column that a table does not have.
fn no_column(table: &str, name: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
    Error::new(SqlState::UNDEFINED_COLUMN, message)
}

pub(super) fn exists(table: &str, name: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{table}\" already exists");
    Error::new(SqlState::DUPLICATE_COLUMN, message)
}

fn is_cascade(behavior: &Option<DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

impl Altering<'_> {
    pub(super) fn notice(&mut self, notice: String) {
        self.notices.push(notice);
    }

    pub(super) fn name(&self) -> Name {
        self.draft.table.relation.name.clone()
    }

    pub(super) fn column(&self, name: &Ident) -> Result<ColumnNumber> {
        let name = name_of(name);
        self.draft.table.column(&name).ok_or_else(|| no_column(&self.name(), &name))
    }

    fn operation(&mut self, operation: &AlterTableOperation, rows: &mut dyn Rows) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => self.add_column(column_def, *if_not_exists, rows),
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascade = is_cascade(drop_behavior);
                column_names.iter().try_for_each(|name| self.drop_column(name, *if_exists, cascade))
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                self.rename_column(old_column_name, new_column_name)
            }
            AlterTableOperation::RenameTable { table_name } => self.rename(table_name),
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(&name_of(old_name), name_of(new_name))
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                self.alter_column(column_name, op, rows)
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                self.add_constraint(constraint)
            }
            AlterTableOperation::AddConstraint { not_valid: true, .. } => {
                let hint = "Leave NOT VALID out: the rows are looked at.";
                Err(indexes::beside_writers("NOT VALID", hint))
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                self.drop_constraint(&name_of(name), *if_exists, is_cascade(drop_behavior))
            }
            // All objects belong to the one user.
            AlterTableOperation::OwnerTo { .. } => Ok(()),
            AlterTableOperation::EnableRowLevelSecurity
            | AlterTableOperation::DisableRowLevelSecurity => {
                let is_enabled = *operation == AlterTableOperation::EnableRowLevelSecurity;
                self.draft.table.row_security.is_enabled = is_enabled;
                Ok(())
            }
            AlterTableOperation::ForceRowLevelSecurity
            | AlterTableOperation::NoForceRowLevelSecurity => {
                let is_forced = *operation == AlterTableOperation::ForceRowLevelSecurity;
                self.draft.table.row_security.is_forced = is_forced;
                Ok(())
            }
            other => Err(unsupported(&format!("ALTER TABLE {other}"))),
        }
    }

    fn rename_column(&mut self, old: &Ident, new: &Ident) -> Result<()> {
        let column = match self.column(old) {
            Ok(column) => column,
            Err(_) => {
                let message = format!("column \"{}\" does not exist", name_of(old));
                return Err(Error::new(SqlState::UNDEFINED_COLUMN, message));
            }
        };
        let new = name_of(new);
        if self.draft.table.column(&new).is_some() {
            return Err(exists(&self.name(), &new));
        }
        self.draft.table.relation.columns[usize::from(column)].name = new;
        Ok(())
    }

    fn rename(&mut self, name: &RenameTableNameKind) -> Result<()> {
        let new = self.name().beside(new_name(name)?);
        self.free(&new)?;
        let old = std::mem::replace(&mut self.draft.table.relation.name, new.clone());
        rename_in_keys(self.draft.catalog, &old, &new, &mut self.draft.delta);
        views::rename_in_users(self.draft.catalog, &old, &new, &mut self.draft.delta)
    }

    /// Refuses a name that another relation has.
    fn free(&self, name: &str) -> Result<()> {
        if self.draft.is_taken(name) {
            let message = format!("relation \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_TABLE, message));
        }
        Ok(())
    }

    fn rename_constraint(&mut self, old: &str, new: String) -> Result<()> {
        let own = self.name();
        if self.draft.constraint_names().contains(&new) {
            let message = format!("constraint \"{new}\" for relation \"{own}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let relation = &mut self.draft.table.relation;
        if let Some(check) = relation.checks.iter_mut().find(|check| check.name == old) {
            check.name = new;
            return Ok(());
        }
        let mut keys = self.draft.catalog.foreign_keys();
        if let Some(key) = keys.find(|key| key.child == own && key.name == old) {
            let mut key = ForeignKey::clone(key);
            key.name = new;
            self.draft.delta.put_foreign_key(&key);
            return Ok(());
        }
        self.free(&new)?;
        let relation = &mut self.draft.table.relation;
        if relation.primary_name == old && !relation.has_hidden_key() {
            relation.primary_name = new;
            return Ok(());
        }
        let named = |index: &&mut Index| index.is_constraint() && index.name == old;
        match relation.indexes.iter_mut().find(named) {
            Some(index) => index.name = new,
            None => {
                let message = format!("constraint \"{old}\" for table \"{own}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        Ok(())
    }

    fn add_constraint(&mut self, constraint: &TableConstraint) -> Result<()> {
        let TableConstraint::PrimaryKey(key) = constraint else {
            return self.draft.add_constraint(constraint);
        };
        self.unhide_key();
        self.draft.add_constraint(constraint)?;
        for column in named_columns(&key.columns)? {
            if let Some(number) = self.draft.table.column(&column.name) {
                self.rebuild.look_at_nulls(number);
            }
        }
        Ok(())
    }

    /// Makes room for a primary key, if the table has a hidden one: its rows get other keys.
    pub(super) fn unhide_key(&mut self) {
        let relation = &mut self.draft.table.relation;
        let columns = relation.primary.iter().map(|each| usize::from(each.column));
        let hidden: Vec<usize> = columns.filter(|at| relation.columns[*at].is_hidden()).collect();
        if hidden.is_empty() {
            return;
        }
        relation.primary.clear();
        for at in hidden {
            self.draft.table.relation.columns[at].nullable = true;
            let info = std::mem::take(&mut self.draft.table.columns[at]);
            if let Some(sequence) = info.sequence {
                self.draft.delta.drop_sequence(sequence);
            }
        }
        self.rebuild.rewrite();
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        let own = self.name();
        drop_of_constraint(self.draft.catalog, &own, name, &mut self.draft.delta);
        let relation = &mut self.draft.table.relation;
        let before = relation.checks.len();
        relation.checks.retain(|check| check.name != name);
        if relation.checks.len() < before
            || drop_key(self.draft.catalog, &own, name, &mut self.draft.delta)
        {
            return Ok(());
        }
        let named = |index: &Index| index.is_constraint() && index.name == name;
        if relation.primary_name == name && !relation.has_hidden_key() {
            self.drop_primary();
        } else if let Some(at) = relation.indexes.iter().position(named) {
            relation.indexes.remove(at);
            self.draft.freed.insert(name.to_owned());
        } else {
            let message = format!("constraint \"{name}\" of relation \"{own}\" does not exist");
            if if_exists {
                self.notice(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        let Draft { catalog, table, delta, .. } = &mut self.draft;
        let needed = Needed { what: format!("constraint {name} on table {own}"), index: name };
        let notice = drop_needing(catalog, table, &needed, cascade, delta)?;
        self.notices.extend(notice);
        Ok(())
    }

    /// The rows get other keys: those of another primary key, or hidden ones.
    pub(super) fn drop_primary(&mut self) {
        let relation = &mut self.draft.table.relation;
        relation.primary.clear();
        let name = std::mem::take(&mut relation.primary_name);
        self.draft.freed.insert(name);
        self.rebuild.rewrite();
    }

    /// Makes the rows what the table is now.
    fn finish(mut self, rows: &mut dyn Rows) -> Result<Delta> {
        let checks = self.draft.table.relation.checks.len();
        self.draft.bind_checks()?;
        if let Some(hidden) = self.draft.hide_key() {
            check_columns(self.draft.table.relation.columns.len())?;
            self.rebuild.number(hidden);
        }
        self.draft.bind_keys()?;
        self.draft.keep_key_indexes(self.old);
        self.rebuild.finish(self.draft, self.old, checks, rows)
    }
}
