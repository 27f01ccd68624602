//! Temporary objects in a block, and statements of them outside of blocks. Their rows are among the
//! block's writes until it ends, so that savepoints go back; then they are the session's. COMMIT
//! runs no statement of them again.

use super::super::claims::Holding;
use super::super::pending::{Answer, Promise, Watch};
use super::super::pipeline::{Pipeline, Work};
use super::super::pool::lock;
use super::super::rows::{ReadRows, Reads, Steps};
use super::super::shared::Shared;
use super::super::statement::{Environment, Planned, Statement};
use super::super::temporary::{Left, TemporaryState, Use, given};
use super::operation::{Modes, Results, Run, Together};
use super::state::{BlockState, count_given, said};
use nvcaracal::Snapshot;
use sql::catalog::{Catalog, Temporary};
use sql::ir::ObjectId;
use sql::run::{Context, Limits, Overlay, TemporaryRows, is_temporary_key};
use sql::{Definition, Grant};
use std::collections::BTreeMap;
use std::sync::Arc;
use values::{Error, Result, SqlState, Timestamp};

/// What a block leaves of temporary objects, and the memory of their rows.
pub(super) type Leaves = Option<(Left, Option<Arc<Grant>>)>;

impl BlockState {
    /// Runs a definition of temporary objects over these of the block.
    fn define_temporary(
        &mut self,
        shared: &Shared,
        run: &Run,
        before: &Temporary,
        snapshot: &Snapshot,
        catalog: &Catalog,
        watch: &Watch,
    ) -> Result<Definition> {
        // The rows are bounded by the memory of what a block writes.
        let context = self.context(run, &shared.options);
        let limits = Limits { filled_rows_max: usize::MAX, ..context.limits };
        let context = Context { limits, ..context };
        let steps = Steps::watched(u64::MAX, &shared.pool, watch.clone());
        let reads = Reads::Snapshot(snapshot);
        let mut rows = ReadRows::new(&shared.spaces, reads, steps).with_temporary(&self.temporary);
        let mark = self.buffer.savepoint();
        let mut overlay = Overlay::over(&mut rows, std::mem::take(&mut self.buffer));
        let tree = run.statement.parsed.tree();
        let made = sql::define(catalog, tree, &context, &mut overlay);
        self.buffer = overlay.into_buffer();
        self.has_run = true;
        let made = made.and_then(|made| {
            let made = made.ok_or_else(|| Error::unsupported("this definition", ""))?;
            let next = before.with(&made.delta, tree.on_commit(), shared.private_version())?;
            Ok((made, next))
        });
        let result = made.inspect_err(|_| self.buffer.roll_back(mark));
        let (made, next) = self.fitting(mark, result, shared.options.memory_bytes_max)?;
        if self.modes.is_read_only {
            self.buffer.roll_back(mark);
            let message = format!("cannot execute {} in a read-only transaction", made.tag);
            return Err(Error::new(SqlState::READ_ONLY_TRANSACTION, message));
        }
        if !made.delta.is_empty() {
            self.temporary.define(before, next);
        }
        Ok(made)
    }

    /// The result of a statement that COMMIT does not run again.
    pub(super) fn done_in_session(
        &mut self,
        statement: &Statement,
        used: &BTreeMap<ObjectId, usize>,
        result: Result<sql::run::Answer>,
    ) -> Result<sql::run::Answer> {
        let numbers = self.numbers.give(used);
        if let Some(base) = &self.base {
            count_given(base, &numbers, &mut self.given);
        }
        // A snapshot is of one catalog, on which its block commits. At READ COMMITTED each query
        // reads the newest, as on PostgreSQL.
        if statement.shows_catalog() && self.modes.keeps_snapshot {
            self.saw_catalog(statement.version);
        }
        result
    }

    /// Whether COMMIT runs a statement again with the rows of temporary tables that it has read: it
    /// writes other tables, or it reads some, and what comes of them is compared.
    pub(super) fn is_given(&self, statement: &Statement) -> bool {
        self.given(statement).is_ok_and(|given| given.is_some())
    }

