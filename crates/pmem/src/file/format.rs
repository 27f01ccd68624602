//! The bytes of `meta`, and of the heads and the page table of `data` and `table`.
//!
//! Fixed-width little-endian integers at fixed offsets. `meta` has two slots for *roots*, written
//! in turn; a root says which entries of `table` are those of its snapshot. It is smaller than a
//! sector, which the device writes whole or not at all.
//!
//! | offset | bytes | a root |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 4 | format version |
//! | 12 | 4 | 1 if there is an epoch, 0 if nothing was saved |
//! | 16 | 8 | instance: made up when the database was created, equal in all its files |
//! | 24 | 8 | sequence: number of the snapshot, from 1, without gaps |
//! | 32 | 8 | epoch that the caller gave the snapshot |
//! | 40 | 8 | bytes of the image at the snapshot |
//! | 48 | 8 | bytes of the log space at the snapshot |
//! | 56 | 8 | bytes of `data` at the snapshot |
//! | 64 | 8 | where in `table` the entries begin |
//! | 72 | 8 | how many entries there are |
//! | 80 | 4 | CRC-32 of the entries |
//! | 84 | 8 | how often slots were given up that copies may have been reading |
//! | 92 | 8 | branch: 0, or made up when the database was restored from a copy |
//! | 100 | 24 | zero |
//! | 124 | 4 | CRC-32 of the 124 bytes before |
//!
//! `data` and `table` begin with a page of their own, the *head*: magic, format version and
//! instance as in a root, zeros, and a CRC-32 at the same place. That of `data` has the bytes that
//! the image grew to, that of `table` the sequence of the snapshot for which entries were written
//! last. In `data` *slots* of a page each follow; slot
//! 0 is the head, so no page is there.
//!
//! An entry of the table: page number (6 bytes), slot (6), CRC-32 of the page's bytes and number
//! (4). A later entry of the same page replaces an earlier one; a page without an entry is zero.
//!
//! Format versions 1 and 2 had the image in place and a journal beside it. They are refused.

use crate::epoch_number::EpochNumber;
use crate::memory::PAGE_BYTES;

pub(super) const META_MAGIC: [u8; 8] = *b"NVCRMETA";
pub(super) const DATA_MAGIC: [u8; 8] = *b"NVCRDATA";
pub(super) const TABLE_MAGIC: [u8; 8] = *b"NVCRTABL";
pub(super) const VERSION: u32 = 3;

pub(super) const ROOT_BYTES: usize = 128;
/// Where the checksum of a root is.
const CRC_AT: usize = ROOT_BYTES - 4;
/// `meta` has two slots for roots and two for marks, each in its own page.
pub(super) const META_BYTES: u64 = 4 * PAGE_BYTES;
/// The heads of `data` and `table` have a page to themselves.
pub(super) const HEAD_BYTES: u64 = PAGE_BYTES;
pub(super) const ENTRY_BYTES: usize = 16;
/// Page numbers and slots have 6 bytes in an entry.
const NUMBERS_END: u64 = 1 << 48;

const _: () = assert!(ROOT_BYTES <= 512, "a root fits a sector");

/// One snapshot, as named by a root. The default is that of a new database: nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) instance: u64,
    pub(super) sequence: u64,
    pub(super) epoch: Option<EpochNumber>,
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) entries: Entries,
    /// How often slots were given up that copies may have been reading.
    pub(super) given_up: u64,
    /// Tells a database that was restored from the one whose copy it was made of (S23).
    pub(super) branch: u64,
}

/// Which entries of `table` count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// Where in the file they begin.
    pub(super) start: u64,
    pub(super) count: u64,
    /// CRC-32 of all of them.
    pub(super) crc: u32,
}

impl Entries {
    /// Where in the file they end.
    pub(super) fn end(&self) -> u64 {
        self.start + self.count * ENTRY_BYTES as u64
    }
}

/// What was found where a root or head should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Never written.
    Zero,
    /// An intact root.
    Root(Root),
    /// Another magic number or format version; says which.
    Foreign(String),
    /// The checksum is wrong; says so.
    Damaged(String),
}

