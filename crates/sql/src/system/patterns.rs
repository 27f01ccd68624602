//! Regular expressions of `~`. Their meaning is that of crate `regex-lite`, which may change with
//! it: so only queries have them.

use regex_lite::{Regex, RegexBuilder};
use values::{Datum, Error, Result, SqlState};

/// The bytes that a pattern may take once it is read: few, or else many.
const PATTERN_BYTES: [usize; 2] = [4 << 10, 64 << 10];
/// At least so many of them are of one instruction.
const INSTRUCTION_BYTES: usize = 16;
/// The most steps that a match may take: length of the text times instructions of the pattern.
const MATCH_STEPS_MAX: usize = 1 << 30;

/// A pattern that was read.
struct Pattern {
    text: Box<str>,
    any_case: bool,
    regex: Regex,
    instructions_max: usize,
}

/// Patterns that a statement has used.
#[derive(Default)]
pub(crate) struct Patterns {
    last: Option<Pattern>,
}

impl Patterns {
    /// Whether a text matches a pattern: text, pattern, whether case is ignored.
    pub(crate) fn matches(&mut self, arguments: &[Datum]) -> Result<Datum> {
        let [Datum::Text(text), Datum::Text(pattern), Datum::Bool(any_case)] = arguments else {
            return Ok(Datum::Null);
        };
        let is_it = |last: &Pattern| last.text == *pattern && last.any_case == *any_case;
        let last = match self.last.take().filter(is_it) {
            Some(last) => last,
            None => Pattern::read(pattern, *any_case)?,
        };
        let last = self.last.insert(last);
        if text.len().saturating_mul(last.instructions_max) > MATCH_STEPS_MAX {
            let message = "regular expression is too expensive for a text of this length";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        Ok(Datum::Bool(last.regex.is_match(text)))
    }
}

impl Pattern {
    fn read(text: &str, any_case: bool) -> Result<Pattern> {
        let read = |bytes_max| {
            let mut builder = RegexBuilder::new(text);
            builder.case_insensitive(any_case).dot_matches_new_line(true).size_limit(bytes_max);
            let instructions_max = bytes_max / INSTRUCTION_BYTES;
            let pattern = |regex| Pattern { text: text.into(), any_case, regex, instructions_max };
            builder.build().map(pattern)
        };
        let [few, many] = PATTERN_BYTES;
        read(few).or_else(|_| read(many)).map_err(|error| {
            let message = format!("invalid regular expression: {error}");
            Error::new(SqlState::INVALID_REGULAR_EXPRESSION, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> Result<Datum> {
        let arguments = [Datum::text(text), Datum::text(pattern), Datum::Bool(false)];
        Patterns::default().matches(&arguments)
    }

    #[test]
    fn what_would_take_long_is_refused_before_it_begins() {
        let long = "a".repeat(4 << 20);
        assert_eq!(matches(&long, "^(b|c).*$").unwrap(), Datum::Bool(false));
        // Short, and thousands of instructions for each character.
        assert_eq!(matches(&long, "(a{40}){40}b").unwrap_err().state(), SqlState::LIMIT_EXCEEDED);
        assert_eq!(matches(&long[..2_000], "(a{40}){40}").unwrap(), Datum::Bool(true));
        let large = matches("a", "((a{100}){100}){100}").unwrap_err();
        assert_eq!(large.state(), SqlState::INVALID_REGULAR_EXPRESSION);
    }
}
