//! `information_schema`.

use super::classes::{owned_sequences, shown_sequences};
use super::definitions;
use super::names::{ROLES, schemas};
use super::objects::{Constraint, Demand, columns, constraints, indexes, referred_index};
use super::relations::{self, Known};
use super::rows::Row;
use super::session::{NAME, System};
use super::type_names::short_name;
use crate::bind::writable_columns;
use crate::catalog::{Catalog, Deferral, Identity, SYSTEM_SCHEMAS, Table, View};
use crate::ir::{ColumnNumber, Expression, Kind, Name, Op, Referential, SchemaId};
use std::collections::BTreeSet;
use values::Type;

/// The rows of one of these relations.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    let catalog = &*system.catalog;
    let new = || Row::of(relation);
    Some(match own {
        "information_schema_catalog_name" => vec![new().set("catalog_name", catalog.database())],
        "schemata" => schemas(catalog)
            .map(|(_, name, owner)| {
                let owner = ROLES.iter().find(|role| role.0 == owner).map(|role| role.1);
                new()
                    .set("catalog_name", catalog.database())
                    .set("schema_name", name)
                    .set("schema_owner", owner)
            })
            .collect(),
        "tables" => tables(catalog, &new),
        "columns" => all_columns(catalog, &new),
        "views" => catalog
            .views()
            .map(|view| {
                let is_writable = yes(is_writable(catalog, view));
                let by_triggers =
                    ["is_trigger_updatable", "is_trigger_deletable", "is_trigger_insertable_into"];
                of_relation(catalog, new(), &view.name)
                    .set("view_definition", definitions::of_view(catalog, view))
                    .set("check_option", "NONE")
                    .all(&["is_updatable", "is_insertable_into"], is_writable)
                    .all(&by_triggers, yes(false))
            })
            .collect(),
        "sequences" => sequences(catalog, &new),
        "table_constraints" => constraints(catalog)
            .iter()
            .map(|each| {
                let kind = match &each.demand {
                    Demand::Key { index } if index.primary => "PRIMARY KEY",
                    Demand::Key { .. } => "UNIQUE",
                    Demand::Check(_) => "CHECK",
                    Demand::Foreign(_) => "FOREIGN KEY",
                };
                let deferral = match &each.demand {
                    Demand::Foreign(key) => key.deferral,
                    _ => Deferral::No,
                };
                of_table(catalog, of_constraint(catalog, new(), each), each.table)
                    .set("constraint_type", kind)
                    .set("is_deferrable", yes(deferral != Deferral::No))
                    .set("initially_deferred", yes(deferral == Deferral::Deferred))
                    .set("enforced", yes(true))
                    .set("nulls_distinct", (kind == "UNIQUE").then_some("YES"))
            })
            .collect(),
        "key_column_usage" => key_columns(catalog, &new),
        "constraint_column_usage" => used_columns(catalog, &new),
        "referential_constraints" => referential(catalog, &new),
        "check_constraints" => constraints(catalog)
            .iter()
            .filter(|each| matches!(each.demand, Demand::Check(_)))
            .map(|each| {
                let text = definitions::of_constraint(catalog, each, false).unwrap_or_default();
                let clause = text.strip_prefix("CHECK ").map(str::to_owned);
                of_constraint(catalog, new(), each).set("check_clause", clause)
            })
            .collect(),
        "enabled_roles" => vec![new().set("role_name", NAME)],
        _ => return None,
    })
}

fn sequences(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    shown_sequences(catalog)
        .filter(|sequence| {
            let is_own = |id| id == sequence.id;
            !owned_sequences(catalog).any(|(.., id, identity)| identity && is_own(id))
        })
        .map(|sequence| {
            let ty = sequence.kind.ty;
            new()
                .set("sequence_catalog", catalog.database())
                .set("sequence_schema", catalog.schema_name(sequence.name.schema))
                .set("sequence_name", &*sequence.name)
                .set("data_type", ty.name())
                .set("numeric_precision", bits(ty))
                .set("numeric_precision_radix", 2)
                .set("numeric_scale", 0)
                .set("start_value", sequence.start.to_string())
                .set("minimum_value", sequence.minimum.to_string())
                .set("maximum_value", sequence.maximum.to_string())
                .set("increment", sequence.increment.to_string())
                .set("cycle_option", yes(sequence.cycle))
        })
        .collect()
}

