//! Functions of regular expressions. Crate `regex-lite` defines their meaning: its version is
//! exact, and a part of the rules by which logged calls run.

use super::similar;
use super::strings::bounded;
use crate::ir::PatternFunction;
use regex_lite::{Regex, RegexBuilder};
use values::{Array, Datum, Error, ITEMS_MAX, Result, SqlState, Type};

/// Limits in bytes of a compiled pattern, tried from the smallest: the one that fits bounds its
/// instructions.
const PATTERN_BYTES: [usize; 3] = [1 << 10, 4 << 10, 64 << 10];
/// The bytes of a compiled pattern that are made in a step.
const COMPILED_BYTES: usize = 128;
/// The smallest size of an instruction of a compiled pattern.
const INSTRUCTION_BYTES: usize = 16;
/// Limit of the work of one call: bytes of the text times instructions of the pattern.
const MATCH_STEPS_MAX: usize = 1 << 30;

/// Work that counts as one step of the statement, in the unit of [`MATCH_STEPS_MAX`].
const MATCH_OF_STEP: usize = 1 << 10;

/// Counts steps of the statement. Fails if they exceed its limit.
pub(super) type Count<'c> = dyn FnMut(u64) -> Result<()> + 'c;

/// A compiled pattern.
struct Pattern {
    text: Box<str>,
    any_case: bool,
    regex: Regex,
    instructions_max: usize,
}

/// The cache of compiled patterns of a statement: the last one.
#[derive(Default)]
pub(super) struct Patterns {
    last: Option<Pattern>,
}

/// Where a search begins, and what of it is asked for.
struct Wanted {
    /// The place of the first character, from 0.
    begin: usize,
    /// The number of the match, from 1; all matches if it is 0.
    number: usize,
}

impl Patterns {
    /// The result of a function, none of whose arguments is NULL.
    pub(super) fn call(
        &mut self,
        function: PatternFunction,
        arguments: &[Datum],
        count: &mut Count<'_>,
    ) -> Result<Datum> {
        use PatternFunction as P;
        match (function, arguments) {
            (P::OfSimilar, [Datum::Text(pattern), Datum::Text(escape)]) => {
                similar::pattern(pattern, escape).map(Datum::text)
            }
            (P::Matches, [Datum::Text(text), Datum::Text(pattern), Datum::Bool(any_case)]) => {
                self.matches(text, pattern, *any_case, count).map(Datum::Bool)
            }
            (P::Part, [Datum::Text(text), Datum::Text(pattern)]) => self.part(text, pattern, count),
            (_, [Datum::Text(text), Datum::Text(pattern), rest @ .., Datum::Text(flags)]) => {
                let (flags, searched) = (Flags::read(flags)?, Searched { text, pattern });
                flags.check(function)?;
                self.with_flags(function, searched, rest, flags, count)
            }
            _ => Err(malformed()),
        }
    }

    fn with_flags(
        &mut self,
        function: PatternFunction,
        Searched { text, pattern }: Searched<'_>,
        rest: &[Datum],
        flags: Flags,
        count: &mut Count<'_>,
    ) -> Result<Datum> {
        use PatternFunction as P;
        let pattern = self.read(pattern, flags, count)?;
        let mut search = Search { pattern, text, count };
        match (function, rest) {
            (P::Like, []) => search.is_match().map(Datum::Bool),
            (P::First, []) => {
                let mut found = search.groups(false)?;
                Ok(if found.is_empty() { Datum::Null } else { found.swap_remove(0) })
            }
            (P::Replace, [Datum::Text(with)]) => {
                let number = usize::from(!flags.is_global);
                search.replaced(with, &Wanted { begin: 0, number })
            }
            (P::Replace, [Datum::Text(with), Datum::Int4(begin), Datum::Int4(number)]) => {
                search.replaced(with, &Wanted::read(text, *begin, *number, 0)?)
            }
            (P::Split, []) => array(search.parts()?),
            (P::Count, [Datum::Int4(begin)]) => {
                let wanted = Wanted::read(text, *begin, 0, 0)?;
                let mut found = 0;
                search.from(&wanted, &mut |_| found += 1)?;
                Ok(Datum::Int4(found))
            }
            (P::Position, [Datum::Int4(begin), Datum::Int4(number), end, Datum::Int4(group)]) => {
                let is_end = match end {
                    Datum::Int4(0) => false,
                    Datum::Int4(1) => true,
                    other => return Err(refused_value("endoption", other)),
                };
                let wanted = Wanted::read(text, *begin, *number, 1)?;
                let found = search.group(&wanted, group_number(*group)?)?;
                let at = found.map(|(begin, end)| if is_end { end } else { begin });
                let place = at.map_or(0, |at| text[..at].chars().count() as i32 + 1);
                Ok(Datum::Int4(place))
            }
            (P::Substring, [Datum::Int4(begin), Datum::Int4(number), Datum::Int4(group)]) => {
                let wanted = Wanted::read(text, *begin, *number, 1)?;
                let found = search.group(&wanted, group_number(*group)?)?;
                Ok(found.map_or(Datum::Null, |(begin, end)| Datum::text(&text[begin..end])))
            }
            _ => Err(malformed()),
        }
    }

