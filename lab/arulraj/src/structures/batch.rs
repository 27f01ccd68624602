//! How a batch of new memory takes the place of old memory with one store, and nothing is lost.
//!
//! 1. What is new is durable; a record lists the new and the old slots, and the word's new value.
//! 2. A named root leads to the record.
//! 3. The new slots are marked persisted.
//! 4. The word gets its new value: this is the commit.
//! 5. The old slots are marked free.
//! 6. The root forgets the record.
//!
//! After a crash between (2) and (6) the word tells whether the batch had committed: then the old
//! slots are freed, and otherwise the new ones. The record itself is never marked persisted. The
//! paper has no such record; without it a crash would lose memory, or every restart would have to
//! look for it.

use std::collections::BTreeSet;

use pmem::Device;

use super::tuple::flush_slots;
use crate::ground::{Area, Nvm};
use crate::options::{Fault, Options};
use crate::{Error, Result};

const RECORD: &[u8; 8] = b"batch\0\0\0";
/// Slots that one slot of a record lists.
const LISTED_MAX: usize = 500;

/// What a batch makes, and what it gives up.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) new: BTreeSet<u64>,
    pub(crate) old: BTreeSet<u64>,
}

impl Batch {
    /// The slot is given up: at once if the batch made it, else when the batch commits.
    pub(crate) fn give_up<D: Device>(&mut self, nvm: &mut Nvm<D>, slot: u64) {
        match self.new.remove(&slot) {
            true => nvm.recycle(slot),
            false => {
                self.old.insert(slot);
            }
        }
    }

    /// Stores `value` into the durable word at an offset, and with that commits.
    fn commit<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        word_at: u64,
        value: u64,
        order: Order,
    ) -> Result<()> {
        if order == Order::WordFirst {
            nvm.memory.sync_u64(word_at, value);
        }
        let new: Vec<u64> = self.new.iter().copied().collect();
        flush_slots(nvm, &new);
        nvm.memory.fence();
        let records = self.write_record(nvm, value)?;
        nvm.set_root(RECORD, records.last().copied().unwrap_or_default());
        new.iter().for_each(|slot| nvm.mark_persisted(*slot));
        nvm.memory.fence();
        if order == Order::FreeFirst {
            self.free_old(nvm);
        }
        nvm.memory.sync_u64(word_at, value);
        if order != Order::FreeFirst {
            self.free_old(nvm);
        }
        nvm.set_root(RECORD, 0);
        let old = std::mem::take(&mut self.old);
        nvm.recycle_all(old.into_iter().chain(records));
        self.new.clear();
        Ok(())
    }

    fn free_old<D: Device>(&self, nvm: &mut Nvm<D>) {
        self.old.iter().for_each(|slot| nvm.mark_free(*slot));
        nvm.memory.fence();
    }

    /// Writes the record as a list of slots, of which the last one leads to the others.
    fn write_record<D: Device>(&self, nvm: &mut Nvm<D>, value: u64) -> Result<Vec<u64>> {
        let old = self.old.iter().map(|slot| slot << 1);
        let all: Vec<u64> = self.new.iter().map(|slot| slot << 1 | 1).chain(old).collect();
        let mut slots = Vec::new();
        let mut parts: Vec<&[u64]> = all.chunks(LISTED_MAX).collect();
        parts.resize(parts.len().max(1), &[]);
        for part in parts {
            let mut words = vec![slots.last().copied().unwrap_or_default(), value];
            words.push(part.len() as u64);
            words.extend_from_slice(part);
            let slot = nvm.allocate(words.len() as u64 * 8, Area::Other)?;
            nvm.memory.store_words(slot, &words);
            nvm.memory.flush(slot, words.len() as u64 * 8);
            slots.push(slot);
        }
        nvm.memory.fence();
        Ok(slots)
    }
}

/// In which order a batch commits: wrong ones are for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Right,
    WordFirst,
    FreeFirst,
}

impl Order {
    fn of(options: &Options) -> Self {
        if options.has(Fault::MasterFirst) {
            Self::WordFirst
        } else if options.has(Fault::EarlyReuse) {
            Self::FreeFirst
        } else {
            Self::Right
        }
    }
}

/// The named word that leads to what is committed: a slot with the directory of all else.
#[derive(Debug)]
pub(crate) struct Master {
    word_at: u64,
    /// The slot of the directory; 0 before the first.
    pub(crate) directory: u64,
}

impl Master {
    pub(crate) fn new<D: Device>(nvm: &mut Nvm<D>, name: &[u8; 8]) -> Self {
        Self { word_at: nvm.root_at(name), directory: 0 }
    }

    /// Finds what was committed. With it, whether a crash had interrupted a batch.
    pub(crate) fn recover<D: Device>(nvm: &mut Nvm<D>, name: &[u8; 8]) -> Result<(Self, bool)> {
        let word_at = nvm.root_at(name);
        let was_interrupted = recover_batch(nvm, word_at);
        let directory = nvm.memory.load_u64(word_at);
        if directory == 0 {
            let name = name.escape_ascii();
            return Err(Error::Corrupt(format!("the root {name} leads to nothing")));
        }
        Ok((Self { word_at, directory }, was_interrupted))
    }

    /// Puts a new directory of these words in the place of the old: commits the batch.
    pub(crate) fn publish<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        batch: &mut Batch,
        words: &[u64],
        options: &Options,
    ) -> Result<()> {
        let directory = nvm.allocate(words.len() as u64 * 8, Area::Other)?;
        nvm.memory.store_words(directory, words);
        batch.new.insert(directory);
        if self.directory != 0 {
            batch.old.insert(self.directory);
        }
        batch.commit(nvm, self.word_at, directory, Order::of(options))?;
        self.directory = directory;
        Ok(())
    }
}

/// Ends the batch that a crash interrupted, or takes it back. Whether there was one.
fn recover_batch<D: Device>(nvm: &mut Nvm<D>, word_at: u64) -> bool {
    let mut record = nvm.root(RECORD);
    if record == 0 {
        return false;
    }
    while record != 0 {
        let head: Vec<u64> = nvm.memory.load_words(record, 3).collect();
        let [next, value, count] = head[..] else { unreachable!("three words were loaded") };
        let committed = nvm.memory.load_u64(word_at) == value;
        let listed: Vec<u64> = nvm.memory.load_words(record + 24, count as usize).collect();
        for slot in listed {
            if (slot & 1 == 1) != committed {
                nvm.mark_free(slot >> 1);
            }
        }
        record = next;
    }
    nvm.memory.fence();
    nvm.set_root(RECORD, 0);
    true
}
