//! The paper's YCSB as calls, so that other engines can run it: a row is one value with all ten
//! columns.

use workloads::{
    Abort, Answer, Declare, IndexKind, Observer, Procedure, ProcedureId, Register, StreamEpoch,
    TableId, TableSpec, Tx, View, Workload, code,
};

use super::{COLUMN_BYTES, COLUMNS, Work, Ycsb};

const USERTABLE: TableId = TableId(0);
const COLUMN: usize = COLUMN_BYTES as usize;
const ROWS_PER_LOAD: u64 = 50;

const READ: ProcedureId = 0;
const UPDATE: ProcedureId = 1;
const LOAD: ProcedureId = 2;

const BAD_ARGUMENTS: Abort = Abort(code::BAD_ARGUMENTS);
const MISSING_ROW: Abort = Abort(code::MISSING_ROW);

/// The transactions of a partition in epochs of so many.
#[derive(Debug, Clone, Copy)]
pub struct YcsbCalls {
    /// The work.
    pub ycsb: Ycsb,
    /// Transactions of an epoch.
    pub epoch_size: u64,
}

impl Workload for YcsbCalls {
    fn name(&self) -> &'static str {
        "ycsb of a partition"
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![TableSpec {
            name: "usertable",
            index: IndexKind::Hash,
            key_bytes_max: 8,
            value_bytes_max: COLUMN_BYTES * COLUMNS as u32,
        }]
    }

    fn register<R: Register>(&self, to: &mut R) {
        to.procedure::<Read>();
        to.procedure::<Update>();
        to.procedure::<Load>();
    }

    fn load_count(&self) -> u64 {
        self.ycsb.tuples.div_ceil(ROWS_PER_LOAD)
    }

    fn load(&self, i: u64, args: &mut Vec<u8>) -> ProcedureId {
        let first = i * ROWS_PER_LOAD;
        for tuple in first..self.ycsb.tuples.min(first + ROWS_PER_LOAD) {
            args.extend_from_slice(&tuple.to_be_bytes());
            args.extend(self.ycsb.row(tuple).into_iter().flatten());
        }
        LOAD
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        let position = epoch.0 * self.epoch_size + position;
        match self.ycsb.transaction(position) {
            Work::Read(tuple) => {
                args.extend_from_slice(&tuple.to_be_bytes());
                READ
            }
            Work::Update { tuple, column } => {
                args.extend_from_slice(&tuple.to_be_bytes());
                args.push(column as u8);
                args.extend(self.ycsb.value(tuple, column, position + 1));
                UPDATE
            }
        }
    }

    fn observer(&self, _: &dyn View) -> Box<dyn Observer> {
        Box::new(Nothing)
    }
}

/// The oracle compares answers and state; there is no other check.
struct Nothing;

impl Observer for Nothing {
    fn observe(&mut self, _: ProcedureId, _: &[u8], _: Answer<'_>) {}

    fn check(&self, _: &dyn View) -> Vec<String> {
        Vec::new()
    }
}

fn key_of(args: &[u8]) -> Result<&[u8], Abort> {
    args.get(..8).ok_or(BAD_ARGUMENTS)
}

/// Answers with a row.
enum Read {}

impl Procedure for Read {
    const NAME: &'static str = "read";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.will_read(USERTABLE, key_of(args)?);
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let row = tx.get(USERTABLE, key_of(args)?)?.ok_or(MISSING_ROW)?.to_vec();
        tx.output().extend_from_slice(&row);
        Ok(())
    }
}

/// Overwrites a column.
enum Update {}

impl Procedure for Update {
    const NAME: &'static str = "update";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        declare.update(USERTABLE, key_of(args)?);
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let (key, column) = (key_of(args)?, usize::from(*args.get(8).ok_or(BAD_ARGUMENTS)?));
        let value = &args[9..];
        if column >= COLUMNS || value.len() != COLUMN {
            return Err(BAD_ARGUMENTS.into());
        }
        let part = column * COLUMN..(column + 1) * COLUMN;
        let found = tx.modify_part(USERTABLE, key, part, |_, part| part.copy_from_slice(value))?;
        match found {
            true => Ok(()),
            false => Err(MISSING_ROW.into()),
        }
    }
}

/// Inserts rows.
enum Load {}

impl Procedure for Load {
    const NAME: &'static str = "load";

    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error> {
        for row in args.chunks_exact(8 + COLUMN * COLUMNS) {
            declare.insert(USERTABLE, &row[..8]);
        }
        Ok(())
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        for row in args.chunks_exact(8 + COLUMN * COLUMNS) {
            tx.insert(USERTABLE, &row[..8], &row[8..])?;
        }
        Ok(())
    }
}
