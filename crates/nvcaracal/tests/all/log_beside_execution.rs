//! On `file` calls run while the log of their epoch is made durable. What they wrote is not seen,
//! and they are not answered, before it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use nvcaracal::{
    Database, HashTable, Options, Stop, Table, Ticket, Transaction, WriteSet, procedure,
};
use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

const COUNTS: HashTable<u64, u64> = Table::hash("counts");
/// More than a small epoch has.
const CALLS: u64 = 2_000;
const ROWS: u64 = 7;
const EIO: i32 = 5;
const PATIENCE: Duration = Duration::from_secs(120);

/// Bodies that have run.
static RAN: AtomicU64 = AtomicU64::new(0);
/// The tests count the same bodies.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[procedure(write_set = row)]
fn count(tx: &mut Transaction, row: u64) -> Result<u64, Stop> {
    let count = tx.get(COUNTS, row)?.unwrap_or(0) + 1;
    tx.insert(COUNTS, row, &count)?;
    RAN.fetch_add(1, Ordering::Relaxed);
    Ok(count)
}

fn row(call: &Count, set: &mut WriteSet) {
    set.insert(COUNTS, call.row);
}

#[derive(Debug, Default)]
struct Syncs {
    /// Syncs of the log that may still be made, or all.
    allowed: Option<u64>,
    begun: u64,
    fail: bool,
}

/// A disk whose syncs of the log take until they are allowed.
#[derive(Debug, Default)]
struct SlowLog {
    syncs: Mutex<Syncs>,
    changed: Condvar,
}

impl SlowLog {
    fn set(&self, change: impl FnOnce(&mut Syncs)) {
        change(&mut self.syncs.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until so many syncs have begun.
    fn wait_for(&self, begun: u64) {
        let syncs = self.syncs.lock().unwrap();
        let few = |syncs: &mut Syncs| syncs.begun < begun;
        let (syncs, _) = self.changed.wait_timeout_while(syncs, PATIENCE, few).unwrap();
        assert!(syncs.begun >= begun, "the log is synced");
    }
}

impl DiskHook for SlowLog {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        if call.file != DiskFile::Log || call.operation != DiskOperation::Sync {
            return Outcome::Proceed;
        }
        let mut syncs = self.syncs.lock().unwrap();
        syncs.begun += 1;
        self.changed.notify_all();
        let is_held = |syncs: &mut Syncs| syncs.allowed == Some(0);
        let mut syncs = self.changed.wait_while(syncs, is_held).unwrap();
        syncs.allowed = syncs.allowed.map(|allowed| allowed - 1);
        if syncs.fail { Outcome::Fail(EIO) } else { Outcome::Proceed }
    }
}

fn options(log: &Arc<SlowLog>) -> Options {
    Database::options()
        .workers(2)
        .table(COUNTS)
        .procedure::<Count>()
        // No image snapshot, which brings syncs of its own.
        .checkpoint_every(1_000)
        .data_bytes_max(256 << 20)
        .log_bytes_max(64 << 20)
        .disk_hook(Arc::clone(log) as Arc<dyn DiskHook>)
}

/// One epoch whose log is not durable yet and whose bodies have all run, behind one of one call.
fn with_an_epoch_in_flight(db: &Database, log: &SlowLog, then: impl FnOnce(Vec<Ticket<u64>>)) {
    for row in 0..ROWS {
        db.call(Count { row }).unwrap();
    }
    RAN.store(0, Ordering::Relaxed);
    log.set(|syncs| *syncs = Syncs { allowed: Some(0), ..Syncs::default() });
    let first = db.submit(Count { row: 0 }).unwrap();
    log.wait_for(1);
    // These wait for the epoch before, and are one epoch together.
    let calls: Vec<_> = (0..CALLS).map(|i| db.submit(Count { row: i % ROWS }).unwrap()).collect();
    log.set(|syncs| syncs.allowed = Some(1));
    assert_eq!(first.wait().unwrap(), 2);
    log.wait_for(2);
    let until = Instant::now() + PATIENCE;
    while RAN.load(Ordering::Relaxed) < CALLS + 1 {
        assert!(Instant::now() < until, "bodies run while the log of their epoch is synced");
        std::thread::yield_now();
    }
    then(calls);
}

/// O-13, S1, S2, S3: bodies run beside the sync; readers see the epoch before, and nothing is
/// answered, until it is done.
#[test]
fn o_13_calls_run_beside_the_sync_of_their_log_and_are_seen_after_it() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(SlowLog::default());
    let db = options(&log).open(dir.path()).unwrap();
    with_an_epoch_in_flight(&db, &log, |calls| {
        for row in 1..ROWS {
            assert_eq!(db.get(COUNTS, row).unwrap(), Some(1), "row {row} of the epoch before");
        }
        assert_eq!(db.get(COUNTS, 0).unwrap(), Some(2));
        assert!(
            calls.iter().all(|call| call.try_get().is_none()),
            "an answer before the log is durable"
        );
        log.set(|syncs| syncs.allowed = None);
        let last = calls.into_iter().map(|call| call.wait().unwrap()).max();
        assert_eq!(last, Some(CALLS.div_ceil(ROWS) + 2));
    });
    assert_eq!(db.get(COUNTS, 1).unwrap(), Some(CALLS.div_ceil(ROWS) + 1));
    db.close().unwrap();
}

/// O-57: where the sync fails, calls that have run are not answered, readers do not see them, and
/// the next open has all or nothing of the epoch.
#[test]
fn o_57_calls_that_ran_beside_a_sync_that_fails_are_not_answered() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(SlowLog::default());
    let db = options(&log).open(dir.path()).unwrap();
    with_an_epoch_in_flight(&db, &log, |calls| {
        log.set(|syncs| {
            syncs.allowed = None;
            syncs.fail = true;
        });
        for call in calls {
            call.wait().unwrap_err();
        }
    });
    // What is read of a store that has failed is what was answered, or an error.
    assert!(db.get(COUNTS, 1).is_ok_and(|count| count == Some(1)) || db.get(COUNTS, 1).is_err());
    drop(db);
    let log = Arc::new(SlowLog::default());
    let db = options(&log).open(dir.path()).unwrap();
    let sum: u64 = (0..ROWS).map(|row| db.get(COUNTS, row).unwrap().unwrap()).sum();
    assert!([ROWS + 1, ROWS + 1 + CALLS].contains(&sum), "{sum}");
    db.close().unwrap();
}
