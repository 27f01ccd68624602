//! A transaction that allocates and declares, on the state at the end of the previous epoch.

use crate::api::{Allocate, Declare, IndexKind, TableId, Visit};
use crate::oracle::state::{Between, Error, Lookup, State};

/// The declared keys of one transaction, end to end in one buffer: an epoch keeps those of all its
/// transactions, and millions of small allocations would cost more than running them.
#[derive(Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    entries: Vec<KeyEntry>,
}

struct KeyEntry {
    table: TableId,
    insert: bool,
    start: u32,
    end: u32,
}

impl Keys {
    pub(super) fn add(&mut self, table: TableId, key: &[u8], insert: bool) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.entries.push(KeyEntry { table, insert, start, end: self.bytes.len() as u32 });
    }

    /// Sorts the keys, so that they can be found.
    pub(super) fn close(&mut self) {
        let bytes = &self.bytes;
        self.entries.sort_unstable_by(|a, b| a.place(bytes).cmp(&b.place(bytes)));
        self.entries.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TableId, &[u8])> {
        self.entries.iter().map(|entry| entry.place(&self.bytes))
    }

    /// Whether a key was declared, and if so, whether as an insert.
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Option<bool> {
        let wanted = (table, key);
        let first = self.entries.partition_point(|entry| entry.place(&self.bytes) < wanted);
        let same = self.entries[first..].iter().take_while(|e| e.place(&self.bytes) == wanted);
        same.map(|entry| entry.insert).reduce(|one, other| one || other)
    }
}

impl KeyEntry {
    fn place<'a>(&self, bytes: &'a [u8]) -> (TableId, &'a [u8]) {
        (self.table, &bytes[self.start as usize..self.end as usize])
    }
}

/// A number that a transaction allocates from a sequence, or only looks at.
pub(super) struct Wanted {
    pub(super) table: TableId,
    pub(super) key: Vec<u8>,
    pub(super) peek: bool,
}

/// The keys of a table from `low` on, below `high`.
pub(super) struct KeyRange {
    table: TableId,
    low: Vec<u8>,
    high: Vec<u8>,
}

impl KeyRange {
    fn new(table: TableId, low: &[u8], high: &[u8]) -> Self {
        Self { table, low: low.to_vec(), high: high.to_vec() }
    }

    /// Whether a key is in the range.
    pub(super) fn covers(&self, table: TableId, key: &[u8]) -> bool {
        self.table == table && self.low.as_slice() <= key && key < self.high.as_slice()
    }
}

/// What a piece of a transaction may write, and nothing else of it.
#[derive(Default)]
pub(super) struct DeclaredPiece {
    /// Its keys, the one that may be contended first, and whether they may be inserted.
    pub(super) keys: Vec<(TableId, Vec<u8>, bool)>,
    pub(super) ranges: Vec<KeyRange>,
}

/// What one transaction has declared.
#[derive(Default)]
pub(super) struct Declaration {
    pub(super) wanted: Vec<Wanted>,
    pub(super) allocation: Vec<u64>,
    pub(super) lookups: Vec<Lookup>,
    pub(super) keys: Keys,
    pub(super) ranges: Vec<KeyRange>,
    pub(super) pieces: Vec<DeclaredPiece>,
    pub(super) outcome: Option<Error>,
}

impl Declaration {
    /// Whether the body or a piece may write a row.
    pub(super) fn writes(&self, table: TableId, key: &[u8]) -> bool {
        let of_pieces = |piece: &DeclaredPiece| {
            piece.keys.iter().any(|own| own.0 == table && own.1 == key)
                || piece.ranges.iter().any(|range| range.covers(table, key))
        };
        self.keys.get(table, key).is_some()
            || self.ranges.iter().any(|range| range.covers(table, key))
            || self.pieces.iter().any(of_pieces)
    }
}

/// A transaction that declares; also one that allocates, because both read the same state.
pub(super) struct Declaring<'a> {
    pub(super) state: &'a State,
    pub(super) declaration: Declaration,
}

impl<'a> Declaring<'a> {
    fn last_piece(&mut self) -> &mut DeclaredPiece {
        self.declaration.pieces.last_mut().expect("a piece was declared")
    }

    fn look_up(&mut self, table: TableId, key: &[u8]) -> Result<Option<&'a [u8]>, Error> {
        if self.state.kinds[usize::from(table.0)] == IndexKind::Sequence {
            return Err(Error::Broken);
        }
        let value = self.state.rows(table).get(key);
        let lookup = Lookup::Row { table, key: key.to_vec(), value: value.cloned() };
        self.declaration.lookups.push(lookup);
        Ok(value.map(Vec::as_slice))
    }
}

impl Allocate for Declaring<'_> {
    type Error = Error;

    fn allocate(&mut self, table: TableId, key: &[u8]) {
        self.declaration.wanted.push(Wanted { table, key: key.to_vec(), peek: false });
    }

    fn peek(&mut self, table: TableId, key: &[u8]) {
        self.declaration.wanted.push(Wanted { table, key: key.to_vec(), peek: true });
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.look_up(table, key)
    }
}

impl Declare for Declaring<'_> {
    type Error = Error;

    fn insert(&mut self, table: TableId, key: &[u8]) {
        self.declaration.keys.add(table, key, true);
    }

    fn update(&mut self, table: TableId, key: &[u8]) {
        self.declaration.keys.add(table, key, false);
    }

    fn delete(&mut self, table: TableId, key: &[u8]) {
        Declare::update(self, table, key);
    }

    fn update_piece(&mut self, table: TableId, key: &[u8], _: u32) {
        let keys = vec![(table, key.to_vec(), false)];
        self.declaration.pieces.push(DeclaredPiece { keys, ranges: Vec::new() });
    }

    fn insert_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.last_piece().keys.push((table, key.to_vec(), true));
    }

    fn update_in_piece(&mut self, table: TableId, key: &[u8]) {
        self.last_piece().keys.push((table, key.to_vec(), false));
    }

    fn update_range_in_piece(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.last_piece().ranges.push(KeyRange::new(table, low, high));
    }

    fn update_range(&mut self, table: TableId, low: &[u8], high: &[u8]) {
        self.declaration.ranges.push(KeyRange::new(table, low, high));
    }

    fn will_read(&mut self, _: TableId, _: &[u8]) {}

    fn sequence_number(&self, i: usize) -> u64 {
        self.declaration.allocation[i]
    }

    fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        self.state.sequence_start(table, key)
    }

    fn lookup(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.look_up(table, key)
    }

    fn lookup_scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        each: Visit<'_>,
    ) -> Result<(), Error> {
        let mut visited = Vec::new();
        let mut stopped = false;
        self.state.scan(table, Between { low, high }, false, &mut |key, value| {
            visited.push((key.to_vec(), value.to_vec()));
            let flow = each(key, value);
            stopped = flow.is_break();
            flow
        })?;
        let (low, high) = (low.to_vec(), high.to_vec());
        self.declaration.lookups.push(Lookup::Scan { table, low, high, visited, stopped });
        Ok(())
    }
}
