//! Puts checksums right again after a change, so that the code behind them is reached.
//!
//! The offsets are those of docs/format.md and of `pmem`'s `file` format; a wrong one here only
//! makes the fuzzer reach less.

use std::path::Path;
use std::{fs, io};

use storage::format::{
    CATALOG_STRIDE, CATALOGS_OFFSET, CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, DIRECTORY_OFFSET,
    POOL_STATES_OFFSET, SUPERBLOCK_STRIDE, TABLES_MAX,
};

use super::edit::Files;

const PAGE_BYTES: usize = 4096;
const LOG_HEADER_BYTES: usize = 64;
/// Fields of a header of the `file` device.
const SEQUENCE_AT: usize = 24;
const PAGES_AT: usize = 48;
const DIGEST_AT: usize = 64;
const HEADER_CRC_AT: usize = 124;

/// Makes every structure of a store valid that the place of a change lies in.
pub(crate) fn repair(files: &mut Files, file: &str, at: usize) {
    let Some(bytes) = files.0.get_mut(file) else { return };
    match file {
        "meta" => repair_device_header(bytes, at / PAGE_BYTES * PAGE_BYTES),
        "journal" => repair_journal(bytes),
        "image" => repair_image(bytes, at),
        "log" => repair_log(bytes, at),
        _ => {}
    }
    let [Some(mut meta), Some(mut journal), Some(image)] =
        ["meta", "journal", "image"].map(|name| files.0.get(name).cloned())
    else {
        return;
    };
    fit_headers(&mut meta, &mut journal, &image);
    files.0.extend([("meta", meta), ("journal", journal)]);
}

/// Makes the headers in a directory of the `file` device fit an image that was changed, so that the
/// checks behind those of the device are reached.
///
/// # Errors
/// Those of reading and writing the files.
pub fn fit_headers_in(dir: &Path) -> io::Result<()> {
    let [mut meta, mut journal] = [fs::read(dir.join("meta"))?, fs::read(dir.join("journal"))?];
    fit_headers(&mut meta, &mut journal, &fs::read(dir.join("image"))?);
    fs::write(dir.join("meta"), meta)?;
    fs::write(dir.join("journal"), journal)
}

/// Makes the headers of the `file` device name the digest of an image that was changed: that of the
/// newest image snapshot the one with the journal's pages in place, that of `meta` the one without.
fn fit_headers(meta: &mut [u8], journal: &mut [u8], image: &[u8]) {
    let sequence = |bytes: &[u8], slot: usize| word(bytes, slot + SEQUENCE_AT).unwrap_or(0);
    let slot = [0, PAGE_BYTES].into_iter().max_by_key(|slot| sequence(meta, *slot)).unwrap_or(0);
    put_word(meta, slot + DIGEST_AT, pmem::image_digest(image));
    repair_device_header(meta, slot);
    if journal.iter().take(HEADER_CRC_AT).all(|byte| *byte == 0) {
        return;
    }
    let mut image = image.to_vec();
    if sequence(journal, 0) != sequence(meta, slot) {
        for (place, from) in journal_pages(journal) {
            if let Some(to) = image.get_mut(place..place + PAGE_BYTES) {
                to.copy_from_slice(&journal[from..from + PAGE_BYTES]);
            }
        }
    }
    put_word(journal, DIGEST_AT, pmem::image_digest(&image));
    repair_device_header(journal, 0);
}

