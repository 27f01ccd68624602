//! Writes keys and values by their types, as the typed implementations do.

use super::types::{Fields, Type};
use super::value::Value;
use crate::key::bytes::{Key, KeyBuffer, WORD_BYTES};

use super::read::{Form, key_bytes};
use super::texts;

type Written = Result<(), String>;

struct Writer<'t> {
    bytes: Vec<u8>,
    form: Form,
    /// Structs and enums around, the outermost first.
    around: Vec<&'t Type>,
}

/// The bytes of a whole value.
pub(super) fn write_value(of: &Type, value: &Value) -> Result<Vec<u8>, String> {
    let mut writer = Writer { bytes: Vec::new(), form: Form::Value, around: Vec::new() };
    match (of, value) {
        (Type::Text, Value::Text(text)) => return Ok(text.clone().into_bytes()),
        (Type::List(item), _) if item.is_byte() => return bytes_of(value),
        // A list that is the whole value says nothing of its length.
        (Type::List(item), Value::List(items)) => {
            items.iter().try_for_each(|value| writer.one(item, value))?;
        }
        _ => writer.one(of, value)?,
    }
    Ok(writer.bytes)
}

/// The bytes of a whole key.
pub(super) fn write_key(of: &Type, key: &Value) -> Result<Vec<u8>, String> {
    match (of, key) {
        (Type::Text, Value::Text(text)) => return Ok(text.clone().into_bytes()),
        (Type::List(item), _) if item.is_byte() => return bytes_of(key),
        _ => {}
    }
    // Short keys are padded in front.
    let padding = WORD_BYTES.saturating_sub(key_bytes(of).unwrap_or(WORD_BYTES));
    let mut writer = Writer { bytes: vec![0; padding], form: Form::Key, around: Vec::new() };
    writer.one(of, key)?;
    Ok(writer.bytes)
}

/// Bytes as they are shown.
pub(super) fn bytes_of(value: &Value) -> Result<Vec<u8>, String> {
    if let Value::Bytes(bytes) = value {
        return Ok(bytes.clone());
    }
    let Value::Text(text) = value else { return wrong(value, "bytes, as \"0x01ff\"") };
    let digits = text.strip_prefix("0x").filter(|digits| digits.is_ascii());
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
    let byte = |at: usize| u8::from_str_radix(digits?.get(at..at + 2)?, 16).ok();
    let bytes = (0..digits.map_or(0, str::len)).step_by(2).map(byte).collect::<Option<_>>();
    match (digits, bytes) {
        (Some(_), Some(bytes)) => Ok(bytes),
        _ => wrong(value, "bytes, as \"0x01ff\""),
    }
}

fn wrong<T>(value: &Value, wanted: &str) -> Result<T, String> {
    Err(format!("{value} is not {wanted}"))
}

impl<'t> Writer<'t> {
    fn one(&mut self, of: &'t Type, value: &Value) -> Written {
        match (of, value) {
            (Type::Unit, Value::Null) => {}
            (Type::Bool, Value::Bool(flag)) => self.bytes.push(u8::from(*flag)),
            (Type::Unsigned(bytes), _) => self.unsigned(value, *bytes)?,
            (Type::Signed(bytes), _) => self.signed(value, *bytes)?,
            (Type::Float(bytes), _) => self.float(value, *bytes)?,
            (Type::Serde, _) => self.sized(&bytes_of(value)?)?,
            (Type::List(item), _) if item.is_byte() => self.sized(&bytes_of(value)?)?,
            (Type::Opaque(count), _) => self.fixed(value, *count)?,
            (Type::Array(item, count), _) if item.is_byte() => self.fixed(value, *count)?,
            (Type::Array(item, count), Value::List(items)) if items.len() == *count => {
                items.iter().try_for_each(|value| self.one(item, value))?;
            }
            (Type::List(item) | Type::Set(item), Value::List(items)) => {
                self.len(items.len())?;
                items.iter().try_for_each(|value| self.one(item, value))?;
            }
            (Type::Map(key, of), _) => self.map(key, of, value)?,
            (Type::Option(inner), _) => self.option(inner, value)?,
            (Type::Result(ok, error), Value::Struct(fields)) => match fields.as_slice() {
                [(name, value)] if name == "Ok" => {
                    self.bytes.push(0);
                    self.one(ok, value)?;
                }
                [(name, value)] if name == "Err" => {
                    self.bytes.push(1);
                    self.one(error, value)?;
                }
                _ => return wrong(value, "an object of \"Ok\" or \"Err\""),
            },
            (Type::Tuple(parts), Value::List(items)) if parts.len() == items.len() => {
                parts.iter().zip(items).try_for_each(|(of, value)| self.one(of, value))?;
            }
            (Type::Struct(_, fields), _) => {
                self.around.push(of);
                self.fields(fields, value)?;
                self.around.pop();
            }
            (Type::Enum(_, variants), _) => {
                self.around.push(of);
                self.variant(variants, value)?;
                self.around.pop();
            }
            (Type::Outer(name), _) => {
                let outer = self.around.iter().rev().find(|around| around.is_named(name));
                let outer = *outer.ok_or_else(|| format!("there is no type {name} around"))?;
                self.one(outer, value)?;
            }
            (of, Value::Text(text)) => self.text(of, text)?,
            _ => return wrong(value, &format!("a {}", of.name())),
        }
        Ok(())
    }

