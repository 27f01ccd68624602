//! Secondary indexes as snapshots see them: an entry says since when it is there, and what was
//! taken out is kept while a snapshot may see it.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};

use pmem::Device;

use super::{IndexUndo, Removed, SecondaryIndex, SecondaryIndexes};
use crate::reads::Visit;
use crate::{Engine, EngineError, Result, ScanPart};

/// What an entry takes besides its key, about.
const ENTRY_BYTES: u64 = 160;

impl SecondaryIndexes {
    /// The epoch has ended: what it took out and the newest snapshot sees is kept.
    pub(crate) fn keep_removed(&self, undo: &mut IndexUndo, (newest, epoch): (u64, u64)) {
        undo.of_call = 0;
        for change in undo.changes.drain(..) {
            if !change.is_added && newest != 0 && change.entry.since <= newest {
                let index = self.indexes[usize::from(change.index)].write();
                let mut index = index.expect("no panic while locked");
                index.keep(change.key, Removed { entry: change.entry, until: epoch });
            }
        }
    }

    /// Bytes that are kept for snapshots.
    pub(crate) fn removed_bytes(&self) -> u64 {
        let bytes = |index: &pmem::sync::RwLock<SecondaryIndex>| {
            index.read().expect("no panic while locked").removed_bytes
        };
        self.indexes.iter().map(bytes).sum()
    }

    /// Frees at most so many entries that no snapshot sees: those that were taken out before the
    /// oldest. Whether any are left.
    pub(crate) fn sweep(&self, live: &BTreeMap<u64, usize>, most: usize) -> bool {
        let oldest = live.keys().next().copied().unwrap_or(u64::MAX);
        let mut are_left = false;
        for index in &self.indexes {
            are_left |= index.write().expect("no panic while locked").sweep(oldest, most);
        }
        are_left
    }
}

impl SecondaryIndex {
    fn keep(&mut self, key: Box<[u8]>, removed: Removed) {
        self.removed_bytes += key.len() as u64 + ENTRY_BYTES;
        self.removed_order.push_back((removed.until, key.clone()));
        self.removed.entry(key).or_default().push(removed);
    }

    fn sweep(&mut self, oldest: u64, most: usize) -> bool {
        let is_free = |order: &(u64, Box<[u8]>)| order.0 <= oldest;
        for _ in 0..most {
            if !self.removed_order.front().is_some_and(is_free) {
                break;
            }
            let (until, key) = self.removed_order.pop_front().expect("just looked at");
            self.removed_bytes -= key.len() as u64 + ENTRY_BYTES;
            let is_empty = self.removed.get_mut(&key).is_some_and(|of_key| {
                of_key.retain(|removed| removed.until != until);
                of_key.is_empty()
            });
            if is_empty {
                self.removed.remove(&key);
            }
        }
        self.removed_order.front().is_some_and(is_free)
    }

    /// Whether a snapshot sees an entry of those that were taken out.
    fn is_seen(removed: &[Removed], epoch: u64) -> bool {
        removed.iter().any(|r| r.entry.since <= epoch && epoch < r.until)
    }
}

impl<D: Device> Engine<D> {
    /// Visits rows in the order of a secondary index, `part.table`, as a snapshot sees them: their
    /// keys and values. As [`Engine::scan_at`]; what is returned is a key of the index.
    ///
    /// # Errors
    /// As [`Engine::scan_at`].
    pub fn scan_index_at(
        &self,
        epoch: u64,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let ScanPart { table: number, low, high, is_descending, rows_max } = part;
        let index = self.core.secondary.get(number).map_err(EngineError::Limit)?;
        let index = index.read().expect("no panic while locked");
        self.check_snapshot(epoch)?;
        if low >= high {
            return Ok(None);
        }
        let bounds = (Bound::Included(low), Bound::Excluded(high));
        let now = index.entries.range::<[u8], _>(bounds);
        let before = index.removed.range::<[u8], _>(bounds);
        let (mut now, mut before) = (in_order(now, is_descending), in_order(before, is_descending));
        let mut next = || {
            let heads = [now.peek().map(|head| head.0), before.peek().map(|head| head.0)];
            let heads = heads.into_iter().flatten();
            let key = if is_descending { heads.max() } else { heads.min() }?;
            let entry = now.next_if(|head| head.0 == key).map(|head| *head.1);
            let removed = before.next_if(|head| head.0 == key).map_or(&[][..], |head| head.1);
            let is_seen = entry.is_some_and(|entry| entry.since <= epoch)
                || SecondaryIndex::is_seen(removed, epoch);
            let prefix = entry.unwrap_or_else(|| removed[0].entry).prefix;
            Some((key, prefix, is_seen))
        };
        let mut visited = 0;
        while let Some((key, prefix, is_seen)) = next() {
            visited += 1;
            let own = &key[usize::from(prefix)..];
            let value = match is_seen {
                true => self.get_at(epoch, index.table, own)?,
                false => None,
            };
            let flow = value.map_or(ControlFlow::Continue(()), |value| each(own, &value));
            if flow.is_break() || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(None)
    }
}

type InOrder<'i, T> = Peekable<Box<dyn Iterator<Item = (&'i Box<[u8]>, &'i T)> + 'i>>;

/// A range in one of its directions.
fn in_order<T>(range: Range<'_, Box<[u8]>, T>, is_descending: bool) -> InOrder<'_, T> {
    let range: Box<dyn Iterator<Item = _>> =
        if is_descending { Box::new(range.rev()) } else { Box::new(range) };
    range.peekable()
}
