//! The bytes of rows.
//!
//! ```text
//! 0      version of this layout (1)
//! 1..3   number of columns that the row has
//! 3..    one bit for each of them: set if it is NULL
//!        the columns of fixed size, in order; zeros where NULL
//!        for each other column the end of its bytes, from the first of them (u32)
//!        the bytes of the other columns
//! ```
//!
//! Numbers are little endian. A row may have fewer columns than its table has now: those that came
//! later have the catalog's default. Any bytes can be decoded: what is no row is an error.

use super::record;
use crate::json::JsonPath;
use crate::{
    Array, Bits, Date, Datum, Dimension, Error, Interval, Json, Network, Numeric, Result, Time,
    Timestamp, Type,
};

/// The version of the layout.
const VERSION: u8 = 1;
/// The first byte of what a store has instead of a row that it keeps in pieces: no row begins so.
pub const IN_PIECES: u8 = u8::MAX;
const HEADER_BYTES: usize = 3;
const END_BYTES: usize = 4;
/// Room for most rows, so that they do not grow while they are made.
const ROW_BYTES_USUAL: usize = 256;
/// The most columns of a table, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1_600;

/// Where the columns of a table's rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    types: Vec<Type>,
}

pub(super) fn corrupted(what: &str) -> Error {
    Error::corrupted(format!("row is damaged: {what}"))
}

impl Layout {
    /// The layout of rows with these columns.
    pub fn new(types: Vec<Type>) -> Layout {
        assert!(
            types.len() <= COLUMNS_MAX,
            "tables of more columns are refused when they are made"
        );
        Layout { types }
    }

    /// The types of the columns.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// The bytes of a row: one value for each column, of the column's type.
    pub fn encode(&self, row: &[Datum]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_BYTES_USUAL);
        self.encode_to(row, &mut bytes);
        bytes
    }

    /// Appends the bytes of a row.
    pub fn encode_to(&self, row: &[Datum], bytes: &mut Vec<u8>) {
        assert_eq!(row.len(), self.types.len(), "a row has a value for each column");
        let nulls = bytes.len() + HEADER_BYTES;
        bytes.push(VERSION);
        bytes.extend_from_slice(&(row.len() as u16).to_le_bytes());
        bytes.resize(nulls + row.len().div_ceil(8), 0);
        for (at, datum) in row.iter().enumerate() {
            if datum.is_null() {
                bytes[nulls + at / 8] |= 1 << (at % 8);
            }
        }
        for (ty, datum) in self.types.iter().zip(row) {
            assert!(datum.fits(*ty), "{datum:?} in a column of type {ty:?}");
            if let Some(width) = ty.fixed_bytes() {
                let end = bytes.len() + width;
                push_value(datum, bytes);
                assert!(datum.is_null() || bytes.len() == end, "a value has its type's width");
                bytes.resize(end, 0);
            }
        }
        let varying = || self.types.iter().zip(row).filter(|(ty, _)| ty.fixed_bytes().is_none());
        let ends = bytes.len();
        bytes.resize(ends + varying().count() * END_BYTES, 0);
        let begin = bytes.len();
        for (at, (_, datum)) in varying().enumerate() {
            push_value(datum, bytes);
            let end = u32::try_from(bytes.len() - begin).expect("limits keep rows below 4 GiB");
            let end = end.to_le_bytes();
            bytes[ends + at * END_BYTES..][..END_BYTES].copy_from_slice(&end);
        }
    }

    /// The values of a row, as many as it has: the caller adds the defaults of later columns.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<Datum>> {
        let [VERSION, low, high, ..] = *bytes else { return Err(corrupted("unknown layout")) };
        let count = usize::from(u16::from_le_bytes([low, high]));
        let types = self.types.get(..count).ok_or_else(|| corrupted("too many columns"))?;
        let fixed = HEADER_BYTES + count.div_ceil(8);
        let fixed_bytes: usize = types.iter().filter_map(|ty| ty.fixed_bytes()).sum();
        let varying = types.iter().filter(|ty| ty.fixed_bytes().is_none()).count();
        let ends = fixed + fixed_bytes;
        let body = ends + varying * END_BYTES;
        if bytes.len() < body {
            return Err(corrupted("it is too short"));
        }
        let (mut fixed_at, mut begin) = (fixed, 0);
        let mut ends = bytes[ends..body].chunks_exact(END_BYTES);
        let mut row = Vec::with_capacity(self.types.len());
        for (at, ty) in types.iter().enumerate() {
            let value = match ty.fixed_bytes() {
                Some(width) => {
                    fixed_at += width;
                    &bytes[fixed_at - width..fixed_at]
                }
                None => {
                    let end = ends.next().and_then(|end| end.first_chunk());
                    let end = u32::from_le_bytes(*end.expect("each such column has an end"));
                    let value = bytes[body..].get(begin..end as usize);
                    begin = end as usize;
                    value.ok_or_else(|| corrupted("a length is wrong"))?
                }
            };
            let null = bytes[HEADER_BYTES + at / 8] >> (at % 8) & 1 == 1;
            row.push(if null { Datum::Null } else { read_value(*ty, value)? });
        }
        if bytes.len() - body != begin {
            return Err(corrupted("bytes are left"));
        }
        assert!(
            fixed_at + varying * END_BYTES == body,
            "columns of fixed size end where ends begin"
        );
        assert!(ends.next().is_none(), "each end is of a column");
        Ok(row)
    }
}

