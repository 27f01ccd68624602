//! Times on the command line, as RFC 3339 has them.

use jiff::Timestamp;

/// Nanoseconds since 1970 of a time such as `2026-11-27T18:30:00.25+01:00`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time, for example 2026-11-27T18:30:00Z");
    let time: Timestamp = text.parse().map_err(|_| wrong())?;
    u64::try_from(time.as_nanosecond()).map_err(|_| wrong())
}

/// Such a time in words.
#[must_use]
pub fn show(ns: u64) -> String {
    match Timestamp::from_nanosecond(i128::from(ns)) {
        Ok(time) => format!("{time:.9}"),
        Err(_) => unreachable!("nanoseconds of 64 bits end in the year 2554"),
    }
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
        assert_eq!(show(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(parse(&show(u64::MAX)), Ok(u64::MAX));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-11-27",
            "2026-11-27T18:30:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-27T24:00:00Z",
            "2026-11-27T18:30:00.Z",
            "2026-11-27T18:30:00.1234567890Z",
            "2026-11-27T18:30:00Zz",
            "+026-11-27T18:30:00Z",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
