//! Secondary indexes as snapshots see them.

use std::ops::{Bound, ControlFlow};

use storage::EpochNumber;

use super::ScanPart;
use super::view::View;
use crate::engine::reader::Reader;
use crate::error::{EngineError, Result};
use crate::reads::Visit;
use crate::secondary::{SecondaryIndex, in_order};

impl Reader {
    /// Visits rows in the order of a secondary index, `part.table`, as a snapshot sees them: their
    /// keys and values. As [`Reader::scan_at`]; what is returned is a key of the index.
    ///
    /// # Errors
    /// As [`Reader::scan_at`].
    pub fn scan_index_at(
        &self,
        slot: usize,
        epoch: EpochNumber,
        part: ScanPart<'_>,
        each: Visit<'_>,
    ) -> Result<Option<Vec<u8>>> {
        self.view(slot, epoch, |view| view.scan_index(part, each))
    }
}

impl View<'_> {
    fn scan_index(&self, part: ScanPart<'_>, each: Visit<'_>) -> Result<Option<Vec<u8>>> {
        let ScanPart { table: number, low, high, is_descending, rows_max } = part;
        let epoch = self.epoch;
        let index = self.core.secondary.get(number.0).map_err(EngineError::Limit)?;
        let index = index.read().expect("no panic while locked");
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
                true => self.get(index.table, own)?,
                false => None,
            };
            let flow = value.map_or(ControlFlow::Continue(()), |value| each(own, value));
            if flow.is_break() || visited >= rows_max {
                return Ok(Some(key.to_vec()));
            }
        }
        Ok(None)
    }
}
