//! The rows that each call of a batch accesses, and how: what locks, queues and graphs are made of.
//!
//! A range of reads stands for a granule, which is all rows of a table with one home. A call that
//! writes a row in a granule that any call of the batch scans touches the granule. Calls that scan
//! do not mind each other, nor do calls that touch; a scan and a touch exclude each other.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use workloads::{TableId, Workload};

use super::declare::{Declared, Item, Kind};
use super::rows::RowId;
use super::tables::{KeyRange, Tables};
use crate::error::{Error, Result};
use crate::index::{Found, Key, Mixer};

/// A row or a granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Target(pub(super) u64);

/// Granules that are scanned.
pub(super) type Granules = HashSet<u64, BuildHasherDefault<Mixer>>;

impl Target {
    const GRANULE: u64 = 1 << 63;

    pub(super) fn of_granule(table: TableId, home: u64) -> Self {
        let mixed = (home.mixed() ^ u64::from(table.0)).mixed();
        Self(mixed | Self::GRANULE)
    }

    /// The row, unless it is a granule.
    pub(super) fn row(self) -> Option<RowId> {
        (self.0 & Self::GRANULE == 0).then_some(RowId(self.0))
    }

    /// A number whose bits are mixed.
    pub(super) fn mixed(self) -> u64 {
        self.0.mixed()
    }
}

/// How a call accesses a target. Accesses in the same mode go together, but for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Write,
    /// A row is read.
    Read,
    /// A granule is scanned.
    Scan,
    /// A row of a granule is written.
    Touch,
}

impl Mode {
    /// Whether two calls may do this to a target at the same time.
    pub(super) fn goes_with(self, other: Self) -> bool {
        self == other && self != Self::Write
    }
}

/// A target and what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    pub(super) target: Target,
    pub(super) mode: Mode,
}

/// The footprints of one worker's share of the calls, end to end.
#[derive(Debug, Default)]
pub(super) struct Footprints {
    accesses: Vec<Access>,
    ends: Vec<usize>,
    found: Found,
}

impl Footprints {
    pub(super) fn clear(&mut self) {
        self.accesses.clear();
        self.ends.clear();
    }

    /// What a call of the share accesses, in the order of targets, each once.
    pub(super) fn of(&self, call: usize) -> &[Access] {
        let start = call.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.accesses[start..self.ends[call]]
    }

    /// Adds the footprint of the next call of a share.
    ///
    /// # Errors
    /// A range of writes in a table that is not ordered.
    pub(super) fn add(
        &mut self,
        workload: &dyn Workload,
        tables: &Tables,
        declared: &Declared,
        granules: &Granules,
    ) -> Result<()> {
        let (call, start) = (self.ends.len(), self.accesses.len());
        let Self { accesses, ends, found } = self;
        if declared.calls[call].aborted.is_none() {
            let items = declared.items(call);
            items.iter().for_each(|item| tables.prefetch(item.table, declared.key(item)));
            let mut resolver = Resolver { workload, tables, granules, found };
            for item in items {
                resolver.add(declared, item, accesses)?;
            }
        }
        close(accesses, start);
        ends.push(accesses.len());
        Ok(())
    }
}

/// What makes accesses of declared keys and ranges.
pub(super) struct Resolver<'a> {
    pub(super) workload: &'a dyn Workload,
    pub(super) tables: &'a Tables,
    /// Granules that calls of the batch scan.
    pub(super) granules: &'a Granules,
    /// Memory for what comes from an index.
    pub(super) found: &'a mut Found,
}

impl Resolver<'_> {
    /// Adds what a declared key or range accesses: rows, and the granules that calls scan or touch.
    ///
    /// # Errors
    /// A range of writes in a table that is not ordered.
    pub(super) fn add(
        &mut self,
        declared: &Declared,
        item: &Item,
        accesses: &mut Vec<Access>,
    ) -> Result<()> {
        let Self { workload, tables, granules, .. } = *self;
        let (table, key) = (item.table, declared.key(item));
        let home = || Target::of_granule(table, workload.home(table, key));
        let mut push = |target, mode| accesses.push(Access { target, mode });
        match item.kind {
            // A key without a row is one that no call of the batch inserts.
            Kind::Read => {
                if let Some(row) = tables.find(table, key) {
                    push(Target(row.0), Mode::Read);
                }
            }
            Kind::ReadRange => push(home(), Mode::Scan),
            Kind::Write | Kind::Insert | Kind::Piece => {
                let Some(row) = tables.find(table, key) else { return Ok(()) };
                push(Target(row.0), Mode::Write);
                if !granules.is_empty() && granules.contains(&home().0) {
                    push(home(), Mode::Touch);
                }
            }
            Kind::WriteRange => {
                let range = KeyRange { low: key, high: declared.high(item), descending: false };
                tables.range(table, range, self.found, |_, row| {
                    push(Target(row.0), Mode::Write);
                    Ok::<_, Error>(true)
                })?;
                if granules.contains(&home().0) {
                    push(home(), Mode::Touch);
                }
            }
        }
        Ok(())
    }
}

/// Sorts the accesses of a call, which begin at `start`, and joins those of one target.
pub(super) fn close(accesses: &mut Vec<Access>, start: usize) {
    accesses[start..].sort_unstable();
    let mut end = start;
    for i in start..accesses.len() {
        let access = accesses[i];
        match accesses[start..end].last_mut() {
            Some(last) if last.target == access.target => {
                // Of a row, a write comes first; a granule that is scanned and touched is the
                // call's alone.
                if last.mode != access.mode {
                    last.mode = Mode::Write;
                }
            }
            _ => {
                accesses[end] = access;
                end += 1;
            }
        }
    }
    accesses.truncate(end);
}

/// Adds the granules that the calls of a share scan.
pub(super) fn add_granules<W: Workload>(
    workload: &W,
    declared: &Declared,
    calls: Range<usize>,
    granules: &mut Granules,
) {
    for item in calls.flat_map(|call| declared.items(call)) {
        if item.kind == Kind::ReadRange {
            let home = workload.home(item.table, declared.key(item));
            granules.insert(Target::of_granule(item.table, home).0);
        }
    }
}
