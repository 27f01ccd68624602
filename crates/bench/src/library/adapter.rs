//! Runs workloads on the library as its users meet it: a workload's procedures become procedures of
//! the public API, with keys and values of bytes.
//!
//! Which table a number means is in the database's context ([`Handles`]), because the tables of a
//! workload depend on its settings.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Bound::{Excluded, Included};
use std::ops::Range;

use nvcaracal::{Data, Piece, PieceResult, PieceResults, Sequences, Stop, Transaction, WriteSet};
use workloads::{Abort, Procedure, TableId, Visit};

use super::buffer::{Buffer, Output};
use super::handles::{Bytes, Handle, Handles, KINDS, with_range, with_row, word};

/// The arguments of a workload's procedure.
pub(crate) struct Call<P>(Buffer, PhantomData<fn(P)>);

impl<P> Call<P> {
    pub(super) fn new(arguments: Buffer) -> Self {
        Self(arguments, PhantomData)
    }
}

impl<P: 'static> Data for Call<P> {
    const IS_OPEN: bool = true;
    const READS_BACK: bool = true;

    fn encode(&self, into: &mut Vec<u8>) {
        self.0.encode(into);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Buffer::decode(from).map(Self::new)
    }

    fn describe() -> String {
        Buffer::describe()
    }

    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(then)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Buffer::from_bytes(bytes).map(Self::new)
    }

    #[inline]
    fn with_value<R>(bytes: &[u8], then: impl FnOnce(&Self) -> R) -> Option<R> {
        // It is not moved: a processor waits where it loads more at once than was stored at once.
        let call = Self::new(Buffer::from(bytes));
        Some(then(&call))
    }
}

/// A declaration or a body that ended early.
struct Ended(Stop);

impl From<Abort> for Ended {
    fn from(abort: Abort) -> Self {
        Self(nvcaracal::Abort::code(abort.0).into())
    }
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        Self(stop)
    }
}

/// A step of a declaration that gave up.
struct GaveUp(nvcaracal::Abort);

impl From<Abort> for GaveUp {
    fn from(abort: Abort) -> Self {
        Self(nvcaracal::Abort::code(abort.0))
    }
}

impl<P: Procedure> nvcaracal::Procedure for Call<P> {
    const NAME: &'static str = P::NAME;
    const SEQUENCES: bool = P::SEQUENCES;
    const PIECES: bool = P::PIECES;
    type Output = Output;

    fn sequences(&self, sequences: &mut Sequences) -> std::result::Result<(), nvcaracal::Abort> {
        let Some(handles) = sequences.context() else { return Ok(()) };
        let mut allocating = Allocating { sequences, handles, found: None };
        P::sequences(&self.0, &mut allocating).map_err(|gave_up| gave_up.0)
    }

    fn write_set(&self, set: &mut WriteSet) {
        let Some(handles) = set.context() else { return };
        let mut declaring = Declaring { set: RefCell::new(set), handles, found: None };
        // A call that gives up here gives up in the body, too, from the same rows.
        if P::write_set(&self.0, &mut declaring).is_err() {
            declaring.set.get_mut().unknown();
        }
    }

    fn run(&self, tx: &mut Transaction) -> std::result::Result<Output, Stop> {
        let handles = tx.context()?;
        Output::put(|output| P::run(&self.0, &mut Running { tx, handles, output }))
            .map_err(|ended| ended.0)
    }

    fn piece(&self, piece: &mut Piece) -> std::result::Result<PieceResult, Stop> {
        let (number, handles) = (piece.number(), piece.context()?);
        let result = P::piece(&self.0, number, &mut Part { piece, handles });
        result.map(|words| PieceResult::of(&words)).map_err(|ended| ended.0)
    }

    fn finish(&self, output: Output, results: PieceResults) -> Output {
        let mut each = (0..results.len()).map(|number| results.get(number));
        output.changed(|bytes| P::finish(&self.0, &mut each, bytes))
    }
}

struct Allocating<'d, 'a, 'e> {
    sequences: &'d mut Sequences<'a, 'e>,
    handles: &'a Handles,
    found: Option<Bytes>,
}

impl workloads::Allocate for Allocating<'_, '_, '_> {
    type Error = GaveUp;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        self.sequences.allocate(self.handles.sequence(table, key));
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        self.sequences.peek(self.handles.sequence(table, key));
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> std::result::Result<Option<&[u8]>, GaveUp> {
        self.found = with_row!(self.handles, table, key, |t, k| self.sequences.get(t, k));
        Ok(self.found.as_deref())
    }
}

struct Declaring<'d, 'a, 'e> {
    /// In a cell because a mistake of the call that asks where a sequence started is noted in the
    /// set.
    set: RefCell<&'d mut WriteSet<'a, 'e>>,
    handles: &'a Handles,
    found: Option<Bytes>,
}

