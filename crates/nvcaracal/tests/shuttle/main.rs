//! Queue, tickets, event count, snapshots and the sequencer's seat under schedules that `shuttle`
//! chooses by a seed:
//!
//!     cargo test -p nvcaracal --features shuttle --test shuttle
//!
//! Each schedule opens a database in memory, lets callers of all kinds at it, and closes it, at the
//! end or in between. Every answer comes to its caller, a call that was accepted has one, a
//! snapshot has what was answered before, and no thread and no task waits for ever, which the
//! explorer finds as a deadlock.

mod callers;
mod tasks;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nvcaracal::{
    Database, DeviceSpec, Error, HashTable, Options, Procedure, Snapshot, Stop, Table, Transaction,
    Tuning, WriteSet, plain,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Mutex;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};
use sim::history::{Random, effort};

/// Steps of one schedule; the longest here take less than a tenth of it.
const STEPS_MAX: usize = 1_000_000;
/// Schedules of each kind for a seed.
const SCHEDULES: usize = 10;

const ROWS: HashTable<u64, u64> = Table::hash("rows");

plain! {
    /// Adds one to a row; answers with the number of the call and its serial id.
    struct Count { call: u64, row: u64 }
    /// What a call came to.
    struct Counted { call: u64, serial: u64 }
}

impl Procedure for Count {
    const NAME: &'static str = "count";
    type Output = Counted;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(ROWS, self.row);
    }

    fn run(&self, tx: &mut Transaction) -> Result<Counted, Stop> {
        let count = tx.get(ROWS, self.row)?.unwrap_or(0);
        tx.insert(ROWS, self.row, &(count + 1))?;
        Ok(Counted { call: self.call, serial: tx.serial_id() })
    }
}

/// What the callers of a schedule share.
struct World {
    db: Database,
    /// Serial ids of the answers.
    serials: Mutex<BTreeSet<u64>>,
}

impl World {
    /// An answer to a call.
    fn answered(&self, call: u64, counted: Counted) {
        assert_eq!(counted.call, call, "the answer of another call");
        let is_new = self.serials.lock().unwrap().insert(counted.serial);
        assert!(is_new, "serial id {:x} is of two calls", counted.serial);
    }
}

impl World {
    /// How many calls were answered so far.
    fn answers(&self) -> u64 {
        self.serials.lock().unwrap().len() as u64
    }

    /// A snapshot that was asked for when so many calls were answered has all of them; or the
    /// database was closed before.
    fn has_all(&self, made: Result<Snapshot, Error>, answered: u64) {
        let sum = made.and_then(|snapshot| {
            let mut rows = (0..callers::ROWS).map(|row| snapshot.get(ROWS, row));
            rows.try_fold(0, |sum, row| Ok(sum + row?.unwrap_or(0)))
        });
        match sum {
            Ok(sum) => assert!(sum >= answered, "{answered} calls were answered, it has {sum}"),
            Err(error) => assert!(error.is_stopped(), "{error}"),
        }
    }
}

fn options(random: &mut Random, is_crowd: bool) -> Options {
    let queue_calls_max = random.pick(&[1, 1, 2, 3, 8]);
    let tuning = Tuning {
        segment_bytes: 4096,
        log_segment_bytes: 4096,
        serial_calls_max: 64,
        queue_calls_max: if is_crowd { 1 } else { queue_calls_max },
        epoch_calls_max: random.pick(&[1, 2, 8]),
        epoch_wait_max: random.pick(&[Duration::ZERO, Duration::from_secs(1)]),
        ..Tuning::default()
    };
    Database::options()
        .table(ROWS)
        .procedure::<Count>()
        .tuning(tuning)
        .data_bytes_max(1 << 20)
        .log_bytes_max(1 << 20)
        .workers(1)
        .wall_clock(|| 1)
}

/// One schedule of a case.
fn run(seed: u64) {
    let random = &mut Random::new(seed);
    // Many threads wait for room when the database is closed.
    let is_crowd = seed.is_multiple_of(4);
    let db = options(random, is_crowd).open_device(DeviceSpec::Dram).unwrap();
    let world = Arc::new(World { db, serials: Mutex::default() });
    let closes_early = is_crowd || random.percent(50);
    let mut threads = Vec::new();
    let tasks = if is_crowd { 0 } else { random.pick(&[0, 30, 60]) };
    let callers = if is_crowd { 7 } else { 2 + random.below(4) };
    for number in 0..callers {
        let is_task = random.percent(tasks);
        let (world, seed) = (Arc::clone(&world), random.word());
        threads.push(thread::spawn(move || match is_task {
            true => tasks::run(&world, number, &mut Random::new(seed)),
            false => callers::run(&world, number, &mut Random::new(seed)),
        }));
    }
    if closes_early {
        world.db.clone().close().unwrap();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    if !closes_early {
        let snapshot = world.db.snapshot().unwrap();
        world.has_all(Ok(snapshot), world.answers());
    }
    world.db.clone().close().unwrap();
    let stats = world.db.stats();
    let left = (stats.queued_calls, stats.queued_bytes, stats.blocked_submitters);
    assert_eq!(left, (0, 0, 0), "calls, bytes, and callers that wait");
}

/// Runs a case under random schedules, and as many with few changes of priority.
fn explore(seed: u64) {
    let random = RandomScheduler::new_from_seed(seed, SCHEDULES);
    one_kind(seed, random);
    one_kind(seed, PctScheduler::new_from_seed(seed, 2 + (seed % 3) as usize, SCHEDULES));
}

fn one_kind(seed: u64, scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(move || run(seed));
}

#[test]
fn answers_come_to_their_callers_and_nothing_waits_for_ever() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_EXPLORED", 20) {
        println!("seed {seed}, again: NVCARACAL_EXPLORED=1 NVCARACAL_FIRST_SEED={seed}");
        explore(seed);
    }
}
