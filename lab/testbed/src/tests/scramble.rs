//! A workload that does everything that the trait allows, on few rows: inserts, updates, deletes
//! and inserts again, scans in both directions that stop early, reads of rows that are not there,
//! long keys, sequences, and transactions that give up or only read. The benchmarks leave much of
//! that out.

use std::ops::ControlFlow;

use workloads::random::Random;
use workloads::{
    Abort, Allocate, Answer, Declare, IndexKind, Observer, Procedure, ProcedureId, Register,
    StreamEpoch, TableId, TableSpec, Tx, View, Workload,
};

const TABLES: u16 = 4;
const NUMBERS: TableId = TableId(TABLES);
const KEYS: u64 = 24;
const VALUE_BYTES_MAX: u64 = 20;
const GAVE_UP: Abort = Abort(77);

/// The workload.
pub(super) struct Scramble {
    pub(super) seed: u64,
}

/// What a transaction does, one after the other; the same for each look at the arguments.
#[derive(Clone, Copy)]
enum Step {
    Insert,
    Update,
    Modify,
    Delete,
    Get,
    Scan,
}

struct Script {
    random: Random,
    only_reads: bool,
}

/// One step with its operands.
struct Operands {
    step: Step,
    table: TableId,
    key: Vec<u8>,
    high: Vec<u8>,
    value: Vec<u8>,
    descending: bool,
    rows_max: u64,
}

