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

/// Opens a database, runs epochs, and closes it. Returns what it has come to.
fn go_on(store: &Path, calls: u64) -> State {
    let db = common::options().checkpoint_every(1000).open(store).unwrap();
    run(&db, calls);
    let state = (db.stats().epoch, db.stats().state_hash);
    db.close().unwrap();
    state
}

/// A backup onto a copy is refused, because that has epochs which the database lacks; the copy is
/// as it was, and the database is copied to another directory.
fn check_is_kept(place: &Place, store: &Path, copy: &Path) {
    let before = bytes(copy);
    let db = common::options().open(store).unwrap();
    let of_database = db.backup(copy).map(|_| ()).unwrap_err().to_string();
    db.close().unwrap();
    for error in [of_database, backup(store, copy).unwrap_err().to_string()] {
        assert!(error.contains("that this database does not have"), "{error}");
        assert!(bytes(copy) == before, "the copy is as it was");
    }
    let state = place.opened(store).unwrap();
    assert_eq!(place.made(|to| backup(store, to)).unwrap(), state);
}

/// S23: an older state of a database that was put back, and went on, is no later state of it.
#[test]
fn s_23_an_older_state_that_went_on_does_not_replace_a_copy() {
    let place = Place(directory());
    let (running, old, good) = (place.path("running"), place.path("old"), place.path("good"));
    go_on(&running, 10);
    let db = common::options().checkpoint_every(1000).open(&running).unwrap();
    run(&db, 5);
    copy(&running, &old);
    run(&db, 10);
    backup(&running, &good).unwrap();
    let epoch = db.stats().epoch;
    db.close().unwrap();
    assert!(go_on(&old, 30).0 > epoch, "its epochs are more than those of the copy");
    check_is_kept(&place, &old, &good);
    // Neither when further openings follow, nor by a copy of it.
    go_on(&old, 3);
    go_on(&old, 3);
    check_is_kept(&place, &old, &good);
    let of_old = place.path("of-old");
    backup(&old, &of_old).unwrap();
    let error = backup(&of_old, &good).unwrap_err().to_string();
    assert!(error.contains("that this database does not have"), "{error}");
    backup(&running, &good).unwrap();
}

