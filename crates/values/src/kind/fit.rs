//! Makes a value fit the length, precision or scale of its type.

use crate::{Bits, Datum, Error, Modifier, Result, SqlState, Type};

/// How strict the length of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// INSERT and UPDATE: text that is too long is refused, but for blanks at its end.
    Assignment,
    /// `CAST`: text that is too long is cut.
    Explicit,
}

/// The value as a column of the type with this modifier holds it.
pub fn fit(datum: Datum, ty: Type, modifier: Modifier, strictness: Strictness) -> Result<Datum> {
    match datum {
        Datum::Text(text) if ty.is_text() => match modifier.length() {
            Some(length) => fit_text(text, ty, length, strictness).map(Datum::Text),
            None => Ok(Datum::Text(text)),
        },
        Datum::Char(text) => match modifier.length() {
            Some(length) => fit_text(text, Type::Char, length, strictness).map(Datum::Char),
            None => Ok(Datum::Char(text)),
        },
        Datum::Numeric(number) => match modifier.precision_and_scale() {
            Some((precision, scale)) => number.fit(precision, scale).map(Datum::Numeric),
            None => Ok(Datum::Numeric(number)),
        },
        Datum::Timestamp(at) => match modifier.second_digits() {
            Some(digits) => at.round(digits).map(Datum::Timestamp),
            None => Ok(Datum::Timestamp(at)),
        },
        Datum::Timestamptz(at) => match modifier.second_digits() {
            Some(digits) => at.round(digits).map(Datum::Timestamptz),
            None => Ok(Datum::Timestamptz(at)),
        },
        Datum::Time(time) => match modifier.second_digits() {
            Some(digits) => Ok(Datum::Time(time.round(digits))),
            None => Ok(Datum::Time(time)),
        },
        Datum::Interval(interval) => {
            let interval = interval.cut(modifier.interval_fields());
            let digits = modifier.second_digits().unwrap_or(u32::MAX);
            interval.round(digits).map(Datum::Interval)
        }
        Datum::Bits(bits) => match modifier.bits() {
            Some(count) => fit_bits(bits, ty, count, strictness).map(Datum::Bits),
            None => Ok(Datum::Bits(bits)),
        },
        Datum::Array(array) if modifier != Modifier::NONE => {
            let element = array.element();
            let fitted = array.items().iter().map(|item| {
                let base = ty.element().unwrap_or(element);
                fit(item.clone(), base, modifier, strictness)
            });
            let items = fitted.collect::<Result<Vec<_>>>()?;
            let dimensions = array.dimensions().to_vec();
            Ok(Datum::Array(Box::new(crate::Array::with_dimensions(element, dimensions, items)?)))
        }
        other => Ok(other),
    }
}

fn fit_text(text: Box<str>, ty: Type, length: usize, strictness: Strictness) -> Result<Box<str>> {
    let count = text.chars().count();
    if count < length && ty == Type::Char {
        let bytes = text.len() + length - count;
        let mut padded = Vec::with_capacity(bytes);
        padded.extend_from_slice(text.as_bytes());
        padded.resize(bytes, b' ');
        return Ok(String::from_utf8(padded).expect("text and blanks are text").into());
    }
    if count <= length {
        return Ok(text);
    }
    let end = text.char_indices().nth(length).map_or(text.len(), |(at, _)| at);
    let only_blanks = text[end..].bytes().all(|byte| byte == b' ');
    if strictness == Strictness::Explicit || only_blanks {
        return Ok(text[..end].into());
    }
    Err(Error::new(
        SqlState::STRING_TOO_LONG,
        format!("value too long for type {}({length})", ty.name()),
    ))
}

/// A `bit` has its number of bits: CAST cuts it, or puts zeros behind it.
fn fit_bits(bits: Bits, ty: Type, count: usize, strictness: Strictness) -> Result<Bits> {
    let own = bits.count();
    let is_exact = ty == Type::Bit;
    if own == count || (!is_exact && own < count) {
        return Ok(bits);
    }
    if strictness == Strictness::Explicit {
        return Ok(bits.resized(count));
    }
    if is_exact {
        let message = format!("bit string length {own} does not match type bit({count})");
        return Err(Error::new(SqlState::LENGTH_MISMATCH, message));
    }
    let message = format!("bit string too long for type bit varying({count})");
    Err(Error::new(SqlState::STRING_TOO_LONG, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_only_where_postgresql_cuts_it() {
        let check = |text: &str, ty, strictness, expected: Option<&str>| {
            let modifier = Modifier::of(ty, &[3]).unwrap();
            let found = fit(Datum::text(text), ty, modifier, strictness);
            match expected {
                Some(expected) => assert_eq!(found.unwrap(), Datum::text(expected)),
                None => assert_eq!(found.unwrap_err().state(), SqlState::STRING_TOO_LONG),
            }
        };
        check("abcd", Type::Varchar, Strictness::Assignment, None);
        check("abc  ", Type::Varchar, Strictness::Assignment, Some("abc"));
        check("abcd", Type::Varchar, Strictness::Explicit, Some("abc"));
        check(
            "\u{e9}\u{e9}\u{e9}",
            Type::Varchar,
            Strictness::Assignment,
            Some("\u{e9}\u{e9}\u{e9}"),
        );
        let fitted = |text: &str, strictness| {
            let modifier = Modifier::of(Type::Char, &[3]).unwrap();
            fit(Datum::Char(text.into()), Type::Char, modifier, strictness)
        };
        let shown = |text: &str, strictness| match fitted(text, strictness).unwrap() {
            Datum::Char(text) => text.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown("a", Strictness::Assignment), "a  ");
        assert_eq!(shown("abc  ", Strictness::Assignment), "abc");
        assert_eq!(shown("abcd", Strictness::Explicit), "abc");
        let refused = fitted("abcd", Strictness::Assignment).unwrap_err();
        assert_eq!(refused.state(), SqlState::STRING_TOO_LONG);
    }
}
