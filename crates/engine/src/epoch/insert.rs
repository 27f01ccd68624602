//! The insert step (NV 4.1): rows for inserted keys, so that the append step sees all of them.
//!
//! Of several inserters of one key exactly one creates the row; the smallest serial id becomes its
//! birth (O-08). Who creates it leaves its pending version there at once, because most new rows
//! have no other writer; the other inserters append theirs in the append step. Ordered indexes take
//! their new keys in one merge at the end.

use pmem::Device;
use storage::SerialId;

use crate::epoch::staged::{self, Change};
use crate::index::EntryId;
use crate::local::{Declarations, Local, Txn};
use crate::reads::Reads;
use crate::table::{KeyWord, Table, order_word};
use crate::version::{AppendedBy, EntrySupply, Medium, ValueWord, initialise_row};
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

#[inline(never)]
fn insert_declared<D: Device>(
    epoch: &Epoch<'_, D>,
    worker: &mut Worker<D>,
    staged: &mut StagedKeys,
) {
    let by = AppendedBy::new(worker.local.worker as u64, epoch.number);
    let Local { lists, supply, work, reads, .. } = &mut worker.local;
    let Declarations { txns, extras, inserts, declared, keys, .. } = lists;
    let mut maker = Maker { epoch, medium: &mut worker.medium, supply, reads };
    let tables = &epoch.core.tables[..];
    let mut created_count = 0;
    for txn in txns.iter().filter(|txn| txn.extra != Txn::NO_EXTRA) {
        let sid = SerialId::new(epoch.number, u64::from(txn.position));
        for at in extras[txn.extra as usize].inserts.range() {
            if let Some(&ahead) = inserts.get(at + AHEAD) {
                let ahead = &declared[ahead as usize];
                tables[ahead.table as usize].hash.prefetch_to_add(ahead.word);
            }
            let declared = &mut declared[inserts[at] as usize];
            let table = &tables[declared.table as usize];
            let key = KeyWord { hash: declared.word, key: &keys[declared.key.range()] };
            let (id, is_new) = maker.find_or_create(table, key, sid);
            if is_new {
                epoch.core.entries.get(id).claim_new(sid, by);
                created_count += 1;
                if table.ordered.is_some() {
                    let word = if table.exact { key.hash } else { order_word(key.key) };
                    staged[declared.table as usize].push((word, id));
                }
            }
            (declared.id, declared.appended) = (id, is_new);
        }
    }
    work.appends += created_count;
    work.rows_inserted += created_count;
}

/// What is needed to make rows.
struct Maker<'m, 'e, D: Device> {
    epoch: &'m Epoch<'e, D>,
    medium: &'m mut Medium<D>,
    supply: &'m mut EntrySupply,
    reads: &'m mut Reads,
}

impl<D: Device> Maker<'_, '_, D> {
    /// The row entry of a key, and whether it is new: creates entry and persistent row if there are
    /// none.
    #[inline(always)]
    fn find_or_create(
        &mut self,
        table: &Table,
        word: KeyWord<'_>,
        sid: SerialId,
    ) -> (EntryId, bool) {
        if table.exact {
            self.find_or_create_as::<true>(table, word, sid)
        } else {
            self.find_or_create_any(table, word, sid)
        }
    }

    /// The same where keys are exact, or not.
    #[inline(always)]
    fn find_or_create_as<const EXACT: bool>(
        &mut self,
        table: &Table,
        word: KeyWord<'_>,
        sid: SerialId,
    ) -> (EntryId, bool) {
        let (epoch, core) = (self.epoch, self.epoch.core);
        let same = |id| EXACT || core.key_of(id, self.reads) == word.key;
        match table.hash.find_or_begin(word.hash, same) {
            Ok(id) => {
                let entry = core.entries.get(id);
                if entry.birth().epoch() == epoch.number {
                    entry.born_by(sid);
                }
                (id, false)
            }
            Err(vacancy) => {
                let id = core.entries.take(self.supply);
                let number = table.layout.table;
                let row = self.medium.allocate(number.into(), epoch.store.segments());
                if !EXACT {
                    initialise_row(&mut self.medium.port, row, &table.layout, word.key);
                }
                core.entries.get(id).initialise(row, ValueWord::PENDING, sid);
                vacancy.fill(id);
                (id, true)
            }
        }
    }

    /// The same where keys are compared.
    #[inline(never)]
    fn find_or_create_any(
        &mut self,
        table: &Table,
        word: KeyWord<'_>,
        sid: SerialId,
    ) -> (EntryId, bool) {
        let found = self.find_or_create_as::<false>(table, word, sid);
        self.reads.account_charged(&mut self.medium.port, self.epoch.core.image_base);
        found
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
            let mut maker = Maker { epoch, medium: &mut worker.medium, supply, reads };
            let (id, is_new) = maker.find_or_create(table, word, sid);
            state.id = Some(id);
            work.rows_inserted += u64::from(is_new);
        }
    }
}
