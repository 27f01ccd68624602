//! How a database is opened.

use std::any::Any;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::{ARGUMENT_BYTES_MAX, EngineConfig, EpochInfo, Known};
use pmem::{DeviceSpec, DiskHook, Stack};
use storage::{ChangeLogHook, StoreOptions};

use crate::call::procedure::{Procedure, Registration, keep, keep_before};
use crate::call::raw;
use crate::data::value::Data;
use crate::database::closing::CallTimes;
use crate::database::handle::{Database, Opened};
use crate::database::tuning::Tuning;
use crate::error::{Error, Result};
use crate::host::earlier::Kept;
use crate::host::open::{self, Plan};
use crate::host::repeat::Copies;
use crate::key::bytes::Key;
use crate::observe::contention::{Names, Window};
use crate::observe::events;
use crate::observe::slow_calls::SlowCalls;
use crate::sequencer::clock::{random, wall_clock_ns};
use crate::sequencer::queue::Limits;
use crate::sequencer::run::{Epochs, Tools};
use crate::table::handle::{Sequence, Shape, Table};
use crate::table::index::IndexRegistration;
use crate::table::schema::Context;

/// Tables, procedures and numbers of a database that is to be opened.
///
/// Tables, indexes and procedures may come in any order. Only the geometry (`data_bytes_max`,
/// and `segment_bytes` and `log_segment_bytes` of [`Tuning`]) is fixed when the database is
/// created.
///
/// # Changing the schema
///
/// | what | how |
/// |---|---|
/// | add a table, a sequence or a procedure | register it |
/// | rename a table or a sequence | [`rename_table`](Self::rename_table) |
/// | drop a table or a sequence | [`drop_table`](Self::drop_table) |
/// | leave a table alone | [`ignore_table`](Self::ignore_table) |
/// | change or rename a procedure | [`Procedure::VERSION`], [`Procedure::WAS`] |
/// | drop a procedure | [`procedure_was`](Self::procedure_was) |
/// | add an index | register it |
/// | change or drop an index | [`index_was`](Self::index_was), [`drop_index`](Self::drop_index) |
/// | add a field, change or remove one | `#[data(was = Old)]`: [`Data::BEFORE`] |
/// | make the longest value longer | [`Table::with_value_bytes`] |
///
/// After a crash, calls of the log run again, and must find what they found before. So a log of a
/// program of before is replayed first, with its procedures, tables and indexes, and the changes
/// are made then: all together or, if the process or the machine stops, not at all. For that the
/// program keeps what has changed. An open that would need something else is refused and leaves
/// everything as it is: keep it, or open the database once with the program of before and close
/// it. After a clean [`Database::close`] nothing is needed of it.
///
/// A program of before does not open the database again where it would forget something: tables and
/// indexes that it neither registers nor drops, names that tables had, and later versions of types
/// and procedures are refused, with what to do, and every byte stays as it was.
///
/// What cannot change is refused with the definition that is stored and the one asked for: the type
/// and the longest length of keys, the size of rows, hash to ordered, and a type of values of which
/// the stored one is no version. To get around that, make a new table and a procedure that copies.
///
/// # Options
///
/// | option | default | from | to |
/// |---|---|---|---|
/// | [`workers`](Self::workers) | cores, at most 8 | 1 | 64 |
/// | [`cache_bytes`](Self::cache_bytes) | 256 MiB where reading is slow, else 0 | 0 | 4 TiB |
/// | [`checkpoint_every`](Self::checkpoint_every) | by the log on `file`, else 1 | 1 | 1,000,000 |
/// | [`snapshot_bytes_max`](Self::snapshot_bytes_max) | 512 MiB | 0 | |
/// | [`change_bytes_max`](Self::change_bytes_max) | 64 MiB | 0 | |
/// | [`contention_epochs`](Self::contention_epochs) | 0: none | 0 | 100,000 |
/// | [`check_determinism`](Self::check_determinism) | no | | |
/// | [`create`](Self::create) | yes | | |
/// | [`read_only`](Self::read_only) | no | | |
/// | [`data_bytes_max`](Self::data_bytes_max) | 64 GiB | 1 MiB | 4 TiB |
/// | [`log_bytes_max`](Self::log_bytes_max) | 64 GiB | 16 KiB | 4 TiB |
/// | [`tuning`](Self::tuning) | [`Tuning::default`] | | |
///
/// Reading is slow on `dax` and on `emulated` devices that add latency.
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    pub(super) shapes: Vec<Shape>,
    pub(super) renamed: Vec<(String, String)>,
    pub(super) dropped: Vec<String>,
    pub(super) known: Known,
    pub(super) indexes: Vec<IndexRegistration>,
    procedures: Vec<Registration>,
    pub(super) kept: Kept,
    context: Context,
    pub(super) mistake: Option<String>,
    workers: Option<usize>,
    cache_bytes: Option<u64>,
    checkpoint_every: Option<u64>,
    snapshot_bytes_max: u64,
    change_bytes_max: u64,
    contention_epochs: usize,
    check_determinism: bool,
    create: bool,
    read_only: bool,
    data_bytes_max: u64,
    log_bytes_max: u64,
    archive: Option<PathBuf>,
    archive_delay: Option<Duration>,
    read_at_open: Vec<String>,
    memory_limit: Option<u64>,
    tuning: Tuning,
    seams: Seams,
}

