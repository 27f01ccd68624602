//! Reads the text of dates and timestamps: ISO 8601 and PostgreSQL's other forms, with month before
//! day where only the order of numbers tells.

use super::civil::Civil;
use super::pieces::{Piece, Shape, pieces};
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
    civil: Option<Civil>,
}

/// Why a text was refused.
enum Refused {
    Syntax,
    Range,
    /// A month or day that no calendar has.
    Part,
    Displacement,
    Zone(String),
}

type Read<T> = std::result::Result<T, Refused>;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 18] = [
    "sun",
    "sunday",
    "mon",
    "monday",
    "tue",
    "tues",
    "tuesday",
    "wed",
    "weds",
    "wednesday",
    "thu",
    "thur",
    "thurs",
    "thursday",
    "fri",
    "friday",
    "sat",
    "saturday",
];

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Month(i64),
    Weekday,
    Afternoon(bool),
    BeforeChrist(bool),
    Infinity(bool),
    Epoch,
    /// Midnight of UTC.
    Midnight,
    /// A time comes.
    Time,
    /// A day of the Julian count comes.
    Julian,
    /// `on` and `at` say nothing.
    Filler,
}

fn word(text: &str) -> Option<Word> {
    Some(match text {
        "am" => Word::Afternoon(false),
        "pm" => Word::Afternoon(true),
        "ad" => Word::BeforeChrist(false),
        "bc" => Word::BeforeChrist(true),
        "infinity" | "+infinity" => Word::Infinity(true),
        "-infinity" => Word::Infinity(false),
        "epoch" => Word::Epoch,
        "allballs" => Word::Midnight,
        "t" => Word::Time,
        "j" | "jd" | "julian" => Word::Julian,
        "on" | "at" => Word::Filler,
        "sept" => Word::Month(9),
        text if WEEKDAYS.contains(&text) => Word::Weekday,
        text => {
            let is_month = |name: &&str| **name == *text;
            let found = MONTHS.iter().position(is_month);
            let at = found.or_else(|| MONTH_NAMES.iter().position(is_month))?;
            Word::Month(at as i64 + 1)
        }
    })
}

/// Whether the words of a date have this one, or PostgreSQL's, of which some are not supported.
pub(super) fn is_keyword(text: &str) -> bool {
    let others = ["d", "dow", "doy", "dst", "h", "isodow", "isoyear", "m", "mm", "now", "s", "y"];
    let of_days = ["today", "tomorrow", "yesterday"];
    word(text).is_some() || others.contains(&text) || of_days.contains(&text)
}

/// What has been said already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said(u16);

impl Said {
    const NOTHING: Said = Said(0);
    const YEAR: Said = Said(1);
    const MONTH: Said = Said(2);
    const DAY: Said = Said(4);
    const DATE: Said = Said(7);
    const TIME: Said = Said(8);
    const ZONE: Said = Said(16);
    const HALF: Said = Said(32);
    const ERA: Said = Said(64);
    const WEEKDAY: Said = Said(128);
    const WHOLE: Said = Said(256);

    fn of_date(self) -> Said {
        Said(self.0 & Said::DATE.0)
    }

    fn has(self, all: Said) -> bool {
        self.0 & all.0 == all.0
    }

    fn with(self, more: Said) -> Said {
        Said(self.0 | more.0)
    }
}

/// A text while it is read.
struct Reader {
    said: Said,
    /// Of a `time` numbers are of the time only.
    is_time: bool,
    year: i64,
    month: i64,
    day: i64,
    has_month_name: bool,
    has_two_digits: bool,
    before_christ: bool,
    afternoon: Option<bool>,
    microseconds: i64,
    zone: Option<Zone>,
    infinity: Option<bool>,
    is_epoch: bool,
    /// What the next piece is.
    next: Option<Word>,
}

impl Input {
    /// Reads the text of a type with a date; `name` is the type's, for messages.
    pub(super) fn parse(text: &str, name: &str) -> Result<Input> {
        Input::read(text, false).map_err(|refused| refused.error(text, name))
    }

    /// Reads the text of a `time`, which may have a date.
    pub(super) fn parse_time(text: &str) -> Result<Input> {
        Input::read(text, true).map_err(|refused| refused.error(text, "time"))
    }

    /// The day that the text names.
    pub(super) fn day(&self, text: &str, name: &str) -> Result<Civil> {
        self.civil.ok_or_else(|| Refused::Syntax.error(text, name))
    }

