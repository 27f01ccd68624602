//! The rows of COPY ... FROM: one call, or, if they are too many for one and the table is empty,
//! calls of parts that nothing leads to until the last one. In a block that has made the table, the
//! parts are those of the table that it makes.

use super::connection::Connection;
use super::load::{Load, Parts};
use super::pending::Answer;
use super::statement::Statement;
use sql::Grant;
use sql::copy::CopiedRows;
use std::sync::Arc;
use values::row::Layout;
use values::{Datum, Error, Result, SqlState};

/// Rows that are copied from a client.
pub struct CopyIn {
    statement: Arc<Statement>,
    rows: CopiedRows,
    /// The memory of the rows.
    memory: Arc<Grant>,
    way: Way,
    is_in_block: bool,
}

enum Way {
    /// Few so far.
    Collected,
    /// In one call, however many there are.
    OneCall,
    /// In parts.
    Load(Box<Load>),
    /// In parts, of a block that has made the table.
    InBlock(Box<Parts>),
}

impl CopyIn {
    /// No rows yet of a COPY ... FROM; in a block they are few enough for one call.
    #[must_use]
    pub fn new(statement: &Arc<Statement>, is_in_block: bool, connection: &Connection) -> CopyIn {
        let table = statement.copy.as_ref().and_then(|copy| copy.table.as_ref());
        let table = table.expect("rows are copied into a table");
        let ty =
            |target: &sql::ir::ColumnNumber| table.relation.columns[usize::from(*target)].kind.ty;
        let layout = Layout::new(table.targets.iter().map(ty).collect());
        let rows = CopiedRows::new(layout);
        let way = if is_in_block { Way::OneCall } else { Way::Collected };
        let (statement, memory) = (Arc::clone(statement), connection.shared.memory.grant());
        CopyIn { statement, rows, memory, way, is_in_block }
    }

    /// Adds the row of a line.
    ///
    /// # Errors
    /// Of a part that is written, or if there are too many rows; then nothing is copied.
    pub async fn push(
        &mut self,
        connection: &mut Connection,
        line: u64,
        row: &[Datum],
    ) -> Result<()> {
        self.rows.push(line, row);
        let bytes = self.rows.bytes().len();
        if bytes > self.memory.bytes() {
            self.memory.grow_to(bytes + bytes / 8)?;
        }
        let options = &connection.shared.options;
        let (part_bytes, copy_bytes_max) = (options.part_bytes, options.copy_bytes_max);
        let may_load = !self.statement.uses_temporary() && matches!(self.way, Way::Collected);
        if bytes >= part_bytes && may_load {
            connection.all_done().await?;
            let watch = connection.ender.watch();
            let load =
                connection.shared.begin_load(&self.statement, &connection.environment.zone, &watch);
            self.way = match load.await? {
                Some(load) => Way::Load(Box::new(load)),
                None => Way::OneCall,
            };
        }
        match &mut self.way {
            Way::Load(load) if bytes >= part_bytes => load.parts.write(self.rows.take()).await,
            Way::InBlock(parts) if bytes >= part_bytes => parts.write(self.rows.take()).await,
            Way::Load(_) | Way::InBlock(_) => Ok(()),
            Way::Collected if bytes <= copy_bytes_max => Ok(()),
            Way::OneCall if bytes <= copy_bytes_max => Ok(()),
            Way::OneCall if self.is_in_block && !self.statement.uses_temporary() => {
                let mut parts = connection.begin_load_in_block(&self.statement).await?;
                for rows in self.rows.take_parts(part_bytes) {
                    parts.write(rows).await?;
                }
                self.way = Way::InBlock(Box::new(parts));
                Ok(())
            }
            Way::Collected | Way::OneCall => {
                let message = format!("COPY has more than {copy_bytes_max} bytes of rows");
                Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(
                    "Copy in several parts, or into an empty table without foreign keys.",
                ))
            }
        }
    }

    /// The error of a COPY that has come to one: the first, which may be of rows that are being
    /// written.
    pub async fn first_error(&mut self, error: Error) -> Error {
        let written = match &mut self.way {
            Way::Load(load) => load.parts.written().await,
            Way::InBlock(parts) => parts.written().await,
            Way::Collected | Way::OneCall => Ok(()),
        };
        written.err().unwrap_or(error)
    }

    /// Writes the rows, all or none.
    ///
    /// # Errors
    /// The statement's.
    pub async fn finish(mut self, connection: &mut Connection) -> Result<Answer> {
        let rows = self.rows.take();
        match self.way {
            Way::Load(load) => load.finish(rows, &connection.ender.watch()).await,
            Way::InBlock(mut parts) => {
                parts.write(rows).await?;
                parts.written().await?;
                connection.end_load_in_block(*parts)
            }
            Way::Collected | Way::OneCall => {
                let rows = vec![Datum::Bytea(rows.into())];
                match self.is_in_block {
                    true => connection.submit_in_block(&self.statement, rows).await,
                    false => connection.submit(&self.statement, rows).await,
                }
            }
        }
    }
}
