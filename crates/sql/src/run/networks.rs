//! Addresses of the internet.

use crate::ir::{Function, NetworkFunction};
use values::{Datum, Result};

/// The result; `None` if the first argument is no address, or the function takes none.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    use NetworkFunction as N;
    Some(Ok(match (function, arguments) {
        (Function::ShiftLeft, [Datum::Network(left), Datum::Network(right)]) => {
            Datum::Bool(left.is_within(right))
        }
        (Function::ShiftRight, [Datum::Network(left), Datum::Network(right)]) => {
            Datum::Bool(right.is_within(left))
        }
        (Function::ArrayOverlaps, [Datum::Network(left), Datum::Network(right)]) => {
            Datum::Bool(left.overlaps(right))
        }
        (Function::Network(function), [Datum::Network(own)]) => match function {
            N::Host => Datum::text(own.host()),
            N::MaskLength => Datum::Int4(i32::from(own.bits())),
            N::Network => Datum::Network(Box::new(own.to_cidr())),
            N::Family => Datum::Int4(own.family()),
            N::Text => Datum::text(own.whole()),
        },
        _ => return None,
    }))
}
