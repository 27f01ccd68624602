//! A COPY of more rows than a block may hold, into a table that the block has made or truncated.
//! The table's ids are the block's own: nothing leads to them before its COMMIT. So the rows are
//! written under them at once, in parts, and COMMIT has nothing more to do about them. A block that
//! ends otherwise clears them; what a crash leaves is cleared when the store is open again.

use super::super::load::Parts;
use super::super::pending::{Answer, Watch};
use super::super::pipeline::Pipeline;
use super::super::pool::lock;
use super::super::shared::Shared;
use super::super::statement::{Planned, Statement};
use super::loaded::Loaded;
use super::operate::no_block;
use super::state::{BlockState, moved};
use sql::catalog::{Catalog, Delta, prefix};
use sql::ir::{Insert, Plan};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Error, Result, SqlState, Zone};

/// The error of a COPY that a block cannot have in parts.
fn too_large(bytes_max: usize, why: &str, hint: &str) -> Error {
    let message = format!("COPY in a block has more than {bytes_max} bytes of rows");
    Error::new(SqlState::LIMIT_EXCEEDED, message).with_detail(why).with_hint(hint)
}

impl BlockState {
    /// The COPY's plan, if its rows can be written under the ids of its table.
    fn loadable<'s>(&self, statement: &'s Statement, bytes_max: usize) -> Result<&'s Insert> {
        let planned = statement.planned.as_ref().expect("COPY is no definition");
        let Plan::Insert(insert) = &planned.plan else {
            let why = "Its table has foreign keys.";
            return Err(too_large(bytes_max, why, "Add them behind the COPY."));
        };
        let relation = &insert.relation;
        let own = self.base.as_ref().is_some_and(|base| relation.id >= base.next_id());
        if !own {
            let why = "Its table was not made in this block.";
            let hint = "TRUNCATE the table in the block, or COPY outside of it.";
            return Err(too_large(bytes_max, why, hint));
        }
        if self.modes.keeps_snapshot {
            let why = "The block reads one snapshot.";
            return Err(too_large(bytes_max, why, "Begin it at READ COMMITTED."));
        }
        if self.has_savepoint() {
            let why = "The block may go back to a savepoint.";
            return Err(too_large(bytes_max, why, "Release it before the COPY."));
        }
        let mut ids = std::iter::once(relation.id).chain(relation.indexes.iter().map(|own| own.id));
        let has_writes = |id| {
            let from = prefix(id);
            let mut own = self.buffer.writes().keys();
            own.any(|(_, key)| key.starts_with(&from))
        };
        let is_loaded = |loaded: &Loaded| loaded.relation_id() == relation.id;
        if ids.any(has_writes) || self.loads.iter().any(is_loaded) {
            let why = "The block has written rows of its table before.";
            return Err(too_large(bytes_max, why, "COPY all rows of a table at once."));
        }
        let counted = planned.plan.numbers_of_copy(1);
        if counted.keys().any(|id| self.numbers.made().contains_key(id)) {
            let why = "The block has used numbers of a sequence that it has made.";
            return Err(too_large(bytes_max, why, "COPY before other statements take numbers."));
        }
        Ok(insert)
    }

    /// No other object gets the ids of the block.
    async fn keep_ids(&mut self, shared: &Arc<Shared>, own: &Catalog, watch: &Watch) -> Result<()> {
        let (_alone, catalog, _) = shared.alone_with(watch, &BTreeSet::new()).await?;
        if self.has_lost_base(&catalog) || self.has_seen_another(catalog.version()) {
            return Err(moved());
        }
        let mut delta = Delta::default();
        delta.set_next_id(own.next_id().max(catalog.next_id()));
        shared.write(&catalog, &delta).await?;
        self.go_on_at(&shared.catalog());
        Ok(())
    }
}

impl Pipeline {
    /// Begins to write the rows of a COPY of the block. Nothing else runs in the block until they
    /// are there, and it cannot commit.
    pub(in super::super) async fn begin_load(
        &self,
        statement: &Arc<Statement>,
        zone: &Zone,
        watch: &Watch,
    ) -> Result<Parts> {
        let own = lock(&self.block).take();
        let Some(mut block) = own else { return Err(no_block()) };
        let begun = self.begin_load_of(&mut block, statement, zone, watch).await;
        *lock(&self.block) = Some(block);
        begun
    }

    async fn begin_load_of(
        &self,
        block: &mut BlockState,
        statement: &Arc<Statement>,
        zone: &Zone,
        watch: &Watch,
    ) -> Result<Parts> {
        let shared = &self.shared;
        let insert = block.loadable(statement, shared.options.copy_bytes_max)?;
        let own = block.own_catalog().expect("it has made the table");
        assert!(statement.version == own.version(), "no plan meets a catalog of another version");
        block.keep_ids(shared, &own, watch).await?;
        block.is_loading = true;
        let (relation, plan) =
            (&insert.relation, Planned::part(insert, insert.relation.clone(), &own));
        Ok(Parts::new(shared, relation.clone(), plan, block.now, zone))
    }

    /// All rows of a COPY are there.
    pub(in super::super) fn end_load(&self, parts: Parts) -> Result<Answer> {
        let mut own = lock(&self.block);
        let block = own.as_mut().ok_or_else(no_block)?;
        assert!(block.is_loading, "a COPY that ends has begun");
        let (answer, numbers) = (parts.answer(), parts.numbers());
        let base = block.base.as_ref().expect("it has made the table").next_id();
        let made = numbers.into_iter().filter(|(id, _)| *id >= base);
        let mut sequences = Vec::new();
        for (id, count) in made {
            block.numbers.count(id, count);
            block.asked.remove(&id);
            sequences.push(id);
        }
        let position = block.position();
        block.loads.push(Loaded::new(position, parts.into_unlinked(), sequences));
        block.is_loading = false;
        block.has_run = true;
        Ok(answer)
    }
}
