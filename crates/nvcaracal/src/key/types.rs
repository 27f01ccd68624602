//! How types of the language and of its library are keys.

use std::time::{Duration, SystemTime};

use crate::data::derived::sum;
use crate::data::time::{duration, parts_since_1970, since_1970};
use crate::key::bytes::{Key, KeyBuffer, WORD_BYTES};

macro_rules! integers {
    ($($type:ty, $unsigned:ty, $flip:expr;)*) => { $(
        impl Key for $type {
            type Owned = Self;
            const BYTES: Option<usize> = Some(size_of::<$type>());
            const READS_BACK: bool = true;

            #[inline]
            fn encode(&self, into: &mut KeyBuffer) {
                into.push(&(*self as $unsigned ^ $flip).to_be_bytes());
            }

            fn decode(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some((<$unsigned>::from_be_bytes(*bytes) ^ $flip) as $type)
            }

            #[inline]
            fn with_key<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                let bytes = (*self as $unsigned ^ $flip).to_be_bytes();
                let mut word = [0; WORD_BYTES];
                match WORD_BYTES.checked_sub(bytes.len()) {
                    Some(padding) => {
                        word[padding..].copy_from_slice(&bytes);
                        then(&word)
                    }
                    None => then(&bytes),
                }
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

impl Key for bool {
    type Owned = Self;
    const BYTES: Option<usize> = Some(1);
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut KeyBuffer) {
        into.push(&[u8::from(*self)]);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        match u8::decode(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Key for char {
    type Owned = Self;
    const BYTES: Option<usize> = Some(4);
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut KeyBuffer) {
        u32::from(*self).encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Self::from_u32(u32::decode(from)?)
    }
}

impl Key for Duration {
    type Owned = Self;
    const BYTES: Option<usize> = Some(12);
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut KeyBuffer) {
        self.as_secs().encode(into);
        self.subsec_nanos().encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        duration(u64::decode(from)?, u32::decode(from)?)
    }
}

impl Key for SystemTime {
    type Owned = Self;
    const BYTES: Option<usize> = Some(12);
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut KeyBuffer) {
        let (seconds, nanos) = parts_since_1970(*self);
        seconds.encode(into);
        nanos.encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        since_1970(i64::decode(from)?, u32::decode(from)?)
    }
}

/// `None` is before all others.
impl<K: Key> Key for Option<K> {
    type Owned = Option<K::Owned>;
    const BYTES: Option<usize> = None;
    const READS_BACK: bool = K::READS_BACK;

    fn describe() -> String {
        format!("Option<{}>", K::describe())
    }

    fn encode(&self, into: &mut KeyBuffer) {
        into.push(&[u8::from(self.is_some())]);
        if let Some(key) = self {
            key.encode(into);
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self::Owned> {
        match u8::decode(from)? {
            0 => Some(None),
            1 => K::decode(from).map(Some),
            _ => None,
        }
    }
}

#[cfg(feature = "uuid")]
impl Key for uuid::Uuid {
    type Owned = Self;
    const BYTES: Option<usize> = Some(16);
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut KeyBuffer) {
        into.push(self.as_bytes());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        <[u8; 16] as Key>::decode(from).map(Self::from_bytes)
    }
}

impl<const N: usize> Key for [u8; N] {
    type Owned = Self;
    const BYTES: Option<usize> = Some(N);
    const READS_BACK: bool = true;

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
            const READS_BACK: bool = true;

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

macro_rules! tuples {
    ($(($first:ident $($name:ident)+))*) => { $(
        impl<$first: Key, $($name: Key),+> Key for ($first, $($name),+) {
            type Owned = ($first::Owned, $($name::Owned),+);
            const BYTES: Option<usize> = sum(&[$first::BYTES, $($name::BYTES),+]);
            const READS_BACK: bool = $first::READS_BACK $(&& $name::READS_BACK)+;

            fn describe() -> String {
                format!("({})", [$first::describe(), $($name::describe()),+].join(", "))
            }

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

tuples! { (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

#[cfg(test)]
mod tests {
    use super::*;
    use storage::format::KEY_BYTES_MAX;

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
        check(&[false, true]);
        check(&['a', 'b', '\u{10ffff}']);
        check(&[None, Some(0u8), Some(1)]);
        check(&[(None, 9u8), (Some("a".to_string()), 0), (Some("b".to_string()), 0)]);
        check(&[Duration::ZERO, Duration::new(0, 1), Duration::new(1, 0)]);
        let second = |n: i64| since_1970(n, 5).unwrap();
        check(&[second(-2), second(-1), SystemTime::UNIX_EPOCH, second(0), second(1)]);
        check(&[(1u64, 2u64, vec![0u8, 0]), (1, 2, vec![0, 1])]);
    }

    #[test]
    fn a_key_that_is_too_long_stays_too_long() {
        let long = ("x".repeat(1000), 1u64);
        assert!(bytes(&long).len() > KEY_BYTES_MAX as usize);
    }
}