    /// `~` and `~*`
    pub(super) fn matches(
        &mut self,
        text: &str,
        pattern: &str,
        any_case: bool,
        count: &mut Count<'_>,
    ) -> Result<bool> {
        let flags = Flags { any_case, ..Flags::default() };
        let pattern = self.read(pattern, flags, count)?;
        Search { pattern, text, count }.is_match()
    }

    /// The first group of the first match, or the match if the pattern has no groups.
    fn part(&mut self, text: &str, pattern: &str, count: &mut Count<'_>) -> Result<Datum> {
        let pattern = self.read(pattern, Flags::default(), count)?;
        let mut part = Datum::Null;
        let mut search = Search { pattern, text, count };
        search.each(0, false, &mut |found| {
            let group = found.groups.get(1).or(found.groups.first()).copied().flatten();
            part = group.map_or(Datum::Null, Datum::text);
        })?;
        Ok(part)
    }

    /// The rows of `regexp_matches`, of text, pattern and flags: an array of the groups of each
    /// match, or of the whole match if the pattern has no groups; or those of
    /// `regexp_split_to_table`.
    pub(super) fn rows(
        &mut self,
        arguments: &[Datum],
        is_parts: bool,
        count: &mut Count<'_>,
    ) -> Result<Vec<Datum>> {
        let [Datum::Text(text), Datum::Text(pattern), Datum::Text(flags)] = arguments else {
            return Ok(Vec::new());
        };
        let flags = Flags::read(flags)?;
        if is_parts {
            flags.check(PatternFunction::Split)?;
        }
        let pattern = self.read(pattern, flags, count)?;
        let mut search = Search { pattern, text, count };
        if is_parts { search.parts() } else { search.groups(flags.is_global) }
    }

    /// Compiles a pattern, unless it is the last one that was used.
    fn read(&mut self, text: &str, flags: Flags, count: &mut Count<'_>) -> Result<&Pattern> {
        let any_case = flags.any_case;
        let plain = if flags.is_plain { regex_lite::escape(text) } else { text.to_owned() };
        let is_it = |last: &Pattern| *last.text == *plain && last.any_case == any_case;
        let last = match self.last.take().filter(is_it) {
            Some(last) => last,
            None => Pattern::read(&plain, any_case, count)?,
        };
        Ok(self.last.insert(last))
    }
}

/// The error of arguments that the binder never makes.
fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan has a malformed regular expression")
}

fn array(items: Vec<Datum>) -> Result<Datum> {
    Array::new(Type::Text, items).map(|array| Datum::Array(Box::new(array)))
}

/// Refuses more matches than an array may have items.
fn few(count: usize) -> Result<()> {
    if count > ITEMS_MAX {
        let message = format!("a regular expression has more than {ITEMS_MAX} matches");
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
    }
    Ok(())
}

fn refused_value(name: &str, value: &Datum) -> Error {
    let shown = values::text::print(value, &values::Zone::utc());
    let message = format!("invalid value for parameter \"{name}\": {shown}");
    Error::new(SqlState::INVALID_PARAMETER, message)
}

fn group_number(group: i32) -> Result<usize> {
    usize::try_from(group).map_err(|_| refused_value("subexpr", &Datum::Int4(group)))
}

/// A text and the pattern that is searched for in it.
struct Searched<'t> {
    text: &'t str,
    pattern: &'t str,
}

