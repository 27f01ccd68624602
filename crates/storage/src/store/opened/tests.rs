//! What an open refuses that only the device or the superblock can tell.

use std::sync::Mutex as StdMutex;

use pmem::{AnyDevice, Description, DeviceError, Dram, MARK_BYTES, Mapping, PortState};

use super::*;
use crate::catalog::{IndexKind, TableDefinition};
use crate::format::{
    CATALOGS_OFFSET, CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, DIRECTORY_OFFSET, POOL_STATES_OFFSET,
    POOLS, SUB_POOLS, SUPERBLOCK_STRIDE, SUPERBLOCKS_OFFSET, TABLES_MAX,
};
use crate::input_log::{CommitInfo, Demand};
use crate::pool::{SegmentKind, SegmentUse, class_pool};
use crate::store::verify::SEGMENTS_MAX;

/// Memory that says of itself what a test wants.
struct Told {
    memory: Dram,
    says: StdMutex<Says>,
    /// Flushes as offset and bytes, and fences as `None`, if it may show what is not durable.
    settled: StdMutex<Vec<Option<(u64, u64)>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Says {
    instance: Option<u64>,
    mark: Option<[u8; MARK_BYTES]>,
    saved: Option<u64>,
    may_show_undurable: bool,
    /// Bytes that the image lost at its end.
    cut_bytes: u64,
}

impl Told {
    fn new() -> Arc<Self> {
        let memory = Dram::new(64 << 20, 1 << 20).unwrap();
        Arc::new(Self { memory, says: StdMutex::default(), settled: StdMutex::default() })
    }

    fn say(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().unwrap());
    }

    fn says(&self) -> Says {
        *self.says.lock().unwrap()
    }

    fn settle_with(&self, what: Option<(u64, u64)>) {
        if self.says().may_show_undurable {
            self.settled.lock().unwrap().push(what);
        }
    }

    fn take_settled(&self) -> Vec<Option<(u64, u64)>> {
        std::mem::take(&mut self.settled.lock().unwrap())
    }
}

impl Device for Told {
    fn description(&self) -> Description {
        self.memory.description()
    }

    fn image(&self) -> &Mapping {
        self.memory.image()
    }

    fn image_bytes(&self) -> u64 {
        self.memory.image_bytes() - self.says().cut_bytes
    }

    fn grow_image(&self, bytes: u64) -> std::result::Result<(), DeviceError> {
        self.memory.grow_image(bytes)
    }

    // SAFETY: as the caller promises.
    unsafe fn store_nt(&self, port: &mut PortState, offset: u64, bytes: &[u8]) {
        // SAFETY: owned by the caller in this phase.
        unsafe { self.memory.store_nt(port, offset, bytes) }
    }

    fn flush(&self, port: &mut PortState, offset: u64, len: u64) {
        self.settle_with(Some((offset, len)));
        self.memory.flush(port, offset, len);
    }

    fn fence(&self, port: &mut PortState) {
        self.settle_with(None);
        self.memory.fence(port);
    }

    fn may_show_undurable(&self) -> bool {
        self.says().may_show_undurable
    }

    fn log_bytes(&self) -> u64 {
        self.memory.log_bytes()
    }

    fn grow_log(&self, bytes: u64) -> std::result::Result<(), DeviceError> {
        self.memory.grow_log(bytes)
    }

    fn log_write(
        &self,
        port: &mut PortState,
        offset: u64,
        bytes: &[u8],
    ) -> std::result::Result<(), DeviceError> {
        self.memory.log_write(port, offset, bytes)
    }

    fn log_fence(&self, port: &mut PortState) {
        self.memory.log_fence(port);
    }

    fn log_sync(&self) -> std::result::Result<(), DeviceError> {
        self.memory.log_sync()
    }

    fn log_read(&self, offset: u64, into: &mut [u8]) -> std::result::Result<(), DeviceError> {
        self.memory.log_read(offset, into)
    }

    fn instance(&self) -> Option<u64> {
        self.says().instance
    }