    fn read(text: &str, is_time: bool) -> Read<Input> {
        let pieces = pieces(text, is_keyword).ok_or(Refused::Syntax)?;
        let mut reader = Reader::new(is_time);
        for at in 0..pieces.len() {
            let said = reader.piece(&pieces, at)?;
            if reader.said.0 & said.0 != 0 {
                return Err(Refused::Syntax);
            }
            reader.said = reader.said.with(said);
        }
        reader.finish()
    }
}

impl Refused {
    fn error(self, text: &str, name: &str) -> Error {
        let hint = match self {
            Refused::Part => "Perhaps you need a different \"datestyle\" setting.",
            _ => "",
        };
        let (state, message) = match self {
            Refused::Syntax => (
                SqlState::INVALID_DATETIME,
                format!("invalid input syntax for type {name}: \"{text}\""),
            ),
            Refused::Range | Refused::Part => (
                SqlState::DATETIME_OUT_OF_RANGE,
                format!("date/time field value out of range: \"{text}\""),
            ),
            Refused::Displacement => {
                (SqlState::INVALID_ZONE, format!("time zone displacement out of range: \"{text}\""))
            }
            Refused::Zone(zone) => {
                (SqlState::INVALID_PARAMETER, format!("time zone \"{zone}\" not recognized"))
            }
        };
        let error = Error::new(state, message);
        if hint.is_empty() { error } else { error.with_hint(hint) }
    }
}

impl Reader {
    fn new(is_time: bool) -> Reader {
        Reader {
            said: Said::NOTHING,
            is_time,
            year: 0,
            month: 0,
            day: 0,
            has_month_name: false,
            has_two_digits: false,
            before_christ: false,
            afternoon: None,
            microseconds: 0,
            zone: None,
            infinity: None,
            is_epoch: false,
            next: None,
        }
    }

    /// Reads the piece at `at`, and tells what it says.
    fn piece(&mut self, pieces: &[Piece], at: usize) -> Read<Said> {
        let Piece { shape, text } = &pieces[at];
        let expected = self.next.take();
        match shape {
            Shape::Date if expected == Some(Word::Julian) => Err(Refused::Syntax),
            Shape::Date => self.date_or_zone(pieces, at, expected.is_some()),
            Shape::Time => match expected {
                Some(Word::Julian) => Err(Refused::Syntax),
                _ => self.time(text),
            },
            Shape::Offset => {
                self.zone = Some(offset(text)?);
                Ok(Said::ZONE)
            }
            Shape::Number => match expected {
                Some(Word::Julian) => self.julian(text),
                Some(_) => match self.joined(text, self.said.with(Said::DATE))? {
                    Said::TIME => Ok(Said::TIME),
                    _ => Err(Refused::Syntax),
                },
                None => self.number_piece(text, pieces, at),
            },
            Shape::Word => self.word(text, pieces.get(at + 1)),
        }
    }

    /// A date, a zone's name with punctuation, or a time with an offset behind it.
    fn date_or_zone(&mut self, pieces: &[Piece], at: usize, expects_time: bool) -> Read<Said> {
        let text = &pieces[at].text;
        let has_date = match self.is_time {
            false => self.said.has(Said::MONTH.with(Said::DAY)),
            true => {
                let is_first = at == 0 && pieces.len() >= 2;
                let is_date = pieces.last().is_some_and(|last| last.shape == Shape::Date);
                !(is_first && (is_date || pieces[1].shape == Shape::Time))
            }
        };
        if !has_date && !expects_time {
            return self.date(text);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) && !expects_time {
            self.zone = Some(Zone::written(text).ok_or_else(|| Refused::Zone(text.clone()))?);
            return Ok(Said::ZONE);
        }
        if self.said.has(Said::TIME) {
            return Err(Refused::Syntax);
        }
        let minus = text.find('-').ok_or(Refused::Syntax)?;
        self.zone = Some(offset(&text[minus..])?);
        let said = self.joined(&text[..minus], self.said.with(self.date_of_time()))?;
        Ok(said.with(Said::ZONE))
    }

    /// What counts as a date in front of a `time`.
    fn date_of_time(&self) -> Said {
        if self.is_time { Said::DATE } else { Said::NOTHING }
    }

