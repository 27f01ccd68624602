//! The records that belong to no stream: verdicts (`verdict.rs`), and what the inputs mean, a
//! record of the program that logged them, which replay is held against.
//!
//! The log must not know what is in that. The newest whole record counts; a new one is durable
//! before the one before it is released, and every commit record names the one that its epoch was
//! logged under.

use pmem::{Device, Port};

use super::error::LogError;
use super::format::{Kind, PROGRAM_EPOCH};
use super::log::{InputLog, Scratch};
use super::segment::SegmentPlace;
use super::verdict::Verdict;
use crate::ids::EpochNumber;

impl InputLog {
    /// Bytes of the program that the next epochs are logged under; `None` if there never was one.
    pub fn program(&self) -> Option<Vec<u8>> {
        let program = self.program.lock().expect("no panic while locked");
        program.as_ref().map(|(_, bytes)| bytes.clone())
    }

    pub(super) fn program_attempt(&self) -> u64 {
        self.program.lock().expect("no panic while locked").as_ref().map_or(0, |program| program.0)
    }

    /// Says what the inputs of the epochs from now on mean, durably. To be called only where
    /// nothing is left to replay: whatever the log still holds was logged under the program before.
    ///
    /// # Errors
    /// [`LogError::Full`] if there is no space; the device's.
    pub fn write_program(&self, port: &mut Port, bytes: &[u8]) -> Result<(), LogError> {
        let attempt = self.write_extra(port, Kind::Program, PROGRAM_EPOCH, bytes)?;
        let before =
            self.program.lock().expect("no panic while locked").replace((attempt, bytes.to_vec()));
        if let Some((before, _)) = before {
            self.space().drop_holding(before);
        }
        Ok(())
    }

    /// Keeps a verdict on a call of a committed epoch, durably, until the epoch is released.
    ///
    /// # Errors
    /// [`LogError::Full`] if there is no space; the device's.
    pub fn write_verdict(&self, port: &mut Port, verdict: &Verdict) -> Result<(), LogError> {
        let mut verdicts = self.verdicts.lock().expect("no panic while locked");
        let (before, mut all) = match verdicts.get(&verdict.epoch) {
            Some((attempt, all)) => (Some(*attempt), all.clone()),
            None => (None, Vec::new()),
        };
        all.push(verdict.clone());
        let bytes = Verdict::encode_all(&all, self.geometry().payload_bytes_max() as usize);
        let attempt = self.write_extra(port, Kind::Verdict, verdict.epoch, &bytes)?;
        if let Some(before) = before {
            self.space().drop_holding(before);
        }
        verdicts.insert(verdict.epoch, (attempt, all));
        Ok(())
    }

    /// Writes a record that belongs to no stream, and makes it durable. Returns its attempt.
    pub(super) fn write_extra(
        &self,
        port: &mut Port,
        kind: Kind,
        epoch: EpochNumber,
        bytes: &[u8],
    ) -> Result<u64, LogError> {
        self.erase_leftovers()?;
        let mut scratch = self.scratch();
        let is_extra = matches!(kind, Kind::Program | Kind::Verdict);
        assert!(is_extra, "a record of kind {kind:?} has a writer of its own");
        let attempt = self.space().hold(kind, epoch);
        let Scratch { segment, segments, .. } = &mut *scratch;
        if let Err(error) = self.take_record(epoch, attempt, bytes.len(), segments) {
            self.space().drop_holding(attempt);
            return Err(error);
        }
        let place = SegmentPlace::of_record(kind, epoch, attempt, bytes.len());
        self.write_record(port, place, bytes, segments, segment)?;
        port.log_fence();
        self.device().log_sync()?;
        self.space().close_record(attempt);
        Ok(attempt)
    }
}
