//! Functions whose arguments have stated types.

use super::binder::Binder;
use super::coerce::Bound;
use super::kinds::Willing;
use values::{Result, Type};

/// A function: what it computes, of which types, and its own.
pub(super) struct Described<F> {
    pub(super) function: F,
    pub(super) arguments: &'static [Type],
    pub(super) result: Type,
}

pub(super) const fn described<F: Copy>(
    function: F,
    arguments: &'static [Type],
    result: Type,
) -> Option<Described<F>> {
    Some(Described { function, arguments, result })
}

impl Binder<'_> {
    /// Arguments of these types; those that are missing may be.
    pub(super) fn coerced(&mut self, all: Vec<Bound>, types: &[Type]) -> Result<Vec<Bound>> {
        let pairs = all.into_iter().zip(types);
        pairs.map(|(bound, ty)| self.coerce(bound, *ty, Willing::Implicit)).collect()
    }
}
