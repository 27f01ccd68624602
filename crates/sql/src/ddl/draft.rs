//! A table while it is made, and what its keys are of.

use super::counting::Options;
use super::foreign::LaterKey;
use super::sequences::next_value;
use crate::bind::{Binder, name_of, unsupported};
use crate::catalog::{Catalog, ColumnInfo, Delta, ForeignKey, Sequence, Table};
use crate::ir::{
    Check, Column, ColumnForm, ColumnNumber, Expression, ExtendedIndex, Index, IndexForm,
    KeyColumn, Kind, ObjectId, Op, Relation, Space, SpecialIndex, Value,
};
use crate::parse::Lines;
use crate::run::{Context, entry_space_for};
use sqlparser::ast::{
    Expr, Ident, IndexColumn, NullsDistinctOption, OrderBySort, UniqueConstraint,
};
use std::collections::{BTreeMap, BTreeSet};
use values::{Datum, Error, Result, SqlState, Type};

/// A column of a key, by its name.
pub(super) struct NamedColumn {
    pub(super) name: String,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// An expression that statements evaluate which are logged.
pub(super) fn kept(expression: Expression, what: &str) -> Result<Expression> {
    if expression.needs_system() {
        let message = format!("the system catalog and the session are not there for {what}");
        let hint = "What evaluates it is logged, and comes to the same after a crash.";
        return Err(Error::unsupported(message, hint));
    }
    Ok(expression)
}

impl NamedColumn {
    /// The column in the order that keys have by themselves.
    pub(super) fn plain(name: &str) -> NamedColumn {
        NamedColumn { name: name.to_owned(), descending: false, nulls_first: false }
    }
}

/// A CHECK that waits until all columns are there.
pub(super) struct LaterCheck {
    pub(super) name: Option<String>,
    /// The column that it is written beside.
    pub(super) column: Option<String>,
    pub(super) condition: Box<Expr>,
    /// Whether its text is that of the statement, so that errors have a place in it.
    pub(super) is_stated: bool,
}

/// A table while it is made.
pub(super) struct Draft<'a> {
    pub(super) table: Table,
    pub(super) delta: Delta,
    pub(super) later_checks: Vec<LaterCheck>,
    /// Generated columns with their expressions.
    pub(super) later_generated: Vec<(String, Expr)>,
    /// The name of the sequence of the next identity column, if it is stated.
    pub(super) identity_sequence: Option<String>,
    pub(super) later_keys: Vec<LaterKey>,
    /// Foreign keys of the table that are new.
    pub(super) keys: Vec<ForeignKey>,
    pub(super) catalog: &'a Catalog,
    pub(super) lines: &'a Lines,
    pub(super) context: &'a Context,
    pub(super) next_id: ObjectId,
    pub(super) names: BTreeSet<String>,
    /// Names that relations of before give back.
    pub(super) freed: BTreeSet<String>,
    /// Sequences of its columns that are new or changed.
    pub(super) sequences: BTreeMap<ObjectId, Sequence>,
}

