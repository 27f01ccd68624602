//! Numbers as text of a stated form: `to_char`.

use crate::{Error, Result, SqlState};

/// The most places of a form, as of a number.
const PLACES_MAX: usize = 1_000;

/// What a part of a form stands for.
#[derive(Clone, Debug, PartialEq)]
enum Element {
    /// A digit, `0` also where the number has none.
    Digit {
        is_zero: bool,
    },
    Point,
    Group,
    /// `-` or a blank.
    Minus,
    /// `-` or `+`.
    Sign,
    /// The ending of an ordinal number, in large letters or small ones.
    Ordinal {
        is_large: bool,
    },
    Text(String),
}

/// Where the sign is that no element of its own shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Before the first digit: `-`, or a blank.
    Usual,
    /// Before the first digit: `-` or `+`.
    Leading,
    /// Behind the last digit: `-` or `+`.
    Trailing,
    /// `<` and `>` around what is negative.
    Brackets,
    /// Elsewhere.
    Shown,
}

/// A form of numbers, such as `FM999,990.00`.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberForm {
    elements: Vec<Element>,
    sign: Sign,
    /// Whether places without digits are blanks.
    is_filled: bool,
    /// Digits before the point.
    whole: usize,
    /// Digits behind the point.
    part: usize,
}

/// The patterns. Longer ones are before those that they begin with.
const PATTERNS: [&str; 20] = [
    "EEEE", "FM", "MI", "PL", "SG", "PR", "RN", "SP", "TH", "9", "0", ".", "D", ",", "G", "S", "L",
    "V", "B", "C",
];