    /// The rows of temporary tables that COMMIT gives a statement, if it runs that again.
    ///
    /// # Errors
    /// That a statement which writes other tables reads too many.
    pub(super) fn given(&self, statement: &Statement) -> Result<Option<TemporaryRows>> {
        let Some(planned) = &statement.planned else { return Ok(None) };
        match planned.temporary {
            Use::No => Ok(None),
            Use::Given => self.given_to(planned).map(Some),
            Use::Own => {
                let is_compared = planned.needs_rows() && !self.only_reads();
                let is_compared = is_compared && !statement.needs_system();
                Ok(is_compared.then(|| self.given_to(planned).ok()).flatten())
            }
        }
    }

    /// The rows of temporary tables that a statement is given.
    ///
    /// # Errors
    /// That the block would be larger than a call with them.
    fn given_to(&self, planned: &Planned) -> Result<TemporaryRows> {
        let given = given(&planned.places, &self.temporary, self.buffer.writes())?;
        let error = self.beyond(given.bytes()).filter(|_| !given.is_empty());
        error.map_or(Ok(given), Err)
    }

    /// The rows of temporary tables that it has written go to the session.
    fn leaves(
        &mut self,
        shared: &Shared,
        before: &TemporaryState,
        base: &Arc<Catalog>,
    ) -> Result<Leaves> {
        if self.temporary.objects.is_none() {
            return Ok(None);
        }
        let writes = self.buffer.take_writes(is_temporary_key);
        let memory = || shared.memory.grant();
        let next =
            |objects: &Temporary| sql::dropped_on_commit(objects, base, shared.private_version());
        self.temporary.left(before, writes, memory, next)
    }
}

impl Pipeline {
    /// The temporary objects of the session and their rows, as its last transaction left them.
    pub(in super::super) fn temporary(&self) -> TemporaryState {
        lock(&self.temporary).clone()
    }

    /// The temporary objects of the open block, or of the session.
    pub(in super::super) fn temporary_objects(&self) -> Option<Arc<Temporary>> {
        let block = lock(&self.block);
        let of_block = block.as_ref().map(|block| block.temporary.objects.clone());
        of_block.unwrap_or_else(|| lock(&self.temporary).objects.clone())
    }

    /// Whether a statement was planned with the temporary objects of now.
    pub(in super::super) fn is_of_objects(&self, statement: &Statement) -> bool {
        statement.environment.version() == lock(&self.temporary).version()
    }

    /// A block that begins.
    pub(super) fn new_block(&self, modes: Modes, now: Timestamp) -> BlockState {
        let numbers = std::mem::take(&mut *lock(&self.numbers));
        let (memory, claims) = (&self.shared.memory, &self.shared.claims);
        let holding: Holding = claims.holding(self.number, memory.grant());
        let mut block = BlockState::new(modes, now, numbers, memory.grant(), holding);
        block.temporary = self.temporary();
        block
    }

    /// Drops all temporary objects of the session.
    pub(super) fn discard_temporary(&self, block: Option<&mut BlockState>) -> Answer {
        let version = self.shared.private_version();
        match block {
            Some(block) => block.temporary.discard(version),
            None => lock(&self.temporary).clear(version),
        }
        said("DISCARD TEMP")
    }

    /// Runs a definition of temporary objects in a block.
    pub(super) async fn define_own(
        &self,
        block: &mut BlockState,
        run: &Run,
        watch: &Watch,
    ) -> Result<Answer> {
        let shared = &self.shared;
        self.all_answered().await;
        let before = block.temporary.objects.clone();
        let new = || Arc::new(Temporary::new(self.number, shared.private_version()));
        let before = before.unwrap_or_else(new);
        let environment = &run.statement.environment;
        let environment =
            Environment { temporary: Some(Arc::clone(&before)), ..environment.clone() };
        let (catalog, snapshot) = self.catalog_and_snapshot(block, watch).await?;
        let known = block.own_catalog().unwrap_or(catalog);
        let over = Catalog::clone(&environment.over(&known)).at_next_id(before.next_id());
        let queries = self.query_of(block, &known, run).await?;
        self.read_whole(block, &queries, Some(&snapshot), watch)?;
        let made = block.define_temporary(shared, run, &before, &snapshot, &over, watch)?;
        let (tag, rows, notice) = (made.shown_tag(), made.rows, made.notice);
        Ok(Answer { tag, rows, notice, ..Answer::default() })
    }

