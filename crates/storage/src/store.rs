//! A store: opening and creating, tables, sub-pools, checkpoints.

use std::sync::Arc;

use pmem::sync::Mutex;
use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::{Counters, Device, Port};

use crate::classes::{class_bytes, class_pool};
use crate::format::{
    CLASS_BYTES_MAX, CLASSES, CheckpointRecord, FEATURES_KNOWN, FORMAT_VERSION, ROW_HEADER_BYTES,
    SUB_POOLS, SUPERBLOCK_MAGIC, Superblock, TableRecord,
};
use crate::input_log::{InputLog, LogError, Recovered};
use crate::{
    CatalogChange, CatalogRequest, EndMark, Result, RowLayout, Segments, StateHash, StorageError,
    SubPool, TableDefinition, TypesMark, catalog, checkpoint, settle, superblock,
};

/// Most entries of a segment directory.
const SEGMENTS_MAX: u64 = 1 << 22;

/// Choices that are fixed when a store is created.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Bytes of a segment: the unit in which pools get space. A power of two, 4 KiB to 64 MiB;
    /// default 256 KiB.
    pub segment_bytes: u64,
    /// Bytes of a segment of the input log. A power of two, 4 KiB to 16 MiB; default 64 KiB.
    pub log_segment_bytes: u64,
    /// Whether to create a store where there is none; default true.
    pub create: bool,
    /// Random number that a new store gets.
    pub instance: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { segment_bytes: 256 << 10, log_segment_bytes: 64 << 10, create: true, instance: 1 }
    }
}

/// A number of a table: what the catalog says of it.
#[derive(Debug, Clone)]
pub struct StoredTable {
    /// The table; of a number that none has, one without a name and without rows.
    pub definition: TableDefinition,
    /// Where things are in its rows.
    pub layout: RowLayout,
    /// What is known of its types.
    pub types: TypesMark,
}

impl StoredTable {
    fn new((number, record): (u16, &TableRecord)) -> Self {
        let unused = TableRecord {
            row_bytes: ROW_HEADER_BYTES as u32,
            key_bytes_max: 8,
            index_kind: 1,
            ..catalog::UNUSED
        };
        let record = if *record == catalog::UNUSED { &unused } else { record };
        Self {
            definition: catalog::definition(record),
            layout: RowLayout::new(number, record),
            types: TypesMark { hash: record.types, versions: record.type_versions },
        }
    }

    /// Whether there is a table of this number.
    pub fn is_used(&self) -> bool {
        !self.definition.name.is_empty()
    }
}

/// An open store.
pub struct Store<D: Device> {
    device: Arc<D>,
    superblock: Superblock,
    segments: Segments,
    records: Vec<TableRecord>,
    tables: Vec<StoredTable>,
    /// Generation of the catalog that the next checkpoint names.
    catalog: AtomicU64,
    log: InputLog<D>,
    current: Mutex<CheckpointRecord>,
    checkpoint_epoch: AtomicU64,
}

/// What [`Store::open`] found.
pub struct Opened<D: Device> {
    /// The store.
    pub store: Store<D>,
    /// All sub-pools of all pools as of the checkpoint, pools in order, sub-pools in order within a
    /// pool.
    pub sub_pools: Vec<SubPool>,
    /// Committed epochs after the checkpoint.
    pub log: Recovered,
    /// Whether the store was created just now.
    pub created: bool,
    /// The newest epoch that is known to have ended before this open, if the device knows one.
    pub end_mark: Option<EndMark>,
    /// What went to and from the image.
    pub device: Counters,
}

