//! What the segments that are not free are held for: the logs of epochs, in their order, and other
//! records. There may be hundreds of epochs between two checkpoints, so nothing that is done for
//! each of them looks at all.

use std::collections::VecDeque;

use super::format::Kind;
use crate::digest::StateHash;
use crate::ids::EpochNumber;

/// What an epoch's log or a record of deferred calls holds.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) kind: Kind,
    pub(super) epoch: EpochNumber,
    pub(super) attempt: u64,
    /// An epoch: whether its commit record was written. A record of deferred calls is always
    /// complete.
    pub(super) committed: bool,
    pub(super) segments: Vec<u32>,
    /// Segments that the streams and the commit record may still take.
    pub(super) promised: u32,
    /// Segments that the record of deferred calls of the next epoch may take.
    pub(super) promised_deferred_bytes: u32,
    pub(super) streams: u32,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// Checksum of a record of deferred calls's bytes.
    pub(super) crc: u32,
    /// State hash at the end of the epoch before, as the commit record says it.
    pub(super) hash_before: Option<StateHash>,
}

impl Holding {
    pub(super) fn new(kind: Kind, epoch: EpochNumber, attempt: u64) -> Self {
        Self {
            kind,
            epoch,
            attempt,
            committed: false,
            segments: Vec::new(),
            promised: 0,
            promised_deferred_bytes: 0,
            streams: 0,
            calls: 0,
            bytes: 0,
            crc: 0,
            hash_before: None,
        }
    }
}

/// All holdings.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Those of epochs, in order.
    epochs: VecDeque<Holding>,
    /// All others, in the order in which they were begun.
    records: Vec<Holding>,
    /// Segments of verdicts.
    verdict_segments: u32,
}

impl Holdings {
    /// Adds one, which is the newest.
    pub(super) fn push(&mut self, holding: Holding) {
        if holding.kind != Kind::Stream {
            if holding.kind == Kind::Verdict {
                self.verdict_segments += holding.segments.len() as u32;
            }
            return self.records.push(holding);
        }
        let last = self.epochs.back().map(|last| last.epoch);
        assert!(last < Some(holding.epoch), "epoch {} is begun once", holding.epoch);
        self.epochs.push_back(holding);
    }

    /// Those of epochs, in order.
    pub(super) fn epochs(&self) -> impl DoubleEndedIterator<Item = &Holding> {
        self.epochs.iter()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Holding> {
        self.epochs.iter().chain(&self.records)
    }

    /// Segments of all verdicts.
    pub(super) fn verdict_segments(&self) -> u32 {
        self.verdict_segments
    }

    /// An epoch that was begun and not committed yet.
    pub(super) fn open_epoch(&mut self, epoch: EpochNumber) -> Option<&mut Holding> {
        self.epoch(epoch).filter(|holding| !holding.committed)
    }

    fn epoch(&mut self, epoch: EpochNumber) -> Option<&mut Holding> {
        let at = self.epochs.binary_search_by_key(&epoch, |holding| holding.epoch).ok()?;
        Some(&mut self.epochs[at])
    }

    /// The newest record of deferred calls of an epoch.
    pub(super) fn deferred_calls(&self, epoch: EpochNumber) -> Option<&Holding> {
        let of_epoch = self.records.iter().filter(|holding| is_deferred(holding, epoch));
        of_epoch.max_by_key(|holding| holding.attempt)
    }

    /// One by its attempt.
    pub(super) fn get(&self, attempt: u64) -> Option<&Holding> {
        let is_it = |holding: &&Holding| holding.attempt == attempt;
        // Mostly it is the epoch that is open.
        let open = self.epochs.back().filter(is_it);
        open.or_else(|| self.records.iter().rev().find(is_it))
            .or_else(|| self.epochs.iter().rev().find(is_it))
    }

    pub(super) fn get_mut(&mut self, attempt: u64) -> Option<&mut Holding> {
        let is_it = |holding: &&mut Holding| holding.attempt == attempt;
        if self.epochs.back().is_some_and(|last| last.attempt == attempt) {
            return self.epochs.back_mut();
        }
        let record = self.records.iter_mut().rev().find(is_it);
        record.or_else(|| self.epochs.iter_mut().rev().find(is_it))
    }

    /// A holding got segments.
    pub(super) fn add_segments(&mut self, attempt: u64, segments: impl Iterator<Item = u32>) {
        let Some(holding) = self.get_mut(attempt) else { return };
        let before = holding.segments.len();
        holding.segments.extend(segments);
        let added = holding.segments.len() - before;
        if holding.kind == Kind::Verdict {
            self.verdict_segments += added as u32;
        }
    }

    /// A holding has one of its segments no more; whether it had it.
    pub(super) fn remove_segment(&mut self, attempt: u64, segment: u32) -> bool {
        let Some(holding) = self.get_mut(attempt) else { return false };
        let Some(at) = holding.segments.iter().rposition(|held| *held == segment) else {
            return false;
        };
        holding.segments.swap_remove(at);
        if holding.kind == Kind::Verdict {
            self.verdict_segments -= 1;
        }
        true
    }

    /// The epochs up to one that still have a promise for their records of deferred calls. All
    /// before the first that has none were looked at before.
    pub(super) fn promised_deferred_up_to(
        &mut self,
        epoch: EpochNumber,
    ) -> impl Iterator<Item = &mut u32> {
        let end = self.epochs.partition_point(|holding| holding.epoch <= epoch);
        let promises = self.epochs.range_mut(..end).rev();
        promises.map(|held| &mut held.promised_deferred_bytes).take_while(|held| **held > 0)
    }

    /// The promise that an epoch has for the record of deferred calls of the next.
    pub(super) fn promised_deferred(&mut self, epoch: EpochNumber) -> Option<&mut u32> {
        self.epoch(epoch).map(|holding| &mut holding.promised_deferred_bytes)
    }

    /// Takes out one by its attempt.
    pub(super) fn remove(&mut self, attempt: u64) -> Option<Holding> {
        if let Some(at) = self.records.iter().rposition(|holding| holding.attempt == attempt) {
            let removed = self.records.remove(at);
            self.forget(&removed);
            return Some(removed);
        }
        let at = self.epochs.iter().rposition(|holding| holding.attempt == attempt)?;
        self.epochs.remove(at)
    }

    /// Takes out the records of deferred calls of an epoch.
    pub(super) fn remove_deferred(&mut self, epoch: EpochNumber) -> Vec<Holding> {
        self.records.extract_if(.., |holding| is_deferred(holding, epoch)).collect()
    }

    /// Takes out all of the epochs up to one.
    pub(super) fn remove_up_to(&mut self, epoch: EpochNumber) -> Vec<Holding> {
        let end = self.epochs.partition_point(|holding| holding.epoch <= epoch);
        let mut removed: Vec<Holding> = self.epochs.drain(..end).collect();
        removed.extend(self.records.extract_if(.., |holding| holding.epoch <= epoch));
        removed.iter().for_each(|holding| self.forget(holding));
        removed
    }

    fn forget(&mut self, removed: &Holding) {
        if removed.kind == Kind::Verdict {
            let held = removed.segments.len() as u32;
            assert!(held <= self.verdict_segments, "segments of verdicts are counted");
            self.verdict_segments -= held;
        }
    }
}

fn is_deferred(holding: &Holding, epoch: EpochNumber) -> bool {
    holding.kind == Kind::Deferred && holding.epoch == epoch
}
