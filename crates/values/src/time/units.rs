//! What dates, times and intervals have in common.

use crate::{Error, SqlState};

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

pub(super) fn out_of_range() -> Error {
    Error::new(SqlState::DATETIME_OUT_OF_RANGE, "timestamp out of range")
}

/// Microseconds after the point, without zeros at the end; nothing of zero.
pub(super) fn fraction(microseconds: i64) -> String {
    if microseconds == 0 {
        return String::new();
    }
    format!(".{microseconds:06}").trim_end_matches('0').to_owned()
}
