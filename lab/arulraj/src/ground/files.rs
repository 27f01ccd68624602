//! The filesystem interface: files in the same memory, reached by system calls that copy.
//!
//! After the paper's 2.2: a filesystem for persistent memory, which copies once, between the
//! caller's buffer and the file. A write is stored past the cache and is durable after the file's
//! fsync; the size, which says what of a file counts, becomes durable with one store then. Files
//! are made and removed by one store, durably. Every call is counted, and the bytes it copied.
//!
//! A file is a chain of extents, which are slots of the allocator; at an open an extent that no
//! file reaches is free.

use std::time::{Duration, Instant};

use pmem::Device;

use super::heap::{Area, DIRECTORY_AT, HEADER_BYTES, SLOT_BYTES_MAX};
use super::ledger::Part;
use super::memory::Memory;
use super::nvm::Nvm;
use crate::{Error, Result};

/// Files that there may be.
const FILES_MAX: u64 = 900;
/// Words of a file in the directory: name, size, first extent; a line each.
const INODE_BYTES: u64 = pmem::LINE_BYTES;
const NAME_AT: u64 = 0;
const SIZE_AT: u64 = 8;
const FIRST_AT: u64 = 16;
/// Bytes of an extent behind the offset of the next one.
const EXTENT_BYTES: u64 = SLOT_BYTES_MAX - 8;

const _: () = assert!(DIRECTORY_AT + FILES_MAX * INODE_BYTES <= 64 << 10 && HEADER_BYTES == 8);

/// A file, until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(usize);

#[derive(Debug, Default)]
struct File {
    name: u64,
    size: u64,
    /// The size that is durable.
    synced_size: u64,
    extents: Vec<u64>,
}

/// The directory.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: Vec<Option<File>>,
    system_call_ns: u64,
    pub(super) system_calls: u64,
    pub(super) copied_bytes: u64,
}

fn inode_at(file: usize) -> u64 {
    DIRECTORY_AT + file as u64 * INODE_BYTES
}

impl Files {
    pub(super) fn empty(system_call_ns: u64) -> Self {
        let files = (0..FILES_MAX).map(|_| None).collect();
        Self { files, system_call_ns, ..Self::default() }
    }

    pub(super) fn open<D: Device>(memory: &mut Memory<D>, system_call_ns: u64) -> Result<Self> {
        let mut files = Self::empty(system_call_ns);
        for (number, file) in files.files.iter_mut().enumerate() {
            let at = inode_at(number);
            let name = memory.load_u64(at + NAME_AT);
            if name == 0 {
                continue;
            }
            let size = memory.load_u64(at + SIZE_AT);
            let mut extents = Vec::new();
            let mut next_at = at + FIRST_AT;
            for _ in 0..size.div_ceil(EXTENT_BYTES) {
                let extent = memory.load_u64(next_at);
                if extent == 0 || extent > memory.device().image_bytes() - EXTENT_BYTES {
                    return Err(Error::Corrupt(format!("file {name:x} has an extent {extent}")));
                }
                extents.push(extent);
                next_at = extent;
            }
            *file = Some(File { name, size, synced_size: size, extents });
        }
        Ok(files)
    }

    pub(super) fn extents(&self) -> impl Iterator<Item = u64> {
        self.files.iter().flatten().flat_map(|file| file.extents.iter().copied())
    }

    fn call(&mut self, bytes: u64) {
        self.system_calls += 1;
        self.copied_bytes += bytes;
        if self.system_call_ns > 0 {
            let until = Instant::now() + Duration::from_nanos(self.system_call_ns);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }

    fn file(&mut self, id: FileId) -> &mut File {
        self.files[id.0].as_mut().expect("the file was not removed")
    }
}

impl<D: Device> Nvm<D> {
    /// Makes an empty file, durably.
    pub(crate) fn create_file(&mut self, name: u64) -> Result<FileId> {
        self.files.call(0);
        let free = self.files.files.iter().position(Option::is_none);
        let number = free.ok_or_else(|| Error::Limit(format!("more than {FILES_MAX} files")))?;
        let at = inode_at(number);
        self.memory.store_words(at + SIZE_AT, &[0, 0]);
        self.memory.sync(at, INODE_BYTES);
        self.memory.sync_u64(at + NAME_AT, name);
        self.files.files[number] = Some(File { name, ..File::default() });
        Ok(FileId(number))
    }

    /// The files with their names.
    pub(crate) fn list_files(&self) -> Vec<(u64, FileId)> {
        let files = self.files.files.iter().enumerate();
        files.filter_map(|(i, file)| file.as_ref().map(|file| (file.name, FileId(i)))).collect()
    }

    /// Removes a file, durably.
    pub(crate) fn remove_file(&mut self, id: FileId) {
        self.files.call(0);
        self.memory.sync_u64(inode_at(id.0) + NAME_AT, 0);
        let file = self.files.files[id.0].take().expect("the file was not removed");
        for extent in file.extents {
            self.mark_free(extent);
            self.recycle(extent);
        }
    }

