//! From text to a value.

use crate::json::JsonPath;
use crate::{
    Array, Bits, Date, Datum, Dimension, Error, Interval, Json, Modifier, Network, Result,
    SqlState, Time, Timestamp, Type, Zone, float,
};

fn invalid(ty: Type, text: &str) -> Error {
    let message = format!("invalid input syntax for type {}: \"{text}\"", ty.name());
    Error::new(SqlState::INVALID_TEXT, message)
}

/// The value of the type that the text is. `zone` is the session's: that of times without one.
///
/// ```
/// use values::{Datum, Type, Zone, text};
/// assert_eq!(text::parse(Type::Int4, " 42 ", &Zone::utc()).unwrap(), Datum::Int4(42));
/// let refused = text::parse(Type::Int4, "4x", &Zone::utc()).unwrap_err();
/// assert_eq!(refused.state().code(), "22P02");
/// ```
pub fn parse(ty: Type, text: &str, zone: &Zone) -> Result<Datum> {
    parse_as(ty, Modifier::NONE, text, zone)
}

/// The error of a record that is read: nothing says of which types its fields are.
pub(crate) fn no_record() -> Error {
    let message = "input of anonymous composite types is not implemented";
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// The value of the type with this `modifier` that the text is, as [`parse`] reads it. The fields
/// of an interval's type say what a number without a unit counts. The value is not made to fit the
/// modifier otherwise: [`crate::fit`] does that.
pub fn parse_as(ty: Type, modifier: Modifier, text: &str, zone: &Zone) -> Result<Datum> {
    Ok(match ty {
        Type::Bool => Datum::Bool(parse_bool(text)?),
        Type::Int2 => Datum::Int2(integer(ty, text)?),
        Type::Int4 => Datum::Int4(integer(ty, text)?),
        Type::Int8 => Datum::Int8(integer(ty, text)?),
        Type::Float4 => Datum::Float4(float::parse_f32(text)?),
        Type::Float8 => Datum::Float8(float::parse_f64(text)?),
        Type::Numeric => Datum::Numeric(text.parse()?),
        Type::Oid
        | Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole => Datum::Int4(object_id(ty, text)?),
        Type::Text | Type::Varchar | Type::Char | Type::Name | Type::Letter => {
            if text.contains('\0') {
                return Err(Error::new(
                    SqlState::INVALID_ENCODING,
                    "invalid byte sequence for encoding \"UTF8\": 0x00",
                ));
            }
            if ty == Type::Char { Datum::Char(text.into()) } else { Datum::text(text) }
        }
        Type::Bytea => Datum::Bytea(parse_bytes(text)?.into()),
        Type::Inet | Type::Cidr => {
            Datum::Network(Box::new(Network::parse(text, ty == Type::Cidr)?))
        }
        Type::Bit | Type::Varbit => Datum::Bits(Bits::parse(text)?),
        Type::Uuid => Datum::Uuid(parse_uuid(text).ok_or_else(|| invalid(ty, text))?),
        Type::Date => Datum::Date(Date::parse(text)?),
        Type::Timestamp => Datum::Timestamp(Timestamp::parse(text)?),
        Type::Timestamptz => Datum::Timestamptz(Timestamp::parse_zoned(text, zone)?),
        Type::Interval => Datum::Interval(Interval::parse_as(text, modifier.interval_fields())?),
        Type::Jsonb => Datum::Jsonb(Box::new(Json::parse(text)?)),
        Type::Json => Json::parse(text).map(|_| Datum::Json(text.into()))?,
        Type::Jsonpath => Datum::Jsonpath(JsonPath::parse(text)?.to_string().into()),
        Type::Time => Datum::Time(Time::parse(text)?),
        Type::Record => return Err(no_record()),
        Type::Enum(ty) => Datum::Enum(ty.parse(text)?),
        Type::Array(_) => Datum::Array(Box::new(parse_array(ty, text, zone)?)),
    })
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// The number of an object; those that there are fit an `integer`. `-` is none.
fn object_id(ty: Type, text: &str) -> Result<i32> {
    if ty.is_named_object() && text == "-" {
        return Ok(0);
    }
    let number = integer::<u32>(ty, text)?;
    i32::try_from(number).map_err(|_| {
        let message = format!("value \"{text}\" is out of range for type {}", ty.name());
        Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
    })
}

/// So many digits are an `i64`, whatever they are.
const DIGITS_OF_I64: usize = 18;

fn integer<T: TryFrom<i128>>(ty: Type, text: &str) -> Result<T> {
    let trimmed = text.trim_matches(is_blank);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(ty, text));
    }
    // Most numbers are short, and arithmetic of 128 bits takes long.
    let value = match digits.len() {
        ..=DIGITS_OF_I64 => trimmed.parse::<i64>().ok().map(i128::from),
        _ => trimmed.parse::<i128>().ok(),
    };
    let value = value.and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let message = format!("value \"{text}\" is out of range for type {}", ty.name());
        Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
    })
}

