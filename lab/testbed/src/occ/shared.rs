//! What all workers of an engine share, and the steps in which engines differ.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pmem::{Device, Port};
use workloads::{TableId, TableSpec};

use super::pool::Pool;
use super::records::{Record, Records, Version};
use super::versions::Links;
use super::write::Write;
use crate::error::Result;
use crate::grace::{Grace, Padded};
use crate::image::heap::{Heap, Slots};
use crate::image::layout::Header;
use crate::index::Index;
use crate::memory::load_words;
use crate::pause;
use crate::rival::Options;

/// What an engine does with the versions that transactions write.
pub trait Steps<D: Device>: Send + Sync + 'static {
    /// What each worker has for itself.
    type Local: Send + 'static;
    /// Whether payloads of rows are cached in DRAM.
    const CACHES: bool;
    /// Whether transactions that write nothing read the state as it was when they began. Needs the
    /// cache, in which keys are.
    const SNAPSHOTS: bool;

    /// A worker's own.
    fn local(&self, worker: usize) -> Self::Local;

    /// A transaction of this worker begins. It gets its timestamp later.
    fn begin(&self, clock: &AtomicU64, worker: usize, own: &mut Self::Local) {
        let _ = (clock, worker, own);
    }

    /// Puts the versions of a transaction into new slots, while its records are locked.
    fn put(
        &self,
        at: &mut Putting<'_, D>,
        own: &mut Self::Local,
        writes: &mut [Write],
    ) -> Result<()>;

    /// No transaction finds an old version any more that has not found it already.
    fn retire(&self, grace: &Grace, own: &mut Self::Local, old: Old);

    /// A transaction has ended, and none of this worker is running.
    fn ended(&self, at: &mut Between<'_, D>, own: &mut Self::Local) -> Result<()>;

    /// Transactions up to this place in the serial order are durable if they have committed.
    fn durable(&self) -> u64;

    /// Makes everything durable that this worker committed.
    fn finish(&self, at: &mut Between<'_, D>, own: &mut Self::Local) -> Result<()>;
}

/// A version that a newer one took the place of.
#[derive(Debug, Clone, Copy)]
pub struct Old {
    pub(crate) table: TableId,
    pub(crate) slot: u64,
    pub(crate) header: Header,
    /// The transaction that wrote the newer one.
    pub(crate) serial: u64,
}

/// What a worker has at hand when it writes versions.
pub struct Putting<'a, D: Device> {
    pub(crate) heap: &'a Heap<D>,
    pub(crate) port: &'a mut Port<D>,
    pub(crate) slots: &'a mut Slots,
    /// Payloads of the writes.
    pub(crate) payloads: &'a [u64],
    pub(crate) worker: usize,
    pub(crate) serial: u64,
    pub(crate) options: &'a Options,
}

/// What a worker has at hand between two transactions.
pub struct Between<'a, D: Device> {
    pub(crate) port: &'a mut Port<D>,
    pub(crate) slots: &'a mut Slots,
    pub(crate) grace: &'a Grace,
    pub(crate) clock: &'a AtomicU64,
    pub(crate) worker: usize,
    pub(crate) options: &'a Options,
}

/// A table in DRAM.
pub(crate) struct Table {
    pub(crate) index: Index,
    pub(crate) records: Records,
    /// Where there are snapshots.
    pub(super) links: Option<Links>,
}

/// What all workers of an engine share.
pub(crate) struct Shared<D: Device, P: Steps<D>> {
    pub(crate) heap: Heap<D>,
    pub(crate) device: Arc<D>,
    pub(crate) tables: Box<[Table]>,
    pub(crate) grace: Grace,
    /// The place in the serial order that was given out last.
    pub(crate) clock: Padded<AtomicU64>,
    /// Bytes of records.
    pub(crate) cached_bytes: Padded<AtomicU64>,
    /// The device failed in the middle of a commit: no transaction may commit any more.
    pub(super) failed: AtomicBool,
    pub(crate) persist: P,
    pub(crate) options: Options,
    /// What each worker left that has no session.
    pub(super) left: Box<[Mutex<Left<P::Local>>]>,
}

