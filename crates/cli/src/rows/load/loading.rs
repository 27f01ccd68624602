//! Rows into the engine: by calls of two procedures of this command, in epochs of one worker.

use bench::BenchError;
use engine::{
    Abort, Answer, Calls, Engine, EpochInfo, ProcedureDefinition, ProcedureTable, Sequences, Stop,
    Transaction, WriteSet,
};
use serde::Serialize;
use storage::{StateHash, TableId, row_hash};

use crate::output::{Done, Failure};

/// Bytes of rows in a call, and calls in an epoch.
const CALL_BYTES: usize = 64 << 10;
const EPOCH_CALLS: usize = 50;

/// What became of the rows of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// There was no row of the key.
    pub(super) inserted: u64,
    /// There was one of another value.
    pub(super) replaced: u64,
    /// It was there.
    pub(super) unchanged: u64,
}

/// A load that is going on.
pub(super) struct Loading {
    engine: Engine,
    calls: Calls,
    /// Arguments of the call of each procedure that is being filled.
    arguments: [Vec<u8>; 2],
    /// Of each table.
    counts: Vec<Counts>,
    /// What the state must come to.
    hash: StateHash,
}

impl Loading {
    pub(super) fn new(engine: Engine, tables: usize) -> Self {
        let hash = engine.state_hash();
        let (calls, arguments) = (Calls::new(), Default::default());
        Self { engine, calls, arguments, counts: vec![Counts::default(); tables], hash }
    }

    /// Takes a row, whose key does not come twice.
    pub(super) fn row(&mut self, table: u16, is_sequence: bool, key: &[u8], value: &[u8]) -> Done {
        let counts = &mut self.counts[usize::from(table)];
        let table = self.engine.table_ids()[usize::from(table)];
        match self.engine.get(table, key).map_err(BenchError::from)? {
            Some(old) if old == value => {
                counts.unchanged += 1;
                return Ok(());
            }
            Some(old) => {
                counts.replaced += 1;
                self.hash.remove(row_hash(table, key, &old));
            }
            None => counts.inserted += 1,
        }
        self.hash.add(row_hash(table, key, value));
        let procedure = if is_sequence { SET } else { INSERT };
        let arguments = &mut self.arguments[usize::from(procedure)];
        arguments.extend_from_slice(&table.0.to_le_bytes());
        for bytes in [key, value] {
            arguments.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            arguments.extend_from_slice(bytes);
        }
        if arguments.len() >= CALL_BYTES { self.push(procedure) } else { Ok(()) }
    }

    /// Ends a call; runs an epoch of those that are there, if they are many.
    fn push(&mut self, procedure: u16) -> Done {
        let arguments = &mut self.arguments[usize::from(procedure)];
        if !arguments.is_empty() {
            self.calls.push(procedure, arguments).map_err(BenchError::from)?;
            arguments.clear();
        }
        if self.calls.len() >= EPOCH_CALLS { self.run() } else { Ok(()) }
    }

    fn run(&mut self) -> Done {
        let info = EpochInfo { timestamp_ns: 0, seed: 0 };
        let outcome = self.engine.run_epoch(&self.calls, info).map_err(BenchError::from)?;
        for position in 0..outcome.len() {
            match outcome.answer(position) {
                Answer::Committed(_) => {}
                other => return Err(Failure::new(format!("rows were not inserted: {other:?}"))),
            }
        }
        self.calls.clear();
        Ok(())
    }

    /// Ends in a checkpoint: what became of the rows of each table, and the state digest.
    pub(super) fn end(mut self) -> Result<(Vec<Counts>, String), Failure> {
        [INSERT, SET].into_iter().try_for_each(|procedure| self.push(procedure))?;
        self.run()?;
        let hash = self.engine.state_hash();
        if hash != self.hash {
            let wanted = self.hash;
            return Err(Failure::new(format!(
                "the state has digest {hash} after the load, that of its rows is {wanted}: this is \
                 a mistake of this program, please report it"
            )));
        }
        self.engine.close().map_err(BenchError::from)?;
        Ok((self.counts, hash.to_string()))
    }
}

/// Numbers of the procedures.
const INSERT: u16 = 0;
const SET: u16 = 1;

/// The procedures of this command. A store whose load was cut short replays them.
pub(super) fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    table.add(ProcedureDefinition {
        name: "nvcaracal load rows",
        sequences: None,
        write_set: |arguments, set: &mut WriteSet<'_>| {
            for (table, key, _) in rows_in(arguments) {
                set.insert(table, key);
            }
            Ok(())
        },
        body: |arguments, tx: &mut Transaction<'_>| {
            rows_in(arguments).try_for_each(|(table, key, value)| tx.insert(table, key, value))
        },
        pieces: None,
    });
    table.add(ProcedureDefinition {
        name: "nvcaracal load sequences",
        sequences: Some(|arguments, sequences: &mut Sequences<'_>| -> Result<(), Abort> {
            let word = |bytes: &[u8]| bytes.try_into().expect("checked in the first pass");
            for (table, key, next) in rows_in(arguments) {
                sequences.set(table, u64::from_be_bytes(word(key)), u64::from_le_bytes(word(next)));
            }
            Ok(())
        }),
        write_set: |_, _| Ok(()),
        body: |_, _| -> Result<(), Stop> { Ok(()) },
        pieces: None,
    });
    table
}

/// The rows of a call.
fn rows_in(mut rest: &[u8]) -> impl Iterator<Item = (TableId, &[u8], &[u8])> {
    fn take<'r>(rest: &mut &'r [u8]) -> &'r [u8] {
        let (len, after) = rest.split_first_chunk().expect("written by this command");
        let (bytes, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        *rest = after;
        bytes
    }
    std::iter::from_fn(move || {
        let (table, after) = rest.split_first_chunk()?;
        rest = after;
        Some((TableId(u16::from_le_bytes(*table)), take(&mut rest), take(&mut rest)))
    })
}
