//! ALTER TABLE: columns come, go and change.

use super::alter::{Altering, check_columns, exists};
use super::columns::refuse_no_integer;
use super::draft::{LaterCheck, kept, refuse_key_kind};
use super::foreign::drop_keys_of_column;
use super::rebuild::Rebuild;
use super::sequences::{DependentDefaults, NUMBER_CODE, release};
use super::views::dependent;
use crate::bind::{kind_of, may_assign, name_of, unsupported};
use crate::catalog::{ForeignKey, Table};
use crate::ir::{Check, ColumnForm, ColumnNumber, Expression, Index, Kind, Op, Value};
use crate::parse::parsed_expression;
use crate::run::{Rows, value_over};
use crate::system::{Columns, expression_text};
use sqlparser::ast::{AlterColumnOperation, ColumnDef, ColumnOption, DataType, Expr, Ident};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type};

impl Altering<'_> {
    pub(super) fn add_column(
        &mut self,
        definition: &ColumnDef,
        if_not_exists: bool,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        let (own, name) = (self.name(), name_of(&definition.name));
        if self.draft.table.column(&name).is_some() {
            let error = exists(&own, &name);
            if !if_not_exists {
                return Err(error);
            }
            self.notice(format!("{}, skipping", error.message()));
            return Ok(());
        }
        let at = self.draft.table.relation.columns.len();
        check_columns(at + 1)?;
        let is_primary = |each: &sqlparser::ast::ColumnOptionDef| {
            matches!(each.option, ColumnOption::PrimaryKey(_))
        };
        if definition.options.iter().any(is_primary) {
            self.unhide_key();
        }
        self.draft.add_column(definition)?;
        if self.draft.later_generated.iter().any(|(own, _)| *own == name) {
            self.draft.bind_generated()?;
            let column = &self.draft.table.relation.columns[at];
            if let Some(value) = column.generated().cloned() {
                self.refuse_new(&value)?;
                self.rebuild.convert(ColumnNumber::at(at), value);
                self.rebuild.look_at_nulls(ColumnNumber::at(at));
            }
            return Ok(());
        }
        let Some(default) = self.draft.table.columns[at].default.clone() else {
            self.rebuild.look_at_nulls(ColumnNumber::at(at));
            return Ok(());
        };
        if default.takes_number() && self.draft.table.columns[at].sequence.is_some() {
            self.rebuild.look_at_nulls(ColumnNumber::at(at));
            if !Rebuild::is_empty(self.old, rows)? {
                self.rebuild.number(ColumnNumber::at(at));
            }
            return Ok(());
        }
        if default.takes_number() {
            return self.refuse_rows(rows, "a column whose default takes numbers of a sequence");
        }
        if default.needs_seed() {
            return self.refuse_rows(rows, "a column whose default is random");
        }
        let value = value_over(&default, &[], self.draft.context, rows)?;
        self.draft.table.relation.columns[at].missing = Value(value);
        self.rebuild.look_at_nulls(ColumnNumber::at(at));
        Ok(())
    }

    /// Refuses an expression over columns that the same statement adds: rows do not have them yet.
    fn refuse_new(&self, value: &Expression) -> Result<()> {
        let old = self.old.relation.columns.len();
        let is_new = |op: &Op| matches!(op, Op::Column(column) if usize::from(*column) >= old);
        match value.code.iter().any(is_new) {
            false => Ok(()),
            true => Err(unsupported("a generated column over one that the same statement adds")),
        }
    }

    /// What can be done with a table that has no rows only.
    fn refuse_rows(&self, rows: &mut dyn Rows, what: &str) -> Result<()> {
        if Rebuild::is_empty(self.old, rows)? {
            return Ok(());
        }
        let message = format!("{what} is not supported in a table that has rows");
        let instead = "Add it without a default, and fill it with UPDATE.";
        Err(Error::unsupported(message, instead))
    }

    pub(super) fn drop_column(
        &mut self,
        name: &Ident,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let column = match self.column(name) {
            Ok(column) => column,
            Err(error) if if_exists => {
                self.notice(format!("{}, skipping", error.message()));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.drop_computed(column, cascade)?;
        self.drop_default_dependents(column, cascade)?;
        drop_keys_of_column(&mut self.draft, column, cascade)?;
        let relation = &mut self.draft.table.relation;
        if relation.primary.iter().any(|key| key.column == column) {
            self.drop_primary();
        }
        let relation = &mut self.draft.table.relation;
        relation.indexes.retain(|index| index.columns_used().all(|each| each != column));
        relation.checks.retain(|check| !check.condition.code.contains(&Op::Column(column)));
        let at = usize::from(column);
        let dropped = &mut relation.columns[at];
        dropped.name.clear();
        (dropped.form, dropped.nullable) = (ColumnForm::Hidden, true);
        dropped.missing = Value(Datum::Null);
        let info = std::mem::take(&mut self.draft.table.columns[at]);
        if let Some(sequence) = info.sequence {
            self.draft.delta.drop_sequence(sequence);
        }
        Ok(())
    }

    /// What DROP COLUMN does with defaults that take numbers of the column's sequence.
    fn drop_default_dependents(&mut self, column: ColumnNumber, cascade: bool) -> Result<()> {
        let (own, at) = (self.old.relation.id, usize::from(column));
        let Some(sequence) = self.draft.table.columns[at].sequence else { return Ok(()) };
        let is_own = |table: &Table, other: usize| table.relation.id == own && other == at;
        let defaults = DependentDefaults::of(self.draft.catalog, &[sequence], is_own);
        let name = &self.draft.table.relation.columns[at].name;
        let what = format!("column {name} of table {}", self.name());
        for notice in defaults.dropped(&what, cascade)? {
            self.notice(notice);
        }
        for table in defaults.changed {
            if table.relation.id != own {
                self.draft.delta.put_table(&table);
            }
        }
        release(&mut self.draft.table, sequence);
        Ok(())
    }

    /// What DROP COLUMN does with generated columns that are computed from the column.
    fn drop_computed(&mut self, column: ColumnNumber, cascade: bool) -> Result<()> {
        let relation = &self.draft.table.relation;
        let own = &relation.name;
        let name = &relation.columns[usize::from(column)].name;
        let computed = relation.columns.iter().filter(|other| other.is_computed_from(column));
        let names: Vec<String> = computed.map(|other| other.name.clone()).collect();
        if !names.is_empty() && !cascade {
            let message = format!(
                "cannot drop column {name} of table {own} because other objects depend on it"
            );
            let line = |other| {
                format!("column {other} of table {own} depends on column {name} of table {own}")
            };
            let lines: Vec<String> = names.iter().map(line).collect();
            return Err(dependent(message, lines.join("\n")));
        }
        for other in &names {
            self.notice(format!("drop cascades to column {other} of table {}", self.name()));
            self.drop_column(&Ident::with_quote('"', other), false, true)?;
        }
        Ok(())
    }

    pub(super) fn alter_column(
        &mut self,
        name: &Ident,
        op: &AlterColumnOperation,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        let (own, shown, column) = (self.name(), name_of(name), self.column(name)?);
        let at = usize::from(column);
        let is_identity = self.draft.table.columns[at].identity.is_some();
        let identity = || {
            let message = format!("column \"{shown}\" of relation \"{own}\" is an identity column");
            Error::new(SqlState::SYNTAX_ERROR, message)
        };
        let kind = self.draft.table.relation.columns[at].kind;
        let is_default = matches!(
            op,
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
        );
        if is_default && self.draft.table.relation.columns[at].generated().is_some() {
            let message = format!("column \"{shown}\" of relation \"{own}\" is a generated column");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        match op {
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
                if is_identity =>
            {
                Err(identity())
            }
            AlterColumnOperation::SetDefault { value } => {
                let bound = self.draft.binder().bind_for(value, kind)?;
                let default = kept(bound.expression(), "DEFAULT")?;
                let info = &mut self.draft.table.columns[at];
                info.default = Some(default);
                info.default_text = Some(value.to_string());
                Ok(())
            }
            AlterColumnOperation::DropDefault => {
                let info = &mut self.draft.table.columns[at];
                (info.default, info.default_text) = (None, None);
                Ok(())
            }
            AlterColumnOperation::SetNotNull => {
                self.draft.table.relation.columns[at].nullable = false;
                self.rebuild.look_at_nulls(column);
                Ok(())
            }
            AlterColumnOperation::DropNotNull if is_identity => Err(identity()),
            AlterColumnOperation::DropNotNull => {
                let relation = &mut self.draft.table.relation;
                if relation.primary.iter().any(|key| key.column == column) {
                    let message = format!("column \"{shown}\" is in a primary key");
                    return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
                }
                relation.columns[at].nullable = true;
                Ok(())
            }
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                self.set_type(column, data_type, using.as_ref())?;
                let ty = self.draft.table.relation.columns[at].kind.ty;
                self.type_of_identity(at, ty, rows)
            }
            other => Err(unsupported(&format!("ALTER COLUMN {other}"))),
        }
    }

    /// Refuses another type where others look at the column.
    fn refuse_type(&self, column: ColumnNumber, kind: Kind) -> Result<()> {
        let columns = &self.draft.table.relation.columns;
        let computed = columns.iter().find(|other| other.is_computed_from(column));
        if let Some(other) = computed {
            let message = "cannot alter type of a column used by a generated column";
            let name = &columns[usize::from(column)].name;
            let other = &other.name;
            let detail = format!("Column \"{name}\" is used by generated column \"{other}\".");
            return Err(Error::unsupported(message, "").with_detail(detail));
        }
        if columns[usize::from(column)].generated().is_some() {
            let message = "another type of a generated column is not supported";
            return Err(Error::unsupported(message, "Drop the column, and add it anew."));
        }
        let own = self.name();
        let used = |key: &&Arc<ForeignKey>| {
            (key.child == own && key.columns.contains(&column))
                || (key.parent == own && key.referred.contains(&column))
        };
        if self.draft.catalog.foreign_keys().any(|key| used(&key)) {
            let message = "the type of a column of a foreign key cannot be changed";
            return Err(Error::unsupported(message, "Drop the foreign key first."));
        }
        let relation = &self.draft.table.relation;
        let mut keys = relation.indexes.iter().flat_map(|index| &index.columns);
        let is_key = keys.any(|key| key.column == column)
            || relation.primary.iter().any(|key| key.column == column);
        if is_key {
            let name = &relation.columns[usize::from(column)].name;
            refuse_key_kind(&format!("column \"{name}\""), kind)?;
        }
        Ok(())
    }

    /// Takes the checks of a column out, to be bound to its new type and checked for all rows.
    fn check_again(&mut self, column: ColumnNumber) -> Result<()> {
        let checks = &mut self.draft.table.relation.checks;
        let is_of_column = |check: &mut Check| check.condition.code.contains(&Op::Column(column));
        for check in checks.extract_if(.., is_of_column) {
            let columns = Columns::Of(&self.old.relation);
            let text = expression_text(self.draft.catalog, columns, &check.condition);
            let condition = text.and_then(|text| parsed_expression(&text)).ok_or_else(|| {
                let message = format!(
                    "another type of a column of CHECK \"{}\" is not supported",
                    check.name
                );
                Error::unsupported(message, "Drop the constraint first.")
            })?;
            self.draft.later_checks.push(LaterCheck {
                name: Some(check.name),
                column: None,
                condition: Box::new(condition),
                is_stated: false,
            });
        }
        Ok(())
    }

    /// Refuses other values where predicates and expressions of indexes look at the column.
    fn refuse_computed(&self, column: ColumnNumber) -> Result<()> {
        let mut indexes = self.draft.table.relation.indexes.iter();
        let is_used = |index: &&Index| {
            index.expressions().any(|each| each.code.contains(&Op::Column(column)))
        };
        match indexes.find(is_used) {
            None => Ok(()),
            Some(index) => {
                let message = format!(
                    "the type of a column in the predicate or an expression of index \"{}\" cannot \
                     be changed",
                    index.name
                );
                Err(Error::unsupported(message, "Drop the index first."))
            }
        }
    }

    fn set_type(
        &mut self,
        column: ColumnNumber,
        data_type: &DataType,
        using: Option<&Expr>,
    ) -> Result<()> {
        let kind = kind_of(self.draft.catalog, data_type)?;
        let at = usize::from(column);
        if self.draft.table.columns[at].identity.is_some() {
            refuse_no_integer(kind.ty)?;
        }
        if at >= self.old.relation.columns.len() {
            return Err(unsupported("another type of a column that the same statement adds"));
        }
        self.refuse_type(column, kind)?;
        self.check_again(column)?;
        let old = self.draft.table.relation.columns[at].kind;
        let is_same = using.is_none() && is_wider(old, kind);
        if !is_same {
            self.refuse_computed(column)?;
        }
        let own = self.name();
        let name = self.draft.table.relation.columns[at].name.clone();
        let wrong = |error: Error, what: &str| match error.state() {
            SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH => Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("{what} cannot be cast automatically to type {}", kind.ty.name()),
            )
            .with_hint(format!("You might need to specify \"USING {name}::{}\".", kind.ty.name())),
            _ => error,
        };
        let mut binder = self.draft.binder();
        binder.over(&own, &self.old.relation);
        let stated = Expr::Identifier(Ident::with_quote('"', &name));
        let bound = binder
            .bind_for(using.unwrap_or(&stated), kind)
            .map_err(|error| wrong(error, &format!("column \"{name}\"")))?;
        if !is_same {
            self.rebuild.convert(column, kept(bound.expression(), "USING")?);
        }
        self.cast_default(at, kind)?;
        let changed = &mut self.draft.table.relation.columns[at];
        changed.kind = kind;
        changed.missing = Value(Datum::Null);
        if self.rebuild.converts(column) {
            return Ok(());
        }
        changed.missing = self.old.relation.columns[at].missing.clone();
        Ok(())
    }

    /// Casts the default of a column that gets another type, whatever USING says of its values.
    fn cast_default(&mut self, at: usize, kind: Kind) -> Result<()> {
        let column = &self.draft.table.relation.columns[at];
        let is_castable = may_assign(column.kind.ty, kind.ty);
        let Some(default) = &mut self.draft.table.columns[at].default else { return Ok(()) };
        let takes_number = default.takes_number();
        if takes_number && !kind.ty.is_integer() {
            let message = "another type of a column with this default is not supported";
            return Err(Error::unsupported(message, "Drop the default first."));
        }
        if !is_castable {
            let message = format!(
                "default for column \"{}\" cannot be cast automatically to type {}",
                column.name,
                kind.ty.name()
            );
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        if takes_number && default.code.len() == NUMBER_CODE + 1 {
            // The cast to the type of before would refuse numbers that are too large for it.
            default.code.truncate(NUMBER_CODE);
        }
        default.code.push(Op::Cast(kind, true));
        Ok(())
    }
}

/// Whether each value of the old type is one of the new, with the same bytes.
fn is_wider(old: Kind, new: Kind) -> bool {
    let is_text = |ty: Type| ty == Type::Text || ty == Type::Varchar;
    if old == new {
        return true;
    }
    is_text(old.ty)
        && is_text(new.ty)
        && match (old.modifier.length(), new.modifier.length()) {
            (_, None) => true,
            (Some(old), Some(new)) => old <= new,
            (None, Some(_)) => false,
        }
}
