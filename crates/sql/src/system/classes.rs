//! Relations, their columns and indexes.

use super::definitions;
use super::objects::{
    BTREE, HEAP, INFORMATION_SCHEMA, IndexObject, OWNER, PG_CATALOG, column_number, columns,
    default_id, dropped_columns, indexes, number, rule_id,
};
use super::relations::{self, Known};
use super::rows::{Row, vector};
use super::session::{NAME, System};
use super::types::{alignment, collation, is_by_value, length, operator_class, storage};
use crate::catalog::{Catalog, Identity, Sequence, Table, Used, View};
use crate::ir::{ColumnNumber, Kind, Name, ObjectId, Op, SchemaId};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Datum, Type};

/// The rows of one of these relations.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let catalog = &*system.catalog;
    let new = || Row::of(relation);
    Some(match own {
        "pg_class" => classes(catalog, &new),
        "pg_attribute" => attributes(catalog, &new),
        "pg_attrdef" => defaults(catalog)
            .map(|(place, table, at, text)| {
                new()
                    .set("oid", default_id(place))
                    .set("adrelid", number(table.relation.id))
                    .set("adnum", at as i16 + 1)
                    .set("adbin", text)
            })
            .collect(),
        "pg_index" => all_indexes(catalog).map(|index| index_row(catalog, &index, new())).collect(),
        "pg_indexes" => all_indexes(catalog)
            .map(|index| {
                new()
                    .set("schemaname", schema_of(catalog, &index.table.relation.name))
                    .set("tablename", &*index.table.relation.name)
                    .set("indexname", index.name)
                    .set("indexdef", definitions::of_index(catalog, &index, false))
            })
            .collect(),
        "pg_sequence" => {
            shown_sequences(catalog).map(|sequence| sequence_row(sequence, new())).collect()
        }
        "pg_sequences" => {
            shown_sequences(catalog).map(|own| shown_sequence(system, own, new())).collect()
        }
        "pg_tables" => catalog
            .tables()
            .map(|table| {
                new()
                    .set("schemaname", schema_of(catalog, &table.relation.name))
                    .set("tablename", &*table.relation.name)
                    .set("tableowner", NAME)
                    .set("hasindexes", indexes(table).next().is_some())
                    .set("rowsecurity", table.row_security.is_enabled)
            })
            .collect(),
        "pg_stat_all_tables"
        | "pg_stat_user_tables"
        | "pg_statio_all_tables"
        | "pg_statio_user_tables" => catalog
            .tables()
            .map(|table| {
                new()
                    .set("relid", number(table.relation.id))
                    .set("schemaname", schema_of(catalog, &table.relation.name))
                    .set("relname", &*table.relation.name)
            })
            .collect(),
        "pg_stat_user_indexes" => {
            all_indexes(catalog).map(|own| counts_of(catalog, &own, new())).collect()
        }
        "pg_rewrite" => catalog.views().map(|view| rule_row(view, new())).collect(),
        "pg_views" => catalog.views().map(|view| view_row(catalog, view, new())).collect(),
        "pg_depend" => dependencies(catalog, &new),
        _ => return None,
    })
}

/// Sequences depend on the columns that own them, defaults on their columns and on the sequences
/// whose numbers they take, rules on their views and what those select from. `pg_dump` orders what
/// it states by them.
fn dependencies(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let id_of = |name| relations::known(name).map_or(0, |known| known.id);
    let (class, default) = (id_of("pg_catalog.pg_class"), id_of("pg_catalog.pg_attrdef"));
    let rewrite = id_of("pg_catalog.pg_rewrite");
    let row = |kind: i32, object: i32, on: (i32, i32), how: &str| {
        new()
            .set("classid", kind)
            .set("objid", object)
            .set("refclassid", class)
            .set("refobjid", on.0)
            .set("refobjsubid", on.1)
            .set("deptype", how)
    };
    let column = |table: &Table, at: usize| (number(table.relation.id), at as i32 + 1);
    let owned = owned_sequences(catalog).map(|(table, at, sequence, is_identity)| {
        let how = if is_identity { "i" } else { "a" };
        row(class, number(sequence), column(table, at), how)
    });
    let mut all: Vec<Row> = owned.collect();
    for (place, table, at, _) in defaults(catalog) {
        let id = default_id(place);
        all.push(row(default, id, column(table, at), "a"));
        let code = table.columns[at].default.iter().flat_map(|value| &value.code);
        let taken = code.filter_map(|op| if let Op::Next(id) = op { Some(*id) } else { None });
        all.extend(taken.map(|sequence| row(default, id, (number(sequence), 0), "n")));
    }
    for view in catalog.views() {
        let (rule, own) = (rule_id(view.id), (number(view.id), 0));
        all.extend(["i", "n"].map(|how| row(rewrite, rule, own, how)));
        let places = view.uses.iter().flat_map(|used| places_used(catalog, used));
        all.extend(places.map(|place| row(rewrite, rule, place, "n")));
    }
    all
}

