//! Rows with one version that is changed where it lies: what a call does to them while no other
//! call is at the same rows, which is the business of the engine that runs it.
//!
//! The value before is kept until the call has come to its end, in case it gives up. What an engine
//! has arranged for a call is its footprint; an access outside of it is a mistake of the workload
//! and stops the engine.

use std::ops::Range;

use workloads::{TableId, Visit, Workload};
use zerocopy::IntoBytes;

use super::division::{Division, Parts};
use super::footprint::{Access, Mode, Target};
use super::rows::{Pool, RowId};
use super::tables::{KeyRange, Tables};
use crate::error::{Error, Result};
use crate::index::Found;
use crate::rival::{Accesses, Stop};
use crate::run::procedure::Outcome;

/// What a call may access.
#[derive(Clone, Copy)]
pub(super) enum Cover<'a> {
    /// Anything, and insert keys: no other call runs.
    All,
    /// What is in its footprint; the workload tells the homes of rows in granules.
    Footprint(&'a [Access], &'a dyn Workload),
    /// The same, of what the call accessed when it ran before: with anything else it is a conflict.
    Observed(&'a [Access], &'a dyn Workload),
    /// What is in these partitions, and what no call of the batch writes.
    Parts(&'a Division<'a>, Parts),
}

/// A row before it was changed.
#[derive(Debug)]
struct Old {
    row: RowId,
    /// Length of the value, `None` if the row did not exist.
    bytes: Option<usize>,
    at: usize,
}

/// Memory that one worker uses for one call after the other.
#[derive(Default)]
pub(super) struct Scratch {
    value: Vec<u64>,
    old: Vec<Old>,
    old_words: Vec<u64>,
    part: Vec<u8>,
    found: Found,
}

/// A running call's accesses. See the module's documentation.
pub(super) struct InPlace<'a> {
    pub(super) tables: &'a Tables,
    pub(super) cover: Cover<'a>,
    pub(super) pool: &'a mut Pool,
    pub(super) scratch: &'a mut Scratch,
}

impl Cover<'_> {
    /// Whether a row may be read.
    fn may_read(&self, row: RowId, table: TableId, key: &[u8]) -> bool {
        let (Self::Footprint(accesses, _) | Self::Observed(accesses, _)) = self else {
            return self.may_scan(table, key);
        };
        mode_of(accesses, Target(row.0)).is_some() || self.may_scan(table, key)
    }

    /// Whether all rows with the home of a key may be read.
    fn may_scan(&self, table: TableId, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Footprint(accesses, workload) | Self::Observed(accesses, workload) => {
                let granule = Target::of_granule(table, workload.home(table, key));
                matches!(mode_of(accesses, granule), Some(Mode::Scan | Mode::Write))
            }
            Self::Parts(division, parts) => division.may_read(*parts, table, key),
        }
    }

    /// Whether a row may be written.
    fn may_write(&self, row: RowId, table: TableId, key: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Footprint(accesses, _) | Self::Observed(accesses, _) => {
                mode_of(accesses, Target(row.0)) == Some(Mode::Write)
            }
            Self::Parts(division, parts) => division.may_write(*parts, table, key),
        }
    }
}

/// How a footprint accesses a target.
fn mode_of(accesses: &[Access], target: Target) -> Option<Mode> {
    let at = accesses.binary_search_by_key(&target, |access| access.target);
    at.ok().map(|at| accesses[at].mode)
}

