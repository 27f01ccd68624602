//! Types, as the catalog describes them.

use super::conversions;
use super::objects::{OWNER, PG_CATALOG};
use super::relations::Known;
use super::rows::Row;
use super::session::System;
use super::type_names::short_name;
use crate::catalog::{Cast, CastUse, Catalog};
use std::sync::Arc;
use values::{EnumType, Type};

/// `typlen`
pub(super) fn length(ty: Type) -> i16 {
    match ty {
        Type::Name => 64,
        Type::Letter => 1,
        ty => ty.wire_bytes(),
    }
}

pub(super) fn is_by_value(ty: Type) -> bool {
    matches!(length(ty), 1..=8)
}

pub(super) fn alignment(ty: Type) -> &'static str {
    match ty {
        Type::Array(_) => match ty.element().map(alignment) {
            Some("d") => "d",
            _ => "i",
        },
        Type::Uuid | Type::Name => "c",
        Type::Interval | Type::Record => "d",
        ty => match length(ty) {
            1 => "c",
            2 => "s",
            8 => "d",
            _ => "i",
        },
    }
}

pub(super) fn storage(ty: Type) -> &'static str {
    match ty {
        Type::Numeric | Type::Inet | Type::Cidr => "m",
        ty if length(ty) < 0 => "x",
        _ => "p",
    }
}

/// The object id of a type's collation.
pub(super) fn collation(ty: Type) -> i32 {
    match ty.element().unwrap_or(ty) {
        Type::Text | Type::Varchar | Type::Char => 100,
        Type::Name => 950,
        _ => 0,
    }
}

/// The object id of a type's schema.
fn schema(catalog: &Catalog, ty: Type) -> i32 {
    ty.enum_type().map_or(PG_CATALOG, |own| catalog.schema_of_type(own).number() as i32)
}

fn is_of_records(ty: Type) -> bool {
    ty.element().unwrap_or(ty) == Type::Record
}

/// `typtype`
fn form(ty: Type) -> &'static str {
    match ty {
        Type::Enum(_) => "e",
        ty if is_of_records(ty) => "p",
        _ => "b",
    }
}

fn category(ty: Type) -> &'static str {
    match ty {
        ty if is_of_records(ty) => "P",
        Type::Array(_) => "A",
        Type::Enum(_) => "E",
        Type::Bool => "B",
        Type::Letter => "Z",
        Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz => "D",
        Type::Interval => "T",
        Type::Bit | Type::Varbit => "V",
        Type::Inet | Type::Cidr => "I",
        ty if ty.is_number() || ty.is_object_id() => "N",
        ty if ty.is_text() => "S",
        _ => "U",
    }
}

/// The operator classes of B-trees: object id, name, type, and how PostgreSQL calls them.
pub(super) const OPERATOR_CLASSES: [(i32, &str, Type); 21] = [
    (10_019, "bool_ops", Type::Bool),
    (1_979, "int2_ops", Type::Int2),
    (1_978, "int4_ops", Type::Int4),
    (3_124, "int8_ops", Type::Int8),
    (10_012, "float4_ops", Type::Float4),
    (3_123, "float8_ops", Type::Float8),
    (3_125, "numeric_ops", Type::Numeric),
    (3_126, "text_ops", Type::Text),
    (10_044, "varchar_ops", Type::Varchar),
    (10_005, "bpchar_ops", Type::Char),
    (10_007, "bytea_ops", Type::Bytea),
    (10_065, "uuid_ops", Type::Uuid),
    (3_122, "date_ops", Type::Date),
    (3_128, "timestamp_ops", Type::Timestamp),
    (3_127, "timestamptz_ops", Type::Timestamptz),
    (10_022, "interval_ops", Type::Interval),
    (10_038, "time_ops", Type::Time),
    (10_002, "bit_ops", Type::Bit),
    (10_043, "varbit_ops", Type::Varbit),
    (10_015, "inet_ops", Type::Inet),
    (10_009, "cidr_ops", Type::Inet),
];

