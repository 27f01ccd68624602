//! Definitions: alone between the calls before and after, so that each call's plan meets the
//! catalog that it was made for.
//!
//! 1. A definition that is short runs within the gate, which it has alone: everything that writes
//!    waits for it, as short as that is.
//! 2. One that takes longer leaves the gate, and runs again beside everything else, at a snapshot.
//!    Only writers of the tables that it goes through wait, outside of the gate, from that snapshot
//!    on. What it writes is under ids that were reserved for it.
//! 3. Then it takes place within the gate, on the catalog of then: what is short of it runs once
//!    more there, with what came of its passes over rows. If those would be of other tables,
//!    indexes or expressions now, all of it runs again.

use super::call::{Call, DefinedRow, decode_answer};
use super::moved::{MovedRows, Progress, keep_until};
use super::pending::{Answer, Watch};
use super::pieces;
use super::pool::lock;
use super::rows::Steps;
use super::shared::{Alone, Shared};
use super::statement::Statement;
use super::{failure, panics};
use nvcaracal::{Part, Snapshot, Ticket};
use sql::Definition;
use sql::catalog::Catalog;
use sql::ir::{ObjectId, Space};
use sql::run::{Context, Limits, Rows, Writes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use values::{Error, Result, SqlState};

/// Rows that one call deletes of what is dropped.
const CLEARED_ROWS: u32 = 2_000;
/// Ids that are reserved for a definition that takes long.
const RESERVED_IDS: u32 = 4_096;
/// How often a definition that takes long runs, if others define what it depends on meanwhile.
const RUNS_MAX: u32 = 8;

/// What came of a run of a definition.
enum Run {
    Done(Answer),
    /// It is to be run again, while these tables are held.
    Again(BTreeSet<ObjectId>),
}

/// A definition with its values, and what ends it.
#[derive(Clone, Copy)]
struct Defining<'d> {
    statement: &'d Statement,
    context: &'d Context,
    watch: &'d Watch,
}

impl Defining<'_> {
    /// Makes the delta; a panic is its error.
    fn made(&self, catalog: &Catalog, rows: &mut dyn Rows) -> Result<Definition> {
        panics::caught(|| made(catalog, self.statement, self.context, rows))
    }
}

impl Shared {
    /// Runs a definition.
    pub(super) async fn define(
        self: &Arc<Shared>,
        statement: &Statement,
        context: &Context,
        watch: &Watch,
    ) -> Result<Answer> {
        let limits = Limits { filled_rows_max: usize::MAX, ..context.limits };
        let context = &Context { limits, ..context.clone() };
        let defining = Defining { statement, context, watch };
        let mut run = self.define_at_once(defining).await?;
        for _ in 0..RUNS_MAX {
            run = match run {
                Run::Done(answer) => return Ok(answer),
                Run::Again(tables) => self.define_beside(defining, tables).await?,
            };
        }
        if let Run::Done(answer) = run {
            return Ok(answer);
        }
        let message = "could not define it, as others define what it depends on";
        Err(Error::new(SqlState::SERIALIZATION_FAILURE, message).with_hint("Run it again."))
    }

    /// Runs a definition within the gate, if it is short.
    async fn define_at_once(self: &Arc<Shared>, defining: Defining<'_>) -> Result<Run> {
        let watch = defining.watch;
        loop {
            let (alone, catalog, snapshot) = self.alone_with(watch, &BTreeSet::new()).await?;
            let mut rows = MovedRows::short(self, catalog.next_id(), &snapshot);
            let made = defining.made(&catalog, &mut rows);
            let (is_again, progress) = (rows.is_again(), rows.into_progress());
            if is_again {
                return Ok(Run::Again(progress.tables().collect()));
            }
            let definition = made?;
            if let Some(released) = self.held.released(&definition.delta.tables()) {
                drop(alone);
                watch.interrupt().or(released).await?;
                continue;
            }
            return self.take_place(alone, definition, progress).await.map(Run::Done);
        }
    }

    /// Runs a definition beside everything but writers of these tables.
    async fn define_beside(
        self: &Arc<Shared>,
        defining: Defining<'_>,
        tables: BTreeSet<ObjectId>,
    ) -> Result<Run> {
        let watch = defining.watch;
        let (alone, catalog, snapshot) = self.alone_with(watch, &tables).await?;
        let first = catalog.next_id();
        let behind = ObjectId::new(first.number().saturating_add(RESERVED_IDS));
        self.reserve_ids(&catalog, behind).await?;
        let hold = self.held.hold(tables.clone());
        drop(alone);
        let catalog = Catalog::clone(&self.catalog()).at_next_id(first);
        let steps = Steps::watched(u64::MAX, &self.pool, watch.clone());
        let mut rows = MovedRows::long(self, first, &snapshot, steps, &tables);
        let made = defining.made(&catalog, &mut rows);
        let (is_again, progress) = (rows.is_again(), rows.into_progress());
        drop(snapshot);
        let moved = progress.moved();
        let run = match made {
            _ if is_again => Ok(Run::Again(tables.into_iter().chain(progress.tables()).collect())),
            Ok(_) => self.define_behind(defining, first, progress).await,
            Err(error) => Err(error),
        };
        drop(hold);
        if !matches!(run, Ok(Run::Done(_))) {
            self.take_back(&moved);
        }
        run
    }

