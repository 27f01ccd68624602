//! Regular expressions of `~` and `regexp_replace`. Crate `regex-lite` defines their meaning, and a
//! later version of it may change that, so statements that are logged must not use them.

use regex_lite::{Regex, RegexBuilder};
use values::{Array, Datum, Error, Result, SqlState, Type};

/// Limits in bytes of a compiled pattern, tried from the smallest: the one that fits bounds its
/// instructions.
const PATTERN_BYTES: [usize; 3] = [1 << 10, 4 << 10, 64 << 10];
/// The smallest size of an instruction of a compiled pattern.
const INSTRUCTION_BYTES: usize = 16;
/// Limit of the work of one call: bytes of the text times instructions of the pattern.
const MATCH_STEPS_MAX: usize = 1 << 30;

/// Work that counts as one step of the statement, in the unit of [`MATCH_STEPS_MAX`].
const MATCH_OF_STEP: usize = 1 << 10;

/// Counts steps of the statement. Fails if they exceed its limit.
pub(crate) type Count<'c> = dyn FnMut(u64) -> Result<()> + 'c;

/// A compiled pattern.
struct Pattern {
    text: Box<str>,
    any_case: bool,
    regex: Regex,
    instructions_max: usize,
}

/// The cache of compiled patterns of a statement: the last one.
#[derive(Default)]
pub(crate) struct Patterns {
    last: Option<Pattern>,
}

impl Patterns {
    /// Evaluates `~` and `~*`. `arguments` are text, pattern, and whether to ignore case; other
    /// types give NULL.
    pub(crate) fn matches(&mut self, arguments: &[Datum], count: &mut Count<'_>) -> Result<Datum> {
        let [Datum::Text(text) | Datum::Char(text), Datum::Text(pattern), Datum::Bool(any_case)] =
            arguments
        else {
            return Ok(Datum::Null);
        };
        let pattern = self.read(pattern, *any_case)?;
        pattern.count(text.len(), &mut 0)?;
        count(pattern.steps(text.len()))?;
        Ok(Datum::Bool(pattern.regex.is_match(text)))
    }

    /// Evaluates `regexp_replace`. `arguments` are text, pattern, replacement and flags.
    pub(crate) fn replace(&mut self, arguments: &[Datum], count: &mut Count<'_>) -> Result<Datum> {
        let [Datum::Text(text), Datum::Text(pattern), Datum::Text(with), Datum::Text(flags)] =
            arguments
        else {
            return Ok(Datum::Null);
        };
        let flags = Flags::read(flags)?;
        let pattern = self.read(pattern, flags.any_case)?;
        let (mut replaced, mut behind) = (String::new(), 0);
        let mut search = Search { pattern, text, count };
        search.each(flags.is_global, &mut |found| {
            replaced.push_str(&text[behind..found.begin]);
            push_replacement(with, &found.groups, &mut replaced);
            behind = found.end;
        })?;
        replaced.push_str(&text[behind..]);
        Ok(Datum::text(replaced))
    }

    /// Evaluates `regexp_match`: the groups of the first match; NULL without one. `arguments` are
    /// text, pattern and flags.
    pub(crate) fn first(&mut self, arguments: &[Datum], count: &mut Count<'_>) -> Result<Datum> {
        if let [_, _, Datum::Text(flags)] = arguments
            && Flags::read(flags)?.is_global
        {
            let message = "regexp_match() does not support the \"global\" option";
            return Err(Error::new(SqlState::INVALID_PARAMETER, message)
                .with_hint("Use the regexp_matches function instead."));
        }
        Ok(self.all(arguments, count)?.into_iter().next().unwrap_or(Datum::Null))
    }

    /// Evaluates `regexp_matches`: an array of the groups of each match, or of the whole match if
    /// the pattern has no groups. `arguments` are text, pattern and flags.
    pub(crate) fn all(&mut self, arguments: &[Datum], count: &mut Count<'_>) -> Result<Vec<Datum>> {
        let [Datum::Text(text), Datum::Text(pattern), Datum::Text(flags)] = arguments else {
            return Ok(Vec::new());
        };
        let flags = Flags::read(flags)?;
        let pattern = self.read(pattern, flags.any_case)?;
        let mut found: Vec<Vec<Datum>> = Vec::new();
        let mut search = Search { pattern, text, count };
        search.each(flags.is_global, &mut |one| {
            let begin = usize::from(one.groups.len() > 1);
            let groups = one.groups[begin..].iter();
            found.push(groups.map(|group| group.map_or(Datum::Null, Datum::text)).collect());
        })?;
        let array =
            |items| Array::new(Type::Text, items).map(|array| Datum::Array(Box::new(array)));
        found.into_iter().map(array).collect()
    }

    /// Compiles a pattern, unless it is the last one that was used.
    fn read(&mut self, text: &str, any_case: bool) -> Result<&Pattern> {
        let is_it = |last: &Pattern| *last.text == *text && last.any_case == any_case;
        let last = match self.last.take().filter(is_it) {
            Some(last) => last,
            None => Pattern::read(text, any_case)?,
        };
        Ok(self.last.insert(last))
    }
}

/// The options of a pattern, from the letters of the flags argument.
#[derive(Clone, Copy, Default)]
struct Flags {
    any_case: bool,
    is_global: bool,
}

