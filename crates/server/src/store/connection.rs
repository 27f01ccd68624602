//! What one client does.

use super::advisory::LockEnd;
use super::block::{BlockOperation, Operation, Results, Run, Together};
use super::interrupt::{Cause, Interrupt};
use super::load::Parts;
use super::notices::Mailbox;
use super::pending::{Answer, Pending, Promise, Watch};
use super::pipeline::{Pipeline, Task, Work};
use super::pool::lock;
use super::shared::Shared;
use super::statement::{Environment, Parsed, Statement};
use sql::Grant;
use sql::MemoryPool;
use sql::catalog::Catalog;
use sql::parse::Explain;
use sql::system::Session;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use values::{Datum, Error, Result, SqlState, Timestamp, Type};

/// One client's connection: its statements take effect in the order in which they are submitted,
/// however many are under way.
pub struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) environment: Environment,
    pub(super) session: Arc<Session>,
    pub(super) ender: Ender,
    /// How long statements that are submitted from now on wait for locks.
    lock_timeout: Option<Duration>,
}

/// Ends what a connection does, while that is waited for.
#[derive(Clone, Default)]
pub(crate) struct Ender {
    connection: Arc<Interrupt>,
    message: Arc<Mutex<OfMessage>>,
}

/// What ends the statements of the message that is handled.
#[derive(Default)]
struct OfMessage {
    /// The interrupt of what was submitted last.
    last: Arc<Interrupt>,
    /// Why they end; `None` if they do not.
    ended: Option<Cause>,
}

impl Ender {
    /// A message begins, whose statements nothing has ended.
    pub(crate) fn begin_message(&self) {
        lock(&self.message).ended = None;
    }

    /// Ends what was submitted last, if it is no call yet, and what the message submits from now
    /// on.
    pub(crate) fn end_statement(&self, cause: Cause) {
        let mut message = lock(&self.message);
        message.ended.get_or_insert(cause);
        message.last.tell(cause);
    }

    /// Returns the error of a message whose statements were ended.
    fn check_ended(&self) -> Result<()> {
        lock(&self.message).ended.map_or(Ok(()), |cause| Err(cause.error()))
    }

    /// Ends all that computes, now or later.
    pub(crate) fn end(&self, cause: Cause) {
        self.connection.tell(cause);
    }

    /// What is done for the statement that was submitted last looks at this.
    pub(super) fn watch(&self) -> Watch {
        Watch::of(Arc::clone(&lock(&self.message).last))
    }

    /// That of a statement that is submitted now.
    pub(super) fn of_next(&self, lock_timeout: Option<Duration>) -> Arc<Interrupt> {
        let next = Interrupt::with_lock_timeout(&self.connection, lock_timeout);
        lock(&self.message).last = Arc::clone(&next);
        next
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Connection {
        let pipeline = Pipeline::new(Arc::clone(&shared));
        let (session, ender) = Default::default();
        let (environment, lock_timeout) = (Environment::default(), None);
        Connection { shared, pipeline, environment, session, ender, lock_timeout }
    }

    /// Ends what this connection does.
    pub(crate) fn ender(&self) -> Ender {
        self.ender.clone()
    }

    /// Returns the error of the message that is handled, if its statements were ended.
    ///
    /// # Errors
    /// Why they were.
    pub(crate) fn check_ended(&self) -> Result<()> {
        self.ender.check_ended()
    }

    fn promise(&self) -> (Promise, Pending) {
        Promise::new(self.ender.of_next(self.lock_timeout))
    }

    /// The memory that all statements share.
    pub(crate) fn memory(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.shared.memory)
    }

    /// The session's zone and path, for literals and names of statements that are prepared from
    /// now on, and for functions of those that are submitted.
    pub fn set_environment(&mut self, environment: Environment) {
        self.environment = environment;
    }

    /// How long statements that are submitted from now on wait for locks; `None` for ever.
    pub fn set_lock_timeout(&mut self, lock_timeout: Option<Duration>) {
        self.lock_timeout = lock_timeout;
    }

