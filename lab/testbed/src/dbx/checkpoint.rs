//! Checkpoints, which bound the log: a copy of all rows with their versions, taken while
//! transactions run (as in SiloR).
//!
//! 1. The next turn of the log begins. All transactions end that began before, so that each of
//!    which a record goes to an older segment has put its rows into their places.
//! 2. Every row is read in a region and written. One whose version is odd is waited for.
//! 3. Where there are groups, those that have begun become durable: the copy may have rows of them.
//! 4. The root says that this turn counts, and segments of older turns are free.
//!
//! What a transaction changes meanwhile is in the log of the new turn, and newer than the copy. The
//! worker whose transaction made the log too long does all that before its next one; others go on,
//! unless the log becomes twice as long as it may be.

use std::sync::TryLockError;
use std::sync::atomic::{Ordering, fence};

use pmem::{Device, Port};

use super::design::{Design, Durable};
use super::log::{CHECKPOINT, Entry, Log, Writer, push_entry};
use super::shared::Shared;
use super::snapshots::Which;
use super::tables::{REMOVED, ReadRecord, Table};
use crate::error::Result;
use crate::pause;
use crate::rival::{Counts, Phase};

/// Words of entries that are written at a time.
const BATCH_WORDS: usize = 1 << 12;

/// The rows that are on their way to the log.
struct Copy {
    writer: Writer,
    entries: Vec<u64>,
    longest: usize,
}

impl Copy {
    fn write<D: Device>(&mut self, log: &Log<D>, port: &mut Port<D>) -> Result<()> {
        if !self.entries.is_empty() {
            self.writer.reserve(log, self.entries.len(), self.longest)?;
            self.writer.append(log, port, &self.entries)?;
        }
        self.entries.clear();
        Ok(())
    }
}

