//! A file of the archive: a header, then segments of the log, each as long as its payload.
//!
//! | offset | bytes | the header |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | version |
//! | 12 | 4 | bytes of a segment of the log |
//! | 16 | 8 | instance of the store |
//! | 24 | 8 | branch of the store |
//! | 32 | 8 | first epoch |
//! | 40 | 8 | last epoch |
//! | 48 | 8 | bytes of the segments |
//! | 56 | 4 | CRC-32 of the segments |
//! | 60 | 4 | zero |
//! | 64 | 8 | the first epoch of the opening that wrote the last epoch; zero if it is not known |
//! | 72 | 8 | the random number of that opening |
//! | 80 | 4 | zero |
//! | 84 | 4 | CRC-32 of the 84 bytes before |
//!
//! Version 1 ends with a CRC-32 of the 60 bytes before at 60.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pmem::{DeviceError, Opening};

use super::super::error::LogError;
use super::super::format::{HEADER_BYTES, SegmentHeader};
use crate::ids::EpochNumber;

const MAGIC: [u8; 8] = *b"NVCRARCH";
const VERSION: u32 = 2;
/// What names end in, and what they end in until the file is whole.
pub(super) const FINISHED: &str = "epochs";
pub(super) const UNFINISHED: &str = "incomplete";
pub(super) const FILE_HEADER_BYTES: usize = 88;
/// Bytes of a header of version 1.
const FIRST_HEADER_BYTES: usize = 64;

/// What a file of the archive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileHeader {
    pub(super) instance: u64,
    pub(super) branch: u64,
    pub(super) first: EpochNumber,
    pub(super) last: EpochNumber,
    pub(super) segment_bytes: u32,
    /// Bytes and checksum of the segments.
    pub(super) bytes: u64,
    pub(super) crc: u32,
    /// The opening that wrote the last epoch, if it is known.
    pub(super) opening: Option<Opening>,
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.segment_bytes.to_le_bytes());
        put(16, &self.instance.to_le_bytes());
        put(24, &self.branch.to_le_bytes());
        put(32, &self.first.0.to_le_bytes());
        put(40, &self.last.0.to_le_bytes());
        put(48, &self.bytes.to_le_bytes());
        put(56, &self.crc.to_le_bytes());
        if let Some(Opening { first, id }) = self.opening {
            put(64, &first.0.to_le_bytes());
            put(72, &id.to_le_bytes());
        }
        let crc_at = FILE_HEADER_BYTES - 4;
        let crc = crc32fast::hash(&bytes[..crc_at]);
        bytes[crc_at..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of a file; `None` if it is none, or damaged.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, LogError> {
        let mut bytes = Vec::new();
        let read = |file: File| file.take(FILE_HEADER_BYTES as u64).read_to_end(&mut bytes);
        File::open(path).and_then(read).map_err(|source| {
            let (what, path) = ("read".to_string(), path.to_path_buf());
            DeviceError::Io { what, path, source }
        })?;
        Ok(Self::decode(&bytes).map(|(header, _)| header))
    }

    /// The header, and its length; `None` if it is none, or damaged.
    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let word = |at: usize| bytes[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
        let half = |at: usize| bytes[at..].first_chunk().map(|half| u32::from_le_bytes(*half));
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let header_bytes = match half(8)? {
            1 => FIRST_HEADER_BYTES,
            VERSION => FILE_HEADER_BYTES,
            _ => return None,
        };
        let crc_at = header_bytes - 4;
        if half(crc_at)? != crc32fast::hash(bytes.get(..crc_at)?) {
            return None;
        }
        let opening = match header_bytes {
            FILE_HEADER_BYTES => Some(Opening { first: EpochNumber(word(64)?), id: word(72)? }),
            _ => None,
        };
        let header = Self {
            segment_bytes: half(12)?,
            instance: word(16)?,
            branch: word(24)?,
            first: EpochNumber(word(32)?),
            last: EpochNumber(word(40)?),
            bytes: word(48)?,
            crc: half(56)?,
            opening: opening.filter(|opening| opening.first > EpochNumber::ZERO),
        };
        Some((header, header_bytes))
    }

    /// The name of the file.
    pub(super) fn name(&self) -> String {
        let Self { instance, branch, first, last, .. } = self;
        format!("{instance:016x}-{branch:016x}-{:012}-{:012}.epochs", first.0, last.0)
    }
}

