//! COMMENT ON, and comments that go and change their names with their objects.

use super::definition::Definition;
use super::extensions::comment_notice;
use crate::bind::{name_of, unsupported, written_name};
use crate::catalog::{Catalog, Comment, Commented, Delta, SYSTEM_SCHEMAS, Table, missing_schema};
use crate::ir::{ColumnNumber, Index, Name, ObjectId, SchemaId};
use crate::parse::{CommentOn, CommentTarget};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use values::{Error, Result, SqlState};

const TAG: &str = "COMMENT";
/// The most bytes of a comment.
const TEXT_BYTES_MAX: usize = 65_536;

/// COMMENT ON
pub(super) fn comment(catalog: &Catalog, tree: &CommentOn) -> Result<Definition> {
    let mut definition = Definition::new(TAG, Delta::default());
    let on = match found(catalog, &tree.target)? {
        Ok(on) => on,
        Err(notice) => {
            definition.notice = Some(notice);
            return Ok(definition);
        }
    };
    let text = tree.text.clone().unwrap_or_default();
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a comment has {} bytes, at most {TEXT_BYTES_MAX}", text.len());
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    let old = catalog.comment_on(&on);
    let is_kept = !text.is_empty() || on == Commented::Schema;
    match (old, is_kept) {
        (Some(old), true) => {
            definition.delta.put_comment(&Comment { text, ..Comment::clone(old) });
        }
        (Some(old), false) => definition.delta.drop_comment(old.id),
        (None, true) => {
            let id = catalog.next_id();
            definition.delta.put_comment(&Comment { id, on, text });
            definition.delta.set_next_id(id.next());
        }
        (None, false) => {}
    }
    Ok(definition)
}

