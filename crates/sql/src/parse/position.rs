//! Positions as PostgreSQL counts them: characters of the whole text, from 1.

use sqlparser::tokenizer::Location;

/// The position of a line and column; 0 of what has none.
pub(crate) fn of(text: &str, location: Location) -> u32 {
    if location.line == 0 {
        return 0;
    }
    let before: usize = text
        .split_inclusive('\n')
        .take(location.line as usize - 1)
        .map(|line| line.chars().count())
        .sum();
    u32::try_from(before as u64 + location.column).unwrap_or(0)
}
