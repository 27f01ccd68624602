//! Secondary indexes: rows of a table by what a function makes of them, in order, in DRAM.
//!
//! In the serial part of an epoch an index changes at once, with every write, and is set back if
//! the call fails or the epoch is refused. While calls run in parallel no index changes: what they
//! change is kept apart, with their positions, until all have ended ([`parallel`], O-97), and a
//! call sees the changes of those before it (O-96). It is on no device: an open builds it from the
//! rows (O-100).

mod at_position;
mod entry;
mod of_call;
mod parallel;
mod pending;
mod snapshots;

use std::collections::btree_map::Range;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use pmem::sync::RwLock;
use storage::{EpochNumber, TableId};

use crate::call::answers::Abort;
use crate::call::panics::caught;
use crate::reads::{KeyRange, Visit};

pub(crate) use entry::{EntryKey, IndexEntry, Removed};
pub(crate) use of_call::CallIndexChanges;
use pending::PendingChanges;

/// Adds the keys that a row, of a key and a value, has in an index. Must be pure.
pub type IndexKeyFn = Arc<dyn Fn(&[u8], &[u8], &mut IndexKeys) -> Result<(), String> + Send + Sync>;

/// The keys of a row in an index: none, one or several.
#[derive(Debug, Default)]
pub struct IndexKeys {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl IndexKeys {
    /// Adds a key; one that is there already adds nothing. It must say where it ends, because the
    /// row's key follows it.
    pub fn add(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.bytes[begin..end])
    }
}

/// A secondary index that an engine is opened with.
#[derive(Clone)]
pub struct IndexDefinition {
    /// Its name, for people and for the log's record of the program.
    pub name: String,
    /// Position of its table among the tables that the engine is opened with.
    pub table: usize,
    /// Whether two rows may not have the same key in it.
    pub is_unique: bool,
    /// The types of its keys, in words.
    pub types: String,
    /// Its keys.
    pub key: IndexKeyFn,
}

impl fmt::Debug for IndexDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, table, is_unique, types, .. } = self;
        write!(f, "index {name:?} of table {table} ({types}, unique: {is_unique})")
    }
}

/// A secondary index.
pub(crate) struct SecondaryIndex {
    pub(crate) definition: IndexDefinition,
    /// Number of its table.
    pub(crate) table: TableId,
    pub(crate) entries: BTreeMap<Box<[u8]>, IndexEntry>,
    /// What snapshots may still see, by key ...
    pub(crate) removed: BTreeMap<Box<[u8]>, Vec<Removed>>,
    /// ... and in the order in which it came about.
    removed_order: VecDeque<(EpochNumber, Box<[u8]>)>,
    removed_bytes: u64,
}

/// A change of an index.
#[derive(Debug)]
pub(crate) struct IndexChange {
    index: u16,
    key: Box<[u8]>,
    entry: IndexEntry,
    is_added: bool,
}

/// All secondary indexes, by number.
#[derive(Default)]
pub(crate) struct SecondaryIndexes {
    pub(crate) indexes: Vec<RwLock<SecondaryIndex>>,
    /// The indexes of each table.
    of_table: Vec<Vec<u16>>,
    /// What calls of the parallel part have changed.
    pending: PendingChanges,
    /// Whether a call of the parallel part that would change an index is deferred instead: so it
    /// was under earlier versions of the rules, by which a log may have to be replayed.
    pub(crate) are_for_the_serial_part: bool,
}

/// What a write of a row changes in an index.
struct EntryDifference {
    removed: Vec<EntryKey>,
    added: Vec<EntryKey>,
}

/// What the running epoch has changed, and from where on the running call did.
#[derive(Debug, Default)]
pub(crate) struct IndexUndo {
    changes: Vec<IndexChange>,
    of_call: usize,
    /// The newest snapshot: entries of its epoch and before that are removed are kept for it. 0
    /// if there is none.
    newest_snapshot: EpochNumber,
}

/// The value of a row before and after a write; none where there is no row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowWrite<'r> {
    pub(crate) before: Option<&'r [u8]>,
    pub(crate) after: Option<&'r [u8]>,
}

