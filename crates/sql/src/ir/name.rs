//! Names of relations and types, which are those of their schemas.

use super::number::SchemaId;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

/// The qualified name of a relation or type. Dereferences to the unqualified name.
///
/// In schema `public` it serializes as the unqualified name, which keeps catalogs and plans of
/// earlier versions readable. In other schemas the number of the schema precedes the name, between
/// two NULs, which no name contains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Its schema.
    pub schema: SchemaId,
    /// The unqualified name.
    pub own: String,
}

/// Delimits the number of a schema.
const MARK: char = '\0';

impl Name {
    /// Returns a name in a schema.
    pub fn new(schema: SchemaId, own: impl Into<String>) -> Name {
        Name { schema, own: own.into() }
    }

    /// Returns a name in schema `public`.
    pub fn public(own: impl Into<String>) -> Name {
        Name::new(SchemaId::PUBLIC, own)
    }

    /// Returns another name in this schema.
    pub fn beside(&self, own: impl Into<String>) -> Name {
        Name::new(self.schema, own)
    }

    /// Parses the serialized form; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Name> {
        let Some(rest) = text.strip_prefix(MARK) else { return Some(Name::public(text)) };
        let (number, own) = rest.split_once(MARK)?;
        Some(Name::new(SchemaId::new(number.parse().ok()?), own))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.own
    }
}

/// The serialized form.
impl From<&Name> for String {
    fn from(name: &Name) -> String {
        match name.schema {
            SchemaId::PUBLIC => name.own.clone(),
            schema => format!("{MARK}{}{MARK}{}", schema.number(), name.own),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.own)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.schema {
            SchemaId::PUBLIC => serializer.serialize_str(&self.own),
            _ => serializer.serialize_str(&String::from(self)),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Name::parse(&String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("name is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;

    #[test]
    fn names_in_public_have_the_bytes_of_text() {
        let name = Name::public("orders");
        assert_eq!(to_bytes(&name), to_bytes(&"orders".to_owned()));
        let other = Name::new(SchemaId::new(16_384), "orders");
        for name in [name, other, Name::public("")] {
            assert_eq!(from_bytes::<Name>(&to_bytes(&name), "name").unwrap(), name);
        }
        for text in ["\0", "\0x\0t", "\u{0}1"] {
            assert!(from_bytes::<Name>(&to_bytes(&text.to_owned()), "name").is_err(), "{text:?}");
        }
    }
}