/// The store, branch and epochs that a name says; `None` if it is not one of ours.
pub(super) fn of_name(name: &str) -> Option<FileHeader> {
    let mut parts = name.strip_suffix(".epochs")?.split('-');
    let mut hex = || u64::from_str_radix(parts.next()?, 16).ok();
    let (instance, branch) = (hex()?, hex()?);
    let mut epoch = || parts.next()?.parse().ok().map(EpochNumber);
    let (first, last) = (epoch()?, epoch()?);
    let (segment_bytes, bytes, crc, opening) = (0, 0, 0, None);
    let header = FileHeader { instance, branch, first, last, segment_bytes, bytes, crc, opening };
    (first <= last && header.name() == name).then_some(header)
}

/// A file that is whole.
#[derive(Debug)]
pub(super) struct WholeFile<'f> {
    /// The opening that wrote the last epoch, if it is known.
    pub(super) opening: Option<Opening>,
    pub(super) segments: Vec<(SegmentHeader, &'f [u8])>,
}

/// What a file has, which must be the one that its name says; `None` if it is damaged.
pub(super) fn whole<'f>(bytes: &'f [u8], named: &FileHeader) -> Option<WholeFile<'f>> {
    let (header, header_bytes) = FileHeader::decode(bytes)?;
    let same = FileHeader { segment_bytes: header.segment_bytes, ..*named };
    let same = FileHeader { bytes: header.bytes, crc: header.crc, ..same };
    let same = FileHeader { opening: header.opening, ..same };
    let mut rest = &bytes[header_bytes..];
    if header != same || rest.len() as u64 != header.bytes || crc32fast::hash(rest) != header.crc {
        return None;
    }
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let segment = SegmentHeader::parse(rest)?;
        let end = HEADER_BYTES + segment.payload_bytes.get() as usize;
        let whole = rest.get(..end)?;
        segments.push((segment, whole));
        rest = &rest[end..];
    }
    Some(WholeFile { opening: header.opening, segments })
}

/// An error of the archive.
pub(super) fn error(what: String) -> LogError {
    LogError::Archive { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What release 0.1.0 wrote is read.
    #[test]
    fn a_header_of_version_1_is_read() {
        let mut bytes = header().encode()[..FIRST_HEADER_BYTES].to_vec();
        bytes[8] = 1;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        let of_before = FileHeader { opening: None, ..header() };
        assert_eq!(FileHeader::decode(&bytes), Some((of_before, FIRST_HEADER_BYTES)));
    }

    fn header() -> FileHeader {
        FileHeader {
            instance: 7,
            branch: u64::MAX - 2,
            first: EpochNumber(5),
            last: EpochNumber(1_000_000_000_000),
            segment_bytes: 4096,
            bytes: 12,
            crc: 99,
            opening: Some(Opening { first: EpochNumber(4), id: u64::MAX - 5 }),
        }
    }

    #[test]
    fn a_header_and_a_name_come_back() {
        let bytes = header().encode();
        assert_eq!(FileHeader::decode(&bytes), Some((header(), FILE_HEADER_BYTES)));
        for bit in 0..FILE_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&flipped), None, "bit {bit}");
        }
        let named = of_name(&header().name()).expect("a name");
        assert_eq!(named.name(), header().name());
        let name = header().name();
        for other in [&name[1..], &name[..name.len() - 1], "x.epochs", "1-2-3-4.epochs"] {
            assert_eq!(of_name(other), None, "{other}");
        }
    }
}
