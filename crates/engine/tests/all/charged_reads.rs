//! A device whose reads cost something charges every read of the image, and each line once in the
//! step that reads it. Elsewhere only the values that calls read are counted.

use std::sync::Arc;

use engine::{
    Calls, Engine, EngineConfig, EpochInfo, EpochStats, Lab, Phase, ProcedureDefinition,
    ProcedureTable, RecoveryReport,
};
use pmem::{AnyDevice, Device, Emulated, Profile};
use storage::format::DIRECTORY_OFFSET;
use storage::{IndexKind, TableDefinition, TableId};

const DEVICE_BYTES: u64 = 1 << 30;
const ROWS: u64 = 20;
const VALUE_BYTES: usize = 600;
const VALUE_LINES: u64 = (VALUE_BYTES as u64).div_ceil(64);
/// What `High` adds to each read.
const READ_NS: u64 = 700;

const WRITE: u16 = 0;
const READ: u16 = 1;
const MODIFY: u16 = 2;
const DELETE: u16 = 3;
const LOOK_UP: u16 = 4;
const WRITE_OTHER: u16 = 5;
const MODIFY_MIDST: u16 = 6;

fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    let mut add = |name, write_set, body| {
        table.add(ProcedureDefinition { name, sequences: None, write_set, body, pieces: None });
    };
    add("write", declare_insert, |key, tx| tx.insert(TableId(0), key, &[1; VALUE_BYTES]));
    add(
        "read",
        |_, _| Ok(()),
        |key, tx| {
            tx.get(TableId(0), key).map(|value| assert_eq!(value.unwrap().len(), VALUE_BYTES))
        },
    );
    add("modify", declare_insert, |key, tx| {
        tx.modify(TableId(0), key, |value| value[0] += 1).map(drop)
    });
    add("delete", declare_insert, |key, tx| tx.delete(TableId(0), key).map(drop));
    add(
        "look up",
        |key, set| {
            assert!(set.lookup(TableId(0), key).is_some());
            Ok(())
        },
        |_, _| Ok(()),
    );
    add("write another value", declare_insert, |key, tx| {
        tx.insert(TableId(0), key, &[2; VALUE_BYTES])
    });
    add("modify in the midst", declare_insert, |key, tx| {
        let midst = VALUE_BYTES / 2;
        tx.modify_part(TableId(0), key, midst..midst + 1, |_, part| part[0] += 1).map(drop)
    });
    table
}

fn declare_insert(key: &[u8], set: &mut engine::WriteSet<'_>) -> Result<(), engine::Abort> {
    set.insert(TableId(0), key);
    Ok(())
}

/// A store of one table on a device, run by one worker.
struct Run {
    device: Arc<AnyDevice>,
    config: EngineConfig,
    table: TableDefinition,
    engine: Engine,
}

/// What is special about a run.
#[derive(Clone, Copy)]
struct Case {
    profile: Profile,
    key_bytes: usize,
    /// 0: all values are inline.
    row_bytes: u32,
    /// Whether the table was made for words, so that its rows are one line.
    is_grown: bool,
    index: IndexKind,
    state_hash: bool,
    checkpoint_every: u64,
}

impl Case {
    fn new() -> Self {
        Self {
            profile: Profile::High,
            key_bytes: 8,
            row_bytes: 0,
            is_grown: false,
            index: IndexKind::Hash,
            state_hash: true,
            checkpoint_every: 1,
        }
    }

    /// A store in which the rows were written once.
    fn loaded(self) -> Run {
        let device = AnyDevice::new(Emulated::new(self.profile, DEVICE_BYTES, 1 << 28).unwrap());
        let table = TableDefinition {
            name: "rows".into(),
            index: self.index,
            key_bytes_max: self.key_bytes as u32,
            value_bytes_max: VALUE_BYTES as u32,
            row_bytes: self.row_bytes,
            shared_heap_bytes: 0,
        };
        let config = EngineConfig {
            cache_bytes: 0,
            checkpoint_every: self.checkpoint_every,
            lab: Lab { state_hash: self.state_hash, ..Lab::default() },
            ..EngineConfig::default()
        };
        if self.is_grown {
            let words = TableDefinition { value_bytes_max: 8, ..table.clone() };
            open(&device, &config, &words).0.close().unwrap();
        }
        let (engine, _) = open(&device, &config, &table);
        let mut run = Run { device, config, table, engine };
        run.epoch(WRITE);
        run
    }
}