/// The words of `boolean`; beginnings that are of one word only count as it.
fn parse_bool(text: &str) -> Result<bool> {
    let word = text.trim_matches(is_blank).to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if word == "1" || word == "on" || begins("true", 1) || begins("yes", 1) {
        Ok(true)
    } else if word == "0" || begins("off", 2) || begins("false", 1) || begins("no", 1) {
        Ok(false)
    } else {
        Err(invalid(Type::Bool, text))
    }
}

/// `\x` and hexadecimal digits, or text in which `\` and three octal digits are a byte.
fn parse_bytes(text: &str) -> Result<Vec<u8>> {
    let refused = |message: &str| Error::new(SqlState::INVALID_PARAMETER, message.to_owned());
    if let Some(digits) = text.strip_prefix("\\x") {
        let nibbles = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| {
            char::from(byte).to_digit(16).map(|digit| digit as u8).ok_or_else(|| {
                refused(&format!("invalid hexadecimal digit: \"{}\"", char::from(byte)))
            })
        });
        let nibbles = nibbles.collect::<Result<Vec<u8>>>()?;
        if nibbles.len() % 2 == 1 {
            return Err(refused("invalid hexadecimal data: odd number of digits"));
        }
        return Ok(nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        match *rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', ref after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ref after @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            [b'\\', ..] => return Err(invalid(Type::Bytea, text)),
            [byte, ref after @ ..] => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
}

/// 32 hexadecimal digits, with hyphens after any group of four, perhaps in braces.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let body = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let (mut uuid, mut digits) = ([0_u8; 16], 0);
    let mut hyphen = false;
    for byte in body.bytes() {
        if byte == b'-' {
            if hyphen || digits == 0 || digits % 4 != 0 || digits == 32 {
                return None;
            }
            hyphen = true;
            continue;
        }
        hyphen = false;
        let digit = char::from(byte).to_digit(16)? as u8;
        let slot = uuid.get_mut(digits / 2)?;
        *slot = *slot << 4 | digit;
        digits += 1;
    }
    (digits == 32).then_some(uuid)
}

/// `{1,2}`, `{{1},{2}}`, `[0:1]={1,2}`.
fn parse_array(ty: Type, text: &str, zone: &Zone) -> Result<Array> {
    let element = ty.element().ok_or_else(|| malformed(text))?;
    let mut parser =
        ArrayParser { text, at: 0, element, zone, items: Vec::new(), shape: Vec::new() };
    let bounds = parser.bounds()?;
    parser.level(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(malformed(text).with_detail("Junk after closing right brace."));
    }
    let shape: Vec<u32> = parser.shape.iter().filter_map(|length| *length).collect();
    let items = parser.items;
    if items.is_empty() {
        return Array::new(element, items);
    }
    let dimensions = match &bounds[..] {
        [] => shape.iter().map(|length| Dimension { length: *length, lower: 1 }).collect(),
        _ if bounds.iter().map(|bound| bound.length).eq(shape) => bounds,
        _ => {
            return Err(malformed(text)
                .with_detail("Specified array dimensions do not match array contents."));
        }
    };
    Array::with_dimensions(element, dimensions, items)
}

fn malformed(text: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("malformed array literal: \"{text}\""))
}

