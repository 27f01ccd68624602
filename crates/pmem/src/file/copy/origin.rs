//! What a copy is a copy of: a small file in it, `origin`.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 8 | sequence of the copy's own snapshot |
//! | 16 | 8 | where in the source's `table` the entries began |
//! | 24 | 8 | how many there were |
//! | 32 | 4 | CRC-32 of them |
//! | 36 | 4 | CRC-32 of the copy's log |
//! | 40 | 4 | zero |
//! | 44 | 4 | CRC-32 of the 44 bytes before |

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::super::format::Entries;
use crate::failure::DeviceError;
use crate::system::private;

/// Name of the file.
pub(super) const ORIGIN_NAME: &str = "origin";
const MAGIC: [u8; 8] = *b"NVCRORIG";
const BYTES: usize = 48;
const CRC_AT: usize = BYTES - 4;

/// What a copy is a copy of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// Of the copy's own snapshot.
    pub(super) sequence: u64,
    /// Those of the source's table then.
    pub(super) entries: Entries,
    /// Checksum of the copy's log.
    pub(super) log_crc: u32,
}

/// Whether a directory has the file, whatever is in it.
pub(in crate::file) fn is_copy(dir: &Path) -> Result<bool, DeviceError> {
    let path = dir.join(ORIGIN_NAME);
    path.try_exists().map_err(|e| DeviceError::io("look for", &path, e))
}

impl Origin {
    /// Reads the file; `None` if there is none, or another.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, DeviceError> {
        let path = dir.join(ORIGIN_NAME);
        match fs::read(&path) {
            Ok(bytes) => Ok(bytes.as_array().and_then(Self::decode)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(DeviceError::io("read", &path, e)),
        }
    }

    /// Writes the file, durably but for its name.
    pub(super) fn write(&self, dir: &Path) -> Result<(), DeviceError> {
        let path = dir.join(ORIGIN_NAME);
        let write = || {
            let mut file = private::create_file(&path)?;
            file.write_all(&self.encode())?;
            file.sync_all()
        };
        write().map_err(|e| DeviceError::io("write", &path, e))
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &self.sequence.to_le_bytes());
        put(16, &self.entries.start.to_le_bytes());
        put(24, &self.entries.count.to_le_bytes());
        put(32, &self.entries.crc.to_le_bytes());
        put(36, &self.log_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let word = |at: usize| bytes[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
        let half = |at: usize| bytes[at..].first_chunk().map(|half| u32::from_le_bytes(*half));
        if bytes[..8] != MAGIC || half(CRC_AT)? != crc32fast::hash(&bytes[..CRC_AT]) {
            return None;
        }
        let entries = Entries { start: word(16)?, count: word(24)?, crc: half(32)? };
        Some(Self { sequence: word(8)?, entries, log_crc: half(36)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_comes_back_and_every_flipped_bit_makes_it_none() {
        let entries = Entries { start: 4096, count: 77, crc: 0x1234_5678 };
        let origin = Origin { sequence: 9, entries, log_crc: 0x8765_4321 };
        let bytes = origin.encode();
        assert_eq!(Origin::decode(&bytes), Some(origin));
        for bit in 0..BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Origin::decode(&flipped), None, "bit {bit}");
        }
    }
}
