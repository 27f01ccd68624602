//! Consumers beside writers, and where the disk fails them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nvcaracal::Database;
use sim::history::Random;
use storage::{ChangeLogCall, ChangeLogHook};

use super::{Put, STOCK, follow, options, rows_of};
use crate::common::directory;

/// O-112: a consumer that reads the files while writers append to them, confirms, and so deletes
/// files, sees each change once.
#[test]
fn o_112_a_consumer_reads_what_is_being_written() {
    let dir = directory();
    // Memory has no change: all come from the files.
    let db = options().change_bytes_max(0).checkpoint_every(7).open(dir.path()).unwrap();
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    let mut rows = BTreeMap::new();
    let write = |db: &Database, seed| {
        let mut random = Random::new(seed);
        for _ in 0..300 {
            let (item, pieces) = (random.below(50), random.below(9));
            db.call(Put { item, pieces }).unwrap();
        }
    };
    thread::scope(|scope| {
        let (db, write) = (&db, &write);
        let writers = [1, 2].map(|seed| scope.spawn(move || write(db, seed)));
        let mut confirmed = 0;
        loop {
            let are_done = writers.iter().all(thread::ScopedJoinHandle::is_finished);
            let next = consumer.changes().next_timeout(Duration::from_millis(1)).unwrap();
            let Some(change) = next else {
                if are_done {
                    break;
                }
                continue;
            };
            let before = match change.after {
                Some(pieces) => rows.insert(change.key, pieces),
                None => rows.remove(&change.key),
            };
            assert_eq!(before, change.before, "epoch {}", change.epoch);
            if consumer.changes().epoch() >= confirmed + 20 {
                confirmed = consumer.changes().epoch();
                consumer.confirm().unwrap();
            }
        }
    });
    assert_eq!(rows, rows_of(&db));
}

/// Fails with `ENOSPC` from some call of one kind on.
#[derive(Debug)]
struct Full {
    call: ChangeLogCall,
    left: AtomicU64,
}

impl ChangeLogHook for Full {
    fn reach(&self, call: ChangeLogCall) -> io::Result<()> {
        if call != self.call {
            return Ok(());
        }
        let take = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// O-112: a change log that cannot be written stops the database, and no change is lost.
#[test]
fn o_112_a_disk_that_is_full_takes_no_change() {
    for (call, left) in [
        (ChangeLogCall::Append, 0),
        (ChangeLogCall::Append, 5),
        (ChangeLogCall::Sync, 0),
        (ChangeLogCall::Sync, 2),
    ] {
        let what = format!("{call:?} {left}");
        let dir = directory();
        let full = Arc::new(Full { call, left: AtomicU64::new(left) });
        let db = options().checkpoint_every(3).change_log_hook(full).open(dir.path()).unwrap();
        let mut consumer = db.consumer("copy", STOCK).unwrap();
        let mut rows = BTreeMap::new();
        let mut answered = BTreeMap::new();
        let failed = (1..40).find_map(|item| {
            let answer = db.call(Put { item, pieces: item });
            answer.map(|()| answered.insert(item, item)).err().map(|error| (item, error))
        });
        let (item, error) = failed.unwrap_or_else(|| panic!("{what}: nothing has failed"));
        assert!(error.is_stopped() || error.is_full(), "{what}: {error}");
        assert!(error.to_string().contains("changes"), "{what}: {error}");
        // What was answered is there.
        let followed = follow(&mut consumer, &mut rows);
        assert!(followed.is_err_and(|error| error.kept_after().is_none()), "{what}");
        assert_eq!(rows, answered, "{what}");
        drop(consumer);
        drop(db);
        let db = options().open(dir.path()).unwrap();
        let mut consumer = db.consumer("copy", STOCK).unwrap();
        let mut rows = BTreeMap::new();
        follow(&mut consumer, &mut rows).unwrap();
        assert_eq!(rows, rows_of(&db), "{what}");
        // The inputs of the call that failed were durable.
        assert_eq!(rows.len() as u64, item, "{what}");
    }
}