    pub(crate) fn file_size(&mut self, id: FileId) -> u64 {
        self.files.file(id).size
    }

    /// Writes into a file, or at its end.
    pub(crate) fn write_file(&mut self, id: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.memory.part() {
            Part::Log => self.write_at(id, offset, bytes),
            _ => self.within(Part::File, |nvm| nvm.write_at(id, offset, bytes)),
        }
    }

    fn write_at(&mut self, id: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        self.files.call(bytes.len() as u64);
        assert!(offset <= self.files.file(id).size, "files have no holes");
        let end = offset + bytes.len() as u64;
        while (self.files.file(id).extents.len() as u64) < end.div_ceil(EXTENT_BYTES) {
            self.add_extent(id)?;
        }
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let within = at % EXTENT_BYTES;
            let (part, later) = rest.split_at(rest.len().min((EXTENT_BYTES - within) as usize));
            let extent = self.files.file(id).extents[(at / EXTENT_BYTES) as usize];
            self.memory.store_past(extent + 8 + within, part);
            at += part.len() as u64;
            rest = later;
        }
        let file = self.files.file(id);
        file.size = file.size.max(end);
        Ok(())
    }

    fn add_extent(&mut self, id: FileId) -> Result<()> {
        let extent = self.allocate(SLOT_BYTES_MAX, Area::File)?;
        self.mark_persisted(extent);
        let file = self.files.file(id);
        let link = file.extents.last().copied().unwrap_or(inode_at(id.0) + FIRST_AT);
        file.extents.push(extent);
        self.memory.store_u64(link, extent);
        self.memory.flush(link, 8);
        Ok(())
    }

    /// Makes what was written to a file durable, and its size.
    pub(crate) fn sync_file(&mut self, id: FileId) {
        self.files.call(0);
        self.memory.fence();
        let file = self.files.file(id);
        if file.size != file.synced_size {
            file.synced_size = file.size;
            let size = file.size;
            self.memory.sync_u64(inode_at(id.0) + SIZE_AT, size);
        }
    }

    /// Reads from a file.
    pub(crate) fn read_file(&mut self, id: FileId, offset: u64, into: &mut [u8]) -> Result<()> {
        self.within(Part::File, |nvm| nvm.read_at(id, offset, into))
    }

    fn read_at(&mut self, id: FileId, offset: u64, into: &mut [u8]) -> Result<()> {
        self.files.call(into.len() as u64);
        let size = self.files.file(id).size;
        if offset + into.len() as u64 > size {
            let len = into.len();
            return Err(Error::Corrupt(format!("{len} bytes at {offset} of a file of {size}")));
        }
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let within = at % EXTENT_BYTES;
            let len = rest.len().min((EXTENT_BYTES - within) as usize);
            let (part, later) = rest.split_at_mut(len);
            let extent = self.files.file(id).extents[(at / EXTENT_BYTES) as usize];
            part.copy_from_slice(self.memory.load(extent + 8 + within, len as u64));
            at += len as u64;
            rest = later;
        }
        Ok(())
    }

    /// Reads a whole file.
    pub(crate) fn read_whole_file(&mut self, id: FileId) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.file_size(id) as usize];
        self.read_file(id, 0, &mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pmem::{AllNewest, AllOldest, Crash};

    use super::*;
    use crate::ground::Modelled;

    #[test]
    fn a_file_holds_after_a_power_cut_what_was_synced() {
        let device = Arc::new(Crash::new(1 << 21, 0).unwrap());
        let mut nvm = Nvm::create(Arc::clone(&device), 1, Modelled::default()).unwrap();
        let file = nvm.create_file(17).unwrap();
        let gone = nvm.create_file(18).unwrap();
        let bytes: Vec<u8> = (0..150_000u32).map(|i| i as u8).collect();
        nvm.write_file(file, 0, &bytes).unwrap();
        nvm.write_file(gone, 0, &bytes[..10]).unwrap();
        nvm.sync_file(file);
        nvm.remove_file(gone);
        nvm.write_file(file, 150_000, b"not synced").unwrap();
        assert_eq!((nvm.traffic().system_calls, nvm.traffic().copied_bytes), (7, 150_020));
        for newest in [false, true] {
            let after = match newest {
                true => device.image_after_power_cut(&mut AllNewest),
                false => device.image_after_power_cut(&mut AllOldest),
            };
            let mut nvm = Nvm::open(Arc::new(after), 1, Modelled::default()).unwrap();
            assert_eq!(nvm.reclaim().freed, u64::from(!newest), "the removed file's extent");
            let files = nvm.list_files();
            assert_eq!((files.len(), files[0].0), (1, 17));
            assert_eq!(nvm.read_whole_file(files[0].1).unwrap(), bytes);
            assert!(nvm.read_file(files[0].1, 149_999, &mut [0; 2]).is_err());
        }
    }
}
