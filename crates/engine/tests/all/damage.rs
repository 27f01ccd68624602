//! Damaged media: an open says what is wrong and where, instead of going on with wrong rows.
//!
//! Bytes are damaged with what the crates offer to everybody: a directory entry "of segment n" is
//! one word at a place that n chooses, so it can be put over any word of the image.

use std::sync::Arc;

use pmem::{Adversary, AnyDevice, Crash, Device, Dram, Port, SpaceKind, UndurableLine};
use sim::history::{LONG, Model, ORDERED, Op, Pair, Program, Setup, Step, effort};
use storage::TableId;
use storage::format::{
    CATALOGS_OFFSET, CHECKPOINTS_OFFSET, CLASSES, DIRECTORY_OFFSET, POOL_STATES_OFFSET, POOLS,
    SUB_POOLS, SUPERBLOCK_STRIDE, TABLES_MAX,
};
use storage::scan::{self, ScannedRow};
use storage::{SegmentKind, SegmentUse, Segments, Store, StoreOptions};

const IMAGE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 8 << 20;

fn setup() -> Setup {
    Setup { segment_bytes: 4096, row_bytes: [64, 128, 128, 0], ..Setup::default() }
}

fn insert(table: u8, key: u8, size: u8) -> Vec<u8> {
    Program {
        sequences: vec![],
        declares: vec![Step::new(Op::DeclareInsert, table, key)],
        body: vec![Step::new(Op::Insert, table, key).size(size).tag(size)],
    }
    .encode()
}

/// A closed store with rows whose two versions are inline and external.
fn store(device: impl Device) -> (Arc<AnyDevice>, Model) {
    let device = AnyDevice::new(device);
    let model = make_store(&device);
    (device, model)
}

fn make_store(device: &Arc<AnyDevice>) -> Model {
    let mut pair = Pair::open(device, &setup(), Model::default()).unwrap();
    for size in [3, 14, 9, 17, 6] {
        pair.run(&[insert(ORDERED, 1, size), insert(LONG, 9, size + 1)]).unwrap();
    }
    let model = pair.model.clone();
    pair.engine.close().unwrap();
    model
}

/// An open that visits all rows: where pages have checksums that were put right afterwards, only
/// that tells.
fn visiting() -> Setup {
    Setup { scans_rows: true, ..setup() }
}

fn dram() -> (Arc<AnyDevice>, Model) {
    store(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap())
}

/// Puts other bytes over the word at an offset behind the directory's beginning.
fn damage_word(device: &Arc<AnyDevice>, offset: u64, kind: SegmentKind, salt: u32) {
    let segments = Segments::new(4096, IMAGE_BYTES / 4096);
    let segment = u32::try_from((offset - DIRECTORY_OFFSET) / 8).unwrap();
    let entry = SegmentUse { kind, pool: 9, sub_pool: 3, ordinal: salt };
    segments.write_entry(&mut Port::new(Arc::clone(device), 9), segment, entry);
}

/// The live rows: table, row, offset and length of the value, bytes of a row.
fn live_rows(device: &Arc<AnyDevice>) -> Vec<(ScannedRow, u64, u64, usize)> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(Arc::clone(device), &options).unwrap();
    let store = &opened.store;
    let plan = scan::plan(store, &opened.sub_pools, &opened.log);
    let mut rows = Vec::new();
    for unit in &plan.units {
        let layout = store.tables()[unit.table.index()].layout;
        let epoch = store.checkpoint_epoch();
        let visit = |row: ScannedRow| {
            let pointer = row.pointer();
            let at = layout.value_offset(row.row, row.slot, pointer);
            let key_bytes = if unit.table == TableId(u16::from(LONG)) { 24 } else { 8 };
            rows.push((row, at, pointer.value_bytes(), key_bytes));
            Ok(())
        };
        scan::visit(device.as_ref(), store.segments(), *unit, &layout, &plan, epoch, visit)
            .unwrap();
    }
    rows
}

