//! The versions of a batch: who deals them, who owns them, and what becomes of them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::declare::{Declared, Kind};
use super::super::engine::BatchCounts;
use super::super::rows::{Pool, RowId};
use super::super::tables::{KeyRange, Tables};
use super::store::{Array, Batched, Ending, Store};
use crate::error::{Error, Result};
use crate::index::{Found, Key};

/// What one worker's share of the calls may write.
#[derive(Debug)]
pub(super) struct Dealt {
    /// For each owner, in the order of the batch.
    of_owners: Vec<Vec<(RowId, u32)>>,
    /// For each call of the share, each row once.
    rows: Vec<RowId>,
    ends: Vec<usize>,
    found: Found,
}

/// The owner of a row.
pub(super) fn owner_of(row: RowId, owners: usize) -> usize {
    (row.0.mixed() >> 32) as usize % owners
}

impl Dealt {
    pub(super) fn new(owners: usize) -> Self {
        let of_owners = (0..owners).map(|_| Vec::new()).collect();
        Self { of_owners, rows: Vec::new(), ends: Vec::new(), found: Found::default() }
    }

    /// Deals the writes of a share, whose first call has number `first` in the batch.
    ///
    /// # Errors
    /// A range of writes in a table that is not ordered.
    pub(super) fn deal(
        &mut self,
        tables: &Tables,
        declared: &Declared,
        first: usize,
    ) -> Result<()> {
        self.of_owners.iter_mut().for_each(Vec::clear);
        self.rows.clear();
        self.ends.clear();
        for call in 0..declared.calls.len() {
            let start = self.rows.len();
            if declared.calls[call].aborted.is_none() {
                self.add_rows(tables, declared, call)?;
            }
            self.rows[start..].sort_unstable();
            let mut end = start;
            for i in start..self.rows.len() {
                if end == start || self.rows[i] != self.rows[end - 1] {
                    self.rows[end] = self.rows[i];
                    end += 1;
                }
            }
            self.rows.truncate(end);
            let owners = self.of_owners.len();
            for row in &self.rows[start..] {
                self.of_owners[owner_of(*row, owners)].push((*row, (first + call) as u32));
            }
            self.ends.push(end);
        }
        Ok(())
    }

