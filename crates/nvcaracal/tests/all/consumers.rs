//! Consumers: readers of changes that go on where they were, whatever happened to the process.

mod crashes;
mod kills;
mod running;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nvcaracal::{
    Consumer, Database, DeviceSpec, Error, Moment, Options, Stop, Table, Transaction, Tuning,
    procedure,
};
use sim::history::Random;

use crate::common::directory;

const STOCK: Table<u64, u64> = Table::ordered("stock");
const NOTES: Table<u64, String> = Table::ordered("notes").with_value_bytes(200_000);

/// Writes a row, or deletes it where `pieces` is 0.
#[procedure]
fn put(tx: &mut Transaction, item: u64, pieces: u64) -> Result<(), Stop> {
    match pieces {
        0 => tx.delete(STOCK, item).map(drop),
        _ => tx.insert(STOCK, item, &pieces),
    }
}

#[procedure]
fn note(tx: &mut Transaction, number: u64, bytes: u64) -> Result<(), Stop> {
    tx.insert(NOTES, number, &"n".repeat(bytes as usize))
}

fn options() -> Options {
    let options = Database::options().table(STOCK).table(NOTES);
    options.procedure::<Put>().procedure::<Note>().workers(1)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Follows the changes that are there, each of which must fit what came before.
fn follow(consumer: &mut Consumer<u64, u64>, rows: &mut BTreeMap<u64, u64>) -> Result<u32, Error> {
    let mut count = 0;
    while let Some(change) = consumer.changes().try_next()? {
        let before = match change.after {
            Some(pieces) => rows.insert(change.key, pieces),
            None => rows.remove(&change.key),
        };
        assert_eq!(before, change.before, "epoch {}, item {}", change.epoch, change.key);
        count += 1;
    }
    Ok(count)
}

fn rows_of(db: &Database) -> BTreeMap<u64, u64> {
    db.snapshot().unwrap().range(STOCK, ..).map(Result::unwrap).collect()
}

/// The files of changes of a database, by name.
fn files_of(database: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(database.join("changes")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "changes"));
    files.map(|path| (path.file_name().unwrap().into(), fs::read(path).unwrap())).collect()
}

/// O-112: over closes and kills a consumer sees every change, in order, and what it has confirmed
/// once only.
#[test]
fn o_112_a_consumer_misses_nothing_over_restarts() {
    let mut seen = 0;
    for seed in 1..=8 {
        let mut random = Random::new(seed);
        let dir = directory();
        let mut path = dir.path().join("store-0");
        // What the consumer has made of the changes that it has confirmed.
        let mut confirmed = BTreeMap::new();
        for life in 1..8 {
            let every = 1 + random.below(8);
            let db = options().checkpoint_every(every).open(&path).unwrap();
            let mut consumer = db.consumer("copy", STOCK).unwrap();
            let mut copied = confirmed.clone();
            for _ in 0..random.below(25) {
                let (item, pieces) = (random.below(20), random.below(5));
                db.call(Put { item, pieces }).unwrap();
                match random.below(8) {
                    0 => {
                        seen += follow(&mut consumer, &mut copied).unwrap();
                        consumer.confirm().unwrap();
                        confirmed.clone_from(&copied);
                    }
                    1 => db.checkpoint().unwrap(),
                    _ => {}
                }
            }
            seen += follow(&mut consumer, &mut copied).unwrap();
            assert_eq!(copied, rows_of(&db), "seed {seed}, life {life}");
            drop(consumer);
            let next = dir.path().join(format!("store-{life}"));
            if random.percent(40) {
                db.close().unwrap();
                copy(&path, &next);
            } else {
                copy(&path, &next);
                db.close().unwrap();
            }
            path = next;
        }
    }
    assert!(seen > 0, "no change was seen");
}

/// Any reader of a table that a consumer follows finds in the log what memory has forgotten.
#[test]
fn o_112_a_reader_that_is_too_slow_for_memory_reads_the_log() {
    let dir = directory();
    let db = options().change_bytes_max(2_000).open(dir.path()).unwrap();
    let mut slow = db.changes(STOCK, None).unwrap();
    let begun = slow.epoch();
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    for item in 0..500 {
        db.call(Put { item, pieces: item + 1 }).unwrap();
    }
    for reader in [&mut slow, consumer.changes()] {
        for item in 0..500 {
            let change = reader.next_change().unwrap();
            assert_eq!((change.key, change.after), (item, Some(item + 1)));
        }
        assert!(reader.try_next().unwrap().is_none());
        reader.go_on_after(begun).unwrap();
        assert_eq!(reader.next_change().unwrap().key, 0);
    }
    let mut later = db.changes(STOCK, begun + 250).unwrap();
    assert_eq!(later.next_change().unwrap().key, 250);
    drop(later);
    drop(consumer);
    assert!(db.drop_consumer("copy").unwrap());
    let error = db.changes(STOCK, begun).unwrap_err();
    assert!(error.kept_after().is_some(), "{error}");
}

