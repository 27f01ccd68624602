//! Random histories, and what they come to.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use pmem::Device;

use crate::engines::Engine;
use crate::options::{Fault, Options};
use crate::{Key, Partition, Result, Row, Schema, Table};

/// The splitmix64 generator.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Insert(Row),
    Update(usize, Vec<u8>),
    Delete,
}

/// Some changes, and whether they are undone.
#[derive(Debug, Clone)]
pub(super) struct Transaction {
    pub(super) changes: Vec<(usize, Key, Change)>,
    pub(super) aborts: bool,
}

/// The tuples of all tables, those of secondary indexes included.
pub(super) type State = BTreeMap<(usize, Key), Row>;

pub(super) fn schema() -> Schema {
    let first = Table { key_bytes_max: 8, columns: vec![8, 40, 3], indexes: vec![0] };
    let second = Table { key_bytes_max: 12, columns: vec![200], indexes: vec![] };
    Schema::new(vec![first, second]).unwrap()
}

pub(super) fn options(fault: Option<Fault>) -> Options {
    Options {
        group_transactions: 3,
        checkpoint_transactions: 8,
        node_bytes: 128,
        page_bytes: 1024,
        cached_pages: 4,
        memtable_bytes: 600,
        growth: 2,
        first_level_runs: 2,
        fault,
        ..Options::default()
    }
}

fn value(dice: &mut Dice, column: usize) -> Vec<u8> {
    match column {
        0 => dice.below(3).to_le_bytes().to_vec(),
        2 => vec![dice.below(256) as u8; 3],
        _ => vec![dice.below(256) as u8; dice.below(40) as usize],
    }
}

/// A history with so many transactions.
pub(super) fn history(seed: u64, transactions: usize, keys: u64) -> Vec<Transaction> {
    let mut dice = Dice(seed);
    let mut history = Vec::new();
    for _ in 0..transactions {
        let mut changes = Vec::new();
        for _ in 0..=dice.below(3) {
            let table = usize::from(dice.below(4) == 0);
            let number = dice.below(keys);
            let (key, columns) = match table {
                0 => (Key::of_u64(number), 3),
                _ => (Key::of_bytes(format!("{number:07}").as_bytes(), 12).unwrap(), 1),
            };
            let of = |column| column + table * 10;
            let change = match dice.below(5) {
                0 | 1 => Change::Insert((0..columns).map(|c| value(&mut dice, of(c))).collect()),
                2 | 3 => {
                    let column = dice.below(columns as u64) as usize;
                    Change::Update(column, value(&mut dice, of(column)))
                }
                _ => Change::Delete,
            };
            changes.push((table, key, change));
        }
        history.push(Transaction { changes, aborts: dice.below(5) == 0 });
    }
    history
}

/// Applies a transaction to the model, and returns what each of its changes should say.
pub(super) fn apply_to_model(transaction: &Transaction, state: &mut State) -> Vec<bool> {
    let before = state.clone();
    let mut said = Vec::new();
    for (table, key, change) in &transaction.changes {
        let at = (*table, *key);
        let exists = state.contains_key(&at);
        match change {
            Change::Insert(row) if !exists => {
                state.insert(at, row.clone());
            }
            Change::Insert(_) => {}
            Change::Update(column, value) => {
                if let Some(row) = state.get_mut(&at) {
                    row[*column].clone_from(value);
                }
            }
            Change::Delete => {
                state.remove(&at);
            }
        }
        said.push(exists != matches!(change, Change::Insert(_)));
    }
    if transaction.aborts {
        *state = before;
    }
    said
}

/// Applies a transaction to an engine, up to its end, and returns what each of its changes said.
pub(super) fn apply<D: Device, E: Engine<D>>(
    transaction: &Transaction,
    to: &mut Partition<D, E>,
) -> Result<Vec<bool>> {
    let mut said = Vec::new();
    for (table, key, change) in &transaction.changes {
        said.push(match change {
            Change::Insert(row) => to.insert(*table, key, row)?,
            Change::Update(column, value) => to.update(*table, key, &[(*column, value)])?,
            Change::Delete => to.delete(*table, key)?,
        });
    }
    Ok(said)
}

/// The state with the entries of the secondary indexes.
pub(super) fn with_indexes(state: &State) -> State {
    let schema = schema();
    let mut all = state.clone();
    for index in &schema.indexes {
        for ((table, key), row) in state {
            if *table == index.of_table {
                let entry = index.key(&schema, &row[index.column], key);
                all.insert((index.table, entry), Row::new());
            }
        }
    }
    all
}

/// All that an engine has.
pub(super) fn state_of<D: Device, E: Engine<D>>(of: &mut Partition<D, E>) -> Result<State> {
    let mut state = State::new();
    for table in 0..schema().tables.len() {
        let mut last = None;
        of.scan(table, &Key::MIN, None, &mut |key, row| {
            assert!(last < Some(*key), "in order, no key twice");
            last = Some(*key);
            state.insert((table, *key), row);
            ControlFlow::Continue(())
        })?;
    }
    Ok(state)
}
