//! Views, and what depends on the tables and views that they select from.

use super::definition::{Definition, refuse_name_of_type, refuse_owner};
use super::door::check_view;
use super::relation_kind::RelationKind;
use super::temporary::name_of_new;
use crate::bind::{
    Binder, NewView, TypePlace, bound_again, damaged, name_of, name_of_relation, written_name,
};
use crate::catalog::{Catalog, Delta, Table, Used, View, ViewColumn};
use crate::ir::{Kind, Name, SchemaId};
use crate::parse::{Lines, Stars, Statement, ViewChange, ViewPlace, query_text, with_words};
use crate::run::Context;
use crate::system::quoted;
use sqlparser::ast::{CreateView, ObjectName, Spanned};
use sqlparser::tokenizer::Location;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{EnumType, Error, Result, SqlState, Zone};

pub(super) fn create(
    catalog: &Catalog,
    statement: &Statement,
    tree: &CreateView,
    context: &Context,
) -> Result<Definition> {
    const TAG: &str = "CREATE VIEW";
    check_view(tree)?;
    let name = name_of_new(catalog, &tree.name, tree.temporary)?;
    let zone = &context.zone;
    let bound =
        Binder::without_parameters(catalog, &statement.lines, zone).new_view(&tree.query)?;
    let words = qualified(catalog, &bound);
    let NewView { mut columns, stars, uses, .. } = bound;
    let is_temporary = |used: &Used| used.relation.schema == SchemaId::TEMPORARY;
    if name.schema != SchemaId::TEMPORARY && uses.iter().any(is_temporary) {
        let message = "a view of temporary relations that all sessions see";
        return Err(Error::unsupported(message, "Use CREATE TEMPORARY VIEW."));
    }
    name_columns(&mut columns, tree)?;
    refuse_name_of_type(catalog, &name)?;
    let old = catalog.view(&name);
    if catalog.is_named(&name) && !tree.or_replace {
        return Definition::existing(TAG, &name, false);
    }
    if catalog.is_named(&name) && old.is_none() {
        let message = format!("\"{name}\" is not a view");
        return Err(Error::new(SqlState::WRONG_OBJECT, message));
    }
    let text = statement.text.as_deref().unwrap_or_default();
    let text = query_text(text, tree.name.span().start, &stars.into_iter().chain(words).collect())?;
    let mut delta = Delta::default();
    let id = match old {
        Some(old) => {
            check_replaced(old, &columns)?;
            refuse_circle(catalog, &name, &uses)?;
            old.id
        }
        None => {
            delta.set_next_id(catalog.next_id().next());
            catalog.next_id()
        }
    };
    let (zone, zone_seconds) = (zone.name().to_owned(), zone.fixed_seconds());
    let view = View { id, name, columns, text, zone, zone_seconds, uses };
    delta.put_view(&view);
    bind_again(catalog, &view, &delta, statement, context)?;
    Ok(Definition::new(TAG, delta))
}

/// The names in the text of a new view that are not found along the path of its text, with their
/// schemas before them.
fn qualified(catalog: &Catalog, bound: &NewView) -> Stars {
    let relations = bound.places.iter().filter(|(_, place)| place.schema.is_none());
    let relations =
        relations.filter_map(|(at, place)| Some((*at, name_of_relation(catalog, place.relation)?)));
    let types = bound.types.iter().filter(|(_, place)| place.schema.is_none());
    let types = types.map(|(at, place)| (*at, catalog.name_of_type(place.ty)));
    let elsewhere = relations.chain(types).filter(|(_, name)| name.schema != SchemaId::PUBLIC);
    elsewhere.map(|(at, name)| (at, catalog.shown_if(&name, false))).collect()
}

/// What is kept must come to the same when it is bound again.
fn bind_again(
    catalog: &Catalog,
    view: &View,
    delta: &Delta,
    statement: &Statement,
    context: &Context,
) -> Result<()> {
    let next = catalog.with(delta)?;
    let mut binder = Binder::without_parameters(&next, &statement.lines, &context.zone);
    binder.check_view(view)
}

/// Gives the columns the names that the statement states.
fn name_columns(columns: &mut [ViewColumn], tree: &CreateView) -> Result<()> {
    if tree.columns.len() > columns.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    for (column, stated) in columns.iter_mut().zip(&tree.columns) {
        column.name = name_of(&stated.name);
    }
    let mut names = BTreeSet::new();
    match columns.iter().find(|column| !names.insert(&column.name)) {
        Some(twice) => {
            let message = format!("column \"{}\" specified more than once", twice.name);
            Err(Error::new(SqlState::DUPLICATE_COLUMN, message))
        }
        None => Ok(()),
    }
}

