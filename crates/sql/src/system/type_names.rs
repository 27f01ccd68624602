//! Names of types.

use crate::catalog::Catalog;
use values::{Modifier, Oid, Type};

/// The name of a type in the catalog; arrays have a `_` before it.
pub(super) fn short_name(ty: Type) -> String {
    if let Some(own) = ty.enum_type() {
        let before = if ty.element().is_some() { "_" } else { "" };
        return format!("{before}{}", own.name());
    }
    let own = match ty.element().unwrap_or(ty) {
        Type::Bool => "bool",
        Type::Int2 => "int2",
        Type::Int4 => "int4",
        Type::Int8 => "int8",
        Type::Float4 => "float4",
        Type::Float8 => "float8",
        Type::Varchar => "varchar",
        Type::Char => "bpchar",
        Type::Time => "time",
        Type::Timestamp => "timestamp",
        Type::Timestamptz => "timestamptz",
        Type::Letter => "char",
        Type::Varbit => "varbit",
        other => {
            return if ty.element().is_some() {
                format!("_{}", other.name())
            } else {
                other.name()
            };
        }
    };
    if ty.element().is_some() { format!("_{own}") } else { own.to_owned() }
}

/// The type with this name of PostgreSQL's own, or as statements write it.
pub(crate) fn named(name: &str) -> Option<Type> {
    let both = || {
        let all = || Type::scalars().chain([Type::Record]);
        all().chain(all().filter_map(Type::array))
    };
    let alias = match name {
        "int" => "integer",
        "decimal" => "numeric",
        "float" => "double precision",
        other => other,
    };
    both()
        .find(|ty| *ty != Type::Letter && ty.name() == alias)
        .or_else(|| both().find(|ty| short_name(*ty) == name))
}

/// The type of PostgreSQL's own that text names: with a schema before it and brackets behind it,
/// perhaps.
pub(super) fn parse(text: &str) -> Option<Type> {
    let text = text.trim().to_ascii_lowercase().replace('"', "");
    let text = text.strip_prefix("pg_catalog.").unwrap_or(&text);
    let (text, is_array) = match text.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (text, false),
    };
    let begin = text.split('(').next().unwrap_or(text);
    let behind = text.rsplit_once(')').map_or("", |(_, behind)| behind);
    let plain = format!("{}{behind}", begin.trim());
    let found = match plain.trim_matches('"') {
        // In quotes it is the letter.
        "char" if !plain.starts_with('"') => Some(Type::Char),
        name => named(name),
    };
    if is_array { found?.array() } else { found }
}

/// The name of a type with its modifier, by its object id.
pub(super) fn formatted(catalog: &Catalog, id: i32, modifier: Option<i32>) -> String {
    let known = u32::try_from(id).ok().and_then(|id| catalog.type_by_oid(Oid::new(id)));
    match (known, modifier) {
        (None, _) if id == 0 => "-".to_owned(),
        (None, _) => "???".to_owned(),
        // Without a modifier a char is one letter, and this one is of any length.
        (Some(Type::Char), Some(-1)) => "bpchar".to_owned(),
        // The same of bits.
        (Some(Type::Bit), Some(-1)) => "\"bit\"".to_owned(),
        (Some(ty), _) if ty.enum_type().is_some() => catalog.shown_type(ty),
        (Some(ty), Some(modifier)) => Modifier::from_number(modifier).name(ty),
        (Some(ty), None) => ty.name(),
    }
}