impl InPlace<'_> {
    fn undeclared(&self, table: TableId, key: &[u8]) -> Stop {
        if let Cover::Observed(..) = self.cover {
            return Stop::Conflict;
        }
        let name = self.tables.name(table);
        Error::Broken(format!("key {key:02x?} of {name} is accessed and was not declared")).into()
    }

    /// The row of a key that is read.
    fn find(&self, table: TableId, key: &[u8]) -> Result<Option<RowId>, Stop> {
        let Some(row) = self.tables.find(table, key) else { return Ok(None) };
        match self.cover.may_read(row, table, key) {
            true => Ok(Some(row)),
            false => Err(self.undeclared(table, key)),
        }
    }

    /// The row of a key that is written if it exists.
    fn find_to_write(&self, table: TableId, key: &[u8]) -> Result<Option<RowId>, Stop> {
        let Some(row) = self.tables.find(table, key) else { return Ok(None) };
        if self.tables.row(row).value_bytes().is_none() {
            return self.find(table, key).map(|_| None);
        }
        self.check_write(row, table, key)?;
        Ok(Some(row))
    }

    fn check_write(&self, row: RowId, table: TableId, key: &[u8]) -> Result<(), Stop> {
        match self.cover.may_write(row, table, key) {
            true => Ok(()),
            false => Err(self.undeclared(table, key)),
        }
    }

    /// Keeps a row as it is now: where its words are.
    fn keep(&mut self, row: RowId) -> usize {
        let at = self.scratch.old_words.len();
        let bytes = self.tables.row(row).copy_value(&mut self.scratch.old_words);
        self.scratch.old.push(Old { row, bytes, at });
        at
    }

    /// The call ends: what it wrote stays.
    pub(super) fn commit(&mut self) {
        self.scratch.old.clear();
        self.scratch.old_words.clear();
    }

    /// The call ends: rows are as they were.
    pub(super) fn roll_back(&mut self) {
        for Old { row, bytes, at } in self.scratch.old.drain(..).rev() {
            match bytes {
                Some(bytes) => {
                    self.tables.row(row).set_whole(&self.scratch.old_words[at..], bytes);
                }
                None => self.tables.row(row).set_absent(),
            }
        }
        self.scratch.old_words.clear();
    }

    /// Ends a call as its body did: what becomes of it.
    ///
    /// # Errors
    /// The engine's failure. A conflict is none of a call that runs alone with its rows.
    pub(super) fn end(&mut self, ended: Result<(), Stop>) -> Result<Outcome> {
        match ended {
            Ok(()) => {
                self.commit();
                Ok(Outcome::Committed)
            }
            Err(Stop::Abort(code)) => {
                self.roll_back();
                Ok(Outcome::Aborted(code))
            }
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Conflict) => Err(Error::Broken("a call met a conflict".into())),
        }
    }
}

impl Accesses for InPlace<'_> {
    fn get(&mut self, table: TableId, key: &[u8]) -> Result<Option<&[u8]>, Stop> {
        let Some(row) = self.find(table, key)? else { return Ok(None) };
        let value = &mut self.scratch.value;
        value.clear();
        let bytes = self.tables.row(row).copy_value(value);
        Ok(bytes.map(|bytes| &self.scratch.value.as_bytes()[..bytes]))
    }

    fn scan(
        &mut self,
        table: TableId,
        low: &[u8],
        high: &[u8],
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Stop> {
        if low < high && !self.cover.may_scan(table, low) {
            return Err(self.undeclared(table, low));
        }
        let tables = self.tables;
        let Scratch { found, value, .. } = &mut *self.scratch;
        let range = KeyRange { low, high, descending };
        tables.range(table, range, found, |key, row| {
            value.clear();
            let Some(bytes) = tables.row(row).copy_value(value) else { return Ok(true) };
            Ok(each(key, &value.as_bytes()[..bytes]).is_continue())
        })
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let row = match self.cover {
            // The index must grow first.
            Cover::All => {
                let row = self.tables.find_or_insert(table, key, 0, self.pool)?;
                row.ok_or(Stop::Conflict)?.0
            }
            Cover::Footprint(..) | Cover::Observed(..) | Cover::Parts(..) => {
                let row = self.tables.find(table, key);
                let row = row.ok_or_else(|| self.undeclared(table, key))?;
                self.check_write(row, table, key)?;
                row
            }
        };
        self.keep(row);
        Ok(self.tables.row(row).set_value(value)?)
    }

    fn update(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Stop> {
        let Some(row) = self.find_to_write(table, key)? else { return Ok(false) };
        self.keep(row);
        self.tables.row(row).set_value(value)?;
        Ok(true)
    }

    fn modify(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(row) = self.find_to_write(table, key)? else { return Ok(false) };
        let at = self.keep(row);
        let Scratch { value, old_words, .. } = &mut *self.scratch;
        value.clear();
        value.extend_from_slice(&old_words[at..]);
        let bytes = self.tables.row(row).value_bytes().unwrap_or(0);
        change(&mut value.as_mut_bytes()[..bytes]);
        self.tables.row(row).set_whole(value, bytes);
        Ok(true)
    }

    fn modify_part(
        &mut self,
        table: TableId,
        key: &[u8],
        part: Range<usize>,
        change: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(row) = self.find_to_write(table, key)? else { return Ok(false) };
        let at = self.keep(row);
        let bytes = self.tables.row(row).value_bytes().unwrap_or(0);
        let Scratch { old_words, part: new, .. } = &mut *self.scratch;
        let old = &old_words[at..].as_bytes()[..bytes];
        let Some(old_part) = old.get(part.clone()) else {
            let what = format!("bytes {part:?} are not in a row of {bytes} bytes");
            return Err(Error::Broken(what).into());
        };
        new.clear();
        new.extend_from_slice(old_part);
        change(old, new);
        self.tables.row(row).set_part(part.start, new);
        Ok(true)
    }

    fn delete(&mut self, table: TableId, key: &[u8]) -> Result<bool, Stop> {
        let Some(row) = self.find_to_write(table, key)? else { return Ok(false) };
        self.keep(row);
        self.tables.row(row).set_absent();
        Ok(true)
    }
}
