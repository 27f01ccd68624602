//! CREATE EXTENSION: what there is from the beginning.

use super::definition::{Definition, existing};
use crate::bind::{name_of, unsupported};
use sqlparser::ast::CreateExtension;
use values::{Error, Result, SqlState};

/// Extensions whose functions are there: `gen_random_uuid` of `pgcrypto`. PL/pgSQL is in each
/// database of PostgreSQL, and dumps make it anew.
const EXTENSIONS: [&str; 2] = ["pgcrypto", "plpgsql"];

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
