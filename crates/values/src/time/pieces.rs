//! The pieces of the text of a date or time: words, numbers, and what punctuation holds together.

/// What a piece looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits, perhaps with a point in them or before them.
    Number,
    /// Parts with `-`, `/` or `.` between; also the name of a zone.
    Date,
    /// Digits with `:` between.
    Time,
    /// A sign and digits.
    Offset,
    /// Letters, perhaps with a sign before them.
    Word,
}

/// A piece, in small letters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) shape: Shape,
    pub(super) text: String,
}

/// Longer text is no date.
const TEXT_BYTES_MAX: usize = 128;
/// More pieces are no date.
const PIECES_MAX: usize = 25;

/// The pieces of a text; `None` if it has something that no date has. `is_keyword` says of small
/// letters whether a date has this word, so that digits behind it are another piece.
pub(super) fn pieces(text: &str, is_keyword: impl Fn(&str) -> bool) -> Option<Vec<Piece>> {
    if text.len() > TEXT_BYTES_MAX || !text.is_ascii() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let mut rest = Rest { bytes: lower.as_bytes(), at: 0 };
    let mut pieces = Vec::new();
    while let Some(first) = rest.next() {
        let begin = rest.at;
        let shape = match first {
            _ if is_blank(first) => {
                rest.at += 1;
                continue;
            }
            b'0'..=b'9' => rest.number(),
            b'.' if rest.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => {
                rest.at += 1;
                rest.skip(|byte| byte.is_ascii_digit());
                Shape::Number
            }
            b'a'..=b'z' => rest.word(&is_keyword),
            b'+' | b'-' => {
                pieces.push(rest.signed()?);
                continue;
            }
            _ if first.is_ascii_punctuation() => {
                rest.at += 1;
                continue;
            }
            _ => return None,
        };
        pieces.push(Piece { shape, text: lower[begin..rest.at].to_owned() });
    }
    (pieces.len() <= PIECES_MAX).then_some(pieces)
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// What of a text is still to be read.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn next(&self) -> Option<u8> {
        self.peek(0)
    }

    fn skip(&mut self, is_of_piece: impl Fn(u8) -> bool) {
        while self.next().is_some_and(&is_of_piece) {
            self.at += 1;
        }
    }

    /// What begins with a digit.
    fn number(&mut self) -> Shape {
        let digit = |byte: u8| byte.is_ascii_digit();
        self.skip(digit);
        match self.next() {
            Some(b':') => {
                self.skip(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
                Shape::Time
            }
            Some(between @ (b'-' | b'/' | b'.')) => {
                self.at += 1;
                if !self.next().is_some_and(digit) {
                    self.skip(|byte| byte.is_ascii_alphanumeric() || byte == between);
                    return Shape::Date;
                }
                self.skip(digit);
                if self.next() == Some(between) {
                    self.skip(|byte| byte.is_ascii_digit() || byte == between);
                    return Shape::Date;
                }
                // A point between two numbers may be that of a fraction.
                if between == b'.' { Shape::Number } else { Shape::Date }
            }
            _ => Shape::Number,
        }
    }

    /// What begins with a letter.
    fn word(&mut self, is_keyword: impl Fn(&str) -> bool) -> Shape {
        let begin = self.at;
        self.skip(|byte| byte.is_ascii_lowercase());
        let is_date = match self.next() {
            Some(b'-' | b'/' | b'.') => true,
            Some(b'+' | b'0'..=b'9') => {
                let word = std::str::from_utf8(&self.bytes[begin..self.at]);
                !word.is_ok_and(is_keyword)
            }
            _ => false,
        };
        if !is_date {
            return Shape::Word;
        }
        self.skip(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        });
        Shape::Date
    }

    /// What begins with a sign, without blanks behind the sign.
    fn signed(&mut self) -> Option<Piece> {
        let mut text = char::from(self.next()?).to_string();
        self.at += 1;
        self.skip(is_blank);
        let begin = self.at;
        let shape = match self.next()? {
            b'0'..=b'9' => {
                self.skip(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'));
                Shape::Offset
            }
            b'a'..=b'z' => {
                self.skip(|byte| byte.is_ascii_lowercase());
                Shape::Word
            }
            _ => return None,
        };
        text.push_str(std::str::from_utf8(&self.bytes[begin..self.at]).ok()?);
        Some(Piece { shape, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_holds_pieces_together() {
        let shown = |text: &str| {
            let found = pieces(text, |word| word == "t")?;
            Some(found.into_iter().map(|piece| (piece.shape, piece.text)).collect::<Vec<_>>())
        };
        let piece = |shape, text: &str| (shape, text.to_owned());
        use Shape::{Date, Number, Offset, Time, Word};
        let expected = vec![piece(Date, "2024-01-02"), piece(Word, "t"), piece(Time, "04:05:06.7")];
        assert_eq!(shown(" 2024-01-02T04:05:06.7"), Some(expected));
        let expected = vec![piece(Date, "jan-30-08"), piece(Number, "0405.5"), piece(Offset, "+2")];
        assert_eq!(shown("Jan-30-08, 0405.5 + 2"), Some(expected));
        assert_eq!(shown("-Infinity"), Some(vec![piece(Word, "-infinity")]));
        assert_eq!(shown("Etc/GMT+2"), Some(vec![piece(Date, "etc/gmt+2")]));
        assert_eq!(shown("1/feb.03"), Some(vec![piece(Date, "1/feb"), piece(Number, ".03")]));
        assert_eq!((shown("- -"), shown("\u{e4}")), (None, None));
    }
}
