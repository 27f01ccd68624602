//! The entrance for definitions.

use super::definition::{Definition, Dropping};
use super::door::check_drop;
use super::{
    alter, casts, comments, extensions, foreign, indexes, moves, schemas, sequences, set_value,
    table, table_as, temporary, types, views,
};
use crate::bind::{own_name, unsupported, written_name};
use crate::catalog::{Catalog, Delta, mixed};
use crate::parse::Statement;
use crate::run::{Context, Rows};
use sqlparser::ast::{AlterIndexOperation, ObjectType, Statement as Tree};
use values::{Error, Result};

/// The tag of DO.
const DO: &str = "DO";

/// Makes the delta of a definition; `None` of a statement that is none. An index of a table with
/// rows is filled through `rows`; if that fails, or is discarded, the delta must be, too.
pub fn define(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Option<Definition>> {
    if statement.defines_temporary(catalog) && !catalog.has_temporary() {
        return Err(unsupported("a temporary object without a session"));
    }
    let mut definition = match (defined(catalog, statement, context, rows), &statement.forgiven) {
        (Err(error), Some(forgiven)) if forgiven.contains(&error.state()) => None,
        (found, _) => found?,
    };
    if statement.forgiven.is_some() {
        let own = definition.take().unwrap_or_else(|| Definition::new(DO, Delta::default()));
        definition = Some(Definition { tag: DO, count: None, ..own });
    }
    let is_other = |own: &Definition| own.delta.is_of_temporary();
    if definition.as_ref().is_some_and(is_other) && !statement.defines_temporary(catalog) {
        return Err(mixed());
    }
    if let Some(definition) = &mut definition {
        foreign::drop_spare(catalog, definition)?;
        comments::follow(catalog, definition)?;
    }
    Ok(definition)
}

fn defined(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Option<Definition>> {
    if let Some(tree) = &statement.comment {
        return comments::comment(catalog, tree).map(Some);
    }
    if let Some(tree) = &statement.sequence {
        return sequences::alter(catalog, tree, rows).map(Some);
    }
    if let Some(tree) = &statement.view_change {
        return views::change(catalog, tree).map(Some);
    }
    if let Some(tree) = &statement.type_move {
        return types::move_to(catalog, tree).map(Some);
    }
    if let Some(tree) = &statement.set_schema {
        let definition = moves::set_schema(catalog, tree)?;
        views::refuse_broken(catalog, &definition)?;
        return Ok(Some(definition));
    }
    if let Some(tree) = &statement.cast {
        return casts::change(catalog, tree).map(Some);
    }
    if let Some(tree) = &statement.table_as {
        return table_as::create(catalog, statement, tree, context, rows).map(Some);
    }
    let definition = match &statement.tree {
        Tree::CreateTable(tree) => table::create(catalog, statement, tree, context)?,
        Tree::CreateView(tree) => views::create(catalog, statement, tree, context)?,
        Tree::CreateIndex(tree) => indexes::create(catalog, statement, tree, context, rows)?,
        Tree::CreateSchema {
            schema_name,
            or_replace: false,
            if_not_exists,
            with: None,
            options: None,
            default_collate_spec: None,
            clone: None,
        } => schemas::create_schema(catalog, schema_name, *if_not_exists)?,
        Tree::AlterSchema(tree) => schemas::alter_schema(catalog, tree)?,
        Tree::CreateExtension(tree) => extensions::create_extension(tree)?,
        Tree::CreateSequence { temporary, if_not_exists, name, sequence_options } => {
            let own = temporary::name_of_new(catalog, name, *temporary)?;
            sequences::create(catalog, own, *if_not_exists, sequence_options)?
        }
        Tree::CreateType { name, representation } => {
            types::create(catalog, name, representation.as_ref())?
        }
        Tree::AlterType(tree) => types::alter(catalog, statement, tree, context)?,
        Tree::Drop { .. } => drop_objects(catalog, statement, context, rows)?,
        Tree::AlterTable(tree) => alter::alter(catalog, statement, tree, context, rows)?,
        Tree::AlterIndex { name, operation: AlterIndexOperation::RenameIndex { index_name } } => {
            let written = written_name(name)?;
            let own = catalog.relation(&written)?;
            if !catalog.is_named(&own) {
                return Err(written.missing());
            }
            indexes::rename(catalog, &own, &own.beside(own_name(index_name)?))?
        }
        Tree::CreatePolicy(_) => return Err(no_policies()),
        Tree::Truncate(tree) => table::truncate(catalog, tree)?,
        Tree::Query(_) => return set_value::set(catalog, statement, context, rows),
        _ => return Ok(None),
    };
    views::refuse_broken(catalog, &definition)?;
    Ok(Some(definition))
}

fn no_policies() -> Error {
    let hint = "Let the application, or a view, state which rows a user sees.";
    Error::unsupported("CREATE POLICY is not supported", hint)
}

/// DROP
fn drop_objects(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let Tree::Drop { object_type, if_exists, names, cascade, purge, temporary, table, .. } =
        &statement.tree
    else {
        unreachable!("it is DROP")
    };
    check_drop(*purge, *temporary, table.is_some())?;
    let (if_exists, cascade) = (*if_exists, *cascade);
    let dropping = Dropping { names, if_exists, cascade };
    match object_type {
        ObjectType::Type => types::drop(catalog, statement, &dropping, context, rows),
        ObjectType::Table => table::drop(catalog, names, if_exists, cascade),
        ObjectType::View => views::drop(catalog, names, if_exists, cascade),
        ObjectType::Index => indexes::drop(catalog, &dropping, context, rows),
        ObjectType::Schema => schemas::drop_schemas(catalog, statement, &dropping, context, rows),
        ObjectType::Sequence => sequences::drop(catalog, names, if_exists, cascade),
        other => Err(unsupported(&format!("DROP {other}"))),
    }
}
