//! The end of a transaction: validation, logging and commit (section 3.1.3, phases 2 to 4; Figure
//! 8).
//!
//! 1. One region checks that every version is as it was noted, gives what is written the next
//!    version, and puts its new content into its place.
//! 2. The log record is written, and is durable behind a fence.
//! 3. Versions become even, outside of a region and without a lock: nothing else may change the
//!    version of a record that is odd, for a transaction that writes it must have read it when it
//!    was even.
//!
//! With `UnderLocks` all of that happens with locks in place of the region, and with `ByGroups` the
//! record goes into a buffer; both know nothing of odd versions.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Device;
use workloads::TableId;

use super::design::{Design, Durable};
use super::log::{Entry, push_entry};
use super::region::{Access, Body, Cause};
use super::session::DbxSession;
use super::shared::Shared;
use super::tables::{Remove, Table};
use super::write::Write;
use crate::error::Result;
use crate::index::Seen as SeenNode;
use crate::rival::{Fault, Options, Phase, Stop};
use crate::transaction::{Buffers, Kind, Read, place_at, place_behind};

/// Transactions between two looks at what can be reused.
const CALLS_BETWEEN_LOOKS: u64 = 16;

/// Step 1.
struct Validate<'t, 'x> {
    tables: &'t [Table],
    reads: &'x [Read<u64>],
    nodes: &'x [(TableId, SeenNode)],
    writes: &'x [Write],
    logs_inside: bool,
    options: &'x Options,
}

impl<'t> Validate<'t, '_> {
    fn version(&self, table: TableId, record: u32) -> &'t AtomicU64 {
        self.tables[usize::from(table.0)].record(record).version
    }

    /// A fault: an odd version passes, if the row is written.
    fn passes_odd(&self, read: &Read<u64>, now: u64) -> bool {
        self.options.has(Fault::RaisesOdd)
            && now + 1 == read.version
            && self.writes.iter().any(|w| (w.table, w.record) == (read.table, read.record))
    }
}

impl<'t> Body<'t> for Validate<'t, '_> {
    type Output = ();

    fn run<A: Access<'t>>(&mut self, access: &mut A) -> Result<(), Cause> {
        if self.logs_inside {
            access.leave_cache()?;
        }
        for read in self.reads {
            let now = access.load(self.version(read.table, read.record))?;
            let is_same = now == read.version || self.passes_odd(read, now);
            if !is_same && !self.options.has(Fault::NoReadValidation) {
                return Err(access.give_up());
            }
        }
        for (table, seen) in self.nodes {
            let version = self.tables[usize::from(table.0)].index.version_word(seen.node);
            let is_same = access.watch(version)? == seen.version;
            if !is_same && !self.options.has(Fault::NoNodeValidation) {
                return Err(access.give_up());
            }
        }
        for write in self.writes {
            let record = self.tables[usize::from(write.table.0)].record(write.record);
            let now = match self.options.has(Fault::RaisesOdd) {
                true => access.load(record.version)?,
                false => write.versions.noted,
            };
            access.store(record.version, now + 1)?;
            access.store(record.content, write.versions.new)?;
        }
        Ok(())
    }
}

/// The version of a row when its transaction is through.
fn last_version<N: Design>(write: &Write) -> u64 {
    write.versions.noted + if N::DURABLE == Durable::ByParity { 2 } else { 1 }
}

impl<D: Device, N: Design> DbxSession<D, N> {
    /// Commits the running transaction; its place in the serial order.
    pub(super) fn commit_now(&mut self) -> Result<u64, Stop> {
        self.shared.check()?;
        // A row that came and went leaves what was there: nothing.
        self.tx.writes.retain(|write| write.kind == Kind::Put || write.versions.old != 0);
        let epoch = self.shared.group.as_ref().map(|group| group.announce(self.worker));
        let ended = self.prepare().map_err(Stop::from).and_then(|longest| {
            let place = self.go_through()?;
            Ok((place, longest))
        });
        if let (Some(group), Some(epoch)) = (&self.shared.group, epoch) {
            let (entries, longest): (&[u64], usize) = match &ended {
                Ok((_, longest)) => (&self.entries, *longest),
                Err(_) => (&[], 0),
            };
            group.put(self.worker, epoch, entries, longest);
            if let Ok((place, _)) = ended {
                self.waiting.retain(|(_, epoch)| *epoch > group.durable());
                self.waiting.push_back((place, epoch));
            }
        }
        match ended {
            Ok((place, _)) => {
                self.retire();
                Ok(place)
            }
            Err(stop) => {
                self.give_back_contents();
                Err(stop)
            }
        }
    }

    /// No other thread got to know the new contents.
    pub(super) fn give_back_contents(&mut self) {
        for write in &mut self.tx.writes {
            self.pools[usize::from(write.table.0)].give_back_content(write.versions.new);
            write.versions.new = 0;
        }
    }

