//! The insert step (NV 4.1): rows for inserted keys, so that the append step sees all of them.
//!
//! Of several inserters of one key exactly one creates the row; the smallest serial id becomes its
//! birth (O-08). Who creates it leaves its pending version there at once, because most new rows
//! have no other writer; the other inserters append theirs in the append step. Ordered indexes take
//! their new keys in one merge at the end.

use std::convert::Infallible;

use pmem::Device;
use storage::SerialId;
use storage::plant::Plant;

use crate::epoch::staged::{self, Change};
use crate::index::EntryId;
use crate::local::{DeclaredKind, Local};
use crate::table::{KeyWord, order_word};
use crate::version::{Medium, ValueWord, initialise_row};
use crate::worker::{Epoch, Leave, StagedKeys, Worker};

/// Declared keys whose buckets are fetched ahead.
const AHEAD: usize = 16;

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let mut staged =
        epoch.shared.added[worker.local.worker].write().expect("no panic while locked");
    let ahead_max = if epoch.core.config.techniques.prefetch { AHEAD } else { 0 };
    for index in 0..worker.local.lists.txns.len() {
        let txn = &worker.local.lists.txns[index];
        let sid = SerialId::new(epoch.number, u64::from(txn.position));
        for at in txn.declared.range() {
            if let Some(ahead) = worker.local.lists.declared.get(at + ahead_max)
                && ahead_max > 0
                && ahead.kind == DeclaredKind::Insert
            {
                epoch.core.tables[ahead.table as usize].hash.prefetch(ahead.word);
            }
            if worker.local.lists.declared[at].kind == DeclaredKind::Insert {
                insert_declared(epoch, worker, at, sid, &mut staged);
            }
        }
    }
    if epoch.leads(worker) {
        insert_sequences(epoch, worker);
    }
    staged::sort(epoch.core, &mut staged);
    drop(staged);
    epoch.barrier()?;
    staged::apply(epoch, worker, Change::Add)
}

fn insert_declared<D: Device>(
    epoch: &Epoch<'_, D>,
    worker: &mut Worker<D>,
    at: usize,
    sid: SerialId,
    staged: &mut StagedKeys,
) {
    let declared = worker.local.lists.declared[at];
    let exact = epoch.core.tables[declared.table as usize].exact;
    let bytes = declared.word.to_be_bytes();
    let keys = std::mem::take(&mut worker.local.lists.keys);
    let key = if exact { &bytes[..] } else { &keys[declared.key.range()] };
    let (local, medium) = (&mut worker.local, &mut worker.medium);
    let (id, created) = find_or_create(
        epoch,
        local,
        medium,
        declared.table,
        KeyWord { hash: declared.word, key },
        sid,
    );
    if created {
        epoch.core.entries.get(id).claim_new(sid, &worker.local.pool);
        worker.local.work.appends += 1;
        if epoch.core.tables[declared.table as usize].ordered.is_some() {
            staged[declared.table as usize].push((order_word(key), id));
        }
    }
    worker.local.lists.keys = keys;
    let declared = &mut worker.local.lists.declared[at];
    (declared.id, declared.appended) = (id, created);
}

/// The row entry of a key; creates entry and persistent row if there is none.
fn find_or_create<D: Device>(
    epoch: &Epoch<'_, D>,
    local: &mut Local,
    medium: &mut Medium<D>,
    table: u16,
    word: KeyWord<'_>,
    sid: SerialId,
) -> (EntryId, bool) {
    let core = epoch.core;
    let t = &core.tables[table as usize];
    let make = || -> Result<EntryId, Infallible> {
        let id = core.entries.take(&mut local.supply);
        let row = medium.allocate(table as usize, epoch.store.segments());
        if !t.exact {
            initialise_row(&mut medium.port, row, &t.layout, word.key);
        }
        core.entries.get(id).initialise(row, ValueWord::PENDING, sid);
        local.work.rows_inserted += 1;
        Ok(id)
    };
    let same = |id| t.exact || core.key_of(id) == word.key;
    let Ok((id, created)) = t.hash.find_or_insert(word.hash, same, make);
    let entry = core.entries.get(id);
    if !created && entry.birth().epoch() == epoch.number {
        entry.born_by(sid, epoch.planted(Plant::BirthNotSmallest));
    }
    (id, created)
}

/// Rows of sequences that were never drawn from before.
fn insert_sequences<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) {
    let mut sequences = epoch.core.sequences.write().expect("no panic while locked");
    for index in 0..worker.local.sequences.len() {
        let changed = worker.local.sequences[index];
        let state = sequences.get_mut(&(changed.table, changed.key)).expect("it was drawn from");
        if state.id.is_none() {
            let sid = SerialId::new(epoch.number, u64::from(changed.position));
            let word = KeyWord { hash: changed.key, key: &changed.key.to_be_bytes() };
            let (local, medium) = (&mut worker.local, &mut worker.medium);
            state.id = Some(find_or_create(epoch, local, medium, changed.table, word, sid).0);
        }
    }
}
