//! Registered procedures: three plain functions each, called with the bytes that were logged.

use std::collections::HashMap;

use crate::calls::Abort;
use crate::declare::{Draws, WriteSet};
use crate::piece::Piece;
use crate::transaction::{Stop, Transaction};

/// Draws from sequences. An abort here draws nothing.
pub type DrawFn = fn(&[u8], &mut Draws<'_>) -> Result<(), Abort>;
/// Declares the write set.
pub type WriteSetFn = fn(&[u8], &mut WriteSet<'_>) -> Result<(), Abort>;
/// Runs the body.
pub type BodyFn = fn(&[u8], &mut Transaction<'_>) -> Result<(), Stop>;

/// Runs a piece: the update of one row that [`WriteSet::update_piece`] declared. Its result goes to
/// [`Transaction::piece_result`] and to [`FinishFn`].
pub type PieceFn = fn(&[u8], &mut Piece<'_>) -> Result<u64, Stop>;
/// Makes the answer from what the body put out and from the results of the pieces, in the order of
/// their declaration.
pub type FinishFn = fn(&[u8], &[u64], &mut Vec<u8>);

/// What a procedure with pieces has besides (CA 3.4).
#[derive(Debug, Clone, Copy)]
pub struct PieceFunctions {
    /// Runs a piece.
    pub piece: PieceFn,
    /// Makes the answer; without it the answer is what the body put out.
    pub finish: Option<FinishFn>,
}

/// One procedure.
#[derive(Debug, Clone)]
pub struct ProcedureDefinition {
    /// Unique name.
    pub name: &'static str,
    /// Step one of the declaration, if the procedure draws from sequences.
    pub draws: Option<DrawFn>,
    /// Step two of the declaration.
    pub write_set: WriteSetFn,
    /// The body.
    pub body: BodyFn,
    /// What runs its pieces, if it declares any.
    pub pieces: Option<PieceFunctions>,
}

/// The procedures of an engine, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct ProcedureTable {
    procedures: Vec<ProcedureDefinition>,
    /// What is known of the types of each, in words.
    types: Vec<String>,
    by_name: HashMap<&'static str, u16>,
}

impl ProcedureTable {
    /// No procedures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a procedure and returns its number.
    ///
    /// # Panics
    /// If the name is taken: two procedures of one name are a mistake of the program.
    pub fn add(&mut self, procedure: ProcedureDefinition) -> u16 {
        self.add_typed(procedure, String::new())
    }

    /// As [`ProcedureTable::add`], with the types of arguments and answer in words. A log is
    /// replayed only where they are the same as when it was written.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn add_typed(&mut self, procedure: ProcedureDefinition, types: String) -> u16 {
        let number = self.procedures.len() as u16;
        let before = self.by_name.insert(procedure.name, number);
        assert!(before.is_none(), "procedure {:?} is registered twice", procedure.name);
        self.procedures.push(procedure);
        self.types.push(types);
        number
    }

    /// Adds a procedure of another table, and returns its number.
    pub(crate) fn take_from(&mut self, other: &Self, number: u16) -> u16 {
        let number = usize::from(number);
        self.add_typed(other.procedures[number].clone(), other.types[number].clone())
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

    /// Name and types of each, in the order of their numbers.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.procedures.iter().map(|p| p.name).zip(self.types.iter().map(String::as_str))
    }

    /// Whether any of them draws from sequences.
    pub(crate) fn draws(&self) -> bool {
        self.procedures.iter().any(|procedure| procedure.draws.is_some())
    }

    pub(crate) fn get(&self, number: u16) -> Option<&ProcedureDefinition> {
        self.procedures.get(number as usize)
    }
}
