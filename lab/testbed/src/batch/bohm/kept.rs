//! Caracal's own memory management (CA 3.5, 4.1): a row's version array stays from batch to batch.
//!
//! * The *minor collector* works where a row gets its first version of a batch: the versions of the
//!   batch before are freed then, but for the newest, which is the row's initial version. The row
//!   is in the processor's caches anyway.
//! * The *major collector* works at the end of a batch, on rows whose last version is
//!   [`BATCHES_KEPT`] batches old: rows that were updated since have been collected by the minor
//!   one.
//! * Arrays never shrink.
//!
//! The newest version is the row's value as soon as the call with the array's last place has ended,
//! so that nothing has to be settled at the end of a batch.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::super::engine::BatchCounts;
use super::super::phases::{Halt, Waits};
use super::super::rows::{Pool, RowId};
use super::super::tables::Tables;
use super::store::{Array, Batched, Ending, Store};
use super::versions::{Content, Version, array_of, owner_of};
use crate::error::Result;

/// K: batches without an update after which the major collector frees a row's old versions.
const BATCHES_KEPT: usize = 8;

/// The versions of a row.
#[derive(Debug)]
struct KeptArray {
    row: RowId,
    /// The batch of the versions.
    batch: u32,
    /// What the row was before that batch.
    initial: Content,
    versions: Vec<Version>,
}

/// The arrays of one owner's rows. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Kept {
    arrays: Vec<KeptArray>,
    /// For each of the last batches the arrays that it began, the oldest batch first.
    begun: VecDeque<Vec<u32>>,
}

impl Kept {
    /// The array of a row in a batch; begins it if this is the row's first write.
    fn begin(
        &mut self,
        batched: Batched<'_>,
        row: RowId,
        pool: &mut Pool,
        counts: &mut BatchCounts,
    ) -> &mut KeptArray {
        let Batched { tables, batch } = batched;
        let word = tables.row(row).engine(0);
        let old = word.load(Ordering::Relaxed);
        let number = match old {
            u64::MAX => {
                let versions = Vec::new();
                self.arrays.push(KeptArray { row, batch: 0, initial: Content::Deleted, versions });
                self.arrays.len() - 1
            }
            old => old as u32 as usize,
        };
        let array = &mut self.arrays[number];
        if old == u64::MAX || array.batch != batch {
            counts.minor_collections += u64::from(array.collect(tables, pool) > 0);
            let current = tables.row(row).current(row.table());
            let value = tables.row(current).value_bytes();
            array.initial = value.map_or(Content::Deleted, |_| Content::Value(current));
            array.batch = batch;
            word.store(u64::from(batch) << 32 | number as u64, Ordering::Relaxed);
            self.begun.back_mut().expect("a batch has begun").push(number as u32);
        }
        array
    }
}

impl KeptArray {
    /// Frees all versions but the row's value; how many there were.
    fn collect(&mut self, tables: &Tables, pool: &mut Pool) -> usize {
        let Self { row: home, initial, versions, .. } = self;
        let count = versions.len();
        if count == 0 {
            return 0;
        }
        let row = tables.row(*home);
        let current = row.current(home.table());
        let contents = versions.drain(..).map(|version| version.content());
        for content in contents.chain([*initial]) {
            if let Content::Value(value) = content
                && value != current
                && value != *home
            {
                pool.give_back(value);
            }
        }
        if tables.row(current).value_bytes().is_none() && current != *home {
            pool.give_back(current);
            row.set_absent();
            row.move_to(*home);
        }
        count
    }

    /// What the row is at the end of its batch, once all calls that may write it have ended.
    fn newest(&self, halt: &Halt, waits: &mut Waits) -> Result<Content> {
        for version in self.versions.iter().rev() {
            let content = halt.wait(waits, || match version.content() {
                Content::Pending => None,
                content => Some(content),
            })?;
            if content != Content::Ignored {
                return Ok(content);
            }
        }
        Ok(self.initial)
    }
}

impl Store for Kept {
    const NAME: &'static str = "caracal";
    /// Readers wait (CA 3.2).
    const RUNS_PRODUCERS: bool = false;

    fn make<'d, I: Iterator<Item = &'d (RowId, u32)>>(
        &mut self,
        batched: Batched<'_>,
        pool: &mut Pool,
        counts: &mut BatchCounts,
        writes: impl Fn() -> I,
    ) {
        self.begun.push_back(Vec::new());
        for (row, call) in writes() {
            let array = self.begin(batched, *row, pool, counts);
            array.versions.push(Version::pending(*call));
        }
    }

    fn array<'v>(owners: &'v [Self], batched: Batched<'_>, row: RowId) -> Array<'v> {
        let Batched { tables, batch } = batched;
        match array_of(tables.row(row).engine(0), batch) {
            Some(number) => {
                let array = &owners[owner_of(row, owners.len())].arrays[number];
                Array { versions: &array.versions, initial: Some(array.initial) }
            }
            None => Array { versions: &[], initial: None },
        }
    }

    /// The call with a row's last place sees to it that the row has its newest value. No call of
    /// the batch reads the row's own value any more: its array has the initial version.
    fn ended(owners: &[Self], row: RowId, ending: Ending<'_>) -> Result<()> {
        let Ending { tables, batch, call, .. } = ending;
        let Some(number) = array_of(tables.row(row).engine(0), batch) else { return Ok(()) };
        let array = &owners[owner_of(row, owners.len())].arrays[number];
        if array.versions.last().is_none_or(|last| last.call != call) {
            return Ok(());
        }
        match array.newest(ending.halt, ending.waits)? {
            Content::Value(value) => tables.row(row).move_to(value),
            _ if array.initial == Content::Deleted => {}
            _ => {
                let nothing = tables.take(row.table(), ending.pool)?;
                tables.row(nothing).set_absent();
                tables.row(row).move_to(nothing);
            }
        }
        Ok(())
    }

    fn end(&mut self, batched: Batched<'_>, pool: &mut Pool, counts: &mut BatchCounts) {
        if self.begun.len() <= BATCHES_KEPT {
            return;
        }
        let last = batched.batch - BATCHES_KEPT as u32;
        for number in self.begun.pop_front().expect("more than none") {
            let array = &mut self.arrays[number as usize];
            if array.batch == last {
                counts.major_collections += u64::from(array.collect(batched.tables, pool) > 0);
            }
        }
    }
}
