//! The two checkpoint records (NV 4.3): which epoch's end the device holds.
//!
//! Order of a checkpoint: every worker has flushed and fenced its rows, values, free lists and
//! offsets; then this record is written, its epoch last; then a fence. A reader that sees the
//! record sees all of it (O-22, O-23).

use pmem::{AnyDevice, Device, Port};
use zerocopy::IntoBytes;

use crate::digest::StateHash;
use crate::error::{Result, StorageError};
use crate::format::{
    CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, CheckpointRecord, EPOCH_MAX, HASH_KNOWN, HASH_UNKNOWN,
};
use crate::ids::EpochNumber;

fn crc(record: &CheckpointRecord) -> u32 {
    crc32fast::hash(CheckpointRecord { crc: 0, ..*record }.as_bytes())
}

impl CheckpointRecord {
    /// A checkpoint of the end of an epoch, with the first catalog and no timestamp; `None`: its
    /// state hash was not maintained.
    pub(crate) fn new(
        sequence: u64,
        epoch: EpochNumber,
        hash: Option<StateHash>,
        rows: u64,
        deferred_calls: u32,
    ) -> Self {
        let StateHash(sum) = hash.unwrap_or_default();
        Self {
            sequence,
            hash_low: sum as u64,
            hash_high: (sum >> 64) as u64,
            rows,
            deferred_calls,
            crc: 0,
            timestamp_ns: 0,
            catalog: 0,
            hash_state: if hash.is_some() { HASH_KNOWN } else { HASH_UNKNOWN },
            epoch: epoch.0,
        }
    }

    /// The state hash of the checkpoint, if it is known.
    pub fn state_hash(&self) -> Option<StateHash> {
        let hash = StateHash(u128::from(self.hash_low) | u128::from(self.hash_high) << 64);
        (self.hash_state == HASH_KNOWN).then_some(hash)
    }

    /// Whether it says what it knows of the state hash in a way that we write: neither a missing
    /// hash nor one without a check may pass as the other.
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

/// Writes the record and makes it durable (on devices that snapshot: with the next image snapshot).
pub fn write(port: &mut Port, mut record: CheckpointRecord) {
    assert!(record.epoch <= EPOCH_MAX, "epoch {} is beyond the last one", record.epoch);
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
pub(crate) fn count_reads(port: &mut Port) {
    for copy in 0..2 {
        port.count_load(place(copy), size_of::<CheckpointRecord>() as u64);
    }
}

/// The newest valid record.
///
/// # Errors
/// `Corrupt` if neither is valid, or the newest is none that we write.
pub fn read(device: &AnyDevice) -> Result<CheckpointRecord> {
    newest([0, 1].map(|copy| {
        let mut words = [0u64; 8];
        for (i, word) in words.iter_mut().enumerate() {
            *word = device.image().load_u64(place(copy) + i as u64 * 8);
        }
        zerocopy::transmute!(words)
    }))
}

/// The newest valid one of the two records.
///
/// # Errors
/// As [`read`].
pub(crate) fn newest(records: [CheckpointRecord; 2]) -> Result<CheckpointRecord> {
    let mut newest: Option<CheckpointRecord> = None;
    for (copy, record) in (0..).zip(records) {
        // Zeros are none: their checksum is another number.
        let newer = newest.is_none_or(|n| record.sequence > n.sequence);
        if record.crc == crc(&record) && record.sequence % 2 == copy && newer {
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

#[cfg(test)]
mod tests {

    use pmem::Dram;

    use super::*;

    fn port() -> Port {
        let device = AnyDevice::new(Dram::new(1 << 20, 4096).unwrap());
        device.grow_image(1 << 20).unwrap();
        Port::new(device, 0)
    }

    fn record(sequence: u64) -> CheckpointRecord {
        let hash = StateHash(u128::from(sequence) << 64 | 7);
        CheckpointRecord::new(sequence, EpochNumber(10 * sequence), Some(hash), 3, 2)
    }

    fn words(port: &Port, at: u64) -> [u64; 8] {
        std::array::from_fn(|i| port.device().image().load_u64(at + i as u64 * 8))
    }

    fn store(port: &mut Port, at: u64, words: [u64; 8]) {
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: no other thread uses the device.
            unsafe { port.store_u64(at + i as u64 * 8, word) };
        }
    }

    /// O-23: of the two records the newest that is whole counts, and a bit of any word is enough
    /// to make it none.
    #[test]
    fn o_23_the_newest_whole_record_counts() {
        let mut port = port();
        assert!(read(&AnyDevice::of(port.device())).unwrap_err().is_corrupt());
        assert_eq!([place(4), place(5)], [CHECKPOINTS_OFFSET, CHECKPOINTS_OFFSET + 256]);
        for sequence in 1..=5 {
            write(&mut port, record(sequence));
            let found = read(&AnyDevice::of(port.device())).unwrap();
            assert_eq!(CheckpointRecord { crc: 0, ..found }, record(sequence));
            assert_eq!(found.state_hash(), Some(StateHash(u128::from(sequence) << 64 | 7)));
            let whole = words(&port, place(sequence));
            for word in 0..8 {
                let mut damaged = whole;
                damaged[word] ^= 1 << 17;
                store(&mut port, place(sequence), damaged);
                let found = read(&AnyDevice::of(port.device())).map(|found| found.sequence).ok();
                assert_eq!(found, (sequence > 1).then(|| sequence - 1), "word {word}");
            }
            store(&mut port, place(sequence), whole);
        }
    }

    /// O-23: a record that lies where another one belongs is none: the next checkpoint would be
    /// written over the only good one.
    #[test]
    fn o_23_a_record_in_the_other_place_is_none() {
        let mut port = port();
        write(&mut port, record(4));
        let whole = words(&port, place(4));
        store(&mut port, place(4), [0; 8]);
        store(&mut port, place(5), whole);
        assert!(read(&AnyDevice::of(port.device())).unwrap_err().is_corrupt());
    }

    /// O-48: neither a missing state hash nor one without a check may pass as the other.
    #[test]
    fn o_48_a_record_says_whether_it_knows_its_hash() {
        let cases = [
            (HASH_KNOWN, (5, 6), Some(Some(StateHash(6 << 64 | 5)))),
            (HASH_KNOWN, (0, 0), Some(Some(StateHash(0)))),
            (HASH_UNKNOWN, (0, 0), Some(None)),
            (HASH_UNKNOWN, (5, 0), None),
            (HASH_UNKNOWN, (0, 6), None),
            (HASH_KNOWN ^ HASH_UNKNOWN ^ 1 << 9, (0, 0), None),
        ];
        for (hash_state, (hash_low, hash_high), expected) in cases {
            let mut port = port();
            write(&mut port, CheckpointRecord { hash_state, hash_low, hash_high, ..record(1) });
            let found = read(&AnyDevice::of(port.device())).map(|found| found.state_hash()).ok();
            assert_eq!(found, expected, "{hash_state}, {hash_low}, {hash_high}");
        }
        assert_eq!(CheckpointRecord::new(1, EpochNumber(1), None, 0, 0).state_hash(), None);
    }
}
