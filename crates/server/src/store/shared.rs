//! What all connections share.

use super::advisory::LockTable;
use super::backends::Served;
use super::cache::Cache;
use super::claims::Claims;
use super::held::Held;
use super::notices::Bus;
use super::options::StoreOptions;
use super::pending::{Last, Slot, Watch};
use super::pool::{Pool, lock};
use super::spaces::Spaces;
use super::statement::{Environment, Parsed, Source, Statement};
use super::timer::Timer;
use nvcaracal::raw::ProcedureNumber;
use nvcaracal::{Database, Snapshot};
use sql::MemoryPool;
use sql::catalog::{Catalog, Path};
use sql::ir::ObjectId;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use values::{Result, Type};

/// What a plan is kept by: text, place in it and whether it is a part of what is there, types of
/// parameters, zone, path, and version of temporary objects.
type StatementKey = (Arc<str>, (usize, bool), Vec<Option<Type>>, String, Path, Option<u64>);

/// What an entry of a cache takes beside the text and what was made of it.
pub(super) const ENTRY_BYTES: usize = 256;

/// Versions of catalogs that only one block has begin here.
const PRIVATE_VERSIONS: u64 = 1 << 63;

/// Whether only one block has the catalog of this version.
pub(super) fn is_private(version: u64) -> bool {
    version >= PRIVATE_VERSIONS
}

/// The gate, while a statement is inside.
pub(super) type Inside<'g> = RwLockReadGuard<'g, ()>;
/// The gate, while nothing else is inside.
pub(super) type Alone<'g> = RwLockWriteGuard<'g, ()>;

pub(super) struct Shared {
    pub(super) options: StoreOptions,
    pub(super) pool: Arc<Pool>,
    pub(super) database: Database,
    /// What statements have of it outside of calls.
    pub(super) memory: Arc<MemoryPool>,
    pub(super) spaces: Spaces,
    pub(super) procedure: ProcedureNumber,
    /// Held by each statement that writes, from the look at the catalog until it is queued; alone
    /// by a definition that takes place. So no call meets a catalog that its plan was not made for.
    /// Nothing computes or waits for a client within it. Reads need it not: they look at the
    /// catalog before and behind their snapshot.
    pub(super) gate: RwLock<()>,
    /// What blocks keep from each other.
    pub(super) claims: Arc<Claims>,
    /// Tables whose writers wait outside of the gate.
    pub(super) held: Held,
    pub(super) catalog: Mutex<Arc<Catalog>>,
    pub(super) parsed: Mutex<Cache<Arc<str>, Vec<Parsed>>>,
    pub(super) statements: Mutex<Cache<StatementKey, Arc<Statement>>>,
    /// Connections there were, and the one that was the last to submit something.
    pub(super) pipelines: AtomicU64,
    pub(super) last_pipeline: AtomicU64,
    /// The last calls of all connections.
    pub(super) last: Mutex<Vec<Weak<Last>>>,
    /// Those of connections that have ended.
    pub(super) kept: Mutex<Vec<Arc<Slot>>>,
    /// How many versions of catalogs blocks have had.
    pub(super) private_versions: AtomicU64,
    /// Whether there may be rows in pieces.
    pub(super) has_pieces: Arc<AtomicBool>,
    /// How many beginnings of keys are being cleared.
    pub(super) clearing: AtomicUsize,
    pub(super) is_closing: AtomicBool,
    /// Held while a checkpoint is made that a client has asked for.
    pub(super) checkpoints: tokio::sync::Mutex<()>,
    /// Whether what the last process has left is being deleted, or was.
    pub(super) has_looked_for_left: AtomicBool,
    /// The advisory locks of all sessions.
    pub(super) locks: Arc<LockTable>,
    pub(super) timer: Arc<Timer>,
    pub(super) bus: Arc<Bus>,
    pub(super) served: Served,
}

