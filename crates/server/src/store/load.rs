//! A large COPY into an empty table: parts of the rows are calls that write under ids which no
//! table has, so nothing leads to them. Behind the last part a definition gives the table these
//! ids. What is left of a COPY that did not come so far is cleared.

use super::call::{Call, Run, ZoneForm};
use super::define::answer_of;
use super::failure;
use super::options::COPY_STEPS_TIMES;
use super::pending::{Answer, Watch};
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use super::statement::{Planned, Statement};
use nvcaracal::{Snapshot, Ticket};
use sql::catalog::{Catalog, Delta, Table, prefix};
use sql::ir::{ObjectId, Plan, Relation, Space, Value};
use sql::run::{Rows, Scan, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Timestamp, Zone, key};

/// Rows under ids that no table of the catalog has: cleared when this is dropped, unless a table
/// gets them.
pub(super) struct Unlinked {
    shared: Arc<Shared>,
    pub(super) relation: Relation,
    is_kept: bool,
}

/// So many parts of a COPY are written at a time, in one epoch as a rule, while the rows of the
/// next one come.
const UNDER_WAY_MAX: usize = 2;

/// The parts of a COPY.
pub(super) struct Parts {
    pub(super) unlinked: Unlinked,
    plan: Planned,
    /// The parts that are being written.
    under_way: VecDeque<Ticket<Vec<u8>>>,
    /// `now()` of all parts, and their zone.
    now: Timestamp,
    zone: Zone,
    rows: u64,
    numbers: BTreeMap<ObjectId, u32>,
}

/// A COPY in parts.
pub(super) struct Load {
    /// The table as it was at the beginning.
    table: Arc<Table>,
    pub(super) parts: Parts,
}

/// The error of a table that others changed meanwhile.
fn changed(name: &str) -> Error {
    let message = format!("table \"{name}\" was changed while rows were copied into it");
    Error::new(SqlState::SERIALIZATION_FAILURE, message).with_hint("Copy the rows again.")
}

impl Shared {
    /// Takes ids for rows that come in parts; `None` if the table is not empty.
    pub(super) async fn begin_load(
        self: &Arc<Shared>,
        statement: &Statement,
        zone: &Zone,
        watch: &Watch,
    ) -> Result<Option<Load>> {
        let planned = statement.planned.as_ref().expect("COPY is no definition");
        let Plan::Insert(insert) = &planned.plan else { return Ok(None) };
        let (_alone, catalog, snapshot) = self.alone_with(watch, &BTreeSet::new()).await?;
        let name = &insert.relation.name;
        let Some(table) = catalog.table(name) else { return Err(changed(name)) };
        if table.relation != insert.relation {
            return Err(changed(name));
        }
        if !self.is_empty(&table.relation, &snapshot)? {
            return Ok(None);
        }
        let mut next = table.relation.clone();
        let mut delta = Delta::default();
        delta.renew_ids(&catalog, &mut next);
        let plan = Planned::part(insert, next.clone(), &catalog);
        self.write(&catalog, &delta).await?;
        let parts = Parts::new(self, next, plan, (self.options.clock)(), zone);
        Ok(Some(Load { table: Arc::clone(table), parts }))
    }

    /// The catalog and a snapshot that has all calls; none can come while the gate is held alone.
    pub(super) async fn settled(&self) -> Result<(Arc<Catalog>, Snapshot)> {
        for slot in self.outstanding() {
            slot.answered().await;
        }
        let snapshot = self.database.snapshot_async().await.map_err(failure::of_read)?;
        Ok((self.catalog(), snapshot))
    }

    fn is_empty(&self, relation: &Relation, snapshot: &Snapshot) -> Result<bool> {
        let (reads, steps) = (Reads::Snapshot(snapshot), Steps::new(u64::MAX));
        let mut rows = ReadRows::new(&self.spaces, reads, steps);
        let (from, mut found) = (prefix(relation.id), Vec::new());
        let to = key::after_prefix(&from);
        let (space, to) = (relation.space, to.as_deref());
        let scan = Scan { space, from: &from, to, rows_max: 1, is_backward: false };
        rows.scan(scan, &mut found)?;
        Ok(found.is_empty())
    }

    /// Writes a delta that has rows of the catalog only, and follows it.
    pub(super) async fn write(&self, catalog: &Catalog, delta: &Delta) -> Result<()> {
        let next = Arc::new(catalog.with(delta)?);
        let rows = super::moved::catalog_rows(delta);
        self.call(&Call::Define(rows.collect()).encode()).await?;
        self.set_catalog(next);
        Ok(())
    }
}

