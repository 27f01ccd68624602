//! Strings of bits: values of `bit` and `bit varying`.

use crate::{Error, Result, SqlState};
use std::cmp::Ordering;
use std::fmt;

/// A string of bits. The first byte is how many bits of the last one are not used; those are 0.
/// The first bit is the highest one of its byte.
#[derive(Clone, Debug)]
pub struct Bits(Box<[u8]>);

/// The most bits of a value, as in PostgreSQL.
pub const BITS_MAX: usize = 83_886_080;

impl Bits {
    /// So many bits that are 0.
    pub fn zeros(count: usize) -> Bits {
        Bits::of(vec![0; 1 + count.div_ceil(8)], count)
    }

    /// The first `count` bits of what is behind the first byte; the rest becomes 0.
    fn of(mut bytes: Vec<u8>, count: usize) -> Bits {
        assert_eq!(bytes.len(), 1 + count.div_ceil(8), "each byte has a bit");
        let unused = (8 - count % 8) % 8;
        bytes[0] = unused as u8;
        if let Some(last) = bytes.get_mut(1..).and_then(<[u8]>::last_mut) {
            *last &= 0xff << unused;
        }
        Bits(bytes.into())
    }

    /// The value with this form in rows; `None` if none has it.
    pub fn of_stored(bytes: &[u8]) -> Option<Bits> {
        let (unused, rest) = bytes.split_first()?;
        let spare = match (unused, rest.last()) {
            (0, None) => 0,
            (1..=7, None) | (8.., _) => return None,
            (unused, Some(last)) => last & !(0xff << unused),
        };
        (spare == 0).then(|| Bits(bytes.into()))
    }

    /// The first `count` bits of these bytes, if there are exactly as many bytes as they need.
    pub fn of_bytes(bytes: &[u8], count: usize) -> Option<Bits> {
        (bytes.len() == count.div_ceil(8)).then(|| Bits::of([&[0], bytes].concat(), count))
    }

