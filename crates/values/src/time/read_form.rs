//! Points in time of text by a stated form: `to_date` and `to_timestamp`.

use super::civil::Civil;
use super::date::Date;
use super::shown::{DAYS, MONTHS, written_pattern};
use super::timestamp::Timestamp;
use crate::numeric::quoted_text;
use crate::{Error, Result, SqlState};

/// A part of a form.
#[derive(Debug)]
enum Node {
    /// A pattern in large letters, whether it is without a fixed length, and with `TH`.
    Field(String, bool, bool),
    /// A blank or a sign.
    Separator,
    /// Any other character.
    Char(char),
}

/// What was read.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    microseconds: i64,
    second_of_day: Option<i64>,
    is_half: bool,
    is_afternoon: Option<bool>,
    is_before_christ: bool,
    offset: Option<(i64, i64, i64)>,
}

/// A point in time as it was read: local, or of the zone so many seconds before UTC.
pub struct Read {
    /// The date and the time of the day.
    pub local: Timestamp,
    /// The seconds that its clocks are before those of UTC, if they were stated.
    pub offset_seconds: Option<i32>,
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_DATETIME, message)
}

fn nodes(form: &str) -> Result<Vec<Node>> {
    let (mut nodes, mut rest, mut fills) = (Vec::new(), form, true);
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let (quoted, behind) = quoted_text(&rest[1..]);
            nodes.extend(quoted.chars().map(Node::Char));
            rest = behind;
            continue;
        }
        if rest.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case("FM")) {
            (fills, rest) = (false, &rest[2..]);
            continue;
        }
        if let Some(written) = written_pattern(rest) {
            rest = &rest[written.len()..];
            let has_end = rest.get(..2).is_some_and(|end| end.eq_ignore_ascii_case("th"));
            rest = if has_end { &rest[2..] } else { rest };
            nodes.push(Node::Field(written.to_ascii_uppercase(), !fills, has_end));
            fills = true;
            continue;
        }
        let escaped = rest.strip_prefix("\\\"");
        rest = escaped.unwrap_or(&rest[first.len_utf8()..]);
        nodes.push(match first {
            _ if escaped.is_some() => Node::Char('"'),
            c if is_separator(c) => Node::Separator,
            c => Node::Char(c),
        });
    }
    Ok(nodes)
}

fn is_separator(c: char) -> bool {
    c.is_ascii() && (c.is_ascii_whitespace() || c.is_ascii_punctuation())
}

/// Reads a text by a form. What the form does not state is that of the first moment of year 1 BC.
pub fn read_form(text: &str, form: &str) -> Result<Read> {
    let nodes = nodes(form)?;
    let mut source = Source { rest: text };
    let (mut fields, mut skipped) = (Fields::default(), 0_i64);
    for (at, node) in nodes.iter().enumerate() {
        if !matches!(node, Node::Char(_)) || at == 0 {
            skipped += source.skip_blanks();
        }
        match node {
            Node::Separator => {
                skipped -= 1;
                if source.rest.starts_with(is_separator) {
                    source.skip(1);
                    skipped += 1;
                }
            }
            Node::Char(_) if skipped > 0 => skipped -= 1,
            Node::Char(_) => source.skip(1),
            Node::Field(name, is_open, has_end) => {
                if source.rest.is_empty() {
                    break;
                }
                let is_open = *is_open || *has_end || ends_number(nodes.get(at + 1));
                fields.read(name, is_open, &mut source)?;
                if *has_end {
                    source.skip(2);
                }
                skipped = source.skip_blanks();
            }
        }
    }
    fields.done(text)
}

/// True if a number ends before the node, whatever its length is.
fn ends_number(next: Option<&Node>) -> bool {
    const WORDS: [&str; 14] = [
        "MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "BC", "AD", "B.C.", "A.D.", "TZ",
        "RM",
    ];
    match next {
        None | Some(Node::Separator) => true,
        Some(Node::Field(name, ..)) => WORDS.contains(&name.as_str()),
        Some(Node::Char(c)) => !c.is_ascii_digit(),
    }
}

/// What is left of the text.
struct Source<'t> {
    rest: &'t str,
}