/// Where tests and benchmarks put something in the place of the system.
#[derive(Debug, Clone)]
struct Seams {
    now_ns: fn() -> u64,
    disk: Option<Arc<dyn DiskHook>>,
    change_log: Option<Arc<dyn ChangeLogHook>>,
    beside: &'static [&'static str],
    learns: bool,
    /// What the engine is told, in place of what follows from the options.
    engine: Option<EngineConfig>,
}

/// Workers unless the program says otherwise: more seldom pay off for the epochs of an embedded
/// database.
const WORKERS_DEFAULT_MAX: usize = 8;
/// The most of queues and epochs: what fits the position in a serial id.
const CALLS_MAX: usize = storage::format::EPOCH_CALLS_MAX as usize;

/// The least and the most of address space for rows and values, and for the log.
const DATA_BYTES_MIN: u64 = 1 << 20;
const LOG_BYTES_MIN: u64 = 16 << 10;
const SPACE_BYTES_MAX: u64 = 1 << 42;
/// The least that a limit of memory may be.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// So many bytes an epoch may take before it is known how long its values are. If they could need
/// more, it is run in smaller ones, and a call that could by itself in the serial part.
const GUESSED_GROWTH_MAX: u64 = 64 << 20;

/// Most epochs of which contended rows are kept.
const CONTENTION_EPOCHS_MAX: usize = 100_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            shapes: Vec::new(),
            renamed: Vec::new(),
            dropped: Vec::new(),
            known: Known::default(),
            indexes: Vec::new(),
            procedures: Vec::new(),
            kept: Kept::default(),
            context: Context::default(),
            mistake: None,
            workers: None,
            cache_bytes: None,
            checkpoint_every: None,
            snapshot_bytes_max: EngineConfig::default().snapshot_bytes_max,
            change_bytes_max: 64 << 20,
            contention_epochs: 0,
            check_determinism: false,
            create: true,
            read_only: false,
            data_bytes_max: 64 << 30,
            log_bytes_max: 64 << 30,
            archive: None,
            archive_delay: None,
            read_at_open: Vec::new(),
            memory_limit: None,
            tuning: Tuning::default(),
            seams: Seams {
                now_ns: wall_clock_ns,
                disk: None,
                change_log: None,
                beside: &[],
                learns: true,
                engine: None,
            },
        }
    }
}

impl Database {
    /// Options for opening one.
    pub fn options() -> Options {
        Options::default()
    }
}

impl Options {
    /// The database has this table. It is created if it does not exist.
    pub fn table<K: Key + ?Sized, V: Data, O>(mut self, table: Table<K, V, O>) -> Self {
        self.add(table.shape);
        self
    }

    /// The database has this sequence with all of its family.
    pub fn sequence(mut self, sequence: Sequence) -> Self {
        self.add(sequence.shape);
        self
    }

    fn add(&mut self, shape: Shape) {
        match self.shapes.iter().find(|before| before.name == shape.name) {
            None => self.shapes.push(shape),
            Some(before) if *before == shape => {}
            Some(before) => {
                let what = format!("{shape} is registered a second time, first it was {before}");
                self.mistake.get_or_insert(what);
            }
        }
    }

