//! What the code calls that [`Data`] and [`Key`](crate::Key) derive. Not for other use: it may
//! change with every version.

use std::cell::RefCell;
use std::marker::PhantomData;

#[cfg(feature = "serde")]
use crate::data::foreign::{Serde, encode_by_serde};
use crate::data::text::short_name;
use crate::data::value::Data;

/// Bytes of fields together, if all of them have a fixed length.
#[must_use]
pub const fn sum(fields: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut i) = (0, 0);
    while i < fields.len() {
        match fields[i] {
            Some(bytes) => sum += bytes,
            None => return None,
        }
        i += 1;
    }
    Some(sum)
}

/// Bytes of an enum whose variants have these after their number, if all have the same.
#[must_use]
pub const fn variants(variants: &[Option<usize>]) -> Option<usize> {
    let Some(first) = variants[0] else { return None };
    let mut i = 1;
    while i < variants.len() {
        match variants[i] {
            Some(bytes) if bytes == first => i += 1,
            _ => return None,
        }
    }
    Some(1 + first)
}

thread_local! {
    /// The types that are being described.
    static DESCRIBED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Says something of a type, unless it is inside itself.
fn outside<T: ?Sized, R>(say: impl FnOnce() -> R) -> Option<R> {
    let name = std::any::type_name::<T>();
    let is_inside = DESCRIBED.with_borrow(|types| types.contains(&name));
    if is_inside {
        return None;
    }
    DESCRIBED.with_borrow_mut(|types| types.push(name));
    let said = say();
    let ended = DESCRIBED.with_borrow_mut(Vec::pop);
    assert_eq!(ended, Some(name), "types are described one within the other");
    Some(said)
}

/// Describes a type; inside itself by its name alone.
#[must_use]
pub fn describe_once<T: ?Sized>(describe: impl FnOnce() -> String) -> String {
    outside::<T, _>(describe).unwrap_or_else(short_name::<T>)
}

/// Whether all parts of a type always read back; itself as its own part does if the others do.
#[must_use]
pub fn all_read_back<T: ?Sized>(parts: impl FnOnce() -> bool) -> bool {
    outside::<T, _>(parts).unwrap_or(true)
}

fn fields(fields: &[(&str, String)]) -> String {
    let field = |(name, of): &(&str, String)| match *name {
        "" => of.clone(),
        name => format!("{name}: {of}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

/// A struct in words.
#[must_use]
pub fn describe_struct(name: &str, parts: &[(&str, String)]) -> String {
    format!("{name} {{ {} }}", fields(parts))
}

/// A struct without names of fields in words: as a tuple.
#[must_use]
pub fn describe_tuple(parts: &[(&str, String)]) -> String {
    format!("({})", fields(parts))
}

/// A variant of an enum in words.
#[must_use]
pub fn describe_variant(name: &str, parts: &[(&str, String)]) -> String {
    match parts {
        [] => name.to_string(),
        parts => format!("{name}({})", fields(parts)),
    }
}

/// An enum in words.
#[must_use]
pub fn describe_enum(name: &str, variants: &[String]) -> String {
    format!("enum {name} {{ {} }}", variants.join(", "))
}

/// How a field is written whose type has no [`Data`] of its own.
#[diagnostic::on_unimplemented(
    message = "a field with `#[data(serde)]` needs feature `serde` of `nvcaracal`",
    label = "the feature is off, or this type has not both of `serde`'s traits"
)]
pub trait Code {
    /// The type of the field.
    type Field;
    /// As [`Data::BYTES`].
    const BYTES: Option<usize>;
    /// As [`Data::always_reads_back`].
    fn always_reads_back() -> bool;
    /// As [`Data::describe`].
    fn describe() -> String;
    /// As [`Data::encode`].
    fn encode(field: &Self::Field, into: &mut Vec<u8>);
    /// As [`Data::decode`].
    fn decode(from: &mut &[u8]) -> Option<Self::Field>;
}

/// An array of what need not be [`Plain`](crate::Plain).
#[derive(Debug)]
pub struct Array<T, const N: usize>([T; N]);

impl<T: Data, const N: usize> Code for Array<T, N> {
    type Field = [T; N];
    const BYTES: Option<usize> = match T::BYTES {
        Some(bytes) => Some(N * bytes),
        None => None,
    };

    fn always_reads_back() -> bool {
        T::always_reads_back()
    }

    fn describe() -> String {
        format!("[{}; {N}]", T::describe())
    }

    fn encode(field: &[T; N], into: &mut Vec<u8>) {
        T::encode_all(field, into);
    }

    fn decode(from: &mut &[u8]) -> Option<[T; N]> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::decode(from)).collect();
        items?.try_into().ok()
    }
}

/// A type of another crate, by its `serde` traits.
#[derive(Debug)]
pub struct BySerde<T>(PhantomData<T>);

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Code for BySerde<T> {
    type Field = T;
    const BYTES: Option<usize> = None;

    fn always_reads_back() -> bool {
        false
    }

    fn describe() -> String {
        <Serde<T> as Data>::describe()
    }

    fn encode(field: &T, into: &mut Vec<u8>) {
        encode_by_serde(field, into);
    }

    fn decode(from: &mut &[u8]) -> Option<T> {
        <Serde<T> as Data>::decode(from).map(|Serde(field)| field)
    }
}
