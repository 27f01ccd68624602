//! The log of the engines that change memory in place: what undoes the running transaction (the
//! paper's 4.1 and 4.3).
//!
//! A list of entries, the newest first, whose head is a named root: an entry is durable before the
//! store of the head makes it count, and the head before what the entry undoes is changed. Entries
//! have pointers, no values. The commit stores 0 to the head: one atomic store. Entries are slots
//! that are never marked persisted: nothing has to be freed after a crash but what they lead to.
//!
//! What a transaction gives up is marked free before the head is stored, and not used before that:
//! an undo marks it persisted again. Undoing is idempotent, and allocates nothing.

use std::collections::BTreeSet;

use pmem::Device;

use super::btree::BTree;
use super::tuple::{WordChange, slots_of, sync_slots};
use crate::ground::{Area, Nvm};
use crate::options::{Fault, Options};
use crate::schema::{KEY_WORDS_MAX, Key, Table};
use crate::{Error, Result};

const HEAD: &[u8; 8] = b"undolog\0";
const KEY_AT: usize = 3;
const TUPLE_AT: usize = KEY_AT + KEY_WORDS_MAX;
const FIXED_WORDS: usize = TUPLE_AT + 1;
/// Set in an address where the words are addresses of slots.
const IS_SLOT: u64 = 1;

/// What an entry undoes.
#[derive(Debug, Clone)]
pub(crate) enum Undo {
    /// A key got a tuple.
    Linked { table: usize, key: Key, tuple: u64 },
    /// A key lost its tuple.
    Unlinked { table: usize, key: Key, tuple: u64 },
    /// Words of a tuple changed.
    Changed(Vec<WordChange>),
}

/// The log.
#[derive(Debug)]
pub(crate) struct UndoLog {
    head_at: u64,
    head: u64,
    /// Slots of the running transaction's entries.
    entries: Vec<u64>,
    /// What the running transaction gives up.
    given_up: Vec<u64>,
}

impl UndoLog {
    pub(crate) fn new<D: Device>(nvm: &mut Nvm<D>) -> Self {
        let head_at = nvm.root_at(HEAD);
        let head = nvm.memory.load_u64(head_at);
        Self { head_at, head, entries: Vec::new(), given_up: Vec::new() }
    }

    /// Before a change: makes its new slots durable, adds what undoes it, and marks them persisted.
    pub(crate) fn log<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        slots: &[u64],
        undo: &Undo,
        options: &Options,
    ) -> Result<()> {
        sync_slots(nvm, slots);
        if options.has(Fault::PersistBeforeLog) {
            persist(nvm, slots);
        }
        self.append(nvm, undo)?;
        persist(nvm, slots);
        Ok(())
    }

    /// Changes words, durably, and gives up the slots that they replace.
    pub(crate) fn change_words<D: Device>(&mut self, nvm: &mut Nvm<D>, words: &[WordChange]) {
        for word in words {
            nvm.memory.store_u64(word.at, word.new);
            nvm.memory.flush(word.at, 8);
        }
        nvm.memory.fence();
        nvm.written.memory += words.len() as u64 * 8;
        self.give_up(words.iter().filter_map(WordChange::old_slot));
    }

    /// Adds an entry, durably.
    fn append<D: Device>(&mut self, nvm: &mut Nvm<D>, undo: &Undo) -> Result<()> {
        let words = encode(self.head, undo);
        let entry = nvm.allocate(words.len() as u64 * 8, Area::Log)?;
        nvm.memory.store_words(entry, &words);
        nvm.written.log += words.len() as u64 * 8;
        nvm.memory.sync(entry - 8, 8 + words.len() as u64 * 8);
        nvm.memory.sync_u64(self.head_at, entry);
        self.head = entry;
        self.entries.push(entry);
        Ok(())
    }

    /// The slots are free once the transaction has committed.
    pub(crate) fn give_up(&mut self, slots: impl IntoIterator<Item = u64>) {
        self.given_up.extend(slots);
    }

    /// The transaction has committed: cuts the log.
    pub(crate) fn commit<D: Device>(&mut self, nvm: &mut Nvm<D>) {
        if self.head == 0 {
            return;
        }
        self.given_up.iter().for_each(|slot| nvm.mark_free(*slot));
        if !self.given_up.is_empty() {
            nvm.memory.fence();
        }
        self.cut(nvm);
        nvm.recycle_all(self.given_up.drain(..));
    }

    fn cut<D: Device>(&mut self, nvm: &mut Nvm<D>) {
        nvm.memory.sync_u64(self.head_at, 0);
        self.head = 0;
        nvm.recycle_all(self.entries.drain(..));
    }

    /// Undoes the running transaction; how many entries. In recovery nothing is used again before
    /// the allocator has looked at all slots.
    pub(crate) fn undo<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        trees: &[BTree],
        in_recovery: bool,
    ) -> Result<u64> {
        let (mut entry, mut count) = (self.head, 0);
        let mut freed = BTreeSet::new();
        while entry != 0 {
            let (next, undo) = decode(nvm, entry)?;
            undo_one(nvm, tables, trees, &undo, &mut freed)?;
            (entry, count) = (next, count + 1);
        }
        if count == 0 {
            return Ok(0);
        }
        nvm.memory.fence();
        self.given_up.clear();
        if in_recovery {
            nvm.memory.sync_u64(self.head_at, 0);
            self.head = 0;
            return Ok(count);
        }
        self.cut(nvm);
        for slot in freed {
            if !nvm.heap.is_persisted(&mut nvm.memory, slot) {
                nvm.recycle(slot);
            }
        }
        Ok(count)
    }
}

