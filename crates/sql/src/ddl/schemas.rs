//! Schemas.

use super::definition::{Definition, Dropping, existing, refuse_owner};
use super::table::drop_tables;
use super::{types, views};
use crate::bind::{name_of, unsupported, written_name};
use crate::catalog::{
    Catalog, Delta, SYSTEM_SCHEMAS, Sequence, Table, View, Written, missing_schema,
};
use crate::ir::{Name, ObjectId, SchemaId};
use crate::parse::Statement;
use crate::run::{Context, Rows};
use sqlparser::ast::{AlterSchema, AlterSchemaOperation, Ident, ObjectName, Owner, SchemaName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{EnumType, Error, Result, SqlState, Type};

/// Reads the name of a schema.
fn schema_name(name: &ObjectName) -> Result<String> {
    let Written { schema, own, .. } = written_name(name)?;
    match schema {
        None => Ok(own),
        Some(schema) => {
            let message = format!("schema name \"{schema}.{own}\" has a dot");
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
    }
}

/// CREATE SCHEMA
pub(super) fn create_schema(
    catalog: &Catalog,
    name: &SchemaName,
    if_not_exists: bool,
) -> Result<Definition> {
    const TAG: &str = "CREATE SCHEMA";
    let (name, owner) = match name {
        SchemaName::Simple(name) => (schema_name(name)?, None),
        SchemaName::UnnamedAuthorization(owner) => (owner_name(owner), Some(owner)),
        SchemaName::NamedAuthorization(name, owner) => (schema_name(name)?, Some(owner)),
    };
    owner.map_or(Ok(()), refuse_owner)?;
    if SYSTEM_SCHEMAS.contains(&name.as_str()) || catalog.schema_named(&name).is_some() {
        let what = format!("schema \"{name}\"");
        return existing(TAG, &what, SqlState::DUPLICATE_SCHEMA, if_not_exists);
    }
    refuse_reserved(&name)?;
    let mut delta = Delta::default();
    let has_public = catalog.schemas().any(|(id, _)| id == SchemaId::PUBLIC);
    if name == "public" && !has_public {
        delta.put_schema(SchemaId::PUBLIC, &name);
        return Ok(Definition::new(TAG, delta));
    }
    let id = catalog.next_id();
    delta.put_schema(id.into(), &name);
    delta.set_next_id(id.next());
    Ok(Definition::new(TAG, delta))
}

/// Returns the default name of an owner's schema.
fn owner_name(owner: &Ident) -> String {
    match refuse_owner(owner) {
        Ok(()) => crate::system::NAME.to_owned(),
        Err(_) => name_of(owner),
    }
}

fn refuse_reserved(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    let message = format!("unacceptable schema name \"{name}\"");
    Err(Error::new(SqlState::RESERVED_NAME, message)
        .with_detail("The prefix \"pg_\" is reserved for system schemas."))
}

/// ALTER SCHEMA ... RENAME TO and OWNER TO
pub(super) fn alter_schema(catalog: &Catalog, tree: &AlterSchema) -> Result<Definition> {
    const TAG: &str = "ALTER SCHEMA";
    let old = schema_name(&tree.name)?;
    let id = catalog.schema_named(&old).ok_or_else(|| missing_schema(&old))?;
    let mut delta = Delta::default();
    match &tree.operations[..] {
        [AlterSchemaOperation::Rename { name }] if !tree.if_exists => {
            let new = schema_name(name)?;
            if SYSTEM_SCHEMAS.contains(&new.as_str()) || catalog.schema_named(&new).is_some() {
                let what = format!("schema \"{new}\"");
                return existing(TAG, &what, SqlState::DUPLICATE_SCHEMA, false);
            }
            refuse_reserved(&new)?;
            delta.put_schema(id, &new);
            views::rename_schema_in_users(catalog, id, &new, &mut delta)?;
        }
        [AlterSchemaOperation::OwnerTo { owner }] if !tree.if_exists => {
            if let Owner::Ident(owner) = owner {
                refuse_owner(owner)?;
            }
        }
        _ => return Err(unsupported("this form of ALTER SCHEMA")),
    }
    Ok(Definition::new(TAG, delta))
}

/// The objects in the schemas of a DROP SCHEMA.
struct Contents<'c> {
    catalog: &'c Catalog,
    tables: Vec<&'c Arc<Table>>,
    views: Vec<&'c Arc<View>>,
    /// Sequences that no column of these tables owns.
    sequences: Vec<&'c Arc<Sequence>>,
    types: Vec<EnumType>,
}

impl<'c> Contents<'c> {
    fn of(catalog: &'c Catalog, schemas: &BTreeSet<SchemaId>) -> Contents<'c> {
        let has = |name: &Name| schemas.contains(&name.schema);
        let tables: Vec<_> = catalog.tables().filter(|table| has(&table.relation.name)).collect();
        let owned: BTreeSet<ObjectId> = tables
            .iter()
            .flat_map(|table| &table.columns)
            .filter_map(|info| info.sequence)
            .collect();
        let is_alone = |own: &&Arc<Sequence>| has(&own.name) && !owned.contains(&own.id);
        Contents {
            catalog,
            tables,
            views: catalog.views().filter(|view| has(&view.name)).collect(),
            sequences: catalog.sequences().filter(is_alone).collect(),
            types: catalog
                .enums()
                .filter(|ty| schemas.contains(&catalog.schema_of_type(*ty)))
                .collect(),
        }
    }

    /// Describes the objects for messages, oldest first, each with its schema.
    fn lines(&self) -> Vec<(SchemaId, String)> {
        let catalog = self.catalog;
        let line =
            |kind: &str, name: &Name| (name.schema, format!("{kind} {}", catalog.shown(name)));
        let mut all = BTreeMap::new();
        for table in &self.tables {
            all.insert(table.relation.id.number(), line("table", &table.relation.name));
        }
        for view in &self.views {
            all.insert(view.id.number(), line("view", &view.name));
        }
        for sequence in &self.sequences {
            all.insert(sequence.id.number(), line("sequence", &sequence.name));
        }
        for ty in &self.types {
            let shown = catalog.shown_type(Type::Enum(*ty));
            all.insert(ty.oid().number(), (catalog.schema_of_type(*ty), format!("type {shown}")));
        }
        all.into_values().collect()
    }
}

/// DROP SCHEMA
pub(super) fn drop_schemas(
    catalog: &Catalog,
    statement: &Statement,
    dropping: &Dropping<'_>,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP SCHEMA", Delta::default());
    let mut schemas = BTreeSet::new();
    for name in dropping.names {
        let own = schema_name(name)?;
        if SYSTEM_SCHEMAS[0] == own {
            let message =
                format!("cannot drop schema {own} because it is required by the database system");
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS, message));
        }
        match catalog.schema_named(&own) {
            Some(id) => {
                schemas.insert(id);
            }
            None => definition.skip_missing(missing_schema(&own), dropping.if_exists)?,
        }
    }
    let contents = Contents::of(catalog, &schemas);
    let lines = contents.lines();
    if !dropping.cascade && !lines.is_empty() {
        return Err(depended_on(catalog, &schemas, lines));
    }
    for id in &schemas {
        definition.delta.drop_schema(*id);
    }
    if !lines.is_empty() {
        drop_contents(&contents, statement, context, rows, &mut definition)?;
    }
    Ok(definition)
}

