//! What a type was before.

use std::fmt;

/// What a type of values was before, and how its values are converted: see
/// [`Data::BEFORE`](crate::Data::BEFORE).
pub struct Before<T> {
    /// The version of `T`.
    pub(super) version: u8,
    /// Describes the versions before, the oldest first.
    pub(super) describe: fn(&mut Vec<String>),
    /// Whether these are the bytes of a value of the first version.
    pub(super) is_first: fn(&[u8]) -> bool,
    /// Reads a value of a version before.
    pub(super) read: fn(u8, &[u8]) -> Option<T>,
    /// Bytes of a value of the first version, if all have the same.
    pub(super) first_bytes: Option<usize>,
    /// Bytes of the longest stored value of a version before, if all have a fixed length.
    pub(super) bytes_max: Option<usize>,
}

impl<T> Clone for Before<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Before<T> {}

impl<T> fmt::Debug for Before<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Before {{ version: {} }}", self.version)
    }
}
