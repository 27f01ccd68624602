//! Memory of transient versions that is reclaimed within an epoch (docs/decisions/0014): few rows,
//! many versions of each, and calls that stay with an old one while others go on.
//!
//! In debug builds memory that is taken back is overwritten, so who still reads it gets a wrong
//! answer, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::AppendMethod;
use sim::history::{Model, ORDERED, Op, Pair, Random, Setup, Step};

use crate::{device, explore, program, seeds};

const ROWS: u64 = 3;

fn row(random: &mut Random) -> u8 {
    random.byte(ROWS)
}

fn step(op: Op, row: u8) -> Step {
    Step::new(op, ORDERED, row)
}

/// Reads all rows, some of them again and again: others publish many versions meanwhile.
fn long_reader(random: &mut Random) -> Vec<u8> {
    let reads = 2 + random.below(6);
    let mut body: Vec<_> = (0..reads).map(|_| step(Op::Get, row(random))).collect();
    if random.percent(30) {
        body.push(step(Op::Scan, 0).to(9));
    }
    program(vec![], body)
}

/// Writes some rows, each time in another way.
fn writer(random: &mut Random) -> Vec<u8> {
    let (mut declares, mut body) = (vec![], vec![]);
    for row in 0..ROWS as u8 {
        if random.percent(40) {
            continue;
        }
        declares.push(step(Op::DeclareInsert, row));
        let op = random.pick(&[Op::Update, Op::Modify, Op::Insert, Op::Derive, Op::Delete]);
        let write = step(op, row).to(random.byte(ROWS)).size(8 + random.byte(4));
        let write = write.tag(random.byte(250)).flag(true);
        if random.percent(85) {
            body.push(write);
        }
        if random.percent(40) {
            body.push(step(Op::Get, random.byte(ROWS)));
        }
    }
    match random.below(10) {
        0 | 1 => body.push(step(Op::Abort, 0)),
        2 => body.push(step(Op::Panic, 0)),
        _ => {}
    }
    program(declares, body)
}

/// Makes one row visible early and then goes on reading, what it wrote and what was before it.
fn early_writer(random: &mut Random) -> Vec<u8> {
    let own = row(random);
    let (mut declares, mut body) = (vec![step(Op::DeclareInsert, own)], vec![]);
    for other in (0..ROWS as u8).filter(|&other| other != own) {
        declares.push(step(Op::DeclareUpdate, other));
    }
    body.push(step(Op::Insert, own).size(9).tag(random.byte(250)));
    body.push(step(Op::CommitPoint, 0));
    body.extend((0..ROWS as u8).map(|row| step(Op::Get, row)));
    program(declares, body)
}

/// A piece updates a row, and looks at another. The body asks for the result, so that the piece is
/// done, and then reads the rows as they were before.
fn with_piece(random: &mut Random) -> Vec<u8> {
    let (of_piece, other) = (row(random), row(random));
    let piece = step(Op::DeclarePiece, of_piece).n(random.byte(3)).size(9);
    let declares = vec![piece.tag(random.byte(250)).to(other).flag(random.percent(60))];
    let mut body = vec![];
    if random.percent(50) {
        body.push(step(Op::PieceResult, 0));
    }
    let reads = random.below(6);
    body.extend((0..reads).map(|_| step(Op::Get, row(random))));
    body.push(step(Op::Get, of_piece));
    program(declares, body)
}

/// Writes a row; its piece, of another one, runs when the body is done.
fn writer_with_piece(random: &mut Random) -> Vec<u8> {
    let own = row(random);
    let of_piece = (own + 1) % ROWS as u8;
    let piece = step(Op::DeclarePiece, of_piece).n(random.byte(3)).size(8).tag(random.byte(250));
    let piece = piece.to((own + 2) % ROWS as u8).flag(true);
    let write = step(Op::Update, own).size(9).tag(random.byte(250));
    program(vec![step(Op::DeclareUpdate, own), piece], vec![write])
}

fn call(random: &mut Random, with_pieces: bool) -> Vec<u8> {
    match random.below(if with_pieces { 11 } else { 6 }) {
        0 | 1 => long_reader(random),
        2 | 3 => writer(random),
        4 => early_writer(random),
        5 => program(vec![step(Op::DeclareUpdate, row(random))], vec![]),
        6..9 => with_piece(random),
        _ => writer_with_piece(random),
    }
}

fn any_setup(random: &mut Random, with_pieces: bool) -> Setup {
    Setup {
        workers: 2 + random.below(2) as usize,
        cache_bytes: random.pick(&[0, 0, 1 << 16]),
        checkpoint_every: random.pick(&[1, 2]),
        split_threshold: if with_pieces { random.pick(&[1, 2]) } else { 0 },
        append: random.pick(&AppendMethod::ALL),
        ..Setup::default()
    }
}

/// Some epochs of such calls under many schedules, for several seeds.
fn check(what: &str, with_pieces: bool, count: u64, schedules: u64) {
    let reused = Arc::new(AtomicU64::new(0));
    for seed in seeds(count) {
        let mut random = Random::new(seed);
        let setup = any_setup(&mut random, with_pieces);
        let mut batch = |calls| (0..calls).map(|_| call(&mut random, with_pieces)).collect();
        let epochs: [Vec<Vec<u8>>; 3] = [batch(10), batch(24), batch(24)];
        let sum = Arc::clone(&reused);
        explore(what, seed, schedules, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in &epochs {
                let work = pair.run_counted(epoch);
                let work = work.unwrap_or_else(|error| panic!("{setup:?}: {error}"));
                sum.fetch_add(work.versions_reused, Ordering::Relaxed);
            }
            pair.compare_state().unwrap();
        });
    }
    assert!(reused.load(Ordering::Relaxed) > 100, "{reused:?}");
}

/// O-15: whatever the schedule, nobody sees memory that is reclaimed.
#[test]
fn o_15_versions_stay_as_long_as_anyone_may_read_them() {
    check("reuse", false, 40, 12);
}

/// O-15: the same with pieces in queues, which lag behind the calls of their worker, and with
/// bodies that go on after their pieces.
#[test]
fn o_15_versions_stay_as_long_as_pieces_and_their_calls_may_read_them() {
    check("reuse with pieces", true, 60, 12);
}
