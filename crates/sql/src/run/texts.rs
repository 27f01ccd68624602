//! More functions of text. Lengths and positions are in characters, letters are those of ASCII.

use super::strings::{bounded, substring};
use crate::ir::Function;
use std::collections::BTreeMap;
use values::{Datum, Error, Result, SqlState, Zone, text};

/// `concat_ws`: NULLs are left out, but for one between.
pub(super) fn concat_separated(arguments: &[Datum], zone: &Zone) -> Result<Datum> {
    let [Datum::Text(between), items @ ..] = arguments else { return Ok(Datum::Null) };
    let items = items.iter().filter(|item| !item.is_null());
    let items: Vec<String> = items.map(|item| text::print(item, zone)).collect();
    let own: usize = items.iter().map(String::len).sum();
    bounded(own.saturating_add(items.len().saturating_mul(between.len())))?;
    Ok(Datum::text(items.join(between)))
}

/// The result, if the function is one of these and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    Some(match (function, arguments) {
        (Function::SplitPart, [Datum::Text(text), Datum::Text(between), Datum::Int4(at)]) => {
            part(text, between, *at)
        }
        (Function::PadLeft, [Datum::Text(text), Datum::Int4(length), Datum::Text(fill)]) => {
            padded(text, *length, fill).map(|(fill, text)| Datum::text(fill + &text))
        }
        (Function::PadRight, [Datum::Text(text), Datum::Int4(length), Datum::Text(fill)]) => {
            padded(text, *length, fill).map(|(fill, text)| Datum::text(text + &fill))
        }
        (Function::InitCap, [Datum::Text(text)]) => Ok(Datum::text(with_capitals(text))),
        (Function::CharOf, [Datum::Int4(code)]) => char_of(*code),
        (Function::CodeOf, [Datum::Text(text)]) => {
            Ok(Datum::Int4(text.chars().next().map_or(0, |c| c as i32)))
        }
        (Function::Translate, [Datum::Text(text), Datum::Text(from), Datum::Text(to)]) => {
            Ok(Datum::text(translated(text, from, to)))
        }
        (
            Function::Overlay,
            [Datum::Text(text), Datum::Text(new), Datum::Int4(from), rest @ ..],
        ) => overlay(text, new, *from, rest),
        (Function::StartsWith, [Datum::Text(text), Datum::Text(begin)]) => {
            Ok(Datum::Bool(text.starts_with(&**begin)))
        }
        (Function::ToHex, [Datum::Int4(value)]) => Ok(Datum::text(format!("{value:x}"))),
        (Function::ToHex, [Datum::Int8(value)]) => Ok(Datum::text(format!("{value:x}"))),
        _ => return None,
    })
}

