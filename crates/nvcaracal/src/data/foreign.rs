//! Types of other crates, each behind a feature.

#[cfg(any(feature = "serde", feature = "decimal", feature = "uuid"))]
use crate::data::value::Data;

/// A value of a type of another crate, written by its `serde` traits (in the format of `postcard`).
/// Feature `serde`. In a field, `#[data(serde)]` does the same.
///
/// Only its name is known of such a type, so that a change of its fields is not noticed when a
/// database is opened: give it a new name, and the type it is in a new version ([`Data::BEFORE`]).
/// The type must be written the same way each time: no `HashMap`. What is written of a value is
/// read back and written again at once, which must come to the same; so an untagged enum, or a
/// field that is written at times only, fails where it is written.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Serde<T>(pub T);

#[cfg(feature = "serde")]
pub(crate) fn encode_by_serde<T: serde::Serialize + serde::de::DeserializeOwned>(
    value: &T,
    into: &mut Vec<u8>,
) {
    let bytes = postcard::to_allocvec(value).unwrap_or_default();
    let read_back = postcard::take_from_bytes::<T>(&bytes).ok();
    let read_back = read_back.filter(|(_, after)| after.is_empty());
    let again = read_back.and_then(|(value, _)| postcard::to_allocvec(&value).ok());
    if again.as_ref() != Some(&bytes) {
        crate::data::unreadable::note::<T>();
    }
    bytes.encode(into);
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Data for Serde<T> {
    const READS_BACK: bool = true;

    fn describe() -> String {
        format!("serde {}", crate::data::text::short_name::<T>())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        encode_by_serde(&self.0, into);
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
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

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
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

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
