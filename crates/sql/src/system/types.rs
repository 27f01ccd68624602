//! Types, as the catalog describes them.

use super::conversions;
use super::objects::{OWNER, PG_CATALOG};
use super::relations::Known;
use super::rows::Row;
use super::type_names::short_name;
use values::Type;

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
        Type::Uuid | Type::Name => "c",
        Type::Interval => "d",
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
        Type::Numeric => "m",
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

fn category(ty: Type) -> &'static str {
    match ty {
        Type::Array(_) => "A",
        Type::Bool => "B",
        Type::Letter => "Z",
        Type::Date | Type::Timestamp | Type::Timestamptz => "D",
        Type::Interval => "T",
        ty if ty.is_number() || ty.is_object_id() => "N",
        ty if ty.is_text() => "S",
        _ => "U",
    }
}

/// The operator classes of B-trees: object id, name, type, and how PostgreSQL calls them.
pub(super) const OPERATOR_CLASSES: [(i32, &str, Type); 16] = [
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
];

/// The operator class that an index has for a column of the type.
pub(super) fn operator_class(ty: Type) -> i32 {
    let own = if ty == Type::Varchar { Type::Text } else { ty };
    OPERATOR_CLASSES.iter().find(|class| class.2 == own).map_or(0, |class| class.0)
}

/// The rows of `pg_type`.
pub(super) fn rows(relation: &'static Known, own: &str) -> Option<Vec<Row>> {
    if own != "pg_type" {
        return None;
    }
    let id = |ty: Option<Type>| ty.map_or(0, |ty| ty.oid().number() as i32);
    let all = Type::scalars().chain(Type::scalars().filter_map(Type::array));
    let row = |ty: Type| {
        let known = conversions::of(ty);
        let [input, output, receive, send] = known.both_ways;
        Row::of(relation)
            .set("oid", id(Some(ty)))
            .set("typname", short_name(ty))
            .set("typnamespace", PG_CATALOG)
            .set("typowner", OWNER)
            .set("typlen", length(ty))
            .set("typbyval", is_by_value(ty))
            .set("typtype", "b")
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
    Some(all.map(row).collect())
}
