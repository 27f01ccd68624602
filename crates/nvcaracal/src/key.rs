//! Keys as bytes whose order is the keys' order.
//!
//! Keys of up to 8 bytes are padded in front to exactly 8, which the engine indexes as one word:
//! integers and pairs of small ones are the fast case.

use std::fmt::Debug;

use storage::format::KEY_BYTES_MAX;

/// Longest key of text or bytes if the table does not say otherwise.
pub(crate) const KEY_BYTES_DEFAULT: u32 = 64;
/// Keys of this length are words to the engine.
pub(crate) const WORD_BYTES: usize = 8;

const BUFFER_BYTES: usize = KEY_BYTES_MAX as usize + WORD_BYTES;

/// Where the parts of a key are put together.
#[derive(Debug)]
pub struct KeyBuffer {
    bytes: [u8; BUFFER_BYTES],
    len: usize,
}

impl KeyBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; BUFFER_BYTES], len: 0 }
    }

    /// Appends bytes. What is beyond the longest key of any table is dropped: such a key is refused
    /// anyway.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(BUFFER_BYTES - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
    }

    /// What was appended.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// What can be a key.
///
/// Implemented for integers, `str`, `[u8]`, `String`, `Vec<u8>`, byte arrays, and tuples of two to
/// four of these that are sized. A table with text as its key is a `Table<str, V>`: its keys are
/// given as `&str` and come out of scans as `String`. Inside tuples, use `String`.
///
/// For a type of your own, encode to bytes that compare as its values do, and that say where they
/// end.
pub trait Key: Debug {
    /// What a scan returns.
    type Owned: Debug + Send + 'static;

    /// Bytes of every key of this type, if all have the same.
    const BYTES: Option<usize>;

    /// Appends the bytes of the key as a part of a longer one.
    fn encode(&self, into: &mut KeyBuffer);

    /// Reads what [`Key::encode`] wrote and moves past it. `None` if the bytes are no key of this
    /// type.
    fn decode(from: &mut &[u8]) -> Option<Self::Owned>;

    /// Calls `then` with the bytes of the key as the engine gets them.
    #[inline]
    fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        let mut buffer = KeyBuffer::new();
        buffer.push(&[0; WORD_BYTES][..padding::<Self>()]);
        self.encode(&mut buffer);
        then(buffer.bytes())
    }

    /// Reads a whole key. `None` if the bytes are no key of this type.
    fn from_key(bytes: &[u8]) -> Option<Self::Owned> {
        let mut rest = bytes.get(padding::<Self>()..)?;
        Self::decode(&mut rest).filter(|_| rest.is_empty())
    }
}

/// Zeros in front of a key, so that it has 8 bytes.
const fn padding<K: Key + ?Sized>() -> usize {
    match K::BYTES {
        Some(bytes) if bytes < WORD_BYTES => WORD_BYTES - bytes,
        _ => 0,
    }
}

/// Longest key of a table, unless it says otherwise.
pub(crate) const fn key_bytes_max<K: Key + ?Sized>() -> u32 {
    match K::BYTES {
        Some(bytes) if bytes < WORD_BYTES => WORD_BYTES as u32,
        Some(bytes) => bytes as u32,
        None => KEY_BYTES_DEFAULT,
    }
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty, $flip:expr;)*) => { $(
        impl Key for $type {
            type Owned = Self;
            const BYTES: Option<usize> = Some(size_of::<$type>());

            #[inline]
            fn encode(&self, into: &mut KeyBuffer) {
                into.push(&(*self as $unsigned ^ $flip).to_be_bytes());
            }

            fn decode(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some((<$unsigned>::from_be_bytes(*bytes) ^ $flip) as $type)
            }
        }
    )* };
}

integers! {
    u8, u8, 0;
    u16, u16, 0;
    u32, u32, 0;
    u64, u64, 0;
    u128, u128, 0;
    i8, u8, 1 << 7;
    i16, u16, 1 << 15;
    i32, u32, 1 << 31;
    i64, u64, 1 << 63;
    i128, u128, 1 << 127;
}

impl<const N: usize> Key for [u8; N] {
    type Owned = Self;
    const BYTES: Option<usize> = Some(N);

    fn encode(&self, into: &mut KeyBuffer) {
        into.push(self);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*bytes)
    }
}

