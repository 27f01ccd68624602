//! Zen (Liu, Chen, Chen, VLDB 2021): no log; a transaction's last version has the mark that it
//! committed.
//!
//! * Rows lie in slots on persistent memory. Every committed write goes to a new slot; metadata of
//!   concurrency control are in DRAM alone, with the rows that are cached there (the *Met-Cache*,
//!   [`crate::occ`]'s records).
//! * Commit: all versions are stored and flushed, then one fence, then the mark in the header of
//!   the last one, flushed and fenced. Where the last version lies within one cache line it is
//!   stored with its mark, so a transaction with one such write needs one fence.
//! * A worker runs one transaction at a time, so whatever it wrote before its newest mark has
//!   committed, marked or not. Therefore the slot with a worker's newest mark is not reused before
//!   the worker has a newer one.
//! * Recovery reads the headers of all slots for each worker's newest mark, then all versions, and
//!   builds the indexes. What did not commit is wiped; then one word in the superblock says that
//!   everything that is left has.
//!
//! The locks are held until a transaction is durable, so no other one depends on one that may be
//! lost, and an answer can be given at once.

mod steps;

use std::sync::Arc;
use std::time::Instant;

use pmem::{Device, Port};
use workloads::{TableId, TableSpec};

use crate::error::Result;
use crate::image::heap::Heap;
use crate::image::layout::BASE_AT;
use crate::memory::{WORD_BYTES, store_words};
use crate::occ::{OccSession, Shared, newest, recover_rows};
use crate::rival::{Options, RecoveryReport, Rival};
pub(crate) use steps::ZenSteps;

/// Kind of store, in its superblock.
const KIND: u64 = 1;
/// Where the superblock has the timestamp up to which every version counts.
const BASE_WORD: usize = (BASE_AT / WORD_BYTES) as usize;

/// Zen, with snapshots for transactions that write nothing, or without. See the module's
/// documentation.
pub struct ZenEngine<D: Device, const SNAPSHOTS: bool> {
    shared: Arc<Shared<D, ZenSteps<SNAPSHOTS>>>,
}

/// Zen with optimistic concurrency control.
pub type Zen<D> = ZenEngine<D, false>;
/// Zen with optimistic concurrency control over many versions: transactions that write nothing read
/// the state as it was when they began.
pub type ZenMvcc<D> = ZenEngine<D, true>;

impl<D: Device, const SNAPSHOTS: bool> Rival for ZenEngine<D, SNAPSHOTS> {
    type Device = D;
    type Session = OccSession<D, ZenSteps<SNAPSHOTS>>;
    const NAME: &'static str = if SNAPSHOTS { "zen-mvcc" } else { "zen" };

    fn create(device: Arc<D>, tables: &[TableSpec], options: &Options) -> Result<Self> {
        let heap = Heap::create(Arc::clone(&device), KIND, tables, options.page_bytes)?;
        let shared = Shared::new(device, heap, tables, ZenSteps::new(0), 0, options)?;
        Ok(Self { shared: Arc::new(shared) })
    }

    fn open(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<(Self, RecoveryReport)> {
        let start = Instant::now();
        let mut port = Port::new(Arc::clone(&device), 0);
        let (heap, words) = Heap::open(Arc::clone(&device), KIND, tables, options.page_bytes)?;
        heap.make_durable(&mut port);
        let base = words[BASE_WORD];
        let pages = heap.find_pages(&mut port)?;
        let shared = Shared::new(device, heap, tables, ZenSteps::new(base), base, options)?;
        let newest = newest(&shared, &pages)?;
        let found = Instant::now();
        let committed = |header: crate::image::layout::Header| {
            let timestamp = header.timestamp();
            timestamp <= base || timestamp <= newest.last[header.worker()]
        };
        let scanned = recover_rows(&shared, &pages, &committed, true)?;
        let built = Instant::now();
        let base = newest.any.max(base);
        store_words(&mut port, BASE_AT, &[base]);
        port.flush(BASE_AT, WORD_BYTES);
        port.fence();
        let shared = shared.starting_at(base, ZenSteps::new(base));
        let mut report = scanned.report(&pages, [start, found, built]);
        report.counters.add(&newest.counters);
        report.counters.add(port.counters());
        Ok((Self { shared: Arc::new(shared) }, report))
    }

    fn session(&self, worker: usize) -> Self::Session {
        OccSession::new(Arc::clone(&self.shared), worker)
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.shared.for_each(table, each);
    }

    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        self.shared.get(table, key)
    }

    fn close(self) -> Result<()> {
        // Everything is durable already.
        Ok(())
    }
}
