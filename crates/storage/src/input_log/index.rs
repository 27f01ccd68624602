//! Where to read what was found committed.

use std::collections::{BTreeMap, BTreeSet};

use super::summary::CommitInfo;
use crate::ids::EpochNumber;

/// Where to read what was found committed.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) epochs: BTreeMap<EpochNumber, CommittedEpoch>,
    /// By epoch and attempt.
    pub(super) deferred_records: BTreeMap<(EpochNumber, u64), DeferredRecord>,
}

#[derive(Debug, Clone)]
pub(super) struct CommittedEpoch {
    pub(super) attempt: u64,
    /// Its only stream is in the segment of its commit record.
    pub(super) is_whole: bool,
    /// The attempt that wrote the program which the inputs are for.
    pub(super) program: u64,
    pub(super) info: CommitInfo,
    /// Bytes and checksum of the epoch's record of deferred calls, if it had one when it was
    /// committed.
    pub(super) deferred_calls: Option<(u64, u32)>,
    pub(super) commit_segments: Vec<u32>,
    pub(super) streams: Vec<Vec<u32>>,
}

#[derive(Debug, Clone)]
pub(super) struct DeferredRecord {
    pub(super) segments: Vec<u32>,
    pub(super) bytes: u64,
    pub(super) crc: u32,
}

impl Index {
    pub(super) fn add_deferred_record(
        &mut self,
        epoch: EpochNumber,
        attempt: u64,
        segments: &[u32],
        bytes: u64,
        crc: u32,
    ) {
        let record = DeferredRecord { segments: segments.to_vec(), bytes, crc };
        let before = self.deferred_records.insert((epoch, attempt), record);
        assert!(before.is_none(), "attempt {attempt} has one record of deferred calls");
    }

    pub(super) fn drop_deferred_records(&mut self, epoch: EpochNumber) {
        self.deferred_records.retain(|(held, _), _| *held != epoch);
    }

    /// Forgets the records of deferred calls that do not count because there is another one of the
    /// same epoch.
    pub(super) fn keep_one_deferred_record_each(&mut self) {
        let epochs: BTreeSet<EpochNumber> =
            self.deferred_records.keys().map(|(epoch, _)| *epoch).collect();
        for epoch in epochs {
            // None counts if the commit record names another one; what needs it will say so.
            let counts = self.deferred_calls(epoch).map(|(attempt, _)| attempt);
            self.deferred_records
                .retain(|(held, attempt), _| *held != epoch || Some(*attempt) == counts);
        }
    }

    /// The largest timestamp of the epochs; zero if there are none.
    pub(super) fn timestamp_ns(&self) -> u64 {
        self.epochs.values().map(|committed| committed.info.timestamp_ns).max().unwrap_or(0)
    }

    pub(super) fn release(&mut self, epoch: EpochNumber) {
        self.epochs.retain(|held, _| *held > epoch);
        self.deferred_records.retain(|(held, _), _| *held > epoch);
    }

    /// The record of deferred calls that the epoch's commit record names, or else the newest.
    pub(super) fn deferred_calls(&self, epoch: EpochNumber) -> Option<(u64, &DeferredRecord)> {
        let named = self.epochs.get(&epoch).and_then(|committed| committed.deferred_calls);
        let deferred_records = self.deferred_records.range((epoch, 0)..=(epoch, u64::MAX)).rev();
        let mut fitting = deferred_records.filter(|(_, deferred_calls)| {
            named.is_none_or(|named| named == (deferred_calls.bytes, deferred_calls.crc))
        });
        fitting.next().map(|((_, attempt), deferred_calls)| (*attempt, deferred_calls))
    }
}
