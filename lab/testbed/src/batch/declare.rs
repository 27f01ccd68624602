//! What the calls of a batch declare, before anything of it runs: numbers from sequences, and the
//! rows that they may read and write.
//!
//! All engines but the serial one and those that need no write sets begin a batch with it:
//!
//! 1. Each worker asks its share of the calls which numbers they want.
//! 2. The numbers are given out in the order of the batch.
//! 3. Each worker asks its calls what they may read and write. What they look up is the state
//!    before the batch.
//! 4. Rows of new keys are inserted as rows that do not exist. From here on the indexes do not
//!    change.
//! 5. Keys become rows, ranges of writes become the rows in them, and ranges of reads become the
//!    granules of their homes (`footprint.rs`).

use std::ops::Range;

use smallvec::SmallVec;
use workloads::{Allocate, Declare, Procedure, ProcedureId, Register, TableId, Visit};
use zerocopy::IntoBytes;

use super::sequences::{Name, Numbers, key_of};
use super::tables::{KeyRange, Tables};
use crate::error::Error;
use crate::index::Found;
use crate::rival::Stop;
use crate::run::calls::Calls;

/// What a call declares of a key or a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Insert,
    /// A write that is left to a piece.
    Piece,
    ReadRange,
    WriteRange,
}

/// One declared key or range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) table: TableId,
    pub(super) kind: Kind,
    start: u32,
    key_end: u32,
    end: u32,
}

/// What one call has declared.
#[derive(Debug, Default, Clone)]
pub(super) struct Call {
    wanted: SmallVec<[(Name, bool); 2]>,
    pub(super) numbers: Numbers,
    /// It gave up while it declared.
    pub(super) aborted: Option<u32>,
    items_end: usize,
}

/// What the calls of one worker's share declare, end to end.
#[derive(Debug, Default)]
pub(super) struct Declared {
    bytes: Vec<u8>,
    items: Vec<Item>,
    pub(super) calls: Vec<Call>,
}

impl Declared {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.calls.clear();
    }

    /// What a call of the share declares.
    pub(super) fn items(&self, call: usize) -> &[Item] {
        let start = call.checked_sub(1).map_or(0, |before| self.calls[before].items_end);
        &self.items[start..self.calls[call].items_end]
    }

    /// What all calls of the share declare.
    pub(super) fn all_items(&self) -> &[Item] {
        &self.items
    }

    /// The key, or the low end.
    pub(super) fn key(&self, item: &Item) -> &[u8] {
        &self.bytes[item.start as usize..item.key_end as usize]
    }

    /// The high end of a range.
    pub(super) fn high(&self, item: &Item) -> &[u8] {
        &self.bytes[item.key_end as usize..item.end as usize]
    }

    fn add(&mut self, kind: Kind, table: TableId, key: &[u8], high: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(high);
        self.items.push(Item { table, kind, start, key_end, end: self.bytes.len() as u32 });
    }

    /// Counts the declared inserts of each table.
    pub(super) fn count_inserts(&self, counts: &mut [u64]) {
        let inserts = self.items.iter().filter(|item| item.kind == Kind::Insert);
        inserts.for_each(|item| counts[usize::from(item.table.0)] += 1);
    }

    /// All inserts.
    pub(super) fn inserts(&self) -> impl Iterator<Item = (TableId, &[u8])> {
        let inserts = self.items.iter().filter(|item| item.kind == Kind::Insert);
        inserts.map(|item| (item.table, self.key(item)))
    }
}

type Ended = Result<(), Stop>;

struct Entry {
    sequences: Option<fn(&[u8], &mut Wanting<'_>) -> Ended>,
    write_set: fn(&[u8], &mut Declaring<'_>) -> Ended,
    has_pieces: bool,
}

/// The declarations of a workload's procedures.
#[derive(Default)]
pub(super) struct Declarations(Vec<Entry>);

impl Register for Declarations {
    fn procedure<P: Procedure>(&mut self) {
        self.0.push(Entry {
            sequences: P::SEQUENCES.then_some(|args, wanting| P::sequences(args, wanting)),
            write_set: |args, declaring| P::write_set(args, declaring),
            has_pieces: P::PIECES,
        });
    }
}

/// A call in the words of a workload.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) procedure: ProcedureId,
    pub(super) args: &'a [u8],
}

impl<'a> Asked<'a> {
    /// A call of a batch.
    pub(super) fn of(calls: &'a Calls, call: usize) -> Self {
        let (procedure, args) = calls.get(call);
        Self { procedure, args }
    }
}

impl Declarations {
    /// Whether any procedure allocates.
    pub(super) fn have_sequences(&self) -> bool {
        self.0.iter().any(|entry| entry.sequences.is_some())
    }

    /// What a call wants of sequences; a call that gives up here wants nothing.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn want(&self, tables: &Tables, asked: Asked<'_>) -> Result<Call, Error> {
        let mut call = Call::default();
        if let Some(sequences) = self.0[usize::from(asked.procedure)].sequences {
            let mut wanting = Wanting { tables, row: Vec::new(), wanted: SmallVec::new() };
            call.aborted = gave_up(sequences(asked.args, &mut wanting))?;
            if call.aborted.is_none() {
                call.wanted = wanting.wanted;
            }
        }
        Ok(call)
    }