    /// The block has failed: what it has claimed since its last savepoint is others' again.
    pub(crate) fn release_failed(&self) {
        self.pipeline.release_failed();
    }

    /// Whether what is submitted next is waited for before more is submitted. Until then, and while
    /// no other connection submits anything, a small call runs on this thread.
    pub fn is_waited_for(&mut self, is_waited_for: bool) {
        self.pipeline.is_waited_for.store(is_waited_for, Ordering::Relaxed);
    }

    /// The name of the database.
    pub(crate) fn database(&self) -> &str {
        &self.shared.options.database
    }

    /// What the clock of the store says now.
    pub(crate) fn now(&self) -> Timestamp {
        (self.shared.options.clock)()
    }

    /// What queries of the session see, of those that are submitted from now on.
    pub fn set_session(&mut self, session: Session) {
        self.session = Arc::new(session);
    }

    /// The statements of a text, which semicolons separate; none of an empty one.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub async fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        self.shared.parse(text).await
    }

    /// Plans a statement; types that are not stated come from how parameters are used.
    ///
    /// # Errors
    /// What is wrong with the statement, and where.
    pub async fn prepare(&self, parsed: &Parsed, types: &[Option<Type>]) -> Result<Arc<Statement>> {
        self.prepare_in(parsed, types, &self.environment_now()).await
    }

    /// A block with definitions has a catalog of its own.
    async fn prepare_in(
        &self,
        parsed: &Parsed,
        types: &[Option<Type>],
        environment: &Environment,
    ) -> Result<Arc<Statement>> {
        match self.pipeline.own_catalog() {
            Some(catalog) => self.shared.plan_for(catalog, parsed, types, environment).await,
            None => self.shared.prepare(parsed, types, environment).await,
        }
    }

    /// The version of the catalog that all have.
    pub(crate) fn catalog_version(&self) -> u64 {
        self.shared.catalog().version()
    }

    /// The client was told something of this version of the catalog, in the block that is open.
    pub(crate) fn saw_catalog(&self, version: u64) {
        self.pipeline.saw_catalog(version);
    }

    /// The catalog of now along the session's path; of a block with definitions its own.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.environment_now().over(&self.catalog_of_all())
    }

    /// What statements have of the session now, with its temporary objects.
    fn environment_now(&self) -> Environment {
        Environment { temporary: self.pipeline.temporary_objects(), ..self.environment.clone() }
    }

    /// The catalog of now, whatever the path.
    fn catalog_of_all(&self) -> Arc<Catalog> {
        self.pipeline.own_catalog().unwrap_or_else(|| self.shared.catalog())
    }

    /// The statement for the catalog and the path of now; `None` if it is for them already.
    ///
    /// # Errors
    /// That it is another one than clients were told, or what is wrong with it by now.
    pub async fn renewed(&self, statement: &Statement) -> Result<Option<Arc<Statement>>> {
        let now = self.environment_now();
        let is_newest = || statement.version == self.catalog_of_all().version();
        let is_same = statement.environment.names_as(&now);
        if is_same && (statement.planned.is_none() || is_newest()) {
            return Ok(None);
        }
        let zone = statement.environment.zone.clone();
        let environment = Environment { zone, ..now };
        let types: Vec<_> = statement.parameters.iter().map(|ty| Some(*ty)).collect();
        let again = self.prepare_in(&statement.parsed, &types, &environment).await?;
        statement.check_same(&again)?;
        Ok(Some(again))
    }

    /// The types that PREPARE states.
    ///
    /// # Errors
    /// A type that there is not.
    pub async fn parameter_types(&self, parsed: &Parsed) -> Result<Vec<Option<Type>>> {
        let (catalog, parsed) = (self.catalog(), parsed.clone());
        self.with_stack(move || sql::parameter_types(&catalog, parsed.tree())).await
    }

    /// What EXPLAIN asks for, and the statement whose plan it shows.
    ///
    /// # Errors
    /// What EXPLAIN asks for and is not supported.
    pub async fn explained(&self, parsed: &Parsed) -> Result<Option<(Explain, Parsed)>> {
        if !parsed.has_part() {
            return Ok(None);
        }
        let parsed = parsed.clone();
        self.with_stack(move || parsed.explained()).await
    }

    /// The name that PREPARE gives, and the statement that it is for.
    ///
    /// # Errors
    /// The store ends.
    pub async fn prepared(&self, parsed: &Parsed) -> Result<Option<(String, Parsed)>> {
        if !parsed.has_part() {
            return Ok(None);
        }
        let parsed = parsed.clone();
        self.with_stack(move || Ok(parsed.prepared())).await
    }

    /// Does what calls itself for each level of a tree, on a stack that is made for that.
    async fn with_stack<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.shared.pool.run(work).await
    }

    /// The values of EXECUTE for a statement with parameters of these types, which take their
    /// memory from `grant`.
    ///
    /// # Errors
    /// What is wrong with the values.
    pub async fn arguments(
        &self,
        parsed: &Parsed,
        types: &[Type],
        grant: &Arc<Grant>,
    ) -> Result<Vec<Datum>> {
        let context = sql::run::Context {
            zone: self.environment.zone.clone(),
            grant: Some(Arc::clone(grant)),
            ..sql::run::Context::at((self.shared.options.clock)())
        };
        let (catalog, parsed, types) = (self.catalog(), parsed.clone(), types.to_vec());
        self.with_stack(move || sql::arguments(&catalog, parsed.tree(), &types, &context)).await
    }

    /// The statement that can be submitted: one that writes has the values of functions of the
    /// session in their place.
    ///
    /// # Errors
    /// What is wrong with the statement by now, or with a function's argument.
    pub(crate) async fn with_session(
        &self,
        statement: &Arc<Statement>,
        parameters: &[Datum],
    ) -> Result<Arc<Statement>> {
        if !statement.asks_session {
            return Ok(Arc::clone(statement));
        }
        let (catalog, session) = (self.catalog(), Arc::clone(&self.session));
        let (statement, parameters) = (Arc::clone(statement), parameters.to_vec());
        let planned =
            self.with_stack(move || statement.with_session(&catalog, &session, &parameters));
        // Its text was planned before: what is wrong now is a value, which has no place in it.
        planned.await.map_err(|error| error.without_position())
    }

    /// Waits for all that was submitted.
    pub(super) async fn all_done(&mut self) -> Result<()> {
        let (promise, pending) = self.promise();
        self.pipeline.submit(Task::Fence(promise));
        pending.await.map(|_| ())
    }

    /// Begins to write the rows of a COPY in parts, into a table that the block has made.
    pub(super) async fn begin_load_in_block(
        &mut self,
        statement: &Arc<Statement>,
    ) -> Result<Parts> {
        self.all_done().await?;
        let statement = self.renewed(statement).await?.unwrap_or_else(|| Arc::clone(statement));
        self.pipeline.begin_load(&statement, &self.environment.zone, &self.ender.watch()).await
    }

    /// The block has all rows of the COPY.
    pub(super) fn end_load_in_block(&mut self, parts: Parts) -> Result<Answer> {
        self.pipeline.end_load(parts)
    }

    /// The parameters of a statement that may run.
    fn checked(&self, statement: &Statement, parameters: Vec<Datum>) -> Result<Vec<Datum>> {
        self.check_ended()?;
        if statement.asks_session {
            let message = "functions of the session in a statement that writes";
            return Err(Error::unsupported(message, "Plan it with the session's values."));
        }
        if statement.has_effects() {
            self.pipeline.locks.use_from_now();
        }
        with_seed(statement, parameters)
    }

    /// Runs a statement; returns before it has. Parameters have the statement's types.
    pub fn submit(&mut self, statement: &Arc<Statement>, parameters: Vec<Datum>) -> Pending {
        let (promise, pending) = self.promise();
        let parameters = match self.checked(statement, parameters) {
            Ok(parameters) => parameters,
            Err(error) => {
                promise.answer(Err(error));
                return pending;
            }
        };
        let now = (self.shared.options.clock)();
        let (statement, zone) = (Arc::clone(statement), self.environment.zone.clone());
        let session = Arc::clone(&self.session);
        let work = Work { statement, parameters, now, zone, session, promise };
        self.pipeline.submit(Task::Statement(work));
        pending
    }

    /// Begins a block, or does something with it. A block must end before [`Connection::submit`].
    pub fn block(&mut self, operation: BlockOperation) -> Pending {
        let (promise, pending) = self.promise();
        let operation = Operation::Of(operation, (self.shared.options.clock)());
        self.pipeline.submit(Task::Block(operation, promise));
        pending
    }

    /// Runs statements that are all there or none. When the answer is there, the results are, too:
    /// one for each statement, or those before an error and the error.
    pub fn submit_together(
        &mut self,
        statements: Vec<(Arc<Statement>, Vec<Datum>)>,
    ) -> (Pending, Results) {
        let ((promise, pending), results) = (self.promise(), Results::default());
        let mut runs = Vec::with_capacity(statements.len());
        for (statement, parameters) in statements {
            match self.checked(&statement, parameters) {
                Ok(parameters) => runs.push(self.run_of(statement, parameters)),
                Err(error) => {
                    promise.answer(Err(error));
                    return (pending, results);
                }
            }
        }
        let together = Together::new(runs, (self.shared.options.clock)(), results.clone());
        self.pipeline.submit(Task::Block(Operation::Together(together), promise));
        (pending, results)
    }

    fn run_of(&self, statement: Arc<Statement>, parameters: Vec<Datum>) -> Run {
        let services = statement.needs_system().then(|| self.pipeline.services());
        let session = Arc::clone(&self.session);
        Run::new(statement, parameters, self.environment.zone.clone(), session, services)
    }

    /// What the session is told of channels that it listens to.
    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.pipeline.mailbox)
    }

    /// The number by which clients know the session.
    pub(crate) fn set_process(&self, process: i32) {
        self.pipeline.locks.process.store(process, Ordering::Relaxed);
    }

    /// The transaction of the session has ended, or a statement of it has failed: advisory locks
    /// of the transaction are given back, behind all that was submitted.
    pub(crate) fn transaction_ends(&self, has_failed: bool) {
        self.unlock(if has_failed { LockEnd::Failure } else { LockEnd::Transaction });
    }

    /// All advisory locks are given back, behind all that was submitted.
    pub(crate) fn unlock_all(&self) {
        self.unlock(LockEnd::Session);
    }

    fn unlock(&self, end: LockEnd) {
        if self.pipeline.locks.are_used() {
            self.pipeline.submit(Task::Unlock(end));
        }
    }

    /// Runs a statement of the block. One that fails changes nothing, and the block goes on; when
    /// it commits, the statement must fail again.
    pub fn submit_in_block(
        &mut self,
        statement: &Arc<Statement>,
        parameters: Vec<Datum>,
    ) -> Pending {
        let (promise, pending) = self.promise();
        let parameters = match self.checked(statement, parameters) {
            Ok(parameters) => parameters,
            Err(error) => {
                promise.answer(Err(error));
                return pending;
            }
        };
        let run = self.run_of(Arc::clone(statement), parameters);
        self.pipeline.submit(Task::Block(Operation::Run(run), promise));
        pending
    }
}

/// The parameters, which must be of the statement's types, and behind them the seed of its
/// random values.
fn with_seed(statement: &Statement, mut parameters: Vec<Datum>) -> Result<Vec<Datum>> {
    let types = &statement.parameters;
    let is_typed = parameters.len() == types.len()
        && parameters.iter().zip(types).all(|(value, ty)| value.fits(*ty));
    if !is_typed {
        let message = "parameters are not of the types of the statement";
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    }
    if statement.needs_seed() {
        let mut seed = [0; sql::run::SEED_BYTES];
        getrandom::fill(&mut seed).map_err(|error| {
            let message = format!("the system gives no random bytes: {error}");
            Error::new(SqlState::INTERNAL, message)
        })?;
        parameters.push(Datum::Bytea(seed.into()));
    }
    Ok(parameters)
}
