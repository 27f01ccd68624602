//! Tuples in slots: a head word (kind, and which columns are there), the key, a word a column. A
//! value of up to 8 bytes is in the word; a longer one is in a slot of its own, whose address the
//! word is (the paper's 3.1).

use pmem::Device;

use crate::Result;
use crate::ground::{Area, Nvm, Part};
use crate::schema::{Changes, Entry, Key, Kind, Table};

const HEADER_BYTES: u64 = 8;

/// The value of a key in a table without columns: there is no tuple. No slot has this address.
pub(crate) const NO_TUPLE: u64 = 1;

/// A word that changes in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordChange {
    pub(crate) at: u64,
    pub(crate) old: u64,
    pub(crate) new: u64,
    /// Whether old and new are slots, or 0.
    pub(crate) is_slot: bool,
}

/// A word that is to be stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewWord {
    pub(crate) at: u64,
    pub(crate) value: u64,
}

impl WordChange {
    /// The word after the change.
    pub(crate) fn after(&self) -> NewWord {
        NewWord { at: self.at, value: self.new }
    }

    /// The word before it.
    pub(crate) fn before(&self) -> NewWord {
        NewWord { at: self.at, value: self.old }
    }

    /// The slot that the change replaces.
    pub(crate) fn old_slot(&self) -> Option<u64> {
        (self.is_slot && self.old != 0).then_some(self.old)
    }

    /// The slot that it puts in its place.
    pub(crate) fn new_slot(&self) -> Option<u64> {
        (self.is_slot && self.new != 0).then_some(self.new)
    }
}

/// Bytes of a tuple's slot.
pub(crate) fn tuple_bytes(table: &Table) -> u64 {
    (1 + table.key_words() + table.columns.len()) as u64 * 8
}

/// Where the word of a column is.
pub(crate) fn column_at(table: &Table, tuple: u64, column: usize) -> u64 {
    tuple + (1 + table.key_words() + column) as u64 * 8
}

/// The word of a value; a new slot, which is added to `slots`, if the value is long.
pub(crate) fn make_word<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    column: usize,
    value: &[u8],
    slots: &mut Vec<u64>,
) -> Result<u64> {
    if table.is_inline(column) {
        let mut word = [0; 8];
        word[..value.len()].copy_from_slice(value);
        return Ok(u64::from_le_bytes(word));
    }
    let slot = nvm.allocate(value.len() as u64, Area::Table)?;
    nvm.within(Part::Field, |nvm| nvm.memory.store(slot, value));
    nvm.written.memory += value.len() as u64;
    slots.push(slot);
    Ok(slot)
}

/// The words of a tuple that such changes replace. New slots are added to `slots`; the tuple is as
/// it was.
pub(crate) fn word_changes<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    tuple: u64,
    changes: Changes<'_>,
    slots: &mut Vec<u64>,
) -> Result<Vec<WordChange>> {
    let mut words = Vec::new();
    for (column, value) in changes {
        let at = column_at(table, tuple, *column);
        let old = nvm.within(Part::Tuple, |nvm| nvm.memory.load_u64(at));
        let new = make_word(nvm, table, *column, value, slots)?;
        words.push(WordChange { at, old, new, is_slot: !table.is_inline(*column) });
    }
    Ok(words)
}

/// The tuple of a row, as [`write_tuple`] makes it; none in a table without columns.
pub(crate) fn write_row<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    key: &Key,
    row: &Entry,
    slots: &mut Vec<u64>,
) -> Result<u64> {
    match table.columns.is_empty() {
        true => Ok(NO_TUPLE),
        false => write_tuple(nvm, table, key, row, slots),
    }
}

