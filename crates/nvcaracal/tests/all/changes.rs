//! Feeds of changes against a model: the difference of snapshots.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::common::POINTERS;
use nvcaracal::{
    Abort, Change, Changes, Database, DeviceSpec, HashTable, Options, Procedure, Snapshot, Stop,
    Table, Transaction, Tuning, WriteSet, plain,
};

const ORDERED: Table<u64, String> = Table::ordered("ordered").with_value_bytes(4000);
const HASH: HashTable<u64, String> = HashTable::hash("hash").with_value_bytes(4000);
const WORDS: Table<u64, u64> = Table::ordered("words");

plain! {
    struct Act { what: u64, a: u64, b: u64, id: u64 }
    struct Wild { a: u64, b: u64, id: u64 }
}

/// Values of all lengths: inline ones, and external ones.
fn text(id: u64) -> String {
    let len = if id.is_multiple_of(7) { 3000 } else { id % 90 };
    format!("{id} ") + &"x".repeat(len as usize)
}

fn put(tx: &mut Transaction, key: u64, id: u64) -> Result<(), Stop> {
    tx.insert(ORDERED, key, &text(id))?;
    tx.insert(HASH, key, &text(id + 1))?;
    tx.insert(WORDS, key, &id)
}

fn delete(tx: &mut Transaction, key: u64) -> Result<(), Stop> {
    tx.delete(ORDERED, key)?;
    tx.delete(HASH, key)?;
    tx.delete(WORDS, key).map(drop)
}

fn declare(set: &mut WriteSet, key: u64) {
    set.insert(ORDERED, key);
    set.insert(HASH, key);
    set.insert(WORDS, key);
}

impl Procedure for Act {
    const NAME: &'static str = "act";
    type Output = ();

    fn write_set(&self, set: &mut WriteSet) {
        match self.what {
            0 => set.insert(POINTERS, 0),
            1 => {
                let to = set.get(POINTERS, 0).unwrap_or(0);
                declare(set, to);
            }
            _ => {
                declare(set, self.a);
                declare(set, self.b);
            }
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        match self.what {
            0 => tx.insert(POINTERS, 0, &self.a),
            // It is deferred where the pointer has changed in its epoch.
            1 => {
                let to = tx.get(POINTERS, 0)?.unwrap_or(0);
                put(tx, to, self.id)
            }
            2 => delete(tx, self.a),
            3 => {
                put(tx, self.a, self.id)?;
                delete(tx, self.a)
            }
            4 => {
                put(tx, self.a, self.id)?;
                Err(Abort::new("not this time"))?
            }
            // What is there already, so that nothing changes.
            5 => match tx.get(ORDERED, self.b)? {
                Some(text) => tx.insert(ORDERED, self.b, &text),
                None => Ok(()),
            },
            _ => {
                put(tx, self.a, self.id)?;
                put(tx, self.b, self.id + 1)
            }
        }
    }
}

/// Says nothing of what it writes, so that it runs in the serial part.
impl Procedure for Wild {
    const NAME: &'static str = "wild";
    type Output = ();

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        delete(tx, self.a)?;
        put(tx, self.b, self.id)
    }
}

fn options() -> Options {
    let options = Database::options().table(ORDERED).table(HASH).table(WORDS).table(POINTERS);
    options.procedure::<Act>().procedure::<Wild>()
}

type Texts = BTreeMap<u64, String>;

/// A table's rows by its changes, and the feed.
struct Copy<V> {
    rows: BTreeMap<u64, V>,
    changes: Changes<u64, V>,
    last: (u64, Option<u64>),
}

impl<V: nvcaracal::Data + Clone + PartialEq + std::fmt::Debug> Copy<V> {
    fn of(changes: Changes<u64, V>, rows: BTreeMap<u64, V>) -> Self {
        Self { rows, last: (changes.epoch(), None), changes }
    }

    fn apply(&mut self, change: Change<u64, V>) {
        let Change { epoch, key, before, after, .. } = change;
        assert_ne!(before, after, "a change of {key} in epoch {epoch} that is none");
        let at = (epoch, Some(key));
        assert!(self.last < at, "{at:?} after {:?}", self.last);
        self.last = at;
        assert_eq!(self.rows.get(&key), before.as_ref(), "row {key} before epoch {epoch}");
        match after {
            Some(after) => self.rows.insert(key, after),
            None => self.rows.remove(&key),
        };
    }

