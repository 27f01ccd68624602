//! Points in time as text of a stated form: `to_char`.

use super::civil::Civil;
use super::fields::Field;
use super::timestamp::Timestamp;
use crate::numeric::quoted_text;
use crate::{Error, Result};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// What a pattern stands for. Longer ones are before those that they begin with.
#[derive(Clone, Copy)]
enum Pattern {
    /// A number with at least so many digits.
    Number(Part, usize),
    /// The last digits of a year, so many.
    YearEnd(Part, usize),
    Month,
    MonthShort,
    Day,
    DayShort,
    /// AM or PM, or with points.
    Half(bool),
    Offset,
    OffsetHours,
    OffsetMinutes,
    Refused,
}

#[derive(Clone, Copy)]
enum Part {
    Of(Field),
    Hour12,
    SecondOfDay,
    Millisecond,
    Microsecond,
    WeekOfYear,
    WeekOfMonth,
    DayFromSunday,
    Century,
    JulianDay,
    Second,
}

const PATTERNS: &[(&str, Pattern)] = {
    use Field::{Day, DayOfYear, Hour, IsoDayOfWeek, IsoYear, Minute, Month, Quarter, Week, Year};
    use Pattern::{Half, Number, Refused, YearEnd};
    &[
        ("HH24", Number(Part::Of(Hour), 2)),
        ("HH12", Number(Part::Hour12, 2)),
        ("HH", Number(Part::Hour12, 2)),
        ("MI", Number(Part::Of(Minute), 2)),
        ("SSSSS", Number(Part::SecondOfDay, 1)),
        ("SSSS", Number(Part::SecondOfDay, 1)),
        ("SS", Number(Part::Second, 2)),
        ("MS", Number(Part::Millisecond, 3)),
        ("US", Number(Part::Microsecond, 6)),
        ("A.M.", Half(true)),
        ("P.M.", Half(true)),
        ("AM", Half(false)),
        ("PM", Half(false)),
        ("Y,YYY", Refused),
        ("YYYY", Number(Part::Of(Year), 4)),
        ("YYY", YearEnd(Part::Of(Year), 3)),
        ("YY", YearEnd(Part::Of(Year), 2)),
        ("Y", YearEnd(Part::Of(Year), 1)),
        ("IYYY", Number(Part::Of(IsoYear), 4)),
        ("IYY", YearEnd(Part::Of(IsoYear), 3)),
        ("IY", YearEnd(Part::Of(IsoYear), 2)),
        ("IDDD", Refused),
        ("ID", Number(Part::Of(IsoDayOfWeek), 1)),
        ("IW", Number(Part::Of(Week), 2)),
        ("I", YearEnd(Part::Of(IsoYear), 1)),
        ("MONTH", Pattern::Month),
        ("MON", Pattern::MonthShort),
        ("MM", Number(Part::Of(Month), 2)),
        ("DAY", Pattern::Day),
        ("DY", Pattern::DayShort),
        ("DDD", Number(Part::Of(DayOfYear), 3)),
        ("DD", Number(Part::Of(Day), 2)),
        ("D", Number(Part::DayFromSunday, 1)),
        ("WW", Number(Part::WeekOfYear, 2)),
        ("W", Number(Part::WeekOfMonth, 1)),
        ("CC", Number(Part::Century, 2)),
        ("J", Number(Part::JulianDay, 1)),
        ("Q", Number(Part::Of(Quarter), 1)),
        ("TZH", Pattern::OffsetHours),
        ("TZM", Pattern::OffsetMinutes),
        ("TZ", Refused),
        ("OF", Pattern::Offset),
        ("RM", Refused),
        ("FF", Refused),
        ("B.C.", Refused),
        ("A.D.", Refused),
        ("BC", Refused),
        ("AD", Refused),
        ("TM", Refused),
        ("FX", Refused),
    ]
};

/// A finite point of time, local, in the form of `to_char`; clocks are so many seconds before UTC.
pub fn shown(at: Timestamp, offset_seconds: i32, form: &str) -> Result<String> {
    assert!(at.is_finite(), "an infinity has no parts");
    let (mut text, mut rest) = (String::new(), form);
    let mut fills = true;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let (quoted, behind) = quoted_text(&rest[1..]);
            text.push_str(&quoted);
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (fills, rest) = (false, behind);
        } else if let Some((pattern, written)) = pattern_at(rest) {
            let part = one(pattern, written, at, offset_seconds, fills)?;
            rest = &rest[written.len()..];
            let ordinal = rest.get(..2).filter(|end| end.eq_ignore_ascii_case("th"));
            text.push_str(&part);
            if let (Pattern::Number(..) | Pattern::YearEnd(..), Some(end)) = (pattern, ordinal) {
                let end_of = ordinal_end(&part);
                let is_large = end.starts_with('T');
                text.push_str(&if is_large { end_of.to_ascii_uppercase() } else { end_of.into() });
                rest = &rest[2..];
            }
            fills = true;
        } else {
            let escaped = rest.strip_prefix("\\\"");
            text.push(if escaped.is_some() { '"' } else { first });
            rest = escaped.unwrap_or(&rest[first.len_utf8()..]);
        }
    }
    Ok(text)
}

fn pattern_at(rest: &str) -> Option<(Pattern, &str)> {
    PATTERNS.iter().find_map(|(name, pattern)| {
        let written = rest.get(..name.len())?;
        written.eq_ignore_ascii_case(name).then_some((*pattern, written))
    })
}