struct ArrayParser<'a> {
    text: &'a str,
    at: usize,
    element: Type,
    zone: &'a Zone,
    items: Vec<Datum>,
    /// The length of each dimension, as soon as one of its arrays has ended.
    shape: Vec<Option<u32>>,
}

impl ArrayParser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches(is_blank).len();
    }

    fn take(&mut self, c: char) -> bool {
        self.blanks();
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// `[1:2][0:3]=` before the braces.
    fn bounds(&mut self) -> Result<Vec<Dimension>> {
        let mut bounds = Vec::new();
        while self.take('[') {
            let end = self.rest().find(']').ok_or_else(|| malformed(self.text))?;
            let inner = &self.rest()[..end];
            let (lower, upper) = inner.split_once(':').unwrap_or(("1", inner));
            let number = |text: &str| text.trim().parse::<i32>().map_err(|_| malformed(self.text));
            let (lower, upper) = (number(lower)?, number(upper)?);
            let length = i64::from(upper) - i64::from(lower) + 1;
            let length =
                u32::try_from(length).ok().filter(|length| *length > 0).ok_or_else(|| {
                    Error::new(
                        SqlState::ARRAY_SUBSCRIPT,
                        "upper bound cannot be less than lower bound",
                    )
                })?;
            bounds.push(Dimension { length, lower });
            self.at += end + 1;
        }
        if !bounds.is_empty() && !self.take('=') {
            return Err(malformed(self.text).with_detail("Missing \"=\" after array dimensions."));
        }
        Ok(bounds)
    }

    /// One pair of braces and what is in it.
    fn level(&mut self, depth: usize) -> Result<()> {
        if !self.take('{') {
            return Err(malformed(self.text)
                .with_detail("Array value must start with \"{\" or dimension information."));
        }
        if depth >= crate::DIMENSIONS_MAX {
            return Err(Error::new(
                SqlState::LIMIT_EXCEEDED,
                format!("number of array dimensions exceeds {}", crate::DIMENSIONS_MAX),
            ));
        }
        if self.shape.len() <= depth {
            self.shape.push(None);
        }
        let mut count = 0;
        if self.take('}') {
            return self.end(depth, count);
        }
        loop {
            self.blanks();
            // A row of items is innermost; one of braces is not.
            let nested = self.rest().starts_with('{');
            if nested != (self.shape.len() > depth + 1) && (count > 0 || !nested) {
                return Err(self.ragged());
            }
            if nested {
                self.level(depth + 1)?
            } else {
                self.item()?
            }
            count += 1;
            if self.take('}') {
                return self.end(depth, count);
            }
            if !self.take(',') {
                return Err(malformed(self.text));
            }
        }
    }

    fn ragged(&self) -> Error {
        malformed(self.text)
            .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
    }

    fn end(&mut self, depth: usize, count: u32) -> Result<()> {
        match self.shape[depth] {
            Some(before) if before != count => Err(self.ragged()),
            _ => {
                self.shape[depth] = Some(count);
                Ok(())
            }
        }
    }

    fn item(&mut self) -> Result<()> {
        let quoted = self.rest().starts_with('"');
        let mut value = String::new();
        let mut end = 0; // of what is kept where blanks follow
        let mut chars = self.text[self.at..].char_indices().skip(usize::from(quoted));
        let length = loop {
            let (at, c) = chars.next().ok_or_else(|| malformed(self.text))?;
            match c {
                '\\' => {
                    value.push(chars.next().ok_or_else(|| malformed(self.text))?.1);
                    end = value.len();
                }
                '"' if quoted => break at + 1,
                ',' | '}' if !quoted => break at,
                '"' | '{' if !quoted => return Err(malformed(self.text)),
                c => {
                    value.push(c);
                    if !is_blank(c) {
                        end = value.len();
                    }
                }
            }
        };
        let plain_null = !quoted
            && self.text[self.at..]
                .get(..4)
                .is_some_and(|word| word.eq_ignore_ascii_case("null") && value[..end].len() == 4);
        if !quoted {
            value.truncate(end);
            if value.is_empty() {
                return Err(malformed(self.text));
            }
        }
        self.at += length;
        self.items.push(if plain_null {
            Datum::Null
        } else {
            parse(self.element, &value, self.zone)?
        });
        Ok(())
    }
}
