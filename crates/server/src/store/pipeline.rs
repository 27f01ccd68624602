//! The pipeline of one connection: runs its statements in order. A statement that need not wait is
//! submitted at once; the others wait in a queue that the threads of the pool process.

use super::advisory::{LockEnd, SessionLocks};
use super::block::{BlockOperation, BlockState, Operation, Stock};
use super::call::{Call, Run, ZoneForm};
use super::calls::{Numbers, TRIES_MAX, reader_of};
use super::notices::Mailbox;
use super::options::{COPY_STEPS_TIMES, STEPS_AT_ONCE};
use super::pending::{Answer, Last, Promise, Watch, keep_rows, read_as};
use super::pool::lock;
use super::rows::{ReadRows, Reads, Steps};
use super::services::{Means, QueryServices};
use super::shared::Shared;
use super::statement::{Planned, Statement, Way};
use super::temporary::{TemporaryState, Use};
use super::{failure, panics};
use nvcaracal::{Part, Snapshot, Submitter, Ticket};
use sql::catalog::Catalog;
use sql::ir::Value;
use sql::run::{Context, Limits};
use sql::system::Session;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use values::{Datum, Result, Timestamp, Zone};

/// A submitted statement.
pub(super) struct Work {
    pub(super) statement: Arc<Statement>,
    pub(super) parameters: Vec<Datum>,
    pub(super) now: Timestamp,
    pub(super) zone: Zone,
    pub(super) session: Arc<Session>,
    pub(super) promise: Promise,
}

/// An entry of the queue.
pub(super) enum Task {
    Statement(Work),
    Block(Operation, Promise),
    /// Answered, with nothing, after all earlier entries.
    Fence(Promise),
    /// Ends advisory locks, when all calls before it are answered.
    Unlock(LockEnd),
}

impl Task {
    /// Whether it ends the block, successful or not.
    fn ends_block(&self) -> bool {
        let Task::Block(Operation::Of(operation, _), _) = self else { return false };
        matches!(operation, BlockOperation::Commit | BlockOperation::RollBack)
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    /// Whether a task is processing the queue.
    is_running: bool,
}

/// The statements of one connection.
pub(super) struct Pipeline {
    pub(super) shared: Arc<Shared>,
    /// The number of the connection.
    pub(super) number: u64,
    /// Whether the connection sends nothing more until it has the answer.
    pub(super) is_waited_for: AtomicBool,
    serial: Submitter,
    parallel: Submitter,
    state: Mutex<State>,
    pub(super) last: Arc<Last>,
    /// The open block. A statement that runs in it takes it out meanwhile.
    pub(super) block: Mutex<Option<BlockState>>,
    /// Numbers of sequences that earlier blocks have reserved and not used.
    pub(super) numbers: Mutex<Stock>,
    /// The temporary objects of the session and their rows.
    pub(super) temporary: Arc<Mutex<TemporaryState>>,
    pub(super) locks: Arc<SessionLocks>,
    pub(super) mailbox: Arc<Mailbox>,
}

/// The largest call that this thread runs itself. A larger one would delay its other connections.
const RUN_HERE_BYTES_MAX: usize = 4 << 10;

impl Pipeline {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Pipeline> {
        let submitter = shared.database.submitter();
        let number = shared.pipelines.fetch_add(1, Ordering::Relaxed);
        Arc::new(Pipeline {
            serial: submitter.part(Part::Serial),
            parallel: submitter.part(Part::Parallel),
            state: Mutex::default(),
            number,
            locks: SessionLocks::new(&shared.locks, number),
            mailbox: Mailbox::new(&shared.bus, number),
            is_waited_for: AtomicBool::new(false),
            last: shared.new_last(),
            block: Mutex::default(),
            numbers: Mutex::default(),
            temporary: Arc::default(),
            shared,
        })
    }

