//! Random histories against the oracle, over all choices that must change nothing.

use std::sync::Arc;

use pmem::{AnyDevice, Crash, Device, Dram, Emulated, Profile};
use sim::history::shrink::{Step, describe, shrink};
use sim::history::{
    HASHED, INDEXED, Mix, Model, ORDERED, Op, Pair, Program, Random, SEQUENCES, Setup,
};
use sim::history::{batch, check_clean, effort};
use storage::TableId;

const IMAGE_BYTES: u64 = 256 << 20;
const LOG_BYTES: u64 = 64 << 20;

/// How an engine ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    CheckpointAndDrop,
    /// Killed: stores that were made stay in memory.
    Drop,
}

/// Ends the engine and opens the store with other choices.
#[derive(Debug, Clone)]
struct Reopen {
    end: End,
    setup: Setup,
}

type History = Vec<Step<Reopen>>;

fn random_history(random: &mut Random, first: &Setup) -> History {
    let mix = Mix::random(random);
    let most = random.pick(&[3, 12, 40, 200]);
    let epochs = 3 + random.below(10);
    (0..epochs)
        .map(|_| {
            let calls = if random.percent(5) { 0 } else { 1 + random.below(most) };
            let calls = batch(random, &mix, calls);
            let after = random.percent(25).then(|| {
                let setup = first.reopened(random);
                Reopen { end: random.pick(&[End::Close, End::CheckpointAndDrop, End::Drop]), setup }
            });
            Step { calls, after }
        })
        .collect()
}

/// Runs a history on one device and compares with the oracle all the way.
fn run(device: impl Device, first: &Setup, history: &[Step<Reopen>]) -> Result<(), String> {
    let device = AnyDevice::new(device);
    let mut pair = Pair::open(&device, first, Model::default())?;
    for step in history {
        pair.run(&step.calls)?;
        if let Some(reopen) = &step.after {
            pair.compare_state()?;
            pair = end_and_open(pair, &device, reopen)?;
        }
    }
    pair.compare_state()?;
    let last = Reopen { end: End::Close, setup: *first };
    end_and_open(pair, &device, &last)?;
    Ok(())
}

fn end_and_open(pair: Pair, device: &Arc<AnyDevice>, reopen: &Reopen) -> Result<Pair, String> {
    let Pair { mut engine, model, .. } = pair;
    match reopen.end {
        End::Close => engine.close().map_err(|error| format!("close: {error}"))?,
        End::CheckpointAndDrop => {
            engine.checkpoint().map_err(|error| format!("checkpoint: {error}"))?;
        }
        End::Drop => drop(engine),
    }
    check_clean(device, &model)?;
    Pair::open(device, &reopen.setup, model)
}