    fn write_mark(&self, mark: &[u8; MARK_BYTES]) -> std::result::Result<(), DeviceError> {
        self.say(|says| says.mark = Some(*mark));
        Ok(())
    }

    fn snapshot_epoch(&self) -> Option<EpochNumber> {
        self.says().saved.map(EpochNumber)
    }

    fn mark(&self) -> Option<[u8; MARK_BYTES]> {
        self.says().mark
    }
}

fn small() -> StoreOptions {
    StoreOptions { segment_bytes: 4096, log_segment_bytes: 4096, ..StoreOptions::default() }
}

fn open(device: &Arc<Told>) -> Result<Opened> {
    Store::open(AnyDevice::of(device), &small())
}

/// A device with a store of which the log knows a program, as every store does that was used.
fn used() -> Arc<Told> {
    let device = Told::new();
    let opened = open(&device).unwrap();
    assert!(opened.created);
    device
}

fn table(name: &str) -> TableDefinition {
    TableDefinition {
        name: name.to_string(),
        index: IndexKind::Hash,
        key_bytes_max: 8,
        value_bytes_max: 8,
        row_bytes: 0,
        shared_heap_bytes: 0,
    }
}

/// Files of two stores in one place are told apart by the number that the device has.
#[test]
fn an_image_of_another_store_is_refused() {
    let device = Told::new();
    device.say(|says| says.instance = Some(7));
    assert_eq!(open(&device).unwrap().store.superblock().instance, 7);
    device.say(|says| says.instance = Some(8));
    let error = open(&device).err().expect("another instance");
    assert!(matches!(&error, StorageError::Foreign(what) if what.contains("0000000000000007")));
    for own in [Some(7), None] {
        device.say(|says| says.instance = own);
        assert!(!open(&device).unwrap().created);
    }
}

/// A device that saved the image at another epoch than that of its checkpoint holds another one.
#[test]
fn an_image_of_another_moment_is_refused() {
    let device = used();
    for (saved, fits) in [(None, true), (Some(0), true), (Some(1), false)] {
        device.say(|says| says.saved = saved);
        match open(&device).map(|opened| opened.created) {
            Ok(created) => assert!(fits && !created, "{saved:?}"),
            Err(error) => assert!(!fits && error.is_corrupt(), "{saved:?}: {error}"),
        }
    }
}

/// A killed process may leave stores that nobody flushed: an open flushes all that it trusts, and a
/// scan the headers of the rows, before anything follows from them.
#[test]
fn an_open_makes_durable_what_it_trusts() {
    let device = used();
    open(&device).unwrap().store.segments().reserve(&AnyDevice::of(&device), 20).unwrap();
    assert_eq!(device.take_settled(), [], "memory that no process outlives");
    device.say(|says| says.may_show_undurable = true);
    let opened = open(&device).unwrap();
    let places = opened.store.segments().places(&AnyDevice::of(&device));
    assert!(places >= 20);
    let pools = (SUB_POOLS * POOLS * 64) as u64;
    let parts = [
        (SUPERBLOCKS_OFFSET, 2 * SUPERBLOCK_STRIDE),
        (CHECKPOINTS_OFFSET, 2 * CHECKPOINT_STRIDE),
        (CATALOGS_OFFSET, POOL_STATES_OFFSET - CATALOGS_OFFSET),
        (POOL_STATES_OFFSET, pools),
        (DIRECTORY_OFFSET, places * 8),
    ];
    // The second fence is that of the free lists, which are empty.
    let expected: Vec<_> = parts.into_iter().map(Some).chain([None, None]).collect();
    assert_eq!(device.take_settled(), expected);
    for (is_needed, expected) in [(true, vec![Some((8192, 64)), None]), (false, vec![])] {
        device.say(|says| says.may_show_undurable = is_needed);
        let mut rows = settle::SettleRows::new(&AnyDevice::of(&device), 3);
        rows.scanned(8192);
        rows.finish();
        assert_eq!(device.take_settled(), expected);
    }
}

