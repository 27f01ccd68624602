//! Positions as PostgreSQL counts them: characters of the whole text, from 1.

use sqlparser::tokenizer::Location;
use values::Position;

/// Where the lines of a text begin: counted once, as each value of a statement has a place. By
/// default there is no text, in which nothing has a place.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The number of characters before each line, then that of all.
    before: Vec<u64>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let mut before = vec![0];
        let mut count = 0;
        for line in text.split_inclusive('\n') {
            count += line.chars().count() as u64;
            before.push(count);
        }
        Lines { before }
    }

    /// The position of a line and column; the parser says line 0 of what has none.
    pub(crate) fn position(&self, location: Location) -> Option<Position> {
        let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        // The line behind a line break at the end of the text has nothing.
        let before = self.before.get(line).or(self.before.last())?;
        at(before + location.column)
    }

    /// The position behind the last character.
    pub(super) fn end(&self) -> Option<Position> {
        at(self.before.last()? + 1)
    }
}

fn at(number: u64) -> Option<Position> {
    u32::try_from(number).ok().and_then(Position::new)
}