fn run_on(device: u64, first: &Setup, history: &[Step<Reopen>]) -> Result<(), String> {
    match device {
        0 => run(Crash::new(IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
        1 => run(Emulated::new(Profile::None, IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
        _ => run(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap(), first, history),
    }
}

/// A difference without its numbers, so that a smaller history shows the same one.
fn kind_of(difference: &str) -> String {
    difference.chars().filter(|c| c.is_ascii_alphabetic()).take(30).collect()
}

fn one_seed(seed: u64) {
    let mut random = Random::new(seed);
    let setup = Setup::random(&mut random);
    let device = random.below(5);
    let history = random_history(&mut random, &setup);
    let Err(difference) = run_on(device, &setup, &history) else {
        return;
    };
    if effort("NVCARACAL_SHRINK", 0) > 0 {
        let kind = kind_of(&difference);
        let same = |result: Result<(), String>| result.is_err_and(|other| kind_of(&other) == kind);
        let small = shrink(history, &mut |smaller| same(run_on(device, &setup, smaller)));
        let difference = run_on(device, &setup, &small);
        panic!("seed {seed}, device {device}, {setup:?}: {difference:?}\n{}", describe(&small));
    }
    panic!("seed {seed}, device {device}, {setup:?}: {difference}");
}

/// O-02 to O-10, O-14, O-18, O-25, O-28, O-30 to O-33, O-37 to O-44, O-46, O-48, O-49.
#[test]
fn random_histories_match_the_serial_oracle() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_HISTORIES", 60) {
        one_seed(seed);
    }
}

/// O-21, O-44: one history under many choices and on all devices: the same answers and states.
#[test]
fn o_21_no_choice_changes_an_answer() {
    for seed in 1000..1000 + effort("NVCARACAL_METAMORPHIC", 4) {
        let mut random = Random::new(seed);
        let mix = Mix { keys: 12, long_values: true, lookups: 15 };
        let history: History =
            (0..8).map(|_| Step { calls: batch(&mut random, &mix, 60), after: None }).collect();
        for number in 0..24 {
            let setup = Setup::random(&mut random);
            run_on(number % 5, &setup, &history)
                .unwrap_or_else(|error| panic!("seed {seed}, {setup:?}: {error}"));
        }
    }
}

/// O-21: one history with the state hash and without it, beside some other choices: the same
/// answers and states. Random histories change it from open to open, too.
#[test]
fn o_21_the_state_hash_changes_no_answer() {
    for seed in 3000..3000 + effort("NVCARACAL_METAMORPHIC", 2) {
        let mut random = Random::new(seed);
        let mix = Mix { keys: 12, long_values: true, lookups: 15 };
        let history: History =
            (0..8).map(|_| Step { calls: batch(&mut random, &mix, 60), after: None }).collect();
        for number in 0..12 {
            let (state_hash, checkpoint_every) = (number % 2 == 0, [1, 3][number / 2 % 2]);
            let (workers, cache_bytes) = (random.pick(&[1, 2, 4]), random.pick(&[0, 1 << 20]));
            let usual = Setup { workers, cache_bytes, ..Setup::default() };
            let setup = Setup { state_hash, checkpoint_every, ..usual };
            run_on(number as u64 / 4, &setup, &history)
                .unwrap_or_else(|error| panic!("seed {seed}, {setup:?}: {error}"));
        }
    }
}

/// Whether what a call does depends on where its epoch begins: what the epoch before left, its
/// serial id, its time.
fn knows_its_epoch(call: &[u8]) -> bool {
    use Op::{DeclareDerived, DeclareLast, Info, LookupOrAbort, SequenceStart};
    let mut program = Program::decode(call);
    let mut steps = program.parts().into_iter().flatten();
    steps.any(|step| {
        matches!(step.op, DeclareDerived | DeclareLast | Info | LookupOrAbort | SequenceStart)
    })
}

/// Whether a call may come later than in its turn, because it writes what it did not declare, or
/// what changes an index.
fn changes_its_turn(call: &[u8]) -> bool {
    let Program { declares, body, .. } = Program::decode(call);
    let is_declared = |step: &sim::history::Step| {
        declares.iter().any(|d| {
            let fits = match d.op {
                Op::DeclareInsert => true,
                Op::DeclareUpdate | Op::DeclareDelete => step.op != Op::Insert,
                _ => false,
            };
            (d.table, d.a) == (step.table, step.a) && fits
        })
    };
    let writes = [Op::Insert, Op::Update, Op::Modify, Op::Delete];
    body.iter().any(|step| writes.contains(&step.op) && !is_declared(step))
        || declares.iter().chain(&body).any(|step| step.table == INDEXED)
}

/// O-21: how calls are split into epochs changes no state. (The answers are the oracle's for each
/// split.)
#[test]
fn o_21_epoch_splits_change_no_state() {
    for seed in 2000..2000 + effort("NVCARACAL_METAMORPHIC", 4) {
        let mut random = Random::new(seed);
        let mix = Mix { keys: 12, long_values: true, lookups: 0 };
        let mut calls = batch(&mut random, &mix, 400);
        // None is for the serial part.
        calls.iter_mut().for_each(|call| *call = Program::decode(call).encode());
        calls.retain(|call| !knows_its_epoch(call) && !changes_its_turn(call));
        assert!(calls.len() > 100, "most calls do not know their epoch");
        let mut states = Vec::new();
        for split in [calls.len(), 1, 7, 50, 1 + random.below(100) as usize] {
            let device = AnyDevice::new(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap());
            let mut pair =
                Pair::open(&device, &Setup::random(&mut random), Model::default()).unwrap();
            for epoch in calls.chunks(split) {
                pair.run(epoch).unwrap_or_else(|error| panic!("seed {seed}, {split}: {error}"));
            }
            pair.compare_state().unwrap();
            states.push(pair.engine.state_hash());
        }
        assert!(states.iter().all(|state| *state == states[0]), "seed {seed}: {states:?}");
    }
}

/// O-15, O-19: cached versions are freed when they are replaced, those of sequences too, and a full
/// cache hides nothing.
#[test]
fn o_19_the_cache_is_bounded_and_never_stale() {
    let device = AnyDevice::new(Dram::new(IMAGE_BYTES, LOG_BYTES).unwrap());
    let setup = Setup { cache_bytes: 64 << 10, cache_epochs: 1, ..Setup::default() };
    let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
    let program = |declare, op| {
        Program {
            sequences: vec![sim::history::Step::new(Op::Allocate, HASHED, 1)],
            declares: vec![sim::history::Step::new(declare, ORDERED, 1)],
            body: vec![sim::history::Step::new(op, ORDERED, 1).size(9)],
        }
        .encode()
    };
    let write = program(Op::DeclareInsert, Op::Insert);
    let read = program(Op::WillRead, Op::Get);
    let mut settled = 0;
    for epoch in 0..1500 {
        pair.run(&[write.clone(), read.clone()]).unwrap();
        pair.run(std::slice::from_ref(&read)).unwrap();
        if epoch == 20 {
            settled = pair.engine.memory().cache;
        }
    }
    pair.compare_state().unwrap();
    let next = pair.engine.get(TableId(SEQUENCES.into()), &1u64.to_be_bytes()).unwrap();
    assert_eq!(next, Some(4500u64.to_le_bytes().to_vec()));
    assert_eq!(pair.engine.memory().cache, settled, "bytes of cache after many epochs");
}
