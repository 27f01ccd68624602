//! Runs workloads on the engine: newtypes that give the engine's types the workloads' traits.
//!
//! Everything is static dispatch: for each procedure and step the compiler makes one plain
//! function, which is what the engine registers. Knows nothing of what a procedure does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use engine::{
    Engine, Piece, PieceFunctions, PieceResult, ProcedureDefinition, ProcedureTable, Sequences,
    Stop, Transaction, WriteSet,
};
use workloads::{Abort, Answer, IndexKind, Procedure, Register, TableId, TableSpec, View, Visit};

/// The procedures of a workload, as the engine registers them.
#[derive(Debug, Default)]
pub struct Procedures {
    /// What the engine gets.
    pub table: ProcedureTable,
    /// Names, by number.
    pub names: Vec<&'static str>,
}

impl Register for Procedures {
    fn procedure<P: Procedure>(&mut self) {
        self.names.push(P::NAME);
        self.table.add(ProcedureDefinition {
            name: P::NAME,
            sequences: if P::SEQUENCES { Some(sequences::<P>) } else { None },
            write_set: write_set::<P>,
            body: body::<P>,
            pieces: P::PIECES
                .then_some(PieceFunctions { piece: piece::<P>, finish: Some(finish::<P>) }),
        });
    }
}

fn sequences<P: Procedure>(
    args: &[u8],
    sequences: &mut Sequences<'_>,
) -> Result<(), engine::Abort> {
    P::sequences(args, &mut Allocating(sequences)).map_err(|gave_up| gave_up.0)
}

fn write_set<P: Procedure>(args: &[u8], set: &mut WriteSet<'_>) -> Result<(), engine::Abort> {
    P::write_set(args, &mut Declaring(RefCell::new(set))).map_err(|gave_up| gave_up.0)
}

fn body<P: Procedure>(args: &[u8], transaction: &mut Transaction<'_>) -> Result<(), Stop> {
    P::run(args, &mut Running(transaction)).map_err(|stopped| stopped.0)
}

fn piece<P: Procedure>(args: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
    let number = piece.number();
    let result = P::piece(args, number, &mut Part(piece));
    result.map(PieceResult::from).map_err(|stopped| stopped.0)
}

fn finish<P: Procedure>(args: &[u8], results: &[PieceResult], output: &mut Vec<u8>) {
    P::finish(args, &mut results.iter().map(words), output);
}

/// A result in the workloads' words.
fn words(result: &PieceResult) -> workloads::PieceResult {
    let [first, second, ..] = *result.words();
    [first, second]
}

struct Part<'a, 'e>(&'a mut Piece<'e>);

impl workloads::PieceTx for Part<'_, '_> {
    type Error = Stopped;

    #[inline]
    fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Stopped> {
        Ok(self.0.modify(change)?)
    }

    #[inline]
    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stopped> {
        Ok(self.0.modify_part(part, change)?)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stopped> {
        Ok(self.0.get(storage::TableId(table.0), key)?)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Stopped> {
        Ok(self.0.scan(storage::TableId(table.0), low, high, false, each)?)
    }

    fn insert_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stopped> {
        Ok(self.0.insert_row(storage::TableId(table.0), key, value)?)
    }

    fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stopped> {
        Ok(self.0.modify_row(storage::TableId(table.0), key, part, change)?)
    }

    fn delete_row(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stopped> {
        Ok(self.0.delete_row(storage::TableId(table.0), key)?)
    }

    fn result(&mut self, number: usize) -> Result<workloads::PieceResult, Stopped> {
        Ok(words(&self.0.result(number)?))
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.0.sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let start = self.0.sequence_start(storage::TableId(table.0), sequence_number(key));
        start.expect("the declaration asked for the same sequence")
    }
}

/// A declaration that gave up.
struct GaveUp(engine::Abort);

impl From<Abort> for GaveUp {
    fn from(abort: Abort) -> Self {
        Self(engine::Abort::code(abort.0))
    }
}

/// A body that ended early.
struct Stopped(Stop);

impl From<Abort> for Stopped {
    fn from(abort: Abort) -> Self {
        Self(engine::Abort::code(abort.0).into())
    }
}

impl From<Stop> for Stopped {
    fn from(stop: Stop) -> Self {
        Self(stop)
    }
}

/// Keys of sequences are numbers in the engine and 8 big-endian bytes in workloads.
fn sequence_number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("the key of a sequence has 8 bytes"))
}

struct Allocating<'a, 'e>(&'a mut Sequences<'e>);

impl workloads::Allocate for Allocating<'_, '_> {
    type Error = GaveUp;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        self.0.allocate(storage::TableId(table.0), sequence_number(key));
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        self.0.peek(storage::TableId(table.0), sequence_number(key));
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, GaveUp> {
        Ok(self.0.lookup(storage::TableId(table.0), key))
    }
}

/// In a cell because a mistake of the call that asks where a sequence started is noted in the write
/// set.
struct Declaring<'a, 'e>(RefCell<&'a mut WriteSet<'e>>);

impl workloads::Declare for Declaring<'_, '_> {
    type Error = GaveUp;

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().insert(storage::TableId(table.0), key);
    }

