//! CREATE SCHEMA and CREATE EXTENSION: what there is from the beginning.

use super::definition::Definition;
use crate::bind::{name_of, unsupported};
use crate::catalog::Delta;
use sqlparser::ast::{CreateExtension, SchemaName};
use values::{Error, Result, SqlState};

/// Extensions whose functions are there: `gen_random_uuid` of `pgcrypto`. PL/pgSQL is in each
/// database of PostgreSQL, and dumps make it anew.
const EXTENSIONS: [&str; 2] = ["pgcrypto", "plpgsql"];

/// Refuses what exists, or passes over it if the statement says so.
fn existing(tag: &'static str, what: &str, state: SqlState, skipped: bool) -> Result<Definition> {
    let message = format!("{what} already exists");
    if !skipped {
        return Err(Error::new(state, message));
    }
    let notice = Some(format!("{message}, skipping"));
    Ok(Definition { notice, ..Definition::new(tag, Delta::default()) })
}

/// CREATE SCHEMA
pub(super) fn create_schema(name: &SchemaName, if_not_exists: bool) -> Result<Definition> {
    let SchemaName::Simple(name) = name else { return Err(unsupported("AUTHORIZATION")) };
    let own = name.0.last().and_then(|part| part.as_ident()).map(name_of).unwrap_or_default();
    if ["public", "pg_catalog", "information_schema"].contains(&own.as_str()) {
        let what = format!("schema \"{own}\"");
        return existing("CREATE SCHEMA", &what, SqlState::DUPLICATE_SCHEMA, if_not_exists);
    }
    Err(Error::unsupported("a schema beside \"public\" is not supported", "Use schema \"public\"."))
}

/// CREATE EXTENSION
pub(super) fn create_extension(tree: &CreateExtension) -> Result<Definition> {
    let CreateExtension { name, if_not_exists, with_keyword: _, cascade: _, schema: _, version } =
        tree;
    let own = name_of(name);
    if !EXTENSIONS.contains(&own.as_str()) {
        let message = format!("extension \"{own}\" is not supported");
        return Err(Error::unsupported(message, "Of pgcrypto there is gen_random_uuid()."));
    }
    if version.is_some() {
        return Err(unsupported("the version of an extension"));
    }
    let what = format!("extension \"{own}\"");
    existing("CREATE EXTENSION", &what, SqlState::DUPLICATE_OBJECT, *if_not_exists)
}

/// What the client is told of a comment on an extension; `None` if there is no such extension.
pub(super) fn comment_notice(name: &str) -> Option<String> {
    let is_there = EXTENSIONS.contains(&name);
    is_there.then(|| format!("the comment on extension \"{name}\" is not kept"))
}
