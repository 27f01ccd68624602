//! NVCaracal by its library, with its defaults, on a `file` device.

use std::path::Path;

use nvcaracal::{Abort, Data, Database, Procedure, Stop, Table, Transaction, WriteSet, plain};

use crate::peer::{Error, Peer, Result, VALUE_BYTES};

const ROWS: Table<u64, Value> = Table::ordered("rows");
/// Rows that one call of the loading makes.
const ROWS_AT_ONCE: u64 = 1000;

plain! {
    struct Value { counter: u64, rest: [u8; VALUE_BYTES - 8], pad: [u8; 4] }
    struct Count { row: u64 }
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Load {
    from: u64,
    to: u64,
}

impl Procedure for Count {
    const NAME: &'static str = "count";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ROWS, self.row);
    }

    fn run(&self, tx: &mut Transaction) -> std::result::Result<(), Stop> {
        let mut value = tx.get(ROWS, self.row)?.ok_or(Abort::new("there is no such row"))?;
        value.counter += 1;
        tx.update(ROWS, self.row, &value)?;
        Ok(())
    }
}

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        (self.from..self.to).for_each(|row| set.insert(ROWS, row));
    }

    fn run(&self, tx: &mut Transaction) -> std::result::Result<(), Stop> {
        let value = Value { counter: 0, rest: [0; VALUE_BYTES - 8], pad: [0; 4] };
        (self.from..self.to).try_for_each(|row| tx.insert(ROWS, row, &value))
    }
}

pub(crate) struct Caracal(Database);

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of("nvcaracal", error)
}

impl Caracal {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let options = Database::options().table(ROWS).procedure::<Count>().procedure::<Load>();
        Ok(Self(options.open(path).map_err(failed)?))
    }
}

impl Peer for Caracal {
    fn name(&self) -> String {
        format!("nvcaracal {}", env!("CARGO_PKG_VERSION"))
    }

    fn load(&self, rows: u64) -> Result<()> {
        for from in (0..rows).step_by(ROWS_AT_ONCE as usize) {
            let load = Load { from, to: rows.min(from + ROWS_AT_ONCE) };
            self.0.call(load).map_err(failed)?;
        }
        Ok(())
    }

    fn update(&self, row: u64) -> Result<()> {
        self.0.call(Count { row }).map_err(failed)
    }

    fn sum(&self) -> Result<u64> {
        let rows = self.0.snapshot().map_err(failed)?.range(ROWS, ..);
        rows.map(|row| Ok(row.map_err(failed)?.1.counter)).sum()
    }
}
