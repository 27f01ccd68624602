//! Errors of the library as clients get them.

use super::call::{REFUSED, decode_error};
use nvcaracal::ErrorKind;
use values::{Error, SqlState};

/// Of a call that did not commit.
pub(super) fn of_call(error: &nvcaracal::Error) -> Error {
    match error.abort() {
        Some(abort) if abort.code == REFUSED => decode_error(&abort.payload),
        _ => other(error, SqlState::LIMIT_EXCEEDED),
    }
}

/// Of a read. A snapshot that the limit of what snapshots keep has ended is too old.
pub(super) fn of_read(error: nvcaracal::Error) -> Error {
    let mapped = other(&error, SqlState::SNAPSHOT_TOO_OLD);
    match error.kind() {
        ErrorKind::Limit => mapped.with_hint("Run the query again."),
        _ => mapped,
    }
}

fn other(error: &nvcaracal::Error, limit: SqlState) -> Error {
    let state = match error.kind() {
        ErrorKind::Full => SqlState::DISK_FULL,
        ErrorKind::Limit => limit,
        ErrorKind::QueueFull => SqlState::OUT_OF_MEMORY,
        ErrorKind::Io => SqlState::IO_ERROR,
        ErrorKind::Corrupt => SqlState::DATA_CORRUPTED,
        ErrorKind::Stopped | ErrorKind::NotDeterministic | ErrorKind::Closed => {
            SqlState::ADMIN_SHUTDOWN
        }
        _ => SqlState::INTERNAL,
    };
    Error::new(state, error.to_string())
}

/// Of a statement that the store's end or a failure has cut off before it became a call.
pub(super) fn cut_off() -> Error {
    Error::new(
        SqlState::ADMIN_SHUTDOWN,
        "the statement was not run: the store is closing or failed",
    )
}
