//! The bytes of `meta` and of the header and index of `journal`.
//!
//! Fixed-width little-endian integers at fixed offsets, a checksum at the end of each header. Both
//! headers are smaller than a sector, which the device writes whole or not at all.
//!
//! | offset | bytes | both headers |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | format version |
//! | 12 | 4 | 1 if there is an epoch, 0 if nothing was saved |
//! | 16 | 8 | instance: made up when the database was created, equal in all its files |
//! | 24 | 8 | sequence: number of the snapshot, from 1, without gaps |
//! | 32 | 8 | epoch that the caller gave the snapshot |
//! | 40 | 8 | bytes of the image at the snapshot |
//! | 48 | 8 | pages in the journal (zero in `meta`) |
//! | 56 | 4 | CRC-32 of the index (zero in `meta`) |
//! | 60 | 4 | zero |
//! | 64 | 8 | digest of the whole image at the snapshot ([`super::digest`]) |
//! | 72 | 8 | bytes of the log space at the snapshot |
//! | 80 | 44 | zero |
//! | 124 | 4 | CRC-32 of the 124 bytes before |
//!
//! An entry of the index: page number (8 bytes), CRC-32 of the page (4), zero (4). The index starts
//! at [`INDEX_OFFSET`] and is padded to whole pages; the pages follow.
//!
//! Format version 1 had headers of 64 bytes, without digest and length of the log. It is refused.

use crate::epoch_number::EpochNumber;
use crate::memory::PAGE_BYTES;

pub(super) const META_MAGIC: [u8; 8] = *b"NVCRMETA";
pub(super) const JOURNAL_MAGIC: [u8; 8] = *b"NVCRJRNL";
pub(super) const VERSION: u32 = 2;

pub(super) const HEADER_BYTES: usize = 128;
/// Where the checksum of a header is.
const CRC_AT: usize = HEADER_BYTES - 4;
/// `meta` has two slots for headers and two for marks, each in its own page.
pub(super) const META_BYTES: u64 = 4 * PAGE_BYTES;
/// The header of the journal has a page to itself.
pub(super) const INDEX_OFFSET: u64 = PAGE_BYTES;
pub(super) const ENTRY_BYTES: usize = 16;

const _: () = assert!(HEADER_BYTES <= 512, "a header fits a sector");
const _: () = assert!((PAGE_BYTES as usize).is_multiple_of(ENTRY_BYTES));

/// One snapshot, as named by a header. The default is that of a new database: nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) instance: u64,
    pub(super) sequence: u64,
    pub(super) epoch: Option<EpochNumber>,
    pub(super) image_bytes: u64,
    pub(super) pages_count: u64,
    pub(super) index_crc: u32,
    pub(super) image_digest: u64,
    pub(super) log_bytes: u64,
}

/// What was found where a header should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Never written.
    Zero,
    /// An intact header.
    Header(Header),
    /// Another magic number or format version; says which.
    Foreign(String),
    /// The checksum is wrong; says so.
    Damaged(String),
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"))
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside the header"))
}

impl Header {
    pub(super) fn encode(&self, magic: [u8; 8]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &magic);
        put(8, &VERSION.to_le_bytes());
        put(12, &u32::from(self.epoch.is_some()).to_le_bytes());
        put(16, &self.instance.to_le_bytes());
        put(24, &self.sequence.to_le_bytes());
        put(32, &self.epoch.unwrap_or_default().0.to_le_bytes());
        put(40, &self.image_bytes.to_le_bytes());
        put(48, &self.pages_count.to_le_bytes());
        put(56, &self.index_crc.to_le_bytes());
        put(64, &self.image_digest.to_le_bytes());
        put(72, &self.log_bytes.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES], magic: [u8; 8]) -> Found {
        if bytes.iter().all(|b| *b == 0) {
            return Found::Zero;
        }
        if bytes[..8] != magic {
            return Found::Foreign("the magic number is another program's".to_string());
        }
        let version = u32_at(bytes, 8);
        let (crc, wanted) = (crc32fast::hash(&bytes[..CRC_AT]), u32_at(bytes, CRC_AT));
        if crc != wanted && !is_version_1(bytes) {
            return Found::Damaged(format!("header checksum is {crc:#010x}, not {wanted:#010x}"));
        }
        if version != VERSION {
            return Found::Foreign(format!(
                "its files have format version {version}, this program is of release {} and reads \
                 version {VERSION}: open it with {}, or load the data anew",
                env!("CARGO_PKG_VERSION"),
                if version > VERSION { "a later release" } else { "the release that wrote it" },
            ));
        }
        Found::Header(Self {
            instance: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            epoch: (u32_at(bytes, 12) != 0).then(|| EpochNumber(u64_at(bytes, 32))),
            image_bytes: u64_at(bytes, 40),
            pages_count: u64_at(bytes, 48),
            index_crc: u32_at(bytes, 56),
            image_digest: u64_at(bytes, 64),
            log_bytes: u64_at(bytes, 72),
        })
    }

    /// Whether two headers speak of the same state. The number alone does not say so: two copies
    /// of one database may both have continued.
    pub(super) fn is_same_state(&self, other: &Self) -> bool {
        let state = |h: &Self| (h.instance, h.sequence, h.epoch, h.image_bytes, h.image_digest);
        state(self) == state(other)
    }
}

