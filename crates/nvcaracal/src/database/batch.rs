//! Batches: calls that are submitted together.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use engine::Calls;

use crate::call::group::Group;
use crate::call::procedure::Procedure;
use crate::call::share::Share;
use crate::call::ticket::Ticket;
use crate::data::readable::with_readable;
use crate::data::value::Data;
use crate::database::handle::Database;
use crate::database::way::Way;
use crate::error::{Error, Result};
use crate::sequencer::queue::{How, OnFull};

/// Calls that are submitted together; see [`Database::batch`].
///
/// They run in the order in which they were added, as their serial ids say
/// ([`Transaction::serial_id`](crate::Transaction::serial_id)), and each commits or aborts by
/// itself. The one exception is a call that is deferred ([`Procedure::write_set`]): it runs in the
/// next epoch, after all calls that the epoch of its place held, and before all others of its own.
/// The calls of a [`Submitter`](crate::Submitter)'s batch keep their order also then.
///
/// Mostly they are part of one epoch and follow each other directly. Calls of others may come in
/// between behind those that run alone, such as calls of procedures without a write set and all
/// that were added before these; and where an epoch has no space for all of its calls it runs as
/// several.
///
/// ```
/// # use nvcaracal::{HashTable, Procedure, Stop, Table, Transaction, WriteSet};
/// # const COUNTERS: HashTable<u64, u64> = Table::hash("counters");
/// # nvcaracal::plain! { struct Count { counter: u64 } }
/// # impl Procedure for Count {
/// #     const NAME: &'static str = "count";
/// #     type Output = u64;
/// #     fn write_set(&self, set: &mut WriteSet) { set.insert(COUNTERS, self.counter); }
/// #     fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
/// #         let next = tx.get(COUNTERS, self.counter)?.unwrap_or(0) + 1;
/// #         tx.insert(COUNTERS, self.counter, &next)?;
/// #         Ok(next)
/// #     }
/// # }
/// # let db = nvcaracal::Database::options().table(COUNTERS).procedure::<Count>()
/// #     .open_device(nvcaracal::DeviceSpec::Dram)?;
/// let mut batch = db.batch();
/// let first = batch.add(&Count { counter: 1 })?;
/// let second = batch.add(&Count { counter: 1 })?;
/// let submitted = batch.submit()?;
/// assert_eq!(submitted.ticket(second).wait()?, 2);
/// assert_eq!(submitted.ticket(first).wait()?, 1);
/// # Ok::<(), nvcaracal::Error>(())
/// ```
#[must_use = "a batch does nothing until it is submitted"]
pub struct Batch<'d> {
    database: &'d Database,
    way: Way,
    calls: Calls,
}

impl Database {
    /// Starts a batch of calls, which run in the order in which they are added.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self, Way::default())
    }
}

impl<'d> Batch<'d> {
    pub(crate) fn new(database: &'d Database, way: Way) -> Self {
        Self { database, way, calls: Calls::new() }
    }

    /// Adds a call; the number of calls before it is its place.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if the procedure is not registered, or its arguments do not read back;
    /// [`Error::is_limit`] for arguments that are too long, or too many calls. The call was not
    /// added.
    pub fn add<P: Procedure>(&mut self, procedure: &P) -> Result<Added<P::Output>> {
        let number = self.database.number::<P>()?;
        with_readable(procedure, |bytes| self.push_call(number, bytes)).map_err(Error::mistake)?
    }

    pub(crate) fn database(&self) -> &Database {
        self.database
    }

    /// Adds a call of a procedure with a number.
    pub(crate) fn push_call<T>(&mut self, number: u16, arguments: &[u8]) -> Result<Added<T>> {
        let index = self.calls.len() as u32;
        let How { submitter, is_serial } = self.way.how(self.database.routing(), number)?;
        self.database.queue().check_arguments(arguments)?;
        self.calls.push_of(submitter, is_serial, number, arguments)?;
        Ok(Added { index, output: PhantomData })
    }

    /// Calls in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Submits the batch; waits while the queue has no room for all of it.
    ///
    /// # Errors
    /// [`Error::is_stopped`]; [`Error::is_limit`] if it is larger than the whole queue. No call
    /// took place.
    pub fn submit(self) -> Result<Submitted> {
        self.push(OnFull::Wait)
    }

    /// Submits the batch, unless the queue has no room for all of it.
    ///
    /// # Errors
    /// [`Error::is_queue_full`]; as [`Batch::submit`].
    pub fn try_submit(self) -> Result<Submitted> {
        self.push(OnFull::Fail)
    }

    /// The calls. Those for the serial part of an epoch come before all others there, so if one is
    /// for it, all before it are, too.
    fn in_order(self) -> Calls {
        let last = (0..self.calls.len()).rfind(|&at| self.calls.is_serial(at));
        match last {
            None => self.calls,
            Some(last) => self.calls.first_serial(last + 1),
        }
    }

    fn push(self, on_full: OnFull<'_>) -> Result<Submitted> {
        let count = self.calls.len();
        on_full.check()?;
        self.database.queue().check_here()?;
        if count == 0 {
            let share = Share::of(Arc::<Group>::default());
            return Ok(Submitted { share, first: 0, count });
        }
        let database = self.database;
        let calls = self.in_order();
        assert_eq!(calls.len(), count, "a call was lost in ordering");
        let (share, first) = database.queue().push_all(calls, on_full)?;
        Ok(Submitted { share, first, count })
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

/// A call in a batch: exchange it for a ticket when the batch was submitted.
#[derive(Debug)]
pub struct Added<T> {
    index: u32,
    output: PhantomData<fn() -> T>,
}

/// A batch that was submitted.
#[derive(Debug)]
pub struct Submitted {
    share: Arc<Share>,
    first: u32,
    count: usize,
}

impl Submitted {
    /// The ticket of one of its calls.
    ///
    /// # Panics
    /// If the call is none of this batch, as far as can be seen from its number.
    pub fn ticket<T: Data>(&self, added: Added<T>) -> Ticket<T> {
        assert!((added.index as usize) < self.count, "call {} of {}", added.index, self.count);
        Ticket::new(Arc::clone(&self.share), self.first + added.index)
    }

    /// Waits until every call of the batch has its answer, whatever it is.
    ///
    /// # Panics
    /// Where no caller may wait for a database: in a procedure or a callback, and in a child of
    /// `fork`.
    pub fn wait(&self) {
        for index in self.first..self.first + self.count as u32 {
            let wait = || {
                self.share.check_usable()?;
                self.share.look(index, |group| group.wait_answered(index), |_| Ok(()))
            };
            wait().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
