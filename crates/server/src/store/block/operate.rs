//! What a connection does with its block, in the order of its pipeline.

use super::super::call::Call;
use super::super::claims::{Holding, Mode, Target, Wanted};
use super::super::pending::{Answer, Promise, Slot, Watch};
use super::super::pipeline::Pipeline;
use super::super::pool::lock;
use super::super::rows::{Reads, Steps};
use super::super::shared::{Alone, Shared};
use super::super::spaces::sequence;
use super::super::statement::{Planned, Statement, Way};
use super::super::{failure, panics};
use super::defined::Made;
use super::loaded::half_loaded;
use super::operation::{BlockOperation, Operation, Run};
use super::reads::{Below, Tried};
use super::state::{BlockState, moved, said};
use nvcaracal::Snapshot;
use sql::catalog::Catalog;
use sql::ir::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{Error, Result, SqlState, Timestamp};

/// When a statement runs.
#[derive(Clone, Copy)]
struct Moment {
    /// The version of the catalog.
    version: u64,
    /// The releases of claims before it.
    since: u64,
}

pub(super) fn no_block() -> Error {
    let message = "there is no transaction in progress";
    Error::new(SqlState::NO_ACTIVE_TRANSACTION, message)
}

/// The most rows that a statement reads on the thread of its client.
const GETS_AT_ONCE: u32 = 8;
/// As often a statement reads again because claims were released meanwhile.
const CHANGES_MAX: u32 = 16;

impl Pipeline {
    /// Does it, or gives it back if something has to be waited for.
    pub(in super::super) fn operate_now(
        &self,
        operation: Operation,
        promise: Promise,
        is_alone: bool,
    ) -> Option<(Operation, Promise)> {
        if let Err(error) = self.check_whole(&operation) {
            promise.answer(Err(error));
            return None;
        }
        match operation {
            Operation::Run(run) => match self.run_now_caught(&run) {
                Some(answer) => promise.answer(answer),
                None => return Some((Operation::Run(run), promise)),
            },
            Operation::Of(BlockOperation::Commit, now) => {
                let promise = self.commit_now(promise, is_alone)?;
                return Some((Operation::Of(BlockOperation::Commit, now), promise));
            }
            waits @ Operation::Of(BlockOperation::Lock(..) | BlockOperation::Constraints(_), _) => {
                return Some((waits, promise));
            }
            Operation::Of(operation, now) => promise.answer(self.change(operation, now)),
            together @ Operation::Together(_) => return Some((together, promise)),
        }
        None
    }

    /// Refuses all but ROLLBACK in a block in which something panicked: what it has written may be
    /// half done. COMMIT ends the block, as it does whenever it fails.
    fn check_whole(&self, operation: &Operation) -> Result<()> {
        let is_end = matches!(operation, Operation::Of(BlockOperation::RollBack, _));
        let is_broken = lock(&self.block).as_ref().is_some_and(|block| block.is_broken);
        if is_end || !is_broken {
            return Ok(());
        }
        if matches!(operation, Operation::Of(BlockOperation::Commit, _)) {
            *lock(&self.block) = None;
        }
        let message = "an internal error has ended the transaction";
        Err(Error::new(SqlState::FAILED_TRANSACTION, message).with_hint("Roll it back."))
    }

    /// Runs a statement that waits for nothing. A panic is its error, and breaks the block.
    fn run_now_caught(&self, run: &Run) -> Option<Result<Answer>> {
        let ran = panics::caught(|| Ok(self.run_now(run)));
        ran.unwrap_or_else(|error| {
            lock(&self.block).iter_mut().for_each(|block| block.is_broken = true);
            Some(Err(error))
        })
    }

