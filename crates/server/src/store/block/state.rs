//! The state of an open block: its statements with the answers that the client has seen, and its
//! writes.

use super::super::call::{Call, ZoneForm};
use super::super::claims::{Claimed, Claiming, Holding, Wanted, refused};
use super::super::options::{COPY_STEPS_TIMES, STEPS_AT_ONCE, StoreOptions};
#[cfg(test)]
use super::super::panics;
use super::super::pending::{Answer, keep_rows};
use super::super::rows::ReadRows;
use super::super::shared::{Shared, is_private};
use super::super::statement::{Planned, Statement};
use super::super::temporary::TemporaryState;
use super::defined::{DefineStep, Defined};
use super::form::{Block, Constraints, RunStep, Step, Told, WriteKeys, differing, digest_with};
use super::loaded::Loaded;
use super::numbers::Stock;
use super::operation::{Modes, Run};
use super::reads::{Below, BlockReads, Tried};
use nvcaracal::Snapshot;
use sql::Grant;
use sql::catalog::{Catalog, Temporary};
use sql::ir::{ObjectId, Space, Value};
use sql::run::{Buffer, Context, Limits, Overlay, TemporaryRows};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use values::{Datum, Error, Result, SqlState, Timestamp, Zone};

/// The maximum number of statements of a block.
const STATEMENTS_MAX: usize = 10_000;
/// The maximum number of bytes of its statements and their parameters.
const BYTES_MAX: usize = 60 << 20;
/// The maximum number of rows that a block declares. With more its call runs alone.
const DECLARED_MAX: usize = 10_000;
/// The factor by which a COMMIT may exceed the steps of its statements.
const COMMIT_STEPS: u64 = 2;
/// The number of bytes of a statement in a call, without its parameters.
const STEP_BYTES: usize = 64;

struct Savepoint {
    name: String,
    mark: usize,
    number: u32,
    /// How many claims the block had.
    claims: usize,
    defined: Option<Defined>,
    temporary: Option<Arc<Temporary>>,
}

/// What a statement took beside its parameters.
struct Inputs {
    /// The numbers of sequences, in order.
    numbers: BTreeMap<ObjectId, Vec<u64>>,
    /// The keys of the rows that it passed by, as others had claimed them.
    passed: Vec<Vec<u8>>,
    /// The rows that it has read of temporary tables, if it writes others.
    given: Option<TemporaryRows>,
    /// The mark of the writes before it.
    mark: usize,
}

/// A block.
pub(in super::super) struct BlockState {
    pub(super) modes: Modes,
    pub(super) now: Timestamp,
    /// The snapshot of all statements, from the first one on, if the level has one.
    pub(super) snapshot: Option<Snapshot>,
    /// The version of the catalog for which the last statement was planned.
    version: u64,
    /// Whether a statement has run.
    pub(super) has_run: bool,
    /// Whether a statement has panicked: only ROLLBACK is possible.
    pub(super) is_broken: bool,
    pub(super) plans: Vec<Arc<Statement>>,
    /// The index of each plan, by the address of its statement.
    places: HashMap<usize, u32>,
    pub(super) zones: Vec<Zone>,
    pub(super) steps: Vec<Step>,
    pub(super) buffer: Buffer,
    /// What it has of the statements' memory for what it writes and is to log.
    memory: Arc<Grant>,
    /// That of the rows of its last statement.
    answer_memory: Option<Arc<Grant>>,
    savepoints: Vec<Savepoint>,
    savepoints_made: u32,
    pub(super) numbers: Stock,
    /// The rows and tables that it keeps from other blocks.
    pub(super) holding: Option<Holding>,
    work_done: u64,
    /// The steps of COPY, which are bounded by its bytes.
    copy_work: u64,
    bytes: usize,
    /// The error of further writes, once its statements exceed a limit.
    full: Option<Error>,
    /// The error of COMMIT, once the client has seen an answer that COMMIT cannot compare.
    barred: Option<Error>,
    /// The first version of the catalog on which an answer to the client depends.
    pub(super) catalog_seen: Option<u64>,
    /// The catalog at its first definition, the only one on which the block can commit.
    pub(super) base: Option<Arc<Catalog>>,
    /// The version of the catalog of all that has nothing else than the base.
    pub(super) base_version: u64,
    /// The first id that no object of that has had.
    pub(super) base_next_id: ObjectId,
    /// The tables that its definitions have scanned.
    pub(super) passed: BTreeSet<ObjectId>,
    pub(super) defined: Option<Defined>,
    pub(super) defines: Vec<DefineStep>,
    pub(super) loads: Vec<Loaded>,
    /// Whether a COPY has written some of its rows.
    pub(super) is_loading: bool,
    /// How many numbers clients were told of sequences that the block has made itself.
    pub(super) given: BTreeMap<ObjectId, u64>,
    /// How many numbers sequences had given when its definitions asked.
    pub(super) asked: BTreeMap<ObjectId, u64>,
    /// The temporary objects of the session, as it has changed them, with the rows of before.
    pub(super) temporary: TemporaryState,
    /// Whether it is of one statement that writes nothing but rows of those.
    pub(super) is_alone: bool,
}

