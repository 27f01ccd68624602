//! What the calls of an epoch access, from their own declarations. A recorder answers look-ups with
//! nothing and ranges with no rows, so calls that depend on them seem to do less than they do.

use std::collections::HashMap;

use workloads::{Abort, Allocate, Declare, Procedure, ProcedureId, Register, TableId, Visit};
use workloads::{TableSpec, Workload};

/// Bytes of a cache line.
const LINE_BYTES: u32 = 64;

/// One row that a call accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Number of the row among those that are accessed.
    pub(crate) row: u32,
    /// What partitions divide rows by.
    pub(crate) home: u64,
    /// Lines of its value.
    pub(crate) lines: u32,
    pub(crate) kind: Kind,
    /// The row of the piece that it belongs to.
    pub(crate) of_piece: Option<u32>,
}

/// How a row is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// Reads the version before, too.
    Update,
    /// An update that may run apart from its call, with all accesses of its piece.
    Piece,
    Insert,
}

impl Access {
    pub(super) fn writes(&self) -> bool {
        self.kind != Kind::Read
    }
}

/// The calls of an epoch, in serial order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) calls: Vec<Vec<Access>>,
    /// Rows that are accessed.
    pub(crate) rows: usize,
}

impl Shape {
    pub(super) fn accesses(&self) -> usize {
        self.calls.iter().map(Vec::len).sum()
    }

    /// The same calls as CA 5.4 cuts them: each update of a row runs apart from its call.
    pub(super) fn cut(mut self) -> Self {
        for access in self.calls.iter_mut().flatten() {
            if access.kind == Kind::Update && access.of_piece.is_none() {
                access.kind = Kind::Piece;
                access.of_piece = Some(access.row);
            }
        }
        self
    }

    /// The same calls with all updates in their bodies.
    pub(super) fn whole(mut self) -> Self {
        for access in self.calls.iter_mut().flatten() {
            if access.kind == Kind::Piece {
                access.kind = Kind::Update;
            }
            access.of_piece = None;
        }
        self
    }

    /// How many accesses the longest path has, on which each begins when the one before has ended:
    /// those of a call one after the other, and behind what they need; those of a piece behind its
    /// call and the versions before. That a piece may need what another came to is left out.
    pub(super) fn longest_path(&self) -> usize {
        let mut of_rows = vec![0_usize; self.rows];
        for accesses in &self.calls {
            let end = step(&mut of_rows, accesses, None, 0);
            for piece in accesses.iter().filter(|access| access.kind == Kind::Piece) {
                step(&mut of_rows, accesses, Some(piece.row), end);
            }
        }
        of_rows.into_iter().max().unwrap_or(0)
    }

    /// How often each row is written.
    pub(super) fn versions(&self) -> Vec<u32> {
        let mut versions = vec![0; self.rows];
        for access in self.calls.iter().flatten().filter(|access| access.writes()) {
            versions[access.row as usize] += 1;
        }
        versions
    }
}

/// The accesses of a body, or of the piece of a row, come behind what they need, one after the
/// other, from a place of the path on; where the last one is. `of_rows` has where rows were written
/// last.
fn step(of_rows: &mut [usize], accesses: &[Access], of_piece: Option<u32>, from: usize) -> usize {
    let own = || accesses.iter().filter(|access| access.of_piece == of_piece);
    let needed = own().filter(|access| access.kind != Kind::Insert);
    let begin = needed.map(|access| of_rows[access.row as usize]).fold(from, usize::max);
    let end = begin + own().count();
    own().filter(|access| access.writes()).for_each(|access| of_rows[access.row as usize] = end);
    end
}

type WriteSet = fn(&[u8], &mut Recording<'_, '_>) -> Result<(), Abort>;
type Numbers = fn(&[u8], &mut Recording<'_, '_>) -> Result<(), Abort>;

/// The declarations of a workload's procedures.
#[derive(Default)]
struct Procedures(Vec<(Numbers, WriteSet)>);

impl Register for Procedures {
    fn procedure<P: Procedure>(&mut self) {
        self.0.push((
            |args, recording| P::sequences(args, recording),
            |args, recording| P::write_set(args, recording),
        ));
    }
}

/// Records the calls of an epoch.
pub(crate) struct Recorder<'w> {
    workload: &'w dyn Workload,
    tables: Vec<TableSpec>,
    procedures: Procedures,
    rows: HashMap<(TableId, Vec<u8>), u32>,
    next: HashMap<(TableId, Vec<u8>), u64>,
    calls: Vec<Vec<Access>>,
}