/// A database whose disk lost the end of the log, and all that says where it ended.
fn lose_the_end(store: &Path) {
    let mut log = fs::read(store.join("log")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap();
    log[end / 4096 * 4096..].fill(0);
    fs::write(store.join("log"), log).unwrap();
    let mut meta = fs::read(store.join("meta")).unwrap();
    meta[2 * 4096..].fill(0);
    fs::write(store.join("meta"), meta).unwrap();
}

/// S23: epochs that a disk lost without a trace stay in the copies that have them.
#[test]
fn s_23_a_lost_end_of_the_log_does_not_replace_a_copy() {
    let place = Place(directory());
    let (running, lost, good) = (place.path("running"), place.path("lost"), place.path("good"));
    let db = common::options().checkpoint_every(1000).open(&running).unwrap();
    run(&db, 10);
    db.checkpoint().unwrap();
    run(&db, 20);
    let epoch = db.stats().epoch;
    backup(&running, &good).unwrap();
    copy(&running, &lost);
    lose_the_end(&lost);
    assert!(place.opened(&lost).unwrap().0 < epoch, "an epoch was lost, and nothing tells");
    assert!(go_on(&lost, 20).0 > epoch, "its epochs are more than those of the copy");
    check_is_kept(&place, &lost, &good);
    run(&db, 20);
    backup(&running, &good).unwrap();
}

/// S23: what an opening found is known to have been there, so that its loss is seen.
#[test]
fn s_23_a_log_that_lost_what_an_opening_found_is_refused() {
    let place = Place(directory());
    let (running, lost) = (place.path("running"), place.path("lost"));
    let db = common::options().checkpoint_every(1000).open(&running).unwrap();
    run(&db, 10);
    let epoch = db.stats().epoch;
    copy(&running, &lost);
    let older = place.path("older");
    copy(&running, &older);
    lose_the_end(&older);
    go_on(&lost, 0);
    for file in ["meta", "data", "table", "log"] {
        fs::copy(older.join(file), lost.join(file)).unwrap();
    }
    let before = bytes(&lost);
    for error in [place.opened(&lost), place.made(|to| backup(&lost, to))] {
        let error = error.unwrap_err();
        let said = format!("epoch {epoch} had ended");
        assert!(error.is_corrupt() && error.to_string().contains(&said), "{error}");
    }
    assert!(bytes(&lost) == before, "a refused open changes nothing");
    let files = FileOptions { create: false, ..FileOptions::new(1 << 30, 1 << 30) };
    let device = AnyDevice::new(File::open(&lost, &files).unwrap());
    repair::accept_loss(&device, EpochNumber(epoch - 1)).unwrap();
    drop(device);
    assert_eq!(place.opened(&lost).unwrap().0, epoch - 1, "the loss was accepted");
}

/// S23: a copy is brought up to date after any number of openings, whether the database was closed
/// or killed before, and after openings that wrote nothing.
#[test]
fn s_23_a_healthy_database_is_copied_after_any_opening() {
    let place = Place(directory());
    let (mut store, good) = (place.path("store-0"), place.path("good"));
    for round in 1..=12 {
        let db = common::options().checkpoint_every(5).open(&store).unwrap();
        backup(&store, &good).unwrap();
        run(&db, round % 4 * 3);
        if round % 3 != 0 {
            backup(&store, &good).unwrap();
        }
        let state = (db.stats().epoch, db.stats().state_hash);
        if round % 2 == 0 {
            let killed = place.path(&format!("store-{round}"));
            copy(&store, &killed);
            store = killed;
        } else {
            db.close().unwrap();
        }
        backup(&store, &good).unwrap();
        assert_eq!(place.opened(&good).unwrap().1, state.1, "round {round}");
    }
}

/// S23: many openings, with epochs and without, lie between two backups.
#[test]
fn s_23_a_database_is_copied_after_many_openings() {
    let place = Place(directory());
    let (store, good) = (place.path("store"), place.path("good"));
    let begun = place.path("begun");
    go_on(&store, 3);
    backup(&store, &good).unwrap();
    backup(&store, &begun).unwrap();
    for opening in 1..=60 {
        go_on(&store, opening % 3);
        if opening % 15 == 0 {
            backup(&store, &good).unwrap();
        }
    }
    backup(&store, &begun).unwrap();
    for copy in [&good, &begun] {
        assert_eq!(place.opened(copy).unwrap(), place.opened(&store).unwrap());
    }
}

/// S23: a database and a copy of before have no list of openings: it begins with the next opening.
#[test]
fn s_23_a_database_of_before_gets_its_openings() {
    let place = Place(directory());
    let (store, good) = (place.path("store"), place.path("good"));
    let openings = |of: &Path| of.join("openings");
    go_on(&store, 5);
    fs::remove_file(openings(&store)).unwrap();
    backup(&store, &good).unwrap();
    fs::remove_file(openings(&good)).unwrap();
    go_on(&store, 5);
    assert!(openings(&store).exists());
    backup(&store, &good).unwrap();
    assert!(openings(&good).exists());
    let old = place.path("old");
    copy(&store, &old);
    go_on(&store, 5);
    backup(&store, &good).unwrap();
    go_on(&old, 10);
    check_is_kept(&place, &old, &good);
}

/// A damaged list is named, by an open and by a backup from it or onto it; nothing is changed.
#[test]
fn o_59_a_damaged_list_of_openings_is_named() {
    let place = Place(directory());
    let (store, good, next) = (place.path("store"), place.path("good"), place.path("next"));
    go_on(&store, 5);
    go_on(&store, 5);
    backup(&store, &good).unwrap();
    for (damaged, from, to) in [(&store, &store, &next), (&good, &store, &good)] {
        let path = damaged.join("openings");
        let whole = fs::read(&path).unwrap();
        let mut bytes_of_it = whole.clone();
        for slot in [0, 20_480] {
            bytes_of_it[slot..slot + 100].fill(7);
        }
        fs::write(&path, bytes_of_it).unwrap();
        let before = bytes(damaged);
        for error in [place.opened(damaged).unwrap_err(), backup(from, to).unwrap_err()] {
            let named = error.to_string().contains("openings is corrupt");
            assert!(error.is_corrupt() && named, "{error}");
        }
        assert!(bytes(damaged) == before && !next.exists());
        fs::write(&path, whole).unwrap();
    }
    backup(&store, &good).unwrap();
}