/// A store that lost the end of its image, so that not even what lies in front of the segments is
/// whole, is damaged; one byte more and it is not.
#[test]
fn an_image_that_was_cut_off_is_refused() {
    let device = used();
    let needed = open(&device).unwrap().store.segments().image_bytes(0);
    let all = device.image_bytes();
    device.say(|says| says.cut_bytes = all - needed);
    assert!(open(&device).is_ok());
    device.say(|says| says.cut_bytes = all - needed + 1);
    assert!(matches!(open(&device).err(), Some(StorageError::Corrupt(_))));
}

/// A device must have room for one segment of the store, and not for one byte less.
#[test]
fn a_device_that_may_not_grow_to_one_segment_is_refused() {
    let options = StoreOptions { segment_bytes: 4 << 20, ..StoreOptions::default() };
    let needed = Segments::new(options.segment_bytes, 1).image_bytes(1);
    for (limit, fits) in [(needed, true), (needed - (2 << 20), false)] {
        let device = AnyDevice::new(Dram::new(limit, 64 << 20).unwrap());
        assert_eq!(device.image().len(), limit, "address space is not rounded up here");
        match Store::open(device, &options) {
            Ok(opened) => assert!(fits && opened.created, "{limit}"),
            Err(StorageError::Limit(_)) => assert!(!fits, "{limit}"),
            Err(other) => panic!("{limit}: {other}"),
        }
    }
}

/// O-54: an epoch that ended is in the checkpoint or in the log.
#[test]
fn an_end_mark_after_the_log_is_refused() {
    let device = used();
    let hash = Some(StateHash(1 << 100 | 3));
    EndMark { epoch: EpochNumber(0), hash }.write(&AnyDevice::of(&device)).unwrap();
    assert_eq!(open(&device).unwrap().end_mark, Some(EndMark { epoch: EpochNumber(0), hash }));
    EndMark { epoch: EpochNumber(1), hash: None }.write(&AnyDevice::of(&device)).unwrap();
    assert_eq!(
        EndMark::read(&AnyDevice::of(&device)),
        Some(EndMark { epoch: EpochNumber(1), hash: None })
    );
    let error = open(&device).err().expect("epoch 1 is lost");
    assert!(error.to_string().contains("epoch 1 had ended"), "{error}");
}

#[test]
fn sizes_of_segments_have_limits() {
    for (segment, log, fits) in [
        (4096, 4096, true),
        (64 << 20, 4096, true),
        (4096, 16 << 20, true),
        (2048, 4096, false),
        (128 << 20, 4096, false),
        (3 * 4096, 4096, false),
        (4096, 2048, false),
        (4096, 32 << 20, false),
        (4096, 3 * 4096, false),
    ] {
        let device = AnyDevice::new(Dram::new(1 << 30, 64 << 20).unwrap());
        let options = StoreOptions {
            segment_bytes: segment,
            log_segment_bytes: log,
            ..StoreOptions::default()
        };
        let found = Store::open(device, &options).map(|opened| opened.created);
        match found {
            Ok(true) => assert!(fits, "{segment} {log}"),
            Err(StorageError::Limit(_)) => assert!(!fits, "{segment} {log}"),
            other => panic!("{segment} {log}: {other:?}"),
        }
    }
    let options = StoreOptions { create: false, ..small() };
    let missing = Store::open(AnyDevice::of(&Told::new()), &options).err();
    assert!(matches!(missing, Some(StorageError::Missing(_))));
}

/// O-54: what a superblock says of its segments must be true of a store.
#[test]
fn o_54_a_superblock_with_impossible_sizes_is_corrupt() {
    let good = crate::store::superblock::tests::small_superblock();
    let device = AnyDevice::new(Dram::new(64 << 20, 1 << 20).unwrap());
    device.grow_image(8 << 20).unwrap();
    check_geometry(&good, &device).unwrap();
    for bad in [
        Superblock { segments_max: 0, ..good },
        Superblock { segments_max: SEGMENTS_MAX + 1, ..good },
        Superblock { segment_bytes: 2048, ..good },
        Superblock { segment_bytes: 5000, ..good },
        Superblock { segment_bytes: 128 << 20, ..good },
        Superblock { log_segment_bytes: 0, ..good },
        Superblock { log_segment_bytes: 32 << 20, ..good },
    ] {
        let error = check_geometry(&bad, &device).unwrap_err();
        assert!(error.is_corrupt(), "{bad:?}: {error}");
    }
}