/// The object, or what the client is told of one that there need not be.
fn found(catalog: &Catalog, target: &CommentTarget) -> Result<Result<Commented, String>> {
    Ok(Ok(match target {
        CommentTarget::Table(name) => relation(catalog, name, "a table")?,
        CommentTarget::View(name) => relation(catalog, name, "a view")?,
        CommentTarget::Sequence(name) => relation(catalog, name, "a sequence")?,
        CommentTarget::Index(name) => relation(catalog, name, "an index")?,
        CommentTarget::Column(name) => column(catalog, name)?,
        CommentTarget::Constraint(name, table) => constraint(catalog, &name_of(name), table)?,
        CommentTarget::Type(name) => {
            let written = written_name(name)?;
            let own = catalog.type_of(&written)?;
            if catalog.enum_named(&own).is_none() {
                let message = format!("type \"{written}\" does not exist");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
            Commented::Type(own)
        }
        CommentTarget::Schema(name) => match catalog.schema_named(&name_of(name)) {
            Some(SchemaId::PUBLIC) => Commented::Schema,
            Some(id) => Commented::OtherSchema(id),
            None => return Err(no_schema(name)),
        },
        CommentTarget::Database(name) if name_of(name) == catalog.database() => Commented::Database,
        CommentTarget::Database(name) => {
            return Ok(Err(format!("database \"{}\" does not exist", name_of(name))));
        }
        CommentTarget::Extension(name) => {
            let own = name_of(name);
            if let Some(notice) = comment_notice(&own) {
                return Ok(Err(notice));
            }
            let message = format!("extension \"{own}\" does not exist");
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        CommentTarget::Other(kind) => return Err(unsupported(&format!("COMMENT ON {kind}"))),
    }))
}

fn no_schema(name: &Ident) -> Error {
    let own = name_of(name);
    if SYSTEM_SCHEMAS.contains(&own.as_str()) {
        return unsupported("a comment on a schema of the system");
    }
    missing_schema(&own)
}

/// A relation of this kind.
fn relation(catalog: &Catalog, name: &ObjectName, kind: &str) -> Result<Commented> {
    let written = written_name(name)?;
    let own = catalog.relation(&written)?;
    let found = named(catalog, &own).ok_or_else(|| written.missing())?;
    let is_kind = match found {
        Commented::Table(_) => kind == "a table",
        Commented::View(_) => kind == "a view",
        Commented::Sequence(_) => kind == "a sequence",
        _ => kind == "an index",
    };
    if is_kind {
        return Ok(found);
    }
    Err(Error::new(SqlState::WRONG_OBJECT, format!("\"{own}\" is not {kind}")))
}

/// The relation with this name.
fn named(catalog: &Catalog, own: &Name) -> Option<Commented> {
    let name = own.clone();
    if catalog.table(own).is_some() {
        return Some(Commented::Table(name));
    }
    if catalog.view(own).is_some() {
        return Some(Commented::View(name));
    }
    if catalog.sequence(own).is_some() {
        return Some(Commented::Sequence(name));
    }
    catalog.is_named(own).then_some(Commented::Index(name))
}

fn column(catalog: &Catalog, name: &ObjectName) -> Result<Commented> {
    let (table, column) = match &name.0[..] {
        [table @ .., ObjectNamePart::Identifier(column)] if !table.is_empty() => {
            (written_name(&ObjectName(table.to_vec()))?, name_of(column))
        }
        _ => return Err(Error::new(SqlState::SYNTAX_ERROR, "column name must be qualified")),
    };
    let own = catalog.relation(&table)?;
    let place = match (catalog.table(&own), catalog.view(&own)) {
        (Some(known), _) => known.column(&column),
        (None, Some(view)) => {
            view.columns.iter().position(|own| own.name == column).map(ColumnNumber::at)
        }
        (None, None) if catalog.is_named(&own) => {
            let message = format!("cannot set comment on relation \"{table}\"");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        (None, None) => return Err(table.missing()),
    };
    match place {
        Some(place) => Ok(Commented::Column(own, place)),
        None => {
            let message = format!("column \"{column}\" of relation \"{own}\" does not exist");
            Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
        }
    }
}

fn constraint(catalog: &Catalog, name: &str, table: &ObjectName) -> Result<Commented> {
    let written = written_name(table)?;
    let own = catalog.relation(&written)?;
    let Some(table) = catalog.table(&own) else { return Err(written.missing()) };
    if ConstraintPlace::of(catalog, table, name).is_none() {
        let message = format!("constraint \"{name}\" for table \"{own}\" does not exist");
        return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
    }
    Ok(Commented::Constraint(own, name.to_owned()))
}

/// Where the catalog has a constraint of a table.
enum ConstraintPlace {
    Primary,
    Index(ObjectId),
    Check(usize),
    Foreign(ObjectId),
}

impl ConstraintPlace {
    fn of(catalog: &Catalog, table: &Table, name: &str) -> Option<ConstraintPlace> {
        let relation = &table.relation;
        if relation.primary_name == name && !relation.has_hidden_key() {
            return Some(ConstraintPlace::Primary);
        }
        let named = |index: &&Index| index.is_constraint() && index.name == name;
        if let Some(index) = relation.indexes.iter().find(named) {
            return Some(ConstraintPlace::Index(index.id));
        }
        if let Some(at) = relation.checks.iter().position(|check| check.name == name) {
            return Some(ConstraintPlace::Check(at));
        }
        let mut keys = catalog.foreign_keys();
        let key = keys.find(|key| key.child == relation.name && key.name == name)?;
        Some(ConstraintPlace::Foreign(key.id))
    }

    /// What the constraint is called in the table as it is now.
    fn name(&self, next: &Catalog, before: &Table, after: &Table) -> Option<String> {
        let (before, after) = (&before.relation, &after.relation);
        match self {
            ConstraintPlace::Primary => {
                (before.primary == after.primary).then(|| after.primary_name.clone())
            }
            ConstraintPlace::Index(id) => {
                let found = after.indexes.iter().find(|index| index.id == *id);
                found.map(|index| index.name.clone())
            }
            ConstraintPlace::Check(at) => {
                let is_same = before.checks.len() == after.checks.len()
                    && before.checks[*at].condition == after.checks[*at].condition;
                is_same.then(|| after.checks[*at].name.clone())
            }
            ConstraintPlace::Foreign(id) => {
                next.foreign_keys().find(|key| key.id == *id).map(|key| key.name.clone())
            }
        }
    }
}

/// Removes the comments of a constraint and its index, also if another one gets its name.
pub(super) fn drop_of_constraint(catalog: &Catalog, table: &Name, name: &str, delta: &mut Delta) {
    let of_constraint = Commented::Constraint(table.clone(), name.to_owned());
    let index_name = table.beside(name);
    let index = catalog.index(&index_name).filter(|(own, _)| own.relation.name == *table);
    let of_index = index.map(|_| Commented::Index(index_name.clone()));
    for on in std::iter::once(of_constraint).chain(of_index) {
        if let Some(comment) = catalog.comment_on(&on) {
            delta.drop_comment(comment.id);
        }
    }
}

/// Removes the comments of what a definition drops, and lets others go on with the new names of
/// their objects.
pub(super) fn follow(catalog: &Catalog, definition: &mut Definition) -> Result<()> {
    if catalog.comments().next().is_none() || definition.delta.is_empty() {
        return Ok(());
    }
    let next = catalog.with(&definition.delta)?;
    for comment in next.comments() {
        match followed(catalog, &next, &comment.on) {
            Some(on) if on == comment.on => {}
            Some(on) => {
                definition.delta.put_comment(&Comment { on, ..Comment::clone(comment) });
            }
            None => definition.delta.drop_comment(comment.id),
        }
    }
    Ok(())
}

/// The object as it is called after a definition; `None` if it has gone.
fn followed(before: &Catalog, next: &Catalog, on: &Commented) -> Option<Commented> {
    Some(match on {
        Commented::Table(name) => Commented::Table(table_after(before, next, name)?),
        Commented::View(name) => Commented::View(view_after(before, next, name)?),
        Commented::Column(name, at) => {
            let name =
                table_after(before, next, name).or_else(|| view_after(before, next, name))?;
            let place = usize::from(*at);
            let is_there = match (next.table(&name), next.view(&name)) {
                (Some(table), _) => {
                    table.relation.columns.get(place).is_some_and(|column| !column.is_hidden())
                }
                (None, view) => view.is_some_and(|view| place < view.columns.len()),
            };
            is_there.then_some(Commented::Column(name, *at))?
        }
        Commented::Index(name) => Commented::Index(index_after(before, next, name)?),
        Commented::Sequence(name) => {
            let same = next.sequence(name).map(|_| name.clone());
            let renamed = || {
                let id = before.sequence(name)?.id;
                next.sequence_by_id(id).map(|sequence| sequence.name.clone())
            };
            Commented::Sequence(same.or_else(renamed)?)
        }
        Commented::Type(name) => {
            let same = next.enum_named(name).map(|_| name.clone());
            let renamed = || {
                let oid = before.enum_named(name)?.oid();
                next.enums().find(|ty| ty.oid() == oid).map(|ty| next.name_of_type(ty))
            };
            Commented::Type(same.or_else(renamed)?)
        }
        Commented::Constraint(table, name) => {
            let own = table_after(before, next, table)?;
            let after = next.table(&own)?;
            if ConstraintPlace::of(next, after, name).is_some() {
                return Some(Commented::Constraint(own, name.clone()));
            }
            let old = before.table(table)?;
            let place = ConstraintPlace::of(before, old, name)?;
            Commented::Constraint(own, place.name(next, old, after)?)
        }
        Commented::OtherSchema(id) => {
            next.schemas().any(|(own, _)| own == *id).then(|| on.clone())?
        }
        Commented::Schema | Commented::Database => on.clone(),
    })
}

fn table_after(before: &Catalog, next: &Catalog, name: &Name) -> Option<Name> {
    if next.table(name).is_some() {
        return Some(name.clone());
    }
    let id = before.table(name)?.relation.id;
    let found = next.tables().find(|table| table.relation.id == id)?;
    Some(found.relation.name.clone())
}

fn view_after(before: &Catalog, next: &Catalog, name: &Name) -> Option<Name> {
    if next.view(name).is_some() {
        return Some(name.clone());
    }
    let id = before.view(name)?.id;
    next.views().find(|view| view.id == id).map(|view| view.name.clone())
}

fn index_after(before: &Catalog, next: &Catalog, name: &Name) -> Option<Name> {
    if matches!(named(next, name), Some(Commented::Index(_))) {
        return Some(name.clone());
    }
    if let Some((table, at)) = before.index(name) {
        let id = table.relation.indexes[at].id;
        return next.tables().find_map(|table| {
            let index = table.relation.indexes.iter().find(|index| index.id == id)?;
            Some(table.relation.name.beside(&*index.name))
        });
    }
    let old = before.table_of_primary(name)?;
    let after = next.table(&table_after(before, next, &old.relation.name)?)?;
    let is_same = after.relation.primary == old.relation.primary;
    is_same.then(|| after.relation.name.beside(&*after.relation.primary_name))
}