/// The error of a statement for which earlier ones of its block have left too few steps.
fn too_many_steps(steps_max: u64) -> Error {
    let message = format!(
        "the statements of a block that writes do more than {steps_max} steps, which COMMIT \
         does again"
    );
    Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .with_hint("Commit more often, or read in another block what the writes do not need.")
}

impl BlockState {
    pub(super) fn new(
        modes: Modes,
        now: Timestamp,
        numbers: Stock,
        memory: Arc<Grant>,
        holding: Holding,
    ) -> BlockState {
        BlockState {
            modes,
            now,
            snapshot: None,
            version: 0,
            has_run: false,
            is_broken: false,
            plans: Vec::new(),
            places: HashMap::new(),
            zones: Vec::new(),
            steps: Vec::new(),
            buffer: Buffer::of_block(),
            memory,
            answer_memory: None,
            savepoints: Vec::new(),
            savepoints_made: 0,
            numbers,
            holding: Some(holding),
            work_done: 0,
            copy_work: 0,
            bytes: 0,
            full: None,
            barred: None,
            catalog_seen: None,
            base: None,
            base_version: 0,
            base_next_id: ObjectId::new(0),
            passed: BTreeSet::new(),
            defined: None,
            defines: Vec::new(),
            loads: Vec::new(),
            is_loading: false,
            given: BTreeMap::new(),
            asked: BTreeMap::new(),
            temporary: TemporaryState::default(),
            is_alone: false,
        }
    }

    /// Drops the snapshot after a change of the catalog, if no statement has read it yet.
    pub(super) fn forget_first_snapshot(&mut self) {
        if !self.has_run {
            self.snapshot = None;
        }
    }

    /// Whether COMMIT is a call: it has written rows that are not temporary, or notifies listeners.
    pub(super) fn has_written(&self) -> bool {
        self.buffer.has_lasting_writes() || self.buffer.notifies()
    }

    /// Whether its COMMIT can have no effect, so that answers need no comparison.
    pub(super) fn only_reads(&self) -> bool {
        let is_barred = self.barred.is_some() || self.is_alone;
        is_barred || self.modes.is_read_only && !self.has_written()
    }

    /// Records that an answer to the client depends on this version of the catalog.
    pub(in super::super) fn saw_catalog(&mut self, version: u64) {
        // After a definition it is the private one of the block, which commits only on its base.
        if self.base.is_none() {
            self.catalog_seen.get_or_insert(version);
        }
    }

    /// Checks whether it can commit its writes.
    pub(super) fn check_commit(&self) -> Result<()> {
        self.barred.clone().map_or(Ok(()), Err)
    }

    /// Bars COMMIT after an error of a limit or of the machine, which no second run reproduces.
    pub(super) fn bar_commit(&mut self, error: &Error) {
        let only_reads = self.only_reads();
        if only_reads || !is_of_limits(error.state()) {
            return;
        }
        let message = format!(
            "the block cannot commit, as a statement of it has met a limit: {}",
            error.message()
        );
        let hint = "Roll the block back, and begin another one without that statement.";
        self.barred = Some(Error::new(error.state(), message).with_hint(hint));
    }

    /// Checks whether a statement may run, which was planned for this catalog.
    pub(super) fn check(
        &mut self,
        shared: &Shared,
        catalog: &Arc<Catalog>,
        statement: &Statement,
        run: &Run,
    ) -> Result<()> {
        let planned = statement.planned.as_ref().expect("it is no definition");
        let is_query = planned.plan.is_query();
        self.check_kind(statement, planned)?;
        if self.base.is_none() {
            self.follow(shared, catalog)?;
        }
        self.version = statement.version;
        let has_effect = !is_query && !statement.is_own() || planned.notifies;
        if has_effect {
            self.check_commit()?;
        }
        match self.check_room(run) {
            Err(error) if self.has_written() || has_effect => Err(error),
            _ => Ok(()),
        }
    }

