//! Writing a snapshot, and reading it back. The steps are those of README.md.

use std::sync::Arc;

use super::digest::ImageDigest;
use super::dirty::CopiedPages;
use super::disk::{Files, PIECE_BYTES};
use super::format::{
    ENTRY_BYTES, HEADER_BYTES, Header, INDEX_OFFSET, JOURNAL_MAGIC, META_MAGIC, entries,
    journal_bytes, pages_offset, push_entry, slot_offset,
};
use crate::epoch_number::EpochNumber;
use crate::failure::DeviceError;
use crate::memory::{Mapping, PAGE_BYTES};

/// What a snapshot consists of, handed to the background writer.
#[derive(Debug)]
pub(super) struct ImageSnapshot {
    pub(super) epoch: EpochNumber,
    pub(super) image_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) parts: Vec<CopiedPages>,
}

/// Writes snapshots. Used by one thread.
#[derive(Debug)]
pub(super) struct SnapshotWriter {
    files: Arc<Files>,
    /// The newest snapshot, which `image` holds in place.
    newest: Header,
    /// The snapshot that `meta` names.
    named: u64,
    /// What the newest snapshot has in each page. Ahead of it after a failure, which is
    /// final.
    digest: ImageDigest,
}

impl SnapshotWriter {
    pub(super) fn new(files: Arc<Files>, newest: Header, named: u64, digest: ImageDigest) -> Self {
        assert_eq!(digest.value(), newest.image_digest, "the image was verified");
        Self { files, newest, named, digest }
    }

    /// Makes a snapshot durable. Calls `committed` as soon as it would survive a power cut.
    pub(super) fn write(
        &mut self,
        snapshot: &mut ImageSnapshot,
        committed: impl FnOnce(),
    ) -> Result<(), DeviceError> {
        let (newest, named) = (self.newest.sequence, self.named);
        assert!(named <= newest, "meta names snapshot {named}, and {newest} is the newest");
        assert!(newest - named <= 1, "the image holds snapshot {newest}, and meta knows {named}");
        let (before, now) = (self.newest.image_bytes, snapshot.image_bytes);
        assert!(before <= now, "an image of {before} bytes shrinks to {now}");
        let (before, now) = (self.newest.log_bytes, snapshot.log_bytes);
        assert!(before <= now, "a log of {before} bytes shrinks to {now}");
        snapshot.parts.sort_by_key(|part| part.pages.first().copied());
        self.name_newest()?;
        // Step 3: the commit point.
        let header = self.write_journal(snapshot)?;
        self.files.journal.sync()?;
        committed();
        // Step 4: in place, durable with step 1 of the next snapshot.
        for (page, bytes) in snapshot.parts.iter().flat_map(CopiedPages::runs) {
            self.files.image.write_all_at(page * PAGE_BYTES, bytes)?;
        }
        self.newest = header;
        Ok(())
    }

    /// Steps 1 and 2: the image holds the newest snapshot, durably, and meta says so. At the end of
    /// the device, too, so that the next open need not apply the journal again.
    pub(super) fn name_newest(&mut self) -> Result<(), DeviceError> {
        self.files.image.sync()?;
        if self.named != self.newest.sequence {
            write_meta(&self.files, &self.newest)?;
            self.named = self.newest.sequence;
        }
        Ok(())
    }

    fn write_journal(&mut self, snapshot: &ImageSnapshot) -> Result<Header, DeviceError> {
        let mut index = Vec::new();
        for part in &snapshot.parts {
            for (page, bytes) in part.pages.iter().zip(part.bytes().chunks(PAGE_BYTES as usize)) {
                let crc = crc32fast::hash(bytes);
                push_entry(&mut index, *page, crc);
                self.digest.set(*page, crc);
            }
        }
        let header = Header {
            sequence: self.newest.sequence + 1,
            epoch: Some(snapshot.epoch),
            image_bytes: snapshot.image_bytes,
            pages_count: (index.len() / ENTRY_BYTES) as u64,
            index_crc: crc32fast::hash(&index),
            image_digest: self.digest.value(),
            log_bytes: snapshot.log_bytes,
            ..self.newest
        };
        let (pages, most) = (header.pages_count, header.image_bytes / PAGE_BYTES);
        assert!(pages <= most, "{pages} pages of {most}: some are there twice");
        let journal = &self.files.journal;
        // Reserved when the image grew; a file system that does not keep such promises fails here.
        journal.allocate(journal_bytes(header.pages_count))?;
        journal.write_all_at(INDEX_OFFSET, &index)?;
        let mut at = pages_offset(header.pages_count);
        for part in &snapshot.parts {
            journal.write_all_at(at, part.bytes())?;
            at += part.bytes().len() as u64;
        }
        let end = journal_bytes(header.pages_count);
        assert!(at == end, "a journal that ends at {end} was written up to {at}");
        journal.write_all_at(0, &header.encode(JOURNAL_MAGIC))?;
        Ok(header)
    }
}

/// Writes the slot of `meta` that names a snapshot, and syncs it.
pub(super) fn write_meta(files: &Files, snapshot: &Header) -> Result<(), DeviceError> {
    let header = Header { pages_count: 0, index_crc: 0, ..*snapshot };
    files.meta.write_all_at(slot_offset(header.sequence), &header.encode(META_MAGIC))?;
    files.meta.sync()
}

