//! Ways to submit calls: in an order that is kept, and in a part that is chosen.

use std::fmt;
use std::future::poll_fn;
use std::task::Poll;

use crate::call::procedure::Procedure;
use crate::call::ticket::Ticket;
use crate::data::readable::with_readable;
use crate::database::batch::Batch;
use crate::database::handle::Database;
use crate::database::way::{Part, Way};
use crate::error::{Error, Result};
use crate::sequencer::queue::OnFull;

/// A way to submit calls to a [`Database`]: from [`Database::submitter`], whose calls keep their
/// order, or [`Database::in_part`], whose calls keep none. A clone is the same way.
///
/// The calls of a submitter run in the order in which they were submitted, however many are under
/// way, whatever [part](Submitter::part) each is in, and also where one is deferred
/// ([`Procedure::write_set`]): those behind it in its epoch are deferred with it, unrun, and run
/// after it. A recovery runs them in the same order. If a call has no space
/// ([`Error::is_limit`]) it does not take place, and those behind it do. Calls that several threads
/// submit by clones at the same time have no order among each other but that in which they are
/// accepted. Keeping an order costs a call little, as long as few are deferred.
///
/// ```
/// # use nvcaracal::{Database, DeviceSpec, HashTable, Part, Stop, Table, Transaction, procedure};
/// # const ACCOUNTS: HashTable<u64, i64> = Table::hash("accounts");
/// # #[procedure]
/// # fn open(tx: &mut Transaction, account: u64) -> Result<(), Stop> {
/// #     tx.insert(ACCOUNTS, account, &0)
/// # }
/// # #[procedure]
/// # fn deposit(tx: &mut Transaction, account: u64, cents: i64) -> Result<i64, Stop> {
/// #     let balance = tx.get(ACCOUNTS, account)?.ok_or("no account")? + cents;
/// #     tx.update(ACCOUNTS, account, &balance)?;
/// #     Ok(balance)
/// # }
/// # let options = Database::options().table(ACCOUNTS).procedure::<Open>().procedure::<Deposit>();
/// # let db = options.open_device(DeviceSpec::Dram)?;
/// // A connection that does not wait for an answer before it sends the next call.
/// let connection = db.submitter();
/// let opened = connection.submit(Open { account: 1 })?;
/// let balance = connection.part(Part::Serial).submit(Deposit { account: 1, cents: 5 })?;
/// assert_eq!(balance.wait()?, 5);
/// opened.wait()?;
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[derive(Clone)]
pub struct Submitter {
    pub(crate) database: Database,
    pub(crate) way: Way,
}

impl Database {
    /// A new submitter: its calls keep their order.
    #[must_use]
    pub fn submitter(&self) -> Submitter {
        let submitter = self.next_submitter();
        Submitter { database: self.clone(), way: Way { submitter, part: Part::Learned } }
    }

    /// A way to submit calls to a part, which keep no order: as [`Database::submit`].
    #[must_use]
    pub fn in_part(&self, part: Part) -> Submitter {
        Submitter { database: self.clone(), way: Way { submitter: 0, part } }
    }
}

impl Submitter {
    /// The same submitter, for calls of a part: in order with those of its other parts. Where a
    /// call is for the serial part, those before it in its epoch run there, too.
    #[must_use]
    pub fn part(&self, part: Part) -> Self {
        Self { database: self.database.clone(), way: Way { part, ..self.way } }
    }

    /// Submits a call; waits while the queue is full.
    ///
    /// # Errors
    /// As [`Database::submit`]; [`Error::is_mistake`], too, if a procedure with pieces is to run in
    /// parallel whose answers may not read back.
    pub fn submit<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.database.push(&procedure, self.way, OnFull::Wait)
    }

    /// Submits a call, unless the queue is full.
    ///
    /// # Errors
    /// [`Error::is_queue_full`]; as [`Submitter::submit`].
    pub fn try_submit<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.database.push(&procedure, self.way, OnFull::Fail)
    }

    /// Submits a call, for a task of any runtime: as [`Database::submit_async`]. Calls have the
    /// order in which these futures end.
    ///
    /// # Errors
    /// As [`Submitter::submit`].
    pub async fn submit_async<P: Procedure>(&self, procedure: P) -> Result<Ticket<P::Output>> {
        self.database.push_async(procedure, self.way).await
    }

    /// Submits a call and waits for its answer.
    ///
    /// # Errors
    /// As [`Submitter::submit`] and [`Ticket::wait`].
    pub fn call<P: Procedure>(&self, procedure: P) -> Result<P::Output> {
        self.submit(procedure)?.wait()
    }

    /// Submits a call and waits for its answer, in a task of any runtime.
    ///
    /// # Errors
    /// As [`Submitter::submit`] and [`Ticket::wait`].
    pub async fn call_async<P: Procedure>(&self, procedure: P) -> Result<P::Output> {
        self.submit_async(procedure).await?.await
    }

    /// Starts a batch of calls, which keep their order also where one is deferred, if this keeps an
    /// order.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.database, self.way)
    }
}

impl Database {
    pub(crate) fn push<P: Procedure>(
        &self,
        procedure: &P,
        way: Way,
        on_full: OnFull<'_>,
    ) -> Result<Ticket<P::Output>> {
        let number = self.number::<P>()?;
        on_full.check()?;
        let how = way.how(self.routing(), number)?;
        let pushed =
            with_readable(procedure, |bytes| self.queue().push(number, bytes, how, on_full));
        let (share, index) = pushed.map_err(Error::mistake)??;
        Ok(Ticket::new(share, index))
    }

    pub(crate) async fn push_async<P: Procedure>(
        &self,
        procedure: P,
        way: Way,
    ) -> Result<Ticket<P::Output>> {
        let mut task = self.queue().task();
        poll_fn(|context| {
            let on_full = OnFull::Wake(task.number, context.waker());
            match self.push(&procedure, way, on_full) {
                Err(full) if full.is_queue_full() => {
                    task.waits = true;
                    Poll::Pending
                }
                pushed => Poll::Ready(pushed),
            }
        })
        .await
    }
}

impl fmt::Debug for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter").field("way", &self.way).finish_non_exhaustive()
    }
}
