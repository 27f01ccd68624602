//! The rows of a lone definition, which may write more than one call holds.
//!
//! Rows under ids that were reserved for it are written in parts: they are unreachable until the
//! catalog refers to them. The last part is one call together with the rows of the catalog. The
//! parts of a definition that fails before it are cleared.

use super::call::{Call, DefinedRow};
use super::define::rows_of;
use super::pending::block_on;
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use nvcaracal::Snapshot;
use sql::catalog::Delta;
use sql::ir::{ObjectId, Space};
use sql::run::{Buffer, Entry, Overlay, Pass, Rows, Scan};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::{Error, Result, SqlState};

/// Returns the id at the beginning of a key of a row or an index entry.
fn id_of(key: &[u8]) -> Option<ObjectId> {
    key.first_chunk().map(|id| ObjectId::from_bytes(*id))
}

/// The rows below the buffer of the definition: those of its snapshot, and of its written parts.
struct Below<'r> {
    shared: &'r Shared,
    read: ReadRows<'r>,
    /// The first id that is reserved for the definition.
    first: ObjectId,
    /// Whether it has written parts.
    has_parts: bool,
    /// A snapshot with all parts; `None` if a part was written since.
    newest: Option<Snapshot>,
}

/// The state of a definition between its passes.
#[derive(Default)]
pub(super) struct Progress {
    buffer: Buffer,
    /// The spaces and ids of its parts.
    moved: BTreeSet<(Space, ObjectId)>,
    /// The completed passes with their results.
    passes: Vec<(Pass, Option<Vec<u8>>)>,
}

/// How much a run of a definition may do.
enum Extent<'r> {
    /// A run with few steps, which stops where it exceeds them.
    Short,
    /// A run of any length, which scans only these tables, whose writers are held.
    Long(&'r BTreeSet<ObjectId>),
    /// The final run after all passes, with the number of the next one. Each pass has its earlier
    /// result.
    Repeated(usize),
}

/// The rows that a definition reads and writes.
pub(super) struct MovedRows<'r> {
    below: Below<'r>,
    progress: Progress,
    extent: Extent<'r>,
    part_bytes: usize,
    /// Whether the definition must run again: it is long, or scans other tables.
    is_again: bool,
}

/// Returns the error of a run that must be repeated, which is not sent to clients.
fn again() -> Error {
    Error::new(SqlState::INTERNAL, "the definition is run again")
}

impl Below<'_> {
    /// Whether a key may be in a part.
    fn is_moved(&self, key: &[u8]) -> bool {
        self.has_parts && id_of(key).is_some_and(|id| id >= self.first)
    }
}

impl Rows for Below<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if space == Space::Catalog || !self.is_moved(key) {
            return self.read.get(space, key);
        }
        let found = self.shared.database.get(self.shared.spaces.table(space), key);
        found.map_err(super::failure::of_read)
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        if scan.space == Space::Catalog || !self.is_moved(scan.from) {
            return self.read.scan(scan, found);
        }
        if self.newest.is_none() {
            let made = self.shared.database.snapshot();
            self.newest = Some(made.map_err(super::failure::of_read)?);
        }
        let newest = self.newest.as_ref().expect("it was made");
        let (reads, steps) = (Reads::Snapshot(newest), Steps::new(u64::MAX));
        ReadRows::new(&self.shared.spaces, reads, steps).scan(scan, found)
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.read.put(space, key, row)
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.read.delete(space, key)
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        self.read.next(sequence)
    }

    fn given(&mut self, sequence: ObjectId) -> Result<u64> {
        self.read.given(sequence)
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.read.steps(count)
    }
}

impl<'r> MovedRows<'r> {
    fn new(
        shared: &'r Shared,
        first: ObjectId,
        snapshot: &'r Snapshot,
        steps: Steps,
        extent: Extent<'r>,
    ) -> MovedRows<'r> {
        let read = ReadRows::new(&shared.spaces, Reads::Snapshot(snapshot), steps);
        MovedRows {
            below: Below { shared, read, first, has_parts: false, newest: None },
            progress: Progress::default(),
            extent,
            part_bytes: shared.options.part_bytes,
            is_again: false,
        }
    }

    /// Creates the rows of a short run. Ids from `first` on are reserved for the definition.
    pub(super) fn short(
        shared: &'r Shared,
        first: ObjectId,
        snapshot: &'r Snapshot,
    ) -> MovedRows<'r> {
        let steps = Steps::new(shared.options.short_steps_max);
        MovedRows::new(shared, first, snapshot, steps, Extent::Short)
    }

    /// Creates the rows of a long run, concurrent with everything but writers of `held` tables.
    pub(super) fn long(
        shared: &'r Shared,
        first: ObjectId,
        snapshot: &'r Snapshot,
        steps: Steps,
        held: &'r BTreeSet<ObjectId>,
    ) -> MovedRows<'r> {
        MovedRows::new(shared, first, snapshot, steps, Extent::Long(held))
    }

    /// Creates the rows of the final run, after the passes of `progress`.
    pub(super) fn repeated(
        shared: &'r Shared,
        first: ObjectId,
        snapshot: &'r Snapshot,
        progress: Progress,
    ) -> MovedRows<'r> {
        let (steps, extent) = (Steps::new(u64::MAX), Extent::Repeated(0));
        let mut rows = MovedRows::new(shared, first, snapshot, steps, extent);
        rows.below.has_parts = !progress.moved.is_empty();
        MovedRows { progress, ..rows }
    }

    /// Whether the definition must run again.
    pub(super) fn is_again(&self) -> bool {
        let is_long = matches!(self.extent, Extent::Short) && self.below.read.steps.is_over();
        self.is_again || is_long
    }

    pub(super) fn into_progress(self) -> Progress {
        self.progress
    }

    fn overlaid<T>(&mut self, act: impl FnOnce(&mut Overlay<'_>) -> T) -> T {
        let buffer = std::mem::take(&mut self.progress.buffer);
        let mut overlay = Overlay::over(&mut self.below, buffer);
        let done = act(&mut overlay);
        self.progress.buffer = overlay.into_buffer();
        done
    }

    /// Writes the buffered rows under reserved ids as a part.
    fn write_part(&mut self) -> Result<()> {
        let first = self.below.first;
        let is_own = |space: Space, key: &[u8]| {
            space != Space::Catalog && id_of(key).is_some_and(|id| id >= first)
        };
        let writes = self.progress.buffer.take_writes(is_own);
        for (space, key) in writes.keys() {
            let Some(id) = id_of(key) else { continue };
            self.progress.moved.insert((*space, id));
        }
        self.below.read.steps.rest();
        block_on(self.below.shared.call(&Call::Define(rows_of(&writes)).encode()))?;
        (self.below.has_parts, self.below.newest) = (true, None);
        Ok(())
    }
}

