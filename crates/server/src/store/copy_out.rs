//! The rows of COPY ... TO, page by page, at one snapshot.

use super::connection::Connection;
use super::failure;
use super::pending::{Answer, Watch};
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use super::statement::Statement;
use nvcaracal::Snapshot;
use sql::Grant;
use sql::run::Pages;
use std::sync::Arc;
use values::{Datum, Result};

/// Rows that are copied to a client.
pub struct CopyOut {
    shared: Arc<Shared>,
    watch: Watch,
    rows: Rows,
    /// The memory of rows that were found.
    _memory: Option<Arc<Grant>>,
}

enum Rows {
    /// Of a query: all that are left.
    Found(Vec<Vec<Datum>>),
    /// Of a table.
    Pages(Box<(Snapshot, Pages)>),
}

/// Rows that are given at a time.
const GIVEN_ROWS: usize = 256;

impl Connection {
    /// Begins a COPY ... TO, behind all that was submitted. In a block it is a query like others,
    /// whose rows are collected.
    ///
    /// # Errors
    /// The statement's.
    pub async fn copy_out(
        &mut self,
        statement: &Arc<Statement>,
        is_in_block: bool,
    ) -> Result<CopyOut> {
        let shared = Arc::clone(&self.shared);
        let copy = statement.copy.as_ref().expect("it is a COPY");
        if is_in_block || copy.table.is_none() || statement.uses_temporary() {
            let Answer { rows, memory, .. } = match is_in_block {
                true => self.submit_in_block(statement, Vec::new()).await?,
                false => self.submit(statement, Vec::new()).await?,
            };
            let (watch, rows) = (self.ender.watch(), Rows::Found(rows));
            return Ok(CopyOut { shared, watch, rows, _memory: memory });
        }
        self.all_done().await?;
        let (statement, snapshot) = loop {
            let statement = self.renewed(statement).await?.unwrap_or_else(|| Arc::clone(statement));
            let made = shared.database.snapshot_async().await;
            // As for other queries.
            if shared.is_of_now(&statement) {
                break (statement, made.map_err(failure::of_read)?);
            }
        };
        let table = statement.copy.as_ref().and_then(|copy| copy.table.as_ref());
        let table = table.expect("it was a table's before, too");
        let pages = Pages::of(&table.relation, &table.targets);
        Ok(CopyOut {
            shared,
            watch: self.ender.watch(),
            rows: Rows::Pages(Box::new((snapshot, pages))),
            _memory: None,
        })
    }
}

impl CopyOut {
    /// The next rows; none behind the last.
    ///
    /// # Errors
    /// Of reading.
    pub async fn next_page(&mut self) -> Result<Vec<Vec<Datum>>> {
        self.watch.check()?;
        let shared = Arc::clone(&self.shared);
        let mut rows = std::mem::replace(&mut self.rows, Rows::Found(Vec::new()));
        let work = move || Ok((rows.next_page(&shared)?, rows));
        let (page, rows) = self.shared.pool.run(work).await?;
        self.rows = rows;
        Ok(page)
    }
}

impl Rows {
    fn next_page(&mut self, shared: &Shared) -> Result<Vec<Vec<Datum>>> {
        match self {
            Rows::Found(rows) => {
                let left = rows.split_off(rows.len().min(GIVEN_ROWS));
                Ok(std::mem::replace(rows, left))
            }
            Rows::Pages(read) => {
                let (snapshot, pages) = &mut **read;
                // The rows are bounded by the table.
                let steps = Steps::new(u64::MAX);
                let reads = Reads::Snapshot(snapshot);
                pages.next_page(&mut ReadRows::new(&shared.spaces, reads, steps))
            }
        }
    }
}
