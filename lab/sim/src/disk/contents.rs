//! What is on the device, what is on its way there, and what a power cut makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pmem::DiskFile;

use crate::history::Random;

/// What the device writes whole or not at all.
const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: usize = pmem::PAGE_BYTES as usize;

/// A change of one file.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(u64, Arc<[u8]>),
    Allocate(u64),
    Truncate(u64),
    Sync,
}

/// Which of the units that were not synced arrive. A unit is a sector of a write, a growth, or the
/// name of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    Nothing,
    Everything,
    /// All but one.
    OneLost(u64),
    /// One, before all others.
    OneEarly(u64),
    /// The first ones: the disk keeps the order, and the last write may be torn.
    First(u64),
    /// All but the first ones: the disk turns the order round.
    AllButFirst(u64),
    /// Everything of some files and nothing of the others, by a bit for each.
    Files(u64),
    /// Each with this chance in a hundred.
    Some {
        percent: u64,
        seed: u64,
    },
}

impl Arrival {
    /// Any way of arriving, of so many units.
    pub(crate) fn random(random: &mut Random, units: u64) -> Self {
        let unit = random.below(units.max(1));
        match random.below(10) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 => Self::OneLost(unit),
            3 => Self::OneEarly(unit),
            4 => Self::First(unit),
            5 => Self::AllButFirst(unit),
            6 => Self::Files(random.below(32)),
            _ => Self::Some { percent: random.pick(&[5, 50, 50, 95]), seed: random.word() },
        }
    }
}

struct Arriving {
    arrival: Arrival,
    unit: u64,
    random: Random,
}

impl Arriving {
    fn new(arrival: Arrival) -> Self {
        let seed = if let Arrival::Some { seed, .. } = arrival { seed } else { 0 };
        Self { arrival, unit: 0, random: Random::new(seed) }
    }

    fn next(&mut self, file: DiskFile) -> bool {
        let unit = self.unit;
        self.unit += 1;
        match self.arrival {
            Arrival::Nothing => false,
            Arrival::Everything => true,
            Arrival::OneLost(lost) => unit != lost,
            Arrival::OneEarly(early) => unit == early,
            Arrival::First(count) => unit < count,
            Arrival::AllButFirst(count) => unit >= count,
            Arrival::Files(mask) => mask >> (file as u64) & 1 == 1,
            Arrival::Some { percent, .. } => self.random.percent(percent),
        }
    }
}

/// The content of a file; pages that were never written are zero and take no memory.
#[derive(Debug, Clone, Default)]
struct Content {
    len: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE_BYTES]>>,
}

impl Content {
    fn extend(&mut self, len: u64) {
        self.len = self.len.max(len);
    }

    fn truncate(&mut self, len: u64) {
        self.len = self.len.min(len);
        let (whole, rest) = (len / PAGE_BYTES as u64, len as usize % PAGE_BYTES);
        let mut last = self.pages.split_off(&whole);
        if let Some(mut page) = last.remove(&whole).filter(|_| rest > 0) {
            Arc::make_mut(&mut page)[rest..].fill(0);
            self.pages.insert(whole, page);
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.extend(offset + bytes.len() as u64);
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let at = offset as usize % PAGE_BYTES;
            let (piece, later) = rest.split_at(rest.len().min(PAGE_BYTES - at));
            let page = self.pages.entry(offset / PAGE_BYTES as u64);
            let page = Arc::make_mut(page.or_insert_with(|| Arc::new([0; PAGE_BYTES])));
            page[at..at + piece.len()].copy_from_slice(piece);
            (offset, rest) = (offset + piece.len() as u64, later);
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        for (offset, byte) in (offset..).zip(into) {
            let page = self.pages.get(&(offset / PAGE_BYTES as u64));
            *byte = page.map_or(0, |page| page[offset as usize % PAGE_BYTES]);
        }
    }

    fn write_to(&self, path: &Path) -> io::Result<()> {
        let file = fs::File::create(path)?;
        file.set_len(self.len)?;
        for (page, bytes) in &self.pages {
            let there = self.len.saturating_sub(page * PAGE_BYTES as u64).min(PAGE_BYTES as u64);
            file.write_all_at(&bytes[..there as usize], page * PAGE_BYTES as u64)?;
        }
        Ok(())
    }
}

/// The files of a directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskContents {
    durable: BTreeMap<DiskFile, Content>,
    /// Files whose name in the directory is durable.
    named: BTreeSet<DiskFile>,
    /// In the order in which they were made.
    pending: Vec<(DiskFile, Change)>,
}

impl DiskContents {
    /// Makes a change, as far as the program is concerned.
    pub(crate) fn change(&mut self, file: DiskFile, change: &Change) {
        match change {
            Change::Sync if file == DiskFile::Directory => {
                self.named.extend(self.durable.keys());
            }
            Change::Sync => {
                self.durable.entry(file).or_default();
                let (synced, pending) =
                    std::mem::take(&mut self.pending).into_iter().partition(|(of, _)| *of == file);
                self.pending = pending;
                self.apply(synced, &mut Arriving::new(Arrival::Everything));
            }
            change => {
                self.durable.entry(file).or_default();
                self.pending.push((file, change.clone()));
            }
        }
    }