/// Marks slots persisted, and waits for it.
fn persist<D: Device>(nvm: &mut Nvm<D>, slots: &[u64]) {
    slots.iter().for_each(|slot| nvm.mark_persisted(*slot));
    if !slots.is_empty() {
        nvm.memory.fence();
    }
}

fn undo_one<D: Device>(
    nvm: &mut Nvm<D>,
    tables: &[Table],
    trees: &[BTree],
    undo: &Undo,
    freed: &mut BTreeSet<u64>,
) -> Result<()> {
    match undo {
        Undo::Linked { table, key, tuple } => {
            if trees[*table].get(nvm, key) == Some(*tuple) {
                trees[*table].remove(nvm, key);
            }
            for slot in slots_of(nvm, &tables[*table], *tuple) {
                nvm.mark_free(slot);
                freed.insert(slot);
            }
        }
        Undo::Unlinked { table, key, tuple } => {
            let slots = slots_of(nvm, &tables[*table], *tuple);
            slots.iter().for_each(|slot| nvm.mark_persisted(*slot));
            trees[*table].insert(nvm, key, *tuple)?;
        }
        Undo::Changed(words) => {
            for change in words {
                nvm.memory.store_u64(change.at, change.old);
                nvm.memory.flush(change.at, 8);
                if let Some(old) = change.old_slot() {
                    nvm.mark_persisted(old);
                }
                if let Some(new) = change.new_slot() {
                    nvm.mark_free(new);
                    freed.insert(new);
                }
            }
        }
    }
    Ok(())
}

fn encode(next: u64, undo: &Undo) -> Vec<u64> {
    let (kind, table, key, tuple) = match undo {
        Undo::Linked { table, key, tuple } => (1, *table, *key, *tuple),
        Undo::Unlinked { table, key, tuple } => (2, *table, *key, *tuple),
        Undo::Changed(words) => (3, 0, Key::MIN, words.len() as u64),
    };
    let mut words = vec![next, kind, table as u64];
    words.extend(key.0);
    words.push(tuple);
    if let Undo::Changed(changes) = undo {
        for change in changes {
            words.extend([change.at | u64::from(change.is_slot), change.old, change.new]);
        }
    }
    words
}

fn decode<D: Device>(nvm: &mut Nvm<D>, entry: u64) -> Result<(u64, Undo)> {
    let words: Vec<u64> = nvm.memory.load_words(entry, FIXED_WORDS).collect();
    let table = words[2] as usize;
    let (key, tuple) = (Key::of_words(&words[KEY_AT..TUPLE_AT]), words[TUPLE_AT]);
    let undo = match words[1] {
        1 => Undo::Linked { table, key, tuple },
        2 => Undo::Unlinked { table, key, tuple },
        3 => {
            let at = entry + FIXED_WORDS as u64 * 8;
            let changes: Vec<u64> = nvm.memory.load_words(at, tuple as usize * 3).collect();
            Undo::Changed(changes.as_chunks::<3>().0.iter().map(word_change).collect())
        }
        kind => return Err(Error::Corrupt(format!("an entry of the log has kind {kind}"))),
    };
    Ok((words[0], undo))
}

fn word_change(words: &[u64; 3]) -> WordChange {
    let [at, old, new] = *words;
    WordChange { at: at & !IS_SLOT, old, new, is_slot: at & IS_SLOT != 0 }
}
