//! Functions of bytes: digests, encodings and parts.

use super::strings::bounded;
use crate::ir::ByteFunction;
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use values::{Datum, Error, Result, SqlState};

/// The characters of a line of base64.
const LINE_CHARS: usize = 76;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The result; `None` if the function does not take these types.
pub(super) fn call(function: ByteFunction, arguments: &[Datum]) -> Option<Result<Datum>> {
    use ByteFunction as B;
    let digest = |bytes: &[u8]| Ok(Datum::Bytea(bytes.into()));
    Some(match (function, arguments) {
        (B::Md5, [Datum::Bytea(bytes)]) => Ok(Datum::text(hex(&Md5::digest(bytes)))),
        (B::Md5, [Datum::Text(text)]) => Ok(Datum::text(hex(&Md5::digest(text.as_bytes())))),
        (B::Sha224, [Datum::Bytea(bytes)]) => digest(&Sha224::digest(bytes)),
        (B::Sha256, [Datum::Bytea(bytes)]) => digest(&Sha256::digest(bytes)),
        (B::Sha384, [Datum::Bytea(bytes)]) => digest(&Sha384::digest(bytes)),
        (B::Sha512, [Datum::Bytea(bytes)]) => digest(&Sha512::digest(bytes)),
        (B::Encode, [Datum::Bytea(bytes), Datum::Text(form)]) => {
            encoded(bytes, form).map(Datum::text)
        }
        (B::Decode, [Datum::Text(text), Datum::Text(form)]) => {
            decoded(text, form).map(|bytes| Datum::Bytea(bytes.into()))
        }
        (B::ConvertFrom, [Datum::Bytea(bytes), Datum::Text(encoding)]) => {
            text_of(bytes, encoding).map(Datum::text)
        }
        (B::ConvertTo, [Datum::Text(text), Datum::Text(encoding)]) => {
            bytes_of(text, encoding).map(|bytes| Datum::Bytea(bytes.into()))
        }
        (B::GetByte, [Datum::Bytea(bytes), Datum::Int4(at)]) => {
            place(i64::from(*at), bytes.len()).map(|at| Datum::Int4(i32::from(bytes[at])))
        }
        (B::SetByte, [Datum::Bytea(bytes), Datum::Int4(at), Datum::Int4(value)]) => {
            place(i64::from(*at), bytes.len()).map(|at| {
                let mut bytes = bytes.clone();
                bytes[at] = *value as u8;
                Datum::Bytea(bytes)
            })
        }
        (B::GetBit, [Datum::Bytea(bytes), Datum::Int8(at)]) => place(*at, bytes.len() * 8)
            .map(|at| Datum::Int4(i32::from(bytes[at / 8] >> (at % 8) & 1))),
        (B::SetBit, [Datum::Bytea(bytes), Datum::Int8(at), Datum::Int4(value)]) => {
            with_bit(bytes, *at, *value)
        }
        (B::BitCount, [Datum::Bytea(bytes)]) => {
            let ones = bytes.iter().map(|byte| i64::from(byte.count_ones()));
            Ok(Datum::Int8(ones.sum()))
        }
        (B::Trim | B::TrimLeft | B::TrimRight, [Datum::Bytea(bytes), Datum::Bytea(set)]) => {
            Ok(Datum::Bytea(trimmed(bytes, set, function).into()))
        }
        (B::Position, [Datum::Bytea(bytes), Datum::Bytea(part)]) => {
            let found = match part.is_empty() {
                true => Some(0),
                false => bytes.windows(part.len()).position(|own| *own == **part),
            };
            Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
        }
        (B::Substring, [Datum::Bytea(bytes), Datum::Int4(from), rest @ ..]) => {
            part(bytes, *from, rest).map(|part| Datum::Bytea(part.into()))
        }
        (B::Overlay, [Datum::Bytea(bytes), Datum::Bytea(new), Datum::Int4(from), rest @ ..]) => {
            overlay(bytes, new, *from, rest)
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message.into())
}

fn unknown_form(form: &str) -> Error {
    invalid(format!("unrecognized encoding: \"{form}\""))
}

fn encoded(bytes: &[u8], form: &str) -> Result<String> {
    bounded(bytes.len().saturating_mul(4))?;
    match form.to_ascii_lowercase().as_str() {
        "hex" => Ok(hex(bytes)),
        "base64" => Ok(base64(bytes)),
        "escape" => Ok(escaped(bytes)),
        _ => Err(unknown_form(form)),
    }
}

fn decoded(text: &str, form: &str) -> Result<Vec<u8>> {
    match form.to_ascii_lowercase().as_str() {
        "hex" => from_hex(text),
        "base64" => from_base64(text),
        "escape" => from_escaped(text),
        _ => Err(unknown_form(form)),
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 3 / 2);
    for (at, group) in bytes.chunks(3).enumerate() {
        if at > 0 && at % (LINE_CHARS / 4) == 0 {
            text.push('\n');
        }
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = BASE64[(bits >> (18 - 6 * digit) & 63) as usize];
            text.push(if digit <= group.len() { char::from(value) } else { '=' });
        }
    }
    text
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let mut digits = text.chars().filter(|c| !is_blank(*c));
    let value = |c: char| {
        let digit = c.to_digit(16);
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{c}\"")))
    };
    let mut bytes = Vec::with_capacity(text.len() / 2);
    while let Some(first) = digits.next() {
        let high = value(first)?;
        let Some(second) = digits.next() else {
            return Err(invalid("invalid hexadecimal data: odd number of digits"));
        };
        bytes.push((high << 4 | value(second)?) as u8);
    }
    Ok(bytes)
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut end) = (0_u32, 0, 0);
    for c in text.chars().filter(|c| !is_blank(*c)) {
        let digit = match BASE64.iter().position(|own| char::from(*own) == c) {
            Some(digit) => digit as u32,
            None if c == '=' => {
                if end == 0 {
                    end = match count {
                        2 => 1,
                        3 => 2,
                        _ => {
                            let message = "unexpected \"=\" while decoding base64 sequence";
                            return Err(invalid(message));
                        }
                    };
                }
                0
            }
            None => {
                let message =
                    format!("invalid symbol \"{c}\" found while decoding base64 sequence");
                return Err(invalid(message));
            }
        };
        bits = bits << 6 | digit;
        count += 1;
        if count == 4 {
            let group = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            bytes.extend_from_slice(&group[..if end == 0 { 3 } else { end }]);
            (bits, count) = (0, 0);
        }
    }
    if count != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(invalid("invalid base64 end sequence").with_hint(hint));
    }
    Ok(bytes)
}