    /// How many units may arrive or not.
    pub(crate) fn units(&self) -> u64 {
        let mut counting = Arriving::new(Arrival::Nothing);
        let mut copy = self.clone();
        copy.settle(&mut counting);
        counting.unit
    }

    /// The device after a power cut now.
    pub(crate) fn cut(&self, arrival: Arrival) -> Self {
        let mut after = self.clone();
        after.settle(&mut Arriving::new(arrival));
        after
    }

    fn settle(&mut self, arriving: &mut Arriving) {
        let pending = std::mem::take(&mut self.pending);
        self.apply(pending, arriving);
        let named = std::mem::take(&mut self.named);
        self.durable.retain(|file, _| named.contains(file) || arriving.next(DiskFile::Directory));
        self.named = self.durable.keys().copied().collect();
    }

    fn apply(&mut self, changes: Vec<(DiskFile, Change)>, arriving: &mut Arriving) {
        for (file, change) in changes {
            let content = self.durable.entry(file).or_default();
            match change {
                Change::Sync => {}
                Change::Allocate(len) => {
                    if arriving.next(file) {
                        content.extend(len);
                    }
                }
                Change::Truncate(len) => {
                    if arriving.next(file) {
                        content.truncate(len);
                    }
                }
                Change::Write(offset, bytes) => write_sectors(offset, &bytes, |at, piece| {
                    if arriving.next(file) {
                        content.write(at, piece);
                    }
                }),
            }
        }
    }

    /// Reads what a file on the device holds; zeros where there is nothing.
    pub(crate) fn read(&self, file: DiskFile, offset: u64, into: &mut [u8]) {
        match self.durable.get(&file) {
            Some(content) => content.read(offset, into),
            None => into.fill(0),
        }
    }

    /// All bytes of a file, if it is there.
    pub(crate) fn contents(&self, file: DiskFile) -> Option<Vec<u8>> {
        let content = self.durable.get(&file)?;
        let mut bytes = vec![0; content.len as usize];
        for (number, page) in &content.pages {
            let start = *number as usize * PAGE_BYTES;
            let len = bytes.len().saturating_sub(start).min(PAGE_BYTES);
            bytes[start..start + len].copy_from_slice(&page[..len]);
        }
        Some(bytes)
    }

    /// Whether the files in a directory still have the bytes that were written there.
    pub(crate) fn is_in(&self, dir: &Path) -> io::Result<bool> {
        for file in self.durable.keys().filter(|file| **file != DiskFile::Directory) {
            if self.contents(*file) != Some(fs::read(dir.join(file.name()))?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes what is on the device into an empty directory.
    pub(crate) fn write_to(&self, dir: &Path) -> io::Result<()> {
        assert!(self.pending.is_empty(), "cut the power first");
        for (file, content) in &self.durable {
            content.write_to(&dir.join(file.name()))?;
        }
        Ok(())
    }
}

/// Calls `each` with the part of a write in every sector that it touches.
fn write_sectors(offset: u64, bytes: &[u8], mut each: impl FnMut(u64, &[u8])) {
    let (mut offset, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let room = SECTOR_BYTES - offset as usize % SECTOR_BYTES;
        let (piece, later) = rest.split_at(rest.len().min(room));
        each(offset, piece);
        (offset, rest) = (offset + piece.len() as u64, later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, bytes: &[u8]) -> Change {
        Change::Write(offset, bytes.into())
    }

    fn log(contents: &DiskContents, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        contents.read(DiskFile::Log, 0, &mut bytes);
        bytes
    }

    #[test]
    fn a_sync_makes_the_files_own_writes_durable_and_no_others() {
        let mut contents = DiskContents::default();
        contents.change(DiskFile::Log, &write(510, &[1; 4]));
        contents.change(DiskFile::Data, &write(0, &[2; 4]));
        contents.change(DiskFile::Log, &Change::Sync);
        contents.change(DiskFile::Directory, &Change::Sync);
        let after = contents.cut(Arrival::Nothing);
        assert_eq!(log(&after, 515)[509..], [0, 1, 1, 1, 1, 0]);
        assert_eq!(after.durable[&DiskFile::Data].len, 0);
        assert_eq!(contents.units(), 1);
    }

    #[test]
    fn sectors_arrive_one_by_one_and_names_too() {
        let mut contents = DiskContents::default();
        contents.change(DiskFile::Log, &write(510, &[1; 4]));
        contents.change(DiskFile::Log, &write(510, &[2; 4]));
        assert_eq!(contents.units(), 5, "four sectors and a name");
        let after = contents.cut(Arrival::OneLost(3));
        assert_eq!(log(&after, 514)[510..], [2, 2, 1, 1]);
        let after = contents.cut(Arrival::OneLost(4));
        assert!(after.durable.is_empty(), "the file has no name");
        let after = contents.cut(Arrival::AllButFirst(2));
        assert_eq!(log(&after, 514)[510..], [2, 2, 2, 2]);
    }
}
