//! The database as its users hold it.

use std::any::TypeId;
use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use engine::{EngineError, MemoryUse, ReadOutcome, Reader, RecoveryReport, caught};
use pmem::FileUse;
use storage::TableId;

use crate::body;
use crate::call::procedure::{Procedure, Registration};
use crate::call::share::Share;
use crate::call::ticket::Ticket;
use crate::data::readable::with_readable;
use crate::data::stored;
use crate::data::value::Data;
use crate::database::archiving::{self, Archiving};
use crate::database::closing::{CallTimes, Ended, SaysEnded};
use crate::database::numbers::Numbers;
use crate::database::way::{Way, submitter_after};
use crate::error::{Error, Result};
use crate::feed::kept::Feeds;
use crate::host::driver::Driver;
use crate::key::bytes::Key;
use crate::observe::contention::{self, Contention, Names, Window};
use crate::observe::events;
use crate::observe::procedures;
use crate::observe::stats::{Recorder, Stats};
use crate::sequencer::queue::{Limits, OnFull, Queue};
use crate::sequencer::routing::Routing;
use crate::sequencer::run::{self, Epochs, Pace, Seat, Sequencer, Shared, Tools, panicked};
use crate::sequencer::standing::{Asked, Held, Standing, Waiting};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::mpsc::sync_channel;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, thread_number};
use crate::table::handle::{Shape, Table};
use crate::table::rows::undecodable;
use crate::table::schema::Schema;

/// An open database. A clone is another handle of it; share handles with as many threads as you
/// like.
///
/// It is closed by [`Database::close`], or when the last handle is dropped.
///
/// # Who may use it
///
/// Any thread of the process that opened it. In a child of `fork` every call is refused
/// ([`Error::is_mistake`]), no thread is waited for, and what is dropped writes nothing; but the
/// child keeps the files, and the lock with them, until it ends or runs another program.
///
/// Procedures and functions of indexes may use no database, and wait for no [`Ticket`]: it would
/// wait for itself. Wakers, and what listens to `tracing` and `metrics`, run on the database's
/// threads: they may submit with [`Database::try_submit`] and [`Database::submit_async`], poll and
/// look, but whatever waits is refused there. If they panic, that is not told to anybody.
///
/// # Observation
///
/// [`Database::stats`] has counts and latencies at any time, [`Database::contention`] the rows for
/// which calls contend. With feature `tracing` these happen,
/// with the target `nvcaracal`:
///
/// | span or event | level | fields |
/// |---|---|---|
/// | span `open` | info | `device` |
/// | event `opened` | info | `device`, `created`, `epoch`, `rows`, `epochs_replayed`, `calls_replayed`, `us` |
/// | event `a call was left out of the replay` | warn | `epoch`, `position`, `why` |
/// | span `epoch` | debug | `calls` |
/// | event `epoch` | debug | `epoch`, calls by outcome, `log_bytes`, `us` |
/// | event `contention` | debug | `epoch`, `rows`, `writers`, `waits`, `us` of the waits |
/// | event `the log was full: taking a checkpoint` | info | |
/// | event `checkpoint` | info | `epoch`, `us` |
/// | event `a call runs long` | warn | `procedure`, `epoch`, `position`, `us` until now |
/// | event `stopped` | error | `why` |
/// | event `closed` | info | |
///
/// Calls that run long are told if
/// [`Tuning::procedure_time_warning`](crate::Tuning::procedure_time_warning) asks for it, also
/// while a database is opened and its log runs again.
/// Contention is told if [`Options::contention_epochs`](crate::Options::contention_epochs) asks for
/// it, of epochs that have any.
/// Times are in microseconds (`us`). The outcomes of calls are `committed`, `aborted`, `failed` and
/// `deferred`.
///
/// With feature `metrics`, of all databases of the process together:
///
/// | metric | kind | what |
/// |---|---|---|
/// | `nvcaracal_calls_total` | counter | calls, with the labels `procedure` and `outcome` |
/// | `nvcaracal_slow_calls_total` | counter | calls that run long, with the label `procedure` |
/// | `nvcaracal_epochs_total` | counter | epochs |
/// | `nvcaracal_log_bytes_total` | counter | bytes of the input log |
/// | `nvcaracal_contended_writes_total` | counter | calls, for each row that others wrote, too |
/// | `nvcaracal_row_waits_total` | counter | waits of calls for versions of rows |
/// | `nvcaracal_epoch_seconds` | histogram | an epoch in the engine |
/// | `nvcaracal_answer_seconds` | histogram | from an epoch's first submission to its answers |
/// | `nvcaracal_checkpoint_seconds` | histogram | checkpoints that were asked for |
/// | `nvcaracal_rows` | gauge | rows of the database whose epoch ended last |
/// | `nvcaracal_queued_calls` | gauge | calls that wait there |
/// | `nvcaracal_archive_fails` | gauge | 1 while the archive of the log cannot be written |
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
}