fn depended_on(
    catalog: &Catalog,
    schemas: &BTreeSet<SchemaId>,
    lines: Vec<(SchemaId, String)>,
) -> Error {
    let message = match schemas.first() {
        Some(id) if schemas.len() == 1 => {
            let name = catalog.schema_name(*id);
            format!("cannot drop schema {name} because other objects depend on it")
        }
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let line = |(id, line): (SchemaId, String)| {
        format!("{line} depends on schema {}", catalog.schema_name(id))
    };
    views::dependent(message, lines.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Drops all objects of the schemas and their dependents.
fn drop_contents(
    contents: &Contents<'_>,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
    definition: &mut Definition,
) -> Result<()> {
    let catalog = contents.catalog;
    let tables = contents.tables.iter().map(|table| table.relation.name.clone()).collect();
    let mut dropped = Definition::new(definition.tag, Delta::default());
    drop_tables(catalog, &tables, true, &mut dropped)?;
    let mut names = BTreeSet::new();
    for view in &contents.views {
        names.insert(view.name.clone());
        dropped.delta.drop_view(view.id);
    }
    views::drop_dependents(catalog, "view", &names, true, &mut dropped)?;
    let mut next = catalog.with(&dropped.delta)?;
    dropped.notice = None;
    for sequence in &contents.sequences {
        super::sequences::drop_one(&next, sequence, true, &mut dropped)?;
        next = catalog.with(&dropped.delta)?;
    }
    let defaults = dropped.notice.take().unwrap_or_default();
    let others = others_gone(contents, &next);
    let shown = |notice: &str| notice.trim_start_matches("drop cascades to ").to_owned();
    let mut lines: Vec<String> = contents.lines().into_iter().map(|(_, line)| line).collect();
    lines.extend(others);
    lines.extend(defaults.lines().map(shown));
    for ty in &contents.types {
        let name = catalog.name_of_type(*ty);
        let ident = |text: &str| Ident::with_quote('"', text);
        let schema = ident(catalog.schema_name(name.schema));
        let names = [ObjectName::from(vec![schema, ident(&name)])];
        let part = Dropping { names: &names, if_exists: false, cascade: true };
        let part = types::drop(&next, statement, &part, context, rows)?;
        lines.extend(part.notice.iter().map(|notice| shown(notice)));
        next = next.with(&part.delta)?;
        dropped.delta.append(part.delta);
    }
    let notice = match &lines[..] {
        [one] => format!("drop cascades to {one}"),
        several => format!("drop cascades to {} other objects", several.len()),
    };
    definition.add_notice(&notice);
    definition.delta.append(dropped.delta);
    Ok(())
}

/// Describes the dropped dependents in other schemas for messages.
fn others_gone(contents: &Contents<'_>, next: &Catalog) -> Vec<String> {
    let catalog = contents.catalog;
    let is_left = |name: &Name| next.table(name).is_some();
    let keys = catalog
        .foreign_keys()
        .filter(|key| is_left(&key.child) && next.foreign_keys().all(|other| other.id != key.id));
    let shown = |name: &Name| catalog.shown(name);
    let keys = keys.map(|key| format!("constraint {} on table {}", key.name, shown(&key.child)));
    let is_own = |view: &View| contents.views.iter().any(|own| own.id == view.id);
    let views = catalog
        .views()
        .filter(|view| !is_own(view) && next.views().all(|other| other.id != view.id));
    keys.chain(views.map(|view| format!("view {}", shown(&view.name)))).collect()
}
