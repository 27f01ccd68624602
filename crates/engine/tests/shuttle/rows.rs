//! One row, and all that its writers and readers may do to each other.

use engine::AppendMethod;
use sim::history::{Model, ORDERED, Op, Pair, Setup, Step};

use crate::{device, explore, nothing, program, seeds};

fn step(op: Op) -> Step {
    Step::new(op, ORDERED, 1)
}

fn range(op: Op) -> Step {
    Step::new(op, ORDERED, 0).to(9)
}

fn insert(then: Option<Op>, tag: u8) -> Vec<u8> {
    let mut body = vec![step(Op::Insert).size(9).tag(tag)];
    body.extend(then.map(step));
    program(vec![step(Op::DeclareInsert)], body)
}

fn update(op: Op, tag: u8) -> Vec<u8> {
    // As long as what was inserted: a cached version could take the place of the one before.
    program(vec![step(Op::DeclareUpdate)], vec![step(op).size(9).tag(tag)])
}

fn read() -> Vec<u8> {
    program(vec![step(Op::WillRead)], vec![step(Op::Get), range(Op::Scan)])
}

fn range_update(tag: u8) -> Vec<u8> {
    let write = range(Op::RangeWrite).n(0).size(11).tag(tag);
    program(vec![range(Op::DeclareRange)], vec![write])
}

/// Two workers, and for each of them the calls that it declares, one after the other.
fn two(first: Vec<Vec<u8>>, second: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let fill = |mut calls: Vec<Vec<u8>>| {
        assert!(calls.len() <= 4);
        calls.resize(4, nothing());
        calls
    };
    [fill(first), fill(second)].concat()
}

/// With both methods of the append step.
fn check(what: &str, setup: Setup, schedules: u64, epochs: Vec<Vec<Vec<u8>>>) {
    let methods = AppendMethod::ALL.map(|append| seeds(1).map(move |seed| (append, seed)));
    for (append, seed) in methods.into_iter().flatten() {
        let (setup, epochs) = (Setup { append, ..setup }, epochs.clone());
        explore(&format!("{what}, {append:?}"), seed, schedules, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            for epoch in &epochs {
                pair.run(epoch).unwrap();
            }
            pair.compare_state().unwrap();
        });
    }
}

fn workers(workers: usize) -> Setup {
    Setup { workers, ..Setup::default() }
}

/// O-08: two inserters of one row, either of which may come first; the row is born by the smaller,
/// whether it aborts or not, and nobody before that sees it.
#[test]
fn o_08_two_inserters_of_one_row() {
    for end in [None, Some(Op::Abort), Some(Op::Delete)] {
        let smaller = vec![read(), insert(end, 1), range_update(2), read()];
        let larger = vec![insert(None, 3), range_update(4), read()];
        check(&format!("{end:?}"), workers(2), 60, vec![two(smaller, larger)]);
    }
}

/// O-07, O-09: a range covers the rows born before it, while others insert, delete and abort.
#[test]
fn o_09_ranges_over_rows_that_come_and_go() {
    let first = vec![range_update(1), insert(Some(Op::Abort), 2), range_update(3), read()];
    let second = vec![update(Op::Delete, 0), range_update(4), insert(None, 5), range_update(6)];
    check("absent at first", workers(2), 60, vec![two(first.clone(), second.clone())]);
    check("there at first", workers(2), 60, vec![vec![insert(None, 9)], two(first, second)]);
}

/// O-03, O-14, O-49: for up to four versions, every way for each to end.
#[test]
fn o_14_every_way_for_up_to_four_versions_to_end() {
    let ends = [None, Some(Op::Abort), Some(Op::Panic), Some(Op::Delete)];
    for versions in 1..=4u32 {
        for number in 0..4usize.pow(versions) {
            let of = |version: u32| ends[number / 4usize.pow(version) % 4];
            let calls: Vec<_> = (0..versions)
                .map(|version| match of(version) {
                    Some(Op::Delete) => update(Op::Delete, 0),
                    end => insert(end, version as u8),
                })
                .collect();
            let (first, second) = calls.split_at(calls.len().div_ceil(2));
            let mut first = first.to_vec();
            first.push(read());
            let mut second = second.to_vec();
            second.push(read());
            let contended = two(first, second);
            let epochs = vec![contended.clone(), vec![insert(None, 77)], contended];
            check(&format!("{versions} versions, {number}"), workers(2), 2, epochs);
        }
    }
}

/// O-15, O-19, O-20: cached versions are read by two workers, replaced, evicted and made again.
#[test]
fn o_15_cached_versions_are_read_while_others_replace_and_evict_them() {
    for cache_epochs in [0, 1] {
        let setup = Setup { workers: 2, cache_bytes: 1 << 16, cache_epochs, ..Setup::default() };
        let readers = two(vec![read(), read()], vec![read(), read()]);
        let writers = two(vec![read(), update(Op::Update, 5), read()], vec![read(), read()]);
        let idle = two(vec![], vec![]);
        let epochs = vec![
            vec![insert(None, 1)],
            readers.clone(),
            writers,
            readers.clone(),
            idle.clone(),
            idle,
            readers,
        ];
        check(&format!("K = {cache_epochs}"), setup, 40, epochs);
    }
}

/// O-11: calls that each wait for the one before, on three workers.
#[test]
fn o_11_chains_end() {
    let link = |i: u8| {
        let derive = Step::new(Op::Derive, ORDERED, (i + 1) % 3).to(i % 3).tag(i);
        let declare = Step::new(Op::DeclareInsert, ORDERED, (i + 1) % 3);
        program(vec![declare], vec![derive.size(i).flag(true)])
    };
    check("a chain", workers(3), 40, vec![(0..14).map(link).collect()]);
}

/// O-08, O-13: rows that all workers append to, old ones and new ones, with ranges over them: every
/// row's versions are there, in serial order, before anyone reads one.
#[test]
fn o_13_appends_of_three_workers_to_the_same_rows() {
    let of = |key: u8, op: Op, tag: u8| {
        let declare = if op == Op::Insert { Op::DeclareInsert } else { Op::DeclareUpdate };
        let body =
            vec![Step::new(op, ORDERED, key).size(9).tag(tag), Step::new(Op::Get, ORDERED, key)];
        program(vec![Step::new(declare, ORDERED, key)], body)
    };
    let calls = |op| -> Vec<_> {
        (0..3 * 4)
            .map(|i| match i % 4 {
                3 => range_update(i),
                key => of(1 + (key + i / 4) % 3, op, i),
            })
            .collect()
    };
    let epochs = vec![calls(Op::Insert), calls(Op::Update), calls(Op::Insert)];
    check("three rows", workers(3), 60, epochs);
}
