//! The end of a transaction: the five steps, or none of them.

use std::sync::atomic::Ordering;

use pmem::Device;
use workloads::TableId;

use super::records::Version;
use super::session::{Created, OccSession};
use super::shared::{Between, Old, Putting, Shared, Steps, place_of};
use super::versions::Link;
use crate::error::{Error, Result};
use crate::pause;
use crate::rival::{Fault, Stop};
use crate::transaction::{Kind, Read};

impl<D: Device, P: Steps<D>> OccSession<D, P> {
    /// Commits the running transaction; its place in the serial order.
    pub(super) fn commit_now(&mut self) -> Result<u64, Stop> {
        self.lock_writes()?;
        // After the locks and before the second reads, see the module's documentation.
        let serial = self.shared.next_serial();
        let ended = if self.is_valid() { self.put(serial) } else { Err(Stop::Conflict) };
        if let Err(stop) = ended {
            self.unlock(self.tx.writes.len());
            return Err(stop);
        }
        self.install(serial);
        Ok(serial)
    }

    /// Step 1.
    fn lock_writes(&mut self) -> Result<(), Stop> {
        self.tx.writes.sort_unstable_by_key(|write| (write.table, write.record));
        for i in 0..self.tx.writes.len() {
            let write = &mut self.tx.writes[i];
            let record = self.shared.tables[usize::from(write.table.0)].records.get(write.record);
            let mut turns = 0;
            loop {
                let version = record.version();
                if version.is_dead() || write.versions.must_exist && version.is_absent() {
                    self.unlock(i);
                    return Err(Stop::Conflict);
                }
                if !version.is_locked() && record.try_lock(version) {
                    write.versions.was = version;
                    write.versions.old = record.slot();
                    break;
                }
                pause(&mut turns);
            }
        }
        Ok(())
    }

    fn unlock(&self, count: usize) {
        for write in &self.tx.writes[..count] {
            let table = &self.shared.tables[usize::from(write.table.0)];
            table.records.get(write.record).set_version(write.versions.was);
        }
    }

    /// Whether the transaction writes a row, once its writes are sorted.
    fn writes_sorted(&self, table: TableId, record: u32) -> bool {
        let key = (table, record);
        self.tx.writes.binary_search_by_key(&key, |own| (own.table, own.record)).is_ok()
    }

    /// Step 3: whether everything that was read is still as it was.
    pub(super) fn is_valid(&self) -> bool {
        let Shared { tables, options, .. } = &*self.shared;
        let is_same = |read: &Read<Version>| {
            let version = tables[usize::from(read.table.0)].records.get(read.record).version();
            version == read.version
                || version.unlocked() == read.version && self.writes_sorted(read.table, read.record)
        };
        let rows = self.tx.reads.iter().all(is_same) || options.has(Fault::NoReadValidation);
        let nodes = self.tx.nodes.iter().all(|(table, seen)| {
            tables[usize::from(table.0)].index.version(seen.node) == seen.version
        });
        rows && (nodes || options.has(Fault::NoNodeValidation))
    }

    /// Step 4.
    fn put(&mut self, serial: u64) -> Result<(), Stop> {
        if self.tx.writes.is_empty() {
            return Ok(());
        }
        self.take_links()?;
        let Self { shared, worker, port, slots, own, tx, counts, .. } = self;
        if shared.failed.load(Ordering::Acquire) {
            return Err(Stop::Failed(Error::Broken("a commit before this one failed".into())));
        }
        let mut at = Putting {
            heap: &shared.heap,
            port,
            slots,
            payloads: &tx.payloads,
            worker: *worker,
            serial,
            options: &shared.options,
        };
        counts.tuples_written += tx.writes.iter().filter(|w| w.needs_version()).count() as u64;
        shared.persist.put(&mut at, own, &mut tx.writes).map_err(|error| {
            // Some of the versions may be there: nothing may come that makes them count.
            shared.failed.store(true, Ordering::Release);
            Stop::Failed(error)
        })
    }