    pub(super) fn submit(self: &Arc<Pipeline>, task: Task) {
        // Reads count, too: this thread would delay its own.
        let is_alone =
            self.shared.last_pipeline.swap(self.number, Ordering::Relaxed) == self.number;
        let mut state = lock(&self.state);
        if state.is_running {
            state.queue.push_back(task);
            return;
        }
        let is_end = task.ends_block();
        let left = panics::caught(|| Ok(self.do_now(task, is_alone))).unwrap_or_else(|_| {
            // The dropped promise has answered the client with an error, and the block has ended.
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

    /// Runs a task that need not wait; returns the others.
    fn do_now(&self, task: Task, is_alone: bool) -> Option<Task> {
        match task {
            Task::Statement(work) => self.call_now(work, is_alone).map(Task::Statement),
            Task::Block(operation, promise) => self
                .operate_now(operation, promise, is_alone)
                .map(|(operation, promise)| Task::Block(operation, promise)),
            Task::Unlock(end) if self.last.outstanding().is_none() => {
                self.locks.end(end);
                None
            }
            later @ (Task::Fence(_) | Task::Unlock(_)) => Some(later),
        }
    }

    /// Submits a write or looks up a row; returns the statement if that would have to wait.
    fn call_now(&self, work: Work, is_alone: bool) -> Option<Work> {
        let shared = &self.shared;
        let Some(planned) = &work.statement.planned else { return Some(work) };
        let version = work.statement.version;
        let is_of_now =
            version == shared.catalog().version() && self.is_of_objects(&work.statement);
        if !is_of_now || planned.temporary != Use::No {
            return Some(work);
        }
        let (is_predicted, numbers) = match &planned.way {
            _ if planned.claims_rows() => return Some(work),
            Way::Query | Way::Counted | Way::Own { .. } => return Some(work),
            Way::Lookup => {
                if self.last.outstanding().is_some() {
                    return Some(work);
                }
                let steps = Steps::new(STEPS_AT_ONCE);
                let Some(answer) = self.look_up(&work, planned, steps, false) else {
                    return Some(work);
                };
                // A definition may have changed the catalog in between.
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
        let bytes = Call::Run(self.form(&work, planned, *is_predicted, numbers.clone())).encode();
        if planned.notifies {
            let is_predicted = *is_predicted;
            return self.notify_now(work, is_predicted, &bytes);
        }
        match self.submit_call(*is_predicted, is_alone, &bytes) {
            Ok(ticket) => self.last.set(work.promise.call(ticket)),
            Err(error) if error.is_queue_full() => return Some(work),
            Err(error) => work.promise.answer(Err(failure::of_call(&error))),
        }
        None
    }

    /// Submits a call. Runs it on this thread if that delays nothing: it is small, the connection
    /// waits for it, and no other connection is submitting.
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

    /// The form of a statement's call.
    fn form<'p>(
        &self,
        work: &'p Work,
        planned: &'p Planned,
        is_predicted: bool,
        numbers: Numbers,
    ) -> Run<'p> {
        let limits = &self.shared.options;
        Run {
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
        }
    }

    /// Waits until all calls of this connection are answered.
    pub(super) async fn all_answered(&self) {
        if let Some(last) = self.last.outstanding() {
            last.answered().await;
        }
    }

    /// Runs the next entry of the queue.
    async fn step_of(&self, task: Task) {
        match task {
            Task::Statement(work) => self.step(work).await,
            Task::Block(operation, promise) => self.operate(operation, promise).await,
            Task::Fence(promise) => {
                self.all_answered().await;
                promise.answer(Ok(Answer::default()));
            }
            Task::Unlock(end) => {
                self.all_answered().await;
                self.locks.end(end);
            }
        }
    }

    /// Runs a statement, the next one of this connection.
    async fn step(&self, mut work: Work) {
        let watch = work.promise.watch(work.statement.is_read());
        if let Err(error) = watch.interrupt().check_own() {
            return work.promise.answer(Err(error));
        }
        if work.statement.defines_temporary {
            let done = self.run_alone(&work, &work.statement, &watch).await;
            return work.promise.answer(done);
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
                Way::Own { .. } => self.run_alone(&work, &statement, &watch).await.map(Some),
                _ if planned.temporary == Use::Given => {
                    self.run_given(&work, &statement).await.map(Some)
                }
                Way::Query | Way::Lookup if planned.claims_rows() => {
                    self.query_unclaimed(&work, &statement, planned, &watch).await
                }
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
            // `None`: the catalog has changed.
            if let Some(answer) = done.transpose() {
                return work.promise.answer(answer);
            }
        }
    }

    /// Returns the statement planned for the current catalog. Needs the stack of a pool thread.
    pub(super) fn current(&self, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        if self.is_of_objects(statement) {
            return self.current_of(statement);
        }
        statement.plan_with(self.temporary().objects, &self.shared.catalog())
    }

    /// Returns the statement planned for the current catalog, with the temporary objects that it
    /// was planned with.
    pub(super) fn current_of(&self, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        let catalog = self.shared.catalog();
        if statement.version == catalog.version() {
            return Ok(Arc::clone(statement));
        }
        let again = self.shared.again(statement, &catalog)?;
        statement.check_same(&again)?;
        Ok(again)
    }

    /// Submits a write; returns it if the catalog has changed.
    async fn write(&self, work: Work, statement: &Arc<Statement>) -> Option<Work> {
        let shared = &self.shared;
        let planned = statement.planned.as_ref().expect("it is no definition");
        let watch = work.promise.watch(false);
        if let Err(error) = self.await_unclaimed(&work, statement, planned, &watch).await {
            work.promise.answer(Err(error));
            return None;
        }
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
                let bytes = self.passing(&work, planned, *is_predicted, numbers.clone());
                match bytes {
                    Ok(bytes) => {
                        let submitter = self.submitter(*is_predicted);
                        let submitted = submitter.submit_raw_async(shared.procedure, &bytes);
                        let read = reader_of(statement);
                        self.called(submitted, planned.notifies, work.promise, read).await;
                    }
                    Err(error) => work.promise.answer(Err(error)),
                }
            }
            _ => {
                let answer = self.counted(&work, planned).await;
                work.promise.answer(answer);
            }
        }
        None
    }

    /// Returns the private catalog of the open block, if it has one.
    pub(super) fn own_catalog(&self) -> Option<Arc<Catalog>> {
        lock(&self.block).as_ref()?.own_catalog()
    }

    /// Records that the client has seen this version of the catalog in the open block.
    pub(super) fn saw_catalog(&self, version: u64) {
        if let Some(block) = lock(&self.block).as_mut() {
            block.saw_catalog(version);
        }
    }

    /// Runs a query on a snapshot with all earlier calls of this connection, and no later ones. One
    /// that reads no table needs none, and waits for no epoch. Returns `None` if the catalog has
    /// changed.
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
        let snapshot = match planned.needs_rows() {
            true => {
                #[cfg(test)]
                panics::planted(panics::Place::Snapshot, work.statement.parsed.text());
                Some(watch.interrupt().or(self.snapshot_of_all()).await??)
            }
            false => {
                watch.interrupt().or(self.all_answered()).await?;
                None
            }
        };
        if !shared.is_of_now(statement) {
            return Ok(None);
        }
        let services = self.services();
        let memory = shared.memory.grant();
        let system = planned.system(&work.session, Some(Arc::clone(&services)));
        let grant = Some(Arc::clone(&memory));
        let context = Context { grant, system, ..self.context(work, Some(planned)) };
        let (result, steps) = loop {
            let (result, steps) = {
                let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
                let reads = Reads::of(snapshot.as_ref());
                let mut rows = ReadRows::new(&shared.spaces, reads, steps);
                (sql::run::run(&planned.plan, &context, &mut rows), rows.steps.done())
            };
            keep_rows(&memory, &result);
            if !services.wants() {
                break (result, steps);
            }
            services.wait(watch).await?;
        };
        drop(snapshot);
        services.sleep(watch).await?;
        let answer = Answer { steps: Some(steps), ..Answer::of(result?, Some(memory)) };
        Ok(Some(services.warned(answer)))
    }

