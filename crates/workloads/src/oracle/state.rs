//! The tables of the oracle, as plain ordered maps.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};

use crate::api::{Abort, IndexKind, TableId, Visit};

/// The rows of a table.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Why a transaction did not commit.
pub(super) enum Error {
    Abort(u32),
    /// It wrote what it had not declared.
    Deferred,
    Broken,
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Self {
        Self::Abort(abort.0)
    }
}

/// Something a declaration read, to be read again before the body runs.
pub(super) enum Lookup {
    Row {
        table: TableId,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    Scan {
        table: TableId,
        low: Vec<u8>,
        high: Vec<u8>,
        visited: Vec<(Vec<u8>, Vec<u8>)>,
        stopped: bool,
    },
}

/// Keys from a first one, up to and without a last one.
#[derive(Clone, Copy)]
pub(super) struct Between<'k> {
    pub(super) low: &'k [u8],
    pub(super) high: &'k [u8],
}

/// All tables, and where this epoch's sequences started.
pub(super) struct State {
    pub(super) kinds: Vec<IndexKind>,
    pub(super) tables: Vec<Rows>,
    pub(super) sequences: Vec<BTreeMap<Vec<u8>, u64>>,
    pub(super) starts: HashMap<(TableId, Vec<u8>), u64>,
}

impl State {
    pub(super) fn rows(&self, table: TableId) -> &Rows {
        &self.tables[usize::from(table.0)]
    }

    /// Visits a range. Fails on a table that is not ordered.
    pub(super) fn scan(
        &self,
        table: TableId,
        keys: Between<'_>,
        descending: bool,
        each: Visit<'_>,
    ) -> Result<(), Error> {
        if self.kinds[usize::from(table.0)] != IndexKind::Ordered {
            return Err(Error::Broken);
        }
        let Between { low, high } = keys;
        if low >= high {
            return Ok(());
        }
        let bounds = (Bound::Included(low), Bound::Excluded(high));
        let mut range = self.rows(table).range::<[u8], _>(bounds);
        while let Some((key, value)) = if descending { range.next_back() } else { range.next() } {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn still_holds(&self, lookup: &Lookup) -> bool {
        match lookup {
            Lookup::Row { table, key, value } => self.rows(*table).get(key) == value.as_ref(),
            Lookup::Scan { table, low, high, visited, stopped } => {
                let mut expected = visited.iter();
                let mut same = true;
                let result = self.scan(*table, Between { low, high }, false, &mut |key, value| {
                    match expected.next() {
                        Some((k, v)) if k == key && v == value => {}
                        None if *stopped => return ControlFlow::Break(()),
                        _ => same = false,
                    }
                    if same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                result.is_ok() && same && expected.next().is_none()
            }
        }
    }

    pub(super) fn sequence_start(&self, table: TableId, key: &[u8]) -> u64 {
        let started = self.starts.get(&(table, key.to_vec())).copied();
        let current = self.sequences[usize::from(table.0)].get(key).copied();
        started.or(current).unwrap_or(0)
    }
}
