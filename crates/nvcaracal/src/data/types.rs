//! How types of the language and of its library are written.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::data::derived::sum;
use crate::data::scratch::with_scratch;
use crate::data::time::{duration, parts_since_1970, since_1970};
use crate::data::unreadable::note;
use crate::data::value::Data;

fn encode_len(len: usize, into: &mut Vec<u8>) {
    let len = u32::try_from(len).expect("arguments, values and answers are shorter than 4 GiB");
    into.extend_from_slice(&len.to_le_bytes());
}

fn decode_len(from: &mut &[u8]) -> Option<usize> {
    let (len, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_le_bytes(*len) as usize)
}

/// Writes the number of items; where their bytes begin.
fn begin_items(len: usize, into: &mut Vec<u8>) -> usize {
    encode_len(len, into);
    into.len()
}

/// Notes items of which some have no bytes: they are not read, because a wrong number of such could
/// not be told from a right one.
fn end_items<T>(len: usize, start: usize, into: &[u8]) {
    if into.len() - start < len {
        note::<T>();
    }
}

/// Whether items of this length can be counted by their bytes.
fn has_bytes(of_item: Option<usize>) -> bool {
    of_item != Some(0)
}

/// Reads items and, before them, their number.
fn decode_items<T: Data>(from: &mut &[u8]) -> Option<Vec<T>> {
    let len = decode_len(from)?;
    // A wrong length must neither reserve more memory than there are bytes, nor count items of no
    // bytes for ever.
    let mut items = Vec::with_capacity(len.min(from.len() / size_of::<T>().max(1)));
    for _ in 0..len {
        let before = from.len();
        items.push(T::decode(from)?);
        if from.len() == before {
            return None;
        }
    }
    Some(items)
}

impl Data for String {
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

    fn encode(&self, into: &mut Vec<u8>) {
        encode_len(self.len(), into);
        into.extend_from_slice(self.as_bytes());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let len = decode_len(from)?;
        let (bytes, rest) = from.split_at_checked(len)?;
        *from = rest;
        Self::from_bytes(bytes)
    }

    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    fn is_value(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok()
    }
}

/// A `Vec` stands in a row or in the log without its length; items of no bytes are refused.
impl<T: Data> Data for Vec<T> {
    const IS_OPEN: bool = true;
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        has_bytes(T::BYTES) && T::always_reads_back()
    }

    fn describe() -> String {
        format!("Vec<{}>", T::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let start = begin_items(self.len(), into);
        T::encode_all(self, into);
        end_items::<Self>(self.len(), start, into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        decode_items(from)
    }

    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        match T::bytes_of(self) {
            Some(bytes) => {
                end_items::<Self>(self.len(), 0, bytes);
                then(bytes)
            }
            None => with_scratch(|bytes| {
                T::encode_all(self, bytes);
                end_items::<Self>(self.len(), 0, bytes);
                then(bytes)
            }),
        }
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        T::decode_all(bytes)
    }

    #[inline]
    fn is_value(bytes: &[u8]) -> bool {
        T::are_items(bytes)
    }
}

impl<T: Data> Data for Option<T> {
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        T::always_reads_back()
    }

    fn describe() -> String {
        format!("Option<{}>", T::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode_part(into);
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        match u8::decode(from)? {
            0 => Some(None),
            1 => T::decode(from).map(Some),
            _ => None,
        }
    }
}