    #[inline]
    fn update(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().update(storage::TableId(table.0), key);
    }

    #[inline]
    fn delete(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().delete(storage::TableId(table.0), key);
    }

    #[inline]
    fn update_piece(&mut self, table: TableId, key: &[u8], weight: u32) {
        self.0.get_mut().update_piece(storage::TableId(table.0), key, weight);
    }

    fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().insert_in_piece(storage::TableId(table.0), key);
    }

    fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().update_in_piece(storage::TableId(table.0), key);
    }

    fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.0.get_mut().update_range_in_piece(storage::TableId(table.0), low, high);
    }

    fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.0.get_mut().update_range(storage::TableId(table.0), low, high);
    }

    #[inline]
    fn will_read(&mut self, table: TableId, key: &[u8]) {
        self.0.get_mut().will_read(storage::TableId(table.0), key);
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.0.borrow().sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.0.borrow_mut().sequence_start(storage::TableId(table.0), sequence_number(key))
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, GaveUp> {
        Ok(self.0.get_mut().lookup(storage::TableId(table.0), key))
    }

    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), GaveUp> {
        self.0.get_mut().lookup_scan(storage::TableId(table.0), low, high, false, each);
        Ok(())
    }
}

struct Running<'a, 'e>(&'a mut Transaction<'e>);

impl workloads::Tx for Running<'_, '_> {
    type Error = Stopped;

    #[inline]
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stopped> {
        Ok(self.0.get(storage::TableId(table.0), key)?)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stopped> {
        Ok(self.0.scan(storage::TableId(table.0), low, high, descending, each)?)
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stopped> {
        Ok(self.0.insert(storage::TableId(table.0), key, value)?)
    }

    #[inline]
    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stopped> {
        Ok(self.0.update(storage::TableId(table.0), key, value)?)
    }

    #[inline]
    fn get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Stopped> {
        Ok(self.0.get_many(storage::TableId(table.0), keys, each)?)
    }

    #[inline]
    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Stopped> {
        Ok(self.0.modify(storage::TableId(table.0), key, change)?)
    }

    #[inline]
    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stopped> {
        Ok(self.0.modify_part(storage::TableId(table.0), key, part, change)?)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stopped> {
        Ok(self.0.delete(storage::TableId(table.0), key)?)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.0.sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let start = self.0.sequence_start(storage::TableId(table.0), sequence_number(key));
        start.expect("the declaration asked for the same sequence")
    }

    #[inline]
    fn commit_point(&mut self) -> Result<(), Stopped> {
        Ok(self.0.commit_point()?)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.0.output()
    }
}

/// An engine's answer in the workloads' words.
#[must_use]
pub fn answer<'a>(answer: &engine::Answer<'a>) -> Answer<'a> {
    match answer {
        engine::Answer::Committed(output) => Answer::Committed(output),
        engine::Answer::Aborted(abort) => Answer::Aborted(abort.code),
        engine::Answer::Deferred => Answer::Deferred,
        engine::Answer::Failed(_) => Answer::Failed,
    }
}

/// Why reading cannot fail: views are made for a workload's own tables, between two successful
/// epochs.
const ENGINE_READS: &str = "the workload's tables are in the engine, which was not stopped";

/// The state of an engine between two epochs.
pub struct EngineView<'a> {
    engine: &'a Engine,
    /// Sequences are few, and the engine reads them only all at once.
    sequences: HashMap<u16, HashMap<Vec<u8>, Vec<u8>>>,
}

impl<'a> EngineView<'a> {
    /// The state of an engine that was opened with these tables.
    #[must_use]
    pub fn new(engine: &'a Engine, tables: &[TableSpec]) -> Self {
        let mut view = Self { engine, sequences: HashMap::new() };
        for (id, _) in tables.iter().enumerate().filter(|(_, t)| t.index == IndexKind::Sequence) {
            let mut numbers = HashMap::new();
            view.for_each(TableId(id as u16), &mut |key, next| {
                numbers.insert(key.to_vec(), next.to_vec());
            });
            view.sequences.insert(id as u16, numbers);
        }
        view
    }
}

impl View for EngineView<'_> {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        match self.sequences.get(&table.0) {
            Some(numbers) => numbers.get(key).cloned(),
            None => self.engine.get(storage::TableId(table.0), key).expect(ENGINE_READS),
        }
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.engine.for_each(storage::TableId(table.0), each).expect(ENGINE_READS);
    }
}