#[test]
fn a_consumer_that_is_too_slow_for_the_disk_is_told() {
    let dir = directory();
    let tuning = Tuning { consumer_bytes_max: 16 << 20, ..Tuning::default() };
    let open = || options().tuning(tuning).open(dir.path()).unwrap();
    let db = open();
    db.consumer("copy", NOTES).unwrap();
    for number in 0..150 {
        db.call(Note { number, bytes: 199_000 }).unwrap();
    }
    let position = &db.consumers().unwrap()[0];
    assert_eq!((position.name.as_str(), position.table.as_str()), ("copy", "notes"));
    assert!(position.kept_after > position.epoch, "{position:?}");
    let changes: u64 = fs::read_dir(dir.path().join("changes"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(changes <= 17 << 20, "{changes} bytes");
    db.close().unwrap();
    let db = open();
    let mut consumer = db.consumer("copy", NOTES).unwrap();
    let error = consumer.changes().try_next().unwrap_err();
    let kept_after = error.kept_after().expect("it is told");
    consumer.changes().go_on_after(kept_after).unwrap();
    assert!(consumer.changes().try_next().unwrap().is_some());
    consumer.changes().go_on_after(db.snapshot().unwrap().epoch()).unwrap();
    consumer.confirm().unwrap();
    assert_eq!(db.consumers().unwrap()[0].epoch, consumer.changes().epoch());
}

/// A consumer of a database that has had some: 20 changes, of which it has confirmed 10.
fn with_consumer(path: &Path) {
    let db = options().checkpoint_every(4).open(path).unwrap();
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    for item in 0..20 {
        db.call(Put { item, pieces: 1 }).unwrap();
        if item == 9 {
            while consumer.changes().try_next().unwrap().is_some() {}
            consumer.confirm().unwrap();
        }
    }
    drop(consumer);
    db.close().unwrap();
}

/// The consumer is told that it has missed changes; it begins anew, and goes on. Returns what it
/// was told.
fn is_told(db: &Database) -> String {
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    let error = consumer.changes().try_next().unwrap_err();
    assert!(error.kept_after().is_some(), "{error}");
    assert!(consumer.changes().try_next().is_err(), "it is told until it begins anew");
    let snapshot = db.snapshot().unwrap();
    let mut rows = snapshot.range(STOCK, ..).map(Result::unwrap).collect();
    consumer.changes().go_on_after(snapshot.epoch()).unwrap();
    consumer.confirm().unwrap();
    db.call(Put { item: 77, pieces: 7 }).unwrap();
    assert_eq!(follow(&mut consumer, &mut rows).unwrap(), 1);
    assert_eq!(rows, rows_of(db));
    error.to_string()
}

/// Files that are missing or damaged are never passed over in silence.
#[test]
fn a_consumer_is_told_of_files_that_are_missing_or_damaged() {
    let dir = directory();
    let whole = dir.path().join("whole");
    with_consumer(&whole);
    let name = files_of(&whole).keys().next().unwrap().clone();
    for (case, what) in [
        ("segment", "has no changes of epochs"),
        ("bytes", "is damaged at byte"),
        ("list", "the list of consumers was lost"),
        ("all", "the list of consumers was lost"),
    ] {
        let path = dir.path().join(case);
        copy(&whole, &path);
        let changes = path.join("changes");
        match case {
            "segment" => fs::remove_file(changes.join(&name)).unwrap(),
            "bytes" => {
                let mut bytes = fs::read(changes.join(&name)).unwrap();
                bytes[60] ^= 1;
                fs::write(changes.join(&name), bytes).unwrap();
            }
            "list" => fs::remove_file(changes.join("consumers")).unwrap(),
            _ => fs::remove_dir_all(changes).unwrap(),
        }
        let db = options().open(&path).unwrap();
        let told = is_told(&db);
        assert!(told.contains(what) && told.contains("take a snapshot"), "{case}: {told}");
        db.close().unwrap();
        // It is told once.
        let db = options().open(&path).unwrap();
        assert!(db.consumer("copy", STOCK).unwrap().changes().try_next().unwrap().is_some());
    }
    // What a person can mend is refused, and every byte stays.
    let list = whole.join("changes").join("consumers");
    let mut bytes = fs::read(&list).unwrap();
    bytes[30] ^= 1;
    fs::write(&list, &bytes).unwrap();
    let data = fs::read(whole.join("data")).unwrap();
    let error = options().open(&whole).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("consumers is damaged"), "{error}");
    assert!(fs::read(&list).unwrap() == bytes && fs::read(whole.join("data")).unwrap() == data);
}

/// A backup, a restored database and one that was restored to an epoch tell each consumer.
#[test]
fn a_consumer_is_told_in_a_copy() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name);
    with_consumer(&path("store"));
    let db = options().archive(path("archive")).open(path("store")).unwrap();
    db.backup(path("backup")).unwrap();
    for item in 0..5 {
        db.call(Put { item, pieces: 9 }).unwrap();
    }
    db.close().unwrap();
    Database::restore(path("backup"), path("restored"), None).unwrap();
    let to = Moment::Newest;
    Database::restore_to(path("backup"), path("newest"), path("archive"), to).unwrap();
    for name in ["restored", "newest", "backup"] {
        let db = options().open(path(name)).unwrap();
        assert!(db.consumers().unwrap().is_empty());
        let told = is_told(&db);
        assert!(told.contains("the list of consumers was lost"), "{name}: {told}");
    }
    // The files of an earlier moment in place of those that are there.
    with_consumer(&path("again"));
    copy(&path("again"), &path("earlier"));
    let db = options().open(path("again")).unwrap();
    db.call(Put { item: 100, pieces: 1 }).unwrap();
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    while consumer.changes().try_next().unwrap().is_some() {}
    consumer.confirm().unwrap();
    drop(consumer);
    db.close().unwrap();
    for file in ["meta", "data", "table", "log"] {
        fs::copy(path("earlier").join(file), path("again").join(file)).unwrap();
    }
    let told = is_told(&options().open(path("again")).unwrap());
    assert!(told.contains("another past"), "{told}");
}

