//! Operators and functions of addresses of the internet.

use super::binder::Binder;
use super::coerce::Bound;
use super::described::{Described, described};
use super::expression::call;
use super::kinds::Willing;
use crate::ir::{Function, NetworkFunction};
use values::{Result, Type};

/// A function of an address.
pub(super) fn function_named(name: &str, count: usize) -> Option<Described<Function>> {
    use NetworkFunction as N;
    use Type::{Cidr, Inet, Int4, Text};
    let (function, result) = match (name, count) {
        ("host", 1) => (N::Host, Text),
        ("masklen", 1) => (N::MaskLength, Int4),
        ("network", 1) => (N::Network, Cidr),
        ("family", 1) => (N::Family, Int4),
        ("text", 1) => (N::Text, Text),
        _ => return None,
    };
    described(Function::Network(function), &[Inet], result)
}

impl Binder<'_> {
    /// An operator with an address on one side at least; `None` if there is none.
    pub(super) fn of_networks(
        &mut self,
        function: Function,
        left: &Bound,
        right: &Bound,
    ) -> Result<Option<Bound>> {
        let fits = |bound: &Bound| bound.ty().is_none_or(Type::is_network);
        let is_one = [left, right].iter().any(|bound| bound.ty().is_some());
        if !fits(left) || !fits(right) || !is_one {
            return Ok(None);
        }
        let left = self.coerce(left.clone(), Type::Inet, Willing::Implicit)?;
        let right = self.coerce(right.clone(), Type::Inet, Willing::Implicit)?;
        Ok(Some(call(function, vec![left, right], Type::Bool)))
    }
}
