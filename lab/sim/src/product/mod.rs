//! The product of features: each row format with each feature that an older one knew. A bug that
//! needs three of them at once is met by one row of a covering array (`array.rs`), whose history is
//! short, and which is crashed, recovered and compared with the oracle.
//!
//! On the crash device each store, flush and fence of the history may be where power fails; on
//! `file` and on emulated memory the process ends between two epochs.

pub mod array;
mod run;

pub use array::{Row, STRENGTH, covering};
pub use run::{Seen, run};

use crate::crash::{Case, Decision, Grown, Habit, Size, short_batches, shorten};
use crate::history::pair::TABLES_SIZED;
use crate::history::{
    BatchShape, HASHED, LONG, Mix, ORDERED, Op, Program, Random, Setup, Step, batch_with,
    for_serial_part, is_serial,
};

/// What is combined, and in which ways. A row of the array has a number into each of these lists.
pub const FACTORS: [(&str, &[&str]); 12] = [
    ("rows", &["one line", "short halves", "whole lines", "shared heap", "no heap"]),
    ("keys", &["8 bytes, hashed", "8 bytes, ordered", "1 to 40 bytes"]),
    ("values", &["as made", "longer before the first row", "longer than those of some rows"]),
    ("indexes", &["none", "some calls", "most calls"]),
    ("snapshots", &["none", "every second epoch", "each epoch"]),
    ("deletes", &["few", "some", "many"]),
    ("device", &["crash", "file", "emulated"]),
    ("end", &["closed", "killed", "killed again"]),
    ("checkpoint every", &["epoch", "third epoch"]),
    ("workers", &["one", "two"]),
    ("cache", &["none", "all"]),
    ("serial part", &["no calls", "half of them", "all calls"]),
];

/// How many ways each factor has.
#[must_use]
pub fn levels() -> Vec<usize> {
    FACTORS.iter().map(|(_, ways)| ways.len()).collect()
}

/// A row in words.
#[must_use]
pub fn in_words(row: &[usize]) -> String {
    let words =
        FACTORS.iter().zip(row).map(|((name, ways), &way)| format!("{name}: {}", ways[way]));
    words.collect::<Vec<_>>().join("; ")
}

/// What the rows of tables are like, by the first factor.
struct Shape {
    row_bytes: u32,
    shared_heap_bytes: u32,
    /// Longest values when the store is made.
    value_bytes: u32,
}

const SHAPES: [Shape; 5] = [
    Shape { row_bytes: 0, shared_heap_bytes: 0, value_bytes: 8 },
    Shape { row_bytes: 128, shared_heap_bytes: 0, value_bytes: 16 },
    Shape { row_bytes: 384, shared_heap_bytes: 0, value_bytes: 100 },
    Shape { row_bytes: 0, shared_heap_bytes: 168, value_bytes: 16 },
    Shape { row_bytes: 64, shared_heap_bytes: 0, value_bytes: 100 },
];

/// Smallest rows of keys of up to 40 bytes.
const ROW_BYTES_LONG: u32 = 128;
/// Epochs of the program of before, of the one after it, and after a recovery.
const EPOCHS: [u64; 3] = [3, 4, 2];
/// Calls of an epoch.
const CALLS: u64 = 5;

/// A row of the array as a history.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) case: Case,
    /// The calls of each epoch after a recovery.
    pub(crate) after: Vec<Vec<Vec<u8>>>,
    pub(crate) device: usize,
    pub(crate) kills: usize,
}

