//! A large COPY into an empty table: parts of the rows are calls that write under ids which no
//! table has, so nothing leads to them. Behind the last part a definition gives the table these
//! ids. What is left of a COPY that did not come so far is cleared.

use super::call::{Call, Run, ZoneForm};
use super::copy_in::part_of;
use super::failure;
use super::pending::Answer;
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use super::statement::{Planned, Statement};
use nvcaracal::Snapshot;
use sql::catalog::{Catalog, Delta, Table, prefix};
use sql::ir::{ObjectId, Plan, Relation, Space, Value};
use sql::run::{Rows, Scan, Tag};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Timestamp, Zone, key};

/// A COPY in parts.
pub(super) struct Load {
    shared: Arc<Shared>,
    /// The table as it was at the beginning.
    table: Arc<Table>,
    /// The same under its new ids.
    next: Relation,
    part: Planned,
    /// `now()` of all parts, and their zone.
    now: Timestamp,
    zone: Zone,
    rows: u64,
    /// Whether the table has the new ids.
    is_done: bool,
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
    ) -> Result<Option<Load>> {
        let planned = statement.planned.as_ref().expect("COPY is no definition");
        let Plan::Insert(insert) = &planned.plan else { return Ok(None) };
        let _alone = self.gate.write().await;
        let (catalog, snapshot) = self.settled().await?;
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
        let part = part_of(insert, next.clone(), &catalog);
        self.write(&catalog, &delta).await?;
        let (shared, table) = (Arc::clone(self), Arc::clone(table));
        let (now, zone) = ((self.options.clock)(), zone.clone());
        Ok(Some(Load { shared, table, next, part, now, zone, rows: 0, is_done: false }))
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
        let scan = Scan { space: relation.space, from: &from, to: to.as_deref(), rows_max: 1 };
        rows.scan(scan, &mut found)?;
        Ok(found.is_empty())
    }

    /// Writes a delta that has rows of the catalog only, and follows it.
    async fn write(&self, catalog: &Catalog, delta: &Delta) -> Result<()> {
        let next = Arc::new(catalog.with(delta)?);
        let rows = delta.rows().iter().map(|(key, row)| super::call::DefinedRow {
            space: Space::Catalog,
            key: key.clone(),
            row: row.clone(),
        });
        self.call(&Call::Define(rows.collect()).encode()).await?;
        self.set_catalog(next);
        Ok(())
    }
}

impl Load {
    /// Writes a part.
    pub(super) async fn part(&mut self, rows: Vec<u8>) -> Result<()> {
        let count = sql::copy::count(&rows);
        let limits = &self.shared.options;
        let zone = self.zone.clone();
        let parameters = vec![Value(Datum::Bytea(rows.into()))];
        let call = Call::Run(Run {
            numbers: self.part.plan.numbers_of_copy(count),
            is_predicted: false,
            now: self.now.bits(),
            zone: ZoneForm::of(&zone),
            // A part is bounded by its bytes.
            steps_max: u64::MAX,
            memory_bytes_max: limits.memory_bytes_max as u64,
            parameters,
            plan: &self.part.bytes,
        })
        .encode();
        if let Tag::Copy(rows) = self.shared.call(&call).await?.tag {
            self.rows += rows;
        }
        Ok(())
    }

    /// Writes the last part, and gives the table the ids of the rows if it is what it was.
    pub(super) async fn finish(mut self: Box<Load>, rows: Vec<u8>) -> Result<Answer> {
        self.part(rows).await?;
        let shared = Arc::clone(&self.shared);
        let alone = shared.gate.write().await;
        let (catalog, snapshot) = shared.settled().await?;
        let name = &self.table.relation.name;
        let is_same = catalog.table(name).is_some_and(|table| *table == self.table);
        if !is_same || !shared.is_empty(&self.table.relation, &snapshot)? {
            return Err(changed(name));
        }
        let mut delta = Delta::default();
        delta.drop_table(&self.table);
        let columns = self.table.columns.clone();
        delta.put_table(&Table { relation: self.next.clone(), columns });
        shared.write(&catalog, &delta).await?;
        self.is_done = true;
        drop(alone);
        for (space, prefix) in delta.cleared() {
            shared.clear(*space, prefix.clone());
        }
        Ok(Answer { tag: Tag::Copy(self.rows).to_string(), rows: Vec::new(), notice: None })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let indexes = self.next.indexes.iter().map(|index| (index.space, index.id));
        let all: Vec<(Space, ObjectId)> =
            std::iter::once((self.next.space, self.next.id)).chain(indexes).collect();
        for (space, id) in all {
            self.shared.clear(space, prefix(id));
        }
    }
}