    /// What waits for nothing.
    fn change(&self, operation: BlockOperation, now: Timestamp) -> Result<Answer> {
        let mut own = lock(&self.block);
        if let BlockOperation::Begin(modes) = operation {
            assert!(own.is_none(), "a connection has one block at a time");
            self.locks.begin();
            *own = Some(self.new_block(modes, now));
            return Ok(said("BEGIN"));
        }
        if matches!(operation, BlockOperation::DiscardTemporary) {
            return Ok(self.discard_temporary(own.as_mut()));
        }
        let block = own.as_mut().ok_or_else(no_block)?;
        match operation {
            BlockOperation::Set(modes) => {
                if block.has_run {
                    block.modes.check_late(modes)?;
                }
                block.modes = modes;
                Ok(said("SET"))
            }
            BlockOperation::Savepoint(name) => {
                block.savepoint(name.clone())?;
                self.locks.savepoint(&name);
                Ok(said("SAVEPOINT"))
            }
            BlockOperation::RollBackTo(name) => {
                block.roll_back_to(&name)?;
                self.locks.end_savepoint(&name, true);
                Ok(said("ROLLBACK"))
            }
            BlockOperation::Release(name) => {
                block.release(&name)?;
                self.locks.end_savepoint(&name, false);
                Ok(said("RELEASE"))
            }
            BlockOperation::RollBack => {
                let block = own.take().expect("it was there");
                drop(own);
                self.end(block);
                Ok(said("ROLLBACK"))
            }
            BlockOperation::Begin(_)
            | BlockOperation::Commit
            | BlockOperation::Lock(..)
            | BlockOperation::Constraints(_)
            | BlockOperation::DiscardTemporary => {
                unreachable!("they are done elsewhere")
            }
        }
    }

    /// The block has ended: numbers that nothing shows stay.
    pub(super) fn end(&self, mut block: BlockState) -> BlockState {
        *lock(&self.numbers) = std::mem::take(&mut block.numbers).end_of_block();
        block
    }

    /// Runs a statement that reads a row or two and waits for nothing.
    fn run_now(&self, run: &Run) -> Option<Result<Answer>> {
        let shared = &self.shared;
        let statement = &run.statement;
        if !is_short(statement) || self.last.outstanding().is_some() {
            return None;
        }
        let _inside = shared.gate.try_read().ok()?;
        let catalog = shared.catalog();
        if statement.version != catalog.version() {
            return None;
        }
        let mut own = lock(&self.block);
        let Some(block) = own.as_mut() else { return Some(Err(no_block())) };
        let is_stale = statement.environment.version() != block.temporary.version();
        if is_stale || block.base.is_some() || block.reads_beside_tables(statement) {
            return None;
        }
        block.begin_statement();
        let since = released(shared, statement);
        let snapshot = block.snapshot.clone();
        let below = match (&snapshot, block.modes.keeps_snapshot) {
            (Some(snapshot), _) => Below {
                reads: Reads::Snapshot(snapshot),
                gets_max: Some(GETS_AT_ONCE),
                watch: None,
                since,
            },
            (None, true) => return None,
            (None, false) => {
                let database = &shared.database;
                // Two rows of the newest state may be of different states.
                let reads = Reads::Newest { database, waits: false, is_later: false };
                Below { reads, gets_max: Some(1), watch: None, since }
            }
        };
        if let Err(error) = block.check(shared, &catalog, statement, run) {
            return Some(Err(error));
        }
        match block.attempt(shared, statement, run, below) {
            Tried::Done(result) => Some(result.map(|answer| block.answer(answer))),
            Tried::Later | Tried::Short(_) | Tried::Changed | Tried::Blocked(..) => None,
        }
    }

    /// Commits if nothing has to be waited for; else gives the promise back.
    fn commit_now(&self, promise: Promise, is_alone: bool) -> Option<Promise> {
        let shared = &self.shared;
        let mut own = lock(&self.block);
        let Some(block) = own.as_mut() else {
            promise.answer(Err(no_block()));
            return None;
        };
        if block.temporary.objects.is_some() {
            return Some(promise);
        }
        if !block.has_written() {
            let block = own.take().expect("it was there");
            drop(own);
            self.end(block);
            promise.answer(Ok(said("COMMIT")));
            return None;
        }
        if block.has_defined() || block.check_commit().is_err() {
            return Some(promise);
        }
        let Ok(_inside) = shared.gate.try_read() else { return Some(promise) };
        let version = shared.catalog().version();
        let is_of_now = block.is_of(version) && !block.has_seen_another(version);
        if !is_of_now || shared.held.has(&block.writes()) {
            return Some(promise);
        }
        if block.notifies() {
            return Some(promise);
        }
        let bytes = block.encode(&shared.options);
        match self.submit_call(!block.is_large(), is_alone, &bytes) {
            Ok(ticket) => {
                let block = own.take().expect("it was there");
                drop(own);
                let mut block = self.end(block);
                let holding = block.holding.take();
                let read = move |answer| block.committed(answer);
                let slot = promise.call_with(ticket, Box::new(read));
                self.last.set(Arc::clone(&slot));
                keep_until_answered(&slot, holding);
            }
            Err(error) if error.is_queue_full() => return Some(promise),
            Err(error) => {
                *own = None;
                promise.answer(Err(failure::of_call(&error)));
            }
        }
        None
    }