/// What a view uses of a table or view: the id, and the numbers of the columns, or 0 if it uses
/// rows without a column.
fn places_used(catalog: &Catalog, used: &Used) -> Vec<(i32, i32)> {
    let (id, columns): (ObjectId, Vec<usize>) =
        match (catalog.table(&used.relation), catalog.view(&used.relation)) {
            (Some(table), _) => {
                let columns = used.columns.iter().filter_map(|name| table.column(name));
                (table.relation.id, columns.map(usize::from).collect())
            }
            (None, Some(view)) => {
                let columns = view.columns.iter().enumerate();
                let named = columns.filter(|(_, column)| used.columns.contains(&column.name));
                (view.id, named.map(|(at, _)| at).collect())
            }
            (None, None) => return Vec::new(),
        };
    match columns.is_empty() {
        true => vec![(number(id), 0)],
        false => columns.into_iter().map(|at| (number(id), at as i32 + 1)).collect(),
    }
}

/// The rule by which a view has rows.
fn rule_row(view: &View, row: Row) -> Row {
    row.set("oid", rule_id(view.id))
        .set("rulename", "_RETURN")
        .set("ev_class", number(view.id))
        .set("ev_type", "1")
        .set("ev_enabled", "O")
        .set("is_instead", true)
}

/// The name of the schema of a relation.
fn schema_of<'c>(catalog: &'c Catalog, name: &Name) -> &'c str {
    catalog.schema_name(name.schema)
}

fn all_indexes(catalog: &Catalog) -> impl Iterator<Item = IndexObject<'_>> {
    catalog.tables().flat_map(|table| indexes(table))
}

/// The sequences without those of hidden columns.
pub(super) fn shown_sequences(catalog: &Catalog) -> impl Iterator<Item = &Arc<Sequence>> {
    let hidden: BTreeSet<_> = catalog
        .tables()
        .flat_map(|table| {
            let all = table.relation.columns.iter().zip(&table.columns);
            all.filter(|(column, _)| column.is_hidden()).filter_map(|(_, info)| info.sequence)
        })
        .collect();
    catalog.sequences().filter(move |sequence| !hidden.contains(&sequence.id))
}

/// Sequences that belong to columns: table, place of the column, sequence, whether of identity.
pub(super) fn owned_sequences(
    catalog: &Catalog,
) -> impl Iterator<Item = (&Arc<Table>, usize, ObjectId, bool)> {
    catalog.tables().flat_map(|table| {
        let all = table.columns.iter().enumerate();
        all.filter_map(move |(at, info)| {
            let is_hidden = table.relation.columns[at].is_hidden();
            let sequence = info.sequence.filter(|_| !is_hidden)?;
            Some((table, at, sequence, info.identity.is_some()))
        })
    })
}

/// Defaults with their place, table, place of the column, and text.
fn defaults(catalog: &Catalog) -> impl Iterator<Item = (usize, &Arc<Table>, usize, String)> {
    let all = catalog.tables().flat_map(move |table| {
        let all = table.relation.columns.iter().enumerate();
        let visible = all.filter(|(_, column)| !column.is_hidden());
        visible.filter_map(move |(at, _)| {
            Some((table, at, definitions::of_default(catalog, table, at, false)?))
        })
    });
    all.enumerate().map(|(place, (table, at, text))| (place, table, at, text))
}