/// O-48: a word of a row's live version, key or value, whatever is put there.
#[test]
fn o_48_every_word_of_a_live_row_counts() {
    let rows = live_rows(&dram().0).len();
    assert_eq!(rows, 2);
    for number in 0..rows {
        let (row, value_at, value_bytes, key_bytes) = live_rows(&dram().0)[number];
        let version = row.row + row.slot as u64 * 16;
        let mut words = vec![version + 8, row.row + 32];
        words.extend((0..key_bytes as u64 / 8).map(|i| row.row + 40 + i * 8));
        words.extend((0..value_bytes / 8).map(|i| value_at + i * 8));
        for word in words {
            for salt in [0, 77, 12345] {
                let (device, _) = dram();
                damage_word(&device, word, SegmentKind::Slots, salt);
                let error = setup().open(&device).err().expect("a damaged row");
                assert!(error.is_corrupt(), "word at {word}: {error:?}");
                let text = error.to_string();
                let precise = text.contains(&format!("offset {}", row.row))
                    || text.contains("state hash")
                    || text.contains("no version");
                assert!(precise, "word at {word} of row {}: {text}", row.row);
                let report = storage::check::check(Arc::clone(&device));
                assert!(report.is_err() || !report.unwrap().problems.is_empty());
            }
        }
    }
}

/// O-33, O-54: the stale version's pointer is what the collector frees next: it may not lead
/// anywhere.
#[test]
fn o_54_a_damaged_stale_pointer_frees_nothing_that_lives() {
    for number in 0..2 {
        for salt in [0, 77, 12345] {
            let (device, model) = dram();
            let (row, ..) = live_rows(&device)[number];
            // As a value pointer, the word says: in the pool, at some offset.
            let pointer = row.row + (1 - row.slot as u64) * 16 + 8;
            damage_word(&device, pointer, SegmentKind::FreeList, salt);
            let Ok(mut pair) = Pair::open(&device, &setup(), model) else {
                continue;
            };
            for size in [13, 3, 14] {
                pair.run(&[insert(ORDERED, 1, size), insert(LONG, 9, size)]).unwrap();
                pair.run(&[insert(ORDERED, size, 19)]).unwrap();
            }
            pair.compare_state().unwrap();
        }
    }
}

/// O-33, O-54: of a damaged stale version, `check` and recovery say the same. Recovery once took a
/// serial id of an epoch that nobody ran, and a pointer to a slot that was another's.
#[test]
fn o_54_check_and_recovery_agree_on_a_damaged_stale_version() {
    let dir = tempfile::tempdir().unwrap();
    let options = pmem::FileOptions::new(IMAGE_BYTES, LOG_BYTES);
    let file = || Arc::new(pmem::File::open(dir.path(), &options).unwrap());
    let device = file();
    let mut pair = Pair::open(&AnyDevice::of(&device), &setup(), Model::default()).unwrap();
    // Three rows with two versions in the pool each, and slots that are free.
    for size in [20, 21, 22] {
        pair.run(&(0..3).map(|key| insert(LONG, key, size)).collect::<Vec<_>>()).unwrap();
    }
    drop(pair);
    device.settle().unwrap();
    device.snapshot_part(0, 1).unwrap();
    device.snapshot_commit(device.snapshot_epoch().unwrap()).unwrap();
    let rows = live_rows(&AnyDevice::of(&device));
    drop(device);
    let image = sim::fuzz::StoredImage::read(dir.path()).unwrap().bytes;
    let word = |at: u64| u64::from_le_bytes(image[at as usize..][..8].try_into().unwrap());
    let stale_of = |row: &ScannedRow| row.row + (1 - row.slot as u64) * 16;
    let (stale, others) = (stale_of(&rows[0].0), stale_of(&rows[1].0));
    let (sid, pointer) = (word(stale), word(stale + 8));
    let live = rows[0].0.versions[rows[0].0.slot];
    let cases = [
        ("as it was", sid, pointer, true),
        ("the live serial id", live.serial_id, pointer, false),
        ("a later epoch", 99 << 24, pointer, false),
        ("nowhere", sid, pointer ^ 1 << 50, false),
        ("not where a slot begins", sid, pointer + (1 << 20), false),
        ("its own live value", sid, live.pointer, false),
        ("another's live value", sid, rows[1].0.pointer().0, false),
        ("another's stale value", sid, word(others + 8), false),
    ];
    let try_with = |sid: u64, pointer: u64| {
        let mut damaged = image.clone();
        damaged[stale as usize..][..8].copy_from_slice(&sid.to_le_bytes());
        damaged[stale as usize + 8..][..8].copy_from_slice(&pointer.to_le_bytes());
        // Who damages rows without the device noticing has its checksums, too.
        sim::fuzz::StoredImage { bytes: damaged }.forge(dir.path()).unwrap();
        let problems = storage::check::check(AnyDevice::of(&file())).unwrap().problems;
        (
            problems,
            visiting().open(&AnyDevice::of(&file())).map(drop).map_err(|error| error.to_string()),
        )
    };
    // Without a serial id it is no version: its slot is nobody's, which costs space and no row.
    let (problems, opened) = try_with(0, pointer);
    assert!(problems.len() == 1 && problems[0].contains("leaked"), "{problems:?}");
    opened.unwrap();
    for (what, sid, pointer, is_clean) in cases {
        let (problems, opened) = try_with(sid, pointer);
        assert_eq!(problems.is_empty(), is_clean, "{what}: {problems:?}");
        assert_eq!(opened.is_ok(), is_clean, "{what}: {opened:?}, check: {problems:?}");
    }
}

