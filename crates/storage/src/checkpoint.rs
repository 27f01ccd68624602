//! The two checkpoint records (NV 4.3): which epoch's end the medium holds.
//!
//! Order of a checkpoint: every worker has flushed and fenced its rows, values, free lists and
//! offsets; then this record is written, its epoch last; then a fence. Whoever sees the record sees
//! all of it (O-22, O-23).

use pmem::{Device, Port};
use zerocopy::IntoBytes;

use crate::format::{CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, CheckpointRecord};
use crate::{Result, StorageError};

fn crc(record: &CheckpointRecord) -> u32 {
    crc32fast::hash(CheckpointRecord { crc: 0, ..*record }.as_bytes())
}

fn place(sequence: u64) -> u64 {
    CHECKPOINTS_OFFSET + sequence % 2 * CHECKPOINT_STRIDE
}

/// Writes the record and makes it durable (on devices that capture: with the next capture).
pub fn write<D: Device>(port: &mut Port<D>, mut record: CheckpointRecord) {
    record.crc = crc(&record);
    let words: [u64; 8] = zerocopy::transmute!(record);
    for (i, word) in words.into_iter().enumerate() {
        // SAFETY: one thread writes the checkpoint, after the barrier that ends the epoch.
        unsafe { port.store_u64(place(record.sequence) + i as u64 * 8, word) };
    }
    port.flush(place(record.sequence), 64);
    port.fence();
}

/// The newest valid record.
///
/// # Errors
/// `Corrupt` if neither is valid.
pub fn read<D: Device>(device: &D) -> Result<CheckpointRecord> {
    let mut newest: Option<CheckpointRecord> = None;
    for copy in 0..2 {
        let mut words = [0u64; 8];
        for (i, word) in words.iter_mut().enumerate() {
            *word = device.image().load_u64(place(copy) + i as u64 * 8);
        }
        let record: CheckpointRecord = zerocopy::transmute!(words);
        let used = words.iter().any(|&w| w != 0);
        let newer = newest.is_none_or(|n| record.sequence > n.sequence);
        if used && record.crc == crc(&record) && record.sequence % 2 == copy && newer {
            newest = Some(record);
        }
    }
    newest.ok_or_else(|| StorageError::Corrupt("neither checkpoint record is valid".into()))
}
