//! From the text of a path to tokens.

use crate::{Error, Result, SqlState};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A sign.
    Sign(&'static str),
    /// A word without quotes, with what its escapes stand for.
    Word(String),
    /// A text in quotes.
    String(String),
    /// A number.
    Number(String),
    /// `$name`
    Variable(String),
    /// The end.
    End,
}

const SIGNS: [&str; 28] = [
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "!", "<", ">", "=", "&", "|", "?", "%", "$",
    ".", "[", "]", "{", "}", "(", ")", "@", ",", "*", "-",
];
/// Signs of one character that the table has no room for in a line.
const MORE_SIGNS: [&str; 4] = ["+", "/", ":", "#"];

/// Reads tokens one by one.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

/// The error of a text that is no path.
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// Whether a character ends a word.
fn is_special(c: char) -> bool {
    is_blank(c) || "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

impl<'t> Lexer<'t> {
    pub(super) fn of(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next token, and the text that errors at it show: as in PostgreSQL, what ends a word, and
    /// the quote at the end of a text.
    pub(super) fn next(&mut self) -> Result<(Token, &'t str)> {
        self.skip_blanks()?;
        let begin = self.at;
        let token = self.token()?;
        let shown = match &token {
            Token::String(_) => &self.text[self.at - 1..self.at],
            Token::Word(_) | Token::Variable(_) => {
                let blanks = self.rest().len() - self.rest().trim_start_matches(is_blank).len();
                &self.rest()[..blanks]
            }
            _ => &self.text[begin..self.at],
        };
        Ok((token, shown))
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest().trim_start_matches(is_blank);
            self.at = self.text.len() - rest.len();
            let Some(comment) = rest.strip_prefix("/*") else { return Ok(()) };
            let end = comment.find("*/");
            let end =
                end.ok_or_else(|| wrong("unexpected end of comment at end of jsonpath input"))?;
            self.at += end + 4;
        }
    }

    fn token(&mut self) -> Result<Token> {
        let Some(first) = self.rest().chars().next() else { return Ok(Token::End) };
        let second = self.rest().chars().nth(1);
        match first {
            '"' => {
                self.at += 1;
                self.quoted().map(Token::String)
            }
            '$' if second == Some('"') => {
                self.at += 2;
                self.quoted().map(Token::Variable)
            }
            '$' if second.is_some_and(|c| !is_special(c) || c == '\\') => {
                self.at += 1;
                self.word().map(Token::Variable)
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            c if !is_special(c) || c == '\\' => self.word().map(Token::Word),
            _ => {
                let mut signs = SIGNS.iter().chain(&MORE_SIGNS);
                let sign = signs.find(|sign| self.rest().starts_with(**sign));
                let sign = sign.ok_or_else(|| near(&first.to_string()))?;
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
        }
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<Token> {
        let begin = self.at;
        if self.rest().starts_with('0') {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.rest().starts_with('.') {
            self.at += 1;
            self.digits();
        }
        let behind = self.at;
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['-', '+']) {
                self.at += 1;
            }
            if self.digits() == 0 {
                self.at = behind;
            }
        }
        match self.rest().chars().next() {
            Some(c) if !is_special(c) => {
                let shown = &self.text[begin..self.at + c.len_utf8()];
                let message = "trailing junk after numeric literal at or near";
                Err(wrong(format!("{message} \"{shown}\" of jsonpath input")))
            }
            _ => Ok(Token::Number(self.text[begin..self.at].to_owned())),
        }
    }

    fn word(&mut self) -> Result<String> {
        let mut word = String::new();
        while let Some(c) = self.rest().chars().next() {
            if c == '\\' {
                self.at += 1;
                word.push(self.escaped()?);
            } else if is_special(c) {
                break;
            } else {
                self.at += c.len_utf8();
                word.push(c);
            }
        }
        Ok(word)
    }

    fn quoted(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            let c = self.rest().chars().next();
            let c =
                c.ok_or_else(|| wrong("unexpected end of quoted string at end of jsonpath input"))?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escaped()?),
                c => text.push(c),
            }
        }
    }

    /// What an escape stands for, behind its backslash.
    fn escaped(&mut self) -> Result<char> {
        let c = self.rest().chars().next();
        let c =
            c.ok_or_else(|| wrong("unexpected end after backslash at end of jsonpath input"))?;
        self.at += c.len_utf8();
        Ok(match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let code = self.hexadecimal(2);
                code.ok_or_else(|| {
                    wrong("invalid hexadecimal character sequence of jsonpath input")
                })
                .and_then(character)?
            }
            'u' => self.unicode()?,
            other => other,
        })
    }

    /// So many hexadecimal digits.
    fn hexadecimal(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += count;
        Some(code)
    }

    fn unicode(&mut self) -> Result<char> {
        let invalid = || wrong("invalid Unicode escape sequence of jsonpath input");
        if let Some(rest) = self.rest().strip_prefix('{') {
            let count = rest.find('}').filter(|count| (1..=6).contains(count));
            self.at += 1;
            let code = count.and_then(|count| self.hexadecimal(count)).ok_or_else(invalid)?;
            self.at += 1;
            return character(code);
        }
        let high = self.hexadecimal(4).ok_or_else(invalid)?;
        if !(0xd800..0xdc00).contains(&high) {
            return character(high);
        }
        let low = self.rest().starts_with("\\u").then(|| {
            self.at += 2;
            self.hexadecimal(4)
        });
        match low.flatten() {
            Some(low @ 0xdc00..0xe000) => {
                character(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            _ => Err(surrogate("high")),
        }
    }
}

fn surrogate(which: &str) -> Error {
    let detail = match which {
        "high" => "Unicode high surrogate must not follow a high surrogate.",
        _ => "Unicode low surrogate must follow a high surrogate.",
    };
    Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type jsonpath").with_detail(detail)
}

fn character(code: u32) -> Result<char> {
    if code == 0 {
        let error = Error::new(SqlState::UNTRANSLATABLE, "unsupported Unicode escape sequence");
        return Err(error.with_detail("\\u0000 cannot be converted to text."));
    }
    char::from_u32(code).ok_or_else(|| surrogate("low"))
}

/// The error of a token that no path has there.
pub(super) fn near(text: &str) -> Error {
    match text {
        "" => wrong("syntax error at end of jsonpath input"),
        text => wrong(format!("syntax error at or near \"{text}\" of jsonpath input")),
    }
}