    /// The form in rows.
    pub fn stored(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of its bits.
    pub fn bytes(&self) -> &[u8] {
        &self.0[1..]
    }

    /// The number of its bits.
    pub fn count(&self) -> usize {
        self.bytes().len() * 8 - usize::from(self.0[0])
    }

    /// Whether a bit is 1. There is one at this place.
    pub fn get(&self, at: usize) -> bool {
        self.bytes()[at / 8] >> (7 - at % 8) & 1 == 1
    }

    /// The same with another bit at a place, where there is one.
    #[must_use]
    pub fn with(&self, at: usize, bit: bool) -> Bits {
        let mut bytes = self.0.clone();
        let mask = 1 << (7 - at % 8);
        let byte = &mut bytes[1 + at / 8];
        *byte = if bit { *byte | mask } else { *byte & !mask };
        Bits(bytes)
    }

    /// The bits from a place on, up to so many of them.
    #[must_use]
    pub fn part(&self, begin: usize, count: usize) -> Bits {
        let begin = begin.min(self.count());
        let count = count.min(self.count() - begin);
        let (own, moved) = (&self.bytes()[begin / 8..], begin % 8);
        let mut bytes = vec![0; 1 + count.div_ceil(8)];
        for (at, byte) in bytes[1..].iter_mut().enumerate() {
            let next = own.get(at + 1).copied().unwrap_or(0);
            *byte = (u16::from_be_bytes([own[at], next]) << moved >> 8) as u8;
        }
        Bits::of(bytes, count)
    }

    /// The bits of both, one after the other.
    #[must_use]
    pub fn and_then(&self, other: &Bits) -> Bits {
        let (own, count) = (self.count(), self.count() + other.count());
        let mut bytes = vec![0; 1 + count.div_ceil(8)];
        bytes[1..=self.bytes().len()].copy_from_slice(self.bytes());
        for (at, byte) in other.bytes().iter().enumerate() {
            let [high, low] = (u16::from(*byte) << 8 >> (own % 8)).to_be_bytes();
            bytes[1 + own / 8 + at] |= high;
            if let Some(next) = bytes.get_mut(2 + own / 8 + at) {
                *next |= low;
            }
        }
        Bits::of(bytes, count)
    }

    /// So many bits: the first ones, and 0 behind them.
    #[must_use]
    pub fn resized(&self, count: usize) -> Bits {
        self.part(0, count).and_then(&Bits::zeros(count.saturating_sub(self.count())))
    }

    /// The bits that go to the left, or to the right if the number is negative; others are 0.
    #[must_use]
    pub fn shifted(&self, by: i64) -> Bits {
        let count = self.count();
        let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(count);
        match by >= 0 {
            true => self.part(distance, count).and_then(&Bits::zeros(distance)),
            false => Bits::zeros(distance).and_then(&self.part(0, count - distance)),
        }
    }

    /// What a function makes of the bytes of both, which have equally many bits; else `None`.
    pub fn combined(&self, other: &Bits, of: fn(u8, u8) -> u8) -> Option<Bits> {
        let pairs = self.bytes().iter().zip(other.bytes()).map(|(own, other)| of(*own, *other));
        let bytes = [0].into_iter().chain(pairs).collect();
        (self.count() == other.count()).then(|| Bits::of(bytes, self.count()))
    }

    /// Each bit turned.
    #[must_use]
    pub fn inverted(&self) -> Bits {
        let bytes = self.0.iter().map(|byte| !byte).collect();
        Bits::of(bytes, self.count())
    }

    /// The number of bits that are 1.
    pub fn ones(&self) -> u64 {
        self.bytes().iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The place of the first bits that are these, from 0.
    pub fn position(&self, part: &Bits) -> Option<usize> {
        let last = self.count().checked_sub(part.count())?;
        (0..=last).find(|at| self.part(*at, part.count()) == *part)
    }

    /// The last `count` bits of a number, whose sign is in those before it.
    pub fn of_number(number: i64, count: usize) -> Bits {
        let sign = if number < 0 { 0xff } else { 0 };
        let mut bytes = vec![sign; 1 + count.div_ceil(8) + 8];
        let last = bytes.len() - 8;
        bytes[last..].copy_from_slice(&number.to_be_bytes());
        let all = (bytes.len() - 1) * 8;
        Bits::of(bytes, all).part(all - count, count)
    }

    /// The number that up to 64 bits are, without a sign.
    pub fn number(&self) -> Option<u64> {
        let bits = (self.count() <= 64).then(|| 0..self.count())?;
        Some(bits.fold(0, |number, at| number << 1 | u64::from(self.get(at))))
    }

    /// The value of a text of digits, hexadecimal ones behind an `x`.
    pub fn parse(text: &str) -> Result<Bits> {
        let (digits, width) = match text.as_bytes().first() {
            Some(b'x' | b'X') => (&text[1..], 4),
            Some(b'b' | b'B') => (&text[1..], 1),
            _ => (text, 1),
        };
        let count = digits.chars().count() * width;
        if count > BITS_MAX {
            let message = format!("bit string length exceeds the maximum allowed ({BITS_MAX})");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        let mut bytes = vec![0; 1 + count.div_ceil(8)];
        for (at, digit) in digits.chars().enumerate() {
            let value = digit.to_digit(1 << width).ok_or_else(|| no_digit(digit, width))?;
            let first = at * width;
            bytes[1 + first / 8] |= (value as u8) << (8 - width - first % 8);
        }
        Ok(Bits::of(bytes, count))
    }

    /// The order of PostgreSQL: that of the bytes, and of equal ones that of the number of bits.
    pub fn compare(&self, other: &Bits) -> Ordering {
        self.bytes().cmp(other.bytes()).then(self.count().cmp(&other.count()))
    }
}

fn no_digit(digit: char, width: usize) -> Error {
    let form = if width == 4 { "hexadecimal" } else { "binary" };
    let message = format!("\"{digit}\" is not a valid {form} digit");
    Error::new(SqlState::INVALID_TEXT, message)
}

impl PartialEq for Bits {
    fn eq(&self, other: &Bits) -> bool {
        self.0 == other.0
    }
}

impl Eq for Bits {}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |at| if self.get(at) { '1' } else { '0' };
        f.write_str(&(0..self.count()).map(digit).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Bits {
        Bits::parse(text).unwrap()
    }

    #[test]
    fn parts_and_both_together_are_those_of_their_digits() {
        let all = "10110011100011110000101";
        for count in 0..all.len() {
            let own = bits(&all[..count]);
            assert_eq!((own.count(), own.to_string()), (count, all[..count].to_owned()));
            assert_eq!(Bits::of_stored(own.stored()), Some(own.clone()));
            for begin in 0..=count {
                let part = own.part(begin, count);
                assert_eq!(part.to_string(), all[begin..count]);
                assert_eq!(own.part(0, begin).and_then(&part), own, "{begin} {count}");
                assert_eq!(own.shifted(begin as i64).part(0, count - begin), part);
                assert_eq!(
                    own.shifted(-(begin as i64)).part(begin, count),
                    own.part(0, count - begin)
                );
                let found = own.position(&part);
                assert!(found.is_some_and(|at| at <= begin));
            }
        }
    }

    #[test]
    fn what_is_no_form_of_a_value_is_refused() {
        for bytes in [&[][..], &[1], &[8, 0], &[1, 1], &[7, 0x40]] {
            assert_eq!(Bits::of_stored(bytes), None, "{bytes:?}");
        }
        assert_eq!(bits("x1F"), bits("b00011111"));
        assert!(Bits::parse("12").is_err() && Bits::parse("xg").is_err());
    }

    #[test]
    fn numbers_have_their_sign_in_all_bits_before_them() {
        for (number, count, expected) in [
            (44, 10, "0000101100"),
            (-44, 12, "111111010100"),
            (5, 2, "01"),
            (-1, 70, &"1".repeat(70)),
        ] {
            assert_eq!(Bits::of_number(number, count).to_string(), expected);
        }
        assert_eq!(bits("x8000000000000000").number(), Some(1 << 63));
        assert_eq!(bits("").number(), Some(0));
        assert_eq!(Bits::zeros(65).number(), None);
    }

    #[test]
    fn the_order_is_that_of_bytes_then_of_lengths() {
        let sorted = ["", "0", "00", "000000001", "01", "1", "10", "100000000", "11"];
        for pair in sorted.windows(2) {
            assert!(bits(pair[0]).compare(&bits(pair[1])).is_lt(), "{pair:?}");
        }
    }
}
