//! Text. Lengths and positions are in characters; `lower` and `upper` change ASCII only, as
//! PostgreSQL's collation `C` does.

use super::rows::Rows;
use crate::ir::Function;
use values::{Datum, Error, Result, SqlState, Zone, text};

/// The longest text that a function makes.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 20;

fn integer(count: usize) -> Datum {
    Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX))
}

/// The result, if the function is one of text and takes these types.
pub(super) fn call(function: Function, arguments: &[Datum]) -> Option<Result<Datum>> {
    let result = match (function, arguments) {
        (Function::Length, [Datum::Text(text)]) => integer(text.chars().count()),
        (Function::Length | Function::OctetLength, [Datum::Bytea(bytes)]) => integer(bytes.len()),
        (Function::OctetLength, [Datum::Text(text) | Datum::Char(text)]) => integer(text.len()),
        (Function::Lower, [Datum::Text(text)]) => Datum::text(text.to_ascii_lowercase()),
        (Function::Upper, [Datum::Text(text)]) => Datum::text(text.to_ascii_uppercase()),
        (Function::Reverse, [Datum::Text(text)]) => {
            Datum::text(text.chars().rev().collect::<String>())
        }
        (Function::Concat, [Datum::Text(left), Datum::Text(right)]) => {
            // Of the exact length: a text that grows takes up to twice that.
            let both = || Datum::text([&**left, &**right].concat());
            return Some(bounded(left.len() + right.len()).map(|()| both()));
        }
        (Function::Concat, [Datum::Bytea(left), Datum::Bytea(right)]) => {
            Datum::Bytea([&left[..], right].concat().into())
        }
        (Function::Trim, [Datum::Text(text), Datum::Text(set)]) => {
            Datum::text(text.trim_matches(|c: char| set.contains(c)))
        }
        (Function::TrimLeft, [Datum::Text(text), Datum::Text(set)]) => {
            Datum::text(text.trim_start_matches(|c: char| set.contains(c)))
        }
        (Function::TrimRight, [Datum::Text(text) | Datum::Char(text), Datum::Text(set)]) => {
            Datum::text(text.trim_end_matches(|c: char| set.contains(c)))
        }
        (Function::Position, [Datum::Text(text), Datum::Text(part)]) => {
            let found = text.find(&**part);
            integer(found.map_or(0, |at| text[..at].chars().count() + 1))
        }
        (Function::Replace, [Datum::Text(text), Datum::Text(from), Datum::Text(to)]) => {
            return Some(replace(text, from, to));
        }
        (Function::Substring, [Datum::Text(text), Datum::Int4(from), rest @ ..]) => {
            return Some(substring(text, *from, rest));
        }
        (Function::Left, [Datum::Text(text), Datum::Int4(count)]) => {
            Datum::text(text.chars().take(counted(text, *count)).collect::<String>())
        }
        (Function::Right, [Datum::Text(text), Datum::Int4(count)]) => {
            // The smallest number has no opposite: PostgreSQL takes nothing away.
            let count = if *count == i32::MIN { i32::MAX } else { *count };
            let kept = counted(text, count);
            let skipped = text.chars().count().saturating_sub(kept);
            Datum::text(text.chars().skip(skipped).collect::<String>())
        }
        (Function::Repeat, [Datum::Text(text), Datum::Int4(count)]) => {
            let count = usize::try_from(*count).unwrap_or(0);
            let length = text.len().saturating_mul(count);
            return Some(bounded(length).map(|()| Datum::text(text.repeat(count))));
        }
        (Function::EscapedPattern, [Datum::Text(pattern), Datum::Text(escape)]) => {
            return Some(escaped(pattern, escape));
        }
        _ => return None,
    };
    Some(Ok(result))
}

