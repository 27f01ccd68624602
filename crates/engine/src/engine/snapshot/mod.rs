//! Snapshots: the state at the end of one epoch, for as long as it is needed (O-84).
//!
//! A snapshot is the number of a finished epoch. While one lives, a worker that replaces a value
//! that it sees keeps a before-image of it (`before_images.rs`, O-85). It is read between epochs,
//! in parts that are short and go on by key, so epochs wait for a part at most (O-87). What it sees
//! of a key is an image, or else the row, unless that was written later (O-86).

mod secondary;

use std::iter::Peekable;
use std::ops::Range;

use pmem::Device;
use storage::Position;
use storage::{EpochNumber, IndexKind, SerialId, TableId};

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index::{EntryId, HashIndex};
use crate::reads::{Reading, Visit};
use crate::version::before_images::{BeforeImage, Layer, before_image_key, before_image_key_of};
use crate::version::{ReadPhase, ValueWord, Waiter, version_epoch};

/// Rows that are freed with each epoch of snapshots that ended by the limit.
const SWEPT_ROWS: usize = 1024;

/// A part of an ordered table: `low <= key < high`, in one direction, until enough was visited.
#[derive(Debug, Clone, Copy)]
pub struct ScanPart<'k> {
    /// Number of the table.
    pub table: TableId,
    /// First key.
    pub low: &'k [u8],
    /// The first key behind it.
    pub high: &'k [u8],
    /// From the end on.
    pub is_descending: bool,
    /// Rows after which it stops, whether the snapshot sees them or not.
    pub rows_max: usize,
}

/// Parts in which a hash table is visited.
pub const HASH_PARTS: usize = HashIndex::SHARDS;

impl<D: Device> Engine<D> {
    /// Takes a snapshot of the state at the end of the last epoch, and returns that epoch. It lives
    /// until it is released as often as it was taken, or until it needs too much memory
    /// ([`crate::EngineConfig::snapshot_bytes_max`]).
    pub fn snapshot(&mut self) -> EpochNumber {
        let epoch = self.epoch();
        for worker in &mut self.workers {
            worker.row_store.before_images.know(&self.core.tables);
        }
        *self.snapshots.live.entry(epoch).or_default() += 1;
        epoch
    }

    /// A snapshot is not read any more. Its memory is freed by
    /// [`Engine::sweep_snapshots`].
    pub fn release_snapshot(&mut self, epoch: EpochNumber) {
        if let Some(takers) = self.snapshots.live.get_mut(&epoch) {
            *takers -= 1;
            if *takers == 0 {
                self.snapshots.live.remove(&epoch);
            }
        }
    }

    /// Frees memory of snapshots that have ended: of at most `rows_max` rows, so that no call waits
    /// long. Returns whether there is more.
    pub fn sweep_snapshots(&mut self, rows_max: usize) -> bool {
        let live = &self.snapshots.live;
        let mut are_left = self.core.secondary.sweep(live, rows_max);
        for worker in &mut self.workers {
            are_left |= worker.row_store.before_images.sweep(live, rows_max);
        }
        are_left
    }

    /// Bytes that are kept for the snapshots that live.
    pub fn snapshot_bytes(&self) -> u64 {
        let oldest = self.snapshots.live.keys().next();
        oldest.map_or(0, |&oldest| self.kept_bytes(oldest))
    }

    /// Bytes that are kept for snapshots from an epoch on, whether they live or not.
    pub(crate) fn kept_bytes(&self, oldest: EpochNumber) -> u64 {
        let before_images =
            self.workers.iter().map(|w| w.row_store.before_images.bytes_from(oldest));
        before_images.sum::<u64>() + self.core.secondary.removed_bytes()
    }

    /// The newest snapshot that lives; 0 if there is none.
    fn newest_snapshot(&self) -> EpochNumber {
        self.snapshots.live.keys().next_back().copied().unwrap_or(EpochNumber(0))
    }

    /// Tells the workers of the next epoch what to keep.
    pub(crate) fn begin_before_images(&mut self, workers: usize) {
        if self.snapshots.have_ended {
            self.snapshots.have_ended = self.sweep_snapshots(SWEPT_ROWS);
        }
        let newest = self.newest_snapshot();
        let room = self.core.config.snapshot_bytes_max.saturating_sub(self.snapshot_bytes());
        for worker in &mut self.workers {
            let row_store = &mut worker.row_store;
            row_store.before_images.begin(newest, room / workers as u64);
            row_store.changes.begin(&self.watched_tables, workers);
            row_store.changes.are_observed =
                row_store.before_images.are_wanted() || !self.watched_tables.tables.is_empty();
        }
    }

