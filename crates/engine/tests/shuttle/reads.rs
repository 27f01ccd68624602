//! Reads from outside while epochs run: of a snapshot, and of the newest state (O-86, O-106).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use engine::{ReadOutcome, Reader, ScanPart};
use sim::history::{Model, ORDERED, Pair};
use storage::{EpochNumber, TableId};

use crate::histories::small;
use crate::{device, explore, seeds};

/// Tables of rows that the histories have.
fn tables(model: &Model) -> impl Iterator<Item = usize> {
    0..model.tables.len()
}

/// Reads all of a snapshot: what it sees is the model of then.
fn read_snapshot(reader: &Reader, epoch: EpochNumber, then: &Model, keys: &Keys) {
    for (table, key) in keys {
        let found = reader.get_at(1, epoch, TableId(*table as u16), key).unwrap();
        assert_eq!(found.as_ref(), then.tables[*table].get(key), "table {table}, {key:02x?}");
    }
    let (mut found, mut low) = (Vec::new(), vec![0; 8]);
    let table = TableId(ORDERED.into());
    loop {
        let part =
            ScanPart { table, low: &low, high: &[0xff; 8], is_descending: false, rows_max: 2 };
        let last = reader.scan_at(1, epoch, part, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
        let Some(last) = last.unwrap() else { break };
        let last = u64::from_be_bytes(last.try_into().expect("a word"));
        low = (last + 1).to_be_bytes().to_vec();
    }
    let rows = then.tables[usize::from(ORDERED)].iter();
    let rows: Vec<_> = rows.map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(found, rows);
}

/// Reads rows of the newest state: of each it sees one of the states that there were, and never
/// one before that it saw already.
fn read_newest(reader: &Reader, states: &[Model], keys: &Keys) {
    let mut least = 0;
    for (table, key) in keys {
        let mut value = Vec::new();
        let outcome = reader.get(2, TableId(*table as u16), key, &mut value).unwrap();
        let found = (outcome == ReadOutcome::Found).then_some(&value);
        let is_it = |state: &Model| state.tables[*table].get(key) == found;
        let seen = (least..states.len()).find(|&at| is_it(&states[at]));
        least = seen.unwrap_or_else(|| {
            panic!("table {table}, {key:02x?}: {found:02x?} is of no state from {least} on")
        });
    }
}

/// Tables with keys.
type Keys = BTreeSet<(usize, Vec<u8>)>;

/// O-86, O-106: whatever the schedule.
#[test]
fn o_106_reads_beside_an_epoch_see_one_state() {
    for seed in seeds(25) {
        let (setup, batches) = small(seed);
        // What there will be, by the oracle alone.
        let mut states = vec![Model::default()];
        let mut keys = Keys::new();
        for batch in &batches {
            let mut state = states.last().expect("the first one").clone();
            let epoch = state.epoch + 1;
            state.run(batch, sim::history::info(epoch).timestamp_ns);
            for table in tables(&state) {
                keys.extend(state.tables[table].keys().map(|key| (table, key.clone())));
            }
            states.push(state);
        }
        explore("reads", seed, 8, move || {
            let mut pair = Pair::open(&device(), &setup, Model::default()).unwrap();
            pair.run(&batches[0]).unwrap();
            let epoch = pair.engine.snapshot();
            let (of_snapshot, of_newest) = (pair.engine.reader(), pair.engine.reader());
            let (then, states, all) = (pair.model.clone(), states.clone(), keys.clone());
            let keys = all.clone();
            let readers = [
                shuttle::thread::spawn(move || read_snapshot(&of_snapshot, epoch, &then, &keys)),
                shuttle::thread::spawn(move || read_newest(&of_newest, &states, &all)),
            ];
            for batch in &batches[1..] {
                pair.run(batch).unwrap_or_else(|error| panic!("{setup:?}: {error}"));
            }
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            pair.compare_state().unwrap();
        });
    }
}
