//! The engine's side of programs: procedures whose arguments are a program.

use std::ops::ControlFlow;
use std::panic::resume_unwind;

use engine::{
    Abort, Piece, PieceFunctions, PieceResult, ProcedureDefinition, ProcedureTable, Sequences,
    Stop, Transaction, WriteSet,
};
use storage::TableId;

use super::pieces::{self, RunningPiece};
use super::program::{
    self, Bounds, Declaring, Ending, Entries, Op, Program, Rows, Running, SEQUENCES, Step,
    change_part, part_of,
};

/// Number of the procedure for programs that allocate from no sequence.
pub const PLAIN: u16 = 0;
/// Number of the procedure for programs that allocate.
pub const ALLOCATING: u16 = 1;

/// Which procedure runs a program.
pub fn number_of(arguments: &[u8]) -> u16 {
    if Program::decode(arguments).sequences.is_empty() { PLAIN } else { ALLOCATING }
}

/// The procedures that run programs.
pub fn procedures() -> ProcedureTable {
    let mut table = ProcedureTable::new();
    for (name, sequences) in [("plain", None), ("allocating", Some(allocate as _))] {
        let pieces = PieceFunctions {
            piece,
            finish: Some(|_, results, output| pieces::finish(results, output)),
        };
        table.add(ProcedureDefinition {
            name,
            sequences,
            write_set: declare,
            body: run,
            pieces: Some(pieces),
        });
    }
    table
}

fn allocate(arguments: &[u8], sequences: &mut Sequences<'_>) -> Result<(), Abort> {
    declared(program::declare(&Program::decode(arguments).sequences, &mut Allocating(sequences)))
}

fn declare(arguments: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
    declared(program::declare(&Program::decode(arguments).declares, &mut Declaration(set)))
}

fn run(arguments: &[u8], tx: &mut Transaction<'_>) -> Result<(), Stop> {
    match program::run(&Program::decode(arguments).body, &mut Body(tx)) {
        Ok(()) => Ok(()),
        Err(Ending::Stop(stop)) => Err(stop),
        Err(Ending::Panic) => panic_quietly(),
    }
}

fn piece(arguments: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
    let number = piece.number();
    pieces::run_piece(&Program::decode(arguments), number, &mut Part(piece))
}

fn declared(ending: Result<(), Ending>) -> Result<(), Abort> {
    match ending {
        Ok(()) => Ok(()),
        Err(Ending::Stop(Stop::Abort(abort))) => Err(*abort),
        Err(Ending::Stop(Stop::Code(code))) => Err(Abort::code(code)),
        Err(Ending::Stop(other)) => unreachable!("a declaration ends with {other}"),
        Err(Ending::Panic) => panic_quietly(),
    }
}

/// A panic like any other, only that it prints nothing.
fn panic_quietly() -> ! {
    resume_unwind(Box::new("planned"))
}

struct Allocating<'a, 'b>(&'a mut Sequences<'b>);

impl Declaring for Allocating<'_, '_> {
    fn allocate(&mut self, sequence: u64, peek: bool) {
        match peek {
            false => self.0.allocate(TableId(SEQUENCES.into()), sequence),
            true => self.0.peek(TableId(SEQUENCES.into()), sequence),
        }
    }

    fn sequence_number(&self, _: usize) -> Result<u64, Ending> {
        unreachable!("numbers are known later")
    }

    fn lookup(&mut self, table: u8, key: &[u8]) -> Option<Vec<u8>> {
        self.0.lookup(TableId(table.into()), key).map(<[u8]>::to_vec)
    }

    fn lookup_scan(&mut self, _: u8, _: &[u8], _: &[u8], _: usize) -> Rows {
        unreachable!("an allocating step cannot scan")
    }

    fn scan_index(&mut self, _: u16, _: Bounds<'_>, _: usize) -> Entries {
        unreachable!("an allocating step cannot scan")
    }

    fn declare(&mut self, _: u8, _: &[u8], op: Op) {
        unreachable!("an allocating step cannot {op:?}")
    }

    fn update_piece(&mut self, _: u8, _: &[u8], _: u32) {
        unreachable!("an allocating step cannot declare")
    }

    fn in_piece(&mut self, _: &Step) {
        unreachable!("an allocating step cannot declare")
    }

    fn update_range(&mut self, _: u8, _: &[u8], _: &[u8]) {
        unreachable!("an allocating step cannot declare")
    }

    fn sequence_start(&mut self, _: u64) -> u64 {
        unreachable!("an allocating step cannot ask")
    }
}

struct Declaration<'a, 'b>(&'a mut WriteSet<'b>);

impl Declaring for Declaration<'_, '_> {
    fn allocate(&mut self, _: u64, _: bool) {
        unreachable!("allocating comes first")
    }

    fn sequence_number(&self, i: usize) -> Result<u64, Ending> {
        Ok(self.0.sequence_number(i))
    }

    fn lookup(&mut self, table: u8, key: &[u8]) -> Option<Vec<u8>> {
        self.0.lookup(TableId(table.into()), key).map(<[u8]>::to_vec)
    }

    fn lookup_scan(&mut self, table: u8, low: &[u8], high: &[u8], limit: usize) -> Rows {
        let mut rows = Rows::new();
        self.0.lookup_scan(TableId(table.into()), low, high, false, &mut collect(&mut rows, limit));
        rows
    }

    fn scan_index(&mut self, index: u16, bounds: Bounds<'_>, limit: usize) -> Entries {
        let mut found = Entries::new();
        self.0.scan_index(index, bounds.low, bounds.high, false, &mut collect(&mut found, limit));
        found
    }

