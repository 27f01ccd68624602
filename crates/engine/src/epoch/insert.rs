//! The insert step (NV 4.1): rows for inserted keys, so that the append step sees all of them.
//!
//! Of several inserters of one key exactly one creates the row; the smallest serial id becomes its
//! birth (O-08). Who creates it leaves its pending version there at once, because most new rows
//! have no other writer; the other inserters append theirs in the append step. Ordered indexes take
//! their new keys in one merge at the end.

use std::convert::Infallible;

use pmem::Device;
use storage::SerialId;

use crate::core::Core;
use crate::epoch::staged::{self, Change};
use crate::index::EntryId;
use crate::local::{Declarations, Local};
use crate::reads::Reads;
use crate::stats::WorkCounts;
use crate::table::{KeyWord, Table, order_word};
use crate::version::{EntrySupply, Medium, ValueWord, initialise_row};
use crate::worker::{Epoch, Leave, StagedKeys, Worker};

/// Keys whose buckets are fetched ahead.
const AHEAD: usize = 16;

pub(super) fn run<D: Device>(epoch: &Epoch<'_, D>, worker: &mut Worker<D>) -> Result<(), Leave> {
    let mut staged =
        epoch.shared.added[worker.local.worker].write().expect("no panic while locked");
    insert_declared(epoch, worker, &mut staged);
    if epoch.leads(worker) {
        insert_sequences(epoch, worker);
    }
    staged::sort(epoch, worker, &mut staged);
    drop(staged);
    epoch.barrier()?;
    staged::apply(epoch, worker, Change::Add)
}

fn insert_declared<D: Device>(
    epoch: &Epoch<'_, D>,
    worker: &mut Worker<D>,
    staged: &mut StagedKeys,
) {
    let Local { lists, pool, supply, work, reads, .. } = &mut worker.local;
    if lists.inserts.is_empty() {
        return;
    }
    let mut maker = Maker { epoch, medium: &mut worker.medium, supply, work, reads };
    for txn in 0..lists.txns.len() {
        let position = lists.txns[txn].position;
        let inserts = lists.extra(&lists.txns[txn]).inserts;
        let sid = SerialId::new(epoch.number, u64::from(position));
        for at in inserts.range() {
            fetch_ahead(epoch.core, lists, at);
            let Declarations { inserts, declared, keys, .. } = lists;
            let declared = &mut declared[inserts[at] as usize];
            let table = &epoch.core.tables[declared.table as usize];
            let exact = declared.word.to_be_bytes();
            let key = if table.exact { &exact[..] } else { &keys[declared.key.range()] };
            let word = KeyWord { hash: declared.word, key };
            let (id, created) = maker.find_or_create(table, word, sid);
            if created {
                epoch.core.entries.get(id).claim_new(sid, pool);
                maker.work.appends += 1;
                if table.ordered.is_some() {
                    staged[declared.table as usize].push((order_word(key), id));
                }
            }
            (declared.id, declared.appended) = (id, created);
        }
    }
}

/// Asks for the index lines of the keys that come next: first for where their buckets are, and for
/// the locks of these, then for the buckets.
#[inline(always)]
fn fetch_ahead(core: &Core, lists: &Declarations, at: usize) {
    let inserted = |at: usize| lists.inserts.get(at).map(|&at| &lists.declared[at as usize]);
    if let Some(ahead) = inserted(at + 2 * AHEAD) {
        core.tables[ahead.table as usize].hash.prefetch_to_add(ahead.word);
    }
    if let Some(ahead) = inserted(at + AHEAD) {
        core.tables[ahead.table as usize].hash.prefetch(ahead.word);
    }
}

/// What is needed to make rows.
struct Maker<'m, 'e, D: Device> {
    epoch: &'m Epoch<'e, D>,
    medium: &'m mut Medium<D>,
    supply: &'m mut EntrySupply,
    work: &'m mut WorkCounts,
    reads: &'m mut Reads,
}

impl<D: Device> Maker<'_, '_, D> {
    /// The row entry of a key; creates entry and persistent row if there is none.
    #[inline(always)]
    fn find_or_create(
        &mut self,
        table: &Table,
        word: KeyWord<'_>,
        sid: SerialId,
    ) -> (EntryId, bool) {
        let (epoch, core) = (self.epoch, self.epoch.core);
        let make = || -> Result<EntryId, Infallible> {
            let id = core.entries.take(self.supply);
            let number = table.layout.table;
            let row = self.medium.allocate(number.into(), epoch.store.segments());
            if !table.exact {
                initialise_row(&mut self.medium.port, row, &table.layout, word.key);
            }
            core.entries.get(id).initialise(row, ValueWord::PENDING, sid);
            self.work.rows_inserted += 1;
            Ok(id)
        };
        let reads = &*self.reads;
        let same = |id| table.exact || core.key_of(id, reads) == word.key;
        let Ok((id, created)) = table.hash.find_or_insert(word.hash, same, make);
        self.reads.account_charged(&mut self.medium.port, core.image_base);
        if !created {
            let entry = core.entries.get(id);
            if entry.birth().epoch() == epoch.number {
                entry.born_by(sid);
            }
        }
        (id, created)
    }
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
            let table = &epoch.core.tables[changed.table as usize];
            let Local { supply, work, reads, .. } = &mut worker.local;
            let mut maker = Maker { epoch, medium: &mut worker.medium, supply, work, reads };
            state.id = Some(maker.find_or_create(table, word, sid).0);
        }
    }
}
