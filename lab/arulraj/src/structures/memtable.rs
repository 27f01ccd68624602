//! A MemTable: the newest changes of tuples, an entry a key, in trees of slots (the paper's 3.3 and
//! 4.3). A change of a key that has an entry changes the entry's words; otherwise it is a new
//! entry: a tuple, some fields, or a tombstone.

use pmem::Device;

use super::btree::BTree;
use super::tuple::{WordChange, tuple_bytes, word_changes, write_tuple};
use crate::Result;
use crate::ground::{Nvm, Part};
use crate::schema::{Changes, Entry, Key, Kind, Row, Table};

/// What happens to a key.
pub(crate) enum Change<'a> {
    Put(&'a [Vec<u8>]),
    Fields(Changes<'a>),
    Remove,
}

/// How a change is made in a MemTable.
pub(crate) struct Plan {
    pub(crate) step: Step,
    /// The new slots of the change.
    pub(crate) slots: Vec<u64>,
}

/// What happens to a key's entry.
pub(crate) enum Step {
    /// The key gets this one.
    Link(u64),
    /// Words of it change.
    Words(Vec<WordChange>),
}

/// Makes the slots that a change needs, and says what is to be done.
pub(crate) fn plan<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    tree: &BTree,
    key: &Key,
    change: &Change<'_>,
) -> Result<Plan> {
    let mut slots = Vec::new();
    let columns = table.columns.len();
    let Some(tuple) = tree.get(nvm, key) else {
        let entry = match change {
            Change::Put(row) => Entry::full(row),
            Change::Fields(changes) => Entry::partial(columns, changes),
            Change::Remove => Entry::tombstone(columns),
        };
        let tuple = write_tuple(nvm, table, key, &entry, &mut slots)?;
        return Ok(Plan { step: Step::Link(tuple), slots });
    };
    let row;
    let (kind, changes): (_, Changes<'_>) = match change {
        Change::Put(values) => {
            row = values.iter().map(Vec::as_slice).enumerate().collect::<Vec<_>>();
            (Some(Kind::Full), &row)
        }
        Change::Fields(changes) => (None, changes),
        Change::Remove => (Some(Kind::Tombstone), &[]),
    };
    let mut words = Vec::new();
    let old = nvm.within(Part::Tuple, |nvm| nvm.memory.load_u64(tuple));
    let bits = changes.iter().fold(old >> 8, |bits, (column, _)| bits | 1 << column);
    let head = bits << 8 | kind.map_or(old & 0xff, |kind| kind as u64);
    if head != old {
        words.push(WordChange { at: tuple, old, new: head, is_slot: false });
    }
    words.extend(word_changes(nvm, table, tuple, changes, &mut slots)?);
    Ok(Plan { step: Step::Words(words), slots })
}

/// Bytes of an entry for such a change.
pub(crate) fn change_bytes(table: &Table, change: &Change<'_>) -> u64 {
    let values: usize = match change {
        Change::Put(row) => row.iter().map(Vec::len).sum(),
        Change::Fields(changes) => changes.iter().map(|(_, value)| value.len()).sum(),
        Change::Remove => 0,
    };
    tuple_bytes(table) + values as u64
}

/// The tuple that entries of one key come to, the newest first. No entry is asked for behind a
/// whole one.
pub(crate) fn coalesce(
    entries: impl IntoIterator<Item = Result<Option<Entry>>>,
) -> Result<Option<Row>> {
    let mut all: Option<Entry> = None;
    for entry in entries {
        let Some(mut older) = entry? else { continue };
        let is_whole = older.kind != Kind::Partial;
        if let Some(newer) = all.take() {
            older.put_over(newer);
        }
        all = Some(older);
        if is_whole {
            break;
        }
    }
    Ok(all.and_then(Entry::into_row))
}