impl Flags {
    fn read(text: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in text.chars() {
            match letter {
                'g' => flags.is_global = true,
                'i' => flags.any_case = true,
                'c' => flags.any_case = false,
                // Newlines are not special, and patterns have tight syntax: the defaults here.
                's' | 't' => {}
                'b' | 'e' | 'm' | 'n' | 'p' | 'q' | 'w' | 'x' => {
                    let message = format!("regular expression option \"{letter}\"");
                    return Err(Error::unsupported(message, "The options g, i, c and s are."));
                }
                _ => {
                    let message = format!("invalid regular expression option: \"{letter}\"");
                    return Err(Error::new(SqlState::INVALID_PARAMETER, message));
                }
            }
        }
        Ok(flags)
    }
}

/// A match of a pattern.
struct Found<'t> {
    /// The whole match, then the match of each group; `None` for a group that took no part.
    groups: Vec<Option<&'t str>>,
    begin: usize,
    end: usize,
}

/// Appends the replacement `with` to `replaced`: `\1` to `\9` insert the match of a group, `\&` the
/// whole match.
fn push_replacement(with: &str, groups: &[Option<&str>], replaced: &mut String) {
    let mut letters = with.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().filter(|_| letter == '\\');
        let group = match next {
            Some('&') => Some(0),
            Some(digit) => digit.to_digit(10).filter(|digit| *digit > 0),
            None => None,
        };
        match (group, next) {
            (Some(group), _) => {
                letters.next();
                replaced.push_str(groups.get(group as usize).copied().flatten().unwrap_or(""));
            }
            (None, Some('\\')) => {
                letters.next();
                replaced.push('\\');
            }
            _ => replaced.push(letter),
        }
    }
}

impl Pattern {
    /// Returns the steps of the statement that a search through `bytes` takes.
    fn steps(&self, bytes: usize) -> u64 {
        ((bytes + 1).saturating_mul(self.instructions_max) / MATCH_OF_STEP) as u64
    }

    /// Adds a search through `bytes` to the work `done` by a call. Fails beyond
    /// [`MATCH_STEPS_MAX`].
    fn count(&self, bytes: usize, done: &mut usize) -> Result<()> {
        *done = done.saturating_add((bytes + 1).saturating_mul(self.instructions_max));
        if *done > MATCH_STEPS_MAX {
            let message = "regular expression is too expensive for a text of this length";
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        Ok(())
    }

    fn read(text: &str, any_case: bool) -> Result<Pattern> {
        let read = |bytes_max| {
            let mut builder = RegexBuilder::new(text);
            builder.case_insensitive(any_case).dot_matches_new_line(true).size_limit(bytes_max);
            let instructions_max = bytes_max / INSTRUCTION_BYTES;
            let pattern = |regex| Pattern { text: text.into(), any_case, regex, instructions_max };
            builder.build().map(pattern)
        };
        let [few, more, many] = PATTERN_BYTES;
        read(few).or_else(|_| read(more)).or_else(|_| read(many)).map_err(|error| {
            let message = format!("invalid regular expression: {error}");
            Error::new(SqlState::INVALID_REGULAR_EXPRESSION, message)
        })
    }
}

/// A search for a pattern in a text.
struct Search<'s, 'c> {
    pattern: &'s Pattern,
    text: &'s str,
    count: &'s mut Count<'c>,
}

impl Search<'_, '_> {
    /// Calls `each` with the first match, or with all matches in order if `is_global`.
    fn each(&mut self, is_global: bool, each: &mut dyn FnMut(Found<'_>)) -> Result<()> {
        let (text, mut from, mut done) = (self.text, 0, 0);
        while from <= text.len() {
            self.pattern.count(text.len() - from, &mut done)?;
            let found = self.pattern.regex.captures_at(text, from);
            // A search reads the text up to the end of its match.
            let end =
                found.as_ref().and_then(|found| found.get(0)).map_or(text.len(), |it| it.end());
            (self.count)(self.pattern.steps(end - from))?;
            let Some(found) = found else { break };
            let Some(whole) = found.get(0) else { break };
            let (begin, end) = (whole.start(), whole.end());
            let groups = found.iter().map(|group| group.map(|group| group.as_str()));
            each(Found { groups: groups.collect(), begin, end });
            if !is_global {
                break;
            }
            let next = text[end..].chars().next().map_or(1, char::len_utf8);
            from = if begin == end { end + next } else { end };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> Result<Datum> {
        let arguments = [Datum::text(text), Datum::text(pattern), Datum::Bool(false)];
        Patterns::default().matches(&arguments, &mut |_| Ok(()))
    }

    #[test]
    fn what_would_take_long_is_refused_before_it_begins() {
        let long = "a".repeat(4 << 20);
        assert_eq!(matches(&long, "^(b|c).*$").unwrap(), Datum::Bool(false));
        // Short, and thousands of instructions for each character.
        assert_eq!(matches(&long, "(a{40}){40}b").unwrap_err().state(), SqlState::LIMIT_EXCEEDED);
        assert_eq!(matches(&long[..2_000], "(a{40}){40}").unwrap(), Datum::Bool(true));
        // An empty match at each place, each of which may look at all that is behind it.
        let replaced = |text: &str| {
            let arguments = [text, "", "-", "g"].map(Datum::text);
            Patterns::default().replace(&arguments, &mut |_| Ok(()))
        };
        assert_eq!(replaced("ab").unwrap(), Datum::text("-a-b-"));
        assert_eq!(replaced(&long).unwrap_err().state(), SqlState::LIMIT_EXCEEDED);
        let large = matches("a", "((a{100}){100}){100}").unwrap_err();
        assert_eq!(large.state(), SqlState::INVALID_REGULAR_EXPRESSION);
    }
}