impl<D: Device> Store<D> {
    /// Reads the store on a device, or creates one. An existing store is not changed, and its
    /// device is not accepted ([`Device::accept`]): the caller has to verify the rows first.
    ///
    /// # Errors
    /// `Missing` if there is none and `create` is off; `Foreign`, `Corrupt`, `Limit`, `Log`,
    /// `Device`.
    pub fn open(device: Arc<D>, options: &StoreOptions) -> Result<Opened<D>> {
        let mut port = Port::new(Arc::clone(&device), u32::MAX);
        let found = superblock::read_superblock(device.as_ref())?;
        let (superblock, created) = match found {
            Some(superblock) => (superblock, false),
            None if options.create => (create(&mut port, options)?, true),
            None => return Err(StorageError::Missing(device.description().name)),
        };
        check_instance(&superblock, device.as_ref())?;
        check_geometry(&superblock, device.as_ref())?;
        check_snapshot(device.as_ref())?;
        let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
        settle::metadata(&mut port, &segments);
        let current = checkpoint::read(device.as_ref())?;
        let records = catalog::read(device.as_ref(), current.catalog, superblock.segment_bytes)?;
        let tables: Vec<StoredTable> = (0..).zip(&records).map(StoredTable::new).collect();
        let sub_pools = load_sub_pools(device.as_ref(), &segments, &tables, current.sequence)?;
        count_opening(&mut port, &segments, (current.catalog, tables.len()), &sub_pools);
        settle::free_lists(&mut port, &segments, &sub_pools);
        let (log, recovered) = InputLog::open(
            Arc::clone(&device),
            superblock.instance,
            superblock.log_segment_bytes,
            current.epoch,
        )?;
        let end_mark = EndMark::read(device.as_ref());
        check_log(&log, &recovered, current.epoch, end_mark)?;
        let store = Self {
            device,
            superblock,
            segments,
            records,
            tables,
            catalog: AtomicU64::new(current.catalog),
            log,
            checkpoint_epoch: AtomicU64::new(current.epoch),
            current: Mutex::new(current),
        };
        let device = port.take_counters();
        Ok(Opened { store, sub_pools, log: recovered, created, end_mark, device })
    }

    /// Finds out what has to change in the catalog for what a program asks for.
    ///
    /// # Errors
    /// `OtherTable` for a table that is stored with another definition, or a name that two tables
    /// would have; `Limit` for one table too many.
    pub fn plan_catalog(&self, request: &CatalogRequest) -> Result<CatalogChange> {
        CatalogChange::plan(&self.records, request, self.superblock.segment_bytes)
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
        self.records.clone_from(&change.records);
        self.tables = (0..).zip(&change.records).map(StoredTable::new).collect();
        for table in &self.tables[..before.len()] {
            let (number, bytes) = (table.layout.table, table.layout.row_bytes);
            let is_new = !before[usize::from(number)].is_used() && table.is_used();
            if is_new || change.dropped.contains(&number) {
                let of_table = sub_pools.iter_mut().filter(|sub_pool| sub_pool.pool() == number);
                of_table.for_each(|sub_pool| sub_pool.empty(bytes, &self.segments));
            }
        }
        let (new, sequence) = (&self.tables[before.len()..], self.checkpoint().sequence);
        sub_pools.extend(load_row_sub_pools(self.device.as_ref(), &self.segments, new, sequence)?);
        Ok(())
    }

    /// Writes an adopted catalog, durably. It counts with the next checkpoint, and until then
    /// nothing refers to it.
    pub fn write_catalog(&self, port: &mut Port<D>, change: &CatalogChange) {
        let generation = self.checkpoint().catalog + 1;
        catalog::write(port, generation, &change.records);
        port.fence();
        self.catalog.store(generation, Ordering::Relaxed);
    }

