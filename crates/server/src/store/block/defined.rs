//! Definitions of a block. While it runs, they change a catalog of its own, and their rows are
//! among its writes. Its COMMIT runs everything again alone, behind all calls, as a lone definition
//! runs; what it writes then is one call.

use super::super::call::DefinedRow;
use super::super::define::{delta_of, rows_of};
use super::super::notices::form::once;
use super::super::pending::{Answer, Watch};
use super::super::rows::{ReadRows, Reads, Steps};
use super::super::shared::{Shared, is_private};
use super::super::statement::Statement;
use super::form::{Digest, Step, digest, digest_of_definition, digest_with};
use super::loaded::Loaded;
use super::operation::Run;
use super::run::BlockRows;
use super::state::{BlockState, comes_again, conflict, count_given, moved};
use nvcaracal::Snapshot;
use sql::catalog::Catalog;
use sql::ir::{ObjectId, Space};
use sql::run::{Buffer, Context, Notice, Overlay, Rows, check_constraints};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Zone};

/// What the definitions of a block have come to.
#[derive(Clone)]
pub(super) struct Defined {
    /// The catalog of the block.
    pub(super) catalog: Arc<Catalog>,
    /// Keys that nothing leads to once it has committed.
    cleared: Vec<(Space, Vec<u8>)>,
}

/// A definition that has run.
pub(super) struct DefineStep {
    /// How many other steps are before it.
    at: usize,
    statement: Arc<Statement>,
    parameters: Vec<Datum>,
    zone: Zone,
    digest: Digest,
}

/// What a block with definitions comes to when it runs again.
pub(super) struct Made {
    pub(super) rows: Vec<DefinedRow>,
    /// The next catalog, if it is another one.
    pub(super) catalog: Option<Arc<Catalog>>,
    pub(super) cleared: Vec<(Space, Vec<u8>)>,
    /// What it tells listeners.
    pub(super) notices: Vec<Notice>,
}

impl Defined {
    pub(super) fn new(base: &Arc<Catalog>) -> Defined {
        Defined { catalog: Arc::clone(base), cleared: Vec::new() }
    }

    /// Runs a definition over the writes of a block; one that fails changes nothing.
    fn define(
        &mut self,
        shared: &Shared,
        statement: &Statement,
        context: &Context,
        rows: &mut dyn Rows,
        buffer: &mut Buffer,
    ) -> (Result<Answer>, Digest) {
        let mark = buffer.savepoint();
        let mut overlay = Overlay::over(rows, std::mem::take(buffer));
        let made = delta_of(&self.catalog, statement, context, &mut overlay)
            .and_then(|made| Ok((self.catalog.with(&made.delta)?, made)));
        *buffer = overlay.into_buffer();
        let made = made.and_then(|(next, made)| {
            if !made.delta.is_empty() {
                BlockState::check_waiting(buffer, &next, made.tag)?;
            }
            Ok((next, made))
        });
        let (next, made) = match made {
            Ok(made) => made,
            Err(error) => {
                buffer.roll_back(mark);
                let digest = digest(Err(error.clone()));
                return (Err(error), digest);
            }
        };
        let digest = digest_of_definition(&made);
        if !made.delta.is_empty() {
            self.catalog = Arc::new(next.at_version(shared.private_version()));
            self.cleared.extend_from_slice(made.delta.cleared());
        }
        let tag = made.shown_tag();
        let answer = Answer { tag, rows: made.rows, notice: made.notice, ..Answer::default() };
        (Ok(answer), digest)
    }
}

/// A block while it runs again.
struct Again<'r> {
    shared: &'r Shared,
    read: ReadRows<'r>,
    defined: Defined,
    buffer: Buffer,
    savepoints: Vec<(usize, Defined)>,
}

impl BlockState {
    /// Refuses a definition in a block that cannot have it, before it runs on this catalog.
    pub(super) fn check_definition(
        &mut self,
        shared: &Shared,
        catalog: &Arc<Catalog>,
        run: &Run,
    ) -> Result<()> {
        self.go_on(shared, catalog)?;
        self.check_commit()?;
        self.check_room(run)?;
        if self.base.is_none() {
            self.base = Some(Arc::clone(catalog));
            (self.base_version, self.base_next_id) = (catalog.version(), catalog.next_id());
        }
        Ok(())
    }

