//! Functions of an enum's values, which its type tells.

use super::binder::Binder;
use super::coerce::Bound;
use super::expression::call;
use super::kinds::Willing;
use crate::ir::Function;
use values::{Array, Datum, EnumType, EnumValue, Error, Result, SqlState, Type};

impl Binder<'_> {
    /// `enum_first`, `enum_last` and `enum_range`; `None` of what is no enum.
    pub(super) fn enum_function(&mut self, name: &str, all: Vec<Bound>) -> Result<Option<Bound>> {
        let Some(own @ Type::Enum(ty)) = all.iter().find_map(Bound::ty) else { return Ok(None) };
        let Some(array) = own.array() else { return Ok(None) };
        Ok(Some(match (name, all.len()) {
            ("enum_first", 1) => end(ty, ty.values().next())?,
            ("enum_last", 1) => end(ty, ty.values().next_back())?,
            ("enum_range", 1) => whole(ty, array)?,
            ("enum_range", 2) => {
                let ends = all.into_iter().map(|end| self.coerce(end, own, Willing::Implicit));
                let ends = ends.collect::<Result<Vec<_>>>()?;
                let all = [whole(ty, array)?].into_iter().chain(ends).collect();
                call(Function::EnumRange, all, array)
            }
            _ => return Ok(None),
        }))
    }
}

fn end(ty: EnumType, value: Option<EnumValue>) -> Result<Bound> {
    let value = value.ok_or_else(|| {
        Error::new(SqlState::WRONG_STATE, format!("enum {} contains no values", ty.shown()))
    })?;
    Ok(Bound::constant(Datum::Enum(value), Type::Enum(ty)))
}

/// All values, from the smallest to the largest.
fn whole(ty: EnumType, array: Type) -> Result<Bound> {
    let items = ty.values().map(Datum::Enum).collect();
    let items = Array::new(Type::Enum(ty), items)?;
    Ok(Bound::constant(Datum::Array(Box::new(items)), array))
}
