//! Whether a log space has been used by epochs, of whatever store and geometry.
//!
//! Asked where there is no superblock, which would know both: a log that epochs were written to is
//! not that of a creation that was cut short.

use pmem::LogSpace;

use super::error::LogError;
use super::format::{Kind, SEGMENT_BYTES_MIN, SegmentHeader};
use crate::ids::EpochNumber;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// The first epoch of a record in a log that is no record of a program. `None` where all that was
/// logged is a program, or nothing.
///
/// # Errors
/// The device's.
pub(crate) fn first_logged<L: LogSpace>(log: &L) -> Result<Option<EpochNumber>, LogError> {
    let end = log.log_bytes() / SEGMENT_BYTES_MIN * SEGMENT_BYTES_MIN;
    let mut buffer = vec![0; PIECE_BYTES.min(end) as usize];
    let mut first: Option<EpochNumber> = None;
    for at in (0..end).step_by(PIECE_BYTES as usize) {
        let piece = &mut buffer[..PIECE_BYTES.min(end - at) as usize];
        log.log_read(at, piece)?;
        // Segments of all sizes begin at multiples of the smallest.
        let headers = piece.chunks(SEGMENT_BYTES_MIN as usize).filter_map(SegmentHeader::parse);
        let of_epochs = headers
            .filter(|header| Kind::from_number(header.kind.get()) != Some(Kind::Program))
            .map(|header| EpochNumber(header.epoch.get()));
        first = first.into_iter().chain(of_epochs).min();
    }
    Ok(first)
}