    /// Whether others have defined something since the block's first definition.
    pub(super) fn has_lost_base(&self, now: &Catalog) -> bool {
        let is_same = || (now.version(), now.next_id()) == (self.base_version, self.base_next_id);
        self.base.is_some() && !is_same()
    }

    /// Goes on beside a catalog in which others can define nothing of the block's.
    pub(super) fn go_on_at(&mut self, catalog: &Catalog) {
        (self.base_version, self.base_next_id) = (catalog.version(), catalog.next_id());
        if let Some(seen) = &mut self.catalog_seen {
            *seen = catalog.version();
        }
    }

    /// How many statements have run.
    pub(super) fn position(&self) -> usize {
        self.steps.len() + self.defines.len()
    }

    /// The rows of its COPYs are those of tables now. If the call that says so fails, the store
    /// has ended, and the next open clears them.
    pub(super) fn keep_loaded(&mut self) {
        self.loads.iter_mut().for_each(Loaded::keep);
    }

    /// Runs a definition that was checked.
    pub(super) fn define(
        &mut self,
        shared: &Shared,
        run: &Run,
        snapshot: &Snapshot,
        watch: &Watch,
    ) -> Result<Answer> {
        let context = self.context(run, &shared.options);
        // Bounded by the rows that a definition may write.
        let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
        let reads = Reads::Snapshot(snapshot);
        let mut rows = ReadRows::new(&shared.spaces, reads, steps);
        rows.given = self.given.clone();
        let base = self.base.as_ref().expect("it was checked");
        let mut defined = self.defined.clone().unwrap_or_else(|| Defined::new(base));
        let (mark, mut buffer) = (self.buffer.savepoint(), std::mem::take(&mut self.buffer));
        let (result, digest) =
            defined.define(shared, &run.statement, &context, &mut rows, &mut buffer);
        self.asked.append(&mut rows.asked);
        self.passed.append(&mut rows.passed);
        if rows.steps.is_ended() {
            // It says nothing about rows.
            self.buffer = buffer;
            self.buffer.roll_back(mark);
            return result;
        }
        self.buffer = buffer;
        let result = self.fitting(mark, result, shared.options.memory_bytes_max);
        let result = match result {
            Ok(answer) if self.modes.is_read_only => {
                self.buffer.roll_back(mark);
                let what = if answer.rows.is_empty() { &answer.tag } else { "setval()" };
                let message = format!("cannot execute {what} in a read-only transaction");
                Err(Error::new(SqlState::READ_ONLY_TRANSACTION, message))
            }
            result => result,
        };
        self.has_run = true;
        if result.is_ok() {
            self.defined = Some(defined);
        }
        self.record_definition(run, digest, result)
    }

    fn record_definition(
        &mut self,
        run: &Run,
        digest: Digest,
        result: Result<Answer>,
    ) -> Result<Answer> {
        if let Some(error) = result.as_ref().err().filter(|error| !comes_again(error)) {
            self.bar_commit(error);
        }
        if self.says_something() {
            self.count_bytes(run);
            let (statement, zone) = (Arc::clone(&run.statement), run.zone.clone());
            let (at, parameters) = (self.steps.len(), run.parameters.clone());
            self.defines.push(DefineStep { at, statement, parameters, zone, digest });
        }
        result
    }

    /// The tables whose rows it has read or written, or gone through to define something.
    pub(super) fn tables(&self) -> BTreeSet<ObjectId> {
        let planned = self.plans.iter().filter_map(|statement| statement.planned.as_ref());
        let tables = planned.flat_map(|planned| planned.plan.tables());
        let base = self.base.as_ref().map(|base| base.next_id());
        // No other statement writes its own.
        let is_known = |id: &ObjectId| base.is_none_or(|base| *id < base);
        let lasting = tables.filter(|id| !id.is_temporary());
        lasting.chain(self.passed.iter().copied()).filter(is_known).collect()
    }