    /// Does what has to wait.
    pub(in super::super) async fn operate(&self, operation: Operation, promise: Promise) {
        if let Err(error) = self.check_whole(&operation) {
            return promise.answer(Err(error));
        }
        match operation {
            Operation::Run(run) => {
                let watch = promise.watch(false);
                if let Err(error) = watch.interrupt().check_own() {
                    return promise.answer(Err(error));
                }
                let own = lock(&self.block).take();
                let Some(mut block) = own else { return promise.answer(Err(no_block())) };
                let ran = panics::caught_in(self.run_in(&mut block, &run, &watch)).await;
                block.is_broken |= ran.is_err();
                let answer = ran.flatten();
                let before = lock(&self.block).replace(block);
                assert!(before.is_none(), "no other block begins while a statement of one runs");
                promise.answer(answer);
            }
            Operation::Of(BlockOperation::Lock(tables, mode, wait), _) => {
                let watch = promise.watch(false);
                let own = lock(&self.block).take();
                let Some(mut block) = own else { return promise.answer(Err(no_block())) };
                // No other session has temporary ones.
                let tables = tables.into_iter().filter(|id| !id.is_temporary());
                let (mode, relations) = (Mode::Relation(mode), tables);
                let relations = relations.map(Target::Relation);
                let wanted = relations.map(|target| Wanted { target, mode, wait });
                let wanted: Vec<Wanted> = wanted.collect();
                let locked = block.lock(&self.shared, &wanted, &watch).await;
                let before = lock(&self.block).replace(block);
                assert!(before.is_none(), "no other block begins while one locks");
                promise.answer(locked.map(|()| said("LOCK TABLE")));
            }
            Operation::Of(BlockOperation::Constraints(set), _) => {
                let watch = promise.watch(false);
                let own = lock(&self.block).take();
                let Some(mut block) = own else { return promise.answer(Err(no_block())) };
                let ran = self.set_constraints(&mut block, set, &watch);
                let ran = panics::caught_in(ran).await;
                block.is_broken |= ran.is_err();
                let before = lock(&self.block).replace(block);
                assert!(before.is_none(), "no other block begins while constraints are checked");
                promise.answer(ran.flatten().map(|()| said("SET CONSTRAINTS")));
            }
            Operation::Of(BlockOperation::Commit, _) => self.commit(promise).await,
            Operation::Together(together) => self.together(together, promise).await,
            Operation::Of(operation, now) => promise.answer(self.change(operation, now)),
        }
    }

    /// The statement, planned for the catalog of the block.
    fn current_in(&self, block: &BlockState, statement: &Arc<Statement>) -> Result<Arc<Statement>> {
        if statement.environment.version() != block.temporary.version() {
            let known = block.own_catalog().unwrap_or_else(|| self.shared.catalog());
            return statement.plan_with(block.temporary.objects.clone(), &known);
        }
        let Some(catalog) = block.own_catalog() else { return self.current_of(statement) };
        if statement.version == catalog.version() {
            return Ok(Arc::clone(statement));
        }
        let again = statement.plan_again(&catalog)?;
        statement.check_same(&again)?;
        Ok(again)
    }

    /// The snapshot that a planned statement of the block reads; `None` if it reads no table, and
    /// is not the one that the block's snapshot is taken for.
    async fn snapshot_for(
        &self,
        block: &mut BlockState,
        statement: &Statement,
    ) -> Result<Option<Snapshot>> {
        let needs_rows = statement.planned.as_ref().is_none_or(Planned::needs_rows);
        if !needs_rows && !block.modes.keeps_snapshot {
            return Ok(None);
        }
        #[cfg(test)]
        panics::planted(panics::Place::Snapshot, statement.parsed.text());
        self.snapshot_of(block).await.map(Some)
    }

    /// The snapshot that a statement of the block reads.
    pub(super) async fn snapshot_of(&self, block: &mut BlockState) -> Result<Snapshot> {
        if let Some(snapshot) = &block.snapshot {
            return Ok(snapshot.clone());
        }
        let made = self.shared.database.snapshot_async().await;
        let snapshot = made.map_err(failure::of_read)?;
        if block.modes.keeps_snapshot {
            block.snapshot = Some(snapshot.clone());
        }
        Ok(snapshot)
    }

