//! Types of other crates, each behind a feature.

#[cfg(any(feature = "serde", feature = "decimal", feature = "uuid"))]
use crate::Data;

/// A value of a type of another crate, written by its `serde` traits (in the format of `postcard`).
/// Feature `serde`. In a field, `#[data(serde)]` does the same.
///
/// Only its name is known of such a type, so that a change of its fields is not noticed when a
/// database is opened: give it a new name, and the type it is in a new version
/// ([`Data::BEFORE`]). The type must be written the same way each time: no `HashMap`.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Serde<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize> Serde<T> {
    pub(crate) fn encode_bytes(&self, into: &mut Vec<u8>) {
        let bytes = postcard::to_allocvec(&self.0).unwrap_or_else(|error| {
            panic!("a {} cannot be written: {error}", std::any::type_name::<T>())
        });
        bytes.encode(into);
    }
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Data for Serde<T> {
    fn describe() -> String {
        format!("serde {}", super::short_name::<T>())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.encode_bytes(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let bytes = Vec::<u8>::decode(from)?;
        let (value, after) = postcard::take_from_bytes(&bytes).ok()?;
        after.is_empty().then_some(Self(value))
    }
}

#[cfg(feature = "decimal")]
impl Data for rust_decimal::Decimal {
    const BYTES: Option<usize> = Some(16);

    fn describe() -> String {
        "Decimal".to_string()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.serialize().encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let bytes = Data::decode(from)?;
        let decimal = Self::deserialize(bytes);
        (decimal.serialize() == bytes).then_some(decimal)
    }
}

#[cfg(feature = "uuid")]
impl Data for uuid::Uuid {
    const BYTES: Option<usize> = Some(16);

    fn describe() -> String {
        "Uuid".to_string()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.as_bytes().encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        <[u8; 16] as Data>::decode(from).map(Self::from_bytes)
    }
}