    /// Makes contents and log entries, and reserves space for these: nothing may fail later that
    /// can be known now. The words of the longest entry.
    pub(super) fn prepare(&mut self) -> Result<usize> {
        let Self { shared, tx, pools, entries, writer, .. } = self;
        entries.clear();
        let mut longest = 0;
        for write in &mut tx.writes {
            let table = usize::from(write.table.0);
            let layout = &shared.tables[table].layout;
            let payload = &tx.payloads[write.payload_at as usize..][..layout.payload_words];
            let is_deleted = write.kind == Kind::Delete;
            if !is_deleted {
                let of = &shared.tables[table];
                write.versions.new = pools[table].take_content(of, &shared.grace, payload)?;
            }
            if shared.log.is_some() {
                let start = entries.len();
                let version = last_version::<N>(write);
                push_entry(entries, Entry { table, version, is_deleted, payload }, layout);
                longest = longest.max(entries.len() - start);
            }
        }
        if let (Some(log), false, None) = (&shared.log, entries.is_empty(), &shared.group) {
            writer.reserve(log, entries.len(), longest)?;
        }
        Ok(longest)
    }

    /// The steps; the transaction's place in the serial order.
    fn go_through(&mut self) -> Result<u64, Stop> {
        let Self { shared, port, tx, entries, writer, counts, .. } = self;
        let Shared { tables, log, regions, options, .. } = &**shared;
        options.reach(Phase::Reserved);
        let Buffers { reads, writes, nodes, .. } = &*tx;
        let logs_inside = N::DURABLE == Durable::UnderLocks && !writes.is_empty();
        let mut validate = Validate { tables, reads, nodes, writes, logs_inside, options };
        let ended = if logs_inside {
            let mut logs = |_| -> Result<()> {
                if let Some(log) = log {
                    writer.append(log, port, entries)?;
                    log.fence(port)?;
                }
                Ok(())
            };
            regions.run_locked(&mut counts.regions, &mut validate, &mut logs)
        } else {
            Ok(regions.run(&mut counts.regions, &mut validate))
        };
        let ended = ended.map_err(|error| shared.fail(error))?.ok_or(Stop::Conflict)?;
        counts.tuples_written += writes.len() as u64;
        counts.log_records += u64::from(N::DURABLE != Durable::Never && !entries.is_empty());
        if N::DURABLE == Durable::ByParity && !writes.is_empty() {
            self.log_and_publish().map_err(|error| self.shared.fail(error))?;
        }
        Ok(match self.tx.writes.is_empty() {
            true => place_behind(ended.place),
            false => place_at(ended.place),
        })
    }

    /// Steps 2 and 3 of a design with parity versions.
    fn log_and_publish(&mut self) -> Result<()> {
        let Self { shared, port, tx, entries, writer, .. } = self;
        let Shared { tables, log, regions, options, .. } = &**shared;
        let version_words = |write: &Write| {
            let version = tables[usize::from(write.table.0)].record(write.record).version;
            // A fault may have raised it meanwhile: it becomes even all the same.
            let even = match options.has(Fault::RaisesOdd) {
                true => (version.load(Ordering::SeqCst) | 1) + 1,
                false => last_version::<N>(write),
            };
            (version, even)
        };
        options.reach(Phase::Installed);
        let Some(log) = log else { return Ok(()) };
        writer.append(log, port, entries)?;
        if options.has(Fault::EvenBeforeFence) {
            regions.store_all(tx.writes.iter().map(version_words));
            options.reach(Phase::Published);
            return log.fence(port);
        }
        log.fence(port)?;
        regions.store_all(tx.writes.iter().map(version_words));
        options.reach(Phase::Published);
        Ok(())
    }

    /// What the new contents took the place of is out of sight.
    fn retire(&mut self) {
        let Self { shared, tx, pools, .. } = self;
        for write in &tx.writes {
            let number = usize::from(write.table.0);
            let (layout, pool) = (&shared.tables[number].layout, &mut pools[number]);
            pool.retire_content(&shared.grace, write.versions.old);
            if write.kind == Kind::Delete {
                let payload = tx.payload(write, layout);
                let version = last_version::<N>(write);
                pool.note_absent(&shared.grace, write.record, version, layout.key(payload));
            }
        }
    }

    /// The transaction is over, however it ended.
    pub(super) fn end(&mut self) -> Result<()> {
        self.tx.clear();
        self.port.end_step();
        if N::SNAPSHOTS {
            self.end_snapshot();
        }
        self.shared.grace.leave(self.worker);
        self.calls += 1;
        if self.calls.is_multiple_of(CALLS_BETWEEN_LOOKS) {
            self.shared.grace.tick();
            match N::SNAPSHOTS {
                true => self.remove_absent_rows(),
                false => self.remove_absent(),
            }
        }
        let Shared { group, options, .. } = &*self.shared;
        if let (Some(group), 0, Some((_, epoch))) = (group, options.group_us, self.waiting.back())
            && self.calls.is_multiple_of(options.group_calls)
        {
            group.ask(*epoch);
        }
        self.shared.checkpoint_if_due(&mut self.port, &mut self.counts)
    }

    /// Takes records out of indexes whose rows have not existed for long.
    fn remove_absent(&mut self) {
        let Self { shared, worker, pools, counts, .. } = self;
        let unknown = shared.grace.unknown_before();
        for (table, pool) in shared.tables.iter().zip(pools) {
            while let Some((number, version, key)) = pool.next_absent(unknown) {
                // Before the key may come back.
                table.raise_floor(version);
                let mut remove = Remove { record: table.record(number), version };
                if shared.regions.run(&mut counts.regions, &mut remove).is_some() {
                    table.index.remove(*worker, &key, u64::from(number));
                    pool.retire_record(&shared.grace, number);
                }
            }
        }
    }
}
