//! Copies of databases whose log was cut: what an open refuses, no copy makes clean.

use std::fs;
use std::path::{Path, PathBuf};

use nvcaracal::{Database, Error, Moment};
use pmem::{AnyDevice, File, FileOptions};
use storage::repair;
use storage::{CopyKind, EpochNumber, copy_store};

use crate::common::{self, Deposit, bytes, copy, directory};

/// What opening a database comes to: its last epoch and state.
type State = (u64, u128);

struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Opens a copy of a directory, byte by byte, and removes it.
    fn opened(&self, of: &Path) -> Result<State, Error> {
        let dir = self.path("opened");
        copy(of, &dir);
        let found = common::options().open(&dir).map(|db| {
            let state = (db.stats().epoch, db.stats().state_hash);
            drop(db);
            state
        });
        fs::remove_dir_all(dir).unwrap();
        found
    }

    /// Does something with a new place; nothing is there if it is refused. Returns what the result
    /// opens to.
    fn made<T>(&self, make: impl FnOnce(&Path) -> Result<T, Error>) -> Result<State, Error> {
        let target = self.path("made");
        if let Err(error) = make(&target) {
            for name in ["made", "made.incomplete"] {
                assert!(!self.path(name).exists(), "{name} was left: {error}");
            }
            return Err(error);
        }
        let state = self.opened(&target);
        fs::remove_dir_all(target).unwrap();
        state
    }
}

fn backup(from: &Path, to: &Path) -> Result<(), Error> {
    Ok(copy_store(from, to, CopyKind::Backup, &mut |_, _| {}).map(|_| ())?)
}

/// The logs that a cut at some places leaves: shorter, or with zeros behind the place.
fn cuts(log: &[u8]) -> Vec<Vec<u8>> {
    let end = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut cuts = Vec::new();
    for keep in [0, end / 2, end - 8] {
        let mut zeros = log[..keep].to_vec();
        zeros.resize(log.len(), 0);
        cuts.push(zeros);
        cuts.push(log[..keep / 4096 * 4096].to_vec());
    }
    cuts
}

/// Cuts the log of a database at several places. Each copy of it is refused, with everything as it
/// was, or is exactly what the database opens to. Returns how many cuts an open refused.
fn check_cuts(place: &Place, what: &str, source: &Path) -> usize {
    let whole = place.opened(source).unwrap();
    let good = place.path("good");
    backup(source, &good).unwrap();
    let good_bytes = bytes(&good);
    let log = fs::read(source.join("log")).unwrap();
    let mut refused = 0;
    for cut in cuts(&log) {
        fs::write(source.join("log"), &cut).unwrap();
        let opens = place.opened(source);
        refused += usize::from(opens.is_err());
        let made = [
            place.made(|to| backup(source, to)),
            place.made(|to| Database::restore(source, to, None)),
        ];
        for copied in made {
            match (&opens, copied) {
                (Ok(state), Ok(copied)) => assert_eq!(*state, copied, "{what}, {}", cut.len()),
                (Err(_), Err(error)) => assert!(error.is_corrupt(), "{what}: {error}"),
                (opens, copied) => panic!("{what}, {}: {opens:?}, {copied:?}", cut.len()),
            }
        }
        let of_archive = place
            .made(|to| Database::restore_to(source, to, place.path("archive"), Moment::Newest));
        if let Ok((_, hash)) = of_archive {
            assert_eq!(hash, whole.1, "{what}, {}: restored from the archive", cut.len());
        }
        if opens.is_err() {
            let error = backup(source, &good).unwrap_err();
            assert!(error.is_corrupt(), "{what}: {error}");
            assert!(bytes(&good) == good_bytes, "{what}: the earlier copy is as it was");
            assert!(!place.path("good.incomplete").exists(), "{what}: nothing is left");
        }
        fs::write(source.join("log"), &log).unwrap();
    }
    fs::remove_dir_all(good).unwrap();
    refused
}

/// Runs epochs of one call each.
fn run(db: &Database, calls: u64) {
    for account in 0..calls {
        db.call(Deposit { account, cents: 1 }).unwrap();
    }
}

/// S23: a database whose log was cut, running, killed, closed, restored or a copy, is not made
/// clean by copying it.
#[test]
fn s_23_no_copy_hides_that_a_log_was_cut() {
    let place = Place(directory());
    let options = || common::options().checkpoint_every(1000).archive(place.path("archive"));
    let running = place.path("running");
    let db = options().open(&running).unwrap();
    run(&db, 10);
    db.checkpoint().unwrap();
    run(&db, 30);
    copy(&running, &place.path("killed"));
    backup(&running, &place.path("copy")).unwrap();
    Database::restore(&running, place.path("restored"), None).unwrap();
    let epoch = db.stats().epoch;
    Database::restore(&running, place.path("earlier"), Some(epoch - 5)).unwrap();
    for what in ["running", "killed", "copy", "restored", "earlier"] {
        let refused = check_cuts(&place, what, &place.path(what));
        assert!(refused >= 5, "{what}: {refused} cuts were refused");
    }
    db.close().unwrap();
    let refused = check_cuts(&place, "closed", &running);
    assert!(refused >= 1, "closed: {refused} cuts were refused");
}

