//! Recovery by scan: all slots are read, and the newest committed version of each row goes into the
//! index. Workers take pages as they come, and read each of them front to back, which is counted as
//! one read: it costs less than one for each slot.
//!
//! A deleted row has a version that says so, which must stay on the device as long as an older
//! version of the row does: without it the older one would be the newest. So its slot is given back
//! only if no older version was met; else it waits for a later recovery.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pmem::{Counters, Device, Port};

use super::shared::{Shared, Steps};
use crate::error::{Error, Result};
use crate::image::heap::{Page, Slots};
use crate::image::layout::{Header, WORKERS_MAX};
use crate::memory::{WORD_BYTES, load_counted_words, load_words, store_words};
use crate::rival::RecoveryReport;

/// Bit of a place, during recovery: the newest version says that the row is deleted.
const DELETED: u64 = 1;
/// Bit of a place, during recovery: an older version was met, too.
const HAS_OLDER: u64 = 2;

/// What a scan came to.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) versions: u64,
    pub(crate) rows: u64,
    pub(crate) uncommitted: u64,
    pub(crate) counters: Counters,
}

impl Scanned {
    fn add(&mut self, other: &Self) {
        self.versions += other.versions;
        self.rows += other.rows;
        self.uncommitted += other.uncommitted;
        self.counters.add(&other.counters);
    }

    /// The report of a recovery that began, knew what had committed, and had built the indexes at
    /// these times, and has ended now.
    pub(crate) fn report(
        self,
        pages: &[Page],
        [start, found, built]: [Instant; 3],
    ) -> RecoveryReport {
        RecoveryReport {
            pages: pages.len() as u64,
            versions: self.versions,
            rows: self.rows,
            uncommitted: self.uncommitted,
            find_committed_ns: (found - start).as_nanos() as u64,
            build_ns: (built - found).as_nanos() as u64,
            finish_ns: built.elapsed().as_nanos() as u64,
            counters: self.counters,
        }
    }
}

/// Lets every worker run `scan` on the pages that it takes, with a port of its own.
fn on_pages<D: Device, P: Steps<D>, R: Send>(
    shared: &Shared<D, P>,
    pages: &[Page],
    scan: impl Fn(usize, &mut Port<D>, &mut dyn Iterator<Item = Page>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let mut port = Port::new(Arc::clone(&shared.device), worker as u32 + 1);
        let mut claimed =
            std::iter::from_fn(|| pages.get(next.fetch_add(1, Ordering::Relaxed)).copied());
        scan(worker, &mut port, &mut claimed)
    };
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> =
            (1..shared.options.workers).map(|w| scope.spawn(move || work(w))).collect();
        let mut all = vec![work(0)];
        let died = || Err(Error::Broken("a worker of the recovery panicked".into()));
        all.extend(others.into_iter().map(|other| other.join().unwrap_or_else(|_| died())));
        all.into_iter().collect()
    })
}

/// The newest timestamps on the device.
#[derive(Debug)]
pub(crate) struct Newest {
    /// By worker: of a version that ends a transaction.
    pub(crate) last: Vec<u64>,
    /// Of all.
    pub(crate) any: u64,
    /// What was read for that.
    pub(crate) counters: Counters,
}

/// Reads the headers of all slots for the newest timestamps.
pub(crate) fn newest<D: Device, P: Steps<D>>(
    shared: &Shared<D, P>,
    pages: &[Page],
) -> Result<Newest> {
    let parts = on_pages(shared, pages, |_, port, pages| {
        let mut newest =
            Newest { last: vec![0; WORKERS_MAX], any: 0, counters: Counters::default() };
        let mut words = Vec::new();
        for page in pages {
            shared.heap.count_read(port, page);
            for slot in shared.heap.slots(page) {
                words.clear();
                load_counted_words(port, slot, 1, &mut words);
                let header = Header(words[0]);
                newest.any = newest.any.max(header.timestamp());
                if header.is_last() {
                    let last = &mut newest.last[header.worker()];
                    *last = (*last).max(header.timestamp());
                }
            }
        }
        newest.counters = port.take_counters();
        Ok(newest)
    })?;
    let mut all = Newest { last: vec![0; WORKERS_MAX], any: 0, counters: Counters::default() };
    for part in parts {
        all.any = all.any.max(part.any);
        all.counters.add(&part.counters);
        all.last.iter_mut().zip(part.last).for_each(|(all, part)| *all = part.max(*all));
    }
    Ok(all)
}

/// Whether a version counts.
type IsCommitted<'a> = &'a (dyn Fn(Header) -> bool + Sync);