fn open(
    device: &Arc<AnyDevice>,
    config: &EngineConfig,
    table: &TableDefinition,
) -> (Engine, RecoveryReport) {
    let tables = std::slice::from_ref(table);
    Engine::open(Arc::clone(device), config.clone(), tables, procedures()).unwrap()
}

impl Run {
    /// Calls the procedure once for each row.
    fn epoch(&mut self, procedure: u16) -> EpochStats {
        let mut calls = Calls::new();
        for row in 0..ROWS {
            let mut key = vec![b'k'; self.table.key_bytes_max as usize];
            let at = key.len() - 8;
            key[at..].copy_from_slice(&row.to_be_bytes());
            calls.push(procedure, &key).unwrap();
        }
        let outcome = self.engine.run_epoch(&calls, EpochInfo::default()).unwrap();
        assert_eq!(outcome.stats.work.committed, ROWS);
        outcome.stats
    }

    /// Forgets what is volatile and recovers.
    fn recover(self) -> RecoveryReport {
        let Self { device, config, table, engine } = self;
        let hash = engine.state_hash();
        drop(engine);
        let (engine, report) = open(&device, &config, &table);
        assert_eq!(engine.state_hash(), hash);
        report
    }
}

fn lines(stats: &EpochStats, phase: Phase) -> u64 {
    stats.phases[phase as usize].device.lines_read
}

/// Lines read in a phase, each read of which was charged.
fn charged(stats: &EpochStats, phase: Phase, reads: u64) -> u64 {
    let device = &stats.phases[phase as usize].device;
    // A port may take a microsecond of what it owes to the next phase.
    let added_ns = device.added_ns + 1_000;
    assert!(added_ns >= reads * READ_NS, "{phase:?}: {added_ns} for {reads}");
    device.lines_read
}

#[test]
fn values_that_calls_read_are_charged_where_that_costs_something_and_counted_everywhere() {
    let free = Case { profile: Profile::None, ..Case::new() }.loaded().epoch(READ).device;
    assert_eq!((free.lines_read, free.added_ns), (ROWS * VALUE_LINES, 0));
    let charged = Case::new().loaded().epoch(READ).device;
    assert_eq!((charged.lines_read, charged.blocks_read), (free.lines_read, free.blocks_read));
    // For the first block of each, besides what the epoch writes.
    assert!(charged.added_ns >= ROWS * READ_NS, "{}", charged.added_ns);
}

#[test]
fn where_reads_are_free_a_final_write_counts_none() {
    let mut run = Case { profile: Profile::None, ..Case::new() }.loaded();
    assert_eq!(run.epoch(WRITE_OTHER).device.lines_read, 0);
    assert_eq!(run.epoch(MODIFY).device.lines_read, ROWS * VALUE_LINES);
}

#[test]
fn a_final_write_reads_the_header_and_the_old_value_to_compare_it() {
    for state_hash in [true, false] {
        let stats = Case { state_hash, ..Case::new() }.loaded().epoch(WRITE_OTHER);
        assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * (1 + VALUE_LINES));
    }
}

/// A value that does not fit a row of one line does not come with its header.
#[test]
fn a_final_write_reads_the_old_value_of_a_row_of_one_line_from_its_pool() {
    let stats = Case { is_grown: true, ..Case::new() }.loaded().epoch(WRITE_OTHER);
    assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * (1 + VALUE_LINES));
}

#[test]
fn what_the_call_has_read_is_in_the_cache_when_its_final_write_compares_it() {
    for modify in [MODIFY, MODIFY_MIDST] {
        let stats = Case::new().loaded().epoch(modify);
        assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * (1 + VALUE_LINES));
    }
}

#[test]
fn without_the_state_hash_nobody_reads_a_key_for_it() {
    let stats =
        Case { key_bytes: 88, state_hash: false, ..Case::new() }.loaded().epoch(WRITE_OTHER);
    assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * (1 + VALUE_LINES));
}