impl Source<'_> {
    fn skip(&mut self, count: usize) {
        let end = self.rest.char_indices().nth(count).map_or(self.rest.len(), |(at, _)| at);
        self.rest = &self.rest[end..];
    }

    fn skip_blanks(&mut self) -> i64 {
        let trimmed = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let count = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        count as i64
    }

    /// A whole number of so many characters, or of any number of them; and how many it had.
    fn number(&mut self, name: &str, length: usize, is_open: bool) -> Result<(i64, usize)> {
        self.skip_blanks();
        let limit = if is_open { usize::MAX } else { length };
        let signs = usize::from(self.rest.starts_with(['-', '+']));
        let digits = self.rest[signs..].bytes().take(limit.saturating_sub(signs));
        let digits = digits.take_while(u8::is_ascii_digit).count();
        let used = signs + digits;
        let shown: String = self.rest.chars().take(length).collect();
        if digits == 0 {
            let message = format!("invalid value \"{shown}\" for \"{name}\"");
            return Err(invalid(message).with_detail("Value must be an integer."));
        }
        if !is_open && self.rest.len() < length {
            let message = format!("source string too short for \"{name}\" formatting field");
            let remain = self.rest.len();
            let detail = format!("Field requires {length} characters, but only {remain} remain.");
            return Err(invalid(message).with_detail(detail));
        }
        if !is_open && used < length {
            let message = format!("invalid value \"{shown}\" for \"{name}\"");
            let detail =
                format!("Field requires {length} characters, but only {used} could be parsed.");
            return Err(invalid(message).with_detail(detail));
        }
        let number = self.rest[..used].parse::<i32>().map_err(|_| {
            let message = format!("value for \"{name}\" in source string is out of range");
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
        })?;
        self.rest = &self.rest[used..];
        Ok((i64::from(number), used))
    }

    /// The place of the name that the text begins with.
    fn name(&mut self, pattern: &str, names: &[&str]) -> Result<usize> {
        let begins = |name: &str| {
            self.rest.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let found = names.iter().position(|name| begins(name)).ok_or_else(|| {
            let shown: String = self.rest.chars().take_while(|c| !is_separator(*c)).collect();
            let message = format!("invalid value \"{shown}\" for \"{pattern}\"");
            let detail = "The given value did not match any of the allowed values for this field.";
            invalid(message).with_detail(detail)
        })?;
        self.rest = &self.rest[names[found].len()..];
        Ok(found)
    }
}

/// Sets a field, which has no other value yet.
fn set(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    if field.is_some_and(|own| own != value) {
        let message = format!("conflicting values for \"{name}\" field in formatting string");
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(invalid(message).with_detail(detail));
    }
    *field = Some(value);
    Ok(())
}

/// A year of fewer than four digits: the one that is nearest to 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        0..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

