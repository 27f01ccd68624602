//! The temporary objects of a session with their rows, in its memory: nothing of them is logged.

use super::pool::lock;
use sql::Grant;
use sql::catalog::{Catalog, OnCommit, Temporary};
use sql::ir::{ObjectId, Plan, Space};
use sql::run::{TemporaryRows, Writes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use values::{Error, Result, SqlState};

/// The most bytes of rows of a session's temporary tables.
const BYTES_MAX: usize = 256 << 20;
/// The most bytes of temporary rows that a statement reads which writes other tables: they are
/// logged with it.
const GIVEN_BYTES_MAX: usize = 16 << 20;

/// Temporary objects and their rows. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct TemporaryState {
    pub(super) objects: Option<Arc<Temporary>>,
    pub(super) rows: Arc<TemporaryRows>,
    /// How many numbers sequences have given: that is never undone.
    numbers: Arc<Mutex<BTreeMap<ObjectId, u64>>>,
    /// The memory of the rows.
    grant: Option<Arc<Grant>>,
}

/// What a transaction leaves of temporary objects.
pub(super) struct Left {
    objects: Arc<Temporary>,
    writes: Writes,
    /// The tables and indexes that have rows, if some may have gone.
    kept: Option<BTreeSet<ObjectId>>,
}

/// Where rows and entries of temporary tables are.
pub(super) type Places = Vec<(Space, ObjectId)>;

impl TemporaryState {
    /// The version of the objects.
    pub(super) fn version(&self) -> Option<u64> {
        self.objects.as_ref().map(|objects| objects.version())
    }

    /// How many numbers a sequence has given before this one.
    pub(super) fn next_number(&self, sequence: ObjectId) -> u64 {
        let mut numbers = lock(&self.numbers);
        let given = numbers.entry(sequence).or_default();
        *given += 1;
        *given - 1
    }

    /// How many numbers a sequence has given.
    pub(super) fn given(&self, sequence: ObjectId) -> u64 {
        lock(&self.numbers).get(&sequence).copied().unwrap_or_default()
    }

    /// Takes the objects behind a definition. What was rolled back may have had their ids.
    pub(super) fn define(&mut self, before: &Temporary, next: Temporary) {
        let first = before.next_id();
        lock(&self.numbers).retain(|id, _| *id < first);
        self.objects = Some(Arc::new(next));
    }

    /// Drops all objects; the rows go at the end of the transaction.
    pub(super) fn discard(&mut self, version: u64) {
        if let Some(objects) = &self.objects {
            self.objects = Some(Arc::new(objects.emptied(version)));
        }
    }

    /// Drops all objects and their rows.
    pub(super) fn clear(&mut self, version: u64) {
        self.discard(version);
        (self.rows, self.grant) = Default::default();
    }

    /// What is left of it at the end of a transaction; `None` if the session has no such objects.
    ///
    /// # Errors
    /// That its rows take more memory than there is.
    pub(super) fn left(
        &self,
        before: &TemporaryState,
        writes: Writes,
        memory: impl Fn() -> Arc<Grant>,
        next: impl Fn(&Temporary) -> Result<Temporary>,
    ) -> Result<Option<(Left, Option<Arc<Grant>>)>> {
        let Some(objects) = &self.objects else { return Ok(None) };
        let is_dropped = |action: &OnCommit| *action == OnCommit::Drop;
        let objects = match objects.on_commit().values().any(is_dropped) {
            true => Arc::new(next(objects)?),
            false => Arc::clone(objects),
        };
        let is_changed = before.version() != Some(objects.version());
        let is_emptied = !objects.on_commit().is_empty() && !writes.is_empty();
        let kept = (is_changed || is_emptied).then(|| objects.ids_kept());
        let more = |((_, key), row): (&(Space, Vec<u8>), &Option<Vec<u8>>)| {
            row.as_ref().map_or(0, |row| key.len() + row.len())
        };
        let bytes = before.rows.bytes() + writes.iter().map(more).sum::<usize>();
        let grant = match &before.grant {
            None if writes.is_empty() => None,
            None => Some(memory()),
            Some(grant) => Some(Arc::clone(grant)),
        };
        if bytes > BYTES_MAX {
            let message =
                format!("the temporary tables of a session have more than {BYTES_MAX} bytes");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message)
                .with_hint("Drop or truncate one of them."));
        }
        if let Some(grant) = &grant {
            grant.grow_to(bytes)?;
        }
        Ok(Some((Left { objects, writes, kept }, grant)))
    }

    /// The transaction has committed.
    pub(super) fn take(&mut self, (left, grant): (Left, Option<Arc<Grant>>)) {
        let Left { objects, writes, kept } = left;
        self.objects = Some(objects);
        self.grant = grant;
        if writes.is_empty() && kept.is_none() {
            return;
        }
        let rows = Arc::make_mut(&mut self.rows);
        rows.apply(writes);
        if let Some(kept) = kept {
            rows.retain(|id| kept.contains(&id));
        }
        self.grant.iter().for_each(|grant| grant.shrink_to(rows.bytes()));
    }
}

/// How a plan uses temporary tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    No,
    /// It writes no other table: it runs in its session, and is not logged.
    Own,
    /// It reads some and writes other tables: the rows are logged with it.
    Given,
}

impl Use {
    /// How a plan uses them.
    ///
    /// # Errors
    /// That it does what cannot be logged without the session.
    pub(super) fn of(plan: &Plan) -> Result<Use> {
        let refused = |what: &str| Err(Error::unsupported(what, "Use a statement for each."));
        let takes = plan.numbers().keys().any(|id| id.is_temporary());
        if !takes && !plan.reads_temporary() {
            return Ok(Use::No);
        }
        let (own, others): (Vec<_>, Vec<_>) =
            plan.writes().into_iter().partition(|id| id.is_temporary());
        if plan.notifies() {
            return refused("a notification for rows of temporary tables");
        }
        if others.is_empty() {
            return Ok(Use::Own);
        }
        if !own.is_empty() || takes {
            return refused("a statement that writes temporary and other tables");
        }
        Ok(Use::Given)
    }
}

/// Where the rows and entries of the temporary tables of a plan are.
pub(super) fn places_of(plan: &Plan, catalog: &Catalog) -> Places {
    let ids = plan.tables();
    let tables = catalog.tables().map(|table| &table.relation);
    let own = tables.filter(|own| own.id.is_temporary() && ids.contains(&own.id));
    let of = |own: &sql::ir::Relation| {
        let indexes = own.indexes.iter().map(|index| (index.space, index.id));
        std::iter::once((own.space, own.id)).chain(indexes).collect::<Vec<_>>()
    };
    own.flat_map(of).collect()
}

/// The rows that a statement reads of temporary tables, as they are under these writes.
///
/// # Errors
/// That they are too many to be logged.
pub(super) fn given(
    places: &Places,
    state: &TemporaryState,
    writes: &Writes,
) -> Result<TemporaryRows> {
    let given = state.rows.part(places, writes);
    if given.bytes() > GIVEN_BYTES_MAX {
        let message = format!(
            "a statement that writes other tables reads more than {GIVEN_BYTES_MAX} bytes of \
             temporary ones"
        );
        let hint = "Use a smaller temporary table for each part, or another table.";
        return Err(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint));
    }
    Ok(given)
}
