//! The sequencer forms epochs, runs them, and hands out the answers. It belongs to one thread; but
//! where no other thread has anything to do, the thread that submits a call and waits for it runs
//! the epoch itself, which saves waking two threads.
//!
//! It alone reads the clock for transactions, and makes their seeds; both are logged. An epoch
//! begins as soon as the engine is free and anything waits. While it runs, the next one fills, so
//! epochs grow with the load by themselves. If much less waits than the last epoch held, callers
//! are probably just about to submit again, and the sequencer waits a little for them, never longer
//! than an eighth of the last epoch.

use std::collections::VecDeque;
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use engine::{Answer, Calls, EngineError, EpochInfo, EpochOutcome, WorkerChoice, caught};
use pmem::Stack;
use storage::{ChangeLog, StorageError};

use crate::body;
use crate::call::group::{Group, OutcomePlace, Told};
use crate::call::share::{HeldShares, Share};
use crate::error::{Error, Result};
use crate::feed::kept::Feeds;
use crate::host::driver::Driver;
use crate::host::repeat::{Copies, Repeated};
use crate::observe::events;
use crate::observe::procedures::EpochCounts;
use crate::observe::stats::Recorder;
use crate::sequencer::clock::{Clock, random};
use crate::sequencer::queue::{Batch, Queue, Work};
use crate::sequencer::routing::Routing;
use crate::sequencer::standing::Standing;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// So many calls are refused one by one before the rest of their epoch is refused.
const REFUSED_MAX: usize = 32;

/// What the sequencer shares with the database's handles.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) recorder: Mutex<Recorder>,
    pub(crate) routing: Routing,
    pub(crate) feeds: Feeds,
    pub(crate) pace: Pace,
    pub(crate) standing: Standing,
    /// Changes for consumers, beside the files of the database.
    pub(crate) change_log: Option<Arc<ChangeLog>>,
}

/// How the sequencer gets on.
#[derive(Default)]
pub(crate) struct Pace {
    /// Calls of the last epoch, and how long it took.
    calls: AtomicUsize,
    ns: AtomicU64,
    /// Whether calls are deferred.
    has_deferred_calls: AtomicBool,
}

/// The sequencer, until the database is closed or something has failed.
pub(crate) type Seat = Mutex<Option<Sequencer>>;

/// Callers run epochs themselves if the last one had at most so many calls.
const CALLS_OF_FEW: usize = 2;