impl Progress {
    /// Returns the tables that its passes have scanned.
    pub(super) fn tables(&self) -> impl Iterator<Item = ObjectId> {
        self.passes.iter().flat_map(|(pass, _)| pass.tables.iter().copied())
    }

    /// Returns the rows that are not written yet.
    pub(super) fn into_rows(self) -> Vec<DefinedRow> {
        rows_of(self.buffer.writes())
    }

    /// Returns the spaces and ids of its parts.
    pub(super) fn moved(&self) -> BTreeSet<(Space, ObjectId)> {
        self.moved.clone()
    }
}

/// Returns the change of the catalog that reserves all ids before `id`.
pub(super) fn keep_until(id: ObjectId) -> Delta {
    let mut delta = Delta::default();
    delta.set_next_id(id);
    delta
}

/// Returns the rows of the catalog that a delta changes.
pub(super) fn catalog_rows(delta: &Delta) -> impl Iterator<Item = DefinedRow> {
    delta.rows().iter().map(|(key, row)| DefinedRow {
        space: Space::Catalog,
        key: key.clone(),
        row: row.clone(),
    })
}

impl Rows for MovedRows<'_> {
    fn get(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.overlaid(|overlay| overlay.get(space, key))
    }

    fn scan(&mut self, scan: Scan<'_>, found: &mut Vec<Entry>) -> Result<()> {
        self.overlaid(|overlay| overlay.scan(scan, found))
    }

    fn put(&mut self, space: Space, key: &[u8], row: &[u8]) -> Result<()> {
        self.overlaid(|overlay| overlay.put(space, key, row))?;
        if self.progress.buffer.bytes() < self.part_bytes || space == Space::Catalog {
            return Ok(());
        }
        match self.extent {
            Extent::Long(_) => self.write_part(),
            Extent::Short | Extent::Repeated(_) => {
                self.is_again = true;
                Err(again())
            }
        }
    }

    fn delete(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.overlaid(|overlay| overlay.delete(space, key))
    }

    fn next(&mut self, sequence: ObjectId) -> Result<u64> {
        self.below.next(sequence)
    }

    fn given(&mut self, sequence: ObjectId) -> Result<u64> {
        self.below.given(sequence)
    }

    fn pass(&mut self, pass: &Pass) -> Result<Option<Vec<u8>>> {
        let first = self.below.first;
        match &mut self.extent {
            Extent::Repeated(at) => {
                let known = self.progress.passes.get(*at).filter(|(known, _)| known == pass);
                *at += 1;
                let outcome = known.and_then(|(_, outcome)| outcome.clone());
                self.is_again = outcome.is_none();
                outcome.map(Some).ok_or_else(again)
            }
            extent => {
                self.progress.passes.push((pass.clone(), None));
                if let Extent::Long(held) = extent {
                    // No other statement writes what is its own.
                    let mut others = pass.tables.iter().filter(|id| **id < first);
                    self.is_again |= !others.all(|id| held.contains(id));
                }
                if self.is_again { Err(again()) } else { Ok(None) }
            }
        }
    }

    fn passed(&mut self, outcome: Vec<u8>) {
        if let Some((_, known)) = self.progress.passes.last_mut() {
            *known = Some(outcome);
        }
    }

    fn steps(&mut self, count: u64) -> Result<()> {
        self.below.steps(count)
    }
}

impl Shared {
    /// Clears the parts of a definition that has failed.
    pub(super) fn take_back(self: &Arc<Shared>, moved: &BTreeSet<(Space, ObjectId)>) {
        for (space, id) in moved {
            self.clear(*space, sql::catalog::prefix(*id));
        }
    }
}
