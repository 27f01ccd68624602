//! `format`, quotes, and other text that is made of values.

use super::strings::bounded;
use crate::ir::TextFunction;
use crate::system::{literal, quoted};
use values::{Array, Datum, Error, Result, SqlState, Type, Zone, text};

/// The result, if the function takes these types; NULL is an argument as others are.
pub(super) fn with_nulls(
    function: TextFunction,
    arguments: &[Datum],
    zone: &Zone,
) -> Option<Result<Datum>> {
    let count = |is_null: bool| {
        let found = arguments.iter().filter(|value| value.is_null() == is_null).count();
        Ok(Datum::Int4(i32::try_from(found).unwrap_or(i32::MAX)))
    };
    Some(match (function, arguments) {
        (TextFunction::CountNulls, _) => count(true),
        (TextFunction::CountValues, _) => count(false),
        (TextFunction::QuoteNullable, [Datum::Null]) => Ok(Datum::text("NULL")),
        (TextFunction::Format, [Datum::Text(form), values @ ..]) => formatted(form, values, zone),
        _ => return None,
    })
}

/// The result; `None` if the function does not take these types.
pub(super) fn call(
    function: TextFunction,
    arguments: &[Datum],
    zone: &Zone,
) -> Option<Result<Datum>> {
    Some(match (function, arguments) {
        (TextFunction::QuoteIdentifier, [Datum::Text(name)]) => Ok(Datum::text(quoted(name))),
        (TextFunction::QuoteLiteral | TextFunction::QuoteNullable, [value]) => {
            Ok(Datum::text(literal(&text::print(value, zone))))
        }
        (TextFunction::Unescape, [Datum::Text(text)]) => unescaped(text).map(Datum::text),
        (TextFunction::ParseIdentifier, [Datum::Text(text), Datum::Bool(strict)]) => {
            identifier(text, *strict)
        }
        _ => return None,
    })
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message.into())
}

/// A part of a form behind a percent sign.
struct Specifier {
    /// The number of its argument, if it is stated.
    place: Option<usize>,
    is_left: bool,
    width: Width,
    kind: char,
}

enum Width {
    None,
    Of(i64),
    /// That of the next argument, or of one with this number.
    Argument(Option<usize>),
}

struct Form<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
}

impl Form<'_> {
    fn number(&mut self) -> Result<Option<i64>> {
        let mut number: Option<i64> = None;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            let own = number.unwrap_or(0) * 10 + i64::from(digit);
            if own > i64::from(i32::MAX) {
                let message = "number is out of range";
                return Err(Error::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
            }
            (number, _) = (Some(own), self.rest.next());
        }
        Ok(number)
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// A number in front of a dollar sign: that of an argument.
    fn place(&self, number: i64) -> Result<usize> {
        match usize::try_from(number) {
            Ok(place @ 1..) => Ok(place),
            _ => {
                let message = "format specifies argument 0, but arguments are numbered from 1";
                Err(invalid(message))
            }
        }
    }

    fn specifier(&mut self) -> Result<Specifier> {
        let mut found = Specifier { place: None, is_left: false, width: Width::None, kind: ' ' };
        if let Some(number) = self.number()? {
            if self.takes('$') {
                found.place = Some(self.place(number)?);
            } else {
                found.width = Width::Of(number);
                return self.kind(found);
            }
        }
        while self.takes('-') {
            found.is_left = true;
        }
        if self.takes('*') {
            let number = self.number()?;
            if number.is_some() && !self.takes('$') {
                return Err(invalid("width argument position must be ended by \"$\""));
            }
            let place = number.map(|number| self.place(number)).transpose()?;
            found.width = Width::Argument(place);
        } else if let Some(number) = self.number()? {
            found.width = Width::Of(number);
        }
        self.kind(found)
    }

    fn kind(&mut self, found: Specifier) -> Result<Specifier> {
        match self.rest.next() {
            Some(kind) => Ok(Specifier { kind, ..found }),
            None => Err(unterminated()),
        }
    }
}

fn unterminated() -> Error {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

fn formatted(form: &str, values: &[Datum], zone: &Zone) -> Result<Datum> {
    let mut form = Form { rest: form.chars().peekable() };
    let (mut made, mut next) = (String::new(), 0);
    while let Some(c) = form.rest.next() {
        if c != '%' {
            made.push(c);
            continue;
        }
        if form.rest.peek().is_none() {
            return Err(unterminated());
        }
        if form.takes('%') {
            made.push('%');
            continue;
        }
        let found = form.specifier()?;
        if !matches!(found.kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{}\"", found.kind);
            return Err(invalid(message).with_hint("For a single \"%\" use \"%%\"."));
        }
        let mut argument = |place: Option<usize>| {
            next = place.unwrap_or(next + 1);
            let value = values.get(next - 1);
            value.ok_or_else(|| invalid("too few arguments for format()"))
        };
        let width = match found.width {
            Width::None => 0,
            Width::Of(width) => width,
            Width::Argument(place) => match argument(place)? {
                Datum::Null => 0,
                width => text::print(width, zone).parse().map_err(|_| {
                    let message = "width of format() is no integer";
                    Error::new(SqlState::INVALID_TEXT, message)
                })?,
            },
        };
        let shown = shown(argument(found.place)?, found.kind, zone)?;
        pad(&mut made, &shown, width, found.is_left)?;
    }
    Ok(Datum::text(made))
}