/// Where in the image each page of a journal belongs, and where in the journal it is.
fn journal_pages(journal: &[u8]) -> Vec<(usize, usize)> {
    let pages = word(journal, PAGES_AT).filter(|pages| *pages < 1 << 20).unwrap_or(0) as usize;
    let first = (PAGE_BYTES + pages * 16).next_multiple_of(PAGE_BYTES);
    let page = |number: usize| {
        let place = word(journal, PAGE_BYTES + number * 16).filter(|page| *page < 1 << 32)?;
        let from = first + number * PAGE_BYTES;
        (from + PAGE_BYTES <= journal.len()).then_some((place as usize * PAGE_BYTES, from))
    };
    (0..pages).map_while(page).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn put_half(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn put_word(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// A header of the `file` device: the checksum of all before follows.
fn repair_device_header(bytes: &mut [u8], start: usize) {
    if let Some(header) = bytes.get(start..start + HEADER_CRC_AT) {
        let crc = crc32fast::hash(header);
        put_half(bytes, start + HEADER_CRC_AT, crc);
    }
}

/// A header of the log: the checksum of the first 60 bytes follows them.
fn repair_header(bytes: &mut [u8], start: usize) {
    if let Some(header) = bytes.get(start..start + 60) {
        let crc = crc32fast::hash(header);
        put_half(bytes, start + 60, crc);
    }
}

/// The pages that the index names, the index, the header.
fn repair_journal(bytes: &mut [u8]) {
    let Some(pages) = word(bytes, PAGES_AT).filter(|pages| *pages < 1 << 20) else { return };
    let pages = pages as usize;
    let index_end = PAGE_BYTES + pages * 16;
    let first = index_end.next_multiple_of(PAGE_BYTES);
    for page in 0..pages {
        let start = first + page * PAGE_BYTES;
        let Some(content) = bytes.get(start..start + PAGE_BYTES) else { break };
        let crc = crc32fast::hash(content);
        put_half(bytes, PAGE_BYTES + page * 16 + 8, crc);
    }
    if let Some(index) = bytes.get(PAGE_BYTES..index_end) {
        let crc = crc32fast::hash(index);
        put_half(bytes, 56, crc);
    }
    repair_device_header(bytes, 0);
}

/// A struct whose checksum is taken with its own field zero.
fn repair_struct(bytes: &mut [u8], start: usize, len: usize, field: usize) {
    put_half(bytes, start + field, 0);
    if let Some(content) = bytes.get(start..start + len) {
        let crc = crc32fast::hash(content);
        put_half(bytes, start + field, crc);
    }
}

/// A copy of the catalog, with as many records as it says.
fn repair_catalog(bytes: &mut [u8], start: usize) {
    let Some(places) = half(bytes, start + 8) else { return };
    let len = 64 + (places as usize).min(TABLES_MAX) * 80;
    repair_struct(bytes, start, len, 12);
}

fn repair_image(bytes: &mut [u8], at: usize) {
    let place = at as u64;
    if place < 2 * SUPERBLOCK_STRIDE {
        repair_struct(bytes, at / PAGE_BYTES * PAGE_BYTES, 64, 12);
    } else if place < CHECKPOINTS_OFFSET + 2 * CHECKPOINT_STRIDE {
        let stride = CHECKPOINT_STRIDE as usize;
        repair_struct(bytes, at / stride * stride, 64, 36);
    } else if (CATALOGS_OFFSET..POOL_STATES_OFFSET).contains(&place) {
        let first = (place - CATALOGS_OFFSET) / CATALOG_STRIDE * CATALOG_STRIDE + CATALOGS_OFFSET;
        repair_catalog(bytes, first as usize);
    } else if (POOL_STATES_OFFSET..DIRECTORY_OFFSET).contains(&place) {
        let line = at / 64 * 64;
        for set in 0..2 {
            let Some(words) = bytes.get(line + set * 24..line + set * 24 + 24) else { break };
            let unused = words.iter().all(|byte| *byte == 0);
            let crc = if unused { 0 } else { crc32fast::hash(words) };
            put_half(bytes, line + 56 + set * 4, crc);
        }
    } else {
        repair_row(bytes, at / 64 * 64);
    }
}

/// The checksum of table and key, if the line is a row's header with a short key.
fn repair_row(bytes: &mut [u8], line: usize) {
    let Some(lengths) = half(bytes, line + 32) else { return };
    let key_bytes = (lengths >> 16) as usize;
    if (1..=24).contains(&key_bytes) && line + 64 <= bytes.len() {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[line + 32..line + 34]);
        hasher.update(&bytes[line + 40..line + 40 + key_bytes]);
        put_half(bytes, line + 36, hasher.finalize());
    }
}

/// The segment that a place lies in, and the digests of the commit record that names it.
pub(crate) fn repair_log(bytes: &mut [u8], at: usize) {
    let Some(start) = segment_start(bytes, at) else { return };
    commit_segments(bytes, start);
    let id = |bytes: &[u8], start| (word(bytes, start + 16), word(bytes, start + 24));
    let epoch = id(bytes, start);
    let starts: Vec<usize> = starts(bytes).filter(|other| id(bytes, *other) == epoch).collect();
    let kind = |bytes: &[u8], start: usize| half(bytes, start + 4).map(|word| word >> 16);
    let Some(commit) = starts.iter().copied().find(|start| kind(bytes, *start) == Some(2)) else {
        return;
    };
    let streams = half(bytes, commit + LOG_HEADER_BYTES + 36).unwrap_or(0) as usize & 0xffff;
    for number in 0..streams.min(64) {
        let mut pieces: Vec<_> = starts
            .iter()
            .filter(|start| kind(bytes, **start) == Some(1))
            .filter(|start| {
                half(bytes, **start + 52).map(|word| word & 0xffff) == Some(number as u32)
            })
            .filter_map(|start| {
                let ordinal = half(bytes, start + 40)?;
                Some((ordinal, half(bytes, start + 44)?, half(bytes, start + 56)?))
            })
            .collect();
        pieces.sort_unstable();
        let mut hasher = crc32fast::Hasher::new();
        for (_, len, crc) in &pieces {
            hasher.update(&len.to_le_bytes());
            hasher.update(&crc.to_le_bytes());
        }
        let total: u64 = pieces.iter().map(|piece| u64::from(piece.1)).sum();
        let entry = commit + LOG_HEADER_BYTES + 48 + number * 24;
        if let Some(place) = bytes.get_mut(entry..entry + 12) {
            place[..8].copy_from_slice(&total.to_le_bytes());
            place[8..].copy_from_slice(&(pieces.len() as u32).to_le_bytes());
        }
        put_half(bytes, entry + 12, hasher.finalize());
    }
    commit_segments(bytes, commit);
}

/// Payload checksum, then header checksum.
fn commit_segments(bytes: &mut [u8], start: usize) {
    let len = half(bytes, start + 44).unwrap_or(0) as usize;
    let payload = start + LOG_HEADER_BYTES;
    if let Some(payload) = bytes.get(payload..payload.saturating_add(len)) {
        let crc = crc32fast::hash(payload);
        put_half(bytes, start + 56, crc);
    }
    repair_header(bytes, start);
}

fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let pages = bytes.chunks(PAGE_BYTES).enumerate();
    pages.filter(|(_, page)| page.starts_with(b"NVIL")).map(|(number, _)| number * PAGE_BYTES)
}

fn segment_start(bytes: &[u8], at: usize) -> Option<usize> {
    starts(&bytes[..bytes.len().min(at + PAGE_BYTES)]).filter(|start| *start <= at).last()
}
