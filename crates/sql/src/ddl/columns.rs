//! The columns of CREATE TABLE.

use super::counting::Options;
use super::door::{check_check, check_primary, check_unique};
use super::draft::{Draft, LaterCheck, NamedColumn, kept, named_columns};
use super::foreign::LaterKey;
use super::identity::identity_of;
use super::sequences::next_value;
use crate::bind::{check_collation, kind_of, name_of, own_name, unsupported};
use crate::catalog::{ColumnInfo, Identity};
use crate::ir::{Column, ColumnForm, Expression, Kind, Op, Value};
use crate::parse::SEQUENCE_QUOTE;
use sqlparser::ast::{
    ColumnDef, ColumnOption, DataType, Expr, GeneratedAs, GeneratedExpressionMode, ObjectName,
    SequenceOptions, TableConstraint,
};
use values::{Datum, Error, Result, SqlState, Type};

/// `serial` and its sisters: a type and a sequence.
fn serial(data_type: &DataType) -> Option<Type> {
    let DataType::Custom(name, modifiers) = data_type else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    match name.to_string().to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => Some(Type::Int2),
        "serial" | "serial4" => Some(Type::Int4),
        "bigserial" | "serial8" => Some(Type::Int8),
        _ => None,
    }
}

impl Draft<'_> {
    /// Adds a column, and the constraints that are written beside it.
    pub(super) fn add_column(&mut self, definition: &ColumnDef) -> Result<()> {
        let name = name_of(&definition.name);
        if self.table.relation.columns.iter().any(|column| column.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let serial = serial(&definition.data_type);
        let kind = match serial {
            Some(ty) => Kind::plain(ty),
            None => kind_of(self.catalog, &definition.data_type)?,
        };
        if kind.ty.is_of_catalog() && kind.ty != Type::Oid {
            let message = format!("a column of type {} is not supported", kind.ty.name());
            return Err(Error::unsupported(message, "Only the system catalog has such columns."));
        }
        let nullable = serial.is_none();
        let missing = Value(Datum::Null);
        let column =
            Column { name: name.clone(), kind, nullable, missing, form: ColumnForm::Plain };
        self.table.relation.columns.push(column);
        self.table.columns.push(ColumnInfo::default());
        if serial.is_some() {
            self.number(&name, kind.ty, None, &[])?;
        }
        for option in &definition.options {
            let named = option.name.as_ref().map(name_of);
            self.option(&name, kind, named, &option.option)?;
        }
        Ok(())
    }

    /// The column gets its values from a sequence of its own, with this name if it has one.
    pub(super) fn number(
        &mut self,
        name: &str,
        ty: Type,
        sequence: Option<String>,
        options: &[SequenceOptions],
    ) -> Result<()> {
        let sequence_name = match sequence {
            Some(stated) => self.stated_name(stated)?,
            None => self.free_name(&format!("{}_{name}_seq", self.table.relation.name)),
        };
        let own = self.table.relation.name.beside(&*sequence_name);
        let sequence = Options::read(options)?.sequence(self.new_id(), &own, ty)?;
        let mut code = next_value(&sequence);
        if ty != Type::Int8 {
            code.push(Op::Cast(Kind::plain(ty), true));
        }
        let info = self.info(name)?;
        info.default = Some(Expression { code });
        info.default_text = Some(format!("nextval('{sequence_name}'::regclass)"));
        info.sequence = Some(sequence.id);
        self.put_sequence(sequence);
        Ok(())
    }

    pub(super) fn info(&mut self, name: &str) -> Result<&mut ColumnInfo> {
        let at = self.column(name)?;
        Ok(&mut self.table.columns[usize::from(at)])
    }

    fn option(
        &mut self,
        name: &str,
        kind: Kind,
        constraint: Option<String>,
        option: &ColumnOption,
    ) -> Result<()> {
        match option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => {
                let at = self.column(name)?;
                self.table.relation.columns[usize::from(at)].nullable = false;
            }
            ColumnOption::Default(expr) => self.default(name, kind, expr)?,
            ColumnOption::PrimaryKey(key) => {
                check_primary(key)?;
                self.set_primary(constraint, &[NamedColumn::plain(name)])?;
            }
            ColumnOption::Unique(key) => {
                check_unique(key)?;
                self.add_unique(constraint, &[NamedColumn::plain(name)], key)?;
            }
            ColumnOption::Check(check) => {
                check_check(check)?;
                self.later_checks.push(LaterCheck {
                    name: constraint,
                    column: Some(name.to_owned()),
                    condition: check.expr.clone(),
                    is_stated: true,
                });
            }
            ColumnOption::Generated {
                generated_as: GeneratedAs::ExpStored | GeneratedAs::Always,
                generation_expr: Some(expr),
                generation_expr_mode: Some(GeneratedExpressionMode::Stored),
                ..
            } => self.later_generated.push((name.to_owned(), expr.clone())),
            ColumnOption::Generated { generation_expr: Some(_), .. } => {
                let message = "a generated column must be STORED";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            ColumnOption::Generated {
                generated_as,
                sequence_options,
                generation_expr: None,
                ..
            } => {
                let options = sequence_options.as_deref().unwrap_or_default();
                self.identity(name, kind.ty, identity_of(*generated_as)?, options)?;
            }
            ColumnOption::Collation(name) if is_sequence(name) => {
                self.identity_sequence = Some(own_name(name)?);
            }
            ColumnOption::Collation(collation) => check_collation(&collation.to_string())?,
            ColumnOption::ForeignKey(key) => {
                let columns = vec![name.to_owned()];
                self.later_keys.push(LaterKey { name: constraint, columns, tree: key.clone() });
            }
            other => return Err(unsupported(&format!("column option {other}"))),
        }
        Ok(())
    }

    fn identity(
        &mut self,
        name: &str,
        ty: Type,
        identity: Identity,
        options: &[SequenceOptions],
    ) -> Result<()> {
        refuse_no_integer(ty)?;
        let sequence = self.identity_sequence.take();
        self.number(name, ty, sequence, options)?;
        let at = self.column(name)?;
        self.table.relation.columns[usize::from(at)].nullable = false;
        let info = self.info(name)?;
        (info.identity, info.default_text) = (Some(identity), None);
        Ok(())
    }

    fn default(&mut self, name: &str, kind: Kind, expr: &Expr) -> Result<()> {
        let default = kept(self.binder().bind_for(expr, kind)?.expression(), "DEFAULT")?;
        let info = self.info(name)?;
        if info.default.is_some() {
            let message = format!("multiple default values specified for column \"{name}\"");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        info.default = Some(default);
        info.default_text = Some(expr.to_string());
        Ok(())
    }

    /// A constraint that is written behind the columns.
    pub(super) fn add_constraint(&mut self, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                check_primary(key)?;
                let columns = named_columns(&key.columns)?;
                self.set_primary(key.name.as_ref().map(name_of), &columns)
            }
            TableConstraint::Unique(key) => {
                check_unique(key)?;
                let columns = named_columns(&key.columns)?;
                self.add_unique(key.name.as_ref().map(name_of), &columns, key)
            }
            TableConstraint::Check(check) => {
                check_check(check)?;
                let name = check.name.as_ref().map(name_of);
                let condition = check.expr.clone();
                let is_stated = true;
                self.later_checks.push(LaterCheck { name, column: None, condition, is_stated });
                Ok(())
            }
            TableConstraint::ForeignKey(key) => {
                let name = key.name.as_ref().map(name_of);
                let columns = key.columns.iter().map(name_of).collect();
                self.later_keys.push(LaterKey { name, columns, tree: key.clone() });
                Ok(())
            }
            other => Err(unsupported(&format!("constraint {other}"))),
        }
    }
}

/// Whether a collation stands for the name of a sequence.
fn is_sequence(name: &ObjectName) -> bool {
    let is_marked = |quote: Option<char>| quote == Some(SEQUENCE_QUOTE);
    name.0.iter().all(|part| part.as_ident().is_some_and(|own| is_marked(own.quote_style)))
}

/// Refuses identity columns of other types.
pub(super) fn refuse_no_integer(ty: Type) -> Result<()> {
    if ty.is_integer() {
        return Ok(());
    }
    let message = "identity column type must be smallint, integer, or bigint";
    Err(Error::new(SqlState::INVALID_PARAMETER, message))
}
