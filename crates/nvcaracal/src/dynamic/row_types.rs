//! The types of a table's rows, and its rows by them.

use super::read::{read_key, read_value};
use super::types::{Cell, Type};
use super::value::Value;
use super::write::{bytes_of, write_key, write_value};

/// The types of a table's rows.
#[derive(Debug, Clone)]
pub struct RowTypes {
    key: Type,
    /// Of all versions, the oldest first.
    values: Vec<Type>,
}

/// Behind a version in the last byte of a value: it stands before it, too.
const TWICE: u8 = 128;

impl RowTypes {
    /// Reads the words for each version of a table's types, the oldest first: `KEY -> VALUE`.
    ///
    /// # Errors
    /// What is no type, and where.
    pub fn parse<S: AsRef<str>>(versions: &[S]) -> Result<Self, String> {
        let mut key = None;
        let mut values = Vec::new();
        for words in versions {
            let words = words.as_ref();
            let (of_key, of_value) =
                words.split_once(" -> ").ok_or_else(|| format!("{words:?} has no \" -> \""))?;
            key = Some(Type::parse(of_key)?);
            values.push(Type::parse(of_value)?);
        }
        let key = key.ok_or("a table without types")?;
        Ok(Self { key, values })
    }

    /// The key in these bytes. Bytes that are no key of this type are shown as they are.
    #[must_use]
    pub fn key(&self, bytes: &[u8]) -> Value {
        read_key(&self.key, bytes).unwrap_or_else(|| Value::Bytes(bytes.to_vec()))
    }

    /// The value in these bytes, of whichever version it is. Bytes that are no value of any are
    /// shown as they are.
    #[must_use]
    pub fn value(&self, bytes: &[u8]) -> Value {
        match self.known(bytes) {
            Some((_, value)) => value,
            None => Value::Bytes(bytes.to_vec()),
        }
    }

    /// The bytes of a key that is shown like this.
    ///
    /// # Errors
    /// What is not of this type.
    pub fn key_bytes(&self, key: &Value) -> Result<Vec<u8>, String> {
        write_key(&self.key, key).or_else(|what| as_shown(key, |bytes| self.key(bytes), what))
    }

    /// The bytes of a value that is shown like this, of the only version that has all of its fields
    /// and no others.
    ///
    /// # Errors
    /// What is not of the newest version; that it may be of several.
    pub fn value_bytes(&self, value: &Value) -> Result<Vec<u8>, String> {
        let fits = |version: &usize| write_value(&self.values[*version], value).is_ok();
        let fitting: Vec<usize> = (0..self.values.len()).filter(fits).collect();
        match fitting.as_slice() {
            [one] => self.value_bytes_of(value, *one),
            [] => {
                let what = write_value(&self.values[self.versions() - 1], value).err();
                as_shown(value, |bytes| self.value(bytes), what.unwrap_or_default())
            }
            [first, .., last] => Err(format!(
                "it may be a value of version {first} or {last} of its type: say of which"
            )),
        }
    }

    /// The bytes of a value of a version, counted from 0, that is shown like this.
    ///
    /// # Errors
    /// What is not of that version.
    pub fn value_bytes_of(&self, value: &Value, version: usize) -> Result<Vec<u8>, String> {
        let of = self.values.get(version).ok_or_else(|| {
            format!(
                "there is no version {version} of its type, the newest is {}",
                self.versions() - 1
            )
        })?;
        self.with_version(write_value(of, value)?, version)
    }

    /// How many versions the type of the values has.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.values.len()
    }

    /// Of which version of their type, counted from 0, the value in these bytes is; `None` if they
    /// are no value of any.
    #[must_use]
    pub fn version_of(&self, bytes: &[u8]) -> Option<usize> {
        self.known(bytes).map(|(version, _)| version)
    }

    /// As typed values are written (`data/stored`).
    fn with_version(&self, mut bytes: Vec<u8>, version: usize) -> Result<Vec<u8>, String> {
        if version == 0 {
            return Ok(bytes);
        }
        let is_first = |bytes: &[u8]| read_value(&self.values[0], bytes).is_some();
        bytes.push(version as u8);
        if is_first(&bytes) {
            bytes.push(version as u8 + TWICE);
            if is_first(&bytes) {
                return Err("it looks like a value of the first version".into());
            }
        }
        Ok(bytes)
    }

    /// The names of the fields of a version of the values, if they are structs.
    #[must_use]
    pub fn fields(&self, version: usize) -> Vec<&str> {
        match self.values.get(version) {
            Some(Type::Struct(_, fields)) => {
                fields.iter().filter_map(|(name, _)| name.as_deref()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the key is in a table of text.
    #[must_use]
    pub fn key_cell(&self) -> Cell {
        self.key.cell()
    }

    /// What is in the cells of [`RowTypes::fields`] of a row in a table of text, or in its only
    /// cell where there are none.
    #[must_use]
    pub fn cells(&self, version: usize) -> Vec<Cell> {
        match self.values.get(version) {
            Some(Type::Struct(_, fields)) if !self.fields(version).is_empty() => {
                fields.iter().map(|(_, of)| of.cell()).collect()
            }
            Some(of) => vec![of.cell()],
            None => Vec::new(),
        }
    }

    /// As the typed values are read (`data/stored`): the version, and the value.
    fn known(&self, bytes: &[u8]) -> Option<(usize, Value)> {
        let first = read_value(&self.values[0], bytes).map(|value| (0, value));
        if self.values.len() == 1 || first.is_some() {
            return first;
        }
        let (&last, mut value) = bytes.split_last()?;
        if last & TWICE != 0 {
            let (&version, once) = value.split_last()?;
            value = (version == last - TWICE).then_some(once)?;
        }
        let version = usize::from(last & !TWICE);
        let of = self.values.get(version).filter(|_| version > 0)?;
        Some((version, read_value(of, value)?))
    }
}

/// What is no key or value of its type is shown as bytes.
fn as_shown(
    value: &Value,
    read: impl FnOnce(&[u8]) -> Value,
    what: String,
) -> Result<Vec<u8>, String> {
    let bytes = bytes_of(value).map_err(|_| what.clone())?;
    if matches!(read(&bytes), Value::Bytes(_)) { Ok(bytes) } else { Err(what) }
}