impl<T: Data, E: Data> Data for Result<T, E> {
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        T::always_reads_back() && E::always_reads_back()
    }

    fn describe() -> String {
        format!("Result<{}, {}>", T::describe(), E::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        into.push(u8::from(self.is_err()));
        match self {
            Ok(value) => value.encode_part(into),
            Err(error) => error.encode_part(into),
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        match u8::decode(from)? {
            0 => T::decode(from).map(Ok),
            1 => E::decode(from).map(Err),
            _ => None,
        }
    }
}

/// In the order of the keys, so that equal maps have equal bytes. Bytes in another order are none.
impl<K: Data + Ord, V: Data> Data for BTreeMap<K, V> {
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        has_bytes(sum(&[K::BYTES, V::BYTES])) && K::always_reads_back() && V::always_reads_back()
    }

    fn describe() -> String {
        format!("BTreeMap<{}, {}>", K::describe(), V::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let start = begin_items(self.len(), into);
        for (key, value) in self {
            key.encode_part(into);
            value.encode_part(into);
        }
        end_items::<Self>(self.len(), start, into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let pairs = decode_items::<(K, V)>(from)?;
        let is_in_order = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        is_in_order.then(|| pairs.into_iter().collect())
    }
}

/// As a `BTreeMap`.
impl<T: Data + Ord> Data for BTreeSet<T> {
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        has_bytes(T::BYTES) && T::always_reads_back()
    }

    fn describe() -> String {
        format!("BTreeSet<{}>", T::describe())
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let start = begin_items(self.len(), into);
        self.iter().for_each(|item| item.encode_part(into));
        end_items::<Self>(self.len(), start, into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let items = decode_items::<T>(from)?;
        let is_in_order = items.windows(2).all(|pair| pair[0] < pair[1]);
        is_in_order.then(|| items.into_iter().collect())
    }
}

impl Data for Duration {
    const BYTES: Option<usize> = Some(12);
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

    fn describe() -> String {
        "Duration".to_string()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.as_secs().encode(into);
        self.subsec_nanos().encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        duration(u64::decode(from)?, u32::decode(from)?)
    }
}

/// Seconds and nanoseconds since 1970. A procedure gets the time as an argument, or from
/// [`Transaction::timestamp_ns`](crate::Transaction::timestamp_ns), not from the clock.
impl Data for SystemTime {
    const BYTES: Option<usize> = Some(12);
    const READS_BACK: bool = true;

    fn always_reads_back() -> bool {
        true
    }

    fn describe() -> String {
        "SystemTime".to_string()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let (seconds, nanos) = parts_since_1970(*self);
        seconds.encode(into);
        nanos.encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        since_1970(i64::decode(from)?, u32::decode(from)?)
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))*) => { $(
        impl<$($name: Data),+> Data for ($($name,)+) {
            const BYTES: Option<usize> = sum(&[$($name::BYTES),+]);
            const READS_BACK: bool = true;

            fn always_reads_back() -> bool {
                $($name::always_reads_back())&&+
            }

            fn describe() -> String {
                format!("({})", [$($name::describe()),+].join(", "))
            }

            #[expect(non_snake_case, reason = "one name for type and field")]
            fn encode(&self, into: &mut Vec<u8>) {
                let ($($name,)+) = self;
                $($name.encode_part(into);)+
            }

            fn decode(from: &mut &[u8]) -> Option<Self> {
                Some(($($name::decode(from)?,)+))
            }
        }
    )* };
}

tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
    (A B C D E F G H I) (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Data + PartialEq + std::fmt::Debug>(value: T) {
        let mut nested = Vec::new();
        value.encode(&mut nested);
        nested.push(7);
        let mut rest = nested.as_slice();
        assert_eq!(T::decode(&mut rest).as_ref(), Some(&value));
        assert_eq!(rest, [7], "{value:?} says where it ends");
        let whole = value.with_bytes(<[u8]>::to_vec);
        assert_eq!(T::from_bytes(&whole).as_ref(), Some(&value));
        assert_eq!(T::with_value(&whole, |v| *v == value), Some(true));
        if let Some(bytes) = T::BYTES {
            assert_eq!(whole.len(), bytes);
        }
    }

    #[test]
    fn every_kind_of_data_is_read_as_it_was_written() {
        check(());
        check(true);
        check('x');
        check([1u32, 2, 3]);
        check(String::new());
        check("gr\u{fc}n".to_string());
        check(vec![1u8, 2, 3]);
        check(vec!["a".to_string(), String::new()]);
        check(Some(5i64));
        check(None::<String>);
        check((1u8, "b".to_string(), vec![Some(2u16), None]));
        check(Ok::<u8, String>(1));
        check(Err::<u8, String>("no".to_string()));
        check(BTreeMap::from([(2u8, "b".to_string()), (1, "a".to_string())]));
        check(BTreeSet::from(["x".to_string(), String::new()]));
        check(Duration::new(7, 999_999_999));
        check(SystemTime::UNIX_EPOCH + Duration::new(1, 1));
        check(SystemTime::UNIX_EPOCH - Duration::new(1, 1));
        check((1u8, 2u16, 3u32, 4u64, 5i8, 6i16, 7i32, 8i64, true, 'x', (), "l".to_string()));
    }

    #[test]
    fn damaged_bytes_are_no_value() {
        assert_eq!(bool::from_bytes(&[2]), None);
        assert_eq!(u64::from_bytes(&[0; 7]), None);
        assert_eq!(String::from_bytes(&[0xff]), None);
        assert_eq!(Vec::<u64>::from_bytes(&[0; 9]), None);
        assert_eq!(Vec::<String>::decode(&mut [0xff; 4].as_slice()), None);
        // Found by fuzzing: four thousand million items of no bytes.
        assert_eq!(<(Vec<()>, u8)>::from_bytes(&[0xff, 0xff, 0xff, 0xff, 1]), None);
        // And room for so many large items as there are bytes.
        assert_eq!(Vec::<[u64; 4096]>::decode(&mut [0xff; 30_000].as_slice()), None);
        assert_eq!(Option::<u8>::from_bytes(&[2, 0]), None);
        assert_eq!(Result::<u8, u8>::from_bytes(&[2, 0]), None);
        assert_eq!(BTreeSet::<u8>::from_bytes(&[2, 0, 0, 0, 5, 4]), None, "not in order");
        assert_eq!(BTreeSet::<u8>::from_bytes(&[2, 0, 0, 0, 5, 5]), None, "twice the same");
        assert_eq!(Duration::from_bytes(&[0xff; 12]), None);
        assert_eq!(SystemTime::from_bytes(&[0xff; 12]), None);
    }
}