    /// What the server does for one query.
    pub(super) fn services(&self) -> Arc<QueryServices> {
        let shared = &self.shared;
        let means = Means {
            table: Arc::clone(&shared.locks),
            claims: Arc::clone(&shared.claims),
            timer: Arc::clone(&shared.timer),
            clock: shared.options.clock,
            backends: shared.served.get().cloned(),
            database: shared.database.clone(),
        };
        QueryServices::new(means, &self.locks, &self.mailbox)
    }

    /// Takes a snapshot with all calls of this connection so far.
    ///
    /// A plan may run on it if the catalog has the version of the plan both before and after: rows
    /// of dropped tables are cleared only after the next version.
    pub(super) async fn snapshot_of_all(&self) -> Result<Snapshot> {
        self.all_answered().await;
        self.shared.database.snapshot_async().await.map_err(failure::of_read)
    }

    /// Looks up a row after all earlier calls of this connection. Returns `None` if the catalog has
    /// changed.
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

    /// Reads one row of the newest state, which has every answered call of any connection. Returns
    /// `None` if it may not wait and would have to, or would exceed its steps.
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
        // What does little collects little.
        let memory = waits.then(|| shared.memory.grant());
        let context = Context { grant: memory.clone(), ..self.context(work, Some(planned)) };
        let answer = sql::run::run(&planned.plan, &context, &mut rows);
        if let Some(memory) = &memory {
            keep_rows(memory, &answer);
        }
        match rows.is_later() || !waits && rows.steps.is_over() {
            true => None,
            false => {
                let steps = Some(rows.steps.done());
                Some(answer.map(|answer| Answer { steps, ..Answer::of(answer, memory) }))
            }
        }
    }

