//! Working copies of contended rows (docs/decisions/0027): few long rows, many calls that change
//! lines of them, and others that read them late, write them whole, give up, delete them, or update
//! them in pieces.
//!
//! What is taken back too early is overwritten in debug builds, so that its reader gets a wrong
//! answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::AppendMethod;
use sim::history::{Model, ORDERED, Op, Pair, Random, Setup, Step};

use crate::{device, explore, program, seeds};

const ROWS: u64 = 2;

fn row(random: &mut Random) -> u8 {
    random.byte(ROWS)
}

fn step(op: Op, row: u8) -> Step {
    Step::new(op, ORDERED, row)
}

/// A value of several lines.
fn sized(step: Step, random: &mut Random) -> Step {
    step.size(15 + random.byte(5)).tag(random.byte(250))
}

/// Changes a part of some rows: an even tag does.
fn patcher(random: &mut Random) -> Vec<u8> {
    let (mut declares, mut body) = (vec![], vec![]);
    for row in 0..ROWS as u8 {
        if random.percent(20) {
            continue;
        }
        declares.push(step(Op::DeclareUpdate, row));
        body.push(step(Op::Modify, row).tag(2 * random.byte(125)));
        if random.percent(20) {
            body.push(step(Op::Get, random.byte(ROWS)));
        }
    }
    match random.below(12) {
        0 => body.push(step(Op::Abort, 0)),
        1 => body.insert(body.len() / 2, step(Op::CommitPoint, 0)),
        _ => {}
    }
    program(declares, body)
}

/// Reads the rows again and again.
fn reader(random: &mut Random) -> Vec<u8> {
    let reads = 1 + random.below(5);
    let mut body: Vec<_> = (0..reads).map(|_| step(Op::Get, row(random))).collect();
    if random.percent(30) {
        body.push(step(Op::Scan, 0).to(9));
    }
    program(vec![], body)
}

/// Gives a row a value of its own, without having read it, or deletes it.
fn replacer(random: &mut Random) -> Vec<u8> {
    let row = row(random);
    let op = random.pick(&[Op::Insert, Op::Insert, Op::Update, Op::Delete]);
    let write = sized(step(op, row), random);
    program(vec![step(Op::DeclareInsert, row)], vec![write])
}

/// Updates a row in a piece, and reads it in the body, which sees what was before the piece.
fn with_piece(random: &mut Random) -> Vec<u8> {
    let row = row(random);
    let piece = step(Op::DeclarePiece, row).n(0).tag(2 * random.byte(125));
    let body = (0..random.below(3)).map(|_| step(Op::Get, row)).collect();
    program(vec![piece.to(row).flag(false)], body)
}

fn call(random: &mut Random, with_pieces: bool) -> Vec<u8> {
    match random.below(if with_pieces { 14 } else { 10 }) {
        0..6 => patcher(random),
        6..9 => reader(random),
        9 => replacer(random),
        _ => with_piece(random),
    }
}

fn load(random: &mut Random) -> Vec<u8> {
    let rows = 0..ROWS as u8;
    let declares = rows.clone().map(|row| step(Op::DeclareInsert, row)).collect();
    program(declares, rows.map(|row| sized(step(Op::Insert, row), random)).collect())
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
    let sums = Arc::new([const { AtomicU64::new(0) }; 3]);
    for seed in seeds(count) {
        let mut random = Random::new(seed);
        let setup = any_setup(&mut random, with_pieces);
        let first = vec![load(&mut random)];
        let mut batch = |calls| (0..calls).map(|_| call(&mut random, with_pieces)).collect();
        let epochs: [Vec<Vec<u8>>; 3] = [first, batch(24), batch(24)];
        let sums = Arc::clone(&sums);
        explore(what, seed, schedules, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in &epochs {
                let work = pair.run_counted(epoch);
                let work = work.unwrap_or_else(|error| panic!("{setup:?}: {error}"));
                let counts = [work.versions_patched, work.versions_copied, work.versions_reused];
                for (sum, count) in sums.iter().zip(counts) {
                    sum.fetch_add(count, Ordering::Relaxed);
                }
            }
            pair.compare_state().unwrap();
        });
    }
    println!("{what}: patched, copied, reused {sums:?}");
    assert!(sums.iter().all(|sum| sum.load(Ordering::Relaxed) > 1000), "{sums:?}");
}

/// O-103, O-104: whatever the schedule, all see the version before them.
#[test]
fn o_104_all_see_the_version_before_them() {
    check("working copies", false, 40, 12);
}

/// O-103, O-104: the same where pieces on other workers patch.
#[test]
fn o_103_pieces_patch_in_their_turn() {
    check("working copies with pieces", true, 40, 12);
}
