//! Which versions an epoch makes: their number and memory, and the serial id that reaches the
//! device. No answer and no state depends on these, so that comparing with a model cannot see them.

use std::sync::Arc;

use pmem::{AnyDevice, Dram};
use sim::history::{HASHED, Model, ORDERED, Op, Pair, Program, Setup, Step};
use storage::EpochNumber;
use storage::Position;
use storage::scan;
use storage::{SerialId, Store, StoreOptions};

fn device() -> Arc<AnyDevice> {
    AnyDevice::new(Dram::new(64 << 20, 8 << 20).unwrap())
}

fn program(declare: Step, body: Vec<Step>) -> Vec<u8> {
    Program { sequences: vec![], declares: vec![declare], body }.encode()
}

/// Writes the row with key 1, and then ends as `end` says.
fn write(op: Op, end: Option<Op>) -> Vec<u8> {
    let declare = if op == Op::Insert { Op::DeclareInsert } else { Op::DeclareUpdate };
    let mut body = vec![Step::new(op, ORDERED, 1).size(9)];
    body.extend(end.map(|op| Step::new(op, ORDERED, 1)));
    program(Step::new(declare, ORDERED, 1), body)
}

/// Calls are dealt to workers in runs of so many.
const RUN: u32 = 4;

/// Fills the run of each call with calls that do nothing, so that each has a worker of its own.
fn spread(calls: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let nothing = Program::default().encode();
    let padded = |call: &Vec<u8>| {
        let rest = std::iter::repeat_n(nothing.clone(), RUN as usize - 1);
        std::iter::once(call.clone()).chain(rest)
    };
    calls.iter().flat_map(padded).collect()
}

/// The serial ids of the newest versions of all rows on the device.
fn serial_ids(device: &Arc<AnyDevice>) -> Vec<SerialId> {
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(Arc::clone(device), &options).unwrap();
    let (store, mut found) = (&opened.store, vec![]);
    let plan = scan::plan(store, &opened.sub_pools, &opened.log);
    for unit in &plan.units {
        let layout = store.tables()[unit.table.index()].layout;
        let epoch = store.checkpoint_epoch();
        scan::visit(device.as_ref(), store.segments(), *unit, &layout, &plan, epoch, |row| {
            found.push(SerialId(row.versions[row.slot].serial_id));
            Ok(())
        })
        .unwrap();
    }
    found
}

/// O-14: where the last writers of a row abort, the newest version that survives is made persistent
/// under the serial id of whoever wrote it.
#[test]
fn o_14_a_survivor_keeps_its_serial_id() {
    let update = |end| write(Op::Update, end);
    let calls = [
        update(None),
        update(Some(Op::Abort)),
        update(None),
        update(Some(Op::Panic)),
        update(Some(Op::Abort)),
    ];
    for workers in [1, 2, 4] {
        for (count, survivor) in [(1, 0), (2, 0), (3, 2), (4, 2), (5, 2)] {
            let device = device();
            let setup = Setup { workers, ..Setup::default() };
            let mut pair = Pair::open(&device, &setup, Model::default()).unwrap();
            pair.run(&[write(Op::Insert, None)]).unwrap();
            pair.run(&spread(&calls[..count])).unwrap();
            pair.engine.close().unwrap();
            assert_eq!(
                serial_ids(&device),
                [SerialId::new(EpochNumber(2), Position(survivor * RUN))],
                "{workers} workers, {count} writers"
            );
        }
    }
}

/// O-09: a declared range covers the rows born before the call; one that is born later in the epoch
/// gets no version of it.
#[test]
fn o_09_a_range_has_no_versions_of_rows_born_later() {
    let insert = |key| {
        let body = vec![Step::new(Op::Insert, ORDERED, key).size(9)];
        program(Step::new(Op::DeclareInsert, ORDERED, key), body)
    };
    let range = || program(Step::new(Op::DeclareRange, ORDERED, 0).to(9), vec![]);
    for workers in [1, 2, 4] {
        let setup = Setup { workers, ..Setup::default() };
        let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
        pair.run(&[insert(1)]).unwrap();
        let info = sim::history::info(2);
        let calls = spread(&[insert(2), range(), insert(3), insert(4)]);
        let outcome = pair.engine.run_epoch(&sim::history::to_calls(&calls), info).unwrap();
        let work = &outcome.stats.work;
        assert_eq!(work.ignored_versions, 2, "the range's, of rows 1 and 2; {workers} workers");
        assert_eq!(work.version_arrays, 1, "of row 2; {workers} workers");
        assert_eq!(work.single_write_rows, 3, "rows 1, 3 and 4; {workers} workers");
    }
}

/// O-15: of a row that many calls of an epoch write, memory for a few versions is enough.
#[test]
fn o_15_memory_of_versions_is_used_again() {
    let counted = |calls: u8| {
        let mut pair = Pair::open(&device(), &Setup::default(), Model::default()).unwrap();
        let insert = |tag| {
            let body = vec![Step::new(Op::Insert, HASHED, 1).size(20).tag(tag)];
            program(Step::new(Op::DeclareInsert, HASHED, 1), body)
        };
        let work = pair.run_counted(&(0..calls).map(insert).collect::<Vec<_>>()).unwrap();
        pair.compare_state().unwrap();
        assert_eq!(work.transient_versions, u64::from(calls) - 1);
        (work.versions_reused, pair.engine.memory().transient_pool)
    };
    let ((_, few), (reused, many)) = (counted(50), counted(200));
    assert!((150..=199).contains(&reused), "{reused}");
    // Their places in the version array, and no values.
    assert!(many < few + 150 * 16, "{many} {few}");
}
