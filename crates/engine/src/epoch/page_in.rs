//! Where the image may be larger than memory, or is still being read: pages that an epoch declared
//! are read, many at once, before calls touch them and while they run: for the serial part before
//! its first call runs (E0, decision 73), for all others before E5. What was not declared is read
//! when it is touched, and that thread waits.
//!
//! Of kept indexes these are the buckets of declared keys, the chunks of declared ranges and of new
//! keys, arrays that new keys outgrow, and the root; and where rows leave them (E11), buckets and
//! chunks of these.
//!
//! Which pages are in memory changes no answer (S15).

use pmem::{AnyDevice, Device, LINE_BYTES, Needed};
use storage::TableId;

use crate::declaration::{Declarations, Member, NO_ENTRY};
use crate::index::{EntryId, ExactWords, OrderedIndex, SearchKey};
use crate::memory::Local;
use crate::reads::Reads;
use crate::state::core::{Core, RowKeys};
use crate::table::{Table, order_word};
use crate::version::DeadRow;
use crate::worker::{Epoch, Leave, Worker};

/// Pages that are asked for at once: the lists of several workers take turns.
const ASKED: usize = 32;

/// Row entries may have this part of the limit of memory before those are let go that can be
/// filled again.
const ENTRIES_PART: u64 = 32;

/// Asks for pages, some at a time.
struct Asking<'a> {
    core: &'a Core,
    device: &'a AnyDevice,
    missing: &'a mut Vec<u64>,
}

impl<'a> Asking<'a> {
    fn of(epoch: &Epoch<'a>, missing: &'a mut Vec<u64>) -> Self {
        Self { core: epoch.core, device: epoch.store.device(), missing }
    }

    fn range(&mut self, offset: u64, bytes: u64) {
        self.range_needed(offset, bytes, Needed::Seldom);
    }

    fn range_needed(&mut self, offset: u64, bytes: u64, needed: Needed) {
        self.device.want_pages(offset, bytes, needed, self.missing);
        if self.missing.len() >= ASKED {
            self.device.fetch_pages(self.missing);
        }
    }

    /// What is at an address, if that is of the image.
    fn place(&mut self, address: usize, bytes: u64, needed: Needed) {
        let offset = address.wrapping_sub(self.core.image_base) as u64;
        if offset < self.device.image_bytes() {
            self.range_needed(offset, bytes, needed);
        }
    }

    fn row(&mut self, table: TableId, id: EntryId) {
        let row_bytes = self.core.tables[table.index()].layout.row_bytes;
        self.range(self.core.entries.row_of(id), row_bytes);
    }

    /// The value of a row, if it is not in the row itself.
    fn value(&mut self, id: EntryId) {
        let value = self.core.entry(id).persistent_version();
        if value.is_value() && value.is_persistent() {
            self.place(value.address(), value.len() as u64, Needed::Seldom);
        }
    }

    fn bucket(&mut self, table: &Table, word: u64) {
        self.place(table.hash.address_of(word), LINE_BYTES, Needed::Often);
    }

    /// The chunks of an ordered table where keys from one up to another belong.
    fn chunks(&mut self, table: &Table, first: &[u8], last: &[u8], reads: &Reads) {
        let Some(ordered) = &table.ordered else { return };
        let key = |key| SearchKey { word: order_word(key), key };
        let (first, last, core) = (key(first), key(last), self.core);
        let chunk = |address| self.place(address, OrderedIndex::CHUNK_BYTES, Needed::Often);
        if table.exact {
            ordered.visit_places(first, last, &ExactWords, chunk);
        } else {
            ordered.visit_places(first, last, &RowKeys { core, reads }, chunk);
        }
    }

    fn end(self) {
        self.device.fetch_pages(self.missing);
    }
}

/// Asks for what this worker's calls declared, while the log is written: the steps behind this one
/// look at heads of rows, compare their keys, and change indexes.
pub(super) fn rows(epoch: &Epoch<'_>, worker: &mut Worker) -> Result<(), Leave> {
    if !epoch.asks_for_pages {
        return Ok(());
    }
    let is_leader = epoch.leads(worker);
    let local = &mut worker.local;
    let are_kept = epoch.core.kept.is_some();
    if are_kept {
        places_of_lookups(epoch, local);
        if is_leader && epoch.ends_in_image_snapshot {
            root(epoch, local);
        }
    }
    let new_rows = known_rows(epoch, local);
    if are_kept {
        places_of_growth(epoch, local, &new_rows);
    }
    // The indexes change next.
    Ok(epoch.barrier()?)
}

/// Asks for what calls of the serial part are going to touch by their declarations (E0).
pub(super) fn serial_part(epoch: &Epoch<'_>, local: &mut Local) {
    if epoch.core.kept.is_some() {
        places_of_lookups(epoch, local);
    }
    known_rows(epoch, local);
    let Local { lists, missing_pages, .. } = local;
    let mut asking = Asking::of(epoch, missing_pages);
    for key in &lists.declared {
        let table = &epoch.core.tables[key.table.index()];
        if table.layout.may_be_external()
            && let Some(id) = table.hash.find(key.word, |_| true)
        {
            asking.value(id);
        }
    }
    asking.end();
}

