//! The way of one connection's statements, in their order: what can be a call at once is one, the
//! rest waits in a queue that the pool's threads empty.

use super::block::{BlockOperation, BlockState, Operation, Stock};
use super::call::{Call, MORE_NUMBERS, Run, ZoneForm};
use super::options::{COPY_STEPS_TIMES, STEPS_AT_ONCE};
use super::pending::{Answer, Last, Promise, Watch};
use super::pool::lock;
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use super::statement::{Planned, Statement, Way};
use super::{failure, panics};
use nvcaracal::{Part, Snapshot, Submitter, Ticket};
use sql::catalog::Catalog;
use sql::ir::{ObjectId, Value};
use sql::run::{Context, Limits};
use sql::system::Session;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use values::{Datum, Error, Result, SqlState, Timestamp, Zone};

/// A statement that was submitted.
pub(super) struct Work {
    pub(super) statement: Arc<Statement>,
    pub(super) parameters: Vec<Datum>,
    pub(super) now: Timestamp,
    pub(super) zone: Zone,
    pub(super) session: Arc<Session>,
    pub(super) promise: Promise,
}

/// What waits in the queue.
pub(super) enum Task {
    Statement(Work),
    Block(Operation, Promise),
    /// Answered, with nothing, when all before it is.
    Fence(Promise),
}

impl Task {
    /// Whether there is no block behind it, whatever the answer is.
    fn ends_block(&self) -> bool {
        let Task::Block(Operation::Of(operation, _), _) = self else { return false };
        matches!(operation, BlockOperation::Commit | BlockOperation::RollBack)
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    /// Whether a task empties the queue.
    is_running: bool,
}

/// One connection's statements.
pub(super) struct Pipeline {
    pub(super) shared: Arc<Shared>,
    /// Which of all it is.
    number: u64,
    /// Whether its connection waits for what it submits.
    pub(super) is_waited_for: AtomicBool,
    serial: Submitter,
    parallel: Submitter,
    state: Mutex<State>,
    pub(super) last: Arc<Last>,
    /// The block that is open; moved out of it by what runs in it.
    pub(super) block: Mutex<Option<BlockState>>,
    /// Numbers of sequences that blocks of before have left.
    pub(super) numbers: Mutex<Stock>,
}

/// Longer calls are run by the sequencer's thread: connections of this one do not wait for them.
const RUN_HERE_BYTES_MAX: usize = 4 << 10;
/// How often a statement is submitted again for more numbers.
pub(super) const TRIES_MAX: u32 = 16;

impl Pipeline {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Pipeline> {
        let submitter = shared.database.submitter();
        Arc::new(Pipeline {
            serial: submitter.part(Part::Serial),
            parallel: submitter.part(Part::Parallel),
            state: Mutex::default(),
            number: shared.pipelines.fetch_add(1, Ordering::Relaxed),
            is_waited_for: AtomicBool::new(false),
            last: shared.new_last(),
            block: Mutex::default(),
            numbers: Mutex::default(),
            shared,
        })
    }

    pub(super) fn submit(self: &Arc<Pipeline>, task: Task) {
        // Reads count, too: those of this thread would wait.
        let is_alone =
            self.shared.last_pipeline.swap(self.number, Ordering::Relaxed) == self.number;
        let mut state = lock(&self.state);
        if state.is_running {
            state.queue.push_back(task);
            return;
        }
        let is_end = task.ends_block();
        let left = panics::caught(|| Ok(self.do_now(task, is_alone))).unwrap_or_else(|_| {
            // Its client was told as the promise was dropped, and has no block any more.
            if is_end {
                *lock(&self.block) = None;
            }
            None
        });
        let Some(task) = left else { return };
        state.queue.push_back(task);
        state.is_running = true;
        drop(state);
        self.shared.pool.spawn(Runner { pipeline: Arc::clone(self), has_ended: false }.run());
    }

    /// Does what waits for nothing; gives back what has to wait.
    fn do_now(&self, task: Task, is_alone: bool) -> Option<Task> {
        match task {
            Task::Statement(work) => self.call_now(work, is_alone).map(Task::Statement),
            Task::Block(operation, promise) => self
                .operate_now(operation, promise, is_alone)
                .map(|(operation, promise)| Task::Block(operation, promise)),
            fence @ Task::Fence(_) => Some(fence),
        }
    }

