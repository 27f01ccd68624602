//! Reads keys and values by their types, as the typed implementations do.

use std::time::Duration;

use super::texts;
use super::types::{Fields, Type};
use super::value::Value;
use crate::key::bytes::{Key, WORD_BYTES};

/// How fields are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As [`Data`](crate::Data): integers from their last byte on, texts and lists with their
    /// length.
    Value,
    /// As [`Key`]: in the order of the keys.
    Key,
}

struct Reader<'b, 't> {
    bytes: &'b [u8],
    form: Form,
    /// Structs and enums around, the outermost first.
    around: Vec<&'t Type>,
    depth: usize,
}

/// Values in values, at most: those of types inside themselves may go on.
const DEPTH_MAX: usize = 200;

/// Reads a whole value.
pub(super) fn read_value(of: &Type, bytes: &[u8]) -> Option<Value> {
    match of {
        Type::Text => Some(Value::Text(String::from_utf8(bytes.to_vec()).ok()?)),
        Type::List(item) if item.is_byte() => Some(Value::Bytes(bytes.to_vec())),
        _ => {
            let mut reader = Reader { bytes, form: Form::Value, around: Vec::new(), depth: 0 };
            let value = match of {
                Type::List(item) => reader.until_the_end(item)?,
                _ => reader.one(of)?,
            };
            reader.bytes.is_empty().then_some(value)
        }
    }
}

/// Reads a whole key.
pub(super) fn read_key(of: &Type, bytes: &[u8]) -> Option<Value> {
    match of {
        Type::Text => Some(Value::Text(String::from_utf8(bytes.to_vec()).ok()?)),
        Type::List(item) if item.is_byte() => Some(Value::Bytes(bytes.to_vec())),
        _ => {
            // Short keys are padded in front.
            let padding = WORD_BYTES.saturating_sub(key_bytes(of).unwrap_or(WORD_BYTES));
            let (zeros, bytes) = bytes.split_at_checked(padding)?;
            let mut reader = Reader { bytes, form: Form::Key, around: Vec::new(), depth: 0 };
            let key = reader.one(of).filter(|_| zeros.iter().all(|&byte| byte == 0))?;
            reader.bytes.is_empty().then_some(key)
        }
    }
}

/// Bytes of every key of a type, if all have the same.
pub(super) fn key_bytes(of: &Type) -> Option<usize> {
    let sum = |fields: &Fields| fields.iter().map(|(_, of)| key_bytes(of)).sum::<Option<usize>>();
    match of {
        Type::Unit => Some(0),
        Type::Bool => Some(1),
        Type::Char => Some(4),
        Type::Unsigned(bytes) | Type::Signed(bytes) => Some(*bytes),
        Type::Duration | Type::Time => Some(12),
        Type::Uuid => Some(16),
        Type::Array(item, count) => Some(key_bytes(item)? * count),
        Type::Tuple(parts) => parts.iter().map(key_bytes).sum(),
        Type::Struct(_, fields) => sum(fields),
        Type::Enum(_, variants) => {
            let first = sum(&variants.first()?.1)?;
            let all = variants.iter().all(|(_, fields)| sum(fields) == Some(first));
            all.then_some(1 + first)
        }
        _ => None,
    }
}

