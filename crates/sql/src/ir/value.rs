//! Types and constants in the logged form.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};
use values::{Datum, EnumType, Modifier, Type, row};

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

/// Code and modifier; behind those of an enum comes its definition, so that a replay needs no
/// catalog.
impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let definition = self.ty.enum_type().map(EnumType::to_bytes);
        let mut tuple = serializer.serialize_tuple(KIND_PARTS_MAX)?;
        tuple.serialize_element(&self.ty.code())?;
        tuple.serialize_element(&self.modifier.number())?;
        if let Some(definition) = definition {
            tuple.serialize_element(&definition)?;
        }
        tuple.end()
    }
}

const KIND_PARTS_MAX: usize = 3;

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Kind;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a type with its modifier")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Kind, A::Error> {
                let missing = || A::Error::custom("a part of a type is missing");
                let code: u8 = parts.next_element()?.ok_or_else(missing)?;
                let modifier: i32 = parts.next_element()?.ok_or_else(missing)?;
                let definition: Option<Vec<u8>> = match Type::is_code_of_enum(code) {
                    true => parts.next_element()?,
                    false => None,
                };
                let ty = type_of(code, definition.as_deref()).map_err(A::Error::custom)?;
                Ok(Kind { ty, modifier: Modifier::from_number(modifier) })
            }
        }
        deserializer.deserialize_tuple(KIND_PARTS_MAX, Parts)
    }
}

/// The type of a code, and of the definition beside it.
fn type_of(code: u8, definition: Option<&[u8]>) -> values::Result<Type> {
    let found = match definition {
        Some(definition) => Type::from_code_of_enum(code, EnumType::from_bytes(definition)?),
        None => Type::from_code(code),
    };
    found.ok_or_else(|| values::Error::corrupted("unknown type"))
}

/// A constant: NULL, or the bytes that it has in rows. Before those of an enum is its definition,
/// with its length (u32, little endian).
#[derive(Clone, Debug)]
pub struct Value(pub Datum);

/// One constant, to the byte: programs with constants that are only equal (`1.0` and `1.00`) differ
/// in what they come to.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        let bytes = |value: &Value| {
            let mut bytes = Vec::new();
            row::push_value(&value.0, &mut bytes);
            bytes
        };
        self.0.kind() == other.0.kind() && bytes(self) == bytes(other)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Those of a COPY are many: they are not copied first.
        if let Datum::Bytea(bytes) = &self.0 {
            return Some((Type::Bytea.code(), Bytes::new(bytes))).serialize(serializer);
        }
        let bytes = self.0.kind().map(|ty| {
            let mut bytes = Vec::new();
            if let Some(enumeration) = ty.enum_type() {
                let definition = enumeration.to_bytes();
                bytes.extend_from_slice(&(definition.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&definition);
            }
            row::push_value(&self.0, &mut bytes);
            (ty.code(), ByteBuf::from(bytes))
        });
        bytes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let Some((code, bytes)) = <Option<(u8, &[u8])>>::deserialize(deserializer)? else {
            return Ok(Value(Datum::Null));
        };
        let cut = || D::Error::custom("the definition of an enum is cut");
        let (definition, value) = match Type::is_code_of_enum(code) {
            true => {
                let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
                let length = u32::from_le_bytes(*length) as usize;
                let (definition, value) = rest.split_at_checked(length).ok_or_else(cut)?;
                (Some(definition), value)
            }
            false => (None, bytes),
        };
        let ty = type_of(code, definition).map_err(D::Error::custom)?;
        row::read_value(ty, value).map(Value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;
    use values::{Array, Oid};

    fn mood() -> EnumType {
        EnumType::new(Oid::new(70_000), "mood", "mood", &["sad", "ok", "happy"]).unwrap()
    }

    fn read<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
        from_bytes(&to_bytes(value), "value").unwrap()
    }

    #[test]
    fn enums_have_their_labels_and_their_order_in_logged_bytes() {
        let [sad, ok, happy] = ["sad", "ok", "happy"].map(|label| {
            let Value(datum) = read(&Value(Datum::Enum(mood().parse(label).unwrap())));
            datum
        });
        assert!(sad.compare(&ok).is_lt());
        assert!(ok.compare(&happy).is_lt(), "an enum is ordered by place, not by label");
        let array = Array::new(Type::Enum(mood()), vec![happy.clone(), Datum::Null]).unwrap();
        let Value(array) = read(&Value(Datum::Array(Box::new(array))));
        let shown = values::text::print(&array, &values::Zone::utc());
        assert_eq!(shown, "{happy,NULL}");
    }

    #[test]
    fn constants_are_the_same_to_the_byte() {
        let number = |text: &str| Value(Datum::Numeric(text.parse().unwrap()));
        assert_eq!(number("1.0"), number("1.0"));
        assert_ne!(number("1.0"), number("1.00"));
        assert_ne!(Value(Datum::Float8(0.0)), Value(Datum::Float8(-0.0)));
        assert_eq!(Value(Datum::Null), Value(Datum::Null));
        assert_ne!(Value(Datum::text("a")), Value(Datum::Char("a".into())));
    }

    #[test]
    fn types_are_read_or_refused() {
        let plain = Kind::plain(Type::Int4);
        assert_eq!(to_bytes(&plain).len(), 3, "version, code and modifier");
        for ty in [Type::Enum(mood()), Type::Enum(mood()).array().unwrap()] {
            let kind = read(&Kind::plain(ty));
            assert_eq!(kind.ty, ty);
            assert_eq!(kind.ty.enum_type().unwrap().labels().len(), 3);
            let bytes = to_bytes(&kind);
            for end in 0..bytes.len() {
                assert!(from_bytes::<Kind>(&bytes[..end], "type").is_err(), "{end}");
            }
        }
    }
}
