//! Pieces apart from their calls (split-on-demand, CA 3.4), and all that calls and pieces may wait
//! for.

use sim::history::{HASHED, Model, ORDERED, Op, Pair, Program, Random, Setup, Step};

use crate::{device, explore, seeds};

const ROWS: u64 = 3;

/// A call with a piece, whose body reads, gives up, asks for the result, or does something else.
fn with_piece(random: &mut Random) -> Vec<u8> {
    let (row, other) = (random.byte(ROWS), random.byte(ROWS));
    let piece = Step::new(Op::DeclarePiece, ORDERED, row).tag(random.byte(250));
    let mut declares = vec![piece.n(random.byte(4)).to(other).flag(random.percent(50))];
    let mut body = vec![];
    if random.percent(40) {
        // Rows of its own, which other pieces want, too, and bodies read.
        let of_pieces = Step::new(Op::InsertInPiece, HASHED, 10 + random.byte(2)).size(3);
        declares.push(of_pieces.n(random.byte(4)).tag(random.byte(250)));
        body.push(Step::new(Op::Get, HASHED, 10 + random.byte(2)));
    }
    if random.percent(40) {
        let second = Step::new(Op::DeclarePiece, ORDERED, (row + 1) % ROWS as u8);
        declares.push(second.tag(random.byte(250)).n(random.byte(8)));
    }
    if random.percent(30) {
        let own = random.byte(2);
        declares.push(Step::new(Op::DeclareInsert, HASHED, own));
        body.push(Step::new(Op::Insert, HASHED, own).size(3).tag(random.byte(250)));
    }
    if random.percent(40) {
        body.push(Step::new(Op::Get, ORDERED, random.byte(ROWS)));
    }
    match random.below(5) {
        0 => body.push(Step::new(Op::Abort, HASHED, 0)),
        1 => {
            let pieces = declares.iter().filter(|step| step.op == Op::DeclarePiece).count();
            body.push(Step::new(Op::PieceResult, HASHED, 0).n(random.byte(pieces as u64)));
        }
        _ => {}
    }
    Program { sequences: vec![], declares, body }.encode()
}

/// A call without pieces that writes a row, or only says so, or looks it up while declaring.
fn without(random: &mut Random) -> Vec<u8> {
    let row = random.byte(ROWS);
    let step = |op| Step::new(op, ORDERED, row).size(4);
    let (declares, body) = match random.below(4) {
        0 => (vec![step(Op::DeclareInsert)], vec![step(Op::Insert).tag(random.byte(250))]),
        1 => (vec![step(Op::DeclareUpdate)], vec![]),
        2 => (vec![step(Op::LookupOrAbort), step(Op::DeclareUpdate)], vec![step(Op::Modify)]),
        _ => (vec![step(Op::WillRead)], vec![step(Op::Get)]),
    };
    Program { sequences: vec![], declares, body }.encode()
}

/// O-03, O-11, O-14: whatever the schedule, an epoch with pieces ends, and with the serial result.
#[test]
fn o_11_pieces_apart_from_their_calls_end_with_the_serial_result() {
    for seed in seeds(20) {
        let mut random = Random::new(seed);
        let (workers, split_threshold) = (2 + random.below(2) as usize, random.pick(&[1, 2]));
        let setup = Setup { workers, split_threshold, ..Setup::default() };
        let mut batch = |calls: u64| -> Vec<Vec<u8>> {
            let call = |_| match random.percent(65) {
                true => with_piece(&mut random),
                false => without(&mut random),
            };
            (0..calls).map(call).collect()
        };
        let epochs = [batch(4), batch(14)];
        explore("pieces", seed, 12, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in &epochs {
                pair.run(epoch).unwrap_or_else(|error| panic!("{setup:?}: {error}"));
            }
            pair.compare_state().unwrap();
        });
    }
}

/// O-11, O-14: a call that gives up, of which a piece stayed with it, leaves IGNORE as the last
/// version of that piece's row, and its worker waits for the version before. That one's writer may
/// wait for a piece of another row, which only the same worker can run.
#[test]
fn o_11_a_piece_that_writes_nothing_waits_while_its_worker_runs_other_pieces() {
    let (contended, other) = (0, 1);
    let piece = |row| Step::new(Op::DeclarePiece, ORDERED, row).tag(7).n(1).to(row);
    let program = |declares, body| Program { sequences: vec![], declares, body }.encode();
    let with_piece = || program(vec![piece(contended)], vec![]);
    let reader = program(
        vec![Step::new(Op::DeclareInsert, ORDERED, other)],
        vec![
            Step::new(Op::Get, ORDERED, contended),
            Step::new(Op::Insert, ORDERED, other).size(4).tag(9),
        ],
    );
    let gives_up = program(vec![piece(other)], vec![Step::new(Op::Abort, HASHED, 0)]);
    let insert = |row| {
        let declares = vec![Step::new(Op::DeclareInsert, ORDERED, row)];
        program(declares, vec![Step::new(Op::Insert, ORDERED, row).size(4).tag(5)])
    };
    let epochs = [
        vec![insert(contended), insert(other)],
        vec![with_piece(), with_piece(), with_piece(), with_piece(), reader, gives_up],
    ];
    let setup = Setup { workers: 2, split_threshold: 3, ..Setup::default() };
    explore("gives up", 1, 300, move || {
        let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
        for epoch in &epochs {
            pair.run(epoch).unwrap_or_else(|error| panic!("{error}"));
        }
        pair.compare_state().unwrap();
    });
}

/// O-11: of a call's four pieces the second and the fourth run apart, and each but the first asks
/// what the one before came to; the body asks for the fourth, or for none. A worker may come to a
/// later piece of a call while it waits within an earlier one.
#[test]
fn o_11_pieces_of_a_call_wait_for_one_another_wherever_they_run() {
    let (contended, others) = ([0, 1], [2, 3]);
    let insert = |row| {
        let declares = vec![Step::new(Op::DeclareInsert, ORDERED, row)];
        let body = vec![Step::new(Op::Insert, ORDERED, row).size(4).tag(5)];
        Program { sequences: vec![], declares, body }.encode()
    };
    let call = |own: u8, asks: bool| {
        let rows = [others[usize::from(own) % 2], contended[0], 4 + own, contended[1]];
        let piece = |(number, row): (usize, &u8)| {
            let asks = if number > 0 { 4 } else { 0 };
            Step::new(Op::DeclarePiece, ORDERED, *row).tag(7 + number as u8).n(1 | asks)
        };
        let declares = rows.iter().enumerate().map(piece).collect();
        let result = Step::new(Op::PieceResult, HASHED, 0).n(3);
        Program { sequences: vec![], declares, body: vec![result; asks.into()] }.encode()
    };
    let rows: Vec<Vec<u8>> = (0..8).map(insert).collect();
    let calls: Vec<Vec<u8>> = (0..4).map(|own| call(own, own % 2 == 1)).collect();
    for workers in [2, 3] {
        let setup = Setup { workers, split_threshold: 3, ..Setup::default() };
        let epochs = [rows.clone(), calls.clone()];
        explore("of a call", workers as u64, 150, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in &epochs {
                pair.run(epoch).unwrap_or_else(|error| panic!("{error}"));
            }
            pair.compare_state().unwrap();
        });
    }
}
