//! A store: opening and creating, tables, lanes, checkpoints.

use std::sync::Arc;

use pmem::sync::Mutex;
use pmem::sync::atomic::{AtomicU64, Ordering};
use pmem::{Device, Port};

use crate::format::{
    CLASS_BYTES_MAX, CLASS_BYTES_MIN, CLASSES, CheckpointRecord, FEATURES_KNOWN, FORMAT_VERSION,
    LANES, SUPERBLOCK_MAGIC, Superblock, TABLES_MAX,
};
use crate::input_log::{InputLog, Recovered};
use crate::superblock::{self, TableDefinition};
use crate::{LanePool, Result, RowLayout, Segments, StateHash, StorageError, checkpoint};

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

/// A table as it is on the medium.
#[derive(Debug, Clone)]
pub struct StoredTable {
    /// What its catalog record says.
    pub definition: TableDefinition,
    /// Where things are in its rows.
    pub layout: RowLayout,
}

/// An open store.
pub struct Store<D: Device> {
    device: Arc<D>,
    superblock: Superblock,
    segments: Segments,
    tables: Vec<StoredTable>,
    log: InputLog<D>,
    current: Mutex<CheckpointRecord>,
    checkpoint_epoch: AtomicU64,
}

/// What [`Store::open`] found.
pub struct Opened<D: Device> {
    /// The store.
    pub store: Store<D>,
    /// All lanes of all pools as of the checkpoint, pools in order, lanes in order within a pool.
    pub lanes: Vec<LanePool>,
    /// Sealed epochs after the checkpoint.
    pub log: Recovered,
    /// Whether the store was created just now.
    pub created: bool,
    /// For each table asked for, its position in the catalog.
    pub table_ids: Vec<u16>,
}

/// Pool of the values of a class.
pub fn class_pool(class: usize) -> u16 {
    (TABLES_MAX + class) as u16
}

/// Class of values of a length: the smallest power of two from 128 that holds it (O-42).
pub fn class_of(len: u64) -> usize {
    let bytes = len.max(CLASS_BYTES_MIN).next_power_of_two();
    (bytes.trailing_zeros() - CLASS_BYTES_MIN.trailing_zeros()) as usize
}

/// Bytes of a slot of a class.
pub fn class_bytes(class: usize) -> u64 {
    CLASS_BYTES_MIN << class
}

