//! A COPY while its rows come.

use crate::store::{Connection, CopyIn};
use sql::copy::{Line, Lines, Records};
use values::Result;

/// A COPY whose rows come.
pub(super) struct Copying {
    pub(super) lines: Lines,
    pub(super) records: Records,
    pub(super) rows: CopyIn,
    /// Whether the next line is the one of names.
    pub(super) is_header: bool,
    /// Whether it is answered when it ends, and not at a Sync.
    pub(super) is_simple: bool,
}

impl Copying {
    /// Takes a line.
    pub(super) async fn line(&mut self, line: &Line, connection: &mut Connection) -> Result<()> {
        if std::mem::take(&mut self.is_header) {
            return Ok(());
        }
        let row = self.records.row(line)?;
        self.rows.push(connection, line.number, &row).await
    }
}