    fn declare(&mut self, table: u8, key: &[u8], op: Op) {
        match op {
            Op::DeclareInsert => self.0.insert(TableId(table.into()), key),
            Op::DeclareDelete => self.0.delete(TableId(table.into()), key),
            Op::WillRead => self.0.will_read(TableId(table.into()), key),
            _ => self.0.update(TableId(table.into()), key),
        }
    }

    fn update_piece(&mut self, table: u8, key: &[u8], weight: u32) {
        self.0.update_piece(TableId(table.into()), key, weight);
    }

    fn in_piece(&mut self, step: &Step) {
        let (table, key) = (TableId(step.table.into()), program::key(step.table, step.a));
        match step.op {
            Op::InsertInPiece => self.0.insert_in_piece(table, &key),
            Op::UpdateInPiece => self.0.update_in_piece(table, &key),
            _ => self.0.update_range_in_piece(table, &key, &program::key(step.table, step.b)),
        }
    }

    fn update_range(&mut self, table: u8, low: &[u8], high: &[u8]) {
        self.0.update_range(TableId(table.into()), low, high);
    }

    fn sequence_start(&mut self, sequence: u64) -> u64 {
        self.0.sequence_start(TableId(SEQUENCES.into()), sequence)
    }
}

fn collect(rows: &mut Rows, limit: usize) -> impl FnMut(&[u8], &[u8]) -> ControlFlow<()> {
    move |key, value| {
        rows.push((key.to_vec(), value.to_vec()));
        if rows.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

struct Body<'a, 'b>(&'a mut Transaction<'b>);

impl Running for Body<'_, '_> {
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.0.get(TableId(table.into()), key)?.map(<[u8]>::to_vec))
    }

    fn scan(
        &mut self,
        table: u8,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Rows, Stop> {
        let mut rows = Rows::new();
        self.0.scan(
            TableId(table.into()),
            bounds.low,
            bounds.high,
            down,
            &mut collect(&mut rows, limit),
        )?;
        Ok(rows)
    }

    fn scan_index(
        &mut self,
        index: u16,
        bounds: Bounds<'_>,
        down: bool,
        limit: usize,
    ) -> Result<Entries, Stop> {
        let mut found = Entries::new();
        self.0.scan_index(index, bounds.low, bounds.high, down, &mut collect(&mut found, limit))?;
        Ok(found)
    }

    fn insert(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.0.insert(TableId(table.into()), key, value)
    }

    fn update(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        self.0.update(TableId(table.into()), key, value)
    }

    fn modify(&mut self, table: u8, key: &[u8], change: &dyn Fn(&mut [u8])) -> Result<bool, Stop> {
        self.0.modify(TableId(table.into()), key, change)
    }

    fn modify_part(&mut self, table: u8, key: &[u8], tag: u8) -> Result<bool, Stop> {
        let len = self.0.get(TableId(table.into()), key)?.map_or(0, <[u8]>::len);
        let part = part_of(len, tag);
        self.0.modify_part(TableId(table.into()), key, part, |value, part| {
            change_part(value, part, tag)
        })
    }

    fn delete(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop> {
        self.0.delete(TableId(table.into()), key)
    }

    fn sequence_number(&self, i: usize) -> Result<u64, Ending> {
        Ok(self.0.sequence_number(i))
    }

    fn sequence_start(&mut self, sequence: u64) -> Result<u64, Stop> {
        self.0.sequence_start(TableId(SEQUENCES.into()), sequence)
    }

    fn commit_point(&mut self) -> Result<(), Stop> {
        self.0.commit_point()
    }

    fn piece_result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        self.0.piece_result(number)
    }

    fn info(&self) -> [u64; 3] {
        [self.0.serial_id(), self.0.timestamp_ns(), self.0.seed()]
    }

    fn put_out(&mut self, bytes: &[u8]) {
        self.0.output().extend_from_slice(bytes);
    }
}

struct Part<'a, 'b>(&'a mut Piece<'b>);

impl RunningPiece for Part<'_, '_> {
    fn get(&mut self, table: u8, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.0.get(TableId(table.into()), key)?.map(<[u8]>::to_vec))
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, Stop> {
        Ok(self.0.value()?.map(<[u8]>::to_vec))
    }

    fn modify(&mut self, change: &dyn Fn(&mut [u8])) -> Result<bool, Stop> {
        self.0.modify(change)
    }

    fn modify_part(&mut self, tag: u8) -> Result<bool, Stop> {
        let len = self.0.value()?.map_or(0, <[u8]>::len);
        self.0.modify_part(part_of(len, tag), |value, part| change_part(value, part, tag))
    }

    fn update(&mut self, value: &[u8]) -> Result<bool, Stop> {
        self.0.update(value)
    }

    fn insert_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.0.insert_row(TableId(table.into()), key, value)
    }

    fn update_row(&mut self, table: u8, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        self.0.update_row(TableId(table.into()), key, value)
    }

    fn modify_row(&mut self, table: u8, key: &[u8], tag: u8) -> Result<bool, Stop> {
        let table = TableId(table.into());
        let part = part_of(self.0.get(table, key)?.map_or(0, <[u8]>::len), tag);
        self.0.modify_row(table, key, part, |value, part| change_part(value, part, tag))
    }

    fn delete_row(&mut self, table: u8, key: &[u8]) -> Result<bool, Stop> {
        self.0.delete_row(TableId(table.into()), key)
    }

    fn result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        self.0.result(number)
    }
}
