//! Mistakes that users make, and the words that they read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nvcaracal::{
    Database, DeviceSpec, Error, ErrorKind, HashTable, Options, Stop, Table, Transaction, Tuning,
    procedure,
};

use crate::common::{Deposit, dram, options};

const NOTES: HashTable<u64, Vec<u8>> = Table::hash("notes").with_value_bytes(100_000);

#[procedure]
fn note(tx: &mut Transaction, key: u64, text: &Vec<u8>) -> Result<(), Stop> {
    tx.insert(NOTES, key, text)
}

fn notes() -> Options {
    Database::options().table(NOTES).procedure::<Note>()
}

/// What an open is refused with.
fn refused(options: Options) -> (ErrorKind, String) {
    let error = options.open_device(DeviceSpec::Dram).map(drop).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn options_beyond_their_range_are_refused_with_the_range() {
    for (options, words) in [
        (notes().workers(0), "workers is 0, must be from 1 to 64"),
        (notes().workers(65), "workers is 65, must be from 1 to 64"),
        (
            notes().tuning(Tuning { queue_calls_max: 0, ..Tuning::default() }),
            "queue_calls_max is 0, must be from 1 to 16777215",
        ),
        (
            notes().tuning(Tuning { epoch_calls_max: 0, ..Tuning::default() }),
            "epoch_calls_max is 0, must be from 1 to 16777215",
        ),
    ] {
        assert_eq!(refused(options), (ErrorKind::Limit, words.to_string()));
    }
}

/// A queue with room for nothing large says how much it holds.
#[test]
fn a_batch_larger_than_the_queue_is_told_the_size_of_the_queue() {
    let db = dram(options().tuning(Tuning { queue_calls_max: 2, ..Tuning::default() }));
    let mut batch = db.batch();
    for account in 0..3 {
        let _ = batch.add(&Deposit { account, cents: 1 });
    }
    let error = batch.submit().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().starts_with("3 calls with "), "{error}");
    assert!(error.to_string().contains("holds at most 2 calls"), "{error}");
}

/// What is printed where an error is printed as a struct would be: by `main`, `unwrap` and `{:?}`.
#[test]
fn errors_are_sentences_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let error = notes().create(false).open(directory.path().join("none")).map(drop).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("none"), "{sentence}");
    assert_eq!(format!("{error:?}"), sentence);
    let boxed: Box<dyn std::error::Error> = error.into();
    assert_eq!(format!("{boxed:?}"), sentence);
}

#[test]
fn a_database_that_is_open_elsewhere_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes");
    let db = notes().open(&path).unwrap();
    let error = notes().open(&path).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(error.to_string().contains("this process already has this database open"), "{error}");
    db.close().unwrap();
    let error = db_is_closed(&path);
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Closed, "the database is closed".into())
    );
}

fn db_is_closed(path: &Path) -> Error {
    let db = notes().open(path).unwrap();
    let after = db.clone();
    db.close().unwrap();
    after.call(Note { key: 1, text: vec![] }).unwrap_err()
}

/// A small file system in memory, unmounted when dropped. `None` if this user may not mount.
struct SmallDisk<'p>(&'p Path);

impl<'p> SmallDisk<'p> {
    fn mount(at: &'p Path, bytes: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"]).arg(at);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// On a full disk calls fail with that word, and when there is room they go on; nothing that was
/// answered is lost, also by a program that ends meanwhile.
#[test]
fn on_a_full_disk_calls_fail_with_that_word_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = SmallDisk::mount(directory.path(), "64m") else {
        return eprintln!("SKIPPED: this user may not mount a file system");
    };
    let (path, other) = (directory.path().join("notes"), directory.path().join("other"));
    fs::write(&other, vec![7; 16 << 20]).unwrap();
    let options = || {
        notes()
            .tuning(Tuning { segment_bytes: 1 << 20, ..Tuning::default() })
            .checkpoint_every(1_000_000)
    };
    let db = options().open(&path).unwrap();
    let text = |key: u64| vec![key as u8; 90_000];
    let mut answered = 0;
    let full = loop {
        match db.call(Note { key: answered, text: text(answered) }) {
            Ok(()) => answered += 1,
            Err(error) => break error,
        }
        assert!(answered < 1000, "64 MiB are never full");
    };
    assert!(full.is_full(), "{full}");
    assert_eq!(full.kind(), ErrorKind::Full);
    assert!(full.to_string().contains("no room"), "{full}");
    assert!(db.call(Note { key: answered, text: text(answered) }).unwrap_err().is_full());
    for key in 0..answered {
        assert_eq!(db.get(NOTES, key).unwrap(), Some(text(key)), "it can be read");
    }
    fs::remove_file(&other).unwrap();
    db.call(Note { key: answered, text: text(answered) }).unwrap();
    drop(db);
    let db = options().open(&path).unwrap();
    for key in 0..=answered {
        assert_eq!(db.get(NOTES, key).unwrap(), Some(text(key)));
    }
}
