//! The library under clients: what its users get, if asked for beside the engine alone.
//!
//! Each client is a thread that submits calls of the workload and takes their answers, as a program
//! would, one by one or in batches. Calls are made before the clock starts, as those of the engine
//! alone are: what is compared is what queue, tickets and wake-ups cost. A *closed* client has a
//! fixed number of calls in flight: it submits the next one when it has the oldest answer. With an
//! arrival rate clients are *open*: calls come at fixed times, whether or not earlier ones were
//! answered, and their latency counts from those times. The engine alone, which is not known here
//! ([`EngineAlone`]), then runs as many calls in epochs of the same size, in one thread that waits
//! for none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nvcaracal::{Database, Tuning};
use pmem::DeviceSpec;
use serde::Serialize;
use workloads::Observer;

use super::client::{Client, Prepared, Seen};
use super::open::{Settings, open};
use crate::library::{self, Callable, LibraryView};
use crate::report::{Latency, ratio};
use crate::setup::OneOf;
use crate::{BenchError, Job, Parameters, Place, Result};

/// Epochs of at most so many calls run one after the other, in the library and by the engine alone.
pub const SERIAL_CALLS_MAX: usize = 64;

/// Over how many epochs contended rows are shown.
const CONTENTION_EPOCHS: usize = 100;

/// What clients do.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Threads.
    pub clients: usize,
    /// Calls that they have submitted and not got the answers of, together; at least `clients`.
    pub in_flight: usize,
    /// Calls that a client submits together, where it has that many in flight.
    pub batch: usize,
    /// How long they submit calls.
    pub seconds: f64,
    /// Calls that all of them submit in a second, if they are open.
    pub rate: Option<f64>,
    /// Most calls of an epoch; the library's default if absent.
    pub epoch_calls_max: Option<usize>,
    /// More sizes of epochs to run with, one after the other.
    pub epoch_sizes: Vec<usize>,
    /// Most rows to show for which calls contended; 0: they are not looked for.
    pub contended_rows: usize,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct ClientsReport {
    /// `ycsb`, `smallbank`, `tpcc`.
    pub workload: &'static str,
    /// The device, as named on the command line.
    pub device: String,
    /// Whether what was answered survives a power cut.
    pub durable: bool,
    /// Worker threads.
    pub workers: usize,
    /// Everything that data and stream depend on.
    pub parameters: Parameters,
    /// Threads that make calls.
    pub clients: usize,
    /// Calls in flight, of all clients together.
    pub in_flight: usize,
    /// Calls that a client submits together.
    pub batch: usize,
    /// Calls a second that arrive, if that was fixed.
    pub rate: Option<f64>,
    /// The run.
    #[serde(flatten)]
    pub run: ClientsRun,
    /// The engine alone with epochs of that size.
    pub engine: Option<Alone>,
    /// The same with other sizes of epochs.
    pub by_epoch_size: Vec<ClientsRun>,
    /// Whether the workload's own consistency check ran.
    pub checked: bool,
    /// What it complained about.
    pub problems: Vec<String>,
    /// The rows for which calls contended at the end of the last run, as text.
    #[serde(skip)]
    pub contention: Option<String>,
    /// Whether it was asked to stop before the time was over.
    pub interrupted: bool,
}

/// One run of all clients.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClientsRun {
    /// Most calls of an epoch, if that was asked for.
    pub epoch_calls_max: Option<usize>,
    /// From the first submission to the last answer.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// From the submission of a call, or its arrival, to when its client had the answer.
    pub client_latency_ns: Latency,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that aborted on purpose.
    pub aborted: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Words of the first failed one.
    pub first_failure: Option<String>,
    /// How often a call was put off to the next epoch.
    pub deferred: u64,
    /// Epochs that ran.
    pub epochs: u64,
    /// Calls of an epoch, on average.
    pub calls_per_epoch: f64,
}

/// The engine alone.
#[derive(Debug, Clone, Serialize)]
pub struct Alone {
    /// Calls of an epoch.
    pub epoch_size: u64,
    /// Epochs that ran.
    pub epochs: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Time in epochs.
    pub seconds: f64,
    /// Committed transactions per second of that time.
    pub throughput_txn_per_s: f64,
    /// Throughput of the library in per cent of that.
    pub share_percent: f64,
}