    /// The parts of a date, before which only a zone may come: months' names, then numbers.
    fn date(&mut self, text: &str) -> Read<Said> {
        let parts = parts(text);
        let is_name = |part: &&&str| part.starts_with(|c: char| c.is_ascii_lowercase());
        let mut said = self.said;
        for part in parts.iter().filter(is_name) {
            match word(part) {
                Some(Word::Month(month)) if !said.has(Said::MONTH) => {
                    self.month = month;
                    self.has_month_name = true;
                    said = said.with(Said::MONTH);
                }
                _ => return Err(Refused::Syntax),
            }
        }
        for part in parts.iter().filter(|part| !is_name(part)) {
            let more = self.number(part, said)?;
            if said.0 & more.0 != 0 {
                return Err(Refused::Syntax);
            }
            said = said.with(more);
        }
        match said.0 & !Said::ZONE.0 == Said::DATE.0 {
            true => Ok(Said(said.0 & !self.said.0)),
            false => Err(Refused::Syntax),
        }
    }

    /// A number by itself.
    fn number_piece(&mut self, text: &str, pieces: &[Piece], at: usize) -> Read<Said> {
        let point = text.find('.');
        let said = self.said.with(self.date_of_time());
        if self.is_time {
            let is_date = pieces.last().is_some_and(|last| last.shape == Shape::Date);
            return match point {
                Some(_) if at == 0 && pieces.len() >= 2 && is_date => self.date(text),
                Some(digits) if digits > 2 => self.joined(text, said),
                None if text.len() > 4 => self.joined(text, said),
                _ => self.number(text, said),
            };
        }
        let has_no_date = said.of_date() == Said::NOTHING;
        match point {
            Some(_) if has_no_date => self.date(text),
            Some(digits) if digits > 2 => self.joined(text, said),
            _ if text.len() >= 6 && (has_no_date || !said.has(Said::TIME)) => {
                self.joined(text, said)
            }
            _ => self.number(text, said),
        }
    }

