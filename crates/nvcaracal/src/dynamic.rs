//! Rows whose types are known in words only: for tools that read a store without the program that
//! wrote it.
//!
//! A store keeps the types of its tables in words, as [`Data::describe`](crate::Data::describe) and
//! [`Key::describe`](crate::Key::describe) give them. [`RowTypes`] reads these words, and rows by
//! them; [`Value`] is what it finds.
//!
//! ```
//! use nvcaracal::dynamic::RowTypes;
//!
//! let types = RowTypes::parse(&["u64 -> Seat { row: u32, holder: Option<String> }"])?;
//! assert_eq!(types.key(&7u64.to_be_bytes()).to_string(), "7");
//! let seat = types.value(&[3, 0, 0, 0, 1, 3, 0, 0, 0, b'A', b'd', b'a']);
//! assert_eq!(seat.to_string(), r#"{"row":3,"holder":"Ada"}"#);
//! # Ok::<(), String>(())
//! ```

mod read;
mod types;
mod value;

pub use value::Value;

use read::{read_key, read_value};
use types::Type;

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
        self.known(bytes).unwrap_or_else(|| Value::Bytes(bytes.to_vec()))
    }

    /// The names of the fields of the newest version of the values, if they are structs.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        match self.values.last() {
            Some(Type::Struct(_, fields)) => {
                fields.iter().filter_map(|(name, _)| name.as_deref()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// As the typed values are read (`stored.rs`).
    fn known(&self, bytes: &[u8]) -> Option<Value> {
        let first = read_value(&self.values[0], bytes);
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
        read_value(of, value)
    }
}

#[cfg(test)]
mod tests;
