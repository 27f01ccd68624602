//! What a running call does with rows: reads the state before the round and its own writes, which
//! stay in the log.

use std::ops::Range;

use workloads::{TableId, Visit, Workload};
use zerocopy::IntoBytes;

use super::super::engine::Batch;
use super::super::footprint::{Mode, Target};
use super::super::rows::{Pool, RowId};
use super::super::tables::{KeyRange, Tables};
use super::log::{Log, Start, Write};
use crate::error::Result;
use crate::index::Found;
use crate::rival::{Accesses, Stop, change_part};
use crate::run::procedure::Outcome;

/// See the module's documentation. A conflict means that an index is full: it must grow, and the
/// call run again.
pub(super) struct Snapshot<'a> {
    pub(super) workload: &'a dyn Workload,
    pub(super) tables: &'a Tables,
    pub(super) worker: usize,
    pub(super) pool: &'a mut Pool,
    pub(super) log: &'a mut Log,
    /// The table whose rows stand for granules.
    pub(super) granules: TableId,
    start: Start,
    value: Vec<u64>,
    part: Vec<u8>,
    found: Found,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(
        batch: &Batch<'a>,
        granules: TableId,
        worker: usize,
        pool: &'a mut Pool,
        log: &'a mut Log,
    ) -> Self {
        Self {
            workload: batch.workload,
            tables: batch.tables,
            worker,
            pool,
            log,
            granules,
            start: Start::default(),
            value: Vec::new(),
            part: Vec::new(),
            found: Found::default(),
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self) {
        self.start = self.log.start();
    }

    /// The call will run again, as if it had not run.
    pub(super) fn forget(&mut self) {
        self.log.noted.truncate(self.start.noted);
        self.log.writes.truncate(self.start.writes);
    }

    /// The call ends.
    pub(super) fn end(&mut self, call: usize, outcome: Outcome, output: &[u8]) {
        self.log.end(call, self.start, outcome, output);
    }

    /// The row of a key, which does not exist if there was none.
    fn row_of(&mut self, table: TableId, key: &[u8]) -> Result<RowId, Stop> {
        let row = self.tables.find_or_insert(table, key, self.worker, self.pool)?;
        row.map(|(row, _)| row).ok_or(Stop::Conflict)
    }

    fn note(&mut self, row: RowId, mode: Mode) {
        self.log.note(self.start.noted, Target(row.0), mode, row);
    }

    /// Notes that the granule of a key is scanned or touched.
    fn note_granule(&mut self, table: TableId, key: &[u8], mode: Mode) -> Result<(), Stop> {
        let target = Target::of_granule(table, self.workload.home(table, key));
        let row = self.row_of(self.granules, &target.0.to_be_bytes())?;
        self.log.note(self.start.noted, target, mode, row);
        Ok(())
    }

    /// The call's own write of a row.
    fn own(&self, row: RowId) -> Option<Write> {
        self.log.writes[self.start.writes..].iter().find(|write| write.row == row).copied()
    }

    /// Copies the value that the call sees into `value`: its length, `None` if there is no row.
    fn copy(&mut self, row: RowId) -> Option<usize> {
        self.value.clear();
        match self.own(row) {
            None => self.tables.row(row).copy_value(&mut self.value),
            Some(Write { bytes, at, .. }) => {
                let words = at..at + bytes?.div_ceil(8);
                self.value.extend_from_slice(&self.log.words[words]);
                bytes
            }
        }
    }

    /// Reads a row: the row, and the length of its value if it exists.
    fn read(&mut self, table: TableId, key: &[u8]) -> Result<(RowId, Option<usize>), Stop> {
        let row = self.row_of(table, key)?;
        self.note(row, Mode::Read);
        Ok((row, self.copy(row)))
    }

    /// Writes the first bytes of `value` to a row; deletes it if there are none.
    fn write(&mut self, row: RowId, key: &[u8], bytes: Option<usize>) -> Result<(), Stop> {
        let table = row.table();
        self.note(row, Mode::Write);
        if self.tables.is_ordered(table) {
            self.note_granule(table, key, Mode::Touch)?;
        }
        let at = self.log.words.len();
        self.log.words.extend_from_slice(&self.value[..bytes.unwrap_or(0).div_ceil(8)]);
        let write = Write { row, bytes, at };
        let mut own = self.log.writes[self.start.writes..].iter_mut();
        match own.find(|written| written.row == row) {
            Some(written) => *written = write,
            None => self.log.writes.push(write),
        }
        Ok(())
    }

    /// Writes a whole value to a row.
    fn put(&mut self, row: RowId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.value.clear();
        self.value.resize(value.len().div_ceil(8), 0);
        self.value.as_mut_bytes()[..value.len()].copy_from_slice(value);
        self.write(row, key, Some(value.len()))
    }
}

impl Accesses for Snapshot<'_> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let (_, bytes) = self.read(table, key)?;
        Ok(bytes.map(|bytes| &self.value.as_bytes()[..bytes]))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low >= high {
            return Ok(());
        }
        self.note_granule(table, low, Mode::Scan)?;
        let (tables, mut found) = (self.tables, std::mem::take(&mut self.found));
        let range = KeyRange { low, high, descending };
        let ended = tables.range(table, range, &mut found, |key, row| {
            let Some(bytes) = self.copy(row) else { return Ok(true) };
            Ok(each(key, &self.value.as_bytes()[..bytes]).is_continue())
        });
        self.found = found;
        ended
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let row = self.row_of(table, key)?;
        self.put(row, key, value)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let (row, bytes) = self.read(table, key)?;
        if bytes.is_some() {
            self.put(row, key, value)?;
        }
        Ok(bytes.is_some())
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let (row, Some(bytes)) = self.read(table, key)? else { return Ok(false) };
        change(&mut self.value.as_mut_bytes()[..bytes]);
        self.write(row, key, Some(bytes))?;
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let (row, Some(bytes)) = self.read(table, key)? else { return Ok(false) };
        let old = &mut self.value.as_mut_bytes()[..bytes];
        change_part(old, part, &mut self.part, change)?;
        self.write(row, key, Some(bytes))?;
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let (row, bytes) = self.read(table, key)?;
        if bytes.is_some() {
            self.write(row, key, None)?;
        }
        Ok(bytes.is_some())
    }
}
