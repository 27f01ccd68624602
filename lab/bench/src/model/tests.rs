//! Small epochs by hand, and what must hold of all.

use engine::{AppendMethod, Packing};

use super::costs::Costs;
use super::engines::{Engine, Places, Simulated, Versions};
use super::shape::{Access, Kind, Shape};
use super::simulate::simulate;

/// Round numbers; memory is no limit.
const COSTS: Costs = Costs {
    control_ns: 1.0,
    append_ns: 10.0,
    move_ns: 1.0,
    execute_ns: 100.0,
    line_ns: 8.0,
    bytes_per_ns: 1e9,
};

fn access(row: u32, kind: Kind) -> Access {
    let of_piece = (kind == Kind::Piece).then_some(row);
    Access { row, home: u64::from(row), lines: 1, kind, of_piece }
}

fn shape(calls: &[&[(u32, Kind)]]) -> Shape {
    let calls: Vec<Vec<Access>> = calls
        .iter()
        .map(|call| call.iter().map(|(row, kind)| access(*row, *kind)).collect())
        .collect();
    let rows = calls.iter().flatten().map(|access| access.row as usize + 1).max().unwrap_or(0);
    Shape { calls, rows }
}

fn versions(append: AppendMethod, split_threshold: u32, packing: Packing) -> Engine {
    Engine::Versions(Versions { places: Places::Shared(append), split_threshold, packing })
}

fn batch() -> Engine {
    versions(AppendMethod::Batch, 0, Packing::Line)
}

fn all() -> Vec<Engine> {
    let bohm = Versions { places: Places::Owner, split_threshold: 0, packing: Packing::Line };
    vec![
        Engine::Serial,
        batch(),
        versions(AppendMethod::RowLock, 0, Packing::Line),
        versions(AppendMethod::Batch, 4, Packing::Line),
        versions(AppendMethod::Batch, 4, Packing::Whole),
        Engine::Versions(bohm),
        Engine::Granola,
        Engine::Pwv,
        Engine::Calvin,
    ]
}

