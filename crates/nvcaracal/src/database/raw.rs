//! Calls of procedures that are objects.

use std::future::poll_fn;
use std::task::Poll;

use crate::call::raw::ProcedureNumber;
use crate::call::ticket::Ticket;
use crate::database::batch::{Added, Batch};
use crate::database::handle::Database;
use crate::database::submitter::Submitter;
use crate::error::{Error, Result};
use crate::sequencer::queue::OnFull;

impl Database {
    /// The number of a procedure that is an object ([`raw`](crate::raw)), for its calls.
    ///
    /// # Errors
    /// [`Error::is_mistake`] if none of this name is registered.
    pub fn raw_procedure(&self, name: &str) -> Result<ProcedureNumber> {
        self.numbers().of_object(name).map(ProcedureNumber).ok_or_else(|| {
            Error::mistake(format!(
                "procedure {name:?} is not registered with this database as an object: add it to \
                 its options"
            ))
        })
    }

    fn check_raw(&self, procedure: ProcedureNumber) -> Result<u16> {
        let ProcedureNumber(number) = procedure;
        if self.numbers().is_object(number) {
            return Ok(number);
        }
        Err(Error::mistake(format!("procedure number {number} is of another database")))
    }
}

impl Submitter {
    /// As [`Database::raw_procedure`], of the database that this submits to.
    ///
    /// # Errors
    /// As there.
    pub fn raw_procedure(&self, name: &str) -> Result<ProcedureNumber> {
        self.database.raw_procedure(name)
    }

    /// Submits a call of a procedure that is an object; waits while the queue is full.
    ///
    /// # Errors
    /// As [`Submitter::submit`].
    pub fn submit_raw(
        &self,
        procedure: ProcedureNumber,
        arguments: &[u8],
    ) -> Result<Ticket<Vec<u8>>> {
        self.push_raw(procedure, arguments, OnFull::Wait)
    }

    /// Submits a call of a procedure that is an object, unless the queue is full.
    ///
    /// # Errors
    /// As [`Submitter::try_submit`].
    pub fn try_submit_raw(
        &self,
        procedure: ProcedureNumber,
        arguments: &[u8],
    ) -> Result<Ticket<Vec<u8>>> {
        self.push_raw(procedure, arguments, OnFull::Fail)
    }

    /// Submits a call of a procedure that is an object, for a task of any runtime.
    ///
    /// # Errors
    /// As [`Submitter::submit`].
    pub async fn submit_raw_async(
        &self,
        procedure: ProcedureNumber,
        arguments: &[u8],
    ) -> Result<Ticket<Vec<u8>>> {
        let mut task = self.database.queue().task();
        poll_fn(|context| {
            let on_full = OnFull::Wake(task.number, context.waker());
            match self.push_raw(procedure, arguments, on_full) {
                Err(full) if full.is_queue_full() => {
                    task.waits = true;
                    Poll::Pending
                }
                pushed => Poll::Ready(pushed),
            }
        })
        .await
    }

    /// Runs a call of a procedure that is an object on this thread, in an epoch of its own, if no
    /// other call is under way that could share one with it, and few were lately; `None`, and
    /// nothing happened, if there is. That saves waking two threads, and takes as long as the epoch
    /// does, with the sync of its log: for tasks whose thread has nothing else to do meanwhile. The
    /// call runs in the serial part, after all that this submitter has submitted before.
    ///
    /// # Errors
    /// As [`Submitter::submit`].
    pub fn run_raw_alone(
        &self,
        procedure: ProcedureNumber,
        arguments: &[u8],
    ) -> Result<Option<Ticket<Vec<u8>>>> {
        let (database, number) = (&self.database, self.database.check_raw(procedure)?);
        let share = database.run_alone(number, arguments)?;
        Ok(share.map(|share| Ticket::new(share, 0)))
    }

    fn push_raw(
        &self,
        procedure: ProcedureNumber,
        arguments: &[u8],
        on_full: OnFull<'_>,
    ) -> Result<Ticket<Vec<u8>>> {
        let (database, number) = (&self.database, self.database.check_raw(procedure)?);
        on_full.check()?;
        let how = self.way.how(database.routing(), number)?;
        let (share, index) = database.queue().push(number, arguments, how, on_full)?;
        Ok(Ticket::new(share, index))
    }
}

impl Batch<'_> {
    /// Adds a call of a procedure that is an object; the number of calls before it is its place.
    ///
    /// # Errors
    /// As [`Batch::add`].
    pub fn add_raw(
        &mut self,
        procedure: ProcedureNumber,
        arguments: &[u8],
    ) -> Result<Added<Vec<u8>>> {
        let number = self.database().check_raw(procedure)?;
        self.push_call(number, arguments)
    }
}
