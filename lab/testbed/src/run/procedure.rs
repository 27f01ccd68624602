//! The workloads' procedures as transactions of a session.
//!
//! A rival does not know writes beforehand, so it takes what it needs from a procedure:
//! allocations, then the body, then pieces, all in one transaction. A sequence is a row with a
//! counter: an allocation reads and writes it, so two calls that allocate from one sequence
//! conflict, and the numbers of a transaction that is rolled back are allocated again. Where a
//! sequence started is what it was when the transaction began: each transaction is an epoch of its
//! own.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use smallvec::SmallVec;
use workloads::{
    Allocate, Declare, PieceResult, PieceTx, Procedure, ProcedureId, Register, TableId, Tx, Visit,
};

use crate::error::Error;
use crate::rival::{Accesses, Session, Stop};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It committed; its output is in the caller's buffer.
    Committed,
    /// It gave up on purpose, with this code.
    Aborted(u32),
}

/// A call that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// What became of it.
    pub outcome: Outcome,
    /// Its place in the serial order.
    pub serial: u64,
    /// The place whose state it read, if that is another one.
    pub snapshot: Option<u64>,
    /// How often it was rolled back before, because of others.
    pub retries: u64,
}

/// A number that a transaction drew or looked at.
struct Allocation {
    table: TableId,
    key: [u8; 8],
    number: u64,
}

/// Few numbers need no memory of the heap.
type Numbers = SmallVec<[Allocation; 2]>;

/// A running transaction in the workloads' words.
struct Running<'a, S> {
    /// In a cell because the transaction that asks where a sequence started has it shared.
    session: RefCell<&'a mut S>,
    /// What a question that cannot fail ran into.
    stopped: Cell<Option<Stop>>,
    allocation: Numbers,
    output: &'a mut Vec<u8>,
}

/// What comes of a part of a procedure.
type Ended<T = ()> = Result<T, Stop>;

