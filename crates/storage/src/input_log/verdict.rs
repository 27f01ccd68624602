//! Verdicts: calls of sealed epochs that replay must not run.
//!
//! A call that fails when it is too late to take its writes back stops the engine, and would stop
//! every replay of its epoch (O-49). No answer of that epoch was given, so the call may count as
//! one that failed in time, if that is decided once and for all: by a record in the log.

use pmem::{Device, Port};

use super::error::LogError;
use super::format::Kind;
use super::log::InputLog;

/// A call that replay does not run: it declares nothing, writes nothing and counts as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The epoch of the call.
    pub epoch: u64,
    /// Its position in the epoch.
    pub position: u32,
    /// Why, for people.
    pub reason: String,
}

impl Verdict {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.position.to_le_bytes().to_vec();
        bytes.extend_from_slice(self.reason.as_bytes());
        bytes
    }

    pub(super) fn decode(epoch: u64, bytes: &[u8]) -> Option<Self> {
        let (position, reason) = bytes.split_first_chunk()?;
        let reason = String::from_utf8_lossy(reason).into_owned();
        Some(Self { epoch, position: u32::from_le_bytes(*position), reason })
    }
}

impl<D: Device> InputLog<D> {
    /// Keeps a verdict on a call of a sealed epoch, durably, until the epoch is released.
    ///
    /// # Errors
    /// [`LogError::Full`] if there is no space; the device's.
    pub fn write_verdict(&self, port: &mut Port<D>, verdict: &Verdict) -> Result<(), LogError> {
        self.write_extra(port, Kind::Verdict, verdict.epoch, &verdict.encode()).map(drop)
    }
}
