//! One worker's transactions: how they begin and end.

use std::collections::VecDeque;
use std::sync::Arc;

use pmem::{Counters, Device, Port};

use super::design::Design;
use super::log::Writer;
use super::shared::{Left, Shared};
use super::snapshots::Own;
use super::tables::Pool;
use super::write::Versions;
use crate::error::Result;
use crate::rival::{Counts, Session, Stop};
use crate::transaction::{Buffers, place_behind};

/// One worker's transactions. See [`super`].
pub struct DbxSession<D: Device, N: Design> {
    pub(super) shared: Arc<Shared<D, N>>,
    pub(super) worker: usize,
    pub(super) port: Port<D>,
    pub(super) pools: Box<[Pool]>,
    pub(super) writer: Writer,
    /// Of use where transactions read snapshots.
    pub(super) own: Own,
    pub(super) tx: Buffers<u64, Versions>,
    /// What the transaction logs.
    pub(super) entries: Vec<u64>,
    pub(super) counts: Counts,
    /// Places of transactions whose epoch, where there are groups, was not durable.
    pub(super) waiting: VecDeque<(u64, u64)>,
    pub(super) calls: u64,
}

impl<D: Device, N: Design> DbxSession<D, N> {
    pub(super) fn new(shared: Arc<Shared<D, N>>, worker: usize) -> Self {
        let Left { pools, writer, own } = shared.take_left(worker);
        Self {
            worker,
            port: Port::new(Arc::clone(&shared.device), worker as u32 + 1),
            pools,
            writer,
            own,
            tx: Buffers::default(),
            entries: Vec::new(),
            counts: Counts::default(),
            waiting: VecDeque::new(),
            calls: 0,
            shared,
        }
    }
}

impl<D: Device, N: Design> Session for DbxSession<D, N> {
    fn begin(&mut self) {
        self.shared.grace.enter(self.worker);
        if N::SNAPSHOTS {
            self.begin_snapshot();
        }
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let place = if N::SNAPSHOTS { self.commit_snapshot()? } else { self.commit_now()? };
        self.end()?;
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.tx.writes.clear();
        self.commit()
    }

    fn roll_back(&mut self) {
        // An engine that fails here fails in the next transaction, too.
        let _ = self.end();
    }

    fn durable(&self) -> u64 {
        let Some(group) = &self.shared.group else { return u64::MAX };
        let durable = group.durable();
        let may_go = self.waiting.partition_point(|(_, epoch)| *epoch <= durable);
        match may_go {
            all if all == self.waiting.len() => u64::MAX,
            0 => 0,
            some => self.waiting[some - 1].0,
        }
    }

    fn finish(&mut self) -> Result<()> {
        match (&self.shared.group, self.waiting.back()) {
            (Some(group), Some((_, epoch))) => group.wait_for(*epoch),
            _ => Ok(()),
        }
    }

    fn snapshot(&self) -> Option<u64> {
        N::SNAPSHOTS.then(|| place_behind(self.own.snapshot))
    }

    fn take_counters(&mut self) -> Counters {
        let mut counters = self.port.take_counters();
        if let (Some(group), 0) = (&self.shared.group, self.worker) {
            counters.add(&group.take_counters());
        }
        counters
    }

    fn count(&self) -> Counts {
        self.counts
    }
}

impl<D: Device, N: Design> Drop for DbxSession<D, N> {
    fn drop(&mut self) {
        let pools = std::mem::take(&mut self.pools);
        let writer = std::mem::replace(&mut self.writer, Writer::new(self.worker as u64));
        let own = std::mem::take(&mut self.own);
        self.shared.leave(self.worker, Left { pools, writer, own });
    }
}