/// The history of a row, by a seed.
pub(crate) fn choose(row: &[usize], seed: u64) -> Chosen {
    let level = |name: &str| {
        let factor = FACTORS.iter().position(|(of, _)| *of == name);
        row[factor.expect("one of the factors")]
    };
    let (shape, values, kills) = (&SHAPES[level("rows")], level("values"), level("end"));
    let mut setup = setup(shape, &level);
    let made = setup.value_bytes_max.map(|longest| longest.min(shape.value_bytes));
    let mut random = Random::new(seed);
    let mix = Mix { keys: 4, long_values: seed.is_multiple_of(2), lookups: 15 };
    let (serial, indexed) = ([0, 50, 100][level("serial part")], [0, 30, 80][level("indexes")]);
    let (table, deletes) = ([HASHED, ORDERED, LONG][level("keys")], level("deletes"));
    let mut epochs = |count| -> Vec<Vec<Vec<u8>>> {
        let shape = BatchShape { calls: CALLS, serial, indexed };
        let epoch = |_| {
            let mut aside = Random::new(random.word());
            let mut calls = batch_with(&mut random, &mut aside, &mix, shape);
            calls.iter_mut().for_each(|call| *call = fit(call, table, deletes, &mut aside));
            calls
        };
        (0..count).map(epoch).collect()
    };
    let [mut before, mut batches, mut after] = EPOCHS.map(&mut epochs);
    // Rows of one line have longer values only where values got longer.
    let is_short = level("rows") == 0 && values == 0;
    if is_short {
        setup.value_bytes_max = made;
        [&mut batches, &mut after].into_iter().for_each(|batches| shorten(batches));
    }
    if values == 1 {
        before.clear();
    }
    let grown = Grown { value_bytes_max: made, batches: short_batches(before) };
    let case = Case {
        seed,
        size: Size::Small,
        setup,
        grown: (values > 0).then_some(grown),
        is_short,
        batches,
        mix,
        close: kills == 0,
        changes: false,
        creation: false,
        image_limit_bytes: 8 << 20,
        log_limit_bytes: 1 << 20,
        habit: Habit::Usual,
        decision: Decision::LeaveOut,
    };
    Chosen { case, after, device: level("device"), kills }
}

/// How the store of a row is opened, before and after its values got longer.
fn setup(shape: &Shape, level: &dyn Fn(&str) -> usize) -> Setup {
    let mut setup = Setup {
        workers: [1, 2][level("workers")],
        cache_bytes: [0, 64 << 10][level("cache")],
        checkpoint_every: [1, 3][level("checkpoint every")],
        segment_bytes: 4096,
        row_bytes: [shape.row_bytes; TABLES_SIZED],
        shared_heap_bytes: [shape.shared_heap_bytes; TABLES_SIZED],
        snapshots_every: [0, 2, 1][level("snapshots")],
        ..Setup::default()
    };
    let long = usize::from(LONG);
    if setup.row_bytes[long] > 0 {
        setup.row_bytes[long] = setup.row_bytes[long].max(ROW_BYTES_LONG);
    }
    setup
}

/// A call that works on one table mostly, and deletes as many rows as it should.
fn fit(call: &[u8], table: u8, deletes: usize, random: &mut Random) -> Vec<u8> {
    let mut program = Program::decode(call);
    // What comes after a commit point must not fail, and would for another table.
    let commits = |step: &Step| matches!(step.op, Op::CommitPoint | Op::PieceResult);
    if program.body.iter().any(commits) {
        return call.to_vec();
    }
    let is_focused = random.percent(80);
    for step in program.parts().into_iter().flatten() {
        let is_plain = [HASHED, ORDERED, LONG].contains(&step.table);
        let is_range = matches!(
            step.op,
            Op::Scan | Op::RangeWrite | Op::DeclareRange | Op::DeclareLast | Op::DeleteLast
        );
        if is_focused && is_plain && !(is_range && table == HASHED) {
            step.table = table;
        }
        step.op = match (step.op, deletes) {
            (Op::Delete, 0) => Op::Update,
            (Op::Update | Op::Modify | Op::Insert, 2) if random.percent(40) => Op::Delete,
            (op, _) => op,
        };
    }
    let encoded = program.encode();
    if is_serial(call) { for_serial_part(encoded) } else { encoded }
}
