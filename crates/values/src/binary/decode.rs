//! From bytes to a value.

use super::{
    JSONB_VERSION, JSONPATH_VERSION, NUMERIC_INFINITY, NUMERIC_NAN, NUMERIC_NEGATIVE,
    NUMERIC_NEGATIVE_INFINITY, NUMERIC_POSITIVE,
};
use crate::numeric::Digits;
use crate::{
    Array, Bits, DIMENSIONS_MAX, Date, Datum, Dimension, Error, ITEMS_MAX, Interval, Json, Network,
    Numeric, Oid, Result, SqlState, Time, Timestamp, Type, text,
};

fn invalid(ty: Type) -> Error {
    let message = format!("invalid binary representation of type {}", ty.name());
    Error::new(SqlState::INVALID_BINARY, message)
}

fn fixed<const N: usize>(ty: Type, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| invalid(ty))
}

/// The value of the type that these bytes are.
pub fn decode(ty: Type, bytes: &[u8]) -> Result<Datum> {
    Ok(match ty {
        Type::Bool => Datum::Bool(fixed::<1>(ty, bytes)? != [0]),
        Type::Int2 => Datum::Int2(i16::from_be_bytes(fixed(ty, bytes)?)),
        Type::Int4
        | Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => Datum::Int4(i32::from_be_bytes(fixed(ty, bytes)?)),
        Type::Int8 => Datum::Int8(i64::from_be_bytes(fixed(ty, bytes)?)),
        Type::Float4 => Datum::Float4(f32::from_bits(u32::from_be_bytes(fixed(ty, bytes)?))),
        Type::Float8 => Datum::Float8(f64::from_bits(u64::from_be_bytes(fixed(ty, bytes)?))),
        Type::Numeric => Datum::Numeric(decode_numeric(bytes)?),
        Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter | Type::Json => {
            text::parse(ty, utf8(bytes)?, &crate::Zone::utc())?
        }
        Type::Bytea => Datum::Bytea(bytes.into()),
        Type::Inet | Type::Cidr => {
            let network = Network::of_binary(bytes, ty == Type::Cidr).ok_or_else(|| invalid(ty))?;
            Datum::Network(Box::new(network))
        }
        Type::Bit | Type::Varbit => Datum::Bits(decode_bits(ty, bytes)?),
        Type::Uuid => Datum::Uuid(fixed(ty, bytes)?),
        Type::Date => Datum::Date(Date::from_bits(i32::from_be_bytes(fixed(ty, bytes)?))?),
        Type::Timestamp => Datum::Timestamp(timestamp(ty, bytes)?),
        Type::Timestamptz => Datum::Timestamptz(timestamp(ty, bytes)?),
        Type::Interval => {
            let all = fixed::<16>(ty, bytes)?;
            Datum::Interval(Interval {
                microseconds: i64::from_be_bytes(fixed(ty, &all[..8])?),
                days: i32::from_be_bytes(fixed(ty, &all[8..12])?),
                months: i32::from_be_bytes(fixed(ty, &all[12..])?),
            })
        }
        Type::Jsonb => match bytes.split_first() {
            Some((&JSONB_VERSION, json)) => Datum::Jsonb(Box::new(Json::parse(utf8(json)?)?)),
            _ => return Err(invalid(ty)),
        },
        Type::Jsonpath => match bytes.split_first() {
            Some((&JSONPATH_VERSION, path)) => text::parse(ty, utf8(path)?, &crate::Zone::utc())?,
            _ => return Err(invalid(ty)),
        },
        Type::Time => Datum::Time(Time::from_microseconds(i64::from_be_bytes(fixed(ty, bytes)?))?),
        Type::Enum(ty) => Datum::Enum(ty.parse(utf8(bytes)?)?),
        Type::Array(_) => Datum::Array(Box::new(decode_array(ty, bytes)?)),
        Type::Record => return Err(text::no_record()),
    })
}

/// The number of bits, then their bytes.
fn decode_bits(ty: Type, bytes: &[u8]) -> Result<Bits> {
    let (count, bytes) = bytes.split_first_chunk::<4>().ok_or_else(|| invalid(ty))?;
    let count = usize::try_from(i32::from_be_bytes(*count)).map_err(|_| invalid(ty))?;
    Bits::of_bytes(bytes, count).ok_or_else(|| invalid(ty))
}

fn timestamp(ty: Type, bytes: &[u8]) -> Result<Timestamp> {
    Timestamp::from_bits(i64::from_be_bytes(fixed(ty, bytes)?))
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let shown: Vec<String> =
            bytes[at..].iter().take(4).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        Error::new(SqlState::INVALID_ENCODING, message)
    })
}

fn decode_numeric(bytes: &[u8]) -> Result<Numeric> {
    let refused = || invalid(Type::Numeric);
    let mut words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => Ok(u16::from_be_bytes([high, low])),
        _ => Err(refused()),
    });
    let mut word = || words.next().ok_or_else(refused)?;
    let (count, weight, sign, scale) = (word()?, word()? as i16, word()?, word()?);
    let digits = words.collect::<Result<Vec<u16>>>()?;
    if digits.len() != usize::from(count) || digits.iter().any(|digit| *digit > 9_999) {
        return Err(refused());
    }
    let negative = match sign {
        NUMERIC_POSITIVE => false,
        NUMERIC_NEGATIVE => true,
        NUMERIC_NAN => return Ok(Numeric::NAN),
        NUMERIC_INFINITY => return Ok(Numeric::INFINITY),
        NUMERIC_NEGATIVE_INFINITY => return Ok(Numeric::NEGATIVE_INFINITY),
        _ => return Err(refused()),
    };
    Digits { negative, weight: i64::from(weight), digits }.to_numeric(4, scale)
}

fn decode_array(ty: Type, bytes: &[u8]) -> Result<Array> {
    let element = ty.element().ok_or_else(|| invalid(ty))?;
    let mut rest = bytes;
    let word = |rest: &mut &[u8]| -> Result<i32> {
        let (first, after) = rest.split_first_chunk::<4>().ok_or_else(|| invalid(ty))?;
        *rest = after;
        Ok(i32::from_be_bytes(*first))
    };
    let count = word(&mut rest)?;
    let _has_nulls = word(&mut rest)?;
    let stated = Oid::new(word(&mut rest)? as u32);
    if stated != element.oid() {
        let (stated, own) = (stated.number(), element.oid().number());
        let message = format!("wrong element type: {stated} in place of {own}");
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    }
    if !(0..=DIMENSIONS_MAX as i32).contains(&count) {
        return Err(invalid(ty));
    }
    let mut dimensions = Vec::new();
    for _ in 0..count {
        let length = u32::try_from(word(&mut rest)?).map_err(|_| invalid(ty))?;
        dimensions.push(Dimension { length, lower: word(&mut rest)? });
    }
    if dimensions.iter().any(|dimension| dimension.length == 0) {
        dimensions.clear();
    }
    let mut items = Vec::new();
    while !rest.is_empty() {
        let length = word(&mut rest)?;
        if items.len() >= ITEMS_MAX {
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, "array has too many items"));
        }
        if length == -1 {
            items.push(Datum::Null);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| invalid(ty))?;
        let (item, after) = rest.split_at_checked(length).ok_or_else(|| invalid(ty))?;
        items.push(decode(element, item)?);
        rest = after;
    }
    Array::with_dimensions(element, dimensions, items)
}