/// What selects from a view goes on with the view that replaces it.
fn check_replaced(old: &View, columns: &[ViewColumn]) -> Result<()> {
    let wrong = |message: String| Error::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if columns.len() < old.columns.len() {
        return Err(wrong("cannot drop columns from view".to_owned()));
    }
    for (before, now) in old.columns.iter().zip(columns) {
        if before.name != now.name {
            let (before, now) = (&before.name, &now.name);
            let message = format!("cannot change name of view column \"{before}\" to \"{now}\"");
            return Err(
                wrong(message).with_hint("Drop the view and create it again with the other name.")
            );
        }
        if before.kind != now.kind {
            return Err(wrong(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                before.name,
                before.kind.ty.name(),
                now.kind.ty.name()
            )));
        }
    }
    Ok(())
}

/// A view that replaces another one may not select from itself.
fn refuse_circle(catalog: &Catalog, name: &Name, uses: &[Used]) -> Result<()> {
    let mut open: Vec<&Name> = uses.iter().map(|used| &used.relation).collect();
    let mut seen = BTreeSet::new();
    while let Some(used) = open.pop() {
        if used == name {
            let message = format!("infinite recursion detected in rules for relation \"{name}\"");
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        if let Some(view) = catalog.view(used).filter(|_| seen.insert(used)) {
            open.extend(view.uses.iter().map(|used| &used.relation));
        }
    }
    Ok(())
}

pub(super) fn drop(
    catalog: &Catalog,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
) -> Result<Definition> {
    let mut definition = Definition::new("DROP VIEW", Delta::default());
    let mut dropped = BTreeSet::new();
    for name in names {
        let written = written_name(name)?;
        let own = match definition.found(catalog.relation(&written), if_exists)? {
            Some(own) => own,
            None => continue,
        };
        if let Some(view) = catalog.view(&own) {
            if dropped.insert(own) {
                definition.delta.drop_view(view.id);
            }
            continue;
        }
        definition.not_of_kind(catalog, &own, RelationKind::View, if_exists)?;
    }
    drop_dependents(catalog, "view", &dropped, cascade, &mut definition)?;
    Ok(definition)
}

/// ALTER VIEW ... RENAME TO and OWNER TO
pub(super) fn change(catalog: &Catalog, tree: &ViewChange) -> Result<Definition> {
    const TAG: &str = "ALTER VIEW";
    let written = written_name(&tree.name)?;
    let mut definition = Definition::new(TAG, Delta::default());
    let Some(own) = definition.altered(catalog, &written, tree.if_exists)? else {
        return Ok(definition);
    };
    let Some(view) = catalog.view(&own) else {
        if catalog.is_named(&own) {
            let message = format!("\"{own}\" is not a view");
            return Err(Error::new(SqlState::WRONG_OBJECT, message));
        }
        return Err(written.missing());
    };
    match &tree.to {
        ViewPlace::Name(new) => rename(catalog, view, &view.name.beside(name_of(new)), TAG),
        ViewPlace::Owner(owner) => {
            refuse_owner(owner)?;
            Ok(Definition::new(TAG, Delta::default()))
        }
    }
}

/// Gives a view another name.
pub(super) fn rename(
    catalog: &Catalog,
    view: &View,
    new: &Name,
    tag: &'static str,
) -> Result<Definition> {
    if catalog.is_named(new) {
        return Definition::existing(tag, new, false);
    }
    refuse_name_of_type(catalog, new)?;
    let mut delta = Delta::default();
    rename_in_users(catalog, &view.name, new, &mut delta)?;
    delta.put_view(&View { name: new.clone(), ..view.clone() });
    Ok(Definition::new(tag, delta))
}

/// Refuses what is about tables and gets a view.
pub(super) fn refuse_view(catalog: &Catalog, name: &Name) -> Result<()> {
    match catalog.view(name) {
        Some(_) => Err(Error::new(SqlState::WRONG_OBJECT, format!("\"{name}\" is not a table"))),
        None => Ok(()),
    }
}

/// Drops the views that select from what is dropped, or refuses to drop it.
pub(super) fn drop_dependents(
    catalog: &Catalog,
    kind: &str,
    dropped: &BTreeSet<Name>,
    cascade: bool,
    definition: &mut Definition,
) -> Result<()> {
    let mut gone: BTreeSet<&Name> = dropped.iter().collect();
    let mut depending: Vec<(&Arc<View>, String)> = Vec::new();
    let mut open: Vec<(&Name, &Arc<View>)> = Vec::new();
    dropped.iter().rev().for_each(|name| open.extend(users(catalog, name)));
    while let Some((used, view)) = open.pop() {
        if gone.insert(&view.name) {
            let kind = if catalog.view(used).is_some() { "view" } else { "table" };
            let (own, used) = (catalog.shown(&view.name), catalog.shown(used));
            depending.push((view, format!("view {own} depends on {kind} {used}")));
            open.extend(users(catalog, &view.name));
        }
    }
    if depending.is_empty() {
        return Ok(());
    }
    if !cascade {
        let message = match dropped.len() {
            1 => format!(
                "cannot drop {kind} {} because other objects depend on it",
                dropped.first().map(|name| catalog.shown(name)).unwrap_or_default()
            ),
            _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
        };
        let lines: Vec<String> = depending.into_iter().map(|(_, line)| line).collect();
        return Err(dependent(message, lines.join("\n")));
    }
    let notice = match &depending[..] {
        [(view, _)] => format!("drop cascades to view {}", catalog.shown(&view.name)),
        several => format!("drop cascades to {} other objects", several.len()),
    };
    definition.add_notice(&notice);
    for (view, _) in depending {
        definition.delta.drop_view(view.id);
    }
    Ok(())
}

/// The views that select from a table or view, the last one first.
fn users<'c>(catalog: &'c Catalog, name: &'c Name) -> Vec<(&'c Name, &'c Arc<View>)> {
    let is_user = |view: &&Arc<View>| view.uses.iter().any(|used| used.relation == *name);
    let mut all: Vec<_> = catalog.views().filter(is_user).map(|view| (name, view)).collect();
    all.reverse();
    all
}