/// The allocations of a procedure.
type Sequences<S> = fn(&[u8], &mut Allocating<'_, S>) -> Ended;

struct Entry<S> {
    sequences: Option<Sequences<S>>,
    run: fn(&[u8], &mut Running<'_, S>) -> Ended,
    pieces: Option<PieceEntry<S>>,
}

struct PieceEntry<S> {
    declare: fn(&[u8], &mut Declaring<'_, S>) -> Ended,
    piece: fn(&[u8], usize, &mut Part<'_, S>) -> Ended<PieceResult>,
    finish: fn(&[u8], &mut dyn Iterator<Item = PieceResult>, &mut Vec<u8>),
}

/// The procedures of a workload, for the sessions of an engine.
pub struct Procedures<S> {
    entries: Vec<Entry<S>>,
}

impl<S> Default for Procedures<S> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<S: Session> Register for Procedures<S> {
    fn procedure<P: Procedure>(&mut self) {
        self.entries.push(Entry {
            sequences: P::SEQUENCES.then_some(|args, allocate| P::sequences(args, allocate)),
            run: |args, tx| P::run(args, tx),
            pieces: P::PIECES.then_some(PieceEntry {
                declare: |args, declare| P::write_set(args, declare),
                piece: |args, number, piece| P::piece(args, number, piece),
                finish: P::finish,
            }),
        });
    }
}

impl<S: Session> Procedures<S> {
    /// Runs a call until it commits or gives up. `output` gets what it answers.
    ///
    /// # Errors
    /// The engine's failure.
    ///
    /// # Panics
    /// If the procedure is not registered.
    pub fn run(
        &self,
        session: &mut S,
        procedure: ProcedureId,
        args: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Done, Error> {
        let entry = &self.entries[usize::from(procedure)];
        let mut retries = 0;
        loop {
            output.clear();
            session.begin();
            let ended = match entry.run(session, args, output) {
                Ok(()) => session.commit().map(|serial| (Outcome::Committed, serial)),
                Err(Stop::Abort(code)) => {
                    session.give_up().map(|serial| (Outcome::Aborted(code), serial))
                }
                Err(stop) => Err(stop),
            };
            match ended {
                Ok((outcome, serial)) => {
                    let snapshot = session.snapshot();
                    return Ok(Done { outcome, serial, snapshot, retries });
                }
                Err(Stop::Failed(error)) => {
                    session.roll_back();
                    return Err(error);
                }
                Err(Stop::Conflict | Stop::Abort(_)) => session.roll_back(),
            }
            retries += 1;
            if retries == RETRIES_MAX {
                let what =
                    format!("a call of procedure {procedure} was rolled back {retries} times");
                return Err(Error::Broken(what));
            }
            back_off(retries);
        }
    }
}

/// A call that is rolled back so often will never commit: some half a minute on a core of its own.
const RETRIES_MAX: u64 = 1 << 24;

/// Waits a little longer each time, so that those who are in each other's way get apart.
fn back_off(retries: u64) {
    if retries > 16 {
        std::thread::yield_now();
    }
    for _ in 0..1_u32 << retries.min(8) {
        std::hint::spin_loop();
    }
}

impl<S: Session> Entry<S> {
    /// Sequences, runs the body and the pieces.
    fn run(&self, session: &mut S, args: &[u8], output: &mut Vec<u8>) -> Result<(), Stop> {
        let mut allocation = Numbers::new();
        if let Some(sequences) = self.sequences {
            let mut allocating = Allocating { session, wanted: SmallVec::new() };
            sequences(args, &mut allocating)?;
            allocation = allocating.allocate()?;
        }
        let mut running = Running {
            session: RefCell::new(session),
            stopped: Cell::new(None),
            allocation,
            output,
        };
        let ended = (self.run)(args, &mut running);
        // What came after a question without an answer means nothing.
        running.stopped.take().map_or(ended, Err)?;
        let Some(pieces) = &self.pieces else { return Ok(()) };
        let Running { session, allocation, output, .. } = running;
        let (session, stopped) = (session.into_inner(), Cell::new(None));
        let mut declaring = Declaring {
            session: RefCell::new(&mut *session),
            stopped: &stopped,
            allocation: &allocation,
            pieces: Vec::new(),
        };
        let ended = (pieces.declare)(args, &mut declaring);
        let rows = declaring.pieces;
        stopped.take().map_or(ended, Err)?;
        let mut results = Vec::with_capacity(rows.len());
        for (number, (table, key)) in rows.iter().enumerate() {
            let told = ToldOfPiece { results: &results, sequences: &allocation };
            let mut part = Part::new(&mut *session, *table, key, told);
            let ended = (pieces.piece)(args, number, &mut part);
            results.push(part.end(ended)?);
        }
        (pieces.finish)(args, &mut results.into_iter(), output);
        Ok(())
    }
}

/// Notes why a question has no answer, which means nothing then.
fn or_stop(answer: Ended<u64>, stopped: &Cell<Option<Stop>>) -> u64 {
    answer.unwrap_or_else(|stop| {
        stopped.set(Some(stop));
        0
    })
}

/// What a transaction knows of its sequences.
pub(crate) trait KnowsSequences<S> {
    /// The number that it drew first, second, ...
    fn number(&self, i: usize) -> u64;
    /// Where a sequence started.
    ///
    /// # Errors
    /// A conflict, or the engine's failure.
    fn start(&self, session: &mut S, table: TableId, key: &[u8]) -> Ended<u64>;
}

impl<S: Accesses> KnowsSequences<S> for Numbers {
    fn number(&self, i: usize) -> u64 {
        self[i].number
    }

    fn start(&self, session: &mut S, table: TableId, key: &[u8]) -> Ended<u64> {
        match self.iter().find(|own| own.table == table && own.key == key) {
            Some(own) => Ok(own.number),
            None => Ok(number(session.get(table, key)?)),
        }
    }
}

/// The number in the row of a sequence.
fn number(value: Option<&[u8]>) -> u64 {
    value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The key of a sequence.
fn sequence_key(key: &[u8]) -> [u8; 8] {
    key.try_into().expect("the key of a sequence has 8 bytes")
}

/// A transaction that says what it allocates.
struct Allocating<'a, S> {
    session: &'a mut S,
    /// Sequences, and whether they are only looked at.
    wanted: SmallVec<[(TableId, [u8; 8], bool); 2]>,
}

impl<S: Session> Allocating<'_, S> {
    fn allocate(self) -> Result<Numbers, Stop> {
        let mut allocation = Numbers::new();
        for (table, key, only_peek) in self.wanted {
            let number = number(self.session.get(table, &key)?);
            if !only_peek {
                self.session.insert(table, &key, &(number + 1).to_le_bytes())?;
            }
            allocation.push(Allocation { table, key, number });
        }
        Ok(allocation)
    }
}

impl<S: Session> Allocate for Allocating<'_, S> {
    type Error = Stop;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        self.wanted.push((table, sequence_key(key), false));
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        self.wanted.push((table, sequence_key(key), true));
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.session.get(table, key)
    }
}

impl<S: Session> Tx for Running<'_, S> {
    type Error = Stop;

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.session.get_mut().get(table, key)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        self.session.get_mut().scan(table, low, high, descending, each)
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.session.get_mut().insert(table, key, value)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        self.session.get_mut().update(table, key, value)
    }

    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Stop> {
        self.session.get_mut().modify(table, key, change)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        self.session.get_mut().modify_part(table, key, part, change)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        self.session.get_mut().delete(table, key)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.allocation[i].number
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        or_stop(self.allocation.start(&mut **self.session.borrow_mut(), table, key), &self.stopped)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.output
    }
}

