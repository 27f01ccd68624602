//! Types of other crates, each behind a feature.

#[cfg(any(feature = "serde", feature = "decimal", feature = "uuid"))]
use crate::Data;

/// A value of a type of another crate, written by its `serde` traits (in the format of `postcard`).
/// Feature `serde`. In a field, `#[data(serde)]` does the same.
///
/// Only its name is known of such a type, so that a change of its fields is not noticed when a
/// database is opened: give it a new name, and the type it is in a new version
/// ([`Data::BEFORE`]).
/// The type must be written the same way each time: no `HashMap`.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Serde<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize> Serde<T> {
    pub(crate) fn encode_bytes(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&[0; 4]);
        let bytes = postcard::to_extend(&self.0, std::mem::take(into));
        *into = bytes.unwrap_or_else(|error| {
            panic!("a {} cannot be written: {error}", std::any::type_name::<T>())
        });
        let len = (into.len() - start - 4) as u32;
        into[start..start + 4].copy_from_slice(&len.to_le_bytes());
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
        let (len, rest) = from.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let (value, after) = postcard::take_from_bytes(bytes).ok()?;
        *from = rest;
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
        into.extend_from_slice(&self.serialize());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        let decimal = Self::deserialize(*bytes);
        (decimal.serialize() == *bytes).then_some(decimal)
    }
}

#[cfg(feature = "uuid")]
impl Data for uuid::Uuid {
    const BYTES: Option<usize> = Some(16);

    fn describe() -> String {
        "Uuid".to_string()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        <[u8; 16] as Data>::decode(from).map(Self::from_bytes)
    }
}
