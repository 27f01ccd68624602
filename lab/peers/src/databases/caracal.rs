//! NVCaracal by its library, on a `file` device, with the defaults of its options.
//!
//! A transaction that updates is a call of a procedure that says which rows it writes; the library
//! forms an epoch of the calls that wait, with one sync for all of them. One that only reads needs
//! no call: one row is read by key, several from a snapshot. Rows are as long as the values need,
//! so that they are inline, as they are by default for values of a fixed length. Under a limit of
//! memory it has what others have for their caches.

use std::path::Path;

use nvcaracal::{Abort, Data, Procedure, Stop, Table, Transaction, Tuning, WriteSet};

use super::rows::{missing, parts};
use crate::peer::{Caller, Does, Error, Operation, Pace, Peer, Result, Shape, only_reads};
use crate::value;

pub(super) const WAY: &str = "one sync for the calls that wait together";

/// The table, whose values are as long as the comparison wants; and that length.
struct Rows {
    table: Table<u64, Vec<u8>>,
    value_bytes: usize,
}

/// The longest value that is inline by default.
const INLINE_BYTES_MAX: u32 = 2048;

fn table(value_bytes: usize) -> Table<u64, Vec<u8>> {
    let most = value_bytes as u32;
    let table = Table::ordered("rows").with_value_bytes(most);
    if most > INLINE_BYTES_MAX {
        return table;
    }
    let half = most.next_multiple_of(if most > 48 { 64 } else { 16 });
    table.with_row_bytes((64 + 2 * half).next_multiple_of(64))
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Transact {
    reads: Vec<u64>,
    updates: Vec<u64>,
    inserts: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Load {
    from: u64,
    to: u64,
}

fn absent() -> Abort {
    Abort::new("a row is missing, or is not what was written")
}

impl Procedure for Transact {
    const NAME: &'static str = "transact";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        let Some(rows) = set.context::<Rows>() else { return };
        self.updates.iter().for_each(|&row| set.update(rows.table, row));
        self.inserts.iter().for_each(|&row| set.insert(rows.table, row));
        self.reads.iter().for_each(|&row| set.will_read(rows.table, row));
    }

    fn run(&self, tx: &mut Transaction) -> std::result::Result<(), Stop> {
        let rows = tx.context::<Rows>()?;
        for &row in &self.reads {
            let found = tx.get(rows.table, row)?.ok_or_else(absent)?;
            value::look_at(row, &found).ok_or_else(absent)?;
        }
        for &row in &self.updates {
            let found = tx.get(rows.table, row)?.ok_or_else(absent)?;
            tx.update(rows.table, row, &value::updated(row, &found).ok_or_else(absent)?)?;
        }
        self.inserts.iter().try_for_each(|&row| {
            tx.insert(rows.table, row, &value::value(row, 0, rows.value_bytes))
        })
    }
}

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        let Some(rows) = set.context::<Rows>() else { return };
        (self.from..self.to).for_each(|row| set.insert(rows.table, row));
    }

    fn run(&self, tx: &mut Transaction) -> std::result::Result<(), Stop> {
        let rows = tx.context::<Rows>()?;
        (self.from..self.to)
            .try_for_each(|row| tx.insert(rows.table, row, &value::value(row, 0, rows.value_bytes)))
    }
}

pub(crate) struct Caracal {
    database: nvcaracal::Database,
    table: Table<u64, Vec<u8>>,
    shape: Shape,
}

const NAME: &str = "nvcaracal";

fn failed(error: nvcaracal::Error) -> Error {
    match error.is_limit() || error.is_full() {
        true => Error::refused(NAME, error),
        false => Error::of(NAME, error),
    }
}

/// Files grow by little, and checkpoints come often, or only with the close.
fn short(options: nvcaracal::Options, choice: u64) -> nvcaracal::Options {
    const EPOCHS: [Option<u64>; 4] = [Some(1), Some(3), Some(20), None];
    const SEGMENT_BYTES: u64 = 16 << 10;
    const LOG_SEGMENT_BYTES: u64 = 4 << 10;
    let tuning = Tuning {
        segment_bytes: SEGMENT_BYTES,
        log_segment_bytes: LOG_SEGMENT_BYTES,
        ..Tuning::default()
    };
    let options = options.tuning(tuning);
    match EPOCHS[choice as usize % EPOCHS.len()] {
        Some(epochs) => options.checkpoint_every(epochs),
        None => options,
    }
}

impl Caracal {
    pub(crate) fn open(path: &Path, shape: Shape) -> Result<Self> {
        let table = table(shape.value_bytes);
        let mut options = nvcaracal::Database::options()
            .table(table)
            .procedure::<Transact>()
            .procedure::<Load>()
            .context(Rows { table, value_bytes: shape.value_bytes });
        if shape.is_limited {
            options = options.memory_limit(shape.cache_bytes);
        }
        match shape.pace {
            Pace::Usual => {}
            Pace::Short(choice) => options = short(options, choice),
            Pace::Unsynced => return Err(Error::refused(NAME, "its answers are always durable")),
        }
        let database = options.open(path).map_err(failed)?;
        Ok(Self { database, table, shape })
    }
}

impl Peer for Caracal {
    fn load(&self) -> Result<()> {
        for part in parts(self.shape) {
            self.database.call(Load { from: part.start, to: part.end }).map_err(failed)?;
        }
        Ok(())
    }

    fn caller(&self) -> Result<Box<dyn Caller + '_>> {
        Ok(Box::new(self))
    }

    fn rows(&self, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for row in self.database.snapshot().map_err(failed)?.range(self.table, ..) {
            let (row, value) = row.map_err(failed)?;
            each(row, &value)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.database.check_indexes().map_err(failed)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.close().map_err(failed)
    }
}

impl Caller for &Caracal {
    fn transact(&mut self, operations: &[Operation]) -> Result<()> {
        if !only_reads(operations) {
            let of = |does| {
                let some = operations.iter().filter(move |of| of.does == does);
                some.map(|of| of.row).collect()
            };
            let call = Transact {
                reads: of(Does::Read),
                updates: of(Does::Update),
                inserts: of(Does::Insert),
            };
            return self.database.call(call).map_err(failed);
        }
        if let [Operation { row, .. }] = *operations {
            let found = self.database.get(self.table, row).map_err(failed)?;
            return found.and_then(|found| value::look_at(row, &found)).ok_or(missing(NAME, row));
        }
        let snapshot = self.database.snapshot().map_err(failed)?;
        for &Operation { row, .. } in operations {
            let found = snapshot.get(self.table, row).map_err(failed)?;
            let found = found.and_then(|found| value::look_at(row, &found));
            found.ok_or_else(|| missing(NAME, row))?;
        }
        Ok(())
    }
}
