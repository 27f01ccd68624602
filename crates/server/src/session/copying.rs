//! A COPY while its rows come.

use crate::store::{Connection, CopyIn};
use sql::copy::Reader;
use tokio::time::Instant;
use values::Result;

/// A COPY whose rows come.
pub(super) struct Copying {
    pub(super) reader: Reader,
    pub(super) rows: CopyIn,
    /// Whether it is answered when it ends, and not at a Sync.
    pub(super) is_simple: bool,
    /// When its time is over.
    pub(super) deadline: Option<Instant>,
}

impl Copying {
    /// Takes bytes.
    pub(super) async fn bytes(&mut self, bytes: &[u8], connection: &mut Connection) -> Result<()> {
        self.reader.push(bytes);
        while let Some((line, row)) = self.reader.next_row()? {
            self.rows.push(connection, line, &row).await?;
        }
        Ok(())
    }

    /// Takes what is left when all bytes have come.
    pub(super) async fn rest(&mut self, connection: &mut Connection) -> Result<()> {
        match self.reader.last_row()? {
            Some((line, row)) => self.rows.push(connection, line, &row).await,
            None => Ok(()),
        }
    }
}