fn yes(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

fn of_constraint(catalog: &Catalog, row: Row, constraint: &Constraint<'_>) -> Row {
    let schema = constraint.table.relation.name.schema;
    row.set("constraint_catalog", catalog.database())
        .set("constraint_schema", catalog.schema_name(schema))
        .set("constraint_name", constraint.name)
}

fn of_table(catalog: &Catalog, row: Row, table: &Table) -> Row {
    of_relation(catalog, row, &table.relation.name)
}

fn of_relation(catalog: &Catalog, row: Row, name: &Name) -> Row {
    row.set("table_catalog", catalog.database())
        .set("table_schema", catalog.schema_name(name.schema))
        .set("table_name", &*name.own)
}

/// Whether statements can insert and change rows of a view: one of its columns can be written.
fn is_writable(catalog: &Catalog, view: &View) -> bool {
    writable_columns(catalog, view).is_some_and(|columns| columns.contains(&true))
}

fn tables(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let own = catalog.tables().map(|table| {
        let is_temporary = table.relation.name.schema == SchemaId::TEMPORARY;
        of_table(catalog, new(), table)
            .set("table_type", if is_temporary { "LOCAL TEMPORARY" } else { "BASE TABLE" })
            .set("is_insertable_into", yes(true))
            .set("is_typed", yes(false))
    });
    let of_system = relations::all().map(|known| {
        let (schema, name) = known.parts();
        new()
            .set("table_catalog", catalog.database())
            .set("table_schema", schema)
            .set("table_name", name)
            .set("table_type", if known.is_view() { "VIEW" } else { "BASE TABLE" })
            .set("is_insertable_into", yes(false))
            .set("is_typed", yes(false))
    });
    let views = catalog.views().map(|view| {
        of_relation(catalog, new(), &view.name)
            .set("table_type", "VIEW")
            .set("is_insertable_into", yes(is_writable(catalog, view)))
            .set("is_typed", yes(false))
    });
    own.chain(views).chain(of_system).collect()
}

fn all_columns(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let mut all = Vec::new();
    for table in catalog.tables() {
        for (place, (at, column, info)) in columns(table).enumerate() {
            let default = definitions::of_default(catalog, table, at as usize - 1, false);
            let row = of_table(catalog, new(), table).set("column_name", column.name.as_str());
            let is_generated = column.generated().is_some();
            let (default, generation) = match is_generated {
                true => (None, default),
                false => (default, None),
            };
            let row = described(catalog, row, place, column.kind)
                .set("column_default", default)
                .set("is_generated", if is_generated { "ALWAYS" } else { "NEVER" })
                .set("generation_expression", generation)
                .set("is_nullable", yes(column.nullable))
                .set("is_updatable", yes(true));
            all.push(identity(catalog, row, table, at as usize - 1, info.identity));
        }
    }
    for view in catalog.views() {
        let writable = writable_columns(catalog, view).unwrap_or_default();
        for (place, column) in view.columns.iter().enumerate() {
            let is_writable = writable.get(place).copied().unwrap_or_default();
            let row =
                of_relation(catalog, new(), &view.name).set("column_name", column.name.as_str());
            let row = described(catalog, row, place, column.kind).set("is_nullable", yes(true));
            all.push(row.set("is_identity", yes(false)).set("is_updatable", yes(is_writable)));
        }
    }
    for known in relations::all() {
        let (schema, name) = known.parts();
        for (place, (column, kind)) in known.columns.iter().enumerate() {
            let row = new()
                .set("table_catalog", catalog.database())
                .set("table_schema", schema)
                .set("table_name", name)
                .set("column_name", *column);
            let row = described(catalog, row, place, *kind).set("is_nullable", yes(true));
            all.push(row.set("is_identity", yes(false)).set("is_updatable", yes(false)));
        }
    }
    all
}

fn bits(ty: Type) -> Option<i32> {
    Some(match ty {
        Type::Int2 => 16,
        Type::Int4 => 32,
        Type::Int8 => 64,
        Type::Float4 => 24,
        Type::Float8 => 53,
        _ => return None,
    })
}

/// What the type of a column says.
fn described(catalog: &Catalog, row: Row, place: usize, kind: Kind) -> Row {
    let (ty, modifier) = (kind.ty, kind.modifier);
    let name = match ty {
        Type::Array(_) => "ARRAY".to_owned(),
        Type::Enum(_) => "USER-DEFINED".to_owned(),
        _ => ty.name(),
    };
    let precise = modifier.precision_and_scale().filter(|_| ty == Type::Numeric);
    let digits = match ty {
        Type::Date => Some(0),
        Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval => {
            Some(modifier.second_digits().map_or(6, |digits| digits as i32))
        }
        _ => None,
    };
    let fields = (ty == Type::Interval).then(|| modifier.interval_fields().name()).flatten();
    let seconds = modifier.second_digits().map_or_else(String::new, |digits| format!("({digits})"));
    let fields = fields.map(|name| format!("{}{seconds}", name.to_ascii_uppercase()));
    let length = match ty {
        Type::Bit | Type::Varbit => modifier.bits(),
        Type::Varchar | Type::Char => modifier.length(),
        _ => None,
    };
    let octets = match ty {
        Type::Text | Type::Varchar | Type::Char => {
            Some(length.map_or(1 << 30, |length| length as i32 * 4))
        }
        _ => None,
    };
    let own = ty.enum_type().map(|own| catalog.schema_name(catalog.schema_of_type(own)));
    let udt_schema = own.unwrap_or(SYSTEM_SCHEMAS[0]);
    let radix = bits(ty).map(|_| 2).or((ty == Type::Numeric).then_some(10));
    row.set("ordinal_position", place as i32 + 1)
        .set("data_type", name)
        .set("character_maximum_length", length.map(|length| length as i32))
        .set("character_octet_length", octets)
        .set("numeric_precision", bits(ty).or(precise.map(|both| both.0)))
        .set("numeric_precision_radix", radix)
        .set("numeric_scale", ty.is_integer().then_some(0).or(precise.map(|both| both.1)))
        .set("datetime_precision", digits)
        .set("interval_type", fields)
        .set("udt_catalog", catalog.database())
        .set("udt_schema", udt_schema)
        .set("udt_name", short_name(ty))
        .set("dtd_identifier", (place + 1).to_string())
        .set("is_self_referencing", yes(false))
        .set("is_generated", "NEVER")
}

fn identity(
    catalog: &Catalog,
    row: Row,
    table: &Table,
    at: usize,
    identity: Option<Identity>,
) -> Row {
    let row = row.set("is_identity", yes(identity.is_some()));
    let Some(identity) = identity else { return row.set("identity_cycle", yes(false)) };
    let id = owned_sequences(catalog)
        .find(|(own, place, ..)| own.relation.id == table.relation.id && *place == at)
        .map(|(_, _, id, _)| id);
    let word = if identity == Identity::Always { "ALWAYS" } else { "BY DEFAULT" };
    let row = row.set("identity_generation", word);
    match id.and_then(|id| catalog.sequence_by_id(id)) {
        None => row,
        Some(sequence) => row
            .set("identity_start", sequence.start.to_string())
            .set("identity_increment", sequence.increment.to_string())
            .set("identity_maximum", sequence.maximum.to_string())
            .set("identity_minimum", sequence.minimum.to_string())
            .set("identity_cycle", yes(sequence.cycle)),
    }
}

/// The columns of a constraint of columns, in order.
fn key_of(constraint: &Constraint<'_>) -> Vec<ColumnNumber> {
    match &constraint.demand {
        Demand::Key { index } => index.columns.iter().map(|key| key.column).collect(),
        Demand::Foreign(key) => key.columns.clone(),
        Demand::Check(_) => Vec::new(),
    }
}

fn key_columns(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let mut all = Vec::new();
    for each in constraints(catalog) {
        for (place, column) in key_of(&each).into_iter().enumerate() {
            let name = each.table.relation.columns[usize::from(column)].name.as_str();
            let referred = match &each.demand {
                Demand::Foreign(key) => referred_place(catalog, key, place),
                _ => None,
            };
            all.push(
                of_table(catalog, of_constraint(catalog, new(), &each), each.table)
                    .set("column_name", name)
                    .set("ordinal_position", place as i32 + 1)
                    .set("position_in_unique_constraint", referred),
            );
        }
    }
    all
}

/// The place of a foreign key's column in the key that it refers to.
fn referred_place(
    catalog: &Catalog,
    key: &crate::catalog::ForeignKey,
    place: usize,
) -> Option<i32> {
    let id = referred_index(catalog, key);
    let index = indexes(catalog.table(&key.parent)?).find(|index| index.id == id)?;
    let at = index.columns.iter().position(|each| each.column == key.referred[place])?;
    Some(at as i32 + 1)
}

fn used_columns(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let mut all = Vec::new();
    for each in constraints(catalog) {
        let (table, used) = match &each.demand {
            Demand::Key { .. } => (Some(each.table), key_of(&each)),
            Demand::Foreign(key) => {
                (catalog.table(&key.parent).map(|table| &**table), key.referred.clone())
            }
            Demand::Check(check) => (Some(each.table), columns_of(&check.condition)),
        };
        let Some(table) = table else { continue };
        for column in used {
            let name = table.relation.columns[usize::from(column)].name.as_str();
            let row = of_table(catalog, of_constraint(catalog, new(), &each), table);
            all.push(row.set("column_name", name));
        }
    }
    all
}

/// The columns that a condition names, each once.
fn columns_of(condition: &Expression) -> Vec<ColumnNumber> {
    let named = condition.code.iter().filter_map(|op| match op {
        Op::Column(column) => Some(*column),
        _ => None,
    });
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

fn referential(catalog: &Catalog, new: &dyn Fn() -> Row) -> Vec<Row> {
    let rule = |action| match action {
        Referential::NoAction => "NO ACTION",
        Referential::Restrict => "RESTRICT",
        Referential::Cascade => "CASCADE",
        Referential::SetNull => "SET NULL",
        Referential::SetDefault => "SET DEFAULT",
    };
    let mut all = Vec::new();
    for each in constraints(catalog) {
        let Demand::Foreign(key) = &each.demand else { continue };
        let id = referred_index(catalog, key);
        let parent = catalog.table(&key.parent);
        let unique = parent.and_then(|table| indexes(table).find(|index| index.id == id));
        all.push(
            of_constraint(catalog, new(), &each)
                .set("unique_constraint_catalog", catalog.database())
                .set("unique_constraint_schema", catalog.schema_name(key.parent.schema))
                .set("unique_constraint_name", unique.map(|index| index.name))
                .set("match_option", "NONE")
                .set("update_rule", rule(key.on_update))
                .set("delete_rule", rule(key.on_delete)),
        );
    }
    all
}