impl workloads::Declare for Declaring<'_, '_, '_> {
    type Error = GaveUp;

    fn insert(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().insert(t, k));
    }

    fn update(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().update(t, k));
    }

    fn delete(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().delete(t, k));
    }

    fn update_piece(&mut self, table: TableId, key: &[u8], weight: u32) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().update_piece(t, k, weight));
    }

    fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().insert_in_piece(t, k));
    }

    fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().update_in_piece(t, k));
    }

    fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        with_range!(self.handles, table, low, high, |t, range, _bytes| self
            .set
            .get_mut()
            .update_range_in_piece(t, range));
    }

    fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        with_range!(self.handles, table, low, high, |t, range, _bytes| self
            .set
            .get_mut()
            .update_range(t, range));
    }

    fn will_read(&mut self, table: TableId, key: &[u8]) {
        with_row!(self.handles, table, key, |t, k| self.set.get_mut().will_read(t, k));
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.set.borrow().sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.set.borrow_mut().sequence_start(self.handles.sequence(table, key))
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> std::result::Result<Option<&[u8]>, GaveUp> {
        self.found = with_row!(self.handles, table, key, |t, k| self.set.get_mut().get(t, k));
        Ok(self.found.as_deref())
    }

    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> std::result::Result<(), GaveUp> {
        with_range!(self.handles, table, low, high, |t, range, bytes| {
            for (key, value) in self.set.get_mut().range(t, range) {
                if each(bytes(key).as_ref(), &value).is_break() {
                    break;
                }
            }
        });
        Ok(())
    }
}

struct Running<'t, 'a, 'e> {
    tx: &'t mut Transaction<'a, 'e>,
    handles: &'a Handles,
    output: &'t mut Bytes,
}

impl workloads::Tx for Running<'_, '_, '_> {
    type Error = Ended;

    fn get(&mut self, table: TableId, key: &[u8]) -> std::result::Result<Option<&[u8]>, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.get_bytes(t, k))?)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> std::result::Result<(), Ended> {
        Ok(with_range!(self.handles, table, low, high, |t, range, _bytes| self
            .tx
            .visit_bytes(t, range, descending, each))?)
    }

    fn insert(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> std::result::Result<(), Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.insert_bytes(t, k, value))?)
    }

    fn update(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> std::result::Result<bool, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.update_bytes(t, k, value))?)
    }

    fn get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        each: impl FnMut(Option<&[u8]>),
    ) -> std::result::Result<(), Ended> {
        Ok(match self.handles.0[usize::from(table.0)] {
            Handle::HashWords(t) => self.tx.get_many_bytes(t, keys.map(word), each),
            Handle::OrderedWords(t) => self.tx.get_many_bytes(t, keys.map(word), each),
            Handle::Hash(t) => self.tx.get_many_bytes(t, keys, each),
            Handle::Ordered(t) => self.tx.get_many_bytes(t, keys, each),
            Handle::Sequence(_) => panic!("{KINDS}"),
        }?)
    }

    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> std::result::Result<bool, Ended> {
        let change = |_: &[u8], value: &mut [u8]| change(value);
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.modify_bytes(t, k, .., change))?)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> std::result::Result<bool, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.modify_bytes(t, k, part, change))?)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> std::result::Result<bool, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.tx.delete(t, k))?)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.tx.sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let start = self.tx.sequence_start(self.handles.sequence(table, key));
        start.unwrap_or_else(|_| panic!("the sequences of a workload are registered"))
    }

    fn commit_point(&mut self) -> std::result::Result<(), Ended> {
        Ok(self.tx.commit_point()?)
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.output
    }
}

struct Part<'p, 'a, 'e> {
    piece: &'p mut Piece<'a, 'e>,
    handles: &'a Handles,
}

impl workloads::PieceTx for Part<'_, '_, '_> {
    type Error = Ended;

    fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> std::result::Result<bool, Ended> {
        Ok(self.piece.modify_bytes::<Bytes>(.., |_, value| change(value))?)
    }

    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Range<usize>,
        change: F,
    ) -> std::result::Result<bool, Ended> {
        Ok(self.piece.modify_bytes::<Bytes>(part, change)?)
    }

    fn get(&mut self, table: TableId, key: &[u8]) -> std::result::Result<Option<&[u8]>, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.piece.get_bytes(t, k))?)
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> std::result::Result<(), Ended> {
        Ok(with_range!(self.handles, table, low, high, |t, range, _bytes| self
            .piece
            .visit_bytes(t, range, false, each))?)
    }

    fn insert_row(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> std::result::Result<(), Ended> {
        let inserted =
            with_row!(self.handles, table, key, |t, k| self.piece.insert_row_bytes(t, k, value));
        Ok(inserted?)
    }

    fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> std::result::Result<bool, Ended> {
        let changed = with_row!(self.handles, table, key, |t, k| {
            self.piece.modify_row_bytes(t, k, part, change)
        });
        Ok(changed?)
    }

    fn delete_row(&mut self, table: TableId, key: &[u8]) -> std::result::Result<bool, Ended> {
        Ok(with_row!(self.handles, table, key, |t, k| self.piece.delete_row(t, k))?)
    }

    fn result(&mut self, number: usize) -> std::result::Result<workloads::PieceResult, Ended> {
        Ok(self.piece.result(number)?)
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.piece.sequence_number(i)
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let start = self.piece.sequence_start(self.handles.sequence(table, key));
        start.unwrap_or_else(|_| panic!("the sequences of a workload are registered"))
    }
}