    /// Reads on up to the epoch of a snapshot that was just taken: the rows are those that it has.
    fn read_up_to(&mut self, epoch: u64, rows: &BTreeMap<u64, V>) {
        while let Some(change) = self.changes.try_next().unwrap() {
            assert!(change.epoch <= epoch, "a change after the snapshot");
            self.apply(change);
        }
        assert_eq!(self.changes.epoch(), epoch);
        assert_eq!(&self.rows, rows, "at the end of epoch {epoch}");
    }
}

/// The rows that a snapshot has.
fn rows(snapshot: &Snapshot) -> (Texts, Texts, BTreeMap<u64, u64>) {
    (
        snapshot.range(ORDERED, ..).collect::<Result<_, _>>().unwrap(),
        snapshot.all(HASH).collect::<Result<_, _>>().unwrap(),
        snapshot.range(WORDS, ..).collect::<Result<_, _>>().unwrap(),
    )
}

/// Copies of three tables.
struct Copies {
    ordered: Copy<String>,
    hash: Copy<String>,
    words: Copy<u64>,
}

impl Copies {
    fn begin(db: &Database) -> Self {
        let (ordered, hash) = (db.changes(ORDERED, None), db.changes(HASH, None));
        let words = db.changes(WORDS, None).unwrap();
        let of = rows(&db.snapshot().unwrap());
        Self {
            ordered: Copy::of(ordered.unwrap(), of.0),
            hash: Copy::of(hash.unwrap(), of.1),
            words: Copy::of(words, of.2),
        }
    }

    fn compare(&mut self, db: &Database) {
        let snapshot = db.snapshot().unwrap();
        let (epoch, of) = (snapshot.epoch(), rows(&snapshot));
        self.ordered.read_up_to(epoch, &of.0);
        self.hash.read_up_to(epoch, &of.1);
        self.words.read_up_to(epoch, &of.2);
    }

    /// The same, of a database that was opened again: the feeds go on.
    fn go_on(self, db: &Database) -> Self {
        let Self { ordered, hash, words } = self;
        Self {
            ordered: Copy::of(db.changes(ORDERED, ordered.changes.epoch()).unwrap(), ordered.rows),
            hash: Copy::of(db.changes(HASH, hash.changes.epoch()).unwrap(), hash.rows),
            words: Copy::of(db.changes(WORDS, words.changes.epoch()).unwrap(), words.rows),
        }
    }
}

/// A few random batches, after each of which feeds and snapshots are compared.
fn run(db: &Database, copies: &mut Copies, rounds: u64, random: &mut u64) {
    let mut below = |most: u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (*random >> 33) % most
    };
    for round in 0..rounds {
        let mut batch = db.batch();
        for call in 0..1 + below(30) {
            let (a, b, id) = (below(12), below(12), round * 100 + call);
            match below(9) {
                8 => drop(batch.add(&Wild { a, b, id }).unwrap()),
                what => drop(batch.add(&Act { what, a, b, id }).unwrap()),
            }
        }
        batch.submit().unwrap().wait();
        copies.compare(db);
    }
}

#[test]
fn o_110_changes_are_the_difference_of_snapshots() {
    for (case, (workers, serial_calls_max, cache_bytes)) in
        [(1, 0, 0), (2, 0, 0), (2, 0, 1 << 20), (1, 64, 0), (2, 8, 1 << 14)].into_iter().enumerate()
    {
        let tuning = Tuning { serial_calls_max, ..Tuning::default() };
        let options = options().workers(workers).cache_bytes(cache_bytes).tuning(tuning);
        let options = options.checkpoint_every(1 + case as u64 % 3);
        let db = options.open_device(DeviceSpec::Dram).unwrap();
        let mut copies = Copies::begin(&db);
        run(&db, &mut copies, 60, &mut (case as u64));
        if serial_calls_max == 0 {
            let deferred: u64 = db.stats().procedures.iter().map(|of| of.deferred).sum();
            assert!(deferred > 0, "the test defers calls");
        }
    }
}

#[test]
fn o_110_a_feed_goes_on_where_the_database_was_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let open = || options().workers(2).open(dir.path().join("db")).unwrap();
    let mut db = open();
    let (mut copies, mut random) = (Copies::begin(&db), 5);
    for _ in 0..3 {
        run(&db, &mut copies, 12, &mut random);
        let seen = copies.words.changes.epoch();
        db.close().unwrap();
        assert!(copies.words.changes.try_next().unwrap_err().is_stopped());
        db = open();
        let error = db.changes(WORDS, seen - 1).unwrap_err();
        assert_eq!(error.kept_after(), Some(seen), "{error}");
        copies = copies.go_on(&db);
    }
    run(&db, &mut copies, 12, &mut random);
}

