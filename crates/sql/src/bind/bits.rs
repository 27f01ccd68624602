//! Operators and functions of strings of bits.

use super::binder::Binder;
use super::coerce::Bound;
use super::described::{Described, described};
use super::expression::{call, no_operator};
use super::kinds::Willing;
use crate::ir::{ByteFunction, Function};
use values::{Result, Type};

pub(super) fn is_bits(bound: &Bound) -> bool {
    bound.ty().is_some_and(Type::is_bits)
}

/// A function of text or bytes that strings of bits have, too.
pub(super) fn function_named(name: &str, count: usize) -> Option<Described<Function>> {
    use ByteFunction as B;
    use Function::Bytes;
    use Type::{Bit, Int4, Int8, Varbit};
    match (name, count) {
        ("length" | "bit_length", 1) => described(Function::Length, &[Bit], Int4),
        ("octet_length", 1) => described(Function::OctetLength, &[Bit], Int4),
        ("get_bit", 2) => described(Bytes(B::GetBit), &[Bit, Int4], Int4),
        ("set_bit", 3) => described(Bytes(B::SetBit), &[Bit, Int4, Int4], Bit),
        ("bit_count", 1) => described(Bytes(B::BitCount), &[Bit], Int8),
        ("position", 2) => described(Bytes(B::Position), &[Bit, Bit], Int4),
        ("substring", 2 | 3) => described(Bytes(B::Substring), &[Bit, Int4, Int4], Bit),
        ("overlay", 3 | 4) => described(Bytes(B::Overlay), &[Bit, Bit, Int4, Int4], Bit),
        ("bitcat", 2) => described(Function::Concat, &[Varbit, Varbit], Varbit),
        _ => None,
    }
}

impl Binder<'_> {
    /// An operator with a string of bits on one side at least; `None` if there is none.
    pub(super) fn of_bits(
        &mut self,
        function: Function,
        left: &Bound,
        right: &Bound,
    ) -> Result<Option<Bound>> {
        use Function::{BitAnd, BitOr, BitXor, Concat, ShiftLeft, ShiftRight};
        let (own, other, result) = match function {
            BitAnd | BitOr | BitXor => (Type::Bit, Type::Bit, Type::Bit),
            Concat => (Type::Varbit, Type::Varbit, Type::Varbit),
            ShiftLeft | ShiftRight if is_bits(left) => (Type::Bit, Type::Int4, Type::Bit),
            _ => return Ok(None),
        };
        let fits = |bound: &Bound| bound.ty().is_none_or(Type::is_bits);
        if !is_bits(left) && !is_bits(right) || function == Concat && !(fits(left) && fits(right)) {
            return Ok(None);
        }
        if !fits(left) || other == Type::Bit && !fits(right) {
            let sign = match function {
                BitAnd => "&",
                BitOr => "|",
                _ => "#",
            };
            return Err(no_operator(&format!("{} {sign} {}", left.type_name(), right.type_name())));
        }
        let left = self.coerce(left.clone(), own, Willing::Implicit)?;
        let right = self.coerce(right.clone(), other, Willing::Implicit)?;
        Ok(Some(call(function, vec![left, right], result)))
    }
}
