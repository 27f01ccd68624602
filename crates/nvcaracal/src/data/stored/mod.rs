//! Values as they are stored: with the version of their type behind them, if that has versions.
//!
//! Which version a value has stands with the value (O-93). A value of the first version is stored
//! as it is, so that a type can get a second one later. Of any other version v, from 1 to 127, the
//! byte v follows; and where that could be read as a value of the first version, the byte v + 128
//! after it. A type of the first version says where its values end, so it takes at most one of the
//! two forms for its own.

use crate::data::before::Before;
use crate::data::readable::with_readable;
use crate::data::value::Data;

/// The last version.
const VERSION_MAX: u8 = 127;
/// Says in the last byte that the version stands before it.
const TWICE: u8 = 128;

impl<T: Data> Before<T> {
    /// Values were of type `Old`, and of those before it. The conversion must be pure, and must
    /// not panic, whatever value there is.
    ///
    /// # Panics
    /// While compiling: if `Old` is a `Vec`, whose bytes do not say where they end, or after 127
    /// versions.
    #[must_use]
    pub const fn new<Old: Data>() -> Self
    where
        T: From<Old>,
    {
        assert!(!Old::IS_OPEN, "a value of the first version must say where it ends: no `Vec`");
        let Some(before) = Old::BEFORE else {
            return Self {
                version: 1,
                describe: |versions| versions.push(Old::describe()),
                is_first: is_whole::<Old>,
                read: |_, bytes| Old::from_bytes(bytes).map(T::from),
                first_bytes: Old::BYTES,
                bytes_max: Old::BYTES,
            };
        };
        assert!(before.version < VERSION_MAX, "a type has 127 versions at most");
        Self {
            version: before.version + 1,
            describe: |versions| describe_versions::<Old>(versions),
            is_first: before.is_first,
            read: |version, bytes| read_version::<Old>(version, bytes).map(T::from),
            first_bytes: before.first_bytes,
            bytes_max: bytes_max::<Old>(),
        }
    }
}

fn is_whole<V: Data>(bytes: &[u8]) -> bool {
    match V::BYTES {
        Some(len) => bytes.len() == len,
        None => V::from_bytes(bytes).is_some(),
    }
}

/// Describes all versions of a type, the oldest first.
fn describe_versions<V: Data>(versions: &mut Vec<String>) {
    if let Some(before) = V::BEFORE {
        (before.describe)(versions);
    }
    versions.push(V::describe());
}

/// All versions of a type in words, the oldest first.
pub(crate) fn versions<V: Data>() -> Vec<String> {
    let mut versions = Vec::new();
    describe_versions::<V>(&mut versions);
    versions
}

/// Bytes of the longest stored value of a type, if all of its versions have a fixed length.
pub(crate) const fn bytes_max<V: Data>() -> Option<usize> {
    let (Some(before), Some(bytes)) = (V::BEFORE, V::BYTES) else { return V::BYTES };
    let (Some(first), Some(longest)) = (before.first_bytes, before.bytes_max) else { return None };
    let stored = if bytes + 1 == first { bytes + 2 } else { bytes + 1 };
    Some(if stored > longest { stored } else { longest })
}

/// Calls `then` with the bytes that are stored of a value.
///
/// # Errors
/// If it could not be read back from them, or they could be read as a value of the first version:
/// of that it cannot be told where it ends, although [`Data::IS_OPEN`] says so.
#[inline]
pub(crate) fn with_stored<V: Data, R>(
    value: &V,
    then: impl FnOnce(&[u8]) -> R,
) -> Result<R, String> {
    let Some(before) = V::BEFORE else { return with_readable(value, then) };
    let mut bytes = with_readable(value, <[u8]>::to_vec)?;
    bytes.push(before.version);
    if (before.is_first)(&bytes) {
        bytes.push(before.version + TWICE);
        if (before.is_first)(&bytes) {
            let of = std::any::type_name::<V>();
            return Err(format!(
                "a {of} looks like a value of its first version, of which it cannot be told where \
                 it ends"
            ));
        }
    }
    Ok(then(&bytes))
}

/// Reads a value from the bytes that are stored of it.
#[inline]
pub(crate) fn read<V: Data>(bytes: &[u8]) -> Option<V> {
    match V::BEFORE {
        None => V::from_bytes(bytes),
        Some(before) => read_any(&before, bytes),
    }
}

fn read_any<V: Data>(before: &Before<V>, bytes: &[u8]) -> Option<V> {
    if (before.is_first)(bytes) {
        return (before.read)(0, bytes);
    }
    let (&last, mut value) = bytes.split_last()?;
    if last & TWICE != 0 {
        let (&version, once) = value.split_last()?;
        value = (version == last - TWICE).then_some(once)?;
    }
    match last & !TWICE {
        0 => None,
        version => read_version(version, value),
    }
}

/// Reads a value of a version from the bytes that it had then.
fn read_version<V: Data>(version: u8, bytes: &[u8]) -> Option<V> {
    match V::BEFORE {
        Some(before) if version < before.version => (before.read)(version, bytes),
        Some(before) if version > before.version => None,
        _ => V::from_bytes(bytes),
    }
}

/// The version of a type; that of the first is 0.
pub(crate) const fn version<V: Data>() -> u8 {
    match V::BEFORE {
        Some(before) => before.version,
        None => 0,
    }
}

/// Why bytes of a value cannot be used as they are.
pub(crate) const MANY_VERSIONS: &str =
    "the type of its values has versions, and the bytes may be of any: read and write values";

/// Whether the bytes of a stored value may be those of another version.
pub(crate) const fn has_versions<V: Data>() -> bool {
    V::BEFORE.is_some()
}

#[cfg(test)]
mod tests;
