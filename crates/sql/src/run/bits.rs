//! Strings of bits.

use super::strings::bounded;
use crate::ir::{ByteFunction, Function};
use values::{Bits, Datum, Error, Result, SqlState};

/// The result; `None` if the first argument is no string of bits, or the function takes none.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    let [Datum::Bits(bits), rest @ ..] = arguments else { return None };
    if let Function::Bytes(function) = function {
        return part_of(function, bits, rest);
    }
    let combined = |of: fn(u8, u8) -> u8, name: &str| match rest {
        [Datum::Bits(other)] => Some(bits.combined(other, of).ok_or_else(|| unequal(name))),
        _ => None,
    };
    let found = match (function, rest) {
        (Function::BitAnd, _) => combined(|own, other| own & other, "AND")?,
        (Function::BitOr, _) => combined(|own, other| own | other, "OR")?,
        (Function::BitXor, _) => combined(|own, other| own ^ other, "XOR")?,
        (Function::BitNot, []) => Ok(bits.inverted()),
        (Function::ShiftLeft, [Datum::Int4(count)]) => Ok(bits.shifted(i64::from(*count))),
        (Function::ShiftRight, [Datum::Int4(count)]) => Ok(bits.shifted(-i64::from(*count))),
        (Function::Concat, [Datum::Bits(other)]) => joined(bits, other),
        (Function::Length, []) => return Some(Ok(Datum::Int4(bits.count() as i32))),
        (Function::OctetLength, []) => return Some(Ok(Datum::Int4(bits.bytes().len() as i32))),
        _ => return None,
    };
    Some(found.map(Datum::Bits))
}

fn unequal(name: &str) -> Error {
    let message = format!("cannot {name} bit strings of different sizes");
    Error::new(SqlState::LENGTH_MISMATCH, message)
}

fn joined(bits: &Bits, other: &Bits) -> Result<Bits> {
    bounded(bits.bytes().len() + other.bytes().len())?;
    Ok(bits.and_then(other))
}

/// The functions that bytes have, too.
fn part_of(function: ByteFunction, bits: &Bits, rest: &[Datum]) -> Option<Result<Datum>> {
    use ByteFunction as B;
    Some(match (function, rest) {
        (B::GetBit, [Datum::Int4(at)]) => {
            place(*at, bits).map(|at| Datum::Int4(i32::from(bits.get(at))))
        }
        (B::SetBit, [Datum::Int4(at), Datum::Int4(value)]) => match value {
            0 | 1 => place(*at, bits).map(|at| Datum::Bits(bits.with(at, *value == 1))),
            _ => Err(Error::new(SqlState::INVALID_PARAMETER, "new bit must be 0 or 1")),
        },
        (B::BitCount, []) => Ok(Datum::Int8(bits.ones() as i64)),
        (B::Position, [Datum::Bits(part)]) => {
            let found = bits.position(part).filter(|_| bits.count() > 0);
            Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
        }
        (B::Substring, [Datum::Int4(from), rest @ ..]) => {
            substring(bits, i64::from(*from), rest).map(Datum::Bits)
        }
        (B::Overlay, [Datum::Bits(new), Datum::Int4(from), rest @ ..]) => {
            overlay(bits, new, *from, rest).map(Datum::Bits)
        }
        _ => return None,
    })
}

fn place(at: i32, bits: &Bits) -> Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < bits.count());
    found.ok_or_else(|| {
        let last = bits.count() as i64 - 1;
        let message = format!("bit index {at} out of valid range (0..{last})");
        Error::new(SqlState::ARRAY_SUBSCRIPT, message)
    })
}

fn negative_length() -> Error {
    Error::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

fn substring(bits: &Bits, from: i64, length: &[Datum]) -> Result<Bits> {
    let end = match length {
        [Datum::Int4(length)] if *length < 0 => return Err(negative_length()),
        [Datum::Int4(length)] => from + i64::from(*length),
        _ => i64::MAX,
    };
    let count = bits.count() as i64;
    let begin = (from.max(1) - 1).min(count);
    let end = (end.max(1) - 1).clamp(begin, count);
    Ok(bits.part(begin as usize, (end - begin) as usize))
}

fn overlay(bits: &Bits, new: &Bits, from: i32, length: &[Datum]) -> Result<Bits> {
    if from <= 0 {
        return Err(negative_length());
    }
    let length = match length {
        [Datum::Int4(length)] => *length,
        _ => i32::try_from(new.count()).unwrap_or(i32::MAX),
    };
    let behind = from
        .checked_add(length)
        .ok_or_else(|| Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))?;
    let before = substring(bits, 1, &[Datum::Int4(from - 1)])?;
    joined(&joined(&before, new)?, &substring(bits, i64::from(behind), &[])?)
}