pub(super) fn bounded(bytes: usize) -> Result<()> {
    if bytes > TEXT_BYTES_MAX {
        let message =
            format!("text would have {bytes} bytes, at most {TEXT_BYTES_MAX} are allowed");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    Ok(())
}

fn replace(text: &str, from: &str, to: &str) -> Result<Datum> {
    if from.is_empty() {
        return Ok(Datum::text(text));
    }
    let grown = text.matches(from).count().saturating_mul(to.len());
    bounded(text.len() + grown)?;
    let replaced = text.replace(from, to);
    assert!(replaced.len() <= TEXT_BYTES_MAX, "no function makes longer text");
    Ok(Datum::text(replaced))
}

/// The count of characters that `left` and `right` keep: below zero all but so many.
fn counted(text: &str, count: i32) -> usize {
    match usize::try_from(count) {
        Ok(count) => count,
        Err(_) => text.chars().count().saturating_sub(count.unsigned_abs() as usize),
    }
}

pub(super) fn substring(text: &str, from: i32, rest: &[Datum]) -> Result<Datum> {
    let from = i64::from(from);
    let end = match rest {
        [Datum::Int4(length)] if *length < 0 => {
            let message = "negative substring length not allowed";
            return Err(Error::new(SqlState::SUBSTRING_ERROR, message));
        }
        [Datum::Int4(length)] => from + i64::from(*length),
        _ => i64::MAX,
    };
    let begin = from.max(1);
    let count = usize::try_from(end - begin).unwrap_or(0);
    let skipped = usize::try_from(begin - 1).unwrap_or(0);
    Ok(Datum::text(text.chars().skip(skipped).take(count).collect::<String>()))
}

/// The pattern with a backslash as its escape.
fn escaped(pattern: &str, escape: &str) -> Result<Datum> {
    let mut chars = escape.chars();
    let own = chars.next();
    if chars.next().is_some() {
        let message = "invalid escape string";
        let hint = "Escape string must be empty or one character.";
        return Err(Error::new(SqlState::INVALID_ESCAPE, message).with_hint(hint));
    }
    if own == Some('\\') {
        return Ok(Datum::text(pattern));
    }
    bounded(2 * pattern.len())?;
    let mut made = String::with_capacity(pattern.len());
    let mut is_escaped = false;
    for c in pattern.chars() {
        let is_escape = !is_escaped && Some(c) == own;
        if is_escape || !is_escaped && c == '\\' {
            made.push('\\');
        }
        if !is_escape {
            made.push(c);
        }
        is_escaped = is_escape;
    }
    Ok(Datum::text(made))
}

/// `concat`: NULLs are left out.
pub(super) fn concat_all(arguments: &[Datum]) -> Datum {
    let zone = Zone::utc();
    Datum::text(arguments.iter().map(|value| text::print(value, &zone)).collect::<String>())
}

/// LIKE and ILIKE, of texts.
pub(super) fn matches(
    function: Function,
    text: &Datum,
    pattern: &Datum,
    rows: &mut dyn Rows,
) -> Option<Result<Datum>> {
    let (Datum::Text(text) | Datum::Char(text), Datum::Text(pattern)) = (text, pattern) else {
        return None;
    };
    let found = if function == Function::ILike {
        like(&text.to_ascii_lowercase(), &pattern.to_ascii_lowercase(), rows)
    } else {
        like(text, pattern, rows)
    };
    Some(found.map(Datum::Bool))
}

/// The characters that LIKE compares in a step.
const STEP_CHARS: usize = 256;

/// One part of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Char(char),
    One,
    Many,
}

/// LIKE, in time of text times pattern at worst: it goes back to the last `%` only. What it
/// compares is counted in `rows`.
fn like(text: &str, pattern: &str, rows: &mut dyn Rows) -> Result<bool> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '%' => Part::Many,
            '_' => Part::One,
            '\\' => Part::Char(chars.next().ok_or_else(|| {
                let message = "LIKE pattern must not end with escape character";
                Error::new(SqlState::INVALID_ESCAPE, message)
            })?),
            c => Part::Char(c),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut part, mut last_many) = (0, 0, None);
    let mut compared = 0_usize;
    while at < text.len() {
        compared += 1;
        if compared.is_multiple_of(STEP_CHARS) {
            rows.steps(1)?;
        }
        match parts.get(part) {
            Some(Part::Many) => {
                last_many = Some((part, at));
                part += 1;
            }
            Some(Part::One) => (at, part) = (at + 1, part + 1),
            Some(Part::Char(c)) if *c == text[at] => (at, part) = (at + 1, part + 1),
            _ => match last_many {
                Some((many, begin)) => {
                    last_many = Some((many, begin + 1));
                    (at, part) = (begin + 1, many + 1);
                }
                None => return Ok(false),
            },
        }
    }
    Ok(parts[part..].iter().all(|part| *part == Part::Many))
}

#[cfg(test)]
mod tests {
    use super::super::rows::Memory;
    use super::*;

    #[test]
    fn patterns_match_as_in_postgresql() {
        let like = |text: &str, pattern: &str| like(text, pattern, &mut Memory::new(100_000));
        let check = |text: &str, pattern: &str, expected| {
            assert_eq!(like(text, pattern).unwrap(), expected, "{text} LIKE {pattern}");
        };
        check("abc", "abc", true);
        check("abc", "a%", true);
        check("abc", "_b_", true);
        check("abc", "c", false);
        check("", "%", true);
        check("", "_", false);
        check("aXbXc", "a%b%c", true);
        check("a%", "a\\%", true);
        check("ab", "a\\%", false);
        check("abab", "%ab", true);
        check("\u{e9}", "_", true);
        assert_eq!(like("a", "a\\").unwrap_err().state(), SqlState::INVALID_ESCAPE);
        check(&"a".repeat(20_000), &"%a".repeat(50), true);
    }
}