/// Appends the bytes of a value; nothing of NULL.
pub fn push_value(datum: &Datum, bytes: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => bytes.push(u8::from(*value)),
        Datum::Int2(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Datum::Int4(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Datum::Int8(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Datum::Float4(value) => bytes.extend_from_slice(&value.to_bits().to_le_bytes()),
        Datum::Float8(value) => bytes.extend_from_slice(&value.to_bits().to_le_bytes()),
        Datum::Numeric(value) => push_numeric(value, bytes),
        Datum::Text(text) | Datum::Char(text) | Datum::Json(text) | Datum::Jsonpath(text) => {
            bytes.extend_from_slice(text.as_bytes())
        }
        Datum::Bytea(value) => bytes.extend_from_slice(value),
        Datum::Network(network) => network.push_stored(bytes),
        Datum::Bits(bits) => bytes.extend_from_slice(bits.stored()),
        Datum::Uuid(value) => bytes.extend_from_slice(value),
        Datum::Date(date) => bytes.extend_from_slice(&date.bits().to_le_bytes()),
        Datum::Timestamp(at) | Datum::Timestamptz(at) => {
            bytes.extend_from_slice(&at.bits().to_le_bytes());
        }
        Datum::Interval(interval) => {
            bytes.extend_from_slice(&interval.months.to_le_bytes());
            bytes.extend_from_slice(&interval.days.to_le_bytes());
            bytes.extend_from_slice(&interval.microseconds.to_le_bytes());
        }
        Datum::Jsonb(json) => bytes.extend_from_slice(json.to_string().as_bytes()),
        Datum::Time(time) => bytes.extend_from_slice(&time.microseconds().to_le_bytes()),
        Datum::Enum(value) => bytes.extend_from_slice(&value.number().to_le_bytes()),
        Datum::Array(array) => push_array(array, bytes),
        Datum::Record(fields) => record::push(fields, bytes),
    }
}

/// The value that these bytes are; they are those of one value, no more.
pub fn read_value(ty: Type, bytes: &[u8]) -> Result<Datum> {
    let text = || std::str::from_utf8(bytes).map_err(|_| corrupted("text is no UTF-8"));
    let inner = |_| corrupted("a value is out of range");
    Ok(match ty {
        Type::Bool => match fixed::<1>(bytes)? {
            [0] => Datum::Bool(false),
            [1] => Datum::Bool(true),
            _ => return Err(corrupted("a boolean is neither 0 nor 1")),
        },
        Type::Int2 => Datum::Int2(i16::from_le_bytes(fixed(bytes)?)),
        Type::Int4
        | Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => Datum::Int4(i32::from_le_bytes(fixed(bytes)?)),
        Type::Int8 => Datum::Int8(i64::from_le_bytes(fixed(bytes)?)),
        Type::Float4 => Datum::Float4(f32::from_bits(u32::from_le_bytes(fixed(bytes)?))),
        Type::Float8 => Datum::Float8(f64::from_bits(u64::from_le_bytes(fixed(bytes)?))),
        Type::Numeric => Datum::Numeric(read_numeric(bytes)?),
        Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter => {
            let text = text()?;
            if text.contains('\0') {
                return Err(corrupted("text has a NUL"));
            }
            if ty == Type::Char { Datum::Char(text.into()) } else { Datum::text(text) }
        }
        Type::Bytea => Datum::Bytea(bytes.into()),
        Type::Inet | Type::Cidr => Datum::Network(Box::new(read_network(ty, bytes)?)),
        Type::Bit | Type::Varbit => {
            Datum::Bits(Bits::of_stored(bytes).ok_or_else(|| corrupted("bits are malformed"))?)
        }
        Type::Uuid => Datum::Uuid(fixed(bytes)?),
        Type::Date => {
            Datum::Date(Date::from_bits(i32::from_le_bytes(fixed(bytes)?)).map_err(inner)?)
        }
        Type::Timestamp | Type::Timestamptz => {
            let at = Timestamp::from_bits(i64::from_le_bytes(fixed(bytes)?)).map_err(inner)?;
            if ty == Type::Timestamp { Datum::Timestamp(at) } else { Datum::Timestamptz(at) }
        }
        Type::Interval => Datum::Interval(read_interval(bytes)?),
        Type::Jsonb => Datum::Jsonb(Box::new(read_json(text()?)?)),
        Type::Json => {
            let text = text()?;
            read_json(text)?;
            Datum::Json(text.into())
        }
        Type::Jsonpath => {
            let path = JsonPath::parse(text()?).map_err(|_| corrupted("jsonpath is no path"))?;
            Datum::Jsonpath(path.to_string().into())
        }
        Type::Time => {
            let time = Time::from_microseconds(i64::from_le_bytes(fixed(bytes)?));
            Datum::Time(time.map_err(inner)?)
        }
        Type::Enum(ty) => {
            let value = ty.value(u32::from_le_bytes(fixed(bytes)?));
            Datum::Enum(value.ok_or_else(|| corrupted("an enum has no such value"))?)
        }
        Type::Array(_) => Datum::Array(Box::new(read_array(ty, bytes)?)),
        Type::Record => Datum::Record(record::read(bytes)?),
    })
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| corrupted("a value has a wrong size"))
}

fn read_json(text: &str) -> Result<Json> {
    Json::parse(text).map_err(|_| corrupted("a value of json or jsonb is no JSON"))
}

fn read_network(ty: Type, bytes: &[u8]) -> Result<Network> {
    let network = Network::of_stored(bytes).filter(|own| own.is_cidr() == (ty == Type::Cidr));
    network.ok_or_else(|| corrupted("an address is malformed"))
}

fn read_interval(bytes: &[u8]) -> Result<Interval> {
    let all = fixed::<16>(bytes)?;
    Ok(Interval {
        months: i32::from_le_bytes(fixed(&all[..4])?),
        days: i32::from_le_bytes(fixed(&all[4..8])?),
        microseconds: i64::from_le_bytes(fixed(&all[8..])?),
    })
}

/// What the first byte of a numeric says.
const NUMERIC_NUMBER: u8 = 0;
const NUMERIC_NAN: u8 = 1;
const NUMERIC_INFINITY: u8 = 2;
const NUMERIC_NEGATIVE_INFINITY: u8 = 3;

/// Kind, scale, then the units as a signed number of as few bytes as they need.
fn push_numeric(number: &Numeric, bytes: &mut Vec<u8>) {
    match number.to_big() {
        Some((units, scale)) => {
            bytes.push(NUMERIC_NUMBER);
            bytes.extend_from_slice(&scale.to_le_bytes());
            bytes.extend_from_slice(&units.to_signed_bytes_le());
        }
        None if number.is_nan() => bytes.push(NUMERIC_NAN),
        None if number.signum() > 0 => bytes.push(NUMERIC_INFINITY),
        None => bytes.push(NUMERIC_NEGATIVE_INFINITY),
    }
}

fn read_numeric(bytes: &[u8]) -> Result<Numeric> {
    match *bytes {
        [NUMERIC_NUMBER, low, high, ref units @ ..] if units.len() <= 512 => {
            let units = num_bigint::BigInt::from_signed_bytes_le(units);
            Numeric::from_big(units, u16::from_le_bytes([low, high]))
                .map_err(|_| corrupted("a numeric has too many digits"))
        }
        [NUMERIC_NAN] => Ok(Numeric::NAN),
        [NUMERIC_INFINITY] => Ok(Numeric::INFINITY),
        [NUMERIC_NEGATIVE_INFINITY] => Ok(Numeric::NEGATIVE_INFINITY),
        _ => Err(corrupted("a numeric is malformed")),
    }
}

/// The length that stands for NULL.
const NULL_LENGTH: u32 = u32::MAX;

/// Number of dimensions, each with length and lower bound, then each item with its length.
fn push_array(array: &Array, bytes: &mut Vec<u8>) {
    bytes.push(array.dimensions().len() as u8);
    for dimension in array.dimensions() {
        bytes.extend_from_slice(&dimension.length.to_le_bytes());
        bytes.extend_from_slice(&dimension.lower.to_le_bytes());
    }
    for item in array.items() {
        let at = bytes.len();
        bytes.extend_from_slice(&NULL_LENGTH.to_le_bytes());
        if !item.is_null() {
            push_value(item, bytes);
            let length = ((bytes.len() - at - 4) as u32).to_le_bytes();
            bytes[at..at + 4].copy_from_slice(&length);
        }
    }
}

fn read_array(ty: Type, bytes: &[u8]) -> Result<Array> {
    let element = ty.element().ok_or_else(|| corrupted("no array"))?;
    let mut rest = bytes;
    let word = |rest: &mut &[u8]| -> Result<[u8; 4]> {
        let (first, after) =
            rest.split_first_chunk().ok_or_else(|| corrupted("an array is short"))?;
        *rest = after;
        Ok(*first)
    };
    let (count, after) = rest.split_first().ok_or_else(|| corrupted("an array is empty"))?;
    rest = after;
    let mut dimensions = Vec::new();
    for _ in 0..*count {
        let length = u32::from_le_bytes(word(&mut rest)?);
        dimensions.push(Dimension { length, lower: i32::from_le_bytes(word(&mut rest)?) });
    }
    let mut items = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(word(&mut rest)?);
        if length == NULL_LENGTH {
            items.push(Datum::Null);
            continue;
        }
        let (item, after) = rest
            .split_at_checked(length as usize)
            .ok_or_else(|| corrupted("an array's item is cut"))?;
        items.push(read_value(element, item)?);
        rest = after;
    }
    Array::with_dimensions(element, dimensions, items)
        .map_err(|_| corrupted("an array is malformed"))
}