#[test]
fn o_110_a_slow_reader_is_told_from_where_to_go_on() {
    let db = options().change_bytes_max(2000).open_device(DeviceSpec::Dram).unwrap();
    let mut changes = db.changes(WORDS, None).unwrap();
    let put = |id| db.call(Wild { a: 1_000_000, b: id, id }).unwrap();
    (0..100).for_each(put);
    let error = changes.next_change().unwrap_err();
    let kept = error.kept_after().unwrap();
    assert!(error.is_limit() && error.to_string().contains(&kept.to_string()), "{error}");
    assert_eq!(changes.try_next().unwrap_err().kept_after(), Some(kept), "nothing was skipped");
    assert!(changes.go_on_after(kept - 1).is_err());

    let snapshot = db.snapshot().unwrap();
    assert!(snapshot.epoch() >= kept);
    changes.go_on_after(snapshot.epoch()).unwrap();
    put(100);
    assert_eq!(changes.next_change().unwrap().after, Some(100));
    // What is kept can be read again. It is less now.
    let kept = db.changes(WORDS, kept).unwrap_err().kept_after().unwrap();
    changes.go_on_after(kept).unwrap();
    let mut again = db.changes(WORDS, kept).unwrap();
    let first = changes.next_change().unwrap();
    assert_eq!(first.epoch, kept + 1);
    assert_eq!(again.next_change().unwrap(), first);

    // An epoch alone is more than may be kept.
    let mut batch = db.batch();
    for id in 200..300 {
        batch.add(&Wild { a: 1_000_000, b: id, id }).unwrap();
    }
    batch.submit().unwrap().wait();
    let last = again.go_on_after(kept).unwrap_err().kept_after().unwrap();
    again.go_on_after(last).unwrap();
    assert!(again.try_next().unwrap().is_none());
    assert!(again.go_on_after(last + 1).unwrap_err().is_mistake());
}

#[test]
fn readers_wait_for_changes_on_threads_and_in_tasks() {
    let db = options().open_device(DeviceSpec::Dram).unwrap();
    let put = |id| db.call(Wild { a: 1_000_000, b: id, id }).unwrap();
    let (mut waits, mut task) =
        (db.changes(WORDS, None).unwrap(), db.changes(WORDS, None).unwrap());
    assert!(waits.next_timeout(Duration::from_millis(1)).unwrap().is_none());
    let on_thread = thread::spawn(move || {
        let all: Vec<_> = (0..20).map(|_| waits.next_change().unwrap().key).collect();
        (all, waits)
    });
    let in_task = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut all = Vec::new();
            while all.len() < 20 {
                all.push(task.next_async().await.unwrap().key);
            }
            all
        })
    });
    for id in 0..20 {
        put(id);
        thread::sleep(Duration::from_micros(id * 50));
    }
    let expected: Vec<u64> = (0..20).collect();
    let (seen, mut waits) = on_thread.join().unwrap();
    assert_eq!((seen, in_task.join().unwrap()), (expected.clone(), expected));
    let ended = thread::spawn(move || waits.next_change().unwrap_err());
    db.close().unwrap();
    assert!(ended.join().unwrap().is_stopped());
}

#[test]
fn changes_are_kept_while_a_table_has_a_feed() {
    let db = options().open_device(DeviceSpec::Dram).unwrap();
    let put = |id| db.call(Wild { a: 1_000_000, b: id, id }).unwrap();
    let first = db.changes(WORDS, None).unwrap();
    let begin = first.epoch();
    put(1);
    let mut second = db.changes(WORDS, begin).unwrap();
    drop(first);
    put(2);
    let keys: Vec<u64> = (0..2).map(|_| second.next_change().unwrap().key).collect();
    assert_eq!(keys, [1, 2]);
    drop(second);
    put(3);
    // The feed is gone when the request of the drop was done, with the call at the latest.
    assert!(db.changes(WORDS, begin).unwrap_err().kept_after() > Some(begin));
    let mut third = db.changes(WORDS, None).unwrap();
    put(4);
    assert_eq!(third.next_change().unwrap().key, 4);
}
