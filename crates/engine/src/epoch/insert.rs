//! The insert step (NV 4.1): rows for inserted keys, so that the append step sees all of them.
//!
//! Of several inserters of one key exactly one creates the row; the smallest serial id becomes its
//! birth (O-08). Who creates it leaves its pending version there at once, because most new rows
//! have no other writer; the other inserters append theirs in the append step. Ordered indexes take
//! their new keys in one merge at the end.

use storage::SerialId;

use crate::declaration::{Declarations, NO_ENTRY, Txn};
use crate::epoch::index_changes::{self, Change};
use crate::index::EntryId;
use crate::memory::Local;
use crate::reads::Reads;
use crate::table::{KeyWord, Table, order_word};
use crate::version::{AppendedBy, RowPlace, RowStore, initialise_row};
use crate::worker::{Epoch, IndexChanges, Leave, Worker};

/// Keys whose buckets are prefetched.
const AHEAD: usize = 16;

pub(super) fn run(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    let mut changes =
        epoch.shared.added[worker.local.worker.index()].write().expect("no panic while locked");
    assert!(changes.iter().all(Vec::is_empty), "keys of the epoch before are in the indexes");
    assert!(epoch.core.gate.is_closed(), "no reader is inside while rows come (O-106)");
    insert_declared(epoch, worker, &mut changes);
    if epoch.leads(worker) {
        insert_sequences(epoch, worker);
    }
    index_changes::sort(epoch, worker, &mut changes);
    drop(changes);
    epoch.barrier()?;
    index_changes::apply(epoch, worker, Change::Add)
}

#[inline(never)]
fn insert_declared(epoch: &Epoch<'_>, worker: &mut Worker, changes: &mut IndexChanges) {
    let by = AppendedBy::new(worker.local.worker, epoch.number);
    let Local { lists, work, reads, .. } = &mut worker.local;
    let Declarations { txns, extras, inserts, declared, keys, .. } = lists;
    let mut maker = Maker { epoch, by, row_store: &mut worker.row_store, reads };
    let (tables, inserts, declared) = (&epoch.core.tables[..], &inserts[..], &mut declared[..]);
    let mut created_count = 0;
    for txn in txns.iter().filter(|txn| txn.extra != Txn::NO_EXTRA) {
        let sid = epoch.sid_at(txn.position);
        let of_call = extras[txn.extra as usize].inserts.range();
        for (at, &insert) in (of_call.start + AHEAD..).zip(&inserts[of_call]) {
            if let Some(&ahead) = inserts.get(at) {
                let ahead = &declared[ahead as usize];
                tables[ahead.table.index()].hash.prefetch_to_add(ahead.word);
            }
            let declared = &mut declared[insert as usize];
            debug_assert!(declared.kind.inserts(), "it is in the list of inserts");
            debug_assert!(declared.id == NO_ENTRY, "no key is looked up before the insert step");
            let table = &tables[declared.table.index()];
            let (found, word) = if table.finds_exactly() {
                (maker.find_or_create(table, declared.word, sid), declared.word)
            } else {
                let word = declared.word.to_be_bytes();
                let key = if declared.is_word { &word } else { &keys[declared.key.range()] };
                let word = KeyWord { hash: declared.word, key };
                (maker.find_or_create_any(table, word, sid), order_word(key))
            };
            declared.id = match found {
                Ok(created) => {
                    created_count += 1;
                    declared.appended = true;
                    if table.ordered.is_some() {
                        changes[declared.table.index()].push((word, created));
                    }
                    created
                }
                Err(id) => id,
            };
        }
    }
    assert!(created_count <= inserts.len() as u64, "a row is created for a declared insert");
    work.appends += created_count;
    work.rows_inserted += created_count;
}

/// What is needed to make rows.
struct Maker<'m, 'e> {
    epoch: &'m Epoch<'e>,
    by: AppendedBy,
    row_store: &'m mut RowStore,
    reads: &'m mut Reads,
}

impl Maker<'_, '_> {
    /// Creates entry and persistent row of a key that the index has as a word, unless there are
    /// some.
    #[inline(always)]
    fn find_or_create(
        &mut self,
        table: &Table,
        word: u64,
        sid: SerialId,
    ) -> Result<EntryId, EntryId> {
        match table.hash.find_exact_or_begin(word) {
            Ok(id) => Err(self.share(id, sid)),
            Err(vacant) => Ok(self.create(table, &[], sid, |id| vacant.fill(id))),
        }
    }

    /// The same for other keys, with which searches compare those of rows: the row has it at once.
    #[inline(never)]
    fn find_or_create_any(
        &mut self,
        table: &Table,
        word: KeyWord<'_>,
        sid: SerialId,
    ) -> Result<EntryId, EntryId> {
        let core = self.epoch.core;
        let same = |id| core.key_of(id, self.reads) == word.key;
        let found = match table.hash.find_or_begin(word.hash, same) {
            Ok(id) => Err(self.share(id, sid)),
            Err(vacant) => Ok(self.create(table, word.key, sid, |id| vacant.fill(id))),
        };
        self.reads.account_charged(&mut self.row_store.port, core.image_base);
        found
    }

    #[inline(always)]
    fn create(
        &mut self,
        table: &Table,
        key: &[u8],
        sid: SerialId,
        fill: impl FnOnce(EntryId),
    ) -> EntryId {
        let (epoch, entries) = (self.epoch, &self.epoch.core.entries);
        let row = self.row_store.allocate(table.layout.table.index(), epoch.store.segments());
        let id = entries.id_of_new(row, table.layout.row_bytes);
        if !key.is_empty() {
            initialise_row(&mut self.row_store.port, row, &table.layout, key);
        }
        entries.get(id).create(RowPlace::new(row, &table.layout), sid, self.by);
        fill(id);
        id
    }

    /// The key has a row, perhaps from another inserter.
    #[inline(never)]
    fn share(&self, id: EntryId, sid: SerialId) -> EntryId {
        let entry = self.epoch.core.entries.get(id);
        if entry.birth().epoch() == self.epoch.number {
            entry.born_by(sid);
            debug_assert!(entry.birth() <= sid, "the smallest inserter is a row's birth (O-08)");
        }
        id
    }
}

/// Rows of sequences that were never allocated from before.
fn insert_sequences(epoch: &Epoch<'_>, worker: &mut Worker) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    for index in 0..worker.local.sequences.len() {
        let changed = worker.local.sequences[index];
        let state =
            sequences.get_mut(&(changed.table, changed.key)).expect("it was allocated from");
        assert!(state.next == changed.next, "a sequence has the number that E1 left (O-46)");
        if state.id.is_none() {
            let sid = epoch.sid_at(changed.position);
            let table = &epoch.core.tables[changed.table.index()];
            let Local { work, reads, .. } = &mut worker.local;
            let by = AppendedBy::NOBODY;
            let mut maker = Maker { epoch, by, row_store: &mut worker.row_store, reads };
            assert!(table.exact, "the key of a sequence is a word");
            let key = changed.key.to_be_bytes();
            let word = KeyWord { hash: changed.key, key: &key };
            let found = match table.finds_exactly() {
                true => maker.find_or_create(table, changed.key, sid),
                false => maker.find_or_create_any(table, word, sid),
            };
            let is_new = found.is_ok();
            state.id = Some(found.unwrap_or_else(|id| id));
            work.rows_inserted += u64::from(is_new);
        }
    }
}
