//! What all workers of an engine share.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pmem::{Device, Port};
use workloads::TableSpec;
use xxhash_rust::xxh3::xxh3_64;

use super::design::{Design, Durable};
use super::group::Group;
use super::log::{Log, Writer};
use super::region::Regions;
use super::snapshots::{Own, Snapshots};
use super::tables::{Pool, Table};
use crate::error::{Error, Result};
use crate::grace::Grace;
use crate::image::layout::{layouts, superblock};
use crate::rival::{Options, Stop};

/// Bytes of a table, for what counts as memory of the device.
const TABLE_BYTES: u64 = 1 << 42;
/// Where records, contents and leaves of a table begin in these.
const CONTENTS_AT: u64 = 1 << 41;
const LEAVES_AT: u64 = 1 << 40;
/// Blocks among which the leaves of a table are spread.
const LEAF_BLOCKS: u64 = 1 << 28;

/// See the module's documentation.
pub(super) struct Shared<D: Device, N: Design> {
    pub(super) device: Arc<D>,
    pub(super) tables: Box<[Table]>,
    pub(super) grace: Grace,
    pub(super) regions: Regions,
    /// Of use where transactions read snapshots.
    pub(super) snapshots: Snapshots,
    /// `None` where nothing is kept.
    pub(super) log: Option<Log<D>>,
    pub(super) group: Option<Group>,
    /// The device failed in the middle of a commit: no transaction may commit any more.
    failed: AtomicBool,
    pub(super) options: Options,
    /// What each worker left that has no session.
    left: Box<[Mutex<Option<Left>>]>,
    /// Held by the worker that takes a checkpoint.
    pub(super) checkpoint: Mutex<()>,
    design: PhantomData<N>,
}

/// What the next session of a worker goes on with.
pub(super) struct Left {
    pub(super) pools: Box<[Pool]>,
    pub(super) writer: Writer,
    pub(super) own: Own,
}

/// A number for tables with their sizes.
pub(super) fn fingerprint(specs: &[TableSpec], options: &Options) -> u64 {
    let words = superblock(0, options.page_bytes, specs);
    xxh3_64(zerocopy::IntoBytes::as_bytes(&words[..]))
}

impl<D: Device, N: Design> Shared<D, N> {
    /// Empty tables over a log.
    pub(super) fn new(
        device: Arc<D>,
        specs: &[TableSpec],
        log: Option<Log<D>>,
        options: &Options,
    ) -> Result<Self> {
        let workers = options.check_workers()?;
        let layouts = layouts(specs, options.page_bytes)?;
        let tables = specs.iter().zip(layouts);
        let tables = tables.map(|(spec, layout)| Table::new(spec, layout, workers));
        let groups = N::DURABLE == Durable::ByGroups;
        Ok(Self {
            tables: tables.collect::<Result<_>>()?,
            grace: Grace::new(workers),
            regions: Regions::new(0),
            snapshots: Snapshots::new(workers),
            group: groups.then(|| Group::new(workers, options.group_us)),
            failed: AtomicBool::new(false),
            options: options.clone(),
            left: (0..workers).map(|_| Mutex::default()).collect(),
            checkpoint: Mutex::default(),
            device,
            log,
            design: PhantomData,
        })
    }

    /// What the last session of a worker left.
    pub(super) fn take_left(&self, worker: usize) -> Left {
        assert!(worker < self.left.len(), "there is no worker {worker}");
        let left = crate::lock(&self.left[worker]).take();
        left.unwrap_or_else(|| Left {
            pools: self.tables.iter().map(|_| Pool::default()).collect(),
            writer: Writer::new(worker as u64),
            own: Own::default(),
        })
    }

    pub(super) fn leave(&self, worker: usize, left: Left) {
        *crate::lock(&self.left[worker]) = Some(left);
    }

    /// Whether transactions may commit.
    pub(super) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::Broken("a commit before this one failed".into()));
        }
        self.group.as_ref().map_or(Ok(()), Group::check)
    }

    /// No transaction may commit any more: what this one wrote is seen, and not durable.
    pub(super) fn fail(&self, error: Error) -> Stop {
        self.failed.store(true, Ordering::Release);
        Stop::Failed(error)
    }

    /// Charges a lookup in an index as the read of a block of a leaf. Which leaf it is, is made up
    /// from the key; the nodes above are in the processor's cache.
    pub(super) fn charge_index(&self, port: &mut Port<D>, table: usize, key: &[u8]) {
        let block = xxh3_64(key) % LEAF_BLOCKS;
        let at = table as u64 * TABLE_BYTES + LEAVES_AT + block * pmem::BLOCK_BYTES;
        port.charge_load(at, pmem::BLOCK_BYTES);
    }

    /// Charges that a content takes the place of another one in persistent memory.
    pub(super) fn charge_move(&self, port: &mut Port<D>, table: usize, record: u32, content: u64) {
        let start = table as u64 * TABLE_BYTES;
        port.count_run(start + u64::from(record) * pmem::LINE_BYTES, 1);
        if content != 0 {
            let bytes = self.tables[table].layout.payload_words as u64 * 8;
            let at = start + CONTENTS_AT + (content - 1) * bytes;
            let first = at - at % pmem::LINE_BYTES;
            port.count_run(first, (at + bytes - first).div_ceil(pmem::LINE_BYTES));
        }
    }

    /// Charges the read of a record, and of its content if that was read.
    pub(super) fn charge_record(
        &self,
        port: &mut Port<D>,
        table: usize,
        record: u32,
        content: Option<u64>,
    ) {
        let start = table as u64 * TABLE_BYTES;
        port.charge_load(start + u64::from(record) * pmem::LINE_BYTES, pmem::LINE_BYTES);
        if let Some(content) = content.filter(|content| *content != 0) {
            let bytes = self.tables[table].layout.payload_words as u64 * 8;
            port.charge_load(start + CONTENTS_AT + (content - 1) * bytes, bytes);
        }
    }
}
