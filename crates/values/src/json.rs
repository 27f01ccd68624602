//! `jsonb`: JSON in one canonical form. Keys of objects are sorted by length, then bytes, and the
//! last of equal ones stays; numbers are [`Numeric`]. So equal values have equal text but for the
//! scale of numbers.

use crate::{Error, Numeric, Result, SqlState};
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// A value of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Json {
    /// `null`
    Null,
    /// Text.
    String(Box<str>),
    /// A number; never NaN or infinite.
    Number(Numeric),
    /// `true` or `false`
    Bool(bool),
    /// An array.
    Array(Vec<Json>),
    /// An object: members in canonical order, each key once.
    Object(Vec<(Box<str>, Json)>),
}

/// Arrays and objects within each other.
const DEPTH_MAX: usize = 100;

fn invalid() -> Error {
    Error::new(SqlState::INVALID_JSON, "invalid input syntax for type json")
}

impl Json {
    /// Reads JSON.
    pub fn parse(text: &str) -> Result<Json> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.unexpected());
        }
        Ok(value)
    }

    /// An object of these members, put in canonical order; the last of equal keys stays.
    pub fn object(members: Vec<(Box<str>, Json)>) -> Json {
        let mut members = members;
        members.sort_by(|left, right| compare_keys(&left.0, &right.0));
        members.reverse();
        members.dedup_by(|later, earlier| later.0 == earlier.0);
        members.reverse();
        Json::Object(members)
    }

    /// The member with this key, of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        let at = members.binary_search_by(|(member, _)| compare_keys(member, key)).ok()?;
        Some(&members[at].1)
    }

    /// The item at an index, of an array; below zero from its end.
    pub fn item(&self, index: i64) -> Option<&Json> {
        let Json::Array(items) = self else { return None };
        let index = if index < 0 { index.checked_add(items.len() as i64)? } else { index };
        items.get(usize::try_from(index).ok()?)
    }

    /// PostgreSQL's order of kinds: objects are above arrays, and so on down to null.
    fn rank(&self) -> u8 {
        match self {
            // An empty array is below all, as in PostgreSQL.
            Json::Array(items) if items.is_empty() => 0,
            Json::Null => 1,
            Json::String(_) => 2,
            Json::Number(_) => 3,
            Json::Bool(_) => 4,
            Json::Array(_) => 5,
            Json::Object(_) => 6,
        }
    }
}