    /// Runs everything again on a catalog and a snapshot that have all calls; `None` if it takes
    /// more steps than it may.
    pub(super) fn again(
        &self,
        shared: &Shared,
        catalog: &Arc<Catalog>,
        snapshot: &Snapshot,
        steps: Steps,
    ) -> Result<Option<Made>> {
        if self.has_lost_base(catalog) {
            return Err(moved());
        }
        let read = ReadRows::new(&shared.spaces, Reads::Snapshot(snapshot), steps);
        // That of now has no other objects.
        let base = self.base.as_ref().expect("a definition has run");
        let (defined, buffer) = (Defined::new(base), Buffer::of_block());
        let mut again = Again { shared, read, defined, buffer, savepoints: Vec::new() };
        let mut defines = self.defines.iter().enumerate().peekable();
        for at in 0..=self.steps.len() {
            while let Some((number, step)) = defines.next_if(|(_, step)| step.at == at) {
                Loaded::hide(&self.loads, at + number, &mut again.read);
                let context = self.context_of(step.parameters.clone(), &step.zone, &shared.options);
                let digest = again.define(&step.statement, &context);
                if again.read.steps.is_over() {
                    return Ok(None);
                }
                again.read.steps.check()?;
                if digest != step.digest {
                    let number = number + self.runs_before(at) + 1;
                    return Err(conflict(number, &step.statement.shown()));
                }
            }
            let Some(step) = self.steps.get(at) else { break };
            let before = self.defines.iter().filter(|define| define.at <= at).count();
            Loaded::hide(&self.loads, at + before, &mut again.read);
            let is_same = self.step_again(step, &mut again)?;
            if again.read.steps.is_over() {
                return Ok(None);
            }
            again.read.steps.check()?;
            if !is_same {
                return Err(conflict(before + self.runs_before(at) + 1, &self.shown(at)));
            }
        }
        let context = self.context_of(Vec::new(), &Zone::utc(), &shared.options);
        let checked = check_constraints(&mut again.buffer, &mut again.read, &context, true);
        if again.read.steps.is_over() {
            return Ok(None);
        }
        checked?;
        let Again { defined: Defined { catalog: last, cleared }, mut buffer, .. } = again;
        assert!(last.next_id() >= catalog.next_id(), "ids that are kept are never given again");
        let notices = once(buffer.take_notices());
        let rows = rows_of(buffer.writes());
        let next = || Arc::new(Catalog::clone(&last).at_version(catalog.version() + 1));
        let changed = is_private(last.version()).then(next);
        Ok(Some(Made { rows, catalog: changed, cleared, notices }))
    }

    /// Whether a step has the result that its client was told.
    fn step_again(&self, step: &Step, again: &mut Again<'_>) -> Result<bool> {
        match step {
            Step::Savepoint => {
                again.savepoints.push((again.buffer.savepoint(), again.defined.clone()));
            }
            Step::RollBack(number) => {
                let (mark, defined) = again.savepoints[*number as usize].clone();
                again.buffer.roll_back(mark);
                again.defined = defined;
            }
            Step::Constraints(set) => {
                let context = self.context_of(Vec::new(), &Zone::utc(), &again.shared.options);
                let result = set.run(&mut again.buffer, &mut again.read, &context);
                return Ok(result.is_ok() == set.holds);
            }
            Step::Run(_) | Step::Passing(..) | Step::Given(..) => {
                return self.run_again(step, again);
            }
        }
        Ok(true)
    }

    fn run_again(&self, step: &Step, again: &mut Again<'_>) -> Result<bool> {
        let (run, _) = step.run().expect("it is a statement");
        let planned = self.plans[run.plan as usize].planned.as_ref();
        let plan = &planned.expect("definitions are no such steps").plan;
        let parameters = run.parameters.iter().map(|value| value.0.clone()).collect();
        let zone = &self.zones[run.zone as usize];
        let context = self.context_of(parameters, zone, &again.shared.options);
        let told = run.told.as_ref().expect("its client was told");
        let mut rows = BlockRows::of(&mut again.read, step);
        let mark = again.buffer.savepoint();
        let mut overlay = Overlay::over(&mut rows, std::mem::take(&mut again.buffer));
        let result = sql::run::run(plan, &context, &mut overlay);
        again.buffer = overlay.into_buffer();
        let own = again.buffer.temporary_since(mark);
        if result.is_err() || !own.is_empty() {
            // What has failed has written nothing, but may have notified listeners.
            again.buffer.roll_back(mark);
        }
        let is_short = rows.is_short;
        if let Some(base) = &self.base {
            count_given(base, &told.numbers, &mut again.read.given);
        }
        Ok(!is_short && digest_with(result, &own) == told.digest)
    }
}

impl Again<'_> {
    fn define(&mut self, statement: &Statement, context: &Context) -> Digest {
        let (rows, buffer) = (&mut self.read, &mut self.buffer);
        self.defined.define(self.shared, statement, context, rows, buffer).1
    }
}