impl<D: Device> Store<D> {
    /// Opens the store on a device, or creates one, and adds tables that it does not have yet.
    ///
    /// # Errors
    /// `Missing` if there is none and `create` is off; `Foreign`, `Corrupt`, `Limit`, `Device`.
    pub fn open(
        device: Arc<D>,
        options: &StoreOptions,
        wanted: &[TableDefinition],
    ) -> Result<Opened<D>> {
        let mut port = Port::new(Arc::clone(&device), u32::MAX);
        let found = superblock::read_superblock(device.as_ref())?;
        let (superblock, created) = match found {
            Some(superblock) => (superblock, false),
            None if options.create => (create(&mut port, options)?, true),
            None => return Err(StorageError::Missing(device.description().name)),
        };
        check_geometry(&superblock, device.as_ref())?;
        check_capture(device.as_ref())?;
        let (table_ids, added) = add_tables(&mut port, &superblock, wanted)?;
        if added || created {
            capture(device.as_ref(), checkpoint::read(device.as_ref())?.epoch)?;
        }
        let tables: Vec<StoredTable> =
            superblock::read_catalog(device.as_ref(), superblock.segment_bytes)?
                .iter()
                .enumerate()
                .map(|(i, record)| StoredTable {
                    definition: superblock::definition(record),
                    layout: RowLayout::new(i as u16, record),
                })
                .collect();
        let current = checkpoint::read(device.as_ref())?;
        let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
        let lanes = load_lanes(device.as_ref(), &segments, &tables, current.sequence)?;
        let (log, recovered) = InputLog::open(
            Arc::clone(&device),
            superblock.instance,
            superblock.log_segment_bytes,
            current.epoch,
        )?;
        let store = Self {
            device,
            superblock,
            segments,
            tables,
            log,
            checkpoint_epoch: AtomicU64::new(current.epoch),
            current: Mutex::new(current),
        };
        Ok(Opened { store, lanes, log: recovered, created, table_ids })
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
            // Every lane may leave its last segment half empty.
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

    /// Makes the end of `epoch` the checkpoint. Everything else must be fenced (O-22). `hash` is
    /// `None` where it was not kept up.
    pub fn commit(
        &self,
        port: &mut Port<D>,
        epoch: u64,
        hash: Option<StateHash>,
        rows: u64,
        carry_calls: u32,
    ) {
        let mut current = self.current.lock().expect("no panic while locked");
        assert!(epoch > current.epoch, "checkpoint {epoch} after {}", current.epoch);
        let sequence = current.sequence + 1;
        let record = CheckpointRecord::new(sequence, epoch, hash, rows, carry_calls);
        checkpoint::write(port, record);
        *current = record;
        self.checkpoint_epoch.store(epoch, Ordering::Release);
    }
}

/// Captures the whole image, on devices that need it, and waits until it is durable.
///
/// # Errors
/// The device's.
pub fn capture<D: Device>(device: &D, epoch: u64) -> Result<()> {
    if device.captures() {
        device.capture_part(0, 1)?;
        device.capture_commit(epoch)?;
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

fn create<D: Device>(port: &mut Port<D>, options: &StoreOptions) -> Result<Superblock> {
    power_of_two_in("segment_bytes", options.segment_bytes, 4096, 64 << 20)?;
    power_of_two_in("log_segment_bytes", options.log_segment_bytes, 4096, 16 << 20)?;
    let reserved = port.device().image().len();
    let superblock = Superblock {
        magic: SUPERBLOCK_MAGIC,
        version: FORMAT_VERSION,
        crc: 0,
        features_required: FEATURES_KNOWN,
        features_optional: 0,
        instance: options.instance,
        segment_bytes: options.segment_bytes,
        segments_max: (reserved / options.segment_bytes).clamp(1, SEGMENTS_MAX),
        log_segment_bytes: options.log_segment_bytes,
    };
    let segments = Segments::new(superblock.segment_bytes, superblock.segments_max);
    port.device().grow_image(segments.image_bytes(0))?;
    // The checkpoint record first: whoever sees a superblock finds a checkpoint (epoch 0, empty).
    let empty = CheckpointRecord::new(0, 0, Some(StateHash::default()), 0, 0);
    checkpoint::write(port, empty);
    superblock::write_superblocks(port, superblock);
    Ok(superblock)
}

/// A capture is made at a checkpoint: a device that names another epoch holds another image.
fn check_capture<D: Device>(device: &D) -> Result<()> {
    let epoch = checkpoint::read(device)?.epoch;
    match device.captured_epoch() {
        Some(captured) if captured != epoch => Err(StorageError::Corrupt(format!(
            "the image was captured at epoch {captured}, but its checkpoint is of epoch {epoch}"
        ))),
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

fn add_tables<D: Device>(
    port: &mut Port<D>,
    superblock: &Superblock,
    wanted: &[TableDefinition],
) -> Result<(Vec<u16>, bool)> {
    let mut records = superblock::read_catalog(port.device().as_ref(), superblock.segment_bytes)?;
    let before = records.len();
    let mut ids = Vec::new();
    for table in wanted {
        let existing = records.iter().position(|r| superblock::definition(r).name == table.name);
        if let Some(id) = existing {
            let stored = superblock::definition(&records[id]);
            let asked = TableDefinition {
                row_bytes: if table.row_bytes == 0 { stored.row_bytes } else { table.row_bytes },
                ..table.clone()
            };
            if asked != stored {
                return Err(StorageError::Limit(format!(
                    "table {:?} is stored as {stored:?}, asked for as {asked:?}",
                    table.name
                )));
            }
            ids.push(id as u16);
            continue;
        }
        if records.len() == TABLES_MAX {
            return Err(StorageError::Limit(format!("more than {TABLES_MAX} tables")));
        }
        let record = table.to_record(superblock.segment_bytes)?;
        superblock::write_table(port, records.len(), &record);
        // One by one: a crash tears the last record at most, and a torn one before others is
        // damage.
        port.fence();
        ids.push(records.len() as u16);
        records.push(record);
    }
    Ok((ids, records.len() > before))
}

/// All lanes of the pools of these tables and of all value classes that fit a segment.
fn load_lanes<D: Device>(
    device: &D,
    segments: &Segments,
    tables: &[StoredTable],
    sequence: u64,
) -> Result<Vec<LanePool>> {
    let mut lanes = Vec::with_capacity((tables.len() + CLASSES) * LANES);
    let mut first_of_pool = vec![None; crate::format::POOLS];
    let rows = tables.iter().map(|t| (t.layout.table, t.layout.row_bytes));
    let values = (0..CLASSES)
        .map(|class| (class_pool(class), CLASS_BYTES_MIN << class))
        .filter(|&(_, bytes)| bytes <= segments.segment_bytes().min(CLASS_BYTES_MAX));
    for (pool, slot_bytes) in rows.chain(values) {
        first_of_pool[pool as usize] = Some(lanes.len());
        for lane in 0..LANES {
            lanes.push(LanePool::load(device, segments, pool, lane as u8, slot_bytes, sequence)?);
        }
    }
    for (segment, entry) in segments.load(device)? {
        let first: usize = first_of_pool[entry.pool as usize].ok_or_else(|| {
            StorageError::Corrupt(format!(
                "segment {segment} belongs to unknown pool {}",
                entry.pool
            ))
        })?;
        lanes[first + entry.lane as usize].attach(segment, entry);
    }
    for lane in &lanes {
        lane.validate()?;
        lane.validate_free_list(device, segments)?;
    }
    Ok(lanes)
}
