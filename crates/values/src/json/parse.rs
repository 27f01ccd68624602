//! From text to JSON. What is malformed is refused at its first byte.

use super::value::Json;
use crate::{Error, Result, SqlState};

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

    /// Refuses JSON that [`Json::parse`] would refuse for its depth. `text` is well-formed.
    pub fn check_depth(text: &str) -> Result<()> {
        let (mut depth, mut bytes) = (0, text.bytes());
        while let Some(byte) = bytes.next() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {}
                b']' | b'}' => depth -= 1,
                _ if depth > DEPTH_MAX => return Err(too_deep()),
                b'[' | b'{' => depth += 1,
                b'"' => skip_string(&mut bytes),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Goes on behind a string whose first quote was read.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

fn too_deep() -> Error {
    let message = format!("JSON is nested deeper than {DEPTH_MAX} levels");
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
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
            return Err(too_deep());
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.list(b'}', |own| own.member(depth + 1)).map(Json::object),
            Some(b'[') => self.list(b']', |own| own.value(depth + 1)).map(Json::Array),
            Some(b'"') => Ok(Json::String(self.string()?.into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.expect("true").map(|()| Json::Bool(true)),
            Some(b'f') => self.expect("false").map(|()| Json::Bool(false)),
            Some(b'n') => self.expect("null").map(|()| Json::Null),
            _ => Err(self.unexpected()),
        }
    }

    /// What stands in brackets, with commas between; the parser is at the opening one.
    fn list<T>(&mut self, close: u8, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(items);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<(Box<str>, Json)> {
        self.blanks();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        self.blanks();
        self.expect(":")?;
        Ok((key.into(), self.value(depth)?))
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

    /// A backslash, `u` and four hexadecimal digits, or two of them for what is beyond 16 bits.
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
    fn depth_is_checked_as_it_is_read() {
        let insides =
            ["", "1", "true", "\"a\"", "\"\\\"[[\"", "[]", "{}", "1, [2]", "{\"a\": [ 3 ]}"];
        for levels in 97..104 {
            for (open, close) in [("[", "]"), ("{\"]\" : ", "}")] {
                for inside in insides {
                    if open != "[" && (inside.is_empty() || inside.contains(", ")) {
                        continue;
                    }
                    let text = format!("{}{inside}{}", open.repeat(levels), close.repeat(levels));
                    let read = Json::parse(&text).map(|_| ());
                    assert_eq!(Json::check_depth(&text), read, "{text}");
                }
            }
        }
    }
}
