//! The image in the files of a `file` device: which bytes of `data` it lies in, and the checksums
//! that have to fit after a change.
//!
//! Offsets are those of docs/format.md; what does not look like a store of ours has no pages.

use std::path::Path;
use std::{fs, io};

pub(crate) const PAGE_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 16;
/// Fields of a root.
const SEQUENCE_AT: usize = 24;
const IMAGE_BYTES_AT: usize = 40;
const ENTRIES_AT: usize = 64;
const COUNT_AT: usize = 72;
const ENTRIES_CRC_AT: usize = 80;
const ROOT_CRC_AT: usize = 124;

/// An image that a directory of a `file` device holds, as of its newest snapshot, to be changed.
#[derive(Debug)]
pub struct StoredImage {
    /// The image.
    pub bytes: Vec<u8>,
}

impl StoredImage {
    /// Reads it.
    ///
    /// # Errors
    /// Those of reading the files.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let [meta, table, data] = files(dir)?;
        let root = Root::newest(&meta).ok_or_else(|| io::Error::other("no root"))?;
        Ok(Self { bytes: root.image(&table, &data) })
    }

    /// Puts it in place of the one that is there, as a disk does that errs: no checksum fits.
    ///
    /// # Errors
    /// Those of reading and writing the files.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let [meta, table, mut data] = files(dir)?;
        let root = Root::newest(&meta).ok_or_else(|| io::Error::other("no root"))?;
        root.put_image(&table, &mut data, &self.bytes);
        fs::write(dir.join("data"), data)
    }

    /// The same with checksums that fit, so that the checks behind those of the device are reached.
    ///
    /// # Errors
    /// Those of reading and writing the files.
    pub fn forge(&self, dir: &Path) -> io::Result<()> {
        self.write(dir)?;
        let [mut meta, mut table, data] = files(dir)?;
        fit_checksums(&mut meta, &mut table, &data);
        fs::write(dir.join("meta"), meta)?;
        fs::write(dir.join("table"), table)
    }
}

fn files(dir: &Path) -> io::Result<[Vec<u8>; 3]> {
    let read = |name| fs::read(dir.join(name));
    Ok([read("meta")?, read("table")?, read("data")?])
}

/// What the newest root says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    /// Where in `meta` it is.
    at: usize,
    image_bytes: usize,
    /// Where in `table` its entries begin.
    entries: usize,
    count: usize,
}

impl Root {
    pub(crate) fn newest(meta: &[u8]) -> Option<Self> {
        let sequence = |at: &usize| word(meta, at + SEQUENCE_AT);
        let at = [0, PAGE_BYTES].into_iter().max_by_key(sequence)?;
        // What is forged may say anything.
        let small = |field| word(meta, at + field).filter(|value| *value < 1 << 30);
        Some(Self {
            at,
            image_bytes: small(IMAGE_BYTES_AT)? as usize,
            entries: small(ENTRIES_AT)? as usize,
            count: small(COUNT_AT)? as usize,
        })
    }

    /// Where each entry is in `table`, and its page and slot, in order.
    fn entries(self, table: &[u8]) -> impl Iterator<Item = (usize, u64, usize)> + '_ {
        (0..self.count).map_while(move |number| {
            let at = self.entries + number * ENTRY_BYTES;
            let (first, second) = (word(table, at)?, word(table, at + 6)?);
            Some((at, first & ((1 << 48) - 1), (second & ((1 << 48) - 1)) as usize))
        })
    }

    /// Where in `data` each page is, for those that have a slot in the file.
    fn places(self, table: &[u8], data: &[u8]) -> Vec<Option<usize>> {
        let mut places = vec![None; self.image_bytes / PAGE_BYTES];
        for (_, page, slot) in self.entries(table) {
            let place = slot.checked_mul(PAGE_BYTES).filter(|at| at + PAGE_BYTES <= data.len());
            if let Some(of_page) = places.get_mut(page as usize) {
                *of_page = place;
            }
        }
        places
    }

    /// The page that a place of `data` belongs to.
    pub(crate) fn page_at(self, table: &[u8], data: &[u8], at: usize) -> Option<usize> {
        let slot = Some(at / PAGE_BYTES * PAGE_BYTES);
        self.places(table, data).iter().position(|place| *place == slot)
    }

    pub(crate) fn image(self, table: &[u8], data: &[u8]) -> Vec<u8> {
        let places = self.places(table, data);
        let pages = places.into_iter().map(|place| match place {
            Some(at) => data[at..at + PAGE_BYTES].to_vec(),
            None => vec![0; PAGE_BYTES],
        });
        pages.flatten().collect()
    }

    pub(crate) fn put_image(self, table: &[u8], data: &mut [u8], image: &[u8]) {
        let places = self.places(table, data);
        for (place, page) in places.into_iter().zip(image.chunks_exact(PAGE_BYTES)) {
            if let Some(at) = place {
                data[at..at + PAGE_BYTES].copy_from_slice(page);
            }
        }
    }
}

/// Makes the checksums of the pages, of their entries and of the newest root right.
pub(crate) fn fit_checksums(meta: &mut [u8], table: &mut [u8], data: &[u8]) {
    let Some(root) = Root::newest(meta) else { return };
    let entries: Vec<_> = root.entries(table).collect();
    for &(at, page, slot) in &entries {
        let place = slot.saturating_mul(PAGE_BYTES);
        if let Some(bytes) = data.get(place..place.saturating_add(PAGE_BYTES)) {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(bytes);
            hasher.update(&page.to_le_bytes());
            put_half(table, at + 12, hasher.finalize());
        }
    }
    if let Some(bytes) = table.get(root.entries..root.entries + entries.len() * ENTRY_BYTES) {
        put_half(meta, root.at + ENTRIES_CRC_AT, crc32fast::hash(bytes));
    }
    fit_root(meta, root.at);
}

/// A root or a head: the checksum of all before follows.
pub(crate) fn fit_root(bytes: &mut [u8], start: usize) {
    if let Some(root) = bytes.get(start..start + ROOT_CRC_AT) {
        let crc = crc32fast::hash(root);
        put_half(bytes, start + ROOT_CRC_AT, crc);
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

pub(crate) fn put_half(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}
