//! Processes that die while they open a database (O-79): a call in which they died twice, one time
//! after the other, is refused by its name, and no other is.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use nvcaracal::{Database, Options, Procedure, Stop, Table, Transaction, Tuning, WriteSet, plain};
use sim::history::Random;

const COUNTS: Table<u64, u64> = Table::ordered("counts");

/// Where a child opens a database, and in which call it dies.
const STORE: &str = "NVCARACAL_LAB_STORE";
const DIES_IN: &str = "NVCARACAL_LAB_DIES_IN";

/// Epochs of the log, and calls of each.
const EPOCHS: u64 = 3;
const CALLS: u64 = 3;

static DYING: LazyLock<Option<u64>> =
    LazyLock::new(|| std::env::var(DIES_IN).ok().and_then(|text| text.parse().ok()));

plain! {
    struct Count { call: u64 }
}

impl Procedure for Count {
    const NAME: &'static str = "count";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(COUNTS, self.call);
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        if *DYING == Some(self.call) {
            std::process::abort();
        }
        tx.insert(COUNTS, self.call, &1)
    }
}

fn options() -> Options {
    Database::options()
        .table(COUNTS)
        .procedure::<Count>()
        // Of several workers each leaves a word, and the first death is not exact.
        .workers(1)
        .tuning(Tuning { serial_calls_max: 0, ..Tuning::default() })
        .checkpoint_every(1_000_000)
        .data_bytes_max(1 << 26)
        .log_bytes_max(1 << 26)
}

/// What a child does: it leaves a log behind, or opens what is there.
#[test]
fn child() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let is_new = !Path::new(&store).exists();
    match options().open(store) {
        Err(error) => println!("refused: {error}"),
        Ok(db) if is_new => {
            for epoch in 0..EPOCHS {
                let mut batch = db.batch();
                (0..CALLS).for_each(|at| drop(batch.add(&Count { call: epoch * CALLS + at })));
                batch.submit().unwrap().wait();
            }
            std::process::abort();
        }
        Ok(_) => println!("opened"),
    }
}

/// Runs a child; what it said, if it lived.
fn run_child(store: &Path, dies_in: Option<u64>) -> Option<String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "deaths::child", "--nocapture"]).env(STORE, store);
    child.env_remove("NVCARACAL_FIRST_SEED");
    if let Some(call) = dies_in {
        child.env(DIES_IN, call.to_string());
    }
    let output = child.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    match output.status.signal() {
        Some(6) => None,
        _ => Some(text),
    }
}

#[test]
fn o_79_a_call_is_refused_if_the_process_died_in_it_twice_running() {
    let cases = super::number("NVCARACAL_LAB", super::CASES).div_ceil(12);
    let first = super::number("NVCARACAL_FIRST_SEED", 1);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        assert_eq!(run_child(&store, None), None, "seed {seed}: the log");
        let at = random.below(CALLS);
        let mut deaths = Vec::new();
        for round in 0..4 {
            // Mostly at the same place of another epoch.
            let other = random.below(CALLS);
            let place = if random.percent(70) { at } else { other };
            let call = random.below(EPOCHS) * CALLS + place;
            let died = run_child(&store, Some(call));
            let expected = match deaths[..] {
                [.., one, two] if one == two => Some("refused"),
                _ => None,
            };
            let context = format!("seed {seed}, round {round}, {call} after {deaths:?}");
            match (expected, died) {
                (None, None) => deaths.push(call),
                (Some(word), Some(text)) if text.contains(word) => break,
                (_, found) => panic!("{context}: expected {expected:?}, found {found:?}"),
            }
        }
        let last = run_child(&store, None).expect("it lives");
        let is_refused = matches!(deaths[..], [.., one, two] if one == two);
        let word = if is_refused { "refused" } else { "opened" };
        assert!(last.contains(word), "seed {seed}, after {deaths:?}: {last}");
    }
}