#[test]
fn a_removal_reads_the_header_and_the_value_that_leaves_the_state_hash() {
    for (state_hash, lines) in [(true, 1 + VALUE_LINES), (false, 1)] {
        let stats = Case { state_hash, ..Case::new() }.loaded().epoch(DELETE);
        assert_eq!(charged(&stats, Phase::Execute, ROWS), ROWS * lines);
    }
}

#[test]
fn a_version_that_may_be_overwritten_in_place_is_found_by_its_header() {
    let mut run = Case { checkpoint_every: 100, ..Case::new() }.loaded();
    // The header, and the value, which is copied because it is going to be overwritten.
    let stats = run.epoch(WRITE_OTHER);
    assert_eq!(charged(&stats, Phase::Append, 2 * ROWS), ROWS * (1 + VALUE_LINES));
    // The header again: it is another step. What is compared is the copy.
    assert_eq!(charged(&stats, Phase::Execute, ROWS), ROWS);
}

#[test]
fn the_major_collector_reads_headers() {
    // Values are in a pool.
    let mut run = Case { row_bytes: 128, ..Case::new() }.loaded();
    assert_eq!(lines(&run.epoch(WRITE_OTHER), Phase::MajorGc), 0);
    let stats = run.epoch(READ);
    assert_eq!(stats.work.major_collections, ROWS);
    assert_eq!(charged(&stats, Phase::MajorGc, ROWS), ROWS);
}

#[test]
fn slots_taken_from_a_free_list_are_read_a_line_at_a_time() {
    let mut run = Case::new().loaded();
    assert_eq!(lines(&run.epoch(DELETE), Phase::Insert), 0);
    let entry_lines = ROWS.div_ceil(8);
    assert_eq!(charged(&run.epoch(WRITE), Phase::Insert, entry_lines), entry_lines);
    run.epoch(DELETE);
    // The next ones begin in the line in which the ones before ended.
    let entry_lines = (2 * ROWS).div_ceil(8) - ROWS / 8;
    assert_eq!(charged(&run.epoch(WRITE), Phase::Insert, entry_lines), entry_lines);
}

/// Bytes of a key, the lines from the header to its end, and how many of them the first version of
/// the value begins in. The header has room for 24 bytes of a key, the rest is in the lines behind
/// it; in the last of them the value begins if there is room.
const LONG_KEYS: [(usize, u64, u64); 5] =
    [(24, 1, 0), (25, 2, 1), (40, 2, 1), (88, 2, 0), (89, 3, 1)];

#[test]
fn keys_are_compared_in_the_row() {
    for (key_bytes, key_lines, shared) in LONG_KEYS {
        let both_lines = key_lines + VALUE_LINES - shared;
        let mut run = Case { key_bytes, ..Case::new() }.loaded();
        let stats = run.epoch(READ);
        assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * both_lines);
        // Of a row that is there the key is compared in the insert step, and found; it is part of
        // what the final write hashes.
        let stats = run.epoch(WRITE_OTHER);
        assert_eq!(charged(&stats, Phase::Insert, ROWS), ROWS * key_lines);
        assert_eq!(charged(&stats, Phase::Execute, 2 * ROWS), ROWS * both_lines);
        // A row leaves the index by its key.
        assert_eq!(charged(&run.epoch(DELETE), Phase::Remove, ROWS), ROWS * key_lines);
    }
}

#[test]
fn recovery_reads_long_keys_with_their_rows() {
    for (key_bytes, key_lines, shared) in LONG_KEYS {
        // The first versions, which share a line with the key.
        let report = Case { key_bytes, ..Case::new() }.loaded().recover();
        assert_eq!(report.scan.lines_read, ROWS * (key_lines + VALUE_LINES - shared));
        assert_eq!(report.rebuild.lines_read, ROWS * key_lines);
    }
}

#[test]
fn keys_that_begin_alike_are_compared_when_an_ordered_index_takes_them() {
    let case = Case { key_bytes: 24, index: IndexKind::Ordered, ..Case::new() };
    let mut run = case.loaded();
    run.epoch(DELETE);
    let stats = run.epoch(WRITE);
    // Sorting is a step and merging is one, each of which reads every key; and the free list.
    let keys = lines(&stats, Phase::Insert) - ROWS.div_ceil(8);
    assert!((ROWS..=2 * ROWS).contains(&keys), "{keys}");
}

