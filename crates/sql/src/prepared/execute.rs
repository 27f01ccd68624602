//! The types of PREPARE and the values of EXECUTE.

use crate::bind::{Binder, kind_of};
use crate::catalog::Catalog;
use crate::ir::Kind;
use crate::parse::Statement;
use crate::run::{Context, Memory, value_over};
use values::{Datum, Error, Result, SqlState, Type};

/// Steps that the values of an EXECUTE may take.
const STEPS_MAX: u64 = 1_000_000;

/// The types that PREPARE states; none of any other statement.
///
/// # Errors
/// A type that there is not.
pub fn parameter_types(catalog: &Catalog, statement: &Statement) -> Result<Vec<Option<Type>>> {
    let stated = statement.prepared_types().iter();
    stated.map(|ty| kind_of(catalog, ty).map(|kind| Some(kind.ty))).collect()
}

/// The values of EXECUTE for a statement with parameters of these types.
///
/// # Errors
/// Too many or too few values, and those that do not become of the types.
pub fn arguments(
    catalog: &Catalog,
    statement: &Statement,
    types: &[Type],
    context: &Context,
) -> Result<Vec<Datum>> {
    let Some((name, stated)) = statement.executed() else { return Ok(Vec::new()) };
    if stated.len() != types.len() {
        let message = format!("wrong number of parameters for prepared statement \"{name}\"");
        let detail = format!("Expected {} parameters but got {}.", types.len(), stated.len());
        return Err(Error::new(SqlState::SYNTAX_ERROR, message).with_detail(detail));
    }
    let mut memory = Memory::new(STEPS_MAX);
    let value = |(at, (expr, ty)): (usize, (_, &Type))| {
        let mut binder = Binder::without_parameters(catalog, &statement.lines, &context.zone);
        binder.grant = context.grant.as_deref();
        let bound = binder.argument(expr, Kind::plain(*ty), at)?.expression();
        if bound.takes_number() || bound.needs_seed() || bound.needs_system() {
            let message = "a sequence, a random value or the catalog in a parameter of EXECUTE";
            return Err(Error::unsupported(message, "Give the value itself."));
        }
        value_over(&bound, &[], context, &mut memory)
    };
    stated.iter().zip(types).enumerate().map(value).collect()
}