/// Runs a job by the engine alone, for a comparison.
pub trait EngineAlone {
    /// Runs so many epochs of a size; nothing if it was asked to stop before their end.
    ///
    /// # Errors
    /// Whatever stops the run.
    fn run(&self, place: &Place, epoch_size: u64, epochs: u64) -> Result<Option<Alone>>;
}

impl Alone {
    /// What a run came to.
    #[must_use]
    pub fn new(epoch_size: u64, epochs: u64, committed: u64, seconds: f64) -> Self {
        let (throughput_txn_per_s, share_percent) = (0.0, 0.0);
        Self { epoch_size, epochs, committed, seconds, throughput_txn_per_s, share_percent }
    }

    fn and(mut self, other: &Self) -> Self {
        self.epochs += other.epochs;
        self.committed += other.committed;
        self.seconds += other.seconds;
        self
    }
}

/// Runs a job under clients, and by the engine alone if there is one.
///
/// # Errors
/// Whatever stops the run. What only the consistency check found is in the report.
pub fn run_clients(
    job: &Job,
    place: &Place,
    settings: &Settings,
    clients: &ClientSettings,
    alone: Option<&dyn EngineAlone>,
) -> Result<ClientsReport> {
    let (problems, contention) = (Vec::new(), None);
    let mut bench = Bench { job, settings, clients, alone, problems, contention };
    let (run, engine) = bench.rounds(place)?;
    let mut by_epoch_size = Vec::new();
    for &size in &clients.epoch_sizes {
        if !settings.stop.asked() {
            let measured = place.beside(|place| bench.run(place, Some(size), clients.seconds))?;
            by_epoch_size.push(measured.result(Some(size)));
        }
    }
    Ok(ClientsReport {
        workload: job.name(),
        device: place.spec.to_string(),
        durable: matches!(place.spec, DeviceSpec::File(_) | DeviceSpec::Dax(_)),
        workers: settings.engine.workers,
        parameters: job.parameters().clone(),
        clients: clients.clients,
        in_flight: clients.in_flight,
        batch: clients.batch,
        rate: clients.rate,
        run,
        engine,
        by_epoch_size,
        checked: settings.check,
        problems: bench.problems,
        contention: bench.contention,
        interrupted: settings.stop.asked(),
    })
}

/// How often clients and the engine alone alternate.
const ROUNDS: u32 = 3;
/// Calls before those that count bring memory and caches into the state that they stay in.
const WARM_UP_SECONDS: f64 = 1.0;
/// The warm-up is a turn, too.
const TURNS: u64 = 2;
/// Calls that clients make before the clock starts, as those of the engine alone are made, at most:
/// they take some 100 bytes each.
const PREPARED_CALLS_MAX: u64 = 1 << 22;
/// Room for rows, and calls that are made beforehand, by what the warm-up lets expect: it runs in
/// memory that was never touched before, and makes its calls meanwhile.
const ROOM_FACTOR: f64 = 2.0;

/// What clients work with.
struct Work<'a> {
    database: &'a Database,
    callables: &'a [Callable],
    observer: Option<&'a Mutex<Box<dyn Observer>>>,
}

struct Bench<'a> {
    job: &'a Job,
    settings: &'a Settings,
    clients: &'a ClientSettings,
    alone: Option<&'a dyn EngineAlone>,
    problems: Vec<String>,
    contention: Option<String>,
}

/// What was measured, of one database or of several.
struct Measured {
    seen: Seen,
    seconds: f64,
    epochs: u64,
    deferred: u64,
}

impl Measured {
    fn add(&mut self, other: Self) -> Result<()> {
        self.seconds += other.seconds;
        self.epochs += other.epochs;
        self.deferred += other.deferred;
        self.seen.add(other.seen)
    }

    fn calls_per_epoch(&self) -> f64 {
        let Seen { committed, aborted, failed, .. } = self.seen;
        ratio((committed + aborted + failed) as f64, self.epochs as f64)
    }