    /// A procedure that there was, kept for logs of before: it cannot be called. A database that
    /// was killed may have calls of it in its log, and is refused without it. What a registered
    /// procedure says that it was ([`Procedure::WAS`]) is kept without this.
    ///
    /// It can go when every database that the program may meet was opened by a program that no
    /// longer calls it: [`Database::recovery`] says of each open whether it was needed.
    pub fn procedure_was<P: Procedure>(mut self) -> Self {
        keep::<P>(&mut self.kept.procedures);
        self
    }

    /// The database runs this procedure.
    pub fn procedure<P: Procedure>(mut self) -> Self {
        let mut before = Vec::new();
        keep_before::<P>(&mut before);
        let others = before.iter().filter(|before| before.name != P::NAME);
        let others = others.map(|before| (before.name.to_string(), before.version + 1));
        self.kept.superseded.extend(others);
        self.kept.procedures.extend(before);
        self.register(Registration::new::<P>());
        self
    }

    /// The database runs this procedure, which is an object: see [`raw`](crate::raw).
    pub fn raw_procedure(mut self, procedure: Arc<dyn raw::Procedure>) -> Self {
        self.register(Registration::raw(procedure));
        self
    }

    fn register(&mut self, procedure: Registration) {
        match self.procedures.iter().find(|before| before.name == procedure.name) {
            None => self.procedures.push(procedure),
            Some(before) if before.is(&procedure) => {}
            Some(_) => {
                let what = format!("two procedures have the name {:?}", procedure.name);
                self.mistake.get_or_insert(what);
            }
        }
    }

    /// What procedures know besides their arguments and rows: the one value of its type that
    /// [`Transaction::context`](crate::Transaction::context) and its like give to them. It must
    /// never change, and must be the same whenever the database is opened, because calls of the log
    /// run again with it.
    ///
    /// ```
    /// use nvcaracal::{DeviceSpec, HashTable, Stop, Table, Transaction, procedure};
    ///
    /// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
    ///
    /// struct Fees { transfer: i64 }
    ///
    /// /// Takes the fee; answers with what is left.
    /// #[procedure]
    /// fn charge(tx: &mut Transaction, account: u64) -> Result<i64, Stop> {
    ///     let cents = tx.get(ACCOUNTS, account)?.unwrap_or(0) - tx.context::<Fees>()?.transfer;
    ///     tx.insert(ACCOUNTS, account, &cents)?;
    ///     Ok(cents)
    /// }
    ///
    /// # let options = nvcaracal::Database::options().table(ACCOUNTS).procedure::<Charge>();
    /// let db = options.context(Fees { transfer: 3 }).open_device(DeviceSpec::Dram)?;
    /// assert_eq!(db.call(Charge { account: 1 })?, -3);
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    pub fn context<T: Any + Send + Sync>(mut self, context: T) -> Self {
        self.context = Context::new(context);
        self
    }

    /// Most threads that run transactions, one of which is the sequencer. How many of them run an
    /// epoch is chosen by measurement: more only where they are faster, so not where calls wait for
    /// each other or for a processor. What the calls come to is the same.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Memory for cached versions of rows; worth it where reading the device is slower than reading
    /// memory.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Epochs from one checkpoint to the next. More of them make a recovery replay more, and on
    /// `file` write fewer pages. There the default is at least 100 epochs, 32 MiB of log (or a
    /// quarter of [`log_bytes_max`](Self::log_bytes_max), if that is less) and a quarter of the
    /// bytes of the pages that changed: so a checkpoint writes at most four times what was logged.
    pub fn checkpoint_every(mut self, epochs: u64) -> Self {
        self.checkpoint_every = Some(epochs);
        self
    }

    /// Memory for rows that were overwritten and that a [`Snapshot`](crate::Snapshot) still sees,
    /// over all snapshots. At half of it the oldest snapshots end until one is left; where a single
    /// epoch needs more than what is left, all end. Writers do not notice.
    pub fn snapshot_bytes_max(mut self, bytes: u64) -> Self {
        self.snapshot_bytes_max = bytes;
        self
    }