/// Asks for tables; returns the sub-pools that were added. The next checkpoint makes them count.
pub(crate) fn add_tables(store: &mut Store, wanted: &[TableDefinition]) -> Result<Vec<SubPool>> {
    let tables = wanted.iter().cloned().map(Into::into).collect();
    let request = CatalogRequest { tables, ..CatalogRequest::default() };
    let (change, mut added) = (store.plan_catalog(&request)?, Vec::new());
    store.adopt_catalog(&change, &mut added)?;
    let mut port = Port::new(Arc::clone(store.device()), 0);
    store.write_catalog(&mut port, &change);
    Ok(added)
}

/// Tables keep their places, and are there with the next checkpoint.
#[test]
fn tables_are_added_once() {
    let device = used();
    let mut opened = open(&device).unwrap();
    let store = &mut opened.store;
    assert_eq!(add_tables(store, &[table("a"), table("b")]).unwrap().len(), 2 * SUB_POOLS);
    assert!(add_tables(store, &[table("b"), table("a")]).unwrap().is_empty());
    let sub_pools = add_tables(store, &[table("c"), table("b"), table("d")]).unwrap();
    let pools: Vec<u16> = sub_pools.iter().step_by(SUB_POOLS).map(SubPool::pool).collect();
    assert_eq!(pools, [2, 3]);
    assert!(
        sub_pools.iter().zip((0..SUB_POOLS).cycle()).all(|(l, n)| usize::from(l.number()) == n)
    );
    let many: Vec<_> = (4..TABLES_MAX).map(|n| table(&format!("t{n}"))).collect();
    add_tables(store, &many).unwrap();
    assert!(add_tables(store, &[table("one more")]).err().is_some_and(|e| e.is_limit()));
    assert_eq!(open(&device).unwrap().store.tables().len(), 0, "before the checkpoint");
    store.commit(&mut Port::new(AnyDevice::of(&device), 0), EpochNumber(0), None, 0, 0);
    let again = open(&device).unwrap();
    assert_eq!(again.store.tables().len(), TABLES_MAX);
    assert_eq!(again.sub_pools.len(), (TABLES_MAX + 6) * SUB_POOLS, "classes of up to 4096 bytes");
    assert!(again.device.lines_read > 0);
}

/// O-92: the pool of a table that is dropped is empty, and keeps its segments for the next table of
/// that number, whatever the size of its rows is.
#[test]
fn o_92_the_next_table_of_a_number_gets_the_segments_of_a_dropped_one() {
    let device = used();
    let mut opened = open(&device).unwrap();
    let store = &mut opened.store;
    let mut sub_pools = add_tables(store, &[table("a")]).unwrap();
    let mut port = Port::new(AnyDevice::of(&device), 0);
    store.segments().reserve(&AnyDevice::of(&device), 3).unwrap();
    let slots = 4096 / sub_pools[0].slot_bytes() + 1;
    let rows: Vec<u64> =
        (0..slots).map(|_| sub_pools[0].bump(&mut port, store.segments()).unwrap()).collect();
    sub_pools[0].push(&mut port, store.segments(), rows[3]).unwrap();
    sub_pools[0].flush(&mut port, store.segments());
    sub_pools[0].save(&mut port, store.next_sequence());
    store.commit(&mut port, EpochNumber(1), None, 0, 0);

    let mut opened = open(&device).unwrap();
    let (store, mut sub_pools) = (&mut opened.store, opened.sub_pools);
    let larger = TableDefinition { row_bytes: 1024, ..table("b") };
    let request = CatalogRequest {
        tables: vec![larger.into()],
        dropped: vec!["a".into()],
        ..CatalogRequest::default()
    };
    let change = store.plan_catalog(&request).unwrap();
    store.adopt_catalog(&change, &mut sub_pools).unwrap();
    assert_eq!((change.numbers, change.dropped), (vec![TableId(0)], vec![TableId(0)]));
    let again: Vec<u64> =
        (0..8).map(|_| sub_pools[0].bump(&mut port, store.segments()).unwrap()).collect();
    assert_eq!((again[0], again[4]), (rows[0], rows[slots as usize - 1]));
    assert_eq!(again[1], again[0] + 1024);
    assert_eq!((sub_pools[0].available(), sub_pools[0].has_room()), (0, false));
    assert_eq!(store.segments().used(), 3, "two of rows, one of the free list");
}