/// Builds the indexes from the versions that `is_committed` lets count. Slots of others are free;
/// if `wipe`, nothing is left in them, durably, when this returns.
pub(crate) fn recover_rows<D: Device, P: Steps<D>>(
    shared: &Shared<D, P>,
    pages: &[Page],
    is_committed: IsCommitted<'_>,
    wipe: bool,
) -> Result<Scanned> {
    let parts = on_pages(shared, pages, |worker, port, pages| {
        let slots = Slots::new(shared.tables.len());
        let scanned = Scanned::default();
        let (deleted, words, other) = Default::default();
        let mut worker = Worker { shared, worker, port, slots, scanned, deleted, words, other };
        for page in pages {
            shared.heap.count_read(worker.port, page);
            worker.port.end_step();
            for slot in shared.heap.slots(page) {
                worker.slot(page.table, slot, is_committed, wipe)?;
            }
        }
        if wipe {
            worker.port.fence();
        }
        worker.scanned.counters = worker.port.take_counters();
        Ok((worker.worker, worker.slots, worker.scanned, worker.deleted))
    })?;
    let mut all = Scanned::default();
    let mut port = Port::new(Arc::clone(&shared.device), 0);
    // One worker may have met a row first, and another one that it is deleted.
    parts.iter().for_each(|(_, _, scanned, _)| all.add(scanned));
    for (worker, mut slots, _, deleted) in parts {
        for (table, slot) in deleted {
            all.rows -= u64::from(drop_deleted(shared, &mut port, &mut slots, table, slot));
        }
        shared.leave_slots(worker, slots);
    }
    all.counters.add(port.counters());
    Ok(all)
}

/// Takes a row out of the index whose newest version says that it is deleted; false if that is not
/// its newest version after all.
fn drop_deleted<D: Device, P: Steps<D>>(
    shared: &Shared<D, P>,
    port: &mut Port<D>,
    slots: &mut Slots,
    table: usize,
    slot: u64,
) -> bool {
    let layout = &shared.heap.layouts[table];
    let mut payload = Vec::new();
    load_words(port, slot + WORD_BYTES, layout.payload_words, &mut payload);
    let (index, key) = (&shared.tables[table].index, layout.key(&payload));
    let alone = index.remove(0, key, slot | DELETED).is_some();
    if alone {
        slots.give_back(table, slot);
    }
    alone || index.remove(0, key, slot | DELETED | HAS_OLDER).is_some()
}

struct Worker<'a, D: Device, P: Steps<D>> {
    shared: &'a Shared<D, P>,
    worker: usize,
    port: &'a mut Port<D>,
    slots: Slots,
    scanned: Scanned,
    /// Versions that say that a row is deleted.
    deleted: Vec<(usize, u64)>,
    /// The slot that is looked at.
    words: Vec<u64>,
    /// The slot that it is compared with.
    other: Vec<u64>,
}

impl<D: Device, P: Steps<D>> Worker<'_, D, P> {
    fn slot(
        &mut self,
        table: usize,
        slot: u64,
        is_committed: IsCommitted<'_>,
        wipe: bool,
    ) -> Result<()> {
        let layout = &self.shared.heap.layouts[table];
        // Kept from slot to slot, so that its memory is.
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        load_counted_words(self.port, slot, 1, &mut words);
        let header = Header(words[0]);
        if header == Header::default() {
            self.slots.give_back(table, slot);
            self.words = words;
            return Ok(());
        }
        self.scanned.versions += 1;
        if is_committed(header) {
            let at = slot + WORD_BYTES;
            load_counted_words(self.port, at, layout.key_part_words(), &mut words);
            let payload = &words[1..];
            if !layout.is_possible(payload) {
                let what = format!("slot {slot} has impossible lengths {:#x}", payload[0]);
                return Err(Error::Corrupt(what));
            }
            self.merge(table, slot, header, layout.key(payload));
            self.words = words;
            return Ok(());
        }
        self.scanned.uncommitted += 1;
        if wipe {
            store_words(self.port, slot, &[0]);
            self.port.flush(slot, WORD_BYTES);
        }
        self.slots.give_back(table, slot);
        self.words = words;
        Ok(())
    }

    /// Enters a version into the index if it is the newest of its row so far.
    fn merge(&mut self, table: usize, slot: u64, header: Header, key: &[u8]) {
        let index = &self.shared.tables[table].index;
        let own = slot | if header.is_deleted() { DELETED } else { 0 };
        let loser = loop {
            let Ok(there) = index.get(self.worker, key) else {
                if index.insert(self.worker, key, own).is_ok() {
                    self.scanned.rows += 1;
                    break None;
                }
                continue;
            };
            let other = there & !(DELETED | HAS_OLDER);
            self.other.clear();
            load_words(self.port, other, 1, &mut self.other);
            let (new, loser) = if header.timestamp() > Header(self.other[0]).timestamp() {
                (own | if header.is_deleted() { HAS_OLDER } else { 0 }, other)
            } else {
                (there | if there & DELETED != 0 { HAS_OLDER } else { 0 }, slot)
            };
            if index.swap(self.worker, key, there, new) {
                break Some(loser);
            }
        };
        if let Some(loser) = loser {
            self.slots.give_back(table, loser);
        }
        if header.is_deleted() && loser != Some(slot) {
            self.deleted.push((table, slot));
        }
    }
}