    /// What is shown as a text.
    fn text(&mut self, of: &Type, text: &str) -> Written {
        let wrong = || wrong(&Value::Text(text.to_string()), &format!("a {}", of.name()));
        match of {
            Type::Text => self.sized(text.as_bytes())?,
            // As the key of a map.
            Type::Bool => match text.parse::<bool>() {
                Ok(flag) => self.bytes.push(u8::from(flag)),
                Err(_) => return wrong(),
            },
            Type::Char => {
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) => self.number(u32::from(c).into(), 4),
                    _ => return wrong(),
                }
            }
            Type::Duration => {
                let Some((seconds, nanos)) = texts::parse_duration(text) else { return wrong() };
                self.number(seconds.into(), 8);
                self.number(nanos.into(), 4);
            }
            Type::Time => {
                let Some((seconds, nanos)) = texts::parse_date(text) else { return wrong() };
                self.signed_number(seconds.into(), 8);
                self.number(nanos.into(), 4);
            }
            Type::Uuid => match texts::parse_uuid(text) {
                Some(bytes) => self.bytes.extend_from_slice(&bytes),
                None => return wrong(),
            },
            Type::Decimal => match texts::parse_decimal(text) {
                Some(bytes) => self.bytes.extend_from_slice(&bytes),
                None => return wrong(),
            },
            _ => return wrong(),
        }
        Ok(())
    }

    fn fields(&mut self, fields: &'t Fields, value: &Value) -> Written {
        if let (Value::List(items), true) = (value, fields.iter().all(|(name, _)| name.is_none())) {
            if items.len() != fields.len() {
                return wrong(value, &format!("a list of {}", fields.len()));
            }
            return fields.iter().zip(items).try_for_each(|((_, of), value)| self.one(of, value));
        }
        let Value::Struct(named) = value else { return wrong(value, "an object") };
        let is_known = |name: &str| fields.iter().any(|(known, _)| known.as_deref() == Some(name));
        if let Some((name, _)) = named.iter().find(|(name, _)| !is_known(name)) {
            return Err(format!("there is no field {name:?}"));
        }
        for (name, of) in fields {
            let name = name.as_deref().unwrap_or_default();
            let found = named.iter().find(|(known, _)| known == name);
            let (_, value) = found.ok_or_else(|| format!("field {name:?} is missing"))?;
            self.one(of, value).map_err(|what| format!("{name}: {what}"))?;
        }
        Ok(())
    }

    fn variant(&mut self, variants: &'t [(String, Fields)], value: &Value) -> Written {
        let (name, inside) = match value {
            Value::Text(name) => (name, None),
            Value::Struct(named) if named.len() == 1 => (&named[0].0, Some(&named[0].1)),
            _ => return wrong(value, "a variant, as \"A\" or {\"B\": ...}"),
        };
        let number = variants.iter().position(|(known, _)| known == name);
        let number = number.ok_or_else(|| format!("there is no variant {name:?}"))?;
        let fields = &variants[number].1;
        self.bytes.push(number as u8);
        match (inside, fields.is_empty()) {
            (None, true) => Ok(()),
            (Some(inside), false) => {
                self.fields(fields, inside).map_err(|what| format!("{name}: {what}"))
            }
            (None, false) => Err(format!("variant {name:?} has fields")),
            (Some(_), true) => Err(format!("variant {name:?} has no fields")),
        }
    }

    fn option(&mut self, inner: &'t Type, value: &Value) -> Written {
        let is_wrapped = matches!(inner, Type::Option(_) | Type::Unit);
        match value {
            Value::Null => self.bytes.push(0),
            Value::Struct(fields) if is_wrapped => match fields.as_slice() {
                [(name, value)] if name == "some" => {
                    self.bytes.push(1);
                    self.one(inner, value)?;
                }
                _ => return wrong(value, "null or {\"some\": ...}"),
            },
            value => {
                self.bytes.push(1);
                self.one(inner, value)?;
            }
        }
        Ok(())
    }

    /// An object, whose names are the keys, or a list of pairs.
    fn map(&mut self, key: &'t Type, of: &'t Type, value: &Value) -> Written {
        match value {
            Value::Struct(fields) => {
                self.len(fields.len())?;
                for (name, value) in fields {
                    self.one(key, &Value::Text(name.clone()))?;
                    self.one(of, value)?;
                }
                Ok(())
            }
            Value::List(pairs) => {
                self.len(pairs.len())?;
                for pair in pairs {
                    let Value::List(pair) = pair else { return wrong(pair, "a pair") };
                    let [first, second] = pair.as_slice() else { return wrong(value, "pairs") };
                    self.one(key, first)?;
                    self.one(of, second)?;
                }
                Ok(())
            }
            _ => wrong(value, "an object or a list of pairs"),
        }
    }

    fn unsigned(&mut self, value: &Value, bytes: usize) -> Written {
        let number = match value {
            Value::Unsigned(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let most = u128::MAX >> (128 - 8 * bytes);
        match number.filter(|&number| number <= most) {
            Some(number) => self.number(number, bytes),
            None => return wrong(value, &format!("a number from 0 to {most}")),
        }
        Ok(())
    }

    fn signed(&mut self, value: &Value, bytes: usize) -> Written {
        let number = match value {
            Value::Unsigned(number) => i128::try_from(*number).ok(),
            Value::Signed(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        let most = i128::MAX >> (128 - 8 * bytes);
        match number.filter(|number| (!most..=most).contains(number)) {
            Some(number) => self.signed_number(number, bytes),
            None => return wrong(value, &format!("a number from {} to {most}", !most)),
        }
        Ok(())
    }

    fn float(&mut self, value: &Value, bytes: usize) -> Written {
        let text = match value {
            Value::Float(number) => number.to_string(),
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            _ => return wrong(value, "a number"),
        };
        let bits = match bytes {
            4 => text.parse().ok().map(|number: f32| u128::from(number.to_bits())),
            _ => text.parse().ok().map(|number: f64| u128::from(number.to_bits())),
        };
        match bits {
            Some(bits) => self.number(bits, bytes),
            None => return wrong(value, "a number"),
        }
        Ok(())
    }

    fn signed_number(&mut self, number: i128, bytes: usize) {
        let sign = if self.form == Form::Key { 1 << (8 * bytes - 1) } else { 0 };
        self.number(number as u128 ^ sign, bytes);
    }

    /// The low bytes of a number.
    fn number(&mut self, number: u128, bytes: usize) {
        match self.form {
            Form::Value => self.bytes.extend_from_slice(&number.to_le_bytes()[..bytes]),
            Form::Key => self.bytes.extend_from_slice(&number.to_be_bytes()[16 - bytes..]),
        }
    }

    fn len(&mut self, len: usize) -> Written {
        let len = u32::try_from(len).map_err(|_| format!("{len} items are too many"))?;
        self.number(len.into(), 4);
        Ok(())
    }

    /// Bytes with an end: with their length in values, escaped in keys.
    fn sized(&mut self, bytes: &[u8]) -> Written {
        match self.form {
            Form::Value => {
                self.len(bytes.len())?;
                self.bytes.extend_from_slice(bytes);
            }
            Form::Key => {
                let mut buffer = KeyBuffer::default();
                Key::encode(bytes, &mut buffer);
                self.bytes.extend_from_slice(buffer.bytes());
            }
        }
        Ok(())
    }

    fn fixed(&mut self, value: &Value, count: usize) -> Written {
        let bytes = bytes_of(value)?;
        if bytes.len() != count {
            return wrong(value, &format!("{count} bytes"));
        }
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }
}
