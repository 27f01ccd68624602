//! Indexes, constraints and defaults as the statements that make them.

use super::names::quoted;
use super::objects::{Constraint, Demand, IndexObject, indexes};
use super::shown::{Columns, Writer, expression, key_text};
use crate::bind::shown_text;
use crate::catalog::{Catalog, Deferral, Table, View};
use crate::ir::{Check, ColumnNumber, Expression, Function, KeyColumn, Op, Referential};

/// The query of a view, as `pg_get_viewdef` shows it.
pub(super) fn of_view(catalog: &Catalog, view: &View) -> String {
    format!(" {};", shown_text(catalog, view).as_deref().unwrap_or(&view.text))
}

/// A column of a key, or an expression, with its order.
fn key_column(writer: &Writer<'_>, index: &IndexObject<'_>, key: &KeyColumn) -> String {
    let name = key_name(writer, index, key);
    match (key.descending, key.nulls_first) {
        (false, false) => name,
        (false, true) => format!("{name} NULLS FIRST"),
        (true, true) => format!("{name} DESC"),
        (true, false) => format!("{name} DESC NULLS LAST"),
    }
}

fn key_name(writer: &Writer<'_>, index: &IndexObject<'_>, key: &KeyColumn) -> String {
    match index.own.and_then(|own| own.expression_of(key)) {
        Some(computed) => key_text(writer, &computed.value),
        None => quoted(&index.table.relation.columns[usize::from(key.column)].name),
    }
}

fn writer<'c>(catalog: &'c Catalog, index: &IndexObject<'c>, pretty: bool) -> Writer<'c> {
    Writer { catalog, columns: Columns::Of(&index.table.relation), pretty, source: None }
}

/// The names of the columns of an index: an expression is called like its function.
pub(super) fn index_columns(catalog: &Catalog, index: &IndexObject<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let writer = writer(catalog, index, false);
    for key in index.columns {
        let own = match index.own.and_then(|own| own.expression_of(key)) {
            None => index.table.relation.columns[usize::from(key.column)].name.clone(),
            Some(_) => match key_name(&writer, index, key).split_once('(') {
                Some((function, _)) if !function.is_empty() => function.to_ascii_lowercase(),
                _ => "expr".to_owned(),
            },
        };
        push_free(&mut names, own);
    }
    for column in index.included() {
        push_free(&mut names, index.table.relation.columns[usize::from(*column)].name.clone());
    }
    names
}

/// Adds a name, with a number at its end if it is there.
fn push_free(names: &mut Vec<String>, own: String) {
    let numbered = (1..).map(|number| format!("{own}{number}"));
    let mut all = std::iter::once(own.clone()).chain(numbered);
    names.extend(all.find(|name| !names.contains(name)));
}

/// The predicate of a partial index.
pub(super) fn of_predicate(
    catalog: &Catalog,
    index: &IndexObject<'_>,
    pretty: bool,
) -> Option<String> {
    let whole = conjunction(index.own?.predicate())?;
    Some(expression(&writer(catalog, index, pretty), &whole, None).unwrap_or_default())
}

