//! The fields of a line; `None` is NULL.

use super::form::Form;
use std::borrow::Cow;
use values::{Error, Result, SqlState};

/// A field; most are as they stand in the line.
pub(super) type Field<'l> = Option<Cow<'l, str>>;

pub(super) fn text_fields<'l>(
    line: &'l str,
    form: &Form,
    fields: &mut Vec<Field<'l>>,
) -> Result<()> {
    // The delimiter is ASCII, and so is a backslash: no part of another character.
    let bytes = line.as_bytes();
    let is_special = |byte: &u8| *byte == form.delimiter || *byte == b'\\';
    let (mut begin, mut at, mut has_escapes) = (0, 0, false);
    while at <= bytes.len() {
        at += bytes[at..].iter().position(is_special).unwrap_or(bytes.len() - at);
        if bytes.get(at) == Some(&b'\\') {
            has_escapes = true;
            at += 2;
            continue;
        }
        let raw = &line[begin..at];
        fields.push(match raw == form.null {
            true => None,
            false if has_escapes => Some(unescaped(raw)?.into()),
            false => Some(raw.into()),
        });
        at += 1;
        begin = at;
        has_escapes = false;
    }
    if begin <= bytes.len() {
        // A backslash is the last byte: it stands for itself.
        fields.push(Some(unescaped(&line[begin..])?.into()));
    }
    Ok(())
}

/// The text of a field in which backslashes stand before other characters.
fn unescaped(raw: &str) -> Result<String> {
    let bytes = raw.as_bytes();
    let (mut text, mut at) = (Vec::with_capacity(bytes.len()), 0);
    let digit = |at: usize, radix: u32| {
        bytes.get(at).and_then(|byte| char::from(*byte).to_digit(radix)).map(|digit| digit as u8)
    };
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            text.push(bytes[at]);
            at += 1;
            continue;
        }
        let Some(byte) = bytes.get(at + 1) else {
            text.push(b'\\');
            break;
        };
        at += 2;
        let (radix, digits_max, mut place) = match byte {
            b'0'..=b'7' => (8, 3, at - 1),
            b'x' if digit(at, 16).is_some() => (16, 2, at),
            _ => {
                text.push(match byte {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    other => *other,
                });
                continue;
            }
        };
        let (mut value, end) = (0_u8, place + digits_max);
        while place < end
            && let Some(digit) = digit(place, radix)
        {
            value = value.wrapping_mul(radix as u8).wrapping_add(digit);
            place += 1;
        }
        text.push(value);
        at = place;
    }
    let text = String::from_utf8(text).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        let message = "invalid byte sequence for encoding \"UTF8\"";
        Error::new(SqlState::INVALID_ENCODING, message)
    })
}

pub(super) fn csv_fields(line: &str, form: &Form, fields: &mut Vec<Field<'_>>) -> Result<()> {
    let mut bytes = line.bytes().peekable();
    let flag = |flags: &[bool], at: usize| flags.get(at).copied().unwrap_or(false);
    loop {
        let (mut text, mut in_quotes, mut has_quotes) = (Vec::new(), false, false);
        let ended = loop {
            let Some(byte) = bytes.next() else { break true };
            if !in_quotes && byte == form.delimiter {
                break false;
            }
            let escaped = in_quotes && byte == form.escape;
            let is_pair = |next: &u8| *next == form.quote || *next == form.escape;
            if escaped && let Some(next) = bytes.next_if(is_pair) {
                text.push(next);
            } else if byte == form.quote {
                in_quotes = !in_quotes;
                has_quotes = true;
            } else {
                text.push(byte);
            }
        };
        let text = String::from_utf8(text)
            .map_err(|_| Error::new(SqlState::INVALID_ENCODING, "quotes cut a character in two"))?;
        let at = fields.len();
        let may_be_null =
            if has_quotes { flag(&form.force_null, at) } else { !flag(&form.force_not_null, at) };
        fields.push(if may_be_null && text == form.null { None } else { Some(text.into()) });
        if ended {
            return Ok(());
        }
    }
}