    /// An epoch has ended: where its before-images take too much, the oldest snapshots end, and
    /// where they are not complete, all do; never a writer (O-89).
    pub(crate) fn end_before_images(&mut self) {
        let newest = self.newest_snapshot();
        if !self.core.secondary.is_empty() {
            let epoch = self.epoch();
            let mut overlay = self.shared.overlay.write().expect("no panic while locked");
            self.core.secondary.keep_removed(&mut overlay.index_undo, newest, epoch);
        }
        if newest == EpochNumber(0) {
            return;
        }
        let mut is_incomplete = false;
        for worker in &mut self.workers {
            is_incomplete |= std::mem::take(&mut worker.row_store.before_images.is_incomplete);
        }
        if is_incomplete {
            self.snapshots.live.clear();
            self.snapshots.have_ended = true;
        }
        let enough = self.core.config.snapshot_bytes_max / 2;
        while self.snapshots.live.len() > 1 && self.snapshot_bytes() > enough {
            self.snapshots.live.pop_first();
            self.snapshots.have_ended = true;
        }
    }

    /// Reads a row as a snapshot sees it; of a sequence, its next number (8 little-endian bytes).
    ///
    /// # Errors
    /// `SnapshotEnded`; `Limit` for an unknown table or a key beyond its limit.
    pub fn get_at(
        &self,
        epoch: EpochNumber,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.check_snapshot(epoch)?;
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let word = t.word(key).map_err(EngineError::Limit)?;
        let before_image_key = before_image_key_of(table, t.kind == IndexKind::Ordered, word);
        let mut layers = self.layers_from(epoch).into_iter();
        if let Some(image) = layers.find_map(|layer| layer.before_images.get(&before_image_key)) {
            return Ok(image.seen_at(epoch).map(<[u8]>::to_vec));
        }
        let mut reading = self.reading();
        let id = self.core.find(t, word, &reading.reads);
        let value = id.and_then(|id| self.row_at(epoch, id, &reading));
        reading.end_step(self.core.image_base);
        Ok(value.map(<[u8]>::to_vec))
    }