/// The part with this number, from the end if it is below zero.
fn part(text: &str, between: &str, at: i32) -> Result<Datum> {
    if at == 0 {
        let message = "field position must not be zero";
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    let place = at.unsigned_abs() as usize - 1;
    let found = match (between.is_empty(), at > 0) {
        (true, _) => (place == 0).then_some(text),
        (false, true) => text.split(between).nth(place),
        // Parts are counted from the begin, however they overlap.
        (false, false) => {
            let parts: Vec<&str> = text.split(between).collect();
            parts.len().checked_sub(place + 1).map(|at| parts[at])
        }
    };
    Ok(Datum::text(found.unwrap_or_default()))
}

/// What is filled in, and the text, which is cut to the length.
fn padded(text: &str, length: i32, fill: &str) -> Result<(String, String)> {
    let length = usize::try_from(length).unwrap_or(0);
    let missing = length.saturating_sub(text.chars().count());
    let filled = if fill.is_empty() { 0 } else { missing };
    let widest = fill.chars().map(char::len_utf8).max().unwrap_or(0);
    bounded(text.len().saturating_add(filled.saturating_mul(widest)))?;
    let fill = fill.chars().cycle().take(filled).collect();
    Ok((fill, text.chars().take(length).collect()))
}

/// The first letter of each word large, the others small.
fn with_capitals(text: &str) -> String {
    let mut is_within = false;
    let letter = |c: char| {
        let shown = if is_within { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        is_within = c.is_ascii_alphanumeric();
        shown
    };
    text.chars().map(letter).collect()
}

fn char_of(code: i32) -> Result<Datum> {
    let refused = |message: &str| Err(Error::new(SqlState::LIMIT_EXCEEDED, message.to_owned()));
    match u32::try_from(code).ok().map(char::from_u32) {
        None => {
            let message = "character number must be positive";
            Err(Error::new(SqlState::INVALID_PARAMETER, message))
        }
        Some(Some('\0')) => refused("null character not permitted"),
        Some(Some(c)) => Ok(Datum::text(c.to_string())),
        Some(None) => refused("requested character not valid for encoding: UTF8"),
    }
}

/// Each character of `from` becomes that of `to` at its place, or goes.
fn translated(text: &str, from: &str, to: &str) -> String {
    let mut to = to.chars();
    let mut changes = BTreeMap::new();
    for c in from.chars() {
        let new = to.next();
        // The first of equal ones counts.
        changes.entry(c).or_insert(new);
    }
    let one = |c: char| changes.get(&c).copied().unwrap_or(Some(c));
    text.chars().filter_map(one).collect()
}

/// The text with another one in the place of some of its characters.
fn overlay(text: &str, new: &str, from: i32, rest: &[Datum]) -> Result<Datum> {
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(Error::new(SqlState::SUBSTRING_ERROR, message));
    }
    let length = match rest {
        [Datum::Int4(length)] => *length,
        _ => i32::try_from(new.chars().count()).unwrap_or(i32::MAX),
    };
    let behind = from
        .checked_add(length)
        .ok_or_else(|| Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))?;
    let before = substring(text, 1, &[Datum::Int4(from - 1)])?;
    let after = substring(text, behind, &[])?;
    match (before, after) {
        (Datum::Text(before), Datum::Text(after)) => {
            bounded(before.len() + new.len() + after.len())?;
            Ok(Datum::text(format!("{before}{new}{after}")))
        }
        _ => unreachable!("a part of a text is a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_pads_are_postgresqls() {
        let check = |result: Result<Datum>, expected: &str| {
            assert_eq!(result.unwrap(), Datum::text(expected));
        };
        check(part("a,b,c", ",", 2), "b");
        check(part("a,b,c", ",", -1), "c");
        check(part("a,b,c", ",", 4), "");
        check(part("a,b", "", 1), "a,b");
        assert_eq!(part("a", ",", 0).unwrap_err().state(), SqlState::INVALID_PARAMETER);
        let pad = |text, length, fill| padded(text, length, fill).unwrap();
        assert_eq!(pad("7", 3, "0"), ("00".to_owned(), "7".to_owned()));
        assert_eq!(pad("abcd", 2, "x"), (String::new(), "ab".to_owned()));
        assert_eq!(pad("a", 4, "xy"), ("xyx".to_owned(), "a".to_owned()));
        assert_eq!(pad("a", -1, "x"), (String::new(), String::new()));
        assert_eq!(padded("a", i32::MAX, "x").unwrap_err().state(), SqlState::LIMIT_EXCEEDED);
        assert!(padded("a", 4_200_000, "x").is_ok());
        assert!(padded("a", 4_200_000, "x\u{1f600}").is_err());
        assert_eq!(with_capitals("hELLO wORLD-2x"), "Hello World-2x");
        assert_eq!(translated("abcd", "bcd", "xy"), "axy");
        check(overlay("abcdef", "ZZ", 2, &[Datum::Int4(3)]), "aZZef");
        check(overlay("abc", "Z", 9, &[]), "abcZ");
        check(char_of(8364), "\u{20ac}");
        assert!(char_of(0).is_err() && char_of(-1).is_err() && char_of(0xd800).is_err());
    }
}