/// The expressions of an index.
pub(super) fn of_expressions(
    catalog: &Catalog,
    index: &IndexObject<'_>,
    pretty: bool,
) -> Option<String> {
    let writer = writer(catalog, index, pretty);
    let keys = index.columns.iter().filter(|key| key.computed().is_some());
    let texts: Vec<String> = keys.map(|key| key_name(&writer, index, key)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Conditions as one, as a statement would have them; none of none.
fn conjunction(conditions: &[Expression]) -> Option<Expression> {
    let both = |mut left: Expression, right: Expression| {
        left.code.push(Op::JumpIf(false, right.code.len() as u32 + 1));
        left.code.extend(right.code);
        left.code.push(Op::Call(Function::And, 2));
        left
    };
    conditions.iter().cloned().reduce(both)
}

/// CREATE INDEX.
pub(super) fn of_index(catalog: &Catalog, index: &IndexObject<'_>, pretty: bool) -> String {
    let writer = writer(catalog, index, pretty);
    let columns: Vec<String> =
        index.columns.iter().map(|key| key_column(&writer, index, key)).collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let (name, own) = (quoted(index.name), &index.table.relation.name);
    let table = catalog.shown_if(own, pretty && catalog.is_visible(own));
    let columns = columns.join(", ");
    let predicate = of_predicate(catalog, index, pretty);
    let condition = predicate.map(|text| format!(" WHERE {text}")).unwrap_or_default();
    let nulls = if index.are_nulls_equal() { " NULLS NOT DISTINCT" } else { "" };
    let more = format!("{}{nulls}{condition}", include(index));
    format!("CREATE {unique}INDEX {name} ON {table} USING btree ({columns}){more}")
}

/// The words of INCLUDE.
fn include(index: &IndexObject<'_>) -> String {
    match index.included() {
        [] => String::new(),
        columns => format!(" INCLUDE ({})", list(index.table, columns.iter().copied())),
    }
}

/// One column of an index.
pub(super) fn of_index_column(
    catalog: &Catalog,
    index: &IndexObject<'_>,
    at: usize,
    pretty: bool,
) -> Option<String> {
    if let Some(column) = at.checked_sub(index.columns.len()) {
        return Some(list(index.table, [*index.included().get(column)?]));
    }
    Some(key_name(&writer(catalog, index, pretty), index, index.columns.get(at)?))
}

fn list(table: &Table, columns: impl IntoIterator<Item = ColumnNumber>) -> String {
    let name = |column| quoted(&table.relation.columns[usize::from(column)].name);
    columns.into_iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The words of a constraint behind its name.
pub(super) fn of_constraint(
    catalog: &Catalog,
    constraint: &Constraint<'_>,
    pretty: bool,
) -> Option<String> {
    let table = constraint.table;
    Some(match &constraint.demand {
        Demand::Key { index } => {
            let word = match (index.primary, index.are_nulls_equal()) {
                (true, _) => "PRIMARY KEY",
                (false, true) => "UNIQUE NULLS NOT DISTINCT",
                (false, false) => "UNIQUE",
            };
            let columns = list(table, index.columns.iter().map(|key| key.column));
            format!("{word} ({columns}){}", include(index))
        }
        Demand::Check(check) => {
            format!("CHECK ({})", of_check(catalog, table, check, pretty)?)
        }
        Demand::Foreign(key) => {
            let parent = catalog.table(&key.parent)?;
            let mut text = format!(
                "FOREIGN KEY ({}) REFERENCES {}({})",
                list(table, key.columns.iter().copied()),
                catalog.shown(&key.parent),
                list(parent, key.referred.iter().copied())
            );
            for (when, what) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if let Some(words) = action(what) {
                    text += &format!(" ON {when} {words}");
                }
            }
            text += match key.deferral {
                Deferral::No => "",
                Deferral::Deferrable => " DEFERRABLE",
                Deferral::Deferred => " DEFERRABLE INITIALLY DEFERRED",
            };
            text
        }
    })
}

/// The condition of a CHECK.
pub(super) fn of_check(
    catalog: &Catalog,
    table: &Table,
    check: &Check,
    pretty: bool,
) -> Option<String> {
    let writer = Writer { catalog, columns: Columns::Of(&table.relation), pretty, source: None };
    expression(&writer, &check.condition, None)
}

/// `pg_get_expr` with brackets only where they are needed: `text` is an expression of the table as
/// the catalog shows it with all of them.
pub(super) fn with_few_brackets(catalog: &Catalog, table: &Table, text: &str) -> Option<String> {
    let of_column = |at: usize, pretty| of_default(catalog, table, at, pretty);
    let columns = 0..table.columns.len();
    let mut defaults = columns.map(|at| [false, true].map(|pretty| of_column(at, pretty)));
    let mut checks = table
        .relation
        .checks
        .iter()
        .map(|check| [false, true].map(|pretty| of_check(catalog, table, check, pretty)));
    let mut indexes = indexes(table).flat_map(|index| {
        let predicate = [false, true].map(|pretty| of_predicate(catalog, &index, pretty));
        [predicate, [false, true].map(|pretty| of_expressions(catalog, &index, pretty))]
    });
    let is_own = |both: &[Option<String>; 2]| both[0].as_deref() == Some(text);
    let found = defaults.find(is_own).or_else(|| checks.find(is_own));
    let [_, pretty] = found.or_else(|| indexes.find(is_own))?;
    pretty
}

/// The words of what a foreign key does; none of what it does unless stated.
fn action(what: Referential) -> Option<&'static str> {
    Some(match what {
        Referential::NoAction => return None,
        Referential::Restrict => "RESTRICT",
        Referential::Cascade => "CASCADE",
        Referential::SetNull => "SET NULL",
        Referential::SetDefault => "SET DEFAULT",
    })
}

/// The default of a column, or the expression of a generated one; none of an identity, which has
/// no text.
pub(super) fn of_default(
    catalog: &Catalog,
    table: &Table,
    at: usize,
    pretty: bool,
) -> Option<String> {
    let info = table.columns.get(at)?;
    if info.identity.is_some() {
        return None;
    }
    let column = &table.relation.columns[at];
    let default = column.generated().or(info.default.as_ref())?;
    let kind = column.kind;
    // NULL is what a column without a default has, unless it is of a length.
    let is_null = matches!(&default.code[..], [Op::Constant(value)] if value.0.is_null());
    if is_null && kind.modifier == values::Modifier::NONE {
        return None;
    }
    let source = info.default_text.as_deref();
    let writer = Writer { catalog, columns: Columns::Of(&table.relation), pretty, source };
    expression(&writer, default, Some(kind)).or_else(|| info.default_text.clone())
}
