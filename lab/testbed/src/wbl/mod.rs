//! Write-behind logging (Arulraj, Perron, Pavlo, VLDB 2016): changes go to the database first, and
//! the log says up to when they have arrived.
//!
//! * Rows lie in slots on persistent memory, with a version for each committed write. Transactions
//!   read and write them there; locks and versions of concurrency control are in DRAM.
//! * Nothing is flushed when a transaction commits. At the end of a group everything that its
//!   transactions wrote is flushed, and then one record with two timestamps goes to the log. Then
//!   the transactions are answered.
//! * Old versions stay until what took their place is durable.
//! * Recovery reads the log: versions with timestamps in gaps do not count. There is nothing to
//!   redo or to undo; but the indexes are in DRAM, and building them takes a scan.

mod log;
mod steps;

use std::sync::Arc;
use std::time::Instant;

use pmem::{Device, Port};
use workloads::{TableId, TableSpec};

use crate::error::Result;
use crate::image::heap::Heap;
use crate::image::layout::Header;
use crate::occ::{OccSession, Shared, recover_rows};
use crate::rival::{Options, RecoveryReport, Rival};
use log::{Gap, Log};
pub(crate) use steps::WblSteps;

/// Kind of store, in its superblock.
const KIND: u64 = 2;

/// Write-behind logging. See the module's documentation.
pub struct Wbl<D: Device> {
    shared: Arc<Shared<D, WblSteps>>,
}

impl<D: Device> Rival for Wbl<D> {
    type Device = D;
    type Session = OccSession<D, WblSteps>;
    const NAME: &'static str = "wbl";

    fn create(device: Arc<D>, tables: &[TableSpec], options: &Options) -> Result<Self> {
        let mut port = Port::new(Arc::clone(&device), 0);
        let mut log = Log::create(&*device)?;
        log.append(&mut port, WblSteps::record(0))?;
        let heap = Heap::create(Arc::clone(&device), KIND, tables, options.page_bytes)?;
        let steps = WblSteps::new(log, options.workers);
        let shared = Shared::new(device, heap, tables, steps, 0, options)?;
        Ok(Self { shared: Arc::new(shared) })
    }

    fn open(
        device: Arc<D>,
        tables: &[TableSpec],
        options: &Options,
    ) -> Result<(Self, RecoveryReport)> {
        let start = Instant::now();
        let mut port = Port::new(Arc::clone(&device), 0);
        let (heap, _) = Heap::open(Arc::clone(&device), KIND, tables, options.page_bytes)?;
        heap.make_durable(&mut port);
        let mut log = Log::open(&*device)?;
        let (durable, gaps) = (log.newest().after, log.gaps().to_vec());
        if log.newest().end > durable {
            let gap = log.newest();
            log.add_gap(&mut port, gap)?;
        }
        let base = log.newest().end;
        log.append(&mut port, WblSteps::record(base))?;
        let found = Instant::now();
        let pages = heap.find_pages(&mut port)?;
        let steps = WblSteps::new(log, options.workers);
        let shared = Shared::new(device, heap, tables, steps, base, options)?;
        let counts = |header: Header| {
            let timestamp = header.timestamp();
            timestamp <= durable && !gaps.iter().any(|gap| gap.contains(timestamp))
        };
        let scanned = recover_rows(&shared, &pages, &counts, false)?;
        let built = Instant::now();
        let mut report = scanned.report(&pages, [start, found, built]);
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
        let Shared { device, clock, persist, .. } = &*self.shared;
        let last = clock.0.load(std::sync::atomic::Ordering::SeqCst);
        let mut port = Port::new(Arc::clone(device), 0);
        // Nothing comes after the last transaction: the next open finds no gap.
        persist.log().append(&mut port, Gap { after: last, end: last })
    }
}