impl NumberForm {
    /// The form of a text.
    pub fn parse(text: &str) -> Result<NumberForm> {
        let mut form = NumberForm {
            elements: Vec::new(),
            sign: Sign::Usual,
            is_filled: true,
            whole: 0,
            part: 0,
        };
        let (mut rest, mut sign_at) = (text, None);
        while let Some(first) = rest.chars().next() {
            if first == '"' {
                let (quoted, behind) = quoted_text(&rest[1..]);
                form.push_text(&quoted);
                rest = behind;
                continue;
            }
            let is_at = |pattern: &&&str| {
                rest.get(..pattern.len()).is_some_and(|own| own.eq_ignore_ascii_case(pattern))
            };
            let Some(pattern) = PATTERNS.iter().find(is_at) else {
                let escaped = rest.strip_prefix("\\\"");
                form.push_text(if escaped.is_some() { "\"" } else { &rest[..first.len_utf8()] });
                rest = escaped.unwrap_or(&rest[first.len_utf8()..]);
                continue;
            };
            if *pattern == "S" {
                sign_at = Some((form.whole, form.has_point()));
            }
            form.push(pattern, first)?;
            rest = &rest[pattern.len()..];
        }
        if let Some((whole, is_behind)) = sign_at {
            let is_leading = whole < form.whole && !is_behind;
            form.sign = if is_leading { Sign::Leading } else { Sign::Trailing };
        }
        if form.whole + form.part > PLACES_MAX {
            let message = format!("a form of to_char has at most {PLACES_MAX} digits");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        Ok(form)
    }

    fn has_point(&self) -> bool {
        self.elements.contains(&Element::Point)
    }

    fn push_text(&mut self, text: &str) {
        match self.elements.last_mut() {
            Some(Element::Text(before)) => before.push_str(text),
            _ => self.elements.push(Element::Text(text.to_owned())),
        }
    }

    fn push(&mut self, pattern: &str, first: char) -> Result<()> {
        let element = match pattern {
            "FM" => {
                self.is_filled = false;
                return Ok(());
            }
            "9" | "0" => {
                let count = if self.has_point() { &mut self.part } else { &mut self.whole };
                *count += 1;
                Element::Digit { is_zero: pattern == "0" }
            }
            "." | "D" if self.has_point() => {
                let message = "multiple decimal points";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            "." | "D" => Element::Point,
            "," | "G" => Element::Group,
            "S" | "PR" if self.sign != Sign::Usual => {
                let message = format!("\"{pattern}\" of to_char beside another sign");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            "S" => {
                self.sign = Sign::Trailing;
                return Ok(());
            }
            "PR" => {
                self.sign = Sign::Brackets;
                return Ok(());
            }
            "MI" | "SG" if !matches!(self.sign, Sign::Usual | Sign::Shown) => {
                let message = format!("\"{pattern}\" of to_char beside another sign");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            "MI" | "SG" => {
                self.sign = Sign::Shown;
                if pattern == "MI" { Element::Minus } else { Element::Sign }
            }
            "TH" => Element::Ordinal { is_large: first.is_ascii_uppercase() },
            _ => {
                let message = format!("pattern \"{pattern}\" of to_char of numbers");
                return Err(Error::unsupported(message, ""));
            }
        };
        self.elements.push(element);
        Ok(())
    }

    /// How many digits behind the point it shows.
    pub fn part_digits(&self) -> usize {
        self.part
    }

    /// The form with at most `most` digits behind the point: further places show nothing.
    #[must_use]
    pub fn with_part_of(mut self, most: usize) -> NumberForm {
        self.part = self.part.min(most);
        self
    }

    /// A number in this form: its digits, with a point where it has a part, without a sign. It has
    /// no more digits behind the point than the form.
    pub fn shown(&self, is_negative: bool, digits: &str) -> String {
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        // A zero before the point needs a place, too.
        let is_too_long = whole.len().max(1) > self.whole;
        let (whole, part) = match is_too_long {
            true => ("#".repeat(self.whole), "#".repeat(self.part)),
            false => (whole.to_owned(), format!("{part:0<width$}", width = self.part)),
        };
        let shown_part = self.shown_part(&part);
        // A number without any digit to show is a zero.
        let is_zero = whole.is_empty() && self.whole > 0 && shown_part == 0;
        let whole = if is_zero { "0".to_owned() } else { whole };
        let mut writer = Writer {
            form: self,
            is_negative,
            begin: self.first_place(whole.len()),
            whole: whole.as_bytes(),
            part: part.as_bytes(),
            shown_part,
            text: String::new(),
            place: 0,
            is_signed: matches!(self.sign, Sign::Shown | Sign::Trailing),
            has_digit: false,
        };
        for element in &self.elements {
            writer.write(element, is_too_long);
        }
        writer.text
    }

    /// The first place before the point that has a digit.
    fn first_place(&self, digits: usize) -> usize {
        let places = self.elements.iter().take_while(|element| **element != Element::Point);
        let mut places = places.filter(|element| matches!(element, Element::Digit { .. }));
        let zero = places.position(|element| *element == Element::Digit { is_zero: true });
        let begin = self.whole - digits;
        zero.map_or(begin, |zero| zero.min(begin))
    }

    /// How many digits behind the point are shown: without blanks, zeros at the end are not.
    fn shown_part(&self, part: &str) -> usize {
        if self.is_filled {
            return self.part;
        }
        let behind = self.elements.iter().skip_while(|element| **element != Element::Point);
        let places: Vec<&Element> =
            behind.filter(|element| matches!(element, Element::Digit { .. })).collect();
        let is_zero = |element: &&Element| **element == Element::Digit { is_zero: true };
        let zeros = places.iter().rposition(is_zero).map_or(0, |at| at + 1);
        part.trim_end_matches('0').len().max(zeros).min(self.part)
    }
}

/// The text up to the next `"`, in which a backslash takes the meaning from what is behind it, and
/// what is behind that text.
pub(crate) fn quoted_text(text: &str) -> (String, &str) {
    let mut quoted = String::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        let own = match next {
            '"' => break,
            '\\' => rest.next().unwrap_or(next),
            next => next,
        };
        quoted.push(own);
    }
    (quoted, rest.as_str())
}

/// A number while it is written.
struct Writer<'f> {
    form: &'f NumberForm,
    is_negative: bool,
    whole: &'f [u8],
    part: &'f [u8],
    shown_part: usize,
    /// The first place with a digit.
    begin: usize,
    text: String,
    /// How many places of digits came so far.
    place: usize,
    is_signed: bool,
    has_digit: bool,
}

impl Writer<'_> {
    fn write(&mut self, element: &Element, is_too_long: bool) {
        let sign = if self.is_negative { '-' } else { '+' };
        match element {
            Element::Digit { .. } => self.digit(),
            Element::Point => {
                self.sign();
                if self.form.part > 0 || is_too_long {
                    self.text.push('.');
                }
                self.end_sign();
            }
            Element::Group if self.has_digit => self.text.push(','),
            Element::Group => self.blank(),
            Element::Minus if self.is_negative => self.text.push('-'),
            Element::Minus => self.blank(),
            Element::Sign => self.text.push(sign),
            Element::Ordinal { is_large } => {
                if !self.is_negative && !is_too_long && !self.form.has_point() {
                    let end = ordinal_end(self.whole);
                    self.text.push_str(&if *is_large {
                        end.to_ascii_uppercase()
                    } else {
                        end.into()
                    });
                }
            }
            Element::Text(text) => self.text.push_str(text),
        }
    }

    fn blank(&mut self) {
        if self.form.is_filled {
            self.text.push(' ');
        }
    }

    fn digit(&mut self) {
        let place = self.place;
        self.place += 1;
        if place < self.form.whole {
            if place < self.begin {
                self.blank();
            } else {
                self.sign();
                let lacking = self.form.whole - self.whole.len();
                let digit = place.checked_sub(lacking).map_or(b'0', |at| self.whole[at]);
                self.text.push(char::from(digit));
                self.has_digit = true;
            }
        } else if place - self.form.whole < self.shown_part {
            self.text.push(char::from(self.part[place - self.form.whole]));
        }
        if self.form.part > 0 || !self.form.has_point() {
            self.end_sign();
        }
    }

    /// The sign before the first digit.
    fn sign(&mut self) {
        if std::mem::replace(&mut self.is_signed, true) {
            return;
        }
        match (self.form.sign, self.is_negative) {
            (Sign::Leading, false) => self.text.push('+'),
            (Sign::Leading | Sign::Usual, true) => self.text.push('-'),
            (Sign::Brackets, true) => self.text.push('<'),
            (Sign::Usual | Sign::Brackets, false) => self.blank(),
            (Sign::Trailing | Sign::Shown, _) => {}
        }
    }

    /// What is behind the last place.
    fn end_sign(&mut self) {
        if self.place != self.form.whole + self.form.part {
            return;
        }
        match (self.form.sign, self.is_negative) {
            (Sign::Trailing, is_negative) => self.text.push(if is_negative { '-' } else { '+' }),
            (Sign::Brackets, true) => self.text.push('>'),
            (Sign::Brackets, false) => self.blank(),
            _ => {}
        }
    }
}

fn ordinal_end(digits: &[u8]) -> &'static str {
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    match digits.last() {
        Some(b'1') if !is_teen => "st",
        Some(b'2') if !is_teen => "nd",
        Some(b'3') if !is_teen => "rd",
        _ => "th",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of PostgreSQL's documentation.
    #[test]
    fn numbers_have_the_forms_of_the_documentation() {
        for (number, form, expected) in [
            ("-0.10", "99.99", "  -.10"),
            ("-0.10", "FM9.99", "-.1"),
            ("-0.10", "FM90.99", "-0.1"),
            ("0.1", "0.9", " 0.1"),
            ("12.0", "9990999.9", "    0012.0"),
            ("12.0", "FM9990999.9", "0012."),
            ("485", "999", " 485"),
            ("-485", "999", "-485"),
            ("485", "9 9 9", " 4 8 5"),
            ("1485", "9,999", " 1,485"),
            ("148.500", "999.999", " 148.500"),
            ("148.500", "FM999.999", "148.5"),
            ("148.500", "FM999.990", "148.500"),
            ("3148.500", "9,999.999", " 3,148.500"),
            ("-485", "999S", "485-"),
            ("-485", "999MI", "485-"),
            ("485", "999MI", "485 "),
            ("485", "FM999MI", "485"),
            ("485", "SG999", "+485"),
            ("-485", "SG999", "-485"),
            ("-485", "9SG99", "4-85"),
            ("-485", "999PR", "<485>"),
            ("482", "999th", " 482nd"),
            ("485", "\"Good number:\"999", "Good number: 485"),
            ("485.800", "\"Pre:\"999\" Post:\" .999", "Pre: 485 Post: .800"),
            ("1234", "999", " ###"),
        ] {
            let digits = number.trim_start_matches('-');
            let shown = NumberForm::parse(form).unwrap().shown(digits != number, digits);
            assert_eq!(shown, expected, "{number} {form}");
        }
    }
}
