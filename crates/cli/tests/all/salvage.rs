//! `recover --salvage`: a store with damaged rows is refused by every open, and what can be read of
//! it goes into a new one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nvcaracal::{Database, HashTable, Options, Sequence, Stop, Table, Transaction, procedure};
use pmem::{AnyDevice, Device, File, FileOptions};
use storage::EpochNumber;
use storage::{Opened, Store, StoreOptions, repair, scan};

use crate::support::{Ran, Room, run};

const NOTES: HashTable<u64, String> = Table::hash("notes");
const CENTS: Table<u64, i64> = Table::ordered("cents");
const NUMBERS: Sequence = Sequence::new("numbers");

#[procedure(sequences(NUMBERS.at(7)))]
fn number(tx: &mut Transaction) -> Result<u64, Stop> {
    Ok(tx.sequence_number(0))
}

#[procedure]
fn put(tx: &mut Transaction, from: u64, to: u64) -> Result<(), Stop> {
    for key in from..to {
        tx.insert(NOTES, key, &"note ".repeat(key as usize))?;
        tx.insert(CENTS, key, &(key as i64 * 100))?;
    }
    Ok(())
}

fn options() -> Options {
    let options = Database::options().table(NOTES).table(CENTS).sequence(NUMBERS).workers(1);
    options.procedure::<Number>().procedure::<Put>()
}

/// A store of 100 keys in two tables, of which the last ten have rows without a version.
fn damaged(store: &Path) {
    let db = options().open(store).unwrap();
    for number in 0..3 {
        assert_eq!(db.call(Number {}).unwrap(), number);
    }
    db.call(Put { from: 0, to: 90 }).unwrap();
    let last = db.snapshot().unwrap().epoch();
    db.call(Put { from: 90, to: 100 }).unwrap();
    db.close().unwrap();
    let file = Arc::new(File::open(store, &FileOptions::new(1 << 30, 1 << 30)).unwrap());
    let options = StoreOptions { create: false, ..StoreOptions::default() };
    let opened = Store::open(Arc::clone(&AnyDevice::of(&file)), &options).unwrap();
    file.accept().unwrap();
    let Opened { store, sub_pools, log, .. } = opened;
    repair::clear_versions(&store, &scan::plan(&store, &sub_pools, &log), EpochNumber(last));
    storage::snapshot_image(&AnyDevice::of(&file), store.checkpoint_epoch()).unwrap();
}

fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A salvage after which something is lost: the report says what, and the exit code that.
fn lossy(line: &str) -> Ran {
    let ran = run(line);
    assert_eq!((ran.code, ran.stderr.as_str()), (3, ""), "{ran:#?}");
    ran
}

#[test]
fn what_can_be_read_goes_into_a_new_store() {
    let room = Room::new();
    let (store, new) = (room.text("store"), room.text("new"));
    damaged(&room.path("store"));
    let before = bytes(&room.path("store"));
    run(&format!("check {store}")).failed(1, &["has no version"]);

    let ran = lossy(&format!("recover --salvage {new} {store}"));
    for said in [
        "notes: 90 rows, 10 rows LOST",
        "cents: 90 rows, 10 rows LOST",
        "numbers: 1 rows\n",
        "lost: table \"notes\", 9",
        "it has no version up to epoch",
        "20 rows are lost; all others are in",
    ] {
        assert!(ran.stdout.contains(said), "{said:?} is not in {ran:#?}");
    }
    assert!(bytes(&room.path("store")) == before, "the damaged store was changed");
    run(&format!("check {new}")).succeeded();
    let db = options().open(&new).unwrap();
    for key in 0..100 {
        let is_there = key < 90;
        let note = "note ".repeat(key as usize);
        assert_eq!(db.get(NOTES, key).unwrap(), is_there.then_some(note));
        assert_eq!(db.get(CENTS, key).unwrap(), is_there.then_some(key as i64 * 100));
    }
    assert_eq!(db.call(Number {}).unwrap(), 3);
    db.call(Put { from: 80, to: 100 }).unwrap();
    db.close().unwrap();
    run(&format!("check {new}")).succeeded();

    let again = room.text("again");
    let report = lossy(&format!("recover --json --salvage {again} {store}")).json();
    assert_eq!(report["not_replayed"]["calls"], 0, "{report}");
    let lost = report["lost"].as_array().unwrap();
    let keys: Vec<_> =
        lost.iter().filter(|of| of["table"] == "cents").map(|of| &of["key"]).collect();
    assert_eq!(keys.len(), 10);
    assert!(keys.iter().all(|key| (90..100).contains(&key.as_u64().unwrap())), "{keys:?}");
    assert!(report["is_whole"].is_null(), "{report}");
}

