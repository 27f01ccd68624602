//! CREATE TABLE (LIKE ...): columns of another table or view, with as much of it as is asked for.

use super::counting::Options;
use super::draft::{Draft, NamedColumn, new_index};
use super::sequences::next_value;
use crate::bind::written_name;
use crate::catalog::{Catalog, ColumnInfo, Comment, Commented, Sequence, Table, View};
use crate::ir::{
    Check, Column, ColumnForm, ColumnNumber, Computed, Expression, Index, IndexForm, KeyColumn,
    Kind, Name, Op, Relation, Value,
};
use crate::parse::Like;
use crate::system::{Columns, Writer, key_text};
use std::collections::BTreeMap;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Type};

/// The new columns of a table by the old ones.
type Places = BTreeMap<ColumnNumber, ColumnNumber>;

/// What waits until all columns are there.
pub(super) struct LaterLike {
    table: Arc<Table>,
    places: Places,
    has_checks: bool,
    has_indexes: bool,
}

impl Draft<'_> {
    /// Adds the columns of another table or view.
    pub(super) fn add_like(&mut self, like: &Like<'_>) -> Result<Option<LaterLike>> {
        if let Some(unknown) = like.unknown() {
            let message = format!("syntax error at or near \"{unknown}\"");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        let written = written_name(like.table)?;
        let name = self.catalog.relation(&written)?;
        if let Some(view) = self.catalog.view(&name) {
            let view = Arc::clone(view);
            return self.add_columns_of_view(&view).map(|()| None);
        }
        let Some(table) = self.catalog.table(&name).cloned() else {
            return Err(written.missing().at(self.binder().position(like.table)));
        };
        let visible = table.relation.columns.iter().enumerate().filter(|own| !own.1.is_hidden());
        let begin = self.table.relation.columns.len();
        let place = |(place, (at, _)): (usize, (usize, &Column))| {
            (ColumnNumber::at(at), ColumnNumber::at(begin + place))
        };
        let places: Places = visible.clone().enumerate().map(place).collect();
        for (at, column) in visible {
            self.add_copy(like, column, &table.columns[at], &places)?;
            if like.includes("comments") {
                self.copy_comment(&name, ColumnNumber::at(at), &column.name)?;
            }
        }
        let (has_checks, has_indexes) = (like.includes("constraints"), like.includes("indexes"));
        Ok(Some(LaterLike { table, places, has_checks, has_indexes }))
    }

    fn add_columns_of_view(&mut self, view: &View) -> Result<()> {
        for column in &view.columns {
            self.push_column(Column {
                name: column.name.clone(),
                kind: column.kind,
                nullable: true,
                missing: Value(Datum::Null),
                form: ColumnForm::Plain,
            })?;
        }
        Ok(())
    }

    fn push_column(&mut self, column: Column) -> Result<()> {
        if self.table.relation.columns.iter().any(|own| own.name == column.name) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        self.table.relation.columns.push(column);
        self.table.columns.push(ColumnInfo::default());
        Ok(())
    }

    fn add_copy(
        &mut self,
        like: &Like<'_>,
        old: &Column,
        info: &ColumnInfo,
        places: &Places,
    ) -> Result<()> {
        let form = match old.generated() {
            Some(value) if like.includes("generated") => {
                ColumnForm::Generated(Box::new(moved(value, places)?))
            }
            _ => ColumnForm::Plain,
        };
        let is_generated = form != ColumnForm::Plain;
        self.push_column(Column { missing: Value(Datum::Null), form, ..old.clone() })?;
        let sequence = info.sequence.and_then(|id| self.catalog.sequence_by_id(id)).cloned();
        match (info.identity, sequence) {
            (Some(_), Some(sequence)) if like.includes("identity") => {
                self.number_like(&old.name, old.kind.ty, &sequence)?;
                self.info(&old.name)?.identity = info.identity;
            }
            (None, _) if is_generated || like.includes("defaults") && old.generated().is_none() => {
                let own = self.info(&old.name)?;
                own.default.clone_from(&info.default);
                own.default_text.clone_from(&info.default_text);
            }
            _ => {}
        }
        Ok(())
    }

    /// The column gets its values from a sequence of its own, which counts as another one.
    fn number_like(&mut self, column: &str, ty: Type, like: &Sequence) -> Result<()> {
        let own = self.free_name(&format!("{}_{column}_seq", self.table.relation.name));
        let name = self.table.relation.name.beside(own);
        let own = Options::default().sequence(self.new_id(), &name, ty)?;
        let (last, is_called) = (like.start, false);
        let sequence = Sequence { id: own.id, name, last, is_called, ..like.clone() };
        let mut code = next_value(&sequence);
        if ty != Type::Int8 {
            code.push(Op::Cast(Kind::plain(ty), true));
        }
        let info = self.info(column)?;
        info.default = Some(Expression { code });
        info.sequence = Some(sequence.id);
        self.put_sequence(sequence);
        Ok(())
    }

    fn copy_comment(&mut self, table: &Name, old: ColumnNumber, name: &str) -> Result<()> {
        let on = Commented::Column(table.clone(), old);
        let Some(comment) = self.catalog.comment_on(&on).cloned() else { return Ok(()) };
        let on = Commented::Column(self.table.relation.name.clone(), self.column(name)?);
        let id = self.new_id();
        self.delta.put_comment(&Comment { id, on, ..Comment::clone(&comment) });
        Ok(())
    }

    /// Adds the checks and indexes of the tables of LIKE.
    pub(super) fn bind_like(&mut self, all: Vec<LaterLike>) -> Result<()> {
        for LaterLike { table, places, has_checks, has_indexes } in all {
            let relation = &table.relation;
            for check in relation.checks.iter().filter(|_| has_checks) {
                if self.constraint_names().contains(&check.name) {
                    let (name, own) = (&check.name, &self.table.relation.name);
                    let message =
                        format!("constraint \"{name}\" for relation \"{own}\" already exists");
                    return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
                }
                let condition = moved(&check.condition, &places)?;
                let name = check.name.clone();
                self.table.relation.checks.push(Check { name, condition });
            }
            if !has_indexes {
                continue;
            }
            if !relation.has_hidden_key() {
                let key = moved_key(&relation.primary, &places)?;
                self.set_primary_key(key)?;
            }
            for index in relation.indexes.iter().filter(|index| !index.is_hidden()) {
                self.add_index_like(relation, index, &places)?;
            }
        }
        Ok(())
    }

    fn set_primary_key(&mut self, key: Vec<KeyColumn>) -> Result<()> {
        let column = |each: &KeyColumn| NamedColumn {
            name: self.table.relation.columns[usize::from(each.column)].name.clone(),
            descending: each.descending,
            nulls_first: each.nulls_first,
        };
        let columns: Vec<_> = key.iter().map(column).collect();
        self.set_primary(None, &columns)
    }

    fn add_index_like(&mut self, old: &Relation, like: &Index, places: &Places) -> Result<()> {
        let mut form = like.form.clone();
        if let IndexForm::Extended(extended) = &mut form {
            for column in &mut extended.included {
                *column = place_of(*column, places)?;
            }
        }
        if let Some(special) = form.special_mut() {
            for condition in &mut special.predicate {
                *condition = moved(condition, places)?;
            }
            for computed in &mut special.computed {
                computed.value = moved(&computed.value, places)?;
            }
        }
        let columns = moved_key(&like.columns, places)?;
        let name = |key: &KeyColumn| match like.expression_of(key) {
            Some(computed) => name_of_computed(self.catalog, old, computed),
            None => self.table.relation.columns[usize::from(key.column)].name.clone(),
        };
        let mut names: Vec<String> = columns.iter().map(name).collect();
        let of_old = |column: &ColumnNumber| old.columns[usize::from(*column)].name.clone();
        names.extend(like.included().iter().map(of_old));
        let ending = if like.is_constraint() { "key" } else { "idx" };
        let wanted = format!("{}_{}_{ending}", self.table.relation.name, names.join("_"));
        let (name, id) = (self.free_name(&wanted), self.new_id());
        let index = new_index(&self.table, id, name, form, columns);
        self.table.relation.indexes.push(index);
        Ok(())
    }
}

