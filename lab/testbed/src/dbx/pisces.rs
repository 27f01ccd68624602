//! Pisces (Gu et al.: "Pisces: A Scalable and Efficient Persistent Transactional Memory", USENIX
//! ATC 2019), of which we know what Wei et al. and its abstract say: snapshot isolation, at most
//! two versions of a row, a commit in three stages.
//!
//! A transaction reads a snapshot and locks nothing. It takes the second version of each row that
//! it writes when it does so; where another one has that, or has committed it behind the snapshot,
//! it is in conflict: the first committer wins. Its commit:
//!
//! 1. The log record with the new contents is written, and is durable behind a fence. Others read
//!    the first versions meanwhile.
//! 2. It gets its time: from there on its second versions are seen. Nothing that is seen is not
//!    durable, and nothing of this needs the device.
//! 3. When no transaction reads the first version any more, the second takes its place.
//!
//! Nothing checks at the end what was read: two transactions that read what the other one writes
//! may both commit (*write skew*).

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use pmem::Device;
use workloads::TableId;

use super::design::Design;
use super::session::DbxSession;
use super::snapshots::{Row, Which, committed, committed_at, is_same, moving};
use super::tables::{REMOVED, Seen};
use super::write::Write;
use crate::error::Result;
use crate::pause;
use crate::rival::{Fault, Phase, Stop};
use crate::transaction::{Kind, place_at, place_behind};

impl<D: Device, N: Design> DbxSession<D, N> {
    pub(super) fn begin_snapshot(&mut self) {
        let snapshot = self.shared.snapshots.begin(self.worker);
        self.own.begin(self.worker, snapshot);
    }

    /// Reads a row as the snapshot has it.
    pub(super) fn see_snapshot(
        &mut self,
        table: TableId,
        record: u32,
        mut into: Option<&mut Vec<u64>>,
    ) -> Result<Seen, Stop> {
        let Self { shared, own, counts, port, .. } = self;
        let number = usize::from(table.0);
        let of_table = &shared.tables[number];
        let of_record = of_table.record(record);
        let start = into.as_ref().map_or(0, |into| into.len());
        let newest = shared.options.has(Fault::NewestInSnapshot);
        let snapshot = if newest { u64::MAX >> 1 } else { own.snapshot };
        let mut turns = 0;
        loop {
            let second = of_record.second.load(Ordering::Acquire);
            let which = shared.snapshots.which(second, snapshot);
            let (version, content) = match which {
                Which::Unknown => {
                    pause(&mut turns);
                    continue;
                }
                Which::First => {
                    let version = of_record.version.load(Ordering::Acquire);
                    (version, of_record.content.load(Ordering::Acquire))
                }
                Which::Second(time) => (time, of_record.second_content.load(Ordering::Acquire)),
            };
            if let (Some(into), true) = (&mut into, content != 0) {
                into.extend(of_table.content(content).iter().map(|w| w.load(Ordering::Relaxed)));
            }
            fence(Ordering::Acquire);
            if is_same(second, of_record.second.load(Ordering::Relaxed)) {
                if version == REMOVED {
                    return Err(Stop::Conflict);
                }
                let is_old = which == Which::First && committed_at(second).is_some();
                counts.old_versions_read += u64::from(is_old);
                if N::DATA_ON_DEVICE {
                    shared.charge_record(port, number, record, into.is_some().then_some(content));
                }
                return Ok(Seen { version, content });
            }
            if let Some(into) = &mut into {
                into.truncate(start);
            }
        }
    }