impl<'t> Reader<'_, 't> {
    fn one(&mut self, of: &'t Type) -> Option<Value> {
        self.depth += 1;
        let read = (self.depth <= DEPTH_MAX).then(|| self.any(of)).flatten();
        self.depth -= 1;
        read
    }

    fn any(&mut self, of: &'t Type) -> Option<Value> {
        Some(match of {
            Type::Unit => Value::Null,
            Type::Bool => Value::Bool(self.flag()?),
            Type::Char => Value::Text(char::from_u32(self.unsigned(4)? as u32)?.to_string()),
            Type::Unsigned(bytes) => Value::Unsigned(self.unsigned(*bytes)?),
            Type::Signed(bytes) => Value::Signed(self.signed(*bytes)?),
            Type::Float(bytes) => Value::Float(self.float(*bytes)?),
            Type::Text => Value::Text(String::from_utf8(self.sized()?).ok()?),
            Type::Serde => Value::Bytes(self.sized()?),
            Type::List(item) if item.is_byte() => Value::Bytes(self.sized()?),
            Type::Opaque(bytes) => Value::Bytes(self.take(*bytes)?.to_vec()),
            Type::Array(item, count) if item.is_byte() => Value::Bytes(self.take(*count)?.to_vec()),
            Type::Array(item, count) => self.items(item, *count)?,
            Type::List(item) | Type::Set(item) => {
                let count = self.len()?;
                self.items(item, count)?
            }
            Type::Map(key, value) => self.map(key, value)?,
            Type::Option(inner) => self.option(inner)?,
            Type::Result(ok, error) => {
                let (name, of) = if self.flag()? { ("Err", error) } else { ("Ok", ok) };
                Value::Variant(name.to_string(), Some(Box::new(self.one(of)?)))
            }
            Type::Tuple(parts) => {
                Value::List(parts.iter().map(|part| self.one(part)).collect::<Option<_>>()?)
            }
            Type::Duration => {
                let (seconds, nanos) = (self.unsigned(8)? as u64, self.unsigned(4)? as u32);
                let time = (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))?;
                Value::Text(format!("{}s", texts::seconds_text(time.as_secs().into(), nanos)))
            }
            Type::Time => {
                let (seconds, nanos) = (self.signed(8)? as i64, self.unsigned(4)? as u32);
                Value::Text((nanos < 1_000_000_000).then(|| texts::date_text(seconds, nanos))?)
            }
            Type::Uuid => Value::Text(texts::uuid_text(self.take(16)?)),
            Type::Decimal => Value::Text(texts::decimal_text(self.take(16)?)?),
            Type::Struct(_, fields) => self.within(of, |reader| reader.fields(fields))?,
            Type::Enum(_, variants) => {
                let (name, fields) = variants.get(self.unsigned(1)? as usize)?;
                let inside = match fields.is_empty() {
                    true => None,
                    false => Some(Box::new(self.within(of, |reader| reader.fields(fields))?)),
                };
                Value::Variant(name.clone(), inside)
            }
            Type::Outer(name) => {
                let outer = *self.around.iter().rev().find(|around| around.is_named(name))?;
                self.one(outer)?
            }
        })
    }

    fn within(
        &mut self,
        of: &'t Type,
        read: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        self.around.push(of);
        let value = read(self);
        self.around.pop();
        value
    }

    /// An object, or a list where fields have no names.
    fn fields(&mut self, fields: &'t Fields) -> Option<Value> {
        let mut named = Vec::new();
        let mut unnamed = Vec::new();
        for (name, of) in fields {
            let value = self.one(of)?;
            match name {
                Some(name) => named.push((name.clone(), value)),
                None => unnamed.push(value),
            }
        }
        Some(if unnamed.is_empty() { Value::Struct(named) } else { Value::List(unnamed) })
    }

    fn option(&mut self, inner: &'t Type) -> Option<Value> {
        if !self.flag()? {
            return Some(Value::Null);
        }
        let value = self.one(inner)?;
        Some(match inner {
            Type::Option(_) | Type::Unit => Value::Some(Box::new(value)),
            _ => value,
        })
    }

    fn map(&mut self, key: &'t Type, value: &'t Type) -> Option<Value> {
        let count = self.len()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.one(key)?, self.one(value)?));
        }
        Some(Value::Map(pairs))
    }

    fn items(&mut self, item: &'t Type, count: usize) -> Option<Value> {
        let mut items = Vec::new();
        for _ in 0..count {
            let before = self.bytes.len();
            items.push(self.one(item)?);
            // Items of no bytes could be counted for ever.
            if self.bytes.len() == before && count > DEPTH_MAX {
                return None;
            }
        }
        Some(Value::List(items))
    }

    /// A list that is the whole value says nothing of its length.
    fn until_the_end(&mut self, item: &'t Type) -> Option<Value> {
        let mut items = Vec::new();
        while !self.bytes.is_empty() {
            let before = self.bytes.len();
            items.push(self.one(item)?);
            if self.bytes.len() == before {
                return None;
            }
        }
        Some(Value::List(items))
    }

    fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        let (first, rest) = self.bytes.split_at_checked(bytes)?;
        self.bytes = rest;
        Some(first)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.unsigned(1)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn len(&mut self) -> Option<usize> {
        Some(self.unsigned(4)? as usize)
    }

    /// Bytes with an end: with their length in values, escaped in keys.
    fn sized(&mut self) -> Option<Vec<u8>> {
        match self.form {
            Form::Value => {
                let len = self.len()?;
                Some(self.take(len)?.to_vec())
            }
            Form::Key => {
                let mut rest = self.bytes;
                let bytes = <[u8] as Key>::decode(&mut rest)?;
                self.bytes = rest;
                Some(bytes)
            }
        }
    }

    fn unsigned(&mut self, bytes: usize) -> Option<u128> {
        let form = self.form;
        let first = self.take(bytes)?;
        let add = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
        Some(match form {
            Form::Value => first.iter().rev().fold(0, add),
            Form::Key => first.iter().fold(0, add),
        })
    }

    fn signed(&mut self, bytes: usize) -> Option<i128> {
        let sign = 1 << (8 * bytes - 1);
        let number = self.unsigned(bytes)?;
        // In keys the sign is turned round, so that negative numbers come first.
        let number = if self.form == Form::Key { number ^ sign } else { number };
        let unused = 128 - 8 * bytes;
        Some((number << unused) as i128 >> unused)
    }

    fn float(&mut self, bytes: usize) -> Option<f64> {
        let bits = self.unsigned(bytes)?;
        Some(match bytes {
            // Through its shortest text, so that 0.1 stays 0.1.
            4 => f32::from_bits(bits as u32).to_string().parse().ok()?,
            _ => f64::from_bits(bits as u64),
        })
    }
}