    /// Goes on with this catalog: with definitions of its own only on their base, else by
    /// [`BlockState::follow`].
    ///
    /// # Errors
    /// That it belongs to an earlier catalog.
    pub(super) fn go_on(&mut self, shared: &Shared, catalog: &Arc<Catalog>) -> Result<()> {
        if self.has_lost_base(catalog) {
            return Err(moved());
        }
        match self.base {
            Some(_) => Ok(()),
            None => self.follow(shared, catalog),
        }
    }

    /// Moves to this catalog after definitions of other connections. Its writes stay valid if the
    /// plans that made them are the same for this catalog.
    ///
    /// # Errors
    /// That its snapshot or a write belongs to the earlier catalog.
    pub(super) fn follow(&mut self, shared: &Shared, catalog: &Arc<Catalog>) -> Result<()> {
        let version = catalog.version();
        if self.modes.keeps_snapshot && self.has_seen_another(version) {
            return Err(moved());
        }
        if !self.has_run || self.version == version {
            self.version = version;
            return Ok(());
        }
        if self.snapshot.is_some() || self.has_written() && self.has_seen_another(version) {
            return Err(moved());
        }
        if self.has_written() {
            self.renew_writes(shared, catalog)?;
        }
        self.version = version;
        Ok(())
    }

    /// Plans the writing statements again, and fails if a plan has changed.
    fn renew_writes(&mut self, shared: &Shared, catalog: &Arc<Catalog>) -> Result<()> {
        for statement in self.stale_plans(catalog.version()) {
            let planned = statement.planned.as_ref().expect("definitions are no steps");
            if planned.plan.is_query() {
                // COMMIT compares its answer.
                continue;
            }
            match shared.again(statement, catalog) {
                Ok(again) if bytes(&again) == &planned.bytes[..] => *statement = again,
                Ok(_) | Err(_) => return Err(moved()),
            }
        }
        let place = |(at, plan): (usize, &Arc<Statement>)| (Arc::as_ptr(plan).addr(), at as u32);
        self.places = self.plans.iter().enumerate().map(place).collect();
        Ok(())
    }

    /// Refuses a statement that would exceed the size of a call.
    pub(super) fn check_room(&mut self, run: &Run) -> Result<()> {
        if self.full.is_none() {
            self.full = self.beyond(step_bytes(run));
        }
        self.full.clone().map_or(Ok(()), Err)
    }

    /// Returns the error of a block with `more_bytes` that exceeds the size of a call.
    pub(super) fn beyond(&self, more_bytes: usize) -> Option<Error> {
        let message = if self.steps.len() + self.defines.len() >= STATEMENTS_MAX {
            format!("a block has more than {STATEMENTS_MAX} statements")
        } else if self.bytes + more_bytes > BYTES_MAX {
            format!("the statements of a block have more than {BYTES_MAX} bytes")
        } else {
            return None;
        };
        let hint = "Commit more often, or begin blocks that only read with READ ONLY.";
        Some(Error::new(SqlState::LIMIT_EXCEEDED, message).with_hint(hint))
    }