#[test]
fn what_a_declaration_looks_up_is_read() {
    let stats = Case::new().loaded().epoch(LOOK_UP);
    assert_eq!(charged(&stats, Phase::Declare, ROWS), ROWS * VALUE_LINES);
    // Nobody wrote the rows, so nothing has to be compared.
    assert_eq!(lines(&stats, Phase::Execute), 0);
}

/// What an open reads before it looks at a row or a free list: two superblocks, the records of one
/// table and of the one after it, two checkpoints, a line for each sub-pool of each pool, and a
/// word for each segment that the image has room for behind all this.
fn lines_of_the_store(image_bytes: u64) -> u64 {
    const POOLS: u64 = 13;
    const SEGMENT_BYTES: u64 = 256 << 10;
    let first_segment = (DIRECTORY_OFFSET + DEVICE_BYTES / SEGMENT_BYTES * 8) / SEGMENT_BYTES + 1;
    2 + 3 + 2 + 64 * POOLS + (image_bytes / SEGMENT_BYTES - first_segment).div_ceil(8)
}

#[test]
fn recovery_reads_every_row_to_scan_it_and_its_key_to_rebuild_the_index() {
    for profile in [Profile::None, Profile::High] {
        let mut run = Case { profile, ..Case::new() }.loaded();
        run.epoch(WRITE_OTHER);
        let image_bytes = run.device.image_bytes();
        let report = run.recover();
        assert_eq!((report.rows, report.epochs_replayed), (ROWS, 0));
        let RecoveryReport { load_log, scan, rebuild, replay, .. } = report;
        assert_eq!(scan.lines_read, ROWS * (1 + VALUE_LINES));
        assert_eq!(rebuild.lines_read, ROWS);
        assert_eq!(replay.lines_read, 0);
        assert_eq!(load_log.lines_read, lines_of_the_store(image_bytes));
        let reads = if profile == Profile::None { 0 } else { READ_NS };
        assert!(scan.added_ns >= 2 * ROWS * reads && rebuild.added_ns >= ROWS * reads);
        assert!(load_log.added_ns >= 64 * reads);
        assert_eq!(scan.added_ns > 0, profile != Profile::None);
    }
}

#[test]
fn recovery_reads_free_lists_and_values_in_pools() {
    let mut run = Case { row_bytes: 128, ..Case::new() }.loaded();
    // What was freed first is taken again: the lists begin with their 21st entry.
    run.epoch(DELETE);
    run.epoch(WRITE);
    run.epoch(WRITE_OTHER);
    run.epoch(DELETE);
    let image_bytes = run.device.image_bytes();
    let report = run.recover();
    assert_eq!(report.rows, 0);
    let lines_of_entries = |from: u64, to: u64| to.div_ceil(8) - from / 8;
    // The rows' free list, to leave the free ones out.
    let of_rows = lines_of_entries(ROWS, 2 * ROWS);
    assert_eq!(report.scan.lines_read, of_rows);
    // Both free lists, that of values with two of each row, to see that all on them are slots.
    let of_values = lines_of_entries(ROWS, 3 * ROWS);
    assert_eq!(report.load_log.lines_read, lines_of_the_store(image_bytes) + of_rows + of_values);
}

#[test]
fn recovery_reads_what_was_collected_after_the_checkpoint() {
    let mut run = Case { row_bytes: 128, checkpoint_every: 100, ..Case::new() }.loaded();
    run.engine.checkpoint().unwrap();
    run.epoch(WRITE_OTHER);
    run.engine.checkpoint().unwrap();
    assert_eq!(run.epoch(READ).work.major_collections, ROWS);
    // Beside the rows' keys, for the index.
    assert_eq!(run.recover().rebuild.lines_read, ROWS + ROWS.div_ceil(8));
}

#[test]
fn a_replay_counts_as_the_epochs_did() {
    let mut run = Case { checkpoint_every: 100, ..Case::new() }.loaded();
    run.engine.checkpoint().unwrap();
    let stats = run.epoch(MODIFY);
    let report = run.recover();
    assert_eq!((report.epochs_replayed, report.calls_replayed), (1, ROWS));
    assert_eq!(report.replay.lines_read, stats.device.lines_read);
    // The log is written again before it is replayed: it may have been read from a cache.
    assert!(report.replay.log_bytes >= stats.device.log_bytes, "{}", report.replay.log_bytes);
}
