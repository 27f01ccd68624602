//! The sequencer: one thread that forms epochs, runs them, and hands out the answers.
//!
//! It alone reads the clock for transactions, and makes their seeds; both are logged. An epoch
//! begins as soon as the engine is free and anything waits. While it runs, the next one fills, so
//! epochs grow with the load by themselves. If much less waits than the last epoch held, callers
//! are probably just about to submit again, and the sequencer waits a little for them, never longer
//! than an eighth of the last epoch.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::{Answer, Calls, EpochInfo, EpochOutcome};

use crate::driver::Driver;
use crate::queue::{Batch, Queue, Work};
use crate::stats::Recorder;
use crate::ticket::{Group, Place};
use crate::{Error, Result};

/// So many calls are refused one by one before the rest of their epoch is refused.
const REFUSED_MAX: usize = 32;

/// What the sequencer shares with the database's handles.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) recorder: Mutex<Recorder>,
}

impl Shared {
    pub(crate) fn record(&self, note: impl FnOnce(&mut Recorder)) {
        note(&mut self.recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Whose answer a call is that runs again; nobody's, if it was submitted before a recovery.
type Owner = Option<(Arc<Group>, u32)>;

/// The state of the thread.
pub(crate) struct Sequencer {
    shared: Arc<Shared>,
    driver: Box<dyn Driver>,
    /// Owners of the calls that come first in the next epoch.
    carried: VecDeque<Owner>,
    /// The group of the epoch that runs.
    running: Option<Arc<Group>>,
    clock: Clock,
    wait_max: Duration,
    /// Calls of the last epoch and how long it took.
    last: (usize, Duration),
}

/// Whose calls an epoch runs.
#[derive(Clone)]
struct Part {
    group: Arc<Group>,
    /// Index of the first call in the group.
    first: u32,
    /// Whether these are all calls of the group.
    is_all: bool,
    /// When the first call came.
    opened: Option<Instant>,
}

/// Time and seeds of epochs.
struct Clock {
    last_ns: u64,
    seed: u64,
}

/// A number that differs from run to run.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(SystemTime::now())
}

impl Clock {
    fn next(&mut self) -> EpochInfo {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_ns = self.last_ns.max(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        // Weyl sequence and mixer of splitmix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut seed = self.seed;
        seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        EpochInfo { timestamp_ns: self.last_ns, seed: seed ^ (seed >> 31) }
    }
}

impl Sequencer {
    pub(crate) fn new(shared: Arc<Shared>, driver: Box<dyn Driver>, wait_max: Duration) -> Self {
        let status = driver.status();
        shared.record(|recorder| recorder.place(status));
        Self {
            carried: (0..status.carried).map(|_| None).collect(),
            shared,
            driver,
            running: None,
            clock: Clock { last_ns: 0, seed: random() },
            wait_max,
            last: (0, Duration::ZERO),
        }
    }

    /// Runs until the database is closed or something fails; then closes the engine.
    pub(crate) fn run(mut self) -> Result<()> {
        let result = catch_unwind(AssertUnwindSafe(|| self.work()))
            .unwrap_or_else(|panic| Err(Error::stopped(panic_text(panic.as_ref()))));
        if let Err(error) = result {
            self.give_up(&error);
            return Err(error);
        }
        // Requests that came while the last one was being done.
        self.shared.queue.fail(&Error::closed());
        Ok(self.driver.close()?)
    }

    fn work(&mut self) -> Result<()> {
        loop {
            let (calls, time) = self.last;
            let most = (time / 8).min(self.wait_max);
            match self.shared.queue.take(!self.carried.is_empty(), calls / 2, most) {
                Work::Epoch(batch) => self.run_batch(batch)?,
                Work::Carried => {
                    let nobody =
                        Part { group: Arc::default(), first: 0, is_all: true, opened: None };
                    // They had space once; that they have none now is nobody's to repair.
                    self.run_part(&Calls::new(), &nobody)?
                        .map_err(|error| Error::stopped(error.to_string()))?;
                }
                Work::Requests(requests) => {
                    requests.into_iter().for_each(|request| request(Ok(self.driver.as_mut())));
                }
                Work::Close => return Ok(()),
            }
        }
    }

    fn run_batch(&mut self, batch: Batch) -> Result<()> {
        let started = Instant::now();
        self.running = Some(Arc::clone(&batch.group));
        let Batch { calls, group, opened } = batch;
        let all = Part { group, first: 0, is_all: true, opened: Some(opened) };
        if let Err(refusal) = self.run_part(&calls, &all)? {
            self.run_in_pieces(&calls, &Part { is_all: false, ..all }, refusal)?;
        }
        self.running = None;
        self.last = (calls.len(), started.elapsed());
        self.shared.queue.recycle(calls);
        Ok(())
    }

    /// Runs an epoch. The inner result is an error if there is no space for it; then nothing
    /// happened.
    fn run_part(&mut self, calls: &Calls, part: &Part) -> Result<Result<()>> {
        match self.driver.run_epoch(calls, self.clock.next()) {
            Ok(outcome) => {
                self.deliver(outcome, part);
                Ok(Ok(()))
            }
            Err(error) if error.is_limit() => Ok(Err(error.into())),
            Err(error) => Err(Error::stopped(error.to_string())),
        }
    }

    /// Runs calls that have no space in one epoch in smaller ones, so that only those are refused
    /// that have no space by themselves. Gives up when that is true of many, one after the other:
    /// the rest costs an attempt for each call, while everybody waits.
    fn run_in_pieces(&mut self, calls: &Calls, all: &Part, mut refusal: Error) -> Result<()> {
        let (mut at, mut size, mut refused) = (0, calls.len() / 2, 0);
        while at < calls.len() && size > 0 && refused < REFUSED_MAX {
            let piece = at..calls.len().min(at + size);
            let part = Part { first: all.first + at as u32, ..all.clone() };
            match self.run_part(&some(calls, piece.clone())?, &part)? {
                Ok(()) => (at, size, refused) = (piece.end, size * 2, 0),
                Err(_) if piece.len() > 1 => size = piece.len() / 2,
                Err(error) => {
                    self.refuse(all, piece.clone(), &error);
                    (at, size, refused, refusal) = (piece.end, 1, refused + 1, error);
                }
            }
        }
        self.refuse(all, at..calls.len(), &refusal);
        Ok(())
    }

    fn refuse(&mut self, part: &Part, calls: Range<usize>, error: &Error) {
        self.shared.record(|recorder| recorder.refused(calls.len()));
        for index in calls {
            part.group.answer_one(part.first + index as u32, Err(error.clone()));
        }
    }

    /// Hands out the answers of an epoch: of calls that were carried in, then of its own.
    fn deliver(&mut self, outcome: EpochOutcome, part: &Part) {
        let outcome = Arc::new(outcome);
        let carried_in = outcome.carried_in;
        let place = |position| Place { outcome: Arc::clone(&outcome), position };
        let is_again = |position| outcome.answer(position) == Answer::Resubmitted;
        let index = |position| part.first + (position - carried_in) as u32;
        // Counted before anybody can ask.
        let status = self.driver.status();
        let latency = part.opened.map(|opened| opened.elapsed());
        self.shared.record(|recorder| recorder.epoch(outcome.stats.clone(), status, latency));

        assert_eq!(carried_in, self.carried.len(), "the engine carries over what we think it does");
        for (position, owner) in std::mem::take(&mut self.carried).into_iter().enumerate() {
            match owner {
                owner if is_again(position) => self.carried.push_back(owner),
                Some((group, index)) => group.answer_one(index, Ok(place(position))),
                None => {}
            }
        }
        let own = carried_in..outcome.len();
        if outcome.stats.work.resubmitted > 0 {
            for position in own.clone().filter(|&position| is_again(position)) {
                self.carried.push_back(Some((Arc::clone(&part.group), index(position))));
            }
        }
        if part.is_all {
            return part.group.answer_all(place(carried_in));
        }
        for position in own.filter(|&position| !is_again(position)) {
            part.group.answer_one(index(position), Ok(place(position)));
        }
    }

    /// Ends everything that waits.
    fn give_up(&mut self, error: &Error) {
        self.shared.queue.fail(error);
        self.running.take().into_iter().for_each(|group| group.end(error));
        self.carried.drain(..).flatten().for_each(|(group, _)| group.end(error));
    }
}

/// Some of the calls.
fn some(calls: &Calls, positions: Range<usize>) -> Result<Calls> {
    let mut some = Calls::new();
    for position in positions {
        let (procedure, arguments) = calls.get(position);
        some.push(procedure, arguments)?;
    }
    Ok(some)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}
