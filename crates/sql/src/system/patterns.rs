//! Regular expressions of `~`. Their meaning is that of crate `regex-lite`, which may change with
//! it: so only queries have them.

use regex_lite::{Regex, RegexBuilder};
use values::{Datum, Error, Result, SqlState};

/// The most bytes that a pattern may take once it is read.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The most steps that a match may take: length of the text times that of the pattern.
const MATCH_STEPS_MAX: usize = 1 << 28;

/// Patterns that a statement has used.
#[derive(Default)]
pub(crate) struct Patterns {
    last: Option<(Box<str>, bool, Regex)>,
}

impl Patterns {
    /// Whether a text matches a pattern: text, pattern, whether case is ignored.
    pub(crate) fn matches(&mut self, arguments: &[Datum]) -> Result<Datum> {
        let [Datum::Text(text), Datum::Text(pattern), Datum::Bool(any_case)] = arguments else {
            return Ok(Datum::Null);
        };
        if text.len().saturating_mul(pattern.len()) > MATCH_STEPS_MAX {
            let message = "regular expression is too expensive for a text of this length";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        let is_last = |(own, case, _): &(Box<str>, bool, Regex)| own == pattern && case == any_case;
        if !self.last.as_ref().is_some_and(is_last) {
            let regex = read(pattern, *any_case)?;
            self.last = Some((pattern.clone(), *any_case, regex));
        }
        let (_, _, regex) = self.last.as_ref().expect("it was set");
        Ok(Datum::Bool(regex.is_match(text)))
    }
}

fn read(pattern: &str, any_case: bool) -> Result<Regex> {
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(any_case)
        .dot_matches_new_line(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build();
    regex.map_err(|error| {
        let message = format!("invalid regular expression: {error}");
        Error::new(SqlState::INVALID_REGULAR_EXPRESSION, message)
    })
}