fn classes(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let mut all: Vec<Row> = relations::all().map(|known| system_class(known, new())).collect();
    let own = |id: i32, name: &Name, kind: &str, columns: usize| {
        new()
            .set("oid", id)
            .set("relname", &*name.own)
            .set("relnamespace", name.schema.number() as i32)
            .set("relowner", OWNER)
            .set("relfilenode", id)
            .set("relkind", kind)
            .set("relpersistence", if name.schema == SchemaId::TEMPORARY { "t" } else { "p" })
            .set("relreplident", if kind == "r" { "d" } else { "n" })
            .set("relispopulated", true)
            .set("reltuples", -1.0_f32)
            .set("relnatts", columns as i16)
    };
    for table in catalog.tables() {
        let relation = &table.relation;
        let refers = catalog
            .foreign_keys()
            .any(|key| key.child == relation.name || key.parent == relation.name);
        all.push(
            own(number(relation.id), &relation.name, "r", columns(table).count())
                .set("relam", HEAP)
                .set("relhasindex", indexes(table).next().is_some())
                .set("relchecks", relation.checks.len() as i16)
                .set("relrowsecurity", table.row_security.is_enabled)
                .set("relforcerowsecurity", table.row_security.is_forced)
                .set("relhastriggers", refers),
        );
        for index in indexes(table) {
            let name = relation.name.beside(index.name);
            let columns = index.columns.len() + index.included().len();
            all.push(own(index.id, &name, "i", columns).set("relam", BTREE));
        }
    }
    for sequence in shown_sequences(catalog) {
        all.push(own(number(sequence.id), &sequence.name, "S", 3));
    }
    for view in catalog.views() {
        let row = own(number(view.id), &view.name, "v", view.columns.len());
        all.push(row.set("relfilenode", 0).set("relhasrules", true).set("reltuples", 0.0_f32));
    }
    all
}

fn system_class(known: &Known, row: Row) -> Row {
    let (schema, name) = known.parts();
    let is_standard = schema == "information_schema";
    row.set("oid", known.id)
        .set("relname", name)
        .set("relnamespace", if is_standard { INFORMATION_SCHEMA } else { PG_CATALOG })
        .set("relowner", OWNER)
        .set("relkind", if known.is_view() { "v" } else { "r" })
        .set("relam", if known.is_view() { 0 } else { HEAP })
        .set("relpersistence", "p")
        .set("relreplident", "n")
        .set("relispopulated", true)
        .set("relnatts", known.columns.len() as i16)
}

fn attributes(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let mut all = Vec::new();
    for known in relations::all() {
        for (at, (name, kind)) in known.columns.iter().enumerate() {
            all.push(attribute(new(), known.id, name, at as i16 + 1, *kind));
        }
    }
    for table in catalog.tables() {
        let id = number(table.relation.id);
        for (at, column, info) in columns(table) {
            let place = usize::from(at.unsigned_abs()) - 1;
            let has_default = definitions::of_default(catalog, table, place, false).is_some();
            let letter = match info.identity {
                Some(Identity::Always) => "a",
                Some(Identity::ByDefault) => "d",
                None => "",
            };
            all.push(
                attribute(new(), id, &column.name, at, column.kind)
                    .set("attnotnull", !column.nullable)
                    .set("atthasdef", has_default)
                    .set("attidentity", letter)
                    .set("attgenerated", if column.generated().is_some() { "s" } else { "" }),
            );
        }
        all.extend(dropped_columns(table).map(|at| dropped_attribute(new(), id, at)));
        for index in indexes(table) {
            let names = definitions::index_columns(catalog, &index);
            let included =
                |column: &ColumnNumber| index.table.relation.columns[usize::from(*column)].kind;
            let kinds = index.columns.iter().map(|key| index.kind(key));
            let kinds = kinds.chain(index.included().iter().map(included));
            for (at, (kind, name)) in kinds.zip(names).enumerate() {
                all.push(attribute(new(), index.id, &name, at as i16 + 1, kind));
            }
        }
    }
    for view in catalog.views() {
        for (at, column) in view.columns.iter().enumerate() {
            let id = number(view.id);
            all.push(attribute(new(), id, &column.name, at as i16 + 1, column.kind));
        }
    }
    for sequence in shown_sequences(catalog) {
        let columns =
            [("last_value", Type::Int8), ("log_cnt", Type::Int8), ("is_called", Type::Bool)];
        for (at, (name, ty)) in columns.into_iter().enumerate() {
            let row = attribute(new(), number(sequence.id), name, at as i16 + 1, Kind::plain(ty));
            all.push(row.set("attnotnull", true));
        }
    }
    all
}

/// The row of a column that is not there any more: numbers of columns have no gaps.
fn dropped_attribute(row: Row, relation: i32, at: i16) -> Row {
    row.set("attrelid", relation)
        .set("attname", format!("........pg.dropped.{at}........"))
        .set("attnum", at)
        .set("attisdropped", true)
        .set("attislocal", true)
}