    /// Runs a statement that was checked.
    pub(super) fn attempt(
        &mut self,
        shared: &Shared,
        statement: &Arc<Statement>,
        run: &Run,
        below: Below<'_>,
    ) -> Tried {
        #[cfg(test)]
        panics::planted(panics::Place::Block, statement.parsed.text());
        let planned = statement.planned.as_ref().expect("it is no definition");
        let (options, is_copy) = (&shared.options, planned.plan.is_copy());
        let steps_max = self.steps_max(statement, planned, options);
        let is_limited = below.watch.is_none() && steps_max > STEPS_AT_ONCE;
        let (steps, since) = (below.steps(shared, steps_max), below.since);
        let given = match self.given(statement) {
            Ok(given) => given,
            Err(error) => return Tried::Done(Err(error)),
        };
        let read =
            ReadRows::new(&shared.spaces, below.reads, steps).with_temporary(&self.temporary);
        // What does little collects little.
        let grant = below.watch.is_some().then(|| shared.memory.grant());
        let system = planned.system(&run.session, run.services.clone());
        let context = Context { system, grant: grant.clone(), ..self.context(run, options) };
        let claiming = self.holding.as_ref().and_then(|own| Claiming::of(own, &planned.claims));
        let mut rows = BlockReads::new(read, below.gets_max, &self.numbers, claiming);
        let mark = self.buffer.savepoint();
        let mut overlay = Overlay::over(&mut rows, std::mem::take(&mut self.buffer));
        let result = sql::run::run(&planned.plan, &context, &mut overlay);
        self.buffer = overlay.into_buffer();
        let was_refused = grant.as_ref().is_some_and(|grant| grant.was_refused());
        self.answer_memory = grant.inspect(|grant| keep_rows(grant, &result));
        let (is_over, is_ended) = (rows.is_over, rows.read.steps.is_ended());
        let is_later = rows.read.is_later() || is_limited && rows.read.steps.is_over();
        let (used, own_numbers, is_short) = (rows.used, rows.own_numbers, rows.is_short);
        let (wanted, passed) = rows.claiming.map(Claiming::end).unwrap_or_default();
        let (work, is_beyond) = (rows.read.steps.done(), rows.read.steps.is_over());
        let is_later = is_over || is_later || run.waits();
        if is_later || is_short {
            self.buffer.roll_back(mark);
            return if is_later { Tried::Later } else { Tried::Short(used) };
        }
        let is_claiming = result.is_ok() && !is_ended;
        let without = is_claiming.then(|| self.claim(shared, &wanted, since)).flatten();
        if result.is_err() || is_ended || without.is_some() {
            // What has failed has written nothing, but may have notified listeners.
            self.buffer.roll_back(mark);
        }
        if is_ended || without.is_some() {
            // An interrupt depends on no rows, nor do claims.
            return without.unwrap_or(Tried::Done(result));
        }
        self.has_run = true;
        if statement.is_of_session() && given.is_none() {
            let result = self.fitting(mark, result, options.memory_bytes_max);
            return Tried::Done(self.done_in_session(statement, &used, result));
        }
        let counted = if is_copy { &mut self.copy_work } else { &mut self.work_done };
        *counted = counted.saturating_add(work);
        let is_of_block = is_beyond && steps_max < options.steps_max;
        let result = if is_of_block { Err(too_many_steps(options.steps_max)) } else { result };
        let numbers = self.numbers.give(&used).into_iter().chain(own_numbers).collect();
        let is_repeated =
            !is_beyond && !was_refused && result.as_ref().err().is_none_or(comes_again);
        if let (Err(error), false) = (&result, is_repeated) {
            self.bar_commit(error);
        }
        let result = self.fitting(mark, result, options.memory_bytes_max);
        Tried::Done(self.record(statement, run, result, Inputs { numbers, passed, given, mark }))
    }

    /// Claims what a statement needs. Returns what it comes to instead, if it cannot have that.
    fn claim(&mut self, shared: &Shared, wanted: &[Wanted], since: u64) -> Option<Tried> {
        let holding = self.holding.as_mut().filter(|_| !wanted.is_empty())?;
        Some(match holding.claim(wanted, since) {
            Ok(Claimed::Held) => return None,
            Ok(Claimed::Changed) => Tried::Changed,
            Ok(Claimed::Blocked(target, mode)) => Tried::Blocked(target, mode),
            // These depend on no rows, and are not compared.
            Ok(Claimed::Refused(target)) => Tried::Done(Err(refused(shared, &target))),
            Err(error) => Tried::Done(Err(error)),
        })
    }

    /// Releases what it has claimed since its last savepoint: it has failed.
    pub(super) fn release_failed(&mut self) {
        let mark = self.savepoints.last().map_or(0, |savepoint| savepoint.claims);
        self.holding.iter_mut().for_each(|holding| holding.roll_back(mark));
    }

    /// Returns the steps that a statement may do. COMMIT never runs one of the catalog again.
    fn steps_max(&self, statement: &Statement, planned: &Planned, options: &StoreOptions) -> u64 {
        if statement.is_of_session() && !self.is_given(statement) {
            u64::MAX
        } else if planned.plan.is_copy() {
            options.steps_max.saturating_mul(COPY_STEPS_TIMES)
        } else if planned.plan.is_query() && (self.only_reads() || !self.has_written()) {
            options.steps_max
        } else {
            self.steps_left(options)
        }
    }