    /// Memory for the changes of tables that have a [feed](crate::Changes), over all of them, keys
    /// and values and about 64 bytes for each change. Beyond it the oldest are forgotten; those of
    /// an epoch that need more are not kept at all, and the same holds where those of one worker
    /// need more than its share. A reader that needs them is told. Writers do not notice.
    pub fn change_bytes_max(mut self, bytes: u64) -> Self {
        self.change_bytes_max = bytes;
        self
    }

    /// Over how many epochs [`Database::contention`] says for which rows calls contended. 0, the
    /// default: it says nothing, and costs nothing. Otherwise each epoch keeps the keys of the rows
    /// that several of its calls wrote, or that calls waited for, which costs time and memory for
    /// each of them; calls that write rows of their own cost nothing more.
    pub fn contention_epochs(mut self, epochs: usize) -> Self {
        self.contention_epochs = epochs;
        self
    }

    /// Whether every epoch runs twice before it runs, to find procedures that are not
    /// deterministic. For tests: the two runs take place on copies of the database, which are in
    /// memory and as large as it is.
    ///
    /// Both runs begin with the same state, the same timestamp and the same seeds, and calls run
    /// beside each other or alone as they do on the database. The first call that answers something
    /// else, is deferred, leaves other rows or allocates other numbers in one of them stops the
    /// database, with [`Error::is_not_deterministic`] and a text that names its procedure, epoch
    /// and position, and both results. Nothing of its epoch took place. What the log holds when the
    /// database is opened runs once, and is compared with the states that were answered.
    ///
    /// What it finds: a clock that has moved on, random numbers, what follows from the order of a
    /// `HashMap`, counters and other global state, addresses. What it cannot find: what differs
    /// from process to process only, such as the environment or a file, and another program.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use nvcaracal::{Database, DeviceSpec, HashTable, Stop, Table, Transaction, procedure};
    ///
    /// const TICKETS: HashTable<u64, u64> = Table::hash("tickets");
    /// static NEXT: AtomicU64 = AtomicU64::new(1);
    ///
    /// /// Numbers tickets by a counter that a recovery would go on with, and not repeat.
    /// #[procedure]
    /// fn give_ticket(tx: &mut Transaction, user: u64) -> Result<u64, Stop> {
    ///     let number = NEXT.fetch_add(1, Ordering::Relaxed);
    ///     tx.insert(TICKETS, number, &user)?;
    ///     Ok(number)
    /// }
    ///
    /// let options = Database::options().table(TICKETS).procedure::<GiveTicket>();
    /// let db = options.check_determinism(true).open_device(DeviceSpec::Dram)?;
    /// let error = db.call(GiveTicket { user: 7 }).unwrap_err();
    /// assert!(error.is_not_deterministic());
    /// let expected = "procedure \"give_ticket\" is not deterministic: call 0 of epoch 1 answered \
    ///                 1 and, run again, answered 2";
    /// assert!(error.to_string().starts_with(expected), "{error}");
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    pub fn check_determinism(mut self, check: bool) -> Self {
        self.check_determinism = check;
        self
    }

    /// Memory for the database on `file`: data may be larger. Without it all data is in memory.
    ///
    /// What counts are pages of 4 KiB with rows and values, copies of those that are stored to
    /// while a checkpoint saves them, indexes, row entries, and what an epoch keeps while it runs.
    /// Row entries, and indexes that are not among the pages, are always in memory (see
    /// [`Database::memory`]): what they leave, at least 8 MiB, holds pages. Pages that the calls of
    /// an epoch need are read many at once, as far as their write sets and declared reads name the
    /// rows; other rows are read when they are touched, which is slower. A call that changes more
    /// than the limit gets it. Answers do not depend on it. Memory of the process besides is not
    /// counted. Range: 16 MiB to 4 TiB.
    ///
    /// Needs `userfaultfd` (Linux 5.11 or newer; containers may forbid it): where it is missing the
    /// open is refused. A page that cannot be read when a call needs it ends the process.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// With a [limit of memory](Options::memory_limit): reads all rows of a table while the
    /// database is opened, before anything is written to it. So a damaged page among them is an
    /// error of the open, which has changed nothing then, instead of the end of the process at the
    /// first read. For tables that the program reads as a whole as soon as the database is open.
    pub fn read_at_open(mut self, table: impl Into<String>) -> Self {
        self.read_at_open.push(table.into());
        self
    }