/// Calls without contention: each updates three rows of its own.
fn apart(calls: u32, kind: Kind) -> Shape {
    let calls: Vec<Vec<(u32, Kind)>> =
        (0..calls).map(|call| (0..3).map(|i| (call * 3 + i, kind)).collect()).collect();
    shape(&calls.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Calls that all update one of two rows, and two of their own.
fn contended(calls: u32, kind: Kind) -> Shape {
    let own = |call: u32| [(call % 2, kind), (2 + call * 2, kind), (3 + call * 2, kind)];
    let calls: Vec<_> = (0..calls).map(own).collect();
    shape(&calls.iter().map(<[_; 3]>::as_slice).collect::<Vec<_>>())
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

#[test]
fn one_core_does_the_sum_of_all_steps() {
    let shape = shape(&[&[(0, Kind::Update), (1, Kind::Read)], &[(0, Kind::Update)]]);
    let serial = simulate(Engine::Serial, &shape, &COSTS, 1);
    assert_eq!(serial, Simulated { execute_ns: 300.0, ..Simulated::default() });
    // Three accesses are declared, two versions appended; no line comes from another core.
    let one = simulate(batch(), &shape, &COSTS, 1);
    close(one.control_ns, 3.0 + 20.0);
    close(one.execute_ns, 300.0);
    assert_eq!((one.hand_overs, one.messages), (0, 0));
    let calvin = simulate(Engine::Calvin, &shape, &COSTS, 1);
    // All locks, then three accesses.
    close(calvin.execute_ns, 3.0 * 11.0 + 300.0);
}

#[test]
fn the_longest_path_is_shorter_if_updates_run_apart() {
    // All calls update row 0, read row 1, and insert three rows: a path through all of them.
    let calls: Vec<Vec<(u32, Kind)>> = (0..5)
        .map(|call| {
            let own = (0..3).map(|i| (2 + call * 3 + i, Kind::Insert));
            [(0, Kind::Update), (1, Kind::Read)].into_iter().chain(own).collect()
        })
        .collect();
    let hot = shape(&calls.iter().map(Vec::as_slice).collect::<Vec<_>>());
    // Cut, the bodies run at the same time, and only the updates one after the other.
    assert_eq!((hot.longest_path(), hot.clone().cut().longest_path()), (5 * 5, 4 + 5));
    assert_eq!(hot.clone().cut().whole(), hot);
    // Calls that hang together by one row each, which is another one for the next call.
    let calls: Vec<[(u32, Kind); 2]> =
        (0..5).map(|call| [(call, Kind::Update), (call + 1, Kind::Update)]).collect();
    let ladder = shape(&calls.iter().map(<[_; 2]>::as_slice).collect::<Vec<_>>());
    assert_eq!((ladder.longest_path(), ladder.cut().longest_path()), (10, 2));
}

/// A piece has all accesses that were declared for it: they follow each other, behind their call.
#[test]
fn accesses_of_a_piece_follow_its_contended_row() {
    let calls: Vec<Vec<Access>> = (0..5)
        .map(|call| {
            let own = access(1 + call, Kind::Insert);
            vec![
                own,
                access(0, Kind::Piece),
                Access { of_piece: Some(0), ..access(9, Kind::Update) },
            ]
        })
        .collect();
    let shape = Shape { calls, rows: 10 };
    assert_eq!(shape.longest_path(), 1 + 2 * 5, "the first body, and then all pieces");
    assert_eq!(shape.clone().whole().longest_path(), 3 * 5);
    let split = simulate(versions(AppendMethod::Batch, 4, Packing::Whole), &shape, &COSTS, 2);
    // One core runs all pieces, of two accesses, and a run of four bodies.
    let accesses = (split.execute_ns / 100.0).floor();
    assert!((5.0 * 2.0 + 4.0 - accesses).abs() < 1.0, "{split:?}");
}

/// Runs of four calls: the second run is another core's, and its first call waits for the first
/// run's last version of row 0, which comes with its line.
#[test]
fn a_reader_waits_for_the_version_before_it() {
    let updates: Vec<[(u32, Kind); 1]> = vec![[(0, Kind::Update)]; 8];
    let shape = shape(&updates.iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>());
    let two = simulate(batch(), &shape, &COSTS, 2);
    // 8 accesses of 100, one hand-over of 8, and the barrier.
    close(two.execute_ns, 800.0 + 8.0 + COSTS.barrier_ns(2));
    close(two.waited_ns, 400.0);
    assert_eq!(two.hand_overs, 1);
}

#[test]
fn row_locks_wait_move_and_hand_over() {
    let shape = shape(&[[(0, Kind::Update)]; 8].iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>());
    let engine = versions(AppendMethod::RowLock, 0, Packing::Line);
    let two = simulate(engine, &shape, &COSTS, 2);
    // Both cores append four times and take turns: 7 hand-overs. Call 4 comes when call 0 is there,
    // call 1 moves it, and so on: 0, 4, 1, 5, 2, 6, 3, 7 move 1 + 2 + 3.
    let appends = 8.0 * 10.0 + 7.0 * 8.0 + 6.0;
    close(two.control_ns, 8.0 / 2.0 + appends + 2.0 * COSTS.barrier_ns(2));
}

#[test]
fn partitions_meet_where_a_call_cannot_be_cut() {
    let whole = shape(&[&[(0, Kind::Update)], &[(0, Kind::Update), (1, Kind::Update)]]);
    let granola = simulate(Engine::Granola, &whole, &COSTS, 2);
    // Partition 1 waits for 100; then both accesses, row 1's value and one meeting.
    close(granola.execute_ns, 100.0 + 200.0 + 8.0 + 8.0 + COSTS.barrier_ns(2));
    close(granola.waited_ns, 100.0);
    let cut = shape(&[&[(0, Kind::Piece)], &[(0, Kind::Piece), (1, Kind::Piece)]]);
    let granola = simulate(Engine::Granola, &cut, &COSTS, 2);
    close(granola.execute_ns, 200.0 + COSTS.barrier_ns(2));
    close(granola.waited_ns, 0.0);
    close(simulate(Engine::Pwv, &cut, &COSTS, 2).execute_ns, 200.0 + COSTS.barrier_ns(2));
}

#[test]
fn locks_are_passed_on_in_order() {
    let shape = shape(&[&[(0, Kind::Update)], &[(0, Kind::Read)], &[(0, Kind::Read)]]);
    let calvin = simulate(Engine::Calvin, &shape, &COSTS, 3);
    // A lock and a message, the writer; its line, then both readers beside each other.
    close(calvin.execute_ns, 11.0 + 2.0 + 100.0 + 8.0 + 2.0 + 100.0 + COSTS.barrier_ns(3));
    assert_eq!(calvin.hand_overs, 2);
}

/// A contended row's pieces run on the core that it was packed onto, so its line stays there.
#[test]
fn split_pieces_keep_the_line_of_their_row() {
    let shape = contended(400, Kind::Piece);
    let hand_overs = |threshold, packing| {
        simulate(versions(AppendMethod::Batch, threshold, packing), &shape, &COSTS, 2).hand_overs
    };
    assert!(hand_overs(0, Packing::Line) > 100);
    assert_eq!(hand_overs(4, Packing::Line), 0, "two rows, two cores");
    assert_eq!(hand_overs(4, Packing::Whole), 0);
}

#[test]
fn the_same_epoch_comes_to_the_same() {
    for engine in all() {
        for cores in [1, 3, 32] {
            let shape = contended(300, Kind::Piece);
            let once = simulate(engine, &shape, &COSTS, cores);
            assert_eq!(once, simulate(engine, &shape, &COSTS, cores), "{engine:?}");
        }
    }
}

/// Without contention, hand-overs or barriers more cores are not slower, and no engine beats an
/// even share of the work.
#[test]
fn cores_pay_where_nothing_is_shared() {
    let free = Costs { line_ns: 0.0, ..COSTS };
    for kind in [Kind::Update, Kind::Piece] {
        let shape = apart(1_024, kind);
        for engine in all() {
            let time = |cores| simulate(engine, &shape, &free, cores).total_ns();
            let one = time(1);
            for cores in [1, 2, 4, 8, 16, 32, 64] {
                let is_cut = kind == Kind::Piece || !matches!(engine, Engine::Granola);
                assert!(!is_cut || time(cores * 2) <= time(cores) * 1.02, "{engine:?} {cores}");
                assert!(time(cores) * cores as f64 >= one * 0.99, "{engine:?} {cores}");
            }
        }
    }
}

#[test]
fn dearer_steps_never_make_an_epoch_shorter() {
    let shape = contended(300, Kind::Update);
    let dearer = [
        Costs { control_ns: 2.0, ..COSTS },
        Costs { append_ns: 20.0, ..COSTS },
        Costs { execute_ns: 200.0, ..COSTS },
        Costs { bytes_per_ns: 1e-3, ..COSTS },
    ];
    for engine in all() {
        for cores in [1, 2, 8] {
            let time = |costs| simulate(engine, &shape, costs, cores).total_ns();
            for costs in &dearer {
                assert!(time(costs) >= time(&COSTS), "{engine:?} {cores} {costs:?}");
            }
        }
    }
}

/// 3,072 accesses of 100 ns that the memory of 16 cores serves, where 32 have half as much to do.
#[test]
fn memory_bounds_execution() {
    let shape = apart(1_024, Kind::Update);
    let slow = Costs { bytes_per_ns: 0.001, ..COSTS };
    let many = simulate(batch(), &shape, &slow, 32);
    close(many.execute_ns, 3_072.0 * 100.0 / 16.0 + COSTS.barrier_ns(32));
    let fast = simulate(batch(), &shape, &COSTS, 32);
    close(fast.execute_ns, 3_072.0 * 100.0 / 32.0 + COSTS.barrier_ns(32));
}
