//! Which rows the calls of an epoch contended for, if that is wanted ([`crate::EngineConfig`]).
//!
//! A row with several writers has a version array, and its maker keeps the row's entry in a
//! list: that is all that happens before execution. After it the writers are counted, which are
//! the versions of the array; and the rows get their names, because they have their keys by then.

use storage::TableId;

use crate::contention::rows::{Contention, CountedRow, RowName};
use crate::contention::waits::{self, Waited};
use crate::declaration::NO_ENTRY;
use crate::index::EntryId;
use crate::worker::{Epoch, Worker};

pub(super) fn begin(epoch: &Epoch<'_>, worker: &mut Worker) {
    let Contention { arrays, found } = &mut worker.local.contention;
    arrays.clear();
    found.clear();
    if epoch.core.config.contention {
        waits::begin(epoch.core.config.clock);
    }
}

/// Counts the writers of rows and names them. After execution, before slots of rows are freed.
pub(super) fn find(epoch: &Epoch<'_>, worker: &mut Worker) {
    if !epoch.core.config.contention {
        return;
    }
    let core = epoch.core;
    let mut ids: Vec<(EntryId, Waited)> = Vec::new();
    ids.extend(worker.local.contention.arrays.drain(..).map(|id| (id, Waited::default())));
    let waits = waits::take();
    ids.extend(waits.into_iter().map(|(address, waited)| (core.entries.id_at(address), waited)));
    for (id, waited) in ids {
        let versions = core.entries.get(id).version_count(epoch.number) as u32;
        let writers = if versions > 1 { versions } else { 0 };
        let name = name(epoch, worker, id);
        worker.local.contention.found.push(CountedRow { id, name, writers, waited });
    }
    if epoch.leads(worker) && epoch.calls.serial() > 0 {
        find_serial(epoch, worker);
    }
    let port = &mut worker.row_store.port;
    worker.local.reads.account_charged(port, core.image_base);
}

/// Table and key of a row, as the device has them. The key of a row that never got a version may be
/// in the index only.
fn name(epoch: &Epoch<'_>, worker: &Worker, id: EntryId) -> Option<RowName> {
    let (core, entry) = (epoch.core, epoch.core.entries.get(id));
    let segments = epoch.store.segments();
    let segment = segments.segment_of(entry.row()).expect("a row is in a segment");
    let of = segments.use_of(epoch.store.device().as_ref(), segment).expect("which is in use");
    let was_born = entry.birth().epoch() == epoch.number;
    if was_born && core.tables[usize::from(of.pool)].exact && !entry.persistent_version().is_value()
    {
        return None;
    }
    Some((TableId(of.pool), core.key_of(id, &worker.local.reads).into()))
}

/// Counts the writers of the serial part: of all that wrote a row only the last one that committed
/// has a version.
fn find_serial(epoch: &Epoch<'_>, worker: &mut Worker) {
    let core = epoch.core;
    let overlay = epoch.shared.overlay.read().expect("no panic while locked");
    for (row, calls, has_version) in overlay.counted() {
        let mut room = [0; 8];
        let key = overlay.key(row, &mut room);
        let table = &core.tables[row.table.index()];
        let word = table.word(key).expect("it was checked when the row was written");
        let id = core.find(table, word, &worker.local.reads);
        let versions = id.map_or(0, |id| core.entries.get(id).version_count(epoch.number) as u32);
        let writers = calls + versions - u32::from(has_version);
        if writers > 1 {
            let name = Some((row.table, key.into()));
            let id = id.unwrap_or(NO_ENTRY);
            let waited = Waited::default();
            worker.local.contention.found.push(CountedRow { id, name, writers, waited });
        }
    }
}