impl Shared {
    /// Takes the sequencer, if it has nothing to do.
    pub(crate) fn take_idle<'s>(
        &self,
        seat: &'s Seat,
    ) -> Option<MutexGuard<'s, Option<Sequencer>>> {
        let sequencer = seat.try_lock().ok()?;
        (sequencer.is_some() && self.queue.is_idle()).then_some(sequencer)
    }

    /// Runs a call in an epoch of its own on this thread, if there is no other call to share one
    /// with: where its answer is.
    pub(crate) fn run_at_once(
        &self,
        seat: &Seat,
        procedure: u16,
        arguments: &[u8],
    ) -> Option<Arc<Share>> {
        if self.pace.calls.load(Ordering::Relaxed) > CALLS_OF_FEW {
            return None;
        }
        let mut seat = self.take_idle(seat)?;
        let sequencer = seat.as_mut().filter(|sequencer| sequencer.serial_calls_max > 0)?;
        let mut calls = Calls::new();
        calls.push_serial(procedure, arguments).ok()?;
        let group = Arc::<Group>::default();
        let share = Share::of(Arc::clone(&group));
        let (shares, opened) = (Vec::new(), Instant::now());
        let batch = Batch { calls, group, shares, opened };
        if let Err(error) = sequencer.attend(Work::Epoch(batch)) {
            // Threads that wait get this, and the thread finds the seat empty.
            seat.take().expect("it was there").give_up(&error);
        }
        Some(share)
    }

    pub(crate) fn record(&self, note: impl FnOnce(&mut Recorder)) {
        note(&mut self.recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Whose answer a call is that runs again, and its procedure; none's, if it was submitted before
/// a recovery.
type Owner = Option<(Arc<Group>, u32, u16)>;

/// How epochs are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epochs {
    /// Longest time that one waits for more calls.
    pub(crate) wait_max: Duration,
    /// Those of at most so many calls run in the serial part.
    pub(crate) serial_calls_max: usize,
    /// Nanoseconds since 1970.
    pub(crate) now_ns: fn() -> u64,
    /// Whether what is learned of procedures sends their calls to the serial part.
    pub(crate) learns: bool,
}

/// What the sequencer works with.
pub(crate) struct Tools {
    pub(crate) driver: Driver,
    /// Where each epoch runs twice before it runs, if that is an option.
    pub(crate) copies: Option<Copies>,
    /// Where procedures run.
    pub(crate) stack: Stack,
}

/// The state of the thread.
pub(crate) struct Sequencer {
    shared: Arc<Shared>,
    driver: Driver,
    copies: Option<Copies>,
    /// Where procedures run, on whichever thread has the seat; absent while it is in use.
    stack: Option<Stack>,
    /// Owners of the calls that come first in the next epoch.
    deferred: VecDeque<Owner>,
    /// The group of the epoch that runs.
    running: Option<Arc<Group>>,
    /// What tickets hold of the last epochs.
    held: HeldShares,
    clock: Clock,
    /// Epochs of at most so many calls run in the serial part.
    serial_calls_max: usize,
    workers: WorkerChoice,
    /// What the calls of the epoch that ran came to.
    counts: EpochCounts,
}

/// Whose calls an epoch runs.
#[derive(Clone)]
struct GroupPart {
    group: Arc<Group>,
    /// Index of the first call in the group.
    first: u32,
    /// Whether these are all calls of the group.
    is_all: bool,
    /// When the first call came.
    opened: Option<Instant>,
}

/// What stops the sequencer.
fn stopping(error: impl Display) -> Error {
    Error::stopped(error.to_string())
}

/// The sequencer's thread: works until the database is closed or something fails, and then closes
/// the engine.
pub(crate) fn run(shared: &Shared, seat: &Seat, wait_max: Duration) -> Result<()> {
    let pace = &shared.pace;
    loop {
        let calls = pace.calls.load(Ordering::Relaxed);
        let most = (Duration::from_nanos(pace.ns.load(Ordering::Relaxed)) / 8).min(wait_max);
        let has_deferred_calls = || pace.has_deferred_calls.load(Ordering::Relaxed);
        shared.queue.wait(has_deferred_calls(), calls / 2, most);
        let mut seat = seat.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sequencer) = seat.as_mut() else {
            // A caller's epoch has ended it, and the queue with it.
            return Err(shared.queue.why_ended());
        };
        // What was deferred a caller's epoch may have run.
        let Some(work) = shared.queue.take(has_deferred_calls()) else { continue };
        match sequencer.attend(work) {
            Ok(true) => {}
            Ok(false) => {
                let sequencer = seat.take().expect("just used");
                drop(seat);
                assert!(sequencer.deferred.is_empty(), "deferred calls are left");
                assert!(sequencer.running.is_none(), "an epoch has no end");
                // Requests that came while the last one was being done.
                shared.queue.fail(&Error::closed());
                shared.feeds.end(&Error::closed());
                shared.standing.end(&Error::closed());
                sequencer.driver.close()?;
                events::closed();
                return Ok(());
            }
            Err(error) => {
                seat.take().expect("just used").give_up(&error);
                return Err(error);
            }
        }
    }
}