    /// Gets what step 5 needs: nothing may fail then.
    fn take_links(&mut self) -> Result<(), Stop> {
        let Self { shared, tx, pool, .. } = self;
        for write in &mut tx.writes {
            let table = usize::from(write.table.0);
            let Some(links) = &shared.tables[table].links else { return Ok(()) };
            if write.versions.old.0 != 0 && write.needs_version() {
                write.versions.link = Some(pool.take_link(shared, table, links)?);
            }
        }
        Ok(())
    }

    /// Step 5. Then what the new versions took the place of is retired.
    fn install(&mut self, serial: u64) {
        let Self { shared, worker, own, tx, pool, .. } = self;
        for write in &tx.writes {
            let number = usize::from(write.table.0);
            let table = &shared.tables[number];
            let layout = &shared.heap.layouts[number];
            let record = table.records.get(write.record);
            let payload = tx.payload(write, layout);
            // Where there are snapshots, one may be of the row as it was, or as it was not.
            let keeps = write.versions.link.is_some()
                || write.kind == Kind::Delete && write.versions.old.0 != 0;
            if let (Some(links), Some(link)) = (&table.links, write.versions.link) {
                let (slot, header) = write.versions.old;
                record.set_older(links.set(link, Link { header, slot, older: record.older() }));
                pool.retire_link(shared, number, link);
            }
            if write.kind == Kind::Put {
                record.set_slot(write.versions.new.0, write.versions.new.1);
                if P::CACHES {
                    record.set_payload(payload);
                }
                record.set_version(Version::of(serial));
            } else if P::SNAPSHOTS && keeps {
                let version = match write.needs_version() {
                    true => Version::deleted(serial),
                    false => write.versions.was,
                };
                if write.needs_version() {
                    record.set_slot(write.versions.new.0, write.versions.new.1);
                    pool.retire_deleted(shared, number, write.record, version);
                }
                record.set_version(version);
            } else {
                table.index.remove(*worker, layout.key(payload), place_of(write.record));
                record.set_version(Version::GONE);
                pool.retire(shared, number, write.record);
            }
            if write.versions.old.0 != 0 && write.needs_version() {
                let (slot, header) = write.versions.old;
                let old = Old { table: write.table, slot, header, serial };
                shared.persist.retire(&shared.grace, own, old);
            }
        }
    }

    /// Takes back what the transaction put into indexes for rows that it did not insert after all.
    pub(super) fn take_back(&mut self) {
        let Self { shared, worker, tx, created, pool, .. } = self;
        for &Created { table, record, payload_at } in &*created {
            let number = usize::from(table.0);
            let table = &shared.tables[number];
            let of_record = table.records.get(record);
            // If it is not as it was made, another transaction is inserting the row.
            if of_record.try_lock(Version::NOT_YET) {
                let layout = &shared.heap.layouts[number];
                let key = layout.key(&tx.payloads[payload_at as usize..][..layout.payload_words]);
                table.index.remove(*worker, key, place_of(record));
                of_record.set_version(Version::GONE);
                pool.retire(shared, number, record);
            }
        }
    }

    /// The transaction is over, however it ended.
    pub(super) fn end(&mut self) -> Result<()> {
        let Self { shared, worker, port, slots, own, tx, created, snapshot, pool, .. } = self;
        tx.clear();
        created.clear();
        *snapshot = None;
        port.end_step();
        shared.grace.leave(*worker);
        pool.refill(shared, *worker);
        let mut at = Between {
            port,
            slots,
            grace: &shared.grace,
            clock: &shared.clock.0,
            worker: *worker,
            options: &shared.options,
        };
        shared.persist.ended(&mut at, own)
    }

    /// Makes everything durable that was committed here.
    pub(super) fn finish_now(&mut self) -> Result<()> {
        let Self { shared, worker, port, slots, own, .. } = self;
        let mut at = Between {
            port,
            slots,
            grace: &shared.grace,
            clock: &shared.clock.0,
            worker: *worker,
            options: &shared.options,
        };
        shared.persist.finish(&mut at, own)
    }
}
