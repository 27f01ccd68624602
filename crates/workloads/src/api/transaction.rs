//! Procedures, and what they do to a transaction.

use std::ops::{ControlFlow, Range};

use crate::api::tables::TableId;

/// Sees one row (key, value) of a scan, and says whether to go on.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// The transaction gives up on purpose; none of its writes takes place. The code tells why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abort(pub u32);

/// Step one of a declaration: allocate sequence numbers. The k-th call that allocates from an
/// epoch, in serial order, gets base + k. A transaction that aborts here allocates nothing and
/// leaves no gap.
pub trait Allocate {
    /// Engine failure or abort.
    type Error: From<Abort>;
    /// Allocates the next number of the sequence `key` (8 bytes) of a table of kind `Sequence`.
    fn allocate(&mut self, table: TableId, key: &[u8]);
    /// Looks at a sequence without allocating: counts as an allocation for `sequence_number`, which
    /// tells the number that the next call that allocates after this transaction's own allocations
    /// gets, in serial order.
    fn peek(&mut self, table: TableId, key: &[u8]);
    /// Reads a row as of the end of the previous epoch (reconnaissance, CA 3.7). Re-checked at
    /// execution.
    ///
    /// # Errors
    /// Engine failure.
    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Self::Error>;
}

/// Step two of a declaration: what may be written.
pub trait Declare {
    /// Engine failure or abort.
    type Error: From<Abort>;
    /// May insert (or overwrite) `key`.
    fn insert(&mut self, table: TableId, key: &[u8]);
    /// May update `key` if it exists at this serial position.
    fn update(&mut self, table: TableId, key: &[u8]);
    /// May delete `key` if it exists at this serial position.
    fn delete(&mut self, table: TableId, key: &[u8]);
    /// A piece of the transaction may update `key`, and nothing else of it may write that row (CA
    /// 3.4, `ApplyRowUpdate`): [`Procedure::piece`] runs it, perhaps on another core than the body.
    /// Pieces are numbered from 0 in this order. `weight` estimates their work.
    fn update_piece(&mut self, table: TableId, key: &[u8], weight: u32);
    /// The piece that was declared last may insert (or overwrite) `key`, too, and nothing else of
    /// the transaction may write that row.
    fn insert_in_piece(&mut self, table: TableId, key: &[u8]);
    /// The piece that was declared last may update or delete `key`, too, if it exists at this
    /// serial position, and nothing else of the transaction may write that row.
    fn update_in_piece(&mut self, table: TableId, key: &[u8]);
    /// The piece that was declared last may update or delete any row with `low <= key < high`, too,
    /// as [`Self::update_range`], and nothing else of the transaction may write such a row.
    fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]);
    /// May update or delete any row of an ordered table with `low <= key < high` that exists at
    /// this serial position (CA 3.2).
    fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]);
    /// A hint: the body will read `key`. Costs nothing semantically; lets the engine prefetch.
    fn will_read(&mut self, table: TableId, key: &[u8]);
    /// The body may read any row with `low <= key < high`, which all have one home
    /// ([`crate::api::Workload::home`]), whether it exists or not. For engines that must know what
    /// is read before a body runs: with that, [`Self::will_read`], what is looked up and what may
    /// be written, a declaration names every read. An engine that keeps versions has no use for it.
    fn will_scan(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        let _ = (table, low, high);
    }
    /// The number that this transaction's `i`-th [`Allocate::allocate`] got.
    fn sequence_number(&self, i: usize) -> u64;
    /// The next number of a sequence as of the end of the previous epoch, that is, what its first
    /// call that allocates from this epoch gets. The same for all transactions of an epoch and in
    /// every phase, so it is never re-checked; `sequence_number(i) - sequence_start(..)` is how
    /// many drew before this one in the epoch.
    ///
    /// # Panics
    /// In engines that do not tell it. TPC-C needs it for Delivery.
    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        panic!("this engine does not tell where sequence {key:x?} of table {} started", table.0)
    }
    /// Reads a row as of the end of the previous epoch (reconnaissance). Re-checked at execution.
    ///
    /// # Errors
    /// Engine failure.
    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Self::Error>;
    /// Scans `low <= key < high` of an ordered table as of the end of the previous epoch
    /// (reconnaissance), ascending. Everything visited is re-checked at execution.
    ///
    /// # Errors
    /// Engine failure.
    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Self::Error>;
}