/// Bytes with octal escapes of zero, of what is beyond ASCII, and of the backslash.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            byte => text.push(char::from(*byte)),
        }
    }
    text
}

fn from_escaped(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match (first, behind) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(Error::new(SqlState::INVALID_TEXT, message));
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    Ok(bytes)
}

/// An encoding that is converted from and to.
#[derive(PartialEq)]
enum Encoding {
    Utf8,
    Latin1,
}

fn encoding(name: &str, role: &str) -> Result<Encoding> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok(Encoding::Utf8),
        "latin1" | "iso88591" => Ok(Encoding::Latin1),
        _ => Err(invalid(format!("invalid {role} encoding name \"{name}\""))
            .with_hint("UTF8 and LATIN1 are supported.")),
    }
}

fn text_of(bytes: &[u8], name: &str) -> Result<String> {
    let invalid_at = |at: usize, encoding: &str| {
        let shown: Vec<String> = bytes[at..].iter().take(1).map(|b| format!("0x{b:02x}")).collect();
        let shown = shown.join(" ");
        let message = format!("invalid byte sequence for encoding \"{encoding}\": {shown}");
        Error::new(SqlState::INVALID_ENCODING, message)
    };
    let of_latin = encoding(name, "source")? == Encoding::Latin1;
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(invalid_at(at, if of_latin { "LATIN1" } else { "UTF8" }));
    }
    if of_latin {
        bounded(bytes.len().saturating_mul(2))?;
        return Ok(bytes.iter().map(|byte| char::from(*byte)).collect());
    }
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|error| invalid_at(error.valid_up_to(), "UTF8"))
}