impl Fields {
    fn read(&mut self, name: &str, is_open: bool, source: &mut Source<'_>) -> Result<()> {
        let short =
            |names: &[&'static str]| names.iter().map(|name| &name[..3]).collect::<Vec<_>>();
        match name {
            "YYYY" | "YYY" | "YY" | "Y" => {
                let (year, used) = source.number(name, name.len(), is_open)?;
                let is_short = used < 4 && name != "YYYY";
                set(&mut self.year, if is_short { near_2020(year) } else { year }, name)?;
            }
            "MONTH" => {
                let found = source.name(name, &MONTHS)?;
                set(&mut self.month, found as i64 + 1, name)?;
            }
            "MON" => {
                let found = source.name(name, &short(&MONTHS))?;
                set(&mut self.month, found as i64 + 1, name)?;
            }
            "DAY" => drop(source.name(name, &DAYS)?),
            "DY" => drop(source.name(name, &short(&DAYS))?),
            "MM" => set(&mut self.month, source.number(name, 2, is_open)?.0, name)?,
            "DD" => set(&mut self.day, source.number(name, 2, is_open)?.0, name)?,
            "DDD" => set(&mut self.day_of_year, source.number(name, 3, is_open)?.0, name)?,
            "WW" => set(&mut self.week, source.number(name, 2, is_open)?.0, name)?,
            "W" => set(&mut self.week_of_month, source.number(name, 1, is_open)?.0, name)?,
            "D" | "Q" => drop(source.number(name, 1, is_open)?),
            "J" => set(&mut self.julian, source.number(name, 7, true)?.0, name)?,
            "BC" | "AD" => self.is_before_christ = source.name(name, &["BC", "AD"])? == 0,
            "B.C." | "A.D." => self.is_before_christ = source.name(name, &["B.C.", "A.D."])? == 0,
            _ => return self.read_time(name, is_open, source),
        }
        Ok(())
    }

    fn read_time(&mut self, name: &str, is_open: bool, source: &mut Source<'_>) -> Result<()> {
        match name {
            "HH24" => self.hour = source.number(name, 2, is_open)?.0,
            "HH12" | "HH" => {
                self.is_half = true;
                self.hour = source.number(name, 2, is_open)?.0;
            }
            "MI" => self.minute = source.number(name, 2, is_open)?.0,
            "SS" => self.second = source.number(name, 2, is_open)?.0,
            "MS" | "US" => {
                let digits = if name == "MS" { 3 } else { 6 };
                let (value, used) = source.number(name, digits, is_open)?;
                let scale = 10_i64.pow(6_u32.saturating_sub(used as u32));
                self.microseconds += value.saturating_mul(scale);
                if used > digits {
                    let message = format!("value for \"{name}\" in source string is out of range");
                    return Err(Error::new(SqlState::DATETIME_OUT_OF_RANGE, message));
                }
            }
            "SSSS" | "SSSSS" => self.second_of_day = Some(source.number(name, 5, is_open)?.0),
            "AM" | "PM" => {
                self.is_half = true;
                self.is_afternoon = Some(source.name(name, &["AM", "PM"])? == 1);
            }
            "A.M." | "P.M." => {
                self.is_half = true;
                self.is_afternoon = Some(source.name(name, &["A.M.", "P.M."])? == 1);
            }
            "TZH" => {
                let sign = if source.rest.starts_with('-') { -1 } else { 1 };
                if source.rest.starts_with(['-', '+', ' ']) {
                    source.skip(1);
                }
                let hours = source.number(name, 2, is_open)?.0;
                self.offset = Some((sign, hours, self.offset.map_or(0, |(.., minutes)| minutes)));
            }
            "TZM" => {
                let minutes = source.number(name, 2, is_open)?.0;
                let (sign, hours, _) = self.offset.unwrap_or((1, 0, 0));
                self.offset = Some((sign, hours, minutes));
            }
            _ => {
                let message = format!("pattern \"{name}\" of to_date and to_timestamp");
                return Err(Error::unsupported(message, ""));
            }
        }
        Ok(())
    }

    fn done(mut self, text: &str) -> Result<Read> {
        let beyond = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
        };
        if self.is_half {
            if !(1..=12).contains(&self.hour) {
                let message = format!("hour \"{}\" is invalid for the 12-hour clock", self.hour);
                let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
                return Err(invalid(message).with_hint(hint));
            }
            self.hour = match (self.is_afternoon, self.hour) {
                (Some(true), hour @ ..12) => hour + 12,
                (Some(false) | None, 12) => 0,
                (_, hour) => hour,
            };
        }
        if let Some(seconds) = self.second_of_day {
            if !(0..86_400).contains(&seconds) {
                return Err(beyond());
            }
            (self.hour, self.minute, self.second) =
                (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        }
        let is_time = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        if !is_time || !(0..1_000_000).contains(&self.microseconds) {
            return Err(beyond());
        }
        let days = self.days().ok_or_else(beyond)??;
        let midnight = Date::from_days(days)?.midnight()?;
        let seconds = self.hour * 3_600 + self.minute * 60 + self.second;
        let time = i128::from(seconds * 1_000_000 + self.microseconds);
        let local = Timestamp::from_microseconds(i128::from(midnight.bits()) + time)?;
        let offset = self.offset.map(|(sign, hours, minutes)| sign * (hours * 60 + minutes) * 60);
        let offset_seconds = offset.map(|seconds| i32::try_from(seconds).map_err(|_| beyond()));
        Ok(Read { local, offset_seconds: offset_seconds.transpose()? })
    }

    /// The days since 2000-01-01; `None` if the calendar has no such day.
    fn days(&self) -> Option<Result<i64>> {
        if let Some(julian) = self.julian {
            return Some(Ok(julian - 2_451_545));
        }
        let year = match self.year {
            Some(year) if self.is_before_christ && year > 0 => 1 - year,
            Some(year) if year < 0 && !self.is_before_christ => year + 1,
            Some(0) | None => 0,
            Some(year) => year,
        };
        // A zero states nothing.
        let stated = |field: Option<i64>| field.filter(|value| *value != 0);
        let begin_of = |week: Option<i64>| stated(week).map(|week| (week - 1) * 7 + 1);
        let of_year = stated(self.day_of_year).or(begin_of(self.week));
        let day = stated(self.day);
        if let (Some(of_year), None) = (of_year, day) {
            if self.year.is_none() {
                let message = "cannot calculate day of year without year information";
                return Some(Err(invalid(message.to_owned())));
            }
            let begin = Civil::new(year, 1, 1)?.to_days();
            let end = Civil::new(year + 1, 1, 1)?.to_days();
            let day = begin + of_year - 1;
            return (begin..end).contains(&day).then_some(Ok(day));
        }
        let day = day.or(begin_of(self.week_of_month)).unwrap_or(1);
        let part = |value: i64| u32::try_from(value).ok();
        Some(Ok(Civil::new(year, part(stated(self.month).unwrap_or(1))?, part(day)?)?.to_days()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_by_its_form() {
        let check = |text: &str, form: &str, expected: &str| {
            let read = read_form(text, form).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read.local.print(), expected, "{text} {form}");
        };
        check("05 Dec 2000", "DD Mon YYYY", "2000-12-05 00:00:00");
        check("2024-03-01 15:04:05.5", "YYYY-MM-DD HH24:MI:SS.MS", "2024-03-01 15:04:05.5");
        check("20240301", "YYYYMMDD", "2024-03-01 00:00:00");
        check("3:04 pm", "HH12:MI AM", "0001-01-01 15:04:00 BC");
        check("12:30", "HH:MI", "0001-01-01 00:30:00 BC");
        check("12:30 pm", "HH:MI AM", "0001-01-01 12:30:00 BC");
        check("99", "YY", "1999-01-01 00:00:00");
        check("2024 060", "YYYY DDD", "2024-02-29 00:00:00");
        check("2024-02-29", "YYYYMMDD", "2024-01-02 00:00:00");
        check("2024-00-00", "YYYY-MM-DD", "2024-01-01 00:00:00");
        for (text, form) in [("2024-13-01", "YYYY-MM-DD"), ("x", "YYYY"), ("20-x", "DD-MM")] {
            assert!(read_form(text, form).is_err(), "{text}");
        }
    }
}
