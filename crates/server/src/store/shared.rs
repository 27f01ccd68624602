//! What all connections share.

use super::cache::Cache;
use super::failure;
use super::gate::Gate;
use super::options::StoreOptions;
use super::pending::{Last, Slot};
use super::pool::{Pool, lock};
use super::snapshots::Snapshots;
use super::spaces::Spaces;
use super::statement::{Parsed, Statement};
use nvcaracal::Database;
use nvcaracal::raw::ProcedureNumber;
use sql::catalog::Catalog;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use values::{Result, Type, Zone};

/// What a plan is kept by: text, place in it, types of parameters, zone.
type StatementKey = (Arc<str>, usize, Vec<Option<Type>>, String);

pub(super) struct Shared {
    pub(super) options: StoreOptions,
    pub(super) pool: Arc<Pool>,
    pub(super) database: Database,
    pub(super) spaces: Spaces,
    pub(super) procedure: ProcedureNumber,
    pub(super) snapshots: Snapshots,
    pub(super) gate: Gate,
    pub(super) catalog: Mutex<Arc<Catalog>>,
    pub(super) parsed: Mutex<Cache<Arc<str>, Vec<Parsed>>>,
    pub(super) statements: Mutex<Cache<StatementKey, Arc<Statement>>>,
    /// The last calls of all connections.
    pub(super) last: Mutex<Vec<Weak<Last>>>,
    /// Those of connections that have gone.
    pub(super) kept: Mutex<Vec<Arc<Slot>>>,
    /// How many beginnings of keys are being cleared.
    pub(super) clearing: AtomicUsize,
    pub(super) is_closing: AtomicBool,
}

impl Shared {
    /// The newest catalog.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// Statements of before are planned again.
    pub(super) fn set_catalog(&self, next: Arc<Catalog>) {
        *lock(&self.catalog) = next;
        lock(&self.statements).clear();
    }

    pub(super) fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        if let Some(parsed) = lock(&self.parsed).get(text) {
            return Ok(parsed);
        }
        let text: Arc<str> = text.into();
        let (key, pool) = (Arc::clone(&text), Arc::clone(&self.pool));
        let work = move || -> Result<Vec<Parsed>> {
            let trees = sql::parse::parse(&text)?.into_iter().enumerate();
            Ok(trees.map(|(at, tree)| Parsed::new(tree, text.clone(), at, pool.clone())).collect())
        };
        let parsed = self.pool.run(work).unwrap_or_else(|| Err(failure::cut_off()))?;
        lock(&self.parsed).put(Arc::clone(&key), parsed.clone(), 256 + 16 * key.len());
        Ok(parsed)
    }

    pub(super) fn prepare(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        zone: &Zone,
    ) -> Result<Arc<Statement>> {
        let catalog = self.catalog();
        self.cached(parsed, types, zone, catalog.version(), || {
            let (parsed, types, zone) = (parsed.clone(), types.to_vec(), zone.clone());
            let work = move || Statement::plan(&parsed, &types, &zone, &catalog);
            self.pool.run(work).unwrap_or_else(|| Err(failure::cut_off()))
        })
    }

    /// The statement of a version of the catalog that is kept, or the one that `plan` makes. One of
    /// a catalog of before may be put in after the definition that made it old.
    pub(super) fn cached(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        zone: &Zone,
        version: u64,
        plan: impl FnOnce() -> Result<Arc<Statement>>,
    ) -> Result<Arc<Statement>> {
        let name = zone.name().to_owned();
        let key = (Arc::clone(parsed.text()), parsed.place(), types.to_vec(), name);
        let kept = lock(&self.statements).get(&key);
        if let Some(statement) = kept.filter(|statement| statement.version == version) {
            return Ok(statement);
        }
        let statement = plan()?;
        let bytes = statement.bytes();
        lock(&self.statements).put(key, Arc::clone(&statement), bytes);
        Ok(statement)
    }

    /// A new connection's place for its last call.
    pub(super) fn new_last(&self) -> Arc<Last> {
        let last = Arc::<Last>::default();
        let mut all = lock(&self.last);
        if all.len() == all.capacity() {
            all.retain(|last| last.strong_count() > 0);
        }
        all.push(Arc::downgrade(&last));
        last
    }

    /// The connection has gone, and its last call is under way.
    pub(super) fn keep_outstanding(&self, slot: Arc<Slot>) {
        let mut kept = lock(&self.kept);
        kept.retain(|slot| !slot.is_answered());
        kept.push(slot);
    }

    /// Calls of all connections after which none is under way.
    pub(super) fn outstanding(&self) -> Vec<Arc<Slot>> {
        let all: Vec<_> = lock(&self.last).iter().filter_map(Weak::upgrade).collect();
        let own = all.iter().filter_map(|last| last.outstanding());
        own.chain(std::mem::take(&mut *lock(&self.kept))).collect()
    }

    pub(super) fn end(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.pool.end();
        self.snapshots.end();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}