    /// The device below.
    pub fn device(&self) -> &Arc<D> {
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
    pub fn prepare_rows(&self, rows: &[(u16, u64)]) -> Result<u64> {
        let segment_bytes = self.segments.segment_bytes();
        let segments_of = |&(table, rows): &(u16, u64)| {
            let per_segment = segment_bytes / self.tables[table as usize].layout.row_bytes;
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
    pub fn log(&self) -> &InputLog<D> {
        &self.log
    }

    /// The last checkpoint.
    pub fn checkpoint(&self) -> CheckpointRecord {
        *self.current.lock().expect("no panic while locked")
    }

    /// Epoch of the last checkpoint.
    #[inline]
    pub fn checkpoint_epoch(&self) -> u64 {
        self.checkpoint_epoch.load(Ordering::Acquire)
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
        port: &mut Port<D>,
        epoch: u64,
        hash: Option<StateHash>,
        rows: u64,
        deferred_calls: u32,
    ) {
        let mut current = self.current.lock().expect("no panic while locked");
        let is_later = epoch > current.epoch;
        let catalog = self.catalog.load(Ordering::Relaxed);
        let changes = epoch == current.epoch && catalog != current.catalog;
        assert!(is_later || changes, "checkpoint {epoch} after {}", current.epoch);
        let sequence = current.sequence + 1;
        let record = CheckpointRecord::new(sequence, epoch, hash, rows, deferred_calls);
        let record = CheckpointRecord { catalog, ..record };
        checkpoint::write(port, record);
        *current = record;
        self.checkpoint_epoch.store(epoch, Ordering::Release);
    }
}

/// Snapshots the whole image, on devices that need it, and waits until it is durable.
///
/// # Errors
/// The device's.
pub fn snapshot_image<D: Device>(device: &D, epoch: u64) -> Result<()> {
    if device.takes_snapshots() {
        device.snapshot_part(0, 1)?;
        device.snapshot_commit(epoch)?;
        device.settle()?;
    }
    Ok(())
}

fn power_of_two_in(what: &str, value: u64, low: u64, high: u64) -> Result<()> {
    if value.is_power_of_two() && (low..=high).contains(&value) {
        return Ok(());
    }
    Err(StorageError::Limit(format!(
        "{what} is {value}, must be a power of two from {low} to {high}"
    )))
}

/// Lays out an empty store. The superblocks come last: an open that sees one finds a checkpoint
/// (epoch 0, empty) and a program in the log (none that is known yet), and without one the next
/// open starts over.
fn create<D: Device>(port: &mut Port<D>, options: &StoreOptions) -> Result<Superblock> {
    power_of_two_in("segment_bytes", options.segment_bytes, 4096, 64 << 20)?;
    power_of_two_in("log_segment_bytes", options.log_segment_bytes, 4096, 16 << 20)?;
    port.device().accept()?;
    let reserved = port.device().image().len();
    let superblock = Superblock {
        magic: SUPERBLOCK_MAGIC,
        version: FORMAT_VERSION,
        crc: 0,
        features_required: FEATURES_KNOWN,
        features_optional: 0,
        instance: port.device().instance().unwrap_or(options.instance),
        segment_bytes: options.segment_bytes,
        segments_max: (reserved / options.segment_bytes).clamp(1, SEGMENTS_MAX),
        log_segment_bytes: options.log_segment_bytes,
    };
    let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
    port.device().grow_image(segments.image_bytes(0))?;
    let empty = CheckpointRecord::new(0, 0, Some(StateHash::default()), 0, 0);
    checkpoint::write(port, empty);
    catalog::write(port, empty.catalog, &[]);
    port.fence();
    let device = Arc::clone(port.device());
    let (log, _) = InputLog::open(device, superblock.instance, superblock.log_segment_bytes, 0)?;
    log.write_program(port, &[])?;
    superblock::write_superblocks(port, superblock);
    Ok(superblock)
}

/// An image snapshot is made at a checkpoint: a device that names another epoch holds another
/// image.
fn check_snapshot<D: Device>(device: &D) -> Result<()> {
    let epoch = checkpoint::read(device)?.epoch;
    match device.snapshot_epoch() {
        Some(saved) if saved != epoch => Err(StorageError::Corrupt(format!(
            "the image was saved at epoch {saved}, but its checkpoint is of epoch {epoch}"
        ))),
        _ => Ok(()),
    }
}

/// The image must belong to the same store as the device's own files.
fn check_instance<D: Device>(superblock: &Superblock, device: &D) -> Result<()> {
    match device.instance() {
        Some(instance) if instance != superblock.instance => Err(StorageError::Foreign(format!(
            "the image belongs to store {:016x}, the other files to store {instance:016x}: files \
             of two stores were mixed",
            superblock.instance
        ))),
        _ => Ok(()),
    }
}

/// The log must hold what is known to have been in it: a program, because that is durable before
/// the superblock is, and every epoch that ended.
fn check_log<D: Device>(
    log: &InputLog<D>,
    found: &Recovered,
    checkpoint: u64,
    end_mark: Option<EndMark>,
) -> Result<()> {
    let last = found.last(checkpoint);
    let lost = |what: String| Err(LogError::Lost { last, what }.into());
    if log.program().is_none() {
        return lost(match found.foreign {
            Some(other) => format!("it belongs to another store ({other:016x})"),
            None => "nothing of what every log of a store begins with is in it: it was emptied, \
                     cut off or shifted"
                .to_string(),
        });
    }
    match end_mark {
        Some(EndMark { epoch, .. }) if epoch > last => {
            lost(format!("epoch {epoch} had ended, and the log holds no epoch after {last}"))
        }
        _ => Ok(()),
    }
}

fn check_geometry<D: Device>(superblock: &Superblock, device: &D) -> Result<()> {
    let Superblock { segment_bytes, segments_max, log_segment_bytes, .. } = *superblock;
    let sizes = [(segment_bytes, 64 << 20), (log_segment_bytes, 16 << 20)];
    let wrong = |(bytes, max)| !u64::is_power_of_two(bytes) || !(4096..=max).contains(&bytes);
    if sizes.into_iter().any(wrong) || !(1..=SEGMENTS_MAX).contains(&segments_max) {
        return Err(StorageError::Corrupt(format!(
            "the superblock has {segments_max} segments of {segment_bytes} bytes, and \
             {log_segment_bytes} in the log"
        )));
    }
    let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
    let needed = segments.image_bytes(0);
    if device.image_bytes() < needed {
        return Err(StorageError::Corrupt(format!(
            "the image has {} bytes, its own superblock asks for {needed} at least",
            device.image_bytes()
        )));
    }
    if device.image().len() < segments.image_bytes(superblock.segments_max.min(1)) {
        return Err(StorageError::Limit("the device's limit is smaller than the store".into()));
    }
    Ok(())
}

/// The sub-pools of the pools of these tables, in order, without the segments that they have.
fn load_row_sub_pools<D: Device>(
    device: &D,
    segments: &Segments,
    tables: &[StoredTable],
    sequence: u64,
) -> Result<Vec<SubPool>> {
    let mut sub_pools = Vec::with_capacity((tables.len() + CLASSES) * SUB_POOLS);
    for table in tables {
        let (pool, bytes) = (table.layout.table, table.layout.row_bytes);
        for sub_pool in 0..SUB_POOLS {
            sub_pools.push(SubPool::load(device, segments, pool, sub_pool as u8, bytes, sequence)?);
        }
    }
    Ok(sub_pools)
}

/// Counts and charges what opening a store read of its image: as one step, so each line once.
fn count_opening<D: Device>(
    port: &mut Port<D>,
    segments: &Segments,
    (generation, tables): (u64, usize),
    sub_pools: &[SubPool],
) {
    superblock::count_reads(port);
    catalog::count_reads(port, generation, tables);
    checkpoint::count_reads(port);
    segments.count_reads(port);
    for sub_pool in sub_pools {
        sub_pool.count_state(port);
        sub_pool.count_free_list(port, segments);
    }
    port.pay_owed_time();
}

/// All sub-pools of the pools of these tables and of all value classes that fit a segment.
fn load_sub_pools<D: Device>(
    device: &D,
    segments: &Segments,
    tables: &[StoredTable],
    sequence: u64,
) -> Result<Vec<SubPool>> {
    let mut sub_pools = load_row_sub_pools(device, segments, tables, sequence)?;
    let mut first_of_pool = vec![None; crate::format::POOLS];
    for (number, table) in tables.iter().enumerate() {
        first_of_pool[table.layout.table as usize] = Some(number * SUB_POOLS);
    }
    let values = (0..CLASSES)
        .map(|class| (class_pool(class), class_bytes(class)))
        .filter(|&(_, bytes)| bytes <= segments.segment_bytes().min(CLASS_BYTES_MAX));
    for (pool, slot_bytes) in values {
        first_of_pool[pool as usize] = Some(sub_pools.len());
        for sub_pool in 0..SUB_POOLS {
            sub_pools.push(SubPool::load(
                device,
                segments,
                pool,
                sub_pool as u8,
                slot_bytes,
                sequence,
            )?);
        }
    }
    for (segment, entry) in segments.load(device)? {
        let first: usize = first_of_pool[entry.pool as usize].ok_or_else(|| {
            StorageError::Corrupt(format!(
                "segment {segment} belongs to unknown pool {}",
                entry.pool
            ))
        })?;
        sub_pools[first + entry.sub_pool as usize].attach(segment, entry, segments)?;
    }
    for sub_pool in &sub_pools {
        sub_pool.validate()?;
        sub_pool.validate_free_list(device, segments)?;
    }
    Ok(sub_pools)
}

#[cfg(test)]
pub(crate) mod tests;
