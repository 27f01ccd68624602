//! One worker's transactions: what they offer to procedures.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pmem::{Counters, Device, Port};
use workloads::{TableId, Visit};

use super::buffers::{Buffers, Kind, NewRow};
use super::pool::Pool;
use super::shared::{Shared, Steps};
use crate::error::{Error, Result};
use crate::heap::Slots;
use crate::index::{Found, KeyBytes, Range as KeyRange};
use crate::rival::{Accesses, Counts, Session, Stop};

/// Rows that a scan takes from an index at first; twice as many each time.
const SCAN_ROWS: usize = 16;

/// One worker's transactions. See [`super`].
pub struct OccSession<D: Device, P: Steps<D>> {
    pub(super) shared: Arc<Shared<D, P>>,
    pub(super) worker: usize,
    pub(super) port: Port<D>,
    pub(super) slots: Slots,
    pub(super) own: P::Local,
    pub(super) pool: Pool,
    pub(super) tx: Buffers,
    pub(super) counts: Counts,
    /// The row that was read last.
    pub(super) row: Vec<u64>,
    found: Found,
    part: Vec<u8>,
}

/// The place in the serial order of a transaction with a timestamp.
fn place_at(timestamp: u64) -> u64 {
    timestamp * 2
}

/// The place of those that read the state which the transaction with a timestamp left.
fn place_behind(timestamp: u64) -> u64 {
    timestamp.saturating_mul(2).saturating_add(1)
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
            counts: Counts::default(),
            row: Vec::new(),
            found: Found::default(),
            part: Vec::new(),
            shared,
        }
    }
}

impl<D: Device, P: Steps<D>> Accesses for OccSession<D, P> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let layout = self.layout(table);
        let record = match self.find(table, key)? {
            Ok(record) => record,
            Err(seen) => {
                self.tx.nodes.push((table, seen));
                return Ok(None);
            }
        };
        if let Some(own) = self.tx.own(table, record) {
            let (kind, at) = (own.kind, own.payload_at as usize);
            let payload = &self.tx.payloads[at..][..layout.payload_words];
            return Ok((kind == Kind::Put).then(|| layout.value(payload)));
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        let read = self.read(table, record, &mut row);
        self.row = row;
        Ok(if read? { Some(layout.value(&self.row)) } else { None })
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low >= high {
            return Ok(());
        }
        let [mut low, mut high] = [low, high].map(KeyBytes::from_slice);
        let mut limit = SCAN_ROWS;
        let mut found = std::mem::take(&mut self.found);
        let ended = loop {
            let range = KeyRange { low: &low, high: &high, descending, limit };
            let index = &self.shared.tables[usize::from(table.0)].index;
            if !index.scan(self.worker, range, &mut found) {
                let what = format!("table {} is not ordered and cannot be scanned", table.0);
                break Err(Error::Broken(what).into());
            }
            self.tx.nodes.extend(found.seen.map(|seen| (table, seen)));
            match self.visit(table, &found, each) {
                Ok(false) => {}
                ended => break ended,
            }
            match found.rest.take() {
                Some(rest) if descending => high = rest,
                Some(rest) => low = rest,
                None => break Ok(true),
            }
            limit *= 2;
        };
        self.found = found;
        ended.map(|_| ())
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.tx.snapshot = None;
        let record = self.find_or_create(table, key)?;
        self.write(table, record, NewRow { key, value: Some(value) }, false)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let Some(record) = self.find_existing(table, key)? else { return Ok(false) };
        self.write(table, record, NewRow { key, value: Some(value) }, true)?;
        Ok(true)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        let Some(at) = self.read_to_write(table, key)? else { return Ok(false) };
        change(layout.value_mut(&mut self.tx.payloads[at..][..layout.payload_words]));
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let layout = self.layout(table);
        let Some(at) = self.read_to_write(table, key)? else { return Ok(false) };
        let row = layout.value_mut(&mut self.tx.payloads[at..][..layout.payload_words]);
        let Some(old) = row.get(part.clone()) else {
            let what = format!("bytes {part:?} are not in a row of {} bytes", row.len());
            return Err(Error::Broken(what).into());
        };
        self.part.clear();
        self.part.extend_from_slice(old);
        change(row, &mut self.part);
        row[part].copy_from_slice(&self.part);
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let Some(record) = self.find_existing(table, key)? else { return Ok(false) };
        self.write(table, record, NewRow { key, value: None }, true)?;
        Ok(true)
    }
}

impl<D: Device, P: Steps<D>> Session for OccSession<D, P> {
    fn begin(&mut self) {
        self.shared.grace.enter(self.worker);
        self.shared.persist.begin(&self.shared.clock.0, self.worker, &mut self.own);
        if P::SNAPSHOTS {
            // After it was announced that this transaction runs: what it may read stays.
            self.tx.snapshot = Some(self.shared.clock.0.load(Ordering::SeqCst));
        }
    }

    fn commit(&mut self) -> Result<u64, Stop> {
        let place = match self.tx.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.commit_now()?),
        };
        self.end()?;
        Ok(place)
    }

    fn give_up(&mut self) -> Result<u64, Stop> {
        self.tx.writes.clear();
        let place = match self.tx.snapshot {
            Some(snapshot) => place_behind(snapshot),
            None => place_at(self.shared.next_serial()),
        };
        if self.tx.snapshot.is_none() && !self.is_valid() {
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
