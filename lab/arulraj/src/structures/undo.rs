//! The log of the engines that change memory in place: what undoes the running transaction (the
//! paper's 4.1 and 4.3).
//!
//! A list of entries, the newest first, whose head is a named root: an entry is durable before the
//! store of the head makes it count, and the head before what the entry undoes is changed. Entries
//! have pointers, no values. The commit stores 0 to the head: one atomic store. Entries are slots
//! that are never marked persisted: nothing has to be freed after a crash but what they lead to.
//! The log keeps them for later transactions, the last one first, so that an entry is a line that
//! was in use before.
//!
//! An insert's slots are durable before the entry, since it leads to the tuple, and are marked
//! persisted after it. An update's entry has the new slots itself: it is durable first, and a new
//! slot is flushed once, with its mark, beside the words that change.
//!
//! What a transaction gives up is marked free before the head is stored, and not used before that:
//! an undo marks it persisted again. Undoing is idempotent, and allocates nothing.

use std::collections::BTreeSet;

use pmem::Device;

use super::btree::BTree;
use super::tuple::{NO_TUPLE, WordChange, load_tuple, slots_of, store_changes, sync_slots};
use crate::ground::{Area, Nvm, Part};
use crate::options::{Fault, Options};
use crate::schema::{Key, Table};
use crate::{Error, Result};

const HEAD: &[u8; 8] = b"undolog\0";
/// Where the kind is: below the number of the table, or of the words that change.
const KIND_BITS: u32 = 8;
const LINKED: u64 = 1;
const UNLINKED: u64 = 2;
const CHANGED: u64 = 3;
/// Set in an address where the words are addresses of slots.
const IS_SLOT: u64 = 1;
/// Bytes of a slot's header.
const HEADER_BYTES: u64 = 8;

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

/// A slot of the log.
#[derive(Debug, Clone, Copy)]
struct EntrySlot {
    at: u64,
    bytes: u64,
}

/// The log.
#[derive(Debug)]
pub(crate) struct UndoLog {
    head_at: u64,
    head: u64,
    /// Slots of the running transaction's entries.
    entries: Vec<EntrySlot>,
    /// Slots for later entries.
    spare: Vec<EntrySlot>,
    /// What the running transaction gives up.
    given_up: Vec<u64>,
}

impl UndoLog {
    pub(crate) fn new<D: Device>(nvm: &mut Nvm<D>) -> Self {
        let head_at = nvm.root_at(HEAD);
        let head = nvm.memory.load_u64(head_at);
        Self { head_at, head, entries: Vec::new(), spare: Vec::new(), given_up: Vec::new() }
    }