    /// Keeps the log of all epochs in files of this directory, which may be on another disk: with a
    /// backup from before, [`Database::restore_to`] makes the database as it was at the end of any
    /// of them. An epoch is there at most [`Options::archive_delay`] after its answers, and with
    /// each [`Database::checkpoint`]. Log space serves again only when the archive has what it
    /// held, so if the archive cannot be written the log grows;
    /// [`Stats::archive_error`](crate::Stats::archive_error) says why. On `file` alone. Neither of
    /// the two directories may be in the other.
    pub fn archive(mut self, directory: impl Into<PathBuf>) -> Self {
        self.archive = Some(directory.into());
        self
    }

    /// How long after its answers an epoch is in the [archive](Options::archive), also if nothing
    /// else comes. Each time makes a file. Default 10 s; range: 10 ms to an hour. An open with a
    /// delay and without an archive is refused.
    pub fn archive_delay(mut self, delay: Duration) -> Self {
        self.archive_delay = Some(delay);
        self
    }

    /// Most bytes of rows and values. Takes address space, and on `file` one byte of memory for
    /// each 4 KiB.
    pub fn data_bytes_max(mut self, bytes: u64) -> Self {
        self.data_bytes_max = bytes;
        self
    }

    /// Most bytes of the input log.
    pub fn log_bytes_max(mut self, bytes: u64) -> Self {
        self.log_bytes_max = bytes;
        self
    }

