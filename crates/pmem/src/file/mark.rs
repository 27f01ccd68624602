//! The caller's mark: a small record in `meta` that is replaced often and never synced.
//!
//! It has two slots, written in turn, so that a torn one leaves the one before. After the end of a
//! process the newest is there; after a power cut this one, an older one, or none.
//!
//! | offset | bytes | a mark |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 8 | instance, as in the headers |
//! | 16 | 8 | sequence: number of the mark, from 1 |
//! | 24 | 48 | what the caller wants to find |
//! | 72 | 4 | zero |
//! | 76 | 4 | CRC-32 of the 76 bytes before |

use super::disk::DiskHandle;
use crate::device::MARK_BYTES;
use crate::failure::DeviceError;
use crate::memory::PAGE_BYTES;

const MAGIC: [u8; 8] = *b"NVCRMARK";
const RECORD_BYTES: usize = 80;
const CRC_AT: usize = RECORD_BYTES - 4;
const CONTENT_AT: usize = 24;
/// After the two slots for headers.
const SLOTS_OFFSET: u64 = 2 * PAGE_BYTES;

const _: () = assert!(CONTENT_AT + MARK_BYTES <= CRC_AT && RECORD_BYTES <= 512);

/// The marks of an open database.
#[derive(Debug)]
pub(super) struct Marks {
    instance: u64,
    /// The newest that an earlier process left.
    found: Option<[u8; MARK_BYTES]>,
    /// Number of the newest one that is in `meta`.
    sequence: u64,
}

impl Marks {
    /// Those of a database that has none yet.
    pub(super) fn none(instance: u64) -> Self {
        Self { instance, found: None, sequence: 0 }
    }

    /// Looks for the newest intact mark of this instance; anything else is none.
    pub(super) fn read(meta: &DiskHandle, instance: u64) -> Result<Self, DeviceError> {
        let mut newest = Self::none(instance);
        for slot in 0..2 {
            let mut bytes = [0; RECORD_BYTES];
            meta.read_exact_at(slot_offset(slot), &mut bytes)?;
            match decode(&bytes, instance) {
                Some((sequence, mark)) if sequence > newest.sequence => {
                    newest = Self { instance, found: Some(mark), sequence };
                }
                _ => {}
            }
        }
        Ok(newest)
    }

    pub(super) fn found(&self) -> Option<[u8; MARK_BYTES]> {
        self.found
    }

    /// Writes the next mark over the one before the last.
    pub(super) fn write(
        &mut self,
        meta: &DiskHandle,
        mark: &[u8; MARK_BYTES],
    ) -> Result<(), DeviceError> {
        self.sequence += 1;
        let bytes = encode(self.instance, self.sequence, mark);
        meta.write_all_at(slot_offset(self.sequence), &bytes)
    }
}

fn slot_offset(sequence: u64) -> u64 {
    SLOTS_OFFSET + sequence % 2 * PAGE_BYTES
}

fn encode(instance: u64, sequence: u64, mark: &[u8; MARK_BYTES]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&instance.to_le_bytes());
    bytes[16..CONTENT_AT].copy_from_slice(&sequence.to_le_bytes());
    bytes[CONTENT_AT..][..MARK_BYTES].copy_from_slice(mark);
    let crc = crc32fast::hash(&bytes[..CRC_AT]);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; RECORD_BYTES], instance: u64) -> Option<(u64, [u8; MARK_BYTES])> {
    let word = |at: usize| bytes[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
    let crc = u32::from_le_bytes(*bytes.last_chunk()?);
    let intact = bytes[..8] == MAGIC && crc32fast::hash(&bytes[..CRC_AT]) == crc;
    if !intact || word(8)? != instance {
        return None;
    }
    Some((word(16)?, *bytes[CONTENT_AT..].first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_and_every_flipped_bit_makes_it_none() {
        let mark = std::array::from_fn(|at| at as u8);
        let bytes = encode(7, 9, &mark);
        assert_eq!(decode(&bytes, 7), Some((9, mark)));
        assert_eq!(decode(&bytes, 8), None, "another database's");
        assert_eq!(decode(&[0; RECORD_BYTES], 0), None);
        for bit in 0..RECORD_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped, 7), None, "bit {bit}");
        }
    }
}