fn attribute(row: Row, relation: i32, name: &str, at: i16, kind: Kind) -> Row {
    row.set("attrelid", relation)
        .set("attname", name)
        .set("atttypid", kind.ty.oid().number() as i32)
        .set("attlen", length(kind.ty))
        .set("attnum", at)
        .set("attndims", i32::from(kind.ty.element().is_some()))
        .set("atttypmod", kind.modifier.number_of(kind.ty))
        .set("attstattarget", -1)
        .set("attcacheoff", -1)
        .set("attbyval", is_by_value(kind.ty))
        .set("attalign", alignment(kind.ty))
        .set("attstorage", storage(kind.ty))
        .set("attislocal", true)
        .set("attcollation", collation(kind.ty))
}

/// An index with what is counted of it: nothing.
fn counts_of(catalog: &Catalog, index: &IndexObject<'_>, row: Row) -> Row {
    row.set("relid", number(index.table.relation.id))
        .set("indexrelid", index.id)
        .set("schemaname", schema_of(catalog, &index.table.relation.name))
        .set("relname", &*index.table.relation.name)
        .set("indexrelname", index.name)
}

fn index_row(catalog: &Catalog, index: &IndexObject<'_>, row: Row) -> Row {
    let relation = &index.table.relation;
    let count = index.columns.len() as i16;
    let types = || {
        let columns = index.columns.iter();
        columns.map(|key| index.kind(key).ty)
    };
    let options = index
        .columns
        .iter()
        .map(|key| Datum::Int2(i16::from(key.descending) | i16::from(key.nulls_first) << 1));
    let keys = index.columns.iter().map(|key| match key.computed() {
        Some(_) => Datum::Int2(0),
        None => Datum::Int2(column_number(key.column)),
    });
    let included = index.included().iter();
    let keys = keys.chain(included.map(|column| Datum::Int2(column_number(*column))));
    row.set("indexrelid", index.id)
        .set("indrelid", number(relation.id))
        .set("indnatts", count + index.included().len() as i16)
        .set("indnkeyatts", count)
        .set("indisunique", index.unique)
        .set("indnullsnotdistinct", index.are_nulls_equal())
        .set("indisprimary", index.primary)
        .set("indimmediate", true)
        .set("indisvalid", true)
        .set("indisready", true)
        .set("indislive", true)
        .set("indkey", vector(Type::Int2, keys.collect()))
        .set("indexprs", definitions::of_expressions(catalog, index, false))
        .set("indpred", definitions::of_predicate(catalog, index, false))
        .set(
            "indcollation",
            vector(Type::Oid, types().map(|ty| Datum::Int4(collation(ty))).collect()),
        )
        .set(
            "indclass",
            vector(Type::Oid, types().map(|ty| Datum::Int4(operator_class(ty))).collect()),
        )
        .set("indoption", vector(Type::Int2, options.collect()))
}

fn sequence_row(sequence: &Sequence, row: Row) -> Row {
    row.set("seqrelid", number(sequence.id))
        .set("seqtypid", sequence.kind.ty.oid().number() as i32)
        .set("seqstart", sequence.start)
        .set("seqincrement", sequence.increment)
        .set("seqmax", sequence.maximum)
        .set("seqmin", sequence.minimum)
        .set("seqcache", 1_i64)
        .set("seqcycle", sequence.cycle)
}

fn shown_sequence(system: &System, sequence: &Sequence, row: Row) -> Row {
    // A definition reads no numbers.
    let last = system.last_of_sequence(number(sequence.id)).unwrap_or(Datum::Null);
    row.set("schemaname", schema_of(&system.catalog, &sequence.name))
        .set("last_value", last)
        .set("sequencename", &*sequence.name)
        .set("sequenceowner", NAME)
        .set("data_type", sequence.kind.ty.oid().number() as i32)
        .set("start_value", sequence.start)
        .set("min_value", sequence.minimum)
        .set("max_value", sequence.maximum)
        .set("increment_by", sequence.increment)
        .set("cycle", sequence.cycle)
        .set("cache_size", 1_i64)
}

fn view_row(catalog: &Catalog, view: &View, row: Row) -> Row {
    row.set("schemaname", schema_of(catalog, &view.name))
        .set("viewname", &*view.name)
        .set("viewowner", NAME)
        .set("definition", definitions::of_view(catalog, view))
}

/// `pg_get_serial_sequence`: the sequence of a table's column.
pub(super) fn serial_sequence(catalog: &Catalog, table: i32, column: &str) -> Option<String> {
    let is_own = |(own, at, ..): &(&Arc<Table>, usize, ObjectId, bool)| {
        number(own.relation.id) == table && own.relation.columns[*at].name == column
    };
    let (_, _, id, _) = owned_sequences(catalog).find(is_own)?;
    Some(catalog.shown_if(&catalog.sequence_by_id(id)?.name, false))
}