    /// Returns the steps that the statements of a block that writes have left.
    pub(super) fn steps_left(&self, options: &StoreOptions) -> u64 {
        options.steps_max.saturating_sub(self.work_done)
    }

    /// Counts steps that COMMIT does again.
    pub(super) fn count_work(&mut self, steps: u64) {
        self.work_done = self.work_done.saturating_add(steps);
    }

    /// Records SET CONSTRAINTS.
    pub(super) fn record_constraints(&mut self, constraints: Constraints) {
        self.has_run = true;
        if self.says_something() {
            self.bytes += STEP_BYTES + constraints.names.iter().map(String::len).sum::<usize>();
            self.steps.push(Step::Constraints(constraints));
        }
    }

    /// Returns the answer to the statement that was attempted last.
    pub(super) fn answer(&mut self, answer: sql::run::Answer) -> Answer {
        Answer::of(answer, self.answer_memory.take())
    }

    /// Returns the context of a statement.
    pub(super) fn context(&self, run: &Run, options: &StoreOptions) -> Context {
        self.context_of(run.parameters.clone(), &run.zone, options)
    }

    pub(super) fn context_of(
        &self,
        parameters: Vec<Datum>,
        zone: &Zone,
        options: &StoreOptions,
    ) -> Context {
        let memory_bytes_max = options.memory_bytes_max;
        let limits = Limits { memory_bytes_max, ..Limits::default() };
        let zone = zone.clone();
        Context { parameters, now: self.now, zone, limits, system: None, grant: None }
    }

    /// Undoes a statement after which the writes of the block exceed `bytes_max`.
    pub(super) fn fitting<T>(
        &mut self,
        mark: usize,
        result: Result<T>,
        bytes_max: usize,
    ) -> Result<T> {
        let bytes = self.buffer.bytes();
        let error = if bytes > bytes_max {
            let message = "a block writes more bytes than a statement may collect";
            Error::new(SqlState::OUT_OF_MEMORY, message).with_hint("Commit more often.")
        } else {
            match self.memory.grow_to(bytes + self.bytes) {
                Ok(()) => return result,
                Err(error) => error,
            }
        };
        self.buffer.roll_back(mark);
        // How many bytes it writes depends on what it has read.
        self.bar_commit(&error);
        Err(error)
    }

    /// Records a statement and its answer.
    fn record(
        &mut self,
        statement: &Arc<Statement>,
        run: &Run,
        result: Result<sql::run::Answer>,
        inputs: Inputs,
    ) -> Result<sql::run::Answer> {
        let Inputs { numbers, passed, given, mark } = inputs;
        if !self.says_something() {
            self.forget();
            return result;
        }
        let (plan, zone) = (self.plan_place(statement), self.zone_place(&run.zone));
        self.count_bytes(run);
        let parameters = run.parameters.iter().cloned().map(Value).collect();
        if let Some(base) = &self.base {
            count_given(base, &numbers, &mut self.given);
        }
        let written = self.buffer.temporary_since(mark.min(self.buffer.savepoint()));
        let told = Told { digest: digest_with(result.clone(), &written), numbers };
        let given = given.unwrap_or_default();
        self.bytes += passed.iter().map(Vec::len).sum::<usize>() + given.bytes();
        let run = RunStep { plan, zone, parameters, told: Some(told) };
        self.steps.push(Step::of_run(run, passed, given));
        result
    }

    /// Whether answers are to be compared at COMMIT: unless it can have no effect.
    pub(super) fn says_something(&self) -> bool {
        let is_full = self.full.is_some();
        assert!(!is_full || !self.has_written(), "a block that has written refuses what is beyond");
        !is_full && !self.only_reads()
    }

    /// Adds the bytes of a statement to those of the call.
    pub(super) fn count_bytes(&mut self, run: &Run) {
        self.bytes += step_bytes(run);
    }

    /// Forgets the statements of a block that can only read from now on.
    fn forget(&mut self) {
        self.steps = Vec::new();
        self.plans = Vec::new();
        self.places = HashMap::new();
    }

    fn plan_place(&mut self, statement: &Arc<Statement>) -> u32 {
        let next = u32::try_from(self.plans.len()).expect("statements are limited");
        let place = *self.places.entry(Arc::as_ptr(statement).addr()).or_insert(next);
        if place == next {
            let planned = statement.planned.as_ref().map_or(0, |planned| planned.bytes.len());
            self.bytes += planned;
            self.plans.push(Arc::clone(statement));
        }
        place
    }

