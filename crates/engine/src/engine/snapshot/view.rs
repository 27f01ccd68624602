//! Reading snapshots, from any thread, while calls run.
//!
//! A part is read inside the gate of reads, so no index changes, and with the layers of all workers
//! locked, so no value is overwritten that the snapshot sees and that has no before-image yet. A
//! reader between two parts holds up nothing.

use std::iter::Peekable;
use std::ops::Range;

use storage::{EpochNumber, IndexKind, Position, SerialId, TableId};

use super::ScanPart;
use crate::engine::reader::Reader;
use crate::error::{EngineError, Result};
use crate::index::EntryId;
use crate::reads::{Reads, Visit};
use crate::state::core::Core;
use crate::state::read_gate::Inside;
use crate::table::{KeyWord, Table};
use crate::version::before_images::{BeforeImage, Layer, before_image_key, before_image_key_of};
use crate::version::{ReadPhase, Seen, Waiter, version_epoch};

/// A snapshot while a part of it is read.
pub(super) struct View<'v> {
    pub(super) core: &'v Core,
    /// Its epoch.
    pub(super) epoch: EpochNumber,
    /// A place in the order behind all that can be read.
    sid: SerialId,
    /// The layers of all workers that it sees, in the order in which they count.
    layers: Vec<&'v Layer>,
    reads: &'v Reads,
    inside: &'v Inside<'v>,
}

impl Reader {
    /// Reads a row as a snapshot sees it; of a sequence, its next number (8 little-endian bytes).
    /// Waits where indexes change. `slot` is as for [`Reader::get`].
    ///
    /// # Errors
    /// `SnapshotEnded`; `Limit` for an unknown table or a key beyond its limit; `Poisoned` if the
    /// engine was stopped or is gone.
    pub fn get_at(
        &self,
        slot: usize,
        epoch: EpochNumber,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.view(slot, epoch, |view| view.get_copy(table, key))
    }

    /// Visits rows of an ordered table as a snapshot sees them, until the visitor has enough or the
    /// part has been visited. Returns the last key, visited or not visible, if there may be
    /// more behind it. The visitor should be quick: an epoch may wait for the part.
    ///
    /// # Errors
    /// As [`Reader::get_at`]; `Limit` for an unordered table, or bounds of another length than its
    /// keys.
    pub fn scan_at(
        &self,
        slot: usize,
        epoch: EpochNumber,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        self.view(slot, epoch, |view| view.scan(part, each))
    }

    /// Visits the rows of one of the [`super::HASH_PARTS`] of a hash table as a snapshot sees them,
    /// in no order. The visitor should be quick: an epoch may wait for the part.
    ///
    /// # Errors
    /// As [`Reader::get_at`]; `Limit` for a table that is not a hash table, and a part that does
    /// not exist.
    pub fn visit_part_at(
        &self,
        slot: usize,
        epoch: EpochNumber,
        table: TableId,
        part: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        self.view(slot, epoch, |view| view.visit_part(table, part, each))
    }

    /// Reads a part of a snapshot.
    pub(super) fn view<R>(
        &self,
        slot: usize,
        epoch: EpochNumber,
        read: impl FnOnce(&View<'_>) -> Result<R>,
    ) -> Result<R> {
        let core = &*self.core;
        let ended = || {
            let reason = core.stop_reason().unwrap_or_else(|| "the engine is gone".into());
            EngineError::Poisoned(reason)
        };
        if core.is_stopped() {
            return Err(ended());
        }
        let inside = core.gate.enter(slot, || core.is_stopped()).map_err(|_| ended())?;
        let live = core.snapshots.live.read().expect("no panic while locked");
        let of_workers = core.snapshots.of_workers.iter();
        let of_workers: Vec<_> =
            of_workers.map(|layers| layers.read().expect("no panic while locked")).collect();
        let are_incomplete = of_workers.iter().any(|layers| layers.are_incomplete);
        if !live.contains_key(&epoch) || are_incomplete {
            let bytes_max = core.config.snapshot_bytes_max;
            return Err(EngineError::SnapshotEnded { epoch, bytes_max });
        }
        let mut layers: Vec<&Layer> =
            of_workers.iter().flat_map(|layers| layers.from(epoch)).collect();
        layers.sort_by_key(|layer| layer.epoch);
        let mut reads = Reads::new(self.charge.is_some());
        assert!(epoch <= inside.epoch, "a snapshot is of an epoch that has ended");
        let sid = SerialId::new(inside.epoch.next(), Position(0));
        let result = read(&View { core, epoch, sid, layers, reads: &reads, inside: &inside });
        drop(of_workers);
        drop(live);
        drop(inside);
        self.charge(&mut reads);
        result
    }
}

impl<'v> View<'v> {
    /// A row.
    pub(super) fn get(&self, table: TableId, key: &[u8]) -> Result<Option<&'v [u8]>> {
        let (t, word) = self.word(table, key)?;
        if let Some(image) = self.before_image(t, word) {
            return Ok(image.seen_at(self.epoch));
        }
        Ok(self.find(t, word).and_then(|id| self.row(id)))
    }

    fn find(&self, table: &Table, word: KeyWord<'_>) -> Option<EntryId> {
        self.core.bring_key(table, word);
        self.core.find(table, word, self.reads)
    }

