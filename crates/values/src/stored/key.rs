//! Bytes of keys: their order is the order of the values, so that indexes need to know no types.
//!
//! A column that may be NULL begins with a mark: 01 before a value, FF for NULL where NULLs are
//! last, 00 where they are first. DESC inverts the value's bytes and not the mark. Numbers have
//! their sign bit turned and are big endian; text and bytes end with 00 00, and a 00 within is 00
//! FF.

use crate::numeric::Digits;
use crate::{Datum, Error, Network, Numeric, Result, Type};
use sha2::{Digest, Sha256};

/// How a column stands in a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// From large to small.
    pub descending: bool,
    /// NULLs before all values.
    pub nulls_first: bool,
    /// Whether the column may be NULL: it then has a mark.
    pub nullable: bool,
}

/// A longer key keeps its first [`KEY_HEAD_BYTES`] and a digest of the rest.
pub const KEY_BYTES_MAX: usize = 240;
/// What stays of a long key.
pub const KEY_HEAD_BYTES: usize = 200;
const DIGEST_BYTES: usize = 16;
// A shortened key is no longer than others, so it is not shortened again.
const _: () = assert!(KEY_HEAD_BYTES + DIGEST_BYTES <= KEY_BYTES_MAX);

/// The first byte of a value in a column that may be NULL.
pub const MARK_VALUE: u8 = 1;
const MARK_NULL_LAST: u8 = 0xff;
const MARK_NULL_FIRST: u8 = 0;

/// Appends a column's value.
pub fn push(bytes: &mut Vec<u8>, datum: &Datum, order: Order) {
    if datum.is_null() {
        assert!(order.nullable, "NULL in a column that has none");
        bytes.push(if order.nulls_first { MARK_NULL_FIRST } else { MARK_NULL_LAST });
        return;
    }
    if order.nullable {
        bytes.push(MARK_VALUE);
    }
    let begin = bytes.len();
    push_value(bytes, datum);
    if order.descending {
        bytes[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn push_value(bytes: &mut Vec<u8>, datum: &Datum) {
    match datum {
        Datum::Bool(value) => bytes.push(u8::from(*value)),
        Datum::Int2(value) => bytes.extend_from_slice(&(*value as u16 ^ 1 << 15).to_be_bytes()),
        Datum::Int4(value) => bytes.extend_from_slice(&(*value as u32 ^ 1 << 31).to_be_bytes()),
        Datum::Int8(value) => bytes.extend_from_slice(&(*value as u64 ^ 1 << 63).to_be_bytes()),
        Datum::Float4(value) => push_float(bytes, f64::from(*value)),
        Datum::Float8(value) => push_float(bytes, *value),
        Datum::Numeric(value) => push_numeric(bytes, value),
        // Those of a column have the blanks of its length, so equal ones have equal bytes.
        Datum::Text(text) | Datum::Char(text) => push_escaped(bytes, text.as_bytes()),
        Datum::Bytea(value) => push_escaped(bytes, value),
        // As the bytes, and of equal ones that with fewer bits has more that are not used.
        Datum::Bits(bits) => {
            push_escaped(bytes, bits.bytes());
            bytes.push(8 - bits.stored()[0]);
        }
        Datum::Network(network) => network.push_key(bytes),
        Datum::Uuid(value) => bytes.extend_from_slice(value),
        Datum::Date(date) => bytes.extend_from_slice(&(date.bits() as u32 ^ 1 << 31).to_be_bytes()),
        Datum::Timestamp(at) | Datum::Timestamptz(at) => {
            bytes.extend_from_slice(&(at.bits() as u64 ^ 1 << 63).to_be_bytes());
        }
        Datum::Time(time) => bytes.extend_from_slice(&time.microseconds().to_be_bytes()),
        Datum::Enum(value) => bytes.extend_from_slice(&value.number().to_be_bytes()),
        Datum::Interval(interval) => {
            bytes.extend_from_slice(&(interval.length() as u128 ^ 1 << 127).to_be_bytes());
        }
        Datum::Null
        | Datum::Jsonb(_)
        | Datum::Json(_)
        | Datum::Jsonpath(_)
        | Datum::Array(_)
        | Datum::Record(_) => {
            panic!("{datum:?} in a key: DDL refuses its type")
        }
    }
}

/// Negative numbers have all bits turned, others the sign. -0 is 0, and all NaN are one, above all.
fn push_float(bytes: &mut Vec<u8>, value: f64) {
    let bits =
        if value.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (value + 0.0).to_bits() };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    bytes.extend_from_slice(&ordered.to_be_bytes());
}

fn push_escaped(bytes: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(0xff);
        }
    }
    bytes.extend_from_slice(&[0, 0]);
}

const NUMERIC_NEGATIVE_INFINITY: u8 = 1;
const NUMERIC_NEGATIVE: u8 = 2;
const NUMERIC_ZERO: u8 = 3;
const NUMERIC_POSITIVE: u8 = 4;
const NUMERIC_INFINITY: u8 = 5;
const NUMERIC_NAN: u8 = 6;

