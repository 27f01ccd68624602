//! Values without types, and how they are written as JSON.

use std::fmt::{self, Write as _};

/// A value, as far as it can be known without its type. `Display` writes it as JSON.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `()`, `None`: `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; beyond 64 bits a text.
    Unsigned(u128),
    /// A number; beyond 64 bits a text.
    Signed(i128),
    /// A number; a text where it is none.
    Float(f64),
    /// A text. Characters, times, durations, decimals and uuids are texts, too.
    Text(String),
    /// `"0x"` and two digits for each byte.
    Bytes(Vec<u8>),
    /// A list, set, array or tuple.
    List(Vec<Self>),
    /// A struct: an object with its fields in their order.
    Struct(Vec<(String, Self)>),
    /// A map: an object if its keys are texts or numbers, else a list of pairs.
    Map(Vec<(Self, Self)>),
    /// A variant of an enum or of a `Result`: its name, or an object of its name and fields.
    Variant(String, Option<Box<Self>>),
    /// `Some` of something that may be null itself: `{"some": ...}`.
    Some(Box<Self>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Unsigned(value) if *value > u128::from(u64::MAX) => write!(f, "\"{value}\""),
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) if i64::try_from(*value).is_err() => write!(f, "\"{value}\""),
            Self::Signed(value) => value.fmt(f),
            // `Debug` is the shortest text that is read as the same number.
            Self::Float(value) if value.is_finite() => write!(f, "{value:?}"),
            Self::Float(value) => write!(f, "\"{value}\""),
            Self::Text(text) => write_text(f, text),
            Self::Bytes(bytes) => {
                f.write_str("\"0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_char('"')
            }
            Self::List(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Self::Struct(fields) => {
                write_object(f, fields.iter().map(|(name, value)| (name.clone(), value)))
            }
            Self::Map(pairs) => write_map(f, pairs),
            Self::Variant(name, None) => write_text(f, name),
            Self::Variant(name, Some(of)) => write_object(f, [(name.clone(), &**of)].into_iter()),
            Self::Some(of) => write_object(f, [("some".to_string(), &**of)].into_iter()),
        }
    }
}

fn write_object<'v>(
    f: &mut fmt::Formatter<'_>,
    fields: impl Iterator<Item = (String, &'v Value)>,
) -> fmt::Result {
    f.write_char('{')?;
    for (i, (name, value)) in fields.enumerate() {
        f.write_str(if i > 0 { "," } else { "" })?;
        write_text(f, &name)?;
        write!(f, ":{value}")?;
    }
    f.write_char('}')
}

fn write_map(f: &mut fmt::Formatter<'_>, pairs: &[(Value, Value)]) -> fmt::Result {
    let name = |key: &Value| match key {
        Value::Text(text) | Value::Variant(text, None) => Some(text.clone()),
        Value::Bool(_) | Value::Unsigned(_) | Value::Signed(_) => {
            Some(key.to_string().trim_matches('"').to_string())
        }
        _ => None,
    };
    match pairs.iter().map(|(key, value)| Some((name(key)?, value))).collect::<Option<Vec<_>>>() {
        Some(fields) => write_object(f, fields.into_iter()),
        None => {
            f.write_char('[')?;
            for (i, (key, value)) in pairs.iter().enumerate() {
                write!(f, "{}[{key},{value}]", if i > 0 { "," } else { "" })?;
            }
            f.write_char(']')
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
