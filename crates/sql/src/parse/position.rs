//! Positions as PostgreSQL counts them: characters of the whole text, from 1.

use sqlparser::tokenizer::Location;
use values::Position;

/// The position of a line and column; the parser says line 0 of what has none.
pub(crate) fn of(text: &str, location: Location) -> Option<Position> {
    if location.line == 0 {
        return None;
    }
    let before: usize = text
        .split_inclusive('\n')
        .take(location.line as usize - 1)
        .map(|line| line.chars().count())
        .sum();
    at(before as u64 + location.column)
}

/// The position behind the last character.
pub(super) fn end_of(text: &str) -> Option<Position> {
    at(text.chars().count() as u64 + 1)
}

fn at(number: u64) -> Option<Position> {
    u32::try_from(number).ok().and_then(Position::new)
}