impl Wanted {
    /// What the arguments `start` and `N` ask for; `N` is at least `least`.
    fn read(text: &str, begin: i32, number: i32, least: i32) -> Result<Wanted> {
        if begin < 1 {
            return Err(refused_value("start", &Datum::Int4(begin)));
        }
        if number < least {
            return Err(refused_value("n", &Datum::Int4(number)));
        }
        let mut places = text.char_indices().map(|(at, _)| at);
        let begin = places.nth(begin as usize - 1).unwrap_or(match text.chars().count() + 1 {
            end if end == begin as usize => text.len(),
            _ => text.len() + 1,
        });
        Ok(Wanted { begin, number: number as usize })
    }
}

/// The options of a pattern, from the letters of the flags argument.
#[derive(Clone, Copy, Default)]
struct Flags {
    any_case: bool,
    is_global: bool,
    /// Whether the pattern is text that stands for itself.
    is_plain: bool,
}

impl Flags {
    fn read(text: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in text.chars() {
            match letter {
                'g' => flags.is_global = true,
                'i' => flags.any_case = true,
                'c' => flags.any_case = false,
                'q' => flags.is_plain = true,
                // Newlines are not special, and patterns have tight syntax: the defaults here.
                's' | 't' => {}
                'b' | 'e' | 'm' | 'n' | 'p' | 'w' | 'x' => {
                    let message = format!("regular expression option \"{letter}\"");
                    return Err(Error::unsupported(message, "The options g, i, c, q and s are."));
                }
                _ => {
                    let message = format!("invalid regular expression option: \"{letter}\"");
                    return Err(Error::new(SqlState::INVALID_PARAMETER, message));
                }
            }
        }
        Ok(flags)
    }

    /// Refuses the flag for all matches where it is none.
    fn check(self, function: PatternFunction) -> Result<()> {
        use PatternFunction as P;
        let (name, hint) = match function {
            P::First => ("regexp_match", "Use the regexp_matches function instead."),
            P::Like => ("regexp_like", ""),
            P::Count => ("regexp_count", ""),
            P::Position => ("regexp_instr", ""),
            P::Substring => ("regexp_substr", ""),
            P::Split => ("regexp_split_to_array", ""),
            _ => return Ok(()),
        };
        if !self.is_global {
            return Ok(());
        }
        let message = format!("{name}() does not support the \"global\" option");
        let error = Error::new(SqlState::INVALID_PARAMETER, message);
        Err(if hint.is_empty() { error } else { error.with_hint(hint) })
    }
}

/// A match of a pattern.
struct Found<'t> {
    /// The whole match, then the match of each group; `None` for a group that took no part.
    groups: Vec<Option<&'t str>>,
    /// The begin and the end of each.
    places: Vec<Option<(usize, usize)>>,
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

    fn read(text: &str, any_case: bool, count: &mut Count<'_>) -> Result<Pattern> {
        bounded(text.len())?;
        let mut read = |bytes_max: usize| {
            count(((bytes_max + 16 * text.len()) / COMPILED_BYTES) as u64)?;
            let mut builder = RegexBuilder::new(text);
            builder.case_insensitive(any_case).dot_matches_new_line(true).size_limit(bytes_max);
            let instructions_max = bytes_max / INSTRUCTION_BYTES;
            let pattern = |regex| Pattern { text: text.into(), any_case, regex, instructions_max };
            Ok(builder.build().map(pattern))
        };
        let mut last = None;
        for bytes_max in PATTERN_BYTES {
            match read(bytes_max)? {
                Ok(pattern) => return Ok(pattern),
                Err(error) => last = Some(error),
            }
        }
        let shown = last.map(|error| error.to_string()).unwrap_or_default();
        let message = format!("invalid regular expression: {shown}");
        Err(Error::new(SqlState::INVALID_REGULAR_EXPRESSION, message))
    }
}

/// A search for a pattern in a text.
struct Search<'s, 'c> {
    pattern: &'s Pattern,
    text: &'s str,
    count: &'s mut Count<'c>,
}

impl Search<'_, '_> {
    /// Whether there is a match.
    fn is_match(&mut self) -> Result<bool> {
        self.pattern.count(self.text.len(), &mut 0)?;
        (self.count)(self.pattern.steps(self.text.len()))?;
        Ok(self.pattern.regex.is_match(self.text))
    }

