//! Cursors of SQL: DECLARE runs the query, FETCH answers its rows part by part. The rows are those
//! of the moment of DECLARE.

use super::conversation::{Conversation, Stop, Submission};
use super::planned::{Cursor, Prepared, Work};
use super::queue::Shape;
use crate::codec::Format;
use sql::parse::{Declared, Fetch};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState};

impl Conversation {
    /// DECLARE: runs the query and keeps its rows.
    pub(super) async fn declare(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Vec<Datum>,
        bytes: usize,
    ) -> Result<(), Stop> {
        let Work::Declare(declared, statement) = &prepared.work else {
            unreachable!("it declares a cursor")
        };
        self.open_held().await?;
        let Declared { name, is_held } = declared;
        let is_in_block = self.is_in_block() && !self.block.is_implicit;
        if !is_in_block && !is_held {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(SqlState::NO_ACTIVE_TRANSACTION, message).into());
        }
        self.cursors.check(name, 0)?;
        let formats: Arc<[Format]> = Arc::new([]);
        let submission = Submission {
            prepared: Arc::clone(prepared),
            statement: Arc::clone(statement),
            values,
            bytes,
            shape: Shape::of(prepared, &formats, self.settings.zone()),
            rows_max: 0,
            before: Default::default(),
        };
        let rows = self.read(submission).await?.rows;
        let bytes = rows.iter().flatten().map(Datum::memory_bytes).sum();
        self.cursors.check(name, bytes)?;
        let columns = statement.columns.clone().into();
        let rows = rows.into_iter();
        let is_held = *is_held;
        self.cursors.insert(name.clone(), Cursor { columns, rows, bytes, is_held, is_in_block });
        self.out.command_complete(&"DECLARE CURSOR");
        Ok(())
    }

    /// The next rows of a cursor.
    pub(super) fn fetch(&mut self, fetch: &Fetch, shape: &Shape) -> Result<()> {
        let cursor = self.cursors.get(&fetch.cursor)?;
        if cursor.columns != shape.columns {
            let message = "cached plan must not change result type";
            return Err(Error::unsupported(message, "Prepare the FETCH again."));
        }
        let count =
            fetch.rows_max.map_or(usize::MAX, |count| count.try_into().unwrap_or(usize::MAX));
        let rows: Vec<Vec<Datum>> = cursor.rows.by_ref().take(count).collect();
        self.local_rows(&rows, shape);
        self.out.command_complete(&format!("FETCH {}", rows.len()));
        Ok(())
    }

    /// CLOSE of a cursor, or of all.
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<&'static str> {
        let Some(name) = name else {
            self.cursors.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        self.cursors.get(name)?;
        self.cursors.remove(name);
        Ok("CLOSE CURSOR")
    }

    /// At the end of a block its cursors are closed, but for those that it commits WITH HOLD.
    pub(super) fn end_cursors(&mut self, has_committed: bool) {
        self.cursors.retain(|cursor| {
            let stays = !cursor.is_in_block || has_committed && cursor.is_held;
            cursor.is_in_block = false;
            stays
        });
    }
}