    /// The query whose rows a definition takes, or its tables, if COMMIT compares what it read.
    async fn query_of(
        &self,
        block: &BlockState,
        known: &Arc<Catalog>,
        run: &Run,
    ) -> Result<Vec<Run>> {
        let statement = &run.statement;
        let query = statement.parsed.tree().query_of_table().filter(|_| !block.only_reads());
        let Some(query) = query else { return Ok(Vec::new()) };
        let types: Vec<_> = statement.parameters.iter().map(|ty| Some(*ty)).collect();
        let environment = Environment {
            temporary: block.temporary.objects.clone(),
            ..statement.environment.clone()
        };
        let parsed = statement.parsed.part(query);
        let query = Statement::plan(&parsed, &types, &environment, known)?;
        let planned = query.planned.as_ref().expect("a query is no definition");
        if !planned.needs_rows() || block.reads_beside_tables(&query) {
            return self.queries_of_tables(block, known, &query, run).await;
        }
        let (parameters, zone) = (run.parameters.clone(), run.zone.clone());
        Ok(vec![Run::new(query, parameters, zone, Arc::clone(&run.session), None)])
    }

    /// Runs a statement of temporary objects outside of blocks: a block of nothing else.
    pub(in super::super) async fn run_alone(
        &self,
        work: &Work,
        statement: &Arc<Statement>,
        watch: &Watch,
    ) -> Result<Answer> {
        let services = statement.needs_system().then(|| self.services());
        let (parameters, session) = (work.parameters.clone(), Arc::clone(&work.session));
        let run = Run::new(Arc::clone(statement), parameters, work.zone.clone(), session, services);
        let mut block = self.new_block(Modes::default(), work.now);
        block.is_alone = true;
        let answer = self.run_in(&mut block, &run, watch).await;
        let mut block = self.end(block);
        let answer = answer?;
        let left = self.leaves_of(&mut block)?;
        self.take_left(left);
        Ok(answer)
    }

    /// Runs a statement outside of blocks that is given rows of temporary tables: a call of it
    /// alone.
    pub(in super::super) async fn run_given(
        &self,
        work: &Work,
        statement: &Arc<Statement>,
    ) -> Result<Answer> {
        let (parameters, session) = (work.parameters.clone(), Arc::clone(&work.session));
        let run = Run::new(Arc::clone(statement), parameters, work.zone.clone(), session, None);
        let (promise, pending) = Promise::new(work.promise.interrupt());
        let results = Results::default();
        let together = Together::new(vec![run], work.now, results.clone());
        self.together(together, promise).await;
        pending.await?;
        let mut answers = results.take().into_iter().collect::<Result<Vec<Answer>>>()?;
        answers.pop().ok_or_else(|| Error::corrupted("answer of a call is damaged"))
    }

    /// What a block that is about to commit leaves of temporary objects.
    pub(super) fn leaves_of(&self, block: &mut BlockState) -> Result<Leaves> {
        let base = block.own_catalog().unwrap_or_else(|| self.shared.catalog());
        // The rows of the session have one owner, who changes them in place.
        block.temporary.rows = Arc::default();
        block.leaves(&self.shared, &self.temporary(), &base)
    }

    /// A block has committed.
    pub(super) fn take_left(&self, left: Leaves) {
        if let Some(left) = left {
            lock(&self.temporary).take(left);
        }
    }
}
