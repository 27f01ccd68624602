//! A store that is open: its tables, its catalog, its checkpoints.

use std::sync::Arc;

use pmem::sync::Mutex;
use pmem::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pmem::{AnyDevice, Counters, Device, Port};

use crate::catalog;
use crate::catalog::{CatalogChange, CatalogRequest, StoreOf};
use crate::digest::StateHash;
use crate::error::{Result, StorageError};
use crate::format::{
    CheckpointRecord, DIRECTORY_OFFSET, FEATURE_SINGLE_HEAPS, Superblock, TABLES_MAX, TableRecord,
};
use crate::ids::{EpochNumber, TableId};
use crate::input_log::{InputLog, Recovered};
use crate::pool::{SegmentUses, Segments, SubPool};
use crate::store::create::create;
use crate::store::options::StoreOptions;
use crate::store::sub_pools::{count_opening, load_row_sub_pools, load_sub_pools};
use crate::store::table::{StoredTable, stored_tables};
use crate::store::verify::{
    check_geometry, check_instance, check_log, check_nothing_is_lost, check_snapshot,
};
use crate::store::{EndMark, checkpoint, settle, superblock};

/// Snapshots the whole image, on devices that need it, and waits until it is durable.
///
/// # Errors
/// The device's.
pub fn snapshot_image(device: &AnyDevice, epoch: EpochNumber) -> Result<()> {
    if device.takes_snapshots() {
        device.snapshot_part(0, 1)?;
        device.snapshot_commit(epoch)?;
        device.settle()?;
        assert!(device.snapshot_epoch() == Some(epoch), "the image of epoch {epoch} is durable");
    }
    Ok(())
}

/// An open store.
pub struct Store {
    device: Arc<AnyDevice>,
    superblock: Superblock,
    segments: Segments,
    records: Vec<TableRecord>,
    tables: Vec<StoredTable>,
    /// Generation of the catalog that the next checkpoint names.
    catalog: AtomicU32,
    log: InputLog,
    current: Mutex<CheckpointRecord>,
    checkpoint_epoch: AtomicU64,
}

/// What [`Store::open`] found.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// All sub-pools of all pools as of the checkpoint, pools in order, sub-pools in order within a
    /// pool.
    pub sub_pools: Vec<SubPool>,
    /// Segments of indexes that are kept.
    pub index_segments: SegmentUses,
    /// Committed epochs after the checkpoint.
    pub log: Recovered,
    /// Whether the store was created just now.
    pub created: bool,
    /// The newest epoch that is known to have ended before this open, if the device knows one.
    pub end_mark: Option<EndMark>,
    /// What went to and from the image.
    pub device: Counters,
}

impl Store {
    /// Reads the store on a device, or creates one. An existing store is not changed, and its
    /// device is not accepted ([`Device::accept`]): the caller has to verify the rows first.
    ///
    /// # Errors
    /// `Missing` if there is none and `create` is off; `Foreign`, `Corrupt`, `Limit`, `Log`,
    /// `Device`.
    pub fn open(device: Arc<AnyDevice>, options: &StoreOptions) -> Result<Opened> {
        let mut port = Port::new(Arc::clone(&device), u32::MAX);
        device.read_pages(0, DIRECTORY_OFFSET)?;
        let found = superblock::read_superblock(device.as_ref())?;
        if found.is_none() {
            check_nothing_is_lost(device.as_ref())?;
        }
        let (superblock, created) = match found {
            Some(superblock) => (superblock, false),
            None if options.create => (create(&mut port, options)?, true),
            None => return Err(StorageError::Missing(device.description().name)),
        };
        check_instance(&superblock, device.as_ref())?;
        check_geometry(&superblock, device.as_ref())?;
        check_snapshot(device.as_ref())?;
        let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
        device.read_pages(DIRECTORY_OFFSET, segments.places(device.as_ref()) * 8)?;
        settle::metadata(&mut port, &segments);
        let current = checkpoint::read(device.as_ref())?;
        let generation = u64::from(current.catalog);
        let records = catalog::read(device.as_ref(), generation, superblock.segment_bytes)?;
        let tables = stored_tables(&records);
        let (sub_pools, index_segments) =
            load_sub_pools(device.as_ref(), &segments, &tables, current.sequence)?;
        count_opening(&mut port, &segments, generation, tables.len(), &sub_pools);
        settle::free_lists(&mut port, &segments, &sub_pools);
        let (log, mut recovered) = InputLog::open(
            Arc::clone(&device),
            superblock.instance,
            superblock.log_segment_bytes,
            EpochNumber(current.epoch),
        )?;
        recovered.timestamp_ns = recovered.timestamp_ns.max(current.timestamp_ns);
        let end_mark = EndMark::read(device.as_ref());
        check_log(device.as_ref(), &log, &recovered, EpochNumber(current.epoch))?;
        let store = Self {
            device,
            superblock,
            segments,
            records,
            tables,
            catalog: AtomicU32::new(current.catalog),
            log,
            checkpoint_epoch: AtomicU64::new(current.epoch),
            current: Mutex::new(current),
        };
        let device = port.take_counters();
        let log = recovered;
        Ok(Opened { store, sub_pools, index_segments, log, created, end_mark, device })
    }