/// That of all enums.
pub(super) const ENUM_OPERATOR_CLASS: (i32, &str, i32) = (10_069, "enum_ops", 3_500);

/// The operator class that an index has for a column of the type.
pub(super) fn operator_class(ty: Type) -> i32 {
    let own = match ty {
        Type::Varchar => Type::Text,
        Type::Cidr => Type::Inet,
        ty => ty,
    };
    if let Type::Enum(_) = ty {
        return ENUM_OPERATOR_CLASS.0;
    }
    OPERATOR_CLASSES.iter().find(|class| class.2 == own).map_or(0, |class| class.0)
}

/// The rows of `pg_type` and `pg_enum`.
pub(super) fn rows(system: &System, relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    match own {
        "pg_type" => Some(types(&system.catalog, relation)),
        "pg_enum" => Some(labels(&system.catalog, relation)),
        "pg_cast" => Some(casts(&system.catalog, relation)),
        _ => None,
    }
}

/// Labels, each with its place among all as its object id.
fn labels(catalog: &Catalog, relation: &'static Known) -> Vec<Row> {
    let of_type = |ty: EnumType| (1_u16..).zip(ty.labels()).map(move |label| (ty, label));
    let all = (1_i32..).zip(catalog.enums().flat_map(of_type));
    let row = |(id, (ty, (place, label))): (i32, (EnumType, (u16, &str)))| {
        Row::of(relation)
            .set("oid", id)
            .set("enumtypid", ty.oid().number() as i32)
            .set("enumsortorder", f32::from(place))
            .set("enumlabel", label)
    };
    all.map(row).collect()
}

/// The casts that statements have made.
fn casts(catalog: &Catalog, relation: &'static Known) -> Vec<Row> {
    let row = |cast: &Arc<Cast>| {
        let context = match cast.use_in {
            CastUse::Explicit => "e",
            CastUse::Assignment => "a",
            CastUse::Implicit => "i",
        };
        Row::of(relation)
            .set("oid", cast.id.number() as i32)
            .set("castsource", cast.from as i32)
            .set("casttarget", cast.to as i32)
            .set("castfunc", 0)
            .set("castcontext", context)
            .set("castmethod", "i")
    };
    catalog.casts().map(row).collect()
}

fn types(catalog: &Catalog, relation: &'static Known) -> Vec<Row> {
    let id = |ty: Option<Type>| ty.map_or(0, |ty| ty.oid().number() as i32);
    let records = [Type::Record];
    let all = || Type::scalars().chain(records).chain(catalog.enums().map(Type::Enum));
    let all = all().chain(all().filter_map(Type::array));
    let row = |ty: Type| {
        let known = conversions::of(ty);
        let [input, output, receive, send] = known.both_ways;
        Row::of(relation)
            .set("oid", id(Some(ty)))
            .set("typname", short_name(ty))
            .set("typnamespace", schema(catalog, ty))
            .set("typowner", OWNER)
            .set("typlen", length(ty))
            .set("typbyval", is_by_value(ty))
            .set("typtype", form(ty))
            .set("typcategory", category(ty))
            .set(
                "typispreferred",
                matches!(
                    ty,
                    Type::Bool
                        | Type::Text
                        | Type::Float8
                        | Type::Timestamptz
                        | Type::Interval
                        | Type::Varbit
                        | Type::Inet
                        | Type::Oid
                ),
            )
            .set("typisdefined", true)
            .set("typdelim", ",")
            .set("typelem", id(ty.element()))
            .set("typarray", id(ty.array()))
            .set("typalign", alignment(ty))
            .set("typstorage", storage(ty))
            .set("typtypmod", -1)
            .set("typcollation", collation(ty))
            .set("typinput", input)
            .set("typoutput", output)
            .set("typreceive", receive)
            .set("typsend", send)
            .set("typmodin", known.modifier[0])
            .set("typmodout", known.modifier[1])
            .set("typsubscript", known.subscript)
            .set("typanalyze", known.analyze)
    };
    all.map(row).collect()
}