impl Shared {
    /// The newest catalog.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// Goes through the gate to write these tables, as soon as no definition holds one of them.
    ///
    /// # Errors
    /// What ends the statement meanwhile.
    pub(super) async fn enter(
        &self,
        watch: &Watch,
        writes: &BTreeSet<ObjectId>,
    ) -> Result<Inside<'_>> {
        loop {
            let inside = watch.interrupt().or(self.gate.read()).await?;
            let Some(released) = self.held.released(writes) else { return Ok(inside) };
            drop(inside);
            watch.interrupt().or(released).await?;
        }
    }

    /// The gate, as soon as nothing else is inside and no definition holds one of these tables; the
    /// catalog; and a snapshot that has all calls.
    ///
    /// # Errors
    /// What ends the statement meanwhile.
    pub(super) async fn alone_with(
        &self,
        watch: &Watch,
        tables: &BTreeSet<ObjectId>,
    ) -> Result<(Alone<'_>, Arc<Catalog>, Snapshot)> {
        loop {
            let alone = watch.interrupt().or(self.gate.write()).await?;
            if let Some(released) = self.held.released(tables) {
                drop(alone);
                watch.interrupt().or(released).await?;
                continue;
            }
            let (catalog, snapshot) = watch.interrupt().or(self.settled()).await??;
            return Ok((alone, catalog, snapshot));
        }
    }

    /// Whether a statement was planned for the newest catalog.
    pub(super) fn is_of_now(&self, statement: &Statement) -> bool {
        statement.version == lock(&self.catalog).version()
    }

    /// Statements of before are planned again.
    pub(super) fn set_catalog(&self, next: Arc<Catalog>) {
        *lock(&self.catalog) = next;
        lock(&self.statements).clear();
    }

    pub(super) async fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        if let Some(parsed) = lock(&self.parsed).get(text) {
            return Ok(parsed);
        }
        let text: Arc<str> = text.into();
        let (key, pool) = (Arc::clone(&text), Arc::clone(&self.pool));
        let grant = self.memory.grant();
        let work = move || -> Result<(Vec<Parsed>, usize)> {
            #[cfg(test)]
            super::panics::planted(super::panics::Place::Parse, &text);
            let trees = sql::parse::parse_within(&text, &grant)?.into_iter().enumerate();
            let bytes = ENTRY_BYTES + grant.bytes();
            let source = Arc::new(Source { text, grant, pool });
            let parsed = |(at, tree)| Parsed::new(tree, Arc::clone(&source), at);
            Ok((trees.map(parsed).collect::<Vec<_>>(), bytes))
        };
        let (parsed, bytes) = self.pool.run(work).await?;
        lock(&self.parsed).put(key, parsed.clone(), bytes);
        Ok(parsed)
    }

    pub(super) async fn prepare(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        environment: &Environment,
    ) -> Result<Arc<Statement>> {
        let catalog = self.catalog();
        let key = key_of(parsed, types, environment);
        if let Some(statement) = self.planned(&key, catalog.version()) {
            return Ok(statement);
        }
        let planned = self.plan_for(catalog, parsed, types, environment).await?;
        Ok(self.keep(key, planned))
    }

    /// Plans a statement for a catalog, which may be one that only its block has.
    pub(super) async fn plan_for(
        &self,
        catalog: Arc<Catalog>,
        parsed: &Parsed,
        types: &[Option<Type>],
        environment: &Environment,
    ) -> Result<Arc<Statement>> {
        let (parsed, types, environment) = (parsed.clone(), types.to_vec(), environment.clone());
        let work = move || Statement::plan(&parsed, &types, &environment, &catalog);
        self.pool.run(work).await
    }

    /// A version for a catalog that only one block has.
    pub(super) fn private_version(&self) -> u64 {
        PRIVATE_VERSIONS + self.private_versions.fetch_add(1, Ordering::Relaxed)
    }

    /// The statement for this catalog, which is newer than the one that it was planned for. Needs
    /// the stack of a thread of the pool.
    pub(super) fn again(
        &self,
        statement: &Statement,
        catalog: &Arc<Catalog>,
    ) -> Result<Arc<Statement>> {
        if statement.session.is_some() {
            // Its plan is for one session.
            return statement.plan_again(catalog);
        }
        let types: Vec<_> = statement.parameters.iter().map(|ty| Some(*ty)).collect();
        let key = key_of(&statement.parsed, &types, &statement.environment);
        let again = match self.planned(&key, catalog.version()) {
            Some(again) => again,
            None => self.keep(key, statement.plan_again(catalog)?),
        };
        assert!(again.version == catalog.version(), "no plan meets a catalog of another version");
        Ok(again)
    }

    /// The statement that is kept for a version of the catalog.
    fn planned(&self, key: &StatementKey, version: u64) -> Option<Arc<Statement>> {
        let kept = lock(&self.statements).get(key);
        kept.filter(|statement| statement.version == version)
    }

    /// Keeps a statement. One of a catalog of before may come after the definition that made it
    /// old.
    fn keep(&self, key: StatementKey, statement: Arc<Statement>) -> Arc<Statement> {
        let bytes = statement.bytes();
        lock(&self.statements).put(key, Arc::clone(&statement), bytes);
        statement
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

    /// The connection has ended, and its last call is under way.
    pub(super) fn keep_outstanding(&self, slot: Arc<Slot>) {
        let mut kept = lock(&self.kept);
        kept.retain(|slot| !slot.is_answered());
        kept.push(slot);
    }

    /// Calls of all connections after which none is under way.
    pub(super) fn outstanding(&self) -> Vec<Arc<Slot>> {
        let all: Vec<_> = lock(&self.last).iter().filter_map(Weak::upgrade).collect();
        let own = all.iter().filter_map(|last| last.outstanding());
        own.chain(lock(&self.kept).iter().cloned()).collect()
    }

    pub(super) fn end(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.pool.end();
        self.timer.end();
    }
}

fn key_of(parsed: &Parsed, types: &[Option<Type>], environment: &Environment) -> StatementKey {
    let (zone, path) = (environment.zone.name().to_owned(), environment.path.clone());
    let version = environment.version();
    (Arc::clone(parsed.text()), parsed.place_of_part(), types.to_vec(), zone, path, version)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::block_on;
    use super::super::{Store, StoreOptions};
    use super::*;

    /// A plan that was made while a definition went on comes into the cache after it.
    #[test]
    fn a_plan_of_a_catalog_of_before_is_not_taken_from_the_cache() {
        let store = Store::open(StoreOptions::memory()).unwrap();
        let (mut client, shared) = (store.connect(), Arc::clone(&store.shared));
        let prepare = |text: &str| {
            let parsed = block_on(shared.parse(text)).unwrap();
            block_on(shared.prepare(&parsed[0], &[], &Environment::default())).unwrap()
        };
        let mut run = |statement| client.submit(&statement, Vec::new()).wait().unwrap().rows;
        run(prepare("CREATE TABLE t (a int PRIMARY KEY, b int)"));
        let old = prepare("INSERT INTO t VALUES (1, 7)");
        run(prepare("CREATE INDEX ON t (b)"));
        shared.keep(key_of(&old.parsed, &[], &old.environment), Arc::clone(&old));
        run(old);
        assert_eq!(run(prepare("SELECT a FROM t WHERE b = 7")).len(), 1, "the index has the row");
    }
}
