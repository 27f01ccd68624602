//! Opening and closing.

use super::backends::{Backends, Served};
use super::cache::Cache;
use super::claims::Claims;
use super::connection::Connection;
use super::define::ids;
use super::held::Held;
use super::options::{OpenError, StoreOptions};
use super::pieces;
use super::pool::{Pace, Pool};
use super::procedure::{NAME, Statements};
use super::shared::Shared;
use super::spaces::{ALL, Spaces};
use nvcaracal::{Database, Tuning};
use sql::MemoryPool;
use sql::catalog::Catalog;
use sql::ir::{ObjectId, Space};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::RwLock;
use values::Timestamp;

/// A store of SQL tables, which all connections share. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) shared: Arc<Shared>,
}

/// Space, key and row.
pub type StoredRow = (Space, Vec<u8>, Vec<u8>);

/// The longest call: a statement with its parameters, or an index that is filled.
const CALL_BYTES_MAX: usize = 64 << 20;

/// Of a limit of memory this part is for calls that wait, at most: others wait until there is room.
/// One that is longer is refused.
const CALLS_PART: u64 = 8;
/// Whatever the limit, parts of a COPY and of a definition find room.
const CALL_BYTES_MIN: u64 = 4 << 20;
/// Calls are in memory so often while an epoch of them begins: as they were queued, and in order.
const CALL_COPIES: u64 = 2;
/// The least limit that the library takes.
const LIMIT_BYTES_MIN: u64 = 16 << 20;

/// How the library makes epochs: where memory has a limit, calls have a part of it.
fn tuning(options: &StoreOptions) -> Tuning {
    let queue_bytes_max = options.tuning.queue_bytes_max;
    let queue_bytes_max = match options.memory_limit_bytes {
        Some(limit) => queue_bytes_max.min((limit / CALLS_PART).max(CALL_BYTES_MIN) as usize),
        None => queue_bytes_max,
    };
    let argument_bytes_max = CALL_BYTES_MAX.min(queue_bytes_max);
    Tuning { argument_bytes_max, queue_bytes_max, ..options.tuning }
}

impl Store {
    /// Opens a store, or makes it if there is none.
    ///
    /// # Errors
    /// Why it is not open.
    pub fn open(mut options: StoreOptions) -> Result<Store, OpenError> {
        let spaces = Spaces::new();
        // Calls that are replayed may find any.
        let has_pieces = Arc::new(AtomicBool::new(true));
        let tuning = tuning(&options);
        // Half of the longest call: it has the plan and what rows have besides, too.
        options.copy_bytes_max = options.copy_bytes_max.min(tuning.argument_bytes_max / 2);
        let mut database = spaces
            .register(Database::options())
            .raw_procedure(Arc::new(Statements::new(spaces, Arc::clone(&has_pieces))))
            .tuning(tuning)
            .data_bytes_max(options.data_bytes_max)
            .log_bytes_max(options.log_bytes_max);
        if let Some(archive) = &options.archive {
            database = database.archive(archive).archive_delay(options.archive_delay);
        }
        if let Some(bytes) = options.memory_limit_bytes {
            let of_calls = CALL_COPIES * tuning.queue_bytes_max as u64;
            database = database.memory_limit(bytes.saturating_sub(of_calls).max(LIMIT_BYTES_MIN));
        }
        if options.workers > 0 {
            database = database.workers(options.workers);
        }
        let database = (options.adjust)(database).open_device(options.device.clone())?;
        let table = spaces.table(pieces::SPACE);
        let first = database.snapshot()?.range(table, &pieces::FIRST_KEY[..]..).next();
        has_pieces.store(first.is_some(), Ordering::Relaxed);
        let pool = Pool::new(options.threads, turns(&options), Pace::of(&options))
            .map_err(OpenError::Threads)?;
        let pool = Arc::new(pool);
        let plans = Cache::new(options.plans_bytes_max / 2);
        let locks = Arc::default();
        let catalog = read_catalog(&database, &spaces)?.of_database(&options.database);
        let memory = options.shared_memory.clone().unwrap_or_else(|| {
            MemoryPool::with_reclaim(options.statement_memory_bytes, options.reclaim)
        });
        let shared = Arc::new(Shared {
            spaces,
            procedure: database.raw_procedure(NAME)?,
            memory,
            gate: RwLock::default(),
            claims: Claims::new(&pool, &locks),
            held: Held::default(),
            catalog: Mutex::new(Arc::new(catalog)),
            parsed: Mutex::new(Cache::new(options.plans_bytes_max / 2)),
            statements: Mutex::new(plans),
            pipelines: AtomicU64::new(0),
            last_pipeline: AtomicU64::new(u64::MAX),
            last: Mutex::default(),
            kept: Mutex::default(),
            private_versions: AtomicU64::new(0),
            has_pieces,
            clearing: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            checkpoints: tokio::sync::Mutex::default(),
            has_looked_for_left: AtomicBool::new(false),
            locks,
            bus: Arc::default(),
            served: Served::new(),
            timer: Arc::default(),
            options,
            database,
            pool,
        });
        Ok(Store { shared })
    }

