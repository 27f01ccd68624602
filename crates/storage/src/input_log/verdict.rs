//! Verdicts: calls of committed epochs that replay must not run.
//!
//! A call that fails when it is too late to take its writes back stops the engine, and would stop
//! every replay of its epoch (O-49). No answer of that epoch was given, so the call may count as
//! one that failed in time, if that is decided once and for all: by a record in the log.
//!
//! An epoch has one record, which holds all verdicts on it: a new verdict is written together with
//! those before it, and then their record is released. So a log that epochs have filled has room
//! for any number of them ([`super::space::RESERVE_SEGMENTS`]), as long as they fit into a segment.

use crate::ids::{EpochNumber, Position};
use std::collections::BTreeMap;

/// Bytes in front of a verdict's reason: position and length.
const HEADER_BYTES: usize = 8;

/// A call that replay does not run: it declares nothing, writes nothing and counts as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The epoch of the call.
    pub epoch: EpochNumber,
    /// Its position in the epoch.
    pub position: Position,
    /// Why, for people. The record keeps as much of it as fits into its segment.
    pub reason: String,
}

/// For each epoch that has verdicts, the attempt of its record, and what it says.
pub(super) type Verdicts = BTreeMap<EpochNumber, (u64, Vec<Verdict>)>;

impl Verdict {
    /// A record of verdicts. Reasons are cut where it would be longer than `bytes_max`.
    pub(super) fn encode_all(verdicts: &[Self], bytes_max: usize) -> Vec<u8> {
        let mut room = bytes_max.saturating_sub(verdicts.len() * HEADER_BYTES);
        let mut bytes = Vec::new();
        for verdict in verdicts {
            let reason = &verdict.reason[..verdict.reason.floor_char_boundary(room)];
            room -= reason.len();
            bytes.extend_from_slice(&verdict.position.0.to_le_bytes());
            bytes.extend_from_slice(&(reason.len() as u32).to_le_bytes());
            bytes.extend_from_slice(reason.as_bytes());
        }
        bytes
    }

    /// Reads what `encode_all` wrote.
    pub(super) fn decode_all(epoch: EpochNumber, mut bytes: &[u8]) -> Vec<Self> {
        let mut verdicts = Vec::new();
        while let Some((verdict, rest)) = Self::decode(epoch, bytes) {
            verdicts.push(verdict);
            bytes = rest;
        }
        verdicts
    }

    fn decode(epoch: EpochNumber, bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (position, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (reason, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let reason = String::from_utf8_lossy(reason).into_owned();
        Some((Self { epoch, position: Position(u32::from_le_bytes(*position)), reason }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-49: a record of verdicts fits its segment, however long their reasons are, and says of
    /// each which call it is about.
    #[test]
    fn o_49_long_reasons_are_cut_and_positions_are_kept() {
        let verdict = |position, reason: &str| Verdict {
            epoch: EpochNumber(5),
            position,
            reason: reason.into(),
        };
        let long = "\u{e9}".repeat(200);
        let verdicts = [
            verdict(Position(1), &long),
            verdict(Position(2), "short"),
            verdict(Position(9), &long),
            verdict(Position(3), ""),
        ];
        for bytes_max in [32, 33, 100, 432, 433, 437, 600, 10_000] {
            let bytes = Verdict::encode_all(&verdicts, bytes_max);
            assert!(bytes.len() <= bytes_max, "{} of {bytes_max} bytes", bytes.len());
            let read = Verdict::decode_all(EpochNumber(5), &bytes);
            assert_eq!(read.len(), verdicts.len());
            for (read, written) in read.iter().zip(&verdicts) {
                assert_eq!(read.position, written.position);
                assert!(written.reason.starts_with(&read.reason), "{read:?}");
            }
        }
        assert_eq!(
            Verdict::decode_all(EpochNumber(5), &Verdict::encode_all(&verdicts, 10_000)),
            verdicts
        );
    }
}