/// O-54, found by fuzzing: the state of a pool of values that reads as zeros looks like that of a
/// pool that was never used; its slots would have been allocated again under live rows.
#[test]
fn o_54_a_lost_pool_state_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = pmem::FileOptions::new(IMAGE_BYTES, LOG_BYTES);
    let (device, _) = store(pmem::File::open(dir.path(), &options).unwrap());
    drop(device);
    let mut image = sim::fuzz::StoredImage::read(dir.path()).unwrap();
    for sub_pool in 0..SUB_POOLS {
        let values = POOL_STATES_OFFSET as usize + (sub_pool * POOLS + TABLES_MAX) * 64;
        image.bytes[values..values + CLASSES * 64].fill(0);
    }
    image.write(dir.path()).unwrap();
    // The device sees it, and says so.
    let error = pmem::File::open(dir.path(), &options).unwrap_err();
    assert!(error.to_string().contains("has checksum"), "{error}");
    image.forge(dir.path()).unwrap();
    let device = Arc::new(pmem::File::open(dir.path(), &options).unwrap());
    let error = visiting().open(&AnyDevice::of(&device)).err().expect("a lost pool");
    assert!(error.is_corrupt() && error.to_string().contains("leads nowhere"), "{error}");
}

/// O-54, found by fuzzing: what comes from a free list is written to, so it must be a slot.
#[test]
fn o_54_a_damaged_free_list_is_refused() {
    let segments = Segments::new(4096, IMAGE_BYTES / 4096);
    let entries = |device: &Arc<AnyDevice>| -> Vec<u64> {
        let used = (device.image_bytes() - segments.offset(0)) / 4096;
        let lists = (0..used as u32).filter(|segment| {
            segments.use_of(device.as_ref(), *segment).map(|entry| entry.kind)
                == Some(SegmentKind::FreeList)
        });
        let words = lists.flat_map(|list| (0..512).map(move |place| (list, place * 8)));
        let offsets = words.map(|(list, place)| segments.offset(list) + place);
        offsets.filter(|at| device.image().load_u64(*at) != 0).collect()
    };
    let mut refused = 0;
    for at in entries(&dram().0) {
        let (device, model) = dram();
        damage_word(&device, at, SegmentKind::FreeList, 77);
        match Pair::open(&device, &setup(), model) {
            Ok(_) => {} // ClaimedCalls from the list before.
            Err(error) => {
                assert!(error.contains("free list"), "entry at {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "something was free");
}

/// O-54: catalog, pool states and directory have checks of their own.
#[test]
fn o_54_damaged_tables_and_pools_are_named() {
    const {
        assert!(CATALOGS_OFFSET < POOL_STATES_OFFSET && POOL_STATES_OFFSET < DIRECTORY_OFFSET);
    };
    let (device, _) = dram();
    damage_word(&device, DIRECTORY_OFFSET, SegmentKind::Slots, 5);
    let error = setup().open(&device).err().expect("a damaged directory");
    assert!(error.is_corrupt() && error.to_string().contains("segment"), "{error}");
}

/// O-48: a checkpoint record that is valid by itself and says something else.
#[test]
fn o_48_a_wrong_checkpoint_is_no_checkpoint() {
    let (device, _) = dram();
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let mut record = Store::open(Arc::clone(&device), &options).unwrap().store.checkpoint();
    record.hash_low ^= 1;
    storage::checkpoint::write(&mut Port::new(Arc::clone(&device), 0), record);
    let error = setup().open(&device).err().expect("another state");
    assert!(error.is_corrupt() && error.to_string().contains("state hash"), "{error}");
}

/// O-24: damage of a committed epoch's log, byte by byte, is an error or (in what is not used)
/// nothing.
#[test]
fn o_24_damage_of_the_log_is_seen() {
    let run = || {
        let device = AnyDevice::new(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap());
        let setup = Setup { checkpoint_every: 100, ..setup() };
        let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
        let mut models = vec![pair.model.clone()];
        for size in [3, 14, 9] {
            pair.run(&[insert(ORDERED, 1, size), insert(LONG, 9, size + 1)]).unwrap();
            models.push(pair.model.clone());
        }
        (device, models)
    };
    let used = run().0.log_bytes().min(7 * 4096);
    let mut seen = 0;
    for offset in (0..used).step_by(effort("NVCARACAL_DAMAGE_STRIDE", 37) as usize) {
        let (device, models) = run();
        let mut byte = [0];
        device.log_read(offset, &mut byte).unwrap();
        byte[0] ^= 1 << (offset % 8);
        Port::new(Arc::clone(&device), 9).log_write(offset, &byte).unwrap();
        match setup().open(&device) {
            Err(error) => {
                seen += 1;
                assert!(error.is_corrupt(), "byte {offset}: {error:?}");
            }
            // The last epoch cannot be told from one that a crash tore.
            Ok(engine) => {
                let model = models[engine.epoch().0 as usize].clone();
                assert!(engine.epoch().0 >= 2, "byte {offset}: {}", engine.epoch().0);
                Pair::new(engine, model).compare_state().unwrap();
            }
        }
    }
    assert!(seen > 5, "{seen} damaged bytes were noticed");
}

/// Tears the lines that a test names: of each, only so many stores arrive.
struct Tear(Vec<(u64, usize)>);

impl Adversary for Tear {
    fn prefix(&mut self, line: &UndurableLine) -> usize {
        let torn =
            self.0.iter().find(|(at, _)| line.space == SpaceKind::Image && *at == line.offset);
        torn.map_or(line.ordinary, |&(_, stores)| stores.min(line.ordinary))
    }

    fn past_cache(&mut self, _: &UndurableLine, _: usize) -> bool {
        true
    }
}

/// O-53, O-23: one superblock or one checkpoint record that is torn is not needed.
#[test]
fn o_53_one_torn_copy_is_enough_of_a_store() {
    let rehearsal = Arc::new(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap());
    make_store(&AnyDevice::of(&rehearsal));
    for event in 0..rehearsal.events() {
        let device = Arc::new(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap());
        device.cut_at(event);
        make_store(&AnyDevice::of(&device));
        for line in [SUPERBLOCK_STRIDE, CHECKPOINTS_OFFSET, CHECKPOINTS_OFFSET + 256] {
            for stores in [1, 4, 7] {
                let torn = device.image_after_power_cut(&mut Tear(vec![(line, stores)]));
                let left = AnyDevice::new(torn);
                let opened = setup().open(&left);
                opened.unwrap_or_else(|e| panic!("event {event}, line {line}, {stores}: {e}"));
            }
        }
        if event > 60 {
            break;
        }
    }
}
