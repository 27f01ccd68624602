//! The rows of COPY ... FROM: one call, or, if they are too many for one and the table is empty,
//! calls of parts that nothing leads to until the last one.

use super::connection::Connection;
use super::load::Load;
use super::pending::Answer;
use super::statement::{Planned, Statement};
use sql::catalog::Catalog;
use sql::copy::CopiedRows;
use sql::ir::{Insert, InsertRows, Plan};
use std::sync::Arc;
use values::row::Layout;
use values::{Datum, Error, Result, SqlState};

/// The most bytes of rows of a COPY that is one call.
const CALL_BYTES_MAX: usize = 16 << 20;
/// The bytes of a part.
const PART_BYTES: usize = 1 << 20;

/// Rows that are copied from a client.
pub struct CopyIn {
    statement: Arc<Statement>,
    rows: CopiedRows,
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
}

impl CopyIn {
    /// No rows yet of a COPY ... FROM; in a block they are few enough for one call.
    #[must_use]
    pub fn new(statement: &Arc<Statement>, is_in_block: bool) -> CopyIn {
        let table = statement.copy.as_ref().and_then(|copy| copy.table.as_ref());
        let table = table.expect("rows are copied into a table");
        let ty =
            |target: &sql::ir::ColumnNumber| table.relation.columns[usize::from(*target)].kind.ty;
        let layout = Layout::new(table.targets.iter().map(ty).collect());
        let rows = CopiedRows::new(layout);
        let way = if is_in_block { Way::OneCall } else { Way::Collected };
        CopyIn { statement: Arc::clone(statement), rows, way, is_in_block }
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
        if bytes >= PART_BYTES && matches!(self.way, Way::Collected) {
            connection.all_done().await?;
            let load = connection.shared.begin_load(&self.statement, &connection.zone);
            self.way = match load.await? {
                Some(load) => Way::Load(Box::new(load)),
                None => Way::OneCall,
            };
        }
        match &mut self.way {
            Way::Load(load) if bytes >= PART_BYTES => load.part(self.rows.take()).await,
            Way::Load(_) | Way::Collected => Ok(()),
            Way::OneCall if bytes <= CALL_BYTES_MAX => Ok(()),
            Way::OneCall => {
                let message = format!("COPY has more than {CALL_BYTES_MAX} bytes of rows");
                Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(
                    "Copy in several parts, or into an empty table without foreign keys.",
                ))
            }
        }
    }

    /// Writes the rows, all or none.
    ///
    /// # Errors
    /// The statement's.
    pub async fn finish(mut self, connection: &mut Connection) -> Result<Answer> {
        let rows = self.rows.take();
        match self.way {
            Way::Load(load) => load.finish(rows).await,
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

/// The plan of a part, whose rows go under other ids.
pub(super) fn part_of(
    insert: &Insert,
    relation: sql::ir::Relation,
    catalog: &Arc<Catalog>,
) -> Planned {
    assert!(matches!(insert.rows, InsertRows::Copied(..)), "only COPY has parts");
    Planned::new(Plan::Insert(Insert { relation, ..insert.clone() }), catalog)
}