    fn add_rows(&mut self, tables: &Tables, declared: &Declared, call: usize) -> Result<()> {
        let items = declared.items(call);
        items.iter().for_each(|item| tables.prefetch(item.table, declared.key(item)));
        for item in items {
            let (table, key) = (item.table, declared.key(item));
            match item.kind {
                Kind::Read | Kind::ReadRange => {}
                Kind::Write | Kind::Insert | Kind::Piece => {
                    self.rows.extend(tables.find(table, key));
                }
                Kind::WriteRange => {
                    let range = KeyRange { low: key, high: declared.high(item), descending: false };
                    tables.range(table, range, &mut self.found, |_, row| {
                        self.rows.push(row);
                        Ok::<_, Error>(true)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// What an owner was dealt.
    pub(super) fn of(&self, owner: usize) -> &[(RowId, u32)] {
        &self.of_owners[owner]
    }

    /// What a call of the share may write.
    pub(super) fn rows(&self, call: usize) -> &[RowId] {
        let start = call.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start..self.ends[call]]
    }

    /// Writes that were dealt.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// What a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Not written yet.
    Pending,
    /// Its call has ended and did not write it.
    Ignored,
    /// The row does not exist.
    Deleted,
    /// The value is in this row.
    Value(RowId),
}

impl Content {
    const FIRST_VALUE: u64 = 3;

    fn of(word: u64) -> Self {
        match word {
            0 => Self::Pending,
            1 => Self::Ignored,
            2 => Self::Deleted,
            row => Self::Value(RowId(row - Self::FIRST_VALUE)),
        }
    }

    fn word(self) -> u64 {
        match self {
            Self::Pending => 0,
            Self::Ignored => 1,
            Self::Deleted => 2,
            Self::Value(row) => row.0 + Self::FIRST_VALUE,
        }
    }
}

/// A version: the number of its call, and its content.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) call: u32,
    content: AtomicU64,
}

impl Version {
    /// A version that its call has not written yet.
    pub(super) fn pending(call: u32) -> Self {
        Self { call, content: AtomicU64::new(Content::Pending.word()) }
    }

    pub(super) fn content(&self) -> Content {
        Content::of(self.content.load(Ordering::Acquire))
    }

    /// Shows a version, once. A thread that sees it sees the row that it names.
    pub(super) fn show(&self, content: Content) {
        self.content.store(content.word(), Ordering::Release);
    }
}

/// Where the versions of a row are.
#[derive(Debug)]
struct Extent {
    row: RowId,
    /// The call of the last version that was counted or made.
    last: u32,
    start: u32,
    end: u32,
}

/// The versions of one owner's rows, which last for one batch.
#[derive(Debug, Default)]
pub(super) struct Versions {
    arrays: Vec<Extent>,
    versions: Vec<Version>,
}

impl Versions {
    /// The versions of an array.
    fn of(&self, array: usize) -> &[Version] {
        let Extent { start, end, .. } = self.arrays[array];
        &self.versions[start as usize..end as usize]
    }
}

impl Store for Versions {
    const NAME: &'static str = "bohm";
    const RUNS_PRODUCERS: bool = true;

    /// A row's first word says which array it has in which batch.
    fn make<'d, I: Iterator<Item = &'d (RowId, u32)>>(
        &mut self,
        batched: Batched<'_>,
        _: &mut Pool,
        _: &mut BatchCounts,
        writes: impl Fn() -> I,
    ) {
        let Batched { tables, batch } = batched;
        let Self { arrays, versions } = self;
        arrays.clear();
        for (row, _) in writes() {
            let word = tables.row(*row).engine(0);
            let number = match array_of(word, batch) {
                Some(number) => number,
                None => {
                    word.store(u64::from(batch) << 32 | arrays.len() as u64, Ordering::Relaxed);
                    arrays.push(Extent { row: *row, last: 0, start: 0, end: 0 });
                    arrays.len() - 1
                }
            };
            arrays[number].last += 1;
        }
        let mut start = 0;
        for array in &mut *arrays {
            (array.start, array.end) = (start, start);
            start += array.last;
        }
        versions.clear();
        versions.resize_with(start as usize, || Version::pending(0));
        for (row, call) in writes() {
            let number = array_of(tables.row(*row).engine(0), batch).expect("made above");
            let array = &mut arrays[number];
            versions[array.end as usize].call = *call;
            array.end += 1;
        }
    }

    /// Makes the last version of each row its value, and frees the others.
    fn end(&mut self, batched: Batched<'_>, pool: &mut Pool, _: &mut BatchCounts) {
        let tables = batched.tables;
        for (number, array) in self.arrays.iter().enumerate() {
            let (home, row) = (array.row, tables.row(array.row));
            let before = row.current(home.table());
            let written = self.of(number).iter().map(Version::content);
            let Some(last) = written.clone().rfind(|content| *content != Content::Ignored) else {
                continue;
            };
            let old = written.filter_map(|content| match content {
                Content::Value(value) if content != last => Some(value),
                _ => None,
            });
            old.for_each(|value| pool.give_back(value));
            if before != home {
                pool.give_back(before);
            }
            match last {
                Content::Value(value) => row.move_to(value),
                _ => {
                    row.set_absent();
                    row.move_to(home);
                }
            }
        }
    }
    fn array<'v>(owners: &'v [Self], batched: Batched<'_>, row: RowId) -> Array<'v> {
        let Batched { tables, batch } = batched;
        let versions = match array_of(tables.row(row).engine(0), batch) {
            Some(array) => owners[owner_of(row, owners.len())].of(array),
            None => &[],
        };
        Array { versions, initial: None }
    }

    fn ended(_: &[Self], _: RowId, _: Ending<'_>) -> Result<()> {
        Ok(())
    }
}

/// The array that a row's first word names, if it is of this batch.
pub(super) fn array_of(word: &AtomicU64, batch: u32) -> Option<usize> {
    let word = word.load(Ordering::Relaxed);
    (word >> 32 == u64::from(batch)).then_some(word as u32 as usize)
}
