//! CREATE CAST and DROP CAST, between enums and text.

use super::definition::Definition;
use crate::bind::kind_of;
use crate::catalog::{Cast, Catalog, Delta};
use crate::parse::{CastChange, CastStatement, CastWay};
use sqlparser::ast::DataType;
use values::{Error, Result, SqlState, Type};

/// Makes or removes a cast.
pub(super) fn change(catalog: &Catalog, tree: &CastStatement) -> Result<Definition> {
    let (from, to) = (named(catalog, &tree.from)?, named(catalog, &tree.to)?);
    match &tree.change {
        CastChange::Create { way, use_in } => {
            refuse(from, to, *way)?;
            let shown = format!("cast from type {} to type {}", from.name(), to.name());
            if catalog.cast(from, to).is_some() {
                let message = format!("{shown} already exists");
                return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
            }
            let (id, mut delta) = (catalog.next_id(), Delta::default());
            let (from, to) = (from.oid().number(), to.oid().number());
            delta.put_cast(&Cast { id, from, to, use_in: *use_in });
            delta.set_next_id(id.next());
            Ok(Definition::new("CREATE CAST", delta))
        }
        CastChange::Drop { if_exists } => {
            let mut definition = Definition::new("DROP CAST", Delta::default());
            match catalog.cast(from, to) {
                Some(cast) => definition.delta.drop_cast(cast.id),
                None => {
                    let shown = format!("cast from type {} to type {}", from.name(), to.name());
                    let message = format!("{shown} does not exist");
                    let missing = Error::new(SqlState::UNDEFINED_OBJECT, message);
                    definition.skip_missing(missing, *if_exists)?;
                }
            }
            Ok(definition)
        }
    }
}

/// A type without its length.
fn named(catalog: &Catalog, ty: &DataType) -> Result<Type> {
    kind_of(catalog, ty).map(|kind| kind.ty)
}

/// Refuses casts that would mean something else than those that there are.
fn refuse(from: Type, to: Type, way: CastWay) -> Result<()> {
    if from == to {
        let message = "source data type and target data type are the same";
        return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    let is_enum = |ty| matches!(ty, Type::Enum(_));
    let what = match way {
        CastWay::WithoutFunction if is_enum(from) || is_enum(to) => {
            let message = "source and target data types are not physically compatible";
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        CastWay::WithoutFunction => "CREATE CAST WITHOUT FUNCTION is not supported",
        CastWay::Function => "CREATE CAST WITH FUNCTION is not supported",
        CastWay::Text if (is_enum(from) && to.is_text()) || (from.is_text() && is_enum(to)) => {
            return Ok(());
        }
        CastWay::Text => "CREATE CAST of other types than enums and text is not supported",
    };
    Err(Error::unsupported(what, "Write the cast where it is needed."))
}