/// A running transaction. Reads see the newest version with a smaller serial id, own writes
/// included.
pub trait Tx {
    /// Engine failure or abort.
    type Error: From<Abort>;
    /// Reads a row.
    ///
    /// # Errors
    /// Engine failure.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Self::Error>;
    /// Scans `low <= key < high` of an ordered table. Own writes are included.
    ///
    /// # Errors
    /// Engine failure.
    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Self::Error>;
    /// Reads many rows of one table: `each` gets what is there for each key, in order. An engine
    /// may overlap their misses.
    ///
    /// # Errors
    /// Engine failure.
    fn get_many<'k>(
        &mut self,
        table: TableId,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        mut each: impl FnMut(Option<&[u8]>),
    ) -> Result<(), Self::Error> {
        for key in keys {
            each(self.get(table, key)?);
        }
        Ok(())
    }
    /// Inserts a declared row, or overwrites it where it exists.
    ///
    /// # Errors
    /// Engine failure; undeclared key; limits.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;
    /// Updates a declared row; false (and nothing happens) where it does not exist.
    ///
    /// # Errors
    /// Engine failure; undeclared key; limits.
    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Self::Error>;
    /// Changes a declared row in place, in a private copy of the newest value; its length stays.
    /// False where it does not exist.
    ///
    /// # Errors
    /// Engine failure; undeclared key.
    fn modify<F: FnOnce(&mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: F,
    ) -> Result<bool, Self::Error>;
    /// Changes a part of a declared row: `change` gets the newest value, and a copy of the bytes of
    /// `part`. False where it does not exist. An engine may copy and compare no more than the part.
    ///
    /// # Errors
    /// Engine failure; undeclared key; a part that goes beyond the end of the value.
    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Self::Error>;
    /// Deletes a declared row; false where it does not exist.
    ///
    /// # Errors
    /// Engine failure; undeclared key.
    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Self::Error>;
    /// The number that this transaction's `i`-th [`Allocate::allocate`] got.
    fn sequence_number(&self, i: usize) -> u64;
    /// The next number of a sequence as of the end of the previous epoch, that is, what its first
    /// call that allocates from this epoch gets. The same for all transactions of an epoch and in
    /// every phase, so it is never re-checked; `sequence_number(i) - sequence_start(..)` is how
    /// many drew before this one in the epoch.
    ///
    /// # Panics
    /// In engines that do not tell it. TPC-C needs it for Delivery.
    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        panic!("this engine does not tell where sequence {key:x?} of table {} started", table.0)
    }
    /// From here on the transaction does not abort: an engine may let others see what it wrote,
    /// and each later write at once (early write visibility, NV 3.1.2). After this no key may be
    /// written that was written before, and an error is a mistake that nothing can undo: an engine
    /// may stop at it. Engines that show writes at the end of a transaction do nothing here.
    ///
    /// # Errors
    /// Engine failure.
    fn commit_point(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// The answer of the transaction: append bytes here.
    fn output(&mut self) -> &mut Vec<u8>;
}

/// What a piece came to.
pub type PieceResult = [u64; 2];