/// Asks for the parts of kept indexes where declared keys and ranges are looked up.
fn places_of_lookups(epoch: &Epoch<'_>, local: &mut Local) {
    let Local { lists, missing_pages, reads, .. } = local;
    let Declarations { declared, ranges, keys, .. } = lists;
    let mut asking = Asking::of(epoch, missing_pages);
    for key in &*declared {
        asking.bucket(&epoch.core.tables[key.table.index()], key.word);
    }
    for range in &*ranges {
        // A table that a call may not scan is an error of the append step.
        if let Ok(table) = epoch.core.table(range.table) {
            let (low, high) = (&keys[range.low.range()], &keys[range.high.range()]);
            asking.chunks(table, low, high, reads);
        }
    }
    asking.end();
}

/// Asks for the rows of declared keys, and where there is none to be inserted, for the chunk where
/// it comes to. Returns how many there are of these, by table.
fn known_rows(epoch: &Epoch<'_>, local: &mut Local) -> Vec<usize> {
    let Local { lists, missing_pages, reads, .. } = local;
    let Declarations { declared, keys, .. } = lists;
    let tables = &epoch.core.tables;
    let mut new_rows = vec![0; tables.len()];
    let mut asking = Asking::of(epoch, missing_pages);
    for key in &*declared {
        let table = &tables[key.table.index()];
        // The words of two keys are hardly ever the same.
        if let Some(id) = table.hash.find(key.word, |_| true) {
            asking.row(key.table, id);
        } else if key.kind.inserts() {
            let word = key.word.to_be_bytes();
            let bytes = if key.is_word { &word } else { &keys[key.key.range()] };
            asking.chunks(table, bytes, bytes, reads);
            new_rows[key.table.index()] += 1;
        }
    }
    asking.end();
    new_rows
}

/// Asks for the arrays that so many new rows of each table outgrow, and for the next chunks. Other
/// workers have about as many.
fn places_of_growth(epoch: &Epoch<'_>, local: &mut Local, new_rows: &[usize]) {
    let mut asking = Asking::of(epoch, &mut local.missing_pages);
    for (table, &count) in epoch.core.tables.iter().zip(new_rows).filter(|(_, count)| **count > 0) {
        let of_all = count * epoch.workers;
        table.hash.visit_outgrown(of_all, |array, bytes| {
            asking.place(array, bytes as u64, Needed::Seldom);
        });
        if let Some(ordered) = &table.ordered {
            ordered.visit_next(of_all, |chunk| {
                asking.place(chunk, OrderedIndex::CHUNK_BYTES, Needed::Seldom);
            });
        }
    }
    asking.end();
}

/// Asks for the root of kept indexes, which is written at the end.
fn root(epoch: &Epoch<'_>, local: &mut Local) {
    let place = epoch.core.kept.as_ref().and_then(|kept| kept.root_place(epoch.store.segments()));
    if let Some((offset, bytes)) = place {
        let mut asking = Asking::of(epoch, &mut local.missing_pages);
        asking.range(offset, bytes);
        asking.end();
    }
}

/// Asks for the parts of kept indexes that rows leave (E11). Ranges name no keys, and of keys that
/// were declared it was not known that they would leave the ordered index.
pub(super) fn dead_rows(epoch: &Epoch<'_>, local: &mut Local, rows: &[DeadRow]) {
    if !epoch.asks_for_pages || epoch.core.kept.is_none() {
        return;
    }
    let Local { missing_pages, reads, .. } = local;
    let mut asking = Asking::of(epoch, missing_pages);
    for row in rows {
        let (table, mut room) = (&epoch.core.tables[row.table.index()], [0; 8]);
        let key = epoch.core.key(table, row.word, row.id, &mut room, reads);
        let word = table.word(key).expect("it was checked when the row was inserted");
        asking.bucket(table, word.hash);
        asking.chunks(table, key, key, reads);
    }
    asking.end();
}

/// Asks for the rows of ranges.
pub(super) fn members(epoch: &Epoch<'_>, members: &[Member], missing: &mut Vec<u64>) {
    if epoch.asks_for_pages {
        let mut asking = Asking::of(epoch, missing);
        members.iter().for_each(|member| asking.row(member.table, member.id));
        asking.end();
    }
}

/// Asks for the values of declared rows that are not in the rows themselves (after E8, which finds
/// the rows).
pub(super) fn values(epoch: &Epoch<'_>, worker: &mut Worker) {
    if !epoch.asks_for_pages {
        return;
    }
    let mut asking = Asking::of(epoch, &mut worker.local.missing_pages);
    let found = worker.local.lists.declared.iter().filter(|key| key.id != NO_ENTRY);
    found.for_each(|declared| asking.value(declared.id));
    asking.end();
}

/// Lets row entries go that are too many in memory (between E6 and E7). Those of rows that were
/// made in E5 stay. No call has claimed another, no list of the collector names any, and no reader
/// from outside is inside.
pub(super) fn let_entries_go(epoch: &Epoch<'_>, worker: &Worker) -> Result<(), Leave> {
    let Some(pages) = epoch.store.device().page_use() else { return Ok(()) };
    let entries = &epoch.core.entries;
    let are_many = entries.bytes() > pages.limit_bytes / ENTRIES_PART;
    epoch.barrier()?;
    assert!(epoch.core.gate.is_closed(), "no reader is inside while entries go");
    assert!(worker.collect.is_empty() && worker.row_store.stale.is_empty(), "no list names rows");
    if are_many {
        entries.let_go(epoch.number, worker.local.worker.index(), epoch.workers);
    }
    Ok(())
}