impl SecondaryIndexes {
    pub(crate) fn new(
        definitions: &[IndexDefinition],
        table_ids: &[TableId],
        tables: usize,
        workers: usize,
    ) -> Result<Self, String> {
        let mut of_table = vec![Vec::new(); tables];
        let mut indexes = Vec::new();
        for (number, definition) in (0..).zip(definitions) {
            let table = *table_ids.get(definition.table).ok_or_else(|| {
                format!("index {:?} is of a table that is not registered", definition.name)
            })?;
            of_table[table.index()].push(number);
            indexes.push(RwLock::new(SecondaryIndex {
                definition: definition.clone(),
                table,
                entries: BTreeMap::new(),
                removed: BTreeMap::new(),
                removed_order: VecDeque::new(),
                removed_bytes: 0,
            }));
        }
        let pending = PendingChanges::new(workers, indexes.len());
        Ok(Self { indexes, of_table, pending, are_for_the_serial_part: false })
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Whether a table has any.
    pub(crate) fn are_of(&self, table: TableId) -> bool {
        self.of_table.get(table.index()).is_some_and(|indexes| !indexes.is_empty())
    }

    /// Whether a write of a row changes any index.
    ///
    /// # Errors
    /// Why a key could not be made.
    pub(crate) fn differ(
        &self,
        table: TableId,
        key: &[u8],
        write: RowWrite<'_>,
    ) -> Result<bool, String> {
        Ok(!self.changes_of(table, key, write)?.is_empty())
    }

    /// What a write of a row changes, by index; nothing of those that it does not change.
    ///
    /// # Errors
    /// Why a key could not be made.
    fn changes_of(
        &self,
        table: TableId,
        key: &[u8],
        write: RowWrite<'_>,
    ) -> Result<Vec<(u16, EntryDifference)>, String> {
        let mut changes = Vec::new();
        for &number in &self.of_table[table.index()] {
            let index = self.indexes[usize::from(number)].read().expect("no panic while locked");
            let old = index.entry_keys(key, write.before)?;
            let mut added = index.entry_keys(key, write.after)?;
            if old == added {
                continue;
            }
            let (kept, removed): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|key| added.contains(key));
            added.retain(|key| !kept.contains(key));
            changes.push((number, EntryDifference { removed, added }));
        }
        Ok(changes)
    }

    /// Changes the indexes of a table as a write of a row has it, in the serial part of an epoch.
    ///
    /// # Errors
    /// Why a key could not be made; nothing has changed then.
    pub(crate) fn change(
        &self,
        table: TableId,
        key: &[u8],
        write: RowWrite<'_>,
        epoch: EpochNumber,
        undo: &mut IndexUndo,
    ) -> Result<(), String> {
        for (number, EntryDifference { removed, added }) in self.changes_of(table, key, write)? {
            let mut index =
                self.indexes[usize::from(number)].write().expect("no panic while locked");
            for EntryKey { bytes: key, .. } in removed {
                let entry = index.entries.remove(&key).expect("a row is in its indexes");
                if keeps(entry, undo.newest_snapshot) {
                    index.keep(key.clone(), Removed { entry, until: epoch });
                }
                undo.changes.push(IndexChange { index: number, key, entry, is_added: false });
            }
            for EntryKey { bytes, prefix } in added {
                let entry = IndexEntry { prefix, since: epoch };
                let before = index.entries.insert(bytes.clone(), entry);
                assert!(before.is_none(), "a row is in an index once under each key");
                let change = IndexChange { index: number, key: bytes, entry, is_added: true };
                undo.changes.push(change);
            }
        }
        Ok(())
    }

    /// Whether the running call has left two rows under one key of a unique index (O-98).
    ///
    /// # Errors
    /// The abort that it ends with.
    pub(crate) fn check_unique(&self, undo: &IndexUndo) -> Result<(), Abort> {
        for change in undo.changes[undo.of_call..].iter().filter(|change| change.is_added) {
            let index = self.indexes[usize::from(change.index)].read();
            let index = index.expect("no panic while locked");
            if index.definition.is_unique
                && index.entries.contains_key(&change.key)
                && index.rows_like(&change.key, change.entry) > 1
            {
                return Err(index.not_unique(&change.key[..usize::from(change.entry.prefix)]));
            }
        }
        Ok(())
    }

    /// The running call has failed, or with `everything` the epoch was refused.
    pub(crate) fn roll_back(&self, undo: &mut IndexUndo, everything: bool) {
        let from = if everything { 0 } else { undo.of_call };
        assert!(from <= undo.changes.len(), "what earlier calls changed is there");
        while undo.changes.len() > from {
            let IndexChange { index, key, entry, is_added } =
                undo.changes.pop().expect("it is not empty");
            let mut index =
                self.indexes[usize::from(index)].write().expect("no panic while locked");
            if is_added {
                let removed = index.entries.remove(&key);
                assert!(removed == Some(entry), "what the call added is there until it is undone");
            } else {
                if keeps(entry, undo.newest_snapshot) {
                    index.forget_last(&key);
                }
                let before = index.entries.insert(key, entry);
                assert!(before.is_none(), "what the call removed is not there until it is undone");
            }
        }
        undo.of_call = undo.of_call.min(from);
    }

