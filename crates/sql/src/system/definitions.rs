//! Indexes, constraints and defaults as the statements that make them.

use super::names::quoted;
use super::objects::{Constraint, Demand, IndexObject};
use super::shown::{Writer, expression};
use crate::catalog::{Catalog, Table, View};
use crate::ir::{ColumnNumber, KeyColumn, Referential};

/// The query of a view, as `pg_get_viewdef` shows it.
pub(super) fn of_view(view: &View) -> String {
    format!(" {};", view.text)
}

/// A column of a key, with its order.
fn key_column(table: &Table, key: &KeyColumn) -> String {
    let name = quoted(&table.relation.columns[usize::from(key.column)].name);
    match (key.descending, key.nulls_first) {
        (false, false) => name,
        (false, true) => format!("{name} NULLS FIRST"),
        (true, true) => format!("{name} DESC"),
        (true, false) => format!("{name} DESC NULLS LAST"),
    }
}

/// CREATE INDEX.
pub(super) fn of_index(index: &IndexObject<'_>, pretty: bool) -> String {
    let columns: Vec<String> =
        index.columns.iter().map(|key| key_column(index.table, key)).collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let (name, table) = (quoted(index.name), quoted(&index.table.relation.name));
    let schema = if pretty { "" } else { "public." };
    format!("CREATE {unique}INDEX {name} ON {schema}{table} USING btree ({})", columns.join(", "))
}

/// One column of an index.
pub(super) fn of_index_column(index: &IndexObject<'_>, at: usize) -> Option<String> {
    let key = index.columns.get(at)?;
    Some(quoted(&index.table.relation.columns[usize::from(key.column)].name))
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
        Demand::Key { primary, columns, .. } => {
            let word = if *primary { "PRIMARY KEY" } else { "UNIQUE" };
            format!("{word} ({})", list(table, columns.iter().map(|key| key.column)))
        }
        Demand::Check(check) => {
            let writer = Writer { catalog, relation: &table.relation, pretty };
            let text = expression(&writer, &check.condition, None)?;
            if pretty { format!("CHECK ({text})") } else { format!("CHECK (({text}))") }
        }
        Demand::Foreign(key) => {
            let parent = catalog.table(&key.parent)?;
            let mut text = format!(
                "FOREIGN KEY ({}) REFERENCES {}({})",
                list(table, key.columns.iter().copied()),
                quoted(&key.parent),
                list(parent, key.referred.iter().copied())
            );
            for (when, what) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if let Some(words) = action(what) {
                    text += &format!(" ON {when} {words}");
                }
            }
            if key.is_deferrable {
                text += " DEFERRABLE";
            }
            text
        }
    })
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

/// The default of a column; none of an identity, which has no text.
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
    let default = info.default.as_ref()?;
    let writer = Writer { catalog, relation: &table.relation, pretty };
    let kind = table.relation.columns[at].kind;
    expression(&writer, default, Some(kind)).or_else(|| info.default_text.clone())
}
