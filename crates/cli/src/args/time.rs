//! Times on the command line, as RFC 3339 has them.

const SECOND_NS: u64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// Nanoseconds since 1970 of a time such as `2026-11-27T18:30:00.25+01:00`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time, for example 2026-11-27T18:30:00Z");
    seconds_and_ns(text)
        .and_then(|(seconds, ns)| {
            u64::try_from(seconds).ok()?.checked_mul(SECOND_NS)?.checked_add(ns)
        })
        .ok_or_else(wrong)
}

fn seconds_and_ns(text: &str) -> Option<(i64, u64)> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (time, rest) = rest.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => rest.split_at(rest.find(|digit: char| !digit.is_ascii_digit())?),
    };
    if rest.starts_with('.') && fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let ns = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
    let is_day = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    // A second more than a minute has is that of a leap.
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    Some((seconds - offset(zone)?, ns))
}

/// Seconds by which a zone is before that of the prime meridian.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('+') { 1 } else { -1 };
    let [hours, minutes] = numbers(zone.strip_prefix(['+', '-'])?, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Numbers of so many digits each.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let of_years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    of_years + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}

/// Such a time in words.
#[must_use]
pub fn show(ns: u64) -> String {
    let (seconds, ns) = ((ns / SECOND_NS) as i64, ns % SECOND_NS);
    let (mut day, of_day) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let mut year = 1970 + day / 366;
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    day -= days(year, 1, 1);
    let mut month = 1;
    while day >= days_in(year, month) {
        day -= days_in(year, month);
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000000001z", 1),
            ("2000-02-29T12:34:56.5Z", 951_827_696_500_000_000),
            ("2026-11-27T18:30:00+01:00", 1_795_800_600_000_000_000),
            ("2026-11-27 12:00:00-05:30", 1_795_800_600_000_000_000),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
            assert_eq!(parse(&show(ns)), Ok(ns), "{}", show(ns));
        }
        assert_eq!(show(1_795_800_600_000_000_007), "2026-11-27T17:30:00.000000007Z");
        for day in 0..50_000 {
            let ns = day * 86_400 * SECOND_NS;
            assert_eq!(parse(&show(ns)), Ok(ns), "{}", show(ns));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-11-27",
            "2026-11-27T18:30:00",
            "2026-11-27T18:30Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-27T24:00:00Z",
            "2026-11-27T18:30:00.Z",
            "2026-11-27T18:30:00.1234567890Z",
            "2026-11-27T18:30:00+1:00",
            "2026-11-27T18:30:00Zz",
            "+026-11-27T18:30:00Z",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
