//! The objects of the catalog with their object ids. Primary keys and constraints have none of
//! their own in the catalog: theirs are made from those of their tables and indexes.

use crate::catalog::{Catalog, ColumnInfo, ForeignKey, NAME, Sequence, Table, View};
use crate::ir::{Check, Column, ColumnNumber, Index, KeyColumn, Kind, ObjectId};
use std::sync::Arc;

/// Object ids of PostgreSQL that clients know.
pub(super) const PG_CATALOG: i32 = 11;
pub(super) const PUBLIC: i32 = 2_200;
pub(super) const INFORMATION_SCHEMA: i32 = 13_204;
pub(super) const OWNER: i32 = 10;
pub(super) const HEAP: i32 = 2;
pub(super) const BTREE: i32 = 403;

/// PostgreSQL's number of encoding UTF8.
pub(super) const UTF8: i32 = 6;

/// The id of the default database, which is that of PostgreSQL's `postgres`.
const DEFAULT_DATABASE: i32 = 5;
/// The first id that is not one of PostgreSQL's own.
const FIRST_DATABASE: u32 = 16_384;
/// PostgreSQL's templates with their ids, which a server of several databases shows.
pub(super) const TEMPLATES: [(&str, i32); 2] = [("template1", 1), ("template0", 4)];

/// Returns the id of a database, which follows from its name.
pub(super) fn database_id(name: &str) -> i32 {
    if name == NAME {
        return DEFAULT_DATABASE;
    }
    if let Some((_, id)) = TEMPLATES.iter().find(|template| template.0 == name) {
        return *id;
    }
    // FNV-1a.
    let mixed = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    let hash = name.bytes().fold(2_166_136_261, mixed);
    (FIRST_DATABASE + hash % (i32::MAX as u32 - FIRST_DATABASE)).cast_signed()
}

/// Ids of statements' objects are below this one.
const MADE: u32 = 1 << 29;

/// The number of an object that a statement made.
pub(super) fn number(id: ObjectId) -> i32 {
    (id.number() % MADE) as i32
}

fn of_kind(kind: u32, id: ObjectId) -> i32 {
    number(id) + (kind * MADE) as i32
}

/// The object id of the rule by which a view has rows.
pub(super) fn rule_id(view: ObjectId) -> i32 {
    of_kind(2, view)
}

/// The object id of the default of a column: the place among all defaults.
pub(super) fn default_id(place: usize) -> i32 {
    (3 * MADE + MADE / 2 + place as u32 % (MADE / 2)) as i32
}

/// An index, which may be that of a primary key.
pub(super) struct IndexObject<'c> {
    pub(super) id: i32,
    pub(super) name: &'c str,
    pub(super) table: &'c Table,
    pub(super) columns: &'c [KeyColumn],
    pub(super) unique: bool,
    pub(super) primary: bool,
    /// What the catalog has of it, of one that is no primary key.
    pub(super) own: Option<&'c Index>,
}

impl IndexObject<'_> {
    /// The type of a column of its key.
    pub(super) fn kind(&self, key: &KeyColumn) -> Kind {
        match self.own.and_then(|own| own.expression_of(key)) {
            Some(computed) => computed.kind,
            None => self.table.relation.columns[usize::from(key.column)].kind,
        }
    }

    /// The columns of INCLUDE.
    pub(super) fn included(&self) -> &[ColumnNumber] {
        self.own.map_or(&[], Index::included)
    }

    /// Whether NULL is a value as others in its keys.
    pub(super) fn are_nulls_equal(&self) -> bool {
        self.own.is_some_and(Index::are_nulls_equal)
    }

    /// Whether it is a constraint of the table, too.
    pub(super) fn is_constraint(&self) -> bool {
        self.own.is_none_or(Index::is_constraint)
    }
}

