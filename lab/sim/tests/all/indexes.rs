//! Secondary indexes in random and in all small histories, against an oracle that computes them
//! from its rows.

use std::sync::Arc;

use engine::Abort;
use pmem::{AnyDevice, Dram};
use sim::history::{
    Expected, INDEXED, Mix, Model, Op, Pair, Program, Random, Setup, Step, batch, check_clean,
    compare_indexes, effort, for_serial_part, info, insert_under, is_serial,
};

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(256 << 20, 64 << 20).unwrap())
}

/// What histories came to.
#[derive(Debug, Default)]
struct Seen {
    not_unique: u64,
    deferred: u64,
    entries: u64,
}

impl Seen {
    fn add(&mut self, answers: &[Expected], model: &Model) {
        let not_unique = |answer: &&Expected| **answer == Expected::Aborted(Abort::NOT_UNIQUE);
        self.not_unique += answers.iter().filter(not_unique).count() as u64;
        self.deferred += model.deferred_calls.len() as u64;
        self.entries += model.tables[usize::from(INDEXED)].len() as u64;
    }
}

/// Runs an epoch, and notes what the oracle says of it.
fn run(pair: &mut Pair, calls: &[Vec<u8>], seen: &mut Seen) -> Result<(), String> {
    let mut after = pair.model.clone();
    let answers = after.run(calls, info(after.epoch + 1).timestamp_ns);
    seen.add(&answers, &after);
    pair.run(calls)
}

/// O-96, O-97, O-98, O-100: random histories, with any number of workers; each is closed or
/// dropped at times and opened again.
#[test]
fn o_96_indexes_are_those_of_the_rows_everywhere() {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    let mut seen = Seen::default();
    for seed in first..first + effort("NVCARACAL_HISTORIES", 60) {
        history(seed, &mut seen).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(seen.not_unique > 50 && seen.deferred > 500 && seen.entries > 1000, "{seen:?}");
}

fn history(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mix, mut setup, device) = (Mix::random(&mut random), Setup::random(&mut random), device());
    let mut pair = Pair::open(&device, &setup, Model::default())?;
    for _ in 0..20 {
        let calls = 1 + random.below(30);
        run(&mut pair, &batch(&mut random, &mix, calls), seen)?;
        if random.percent(80) {
            continue;
        }
        let Pair { engine, model, .. } = pair;
        if random.percent(50) {
            engine.close().map_err(|error| error.to_string())?;
            check_clean(&device, &model)?;
        } else {
            drop(engine);
        }
        setup = setup.reopened(&mut random);
        pair = Pair::open(&device, &setup, model)?;
    }
    pair.compare_state()
}

fn call(body: &[Step]) -> Vec<u8> {
    let declares = [0, 1, 2].map(|row| Step::new(Op::DeclareInsert, INDEXED, row)).to_vec();
    Program { sequences: vec![], declares, body: body.to_vec() }.encode()
}

/// All that a call does to two rows and three keys of the unique index: inserts, which are updates
/// where the row is there, deletions, an exchange of keys, a row that takes the key of the other
/// before that is no longer there or changed; and some of it with a commit point before, or an
/// abort behind.
fn small_calls() -> Vec<Vec<u8>> {
    let step = |op, row: u8| Step::new(op, INDEXED, row).to(1 - row);
    let mut bodies = Vec::new();
    for row in [0, 1] {
        bodies.extend((0..3).map(|unique| vec![insert_under(row, unique)]));
        bodies.push(vec![step(Op::Delete, row)]);
        bodies.push(vec![step(Op::Move, row).flag(true)]);
        bodies.push(vec![step(Op::Move, row), insert_under(1 - row, 2)]);
        bodies.push(vec![insert_under(row, 0), Step::new(Op::Abort, INDEXED, 0).tag(3)]);
    }
    bodies.push(vec![step(Op::Swap, 0)]);
    bodies.push(vec![step(Op::CommitPoint, 0), insert_under(0, 1), step(Op::CommitPoint, 0)]);
    bodies.push(vec![step(Op::Delete, 0), Step::new(Op::Panic, INDEXED, 0)]);
    for body in &mut bodies {
        // Both indexes, before it and after it.
        let look = |n| Step::new(Op::ScanIndex, INDEXED, 0).n(n);
        let end =
            body.len() - usize::from(matches!(body[body.len() - 1].op, Op::Abort | Op::Panic));
        body.splice(end..end, [look(0), look(1)]);
        body.splice(0..0, [look(0), look(1)]);
    }
    bodies.iter().map(|body| call(body)).collect()
}

/// O-96, O-97, O-98: all three calls of these, one after the other in one epoch, all in the serial
/// part, all in parallel, and the last one in parallel; from any state that those before left.
#[test]
fn o_98_all_small_calls_in_all_orders() {
    let (calls, mut seen) = (small_calls(), Seen::default());
    let setup = Setup { workers: 2, segment_bytes: 4096, ..Setup::default() };
    let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
    let count = calls.len();
    for number in 0..count.pow(3) {
        let of = |place: u32| calls[number / count.pow(place) % count].clone();
        let serial = [3, 0, 2][number % 3];
        let part = |place: u32| match place < serial {
            true => for_serial_part(of(place)),
            false => of(place),
        };
        let epoch: Vec<Vec<u8>> = (0..3).map(part).collect();
        run(&mut pair, &epoch, &mut seen).unwrap_or_else(|what| panic!("epoch {number}: {what}"));
    }
    assert!(seen.not_unique > 500 && seen.deferred == 0, "{seen:?}");
}

/// O-96: calls for the serial part come to the same rows, indexes and answers however they are
/// dealt to epochs and whoever runs them.
#[test]
fn o_96_other_epochs_other_workers_same_indexes() {
    for seed in 0..effort("NVCARACAL_HISTORIES", 20) {
        let mut random = Random::new(seed);
        let mix = Mix::random(&mut random);
        let is_of_epoch =
            |step: &Step| matches!(step.op, Op::Info | Op::InsertInfo | Op::SequenceStart);
        let mut calls: Vec<Vec<u8>> = (0..10).flat_map(|_| batch(&mut random, &mix, 12)).collect();
        calls.retain(|call| {
            !Program::decode(call).parts().into_iter().flatten().any(|step| is_of_epoch(step))
        });
        let calls: Vec<Vec<u8>> = calls.into_iter().map(for_serial_part).collect();
        let mut ends = Vec::new();
        for (workers, epoch) in [(1, 1), (4, 7), (2, 1000)] {
            let setup = Setup { workers, ..Setup::random(&mut random) };
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            let mut answers = Vec::new();
            for part in calls.chunks(epoch) {
                assert!(part.iter().all(|call| is_serial(call)));
                let info = info(pair.model.epoch + 1);
                answers.extend(pair.model.clone().run(part, info.timestamp_ns));
                pair.run(part).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            }
            compare_indexes(&mut pair.engine, &pair.model).unwrap();
            ends.push((answers, pair.model.tables, pair.model.sequences));
        }
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}");
    }
}
