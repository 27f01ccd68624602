//! Zones as values of the setting: hours from UTC, intervals, names, and POSIX's form.

use values::{Error, Interval, Result, SqlState, Zone};

/// Returns the zone that a value is.
///
/// # Errors
/// That it is none; the detail says why, if there is more to say.
pub(super) fn zone(text: &str) -> Result<Zone> {
    let invalid = || Error::new(SqlState::INVALID_PARAMETER, "it is no zone");
    let seconds = match (of_interval(text), of_hours(text)) {
        (Some(read), _) => read?,
        (None, Some(seconds)) => seconds,
        (None, None) => return Zone::written(text).ok_or_else(invalid),
    };
    let zone = i32::try_from(seconds).ok().and_then(Zone::fixed);
    zone.ok_or_else(|| invalid().with_detail("UTC timezone offset is out of range."))
}

/// Seconds of hours, which may have a fraction.
fn of_hours(text: &str) -> Option<i64> {
    let hours = text.trim_start().parse::<f64>().ok().filter(|hours| hours.is_finite())?;
    Some((hours * 3_600.0) as i64)
}

/// Seconds of `interval '...'`; `None` of what does not begin so.
fn of_interval(text: &str) -> Option<Result<i64>> {
    const WORD: &str = "interval";
    let word = text.get(..WORD.len()).filter(|word| word.eq_ignore_ascii_case(WORD))?;
    let quoted = text[word.len()..].trim_start();
    let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let refused = |part: &str| {
        let detail = format!("Cannot specify {part} in time zone interval.");
        Error::new(SqlState::INVALID_PARAMETER, "it is no zone").with_detail(detail)
    };
    Some(Interval::parse(inner).and_then(|Interval { months, days, microseconds }| {
        match (months, days) {
            (0, 0) => Ok(microseconds / 1_000_000),
            (0, _) => Err(refused("days")),
            _ => Err(refused("months")),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_zones_as_on_postgresql() {
        for (text, name) in [
            ("-7", "<-07>+07"),
            (" 3", "<+03>-03"),
            ("-7.5", "<-07:30>+07:30"),
            ("1e0", "<+01>-01"),
            ("INTERVAL '-08:15'", "<-08:15>+08:15"),
            ("interval '12:34:56.7'", "<+12:34:56>-12:34:56"),
            ("<+03:30>-03:30", "<+03:30>-03:30"),
            ("EST5", "EST5"),
            ("utc+3", "UTC+3"),
            ("europe/berlin", "Europe/Berlin"),
            ("utc", "UTC"),
        ] {
            let found = zone(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.name(), name, "{text}");
            // What is shown is a value, too.
            let again = zone(name).unwrap();
            assert_eq!(again.fixed_seconds(), found.fixed_seconds(), "{text}");
        }
        for (text, detail) in [
            ("200", Some("UTC timezone offset is out of range.")),
            ("1e300", Some("UTC timezone offset is out of range.")),
            ("interval '1 month'", Some("Cannot specify months in time zone interval.")),
            ("interval '1 day'", Some("Cannot specify days in time zone interval.")),
            ("interval 'x'", None),
            ("interval '03:30' ", None),
            ("interval", None),
            ("nowhere", None),
            ("local", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(zone(text).unwrap_err().detail(), detail, "{text}");
        }
    }
}
