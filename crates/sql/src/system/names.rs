//! Names of objects: found, and shown.

use super::objects::{
    INFORMATION_SCHEMA, OWNER, PG_CATALOG, indexes, number, sequence, table, view,
};
use super::relations::Known;
use super::session::NAME;
use super::{conversions, relations, type_names};
use crate::catalog::{Catalog, Place, SYSTEM_SCHEMAS, Written};
use crate::ir::{Name, SchemaId};
use values::{Error, Oid, Result, SqlState, Type};

/// The schema that is searched first.
const PG_SCHEMA: &str = SYSTEM_SCHEMAS[0];

/// The role that owns schema `public` in PostgreSQL.
pub(super) const DATABASE_OWNER: i32 = 6_171;

/// Schemas with their object ids and owners.
pub(super) fn schemas(catalog: &Catalog) -> impl Iterator<Item = (i32, &str, i32)> {
    let made = catalog.schemas().map(|(id, name)| {
        let owner = if id == SchemaId::PUBLIC { DATABASE_OWNER } else { OWNER };
        (id.number() as i32, name, owner)
    });
    let [first, last] = SYSTEM_SCHEMAS;
    std::iter::once((PG_CATALOG, first, OWNER)).chain(made).chain([(
        INFORMATION_SCHEMA,
        last,
        OWNER,
    )])
}

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

impl Catalog {
    /// The name of a relation as messages and definitions have it: after its schema where it is
    /// not found by itself.
    pub fn shown(&self, name: &Name) -> String {
        self.shown_if(name, self.is_visible(name))
    }

    /// The name of a relation or type after its schema, unless it is found by itself.
    pub fn shown_if(&self, name: &Name, is_visible: bool) -> String {
        match is_visible {
            true => quoted(&name.own),
            false => format!("{}.{}", quoted(self.schema_name(name.schema)), quoted(&name.own)),
        }
    }

    /// The name of a type, as `format_type` has it.
    pub fn shown_type(&self, ty: Type) -> String {
        let (element, is_array) = match ty.element() {
            Some(element) => (element, true),
            None => (ty, false),
        };
        let Type::Enum(own) = element else { return ty.name().to_string() };
        let name = self.name_of_type(own);
        self.shown_if(&name, self.is_visible_type(own)) + if is_array { "[]" } else { "" }
    }
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
            let found = schemas(catalog).find(|schema| schema.1 == own);
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
            let written = Written::of_parts(&name_parts(text)?)?;
            let found = class(catalog, &written)?;
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
    let written = Written::of_parts(&name_parts(own).ok()?).ok()?;
    let found = catalog.type_named(&catalog.type_of(&written).ok()?)?;
    if is_array { found.array() } else { Some(found) }
}

/// The relation that a name means.
///
/// # Errors
/// That its schema does not exist.
fn class(catalog: &Catalog, written: &Written) -> Result<Option<i32>> {
    if let Some(known) = relation_named(catalog, written) {
        return Ok(Some(known.id));
    }
    let name = catalog.relation(written)?;
    let table = catalog.table(&name).map(|table| number(table.relation.id));
    let view = || catalog.view(&name).map(|view| number(view.id));
    let sequence = || catalog.sequence(&name).map(|sequence| number(sequence.id));
    let index = || {
        let found = catalog.index(&name).map(|(table, _)| table);
        let table = found.or_else(|| catalog.table_of_primary(&name))?;
        indexes(table).find(|index| index.name == name.own).map(|index| index.id)
    };
    Ok(table.or_else(view).or_else(sequence).or_else(index))
}

/// The relation of the system catalog that a name means: in the schema that it states, or before
/// those of statements in the path.
pub(crate) fn relation_named(catalog: &Catalog, written: &Written) -> Option<&'static Known> {
    if written.database.as_deref().is_some_and(|database| database != catalog.database()) {
        return None;
    }
    let in_schema = |schema: &str| relations::known(&format!("{schema}.{}", written.own));
    if let Some(schema) = &written.schema {
        return SYSTEM_SCHEMAS.contains(&schema.as_str()).then(|| in_schema(schema))?;
    }
    let is_in = |place: &Place| match *place {
        // All relations of the first schema begin so.
        Place::System(PG_SCHEMA) if !written.own.starts_with("pg_") => None,
        Place::System(schema) => in_schema(schema).map(Some),
        Place::Made(schema) => catalog.is_named(&Name::new(schema, &*written.own)).then_some(None),
    };
    catalog.places().iter().find_map(is_in).flatten()
}

/// The name of a relation that a statement has made.
pub(super) fn made_class(catalog: &Catalog, id: i32) -> Option<Name> {
    if let Some(table) = table(catalog, id) {
        return Some(table.relation.name.clone());
    }
    if let Some(view) = view(catalog, id) {
        return Some(view.name.clone());
    }
    if let Some(sequence) = sequence(catalog, id) {
        return Some(sequence.name.clone());
    }
    let mut all = catalog.tables().flat_map(|table| indexes(table));
    let index = all.find(|index| index.id == id)?;
    Some(index.table.relation.name.beside(index.name))
}

/// The name of a relation as `regclass` shows it, and whether it needs no schema before it.
pub(super) fn class_name(catalog: &Catalog, id: i32) -> Option<(String, bool)> {
    if let Some(name) = made_class(catalog, id) {
        let is_visible = is_visible(catalog, &name);
        return Some((catalog.shown_if(&name, is_visible), is_visible));
    }
    let known = relations::all().find(|known| known.id == id)?;
    let (_, own) = known.parts();
    let found = relation_named(catalog, &Written::plain(own));
    let is_visible = found.is_some_and(|found| found.id == id);
    Some((if is_visible { quoted(own) } else { known.name.to_owned() }, is_visible))
}

/// Whether a relation that a statement has made is found by its name alone.
fn is_visible(catalog: &Catalog, name: &Name) -> bool {
    catalog.is_visible(name) && relation_named(catalog, &Written::plain(&*name.own)).is_none()
}

/// What an object of this type is called; its number if there is none.
pub(super) fn shown(catalog: &Catalog, ty: Type, id: i32) -> String {
    let name = match ty {
        _ if id == 0 => Some("-".to_owned()),
        Type::Regclass => class_name(catalog, id).map(|(name, _)| name),
        Type::Regtype => catalog.type_by_oid(Oid::new(id as u32)).map(|ty| catalog.shown_type(ty)),
        Type::Regnamespace => {
            schemas(catalog).find(|schema| schema.0 == id).map(|schema| quoted(schema.1))
        }
        Type::Regrole => ROLES.iter().find(|role| role.0 == id).map(|role| role.1.to_owned()),
        Type::Regproc => conversions::name(id),
        _ => None,
    };
    name.unwrap_or_else(|| id.to_string())
}