/// S23: a copy knows with which epoch it ends, also if its source had no mark of it yet.
#[test]
fn s_23_the_log_of_a_copy_has_an_end() {
    let place = Place(directory());
    let (store, source, made) = (place.path("store"), place.path("source"), place.path("copy"));
    let db = common::options().checkpoint_every(1000).open(&store).unwrap();
    run(&db, 30);
    copy(&store, &source);
    let mut meta = fs::read(source.join("meta")).unwrap();
    meta[2 * 4096..].fill(0);
    fs::write(source.join("meta"), meta).unwrap();
    backup(&source, &made).unwrap();
    assert_eq!(place.opened(&made).unwrap().1, db.stats().state_hash);
    let mut log = fs::read(made.join("log")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap();
    log[end - 8..].fill(0);
    fs::write(made.join("log"), log).unwrap();
    let error = place.opened(&made).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("had ended"), "{error}");
}

/// S23: a backup does not take the place of a copy that has later epochs, or that is of another
/// branch; both are as they were.
#[test]
fn s_23_a_backup_keeps_the_epochs_of_an_earlier_copy() {
    let place = Place(directory());
    let (running, old, good) = (place.path("running"), place.path("old"), place.path("good"));
    let db = common::options().checkpoint_every(1000).open(&running).unwrap();
    run(&db, 10);
    db.checkpoint().unwrap();
    run(&db, 5);
    copy(&running, &old);
    let older = db.stats().epoch;
    run(&db, 5);
    backup(&running, &good).unwrap();
    let newer = db.stats().epoch;
    let restored = place.path("restored");
    Database::restore(&good, &restored, None).unwrap();
    let (good_bytes, restored_bytes) = (bytes(&good), bytes(&restored));
    for (from, to, said) in [
        (&old, &good, format!("has epochs up to {newer}, and the database up to {older}")),
        (&restored, &good, "is of another branch".to_string()),
        (&running, &restored, "is of another branch".to_string()),
    ] {
        let error = backup(from, to).unwrap_err().to_string();
        assert!(error.contains(&said), "wanted {said:?}, got: {error}");
        assert!(bytes(&good) == good_bytes && bytes(&restored) == restored_bytes, "{said}");
        for left in ["good.incomplete", "restored.incomplete"] {
            assert!(!place.path(left).exists(), "{said}");
        }
    }
    backup(&running, &good).unwrap();
    run(&db, 5);
    backup(&running, &good).unwrap();
    assert_eq!(place.opened(&good).unwrap(), (db.stats().epoch, db.stats().state_hash));
}

/// S23: epochs after an accepted loss are others than those of the same numbers that were lost: no
/// backup takes the place of a copy that has those, and the archive keeps both apart.
#[test]
fn s_23_an_accepted_loss_begins_a_branch() {
    let place = Place(directory());
    let archive = place.path("archive");
    let options = || common::options().checkpoint_every(1000).archive(&archive);
    let (running, cut) = (place.path("running"), place.path("cut"));
    let (early, late) = (place.path("early"), place.path("late"));
    let db = options().open(&running).unwrap();
    run(&db, 5);
    backup(&running, &early).unwrap();
    run(&db, 10);
    backup(&running, &late).unwrap();
    copy(&running, &cut);
    db.close().unwrap();
    let before = place.opened(&running).unwrap();

    fs::File::options().write(true).open(cut.join("log")).unwrap().set_len(16_384).unwrap();
    let error = place.opened(&cut).unwrap_err().to_string();
    let last = error.split("--accept-loss-after ").nth(1).expect("what to do");
    let last: u64 = last.split(' ').next().unwrap().parse().unwrap();
    let files = FileOptions { create: false, ..FileOptions::new(1 << 30, 1 << 30) };
    let device = AnyDevice::new(File::open(&cut, &files).unwrap());
    repair::accept_loss(&device, EpochNumber(last)).unwrap();
    drop(device);
    let db = common::options().checkpoint_every(1000).open(&cut).unwrap();
    run(&db, 20);
    db.close().unwrap();

    let bytes_before = bytes(&late);
    let refused = backup(&cut, &late).unwrap_err().to_string();
    assert!(refused.contains("is of another branch"), "{refused}");
    assert!(bytes(&late) == bytes_before, "the copy is as it was");
    let db = options().open(&cut).unwrap();
    run(&db, 20);
    db.close().unwrap();
    let restored = place.path("restored");
    Database::restore_to(&early, &restored, &archive, Moment::Newest).unwrap();
    assert_eq!(place.opened(&restored).unwrap(), before);
}