/// What the next session of a worker goes on with.
pub(super) struct Left<L> {
    pub(super) slots: Option<Slots>,
    pub(super) pool: Option<Pool>,
    pub(super) own: Option<L>,
}

impl<L> Default for Left<L> {
    fn default() -> Self {
        Self { slots: None, pool: None, own: None }
    }
}

/// Set in a place that is the number of a record; others are offsets of slots.
const RECORD: u64 = 1 << 63;

/// The place of a row that has a record.
pub(crate) fn place_of(record: u32) -> u64 {
    RECORD | u64::from(record)
}

/// The record of a place, or else the slot.
pub(crate) fn record_at(place: u64) -> Result<u32, u64> {
    if place & RECORD != 0 { Ok(place as u32) } else { Err(place) }
}

impl<D: Device, P: Steps<D>> Shared<D, P> {
    /// Empty tables over a heap. Transactions get places after `clock`.
    pub(crate) fn new(
        device: Arc<D>,
        heap: Heap<D>,
        specs: &[TableSpec],
        persist: P,
        clock: u64,
        options: &Options,
    ) -> Result<Self> {
        let workers = options.check_workers()?;
        let tables = specs.iter().zip(&heap.layouts).map(|(spec, layout)| {
            let index = Index::new(spec, workers);
            let records = Records::new(if P::CACHES { layout.payload_words } else { 0 })?;
            let links = if P::SNAPSHOTS { Some(Links::new()?) } else { None };
            Ok(Table { index, records, links })
        });
        Ok(Self {
            tables: tables.collect::<Result<_>>()?,
            grace: Grace::new(workers),
            clock: Padded(AtomicU64::new(clock)),
            cached_bytes: Padded::default(),
            failed: AtomicBool::new(false),
            persist,
            options: options.clone(),
            left: (0..workers).map(|_| Mutex::default()).collect(),
            device,
            heap,
        })
    }

    /// The same tables, once it is known what was on the device: transactions get places after
    /// `clock`.
    pub(crate) fn starting_at(mut self, clock: u64, persist: P) -> Self {
        *self.clock.0.get_mut() = clock;
        self.persist = persist;
        self
    }

    /// Leaves free slots to the next session of a worker.
    pub(crate) fn leave_slots(&self, worker: usize, slots: Slots) {
        crate::lock(&self.left[worker]).slots = Some(slots);
    }

    /// The next place in the serial order.
    pub(super) fn next_serial(&self) -> u64 {
        self.clock.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The payload at a place while no transaction runs; `None` if there is no row.
    fn payload(&self, port: &mut Port<D>, table: usize, place: u64, into: &mut Vec<u64>) -> bool {
        into.clear();
        let words = self.heap.layouts[table].payload_words;
        let slot = match record_at(place) {
            Err(slot) => slot,
            Ok(number) => {
                let record = self.tables[table].records.get(number);
                if record.version().is_absent() {
                    return false;
                }
                if P::CACHES {
                    record.copy_payload(into);
                    return true;
                }
                record.slot().0
            }
        };
        load_words(port, slot + 8, words, into);
        true
    }

    /// Visits all rows of a table while no transaction runs.
    pub(crate) fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        let table = usize::from(table.0);
        let mut port = Port::new(Arc::clone(&self.device), 0);
        let mut payload = Vec::new();
        self.tables[table].index.for_each(|key, place| {
            if self.payload(&mut port, table, place, &mut payload) {
                each(key, self.heap.layouts[table].value(&payload));
            }
        });
    }

    /// Reads a row while no transaction runs.
    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        let table = usize::from(table.0);
        let mut port = Port::new(Arc::clone(&self.device), 0);
        let mut payload = Vec::new();
        let place = self.tables[table].index.get(0, key).ok()?;
        self.payload(&mut port, table, place, &mut payload)
            .then(|| self.heap.layouts[table].value(&payload).to_vec())
    }
}

/// A record's version once it is not locked.
pub(crate) fn settled(record: Record<'_>) -> Version {
    let mut turns = 0_u32;
    loop {
        let version = record.version();
        if !version.is_locked() {
            return version;
        }
        pause(&mut turns);
    }
}
