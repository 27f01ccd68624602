//! Names of objects: found, and shown.

use super::objects::{
    INFORMATION_SCHEMA, OWNER, PG_CATALOG, PUBLIC, indexes, number, sequence, table, view,
};
use super::session::NAME;
use super::{conversions, relations, type_names};
use crate::catalog::Catalog;
use values::{Error, Oid, Result, SqlState, Type};

/// The role that owns schema `public` in PostgreSQL.
pub(super) const DATABASE_OWNER: i32 = 6_171;

/// Schemas with their object ids and owners.
pub(super) const SCHEMAS: [(i32, &str, i32); 3] = [
    (PG_CATALOG, "pg_catalog", OWNER),
    (PUBLIC, "public", DATABASE_OWNER),
    (INFORMATION_SCHEMA, "information_schema", OWNER),
];

/// Roles with their object ids.
pub(super) const ROLES: [(i32, &str); 2] = [(OWNER, NAME), (DATABASE_OWNER, "pg_database_owner")];

/// A name as statements write it: in double quotes if it must be.
pub fn quoted(name: &str) -> String {
    let mut letters = name.chars();
    let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_plain =
        letters.next().is_some_and(is_first) && letters.all(|c| is_first(c) || c.is_ascii_digit());
    if is_plain && !is_reserved(name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a word is one of the language's own.
fn is_reserved(name: &str) -> bool {
    const WORDS: &str = "\
         \x20all analyse analyze and any array as asc asymmetric authorization between binary \
         both case cast check collate collation column concurrently constraint create \
         cross current_catalog current_date current_role current_schema current_time \
         current_timestamp current_user default deferrable desc distinct do else end \
         except exists extract false fetch for foreign freeze from full grant group \
         having ilike in initially inner intersect into is isnull join lateral leading \
         left like limit localtime localtimestamp natural not notnull null offset on only \
         or order outer overlaps placing primary references returning right row select \
         session_user setof similar some symmetric table tablesample then time timestamp \
         to trailing trim true union unique user using values varchar variadic verbose \
         when where window with ";
    WORDS.contains(&format!(" {name} "))
}

/// Text as a literal.
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

/// The parts of a name with dots, as statements write it.
pub(crate) fn name_parts(text: &str) -> Result<Vec<String>> {
    let invalid = || {
        let message = format!("invalid name syntax: \"{text}\"");
        Error::new(SqlState::INVALID_NAME, message)
    };
    let mut parts = Vec::new();
    let mut letters = text.trim().chars().peekable();
    loop {
        let mut part = String::new();
        if letters.next_if_eq(&'"').is_some() {
            loop {
                match letters.next().ok_or_else(invalid)? {
                    '"' if letters.next_if_eq(&'"').is_some() => part.push('"'),
                    '"' => break,
                    letter => part.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != '.') {
                part.extend(letter.to_lowercase());
            }
        }
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match letters.next() {
            None => return Ok(parts),
            Some('.') => {}
            Some(_) => return Err(invalid()),
        }
    }
}

/// The object of this type that text names; the error says what there is not.
pub(super) fn find(catalog: &Catalog, ty: Type, text: &str) -> Result<i32> {
    if let Ok(number) = text.trim().parse::<i32>() {
        return Ok(number);
    }
    let missing =
        |state, what: &str| Error::new(state, format!("{what} \"{}\" does not exist", text.trim()));
    match ty {
        Type::Regtype => type_named(catalog, text)
            .map(|ty| ty.oid().number() as i32)
            .ok_or_else(|| missing(SqlState::UNDEFINED_OBJECT, "type")),
        Type::Regnamespace => {
            let own = name_parts(text)?.pop().unwrap_or_default();
            let found = SCHEMAS.iter().find(|schema| schema.1 == own);
            found
                .map(|schema| schema.0)
                .ok_or_else(|| missing(SqlState::UNDEFINED_SCHEMA, "schema"))
        }
        Type::Regrole => {
            let own = name_parts(text)?.pop().unwrap_or_default();
            let found = ROLES.iter().find(|role| role.1 == own);
            found.map(|role| role.0).ok_or_else(|| missing(SqlState::UNDEFINED_OBJECT, "role"))
        }
        Type::Regclass => {
            let found = match &name_parts(text)?[..] {
                [own] => class(catalog, own),
                [schema, own] if schema == "public" => own_class(catalog, own),
                [database, schema, own] if database == NAME && schema == "public" => {
                    own_class(catalog, own)
                }
                [schema, own] => system_class(&format!("{schema}.{own}")),
                _ => None,
            };
            found.ok_or_else(|| missing(SqlState::UNDEFINED_TABLE, "relation"))
        }
        _ => {
            let found = match &name_parts(text)?[..] {
                [own] => conversions::number(own),
                [schema, own] if schema == "pg_catalog" => conversions::number(own),
                _ => None,
            };
            found.ok_or_else(|| missing(SqlState::UNDEFINED_FUNCTION, "function"))
        }
    }
}

/// The type that text names: with a schema before it and brackets behind it, perhaps.
fn type_named(catalog: &Catalog, text: &str) -> Option<Type> {
    if let Some(known) = type_names::parse(text) {
        return Some(known);
    }
    let text = text.trim();
    let (own, is_array) = match text.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (text, false),
    };
    let found = match &name_parts(own).ok()?[..] {
        [own] => catalog.type_named(own),
        [schema, own] if schema == "public" => catalog.type_named(own),
        _ => None,
    }?;
    if is_array { found.array() } else { Some(found) }
}

fn class(catalog: &Catalog, name: &str) -> Option<i32> {
    system_class(&format!("pg_catalog.{name}")).or_else(|| own_class(catalog, name))
}

fn system_class(name: &str) -> Option<i32> {
    relations::known(name).map(|known| known.id)
}

fn own_class(catalog: &Catalog, name: &str) -> Option<i32> {
    if let Some(table) = catalog.table(name) {
        return Some(number(table.relation.id));
    }
    if let Some(view) = catalog.view(name) {
        return Some(number(view.id));
    }
    if let Some(sequence) = catalog.sequence(name) {
        return Some(number(sequence.id));
    }
    let mut all = catalog.tables().flat_map(|table| indexes(table));
    all.find(|index| index.name == name).map(|index| index.id)
}

/// The name of a relation, and whether it needs no schema before it.
pub(super) fn class_name(catalog: &Catalog, id: i32) -> Option<(String, bool)> {
    if let Some(table) = table(catalog, id) {
        return Some((table.relation.name.clone(), true));
    }
    if let Some(view) = view(catalog, id) {
        return Some((view.name.clone(), true));
    }
    if let Some(sequence) = sequence(catalog, id) {
        return Some((sequence.name.clone(), true));
    }
    let mut all = catalog.tables().flat_map(|table| indexes(table));
    if let Some(index) = all.find(|index| index.id == id) {
        return Some((index.name.to_owned(), true));
    }
    let known = relations::all().find(|known| known.id == id)?;
    let (schema, own) = known.parts();
    let is_visible = schema == "pg_catalog";
    Some((if is_visible { own.to_owned() } else { known.name.to_owned() }, is_visible))
}

/// What an object of this type is called; its number if there is none.
pub(super) fn shown(catalog: &Catalog, ty: Type, id: i32) -> String {
    let name = match ty {
        _ if id == 0 => Some("-".to_owned()),
        Type::Regclass => class_name(catalog, id)
            .map(|(name, visible)| if visible { quoted(&name) } else { name }),
        Type::Regtype => catalog.type_by_oid(Oid::new(id as u32)).map(Type::name),
        Type::Regnamespace => {
            SCHEMAS.iter().find(|schema| schema.0 == id).map(|schema| schema.1.to_owned())
        }
        Type::Regrole => ROLES.iter().find(|role| role.0 == id).map(|role| role.1.to_owned()),
        Type::Regproc => conversions::name(id),
        _ => None,
    };
    name.unwrap_or_else(|| id.to_string())
}