fn u64_at(bytes: &[u8; ROOT_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside the root"))
}

fn u32_at(bytes: &[u8; ROOT_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside the root"))
}

impl Root {
    pub(super) fn encode(&self, magic: [u8; 8]) -> [u8; ROOT_BYTES] {
        let mut bytes = [0; ROOT_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &magic);
        put(8, &VERSION.to_le_bytes());
        put(12, &u32::from(self.epoch.is_some()).to_le_bytes());
        put(16, &self.instance.to_le_bytes());
        put(24, &self.sequence.to_le_bytes());
        put(32, &self.epoch.unwrap_or_default().0.to_le_bytes());
        put(40, &self.image_bytes.to_le_bytes());
        put(48, &self.log_bytes.to_le_bytes());
        put(56, &self.data_bytes.to_le_bytes());
        put(64, &self.entries.start.to_le_bytes());
        put(72, &self.entries.count.to_le_bytes());
        put(80, &self.entries.crc.to_le_bytes());
        put(84, &self.given_up.to_le_bytes());
        put(92, &self.branch.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; ROOT_BYTES], magic: [u8; 8]) -> Found {
        if bytes.iter().all(|b| *b == 0) {
            return Found::Zero;
        }
        if bytes[..8] != magic {
            return Found::Foreign("the magic number is another program's".to_string());
        }
        let version = u32_at(bytes, 8);
        let (crc, wanted) = (crc32fast::hash(&bytes[..CRC_AT]), u32_at(bytes, CRC_AT));
        if crc != wanted && !is_version_1(bytes) {
            return Found::Damaged(format!("its checksum is {crc:#010x}, not {wanted:#010x}"));
        }
        if version != VERSION {
            return Found::Foreign(format!(
                "its files have format version {version}, this program is of release {} and reads \
                 version {VERSION}: {}",
                env!("CARGO_PKG_VERSION"),
                if version > VERSION {
                    "open it with a later release"
                } else {
                    "`dump` it with the program that wrote it and `load` that with this one"
                },
            ));
        }
        Found::Root(Self {
            instance: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            epoch: (u32_at(bytes, 12) != 0).then(|| EpochNumber(u64_at(bytes, 32))),
            image_bytes: u64_at(bytes, 40),
            log_bytes: u64_at(bytes, 48),
            data_bytes: u64_at(bytes, 56),
            entries: Entries {
                start: u64_at(bytes, 64),
                count: u64_at(bytes, 72),
                crc: u32_at(bytes, 80),
            },
            given_up: u64_at(bytes, 84),
            branch: u64_at(bytes, 92),
        })
    }
}

/// Whether this is an intact header of the first format.
fn is_version_1(bytes: &[u8; ROOT_BYTES]) -> bool {
    u32_at(bytes, 8) == 1 && crc32fast::hash(&bytes[..60]) == u32_at(bytes, 60)
}

/// Where the slot of `meta` for a snapshot is.
pub(super) fn root_offset(sequence: u64) -> u64 {
    (sequence % 2) * PAGE_BYTES
}

/// An entry of the page table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) page: u64,
    pub(super) slot: u64,
    pub(super) crc: u32,
}

impl Entry {
    pub(super) fn encode(self) -> [u8; ENTRY_BYTES] {
        assert!(self.page.max(self.slot) < NUMBERS_END, "page and slot fit an entry: {self:?}");
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..6].copy_from_slice(&self.page.to_le_bytes()[..6]);
        bytes[6..12].copy_from_slice(&self.slot.to_le_bytes()[..6]);
        bytes[12..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let number = |at: usize| {
            let mut word = [0; 8];
            word[..6].copy_from_slice(&bytes[at..at + 6]);
            u64::from_le_bytes(word)
        };
        let [.., a, b, c, d] = *bytes;
        Self { page: number(0), slot: number(6), crc: u32::from_le_bytes([a, b, c, d]) }
    }
}

/// The checksum of a page. Its number is part of it, so that a disk that returns another page is
/// found out.
pub(super) fn page_crc(page: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes);
    hasher.update(&page.to_le_bytes());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Root {
        Root {
            instance: 7,
            sequence: 9,
            epoch: Some(EpochNumber(0)),
            image_bytes: 8192,
            log_bytes: 4096,
            data_bytes: 3 * 4096,
            entries: Entries { start: 4096, count: 2, crc: u32::MAX - 3 },
            given_up: 3,
            branch: u64::MAX - 9,
        }
    }

    #[test]
    fn formats_before_are_refused_by_their_names() {
        let mut bytes = [0; ROOT_BYTES];
        bytes[..8].copy_from_slice(&META_MAGIC);
        bytes[8] = 1;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        let Found::Foreign(what) = Root::decode(&bytes, META_MAGIC) else { panic!("accepted") };
        assert!(what.contains("format version 1, this program is of release"), "{what}");
        assert!(what.contains("reads version 3: `dump` it with the program"), "{what}");
        bytes[20] = 1;
        assert!(matches!(Root::decode(&bytes, META_MAGIC), Found::Damaged(_)));
        let mut second = root().encode(META_MAGIC);
        second[8] = 2;
        let crc = crc32fast::hash(&second[..CRC_AT]);
        second[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        let Found::Foreign(what) = Root::decode(&second, META_MAGIC) else { panic!("accepted") };
        assert!(what.contains("format version 2, this program is of release"), "{what}");
    }

    #[test]
    fn a_root_survives_the_way_there_and_back() {
        for epoch in [None, Some(0), Some(u64::MAX)] {
            let root = Root { epoch: epoch.map(EpochNumber), ..root() };
            let bytes = root.encode(META_MAGIC);
            assert_eq!(Root::decode(&bytes, META_MAGIC), Found::Root(root));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_root_is_seen() {
        let bytes = root().encode(DATA_MAGIC);
        for bit in 0..ROOT_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = Root::decode(&flipped, DATA_MAGIC);
            assert!(matches!(found, Found::Foreign(_) | Found::Damaged(_)), "bit {bit}: {found:?}");
        }
        assert_eq!(Root::decode(&[0; ROOT_BYTES], META_MAGIC), Found::Zero);
    }

    #[test]
    fn an_entry_survives_the_way_there_and_back() {
        for (page, slot) in [(0, 1), (NUMBERS_END - 1, 2), (3, NUMBERS_END - 1)] {
            let entry = Entry { page, slot, crc: 0x8765_4321 };
            assert_eq!(Entry::decode(&entry.encode()), entry);
        }
    }

    /// S13: the same bytes of another page have another checksum.
    #[test]
    fn s_13_the_number_of_a_page_is_part_of_its_checksum() {
        assert_ne!(page_crc(1, &[7; 4096]), page_crc(2, &[7; 4096]));
    }
}