/// A store that has had consumers says so, so that no earlier program goes on without them; one
/// that has had none is as it was.
#[test]
fn a_database_with_consumers_needs_a_program_that_knows_them() {
    let dir = directory();
    let features = |path: &Path| {
        // The superblock is in the image, whose pages are in the file `data`.
        let data = fs::read(path.join("data")).unwrap();
        let magic = storage::format::SUPERBLOCK_MAGIC;
        let found = data.windows(8).enumerate().filter(|(_, bytes)| *bytes == magic);
        let of = std::mem::offset_of!(storage::format::Superblock, features_required);
        let bits = |at: usize| u64::from_le_bytes(*data[at + of..].first_chunk().unwrap());
        found.map(|(at, _)| bits(at)).fold(0, |all, bits| all | bits)
    };
    let bit = storage::format::FEATURE_CONSUMERS;
    assert_eq!(bit, 8, "programs of before know smaller ones");
    let path = dir.path().join("store");
    let db = options().open(&path).unwrap();
    db.call(Put { item: 1, pieces: 1 }).unwrap();
    db.close().unwrap();
    assert_eq!(features(&path) & bit, 0);
    assert!(!path.join("changes").exists(), "nothing is kept without consumers");
    let db = options().open(&path).unwrap();
    drop(db.consumer("copy", STOCK).unwrap());
    assert_ne!(features(&path) & bit, 0, "before the first position is kept");
    db.close().unwrap();
    // In a new one, too.
    let path = dir.path().join("new");
    drop(options().open(&path).unwrap().consumer("copy", STOCK).unwrap());
    assert_ne!(features(&path) & bit, 0);
}

#[test]
fn what_is_no_consumer_is_a_mistake() {
    let dir = directory();
    let path = dir.path().join("store");
    let db = options().open(&path).unwrap();
    let error = db.consumer("", STOCK).unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("1 to 255 bytes"), "{error}");
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    let error = db.consumer("copy", NOTES).unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("\"stock\""), "{error}");
    assert!(db.drop_consumer("copy").unwrap() && !db.drop_consumer("copy").unwrap());
    assert!(consumer.confirm().unwrap_err().is_mistake());
    assert_eq!(consumer.name(), "copy");
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    db.close().unwrap();
    // Its files may be those of another process now.
    let list = path.join("changes").join("consumers");
    fs::remove_file(&list).unwrap();
    assert!(consumer.confirm().unwrap_err().is_stopped());
    assert!(!list.exists());
    drop(consumer);
    for db in [
        options().open_device(DeviceSpec::Dram).unwrap(),
        options().read_only(true).open(&path).unwrap(),
    ] {
        let error = db.consumer("copy", STOCK).unwrap_err();
        assert!(error.is_mistake() && error.to_string().contains("file:DIRECTORY"), "{error}");
        assert!(db.consumers().is_err() && db.drop_consumer("copy").is_err());
    }
}

/// A table keeps its consumers when it is renamed, and takes them along when it is dropped.
#[test]
fn consumers_follow_their_table() {
    const ITEMS: Table<u64, u64> = Table::ordered("items");
    let dir = directory();
    let db = options().open(dir.path()).unwrap();
    db.consumer("copy", STOCK).unwrap();
    db.call(Put { item: 1, pieces: 5 }).unwrap();
    db.close().unwrap();
    let renamed = || Database::options().table(ITEMS).table(NOTES);
    let db = renamed().rename_table("stock", "items").open(dir.path()).unwrap();
    assert_eq!(db.consumers().unwrap()[0].table, "items");
    let mut consumer = db.consumer("copy", ITEMS).unwrap();
    assert_eq!(consumer.changes().next_change().unwrap().after, Some(5));
    drop(consumer);
    db.close().unwrap();
    let dropped = Database::options().table(NOTES).drop_table("items");
    let db = dropped.open(dir.path()).unwrap();
    assert!(db.consumers().unwrap().is_empty());
}