    /// Returns the newest catalog and a snapshot of the same moment, with which the block goes on.
    ///
    /// # Errors
    /// That the block belongs to an earlier catalog, or those of the snapshot.
    pub(super) async fn catalog_and_snapshot(
        &self,
        block: &mut BlockState,
        watch: &Watch,
    ) -> Result<(Arc<Catalog>, Snapshot)> {
        loop {
            let catalog = self.shared.catalog();
            block.go_on(&self.shared, &catalog)?;
            let snapshot = watch.interrupt().or(self.snapshot_of(block)).await??;
            if catalog.version() == self.shared.catalog().version() {
                return Ok((catalog, snapshot));
            }
            block.forget_first_snapshot();
        }
    }

    /// Runs a definition in the block.
    async fn define_in(&self, block: &mut BlockState, run: &Run, watch: &Watch) -> Result<Answer> {
        let shared = &self.shared;
        self.all_answered().await;
        loop {
            let catalog = shared.catalog();
            block.check_definition(shared, &catalog, run)?;
            let snapshot = watch.interrupt().or(self.snapshot_of(block)).await??;
            if catalog.version() == shared.catalog().version() {
                return block.define(shared, run, &snapshot, watch);
            }
            block.forget_first_snapshot();
        }
    }

    pub(super) async fn run_in(
        &self,
        block: &mut BlockState,
        run: &Run,
        watch: &Watch,
    ) -> Result<Answer> {
        if block.is_loading {
            return Err(half_loaded());
        }
        if run.statement.defines_temporary {
            return self.define_own(block, run, watch).await;
        }
        if run.statement.planned.is_none() {
            return self.define_in(block, run, watch).await;
        }
        let result = self.run_planned(block, run, watch).await;
        let is_taken = |error: &Error| error.state() == SqlState::UNIQUE_VIOLATION;
        if result.as_ref().is_err_and(is_taken) && self.have_counted(block).await? {
            // It gives numbers that others have taken meanwhile, and cannot commit.
            return Err(moved());
        }
        let answer = run.statement.said(block.answer(result?));
        Ok(match &run.services {
            Some(services) => services.warned(answer),
            None => answer,
        })
    }

