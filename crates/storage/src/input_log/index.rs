//! Where to read what was found sealed.

use std::collections::{BTreeMap, BTreeSet};

use super::summary::SealInfo;

/// Where to read what was found sealed.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) epochs: BTreeMap<u64, SealedEpoch>,
    /// By epoch and attempt.
    pub(super) carries: BTreeMap<(u64, u64), CarryRecord>,
}

#[derive(Debug, Clone)]
pub(super) struct SealedEpoch {
    pub(super) attempt: u64,
    /// Its only stream is in the segment of its seal.
    pub(super) is_whole: bool,
    /// The attempt that wrote the program which the inputs are for.
    pub(super) program: u64,
    pub(super) info: SealInfo,
    /// Bytes and checksum of the epoch's carry, if it had one when it was sealed.
    pub(super) carry: Option<(u64, u32)>,
    pub(super) seal_segments: Vec<u32>,
    pub(super) streams: Vec<Vec<u32>>,
}

#[derive(Debug, Clone)]
pub(super) struct CarryRecord {
    pub(super) segments: Vec<u32>,
    pub(super) bytes: u64,
    pub(super) crc: u32,
}

impl Index {
    pub(super) fn add_carry(
        &mut self,
        epoch: u64,
        attempt: u64,
        segments: &[u32],
        bytes: u64,
        crc: u32,
    ) {
        let record = CarryRecord { segments: segments.to_vec(), bytes, crc };
        self.carries.insert((epoch, attempt), record);
    }

    pub(super) fn drop_carries(&mut self, epoch: u64) {
        self.carries.retain(|(held, _), _| *held != epoch);
    }

    /// Forgets the carries that do not count because there is another one of the same epoch.
    pub(super) fn keep_one_carry_each(&mut self) {
        let epochs: BTreeSet<u64> = self.carries.keys().map(|(epoch, _)| *epoch).collect();
        for epoch in epochs {
            // None counts if the seal names another one; what needs it will say so.
            let counts = self.carry(epoch).map(|(attempt, _)| attempt);
            self.carries.retain(|(held, attempt), _| *held != epoch || Some(*attempt) == counts);
        }
    }

    pub(super) fn release(&mut self, epoch: u64) {
        self.epochs.retain(|held, _| *held > epoch);
        self.carries.retain(|(held, _), _| *held > epoch);
    }

    /// The carry that the epoch's seal names, or else the newest.
    pub(super) fn carry(&self, epoch: u64) -> Option<(u64, &CarryRecord)> {
        let named = self.epochs.get(&epoch).and_then(|sealed| sealed.carry);
        let carries = self.carries.range((epoch, 0)..=(epoch, u64::MAX)).rev();
        let mut fitting = carries
            .filter(|(_, carry)| named.is_none_or(|named| named == (carry.bytes, carry.crc)));
        fitting.next().map(|((_, attempt), carry)| (*attempt, carry))
    }
}