/// Writes an entry into new slots, which are added to `slots`, the tuple's last. Nothing is
/// flushed.
pub(crate) fn write_tuple<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    key: &Key,
    entry: &Entry,
    slots: &mut Vec<u64>,
) -> Result<u64> {
    let mut words = vec![entry.head()];
    words.extend(&key.0[..table.key_words()]);
    for (column, value) in entry.columns.iter().enumerate() {
        words.push(match value {
            Some(value) => make_word(nvm, table, column, value, slots)?,
            None => 0,
        });
    }
    let tuple = nvm.allocate(tuple_bytes(table), Area::Table)?;
    nvm.within(Part::Tuple, |nvm| nvm.memory.store_words(tuple, &words));
    nvm.written.memory += words.len() as u64 * 8;
    slots.push(tuple);
    Ok(tuple)
}

/// Stores words of tuples, and flushes them with `durably`: a line once, however many of them it
/// has.
pub(crate) fn store_changes<D: Device>(
    nvm: &mut Nvm<D>,
    words: impl IntoIterator<Item = NewWord> + Clone,
    durably: bool,
) {
    nvm.within(Part::Tuple, |nvm| {
        for word in words.clone() {
            nvm.memory.store_u64(word.at, word.value);
        }
        if durably {
            words.into_iter().for_each(|word| nvm.memory.flush(word.at, 8));
        }
    });
}

/// Makes the contents of slots durable.
pub(crate) fn sync_slots<D: Device>(nvm: &mut Nvm<D>, slots: &[u64]) {
    flush_slots(nvm, slots);
    if !slots.is_empty() {
        nvm.memory.fence();
    }
}

/// Starts to make the contents of slots durable.
pub(crate) fn flush_slots<D: Device>(nvm: &mut Nvm<D>, slots: &[u64]) {
    for slot in slots {
        let len = nvm.heap.len(&mut nvm.memory, *slot);
        nvm.memory.flush(slot - HEADER_BYTES, HEADER_BYTES + len);
    }
}

/// The words of a tuple.
pub(crate) fn load_tuple<D: Device>(nvm: &mut Nvm<D>, table: &Table, tuple: u64) -> Vec<u64> {
    let words = (tuple_bytes(table) / 8) as usize;
    nvm.within(Part::Tuple, |nvm| nvm.memory.load_words(tuple, words).collect())
}

/// Reads a tuple.
pub(crate) fn read_tuple<D: Device>(nvm: &mut Nvm<D>, table: &Table, tuple: u64) -> Result<Entry> {
    if tuple == NO_TUPLE {
        return Ok(Entry::full(&[]));
    }
    let words = load_tuple(nvm, table, tuple);
    let kind = Kind::of(words[0] & 0xff)?;
    let mut columns = vec![None; table.columns.len()];
    for (column, value) in columns.iter_mut().enumerate() {
        if words[0] >> (8 + column) & 1 == 1 {
            let word = words[1 + table.key_words() + column];
            *value = Some(read_word(nvm, table, column, word));
        }
    }
    Ok(Entry { kind, columns })
}

fn read_word<D: Device>(nvm: &mut Nvm<D>, table: &Table, column: usize, word: u64) -> Vec<u8> {
    if table.is_inline(column) {
        return word.to_le_bytes()[..table.columns[column] as usize].to_vec();
    }
    nvm.within(Part::Field, |nvm| {
        let len = nvm.heap.len(&mut nvm.memory, word);
        nvm.memory.load(word, len).to_vec()
    })
}

/// The slots of a tuple's long values.
pub(crate) fn field_slots<D: Device>(nvm: &mut Nvm<D>, table: &Table, tuple: u64) -> Vec<u64> {
    let words = load_tuple(nvm, table, tuple);
    let long = (0..table.columns.len())
        .filter(|column| words[0] >> (8 + column) & 1 == 1 && !table.is_inline(*column));
    long.map(|column| words[1 + table.key_words() + column]).collect()
}

/// All slots of a tuple, its own last.
pub(crate) fn slots_of<D: Device>(nvm: &mut Nvm<D>, table: &Table, tuple: u64) -> Vec<u64> {
    if tuple == NO_TUPLE {
        return Vec::new();
    }
    let mut slots = field_slots(nvm, table, tuple);
    slots.push(tuple);
    slots
}