    /// Makes a call of the statement, or looks its row up, or gives it back if something has to be
    /// waited for.
    fn call_now(&self, work: Work, is_alone: bool) -> Option<Work> {
        let shared = &self.shared;
        let Some(planned) = &work.statement.planned else { return Some(work) };
        let version = work.statement.version;
        if version != shared.catalog().version() {
            return Some(work);
        }
        let (is_predicted, numbers) = match &planned.way {
            Way::Query | Way::Counted => return Some(work),
            Way::Lookup => {
                if self.last.outstanding().is_some() {
                    return Some(work);
                }
                let steps = Steps::new(STEPS_AT_ONCE);
                let Some(answer) = self.look_up(&work, planned, steps, false) else {
                    return Some(work);
                };
                // A definition may have come in between.
                if version != shared.catalog().version() {
                    return Some(work);
                }
                work.promise.answer(answer);
                return None;
            }
            Way::Call { is_predicted, numbers } => (is_predicted, numbers),
        };
        let Ok(_inside) = shared.gate.try_read() else { return Some(work) };
        if version != shared.catalog().version() || shared.held.has(&planned.writes) {
            return Some(work);
        }
        let bytes = self.bytes(&work, planned, *is_predicted, numbers.clone());
        match self.submit_call(*is_predicted, is_alone, &bytes) {
            Ok(ticket) => self.last.set(work.promise.call(ticket)),
            Err(error) if error.is_queue_full() => return Some(work),
            Err(error) => work.promise.answer(Err(failure::of_call(&error))),
        }
        None
    }

    /// Submits a call; runs it on this thread if that keeps nothing waiting: it is small, its
    /// connection waits for it, and no other one submits anything.
    pub(super) fn submit_call(
        &self,
        is_predicted: bool,
        is_alone: bool,
        bytes: &[u8],
    ) -> nvcaracal::Result<Ticket<Vec<u8>>> {
        let (submitter, procedure) = (self.submitter(is_predicted), self.shared.procedure);
        let runs_here = is_alone
            && is_predicted
            && bytes.len() <= RUN_HERE_BYTES_MAX
            && self.is_waited_for.load(Ordering::Relaxed);
        if runs_here && let Some(ticket) = submitter.run_raw_alone(procedure, bytes)? {
            return Ok(ticket);
        }
        submitter.try_submit_raw(procedure, bytes)
    }

    pub(super) fn submitter(&self, is_predicted: bool) -> &Submitter {
        if is_predicted { &self.parallel } else { &self.serial }
    }

    fn bytes(
        &self,
        work: &Work,
        planned: &Planned,
        is_predicted: bool,
        numbers: BTreeMap<ObjectId, u32>,
    ) -> Vec<u8> {
        let limits = &self.shared.options;
        Call::Run(Run {
            numbers,
            is_predicted,
            now: work.now.bits(),
            zone: ZoneForm::of(&work.zone),
            steps_max: match planned.plan.is_copy() {
                true => limits.steps_max.saturating_mul(COPY_STEPS_TIMES),
                false => limits.steps_max,
            },
            memory_bytes_max: limits.memory_bytes_max as u64,
            parameters: work.parameters.iter().cloned().map(Value).collect(),
            plan: &planned.bytes,
        })
        .encode()
    }

    /// Waits for all calls of this connection.
    pub(super) async fn all_answered(&self) {
        if let Some(last) = self.last.outstanding() {
            last.answered().await;
        }
    }

    /// Does what waits in the queue, as the next of this connection.
    async fn step_of(&self, task: Task) {
        match task {
            Task::Statement(work) => self.step(work).await,
            Task::Block(operation, promise) => self.operate(operation, promise).await,
            Task::Fence(promise) => {
                self.all_answered().await;
                promise.answer(Ok(Answer::default()));
            }
        }
    }

