//! Reads the text of dates and timestamps: ISO 8601 and PostgreSQL's other unambiguous forms, and
//! month before day where only digits and slashes tell.

use super::civil::Civil;
use super::units::DAY_US;
use super::zone::Zone;
use crate::{Error, Result, SqlState};

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Whether it is `infinity` (true) or `-infinity`.
    pub(super) infinity: Option<bool>,
    /// Microseconds of the day.
    pub(super) microseconds: i64,
    /// The zone that the text names.
    pub(super) zone: Option<Zone>,
    date: Option<(i64, u32, u32)>,
    before_christ: bool,
    pub(super) has_time: bool,
    afternoon: Option<bool>,
    month: Option<u32>,
    numbers: Vec<String>,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Longer text is no date.
const TEXT_BYTES_MAX: usize = 128;

/// Why a text was refused.
enum Refused {
    Syntax,
    Range,
    Zone(String),
}

type Read<T> = std::result::Result<T, Refused>;

impl Input {
    /// Reads the text; `name` is the type's, for messages.
    pub(super) fn parse(text: &str, name: &str) -> Result<Input> {
        let mut input = Input::default();
        match input.read(text) {
            Ok(()) => Ok(input),
            Err(Refused::Syntax) => Err(syntax_error(text, name)),
            Err(Refused::Range) => Err(Error::new(
                SqlState::DATETIME_OUT_OF_RANGE,
                format!("date/time field value out of range: \"{text}\""),
            )),
            Err(Refused::Zone(zone)) => Err(Error::new(
                SqlState::INVALID_PARAMETER,
                format!("time zone \"{zone}\" not recognized"),
            )),
        }
    }

