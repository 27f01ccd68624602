//! What clients may take.

use std::time::Duration;

/// The longest message with a statement or values.
pub(crate) const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// Entries of a connection that are not yet sent: then nothing more is read from it.
pub(crate) const UNSENT_MAX: usize = 1_000;
/// Their bytes, as far as they are known.
pub(crate) const UNSENT_BYTES_MAX: usize = 8 << 20;
/// What is sent at once.
pub(crate) const SENT_BYTES: usize = 64 << 10;
/// What is assumed of the answer of a query that was not yet answered once.
pub(crate) const ANSWER_BYTES_GUESSED: usize = 512 << 10;
/// Prepared statements, and portals, of a session.
pub(crate) const PREPARED_MAX: usize = 1_000;
/// The bytes of texts of prepared statements, and of values of portals.
pub(crate) const PREPARED_BYTES_MAX: usize = 64 << 20;
/// Statements of a segment that are held until its end, and their bytes.
pub(crate) const HELD_MAX: usize = 1_000;
pub(crate) const HELD_BYTES_MAX: usize = 8 << 20;
/// Connections above the limit that are told so at a time; further ones are closed.
pub(crate) const REFUSED_MAX: usize = 64;
/// How long what a client has sent goes on when it has disconnected.
pub(crate) const GONE_PATIENCE: Duration = Duration::from_millis(250);