    /// Finds out what has to change in the catalog for what a program asks for.
    ///
    /// # Errors
    /// `OtherTable` for a table that is stored with another definition, or a name that two tables
    /// would have; `Limit` for one table too many.
    pub fn plan_catalog(&self, request: &CatalogRequest) -> Result<CatalogChange> {
        let (segment_bytes, snapshots) =
            (self.superblock.segment_bytes, self.device.takes_snapshots());
        CatalogChange::plan(&self.records, request, StoreOf { segment_bytes, snapshots })
    }

    /// Goes on with another catalog, in memory: with the tables of it, and with empty pools for
    /// those that are new and those that are no longer there, whose segments other pools can have
    /// after the next checkpoint. [`Store::write_catalog`] and the checkpoint after that make all
    /// of it count.
    ///
    /// # Errors
    /// `Corrupt` if the state of a pool is damaged.
    pub fn adopt_catalog(
        &mut self,
        change: &CatalogChange,
        sub_pools: &mut Vec<SubPool>,
    ) -> Result<()> {
        let before = std::mem::take(&mut self.tables);
        let count = change.records.len();
        assert!(count >= before.len(), "a table keeps its number, and {count} are too few");
        assert!(count <= TABLES_MAX, "{count} tables are too many");
        self.records.clone_from(&change.records);
        self.tables = stored_tables(&change.records);
        for table in &self.tables[..before.len()] {
            let (number, bytes) = (table.layout.table, table.layout.row_bytes);
            let is_new = !before[number.index()].is_used() && table.is_used();
            if is_new || change.dropped.contains(&number) {
                let of_table = sub_pools.iter_mut().filter(|sub_pool| sub_pool.pool() == number.0);
                of_table.for_each(|sub_pool| sub_pool.empty(bytes, &self.segments));
            }
        }
        let (new, sequence) = (&self.tables[before.len()..], self.checkpoint().sequence);
        sub_pools.extend(load_row_sub_pools(self.device.as_ref(), &self.segments, new, sequence)?);
        Ok(())
    }

    /// Writes an adopted catalog, durably. It counts with the next checkpoint, and until then
    /// nothing refers to it.
    pub fn write_catalog(&self, port: &mut Port, change: &CatalogChange) {
        let generation = self.checkpoint().catalog + 1;
        assert!(change.records == self.records, "a catalog is adopted before it is written");
        if self.tables.iter().any(|table| table.layout.has_single_heap()) {
            self.require_feature(port, FEATURE_SINGLE_HEAPS);
        }
        catalog::write(port, u64::from(generation), &change.records);
        port.fence();
        self.catalog.store(generation, Ordering::Relaxed);
    }