    fn result(self, epoch_calls_max: Option<usize>) -> ClientsRun {
        let calls_per_epoch = self.calls_per_epoch();
        let Self { seen, seconds, epochs, deferred } = self;
        let at = |quantile| seen.latency.value_at_quantile(quantile);
        ClientsRun {
            epoch_calls_max,
            seconds,
            throughput_txn_per_s: ratio(seen.committed as f64, seconds),
            client_latency_ns: Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999) },
            committed: seen.committed,
            aborted: seen.aborted,
            failed: seen.failed,
            first_failure: seen.first_failure,
            deferred,
            epochs,
            calls_per_epoch,
        }
    }
}

impl Bench<'_> {
    /// Clients and the engine alone, alternately: a machine is not the same from one moment to the
    /// next.
    fn rounds(&mut self, place: &Place) -> Result<(ClientsRun, Option<Alone>)> {
        let size = self.clients.epoch_calls_max;
        let Some(engine) = self.alone else {
            return Ok((self.run(place, size, self.clients.seconds)?.result(size), None));
        };
        let seconds = self.clients.seconds / f64::from(ROUNDS);
        let mut all = self.run(place, size, seconds)?;
        let mut alone: Option<Alone> = None;
        for round in 1..=ROUNDS {
            if self.settings.stop.asked() {
                break;
            }
            // About as many calls as in one of the rounds, in epochs of that size.
            let epoch_size = (all.calls_per_epoch().round() as u64).max(1);
            let epochs = (all.epochs / u64::from(round)).max(1);
            let one = place.beside(|place| engine.run(place, epoch_size, epochs))?;
            alone = match (alone, one) {
                (Some(alone), Some(one)) => Some(alone.and(&one)),
                (alone, one) => alone.or(one),
            };
            if round < ROUNDS && !self.settings.stop.asked() {
                all.add(place.beside(|place| self.run(place, size, seconds))?)?;
            }
        }
        let run = all.result(size);
        if let Some(alone) = &mut alone {
            alone.throughput_txn_per_s = ratio(alone.committed as f64, alone.seconds);
            alone.share_percent =
                100.0 * ratio(run.throughput_txn_per_s, alone.throughput_txn_per_s);
        }
        Ok((run, alone))
    }

    /// One run on a new database.
    fn run(
        &mut self,
        place: &Place,
        epoch_calls_max: Option<usize>,
        time: f64,
    ) -> Result<Measured> {
        let tables = self.job.client_tables();
        let (database, callables) = self.open(place, epoch_calls_max)?;
        self.load(&database, &callables)?;
        if self.settings.stop.asked() {
            // There is nothing to measure, and perhaps not all that a check would look for.
            database.close()?;
            return Ok(Measured { seen: Seen::new()?, seconds: 0.0, epochs: 0, deferred: 0 });
        }
        let observer = match self.settings.check {
            true => Some(self.job.observer(&LibraryView::new(&tables, &database)?)),
            false => None,
        };
        let observer = observer.map(Mutex::new);
        let work = Work { database: &database, callables: &callables, observer: observer.as_ref() };
        let warm_up = time.min(WARM_UP_SECONDS);
        let (warmed_up, first) = self.all_clients(&work, 0, 0, warm_up)?;
        let expected = first.committed as f64 * time / warmed_up.max(1e-3) * ROOM_FACTOR;
        match library::reserve(&tables, &database, self.job.inserts_of(expected as u64)) {
            // Where there is not enough, the calls will tell.
            Err(BenchError::Library(error)) if error.is_limit() => {}
            result => result?,
        }
        let before = database.stats();
        let prepared = (expected as u64).min(PREPARED_CALLS_MAX);
        let (seconds, seen) = self.all_clients(&work, 1, prepared, time)?;
        let after = database.stats();
        let rows = self.clients.contended_rows;
        self.contention = (rows > 0).then(|| database.contention(rows).to_string());
        if let Some(observer) = observer {
            let observer = observer.into_inner().unwrap_or_else(|poison| poison.into_inner());
            self.problems.extend(observer.check(&LibraryView::new(&tables, &database)?));
        }
        database.close()?;
        Ok(Measured {
            seen,
            seconds,
            epochs: after.epochs - before.epochs,
            deferred: after.deferred - before.deferred,
        })
    }

    fn open(
        &self,
        place: &Place,
        epoch_calls_max: Option<usize>,
    ) -> Result<(Database, Vec<Callable>)> {
        open(self.job, place, self.settings, |options| {
            let tuning = Tuning { serial_calls_max: SERIAL_CALLS_MAX, ..Tuning::default() };
            let epoch_calls_max = epoch_calls_max.unwrap_or(tuning.epoch_calls_max);
            let options = options.tuning(Tuning { epoch_calls_max, ..tuning });
            match self.clients.contended_rows {
                0 => options,
                _ => options.contention_epochs(CONTENTION_EPOCHS),
            }
        })
    }

    /// Loads the data as every run does, through the front door.
    fn load(&self, database: &Database, callables: &[Callable]) -> Result<()> {
        let passes = self.job.loading_passes();
        let per_epoch = self.job.parameters().loads_per_epoch;
        let bar = self.settings.progress.bar("loading", self.job.loading_epochs(), "epochs");
        for _ in 0..passes {
            let mut calls = (0..).map_while(|i| self.job.load_call(i)).peekable();
            while calls.peek().is_some() {
                let mut tickets = Vec::new();
                for (procedure, args) in calls.by_ref().take(per_epoch as usize) {
                    tickets.push((callables[usize::from(procedure)].submit)(database, &args)?);
                }
                tickets.into_iter().try_for_each(|ticket| ticket.wait().map(drop))?;
                bar.step("");
                if self.settings.stop.asked() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Lets all clients work, each with a stream of its own for each turn, of which some calls are
    /// made beforehand: how long they took, and what they saw.
    fn all_clients(
        &self,
        work: &Work<'_>,
        turn: u64,
        prepared: u64,
        seconds: f64,
    ) -> Result<(f64, Seen)> {
        let ClientSettings { clients, in_flight, batch, rate, .. } = *self.clients;
        let (begin, is_over) = (Barrier::new(clients + 1), AtomicBool::new(false));
        let interval = rate.map(|rate| Duration::from_secs_f64(clients as f64 / rate));
        thread::scope(|scope| {
            let threads: Vec<_> = (0..clients)
                .map(|number| {
                    let mut client = Client {
                        job: self.job,
                        database: work.database,
                        callables: work.callables,
                        observer: work.observer,
                        number: OneOf { index: number as u64, count: clients as u64 },
                        stream: OneOf {
                            index: turn * clients as u64 + number as u64,
                            count: TURNS * clients as u64,
                        },
                        // The first ones have the rest.
                        depth: in_flight / clients + usize::from(number < in_flight % clients),
                        batch,
                        interval,
                        is_over: &is_over,
                        prepared: Prepared::default(),
                    };
                    let begin = &begin;
                    let builder =
                        thread::Builder::new().name("client".into()).stack_size(256 << 10);
                    let client = move || {
                        client.prepare(prepared / clients as u64);
                        begin.wait();
                        client.run()
                    };
                    builder.spawn_scoped(scope, client).map_err(|error| {
                        BenchError::Usage(format!("client {number} of {clients}: {error}"))
                    })
                })
                .collect::<Result<_>>()?;
            begin.wait();
            let started = Instant::now();
            self.wait(started, Duration::from_secs_f64(seconds), work.database);
            is_over.store(true, Ordering::Relaxed);
            let mut all = Seen::new()?;
            for thread in threads {
                all.add(thread.join().expect("clients do not panic")?)?;
            }
            let ended = all.ended.unwrap_or(started);
            Ok((ended.saturating_duration_since(started).as_secs_f64(), all))
        })
    }

    /// Waits for the end, and shows how it goes.
    fn wait(&self, started: Instant, time: Duration, database: &Database) {
        let tenths = |time: Duration| time.as_millis() as u64 / 100;
        let bar = self.settings.progress.bar("running", tenths(time), "tenths of a second");
        let first = database.stats().committed;
        while started.elapsed() < time && !self.settings.stop.asked() {
            let left = time.saturating_sub(started.elapsed());
            thread::sleep(left.min(Duration::from_millis(100)));
            let committed = database.stats().committed - first;
            let rate = ratio(committed as f64 / 1e3, started.elapsed().as_secs_f64());
            bar.set(tenths(started.elapsed()), format!("{rate:.0} k txn/s"));
        }
    }
}
