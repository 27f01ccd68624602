//! The fields that the type of an interval may be limited to, as `interval hour to second`.

const MONTH: u16 = 1 << 1;
const YEAR: u16 = 1 << 2;
const DAY: u16 = 1 << 3;
const HOUR: u16 = 1 << 10;
const MINUTE: u16 = 1 << 11;
const SECOND: u16 = 1 << 12;
/// No limit.
const ALL: u16 = 0x7fff;

/// The fields of an interval's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalFields(u16);

/// The sets of fields that there are, with their names.
const NAMED: [(u16, &str); 13] = [
    (YEAR, "year"),
    (MONTH, "month"),
    (DAY, "day"),
    (HOUR, "hour"),
    (MINUTE, "minute"),
    (SECOND, "second"),
    (YEAR | MONTH, "year to month"),
    (DAY | HOUR, "day to hour"),
    (DAY | HOUR | MINUTE, "day to minute"),
    (DAY | HOUR | MINUTE | SECOND, "day to second"),
    (HOUR | MINUTE, "hour to minute"),
    (HOUR | MINUTE | SECOND, "hour to second"),
    (MINUTE | SECOND, "minute to second"),
];

/// The smallest of a set of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Smallest {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl IntervalFields {
    /// All fields, of `interval` itself.
    pub const ALL: IntervalFields = IntervalFields(ALL);

    /// Returns the fields of a name in lower case such as `hour to second`.
    pub fn named(name: &str) -> Option<IntervalFields> {
        let found = NAMED.iter().find(|(_, own)| *own == name)?;
        Some(IntervalFields(found.0))
    }

    /// Returns the fields with this mask in PostgreSQL's catalog.
    pub fn of_mask(mask: u16) -> Option<IntervalFields> {
        let is_known = mask == ALL || NAMED.iter().any(|(own, _)| *own == mask);
        is_known.then_some(IntervalFields(mask))
    }

    /// The mask in PostgreSQL's catalog.
    pub fn mask(self) -> u16 {
        self.0
    }

    /// The name; `None` of all fields.
    pub fn name(self) -> Option<&'static str> {
        NAMED.iter().find(|(own, _)| *own == self.0).map(|(_, name)| *name)
    }

    /// Whether seconds are among the fields, so that their digits can be limited, too.
    pub fn has_seconds(self) -> bool {
        self.0 & SECOND != 0
    }

    /// Whether a text with two numbers and `:` between is minutes and seconds.
    pub(super) fn is_minute_to_second(self) -> bool {
        self.0 == MINUTE | SECOND
    }

    pub(super) fn smallest(self) -> Smallest {
        let all = [
            (SECOND, Smallest::Second),
            (MINUTE, Smallest::Minute),
            (HOUR, Smallest::Hour),
            (DAY, Smallest::Day),
            (MONTH, Smallest::Month),
        ];
        let found = all.into_iter().find(|(field, _)| self.0 & field != 0);
        found.map_or(Smallest::Year, |(_, smallest)| smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_postgresqls() {
        let all = NAMED.iter().map(|(mask, _)| *mask).chain([ALL]);
        for mask in all {
            let fields = IntervalFields::of_mask(mask).unwrap();
            assert_eq!(fields.mask(), mask);
            let named = fields.name().map(|name| IntervalFields::named(name).unwrap());
            assert_eq!(named.unwrap_or(IntervalFields::ALL), fields);
        }
        assert_eq!(IntervalFields::named("hour to second").unwrap().mask(), 7_168);
        assert_eq!(IntervalFields::of_mask(YEAR | DAY), None);
        assert_eq!(IntervalFields::named("second to hour"), None);
    }
}