/// Reads the header of the journal; a file that is too short reads as zeros.
pub(super) fn read_header(
    file: &super::disk::DiskHandle,
    offset: u64,
) -> Result<[u8; HEADER_BYTES], DeviceError> {
    let mut bytes = [0; HEADER_BYTES];
    let there = file.len()?.saturating_sub(offset).min(HEADER_BYTES as u64) as usize;
    file.read_exact_at(offset, &mut bytes[..there])?;
    Ok(bytes)
}

/// Checks that the journal has the length that its header asks for; a power cut never shortens it.
pub(super) fn check_length(files: &Files, header: &Header) -> Result<(), DeviceError> {
    let (journal, pages) = (&files.journal, header.pages_count);
    let (len, image_pages) = (journal.len()?, header.image_bytes / PAGE_BYTES);
    if pages <= image_pages && len >= journal_bytes(pages) {
        return Ok(());
    }
    let what = format!("{len} bytes cannot hold its {pages} pages of {image_pages}: truncated?");
    Err(DeviceError::corrupt(journal.path(), what))
}

/// Reads the index of a journal; `None` if it is torn.
///
/// # Errors
/// Damage that a power cut cannot cause.
fn read_index(files: &Files, header: &Header) -> Result<Option<Vec<u8>>, DeviceError> {
    check_length(files, header)?;
    let journal = &files.journal;
    let image_pages = header.image_bytes / PAGE_BYTES;
    let mut index = vec![0; header.pages_count as usize * ENTRY_BYTES];
    journal.read_exact_at(INDEX_OFFSET, &mut index)?;
    if crc32fast::hash(&index) != header.index_crc {
        return Ok(None);
    }
    if let Some((page, _)) = entries(&index).find(|(page, _)| *page >= image_pages) {
        let what = format!("page {page} of an image of {image_pages} pages");
        return Err(DeviceError::corrupt(journal.path(), what));
    }
    Ok(Some(index))
}

/// Copies the pages of a journal to memory, each checked as it was read; returns the index. If the
/// journal is torn, memory is as before, and the result is `None`.
///
/// # Errors
/// Damage that a power cut cannot cause.
///
/// # Safety
/// The mapping is owned by the caller: the device is being opened.
pub(super) unsafe fn apply(
    files: &Files,
    header: &Header,
    image: &Mapping,
    digest: &mut ImageDigest,
) -> Result<Option<Vec<u8>>, DeviceError> {
    let Some(index) = read_index(files, header)? else { return Ok(None) };
    let mut copied = 0;
    let mut intact = true;
    for_pages(files, header, &index, |page, crc, bytes| {
        intact &= crc32fast::hash(bytes) == crc;
        if intact {
            // SAFETY: owned by the caller; the page was checked to lie inside the image.
            unsafe { image.store_bytes(page * PAGE_BYTES, bytes) };
            copied += 1;
        }
        Ok(())
    })?;
    if !intact {
        // SAFETY: owned by the caller.
        unsafe { load_again(files, entries(&index).take(copied), image, digest) }?;
        return Ok(None);
    }
    entries(&index).for_each(|(page, crc)| digest.set(page, crc));
    Ok(Some(index))
}

/// Reads pages of `image` anew over what was copied over them.
///
/// # Safety
/// The mapping is owned by the caller: the device is being opened.
unsafe fn load_again(
    files: &Files,
    pages: impl Iterator<Item = (u64, u32)>,
    image: &Mapping,
    digest: &ImageDigest,
) -> Result<(), DeviceError> {
    for (page, _) in pages {
        // SAFETY: owned by the caller; the page was checked to lie inside the image.
        let bytes = unsafe { image.slice_mut(page * PAGE_BYTES, PAGE_BYTES) };
        files.image.read_exact_at(page * PAGE_BYTES, bytes)?;
        if crc32fast::hash(bytes) != digest.crc(page) {
            let what = format!("page {page} reads as something else than a moment before");
            return Err(DeviceError::corrupt(files.image.path(), what));
        }
    }
    Ok(())
}

/// Copies the pages of a journal that was applied to memory into `image`, and makes them durable.
/// They are read again, because memory may have changed since; so they are checked again.
pub(super) fn write_in_place(
    files: &Files,
    header: &Header,
    index: &[u8],
) -> Result<(), DeviceError> {
    for_pages(files, header, index, |page, crc, bytes| {
        if crc32fast::hash(bytes) != crc {
            let what = format!("page {page} reads as something else than when it was opened");
            return Err(DeviceError::corrupt(files.journal.path(), what));
        }
        files.image.write_all_at(page * PAGE_BYTES, bytes)
    })?;
    files.image.sync()
}

/// Calls `each` with number, checksum and bytes of every page of a journal, in order.
fn for_pages(
    files: &Files,
    header: &Header,
    index: &[u8],
    mut each: impl FnMut(u64, u32, &[u8]) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let page_bytes = PAGE_BYTES as usize;
    let mut buffer = vec![0; PIECE_BYTES.min(header.pages_count as usize * page_bytes)];
    let count = (index.len() / ENTRY_BYTES) as u64;
    assert!(count == header.pages_count, "an index of {count} pages is that of the header");
    let mut at = pages_offset(header.pages_count);
    for piece in index.chunks(ENTRY_BYTES * PIECE_BYTES / page_bytes) {
        let bytes = &mut buffer[..piece.len() / ENTRY_BYTES * page_bytes];
        files.journal.read_exact_at(at, bytes)?;
        at += bytes.len() as u64;
        for ((page, crc), bytes) in entries(piece).zip(bytes.chunks(page_bytes)) {
            each(page, crc, bytes)?;
        }
    }
    Ok(())
}
