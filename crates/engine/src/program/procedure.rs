//! Registered procedures: objects that are called with the bytes that were logged.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::call::answers::Abort;
use crate::declaration::PieceResult;
use crate::declaration::declare::{Sequences, WriteSet};
use crate::transaction::piece::Piece;
use crate::transaction::{Stop, Transaction};

/// Which steps a procedure has besides its write set and its body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// [`Procedure::sequences`].
    pub sequences: bool,
    /// [`Procedure::piece`].
    pub pieces: bool,
    /// [`Procedure::finish`]; without it the answer is what the body put out.
    pub finish: bool,
}

/// A procedure with whatever it knows besides its arguments. That must never change while the
/// engine is open, and must be the same in a replay.
pub trait Procedure: Send + Sync {
    /// Unique name.
    fn name(&self) -> &str;

    /// Its further steps; asked once, when it is registered.
    fn steps(&self) -> Steps {
        Steps::default()
    }

    /// Step one of the declaration: allocates sequence numbers.
    ///
    /// # Errors
    /// An abort, which allocates nothing.
    fn sequences(&self, arguments: &[u8], sequences: &mut Sequences<'_>) -> Result<(), Abort> {
        let _ = (arguments, sequences);
        Ok(())
    }

    /// Step two of the declaration.
    ///
    /// # Errors
    /// An abort.
    fn write_set(&self, arguments: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort>;

    /// The body.
    ///
    /// # Errors
    /// An abort, or what the transaction said.
    fn run(&self, arguments: &[u8], transaction: &mut Transaction<'_>) -> Result<(), Stop>;

    /// Runs a piece (CA 3.4): the update of the rows that [`WriteSet::update_piece`] and what came
    /// behind it declared. Its result goes to [`Transaction::piece_result`], to [`Piece::result`]
    /// and to [`Procedure::finish`].
    ///
    /// # Errors
    /// All of them stop the engine: the transaction has committed.
    fn piece(&self, arguments: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
        let _ = (arguments, piece);
        Err(Stop::mistake("the procedure has no function for its pieces"))
    }

    /// Makes the answer from what the body put out and from the results of the pieces, in the order
    /// of their declaration.
    fn finish(&self, arguments: &[u8], results: &[PieceResult], output: &mut Vec<u8>) {
        let _ = (arguments, results, output);
    }
}

/// The version of a procedure that says nothing of versions.
pub(crate) const FIRST_VERSION: u32 = 1;

/// See [`Procedure::sequences`].
pub type SequencesFn = fn(&[u8], &mut Sequences<'_>) -> Result<(), Abort>;
/// See [`Procedure::write_set`].
pub type WriteSetFn = fn(&[u8], &mut WriteSet<'_>) -> Result<(), Abort>;
/// See [`Procedure::run`].
pub type BodyFn = fn(&[u8], &mut Transaction<'_>) -> Result<(), Stop>;
/// See [`Procedure::piece`].
pub type PieceFn = fn(&[u8], &mut Piece<'_>) -> Result<PieceResult, Stop>;
/// See [`Procedure::finish`].
pub type FinishFn = fn(&[u8], &[PieceResult], &mut Vec<u8>);

/// What a procedure with pieces has besides.
#[derive(Debug, Clone, Copy)]
pub struct PieceFunctions {
    /// Runs a piece.
    pub piece: PieceFn,
    /// Makes the answer, if it is not what the body put out.
    pub finish: Option<FinishFn>,
}

/// A procedure that knows its arguments and nothing else: plain functions.
#[derive(Debug, Clone)]
pub struct ProcedureDefinition {
    /// Unique name.
    pub name: &'static str,
    /// Step one of the declaration, if the procedure allocates sequence numbers.
    pub sequences: Option<SequencesFn>,
    /// Step two of the declaration.
    pub write_set: WriteSetFn,
    /// The body.
    pub body: BodyFn,
    /// What runs its pieces, if it declares any.
    pub pieces: Option<PieceFunctions>,
}

impl Procedure for ProcedureDefinition {
    fn name(&self) -> &str {
        self.name
    }

    fn steps(&self) -> Steps {
        Steps {
            sequences: self.sequences.is_some(),
            pieces: self.pieces.is_some(),
            finish: self.pieces.is_some_and(|functions| functions.finish.is_some()),
        }
    }

    fn sequences(&self, arguments: &[u8], sequences: &mut Sequences<'_>) -> Result<(), Abort> {
        self.sequences.map_or(Ok(()), |allocate| allocate(arguments, sequences))
    }

    fn write_set(&self, arguments: &[u8], set: &mut WriteSet<'_>) -> Result<(), Abort> {
        (self.write_set)(arguments, set)
    }

    fn run(&self, arguments: &[u8], transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        (self.body)(arguments, transaction)
    }

    fn piece(&self, arguments: &[u8], piece: &mut Piece<'_>) -> Result<PieceResult, Stop> {
        (self.pieces.expect("it has this step").piece)(arguments, piece)
    }

    fn finish(&self, arguments: &[u8], results: &[PieceResult], output: &mut Vec<u8>) {
        if let Some(finish) = self.pieces.and_then(|functions| functions.finish) {
            finish(arguments, results, output);
        }
    }
}

/// The procedures of an engine, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct ProcedureTable {
    procedures: Vec<Registered>,
    by_name: HashMap<String, u16>,
}

/// A procedure in a table.
#[derive(Clone)]
pub(crate) struct Registered {
    procedure: Arc<dyn Procedure>,
    pub(crate) steps: Steps,
    /// What is known of the types of arguments and answer, in words.
    types: String,
    /// Which of the bodies that the procedure has had.
    version: u32,
}

impl Deref for Registered {
    type Target = dyn Procedure;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &*self.procedure
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.name(), self.types)
    }
}

impl ProcedureTable {
    /// No procedures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a procedure and returns its number.
    ///
    /// # Panics
    /// If the name is in use: two procedures of one name are a mistake of the program.
    pub fn add(&mut self, procedure: impl Procedure + 'static) -> u16 {
        self.add_typed(Arc::new(procedure), String::new())
    }

    /// As [`ProcedureTable::add`], with the types of arguments and answer in words. A log is
    /// replayed only where they are the same as when it was written.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add_typed(&mut self, procedure: Arc<dyn Procedure>, types: String) -> u16 {
        self.add_version(procedure, types, FIRST_VERSION)
    }

    /// As [`ProcedureTable::add_typed`], with the version of its body. Calls of another version are
    /// not replayed with it.
    ///
    /// # Panics
    /// If the name is in use.
    pub fn add_version(
        &mut self,
        procedure: Arc<dyn Procedure>,
        types: String,
        version: u32,
    ) -> u16 {
        let steps = procedure.steps();
        self.push(Registered { procedure, steps, types, version })
    }

    fn push(&mut self, registered: Registered) -> u16 {
        let number = self.procedures.len() as u16;
        let before = self.by_name.insert(registered.name().to_string(), number);
        assert!(before.is_none(), "procedure {:?} is registered twice", registered.name());
        self.procedures.push(registered);
        number
    }

    /// Adds a procedure of another table, and returns its number.
    pub(crate) fn take_from(&mut self, other: &Self, number: u16) -> u16 {
        self.push(other.procedures[usize::from(number)].clone())
    }

    /// Number of a procedure.
    pub fn number(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }

    /// Procedures registered.
    pub fn len(&self) -> usize {
        self.procedures.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.procedures.is_empty()
    }

    /// Name, types and version of each, in the order of their numbers.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        self.procedures.iter().map(|of| (of.name(), of.types.as_str(), of.version))
    }

    /// Whether any of them allocates sequence numbers.
    pub(crate) fn sequences(&self) -> bool {
        self.procedures.iter().any(|registered| registered.steps.sequences)
    }

    pub(crate) fn get(&self, number: u16) -> Option<&Registered> {
        self.procedures.get(number as usize)
    }
}
