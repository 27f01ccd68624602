//! Ranges of keys as the engine wants them: from a first key, up to and without a last one.

use std::borrow::Borrow;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use storage::format::KEY_BYTES_MAX;

use crate::key::bytes::{Key, WORD_BYTES};
use crate::table::handle::Table;

/// Ranges of keys: `..`, `a..b`, `a..=b`, `a..`, `..b`, `..=b`, and pairs of `Bound`s.
pub trait KeyRange<K: Key + ?Sized> {
    /// First and last key.
    fn bounds(&self) -> (Bound<&K>, Bound<&K>);
}

impl<K: Key + ?Sized> KeyRange<K> for RangeFull {
    fn bounds(&self) -> (Bound<&K>, Bound<&K>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

macro_rules! ranges {
    ($($type:ident, |$range:ident| $low:expr, $high:expr;)*) => { $(
        impl<K: Key + ?Sized, Q: Borrow<K>> KeyRange<K> for $type<Q> {
            fn bounds(&self) -> (Bound<&K>, Bound<&K>) {
                let $range = self;
                ($low, $high)
            }
        }
    )* };
}

ranges! {
    Range, |r| Bound::Included(r.start.borrow()), Bound::Excluded(r.end.borrow());
    RangeInclusive, |r| Bound::Included(r.start().borrow()), Bound::Included(r.end().borrow());
    RangeFrom, |r| Bound::Included(r.start.borrow()), Bound::Unbounded;
    RangeTo, |r| Bound::Unbounded, Bound::Excluded(r.end.borrow());
    RangeToInclusive, |r| Bound::Unbounded, Bound::Included(r.end.borrow());
}

impl<K: Key + ?Sized, Q: Borrow<K>> KeyRange<K> for (Bound<Q>, Bound<Q>) {
    fn bounds(&self) -> (Bound<&K>, Bound<&K>) {
        (self.0.as_ref().map(Borrow::borrow), self.1.as_ref().map(Borrow::borrow))
    }
}

/// Keys with `low <= key < high`; and the greatest of all 8-byte keys, which no `high` of 8 bytes
/// is above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
    pub(crate) and_last: bool,
    /// All keys have 8 bytes.
    has_words: bool,
}

/// The greatest 8-byte key.
pub(crate) const LAST_WORD: [u8; WORD_BYTES] = [0xff; WORD_BYTES];

impl Bytes {
    pub(crate) fn new<K: Key + ?Sized, V, O>(
        table: &Table<K, V, O>,
        range: &impl KeyRange<K>,
    ) -> Self {
        let (low, high) = range.bounds();
        if table.shape.has_word_keys() {
            Self::of_words(low, high)
        } else {
            Self::of_any(low, high)
        }
    }

    fn of_words<K: Key + ?Sized>(low: Bound<&K>, high: Bound<&K>) -> Self {
        let word = |key: &K| key.with_key(|k| k.try_into().map_or(u64::MAX, u64::from_be_bytes));
        // In 128 bits there is room above the greatest key.
        let low = match low {
            Bound::Unbounded => 0,
            Bound::Included(key) => u128::from(word(key)),
            Bound::Excluded(key) => u128::from(word(key)) + 1,
        };
        let end = match high {
            Bound::Unbounded => 1 << 64,
            Bound::Included(key) => u128::from(word(key)) + 1,
            Bound::Excluded(key) => u128::from(word(key)),
        };
        let bytes = |n: u128| u64::try_from(n).unwrap_or(u64::MAX).to_be_bytes().to_vec();
        Self {
            and_last: low <= u128::from(u64::MAX) && end > u128::from(u64::MAX),
            low: bytes(low),
            high: bytes(end.max(low)),
            has_words: true,
        }
    }

    fn of_any<K: Key + ?Sized>(low: Bound<&K>, high: Bound<&K>) -> Self {
        let at = |key: &K| key.with_key(<[u8]>::to_vec);
        // The least key above another one is the same with a zero byte after it.
        let after = |key: &K| key.with_key(|k| [k, &[0]].concat());
        let low = match low {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => at(key),
            Bound::Excluded(key) => after(key),
        };
        let high = match high {
            Bound::Unbounded => vec![0xff; KEY_BYTES_MAX as usize + 1],
            Bound::Included(key) => after(key),
            Bound::Excluded(key) => at(key),
        };
        Self { high: high.max(low.clone()), low, and_last: false, has_words: false }
    }

    /// A range of entries of an index.
    pub(crate) fn of_entries(low: Vec<u8>, high: Vec<u8>) -> Self {
        Self { high: high.max(low.clone()), low, and_last: false, has_words: false }
    }

    /// What is left when everything up to a key was read; nothing, if there is no more.
    pub(crate) fn go_on_after(&mut self, last: Option<Vec<u8>>) {
        self.low = match last {
            None => self.high.clone(),
            Some(mut key) => match <[u8; WORD_BYTES]>::try_from(&key[..]) {
                // It is below a bound, so there is a greater one.
                Ok(word) if self.has_words => (u64::from_be_bytes(word) + 1).to_be_bytes().to_vec(),
                _ => {
                    key.push(0);
                    key
                }
            },
        };
    }

    /// The same from behind.
    pub(crate) fn go_on_before(&mut self, last: Option<Vec<u8>>) {
        self.high = last.unwrap_or_else(|| self.low.clone());
    }

    /// Whether a key is in the range.
    #[cfg(test)]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        (self.low.as_slice()..self.high.as_slice()).contains(&key)
            || self.and_last && key == LAST_WORD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_words_hold_what_they_say() {
        const T: Table<i64, u8> = Table::ordered("t");
        let check = |range: &dyn Fn() -> Bytes, inside: &[i64], outside: &[i64]| {
            let bytes = range();
            inside.iter().for_each(|k| assert!(k.with_key(|k| bytes.contains(k)), "{k}"));
            outside.iter().for_each(|k| assert!(!k.with_key(|k| bytes.contains(k)), "{k}"));
        };
        let (min, max) = (i64::MIN, i64::MAX);
        check(&|| Bytes::new(&T, &(..)), &[min, 0, max], &[]);
        check(&|| Bytes::new(&T, &(-1..1)), &[-1, 0], &[min, -2, 1, max]);
        check(&|| Bytes::new(&T, &(1..=max)), &[1, max], &[0]);
        check(&|| Bytes::new(&T, &(1..max)), &[1, max - 1], &[0, max]);
        check(&|| Bytes::new(&T, &(..=min)), &[min], &[min + 1]);
        let above = (Bound::Excluded(max), Bound::Unbounded);
        check(&|| Bytes::new(&T, &above), &[], &[max, 0]);
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is tested")]
        check(&|| Bytes::new(&T, &(5..3)), &[], &[3, 4, 5]);
    }

    #[test]
    fn ranges_of_texts_hold_what_they_say() {
        const T: Table<str, u8> = Table::ordered("t");
        let contains = |bytes: &Bytes, key: &str| bytes.contains(key.as_bytes());
        let half = Bytes::new(&T, &("b".."d"));
        assert!(contains(&half, "b") && contains(&half, "czz"));
        assert!(!contains(&half, "a") && !contains(&half, "d"));
        let closed = Bytes::new(&T, &("b"..="d"));
        assert!(contains(&closed, "d") && !contains(&closed, "d\0"));
        assert!(contains(&Bytes::new(&T, &(..)), "\u{10ffff}"));
    }
}