/// What a key column over an expression is called: as the expression's function.
fn name_of_computed(catalog: &Catalog, relation: &Relation, computed: &Computed) -> String {
    let columns = Columns::Of(relation);
    let writer = Writer { catalog, columns, pretty: false, source: None };
    match key_text(&writer, &computed.value).split_once('(') {
        Some((function, _)) if !function.is_empty() => function.to_ascii_lowercase(),
        _ => "expr".to_owned(),
    }
}

fn moved_key(key: &[KeyColumn], places: &Places) -> Result<Vec<KeyColumn>> {
    let place = |each: &KeyColumn| match each.computed() {
        Some(_) => Ok(*each),
        None => Ok(KeyColumn { column: place_of(each.column, places)?, ..*each }),
    };
    key.iter().map(place).collect()
}

/// An expression over the new columns.
fn moved(expression: &Expression, places: &Places) -> Result<Expression> {
    let mut moved = expression.clone();
    for op in &mut moved.code {
        if let Op::Column(column) = op {
            *column = place_of(*column, places)?;
        }
    }
    Ok(moved)
}

fn place_of(column: ColumnNumber, places: &Places) -> Result<ColumnNumber> {
    let missing = || Error::new(SqlState::INTERNAL, "an expression has a column that LIKE has not");
    places.get(&column).copied().ok_or_else(missing)
}