fn compare_keys(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

impl PartialOrd for Json {
    fn partial_cmp(&self, other: &Json) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Json {
    fn cmp(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::String(left), Json::String(right)) => left.cmp(right),
            (Json::Number(left), Json::Number(right)) => left.cmp(right),
            (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
            (Json::Array(left), Json::Array(right)) => {
                left.len().cmp(&right.len()).then_with(|| left.cmp(right))
            }
            (Json::Object(left), Json::Object(right)) => {
                let keys = |members: &[(Box<str>, Json)], others: &[(Box<str>, Json)]| {
                    let pairs = members.iter().zip(others);
                    pairs
                        .map(|(left, right)| {
                            compare_keys(&left.0, &right.0).then_with(|| left.1.cmp(&right.1))
                        })
                        .find(|order| order.is_ne())
                        .unwrap_or(Ordering::Equal)
                };
                left.len().cmp(&right.len()).then_with(|| keys(left, right))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::String(text) => print_string(text, f),
            Json::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write!(f, "{item}")?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    print_string(key, f)?;
                    write!(f, ": {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn print_string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\x08' => f.write_str("\\b")?,
            '\x0c' => f.write_str("\\f")?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn unexpected(&self) -> Error {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => invalid().with_detail(format!("unexpected \"{c}\" at byte {}", self.at)),
            None => invalid().with_detail("The input string ended unexpectedly."),
        }
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth > DEPTH_MAX {
            return Err(Error::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("JSON is nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?.into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.expect("true").map(|()| Json::Bool(true)),
            Some(b'f') => self.expect("false").map(|()| Json::Bool(false)),
            Some(b'n') => self.expect("null").map(|()| Json::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = self.string()?;
            self.blanks();
            self.expect(":")?;
            members.push((key.into(), self.value(depth + 1)?));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::object(members));
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn number(&mut self) -> Result<Json> {
        let begin = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits();
        if whole == 0 || (whole > 1 && self.text.as_bytes()[self.at - whole] == b'0') {
            return Err(invalid().with_detail(format!("number at byte {begin} is invalid")));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.unexpected());
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected());
            }
        }
        self.text[begin..self.at].parse().map(Json::Number)
    }

    fn digits(&mut self) -> usize {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - begin
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let begin = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            text.push_str(&self.text[begin..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        self.at += 1;
        let escaped = self.peek().ok_or_else(|| self.unexpected())?;
        let c = match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\x08',
            b'f' => '\x0c',
            b'u' => return self.unicode(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(c)
    }

    /// `\uXXXX`, or two of them for what is beyond 16 bits.
    fn unicode(&mut self) -> Result<char> {
        let first = self.four_digits()?;
        if first == 0 {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "unsupported Unicode escape sequence",
            )
            .with_detail("\\u0000 cannot be converted to text."));
        }
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let pair = || invalid().with_detail("Unicode low surrogate must follow a high surrogate.");
        if first >= 0xdc00 || self.peek() != Some(b'\\') {
            return Err(pair());
        }
        self.at += 1;
        if self.peek() != Some(b'u') {
            return Err(pair());
        }
        let second = self.four_digits()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(pair());
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(pair)
    }

    /// The number after the `u` that the parser is at.
    fn four_digits(&mut self) -> Result<u32> {
        self.at += 1;
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.ok_or_else(|| self.unexpected())?;
        let value = digits.iter().try_fold(0_u32, |sum, digit| {
            char::from(*digit).to_digit(16).map(|digit| sum * 16 + digit)
        });
        let value = value.ok_or_else(|| {
            invalid().with_detail("\"\\u\" must be followed by four hexadecimal digits.")
        })?;
        self.at += 4;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_canonical() {
        let check = |text: &str, canonical: &str| {
            let value = Json::parse(text).unwrap();
            assert_eq!(value.to_string(), canonical);
            assert_eq!(Json::parse(canonical).unwrap(), value);
        };
        check(r#" {"bb":1,"a" : [1, 2.50,null], "a":true} "#, r#"{"a": true, "bb": 1}"#);
        check("[]", "[]");
        check("{}", "{}");
        check(r#""\u00e9\ud83d\ude00\n\/""#, "\"\u{e9}\u{1f600}\\n/\"");
        check("1e2", "100");
        check("-0.10", "-0.10");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let bad = [
            "",
            "{",
            "[1,]",
            "01",
            "1.",
            "+1",
            "nul",
            "\"\\x\"",
            "\"a",
            "{1:2}",
            "[1] 2",
            "-",
            "\"\\ud800\"",
            "\"\\u12\"",
            "\u{e9}",
        ];
        for text in bad {
            assert_eq!(Json::parse(text).unwrap_err().state(), SqlState::INVALID_JSON, "{text}");
        }
        let deep = "[".repeat(100_000);
        let error = Json::parse(&deep).unwrap_err();
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
    }

    #[test]
    fn the_order_is_postgresqls() {
        let sorted = [
            "[]",
            "null",
            "\"a\"",
            "\"b\"",
            "1",
            "2.0",
            "false",
            "true",
            "[3]",
            "[1, 1]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
        ];
        let values: Vec<Json> = sorted.iter().map(|text| Json::parse(text).unwrap()).collect();
        assert!(values.is_sorted());
        assert_eq!(values[12].get("a"), Some(&Json::Number(Numeric::from(2))));
        assert_eq!(values[9].item(-1), Some(&Json::Number(Numeric::ONE)));
    }
}