/// Whether this is an intact header of the first format.
fn is_version_1(bytes: &[u8; HEADER_BYTES]) -> bool {
    u32_at(bytes, 8) == 1 && crc32fast::hash(&bytes[..60]) == u32_at(bytes, 60)
}

/// Where a slot of `meta` is, for a given snapshot.
pub(super) fn slot_offset(sequence: u64) -> u64 {
    (sequence % 2) * PAGE_BYTES
}

/// Where the pages of a journal start.
pub(super) fn pages_offset(pages_count: u64) -> u64 {
    INDEX_OFFSET + (pages_count * ENTRY_BYTES as u64).next_multiple_of(PAGE_BYTES)
}

/// Length of a journal with so many pages.
pub(super) fn journal_bytes(pages_count: u64) -> u64 {
    pages_offset(pages_count) + pages_count * PAGE_BYTES
}

/// Appends an entry of the index.
pub(super) fn push_entry(index: &mut Vec<u8>, page: u64, crc: u32) {
    index.extend_from_slice(&page.to_le_bytes());
    index.extend_from_slice(&u64::from(crc).to_le_bytes());
}

/// Page number and checksum of each entry.
pub(super) fn entries(index: &[u8]) -> impl Iterator<Item = (u64, u32)> + '_ {
    index.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| {
        let (page, rest) = entry.split_first_chunk::<8>().expect("sixteen bytes");
        let crc = rest.first_chunk::<4>().expect("eight bytes");
        (u64::from_le_bytes(*page), u32::from_le_bytes(*crc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            instance: 7,
            sequence: 9,
            epoch: Some(EpochNumber(0)),
            image_bytes: 8192,
            pages_count: 2,
            index_crc: 5,
            image_digest: u64::MAX - 3,
            log_bytes: 4096,
        }
    }

    #[test]
    fn the_first_format_is_refused_by_its_name() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&META_MAGIC);
        bytes[8] = 1;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let Found::Foreign(what) = Header::decode(&bytes, META_MAGIC) else { panic!("accepted") };
        assert!(what.contains("format version 1, this program is of release"), "{what}");
        assert!(what.contains("reads version 2: open it with the release that wrote it"), "{what}");
        bytes[20] = 1;
        assert!(matches!(Header::decode(&bytes, META_MAGIC), Found::Damaged(_)));
    }

    #[test]
    fn a_header_survives_the_way_there_and_back() {
        for epoch in [None, Some(0), Some(u64::MAX)] {
            let header = Header { epoch: epoch.map(EpochNumber), ..header() };
            let bytes = header.encode(META_MAGIC);
            assert_eq!(Header::decode(&bytes, META_MAGIC), Found::Header(header));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_seen() {
        let bytes = header().encode(JOURNAL_MAGIC);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = Header::decode(&flipped, JOURNAL_MAGIC);
            assert!(matches!(found, Found::Foreign(_) | Found::Damaged(_)), "bit {bit}: {found:?}");
        }
        assert_eq!(Header::decode(&[0; HEADER_BYTES], META_MAGIC), Found::Zero);
    }

    #[test]
    fn a_journal_of_nothing_is_a_header() {
        assert_eq!(journal_bytes(0), PAGE_BYTES);
        assert_eq!(journal_bytes(1), 3 * PAGE_BYTES);
        assert_eq!(pages_offset(257), 3 * PAGE_BYTES);
    }
}