impl<'a> Draft<'a> {
    /// A table as it is, of which nothing was changed.
    pub(super) fn new(
        catalog: &'a Catalog,
        lines: &'a Lines,
        context: &'a Context,
        table: Table,
    ) -> Draft<'a> {
        Draft {
            table,
            delta: Delta::default(),
            later_checks: Vec::new(),
            later_generated: Vec::new(),
            identity_sequence: None,
            later_keys: Vec::new(),
            keys: Vec::new(),
            catalog,
            lines,
            context,
            next_id: catalog.next_id(),
            names: BTreeSet::new(),
            freed: BTreeSet::new(),
            sequences: BTreeMap::new(),
        }
    }

    pub(super) fn binder(&self) -> Binder<'a> {
        Binder::without_parameters(self.catalog, self.lines, &self.context.zone)
    }

    /// An id that no object has had.
    pub(super) fn new_id(&mut self) -> ObjectId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    /// Whether another relation has the name.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        let own = self.table.relation.name.beside(name);
        let is_named = self.catalog.is_named(&own) && !self.freed.contains(name);
        is_named || self.names.contains(name)
    }

    /// Makes a sequence, or lets it count from another number.
    pub(super) fn put_sequence(&mut self, sequence: Sequence) {
        self.delta.put_sequence(&sequence);
        self.sequences.insert(sequence.id, sequence);
    }

    /// The name, with a number at its end if others have it.
    pub(super) fn free_name(&mut self, wanted: &str) -> String {
        let name = free_name(wanted, |name| self.is_taken(name));
        self.names.insert(name.clone());
        name
    }

    pub(super) fn column(&self, name: &str) -> Result<ColumnNumber> {
        self.table.column(name).ok_or_else(|| {
            let message = format!("column \"{name}\" named in key does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })
    }

    fn key(&self, columns: &[NamedColumn]) -> Result<Vec<KeyColumn>> {
        key_columns(&self.table, columns)
    }

    pub(super) fn set_primary(
        &mut self,
        name: Option<String>,
        columns: &[NamedColumn],
    ) -> Result<()> {
        let own = self.table.relation.name.clone();
        if !self.table.relation.primary.is_empty() {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("multiple primary keys for table \"{own}\" are not allowed"),
            ));
        }
        self.table.relation.primary = self.key(columns)?;
        for key in self.table.relation.primary.clone() {
            self.table.relation.columns[usize::from(key.column)].nullable = false;
        }
        self.table.relation.primary_name = match name {
            Some(name) => self.stated_name(name)?,
            None => self.free_name(&format!("{own}_pkey")),
        };
        Ok(())
    }

    pub(super) fn add_unique(
        &mut self,
        name: Option<String>,
        columns: &[NamedColumn],
        constraint: &UniqueConstraint,
    ) -> Result<()> {
        let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        names.extend(constraint.include.iter().map(name_of));
        let wanted = format!("{}_{}_key", self.table.relation.name, names.join("_"));
        let name = match name {
            Some(name) => self.stated_name(name)?,
            None => self.free_name(&wanted),
        };
        let key = self.key(columns)?;
        let form = ExtendedIndex {
            special: SpecialIndex { unique: true, ..SpecialIndex::default() },
            is_constraint: true,
            nulls_are_equal: constraint.nulls_distinct == NullsDistinctOption::NotDistinct,
            included: included(&self.table, &constraint.include)?,
        };
        let id = self.new_id();
        let index = new_index(&self.table, id, name, form.form(), key);
        self.table.relation.indexes.push(index);
        Ok(())
    }

    pub(super) fn stated_name(&mut self, name: String) -> Result<String> {
        if self.is_taken(&name) || !self.names.insert(name.clone()) {
            let message = format!("relation \"{name}\" already exists");
            return Err(Error::new(SqlState::DUPLICATE_TABLE, message));
        }
        Ok(name)
    }

    /// The names of the table's constraints.
    pub(super) fn constraint_names(&self) -> BTreeSet<String> {
        let relation = &self.table.relation;
        let keys = self.catalog.foreign_keys().filter(|key| key.child == relation.name);
        let mut taken: BTreeSet<String> = keys.map(|key| key.name.clone()).collect();
        taken.extend(self.keys.iter().map(|key| key.name.clone()));
        taken.extend(relation.checks.iter().map(|check| check.name.clone()));
        let indexes = relation.indexes.iter().filter(|index| !index.is_hidden());
        taken.extend(indexes.map(|index| index.name.clone()));
        if !relation.has_hidden_key() {
            taken.insert(relation.primary_name.clone());
        }
        taken
    }

    pub(super) fn bind_checks(&mut self) -> Result<()> {
        self.bind_generated()?;
        let own = self.table.relation.name.clone();
        let mut taken = self.constraint_names();
        let nowhere = Lines::default();
        for later in std::mem::take(&mut self.later_checks) {
            let LaterCheck { name, column, condition, is_stated } = later;
            let lines = if is_stated { self.lines } else { &nowhere };
            let mut binder = Binder::without_parameters(self.catalog, lines, &self.context.zone);
            binder.over(&own, &self.table.relation);
            let condition = kept(binder.condition(&condition, "CHECK")?.expression(), "CHECK")?;
            if condition.takes_number() {
                return Err(unsupported("nextval in CHECK"));
            }
            if condition.needs_seed() {
                return Err(unsupported("random values in CHECK"));
            }
            let wanted = match column.or_else(|| self.only_column(&condition)) {
                Some(column) => format!("{own}_{column}_check"),
                None => format!("{own}_check"),
            };
            let name = match name {
                Some(name) if taken.contains(&name) => {
                    let message =
                        format!("constraint \"{name}\" for relation \"{own}\" already exists");
                    return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
                }
                Some(name) => name,
                None => free_name(&wanted, |name| taken.contains(name)),
            };
            taken.insert(name.clone());
            self.table.relation.checks.push(Check { name, condition });
        }
        Ok(())
    }

    /// The name of the column that a condition is about, if it is only one.
    fn only_column(&self, condition: &Expression) -> Option<String> {
        let column = |op: &Op| match op {
            Op::Column(column) => Some(*column),
            _ => None,
        };
        let columns: BTreeSet<ColumnNumber> = condition.code.iter().filter_map(column).collect();
        let mut columns = columns.into_iter();
        match (columns.next(), columns.next()) {
            (Some(column), None) => {
                Some(self.table.relation.columns[usize::from(column)].name.clone())
            }
            _ => None,
        }
    }

    /// A table without a primary key gets a hidden one; the column, if it is new.
    pub(super) fn hide_key(&mut self) -> Option<ColumnNumber> {
        if !self.table.relation.primary.is_empty() {
            return None;
        }
        let id = self.new_id();
        // Nothing names them.
        let own = &self.table.relation.name;
        let name = own.beside(format!("{own}_row_seq"));
        let sequence = Options::default().sequence(id, &name, Type::Int8);
        let sequence = sequence.expect("no options are sound");
        let default = Expression { code: next_value(&sequence) };
        self.put_sequence(sequence);
        let column = ColumnNumber::at(self.table.relation.columns.len());
        self.table.relation.columns.push(Column {
            name: String::new(),
            kind: Kind::plain(Type::Int8),
            nullable: false,
            missing: Value(Datum::Null),
            form: ColumnForm::Hidden,
        });
        self.table.columns.push(ColumnInfo {
            default: Some(default),
            sequence: Some(id),
            ..ColumnInfo::default()
        });
        self.table.relation.primary =
            vec![KeyColumn { column, descending: false, nulls_first: false }];
        self.table.relation.primary_name = format!("{}_row_key", self.table.relation.name);
        Some(column)
    }
}

