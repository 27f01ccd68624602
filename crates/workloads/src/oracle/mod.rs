//! The serial oracle: what a deterministic engine must come to, computed the plain way.
//!
//! One epoch, in this order:
//!
//! 0. The transactions that an epoch before deferred, one by one: each allocates, declares and runs
//!    on the state as it is.
//! 1. The allocations of the others, in serial order. Lookups see the state at the end of the
//!    previous epoch. A transaction that aborts here allocates nothing.
//! 2. The write sets of these, against the state before step 0.
//! 3. The bodies, one by one. First everything that the transaction looked up in 1 and 2 is looked
//!    up again; if anything differs it is answered `Deferred` and writes nothing (what it drew
//!    is lost). Then, if it aborted in 1 or 2, that is its answer. Else its body runs on the state
//!    as it is; an error undoes its writes.
//!
//! Writes must be declared: an insert needs a declared insert; an update or delete of a row that
//! exists needs any declaration of the key, or a range around it. An undeclared write defers the
//! transaction; one with pieces fails. The caller feeds deferred calls at the front of the next
//! epoch, in order.

mod chains;
mod declaring;
mod running;
mod state;

use std::collections::{BTreeMap, HashMap};

use crate::api::{
    Answer, IndexKind, PieceResult, Procedure, ProcedureId, Register, TableId, TableSpec, View,
    Workload,
};
use chains::Chains;
use declaring::{Declaration, Declaring, Wanted};
use running::{PieceRunning, Running, Written};
use state::{Error, Lookup, Rows, State};

/// What became of a transaction; [`Answer`] with its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OracleAnswer {
    /// Committed, with its output.
    Committed(Vec<u8>),
    /// Aborted on purpose with this code.
    Aborted(u32),
    /// A lookup did not hold, or it wrote what it had not declared; it runs first in the next
    /// epoch.
    Deferred,
    /// It used a table in a way that its kind does not allow.
    Failed,
}

impl OracleAnswer {
    /// The same as the API's answer.
    #[must_use]
    pub fn as_answer(&self) -> Answer<'_> {
        match self {
            Self::Committed(output) => Answer::Committed(output),
            Self::Aborted(code) => Answer::Aborted(*code),
            Self::Deferred => Answer::Deferred,
            Self::Failed => Answer::Failed,
        }
    }
}

impl From<Error> for OracleAnswer {
    fn from(error: Error) -> Self {
        match error {
            Error::Abort(code) => Self::Aborted(code),
            Error::Deferred => Self::Deferred,
            Error::Broken => Self::Failed,
        }
    }
}

