//! Functions with side effects in queries: advisory locks, `pg_sleep`, signals to sessions. Logged
//! calls have none of them.
//!
//! A query that has to wait stops with an internal error, waits without a thread, and then runs
//! again from its beginning on the same state. Its functions are called in the same order, and
//! results of the first run are replayed, so that each side effect happens once.

use super::advisory::{Key, LockTable, SessionLocks};
use super::backends::Backends;
use super::claims::Claims;
use super::failure;
use super::notices::Mailbox;
use super::pending::{Answer, Watch};
use super::pool::lock;
use super::spaces::sequence;
use super::timer::Timer;
use nvcaracal::Database;
use sql::ir::{AdvisoryAction, AdvisoryMode, ObjectId, SleepForm, SystemFunction};
use sql::system::{AdvisoryLock, Services, SessionActivity};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use values::{Datum, Error, Result, SqlState, Timestamp};

/// Maximum number of warnings of one statement.
const WARNINGS_MAX: usize = 100;
/// Maximum number of function calls of one query.
const CALLS_MAX: usize = 10_000_000;

/// Result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Truth(bool),
}

impl Said {
    fn datum(self) -> Datum {
        match self {
            Said::Nothing => Datum::text(""),
            Said::Truth(value) => Datum::Bool(value),
        }
    }
}

/// The reason for which a query waits.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Lock(Key, AdvisoryMode),
    /// The sleep of `pg_sleep`, before the next lock is requested.
    Sleep,
}

#[derive(Debug, Default)]
struct State {
    /// Results of functions, in call order.
    said: Vec<Said>,
    /// Number of results that were replayed in this run.
    at: usize,
    wanted: Option<Wanted>,
    /// Remaining sleep.
    sleep: Duration,
    warnings: Vec<Error>,
}

impl State {
    fn warn(&mut self, message: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Error::new(SqlState::WARNING, message));
        }
    }
}

/// Shared state of the server that functions use.
pub(super) struct Means {
    pub(super) table: Arc<LockTable>,
    pub(super) claims: Arc<Claims>,
    pub(super) timer: Arc<Timer>,
    pub(super) clock: fn() -> Timestamp,
    pub(super) backends: Option<Arc<dyn Backends>>,
    pub(super) database: Database,
}

/// The side effects of one query.
pub(super) struct QueryServices {
    means: Means,
    locks: Arc<SessionLocks>,
    mailbox: Arc<Mailbox>,
    state: Mutex<State>,
}

impl fmt::Debug for QueryServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryServices").field("state", &self.state).finish_non_exhaustive()
    }
}

impl QueryServices {
    pub(super) fn new(
        means: Means,
        locks: &Arc<SessionLocks>,
        mailbox: &Arc<Mailbox>,
    ) -> Arc<QueryServices> {
        Arc::new(QueryServices {
            means,
            locks: Arc::clone(locks),
            mailbox: Arc::clone(mailbox),
            state: Mutex::default(),
        })
    }

    /// Whether the run has stopped in order to wait.
    pub(super) fn wants(&self) -> bool {
        lock(&self.state).wanted.is_some()
    }

    /// Waits for the lock or sleep that stopped the run. The query then runs again.
    ///
    /// # Errors
    /// A timeout, a cancel request, or a deadlock (40P01).
    pub(super) async fn wait(&self, watch: &Watch) -> Result<()> {
        let wanted = lock(&self.state).wanted.take();
        match wanted {
            None => {}
            Some(Wanted::Sleep) => self.sleep(watch).await?,
            Some(Wanted::Lock(key, mode)) => {
                self.lock(key, mode, watch).await?;
                lock(&self.state).said.push(Said::Nothing);
            }
        }
        lock(&self.state).at = 0;
        Ok(())
    }

    async fn lock(&self, key: Key, mode: AdvisoryMode, watch: &Watch) -> Result<()> {
        let waiting = self.locks.wait(key, mode, (self.means.clock)())?;
        self.means.claims.break_circles(self.locks.number);
        let taken = self.locks.taken(waiting, key, mode);
        watch.interrupt().or_in_time(taken).await
    }

    /// Sleeps for the total time of the query's `pg_sleep` calls.
    ///
    /// # Errors
    /// A timeout or a cancel request.
    pub(super) async fn sleep(&self, watch: &Watch) -> Result<()> {
        let time = std::mem::take(&mut lock(&self.state).sleep);
        if time.is_zero() {
            return Ok(());
        }
        watch.interrupt().or(self.means.timer.sleep(time)).await
    }

    /// Adds the warnings of the query to its answer.
    pub(super) fn warned(&self, answer: Answer) -> Answer {
        let warnings = std::mem::take(&mut lock(&self.state).warnings);
        Answer { warnings, ..answer }
    }