/// The pattern that a form begins with, as it is written.
pub(super) fn written_pattern(form: &str) -> Option<&str> {
    pattern_at(form).map(|(_, written)| written)
}

fn ordinal_end(number: &str) -> &'static str {
    let teens = number.len() > 1 && number.as_bytes()[number.len() - 2] == b'1';
    match number.as_bytes().last() {
        _ if teens => "th",
        Some(b'1') => "st",
        Some(b'2') => "nd",
        Some(b'3') => "rd",
        _ => "th",
    }
}

fn one(
    pattern: Pattern,
    written: &str,
    at: Timestamp,
    offset_seconds: i32,
    fills: bool,
) -> Result<String> {
    let name = |names: &[&str], place: i64, is_short: bool| {
        let name = names[place as usize - 1];
        let name = if is_short { &name[..3] } else { name };
        let filled = if fills && !is_short { format!("{name:<9}") } else { name.to_owned() };
        written_as(&filled, written)
    };
    let weekday = || number(Part::Of(Field::IsoDayOfWeek), at);
    let month = i64::from(at.split().0.month);
    let (sign, seconds) = (if offset_seconds < 0 { '-' } else { '+' }, offset_seconds.abs());
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    Ok(match pattern {
        Pattern::Number(part, digits) => {
            let digits = if fills { digits } else { 1 };
            format!("{:0digits$}", number(part, at)?)
        }
        Pattern::YearEnd(part, count) => {
            let end = number(part, at)? % 10_i64.pow(count as u32);
            let digits = if fills { count } else { 1 };
            format!("{end:0digits$}")
        }
        Pattern::Month => name(&MONTHS, month, false),
        Pattern::MonthShort => name(&MONTHS, month, true),
        Pattern::Day => name(&DAYS, weekday()?, false),
        Pattern::DayShort => name(&DAYS, weekday()?, true),
        Pattern::Half(has_points) => {
            let is_later = number(Part::Of(Field::Hour), at)? >= 12;
            let shown = match (is_later, has_points) {
                (false, false) => "AM",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (true, true) => "P.M.",
            };
            let is_small = written.starts_with(|c: char| c.is_ascii_lowercase());
            if is_small { shown.to_ascii_lowercase() } else { shown.to_owned() }
        }
        Pattern::Offset if minutes == 0 => format!("{sign}{hours:02}"),
        Pattern::Offset => format!("{sign}{hours:02}:{minutes:02}"),
        Pattern::OffsetHours => format!("{sign}{hours:02}"),
        Pattern::OffsetMinutes => format!("{minutes:02}"),
        Pattern::Refused => {
            return Err(Error::unsupported(format!("pattern \"{written}\" of to_char"), ""));
        }
    })
}

/// A name in the letters of its pattern: all large, all small, or the first one large.
fn written_as(name: &str, written: &str) -> String {
    let mut large = written.chars().map(|c| c.is_ascii_uppercase());
    match (large.next(), large.next()) {
        (Some(true), Some(true)) => name.to_ascii_uppercase(),
        (Some(true), _) => name.to_owned(),
        _ => name.to_ascii_lowercase(),
    }
}

fn number(part: Part, at: Timestamp) -> Result<i64> {
    let (day, time) = at.split();
    let of_year = || {
        let begin = Civil { month: 1, day: 1, ..day };
        day.to_days() - begin.to_days()
    };
    Ok(match part {
        Part::Of(field @ (Field::Year | Field::IsoYear)) => field.of_finite(at)?.to_i64()?.abs(),
        Part::Of(field) => field.of_finite(at)?.to_i64()?,
        Part::Hour12 => (time / 3_600_000_000 + 11) % 12 + 1,
        Part::SecondOfDay => time / 1_000_000,
        Part::Second => time / 1_000_000 % 60,
        Part::Millisecond => time % 1_000_000 / 1_000,
        Part::Microsecond => time % 1_000_000,
        Part::WeekOfYear => of_year() / 7 + 1,
        Part::WeekOfMonth => (i64::from(day.day) - 1) / 7 + 1,
        Part::DayFromSunday => Field::DayOfWeek.of_finite(at)?.to_i64()? + 1,
        Part::Century => (day.shown_year().0 + 99) / 100,
        Part::JulianDay => day.to_days() + 2_451_545,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_postgresqls() {
        let at = Timestamp::parse("2024-03-01 15:04:05.067089").unwrap();
        let check = |form: &str, expected: &str| {
            assert_eq!(shown(at, 5_400, form).unwrap(), expected, "{form}");
        };
        check("YYYY-MM-DD HH24:MI:SS", "2024-03-01 15:04:05");
        check("yyyy-mm-dd", "2024-03-01");
        check("Mon DD, YYYY", "Mar 01, 2024");
        check("FMMonth FMDD", "March 1");
        check("[Day] [MONTH] [dy]", "[Friday   ] [MARCH    ] [fri]");
        check("HH12:MI AM hh p.m.", "03:04 PM 03 p.m.");
        check("MS US SSSS", "067 067089 54245");
        check("Q DDD D ID WW W IW IYYY", "1 061 6 5 09 1 09 2024");
        check("FMDDth DDTH", "1st 01ST");
        check("\"at\" HH24\"h\"", "at 15h");
        check("YY Y CC J", "24 4 21 2460371");
        check("OF TZH:TZM", "+01:30 +01:30");
        check("x\\\"y", "x\"4");
        assert!(shown(at, 0, "TZ").is_err());
    }
}
