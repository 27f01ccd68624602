//! Names in statements.

use crate::catalog::{Catalog, Written};
use crate::ir::Name;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use values::{Error, Result};

/// Longer names are cut, as PostgreSQL does.
const NAME_BYTES_MAX: usize = 63;

/// A name as the catalog has it: small letters unless it was quoted.
pub(crate) fn name_of(ident: &Ident) -> String {
    let mut name = match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    };
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    name
}

/// The name of a table, index, sequence or type as a statement writes it.
pub(crate) fn written_name(name: &ObjectName) -> Result<Written> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(name_of(ident)),
        ObjectNamePart::Function(_) => {
            Err(Error::unsupported(format!("name \"{name}\""), "Write the name itself."))
        }
    };
    Written::of_parts(&name.0.iter().map(part).collect::<Result<Vec<String>>>()?)
}

/// The name of what is in no schema, or whose schema does not matter.
pub(crate) fn own_name(name: &ObjectName) -> Result<String> {
    Ok(written_name(name)?.own)
}

/// The name that a statement gives what it makes.
///
/// # Errors
/// That its schema does not exist.
pub(crate) fn new_name(catalog: &Catalog, name: &ObjectName) -> Result<Name> {
    catalog.new_name(&written_name(name)?)
}
