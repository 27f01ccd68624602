//! The file `openings`: which of them wrote which epochs ([`Openings`]). It has two slots, written
//! in turn, so that a torn one leaves the list before.
//!
//! | offset | bytes | a slot |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 8 | instance, as in the headers |
//! | 16 | 8 | sequence: number of the list, from 1 |
//! | 24 | 8 | the first epoch whose opening is known |
//! | 32 | 4 | how many openings there are, at most 1,024 |
//! | 36 | 4 | CRC-32 of the 36 bytes before and of the openings |
//! | 40 | 8 | zero |
//! | 48 | 16 each | the openings: first epoch, and random number |
//!
//! Both slots have their room from the creation on, so that a note needs none. Opening changes
//! nothing: a database without the file gets it with its first note.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OPENINGS_NAME;
use super::disk::{Access, DiskFile, DiskHandle, DiskHook, Files};
use super::options::FileOptions;
use crate::epoch_number::EpochNumber;
use crate::failure::{DeviceError, is_no_space};
use crate::memory::PAGE_BYTES;
use crate::side_files::{OPENINGS_MAX, Opening, Openings};
use crate::system::private;

const MAGIC: [u8; 8] = *b"NVCROPEN";
const HEAD_BYTES: usize = 48;
const CRC_AT: usize = 36;
const OPENING_BYTES: usize = 16;
const SLOT_BYTES: u64 = 5 * PAGE_BYTES;
const FILE_BYTES: u64 = 2 * SLOT_BYTES;

const _: () = assert!(HEAD_BYTES + OPENINGS_MAX * OPENING_BYTES <= SLOT_BYTES as usize);

/// The file of a database that is open.
#[derive(Debug)]
pub(super) struct OpeningsFile {
    dir: PathBuf,
    hook: Option<Arc<dyn DiskHook>>,
    instance: u64,
    /// `None` if there is none yet.
    file: Option<DiskHandle>,
    newest: Option<Stored>,
}

impl OpeningsFile {
    /// Reads the file of a database directory, if it has one. Changes nothing.
    pub(super) fn open(
        dir: &Path,
        options: &FileOptions,
        instance: u64,
    ) -> Result<Self, DeviceError> {
        let access = if options.read_only { Access::Read } else { Access::Write };
        let file = open_file(dir, access, options.hook.as_ref())?;
        let newest = file.as_ref().map_or(Ok(None), |file| read_newest(file, instance))?;
        let (dir, hook) = (dir.to_path_buf(), options.hook.clone());
        Ok(Self { dir, hook, instance, file, newest })
    }

    /// The list; `None` if there is none.
    pub(super) fn openings(&self) -> Option<Openings> {
        self.newest.as_ref().map(|newest| newest.openings.clone())
    }

    /// Adds an opening, durably. Where there is no list, and no room for one, there is none: a
    /// store on a full disk is opened, because what frees room comes behind the open.
    pub(super) fn note_if_room(
        &mut self,
        files: &Files,
        opening: Opening,
    ) -> Result<(), DeviceError> {
        match self.note(files, opening) {
            Err(full) if full.is_limit() && self.newest.is_none() => Ok(()),
            result => result,
        }
    }

    /// Adds an opening, durably.
    fn note(&mut self, files: &Files, opening: Opening) -> Result<(), DeviceError> {
        let is_new = self.file.is_none();
        let file = match self.file.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let file = self.file.insert(file);
        let (sequence, mut openings) = match &self.newest {
            Some(Stored { sequence, openings }) => (sequence + 1, openings.clone()),
            None => (1, Openings::known_from(opening.first)),
        };
        openings.note(opening);
        let stored = Stored { sequence, openings };
        file.allocate(FILE_BYTES)?;
        file.write_all_at(slot_offset(sequence), &stored.encode(self.instance))?;
        file.sync()?;
        if is_new {
            files.directory.sync()?;
        }
        // A try that failed is written over by the next one, and not what it would have replaced.
        self.newest = Some(stored);
        Ok(())
    }

    fn create(&self) -> Result<DiskHandle, DeviceError> {
        let hook = self.hook.clone();
        match DiskHandle::open(&self.dir, DiskFile::Openings, Access::Create, hook) {
            Err(DeviceError::Io { source, path, .. }) if is_no_space(&source) => {
                Err(DeviceError::disk_full(&path, FILE_BYTES))
            }
            result => result,
        }
    }
}

/// The list in a database directory, which may be open elsewhere; `None` if it has none.
pub(super) fn read_openings(
    dir: &Path,
    instance: u64,
    hook: Option<&Arc<dyn DiskHook>>,
) -> Result<Option<Openings>, DeviceError> {
    let Some(file) = open_file(dir, Access::Read, hook)? else { return Ok(None) };
    Ok(read_newest(&file, instance)?.map(|newest| newest.openings))
}