    /// Takes the second version of a row, which the transaction will write.
    pub(super) fn take_second(&mut self, table: TableId, record: u32) -> Result<(), Stop> {
        let Self { shared, worker, own, .. } = self;
        let shared = Arc::clone(shared);
        let of_record = shared.tables[usize::from(table.0)].record(record);
        let (row, number) = (Row { table, record }, own.number);
        let second = of_record.second.load(Ordering::SeqCst);
        let swap = |from: u64, to: u64| {
            of_record.second.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        match committed_at(second) {
            _ if second == number => return Ok(()),
            None if second == 0 && swap(0, number) => {}
            Some(time) => {
                let is_first = time <= own.snapshot
                    && shared.snapshots.others_read_from(time, *worker)
                    || shared.options.has(Fault::OverwritesNewer);
                if !is_first || second == moving(second) || !swap(second, moving(second)) {
                    return Err(Stop::Conflict);
                }
                self.move_second(row, time);
                of_record.second.store(number, Ordering::Release);
            }
            None => return Err(Stop::Conflict),
        }
        self.own.rows.push(row);
        match of_record.version.load(Ordering::Acquire) {
            REMOVED => Err(Stop::Conflict),
            _ => Ok(()),
        }
    }

    /// The second version of a row takes the place of the first, which no transaction reads any
    /// more.
    fn move_second(&mut self, row: Row, time: u64) {
        let Self { shared, pools, port, .. } = self;
        let number = usize::from(row.table.0);
        let (table, pool) = (&shared.tables[number], &mut pools[number]);
        let record = table.record(row.record);
        let content = record.second_content.load(Ordering::Acquire);
        let old = record.content.swap(content, Ordering::AcqRel);
        record.version.store(time, Ordering::Release);
        if N::DATA_ON_DEVICE {
            shared.charge_move(port, number, row.record, content);
        }
        if content == 0 && old != 0 {
            let words = table.content(old).iter().map(|word| word.load(Ordering::Relaxed));
            let payload: Vec<u64> = words.collect();
            pool.note_absent(&shared.grace, row.record, time, table.layout.key(&payload));
        }
        pool.retire_content(&shared.grace, old);
    }

    /// The three stages, of which the third comes later; the transaction's place in the order of
    /// commits.
    pub(super) fn commit_snapshot(&mut self) -> Result<u64, Stop> {
        self.shared.check()?;
        self.tx.writes.retain(|write| write.kind == Kind::Put || write.versions.old != 0);
        if self.tx.writes.is_empty() {
            return Ok(place_behind(self.own.snapshot));
        }
        // The version in the log: above all times of the row so far, below all that follow.
        let version = self.shared.snapshots.tick();
        self.tx.writes.iter_mut().for_each(|write| write.versions.noted = version - 1);
        if let Err(error) = self.prepare() {
            self.give_back_contents();
            return Err(error.into());
        }
        self.shared.options.reach(Phase::Reserved);
        let time = self.log_and_show().map_err(|error| self.shared.fail(error))?;
        self.counts.tuples_written += self.tx.writes.len() as u64;
        self.counts.log_records += 1;
        self.shared.options.reach(Phase::Published);
        Ok(place_at(time))
    }

    /// Stages 1 and 2; the transaction's time.
    fn log_and_show(&mut self) -> Result<u64> {
        let Self { shared, port, entries, writer, worker, .. } = self;
        let Some(log) = &shared.log else { unreachable!("the design has a log") };
        writer.append(log, port, entries)?;
        // It reads no more: its own snapshot keeps no second version from taking its place.
        shared.snapshots.leave(*worker);
        if shared.options.has(Fault::EvenBeforeFence) {
            let shared = Arc::clone(shared);
            let time = self.show();
            shared.options.reach(Phase::Published);
            if let Some(log) = &shared.log {
                log.fence(&mut self.port)?;
            }
            return Ok(time);
        }
        log.fence(port)?;
        Ok(self.show())
    }

    /// Stage 2.
    fn show(&mut self) -> u64 {
        let Self { shared, tx, own, worker, .. } = self;
        let record = |write: &Write| shared.tables[usize::from(write.table.0)].record(write.record);
        for write in &tx.writes {
            record(write).second_content.store(write.versions.new, Ordering::Release);
        }
        let time = shared.snapshots.commit(*worker);
        for write in &tx.writes {
            record(write).second.store(committed(time), Ordering::Release);
            own.seconds.push_back((time, Row { table: write.table, record: write.record }));
        }
        shared.snapshots.forget(*worker);
        time
    }

    /// The transaction is over. Then stage 3 of those before it, as far as none reads what was
    /// there before.
    pub(super) fn end_snapshot(&mut self) {
        let Self { shared, own, worker, .. } = self;
        let shared = Arc::clone(shared);
        let record = |row: Row| shared.tables[usize::from(row.table.0)].record(row.record);
        for row in own.rows.drain(..) {
            // What it has written it has no more.
            let second = record(row).second;
            if second.load(Ordering::Relaxed) == own.number {
                second.store(0, Ordering::Release);
            }
        }
        shared.snapshots.leave(*worker);
        while let Some((time, row)) = self.own.seconds.front().copied() {
            if !shared.snapshots.others_read_from(time, self.worker) {
                break;
            }
            self.own.seconds.pop_front();
            let (second, here) = (record(row).second, committed(time));
            let (set, fetch) = (Ordering::SeqCst, Ordering::Relaxed);
            // Otherwise who writes the row next has done it.
            if second.compare_exchange(here, moving(here), set, fetch).is_ok() {
                self.move_second(row, time);
                second.store(0, Ordering::Release);
            }
        }
    }

    /// Takes records out of indexes whose rows have not existed for long.
    pub(super) fn remove_absent_rows(&mut self) {
        let Self { shared, worker, pools, own, .. } = self;
        let unknown = shared.grace.unknown_before();
        for (table, pool) in shared.tables.iter().zip(pools) {
            while let Some((number, version, key)) = pool.next_absent(unknown) {
                // Before the record may stand for another key: older notes of it mean this one.
                table.raise_floor(version);
                let record = table.record(number);
                let (set, fetch) = (Ordering::SeqCst, Ordering::Relaxed);
                if record.second.compare_exchange(0, own.number, set, fetch).is_err() {
                    // A transaction writes it, and may give up.
                    pool.note_absent(&shared.grace, number, version, &key);
                    continue;
                }
                let is_absent = record.version.load(Ordering::Acquire) == version
                    && record.content.load(Ordering::Acquire) == 0;
                if is_absent {
                    record.version.store(REMOVED, Ordering::Release);
                    table.index.remove(*worker, &key, u64::from(number));
                    pool.retire_record(&shared.grace, number);
                }
                record.second.store(0, Ordering::Release);
            }
        }
    }
}