/// The name, with the first number at its end that makes it free.
pub(super) fn free_name(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1_u64..).map(|number| format!("{wanted}{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).expect("there are more numbers than names")
}

/// The numbers of a key's columns, which must be of types that keys may have.
pub(super) fn key_columns(table: &Table, columns: &[NamedColumn]) -> Result<Vec<KeyColumn>> {
    let mut key: Vec<KeyColumn> = Vec::new();
    for NamedColumn { name, descending, nulls_first } in columns {
        let column = table.column(name).ok_or_else(|| {
            let message = format!("column \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        let kind = table.relation.columns[usize::from(column)].kind;
        refuse_key_kind(&format!("column \"{name}\""), kind)?;
        if key.iter().any(|other| other.column == column) {
            let message = format!("column \"{name}\" appears twice in a key");
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        key.push(KeyColumn { column, descending: *descending, nulls_first: *nulls_first });
    }
    Ok(key)
}

/// The columns of INCLUDE.
pub(super) fn included(table: &Table, columns: &[Ident]) -> Result<Vec<ColumnNumber>> {
    let column = |ident: &Ident| {
        let name = name_of(ident);
        table.column(&name).ok_or_else(|| {
            let message = format!("column \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_COLUMN, message)
        })
    };
    columns.iter().map(column).collect()
}

/// Refuses types that keys cannot have. Equal values of `character` have one key by their length.
pub(super) fn refuse_key_kind(what: &str, kind: Kind) -> Result<()> {
    let has_no_length = kind.ty == Type::Char && kind.modifier.length().is_none();
    if kind.ty.may_be_key() && !has_no_length {
        return Ok(());
    }
    let name = kind.ty.name();
    let message = match has_no_length {
        true => format!("{what} of type {name} without a length in a key is not supported"),
        false => format!("{what} of type {name} in a key is not supported"),
    };
    let hint =
        if has_no_length { "Use text, or character(n)." } else { "Use one of another type." };
    Err(Error::unsupported(message, hint))
}

/// An index in the space that its entries have room in.
pub(super) fn new_index(
    table: &Table,
    id: ObjectId,
    name: String,
    form: IndexForm,
    columns: Vec<KeyColumn>,
) -> Index {
    let mut index = Index { id, name, space: Space::Row256, form, columns };
    index.space = entry_space(&table.relation, &index);
    index
}

/// The space of an index's entries.
pub(super) fn entry_space(relation: &Relation, index: &Index) -> Space {
    let types = |index: Option<&Index>, key: &[KeyColumn]| -> Vec<Type> {
        key.iter().filter_map(|each| relation.key_type(index, each)).collect()
    };
    let mut all = types(Some(index), &index.columns);
    let primary = types(None, &relation.primary);
    all.extend(&primary);
    match entry_space_for(&all) {
        // A unique entry's value is the primary key, which the short space may not have room for.
        Space::Short
            if index.is_unique()
                && entry_space_for(&[primary, vec![Type::Int8]].concat()) != Space::Short =>
        {
            Space::Key64
        }
        space => space,
    }
}

/// Whether a column of a key is descending, and whether its NULLs come first. In collation C all
/// operator classes of text are the same.
pub(super) fn key_order(element: &IndexColumn) -> Result<(bool, bool)> {
    let options = &element.column.options;
    let descending = match &options.sort {
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(_)) => return Err(unsupported("USING in an index")),
        _ => false,
    };
    Ok((descending, options.nulls_first.unwrap_or(descending)))
}

/// The columns of a constraint, by name.
pub(super) fn named_columns(columns: &[IndexColumn]) -> Result<Vec<NamedColumn>> {
    let named = |each: &IndexColumn| {
        let Expr::Identifier(ident) = &each.column.expr else {
            let message = "a constraint is of columns";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        let (descending, nulls_first) = key_order(each)?;
        Ok(NamedColumn { name: name_of(ident), descending, nulls_first })
    };
    columns.iter().map(named).collect()
}