impl Parts {
    /// No rows yet under the ids of a relation, which nothing leads to.
    pub(super) fn new(
        shared: &Arc<Shared>,
        relation: Relation,
        plan: Planned,
        now: Timestamp,
        zone: &Zone,
    ) -> Parts {
        let unlinked = Unlinked { shared: Arc::clone(shared), relation, is_kept: false };
        let (zone, numbers) = (zone.clone(), BTreeMap::new());
        let under_way = VecDeque::new();
        Parts { unlinked, plan, under_way, now, zone, rows: 0, numbers }
    }

    /// Begins to write a part, when few enough of those before are still being written.
    ///
    /// # Errors
    /// Of a part before.
    pub(super) async fn write(&mut self, rows: Vec<u8>) -> Result<()> {
        let count = sql::copy::count(&rows);
        let shared = Arc::clone(&self.unlinked.shared);
        let parameters = vec![Value(Datum::Bytea(rows.into()))];
        let numbers = self.plan.plan.numbers_of_copy(count);
        for (id, count) in &numbers {
            let own = self.numbers.entry(*id).or_default();
            *own = own.saturating_add(*count);
        }
        let call = Call::Run(Run {
            numbers,
            is_predicted: false,
            now: self.now.bits(),
            zone: ZoneForm::of(&self.zone),
            // A part is bounded by its bytes, but for what is computed for each row.
            steps_max: shared.options.steps_max.saturating_mul(COPY_STEPS_TIMES),
            memory_bytes_max: shared.options.memory_bytes_max as u64,
            parameters,
            plan: &self.plan.bytes,
        })
        .encode();
        self.written_but(UNDER_WAY_MAX - 1).await?;
        let called = shared.submit(&call).await;
        self.under_way.push_back(called.map_err(|error| failure::of_call(&error))?);
        Ok(())
    }

    /// Waits until all parts so far are written.
    ///
    /// # Errors
    /// That of the first part that is refused.
    pub(super) async fn written(&mut self) -> Result<()> {
        self.written_but(0).await
    }

    /// Waits until all but the last few parts are written.
    async fn written_but(&mut self, count: usize) -> Result<()> {
        while self.under_way.len() > count
            && let Some(first) = self.under_way.pop_front()
        {
            if let Tag::Copy(rows) = answer_of(first.await)?.tag {
                self.rows += rows;
            }
        }
        Ok(())
    }

    /// How many numbers of which sequences the rows have got.
    pub(super) fn numbers(&self) -> BTreeMap<ObjectId, u32> {
        self.numbers.clone()
    }

    /// The rows, when all are there.
    pub(super) fn into_unlinked(self) -> Unlinked {
        self.unlinked
    }

    /// What COPY answers.
    pub(super) fn answer(&self) -> Answer {
        Answer { tag: Tag::Copy(self.rows).to_string(), ..Answer::default() }
    }
}

impl Load {
    /// Writes the last part, and gives the table the ids of the rows if it is what it was.
    pub(super) async fn finish(
        mut self: Box<Load>,
        rows: Vec<u8>,
        watch: &Watch,
    ) -> Result<Answer> {
        self.parts.write(rows).await?;
        self.parts.written().await?;
        let shared = Arc::clone(&self.parts.unlinked.shared);
        let tables = BTreeSet::from([self.table.relation.id]);
        let (alone, catalog, snapshot) = shared.alone_with(watch, &tables).await?;
        let name = &self.table.relation.name;
        let is_same = catalog.table(name).is_some_and(|table| *table == self.table);
        if !is_same || !shared.is_empty(&self.table.relation, &snapshot)? {
            return Err(changed(name));
        }
        let mut delta = Delta::default();
        delta.drop_table(&self.table);
        let (relation, columns) =
            (self.parts.unlinked.relation.clone(), self.table.columns.clone());
        let row_security = self.table.row_security;
        delta.put_table(&Table { relation, columns, row_security });
        shared.write(&catalog, &delta).await?;
        self.parts.unlinked.keep();
        drop(alone);
        for (space, prefix) in delta.cleared() {
            shared.clear(*space, prefix.clone());
        }
        Ok(self.parts.answer())
    }
}

impl Unlinked {
    /// A table has the ids now.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Where the rows and their entries are.
    pub(super) fn places(&self) -> impl Iterator<Item = (Space, ObjectId)> {
        let indexes = self.relation.indexes.iter().map(|index| (index.space, index.id));
        std::iter::once((self.relation.space, self.relation.id)).chain(indexes)
    }
}

impl Drop for Unlinked {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        for (space, id) in self.places() {
            self.shared.clear(space, prefix(id));
        }
    }
}