impl Sequencer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        tools: Tools,
        deferred: usize,
        epochs: Epochs,
        last_timestamp_ns: u64,
    ) -> Self {
        let Tools { driver, copies, stack } = tools;
        let status = driver.status();
        assert!(deferred == 0 || deferred == status.deferred, "other calls are deferred");
        assert!(status.checkpoint_epoch <= status.epoch, "the checkpoint is of a later epoch");
        let mut counts = None;
        shared.record(|recorder| {
            recorder.place(status);
            counts = Some(recorder.counts());
        });
        shared.pace.has_deferred_calls.store(deferred > 0, Ordering::Relaxed);
        Self {
            deferred: (0..deferred).map(|_| None).collect(),
            shared,
            counts: counts.expect("just made"),
            workers: WorkerChoice::new(driver.workers()),
            driver,
            copies,
            stack: Some(stack),
            running: None,
            held: HeldShares::default(),
            clock: Clock { now_ns: epochs.now_ns, last_ns: last_timestamp_ns, seed: random() },
            serial_calls_max: epochs.serial_calls_max,
        }
    }

    /// Does what is to be done; whether there may be more.
    fn attend(&mut self, work: Work) -> Result<bool> {
        let attend = |sequencer: &mut Self| match work {
            Work::Epoch(batch) => sequencer.run_batch(batch).map(|()| true),
            Work::Deferred => sequencer.run_deferred().map(|()| true),
            Work::Requests(requests) => {
                let driver = &mut sequencer.driver;
                requests.into_iter().for_each(|request| request(Ok(driver)));
                Ok(true)
            }
            Work::Close => Ok(false),
        };
        let result = caught(|| self.on_stack(attend))
            .unwrap_or_else(|panic| Err(Error::stopped(panicked(&panic))));
        self.shared.pace.has_deferred_calls.store(!self.deferred.is_empty(), Ordering::Relaxed);
        result
    }

    /// Does something that may run procedures or callbacks, on the stack that is made for it.
    fn on_stack<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R {
        let mut stack = self.stack.take().expect("the thread in the seat does one thing at a time");
        let result = catch_unwind(AssertUnwindSafe(|| stack.run(|| body::working(|| what(self)))));
        self.stack = Some(stack);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Does something between two epochs.
    pub(crate) fn with_driver<R>(&mut self, what: impl FnOnce(&mut Driver) -> R) -> R {
        self.on_stack(|sequencer| what(&mut sequencer.driver))
    }

    /// Runs an epoch of deferred calls only. That there is no space even to log them is no caller's
    /// to repair.
    fn run_deferred(&mut self) -> Result<()> {
        let no_caller = GroupPart { group: Arc::default(), first: 0, is_all: true, opened: None };
        let info = self.clock.next();
        self.repeat(Repeated::Deferred, info)?.map_err(stopping)?;
        let outcome = self.run_with_room(0, |driver| driver.run_deferred(info));
        let outcome = outcome.map_err(stopping)?;
        self.deliver(outcome, &Calls::new(), &no_caller);
        Ok(())
    }

    /// Runs an epoch on copies, if that is an option. The inner result is an error if there is no
    /// space for it.
    fn repeat(&mut self, epoch: Repeated<'_>, info: EpochInfo) -> Result<Result<()>> {
        let Some(copies) = &mut self.copies else { return Ok(Ok(())) };
        match copies.run(&mut self.driver, epoch, info) {
            Err(error) if !error.is_limit() => Err(error),
            result => Ok(result),
        }
    }

    /// Runs an epoch; where there is no room for it and a checkpoint makes some, once more after
    /// one.
    fn run_with_room(
        &mut self,
        calls: usize,
        run: impl Fn(&mut Driver) -> engine::Result<EpochOutcome>,
    ) -> engine::Result<EpochOutcome> {
        let _span = events::epoch_span(calls);
        let result = run(&mut self.driver);
        let full = match &result {
            Err(EngineError::Storage(full)) if full.is_limit() => full,
            _ => return result,
        };
        match full {
            StorageError::Log(_) => events::full("the log"),
            _ if self.driver.waits_for_checkpoint() => events::full("the space for rows"),
            _ => return result,
        }
        self.driver.checkpoint()?;
        run(&mut self.driver)
    }

    fn run_batch(&mut self, batch: Batch) -> Result<()> {
        let started = Instant::now();
        assert!(self.running.is_none(), "two epochs at a time");
        self.running = Some(Arc::clone(&batch.group));
        let Batch { mut calls, group, shares, opened } = batch;
        assert!(!calls.is_empty(), "an epoch without calls");
        if calls.len() <= self.serial_calls_max {
            // Few calls are done sooner than workers are woken.
            calls = calls.first_serial(calls.len());
        }
        calls = calls.in_order_of_submitters();
        let all = GroupPart { group, first: 0, is_all: true, opened: Some(opened) };
        let mut result = self.run_part(&calls, &all)?;
        while result.is_err() && !self.deferred.is_empty() {
            // Deferred calls go first, and each epoch of them brings some to their end (O-75).
            self.run_deferred()?;
            result = self.run_part(&calls, &all)?;
        }
        if let Err(refusal) = result {
            self.run_in_pieces(&calls, &GroupPart { is_all: false, ..all }, refusal)?;
        }
        self.running = None;
        self.held.answered(shares);
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.shared.pace.calls.store(calls.len(), Ordering::Relaxed);
        self.shared.pace.ns.store(ns, Ordering::Relaxed);
        self.shared.queue.recycle(calls);
        Ok(())
    }

    /// Runs an epoch. The inner result is an error if there is no space for it; then nothing
    /// happened.
    fn run_part(&mut self, calls: &Calls, part: &GroupPart) -> Result<Result<()>> {
        let info = self.clock.next();
        if let Err(refusal) = self.repeat(Repeated::Calls(calls), info)? {
            return Ok(Err(refusal));
        }
        match self.run_timed(calls, info) {
            Ok(outcome) => {
                self.deliver(outcome, calls, part);
                Ok(Ok(()))
            }
            Err(error) if error.is_limit() => Ok(Err(error.into())),
            Err(error) => Err(stopping(error)),
        }
    }

    /// Runs an epoch on as many workers as seem best, and notes how long it took.
    fn run_timed(&mut self, calls: &Calls, info: EpochInfo) -> engine::Result<EpochOutcome> {
        let is_choice = !calls.are_few();
        if is_choice {
            let workers = self.workers.next_number();
            assert!(workers <= self.driver.workers(), "{workers} workers were chosen");
            self.driver.limit_workers(workers);
        }
        let started = Instant::now();
        let result = self.run_with_room(calls.len(), |driver| driver.run_epoch(calls, info));
        if is_choice && result.is_ok() {
            self.workers.ran(calls.len(), started.elapsed());
        }
        result
    }

    /// Runs calls that have no space in one epoch in smaller ones, so that only those are refused
    /// that have no space by themselves. Gives up when that is true of many, one after the other:
    /// the rest costs an attempt for each call, while all callers wait.
    fn run_in_pieces(&mut self, calls: &Calls, all: &GroupPart, mut refusal: Error) -> Result<()> {
        // One call that was not in the serial part yet is tried there.
        let least = usize::from(!calls.are_few());
        let half = (calls.len() / 2).max(least);
        let (mut at, mut size, mut refused) = (0, half, 0);
        // Of more calls together than this some had no space.
        let mut size_max = half;
        while at < calls.len() && size > 0 && refused < REFUSED_MAX {
            let piece = at..calls.len().min(at + size);
            assert!(!piece.is_empty(), "an epoch of no call, which would go on for ever");
            let part = GroupPart { first: all.first + at as u32, ..all.clone() };
            let mut some = calls.cut(piece.clone());
            assert_eq!(some.len(), piece.len(), "a cut has other calls");
            if some.len() <= self.serial_calls_max.max(1) {
                // There it is known what they need: deletes always find space.
                some = some.first_serial(some.len());
            }
            match self.run_part(&some, &part)? {
                Ok(()) => (at, size, refused) = (piece.end, size_max.min(size * 2), 0),
                Err(_) if piece.len() > 1 => {
                    size = piece.len() / 2;
                    size_max = size;
                }
                Err(error) => {
                    self.refuse(all, piece.clone(), &error);
                    (at, size, refused, refusal) = (piece.end, 1, refused + 1, error);
                    // It had none by itself, which says nothing of the others.
                    size_max = half;
                }
            }
        }
        self.refuse(all, at..calls.len(), &refusal);
        Ok(())
    }

    fn refuse(&mut self, part: &GroupPart, calls: Range<usize>, error: &Error) {
        self.shared.record(|recorder| recorder.refused(calls.len()));
        for index in calls {
            let told = Told { output: Err(error.clone()), was_deferred: false };
            part.group.answer_one(part.first + index as u32, told);
        }
    }

    /// Hands out the answers of an epoch: of calls that were deferred to it, then of its own.
    fn deliver(&mut self, mut outcome: EpochOutcome, calls: &Calls, part: &GroupPart) {
        let contention = std::mem::take(&mut outcome.contention);
        let changes = std::mem::take(&mut outcome.changes);
        let epoch = outcome.epoch;
        events::contention(epoch, &contention);
        let outcome = Arc::new(outcome);
        let deferred_in = outcome.deferred_in;
        // Every call of the epoch has an answer or is deferred, and no other one.
        assert!(deferred_in <= self.deferred.len(), "more calls ran than were deferred");
        assert_eq!(outcome.len(), deferred_in + calls.len(), "calls and outcomes");
        let index = |position| part.first + (position - deferred_in) as u32;
        // Counted before anybody can ask.
        let status = self.driver.status();
        assert_eq!(status.epoch, epoch, "the outcome is of another epoch");
        let latency = part.opened.map(|opened| opened.elapsed());
        self.count(&outcome, calls);
        self.counts.tell();
        events::epoch(&outcome, status.rows, latency, || self.shared.queue.waiting().calls);
        let (counts, stats) = (&mut self.counts, outcome.stats.clone());
        let archive_error = self.driver.archive_error();
        let (told, mut has_changed) = (archive_error.clone(), false);
        self.shared.record(|recorder| {
            recorder.epoch(stats, counts, status, latency);
            has_changed = recorder.archive(archive_error);
            recorder.contention.add(epoch, contention);
        });
        if has_changed {
            events::archive(epoch, told.as_deref());
        }

        // Before a call is answered: its caller may look for what it has changed. The feeds first:
        // a reader of the snapshot may ask for the changes behind it.
        self.shared.feeds.add(epoch, changes);
        self.shared.standing.renew(&self.shared, &mut self.driver);
        // No call is deferred twice.
        for (position, owner) in self.deferred.drain(..deferred_in).enumerate() {
            if let Some((group, index, _)) = owner {
                group.answer_one(index, Told::copy_of(outcome.answer(position), true));
            }
        }
        let deferred = outcome.deferred.iter().map(|&position| {
            let position = position as usize;
            assert!(position >= deferred_in, "call {position} was deferred twice");
            (index(position), calls.get(position - deferred_in).0)
        });
        self.deferred.extend(
            deferred.map(|(index, procedure)| Some((Arc::clone(&part.group), index, procedure))),
        );
        assert_eq!(self.deferred.len(), status.deferred, "deferred calls and their owners");
        self.shared.routing.learn(calls, &outcome);
        if part.is_all {
            return part.group.answer_all(OutcomePlace { outcome, position: deferred_in });
        }
        for position in deferred_in..outcome.len() {
            let answer = outcome.answer(position);
            if answer != Answer::Deferred {
                part.group.answer_one(index(position), Told::copy_of(answer, false));
            }
        }
    }

    /// Counts answers by procedure.
    fn count(&mut self, outcome: &EpochOutcome, calls: &Calls) {
        let deferred_in = outcome.deferred_in;
        for (position, owner) in self.deferred.iter().take(deferred_in).enumerate() {
            if let Some((.., procedure)) = owner {
                self.counts.count(*procedure, outcome.answer(position));
            }
        }
        for index in 0..calls.len() {
            self.counts.commit(calls.get(index).0);
        }
        for (number, answer) in outcome.uncommitted().filter(|&(number, _)| number >= deferred_in) {
            self.counts.did_not_commit(calls.get(number - deferred_in).0, answer);
        }
    }

    /// Ends everything that waits.
    fn give_up(&mut self, error: &Error) {
        events::stopped(error);
        self.shared.queue.fail(error);
        self.shared.feeds.end(error);
        self.shared.standing.end(error);
        self.running.take().into_iter().for_each(|group| group.end(error));
        self.deferred.drain(..).flatten().for_each(|(group, ..)| group.end(error));
    }
}

/// Whether it is the log that an error is about.
/// A panic as the reason of something.
pub(crate) fn panicked(panic: &str) -> String {
    format!("panicked: {panic}")
}