    /// Settings that hardly any program needs, all of them at once: those that were set before are
    /// overwritten.
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Whether to create a database where there is none; by default, yes.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The database is only read: [`Database::get`], [`Database::snapshot`] and what tells how it
    /// is. No file is opened for writing; what the log holds beyond the checkpoint runs again in
    /// memory, by this program's procedures, and is forgotten with the handle; a log of the program
    /// before needs [what this one keeps of it](crate::Options::procedure_was). Others may read it
    /// at the same time, but none may write: a process that has it open keeps this out, and the
    /// other way round. Calls and checkpoints are refused ([`Error::is_mistake`]). For `file` only.
    ///
    /// ```
    /// # use nvcaracal::{Database, HashTable, Table};
    /// const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
    /// # let room = tempfile::tempdir().expect("a directory");
    /// # let path = room.path().join("bank");
    /// # Database::options().table(ACCOUNTS).open(&path)?.close()?;
    /// let db = Database::options().table(ACCOUNTS).read_only(true).open(path)?;
    /// assert_eq!(db.get(ACCOUNTS, 1)?, None);
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Opens the database in a directory of an ordinary file system. The directory is created if it
    /// does not exist, the one that it is in is not.
    ///
    /// Recovers: when this returns, everything that was ever answered is there.
    ///
    /// # Errors
    /// [`Error::is_locked`] if it is open elsewhere, [`Error::is_corrupt`] if it is damaged,
    /// [`Error::is_schema`] if it holds other tables, rows or calls than the program takes them
    /// for; [`Error::is_limit`] for an option out of its range; [`Error::is_mistake`] if there is
    /// no directory to create it in, or for two procedures or tables of one name.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Database> {
        self.open_device(DeviceSpec::File(PathBuf::from(directory.as_ref())))
    }

    /// Opens the database on a device: `dram` and `emulated` forget everything, `dax` is a file on
    /// persistent memory, `file` is what [`Options::open`] takes.
    ///
    /// ```
    /// let spec = "emulated:none".parse().expect("a device");
    /// let db = nvcaracal::Database::options().open_device(spec)?;
    /// assert_eq!(db.device(), "emulated:none");
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Options::open`]; [`Error::is_mistake`] for `crash`, which is for simulations.
    pub fn open_device(self, device: DeviceSpec) -> Result<Database> {
        if let Some(mistake) = self.mistake {
            return Err(Error::mistake(mistake));
        }
        self.check_indexes()?;
        self.check_names()?;
        self.kept.check(&self.procedures)?;
        let (limits, epochs) = (self.limits()?, self.epochs());
        // What is only read runs no epoch.
        let checks = self.check_determinism && !self.read_only;
        let name = device.to_string();
        let directory = match &device {
            DeviceSpec::File(directory) => Some(directory.clone()),
            _ => None,
        };
        let (procedures, shapes) = (self.procedures.clone(), self.shapes.clone());
        let contention = Window::new(self.contention_epochs);
        let change_bytes_max = self.change_bytes_max;
        let tuning = self.tuning;
        let archive_delay = archive_place::delay(self.archive.as_deref(), self.archive_delay)?;
        let archive_delay = archive_delay.filter(|_| !self.read_only);
        if let (Some(archive), Some(directory)) = (&self.archive, &directory) {
            archive_place::check_apart(directory, archive)?;
        }
        let plan = self.plan(device);
        plan.config.validate()?;
        let copies = checks.then(|| Copies::new(&plan));
        let (_span, started) = (events::opening(&name), Instant::now());
        let running = plan.config.running.clone();
        let slow = SlowCalls::watch(running.clone(), tuning.procedure_time_warning);
        let (slow, close_wait_max) = (slow.map_err(no_thread)?, tuning.close_wait_max);
        let call_times = CallTimes { running, slow, close_wait_max };
        // What the log holds runs again on the stack on which its calls ran, and will run.
        let mut stack = Stack::new(plan.config.procedure_stack_bytes).map_err(no_stack)?;
        let (driver, report) = stack.run(|| open::open(plan))?;
        events::opened(&name, &report, started.elapsed());
        let numbers = driver.procedure_ids().iter().copied();
        assert_eq!(numbers.len(), procedures.len(), "a procedure without a number");
        let registered = procedures.into_iter().zip(numbers).collect();
        let names = Names::new(&driver.schema(), &shapes);
        let tools = Tools { driver, copies, stack };
        Database::start(Opened {
            tools,
            report,
            device: name,
            directory,
            registered,
            limits,
            epochs,
            names,
            contention,
            change_bytes_max,
            call_times,
            archive_delay,
        })
    }

    /// For tests: where timestamps come from, nanoseconds since 1970.
    #[doc(hidden)]
    pub fn wall_clock(mut self, now_ns: fn() -> u64) -> Self {
        self.seams.now_ns = now_ns;
        self
    }

    /// For tests: what sees every call that `file` makes to the file system.
    #[doc(hidden)]
    pub fn disk_hook(mut self, hook: Arc<dyn DiskHook>) -> Self {
        self.seams.disk = Some(hook);
        self
    }

    /// For tests: what sees every call that the change log makes to the file system.
    #[doc(hidden)]
    pub fn change_log_hook(mut self, hook: Arc<dyn ChangeLogHook>) -> Self {
        self.seams.change_log = Some(hook);
        self
    }

    /// For benchmarks: whether calls go to the serial part of their epochs by what this process has
    /// learned of their procedures. Otherwise every procedure is one that predicts what it writes,
    /// and what runs where follows from the calls alone.
    #[doc(hidden)]
    pub fn learns(mut self, learns: bool) -> Self {
        self.seams.learns = learns;
        self
    }

    /// For benchmarks: files that may lie in the directory of a database that is created on `file`.
    #[doc(hidden)]
    pub fn beside(mut self, names: &'static [&'static str]) -> Self {
        self.seams.beside = names;
        self
    }

    /// For experiments: all that the engine is told, in place of what follows from the options.
    #[doc(hidden)]
    pub fn engine(mut self, config: EngineConfig) -> Self {
        self.seams.engine = Some(config);
        self
    }

    /// What the queue takes, where all numbers of the library are in their ranges.
    fn limits(&self) -> Result<Limits> {
        let tuning = &self.tuning;
        in_range("epoch_calls_max", tuning.epoch_calls_max, 1..=CALLS_MAX)?;
        in_range("contention_epochs", self.contention_epochs, 0..=CONTENTION_EPOCHS_MAX)?;
        in_range("queue_calls_max", tuning.queue_calls_max, 1..=CALLS_MAX)?;
        in_range("queue_bytes_max", tuning.queue_bytes_max, (1 << 20)..=usize::MAX)?;
        let longest = 1..=ARGUMENT_BYTES_MAX.min(tuning.queue_bytes_max);
        in_range("argument_bytes_max", tuning.argument_bytes_max, longest)?;
        in_range("consumer_bytes_max", tuning.consumer_bytes_max, (16 << 20)..=u64::MAX)?;
        if let Some(bytes) = self.memory_limit {
            in_range("memory_limit", bytes, MEMORY_BYTES_MIN..=SPACE_BYTES_MAX)?;
        }
        in_range("data_bytes_max", self.data_bytes_max, DATA_BYTES_MIN..=SPACE_BYTES_MAX)?;
        in_range("log_bytes_max", self.log_bytes_max, LOG_BYTES_MIN..=SPACE_BYTES_MAX)?;
        Ok(Limits {
            calls: tuning.queue_calls_max,
            bytes: tuning.queue_bytes_max,
            epoch_calls: tuning.epoch_calls_max,
            argument_bytes: tuning.argument_bytes_max,
            read_only: self.read_only,
        })
    }

    /// How epochs are made.
    fn epochs(&self) -> Epochs {
        let Tuning { epoch_wait_max, serial_calls_max, .. } = self.tuning;
        let Seams { now_ns, learns, .. } = self.seams;
        Epochs { wait_max: epoch_wait_max, serial_calls_max, now_ns, learns }
    }

    /// What the engine is told.
    fn engine_config(&self, device: &DeviceSpec) -> EngineConfig {
        let config = self.seams.engine.clone().unwrap_or_else(|| {
            let defaults = EngineConfig::for_device(device);
            let checkpoint_log_bytes = defaults.checkpoint_log_bytes.min(self.log_bytes_max / 4);
            let defaults = EngineConfig { checkpoint_log_bytes, ..defaults };
            let defaults = defaults.checkpoint_after(self.checkpoint_every);
            let cores = || std::thread::available_parallelism().map_or(1, usize::from);
            let tuning = &self.tuning;
            EngineConfig {
                workers: self.workers.unwrap_or_else(|| cores().min(WORKERS_DEFAULT_MAX)),
                cache_bytes: self.cache_bytes.unwrap_or(defaults.cache_bytes),
                split_threshold: tuning.split_threshold,
                snapshot_bytes_max: self.snapshot_bytes_max,
                procedure_stack_bytes: tuning.procedure_stack_bytes,
                store: StoreOptions {
                    segment_bytes: tuning.segment_bytes,
                    log_segment_bytes: tuning.log_segment_bytes,
                    create: self.create,
                    ..defaults.store
                },
                clock: monotonic_ns,
                ..defaults
            }
        });
        EngineConfig {
            contention: self.contention_epochs > 0,
            guessed_growth_max: GUESSED_GROWTH_MAX,
            refuses_large_epochs: true,
            read_at_open: self.read_at_open.clone(),
            store: StoreOptions { instance: random(), ..config.store },
            ..config
        }
    }

    fn plan(self, device: DeviceSpec) -> Plan {
        Plan {
            config: self.engine_config(&device),
            device,
            read_only: self.read_only,
            image_bytes_max: self.data_bytes_max,
            log_bytes_max: self.log_bytes_max,
            disk: self.seams.disk,
            consumer_bytes_max: self.tuning.consumer_bytes_max,
            change_log_hook: self.seams.change_log,
            archive: self.archive,
            memory_limit: self.memory_limit,
            beside: self.seams.beside,
            shapes: self.shapes,
            renamed: self.renamed,
            dropped: self.dropped,
            known: Known { superseded: self.kept.superseded.clone(), ..self.known },
            indexes: self.indexes,
            procedures: self.procedures,
            kept: self.kept,
            info: EpochInfo { timestamp_ns: (self.seams.now_ns)(), seed: random() },
            context: self.context,
        }
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::stopped(format!("cannot start the thread that looks for slow calls: {error}"))
}

fn no_stack(error: std::io::Error) -> Error {
    Error::stopped(format!("cannot make the stack of procedures: {error}"))
}

pub(super) fn in_range<N: PartialOrd + Display>(
    name: &str,
    value: N,
    range: RangeInclusive<N>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = (range.start(), range.end());
    Err(Error::limit(format!("{name} is {value}, must be from {low} to {high}")))
}

/// The clock of the engine's reports.
fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

mod archive_place;
#[cfg(test)]
mod tests;