impl<'w> Recorder<'w> {
    pub(crate) fn new<W: Workload>(workload: &'w W) -> Self {
        let mut procedures = Procedures::default();
        workload.register(&mut procedures);
        Self {
            workload,
            tables: workload.tables(),
            procedures,
            rows: HashMap::new(),
            next: HashMap::new(),
            calls: Vec::new(),
        }
    }

    /// Records the next call. One that gives up accesses nothing.
    pub(crate) fn call(&mut self, procedure: ProcedureId, args: &[u8]) {
        let (numbers, write_set) = self.procedures.0[usize::from(procedure)];
        let mut recording = Recording {
            recorder: self,
            numbers: Vec::new(),
            accesses: Vec::new(),
            last_piece: None,
        };
        let declared = numbers(args, &mut recording).and_then(|()| write_set(args, &mut recording));
        let accesses = recording.accesses;
        self.calls.push(declared.map_or_else(|_| Vec::new(), |()| accesses));
    }

    pub(crate) fn shape(self) -> Shape {
        Shape { calls: self.calls, rows: self.rows.len() }
    }

    fn row(&mut self, table: TableId, key: &[u8]) -> u32 {
        let next = self.rows.len() as u32;
        *self.rows.entry((table, key.to_vec())).or_insert(next)
    }
}

/// One call that declares.
struct Recording<'r, 'w> {
    recorder: &'r mut Recorder<'w>,
    numbers: Vec<u64>,
    accesses: Vec<Access>,
    /// The row of the piece that was declared last.
    last_piece: Option<u32>,
}

impl Recording<'_, '_> {
    /// A row that is declared twice is accessed once, in the way that does most.
    fn add(&mut self, table: TableId, key: &[u8], kind: Kind) {
        self.add_of(table, key, kind, None);
    }

    /// The same of an access that may belong to the piece of a row.
    fn add_of(&mut self, table: TableId, key: &[u8], kind: Kind, of_piece: Option<u32>) {
        let row = self.recorder.row(table, key);
        if let Some(known) = self.accesses.iter_mut().find(|access| access.row == row) {
            if known.kind == Kind::Read {
                (known.kind, known.of_piece) = (kind, of_piece);
            }
            return;
        }
        let spec = &self.recorder.tables[usize::from(table.0)];
        let lines = spec.value_bytes_max.div_ceil(LINE_BYTES).max(1);
        let home = self.recorder.workload.home(table, key);
        self.accesses.push(Access { row, home, lines, kind, of_piece });
    }
}

impl Allocate for Recording<'_, '_> {
    type Error = Abort;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        let next = self.recorder.next.entry((table, key.to_vec())).or_default();
        self.numbers.push(*next);
        *next += 1;
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        let next = self.recorder.next.get(&(table, key.to_vec()));
        self.numbers.push(next.copied().unwrap_or(0));
    }

    fn lookup(&mut self, _: TableId, _: &[u8]) -> Result<Option<&[u8]>, Abort> {
        Ok(None)
    }
}

impl Declare for Recording<'_, '_> {
    type Error = Abort;

    fn insert(&mut self, table: TableId, key: &[u8]) {
        self.add(table, key, Kind::Insert);
    }

    fn update(&mut self, table: TableId, key: &[u8]) {
        self.add(table, key, Kind::Update);
    }

    fn delete(&mut self, table: TableId, key: &[u8]) {
        self.add(table, key, Kind::Update);
    }

    fn update_piece(&mut self, table: TableId, key: &[u8], _: u32) {
        let row = self.recorder.row(table, key);
        self.last_piece = Some(row);
        self.add_of(table, key, Kind::Piece, Some(row));
    }

    fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.add_of(table, key, Kind::Insert, self.last_piece);
    }

    fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.add_of(table, key, Kind::Update, self.last_piece);
    }

    fn update_range_in_piece(&mut self, _: TableId, _: &[u8], _: &[u8]) {}

    fn update_range(&mut self, _: TableId, _: &[u8], _: &[u8]) {}

    fn will_read(&mut self, table: TableId, key: &[u8]) {
        self.add(table, key, Kind::Read);
    }

    fn sequence_number(&self, i: usize) -> u64 {
        self.numbers[i]
    }

    fn sequence_start(&self, _: TableId, _: &[u8]) -> u64 {
        0
    }

    fn lookup(&mut self, _: TableId, _: &[u8]) -> Result<Option<&[u8]>, Abort> {
        Ok(None)
    }

    fn lookup_scan(&mut self, _: TableId, _: &[u8], _: &[u8], _: Visit<'_>) -> Result<(), Abort> {
        Ok(())
    }
}
