//! Comments on objects, as `pg_description` and its functions have them.

use super::names::made_class;
use super::objects::{IndexObject, PUBLIC, constraints, database_id, indexes, number, table, view};
use super::relations::{self, Known};
use super::rows::Row;
use super::session::System;
use crate::catalog::{Catalog, Comment, Commented};
use crate::ir::{ColumnNumber, Name, SchemaId};
use values::Oid;

const PG_CLASS: &str = "pg_catalog.pg_class";
const PG_CONSTRAINT: &str = "pg_catalog.pg_constraint";
const PG_TYPE: &str = "pg_catalog.pg_type";
const PG_NAMESPACE: &str = "pg_catalog.pg_namespace";

/// Comments on schemas that are there from the beginning, as in PostgreSQL.
const OF_SCHEMAS: [(i32, &str); 2] =
    [(super::objects::PG_CATALOG, "system catalog schema"), (PUBLIC, "standard public schema")];

fn class(name: &str) -> i32 {
    relations::known(name).map_or(0, |known| known.id)
}

/// The rows of one of these relations.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let catalog = &*system.catalog;
    match own {
        "pg_description" => Some(descriptions(catalog, relation)),
        "pg_shdescription" => {
            let row = |comment: &Comment| {
                Row::of(relation)
                    .set("objoid", database_id(catalog.database()))
                    .set("classoid", class("pg_catalog.pg_database"))
                    .set("description", comment.text.as_str())
            };
            Some(catalog.comment_on(&Commented::Database).map(|own| row(own)).into_iter().collect())
        }
        _ => None,
    }
}

fn descriptions(catalog: &Catalog, relation: &'static Known) -> Vec<Row> {
    let row = |id: i32, class_name: &str, at: i32, text: &str| {
        Row::of(relation)
            .set("objoid", id)
            .set("classoid", class(class_name))
            .set("objsubid", at)
            .set("description", text)
    };
    let of_schemas = OF_SCHEMAS
        .iter()
        .filter_map(|(id, _)| Some(row(*id, PG_NAMESPACE, 0, &of_schema(catalog, *id)?)));
    let all_constraints = constraints(catalog);
    let made = catalog.comments().filter_map(|comment| {
        let text = comment.text.as_str();
        Some(match &comment.on {
            Commented::Schema | Commented::Database => return None,
            Commented::OtherSchema(id) => row(id.number() as i32, PG_NAMESPACE, 0, text),
            Commented::Table(name) | Commented::View(name) => {
                row(relation_id(catalog, name)?, PG_CLASS, 0, text)
            }
            Commented::Column(name, at) => {
                row(relation_id(catalog, name)?, PG_CLASS, usize::from(*at) as i32 + 1, text)
            }
            Commented::Index(name) => {
                let mut all = catalog.tables().flat_map(|table| indexes(table));
                let is_own = |index: &IndexObject<'_>| {
                    let schema = index.table.relation.name.schema;
                    index.name == name.own && schema == name.schema
                };
                row(all.find(is_own)?.id, PG_CLASS, 0, text)
            }
            Commented::Sequence(name) => row(number(catalog.sequence(name)?.id), PG_CLASS, 0, text),
            Commented::Type(name) => {
                row(catalog.enum_named(name)?.oid().number() as i32, PG_TYPE, 0, text)
            }
            Commented::Constraint(table, name) => {
                let mut all = all_constraints.iter();
                let own = all.find(|own| own.name == name && own.table.relation.name == *table)?;
                row(own.id, PG_CONSTRAINT, 0, text)
            }
        })
    });
    of_schemas.chain(made).collect()
}

fn relation_id(catalog: &Catalog, name: &Name) -> Option<i32> {
    match catalog.table(name) {
        Some(table) => Some(number(table.relation.id)),
        None => catalog.view(name).map(|view| number(view.id)),
    }
}

/// The comment on a schema: PostgreSQL's own unless there is another one, or it was removed.
fn of_schema(catalog: &Catalog, id: i32) -> Option<String> {
    if let Some(own) = catalog.comment_on(&Commented::Schema).filter(|_| id == PUBLIC) {
        return Some(own.text.clone()).filter(|text| !text.is_empty());
    }
    let other = u32::try_from(id).ok().map(|id| Commented::OtherSchema(SchemaId::new(id)));
    if let Some(own) = other.and_then(|other| catalog.comment_on(&other)) {
        return Some(own.text.clone());
    }
    let known = OF_SCHEMAS.iter().find(|schema| schema.0 == id)?;
    Some(known.1.to_owned())
}

fn text(catalog: &Catalog, on: &Commented) -> Option<String> {
    catalog.comment_on(on).map(|comment| comment.text.clone())
}

/// `obj_description`: the comment on the object with this id, in this catalog or in any.
pub(super) fn of_object(catalog: &Catalog, id: i32, of: Option<&str>) -> Option<String> {
    let is = |name: &str| of.is_none_or(|of| name.strip_prefix("pg_catalog.") == Some(of));
    let of_class = || text(catalog, &class_object(catalog, id)?);
    let of_constraint = || {
        let all = constraints(catalog);
        let own = all.iter().find(|own| own.id == id)?;
        let table = own.table.relation.name.clone();
        text(catalog, &Commented::Constraint(table, own.name.to_owned()))
    };
    let of_type = || {
        let oid = Oid::new(id as u32);
        let own = catalog.enums().find(|ty| ty.oid() == oid)?;
        text(catalog, &Commented::Type(catalog.name_of_type(own)))
    };
    let mut found = None;
    if is(PG_CLASS) {
        found = of_class();
    }
    if is(PG_CONSTRAINT) {
        found = found.or_else(of_constraint);
    }
    if is(PG_TYPE) {
        found = found.or_else(of_type);
    }
    if is(PG_NAMESPACE) {
        found = found.or_else(|| of_schema(catalog, id));
    }
    found
}

/// The relation with this id.
fn class_object(catalog: &Catalog, id: i32) -> Option<Commented> {
    let name = made_class(catalog, id)?;
    Some(if table(catalog, id).is_some() {
        Commented::Table(name)
    } else if view(catalog, id).is_some() {
        Commented::View(name)
    } else if catalog.sequence(&name).is_some_and(|own| number(own.id) == id) {
        Commented::Sequence(name)
    } else {
        Commented::Index(name)
    })
}

/// `col_description`: the comment on a column of a table or view.
pub(super) fn of_column(catalog: &Catalog, id: i32, at: i32) -> Option<String> {
    let place = usize::try_from(at).ok()?.checked_sub(1)?;
    let name = match (table(catalog, id), view(catalog, id)) {
        (Some(table), _) => &table.relation.name,
        (None, view) => &view?.name,
    };
    let is_number = place < values::row::COLUMNS_MAX;
    let on = is_number.then(|| Commented::Column(name.clone(), ColumnNumber::at(place)))?;
    text(catalog, &on)
}

/// `shobj_description`: the comment on the database.
pub(super) fn of_shared(catalog: &Catalog, id: i32, of: &str) -> Option<String> {
    let is_own = id == database_id(catalog.database()) && of == "pg_database";
    is_own.then(|| text(catalog, &Commented::Database)).flatten()
}