    /// Whether others have taken numbers of a sequence since a definition of the block asked how
    /// many it had given.
    async fn have_counted(&self, block: &BlockState) -> Result<bool> {
        if block.asked.is_empty() {
            return Ok(false);
        }
        let snapshot = self.shared.database.snapshot_async().await.map_err(failure::of_read)?;
        for (id, asked) in &block.asked {
            let now = snapshot.sequence(sequence(*id)).map_err(failure::of_read)?;
            if now != *asked {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs a statement until it has what it claims, on the state of then.
    async fn run_planned(
        &self,
        block: &mut BlockState,
        run: &Run,
        watch: &Watch,
    ) -> Result<sql::run::Answer> {
        block.begin_statement();
        let mut changes = 0;
        loop {
            let is_last = changes >= CHANGES_MAX;
            match self.run_once(block, run, watch, is_last).await {
                Tried::Done(result) => return result,
                Tried::Changed => changes += 1,
                Tried::Blocked(target, mode) => block.wait(target, mode, watch).await?,
                Tried::Later | Tried::Short(_) => unreachable!("a snapshot has everything at once"),
            }
            // What others have committed meanwhile is what the first statement sees.
            block.forget_first_snapshot();
        }
    }

    async fn run_once(
        &self,
        block: &mut BlockState,
        run: &Run,
        watch: &Watch,
        is_last: bool,
    ) -> Tried {
        match self.try_once(block, run, watch, is_last).await {
            Ok(tried) => tried,
            Err(error) => Tried::Done(Err(error)),
        }
    }

    /// Runs a statement on the newest state, or that of its block. The last time it takes what it
    /// reads as it is, whatever others have released meanwhile.
    async fn try_once(
        &self,
        block: &mut BlockState,
        run: &Run,
        watch: &Watch,
        is_last: bool,
    ) -> Result<Tried> {
        let shared = &self.shared;
        self.all_answered().await;
        let since = if is_last { u64::MAX } else { released(shared, &run.statement) };
        let (catalog, statement, snapshot, of_tables) = loop {
            let catalog = shared.catalog();
            let version = catalog.version();
            if block.has_lost_base(&catalog) {
                return Err(moved());
            }
            let statement = self.current_in(block, &run.statement)?;
            let known = block.own_catalog().unwrap_or_else(|| Arc::clone(&catalog));
            let statement = match block.reads_system_beside_tables(&statement) {
                true => statement.with_session(&known, &run.session, &run.parameters)?,
                false => statement,
            };
            let of_tables = self.queries_of_tables(block, &known, &statement, run).await?;
            if of_tables.is_empty()
                && let Some(tried) =
                    self.run_short(block, &statement, run, Moment { version, since })
            {
                return Ok(tried);
            }
            let made = watch.interrupt().or(self.snapshot_for(block, &statement)).await?;
            let snapshot = match made {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    block.bar_commit(&error);
                    return Err(error);
                }
            };
            // As for queries outside of blocks.
            if version == shared.catalog().version() {
                break (catalog, statement, snapshot, of_tables);
            }
            block.forget_first_snapshot();
        };
        block.check(shared, &catalog, &statement, run)?;
        self.read_whole(block, &of_tables, snapshot.as_ref(), watch)?;
        let made = block.base.as_ref().map(|base| base.next_id());
        loop {
            let reads = Reads::of(snapshot.as_ref());
            let below = Below { reads, gets_max: None, watch: Some(watch.clone()), since };
            let wanted = match (block.attempt(shared, &statement, run, below), &run.services) {
                (Tried::Short(wanted), _) => wanted,
                (Tried::Later, services) => {
                    let services = services.as_ref();
                    let services = services.expect("a snapshot has everything at once");
                    services.wait(watch).await?;
                    continue;
                }
                (tried @ Tried::Done(_), Some(services)) => {
                    services.sleep(watch).await?;
                    return Ok(tried);
                }
                (tried, _) => return Ok(tried),
            };
            let _inside = watch.interrupt().or(shared.gate.read()).await?;
            if let Err(error) = block.numbers.fill(&wanted, made, shared).await {
                block.bar_commit(&error);
                return Err(error);
            }
        }
    }

    /// Runs a statement that looks a row of the newest state up, unless it needs more or a
    /// definition takes place. It was planned for this version of the catalog, or for the block's.
    fn run_short(
        &self,
        block: &mut BlockState,
        statement: &Arc<Statement>,
        run: &Run,
        moment: Moment,
    ) -> Option<Tried> {
        let Moment { version, since } = moment;
        let shared = &self.shared;
        if block.modes.keeps_snapshot || !is_short(statement) {
            return None;
        }
        let _inside = shared.gate.try_read().ok()?;
        let catalog = shared.catalog();
        if catalog.version() != version {
            return None;
        }
        if let Err(error) = block.check(shared, &catalog, statement, run) {
            return Some(Tried::Done(Err(error)));
        }
        let database = &shared.database;
        let reads = Reads::Newest { database, waits: true, is_later: false };
        let below = Below { reads, gets_max: Some(1), watch: None, since };
        match block.attempt(shared, statement, run, below) {
            Tried::Later | Tried::Short(_) => None,
            tried => Some(tried),
        }
    }

    async fn commit(&self, promise: Promise) {
        let own = lock(&self.block).take();
        let Some(block) = own else { return promise.answer(Err(no_block())) };
        let made = block.numbers.made();
        let mut block = self.end(block);
        let left = match self.leaves_of(&mut block) {
            Ok(left) => left,
            Err(error) => return promise.answer(Err(error)),
        };
        if !block.has_written() {
            self.take_left(left);
            return promise.answer(Ok(said("COMMIT")));
        }
        if let Err(error) = block.check_commit() {
            return promise.answer(Err(error));
        }
        let watch = promise.watch(false);
        if block.has_defined() {
            let committed = self.commit_defined(block, made, &watch).await;
            if committed.is_ok() {
                self.take_left(left);
            }
            return promise.answer(committed.map(|()| said("COMMIT")));
        }
        let shared = &self.shared;
        let _inside = match shared.enter(&watch, &block.writes()).await {
            Ok(inside) => inside,
            Err(error) => return promise.answer(Err(error)),
        };
        let catalog = shared.catalog();
        if block.has_seen_another(catalog.version()) {
            return promise.answer(Err(moved()));
        }
        if let Err(error) = self.renew_plans(&mut block, &catalog) {
            return promise.answer(Err(error));
        }
        assert!(block.is_of(catalog.version()), "a block commits under one catalog");
        let bytes = block.encode(&shared.options);
        let submitter = self.submitter(!block.is_large());
        let submitted = submitter.submit_raw_async(shared.procedure, &bytes);
        let (notifies, holding) = (block.notifies(), block.holding.take());
        let temporary = Arc::clone(&self.temporary);
        let read = Box::new(move |answer| {
            let committed = block.committed(answer)?;
            left.into_iter().for_each(|left| lock(&temporary).take(left));
            Ok(committed)
        });
        if let Some(slot) = self.called(submitted, notifies, promise, read).await {
            keep_until_answered(&slot, holding);
        }
    }

    /// Plans again what was planned for an older catalog.
    fn renew_plans(&self, block: &mut BlockState, catalog: &Arc<Catalog>) -> Result<()> {
        for statement in block.stale_plans(catalog.version()) {
            let again = self.shared.again(statement, catalog);
            match again.and_then(|again| statement.check_same(&again).map(|()| again)) {
                Ok(again) if !again.needs_system() => *statement = again,
                // What reads the catalog is never run again.
                Ok(_) | Err(_) => return Err(moved()),
            }
        }
        Ok(())
    }

    /// Commits a block with definitions: no statement of any connection is a call meanwhile. It
    /// took `numbers` of sequences that it has made.
    async fn commit_defined(
        &self,
        mut block: BlockState,
        numbers: BTreeMap<ObjectId, u32>,
        watch: &Watch,
    ) -> Result<()> {
        if block.is_loading {
            return Err(half_loaded());
        }
        let shared = &self.shared;
        let (alone, made) = match self.again_at_once(&mut block, watch).await? {
            Some(made) => made,
            None => self.again_beside(&mut block, watch).await?,
        };
        watch.check()?;
        block.keep_loaded();
        shared.call(&Call::DefineBlock(made.rows, numbers).encode()).await?;
        if let Some(next) = made.catalog {
            shared.set_catalog(next);
        }
        self.tell_now(made.notices);
        drop(alone);
        for (space, prefix) in made.cleared {
            shared.clear(space, prefix);
        }
        Ok(())
    }

    /// Runs a block with definitions again within the gate; `None` if that takes long.
    async fn again_at_once(
        &self,
        block: &mut BlockState,
        watch: &Watch,
    ) -> Result<Option<(Alone<'_>, Made)>> {
        let shared = &self.shared;
        let (alone, catalog, snapshot) = shared.alone_with(watch, &block.tables()).await?;
        self.check_catalog(block, &catalog)?;
        let steps = Steps::new(shared.options.short_steps_max);
        let made = block.again(shared, &catalog, &snapshot, steps)?;
        Ok(made.map(|made| (alone, made)))
    }

    /// Runs it again beside everything but writers of its tables, and comes back into the gate.
    async fn again_beside(
        &self,
        block: &mut BlockState,
        watch: &Watch,
    ) -> Result<(Alone<'_>, Made)> {
        let shared = &self.shared;
        let tables = block.tables();
        let (alone, catalog, snapshot) = shared.alone_with(watch, &tables).await?;
        let _hold = shared.held.hold(tables);
        drop(alone);
        self.check_catalog(block, &catalog)?;
        // Each statement was bounded when it ran before.
        let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
        let made = block.again(shared, &catalog, &snapshot, steps)?;
        drop(snapshot);
        let (alone, catalog, _) = shared.alone_with(watch, &BTreeSet::new()).await?;
        match block.has_lost_base(&catalog) {
            true => Err(moved()),
            false => Ok((alone, made.expect("its steps have no limit"))),
        }
    }

    /// Refuses a block with definitions that belongs to another catalog.
    fn check_catalog(&self, block: &mut BlockState, catalog: &Arc<Catalog>) -> Result<()> {
        if block.has_seen_another(catalog.version()) {
            return Err(moved());
        }
        self.renew_plans(block, catalog)
    }
}

/// Counts the releases of claims before a statement reads, if it claims any.
fn released(shared: &Shared, statement: &Statement) -> u64 {
    let claims = statement.planned.as_ref().is_some_and(Planned::claims_rows);
    if claims { shared.claims.released() } else { 0 }
}

/// Keeps the claims of a block until its COMMIT is answered: who has one of them next reads what
/// the block has written.
fn keep_until_answered(slot: &Arc<Slot>, holding: Option<Holding>) {
    if let Some(holding) = holding.filter(Holding::is_used) {
        slot.keep_until_answered(holding);
    }
}

/// Whether a statement looks rows up by their keys.
fn is_short(statement: &Statement) -> bool {
    let way = statement.planned.as_ref().map(|planned| &planned.way);
    matches!(way, Some(Way::Lookup | Way::Call { is_predicted: true, .. }))
}