    /// Runs a function that has no recorded result; `None` if the query has to wait first.
    fn first_call(
        &self,
        state: &mut State,
        function: SystemFunction,
        arguments: &[Datum],
    ) -> Result<Option<Said>> {
        let action = match function {
            SystemFunction::Advisory(action) => action,
            SystemFunction::Sleep(form) => {
                let time = duration(form, arguments, (self.means.clock)())?;
                state.sleep = state.sleep.saturating_add(time);
                return Ok(Some(Said::Nothing));
            }
            SystemFunction::CancelBackend | SystemFunction::TerminateBackend => {
                let [Datum::Int4(process)] = *arguments else { return Err(malformed()) };
                let is_there =
                    self.means.backends.as_ref().is_some_and(|backends| match function {
                        SystemFunction::CancelBackend => backends.cancel(process),
                        _ => backends.terminate(process),
                    });
                if !is_there {
                    let message = format!("PID {process} is not a PostgreSQL backend process");
                    state.warn(message);
                }
                return Ok(Some(Said::Truth(is_there)));
            }
            _ => return Err(malformed()),
        };
        if !state.sleep.is_zero() {
            state.wanted = Some(Wanted::Sleep);
            return Ok(None);
        }
        let key = match *arguments {
            [Datum::Int8(number)] => Key::One(number),
            [Datum::Int4(first), Datum::Int4(second)] => Key::Two(first, second),
            [] => {
                self.locks.unlock_all();
                return Ok(Some(Said::Nothing));
            }
            _ => return Err(malformed()),
        };
        Ok(match action {
            AdvisoryAction::Try(mode) => Some(Said::Truth(self.locks.take_now(key, mode)?)),
            AdvisoryAction::Lock(mode) if self.locks.take_now(key, mode)? => Some(Said::Nothing),
            AdvisoryAction::Lock(mode) => {
                state.wanted = Some(Wanted::Lock(key, mode));
                None
            }
            AdvisoryAction::Unlock { is_shared } => {
                let had_it = self.locks.unlock(key, is_shared);
                if !had_it {
                    let mode = AdvisoryLock::mode(is_shared);
                    state.warn(format!("you don't own a lock of type {mode}"));
                }
                Some(Said::Truth(had_it))
            }
            AdvisoryAction::UnlockAll => return Err(malformed()),
        })
    }
}

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "plan calls a function with other types")
}

/// Returns the duration of a `pg_sleep` call; zero if it is negative.
fn duration(form: SleepForm, arguments: &[Datum], now: Timestamp) -> Result<Duration> {
    let micros = |count: i64| Duration::from_micros(u64::try_from(count).unwrap_or(0));
    Ok(match (form, arguments) {
        (SleepForm::Seconds, [Datum::Float8(seconds)]) if *seconds > 0.0 => {
            Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX)
        }
        (SleepForm::Seconds, [Datum::Float8(_)]) => Duration::ZERO,
        (SleepForm::For, [Datum::Interval(interval)]) => {
            micros(i64::try_from(interval.length()).unwrap_or(i64::MAX))
        }
        (SleepForm::Until, [Datum::Timestamptz(until)]) => {
            micros(until.bits().saturating_sub(now.bits()))
        }
        _ => return Err(malformed()),
    })
}

impl Services for QueryServices {
    fn call(&self, function: SystemFunction, arguments: &[Datum]) -> Result<Datum> {
        let mut state = lock(&self.state);
        if let Some(said) = state.said.get(state.at).copied() {
            state.at += 1;
            return Ok(said.datum());
        }
        if state.said.len() >= CALLS_MAX {
            let message = format!("a query calls such functions more than {CALLS_MAX} times");
            return Err(Error::new(SqlState::LIMIT_EXCEEDED, message));
        }
        match self.first_call(&mut state, function, arguments)? {
            Some(said) => {
                state.said.push(said);
                state.at += 1;
                Ok(said.datum())
            }
            None => Err(Error::new(SqlState::INTERNAL, "the query is repeated")),
        }
    }

    fn locks(&self) -> Vec<AdvisoryLock> {
        self.means.table.all()
    }

    fn channels(&self) -> Vec<String> {
        self.mailbox.channels()
    }

    fn sessions(&self) -> Vec<SessionActivity> {
        self.means.backends.as_ref().map(|backends| backends.activity()).unwrap_or_default()
    }

    /// In the newest state, as sequences are part of no transaction.
    fn given(&self, id: ObjectId) -> Result<u64> {
        let snapshot = self.means.database.snapshot().map_err(failure::of_read)?;
        snapshot.sequence(sequence(id)).map_err(failure::of_read)
    }

    fn databases(&self) -> Vec<String> {
        self.means.backends.as_ref().map(|backends| backends.databases()).unwrap_or_default()
    }
}