    /// Returns the context of a statement outside of a call.
    pub(super) fn context(&self, work: &Work, planned: Option<&Planned>) -> Context {
        let memory_bytes_max = self.shared.options.memory_bytes_max;
        Context {
            parameters: work.parameters.clone(),
            now: work.now,
            zone: work.zone.clone(),
            limits: Limits { memory_bytes_max, ..Limits::default() },
            system: planned.and_then(|planned| planned.system(&work.session, None)),
            grant: None,
        }
    }

    /// The bytes of a call that passes by the rows which blocks have claimed now.
    fn passing(
        &self,
        work: &Work,
        planned: &Planned,
        is_predicted: bool,
        numbers: Numbers,
    ) -> Result<Vec<u8>> {
        let passed = self.shared.claims.passed(&planned.claims)?;
        let run = self.form(work, planned, is_predicted, numbers);
        Ok(match passed.is_empty() {
            true => Call::Run(run).encode(),
            false => Call::RunPassing(run, passed).encode(),
        })
    }

    /// Submits a statement until it has as many numbers of sequences as it takes.
    async fn counted(&self, work: &Work, planned: &Planned) -> Result<Answer> {
        let numbers = match work.parameters.first() {
            Some(Datum::Bytea(rows)) if planned.plan.is_copy() => {
                planned.plan.numbers_of_copy(sql::copy::count(rows))
            }
            _ => Numbers::new(),
        };
        let bytes = |numbers| self.passing(work, planned, false, numbers);
        let called = self.counted_call(bytes, numbers, planned.notifies, TRIES_MAX);
        read_as(called.await?)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let Some(slot) = self.last.outstanding() else { return };
        if self.locks.are_used() {
            // Who has its locks next sees what its last call has written.
            let (locks, slot) = (Arc::clone(&self.locks), Arc::clone(&slot));
            self.shared.pool.spawn(async move {
                slot.answered().await;
                drop(locks);
            });
        }
        self.shared.keep_outstanding(slot);
    }
}

/// Processes the queue of a pipeline.
struct Runner {
    pipeline: Arc<Pipeline>,
    has_ended: bool,
}

impl Runner {
    async fn run(mut self) {
        while let Some(task) = self.next() {
            // A panic has dropped the promise, which answers the client. The next entry may run.
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
    /// Answers the remaining entries with an error, after a panic or at the end of the pool.
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