    /// A copy of a row, which readers keep if they may.
    fn get_copy(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (t, word) = self.word(table, key)?;
        if let Some(image) = self.before_image(t, word) {
            return Ok(image.seen_at(self.epoch).map(<[u8]>::to_vec));
        }
        if let Some(kept) = self.core.kept_row(t, word) {
            return Ok((kept.written <= self.epoch).then(|| kept.value().to_vec()));
        }
        let Some(id) = self.find(t, word) else { return Ok(None) };
        let Some(row) = self.seen(id) else { return Ok(None) };
        let value = self.value(row);
        if row.untouched {
            self.core.keep_row(t, word, self.core.written(id, row.word), value);
        }
        Ok(Some(value.to_vec()))
    }

    fn word<'k>(&self, table: TableId, key: &'k [u8]) -> Result<(&'v Table, KeyWord<'k>)> {
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        Ok((t, t.word(key).map_err(EngineError::Limit)?))
    }

    fn before_image(&self, table: &Table, word: KeyWord<'_>) -> Option<&'v BeforeImage> {
        let is_ordered = table.kind == IndexKind::Ordered;
        let key = before_image_key_of(table.layout.table, is_ordered, word);
        self.layers.iter().find_map(|layer| layer.before_images.get(&key))
    }

    fn scan(&self, part: ScanPart<'_>, each: Visit<'_>) -> Result<Option<Vec<u8>>> {
        let ScanPart { table, low, high, is_descending, rows_max } = part;
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let range = self.core.range(t, low, high, self.reads).map_err(EngineError::Limit)?;
        if low >= high {
            return Ok(None);
        }
        let keys = before_image_key(table, None, low)..before_image_key(table, None, high);
        let mut before_images = Merged::new(&self.layers, keys, is_descending);
        let comes_first = |image: &[u8], key: &[u8]| image != key && (image < key) != is_descending;
        let mut visited = 0;
        let mut entries: Box<dyn Iterator<Item = _>> =
            if is_descending { Box::new(range.rev()) } else { Box::new(range) };
        for (word, id) in entries.by_ref() {
            let mut room = [0; 8];
            let key = self.core.key(t, word, id, &mut room, self.reads);
            while let Some((before_image_key, image)) =
                before_images.next_if(|image| comes_first(image, key))
            {
                visited += 1;
                if self.shows(image, before_image_key, each) || visited >= rows_max {
                    return Ok(Some(before_image_key.to_vec()));
                }
            }
            visited += 1;
            let is_enough = match before_images.next_if(|image| image == key) {
                Some((_, image)) => self.shows(image, key, each),
                None => self.row(id).is_some_and(|value| each(key, value).is_break()),
            };
            if is_enough || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        while let Some((key, image)) = before_images.next_if(|_| true) {
            visited += 1;
            if self.shows(image, key, each) || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(None)
    }

    fn visit_part(
        &self,
        table: TableId,
        part: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let t = self.core.table(table).map_err(EngineError::Limit)?;
        let part = u8::try_from(part).ok().filter(|_| t.kind != IndexKind::Ordered);
        let Some(part) = part else {
            return Err(EngineError::Limit(format!("table {:?} has no such part", t.name)));
        };
        let first = before_image_key(table, Some(part), &[]);
        let end = match part.checked_add(1) {
            Some(next) => before_image_key(table, Some(next), &[]),
            None => before_image_key(TableId(table.0 + 1), None, &[]),
        };
        let mut before_images = Merged::new(&self.layers, first..end, false);
        let has_before_images = before_images.peek().is_some();
        t.hash.for_each_in(part, |word, id| {
            let mut room = [0; 8];
            let key = self.core.key(t, word, id, &mut room, self.reads);
            let has_image = || {
                let key = before_image_key(table, Some(part), key);
                self.layers.iter().any(|layer| layer.before_images.contains_key(&key))
            };
            if has_before_images && has_image() {
                return;
            }
            self.row(id).into_iter().for_each(|value| each(key, value));
        });
        while let Some((key, image)) = before_images.next_if(|_| true) {
            // Behind the part's number.
            image.seen_at(self.epoch).into_iter().for_each(|value| each(&key[1..], value));
        }
        Ok(())
    }

    /// What the snapshot sees of a row that has no before-image: nothing, if it was written later.
    /// The running epoch may overwrite such a row just now, but then only one that was written
    /// later, too: both epochs that its header can name are. The header of a row that it inserts is
    /// not looked at: it is written as a line, in no order with what leads to it.
    fn seen(&self, id: EntryId) -> Option<Seen> {
        let mut waiter = Waiter::new(self.core.stopped());
        let seen = self.core.seen(id, self.sid, &mut waiter).ok()?;
        if !seen.word.is_value() {
            return None;
        }
        let (row, next) = (self.core.entries.row_of(id), self.core.persistent_version(id));
        let written = || version_epoch(self.core.image_base, row, next.slot());
        (next.is_value() && written() <= self.epoch).then_some(seen)
    }

    fn value(&self, seen: Seen) -> &'v [u8] {
        seen.word.charge(self.reads);
        ReadPhase::of(self.inside).bytes(seen.word)
    }

    fn row(&self, id: EntryId) -> Option<&'v [u8]> {
        self.seen(id).map(|seen| self.value(seen))
    }

    /// Shows what the snapshot sees of a key with a before-image; whether the visitor has enough.
    fn shows(&self, image: &BeforeImage, key: &[u8], each: Visit<'_>) -> bool {
        image.seen_at(self.epoch).is_some_and(|value| each(key, value).is_break())
    }
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