    /// Does what a statement says, as the next of this connection.
    async fn step(&self, mut work: Work) {
        let watch = work.promise.watch(work.statement.is_read());
        if let Err(error) = watch.interrupt().check_own() {
            return work.promise.answer(Err(error));
        }
        if work.statement.planned.is_none() {
            let context = self.context(&work, None);
            let done = self.shared.define(&work.statement, &context, &watch).await;
            return work.promise.answer(done);
        }
        let mut statement = Arc::clone(&work.statement);
        loop {
            statement = match self.current(&statement) {
                Ok(current) => current,
                Err(error) => return work.promise.answer(Err(error)),
            };
            let planned = statement.planned.as_ref().expect("it is no definition");
            let done = match &planned.way {
                Way::Query => self.query(&work, &statement, planned, &watch).await,
                Way::Lookup => self.look_up_now(&work, &statement, planned, &watch).await,
                Way::Call { .. } | Way::Counted => match self.write(work, &statement).await {
                    Some(left) => {
                        work = left;
                        continue;
                    }
                    None => return,
                },
            };
            // Without an answer the catalog is another one by now.
            if let Some(answer) = done.transpose() {
                return work.promise.answer(answer);
            }
        }
    }

    /// The statement, planned for the catalog of now. Needs the stack of a thread of the pool.
    pub(super) fn current(&self, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        let catalog = self.shared.catalog();
        if statement.version == catalog.version() {
            return Ok(Arc::clone(statement));
        }
        let again = self.shared.again(statement, &catalog)?;
        statement.check_same(&again)?;
        Ok(again)
    }

    /// Makes a call of the statement. Gives it back if the catalog is another one by now.
    async fn write(&self, work: Work, statement: &Arc<Statement>) -> Option<Work> {
        let shared = &self.shared;
        let planned = statement.planned.as_ref().expect("it is no definition");
        let watch = work.promise.watch(false);
        let _inside = match shared.enter(&watch, &planned.writes).await {
            Ok(inside) => inside,
            Err(error) => {
                work.promise.answer(Err(error));
                return None;
            }
        };
        if !shared.is_of_now(statement) {
            return Some(work);
        }
        match &planned.way {
            Way::Call { is_predicted, numbers } => {
                let called = self.call(&work, planned, *is_predicted, numbers.clone()).await;
                match called {
                    Ok(ticket) => self.last.set(work.promise.call(ticket)),
                    Err(error) => work.promise.answer(Err(failure::of_call(&error))),
                }
            }
            _ => {
                let answer = self.counted(&work, planned).await;
                work.promise.answer(answer);
            }
        }
        None
    }

    /// The catalog of the block that is open, if it has one of its own.
    pub(super) fn own_catalog(&self) -> Option<Arc<Catalog>> {
        lock(&self.block).as_ref()?.own_catalog()
    }

    /// Notes what the client was told of the catalog. A statement that still runs is none of it.
    pub(super) fn saw_catalog(&self, version: u64) {
        if let Some(block) = lock(&self.block).as_mut() {
            block.saw_catalog(version);
        }
    }

    /// Reads at a snapshot that has all earlier statements of this connection. None of the later
    /// ones is a call yet. `None` if the catalog is another one by now.
    async fn query(
        &self,
        work: &Work,
        statement: &Statement,
        planned: &Planned,
        watch: &Watch,
    ) -> Result<Option<Answer>> {
        #[cfg(test)]
        panics::planted(panics::Place::Query, work.statement.parsed.text());
        let shared = &self.shared;
        let made = watch.interrupt().or(self.snapshot_of_all()).await;
        let snapshot = made??;
        if !shared.is_of_now(statement) {
            return Ok(None);
        }
        let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
        let reads = Reads::Snapshot(&snapshot);
        let mut rows = ReadRows::new(&shared.spaces, reads, steps);
        let context = self.context(work, Some(planned));
        sql::run::run(&planned.plan, &context, &mut rows).map(|answer| Some(Answer::from(answer)))
    }

    /// A snapshot that has all calls of this connection so far.
    ///
    /// If the catalog has the same version behind it as before it, plans for that version can be
    /// run: rows that it leads to are cleared behind the next one only.
    pub(super) async fn snapshot_of_all(&self) -> Result<Snapshot> {
        self.all_answered().await;
        self.shared.database.snapshot_async().await.map_err(failure::of_read)
    }

    /// Looks a row up, behind all calls of this connection. `None` if the catalog is another one by
    /// now.
    async fn look_up_now(
        &self,
        work: &Work,
        statement: &Statement,
        planned: &Planned,
        watch: &Watch,
    ) -> Result<Option<Answer>> {
        let shared = &self.shared;
        self.all_answered().await;
        let steps = Steps::watched(shared.options.steps_max, &shared.pool, watch.clone());
        let answer = self.look_up(work, planned, steps, true);
        let answer = answer.expect("a look-up that may wait has an answer");
        if shared.is_of_now(statement) { answer.map(Some) } else { Ok(None) }
    }