/// Bytes that a thread keeps for the next row that it reads.
const ROOM_BYTES_MAX: usize = 1 << 16;

thread_local! {
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The bytes of a value that was read; the thread keeps the memory.
struct Room(Vec<u8>);

impl Drop for Room {
    fn drop(&mut self) {
        if self.0.capacity() <= ROOM_BYTES_MAX {
            ROOM.set(std::mem::take(&mut self.0));
        }
    }
}

/// The value of a row of a table that was read.
fn value_of<V: Data>(shape: &Shape, found: Option<Room>) -> Result<Option<V>> {
    let Some(bytes) = found else { return Ok(None) };
    let value = stored::read::<V>(&bytes.0);
    value.map(Some).ok_or_else(|| Error::mistake(undecodable::<V>(shape, "value")))
}

pub(crate) struct Inner {
    shared: Arc<Shared>,
    seat: Arc<Seat>,
    reader: Reader,
    numbers: Numbers,
    schema: Arc<Schema>,
    report: RecoveryReport,
    device: String,
    /// Of a database on `file`.
    directory: Option<PathBuf>,
    names: Names,
    /// Submitters that there were.
    submitters: AtomicU64,
    sequencer: Mutex<Option<JoinHandle<Result<()>>>>,
    ended: Arc<Ended>,
    call_times: CallTimes,
    /// Where the log is archived. Ends with this.
    _archiving: Option<Archiving>,
}

/// What a database is made of once its engine is open.
pub(crate) struct Opened {
    pub(crate) tools: Tools,
    pub(crate) report: RecoveryReport,
    pub(crate) device: String,
    pub(crate) directory: Option<PathBuf>,
    /// Procedures with their numbers in the log.
    pub(crate) registered: Vec<(Registration, u16)>,
    pub(crate) limits: Limits,
    pub(crate) epochs: Epochs,
    pub(crate) names: Names,
    pub(crate) contention: Window,
    /// Most bytes of the changes that are kept for feeds.
    pub(crate) change_bytes_max: u64,
    pub(crate) call_times: CallTimes,
    /// Where the log is archived: how long after its answer an epoch is.
    pub(crate) archive_delay: Option<Duration>,
}

impl Database {
    pub(crate) fn start(opened: Opened) -> Result<Self> {
        let Opened {
            tools,
            report,
            device,
            directory,
            registered,
            limits,
            epochs,
            names,
            contention,
            change_bytes_max,
            call_times,
            archive_delay,
        } = opened;
        let numbers = Numbers::new(&registered)?;
        // Numbers are those of the log, without gaps.
        let mut by_number: Vec<_> = registered.iter().collect();
        by_number.sort_by_key(|(_, number)| *number);
        let is_dense = by_number.iter().enumerate().all(|(at, (_, n))| at == usize::from(*n));
        assert!(is_dense, "numbers of procedures have gaps");
        let procedures =
            by_number.iter().map(|(of, _)| procedures::Procedure::new(of.name)).collect();
        let alone = by_number.iter().map(|(of, _)| of.is_alone());
        let routing = if epochs.learns { Routing::new(alone) } else { Routing::fixed(alone) };
        let recorder = Mutex::new(Recorder::new(procedures, contention));
        let (queue, pace) = (Queue::new(limits), Pace::default());
        let feeds = Feeds::new(change_bytes_max);
        let (standing, change_log) = (Standing::default(), tools.driver.change_log());
        let shared =
            Arc::new(Shared { queue, recorder, routing, feeds, pace, standing, change_log });
        let schema = tools.driver.schema();
        let reader = tools.driver.reader();
        // A database that only reads does not run what the last process left to run.
        let deferred = if limits.read_only { 0 } else { tools.driver.status().deferred };
        let last_ns = report.timestamp_ns;
        let sequencer = Sequencer::new(Arc::clone(&shared), tools, deferred, epochs, last_ns);
        let seat = Arc::new(Mutex::new(Some(sequencer)));
        let thread = thread::Builder::new().name("nvcaracal".into());
        let of_thread = (Arc::clone(&shared), Arc::clone(&seat));
        let ended = Arc::<Ended>::default();
        let says_ended = SaysEnded(Arc::clone(&ended));
        let work = move || {
            let _says_ended = says_ended;
            body::working(|| run::run(&of_thread.0, &of_thread.1, epochs.wait_max))
        };
        let handle = thread
            .spawn(work)
            .map_err(|error| Error::stopped(format!("cannot start the sequencer: {error}")))?;
        let sequencer = Mutex::new(Some(handle));
        let archiving = Archiving::begin(&shared, archive_delay)?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                seat,
                reader,
                numbers,
                schema,
                report,
                device,
                directory,
                names,
                submitters: AtomicU64::new(0),
                sequencer,
                ended,
                call_times,
                _archiving: archiving,
            }),
        })
    }

    /// Submits a call and waits for its answer. When it returns, the call is durable.
    ///
    /// # Errors
    /// As [`Database::submit`] and [`Ticket::wait`].
    pub fn call<P: Procedure>(&self, procedure: P) -> Result<P::Output> {
        let number = self.number::<P>()?;
        let alone = with_readable(&procedure, |arguments| self.run_alone(number, arguments));
        match alone.map_err(Error::mistake)?? {
            Some(share) => Ticket::new(share, 0).wait(),
            None => self.submit(procedure)?.wait(),
        }
    }

    /// Runs a call on this thread, if there is no other one to share an epoch with: where its
    /// answer is.
    pub(crate) fn run_alone(&self, number: u16, arguments: &[u8]) -> Result<Option<Arc<Share>>> {
        body::check_may_wait()?;
        let queue = self.queue();
        queue.check_here()?;
        queue.check_writable()?;
        queue.check_arguments(arguments)?;
        let Inner { shared, seat, .. } = &*self.inner;
        Ok(shared.run_at_once(seat, number, arguments))
    }

    /// Submits a call; waits while the queue is full.
    ///
    /// A call comes after every call that was answered before it was submitted. Calls of one thread
    /// that are under way together mostly keep their order, but one that is deferred
    /// ([`Procedure::write_set`]) comes later, and calls of procedures that are often deferred come
    /// first in their epoch: wait for an answer on which the next call depends, or use a
    /// [`Database::submitter`].
    ///
    /// # Errors
    /// [`Error::is_stopped`]; [`Error::is_mistake`] if the procedure is not registered, its
    /// arguments do not read back from what is written of them, or the database was opened [for
    /// reading only](crate::Options::read_only); [`Error::is_limit`] for arguments of more than
    /// [`Tuning::argument_bytes_max`](crate::Tuning::argument_bytes_max). The call did not take
    /// place.
    pub fn submit<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.push(&procedure, Way::default(), OnFull::Wait)
    }

    /// Submits a call, unless the queue is full.
    ///
    /// # Errors
    /// [`Error::is_queue_full`]; as [`Database::submit`].
    pub fn try_submit<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.push(&procedure, Way::default(), OnFull::Fail)
    }

    /// As [`Database::submit`], for a task of any runtime: waits for room in the queue without
    /// keeping its thread. The call is submitted when the future is polled, and not if that is
    /// dropped before.
    ///
    /// ```
    /// # async fn example(db: nvcaracal::Database, call: Deposit) -> nvcaracal::Result<i64> {
    /// let balance = db.submit_async(call).await?.await?;
    /// # Ok(balance)
    /// # }
    /// # nvcaracal::plain! { struct Deposit { account: u64, cents: i64 } }
    /// # impl nvcaracal::Procedure for Deposit {
    /// #     const NAME: &'static str = "deposit";
    /// #     type Output = i64;
    /// #     fn run(&self, _: &mut nvcaracal::Transaction) -> Result<i64, nvcaracal::Stop> {
    /// #         Ok(1)
    /// #     }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::submit`].
    pub async fn submit_async<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.push_async(procedure, Way::default()).await
    }

    /// Submits a call and waits for its answer, as [`Database::call`], in a task of any runtime.
    ///
    /// # Errors
    /// As [`Database::submit`] and [`Ticket::wait`].
    pub async fn call_async<P: Procedure>(&self, procedure: P) -> Result<P::Output> {
        self.submit_async(procedure).await?.await
    }

    pub(crate) fn number<P: Procedure>(&self) -> Result<u16> {
        self.inner.numbers.of(TypeId::of::<P>()).ok_or_else(|| {
            Error::mistake(format!(
                "procedure {:?} is not registered with this database: add it to its options",
                P::NAME
            ))
        })
    }

    pub(crate) fn numbers(&self) -> &Numbers {
        &self.inner.numbers
    }

    /// The number of one more submitter.
    pub(crate) fn next_submitter(&self) -> u16 {
        submitter_after(self.inner.submitters.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn routing(&self) -> &Routing {
        &self.inner.shared.routing
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.shared.queue
    }

    /// Reads a row as of the end of the last finished epoch, from this thread, while the next one
    /// runs: it waits for no call, no log and no other reader, but for a moment where indexes
    /// change. It sees every call that was answered before. For several rows of one state take a
    /// [snapshot](Database::snapshot).
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the table is not registered; [`Error::is_limit`] if the key is
    /// beyond its limit; [`Error::is_stopped`].
    pub fn get<K: Key + ?Sized, V: Data, O>(
        &self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>> {
        let number = self.inner.schema.number(&table.shape).map_err(Error::mistake)?;
        let found = key.borrow().with_key(|key| self.inner.read_row(number, key, true));
        // One that waits always comes to an end.
        value_of(&table.shape, found?.flatten())
    }

    /// [`Database::get`] for tasks: never blocks the thread of their runtime.
    ///
    /// ```
    /// # use nvcaracal::{Database, DeviceSpec, HashTable, Stop, Table, Transaction, procedure};
    /// const PRICES: HashTable<u32, u64> = Table::hash("prices");
    /// #[procedure]
    /// fn set(tx: &mut Transaction, item: u32, cents: u64) -> Result<(), Stop> {
    ///     tx.insert(PRICES, item, &cents)
    /// }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// let options = Database::options().table(PRICES).procedure::<Set>();
    /// let db = options.open_device(DeviceSpec::Dram)?;
    /// db.submit_async(Set { item: 1, cents: 250 }).await?.await?;
    /// assert_eq!(db.get_async(PRICES, 1).await?, Some(250));
    /// # Ok::<(), nvcaracal::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::get`].
    pub async fn get_async<K: Key + ?Sized, V: Data, O>(
        &self,
        table: Table<K, V, O>,
        key: impl Borrow<K>,
    ) -> Result<Option<V>> {
        let number = self.inner.schema.number(&table.shape).map_err(Error::mistake)?;
        let key = key.borrow().with_key(<[u8]>::to_vec);
        let found = poll_fn(|context| match self.inner.read_row(number, &key, false) {
            // For the length of some phases of an epoch: other tasks run meanwhile.
            Ok(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(Some(found)) => Poll::Ready(Ok(found)),
            Err(error) => Poll::Ready(Err(error)),
        });
        value_of(&table.shape, found.await?)
    }

    /// Makes the end of the last epoch the checkpoint: a recovery from here on replays nothing of
    /// before. Where the log is archived, the archive has all of it then, or
    /// [`Stats::archive_error`](crate::Stats::archive_error) says why not.
    ///
    /// # Errors
    /// The device's; [`Error::is_stopped`].
    pub fn checkpoint(&self) -> Result<()> {
        self.queue().check_writable()?;
        let shared = Arc::clone(&self.inner.shared);
        self.inner.request(move |driver| {
            let started = Instant::now();
            driver.checkpoint()?;
            let status = driver.status();
            events::checkpoint(status.epoch, started.elapsed());
            shared.record(|recorder| recorder.place(status));
            archiving::tell(&shared, driver);
            Ok(())
        })
    }

    /// Makes room for this many more rows of a table, in memory and on the device, so that
    /// inserting them does not wait for it. No epoch runs meanwhile.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the table is not registered; that of a device without room for
    /// them, and nothing has changed then; [`Error::is_stopped`].
    pub fn reserve<K: Key + ?Sized, V: Data, O>(
        &self,
        table: Table<K, V, O>,
        rows: u64,
    ) -> Result<()> {
        let number = self.inner.schema.number(&table.shape).map_err(Error::mistake)?;
        self.queue().check_writable()?;
        self.inner.request(move |driver| Ok(driver.reserve(number, rows)?))
    }

    /// Builds all indexes anew and compares them with those that are kept. No epoch runs meanwhile.
    ///
    /// # Errors
    /// [`Error::is_limit`] with the first index that is not that of its rows, which is a bug, or of
    /// a function that does not always make the same of a row; [`Error::is_stopped`].
    pub fn check_indexes(&self) -> Result<()> {
        self.inner.request(|driver| Ok(driver.check_indexes()?))
    }

    /// Bytes by structure. Waits for the epoch that runs now.
    ///
    /// # Errors
    /// [`Error::is_stopped`].
    pub fn memory(&self) -> Result<MemoryUse> {
        self.inner.request(|driver| Ok(driver.memory()))
    }

    /// What its files take of the disk, and what was given back since it was opened; `None` on a
    /// device without files of its own. Waits for the epoch that runs now.
    ///
    /// # Errors
    /// [`Error::is_stopped`].
    pub fn files(&self) -> Result<Option<FileUse>> {
        self.inner.request(|driver| Ok(driver.files()))
    }

    /// Why the database runs no more: what failed, or that it was closed. `None` while it runs. A
    /// program that has nothing to do without its database looks at this now and then, and ends.
    /// Does not wait for anything.
    #[must_use]
    pub fn stopped(&self) -> Option<Error> {
        let queue = &self.inner.shared.queue;
        match queue.check_here() {
            Ok(()) => queue.ended(),
            Err(forked) => Some(forked),
        }
    }

    /// Counts since it was opened. Does not wait for anything.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let shared = &self.inner.shared;
        if shared.queue.check_here().is_err() {
            return Stats::default();
        }
        let waiting = shared.queue.waiting();
        let recorder = shared.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stats = recorder.snapshot();
        drop(recorder);
        for procedure in &mut stats.procedures {
            procedure.slow = self.inner.call_times.slow.count(procedure.name);
        }
        Stats {
            queued_calls: waiting.calls,
            queued_bytes: waiting.bytes,
            blocked_submitters: waiting.threads,
            ..stats
        }
    }

    /// The rows for which most calls contended in the last epochs, so many at most, and how long
    /// calls waited for them. Nothing is sampled or estimated. Does not wait for anything.
    ///
    /// Empty unless [`Options::contention_epochs`](crate::Options::contention_epochs) says over how
    /// many epochs.
    ///
    /// ```
    /// use nvcaracal::{Database, DeviceSpec, HashTable, Stop, Table, Transaction, procedure};
    ///
    /// const COUNTERS: HashTable<u64, u64> = Table::hash("counters");
    ///
    /// #[procedure]
    /// fn count(tx: &mut Transaction, counter: u64) -> Result<u64, Stop> {
    ///     let next = tx.get(COUNTERS, counter)?.unwrap_or(0) + 1;
    ///     tx.insert(COUNTERS, counter, &next)?;
    ///     Ok(next)
    /// }
    ///
    /// let options = Database::options().table(COUNTERS).procedure::<Count>();
    /// let db = options.contention_epochs(100).open_device(DeviceSpec::Dram)?;
    /// let mut batch = db.batch();
    /// for call in 0..30 {
    ///     batch.add(&Count { counter: call % 10 / 7 })?; // 7 of 10 calls count in the first one
    /// }
    /// batch.submit()?.wait();
    /// let contention = db.contention(10);
    /// let [first, second] = &contention.rows[..] else { panic!("two rows") };
    /// assert_eq!((first.table, first.key_as::<u64>(), first.writers), ("counters", Some(0), 21));
    /// assert_eq!((second.key.to_string(), second.writers), ("1".into(), 9));
    /// println!("{contention}");
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    #[must_use]
    pub fn contention(&self, rows_max: usize) -> Contention {
        if self.queue().check_here().is_err() {
            return Contention::default();
        }
        let recorder = self.inner.shared.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let epochs = recorder.contention.epochs();
        drop(recorder);
        contention::add_up(epochs, &self.inner.names, rows_max)
    }

    /// What opening it found, and how long recovery took. The text of the report is for operators.
    ///
    /// ```
    /// # use nvcaracal::{Database, DeviceSpec, HashTable, Table};
    /// # const POINTS: HashTable<u64, u64> = Table::hash("points");
    /// let db = Database::options().table(POINTS).open_device(DeviceSpec::Dram)?;
    /// println!("{}", db.recovery());
    /// assert_eq!(db.recovery().to_string(), "created at epoch 0");
    /// # Ok::<(), nvcaracal::Error>(())
    /// ```
    #[must_use]
    pub fn recovery(&self) -> &RecoveryReport {
        &self.inner.report
    }

    /// The name of its device, as in `file:bank`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.inner.device
    }

    /// Closes the database: calls that were submitted are answered, then the state becomes the
    /// checkpoint, so that the next open replays nothing. Other handles of it get
    /// [`Error::is_stopped`] from then on.
    ///
    /// A procedure that does not end is not waited for longer than
    /// [`Tuning::close_wait_max`](crate::Tuning::close_wait_max): calls behind it are given up, its
    /// thread and those that wait for answers of its epoch are left, and the database stays locked
    /// until it ends or the process does. The same holds where the last handle is dropped.
    ///
    /// # Errors
    /// Why the last checkpoint failed, or why the database had stopped; that a call does not end,
    /// with its name. What was answered is durable all the same.
    pub fn close(self) -> Result<()> {
        body::check_may_wait()?;
        self.queue().check_here()?;
        self.inner.close()
    }
}

impl Inner {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Reads the bytes of a row's value. They are copied: what makes a value of them may be code of
    /// the user, for which no epoch waits. `None` if the read would have to wait, and must not.
    fn read_row(&self, table: TableId, key: &[u8], waits: bool) -> Result<Option<Option<Room>>> {
        body::check_may_wait()?;
        self.shared.queue.check_here()?;
        let mut room = Room(ROOM.take());
        let (reader, thread) = (&self.reader, thread_number());
        let outcome = match waits {
            true => reader.get(thread, table, key, &mut room.0)?,
            false => reader.try_get(thread, table, key, &mut room.0)?,
        };
        Ok(match outcome {
            ReadOutcome::Found => Some(Some(room)),
            ReadOutcome::Missing => Some(None),
            ReadOutcome::Later => None,
            ReadOutcome::Ended => {
                // The sequencer knows why, or reads itself.
                let key = key.to_vec();
                let value = self.request(move |driver| Ok(driver.get(table, &key)?))?;
                Some(value.map(Room))
            }
        })
    }

    /// The snapshot that stands, if it is of the newest epoch that readers see.
    ///
    /// # Errors
    /// A mistake in a process that was forked.
    pub(crate) fn standing_snapshot(&self) -> Result<Option<Arc<Held>>> {
        self.shared.queue.check_here()?;
        Ok(self.shared.standing.get(self.reader.epoch()))
    }

    /// The same; if none stands, `waiting` has one as soon as the engine takes it, or the reason
    /// why there is none.
    ///
    /// # Errors
    /// As [`Inner::standing_snapshot`].
    pub(crate) fn ask_for_snapshot(&self, waiting: Waiting) -> Result<Option<Arc<Held>>> {
        self.shared.queue.check_here()?;
        let is_first = match self.shared.standing.ask(self.reader.epoch(), waiting) {
            Asked::Has(held) => return Ok(Some(held)),
            Asked::Waits { is_first } => is_first,
        };
        // The first one asks for all.
        let shared = Arc::clone(&self.shared);
        let begin = move |driver: Result<&mut Driver, &Error>| match driver {
            Ok(driver) => shared.standing.begin(&shared, driver),
            Err(error) => shared.standing.fail(error),
        };
        if is_first && let Err(error) = self.request_later(begin) {
            self.shared.standing.fail(&error);
        }
        Ok(None)
    }

    /// Has a snapshot read on this thread, whose number `read` gets.
    pub(crate) fn read_with<R>(
        &self,
        read: impl FnOnce(&Reader, usize) -> engine::Result<R>,
    ) -> Result<R> {
        body::check_may_wait()?;
        self.shared.queue.check_here()?;
        match read(&self.reader, thread_number()) {
            Err(error @ EngineError::Poisoned(_)) => {
                // The sequencer knows why.
                self.request(|_| Ok(()))?;
                Err(error.into())
            }
            known => Ok(known?),
        }
    }

    /// Has the sequencer do something between two epochs.
    pub(crate) fn request<R: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Driver) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        body::check_may_wait()?;
        // A panic is that of who asked.
        let caught = move |driver: &mut Driver| {
            caught(|| what(driver)).unwrap_or_else(|panic| Err(Error::failed(panicked(&panic))))
        };
        let Self { shared, seat, .. } = self;
        shared.queue.check_here()?;
        if let Some(mut seat) = shared.take_idle(seat)
            && let Some(sequencer) = seat.as_mut()
        {
            return sequencer.with_driver(caught);
        }
        let (sender, receiver) = sync_channel(1);
        shared.queue.request(Box::new(move |driver| {
            let result = match driver {
                Ok(driver) => caught(driver),
                Err(error) => Err(error.clone()),
            };
            // No thread waits any more if the caller was killed.
            let _ = sender.send(result);
        }))?;
        receiver.recv().unwrap_or_else(|_| Err(Error::closed()))
    }

    /// Has the sequencer do something between two epochs, at once if it is idle. Never waits; there
    /// is an error instead of the driver if the database ends before.
    pub(crate) fn request_later(
        &self,
        what: impl FnOnce(Result<&mut Driver, &Error>) + Send + 'static,
    ) -> Result<()> {
        let Self { shared, seat, .. } = self;
        shared.queue.check_here()?;
        if let Some(mut seat) = shared.take_idle(seat)
            && let Some(sequencer) = seat.as_mut()
        {
            sequencer.with_driver(|driver| what(Ok(driver)));
            return Ok(());
        }
        shared.queue.request(Box::new(what))
    }

    fn close(&self) -> Result<()> {
        self.shared.queue.close();
        let handle = self.sequencer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match handle {
            // The last handle may be dropped by a procedure or a callback, for which the sequencer
            // waits, or on the sequencer's own thread.
            Some(handle)
                if body::check_may_wait().is_ok()
                    && handle.thread().id() != thread::current().id() =>
            {
                self.call_times.join(handle, &self.ended, &self.shared)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.shared.queue.check_here().is_err() {
            // A child of `fork` has the handle, and not the thread that it stands for.
            let handle = self.sequencer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            return std::mem::forget(handle);
        }
        // No caller is left to be told; what was answered is durable.
        let _ = self.close();
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("device", &self.inner.device).finish_non_exhaustive()
    }
}