    /// Lets a definition take place that has gone through its tables, which are held.
    async fn define_behind(
        self: &Arc<Shared>,
        defining: Defining<'_>,
        first: ObjectId,
        progress: Progress,
    ) -> Result<Run> {
        let watch = defining.watch;
        let tables: BTreeSet<ObjectId> = progress.tables().collect();
        let (alone, catalog, snapshot) = self.alone_with(watch, &BTreeSet::new()).await?;
        let own = Catalog::clone(&catalog).at_next_id(first);
        let mut rows = MovedRows::repeated(self, first, &snapshot, progress);
        let made = defining.made(&own, &mut rows);
        let (is_again, progress) = (rows.is_again(), rows.into_progress());
        if is_again {
            return Ok(Run::Again(tables));
        }
        let mut definition = made?;
        let touched = definition.delta.tables();
        let others = touched.difference(&tables).copied().collect();
        if self.held.has(&others) {
            return Ok(Run::Again(tables.into_iter().chain(others).collect()));
        }
        watch.check()?;
        let last = own.with(&definition.delta)?.next_id();
        if last.number() - first.number() > RESERVED_IDS {
            let message = format!("a definition makes more than {RESERVED_IDS} objects");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        definition.delta.append(keep_until(catalog.next_id()));
        self.take_place(alone, definition, progress).await.map(Run::Done)
    }

    /// No other object gets ids before this one; plans for the catalog stay what they are.
    async fn reserve_ids(&self, catalog: &Catalog, behind: ObjectId) -> Result<()> {
        let rows = super::moved::catalog_rows(&keep_until(behind)).collect();
        self.call(&Call::Define(rows).encode()).await?;
        *lock(&self.catalog) = Arc::new(Catalog::clone(catalog).at_next_id(behind));
        Ok(())
    }

    /// Writes what is left of a definition, and gives everybody the next catalog.
    async fn take_place(
        self: &Arc<Shared>,
        alone: Alone<'_>,
        definition: Definition,
        progress: Progress,
    ) -> Result<Answer> {
        let next = Arc::new(self.catalog().with(&definition.delta)?);
        let tag = definition.shown_tag();
        let (rows, notice) = (definition.rows, definition.notice);
        let answer = Answer { tag, rows, notice, ..Answer::default() };
        if definition.delta.is_empty() {
            return Ok(answer);
        }
        let mut rows = progress.into_rows();
        // Of several rows with a key the last counts.
        let last: BTreeMap<_, _> = definition.delta.rows().iter().cloned().collect();
        let row = |(key, row)| DefinedRow { space: Space::Catalog, key, row };
        rows.extend(last.into_iter().map(row));
        self.call(&Call::Define(rows).encode()).await?;
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
            if shared.has_pieces.load(Ordering::Relaxed)
                && let Some(id) = prefix.first_chunk()
            {
                shared.clear_all(pieces::SPACE, pieces::pieces_of(*id).to_vec()).await;
            }
            shared.clear_all(space, prefix).await;
        });
    }

    async fn clear_all(&self, space: Space, prefix: Vec<u8>) {
        let call = Call::Clear(space, prefix, CLEARED_ROWS).encode();
        while !self.is_closing.load(Ordering::Relaxed) {
            match self.call(&call).await {
                Ok(sql::run::Answer { tag: sql::run::Tag::Delete(1..), .. }) => {}
                // The next open tries again.
                Ok(_) | Err(_) => return,
            }
        }
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

/// Makes the delta of a definition; what it writes is in `rows`.
fn made(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    #[cfg(test)]
    panics::planted(panics::Place::Definition, statement.parsed.text());
    let environment = &statement.environment;
    let over = environment.temporary.as_ref().map(|temporary| temporary.over(catalog));
    let catalog = &*over.as_deref().unwrap_or(catalog).along(&environment.path);
    sql::define(catalog, statement.parsed.tree(), context, rows)?
        .ok_or_else(|| Error::unsupported("this definition is not supported", ""))
}

/// Makes the delta of a definition; what it writes, rows of the catalog too, is in the overlay.
pub(super) fn delta_of(
    catalog: &Catalog,
    statement: &Statement,
    context: &Context,
    rows: &mut dyn Rows,
) -> Result<Definition> {
    let definition = made(catalog, statement, context, rows)?;
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
        let (id, indexes) = (table.relation.id, table.relation.indexes.iter());
        let mut all: Vec<_> = indexes.map(|index| sql::catalog::prefix(index.id)).collect();
        all.extend([sql::catalog::prefix(id), pieces::pieces_of(id.to_bytes()).to_vec()]);
        all
    };
    catalog.tables().flat_map(of_table).collect()
}
