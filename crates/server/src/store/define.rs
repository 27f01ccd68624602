//! Definitions: alone between the calls before and after, so that each plan meets the catalog that
//! it was made for.

use super::call::{Call, DefinedRow, decode_answer};
use super::failure;
use super::moved::MovedRows;
use super::pending::Answer;
use super::shared::Shared;
use super::statement::Statement;
use nvcaracal::{Part, Snapshot, Ticket};
use sql::Definition;
use sql::catalog::Catalog;
use sql::ir::{ObjectId, Space};
use sql::run::{Context, Limits, Rows, Writes};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use values::{Error, Result};

/// Rows that one call deletes of what is dropped.
const CLEARED_ROWS: u32 = 2_000;

impl Shared {
    /// Runs a definition: no statement of any connection is a call meanwhile.
    pub(super) async fn define(
        self: &Arc<Shared>,
        statement: &Statement,
        context: &Context,
    ) -> Result<Answer> {
        let alone = self.gate.write().await;
        let (catalog, snapshot) = self.settled().await?;
        let limits = Limits { filled_rows_max: usize::MAX, ..context.limits };
        let context = Context { limits, ..context.clone() };
        let mut rows = MovedRows::new(self, &catalog, &snapshot);
        let made = delta_of(&catalog, statement, &context, &mut rows)
            .and_then(|made| Ok((Arc::new(catalog.with(&made.delta)?), made)));
        let mut moved = rows.into_moved();
        let (next, definition) = match made {
            Ok(made) => made,
            Err(error) => {
                self.take_back(&catalog, &moved)?;
                return Err(error);
            }
        };
        let tag = definition.shown_tag();
        let answer = Answer { tag, rows: definition.rows, notice: definition.notice };
        if definition.delta.is_empty() {
            return Ok(answer);
        }
        let last = Call::Define(std::mem::take(&mut moved.rows)).encode();
        if let Err(error) = self.call(&last).await {
            self.take_back(&catalog, &moved)?;
            return Err(error);
        }
        self.set_catalog(next);
        drop(alone);
        for (space, prefix) in definition.delta.cleared() {
            self.clear(*space, prefix.clone());
        }
        Ok(answer)
    }

    /// A call that is no statement.
    pub(super) async fn call(&self, call: &[u8]) -> Result<sql::run::Answer> {
        answer_of(match self.submit(call).await {
            Ok(ticket) => ticket.await,
            Err(error) => Err(error),
        })
    }

    /// Submits a call that is no statement, or a part of one.
    pub(super) async fn submit(&self, call: &[u8]) -> nvcaracal::Result<Ticket<Vec<u8>>> {
        let submitter = self.database.in_part(Part::Serial);
        submitter.submit_raw_async(self.procedure, call).await
    }

    /// Deletes in the background what nothing leads to. What is left at the end of the process goes
    /// when the store is open again.
    pub(super) fn clear(self: &Arc<Shared>, space: Space, prefix: Vec<u8>) {
        let clearing = Clearing::new(self);
        self.pool.spawn(async move {
            let shared = &clearing.0;
            let call = Call::Clear(space, prefix, CLEARED_ROWS).encode();
            while !shared.is_closing.load(Ordering::Relaxed) {
                match shared.call(&call).await {
                    Ok(sql::run::Answer { tag: sql::run::Tag::Delete(1..), .. }) => {}
                    // The next open tries again.
                    Ok(_) | Err(_) => return,
                }
            }
        });
    }

    /// Looks in the background for what the last process had dropped and not deleted: keys that
    /// begin with no id of the catalog, in the state as of now.
    pub(super) fn clear_left(self: &Arc<Shared>) {
        // Without a snapshot the next open tries again.
        let Ok(snapshot) = self.database.snapshot() else { return };
        // Later than the snapshot: no row of it belongs to a table that is made meanwhile.
        let known = ids(&self.catalog());
        let looking = Clearing::new(self);
        self.pool.spawn(async move {
            // What cannot be read is found by who needs it.
            let _ = looking.0.look_for_left(&known, &snapshot);
        });
    }

    fn look_for_left(
        self: &Arc<Shared>,
        known: &BTreeSet<Vec<u8>>,
        snapshot: &Snapshot,
    ) -> nvcaracal::Result<()> {
        for space in super::spaces::ALL {
            if space == Space::Catalog {
                continue;
            }
            let (table, mut from) = (self.spaces.table(space), Vec::new());
            while !self.is_closing.load(Ordering::Relaxed)
                && let Some(row) = snapshot.range(table, &from[..]..).next()
            {
                let (key, _) = row?;
                let prefix = key[..key.len().min(ObjectId::BYTES)].to_vec();
                if !known.contains(&prefix) {
                    self.clear(space, prefix.clone());
                }
                match values::key::after_prefix(&prefix) {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(())
    }
}

/// What a call has answered.
pub(super) fn answer_of(answer: nvcaracal::Result<Vec<u8>>) -> Result<sql::run::Answer> {
    decode_answer(&answer.map_err(|error| failure::of_call(&error))?)
}

/// Makes the delta of a definition; what it writes, rows of the catalog too, is in the overlay.
pub(super) fn delta_of(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let definition = sql::define(catalog, statement.parsed.tree(), context, rows)?
        .ok_or_else(|| Error::unsupported("this definition is not supported", ""))?;
    for (key, row) in definition.delta.rows() {
        match row {
            Some(row) => rows.put(Space::Catalog, key, row)?,
            None => rows.delete(Space::Catalog, key)?,
        }
    }
    Ok(definition)
}

/// Writes as a call has them.
pub(super) fn rows_of(writes: &Writes) -> Vec<DefinedRow> {
    let row = |((space, key), row): (&(Space, Vec<u8>), &Option<Vec<u8>>)| DefinedRow {
        space: *space,
        key: key.clone(),
        row: row.clone(),
    };
    writes.iter().map(row).collect()
}

/// Counts while keys are being cleared.
struct Clearing(Arc<Shared>);

impl Clearing {
    fn new(shared: &Arc<Shared>) -> Clearing {
        shared.clearing.fetch_add(1, Ordering::AcqRel);
        Clearing(Arc::clone(shared))
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        self.0.clearing.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The beginnings of all keys that the catalog leads to.
pub(super) fn ids(catalog: &Catalog) -> BTreeSet<Vec<u8>> {
    let of_table = |table: &Arc<sql::catalog::Table>| {
        let indexes = table.relation.indexes.iter().map(|index| index.id);
        std::iter::once(table.relation.id).chain(indexes).collect::<Vec<_>>()
    };
    catalog.tables().flat_map(of_table).map(sql::catalog::prefix).collect()
}