/// Bytes inside a longer key: a zero byte becomes 0 255, and 0 0 ends them, so that a prefix comes
/// first.
fn encode_escaped(bytes: &[u8], into: &mut KeyBuffer) {
    for (i, part) in bytes.split(|&b| b == 0).enumerate() {
        if i > 0 {
            into.push(&[0, 0xff]);
        }
        into.push(part);
    }
    into.push(&[0, 0]);
}

fn decode_escaped(from: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let end = from.iter().position(|&b| b == 0)?;
        bytes.extend_from_slice(&from[..end]);
        let mark = *from.get(end + 1)?;
        *from = &from[end + 2..];
        match mark {
            0 => return Some(bytes),
            0xff => bytes.push(0),
            _ => return None,
        }
    }
}

macro_rules! texts {
    ($($type:ty, $owned:ty, $from:expr;)*) => { $(
        impl Key for $type {
            type Owned = $owned;
            const BYTES: Option<usize> = None;

            fn encode(&self, into: &mut KeyBuffer) {
                encode_escaped(self.as_ref(), into);
            }

            fn decode(from: &mut &[u8]) -> Option<$owned> {
                decode_escaped(from).and_then($from)
            }

            #[inline]
            fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(self.as_ref())
            }

            fn from_key(bytes: &[u8]) -> Option<$owned> {
                Some(bytes.to_vec()).and_then($from)
            }
        }
    )* };
}

texts! {
    str, String, |bytes| String::from_utf8(bytes).ok();
    String, String, |bytes| String::from_utf8(bytes).ok();
    [u8], Vec<u8>, Some;
    Vec<u8>, Vec<u8>, Some;
}

/// Adds lengths that may be unknown.
const fn sum(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => None,
    }
}

macro_rules! tuples {
    ($(($first:ident $($name:ident)+))*) => { $(
        impl<$first: Key, $($name: Key),+> Key for ($first, $($name),+) {
            type Owned = ($first::Owned, $($name::Owned),+);
            const BYTES: Option<usize> = {
                let bytes = $first::BYTES;
                $(let bytes = sum(bytes, $name::BYTES);)+
                bytes
            };

            #[inline]
            #[expect(non_snake_case, reason = "one name for type and field")]
            fn encode(&self, into: &mut KeyBuffer) {
                let ($first, $($name),+) = self;
                $first.encode(into);
                $($name.encode(into);)+
            }

            fn decode(from: &mut &[u8]) -> Option<Self::Owned> {
                Some(($first::decode(from)?, $($name::decode(from)?),+))
            }
        }
    )* };
}

tuples! { (A B) (A B C) (A B C D) }

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<K: Key + ?Sized>(key: &K) -> Vec<u8> {
        key.with_key(<[u8]>::to_vec)
    }

    fn check<K>(ascending: &[K])
    where
        K: Key<Owned = K> + PartialEq,
    {
        for pair in ascending.windows(2) {
            assert!(bytes(&pair[0]) < bytes(&pair[1]), "{:?} is before {:?}", pair[0], pair[1]);
        }
        for key in ascending {
            assert_eq!(K::from_key(&bytes(key)).as_ref(), Some(key));
            if let Some(len) = K::BYTES {
                assert_eq!(bytes(key).len(), len.max(WORD_BYTES));
            }
        }
    }

    #[test]
    fn bytes_are_in_the_order_of_the_keys() {
        check(&[0u8, 1, 255]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[i16::MIN, -1, 0, 1, i16::MAX]);
        check(&[0, 1, u128::MAX]);
        check(&[(0u32, u32::MAX), (1, 0), (1, 1)]);
        check(&[(0u8, -5i16), (0, 3), (1, -7)]);
        check(&["a", "a\0", "a\0b", "ab", "b"].map(String::from));
        check(
            &[("a", 9u64), ("a\0", 0), ("a\0b", 0), ("ab", 1), ("b", 0)]
                .map(|(s, n)| (s.to_string(), n)),
        );
        check(&[[0u8, 1, 2], [0, 2, 0]]);
        check(&[(1u64, 2u64, vec![0u8, 0]), (1, 2, vec![0, 1])]);
    }

    #[test]
    fn a_key_that_is_too_long_stays_too_long() {
        let long = ("x".repeat(1000), 1u64);
        assert!(bytes(&long).len() > KEY_BYTES_MAX as usize);
    }
}