    fn zone_place(&mut self, zone: &Zone) -> u32 {
        let found = self.zones.iter().rposition(|own| own.name() == zone.name());
        let place = found.unwrap_or_else(|| {
            self.zones.push(zone.clone());
            self.zones.len() - 1
        });
        u32::try_from(place).expect("statements are limited")
    }

    pub(super) fn savepoint(&mut self, name: String) -> Result<()> {
        if let Some(error) = self.beyond(0) {
            return Err(error);
        }
        let (mark, number) = (self.buffer.savepoint(), self.savepoints_made);
        self.savepoints_made += 1;
        self.steps.push(Step::Savepoint);
        let defined = self.defined.clone();
        let temporary = self.temporary.objects.clone();
        let claims = self.holding.as_ref().map_or(0, Holding::mark);
        self.savepoints.push(Savepoint { name, mark, number, claims, defined, temporary });
        Ok(())
    }

    /// Rolls back to the last savepoint of this name. Answers since then are still compared at
    /// COMMIT, as the client has seen them.
    pub(super) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let at = self.find(name)?;
        self.savepoints.truncate(at + 1);
        let Savepoint { mark, number, claims, ref defined, ref temporary, .. } =
            self.savepoints[at];
        self.holding.iter_mut().for_each(|holding| holding.roll_back(claims));
        assert!(mark <= self.buffer.savepoint(), "what is rolled back was written since");
        self.buffer.roll_back(mark);
        self.defined = defined.clone();
        self.temporary.objects = temporary.clone();
        self.steps.push(Step::RollBack(number));
        Ok(())
    }

    pub(super) fn release(&mut self, name: &str) -> Result<()> {
        let at = self.find(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }

    /// Whether it has a savepoint.
    pub(super) fn has_savepoint(&self) -> bool {
        !self.savepoints.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.savepoints.iter().rposition(|own| own.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            Error::new(SqlState::UNDEFINED_SAVEPOINT, message)
        })
    }

    /// Whether an answer depends on another version of the catalog than this one.
    pub(super) fn has_seen_another(&self, version: u64) -> bool {
        self.catalog_seen.is_some_and(|seen| seen != version)
    }

    /// Returns the statements planned for another version of the catalog that is not private.
    pub(super) fn stale_plans(
        &mut self,
        version: u64,
    ) -> impl Iterator<Item = &mut Arc<Statement>> {
        let is_stale = move |own: u64| own != version && !is_private(own);
        self.plans.iter_mut().filter(move |statement| is_stale(statement.version))
    }

    /// Returns its private catalog, with its definitions.
    pub(in super::super) fn own_catalog(&self) -> Option<Arc<Catalog>> {
        self.defined.as_ref().map(|defined| Arc::clone(&defined.catalog))
    }

    /// Whether it has run a definition, including those rolled back to a savepoint.
    pub(super) fn has_defined(&self) -> bool {
        !self.defines.is_empty()
    }

    /// Whether all its plans are for this version of the catalog.
    pub(super) fn is_of(&self, version: u64) -> bool {
        self.plans.iter().all(|statement| statement.version == version)
    }

    /// Encodes the call that commits it. The call declares the rows that the block has written: it
    /// writes these, or fails because an answer has changed.
    pub(super) fn encode(&mut self, options: &StoreOptions) -> Vec<u8> {
        let is_large = self.is_large();
        let keys = || {
            let key = |((space, key), row): (&(Space, Vec<u8>), &Option<Vec<u8>>)| {
                (*space, key.clone(), row.is_none())
            };
            self.buffer.lasting_writes().map(key).collect()
        };
        let writes = if is_large { WriteKeys::Unknown } else { WriteKeys::These(keys()) };
        let steps = std::mem::take(&mut self.steps);
        let call = Call::Block(Block {
            writes,
            numbers: BTreeMap::new(),
            now: self.now.bits(),
            steps_max: options
                .steps_max
                .saturating_add(self.copy_work)
                .saturating_mul(COMMIT_STEPS),
            memory_bytes_max: options.memory_bytes_max as u64,
            plans: self.plans.iter().map(|statement| bytes(statement)).collect(),
            zones: self.zones.iter().map(ZoneForm::of).collect(),
            steps,
        });
        let bytes = call.encode();
        if let Call::Block(block) = call {
            self.steps = block.steps;
        }
        bytes
    }

    /// Returns the tables whose rows it may write.
    pub(super) fn writes(&self) -> BTreeSet<ObjectId> {
        let planned = self.plans.iter().filter_map(|statement| statement.planned.as_ref());
        planned.flat_map(|planned| planned.writes.iter().copied()).collect()
    }

    /// Whether its call runs alone.
    pub(super) fn is_large(&self) -> bool {
        self.buffer.lasting_writes().nth(DECLARED_MAX).is_some()
    }

    /// Returns the answer to COMMIT, from that of its call.
    pub(super) fn committed(&self, answer: nvcaracal::Result<Vec<u8>>) -> Result<Answer> {
        let error = match answer {
            Ok(_) => return Ok(said("COMMIT")),
            Err(error) => error,
        };
        let Some(at) = differing(&error) else {
            return Err(super::super::failure::of_call(&error));
        };
        Err(conflict(self.runs_before(at) + 1, &self.shown(at)))
    }

    /// Counts the statements before a step.
    pub(super) fn runs_before(&self, at: usize) -> usize {
        self.steps.iter().take(at).filter(|step| step.run().is_some()).count()
    }

    /// Returns the text of the statement of a step.
    pub(super) fn shown(&self, at: usize) -> String {
        if let Some(Step::Constraints(_)) = self.steps.get(at) {
            return "SET CONSTRAINTS".to_owned();
        }
        let run = self.steps.get(at).and_then(Step::run);
        let text = run.and_then(|(run, _)| self.plans.get(run.plan as usize));
        let text = text.map(|plan| plan.shown());
        text.unwrap_or_default()
    }
}