    /// Reads one row of the newest state, which has all calls that were answered, of any
    /// connection. `None` if it would have to wait, or to compute for longer, and may not.
    fn look_up(
        &self,
        work: &Work,
        planned: &Planned,
        steps: Steps,
        waits: bool,
    ) -> Option<Result<Answer>> {
        #[cfg(test)]
        panics::planted(panics::Place::LookUp, work.statement.parsed.text());
        let shared = &self.shared;
        let reads = Reads::Newest { database: &shared.database, waits, is_later: false };
        let mut rows = ReadRows::new(&shared.spaces, reads, steps);
        let answer = sql::run::run(&planned.plan, &self.context(work, Some(planned)), &mut rows);
        match rows.is_later() || !waits && rows.steps.is_over() {
            true => None,
            false => Some(answer.map(Answer::from)),
        }
    }

    /// What a statement runs in outside of a call.
    fn context(&self, work: &Work, planned: Option<&Planned>) -> Context {
        let memory_bytes_max = self.shared.options.memory_bytes_max;
        Context {
            parameters: work.parameters.clone(),
            now: work.now,
            zone: work.zone.clone(),
            limits: Limits { memory_bytes_max, ..Limits::default() },
            system: planned.and_then(|planned| planned.system(&work.session)),
        }
    }

    async fn call(
        &self,
        work: &Work,
        planned: &Planned,
        is_predicted: bool,
        numbers: BTreeMap<ObjectId, u32>,
    ) -> nvcaracal::Result<Ticket<Vec<u8>>> {
        let bytes = self.bytes(work, planned, is_predicted, numbers);
        self.submitter(is_predicted).submit_raw_async(self.shared.procedure, &bytes).await
    }

    /// Asks with how many numbers it runs, and gives it so many.
    async fn counted(&self, work: &Work, planned: &Planned) -> Result<Answer> {
        let mut numbers = match work.parameters.first() {
            Some(Datum::Bytea(rows)) if planned.plan.is_copy() => {
                planned.plan.numbers_of_copy(sql::copy::count(rows))
            }
            _ => BTreeMap::new(),
        };
        for tried in 0..TRIES_MAX {
            let called = self.call(work, planned, false, numbers.clone()).await;
            let answer = called.map_err(|error| failure::of_call(&error))?.await;
            let wanted = match &answer {
                Err(error) => error.abort().filter(|abort| abort.code == MORE_NUMBERS),
                Ok(_) => None,
            };
            let Some(abort) = wanted else {
                return super::pending::read(answer);
            };
            let wanted: BTreeMap<ObjectId, u32> = postcard::from_bytes(&abort.payload)
                .map_err(|_| Error::corrupted("answer of a call is damaged"))?;
            // Rows that come meanwhile want more: later tries have some to spare.
            let with_more =
                |(id, count): (ObjectId, u32)| (id, count + (count >> 3) * tried.min(8));
            numbers = wanted.into_iter().map(with_more).collect();
        }
        Err(Error::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not count the numbers that the statement takes, as its rows change",
        ))
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some(slot) = self.last.outstanding() {
            self.shared.keep_outstanding(slot);
        }
    }
}

/// Empties the queue of a pipeline.
struct Runner {
    pipeline: Arc<Pipeline>,
    has_ended: bool,
}

impl Runner {
    async fn run(mut self) {
        while let Some(task) = self.next() {
            // A panic has dropped the promise, which has told its client. The next one may run.
            let _ = panics::caught_in(self.pipeline.step_of(task)).await;
        }
    }

    fn next(&mut self) -> Option<Task> {
        let mut state = lock(&self.pipeline.state);
        assert!(state.is_running, "one task empties a queue");
        let task = state.queue.pop_front();
        if task.is_none() {
            state.is_running = false;
            self.has_ended = true;
        }
        task
    }
}

impl Drop for Runner {
    /// After a panic, or at the end of the pool: what waits is answered with an error.
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = lock(&self.pipeline.state);
            state.is_running = false;
            let cut_off = std::mem::take(&mut state.queue);
            drop(state);
            drop(cut_off);
        }
    }
}
