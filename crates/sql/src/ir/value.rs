//! Types and constants in the logged form.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use values::{Datum, Modifier, Type, row};

/// A type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The type.
    pub ty: Type,
    /// Its length, precision or scale.
    pub modifier: Modifier,
}

impl Kind {
    /// The type without a modifier.
    pub fn plain(ty: Type) -> Kind {
        Kind { ty, modifier: Modifier::NONE }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.ty.code(), self.modifier.number()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        let (code, modifier) = <(u8, i32)>::deserialize(deserializer)?;
        let ty = Type::from_code(code).ok_or_else(|| D::Error::custom("unknown type"))?;
        Ok(Kind { ty, modifier: Modifier::from_number(modifier) })
    }
}

/// A constant: NULL, or the bytes that it has in rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub Datum);

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.0.kind().map(|ty| {
            let mut bytes = Vec::new();
            row::push_value(&self.0, &mut bytes);
            (ty.code(), bytes)
        });
        bytes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let Some((code, bytes)) = <Option<(u8, Vec<u8>)>>::deserialize(deserializer)? else {
            return Ok(Value(Datum::Null));
        };
        let ty = Type::from_code(code).ok_or_else(|| D::Error::custom("unknown type"))?;
        row::read_value(ty, &bytes).map(Value).map_err(D::Error::custom)
    }
}