/// Returns the error of COMMIT if statement `number` has another answer than the client has seen.
pub(super) fn conflict(number: usize, text: &str) -> Error {
    let message = "could not serialize access due to concurrent update";
    Error::new(SqlState::SERIALIZATION_FAILURE, message)
        .with_detail(format!("Statement {number} of the block has another result now: {text}"))
        .with_hint("Run the block again.")
}

fn bytes(statement: &Statement) -> &[u8] {
    let planned: &Planned = statement.planned.as_ref().expect("definitions are no steps");
    &planned.bytes
}

/// Estimates the bytes of a statement in a call, without its plan.
fn step_bytes(run: &Run) -> usize {
    STEP_BYTES + run.parameters.iter().map(Datum::memory_bytes).sum::<usize>()
}

/// Counts numbers taken of sequences that the base of a block does not have.
pub(super) fn count_given(
    base: &Catalog,
    numbers: &BTreeMap<ObjectId, Vec<u64>>,
    given: &mut BTreeMap<ObjectId, u64>,
) {
    for (id, numbers) in numbers.iter().filter(|(id, _)| **id >= base.next_id()) {
        *given.entry(*id).or_default() += numbers.len() as u64;
    }
}

/// Returns an answer of a command tag alone.
pub(super) fn said(tag: &str) -> Answer {
    Answer { tag: tag.to_owned(), ..Answer::default() }
}

/// Returns the error of a block that a definition has made obsolete.
pub(super) fn moved() -> Error {
    let message = "could not serialize access due to a definition since the block began";
    Error::new(SqlState::SERIALIZATION_FAILURE, message).with_hint("Run the block again.")
}

/// Whether an error is one of a limit or of the machine.
fn is_of_limits(state: SqlState) -> bool {
    matches!(&state.code()[..2], "53" | "54" | "57" | "58" | "72" | "XX")
}

/// Whether a statement fails with this error again if it reads the same rows. Its call has the same
/// limits of values and of memory.
pub(super) fn comes_again(error: &Error) -> bool {
    let state = error.state();
    !is_of_limits(state) || state == SqlState::OUT_OF_MEMORY || state.code().starts_with("54")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_limits_and_of_the_machine_do_not_come_again() {
        let comes = |state| comes_again(&Error::new(state, "so"));
        for state in [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DIVISION_BY_ZERO,
            SqlState::LIMIT_EXCEEDED,
            SqlState::OUT_OF_MEMORY,
        ] {
            assert!(comes(state), "{}", state.code());
        }
        for state in
            [SqlState::INTERNAL, SqlState::QUERY_CANCELED, SqlState::DISK_FULL, SqlState::IO_ERROR]
        {
            assert!(!comes(state), "{}", state.code());
        }
    }
}