    /// Calls `each` with the first match, or with all matches in order if `is_global`.
    fn each(
        &mut self,
        begin: usize,
        is_global: bool,
        each: &mut dyn FnMut(Found<'_>),
    ) -> Result<()> {
        let (text, mut from, mut done) = (self.text, begin, 0);
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
            let places = found.iter().map(|group| group.map(|group| (group.start(), group.end())));
            each(Found { groups: groups.collect(), places: places.collect(), begin, end });
            if !is_global {
                break;
            }
            let next = text[end..].chars().next().map_or(1, char::len_utf8);
            from = if begin == end { end + next } else { end };
        }
        Ok(())
    }

    /// Calls `each` with the matches that are wanted.
    fn from(&mut self, wanted: &Wanted, each: &mut dyn FnMut(Found<'_>)) -> Result<()> {
        let mut number = 0;
        self.each(wanted.begin, wanted.number != 1, &mut |found| {
            number += 1;
            if wanted.number == 0 || wanted.number == number {
                each(found);
            }
        })
    }

    /// The groups of the first match, or of each: an array of them, or of the whole match if the
    /// pattern has no groups.
    fn groups(&mut self, is_global: bool) -> Result<Vec<Datum>> {
        let mut found: Vec<Vec<Datum>> = Vec::new();
        self.each(0, is_global, &mut |one| {
            let begin = usize::from(one.groups.len() > 1);
            let groups = one.groups[begin..].iter();
            if found.len() <= ITEMS_MAX {
                found.push(groups.map(|group| group.map_or(Datum::Null, Datum::text)).collect());
            }
        })?;
        few(found.len())?;
        found.into_iter().map(array).collect()
    }

    /// The place of a group of the match that is wanted; 0 is the whole match, and so is 1 of a
    /// pattern without groups.
    fn group(&mut self, wanted: &Wanted, group: usize) -> Result<Option<(usize, usize)>> {
        let mut place = None;
        self.from(wanted, &mut |found| {
            let group = if found.places.len() == 1 && group == 1 { 0 } else { group };
            place = found.places.get(group).copied().flatten();
        })?;
        Ok(place)
    }

    /// The text with the matches that are wanted replaced.
    fn replaced(&mut self, with: &str, wanted: &Wanted) -> Result<Datum> {
        let (text, mut replaced, mut behind) = (self.text, String::new(), 0);
        let mut is_long = Ok(());
        self.from(wanted, &mut |found| {
            if is_long.is_ok() {
                replaced.push_str(&text[behind..found.begin]);
                push_replacement(with, &found.groups, &mut replaced);
                behind = found.end;
                is_long = bounded(replaced.len());
            }
        })?;
        is_long?;
        replaced.push_str(&text[behind..]);
        bounded(replaced.len())?;
        Ok(Datum::text(replaced))
    }

    /// The parts of the text between matches. A match of nothing at the begin or the end of the
    /// text, or behind another match, divides nothing.
    fn parts(&mut self) -> Result<Vec<Datum>> {
        let (text, mut parts, mut behind) = (self.text, Vec::new(), 0);
        self.each(0, true, &mut |found| {
            let is_empty = found.begin == found.end;
            if is_empty && (found.begin == behind || found.begin == text.len()) {
                return;
            }
            if parts.len() <= ITEMS_MAX {
                parts.push(Datum::text(&text[behind..found.begin]));
            }
            behind = found.end;
        })?;
        few(parts.len())?;
        parts.push(Datum::text(&text[behind..]));
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> Result<Datum> {
        let arguments = [Datum::text(text), Datum::text(pattern), Datum::Bool(false)];
        Patterns::default().call(PatternFunction::Matches, &arguments, &mut |_| Ok(()))
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
            Patterns::default().call(PatternFunction::Replace, &arguments, &mut |_| Ok(()))
        };
        assert_eq!(replaced("ab").unwrap(), Datum::text("-a-b-"));
        assert_eq!(replaced(&long).unwrap_err().state(), SqlState::LIMIT_EXCEEDED);
        let large = matches("a", "((a{100}){100}){100}").unwrap_err();
        assert_eq!(large.state(), SqlState::INVALID_REGULAR_EXPRESSION);
    }
}