/// Gives a table or view another name in the texts of views, where its old one is the alias.
pub(super) fn rename_in_users(
    catalog: &Catalog,
    old: &Name,
    new: &Name,
    delta: &mut Delta,
) -> Result<()> {
    for (_, view) in users(catalog, old) {
        delta.put_view(&with_new_name(catalog, view, old, new)?);
    }
    Ok(())
}

/// Gives a schema another name in the texts of views.
pub(super) fn rename_schema_in_users(
    catalog: &Catalog,
    schema: SchemaId,
    new: &str,
    delta: &mut Delta,
) -> Result<()> {
    for view in catalog.views() {
        let bound = bound_again(catalog, view)?;
        let is_in = |name: Name| name.schema == schema;
        let relations = bound.places.values().filter(|place| {
            place.schema.is_some() && name_of_relation(catalog, place.relation).is_some_and(is_in)
        });
        let types = bound.types.values().filter(|place| catalog.schema_of_type(place.ty) == schema);
        let places = relations.map(|place| place.schema).chain(types.map(|place| place.schema));
        let words = places.flatten().map(|place| (place, quoted(new))).collect();
        put_respelled(view, &words, delta)?;
    }
    Ok(())
}

/// Lets the texts of views name a type in another schema.
pub(super) fn move_type_in_users(
    catalog: &Catalog,
    ty: EnumType,
    schema: SchemaId,
    delta: &mut Delta,
) -> Result<()> {
    let name = quoted(catalog.schema_name(schema));
    for view in catalog.views() {
        let bound = bound_again(catalog, view)?;
        let places = bound.types.into_iter().filter(|(_, place)| place.ty == ty);
        let word = |(own, place): (Location, TypePlace)| match place.schema {
            Some(place) => (place, name.clone()),
            None => (own, format!("{name}.{}", quoted(ty.name()))),
        };
        put_respelled(view, &places.map(word).collect(), delta)?;
    }
    Ok(())
}

/// Puts a view with other words at these places of its text.
fn put_respelled(view: &View, words: &Stars, delta: &mut Delta) -> Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    let text = with_words(&view.text, words).ok_or_else(|| damaged(view))?;
    delta.put_view(&View { text, ..view.clone() });
    Ok(())
}