/// Sign, exponent, digits to base 100 (each plus one), end; below zero all after the sign is
/// inverted.
pub(crate) fn push_numeric(bytes: &mut Vec<u8>, number: &Numeric) {
    let Some(digits) = Digits::of(number, 2) else {
        bytes.push(match number.signum() {
            0 => NUMERIC_NAN,
            1 => NUMERIC_INFINITY,
            _ => NUMERIC_NEGATIVE_INFINITY,
        });
        return;
    };
    if digits.digits.is_empty() {
        bytes.push(NUMERIC_ZERO);
        return;
    }
    bytes.push(if digits.negative { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE });
    let begin = bytes.len();
    let weight = i16::try_from(digits.weight).expect("the digits of a numeric are limited");
    assert!(
        digits.digits.iter().all(|digit| *digit < 100),
        "a digit is a byte that is not the end"
    );
    let weight = weight as u16 ^ 1 << 15;
    bytes.extend_from_slice(&weight.to_be_bytes());
    bytes.extend(digits.digits.iter().map(|digit| *digit as u8 + 1));
    bytes.push(0);
    if digits.negative {
        bytes[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The number of bytes of all values of a type in keys, without the mark, if they all have the
/// same.
pub fn fixed_bytes(ty: Type) -> Option<usize> {
    match ty {
        // As `double precision`, whose order it has.
        Type::Float4 => Some(8),
        _ => ty.fixed_bytes(),
    }
}

/// The bytes after those of the first column.
pub fn skip(bytes: &[u8], ty: Type, order: Order) -> Result<&[u8]> {
    let corrupted = || Error::corrupted("key is damaged");
    let mut bytes = bytes;
    if order.nullable {
        let (mark, rest) = bytes.split_first().ok_or_else(corrupted)?;
        match *mark {
            MARK_VALUE => bytes = rest,
            MARK_NULL_FIRST | MARK_NULL_LAST => return Ok(rest),
            _ => return Err(corrupted()),
        }
    }
    let mask = if order.descending { 0xff } else { 0 };
    let width = match ty {
        Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter | Type::Bytea => {
            escaped_bytes(bytes, mask).ok_or_else(corrupted)?
        }
        Type::Bit | Type::Varbit => escaped_bytes(bytes, mask).ok_or_else(corrupted)? + 1,
        Type::Inet | Type::Cidr => {
            let first = bytes.first().ok_or_else(corrupted)? ^ mask;
            Network::key_bytes(first).ok_or_else(corrupted)?
        }
        Type::Numeric => numeric_bytes(bytes, mask).ok_or_else(corrupted)?,
        _ => fixed_bytes(ty).ok_or_else(corrupted)?,
    };
    bytes.get(width..).ok_or_else(corrupted)
}

fn escaped_bytes(bytes: &[u8], mask: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        if bytes.get(at)? ^ mask != 0 {
            at += 1;
        } else if bytes.get(at + 1)? ^ mask == 0 {
            return Some(at + 2);
        } else {
            at += 2;
        }
    }
}

fn numeric_bytes(bytes: &[u8], mask: u8) -> Option<usize> {
    let sign = bytes.first()? ^ mask;
    let end = match sign {
        NUMERIC_POSITIVE => mask,
        NUMERIC_NEGATIVE => !mask,
        NUMERIC_NEGATIVE_INFINITY | NUMERIC_ZERO | NUMERIC_INFINITY | NUMERIC_NAN => {
            return Some(1);
        }
        _ => return None,
    };
    let digits = bytes.get(3..)?;
    Some(3 + digits.iter().position(|byte| *byte == end)? + 1)
}

/// The key that the store gets: a long one is cut, and a digest of the rest keeps it apart from
/// others.
pub fn shorten(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > KEY_BYTES_MAX {
        let digest = Sha256::digest(&bytes[KEY_HEAD_BYTES..]);
        bytes.truncate(KEY_HEAD_BYTES);
        bytes.extend_from_slice(&digest[..DIGEST_BYTES]);
    }
    assert!(bytes.len() <= KEY_BYTES_MAX, "the store takes each key");
    bytes
}

/// A bound of a scan: cut where long keys are, so that it is not beyond a long key that it covers.
pub fn bound(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(KEY_HEAD_BYTES);
    bytes
}

/// The smallest key above all that begin with `prefix`; `None` if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    assert!(&next[..] > prefix && !next.starts_with(prefix), "a scan ends behind the prefix");
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_equal_have_one_key() {
        let key = |text: &str| {
            let mut bytes = Vec::new();
            push(&mut bytes, &Datum::Numeric(text.parse().unwrap()), Order::default());
            bytes
        };
        assert_eq!(key("1.5"), key("1.500"));
        assert_eq!(key("-0.00"), key("0"));
        assert!(key("-infinity") < key("-1") && key("infinity") < key("NaN"));
    }

    #[test]
    fn long_keys_are_cut_and_stay_different() {
        let key = |end: u8| shorten([vec![7; 300], vec![end]].concat());
        assert_eq!(key(1).len(), KEY_HEAD_BYTES + DIGEST_BYTES);
        assert_ne!(key(1), key(2));
        assert_eq!(shorten(vec![7; KEY_BYTES_MAX]).len(), KEY_BYTES_MAX);
        assert!(bound(vec![7; 300]) < key(1));
    }

    #[test]
    fn the_key_after_a_prefix_is_above_all_of_it() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff]), None);
    }
}
