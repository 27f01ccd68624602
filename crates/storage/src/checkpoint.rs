//! The two checkpoint records (NV 4.3): which epoch's end the medium holds.
//!
//! Order of a checkpoint: every worker has flushed and fenced its rows, values, free lists and
//! offsets; then this record is written, its epoch last; then a fence. Whoever sees the record sees
//! all of it (O-22, O-23).

use pmem::{Device, Port};
use zerocopy::IntoBytes;

use crate::format::{
    CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, CheckpointRecord, HASH_KNOWN, HASH_UNKNOWN,
};
use crate::{Result, StateHash, StorageError};

fn crc(record: &CheckpointRecord) -> u32 {
    crc32fast::hash(CheckpointRecord { crc: 0, ..*record }.as_bytes())
}

impl CheckpointRecord {
    /// A checkpoint of the end of an epoch; `None`: its state hash was not kept up.
    pub(crate) fn new(
        sequence: u64,
        epoch: u64,
        hash: Option<StateHash>,
        rows: u64,
        carry_calls: u32,
    ) -> Self {
        let StateHash(sum) = hash.unwrap_or_default();
        Self {
            sequence,
            hash_low: sum as u64,
            hash_high: (sum >> 64) as u64,
            rows,
            carry_calls,
            crc: 0,
            hash_state: if hash.is_some() { HASH_KNOWN } else { HASH_UNKNOWN },
            reserved: 0,
            epoch,
        }
    }

    /// The state hash of the checkpoint, if it is known.
    pub fn state_hash(&self) -> Option<StateHash> {
        let hash = StateHash(u128::from(self.hash_low) | u128::from(self.hash_high) << 64);
        (self.hash_state == HASH_KNOWN).then_some(hash)
    }

    /// Whether it says what it knows of the state hash in a way that we write: neither a missing
    /// hash nor one that nobody vouches for may pass as the other.
    fn is_clear(&self) -> bool {
        match self.hash_state {
            HASH_KNOWN => true,
            HASH_UNKNOWN => (self.hash_low, self.hash_high) == (0, 0),
            _ => false,
        }
    }
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

/// Counts and charges reading both records.
pub(crate) fn count_reads<D: Device>(port: &mut Port<D>) {
    for copy in 0..2 {
        port.count_load(place(copy), size_of::<CheckpointRecord>() as u64);
    }
}

/// The newest valid record.
///
/// # Errors
/// `Corrupt` if neither is valid, or the newest is none that we write.
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
    match newest {
        None => Err(StorageError::Corrupt("neither checkpoint record is valid".into())),
        Some(record) if !record.is_clear() => Err(StorageError::Corrupt(format!(
            "the checkpoint of epoch {} does not say whether it knows its state hash: {}",
            record.epoch, record.hash_state
        ))),
        Some(record) => Ok(record),
    }
}