/// Runs a piece.
type PieceFn = fn(&[u8], usize, &mut PieceRunning<'_>) -> Result<PieceResult, Error>;

struct Entry {
    sequences: fn(&[u8], &mut Declaring<'_>) -> Result<(), Error>,
    write_set: fn(&[u8], &mut Declaring<'_>) -> Result<(), Error>,
    run: fn(&[u8], &mut Running<'_>) -> Result<(), Error>,
    piece: PieceFn,
    finish: fn(&[u8], &mut dyn Iterator<Item = PieceResult>, &mut Vec<u8>),
}

#[derive(Default)]
struct Entries(Vec<Entry>);

impl Register for Entries {
    fn procedure<P: Procedure>(&mut self) {
        self.0.push(Entry {
            sequences: |args, declaring| {
                if P::SEQUENCES { P::sequences(args, declaring) } else { Ok(()) }
            },
            write_set: |args, declaring| P::write_set(args, declaring),
            run: |args, tx| P::run(args, tx),
            piece: |args, number, piece| P::piece(args, number, piece),
            finish: P::finish,
        });
    }
}

/// A state and the procedures that change it, one transaction at a time.
pub struct Oracle {
    state: State,
    procedures: Vec<Entry>,
    chains: Option<Chains>,
    /// What rows were before the deferred calls of this epoch wrote them.
    before: Vec<Written>,
    commit_points: u64,
}

impl Oracle {
    /// An empty database for a workload.
    #[must_use]
    pub fn new<W: Workload>(workload: &W) -> Self {
        let specs: Vec<TableSpec> = workload.tables();
        let mut entries = Entries::default();
        workload.register(&mut entries);
        let state = State {
            kinds: specs.iter().map(|spec| spec.index).collect(),
            tables: vec![Rows::new(); specs.len()],
            sequences: vec![BTreeMap::new(); specs.len()],
            starts: HashMap::new(),
        };
        Self { state, procedures: entries.0, chains: None, before: Vec::new(), commit_points: 0 }
    }

    /// How many calls have passed a commit point, of all epochs.
    #[must_use]
    pub fn commit_points(&self) -> u64 {
        self.commit_points
    }

    /// From now on finds out how far the calls of an epoch depend on one another.
    pub fn watch_chains(&mut self) {
        self.chains = Some(Chains::new(self.state.tables.len()));
    }

    /// Calls in the longest chain of the last epoch in which each needs what the one before left;
    /// 0 if they are not watched.
    #[must_use]
    pub fn longest_chain(&self) -> u64 {
        self.chains.as_ref().map_or(0, Chains::longest)
    }

    /// A database with the workload's data in it.
    ///
    /// # Panics
    /// If a loading transaction does not commit.
    #[must_use]
    pub fn loaded<W: Workload>(workload: &W) -> Self {
        let mut oracle = Self::new(workload);
        for i in 0..workload.load_count() {
            let mut args = Vec::new();
            let procedure = workload.load(i, &mut args);
            let answers = oracle.run_epoch(&[(procedure, &args)], 0);
            assert!(
                matches!(answers[0], OracleAnswer::Committed(_)),
                "loading transaction {i} came to {:?}",
                answers[0]
            );
        }
        oracle
    }

    /// Runs one epoch of calls in serial order, of which the first `deferred` were deferred by the
    /// epoch before; one answer for each.
    ///
    /// # Panics
    /// If a procedure number is not registered, a body panics, or one fails after its commit point.
    pub fn run_epoch(
        &mut self,
        calls: &[(ProcedureId, &[u8])],
        deferred: usize,
    ) -> Vec<OracleAnswer> {
        self.state.starts.clear();
        if let Some(chains) = &mut self.chains {
            chains.clear();
        }
        let (deferred, calls) = calls.split_at(deferred);
        let mut answers = Vec::new();
        for &(procedure, args) in deferred {
            let mut declaration = self.allocate(procedure, args);
            self.declare(procedure, args, &mut declaration);
            declaration.lookups.clear();
            answers.push(self.execute(procedure, args, declaration, true));
        }
        // Lookups of the others see the state before.
        let before = std::mem::take(&mut self.before);
        let now = self.put_back(before);
        let mut declarations: Vec<Declaration> =
            calls.iter().map(|&(procedure, args)| self.allocate(procedure, args)).collect();
        for (&(procedure, args), declaration) in calls.iter().zip(&mut declarations) {
            self.declare(procedure, args, declaration);
        }
        self.put_back(now);
        for (&(procedure, args), declaration) in calls.iter().zip(declarations) {
            answers.push(self.execute(procedure, args, declaration, false));
        }
        answers
    }

    /// Runs one epoch whose calls allocate and declare in the order in which they are given, and
    /// whose bodies run in another: `order` has the number of each call once. One answer for each
    /// call, as they are given.
    ///
    /// # Panics
    /// As [`Self::run_epoch`], and if `order` is not what it must be.
    pub fn run_epoch_in(
        &mut self,
        calls: &[(ProcedureId, &[u8])],
        order: &[usize],
    ) -> Vec<OracleAnswer> {
        self.state.starts.clear();
        if let Some(chains) = &mut self.chains {
            chains.clear();
        }
        let mut declarations: Vec<Declaration> =
            calls.iter().map(|call| self.allocate(call.0, call.1)).collect();
        for (call, declaration) in calls.iter().zip(&mut declarations) {
            self.declare(call.0, call.1, declaration);
        }
        let mut declarations: Vec<_> = declarations.into_iter().map(Some).collect();
        let mut answers: Vec<_> = calls.iter().map(|_| OracleAnswer::Failed).collect();
        assert_eq!(order.len(), calls.len(), "each call has one place");
        for &number in order {
            let declaration = declarations[number].take().expect("each call has one place");
            let (procedure, args) = calls[number];
            answers[number] = self.execute(procedure, args, declaration, false);
        }
        answers
    }

    /// Puts what rows were before some writes in their place, last write first; returns what they
    /// were until now.
    fn put_back(&mut self, writes: Vec<Written>) -> Vec<Written> {
        let mut until_now = Vec::new();
        for (table, key, value) in writes.into_iter().rev() {
            let rows = &mut self.state.tables[usize::from(table.0)];
            let replaced = match value {
                Some(value) => rows.insert(key.clone(), value),
                None => rows.remove(&key),
            };
            until_now.push((table, key, replaced));
        }
        until_now
    }

    /// Writes a row, or a sequence's next number (8 little-endian bytes), past every rule; `None`
    /// removes it. For planting errors that a check must find.
    ///
    /// # Panics
    /// If a sequence is given something else than 8 bytes.
    pub fn plant(&mut self, table: TableId, key: &[u8], value: Option<&[u8]>) {
        let index = usize::from(table.0);
        if self.state.kinds[index] != IndexKind::Sequence {
            match value {
                Some(value) => self.state.tables[index].insert(key.to_vec(), value.to_vec()),
                None => self.state.tables[index].remove(key),
            };
            return;
        }
        let sequences = &mut self.state.sequences[index];
        match value {
            Some(value) => {
                let next = value.try_into().expect("a sequence's value has 8 bytes");
                sequences.insert(key.to_vec(), u64::from_le_bytes(next));
            }
            None => drop(sequences.remove(key)),
        }
    }

    fn allocate(&mut self, procedure: ProcedureId, args: &[u8]) -> Declaration {
        let entry = &self.procedures[usize::from(procedure)];
        let mut declaring = Declaring { state: &self.state, declaration: Declaration::default() };
        let result = (entry.sequences)(args, &mut declaring);
        let mut declaration = declaring.declaration;
        if let Err(error) = result {
            declaration.outcome = Some(error);
            return declaration;
        }
        for Wanted { table, key, peek } in &declaration.wanted {
            if self.state.kinds[usize::from(table.0)] != IndexKind::Sequence {
                declaration.outcome = Some(Error::Broken);
                break;
            }
            let numbers = &mut self.state.sequences[usize::from(table.0)];
            if *peek {
                declaration.allocation.push(numbers.get(key).copied().unwrap_or(0));
                continue;
            }
            let next = numbers.entry(key.clone()).or_insert(0);
            self.state.starts.entry((*table, key.clone())).or_insert(*next);
            declaration.allocation.push(*next);
            *next += 1;
        }
        declaration
    }

    fn declare(&self, procedure: ProcedureId, args: &[u8], declaration: &mut Declaration) {
        if declaration.outcome.is_some() {
            return;
        }
        let entry = &self.procedures[usize::from(procedure)];
        let mut declaring =
            Declaring { state: &self.state, declaration: std::mem::take(declaration) };
        let result = (entry.write_set)(args, &mut declaring);
        *declaration = declaring.declaration;
        declaration.keys.close();
        declaration.outcome = result.err();
    }

    /// A call that wrote nothing ends.
    fn end_in_chain(&mut self, declaration: &Declaration) {
        if let Some(chains) = &mut self.chains {
            chains.end(&declaration.keys, std::iter::empty());
        }
    }

    fn execute(
        &mut self,
        procedure: ProcedureId,
        args: &[u8],
        declaration: Declaration,
        is_serial: bool,
    ) -> OracleAnswer {
        if let Some(chains) = &mut self.chains {
            declaration.lookups.iter().for_each(|lookup| read_again(chains, lookup));
        }
        if !declaration.lookups.iter().all(|lookup| self.state.still_holds(lookup)) {
            self.end_in_chain(&declaration);
            return OracleAnswer::Deferred;
        }
        if let Some(error) = declaration.outcome {
            return error.into();
        }
        let &Entry { run, piece, finish, .. } = &self.procedures[usize::from(procedure)];
        let mut running = Running {
            state: &mut self.state,
            declaration: &declaration,
            is_serial,
            chains: self.chains.as_mut(),
            undo: Vec::new(),
            is_past_commit_point: false,
            output: Vec::new(),
        };
        let ended = run(args, &mut running);
        self.commit_points += u64::from(running.is_past_commit_point);
        match ended {
            Ok(()) => {
                let written = running.undo.iter().map(|(table, key, _)| (*table, key.as_slice()));
                if let Some(chains) = &mut running.chains {
                    chains.end(&declaration.keys, written);
                }
                let Running { mut output, undo, .. } = running;
                if is_serial {
                    self.before.extend(undo);
                }
                let results = self.run_pieces(piece, args, &declaration, is_serial);
                finish(args, &mut results.iter().map(|result| result.0), &mut output);
                OracleAnswer::Committed(output)
            }
            Err(error) => {
                assert!(
                    !running.is_past_commit_point,
                    "procedure {procedure} ended after its commit point without committing"
                );
                running.roll_back();
                self.end_in_chain(&declaration);
                error.into()
            }
        }
    }
}

impl Oracle {
    /// Runs the pieces of a transaction whose body has committed; what they came to, and how long
    /// their chains are.
    fn run_pieces(
        &mut self,
        piece: PieceFn,
        args: &[u8],
        declaration: &Declaration,
        is_serial: bool,
    ) -> Vec<(PieceResult, u64)> {
        let mut results = Vec::new();
        for (number, own) in declaration.pieces.iter().enumerate() {
            if let Some(chains) = &mut self.chains {
                chains.begin_piece();
                chains.read(own.keys[0].0, &own.keys[0].1);
            }
            let mut running = PieceRunning {
                state: &mut self.state,
                declaration,
                before: &results,
                chains: self.chains.as_mut(),
                undo: Vec::new(),
            };
            let result = piece(args, number, &mut running);
            let result = result.unwrap_or_else(|_| panic!("piece {number} failed"));
            let PieceRunning { chains, undo, .. } = running;
            let declared = own.keys.iter().map(|(table, key, _)| (*table, key.as_slice()));
            let written = undo.iter().map(|(table, key, _)| (*table, key.as_slice()));
            let length = chains.map_or(0, |chains| chains.end_piece(declared.chain(written)));
            results.push((result, length));
            if is_serial {
                self.before.extend(undo);
            }
        }
        results
    }
}

/// A call reads once more what it read to declare.
fn read_again(chains: &mut Chains, lookup: &Lookup) {
    match lookup {
        Lookup::Row { table, key, .. } => chains.read(*table, key),
        Lookup::Scan { table, visited, .. } => {
            visited.iter().for_each(|(key, _)| chains.read(*table, key));
        }
    }
}

impl View for Oracle {
    fn get(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        let index = usize::from(table.0);
        if self.state.kinds[index] == IndexKind::Sequence {
            return Some(self.state.sequences[index].get(key)?.to_le_bytes().to_vec());
        }
        self.state.tables[index].get(key).cloned()
    }

    fn for_each(&self, table: TableId, each: &mut dyn FnMut(&[u8], &[u8])) {
        let index = usize::from(table.0);
        for (key, next) in &self.state.sequences[index] {
            each(key, &next.to_le_bytes());
        }
        for (key, value) in &self.state.tables[index] {
            each(key, value);
        }
    }
}