/// A running piece: the update of one row that may be contended, and of others that were declared
/// for it. It sees the state before its transaction and what it has written itself; a row that the
/// rest of its transaction may write it does not read.
pub trait PieceTx {
    /// Engine failure or abort, both of which are mistakes here: the transaction commits.
    type Error: From<Abort>;
    /// Changes the row in a private copy; its length stays. False where it does not exist.
    ///
    /// # Errors
    /// Engine failure.
    fn modify<F: FnOnce(&mut [u8])>(&mut self, change: F) -> Result<bool, Self::Error>;
    /// Changes a part of the row, as [`Tx::modify_part`] does. False where it does not exist.
    ///
    /// # Errors
    /// Engine failure; a part that goes beyond the end of the value.
    fn modify_part<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Self::Error>;
    /// Reads a row.
    ///
    /// # Errors
    /// Engine failure; a row that the rest of its transaction may write.
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Self::Error>;
    /// Scans `low <= key < high` of an ordered table, ascending, of which its transaction writes no
    /// row.
    ///
    /// # Errors
    /// Engine failure; a row that its transaction may write.
    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Self::Error>;
    /// Inserts a row that was declared with [`Declare::insert_in_piece`], or overwrites it.
    ///
    /// # Errors
    /// Engine failure; a key that was not declared so; limits.
    fn insert_row(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;
    /// Changes a part of a row that was declared for the piece, as [`Tx::modify_part`] does. False
    /// where it does not exist.
    ///
    /// # Errors
    /// Engine failure; a key that was not declared for it; a part beyond the end of the value.
    fn modify_row<F: FnOnce(&[u8], &mut [u8])>(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: F,
    ) -> Result<bool, Self::Error>;
    /// Deletes a row that was declared for the piece; false where it does not exist.
    ///
    /// # Errors
    /// Engine failure; a key that was not declared for it.
    fn delete_row(&mut self, table: TableId, key: &[u8]) -> Result<bool, Self::Error>;
    /// What a piece of its transaction with a smaller number came to, waiting for it if it must. A
    /// procedure of which a piece asks for that declares more than what its pieces update: engines
    /// may run pieces that are all of a transaction each for itself.
    ///
    /// # Errors
    /// Engine failure; a number that is not smaller.
    fn result(&mut self, number: usize) -> Result<PieceResult, Self::Error>;
    /// The number that its transaction's `i`-th [`Allocate::allocate`] got.
    fn sequence_number(&self, i: usize) -> u64;
    /// As [`Tx::sequence_start`].
    ///
    /// # Panics
    /// As there.
    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64;
}

/// A one-shot call: arguments are plain bytes, logged as they are executed.
pub trait Procedure: 'static {
    /// Unique name; identifies the procedure in the input log.
    const NAME: &'static str;
    /// Whether [`Procedure::sequences`] does anything.
    const SEQUENCES: bool = false;
    /// Allocates from sequences.
    ///
    /// # Errors
    /// Abort (then nothing was allocated) or engine failure.
    fn sequences<D: Allocate>(args: &[u8], allocate: &mut D) -> Result<(), D::Error> {
        let _ = (args, allocate);
        Ok(())
    }
    /// Declares the write set.
    ///
    /// # Errors
    /// Abort or engine failure.
    fn write_set<D: Declare>(args: &[u8], declare: &mut D) -> Result<(), D::Error>;
    /// The body.
    ///
    /// # Errors
    /// Abort or engine failure; nothing is written then.
    fn run<T: Tx>(args: &[u8], tx: &mut T) -> Result<(), T::Error>;
    /// Whether [`Procedure::piece`] does anything.
    const PIECES: bool = false;
    /// Runs the piece with a number, once the body has come to its end.
    ///
    /// # Errors
    /// Engine failure. There is no abort any more.
    fn piece<P: PieceTx>(
        args: &[u8],
        number: usize,
        piece: &mut P,
    ) -> Result<PieceResult, P::Error> {
        let _ = (args, number, piece);
        Ok([0; 2])
    }
    /// Makes the answer from what the body put out and from what its pieces came to, in their
    /// order.
    fn finish(args: &[u8], results: &mut dyn Iterator<Item = PieceResult>, output: &mut Vec<u8>) {
        let _ = (args, results, output);
    }
}

/// Takes the procedures of a workload, in the order of their numbers.
pub trait Register {
    /// Adds the next procedure.
    fn procedure<P: Procedure>(&mut self);
}