#[test]
fn a_whole_store_is_salvaged_as_a_whole() {
    let room = Room::new();
    let (store, new) = (room.text("store"), room.text("new"));
    let db = options().open(&store).unwrap();
    db.call(Put { from: 0, to: 200 }).unwrap();
    db.close().unwrap();
    let report = run(&format!("recover --json --salvage {new} {store}")).succeeded().json();
    assert_eq!(report["is_whole"], true, "{report}");
    let digest = |store: &str| run(&format!("check --json {store}")).json()["state_digest"].clone();
    assert_eq!(digest(&store), digest(&new));
    assert_eq!(report["state_digest"], digest(&new));
}

/// What was answered after the checkpoint was not in the new store, and the exit code was 0.
#[test]
fn calls_after_the_checkpoint_are_counted_and_listed() {
    let room = Room::new();
    let (store, new) = (room.text("store"), room.text("new"));
    let db = options().checkpoint_every(1000).open(room.path("live")).unwrap();
    db.call(Put { from: 0, to: 10 }).unwrap();
    db.checkpoint().unwrap();
    let checkpoint = db.snapshot().unwrap().epoch();
    for from in [10, 20, 30] {
        db.call(Put { from, to: from + 10 }).unwrap();
    }
    db.call(Number {}).unwrap();
    // As a kill leaves it.
    fs::create_dir(&store).unwrap();
    for (file, bytes) in bytes(&room.path("live")) {
        fs::write(room.path("store").join(file.file_name().unwrap()), bytes).unwrap();
    }
    db.close().unwrap();
    let before = bytes(&room.path("store"));

    let ran = lossy(&format!("recover --salvage {new} {store}"));
    let (first, last) = (checkpoint + 1, checkpoint + 4);
    for said in [
        format!("NOT REPLAYED, and not in the new store: 4 calls of epochs {first} to {last}"),
        format!("  epoch {first}: 1 calls: 1 of \"put\"\n"),
        format!("  epoch {last}: 1 calls: 1 of \"number\"\n"),
        "nothing of the checkpoint is lost".to_string(),
    ] {
        assert!(ran.stdout.contains(&said), "{said:?} is not in {ran:#?}");
    }
    let db = options().open(&new).unwrap();
    assert_eq!((db.get(CENTS, 9).unwrap(), db.get(CENTS, 10).unwrap()), (Some(900), None));
    db.close().unwrap();

    let again = room.text("again");
    let report = lossy(&format!("recover --json --salvage {again} {store}")).json();
    let listed = &report["not_replayed"];
    assert_eq!((&listed["calls"], &report["is_whole"]), (&4.into(), &true.into()), "{report}");
    let calls = |epoch: usize| &listed["epochs"][epoch]["list"][0];
    assert_eq!(calls(1)["procedure"], "put", "{report}");
    assert_eq!(calls(1)["arguments"]["from"], 20, "{report}");
    assert_eq!(calls(1)["position"], 0, "{report}");
    assert_eq!(listed["epochs"][3]["epoch"], last, "{report}");
    assert!(bytes(&room.path("store")) == before, "the store was changed");
    let db = options().open(&store).unwrap();
    assert_eq!(db.get(CENTS, 39).unwrap(), Some(3900));
    db.close().unwrap();
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let room = Room::new();
    let store = room.text("store");
    damaged(&room.path("store"));
    for taken in ["file", "directory"] {
        let path = room.path(taken);
        match taken {
            "file" => fs::write(&path, "mine").unwrap(),
            _ => fs::create_dir(&path).unwrap(),
        }
        let line = format!("recover --salvage {} {store}", room.text(taken));
        run(&line).failed(2, &["is there already"]);
        run(&line.replace("--salvage", "--skip-call 1:1 --salvage")).failed(2, &["cannot be used"]);
    }
    // A salvage that was killed has left its part.
    fs::create_dir(room.path("new.part")).unwrap();
    fs::write(room.path("new.part/image"), "half").unwrap();
    run(&format!("recover --salvage {} {store}", room.text("new"))).failed(1, &["did not end"]);
    assert_eq!(fs::read(room.path("new.part/image")).unwrap(), b"half");
    // Where there is nothing to read, nothing is left.
    run(&format!("recover --salvage {} {}", room.text("other"), room.text("directory")))
        .failed(1, &[]);
    let left = fs::read_dir(room.path("")).unwrap().map(|file| file.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("other")));
}