    /// Visits rows of an ordered table as a snapshot sees them, until the visitor has enough or the
    /// part has been visited. Returns the last key, visited or not visible, if there may be
    /// more behind it.
    ///
    /// # Errors
    /// `SnapshotEnded`; `Limit` for an unknown or unordered table, or bounds of another length than
    /// its keys.
    pub fn scan_at(
        &self,
        epoch: EpochNumber,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        self.check_snapshot(epoch)?;
        let ScanPart { table, low, high, is_descending, rows_max } = part;
        let mut reading = self.reading();
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let range = self.core.range(t, low, high, &reading.reads).map_err(EngineError::Limit)?;
        if low >= high {
            return Ok(None);
        }
        let layers = self.layers_from(epoch);
        let keys = before_image_key(table, None, low)..before_image_key(table, None, high);
        let mut before_images = Merged::new(&layers, keys, is_descending);
        let comes_first = |image: &[u8], key: &[u8]| image != key && (image < key) != is_descending;
        let mut visited = 0;
        let mut entries: Box<dyn Iterator<Item = _>> =
            if is_descending { Box::new(range.rev()) } else { Box::new(range) };
        for (word, id) in entries.by_ref() {
            let mut room = [0; 8];
            let key = self.core.key(t, word, id, &mut room, &reading.reads);
            while let Some((before_image_key, image)) =
                before_images.next_if(|image| comes_first(image, key))
            {
                visited += 1;
                if shows(image, epoch, before_image_key, each) || visited >= rows_max {
                    return Ok(Some(before_image_key.to_vec()));
                }
            }
            visited += 1;
            let is_enough = match before_images.next_if(|image| image == key) {
                Some((_, image)) => shows(image, epoch, key, each),
                None => {
                    let value = self.row_at(epoch, id, &reading);
                    reading.end_step(self.core.image_base);
                    value.is_some_and(|value| each(key, value).is_break())
                }
            };
            if is_enough || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        while let Some((key, image)) = before_images.next_if(|_| true) {
            visited += 1;
            if shows(image, epoch, key, each) || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(None)
    }

    /// Visits the rows of one of the [`HASH_PARTS`] of a hash table as a snapshot sees them, in no
    /// order.
    ///
    /// # Errors
    /// `SnapshotEnded`; `Limit` for an unknown table, one that is not a hash table, and a part that
    /// does not exist.
    pub fn visit_part_at(
        &self,
        epoch: EpochNumber,
        table: TableId,
        part: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        self.check_snapshot(epoch)?;
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let part = u8::try_from(part).ok().filter(|_| t.kind != IndexKind::Ordered);
        let Some(part) = part else {
            return Err(EngineError::Limit(format!("table {:?} has no such part", t.name)));
        };
        let layers = self.layers_from(epoch);
        let first = before_image_key(table, Some(part), &[]);
        let end = match part.checked_add(1) {
            Some(next) => before_image_key(table, Some(next), &[]),
            None => before_image_key(TableId(table.0 + 1), None, &[]),
        };
        let mut before_images = Merged::new(&layers, first..end, false);
        let has_before_images = before_images.peek().is_some();
        let mut reading = self.reading();
        t.hash.for_each_in(part, |word, id| {
            let mut room = [0; 8];
            let key = self.core.key(t, word, id, &mut room, &reading.reads);
            let has_image = || {
                let key = before_image_key(table, Some(part), key);
                layers.iter().any(|layer| layer.before_images.contains_key(&key))
            };
            if has_before_images && has_image() {
                return;
            }
            let value = self.row_at(epoch, id, &reading);
            reading.end_step(self.core.image_base);
            value.into_iter().for_each(|value| each(key, value));
        });
        while let Some((key, image)) = before_images.next_if(|_| true) {
            // Behind the part's number.
            image.seen_at(epoch).into_iter().for_each(|value| each(&key[1..], value));
        }
        Ok(())
    }

    pub(crate) fn check_snapshot(&self, epoch: EpochNumber) -> Result<()> {
        if let Some(reason) = self.core.stop_reason() {
            return Err(EngineError::Poisoned(reason));
        }
        if self.snapshots.live.contains_key(&epoch) {
            return Ok(());
        }
        Err(EngineError::SnapshotEnded { epoch, bytes_max: self.core.config.snapshot_bytes_max })
    }

    /// The layers of all workers that a snapshot sees, in the order in which they count.
    fn layers_from(&self, epoch: EpochNumber) -> Vec<&Layer> {
        let mut layers: Vec<&Layer> = self
            .workers
            .iter()
            .flat_map(|worker| worker.row_store.before_images.from(epoch))
            .collect();
        layers.sort_by_key(|layer| layer.epoch);
        layers
    }

    /// What a snapshot sees of a row that has no image: nothing, if it was written later.
    fn row_at(&self, epoch: EpochNumber, id: EntryId, reading: &Reading<D>) -> Option<&[u8]> {
        let entry = self.core.entries.get(id);
        let next = entry.persistent_version();
        if !next.is_value() || version_epoch(self.core.image_base, entry.row(), next.slot()) > epoch
        {
            return None;
        }
        let mut waiter = Waiter::new(self.core.stopped());
        let seen = entry.read(SerialId::new(self.epoch().next(), Position(0)), &mut waiter);
        let word = seen.map_or(ValueWord::PENDING, |seen| seen.word);
        word.charge(&reading.reads);
        word.is_value().then(|| ReadPhase::begin().bytes(word))
    }
}

/// Shows what a snapshot sees of a key with a before-image; whether the visitor has enough.
fn shows(image: &BeforeImage, epoch: EpochNumber, key: &[u8], each: Visit<'_>) -> bool {
    image.seen_at(epoch).is_some_and(|value| each(key, value).is_break())
}

/// Before-images of several layers in the order of their keys: of each key the one that counts.
struct Merged<'l> {
    heads: Vec<Peekable<Head<'l>>>,
    is_descending: bool,
}

type Head<'l> = Box<dyn Iterator<Item = (&'l [u8], &'l BeforeImage)> + 'l>;

/// Bytes of a table's number before a key.
const TABLE_BYTES: usize = 2;

impl<'l> Merged<'l> {
    fn new(layers: &[&'l Layer], keys: Range<Box<[u8]>>, is_descending: bool) -> Self {
        let head = |layer: &&'l Layer| -> Head<'l> {
            let range = layer
                .before_images
                .range(keys.clone())
                .map(|(key, image)| (&key[TABLE_BYTES..], image));
            if is_descending { Box::new(range.rev()) } else { Box::new(range) }
        };
        Self { heads: layers.iter().map(|layer| head(layer).peekable()).collect(), is_descending }
    }

    fn peek(&mut self) -> Option<(&'l [u8], &'l BeforeImage)> {
        let is_descending = self.is_descending;
        let heads = self.heads.iter_mut().filter_map(|head| head.peek().copied());
        // Of the same key the first one counts.
        heads.reduce(|first, other| {
            let is_before = other.0 != first.0 && (other.0 < first.0) != is_descending;
            if is_before { other } else { first }
        })
    }

    fn next_if(
        &mut self,
        wanted: impl FnOnce(&[u8]) -> bool,
    ) -> Option<(&'l [u8], &'l BeforeImage)> {
        let next = self.peek().filter(|(key, _)| wanted(key))?;
        for head in &mut self.heads {
            head.next_if(|(key, _)| *key == next.0);
        }
        Some(next)
    }
}