    /// A number that is a year, a month or a day, by what has been `said` before it.
    fn number(&mut self, text: &str, said: Said) -> Read<Said> {
        if text.find('.').is_some_and(|digits| digits > 2) {
            return self.joined(text, said);
        }
        let value = whole(text)?;
        let is_long = text.len() >= 3;
        let of_date = said.of_date();
        if text.len() == 3 && of_date == Said::YEAR && (1..=366).contains(&value) {
            let first = Civil { year: self.full_year()?, month: 1, day: 1 }.to_days();
            let day = Civil::from_days(first + value - 1);
            (self.month, self.day) = (i64::from(day.month), i64::from(day.day));
            return Ok(Said::MONTH.with(Said::DAY));
        }
        let year_and_month = Said::YEAR.with(Said::MONTH);
        let found = match of_date {
            Said::NOTHING if is_long => Said::YEAR,
            Said::NOTHING | Said::YEAR | Said::DAY => Said::MONTH,
            Said::MONTH if self.has_month_name && is_long => Said::YEAR,
            Said::MONTH => Said::DAY,
            _ if of_date == year_and_month => {
                if self.has_month_name && is_long && self.has_two_digits {
                    // What came first was the day.
                    (self.day, self.year) = (self.year, value);
                    self.has_two_digits = false;
                    return Ok(Said::DAY);
                }
                Said::DAY
            }
            _ if of_date == Said::MONTH.with(Said::DAY) => Said::YEAR,
            _ if of_date == Said::DATE => return self.joined(text, said),
            _ => return Err(Refused::Syntax),
        };
        match found {
            Said::YEAR => {
                self.year = value;
                self.has_two_digits = text.len() <= 2;
            }
            Said::MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(found)
    }

    /// Digits of a whole date, or of a whole time with its fraction.
    fn joined(&mut self, text: &str, said: Said) -> Read<Said> {
        let digits = text.find('.').unwrap_or(text.len());
        let part = |from: usize, to: usize| whole(text.get(from..to).ok_or(Refused::Syntax)?);
        if digits == text.len() && said.of_date() != Said::DATE && digits >= 6 {
            self.year = part(0, digits - 4)?;
            (self.month, self.day) = (part(digits - 4, digits - 2)?, part(digits - 2, digits)?);
            self.has_two_digits = digits == 6;
            return Ok(Said::DATE);
        }
        let seconds = match digits {
            6 => part(4, 6)?,
            4 => 0,
            _ => return Err(Refused::Syntax),
        };
        if said.has(Said::TIME) {
            return Err(Refused::Syntax);
        }
        let fraction = fraction(&text[digits..])?;
        let (hours, minutes) = (part(0, 2)?, part(2, 4)?);
        self.set_time(hours, minutes, seconds * 1_000_000 + fraction)
    }

    /// `HH:MM[:SS[.ffffff]]`, or `MM:SS.ffffff`.
    fn time(&mut self, text: &str) -> Read<Said> {
        let (clock, behind) = match text.find('.') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let numbers = clock.split(':').map(whole).collect::<Read<Vec<i64>>>()?;
        let fraction = fraction(behind)?;
        match (&numbers[..], behind) {
            ([hours, minutes], "") => self.set_time(*hours, *minutes, 0),
            ([minutes, seconds], _) => self.set_time(0, *minutes, seconds * 1_000_000 + fraction),
            ([hours, minutes, seconds], _) => {
                self.set_time(*hours, *minutes, seconds * 1_000_000 + fraction)
            }
            _ => Err(Refused::Syntax),
        }
    }

    fn set_time(&mut self, hours: i64, minutes: i64, microseconds: i64) -> Read<Said> {
        let total = (hours * 60 + minutes) * 60_000_000 + microseconds;
        if minutes > 59 || microseconds > 60_000_000 || total > DAY_US {
            return Err(Refused::Range);
        }
        self.microseconds = total;
        Ok(Said::TIME)
    }

    /// A day of the Julian count.
    fn julian(&mut self, text: &str) -> Read<Said> {
        const OF_2000: i64 = 2_451_545;
        let day = Civil::from_days(whole(text)? - OF_2000);
        (self.year, self.month, self.day) = (day.year, i64::from(day.month), i64::from(day.day));
        if day.year <= 0 {
            (self.year, self.before_christ) = (1 - day.year, true);
        }
        Ok(Said::DATE)
    }

    fn word(&mut self, text: &str, next: Option<&Piece>) -> Read<Said> {
        if let Some(zone) = Zone::abbreviated(text) {
            self.zone = Some(zone);
            return Ok(Said::ZONE);
        }
        match word(text) {
            None => {
                self.zone = Some(Zone::written(text).ok_or(Refused::Syntax)?);
                return Ok(Said::ZONE);
            }
            Some(Word::Filler) => {}
            Some(Word::Month(month)) => return Ok(self.month_name(month)),
            Some(Word::Weekday) => return Ok(Said::WEEKDAY),
            Some(Word::Afternoon(afternoon)) => {
                self.afternoon = Some(afternoon);
                return Ok(Said::HALF);
            }
            Some(Word::BeforeChrist(before)) => {
                self.before_christ = before;
                return Ok(Said::ERA);
            }
            Some(Word::Infinity(is_positive)) => {
                self.infinity = Some(is_positive);
                return Ok(Said::WHOLE);
            }
            Some(Word::Epoch) => {
                self.is_epoch = true;
                return Ok(Said::WHOLE);
            }
            Some(Word::Midnight) => {
                self.zone = Some(Zone::utc());
                return self.set_time(0, 0, 0).map(|said| said.with(Said::ZONE));
            }
            Some(Word::Time) => {
                let is_time = next.is_some_and(|next| {
                    matches!(next.shape, Shape::Number | Shape::Time | Shape::Date)
                });
                if !is_time || (!self.is_time && self.said.of_date() != Said::DATE) {
                    return Err(Refused::Syntax);
                }
                self.next = Some(Word::Time);
            }
            Some(Word::Julian) => self.next = Some(Word::Julian),
        }
        Ok(Said::NOTHING)
    }

    /// A month's name. A number before it that was taken for the month is the day.
    fn month_name(&mut self, month: i64) -> Said {
        let was_day = self.said.has(Said::MONTH)
            && !self.has_month_name
            && !self.said.has(Said::DAY)
            && (1..=31).contains(&self.month);
        let said = if was_day { Said::DAY } else { Said::MONTH };
        if was_day {
            self.day = self.month;
        }
        self.has_month_name = true;
        self.month = month;
        said
    }

    /// The year as the calendar counts. Years of two digits are of 1970 to 2069.
    fn full_year(&self) -> Read<i64> {
        match self.year {
            year if self.before_christ && year > 0 => Ok(1 - year),
            year if self.has_two_digits && !self.before_christ => {
                Ok(year + if year < 70 { 2000 } else { 1900 })
            }
            year if year > 0 => Ok(year),
            _ => Err(Refused::Range),
        }
    }

    /// The half of the day applied to the time.
    fn applied_half(&self) -> Read<i64> {
        const HOUR_US: i64 = 3_600_000_000;
        let Some(afternoon) = self.afternoon else { return Ok(self.microseconds) };
        let hour = self.microseconds / HOUR_US;
        if hour > 12 {
            return Err(Refused::Range);
        }
        let of_half = hour % 12 + if afternoon { 12 } else { 0 };
        Ok(self.microseconds + (of_half - hour) * HOUR_US)
    }

    fn finish(self) -> Read<Input> {
        let mut input = Input { infinity: self.infinity, ..Input::default() };
        if self.next.is_some() {
            return Err(Refused::Syntax);
        }
        if self.is_epoch {
            input.civil = Some(Civil { year: 1970, month: 1, day: 1 });
            input.zone = Some(Zone::utc());
        }
        if self.infinity.is_some() || self.is_epoch {
            return if self.is_time { Err(Refused::Syntax) } else { Ok(input) };
        }
        self.check_ranges()?;
        input.microseconds = self.applied_half()?;
        let is_complete = self.said.has(Said::DATE);
        if is_complete {
            let year = self.full_year()?;
            let day = Civil::new(year, self.month as u32, self.day as u32);
            input.civil = Some(day.ok_or(Refused::Range)?);
        }
        // A zone with rules has no offset without a day.
        let has_rules = self.zone.as_ref().is_some_and(|zone| zone.fixed_seconds().is_none());
        let is_whole = match self.is_time {
            false => is_complete,
            true => self.said.has(Said::TIME) && (is_complete || !has_rules),
        };
        input.zone = self.zone;
        if is_whole { Ok(input) } else { Err(Refused::Syntax) }
    }

    /// Ranges of what was said, also of a date that is not whole.
    fn check_ranges(&self) -> Read<()> {
        if self.said.has(Said::YEAR) {
            self.full_year()?;
        }
        let month_fits = !self.said.has(Said::MONTH) || (1..=12).contains(&self.month);
        let day_fits = !self.said.has(Said::DAY) || (1..=31).contains(&self.day);
        if month_fits && day_fits { Ok(()) } else { Err(Refused::Part) }
    }
}

/// The parts of a date: digits or letters, with anything between.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        rest = &rest[begin..];
        let is_digits = rest.starts_with(|c: char| c.is_ascii_digit());
        let is_part = |c: char| match is_digits {
            true => c.is_ascii_digit(),
            false => c.is_ascii_alphabetic(),
        };
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

/// `+HH`, `+HHMM`, `+HH:MM` or `+HH:MM:SS`.
fn offset(text: &str) -> Read<Zone> {
    let numbers: Vec<i64> = match text[1..].split(':').collect::<Vec<_>>()[..] {
        [joined] if text.len() > 3 => {
            let joined = whole(joined)?;
            vec![joined / 100, joined % 100, 0]
        }
        [hours] => vec![whole(hours)?, 0, 0],
        [hours, minutes] => vec![whole(hours)?, whole(minutes)?, 0],
        [hours, minutes, seconds] => vec![whole(hours)?, whole(minutes)?, whole(seconds)?],
        _ => return Err(Refused::Syntax),
    };
    let [hours, minutes, seconds] = numbers[..] else { return Err(Refused::Syntax) };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Refused::Displacement);
    }
    let distance = (hours * 3600 + minutes * 60 + seconds) as i32;
    let distance = if text.starts_with('-') { -distance } else { distance };
    Zone::fixed(distance).ok_or(Refused::Displacement)
}

/// A number of digits.
fn whole(digits: &str) -> Read<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    digits.parse::<i32>().map(i64::from).map_err(|_| Refused::Range)
}

/// A point and digits, in microseconds; further digits round. Nothing is none.
fn fraction(text: &str) -> Read<i64> {
    let digits = text.strip_prefix('.').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::Syntax);
    }
    let value = format!("0.{digits}0").parse::<f64>().map_err(|_| Refused::Syntax)?;
    Ok((value * 1e6).round_ties_even() as i64)
}