/// The key with a number: 8 bytes in the first two tables, 20 or 12 in the others.
fn key(table: u16, number: u64) -> Vec<u8> {
    let mut key = vec![b'k'; [0, 0, 12, 4][usize::from(table)]];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

impl Script {
    fn new(args: &[u8], only_reads: bool) -> Result<(Self, u64), Abort> {
        let seed = u64::from_le_bytes(args.try_into().map_err(|_| Abort(1))?);
        let mut random = Random::new(seed, 1, 2);
        let steps = random.between(1, 6);
        Ok((Self { random, only_reads }, steps))
    }

    fn next(&mut self) -> Operands {
        let random = &mut self.random;
        let step = match random.below(if self.only_reads { 2 } else { 8 }) {
            0 => Step::Get,
            1 => Step::Scan,
            2 | 3 => Step::Insert,
            4 => Step::Update,
            5 => Step::Modify,
            _ => Step::Delete,
        };
        // The first and the third table are ordered.
        let table =
            random.below(u64::from(TABLES)) as u16 & if let Step::Scan = step { 2 } else { 3 };
        let number = random.below(KEYS);
        let mut value = vec![0; random.between(1, VALUE_BYTES_MAX) as usize];
        random.fill(&mut value);
        Operands {
            step,
            table: TableId(table),
            key: key(table, number),
            high: key(table, number + random.below(KEYS)),
            value,
            descending: random.percent(50),
            rows_max: random.between(1, KEYS),
        }
    }
}

/// Runs the steps, and puts out all that they see.
fn run<T: Tx>(args: &[u8], tx: &mut T, only_reads: bool) -> Result<(), T::Error> {
    let (mut script, steps) = Script::new(args, only_reads)?;
    for _ in 0..steps {
        let Operands { step, table, key, high, value, descending, rows_max } = script.next();
        let mut seen = Vec::new();
        match step {
            Step::Insert => tx.insert(table, &key, &value)?,
            Step::Update => seen.push(u8::from(tx.update(table, &key, &value)?)),
            Step::Delete => seen.push(u8::from(tx.delete(table, &key)?)),
            Step::Get => seen.extend(tx.get(table, &key)?.unwrap_or(b"none")),
            Step::Modify => {
                let found = tx.modify_part(table, &key, 0..1, |row, part| {
                    seen.extend_from_slice(row);
                    part[0] = part[0].wrapping_add(1);
                })?;
                seen.push(u8::from(found));
            }
            Step::Scan => {
                let mut rows = 0;
                tx.scan(table, &key, &high, descending, &mut |key, value| {
                    seen.extend_from_slice(key);
                    seen.extend_from_slice(value);
                    rows += 1;
                    if rows < rows_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
        }
        tx.output().extend_from_slice(&seen);
        tx.output().push(b'|');
    }
    Ok(())
}

fn declare<D: Declare>(args: &[u8], declare: &mut D, only_reads: bool) -> Result<(), D::Error> {
    let (mut script, steps) = Script::new(args, only_reads)?;
    for _ in 0..steps {
        let Operands { step, table, key, high, .. } = script.next();
        match step {
            Step::Insert => declare.insert(table, &key),
            Step::Update | Step::Modify => declare.update(table, &key),
            Step::Delete => declare.delete(table, &key),
            Step::Get => declare.will_read(table, &key),
            Step::Scan => declare.will_scan(table, &key, &high),
        }
    }
    Ok(())
}

/// Reads and writes; one in eight gives up at its end.
enum Write {}

impl Procedure for Write {
    const NAME: &'static str = "write";

    fn write_set<D: Declare>(args: &[u8], to: &mut D) -> Result<(), D::Error> {
        declare(args, to, false)
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        run(args, tx, false)?;
        if args[0].is_multiple_of(8) { Err(GAVE_UP.into()) } else { Ok(()) }
    }
}

/// Only reads.
enum Read {}

impl Procedure for Read {
    const NAME: &'static str = "read";

    fn write_set<D: Declare>(args: &[u8], to: &mut D) -> Result<(), D::Error> {
        declare(args, to, true)
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        run(args, tx, true)
    }
}

/// Allocates from a sequence and looks at another one, then reads and writes.
enum Numbered {}

impl Procedure for Numbered {
    const NAME: &'static str = "numbered";
    const SEQUENCES: bool = true;

    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        let sequence = u64::from(args[1] % 3);
        allocate.allocate(NUMBERS, &sequence.to_be_bytes());
        allocate.peek(NUMBERS, &(2 - sequence).to_be_bytes());
        Ok(())
    }

    fn write_set<D: Declare>(args: &[u8], to: &mut D) -> Result<(), D::Error> {
        declare(args, to, false)
    }

    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error> {
        let start = tx.sequence_start(NUMBERS, &u64::from(args[2] % 3).to_be_bytes());
        let numbers = [tx.sequence_number(0), tx.sequence_number(1), start];
        numbers.iter().for_each(|number| tx.output().extend_from_slice(&number.to_le_bytes()));
        run(args, tx, false)
    }
}

/// Inserts every other row of all tables.
enum Load {}

impl Procedure for Load {
    const NAME: &'static str = "load";

    fn write_set<D: Declare>(_: &[u8], declare: &mut D) -> Result<(), D::Error> {
        for table in 0..TABLES {
            (0..KEYS).step_by(2).for_each(|i| declare.insert(TableId(table), &key(table, i)));
        }
        Ok(())
    }

    fn run<T: Tx>(_: &[u8], tx: &mut T) -> Result<(), T::Error> {
        for table in 0..TABLES {
            for number in (0..KEYS).step_by(2) {
                tx.insert(TableId(table), &key(table, number), &[1, 2, 3])?;
            }
        }
        Ok(())
    }
}

struct Nothing;

impl Observer for Nothing {
    fn observe(&mut self, _: ProcedureId, _: &[u8], _: Answer<'_>) {}

    fn check(&self, _: &dyn View) -> Vec<String> {
        Vec::new()
    }
}

impl Workload for Scramble {
    fn name(&self) -> &'static str {
        "scramble"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let table = |name, index, key_bytes_max| {
            let value_bytes_max = VALUE_BYTES_MAX as u32;
            TableSpec { name, index, key_bytes_max, value_bytes_max }
        };
        vec![
            table("ordered", IndexKind::Ordered, 8),
            table("hash", IndexKind::Hash, 8),
            table("long_ordered", IndexKind::Ordered, 20),
            table("long_hash", IndexKind::Hash, 12),
            table("numbers", IndexKind::Sequence, 8),
        ]
    }

    fn register<R: Register>(&self, to: &mut R) {
        to.procedure::<Write>();
        to.procedure::<Read>();
        to.procedure::<Numbered>();
        to.procedure::<Load>();
    }

    fn load_count(&self) -> u64 {
        1
    }

    fn load(&self, _: u64, _: &mut Vec<u8>) -> ProcedureId {
        3
    }

    fn generate(&self, epoch: StreamEpoch, position: u64, args: &mut Vec<u8>) -> ProcedureId {
        let mut random = Random::new(self.seed, epoch.0, position);
        args.extend_from_slice(&random.next_u64().to_le_bytes());
        [0, 0, 1, 2][random.below(4) as usize]
    }

    /// A scan may go over all of a table, which so is one home.
    fn home(&self, _: TableId, _: &[u8]) -> u64 {
        0
    }

    fn observer(&self, _: &dyn View) -> Box<dyn Observer> {
        Box::new(Nothing)
    }
}
