//! Values that cannot be read back from what is written of them are found when they are written.
//!
//! `encode` has no way to fail. So what finds such a value on the way notes its type, and the
//! library looks at the note before it uses the bytes. Types of fixed layout have no part of this.

use std::any::type_name;

use crate::data::unreadable;
use crate::data::value::Data;

/// Calls `then` with the bytes of a value, as [`Data::with_bytes`], if they are read back.
///
/// # Errors
/// What is wrong otherwise.
#[inline]
pub(crate) fn with_readable<T: Data, R>(
    value: &T,
    then: impl FnOnce(&[u8]) -> R,
) -> Result<R, String> {
    if T::IS_PLAIN {
        return Ok(value.with_bytes(then));
    }
    unreadable::forget();
    value.with_bytes(|bytes| {
        if !T::READS_BACK && T::from_bytes(bytes).is_none() {
            unreadable::note::<T>();
        }
        match unreadable::noted() {
            None => Ok(then(bytes)),
            Some(part) => Err(cannot_be_read::<T>(part)),
        }
    })
}

#[cold]
fn cannot_be_read<T>(part: &str) -> String {
    let whole = type_name::<T>();
    let of = if part == whole { String::new() } else { format!(", a part of a {whole},") };
    format!(
        "a {part}{of} cannot be read back from what is written of it, as is the case of untagged \
         enums, skipped fields, items of no bytes, and forms of its own that do not fit together"
    )
}
