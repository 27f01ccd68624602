//! Copies of parts of a statement, which are bounded: a part may be within others that are copied,
//! too.

use std::fmt::{Display, Write};
use values::{Error, Result, SqlState};

/// The most bytes of the text of what is copied.
const COPIED_BYTES_MAX: usize = 1 << 20;

/// Counts bytes down.
struct Counter(usize);

impl Write for Counter {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(std::fmt::Error)?;
        Ok(())
    }
}

/// Refuses to copy a part so many times if that is too much.
pub(super) fn check_copies(part: &impl Display, count: usize) -> Result<()> {
    let mut counter = Counter(COPIED_BYTES_MAX / count.max(1));
    write!(counter, "{part}").map_err(|_| {
        let message = "a query of grouping sets, with ties or of a function in FROM is too long";
        Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
    })
}
