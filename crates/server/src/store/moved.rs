//! The rows of a lone definition, which may write more than one call has: what it writes under ids
//! that no object has had goes into the store in parts, as nothing leads there before the catalog
//! does. Its last part is one call with the rows of the catalog. What is left of a definition that
//! did not come so far is cleared.

use super::call::{Call, DefinedRow};
use super::define::rows_of;
use super::pending::block_on;
use super::pool::Lent;
use super::rows::{ReadRows, Reads, Steps};
use super::shared::Shared;
use nvcaracal::Snapshot;
use sql::catalog::{Catalog, Delta};
use sql::ir::{ObjectId, Space};
use sql::run::{Buffer, Entry, Overlay, Rows, Scan};
use std::collections::BTreeSet;
use std::sync::Arc;
use values::Result;

/// The id that keys of rows and entries begin with.
fn id_of(key: &[u8]) -> Option<ObjectId> {
    key.first_chunk().map(|id| ObjectId::from_bytes(*id))
}

/// The rows that the definition has not written, and those of its parts.
struct Below<'r> {
    shared: &'r Shared,
    read: ReadRows<'r>,
    /// Ids from here on are the definition's own.
    first: ObjectId,
    /// The ids behind those that rows were written under; they are never given again.
    kept: ObjectId,
    /// The newest rows, until there are more.
    newest: Option<Snapshot>,
}

/// The rows that a definition sees and writes.
pub(super) struct MovedRows<'r> {
    below: Below<'r>,
    buffer: Buffer,
    part_bytes: usize,
    moved: BTreeSet<(Space, ObjectId)>,
    /// The thread that stands in for this one behind the first part.
    lent: Option<Lent>,
}

/// What is left to write when a definition has run.
pub(super) struct Moved {
    pub(super) rows: Vec<DefinedRow>,
    /// Where its parts are.
    pub(super) places: BTreeSet<(Space, ObjectId)>,
    /// What the catalog got for them.
    pub(super) kept: Option<Delta>,
}

impl Below<'_> {
    /// Whether a key may be one of a part.
    fn is_moved(&self, key: &[u8]) -> bool {
        id_of(key).is_some_and(|id| (self.first..self.kept).contains(&id))
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
    /// Nothing written yet over a snapshot that has this catalog.
    pub(super) fn new(
        shared: &'r Shared,
        catalog: &Catalog,
        snapshot: &'r Snapshot,
    ) -> MovedRows<'r> {
        // Bounded by the rows that there are.
        let (reads, steps) = (Reads::Snapshot(snapshot), Steps::new(u64::MAX));
        let (read, first) = (ReadRows::new(&shared.spaces, reads, steps), catalog.next_id());
        MovedRows {
            below: Below { shared, read, first, kept: first, newest: None },
            buffer: Buffer::default(),
            part_bytes: shared.options.part_bytes,
            moved: BTreeSet::new(),
            lent: None,
        }
    }

    /// What has not been written in parts.
    pub(super) fn into_moved(self) -> Moved {
        let (first, kept) = (self.below.first, self.below.kept);
        let rows = rows_of(self.buffer.writes());
        Moved { rows, places: self.moved, kept: (kept > first).then(|| keep_until(kept)) }
    }

    fn overlaid<T>(&mut self, act: impl FnOnce(&mut Overlay<'_>) -> T) -> T {
        let mut overlay = Overlay::over(&mut self.below, std::mem::take(&mut self.buffer));
        let done = act(&mut overlay);
        self.buffer = overlay.into_buffer();
        done
    }

    /// Writes what is under ids of its own.
    fn write_part(&mut self) -> Result<()> {
        let first = self.below.first;
        let is_own = |space: Space, key: &[u8]| {
            space != Space::Catalog && id_of(key).is_some_and(|id| id >= first)
        };
        let writes = self.buffer.take_writes(is_own);
        let mut rows = rows_of(&writes);
        for (space, key) in writes.keys() {
            let Some(id) = id_of(key) else { continue };
            self.below.kept = self.below.kept.max(id.next());
            self.moved.insert((*space, id));
        }
        rows.extend(catalog_rows(&keep_until(self.below.kept)));
        let shared = self.below.shared;
        if self.lent.is_none() {
            self.lent = shared.pool.lend();
        }
        block_on(shared.call(&Call::Define(rows).encode()))?;
        self.below.newest = None;
        Ok(())
    }
}

/// The ids before this one are never given again.
fn keep_until(id: ObjectId) -> Delta {
    let mut delta = Delta::default();
    delta.set_next_id(id);
    delta
}

/// The rows of the catalog that a delta has.
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
        match self.buffer.bytes() >= self.part_bytes && space != Space::Catalog {
            true => self.write_part(),
            false => Ok(()),
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

    fn steps(&mut self, count: u64) -> Result<()> {
        self.below.steps(count)
    }
}

impl Shared {
    /// A definition has failed behind its first part: its ids are not given again, and what it has
    /// written is cleared.
    pub(super) fn take_back(self: &Arc<Shared>, catalog: &Catalog, moved: &Moved) -> Result<()> {
        let Some(kept) = &moved.kept else { return Ok(()) };
        self.set_catalog(Arc::new(catalog.with(kept)?));
        for (space, id) in &moved.places {
            self.clear(*space, sql::catalog::prefix(*id));
        }
        Ok(())
    }
}