    /// The day that the text names.
    pub(super) fn day(&self, text: &str, name: &str) -> Result<Civil> {
        let (year, month, day) = self.date.ok_or_else(|| syntax_error(text, name))?;
        let out = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            Error::new(SqlState::DATETIME_OUT_OF_RANGE, message)
        };
        if year == 0 {
            return Err(out());
        }
        let year = if self.before_christ { 1 - year } else { year };
        Civil::new(year, month, day).ok_or_else(out)
    }

    fn read(&mut self, text: &str) -> Read<()> {
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(Refused::Syntax);
        }
        match text.to_ascii_lowercase().as_str() {
            "infinity" | "+infinity" => self.infinity = Some(true),
            "-infinity" => self.infinity = Some(false),
            "epoch" => self.date = Some((1970, 1, 1)),
            _ => {
                for word in text.split(|c: char| c.is_ascii_whitespace() || c == ',') {
                    if !word.is_empty() {
                        self.word(word)?;
                    }
                }
                self.finish()?;
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Read<()> {
        let lower = word.to_ascii_lowercase();
        let first = lower.as_bytes().first().copied().unwrap_or(b' ');
        // 2024-01-02T03:04:05
        if first.is_ascii_digit()
            && let Some(at) = lower.find('t').filter(|at| *at >= 8)
            && lower.as_bytes()[..at].iter().all(|byte| !byte.is_ascii_alphabetic())
        {
            self.word(&word[..at])?;
            return self.time(&lower[at + 1..], &word[at + 1..]);
        }
        if first.is_ascii_digit() {
            if lower.contains(':') {
                return self.time(&lower, word);
            }
            if lower.contains(['-', '/', '.']) {
                return self.written_date(&lower);
            }
            return self.digits(&lower, word);
        }
        if first == b'+' || first == b'-' {
            return self.offset(&lower);
        }
        self.name(&lower, word)
    }

    fn name(&mut self, lower: &str, word: &str) -> Read<()> {
        let prefix: String = lower.chars().take(3).collect();
        let alphabetic = lower.bytes().all(|byte| byte.is_ascii_alphabetic());
        match lower {
            "bc" | "b.c." => self.before_christ = true,
            "ad" | "a.d." => {}
            "am" => self.afternoon = Some(false),
            "pm" => self.afternoon = Some(true),
            "t" => {}
            _ if alphabetic && self.month.is_none() && MONTHS.contains(&prefix.as_str()) => {
                self.month =
                    MONTHS.iter().position(|month| *month == prefix).map(|at| at as u32 + 1);
            }
            _ if alphabetic && lower.len() >= 3 && DAYS.contains(&prefix.as_str()) => {}
            _ => self.zone = Some(self.zone_named(word)?),
        }
        Ok(())
    }

    fn zone_named(&self, word: &str) -> Read<Zone> {
        if self.zone.is_some() || !word.as_bytes()[0].is_ascii_alphabetic() {
            return Err(Refused::Syntax);
        }
        Zone::named(word).map_err(|_| {
            if word.contains('/') { Refused::Zone(word.to_owned()) } else { Refused::Syntax }
        })
    }

    /// Only digits: a whole date, a whole time after a date, or a day or year beside a month's
    /// name.
    fn digits(&mut self, digits: &str, word: &str) -> Read<()> {
        let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        if !only_digits {
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            // 10am
            if self.date.is_some() && matches!(&digits[end..], "am" | "pm") && end <= 2 {
                return self.time(&format!("{}:00{}", &digits[..end], &digits[end..]), word);
            }
            return Err(Refused::Syntax);
        }
        let part = |range: std::ops::Range<usize>| number(&digits[range]);
        match (digits.len(), self.date.is_some()) {
            (8, false) if self.month.is_none() => {
                self.date = Some((part(0..4)?, part(4..6)? as u32, part(6..8)? as u32));
            }
            (6, true) if !self.has_time => {
                self.set_time(part(0..2)?, part(2..4)?, part(4..6)? * 1_000_000)?;
            }
            _ => {
                number(digits)?;
                self.numbers.push(digits.to_owned());
            }
        }
        Ok(())
    }

    fn written_date(&mut self, word: &str) -> Read<()> {
        let parts: Vec<&str> = word.split(['-', '/', '.']).collect();
        let [first, second, third] = parts[..] else { return Err(Refused::Syntax) };
        if self.date.is_some() {
            return Err(Refused::Syntax);
        }
        let month_name = |part: &str| {
            let short = part.get(..3)?;
            let named = part.bytes().all(|byte| byte.is_ascii_alphabetic());
            MONTHS.iter().position(|month| named && *month == short).map(|at| at as i64 + 1)
        };
        let month = match month_name(second) {
            Some(month) => month,
            None => number(second)?,
        };
        let date = if first.len() >= 3 {
            (number(first)?, month, number(third)?)
        } else if month_name(second).is_some() {
            (full_year(third)?, month, number(first)?)
        } else {
            (full_year(third)?, number(first)?, month)
        };
        let small = |value: i64| u32::try_from(value).map_err(|_| Refused::Range);
        self.date = Some((date.0, small(date.1)?, small(date.2)?));
        Ok(())
    }

    /// `HH:MM[:SS[.ffffff]]`, then perhaps am or pm, or a zone.
    fn time(&mut self, lower: &str, word: &str) -> Read<()> {
        let digits = |c: char| c.is_ascii_digit() || c == ':' || c == '.';
        let end = lower.find(|c| !digits(c)).unwrap_or(lower.len());
        let mut parts = lower[..end].split(':');
        let hours = number(parts.next().unwrap_or(""))?;
        let minutes = parts.next().map_or(Ok(0), number)?;
        let seconds = parts.next().map_or(Ok(0), microseconds)?;
        if parts.next().is_some() {
            return Err(Refused::Syntax);
        }
        self.set_time(hours, minutes, seconds)?;
        let rest = &word[end..];
        match lower.as_bytes()[end..].first() {
            None => Ok(()),
            Some(b'+' | b'-') => self.offset(&lower[end..]),
            Some(_) => self.name(&lower[end..], rest),
        }
    }

    fn set_time(&mut self, hours: i64, minutes: i64, seconds: i64) -> Read<()> {
        if self.has_time {
            return Err(Refused::Syntax);
        }
        let total = (hours * 60 + minutes) * 60_000_000 + seconds;
        if hours > 24 || minutes > 59 || seconds > 60_000_000 || total > DAY_US {
            return Err(Refused::Range);
        }
        self.has_time = true;
        self.microseconds = total;
        Ok(())
    }

    /// `+HH`, `+HHMM`, `+HH:MM` or `+HH:MM:SS`.
    fn offset(&mut self, text: &str) -> Read<()> {
        let body = &text[1..];
        let digits: Vec<i64> = match body.split(':').collect::<Vec<_>>()[..] {
            [hours] if hours.len() <= 2 => vec![number(hours)?],
            [joined] if joined.len() == 4 && joined.is_ascii() => {
                vec![number(&joined[..2])?, number(&joined[2..])?]
            }
            [hours, minutes] => vec![number(hours)?, number(minutes)?],
            [hours, minutes, seconds] => {
                vec![number(hours)?, number(minutes)?, number(seconds)?]
            }
            _ => return Err(Refused::Syntax),
        };
        let part = |at: usize| digits.get(at).copied().unwrap_or(0);
        if !self.has_time || self.zone.is_some() {
            return Err(Refused::Syntax);
        }
        if part(0) > 15 || part(1) > 59 || part(2) > 59 {
            return Err(Refused::Range);
        }
        let seconds = (part(0) * 3600 + part(1) * 60 + part(2)) as i32;
        let seconds = if text.starts_with('-') { -seconds } else { seconds };
        self.zone = Some(Zone::fixed(seconds).ok_or(Refused::Range)?);
        Ok(())
    }

    /// Puts day, month's name and year together, and applies am or pm.
    fn finish(&mut self) -> Read<()> {
        match (self.month, &self.numbers[..], self.date) {
            (None, [], _) => {}
            (Some(month), [first, second], None) => {
                // The year comes first only with all its digits.
                let (day, year) = match (first.len(), number(first)?) {
                    (3.., _) => (number(second)?, number(first)?),
                    (_, 32..) => return Err(Refused::Syntax),
                    (_, day) => (day, full_year(second)?),
                };
                self.date = Some((year, month, u32::try_from(day).map_err(|_| Refused::Range)?));
            }
            _ => return Err(Refused::Syntax),
        }
        if let Some(afternoon) = self.afternoon {
            let hour = self.microseconds / 3_600_000_000;
            if !self.has_time || !(1..=12).contains(&hour) {
                return Err(Refused::Range);
            }
            let of_half = hour % 12 + if afternoon { 12 } else { 0 };
            self.microseconds += (of_half - hour) * 3_600_000_000;
        }
        Ok(())
    }
}

fn syntax_error(text: &str, name: &str) -> Error {
    let message = format!("invalid input syntax for type {name}: \"{text}\"");
    Error::new(SqlState::INVALID_DATETIME, message)
}

fn number(digits: &str) -> Read<i64> {
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    digits.parse().map_err(|_| Refused::Syntax)
}

/// Years of two digits are of 1970 to 2069.
fn full_year(digits: &str) -> Read<i64> {
    let year = number(digits)?;
    Ok(match (digits.len(), year) {
        (..=2, ..70) => year + 2000,
        (..=2, _) => year + 1900,
        _ => year,
    })
}

/// Seconds with a fraction, in microseconds; further digits round.
fn microseconds(text: &str) -> Read<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let seconds = number(whole)? * 1_000_000;
    if part.is_empty() {
        return Ok(seconds);
    }
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    let digits: String = part.chars().chain("000000".chars()).take(6).collect();
    let rounds_up = part.as_bytes().get(6).is_some_and(|digit| *digit >= b'5');
    Ok(seconds + number(&digits)? + i64::from(rounds_up))
}