/// What a constraint demands.
pub(super) enum Demand<'c> {
    Key { index: IndexObject<'c> },
    Check(&'c Check),
    Foreign(&'c ForeignKey),
}

/// A constraint.
pub(super) struct Constraint<'c> {
    pub(super) id: i32,
    pub(super) name: &'c str,
    pub(super) table: &'c Table,
    pub(super) demand: Demand<'c>,
}

/// The number of a column, from 1.
pub(super) fn column_number(column: ColumnNumber) -> i16 {
    usize::from(column) as i16 + 1
}

/// The columns of a table that statements can name, with their numbers.
pub(super) fn columns(table: &Table) -> impl Iterator<Item = (i16, &Column, &ColumnInfo)> {
    let both = table.relation.columns.iter().zip(&table.columns).enumerate();
    both.filter(|(_, (column, _))| !column.is_hidden())
        .map(|(at, (column, info))| (at as i16 + 1, column, info))
}

/// The numbers of the columns before the last one that statements cannot name: they were dropped.
pub(super) fn dropped_columns(table: &Table) -> impl Iterator<Item = i16> {
    let all = &table.relation.columns;
    let end = all.iter().rposition(|column| !column.is_hidden()).unwrap_or(0);
    let hidden = all[..end].iter().enumerate().filter(|(_, column)| column.is_hidden());
    hidden.map(|(at, _)| at as i16 + 1)
}

/// The indexes of a table that statements can name, that of the primary key first.
pub(super) fn indexes(table: &Table) -> impl Iterator<Item = IndexObject<'_>> {
    let relation = &table.relation;
    let primary = (!relation.has_hidden_key()).then(|| IndexObject {
        id: of_kind(1, relation.id),
        name: &relation.primary_name,
        table,
        columns: &relation.primary,
        unique: true,
        primary: true,
        own: None,
    });
    let shown = relation.indexes.iter().filter(|index| !index.is_hidden());
    let others = shown.map(move |index| IndexObject {
        id: number(index.id),
        name: &index.name,
        table,
        columns: &index.columns,
        unique: index.is_unique(),
        primary: false,
        own: Some(index),
    });
    primary.into_iter().chain(others)
}

/// All constraints, table by table.
pub(super) fn constraints(catalog: &Catalog) -> Vec<Constraint<'_>> {
    let mut all = Vec::new();
    let mut checks = 0;
    for table in catalog.tables() {
        for index in indexes(table).filter(IndexObject::is_constraint) {
            let id = (index.id as u32 % MADE + 2 * MADE) as i32;
            all.push(Constraint { id, name: index.name, table, demand: Demand::Key { index } });
        }
        for check in &table.relation.checks {
            let id = (3 * MADE + checks % (MADE / 2)) as i32;
            checks += 1;
            all.push(Constraint { id, name: &check.name, table, demand: Demand::Check(check) });
        }
        let own = |key: &&Arc<ForeignKey>| key.child == table.relation.name;
        for key in catalog.foreign_keys().filter(own) {
            let id = number(key.id);
            all.push(Constraint { id, name: &key.name, table, demand: Demand::Foreign(key) });
        }
    }
    all
}

/// The index of a parent that a foreign key refers to.
pub(super) fn referred_index(catalog: &Catalog, key: &ForeignKey) -> i32 {
    let Some(parent) = catalog.table(&key.parent) else { return 0 };
    let fits = |index: &IndexObject<'_>| {
        index.unique
            && index.own.is_none_or(|own| own.special().is_none())
            && index.columns.len() == key.referred.len()
            && index.columns.iter().all(|each| key.referred.contains(&each.column))
    };
    indexes(parent).find(fits).map_or(0, |index| index.id)
}

/// The table of a number.
pub(super) fn table(catalog: &Catalog, id: i32) -> Option<&Arc<Table>> {
    catalog.tables().find(|table| number(table.relation.id) == id)
}

/// The view of a number.
pub(super) fn view(catalog: &Catalog, id: i32) -> Option<&Arc<View>> {
    catalog.views().find(|view| number(view.id) == id)
}

/// The sequence of a number.
pub(super) fn sequence(catalog: &Catalog, id: i32) -> Option<&Arc<Sequence>> {
    catalog.sequences().find(|sequence| number(sequence.id) == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positive_and_differ() {
        let names = ["nvcaracal", "template0", "template1", "postgres", "a", "b", "test_shop"];
        let mut ids: Vec<i32> = names.into_iter().map(database_id).collect();
        assert_eq!(ids[..3], [5, 4, 1]);
        assert!(ids[3..].iter().all(|id| *id >= 16_384), "{ids:?}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), names.len());
    }
}