fn with_new_name(catalog: &Catalog, view: &View, old: &Name, new: &Name) -> Result<View> {
    let damaged = || damaged(view);
    let id = catalog.table(old).map(|table| table.relation.id);
    let id = id.or_else(|| catalog.view(old).map(|view| view.id)).ok_or_else(damaged)?;
    let bound = bound_again(catalog, view)?;
    let places = bound.places.into_iter().filter(|(_, place)| place.relation == id);
    let schema = quoted(catalog.schema_name(new.schema));
    let mut words = BTreeMap::new();
    for (location, place) in places {
        let own = match place.schema {
            None if new.schema != SchemaId::PUBLIC => format!("{schema}.{}", quoted(new)),
            _ => quoted(new),
        };
        let is_called = place.has_alias || old.own == new.own;
        let alias = (!is_called).then(|| format!(" AS {}", quoted(old)));
        words.insert(location, own + &alias.unwrap_or_default());
        if let Some(location) = place.schema {
            words.insert(location, schema.clone());
        }
    }
    let text = with_words(&view.text, &words).ok_or_else(damaged)?;
    let mut renamed = View { text, ..view.clone() };
    let uses = renamed.uses.iter_mut().filter(|used| used.relation == *old);
    uses.for_each(|used| used.relation = new.clone());
    Ok(renamed)
}

pub(super) fn dependent(message: String, detail: String) -> Error {
    Error::new(SqlState::DEPENDENT_OBJECTS, message)
        .with_detail(detail)
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// Refuses a definition after which a view would not find what it selects from.
pub(super) fn refuse_broken(catalog: &Catalog, definition: &Definition) -> Result<()> {
    if catalog.views().next().is_none() {
        return Ok(());
    }
    let next = catalog.with(&definition.delta)?;
    for view in next.views() {
        check_text(catalog, &next, view)?;
        for used in &view.uses {
            if let Some(table) = catalog.table(&used.relation) {
                check_used(&next, view, used, table)?;
            }
        }
    }
    Ok(())
}

/// Refuses another text of a view that does not come to the same.
fn check_text(catalog: &Catalog, next: &Catalog, view: &View) -> Result<()> {
    if catalog.views().all(|before| before.id != view.id || before.text == view.text) {
        return Ok(());
    }
    let zone = Zone::utc();
    Binder::without_parameters(next, &Lines::of(&view.text), &zone).check_view(view).map_err(|_| {
        let message = format!(
            "another name for what view \"{}\" selects from is not supported in its form",
            view.name
        );
        Error::unsupported(message, "Drop the view, and create it again after that.")
    })
}

/// Compares what a view uses of a table with what there will be.
fn check_used(next: &Catalog, view: &View, used: &Used, before: &Table) -> Result<()> {
    let (name, table) = (&view.name, &used.relation);
    let renamed = |what: String| {
        let message = format!("{what} is not supported, as view \"{name}\" names it");
        Error::unsupported(message, "Drop the view, and create it again after that.")
    };
    let Some(after) = next.table(table) else {
        let id = before.relation.id;
        if next.tables().any(|other| other.relation.id == id) {
            return Err(renamed(format!("another name for table \"{table}\"")));
        }
        let message = format!("cannot drop table {table} because other objects depend on it");
        return Err(dependent(message, format!("view {name} depends on table {table}")));
    };
    let kind = |table: &Table, column: &str| -> Option<Kind> {
        table.column(column).map(|at| table.relation.columns[usize::from(at)].kind)
    };
    for column in &used.columns {
        let was = kind(before, column);
        match kind(after, column) {
            now if now == was => {}
            Some(_) => {
                let message = "cannot alter type of a column used by a view or rule";
                let detail = format!("rule _RETURN on view {name} depends on column \"{column}\"");
                return Err(
                    Error::unsupported(message, "Drop the view before.").with_detail(detail)
                );
            }
            None => {
                let at = before.column(column).map(usize::from);
                let at_place = at.and_then(|at| after.relation.columns.get(at));
                let is_new = |name: &str| before.column(name).is_none();
                let is_renamed =
                    at_place.is_some_and(|column| !column.is_hidden() && is_new(&column.name));
                if is_renamed && after.relation.columns.len() == before.relation.columns.len() {
                    return Err(renamed(format!("another name for column \"{column}\"")));
                }
                let message = format!(
                    "cannot drop column {column} of table {table} because other objects depend \
                     on it"
                );
                let detail = format!("view {name} depends on column {column} of table {table}");
                return Err(dependent(message, detail));
            }
        }
    }
    Ok(())
}