/// Room for expected rows is made for each sub-pool's last segment, and only for tables that get
/// rows.
#[test]
fn rows_that_are_expected_get_segments() {
    let device = used();
    let mut opened = open(&device).unwrap();
    let store = &mut opened.store;
    add_tables(store, &[table("a"), table("b")]).unwrap();
    let per_segment = 4096 / store.tables()[0].layout.row_bytes;
    for (rows, segments) in [
        (vec![(TableId(0), 0), (TableId(1), 0)], 0),
        (vec![(TableId(0), 1)], 2),
        (vec![(TableId(0), per_segment)], 2),
        (vec![(TableId(0), per_segment + 1), (TableId(1), 1)], 5),
    ] {
        assert_eq!(store.prepare_rows(&rows).unwrap(), segments * 4096, "{rows:?}");
        assert!(device.image_bytes() >= store.segments().image_bytes(segments));
    }
}

/// A segment of a pool that no table has is damage, and so is a checkpoint that goes back.
#[test]
fn a_segment_of_an_unknown_pool_is_refused() {
    let device = used();
    let opened = open(&device).unwrap();
    let segments = opened.store.segments();
    segments.reserve(&AnyDevice::of(&device), 2).unwrap();
    let entry =
        SegmentUse { kind: SegmentKind::Slots, pool: class_pool(0), sub_pool: 3, ordinal: 0 };
    let mut port = Port::new(AnyDevice::of(&device), 0);
    segments.take(&mut port, entry).unwrap();
    assert!(open(&device).is_ok());
    segments.take(&mut port, SegmentUse { pool: 0, ..entry }).unwrap();
    let error = open(&device).err().expect("there is no table 0");
    assert!(error.to_string().contains("segment 1 belongs to unknown pool 0"), "{error}");
}

/// Begins to log an epoch, of one stream.
fn log_stream(store: &Store, device: &Arc<Told>, epoch: u64, bytes: &[u8]) -> CommitInfo {
    let log = store.log();
    let (epoch, mut port) = (EpochNumber(epoch), Port::new(AnyDevice::of(device), 0));
    let demand = Demand { streams: 1, bytes: bytes.len() as u64, deferred_bytes: 0 };
    log.begin(epoch, demand).unwrap();
    let mut writer = log.stream_writer();
    writer.start(log, epoch, 0);
    writer.append(log, &mut port, bytes).unwrap();
    let streams = vec![writer.finish(log, &mut port).unwrap()];
    CommitInfo { epoch, calls: 1, timestamp_ns: 1000, seed: 0, hash_before: None, streams }
}

/// The log of a settled epoch is written again before the next one is committed: its timestamp is
/// in the checkpoint.
#[test]
fn a_checkpoint_keeps_the_timestamp() {
    let device = used();
    let store = open(&device).unwrap().store;
    let mut port = Port::new(AnyDevice::of(&device), 0);
    let info = log_stream(&store, &device, 1, &[1; 100]);
    store.log().commit(&mut port, &info).unwrap();
    store.log().make_durable().unwrap();
    assert_eq!(open(&device).unwrap().log.timestamp_ns, 1000);
    store.commit(&mut port, EpochNumber(1), None, 0, 0);
    store.log().release(EpochNumber(1));
    for _ in 0..2 {
        let Opened { store, log, .. } = open(&device).unwrap();
        assert_eq!((store.checkpoint().timestamp_ns, log.timestamp_ns), (1000, 1000));
        log_stream(&store, &device, 2, &[2; 500_000]);
    }
}
