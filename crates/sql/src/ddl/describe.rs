//! What clients ask about a definition before it runs.

use super::{set_value, table_as};
use crate::bind::{Options, OutputColumn};
use crate::catalog::Catalog;
use crate::parse::Statement;
use values::{Result, Type};

/// The types of the parameters of a definition, and the columns of its answer: `setval` has both,
/// CREATE TABLE AS parameters.
///
/// # Errors
/// What is wrong with the arguments or the query.
pub fn described(
    catalog: &Catalog,
    statement: &Statement,
    options: &Options,
) -> Result<(Vec<Type>, Vec<OutputColumn>)> {
    match &statement.table_as {
        Some(tree) => Ok((table_as::parameters(catalog, statement, tree, options)?, Vec::new())),
        None => set_value::described(catalog, statement, options),
    }
}