    /// A new client. With the first one begins what the last process has left to do: an open reads
    /// no rows but those of the catalog, so that none is refused for others after it has changed
    /// files.
    #[must_use]
    pub fn connect(&self) -> Connection {
        if !self.shared.has_looked_for_left.swap(true, Ordering::AcqRel) {
            self.shared.clear_left();
        }
        Connection::new(Arc::clone(&self.shared))
    }

    /// The name of the database.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.shared.options.database)
    }

    /// The clock of the store.
    pub(crate) fn clock(&self) -> fn() -> Timestamp {
        self.shared.options.clock
    }

    /// The sessions of the server that has this store.
    pub(crate) fn serves(&self, backends: Arc<dyn Backends>) {
        // A store has one server; a second one is another's client.
        let _ = self.shared.served.set(backends);
    }

    /// The library's database, for its figures.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.shared.database
    }

    /// Whether rows of what was dropped are being deleted.
    #[must_use]
    pub fn is_clearing(&self) -> bool {
        self.shared.clearing.load(Ordering::Acquire) > 0
    }

    /// How many statements compute for longer than a slice: queries, blocks and definitions.
    #[must_use]
    pub fn computing(&self) -> usize {
        self.shared.pool.lent()
    }

    /// The memory that statements have outside of calls, in bytes.
    #[must_use]
    pub fn statement_memory(&self) -> usize {
        self.shared.memory.bytes()
    }

    /// Gives the memory that statements have freed back to the system by
    /// [`StoreOptions::reclaim`].
    pub fn reclaim_memory(&self) {
        self.shared.memory.reclaim();
    }

    /// The steps that statements have computed outside of calls since the store was opened, as far
    /// as slices have counted them.
    #[must_use]
    pub fn steps_computed(&self) -> u64 {
        self.shared.pool.steps()
    }

    /// All rows that the catalog leads to, and its own, as of now, for comparisons.
    ///
    /// # Errors
    /// The database's.
    pub fn rows(&self) -> nvcaracal::Result<Vec<StoredRow>> {
        let known = ids(&self.shared.catalog());
        let snapshot = self.shared.database.snapshot()?;
        let mut rows = Vec::new();
        for space in ALL {
            for row in snapshot.range(self.shared.spaces.table(space), ..) {
                let (key, row) = row?;
                let id = &key[..key.len().min(ObjectId::BYTES)];
                if space == Space::Catalog || known.contains(id) {
                    rows.push((space, key, row));
                }
            }
        }
        Ok(rows)
    }

    /// Ends what runs, and closes the database. Statements of connections that are left are
    /// answered with errors.
    ///
    /// # Errors
    /// The database's.
    pub fn close(self) -> Result<(), OpenError> {
        self.shared.end();
        self.shared.database.clone().close()?;
        Ok(())
    }
}

/// How many statements compute at a time.
fn turns(options: &StoreOptions) -> usize {
    match options.computing_max {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        stated => stated,
    }
}

fn read_catalog(database: &Database, spaces: &Spaces) -> Result<Catalog, OpenError> {
    let snapshot = database.snapshot()?;
    let rows = snapshot.range(spaces.table(Space::Catalog), ..);
    let rows = rows.collect::<nvcaracal::Result<Vec<_>>>()?;
    Catalog::open(rows.iter().map(|(key, row)| (&key[..], &row[..]))).map_err(OpenError::Catalog)
}
