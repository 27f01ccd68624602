//! Snapshots for tasks: what the sequencer is asked for between two epochs, as a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::body;
use crate::database::handle::Database;
use crate::database::snapshot::Snapshot;
use crate::error::Result;
use crate::sequencer::standing::Held;
use crate::sync::{Mutex, MutexGuard};

/// Where a snapshot will be.
#[derive(Default)]
struct Slot(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Asked,
    /// The task that waits.
    Waits(Waker),
    Made(Result<Arc<Held>>),
    /// The task does not want it any more, or has it.
    Done,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves what was made, unless there is no task any more.
    fn leave(&self, made: Result<Arc<Held>>) {
        let mut state = self.state();
        if matches!(*state, State::Done) {
            return;
        }
        let before = std::mem::replace(&mut *state, State::Made(made));
        // A task may run at once on this thread.
        drop(state);
        if let State::Waits(waker) = before {
            body::wake([waker]);
        }
    }
}

/// A snapshot that was asked for.
struct Pending(Arc<Slot>);

impl Database {
    /// [`Database::snapshot`] for tasks: the epoch that runs is waited for without keeping the
    /// thread of their runtime.
    ///
    /// ```
    /// # use nvcaracal::{Database, DeviceSpec, Stop, Table, Transaction, procedure};
    /// const PRICES: Table<u32, u64> = Table::ordered("prices");
    /// #[procedure]
    /// fn set(tx: &mut Transaction, item: u32, cents: u64) -> Result<(), Stop> {
    ///     tx.insert(PRICES, item, &cents)
    /// }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// # let options = Database::options().table(PRICES).procedure::<Set>();
    /// # let db = options.open_device(DeviceSpec::Dram)?;
    /// db.call_async(Set { item: 1, cents: 250 }).await?;
    /// let now = db.snapshot_async().await?;
    /// assert_eq!(now.count(PRICES, ..)?, 1);
    /// # Ok::<(), nvcaracal::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Database::snapshot`].
    pub async fn snapshot_async(&self) -> Result<Snapshot> {
        body::check_outside()?;
        if let Some(held) = self.inner.standing_snapshot()? {
            return Ok(Snapshot::of(&self.inner, held));
        }
        let slot = Arc::<Slot>::default();
        let of_request = Arc::clone(&slot);
        let asked = self.inner.ask_for_snapshot(Box::new(move |made| of_request.leave(made)))?;
        let held = match asked {
            Some(held) => held,
            None => Pending(slot).await?,
        };
        Ok(Snapshot::of(&self.inner, held))
    }
}

impl Future for Pending {
    type Output = Result<Arc<Held>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloning and dropping wakers runs code of the task's runtime: no lock is held.
        let waker = context.waker().clone();
        let mut state = self.0.state();
        let before = match &*state {
            State::Asked | State::Waits(_) => std::mem::replace(&mut *state, State::Waits(waker)),
            State::Made(_) | State::Done => std::mem::replace(&mut *state, State::Done),
        };
        drop(state);
        match before {
            State::Made(made) => Poll::Ready(made),
            State::Done => unreachable!("a future is not polled after its end"),
            State::Asked | State::Waits(_) => Poll::Pending,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.0.state(), State::Done);
        drop(before);
    }
}