    /// Before a key gets a tuple or loses it: makes the tuple's new slots durable, adds what undoes
    /// it, and marks them persisted. The change of the tree waits for that.
    pub(crate) fn log_link<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        tables: &[Table],
        slots: &[u64],
        undo: &Undo,
        options: &Options,
    ) -> Result<()> {
        sync_slots(nvm, slots);
        if options.has(Fault::PersistBeforeLog) {
            slots.iter().for_each(|slot| nvm.mark_persisted(*slot));
            nvm.memory.fence();
        }
        self.append(nvm, &encode(self.head, tables, undo))?;
        slots.iter().for_each(|slot| nvm.mark_persisted(*slot));
        Ok(())
    }

    /// Changes words, durably, with the new slots that they lead to, and gives up those that they
    /// replace. What undoes it is durable before.
    pub(crate) fn change_words<D: Device>(
        &mut self,
        nvm: &mut Nvm<D>,
        slots: &[u64],
        words: &[WordChange],
        options: &Options,
    ) -> Result<()> {
        let entry = encode(self.head, &[], &Undo::Changed(words.to_vec()));
        let log_first = !options.has(Fault::ChangeBeforeLog);
        if options.has(Fault::PersistBeforeLog) {
            persist(nvm, slots);
            nvm.memory.fence();
        }
        if log_first {
            self.append(nvm, &entry)?;
        }
        persist(nvm, slots);
        store_changes(nvm, words.iter().map(WordChange::after), true);
        nvm.memory.fence();
        if !log_first {
            self.append(nvm, &entry)?;
        }
        nvm.written.memory += words.len() as u64 * 8;
        self.give_up(words.iter().filter_map(WordChange::old_slot));
        Ok(())
    }

    /// Adds an entry, durably.
    fn append<D: Device>(&mut self, nvm: &mut Nvm<D>, words: &[u64]) -> Result<()> {
        let bytes = words.len() as u64 * 8;
        let entry = self.entry_slot(nvm, bytes)?;
        nvm.within(Part::Log, |nvm| {
            nvm.memory.store_words(entry.at, words);
            nvm.memory.sync(entry.at, bytes);
        });
        nvm.written.log += bytes;
        nvm.within(Part::LogHead, |nvm| nvm.memory.sync_u64(self.head_at, entry.at));
        self.head = entry.at;
        self.entries.push(entry);
        Ok(())
    }

    /// The last spare slot that is large enough, or a new one.
    fn entry_slot<D: Device>(&mut self, nvm: &mut Nvm<D>, bytes: u64) -> Result<EntrySlot> {
        if let Some(spare) = self.spare.iter().rposition(|slot| slot.bytes >= bytes) {
            return Ok(self.spare.remove(spare));
        }
        // As much as the slot has.
        let bytes = (bytes + HEADER_BYTES).next_multiple_of(pmem::LINE_BYTES) - HEADER_BYTES;
        Ok(EntrySlot { at: nvm.allocate(bytes, Area::Log)?, bytes })
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
        self.forget(nvm);
        self.spare.extend(self.entries.drain(..).rev());
    }

    fn forget<D: Device>(&mut self, nvm: &mut Nvm<D>) {
        nvm.within(Part::LogHead, |nvm| nvm.memory.sync_u64(self.head_at, 0));
        self.head = 0;
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
            let (next, undo) = decode(nvm, tables, entry)?;
            undo_one(nvm, tables, trees, &undo, &mut freed)?;
            (entry, count) = (next, count + 1);
        }
        if count == 0 {
            return Ok(0);
        }
        nvm.memory.fence();
        self.given_up.clear();
        if in_recovery {
            self.forget(nvm);
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

/// Flushes new slots with the mark that they are persisted.
fn persist<D: Device>(nvm: &mut Nvm<D>, slots: &[u64]) {
    for slot in slots {
        let len = nvm.heap.len(&mut nvm.memory, *slot);
        nvm.sync_persisted(*slot, len);
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
            store_changes(nvm, words.iter().map(WordChange::before), true);
            for change in words {
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

/// The words of an entry. The key is that of the tuple; where there is none, it follows.
fn encode(next: u64, tables: &[Table], undo: &Undo) -> Vec<u64> {
    let (kind, table, key, tuple) = match undo {
        Undo::Linked { table, key, tuple } => (LINKED, *table, key, *tuple),
        Undo::Unlinked { table, key, tuple } => (UNLINKED, *table, key, *tuple),
        Undo::Changed(changes) => {
            let mut words = vec![next, (changes.len() as u64) << KIND_BITS | CHANGED];
            for change in changes {
                words.extend([change.at | u64::from(change.is_slot), change.old, change.new]);
            }
            return words;
        }
    };
    let mut words = vec![next, (table as u64) << KIND_BITS | kind, tuple];
    if tuple == NO_TUPLE {
        words.extend(&key.0[..tables[table].key_words()]);
    }
    words
}

fn decode<D: Device>(nvm: &mut Nvm<D>, tables: &[Table], entry: u64) -> Result<(u64, Undo)> {
    let head: Vec<u64> = nvm.memory.load_words(entry, 2).collect();
    let (kind, number) = (head[1] & ((1 << KIND_BITS) - 1), (head[1] >> KIND_BITS) as usize);
    let corrupt = |what: String| Error::Corrupt(format!("an entry of the log has {what}"));
    if kind == CHANGED {
        let words: Vec<u64> = nvm.memory.load_words(entry + 16, number * 3).collect();
        let changes = words.as_chunks::<3>().0.iter().map(word_change).collect();
        return Ok((head[0], Undo::Changed(changes)));
    }
    let table = number;
    let of = tables.get(table).ok_or_else(|| corrupt(format!("table {table}")))?;
    let tuple = nvm.memory.load_u64(entry + 16);
    let key: Vec<u64> = match tuple {
        NO_TUPLE => nvm.memory.load_words(entry + 24, of.key_words()).collect(),
        tuple => load_tuple(nvm, of, tuple)[1..=of.key_words()].to_vec(),
    };
    let key = Key::of_words(&key);
    match kind {
        LINKED => Ok((head[0], Undo::Linked { table, key, tuple })),
        UNLINKED => Ok((head[0], Undo::Unlinked { table, key, tuple })),
        kind => Err(corrupt(format!("kind {kind}"))),
    }
}

fn word_change(words: &[u64; 3]) -> WordChange {
    let [at, old, new] = *words;
    WordChange { at: at & !IS_SLOT, old, new, is_slot: at & IS_SLOT != 0 }
}
