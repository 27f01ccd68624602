//! Constraints.

use super::definitions;
use super::objects::{Constraint, Demand, column_number, constraints, number, referred_index};
use super::relations::Known;
use super::rows::{Row, numbers};
use super::session::System;
use crate::catalog::{Catalog, Deferral};
use crate::ir::{Op, Referential};
use std::collections::BTreeSet;

/// The rows of one of these relations.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let catalog = &*system.catalog;
    Some(match own {
        "pg_constraint" => constraints(catalog)
            .iter()
            .map(|constraint| row(catalog, constraint, Row::of(relation)))
            .collect(),
        _ => return None,
    })
}

fn row(catalog: &Catalog, constraint: &Constraint<'_>, row: Row) -> Row {
    let row = row
        .set("oid", constraint.id)
        .set("conname", constraint.name)
        .set("connamespace", constraint.table.relation.name.schema.number() as i32)
        .set("convalidated", true)
        .set("conrelid", number(constraint.table.relation.id))
        .set("conislocal", true)
        .set("confupdtype", " ")
        .set("confdeltype", " ")
        .set("confmatchtype", " ");
    match &constraint.demand {
        Demand::Key { index } => row
            .set("contype", if index.primary { "p" } else { "u" })
            .set("connoinherit", true)
            .set("conindid", index.id)
            .set("conkey", numbers(index.columns.iter().map(|key| column_number(key.column)))),
        Demand::Check(check) => {
            let named: BTreeSet<i16> = check
                .condition
                .code
                .iter()
                .filter_map(|op| match op {
                    Op::Column(column) => Some(column_number(*column)),
                    _ => None,
                })
                .collect();
            let text = definitions::of_check(catalog, constraint.table, check, false);
            row.set("contype", "c").set("conkey", numbers(named)).set("conbin", text)
        }
        Demand::Foreign(key) => row
            .set("contype", "f")
            .set("connoinherit", true)
            .set("condeferrable", key.deferral != Deferral::No)
            .set("condeferred", key.deferral == Deferral::Deferred)
            .set("conindid", referred_index(catalog, key))
            .set("confrelid", catalog.table(&key.parent).map(|table| number(table.relation.id)))
            .set("confupdtype", letter(key.on_update))
            .set("confdeltype", letter(key.on_delete))
            .set("confmatchtype", "s")
            .set("conkey", numbers(key.columns.iter().copied().map(column_number)))
            .set("confkey", numbers(key.referred.iter().copied().map(column_number))),
    }
}

fn letter(action: Referential) -> &'static str {
    match action {
        Referential::NoAction => "a",
        Referential::Restrict => "r",
        Referential::Cascade => "c",
        Referential::SetNull => "n",
        Referential::SetDefault => "d",
    }
}
