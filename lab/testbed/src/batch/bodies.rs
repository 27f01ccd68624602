//! The bodies and pieces of a workload's procedures, on the accesses of an engine.

use std::ops::Range;

use workloads::{PieceResult, Procedure, ProcedureId, Register, TableId, Tx, Visit};

use super::declare::{Asked, Declared, Item, Kind};
use super::sequences::Sequences;
use crate::rival::{Accesses, Stop};
use crate::run::procedure::{KnowsSequences, Part, ToldOfPiece};

/// What comes of a body or a piece.
type Ended<T = ()> = Result<T, Stop>;

struct Entry<A> {
    run: fn(&[u8], &mut Body<'_, A>) -> Ended,
    pieces: Option<PieceEntry<A>>,
}

struct PieceEntry<A> {
    piece: fn(&[u8], usize, &mut Part<'_, A>) -> Ended<PieceResult>,
    finish: fn(&[u8], &mut dyn Iterator<Item = PieceResult>, &mut Vec<u8>),
}

/// The procedures of a workload, for the accesses of an engine.
pub(super) struct Bodies<A>(Vec<Entry<A>>);

impl<A> Default for Bodies<A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<A: Accesses> Register for Bodies<A> {
    fn procedure<P: Procedure>(&mut self) {
        self.0.push(Entry {
            run: |args, tx| P::run(args, tx),
            pieces: P::PIECES.then_some(PieceEntry {
                piece: |args, number, piece| P::piece(args, number, piece),
                finish: P::finish,
            }),
        });
    }
}

/// What a body is told of its sequences.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) numbers: &'a [u64],
    pub(super) sequences: &'a Sequences,
}

impl<A> KnowsSequences<A> for Told<'_> {
    fn number(&self, i: usize) -> u64 {
        self.numbers[i]
    }

    fn start(&self, _: &mut A, table: TableId, key: &[u8]) -> Ended<u64> {
        Ok(self.sequences.start(table, key))
    }
}

/// A call with all that is known of it before it runs.
#[derive(Clone, Copy)]
pub(super) struct KnownCall<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) told: Told<'a>,
    /// What the share that it is in has declared, and its number there.
    pub(super) declared: &'a Declared,
    pub(super) number: usize,
}

impl<'a> KnownCall<'a> {
    /// What it has declared.
    fn items(&self) -> &'a [Item] {
        self.declared.items(self.number)
    }
}

impl<A: Accesses> Bodies<A> {
    /// Whether a procedure leaves updates to pieces.
    pub(super) fn has_pieces(&self, procedure: ProcedureId) -> bool {
        self.0[usize::from(procedure)].pieces.is_some()
    }

    /// Runs a body.
    ///
    /// # Errors
    /// That of the body, or of the engine.
    pub(super) fn run(
        &self,
        asked: Asked<'_>,
        told: Told<'_>,
        accesses: &mut A,
        output: &mut Vec<u8>,
    ) -> Ended {
        output.clear();
        let mut body = Body { accesses, told, output };
        (self.0[usize::from(asked.procedure)].run)(asked.args, &mut body)
    }

    /// Runs one piece.
    ///
    /// # Errors
    /// Those of the engine.
    ///
    /// # Panics
    /// If the procedure has no pieces.
    pub(super) fn run_piece(
        &self,
        asked: Asked<'_>,
        number: usize,
        part: &mut Part<'_, A>,
    ) -> Ended<PieceResult> {
        let pieces = self.0[usize::from(asked.procedure)].pieces.as_ref();
        (pieces.expect("a procedure with pieces").piece)(asked.args, number, part)
    }

    /// Makes the answer of what body and pieces came to.
    pub(super) fn finish(
        &self,
        asked: Asked<'_>,
        results: &mut dyn Iterator<Item = PieceResult>,
        output: &mut Vec<u8>,
    ) {
        if let Some(pieces) = &self.0[usize::from(asked.procedure)].pieces {
            (pieces.finish)(asked.args, results, output);
        }
    }

    /// Runs a body, its pieces behind it, and makes the answer.
    ///
    /// # Errors
    /// That of the body, or of the engine.
    pub(super) fn run_whole(
        &self,
        call: KnownCall<'_>,
        accesses: &mut A,
        output: &mut Vec<u8>,
    ) -> Ended {
        let KnownCall { asked, told, declared, .. } = call;
        self.run(asked, told, accesses, output)?;
        if !self.has_pieces(asked.procedure) {
            return Ok(());
        }
        let pieces = call.items().iter().filter(|item| item.kind == Kind::Piece);
        let mut results = Vec::new();
        for (piece, item) in pieces.enumerate() {
            let (table, key) = (item.table, declared.key(item));
            let of_piece = ToldOfPiece { results: &results, sequences: &told };
            let mut part = Part::new(&mut *accesses, table, key, of_piece);
            let ended = self.run_piece(asked, piece, &mut part);
            results.push(part.end(ended)?);
        }
        self.finish(asked, &mut results.into_iter(), output);
        Ok(())
    }
}

/// A running body in the words of workloads. Commit points do nothing: no engine here shows writes
/// before it knows that the call commits, and all know it soon.
pub(super) struct Body<'a, A> {
    accesses: &'a mut A,
    told: Told<'a>,
    output: &'a mut Vec<u8>,
}

impl<A: Accesses> Tx for Body<'_, A> {
    type Error = Stop;

    fn get(&mut self, table: TableId, key: &[u8]) -> Ended<Option<&[u8]>> {
        self.accesses.get(table, key)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Ended {
        self.accesses.scan(table, low, high, descending, each)
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Ended {
        self.accesses.insert(table, key, value)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Ended<bool> {
        self.accesses.update(table, key, value)
    }

    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Ended<bool> {
        self.accesses.modify(table, key, change)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Ended<bool> {
        self.accesses.modify_part(table, key, part, change)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Ended<bool> {
        self.accesses.delete(table, key)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.told.numbers[i]
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.told.sequences.start(table, key)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.output
    }
}
