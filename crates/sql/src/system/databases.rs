//! The databases of a server.

use super::objects::{OWNER, TEMPLATES, UTF8, database_id};
use super::relations::Known;
use super::rows::Row;
use super::session::System;

/// The rows of `pg_database`.
pub(super) fn rows(system: &System, relation: &'static Known) -> Vec<Row> {
    let own = system.catalog.database();
    let others = system.services.as_ref().map(|services| services.databases()).unwrap_or_default();
    let templates = TEMPLATES.iter().filter(|_| !others.is_empty());
    let templates = templates.map(|(name, _)| row(name, true, relation));
    let others = others.iter().filter(|name| **name != own);
    let others = others.map(|name| row(name, false, relation));
    [row(own, false, relation)].into_iter().chain(others).chain(templates).collect()
}

fn row(name: &str, is_template: bool, relation: &'static Known) -> Row {
    Row::of(relation)
        .set("oid", database_id(name))
        .set("datname", name)
        .set("datdba", OWNER)
        .set("encoding", UTF8)
        .set("datlocprovider", "c")
        .set("datistemplate", is_template)
        .set("datallowconn", !is_template)
        .set("datconnlimit", -1)
        .set("dattablespace", 1_663)
        .all(&["datcollate", "datctype"], "C")
}