/// Writes the file of a copy, durably but for its name.
pub(super) fn write_openings(
    dir: &Path,
    instance: u64,
    openings: Openings,
) -> Result<(), DeviceError> {
    let path = dir.join(OPENINGS_NAME);
    let mut bytes = vec![0; FILE_BYTES as usize];
    let stored = Stored { sequence: 1, openings }.encode(instance);
    bytes[slot_offset(1) as usize..][..stored.len()].copy_from_slice(&stored);
    let write = || {
        let mut file = private::create_file(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    write().map_err(|e| DeviceError::io("write", &path, e))
}

fn open_file(
    dir: &Path,
    access: Access,
    hook: Option<&Arc<dyn DiskHook>>,
) -> Result<Option<DiskHandle>, DeviceError> {
    let path = dir.join(OPENINGS_NAME);
    match fs::symlink_metadata(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(DeviceError::io("look for", &path, e)),
        Ok(_) => DiskHandle::open(dir, DiskFile::Openings, access, hook.cloned()).map(Some),
    }
}

/// A list with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    sequence: u64,
    openings: Openings,
}

/// What was found in a slot.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Never written.
    Zero,
    List(Stored),
    /// Torn by a power cut, or damaged.
    Damaged,
    /// That of another database.
    Foreign,
}

/// The newest list of a file. A slot that is damaged beside one that is intact may have been torn
/// when it was written; then no epoch of that opening was answered.
fn read_newest(file: &DiskHandle, instance: u64) -> Result<Option<Stored>, DeviceError> {
    let damaged = |what: &str| {
        let what = format!(
            "{what}: put it back from where the other files come from, or remove it: without it a \
             backup does not see whether an earlier copy has epochs that were lost here"
        );
        Err(DeviceError::corrupt(file.path(), what))
    };
    let slots = [read_slot(file, 0, instance)?, read_slot(file, 1, instance)?];
    if slots.contains(&Found::Foreign) {
        return damaged("it belongs to another database");
    }
    match slots {
        [Found::List(a), Found::List(b)] => Ok(Some(if a.sequence > b.sequence { a } else { b })),
        [Found::List(a), _] | [_, Found::List(a)] => Ok(Some(a)),
        [Found::Damaged, Found::Damaged] => damaged("neither of its two slots is intact"),
        // The first list of all was torn.
        _ => Ok(None),
    }
}

fn read_slot(file: &DiskHandle, number: u64, instance: u64) -> Result<Found, DeviceError> {
    let offset = slot_offset(number);
    let mut bytes = vec![0; SLOT_BYTES as usize];
    let there = file.len()?.saturating_sub(offset).min(SLOT_BYTES) as usize;
    file.read_exact_at(offset, &mut bytes[..there])?;
    Ok(decode(&bytes, instance))
}

fn slot_offset(sequence: u64) -> u64 {
    sequence % 2 * SLOT_BYTES
}

impl Stored {
    fn encode(&self, instance: u64) -> Vec<u8> {
        let list = self.openings.list();
        assert!(list.len() <= OPENINGS_MAX, "{} openings fit a slot", list.len());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + list.len() * OPENING_BYTES);
        bytes.extend_from_slice(&MAGIC);
        for word in [instance, self.sequence, self.openings.from().0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&(list.len() as u32).to_le_bytes());
        assert!(bytes.len() == CRC_AT, "the checksum has its place");
        bytes.resize(HEAD_BYTES, 0);
        for Opening { first, id } in list {
            bytes.extend_from_slice(&first.0.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        let crc = slot_crc(&bytes).to_le_bytes();
        bytes[CRC_AT..][..crc.len()].copy_from_slice(&crc);
        bytes
    }
}

/// The checksum of a slot: of all but itself.
fn slot_crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_AT]);
    hasher.update(&bytes[CRC_AT + 4..]);
    hasher.finalize()
}

fn decode(bytes: &[u8], instance: u64) -> Found {
    if bytes.iter().all(|byte| *byte == 0) {
        return Found::Zero;
    }
    match decode_list(bytes) {
        Some((of, _)) if of != instance => Found::Foreign,
        Some((_, stored)) => Found::List(stored),
        None => Found::Damaged,
    }
}

/// The instance and the list of an intact slot.
fn decode_list(bytes: &[u8]) -> Option<(u64, Stored)> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    let half = |at: usize| bytes.get(at..)?.first_chunk().map(|half| u32::from_le_bytes(*half));
    let count = half(32)? as usize;
    let whole = bytes.get(..HEAD_BYTES + count.min(OPENINGS_MAX) * OPENING_BYTES)?;
    if whole[..8] != MAGIC || half(CRC_AT)? != slot_crc(whole) {
        return None;
    }
    let openings = whole[HEAD_BYTES..].as_chunks::<OPENING_BYTES>().0.iter().map(|bytes| {
        let (first, id) = (bytes.first_chunk()?, bytes.last_chunk()?);
        let first = EpochNumber(u64::from_le_bytes(*first));
        Some(Opening { first, id: u64::from_le_bytes(*id) })
    });
    let openings = Openings::of(EpochNumber(word(24)?), openings.collect::<Option<_>>()?)?;
    (openings.list().len() == count).then_some((word(8)?, Stored { sequence: word(16)?, openings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_every_flipped_bit_makes_it_damaged() {
        let list = |first| Opening { first: EpochNumber(first), id: u64::MAX - first };
        let openings = Openings::of(EpochNumber(3), [3, 9, 77].map(list).to_vec()).unwrap();
        let stored = Stored { sequence: 9, openings };
        let mut bytes = stored.encode(7);
        let len = bytes.len();
        bytes.resize(SLOT_BYTES as usize, 0);
        assert_eq!(decode(&bytes, 7), Found::List(stored));
        assert_eq!(decode(&bytes, 8), Found::Foreign);
        assert_eq!(decode(&vec![0; SLOT_BYTES as usize], 7), Found::Zero);
        for bit in 0..len * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped, 7), Found::Damaged, "bit {bit}");
        }
    }
}
