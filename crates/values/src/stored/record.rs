//! The bytes of records, which only answers and constants of plans have.
//!
//! ```text
//! for each field: the code of its type (0xff of NULL); of an enum, or an array of one, the bytes
//! of the definition (u32) and the definition; the bytes of the value (u32) and the value
//! ```

use super::row::{corrupted, push_value, read_value};
use crate::{Datum, EnumType, Result, Type};

/// Records in records: values are read by calls of calls.
pub const RECORD_DEPTH_MAX: usize = 16;
/// Stands for the type of NULL.
const NULL_CODE: u8 = 0xff;

/// How many records are in each other; 0 of another value.
pub fn record_depth(value: &Datum) -> usize {
    match value {
        Datum::Record(fields) => 1 + fields.iter().map(record_depth).max().unwrap_or(0),
        Datum::Array(array) if array.element() == Type::Record => {
            array.items().iter().map(record_depth).max().unwrap_or(0)
        }
        _ => 0,
    }
}

pub(super) fn push(fields: &[Datum], bytes: &mut Vec<u8>) {
    for field in fields {
        let Some(ty) = field.kind() else {
            bytes.push(NULL_CODE);
            continue;
        };
        bytes.push(ty.code());
        if let Some(enumeration) = ty.enum_type() {
            let definition = enumeration.to_bytes();
            bytes.extend_from_slice(&(definition.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&definition);
        }
        let at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        push_value(field, bytes);
        let length = ((bytes.len() - at - 4) as u32).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&length);
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Box<[Datum]>> {
    read_within(bytes, 1)
}

fn read_within(mut rest: &[u8], depth: usize) -> Result<Box<[Datum]>> {
    let mut fields = Vec::new();
    while let Some((code, after)) = rest.split_first() {
        rest = after;
        if *code == NULL_CODE {
            fields.push(Datum::Null);
            continue;
        }
        let ty = match Type::is_code_of_enum(*code) {
            true => {
                let definition = EnumType::from_bytes(part(&mut rest)?)?;
                Type::from_code_of_enum(*code, definition)
            }
            false => Type::from_code(*code),
        };
        let ty = ty.ok_or_else(|| corrupted("a record has a type that there is not"))?;
        let value = part(&mut rest)?;
        fields.push(match ty {
            Type::Record if depth >= RECORD_DEPTH_MAX => {
                return Err(corrupted("records are nested too deep"));
            }
            Type::Record => Datum::Record(read_within(value, depth + 1)?),
            ty => read_value(ty, value)?,
        });
    }
    Ok(fields.into())
}

/// Bytes behind their number.
fn part<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8]> {
    let cut = || corrupted("a record is cut");
    let (length, after) = rest.split_first_chunk().ok_or_else(cut)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (value, after) = after.split_at_checked(length).ok_or_else(cut)?;
    *rest = after;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;

    #[test]
    fn records_are_read_as_they_were() {
        let items = Array::new(Type::Int4, vec![Datum::Int4(1), Datum::Null]).unwrap();
        let inner = Datum::Record([Datum::text("a"), Datum::Array(Box::new(items))].into());
        let fields = [Datum::Int4(7), Datum::Null, inner, Datum::text("")];
        let mut bytes = Vec::new();
        push(&fields, &mut bytes);
        let again = read(&bytes).unwrap();
        assert_eq!(format!("{again:?}"), format!("{fields:?}"));
        for end in 0..bytes.len() {
            // A part of the fields is a record, too.
            if let Ok(some) = read(&bytes[..end]) {
                assert!(some.len() < fields.len(), "{end}");
            }
        }
        assert_eq!(record_depth(&Datum::Record(fields.into())), 2);
    }

    #[test]
    fn records_that_are_too_deep_are_refused() {
        let nested = |depth| (0..depth).fold(Datum::Null, |inner, _| Datum::Record([inner].into()));
        for (depth, is_read) in [(RECORD_DEPTH_MAX, true), (RECORD_DEPTH_MAX + 1, false)] {
            let Datum::Record(fields) = nested(depth) else { unreachable!() };
            let mut bytes = Vec::new();
            push(&fields, &mut bytes);
            assert_eq!(read(&bytes).is_ok(), is_read, "{depth}");
        }
    }
}