fn bytes_of(text: &str, name: &str) -> Result<Vec<u8>> {
    if encoding(name, "destination")? == Encoding::Utf8 {
        return Ok(text.as_bytes().to_vec());
    }
    let byte = |c: char| {
        u8::try_from(u32::from(c)).map_err(|_| {
            let mut room = [0; 4];
            let bytes = c.encode_utf8(&mut room).bytes();
            let shown: Vec<String> = bytes.map(|byte| format!("0x{byte:02x}")).collect();
            let message = format!(
                "character with byte sequence {} in encoding \"UTF8\" has no equivalent in \
                 encoding \"LATIN1\"",
                shown.join(" ")
            );
            Error::new(SqlState::UNTRANSLATABLE, message)
        })
    };
    text.chars().map(byte).collect()
}

/// A place among so many.
fn place(at: i64, count: usize) -> Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < count);
    found.ok_or_else(|| {
        let message = format!("index {at} out of valid range, 0..{}", count as i64 - 1);
        Error::new(SqlState::ARRAY_SUBSCRIPT, message)
    })
}

fn with_bit(bytes: &[u8], at: i64, value: i32) -> Result<Datum> {
    let at = place(at, bytes.len() * 8)?;
    if value != 0 && value != 1 {
        return Err(invalid("new bit must be 0 or 1"));
    }
    let mut bytes: Box<[u8]> = bytes.into();
    bytes[at / 8] = bytes[at / 8] & !(1 << (at % 8)) | (value as u8) << (at % 8);
    Ok(Datum::Bytea(bytes))
}

fn trimmed<'b>(mut bytes: &'b [u8], set: &[u8], function: ByteFunction) -> &'b [u8] {
    if function != ByteFunction::TrimRight {
        while let Some((first, rest)) = bytes.split_first().filter(|(one, _)| set.contains(one)) {
            debug_assert!(set.contains(first));
            bytes = rest;
        }
    }
    if function != ByteFunction::TrimLeft {
        while let Some((_, rest)) = bytes.split_last().filter(|(one, _)| set.contains(one)) {
            bytes = rest;
        }
    }
    bytes
}

fn part<'b>(bytes: &'b [u8], from: i32, rest: &[Datum]) -> Result<&'b [u8]> {
    let from = i64::from(from);
    let end = match rest {
        [Datum::Int4(length)] if *length < 0 => {
            let message = "negative substring length not allowed";
            return Err(Error::new(SqlState::SUBSTRING_ERROR, message));
        }
        [Datum::Int4(length)] => from + i64::from(*length),
        _ => i64::MAX,
    };
    let count = bytes.len() as i64;
    let begin = (from.max(1) - 1).min(count);
    let end = (end.max(1) - 1).clamp(begin, count);
    Ok(&bytes[begin as usize..end as usize])
}

fn overlay(bytes: &[u8], new: &[u8], from: i32, rest: &[Datum]) -> Result<Datum> {
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(Error::new(SqlState::SUBSTRING_ERROR, message));
    }
    let length = match rest {
        [Datum::Int4(length)] => *length,
        _ => i32::try_from(new.len()).unwrap_or(i32::MAX),
    };
    let behind = from
        .checked_add(length)
        .ok_or_else(|| Error::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))?;
    let before = part(bytes, 1, &[Datum::Int4(from - 1)])?;
    let after = part(bytes, behind, &[])?;
    bounded(before.len() + new.len() + after.len())?;
    Ok(Datum::Bytea([before, new, after].concat().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back_in_each_form() {
        let all: Vec<u8> = (0..=255).collect();
        for form in ["hex", "base64", "escape"] {
            for count in 0..all.len() {
                let text = encoded(&all[..count], form).unwrap();
                assert_eq!(decoded(&text, form).unwrap(), &all[..count], "{form} {count}");
            }
        }
        for text in ["=", "a", "ab", "ab=c=", "****", "abc"] {
            assert!(decoded(text, "base64").is_err(), "{text}");
        }
    }
}