    /// Whether a procedure leaves updates to pieces.
    pub(super) fn has_pieces(&self, procedure: ProcedureId) -> bool {
        self.0[usize::from(procedure)].has_pieces
    }

    /// The next call of a share declares nothing.
    pub(super) fn skip(&self, declared: &mut Declared, number: usize) {
        declared.calls[number].items_end = declared.items.len();
    }

    /// Lets the next call of a share declare what it may read and write.
    ///
    /// # Errors
    /// The engine's failure.
    pub(super) fn declare(
        &self,
        tables: &Tables,
        asked: Asked<'_>,
        declared: &mut Declared,
        number: usize,
    ) -> Result<(), Error> {
        if declared.calls[number].aborted.is_none() {
            let numbers = std::mem::take(&mut declared.calls[number].numbers);
            let mut declaring = Declaring {
                tables,
                numbers: &numbers,
                to: declared,
                row: Vec::new(),
                found: Found::default(),
            };
            let ended =
                (self.0[usize::from(asked.procedure)].write_set)(asked.args, &mut declaring);
            declared.calls[number].aborted = gave_up(ended)?;
            declared.calls[number].numbers = numbers;
        }
        declared.calls[number].items_end = declared.items.len();
        Ok(())
    }
}

/// Whether a declaration gave up, and with which code.
fn gave_up(ended: Ended) -> Result<Option<u32>, Error> {
    match ended {
        Ok(()) => Ok(None),
        Err(Stop::Abort(code)) => Ok(Some(code)),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Conflict) => Err(Error::Broken("a declaration met a conflict".into())),
    }
}

impl Tables {
    /// Gives out the numbers that the calls of a share want.
    pub(super) fn allocate(&mut self, declared: &mut Declared) {
        for call in &mut declared.calls {
            self.sequences.allocate(&call.wanted, &mut call.numbers);
        }
    }

    /// Gives a call alone what it wants.
    pub(super) fn allocate_one(&mut self, call: &mut Call) {
        self.sequences.allocate(&call.wanted, &mut call.numbers);
    }
}

/// Reads a row as it is before the batch.
fn look_up<'a>(
    tables: &Tables,
    table: TableId,
    key: &[u8],
    row: &'a mut Vec<u64>,
) -> Option<&'a [u8]> {
    row.clear();
    let id = tables.row(tables.find(table, key)?).current(table);
    let bytes = tables.row(id).copy_value(row)?;
    Some(&row.as_bytes()[..bytes])
}

/// A call that says what it allocates.
struct Wanting<'a> {
    tables: &'a Tables,
    row: Vec<u64>,
    wanted: SmallVec<[(Name, bool); 2]>,
}

impl Allocate for Wanting<'_> {
    type Error = Stop;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        self.wanted.push(((table, key_of(key)), false));
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        self.wanted.push(((table, key_of(key)), true));
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        Ok(look_up(self.tables, table, key, &mut self.row))
    }
}

/// A call that declares.
struct Declaring<'a> {
    tables: &'a Tables,
    numbers: &'a [u64],
    to: &'a mut Declared,
    row: Vec<u64>,
    found: Found,
}

impl Declare for Declaring<'_> {
    type Error = Stop;

    fn insert(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Insert, table, key, &[]);
    }

    fn update(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Write, table, key, &[]);
    }

    fn delete(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Write, table, key, &[]);
    }

    fn update_piece(&mut self, table: TableId, key: &[u8], _: u32) {
        self.to.add(Kind::Piece, table, key, &[]);
    }

    fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Insert, table, key, &[]);
    }

    fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Write, table, key, &[]);
    }

    fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.to.add(Kind::WriteRange, table, low, high);
    }

    fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.to.add(Kind::WriteRange, table, low, high);
    }

    fn will_read(&mut self, table: TableId, key: &[u8]) {
        self.to.add(Kind::Read, table, key, &[]);
    }

    fn will_scan(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.to.add(Kind::ReadRange, table, low, high);
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.numbers[i]
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.tables.sequences.start(table, key)
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.to.add(Kind::Read, table, key, &[]);
        Ok(look_up(self.tables, table, key, &mut self.row))
    }

    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        self.to.add(Kind::ReadRange, table, low, high);
        let (tables, value) = (self.tables, &mut self.row);
        let range = KeyRange { low, high, descending: false };
        tables.range(table, range, &mut self.found, |key, row| {
            value.clear();
            let row = tables.row(tables.row(row).current(table));
            let Some(bytes) = row.copy_value(value) else { return Ok(true) };
            Ok(each(key, &value.as_bytes()[..bytes]).is_continue())
        })
    }
}

/// The calls of a batch that a worker declares: shares of the same size, in the order of workers.
pub(super) fn share(calls: usize, workers: usize, worker: usize) -> Range<usize> {
    let size = calls.div_ceil(workers).max(1);
    (worker * size).min(calls)..((worker + 1) * size).min(calls)
}
