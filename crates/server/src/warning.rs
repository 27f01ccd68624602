//! What the server says to who runs it.

use std::io::{self, Write};

/// Writes a line to standard error. A terminal that is closed is no reason to end.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}
