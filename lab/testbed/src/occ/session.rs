//! One worker's transactions: how they begin and end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{Counters, Device, Port};
use workloads::TableId;

use super::pool::Pool;
use super::records::Version;
use super::shared::{Shared, Steps};
use super::write::Versions;
use crate::error::Result;
use crate::image::heap::Slots;
use crate::rival::{Counts, Session, Stop};
use crate::transaction::{Buffers, place_at, place_behind};

/// One worker's transactions. See [`super`].
pub struct OccSession<D: Device, P: Steps<D>> {
    pub(super) shared: Arc<Shared<D, P>>,
    pub(super) worker: usize,
    pub(super) port: Port<D>,
    pub(super) slots: Slots,
    pub(super) own: P::Local,
    pub(super) pool: Pool,
    pub(super) tx: Buffers<Version, Versions>,
    /// Records of rows that the transaction was the first to insert.
    pub(super) created: Vec<Created>,
    /// The last transaction before this one began, if it reads the state that this one left.
    pub(super) snapshot: Option<u64>,
    pub(super) counts: Counts,
}

/// A record that the transaction put into an index, with the place of the row's key.
pub(super) struct Created {
    pub(super) table: TableId,
    pub(super) record: u32,
    pub(super) payload_at: u32,
}

impl<D: Device, P: Steps<D>> OccSession<D, P> {
    pub(crate) fn new(shared: Arc<Shared<D, P>>, worker: usize) -> Self {
        assert!(worker < shared.options.workers, "there is no worker {worker}");
        let left = std::mem::take(&mut *crate::lock(&shared.left[worker]));
        let tables = shared.tables.len();
        Self {
            worker,
            port: Port::new(Arc::clone(&shared.device), worker as u32 + 1),
            slots: left.slots.unwrap_or_else(|| Slots::new(tables)),
            own: left.own.unwrap_or_else(|| shared.persist.local(worker)),
            pool: left.pool.unwrap_or_else(|| Pool::new(tables)),
            tx: Buffers::default(),
            created: Vec::new(),
            snapshot: None,
            counts: Counts::default(),
            shared,
        }
    }
}

impl<D: Device, P: Steps<D>> Session for OccSession<D, P> {
    fn begin(&mut self) {
        self.shared.grace.enter(self.worker);
        self.shared.persist.begin(&self.shared.clock.0, self.worker, &mut self.own);
        if P::SNAPSHOTS {
            // After it was announced that this transaction runs: what it may read stays.
            self.snapshot = Some(self.shared.clock.0.load(Ordering::SeqCst));
        }
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let place = match self.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.commit_now()?),
        };
        self.end()?;
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.tx.writes.clear();
        let place = match self.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.shared.next_serial()),
        };
        if self.snapshot.is_none() && !self.is_valid() {
            return Err(Stop::Conflict);
        }
        self.take_back();
        self.end()?;
        Ok(place)
    }

    fn roll_back(&mut self) {
        self.take_back();
        // An engine that fails here fails in the next transaction, too.
        let _ = self.end();
    }

    fn durable(&self) -> u64 {
        place_behind(self.shared.persist.durable())
    }

    fn finish(&mut self) -> Result<()> {
        self.finish_now()
    }

    fn take_counters(&mut self) -> Counters {
        self.port.take_counters()
    }

    fn count(&self) -> Counts {
        Counts { evictions: self.pool.evictions, ..self.counts }
    }
}

impl<D: Device, P: Steps<D>> Drop for OccSession<D, P> {
    fn drop(&mut self) {
        self.pool.evictions = 0;
        let mut left = crate::lock(&self.shared.left[self.worker]);
        left.slots = Some(std::mem::replace(&mut self.slots, Slots::new(0)));
        left.pool = Some(std::mem::replace(&mut self.pool, Pool::new(0)));
        left.own = Some(std::mem::replace(&mut self.own, self.shared.persist.local(self.worker)));
    }
}