/// A transaction that is asked for its pieces; whatever else it declares is of no use here.
struct Declaring<'a, S> {
    session: RefCell<&'a mut S>,
    stopped: &'a Cell<Option<Stop>>,
    allocation: &'a Numbers,
    pieces: Vec<(TableId, Vec<u8>)>,
}

impl<S: Session> Declare for Declaring<'_, S> {
    type Error = Stop;

    fn insert(&mut self, _: TableId, _: &[u8]) {}

    fn update(&mut self, _: TableId, _: &[u8]) {}

    fn delete(&mut self, _: TableId, _: &[u8]) {}

    fn update_piece(&mut self, table: TableId, key: &[u8], _: u32) {
        self.pieces.push((table, key.to_vec()));
    }

    fn insert_in_piece(&mut self, _: TableId, _: &[u8]) {}

    fn update_in_piece(&mut self, _: TableId, _: &[u8]) {}

    fn update_range_in_piece(&mut self, _: TableId, _: &[u8], _: &[u8]) {}

    fn update_range(&mut self, _: TableId, _: &[u8], _: &[u8]) {}

    fn will_read(&mut self, _: TableId, _: &[u8]) {}

    fn sequence_number(&self, i: usize) -> u64 {
        self.allocation[i].number
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        or_stop(self.allocation.start(&mut **self.session.borrow_mut(), table, key), self.stopped)
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.session.get_mut().get(table, key)
    }

    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        self.session.get_mut().scan(table, low, high, false, each)
    }
}

/// What a piece is told of its transaction.
pub(crate) struct ToldOfPiece<'a, S> {
    /// What the pieces before it came to; nothing where they may not have run.
    pub(crate) results: &'a [PieceResult],
    pub(crate) sequences: &'a dyn KnowsSequences<S>,
}

/// A running piece.
pub(crate) struct Part<'a, S> {
    /// In a cell because a piece that asks where a sequence started has it shared.
    session: RefCell<&'a mut S>,
    stopped: Cell<Option<Stop>>,
    table: TableId,
    key: &'a [u8],
    told: ToldOfPiece<'a, S>,
}

impl<'a, S> Part<'a, S> {
    /// A piece on a row.
    pub(crate) fn new(
        session: &'a mut S,
        table: TableId,
        key: &'a [u8],
        told: ToldOfPiece<'a, S>,
    ) -> Self {
        let (session, stopped) = (RefCell::new(session), Cell::new(None));
        Self { session, stopped, table, key, told }
    }

    /// What it came to, unless there was a question without an answer.
    pub(crate) fn end(self, ended: Ended<PieceResult>) -> Ended<PieceResult> {
        self.stopped.take().map_or(ended, Err)
    }
}

impl<S: Accesses> PieceTx for Part<'_, S> {
    type Error = Stop;

    fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Stop> {
        self.session.get_mut().modify(self.table, self.key, change)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        self.session.get_mut().modify_part(self.table, self.key, part, change)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        self.session.get_mut().get(table, key)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        self.session.get_mut().scan(table, low, high, false, each)
    }

    fn insert_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.session.get_mut().insert(table, key, value)
    }

    fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Stop> {
        self.session.get_mut().modify_part(table, key, part, change)
    }

    fn delete_row(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        self.session.get_mut().delete(table, key)
    }

    fn result(&mut self, number: usize) -> Result<PieceResult, Stop> {
        self.told.results.get(number).copied().ok_or_else(|| {
            let what =
                format!("a piece asks for the result of piece {number}, which may not have run");
            Stop::Failed(Error::Broken(what))
        })
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.told.sequences.number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let start = self.told.sequences.start(&mut **self.session.borrow_mut(), table, key);
        or_stop(start, &self.stopped)
    }
}
