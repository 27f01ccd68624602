//! Puts checksums right again after a change, so that the code behind them is reached.
//!
//! The offsets are those of docs/format.md and of `pmem`'s `file` format; a wrong one here only
//! makes the fuzzer reach less.

use storage::format::{
    CATALOG_STRIDE, CATALOGS_OFFSET, CHECKPOINT_STRIDE, CHECKPOINTS_OFFSET, DIRECTORY_OFFSET,
    POOL_STATES_OFFSET, SUPERBLOCK_STRIDE, TABLES_MAX,
};

use super::edit::Files;
use super::pages::{PAGE_BYTES, Root, fit_checksums, fit_root, put_half, word};

const LOG_HEADER_BYTES: usize = 64;
/// Makes every structure of a store valid that the place of a change lies in.
pub(crate) fn repair(files: &mut Files, file: &str, at: usize) {
    let Some(bytes) = files.0.get_mut(file) else { return };
    match file {
        "meta" => fit_root(bytes, at / PAGE_BYTES * PAGE_BYTES),
        "data" | "table" if at < PAGE_BYTES => fit_root(bytes, 0),
        "log" => repair_log(bytes, at),
        _ => {}
    }
    let [Some(mut meta), Some(mut table), Some(mut data)] =
        ["meta", "table", "data"].map(|name| files.0.get(name).cloned())
    else {
        return;
    };
    if file == "data"
        && let Some(root) = Root::newest(&meta)
        && let Some(page) = root.page_at(&table, &data, at)
    {
        let mut image = root.image(&table, &data);
        repair_image(&mut image, page * PAGE_BYTES + at % PAGE_BYTES);
        root.put_image(&table, &mut data, &image);
    }
    fit_checksums(&mut meta, &mut table, &data);
    files.0.extend([("meta", meta), ("table", table), ("data", data)]);
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// A header of the log: the checksum of the first 60 bytes follows them.
fn repair_header(bytes: &mut [u8], start: usize) {
    if let Some(header) = bytes.get(start..start + 60) {
        let crc = crc32fast::hash(header);
        put_half(bytes, start + 60, crc);
    }
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