    /// Visits the rows that an index has behind the serial part, as far as that has run, with
    /// `low <= key < high`: the key there, and the row's.
    ///
    /// # Errors
    /// If there is no such index.
    pub(crate) fn scan(
        &self,
        index: u16,
        keys: KeyRange<'_>,
        each: Visit<'_>,
    ) -> Result<(), String> {
        let index = self.get(index)?.read().expect("no panic while locked");
        let KeyRange { low, high, is_descending } = keys;
        if low >= high {
            return Ok(());
        }
        let mut range =
            index.entries.range::<[u8], _>((Bound::Included(low), Bound::Excluded(high)));
        let mut next = || if is_descending { range.next_back() } else { range.next() };
        while let Some((key, entry)) = next() {
            if each(key, &key[usize::from(entry.prefix)..]).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, index: u16) -> Result<&RwLock<SecondaryIndex>, String> {
        let count = self.indexes.len();
        let found = self.indexes.get(usize::from(index));
        found.ok_or_else(|| format!("index {index} does not exist, there are {count}"))
    }

    /// The table of an index.
    ///
    /// # Errors
    /// If there is no such index.
    pub(crate) fn table(&self, index: u16) -> Result<TableId, String> {
        Ok(self.get(index)?.read().expect("no panic while locked").table)
    }
}

impl IndexUndo {
    /// An epoch begins, with a newest snapshot.
    pub(crate) fn begin(&mut self, newest_snapshot: EpochNumber) {
        assert!(self.of_call == self.changes.len(), "every call has committed or was undone");
        self.changes.clear();
        (self.of_call, self.newest_snapshot) = (0, newest_snapshot);
    }

    /// The newest snapshot; 0 if there is none.
    pub(crate) fn newest_snapshot(&self) -> EpochNumber {
        self.newest_snapshot
    }

    /// The running call has committed.
    pub(crate) fn commit(&mut self) {
        self.of_call = self.changes.len();
    }
}

/// Whether an entry that is removed is kept for the newest snapshot, of an epoch that is 0 if there
/// is none. Entries of an open are there since epoch 0.
fn keeps(entry: IndexEntry, newest_snapshot: EpochNumber) -> bool {
    newest_snapshot != EpochNumber(0) && entry.since <= newest_snapshot
}

/// Entries of an index in one direction.
pub(crate) type InOrder<'i, T> = Peekable<Box<dyn Iterator<Item = (&'i Box<[u8]>, &'i T)> + 'i>>;

/// A range in one of its directions.
pub(crate) fn in_order<T>(range: Range<'_, Box<[u8]>, T>, is_descending: bool) -> InOrder<'_, T> {
    let range: Box<dyn Iterator<Item = _>> =
        if is_descending { Box::new(range.rev()) } else { Box::new(range) };
    range.peekable()
}

impl SecondaryIndex {
    /// The keys of a row's entries, in order, each once; none if there is no row.
    pub(crate) fn entry_keys(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Vec<EntryKey>, String> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let mut keys = IndexKeys::default();
        let make = || (self.definition.key)(key, value, &mut keys);
        let name = &self.definition.name;
        match caught(make) {
            Ok(Ok(())) => {}
            Ok(Err(what)) => return Err(format!("index {name:?}: {what}")),
            Err(panic) => {
                return Err(format!("index {name:?}: making the key of a row panicked: {panic}"));
            }
        }
        let entry_key = |own: &[u8]| {
            let prefix = u16::try_from(own.len())
                .map_err(|_| format!("index {name:?}: a key of {} bytes", own.len()))?;
            Ok(EntryKey { bytes: [own, key].concat().into(), prefix })
        };
        let mut entries = keys.iter().map(entry_key).collect::<Result<Vec<_>, String>>()?;
        entries.sort_unstable();
        entries.dedup();
        Ok(entries)
    }

    /// How many rows have the key of an entry, at most two.
    fn rows_like(&self, key: &[u8], entry: IndexEntry) -> usize {
        let prefix = &key[..usize::from(entry.prefix)];
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let like =
            self.entries.range::<[u8], _>(from).take_while(|(key, _)| key.starts_with(prefix));
        like.take(2).count()
    }

    #[cold]
    fn not_unique(&self, key: &[u8]) -> Abort {
        let name = &self.definition.name;
        let message = format!("unique index {name:?} has another row with this key: {key:02x?}");
        Abort { message: message.into(), ..Abort::code(Abort::NOT_UNIQUE) }
    }
}