    /// Whether a reader must know a feature.
    pub fn has_feature(&self, feature: u64) -> bool {
        let found = superblock::read_superblock(self.device.as_ref());
        let found = found.ok().flatten().expect("the store was opened by it");
        found.features_required & feature != 0
    }

    /// Says that a reader must know a feature, if the store does not say so yet. It counts with the
    /// next snapshot: only for devices that take them.
    pub fn require_feature(&self, port: &mut Port, feature: u64) {
        assert!(self.device.takes_snapshots(), "both superblocks are written at once");
        let found = superblock::read_superblock(self.device.as_ref());
        let found = found.ok().flatten().expect("the store was opened by it");
        let features_required = found.features_required | feature;
        if features_required != found.features_required {
            superblock::write_superblocks(port, Superblock { features_required, ..found });
        }
    }

    /// The device below.
    pub fn device(&self) -> &Arc<AnyDevice> {
        &self.device
    }

    /// Geometry.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The segment directory.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// What the catalog has of each number.
    pub(crate) fn records(&self) -> &[TableRecord] {
        &self.records
    }

    /// The tables, in the order of their ids.
    pub fn tables(&self) -> &[StoredTable] {
        &self.tables
    }

    /// Makes room for rows that are expected, and their pages present, so that creating them costs
    /// no growth and no page fault. Returns the bytes.
    ///
    /// # Errors
    /// `Device(Full)`; nothing has changed then.
    pub fn prepare_rows(&self, rows: &[(TableId, u64)]) -> Result<u64> {
        let segment_bytes = self.segments.segment_bytes();
        let segments_of = |&(table, rows): &(TableId, u64)| {
            let per_segment = segment_bytes / self.tables[table.index()].layout.row_bytes;
            // Every sub-pool may leave its last segment half empty.
            rows.div_ceil(per_segment) + u64::from(rows > 0)
        };
        let segments = rows.iter().map(segments_of).sum();
        self.segments.reserve(self.device.as_ref(), segments)?;
        let bytes = segments * segment_bytes;
        let first = self.segments.image_bytes(self.segments.used());
        self.device.image().populate(first, bytes);
        Ok(bytes)
    }

    /// The input log.
    pub fn log(&self) -> &InputLog {
        &self.log
    }

    /// The last checkpoint.
    pub fn checkpoint(&self) -> CheckpointRecord {
        *self.current.lock().expect("no panic while locked")
    }

    /// Epoch of the last checkpoint.
    #[inline]
    pub fn checkpoint_epoch(&self) -> EpochNumber {
        EpochNumber(self.checkpoint_epoch.load(Ordering::Acquire))
    }

    /// Number of the checkpoint that comes next: pools save their offsets under it.
    pub fn next_sequence(&self) -> u64 {
        self.checkpoint().sequence + 1
    }

    /// Makes the end of `epoch` the checkpoint; that of the checkpoint before only where another
    /// catalog begins. Everything else must be fenced (O-22). `hash` is `None` where it was not
    /// maintained.
    pub fn commit(
        &self,
        port: &mut Port,
        epoch: EpochNumber,
        hash: Option<StateHash>,
        rows: u64,
        deferred_calls: u32,
    ) {
        let mut current = self.current.lock().expect("no panic while locked");
        let is_later = epoch > EpochNumber(current.epoch);
        let catalog = self.catalog.load(Ordering::Relaxed);
        let changes = epoch == EpochNumber(current.epoch) && catalog != current.catalog;
        assert!(is_later || changes, "checkpoint {epoch} after {}", current.epoch);
        assert!(catalog >= current.catalog, "a checkpoint does not go back to another catalog");
        assert!(catalog - current.catalog <= 1, "one catalog at a time becomes the next");
        let sequence = current.sequence + 1;
        let record = CheckpointRecord::new(sequence, epoch, hash, rows, deferred_calls);
        let timestamp_ns = current.timestamp_ns.max(self.log.timestamp_ns());
        let record = CheckpointRecord { catalog, timestamp_ns, ..record };
        checkpoint::write(port, record);
        *current = record;
        self.checkpoint_epoch.store(epoch.0, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests;