fn shown(value: &Datum, kind: char, zone: &Zone) -> Result<String> {
    Ok(match (kind, value) {
        ('s', Datum::Null) => String::new(),
        ('L', Datum::Null) => "NULL".to_owned(),
        (_, Datum::Null) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(Error::new(SqlState::NULL_NOT_ALLOWED, message));
        }
        ('I', value) => quoted(&text::print(value, zone)),
        ('L', value) => literal(&text::print(value, zone)),
        (_, value) => text::print(value, zone),
    })
}

/// Appends a text, filled up with blanks: behind it if it is to the left, as by a width below zero.
fn pad(made: &mut String, shown: &str, width: i64, is_left: bool) -> Result<()> {
    let missing = width.unsigned_abs().saturating_sub(shown.chars().count() as u64);
    let missing = usize::try_from(missing).unwrap_or(usize::MAX);
    bounded(made.len().saturating_add(shown.len()).saturating_add(missing))?;
    let blanks = " ".repeat(missing);
    let is_left = is_left || width < 0;
    made.push_str(if is_left { shown } else { &blanks });
    made.push_str(if is_left { &blanks } else { shown });
    Ok(())
}

/// `unistr`: text with Unicode escapes, each a backslash and 4, 6 or 8 hexadecimal digits.
fn unescaped(text: &str) -> Result<String> {
    let (mut made, mut rest) = (String::with_capacity(text.len()), text);
    let mut high: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        if high.is_some() && !plain.is_empty() {
            return Err(wrong_escape("invalid Unicode surrogate pair"));
        }
        made.push_str(plain);
        let (code, behind) = escaped(&escape[1..])?;
        rest = behind;
        match (high.take(), code) {
            (Some(high), low @ 0xdc00..=0xdfff) => {
                let code = 0x1_0000 + ((high & 0x3ff) << 10 | low & 0x3ff);
                made.extend(char::from_u32(code));
            }
            (Some(_), _) => return Err(wrong_escape("invalid Unicode surrogate pair")),
            (None, 0xd800..=0xdbff) => high = Some(code),
            (None, _) => {
                let c = char::from_u32(code).filter(|c| *c != '\0');
                made.push(c.ok_or_else(|| wrong_escape("invalid Unicode escape value"))?);
            }
        }
    }
    if high.is_some() {
        return Err(wrong_escape("invalid Unicode surrogate pair"));
    }
    made.push_str(rest);
    Ok(made)
}

fn wrong_escape(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// The code of an escape, from behind its backslash, and the text behind it.
fn escaped(text: &str) -> Result<(u32, &str)> {
    let (skipped, count) = match text.chars().next() {
        Some('\\') => return Ok((u32::from('\\'), &text[1..])),
        Some('+') => (1, 6),
        Some('u') => (1, 4),
        Some('U') => (1, 8),
        _ => (0, 4),
    };
    let digits = text.get(skipped..skipped + count);
    let digits = digits.filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let code = code.ok_or_else(|| {
        wrong_escape("invalid Unicode escape")
            .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    })?;
    Ok((code, &text[skipped + count..]))
}

/// `parse_ident`: the parts of a name.
fn identifier(text: &str, strict: bool) -> Result<Datum> {
    let refused = || invalid(format!("string is not a valid identifier: \"{text}\""));
    let (mut parts, mut rest) = (Vec::new(), text.trim_start());
    loop {
        if let Some(behind) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut letters = behind.char_indices().peekable();
            let end = loop {
                match letters.next() {
                    Some((_, '"')) if letters.next_if(|(_, c)| *c == '"').is_some() => {
                        part.push('"');
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, c)) => part.push(c),
                    None => return Err(refused()),
                }
            };
            if part.is_empty() {
                return Err(refused());
            }
            (parts, rest) = (with(parts, part), &behind[end..]);
        } else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_$".contains(c) || !c.is_ascii();
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let part = &rest[..end];
            if part.is_empty() || part.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
                return Err(refused());
            }
            (parts, rest) = (with(parts, part.to_ascii_lowercase()), &rest[end..]);
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() || !strict => break,
            None => return Err(refused()),
        }
    }
    Array::new(Type::Text, parts).map(|array| Datum::Array(Box::new(array)))
}

fn with(mut parts: Vec<Datum>, part: String) -> Vec<Datum> {
    parts.push(Datum::text(part));
    parts
}
