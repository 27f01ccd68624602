//! A MemTable: the newest changes of tuples, an entry a key, in trees of slots (the paper's 3.3 and
//! 4.3). A change of a key that has an entry changes the entry's words; otherwise it is a new
//! entry: a tuple, some fields, or a tombstone.

use pmem::Device;

use super::btree::BTree;
use super::tuple::{column_at, make_word, tuple_bytes, write_tuple};
use super::undo::WordChange;
use crate::Result;
use crate::ground::Nvm;
use crate::schema::{Changes, Entry, Key, Kind, Row, Table};

/// What happens to a key.
pub(crate) enum Change<'a> {
    Put(&'a [Vec<u8>]),
    Fields(Changes<'a>),
    Remove,
}

/// How a change is made in a MemTable.
pub(crate) enum Plan {
    /// The key gets this entry.
    Link(u64),
    /// Words of its entry change.
    Words(Vec<WordChange>),
}

/// Makes the slots that a change needs, which are added to `slots`, and says what is to be done.
pub(crate) fn plan<D: Device>(
    nvm: &mut Nvm<D>,
    table: &Table,
    tree: &BTree,
    key: &Key,
    change: &Change<'_>,
    slots: &mut Vec<u64>,
) -> Result<Plan> {
    let columns = table.columns.len();
    let Some(tuple) = tree.get(nvm, key) else {
        let entry = match change {
            Change::Put(row) => Entry::full(row),
            Change::Fields(changes) => Entry::partial(columns, changes),
            Change::Remove => Entry::tombstone(columns),
        };
        return Ok(Plan::Link(write_tuple(nvm, table, key, &entry, slots)?));
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
    let old = nvm.memory.load_u64(tuple);
    let bits = changes.iter().fold(old >> 8, |bits, (column, _)| bits | 1 << column);
    let head = bits << 8 | kind.map_or(old & 0xff, |kind| kind as u64);
    if head != old {
        words.push(WordChange { at: tuple, old, new: head, is_slot: false });
    }
    for (column, value) in changes {
        let at = column_at(table, tuple, *column);
        let old = nvm.memory.load_u64(at);
        let new = make_word(nvm, table, *column, value, slots)?;
        words.push(WordChange { at, old, new, is_slot: !table.is_inline(*column) });
    }
    Ok(Plan::Words(words))
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

/// Puts entries of one key, the newest first, on top of each other, until there is a whole one.
#[derive(Default)]
pub(crate) struct Coalesced(Option<Entry>);

impl Coalesced {
    /// Puts an older entry below; whether still older ones are needed.
    pub(crate) fn add(&mut self, mut older: Entry) -> bool {
        let is_whole = older.kind != Kind::Partial;
        if let Some(newer) = self.0.take() {
            older.put_over(newer);
        }
        self.0 = Some(older);
        !is_whole
    }

    pub(crate) fn into_row(self) -> Option<Row> {
        self.0.and_then(Entry::into_row)
    }
}