impl<D: Device, N: Design> Shared<D, N> {
    /// Takes a checkpoint if the log is long enough. No transaction of this worker runs.
    pub(super) fn checkpoint_if_due(&self, port: &mut Port<D>, counts: &mut Counts) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        if log.bytes_since_checkpoint() < self.options.log_bytes {
            return Ok(());
        }
        let most = self.options.log_bytes.max(log.checkpoint_bytes());
        let held = match self.checkpoint.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another worker is at it. The log must not grow without end meanwhile.
            Err(TryLockError::WouldBlock) if log.bytes_since_checkpoint() >= 2 * most => {
                crate::lock(&self.checkpoint)
            }
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if log.bytes_since_checkpoint() >= most {
            self.take_checkpoint(log, port, counts)?;
        }
        drop(held);
        Ok(())
    }

    fn take_checkpoint(&self, log: &Log<D>, port: &mut Port<D>, counts: &mut Counts) -> Result<()> {
        log.next_turn();
        self.wait_for_running();
        let (writer, entries) = (Writer::new(CHECKPOINT), Vec::new());
        let mut copy = Copy { writer, entries, longest: 0 };
        for number in 0..self.tables.len() {
            self.options.reach(Phase::Copying);
            self.copy_table(number, &mut copy, port, counts)?;
        }
        copy.write(log, port)?;
        log.fence(port)?;
        if let Some(group) = &self.group {
            group.end_all()?;
        }
        log.end_checkpoint(port)?;
        counts.checkpoints += 1;
        Ok(())
    }

    /// Waits until all transactions have ended that run now.
    fn wait_for_running(&self) {
        self.grace.tick();
        let (now, mut turns) = (self.grace.now(), 0);
        while self.grace.unknown_before() < now {
            self.options.reach(Phase::Waiting);
            pause(&mut turns);
        }
    }

    /// Step 2, of one table.
    fn copy_table(
        &self,
        number: usize,
        copy: &mut Copy,
        port: &mut Port<D>,
        counts: &mut Counts,
    ) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let table = &self.tables[number];
        let mut records = Vec::new();
        // Not under the locks of the index: the rows of a transaction that has them may be odd.
        table.index.for_each(|_, place| records.push(place as u32));
        let mut payload = Vec::new();
        for record in records {
            let Some(version) = self.read_durable(number, record, &mut payload, counts) else {
                continue;
            };
            let start = copy.entries.len();
            let (is_deleted, payload) = (false, payload.as_slice());
            let entry = Entry { table: number, version, is_deleted, payload };
            push_entry(&mut copy.entries, entry, &table.layout);
            copy.longest = copy.longest.max(copy.entries.len() - start);
            if copy.entries.len() >= BATCH_WORDS {
                copy.write(log, port)?;
            }
        }
        Ok(())
    }

    /// Reads a row that is durable; its version, or `None` if it does not exist.
    fn read_durable(
        &self,
        number: usize,
        record: u32,
        payload: &mut Vec<u64>,
        counts: &mut Counts,
    ) -> Option<u64> {
        let table = &self.tables[number];
        if N::SNAPSHOTS {
            return self.read_newest(table, record, payload);
        }
        let mut turns = 0;
        loop {
            payload.clear();
            let mut read = ReadRecord { table, record, into: Some(payload) };
            let seen = self.regions.run(&mut counts.regions, &mut read)?.output;
            let is_odd = N::DURABLE == Durable::ByParity && seen.version % 2 == 1;
            if seen.version == REMOVED || seen.content == 0 && !is_odd {
                return None;
            }
            if !is_odd {
                return Some(seen.version);
            }
            self.options.reach(Phase::Waiting);
            pause(&mut turns);
        }
    }

    /// Reads the newest version that was committed, where there may be two. All that was is
    /// durable.
    fn read_newest(&self, table: &Table, record: u32, payload: &mut Vec<u64>) -> Option<u64> {
        let record = table.record(record);
        let mut turns = 0;
        loop {
            payload.clear();
            let second = record.second.load(Ordering::Acquire);
            let first = record.version.load(Ordering::Acquire);
            let (version, content) = match self.snapshots.which(second, u64::MAX >> 1) {
                Which::Unknown => {
                    pause(&mut turns);
                    continue;
                }
                Which::First => (first, record.content.load(Ordering::Acquire)),
                Which::Second(time) => (time, record.second_content.load(Ordering::Acquire)),
            };
            if content != 0 {
                payload.extend(table.content(content).iter().map(|w| w.load(Ordering::Relaxed)));
            }
            // Contents are used again by newer versions only.
            fence(Ordering::Acquire);
            let is_still = second == record.second.load(Ordering::Relaxed)
                && first == record.version.load(Ordering::Relaxed);
            if is_still {
                return (version != REMOVED && content != 0).then_some(version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, mpsc};

    use pmem::Dram;
    use workloads::{IndexKind, TableId, TableSpec};

    use super::super::{Dbx, DbxNvm, Dbxn};
    use super::*;
    use crate::rival::{AtPhase, Options, Rival, Session};

    const KEY: [u8; 8] = [7; 8];
    const TABLES: [TableId; 2] = [TableId(0), TableId(1)];

    fn tables() -> Vec<TableSpec> {
        let table = |name| {
            let (key_bytes_max, value_bytes_max) = (8, 8);
            TableSpec { name, index: IndexKind::Hash, key_bytes_max, value_bytes_max }
        };
        vec![table("a"), table("b")]
    }

    fn options(act: impl Fn(Phase) + Send + Sync + 'static) -> Options {
        let at_phase = Some(AtPhase(Arc::new(act)));
        let (group_us, group_calls) = (0, u64::MAX);
        Options { at_phase, group_us, group_calls, page_bytes: 8 << 10, ..Options::new(2) }
    }

    fn device() -> Arc<Dram> {
        Arc::new(Dram::new(1 << 20, 1 << 20).unwrap())
    }

    /// Writes a row of both tables, without waiting until it is durable.
    fn write<S: Session>(session: &mut S, key: &[u8], value: &[u8]) {
        session.begin();
        TABLES.iter().for_each(|table| session.insert(*table, key, value).unwrap());
        session.commit().unwrap();
    }

    fn checkpoint<N: Design>(rival: &Dbx<Dram, N>) {
        let mut port = Port::new(Arc::clone(&rival.shared.device), 9);
        let log = rival.shared.log.as_ref().unwrap();
        rival.shared.take_checkpoint(log, &mut port, &mut Counts::default()).unwrap();
    }

    fn recovered<N: Design>(device: Arc<Dram>) -> [Option<Vec<u8>>; 2] {
        let (rival, _) = Dbx::<_, N>::open(device, &tables(), &options(|_| {})).unwrap();
        TABLES.map(|table| rival.get(table, &KEY))
    }

    /// A transaction stops at a phase, from when `starts` says so, until a checkpoint waits for it,
    /// or has ended without. Whether it was waited for; and the rows after a recovery.
    fn beside(stops: Phase, starts: Phase) -> (bool, [Option<Vec<u8>>; 2]) {
        let (start, started) = mpsc::channel::<()>();
        let (stop, stopped) = mpsc::channel::<()>();
        let (release, released) = mpsc::channel::<()>();
        let (stopped, released) = (Mutex::new(stopped), Mutex::new(released));
        let (is_armed, waited) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::default()));
        let (armed, was_waited) = (Arc::clone(&is_armed), Arc::clone(&waited));
        let (at_start, at_release) = (start.clone(), release.clone());
        let options = options(move |at| {
            if at == starts && armed.swap(false, Ordering::SeqCst) {
                at_start.send(()).unwrap();
                crate::lock(&stopped).recv().unwrap();
            }
            if at == Phase::Waiting && !was_waited.swap(true, Ordering::SeqCst) {
                at_release.send(()).unwrap();
            }
            if at == stops && std::thread::current().name() == Some("stops") {
                stop.send(()).unwrap();
                crate::lock(&released).recv().unwrap();
            }
        });
        let device = device();
        let rival = Dbx::<_, Dbxn>::create(Arc::clone(&device), &tables(), &options).unwrap();
        write(&mut rival.session(0), &KEY, b"old");
        std::thread::scope(|scope| {
            let mut session = rival.session(1);
            let run = move || {
                started.recv().unwrap();
                write(&mut session, &KEY, b"new");
            };
            let thread = std::thread::Builder::new().name("stops".into());
            let thread = thread.spawn_scoped(scope, run).unwrap();
            is_armed.store(true, Ordering::SeqCst);
            if starts == Phase::Reserved {
                // A transaction of another row lets it start.
                write(&mut rival.session(0), &[9; 8], b"old");
            }
            checkpoint(&rival);
            if !waited.load(Ordering::SeqCst) {
                release.send(()).unwrap();
            }
            thread.join().unwrap();
        });
        drop(rival);
        (waited.load(Ordering::SeqCst), recovered::<Dbxn>(device))
    }

    #[test]
    fn a_checkpoint_waits_for_transactions_that_may_log_to_old_segments() {
        let (waited, rows) = beside(Phase::Reserved, Phase::Reserved);
        assert_eq!(rows, [Some(b"new".to_vec()), Some(b"new".to_vec())]);
        assert!(waited);
    }

    #[test]
    fn a_checkpoint_waits_for_versions_that_are_odd() {
        let (waited, rows) = beside(Phase::Installed, Phase::Copying);
        assert_eq!(rows, [Some(b"new".to_vec()), Some(b"new".to_vec())]);
        assert!(waited);
    }

    /// A transaction whose group has not ended comes between the copies of two tables.
    #[test]
    fn a_checkpoint_has_no_half_of_a_group_that_is_not_durable() {
        type Engine = Dbx<Dram, DbxNvm>;
        let between: Arc<Mutex<Option<<Engine as Rival>::Session>>> = Arc::default();
        let (acting, copies) = (Arc::clone(&between), Mutex::new(0));
        let options = options(move |at| {
            if at != Phase::Copying {
                return;
            }
            *crate::lock(&copies) += 1;
            if *crate::lock(&copies) == 2 {
                let session = crate::lock(&acting).take();
                write(&mut session.unwrap(), &KEY, b"new");
            }
        });
        let device = device();
        let rival = Engine::create(Arc::clone(&device), &tables(), &options).unwrap();
        let mut session = rival.session(0);
        write(&mut session, &KEY, b"old");
        session.finish().unwrap();
        *crate::lock(&between) = Some(rival.session(1));
        checkpoint(&rival);
        drop(session);
        drop(rival);
        let rows = recovered::<DbxNvm>(device);
        assert_eq!(rows[0], rows[1]);
    }
}
