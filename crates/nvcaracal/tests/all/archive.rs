//! The archive of the log, and databases that are restored to a moment from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use nvcaracal::{Database, Error, Moment, Options};

use crate::common::{self, Deposit, copy, directory};

static CLOCK: AtomicU64 = AtomicU64::new(1_000_000_000);

/// A second for each time that it is asked.
fn clock() -> u64 {
    CLOCK.fetch_add(1_000_000_000, Ordering::Relaxed)
}

fn options(archive: &Path) -> Options {
    common::options().checkpoint_every(3).wall_clock(clock).archive(archive)
}

/// The state after each epoch.
type States = BTreeMap<u64, u128>;

/// Runs epochs of one call each.
fn run(db: &Database, states: &mut States, calls: u64, cents: i64) -> Result<(), Error> {
    for call in 0..calls {
        db.call(Deposit { account: call % 7, cents: cents + call as i64 })?;
        states.insert(db.stats().epoch, db.stats().state_hash);
    }
    Ok(())
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: directory() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The state of a database that was restored, and its last epoch.
    fn opened(&self, name: &str) -> Result<(u64, u128), Error> {
        let db = common::options().checkpoint_every(3).open(self.path(name))?;
        let found = (db.stats().epoch, db.stats().state_hash);
        db.close()?;
        Ok(found)
    }

    fn restore(&self, name: &str, moment: Moment) -> Result<u64, Error> {
        let [from, to, archive] = ["copy", name, "archive"].map(|name| self.path(name));
        Ok(Database::restore_to(from, to, archive, moment)?.epoch)
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path("archive")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// A database with a copy from its beginning, an archive, and the states of its epochs.
fn archived(place: &Place, calls: u64) -> Result<States, Error> {
    let mut states = States::new();
    let db = options(&place.path("archive")).open(place.path("store"))?;
    run(&db, &mut states, 4, 10)?;
    db.checkpoint()?;
    db.backup(place.path("copy"))?;
    run(&db, &mut states, calls, 100)?;
    db.close()?;
    Ok(states)
}

/// O-25, S23: every epoch and every time since the copy can be had again, also that of the close.
#[test]
fn s_23_a_database_is_restored_to_any_epoch_or_time() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 40)?;
    assert!(place.files().len() > 3, "{:?}", place.files());
    let (last, hash) = states.last_key_value().unwrap();
    assert!(place.restore("newest", Moment::Newest)? >= *last);
    assert_eq!(place.opened("newest")?.1, *hash);
    let mut times = 0;
    for (epoch, hash) in states.iter().skip(4).step_by(3) {
        let name = format!("epoch-{epoch}");
        assert_eq!(place.restore(&name, Moment::Epoch(*epoch))?, *epoch);
        assert_eq!(place.opened(&name)?, (*epoch, *hash), "epoch {epoch}");
    }
    for seconds in 2..CLOCK.load(Ordering::Relaxed) / 1_000_000_000 {
        if times == 8 {
            break;
        }
        let time = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 500);
        let name = format!("time-{seconds}");
        let Ok(epoch) = place.restore(&name, Moment::Time(time)) else { continue };
        if let Some(hash) = states.get(&epoch) {
            assert_eq!(place.opened(&name)?, (epoch, *hash), "{seconds} s");
            times += 1;
        }
    }
    assert_eq!(times, 8, "times in between were found");
    let error = place.restore("before", Moment::Time(UNIX_EPOCH)).unwrap_err();
    assert!(error.to_string().contains("is of a later time"), "{error}");
    Ok(())
}

/// S23: a database that was restored is a branch. Neither does the future that it gave up become a
/// part of it, though the numbers of its epochs are the same, nor the other way round.
#[test]
fn s_23_a_branch_and_the_future_that_it_gave_up_are_never_mixed() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 30)?;
    let middle = *states.keys().nth(15).unwrap();
    place.restore("branch", Moment::Epoch(middle))?;
    let db = options(&place.path("archive")).open(place.path("branch"))?;
    assert_eq!(db.stats().state_hash, states[&middle]);
    let mut others = States::new();
    run(&db, &mut others, 5, 7777)?;
    db.backup(place.path("copy-of-branch"))?;
    run(&db, &mut others, 20, 5555)?;
    db.close()?;
    // The same numbers, other states.
    let both: Vec<u64> =
        others.keys().copied().filter(|epoch| states.contains_key(epoch)).collect();
    assert!(both.len() > 5 && both.iter().all(|epoch| states[epoch] != others[epoch]));
    let epoch = *both.last().unwrap();
    place.restore("of-before", Moment::Epoch(epoch))?;
    assert_eq!(place.opened("of-before")?, (epoch, states[&epoch]));
    fs::rename(place.path("copy"), place.path("copy-of-before")).unwrap();
    fs::rename(place.path("copy-of-branch"), place.path("copy")).unwrap();
    place.restore("of-branch", Moment::Epoch(epoch))?;
    assert_eq!(place.opened("of-branch")?, (epoch, others[&epoch]));
    let newest = place.restore("newest", Moment::Newest)?;
    assert!(newest >= *others.keys().last().unwrap());
    assert_eq!(place.opened("newest")?.1, *others.values().last().unwrap());
    Ok(())
}

/// S23: a copy that goes on as if it were the database would take the numbers of epochs that are
/// archived.
#[test]
fn s_23_a_copy_is_no_database_to_archive() -> Result<(), Error> {
    let place = Place::new();
    archived(&place, 20)?;
    let opened = options(&place.path("archive")).open(place.path("copy"));
    let error = opened.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("it is an earlier copy") && error.contains("restore"), "{error}");
    Ok(())
}

/// Epochs that are missing are named, and nothing is made; so are damaged files.
#[test]
fn o_59_what_is_missing_or_damaged_is_named() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 40)?;
    let refused = |moment| {
        let error = place.restore("refused", moment).unwrap_err().to_string();
        assert!(!place.path("refused").exists(), "nothing is made: {error}");
        error
    };
    let later = refused(Moment::Epoch(100_000));
    assert!(later.contains("lacks epochs") && later.contains("to 100000"), "{later}");
    // In the middle, behind what the copy has itself.
    let files = place.files();
    let file = &files[files.len() / 2];
    let name = file.file_name().unwrap().to_str().unwrap().to_string();
    let numbers: Vec<u64> =
        name[34..].trim_end_matches(".epochs").split('-').map(|n| n.parse().unwrap()).collect();
    let bytes = fs::read(file).unwrap();
    for at in [3, 40, 63, 64, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs::write(file, damaged).unwrap();
        let error = refused(Moment::Newest);
        let wanted = format!("{name} is damaged, so epochs {} to {}", numbers[0], numbers[1]);
        assert!(error.contains(&wanted), "{at}: {error}");
    }
    fs::write(file, &bytes[..bytes.len() - 10]).unwrap();
    assert!(refused(Moment::Newest).contains("is damaged"));
    fs::remove_file(file).unwrap();
    let wanted = format!("lacks epochs {} to {} of this", numbers[0], numbers[1]);
    for moment in [Moment::Newest, Moment::Epoch(*states.keys().last().unwrap())] {
        let error = refused(moment);
        assert!(error.contains(&wanted), "{error}");
    }
    // As far as before that there is all that is needed.
    place.restore("before", Moment::Epoch(numbers[0] - 1))?;
    assert_eq!(place.opened("before")?.1, states[&(numbers[0] - 1)]);
    let other = Place::new();
    archived(&other, 10)?;
    fs::remove_dir_all(place.path("archive")).unwrap();
    copy(&other.path("archive"), &place.path("archive"));
    let error = refused(Moment::Newest);
    assert!(error.contains("has epochs of other databases only"), "{error}");
    Ok(())
}

/// An archive that cannot be written is told, and calls go on; nothing is lost to it, also if the
/// process ends meanwhile.
#[test]
fn o_23_log_is_kept_until_it_is_archived() -> Result<(), Error> {
    for is_killed in [false, true] {
        let place = Place::new();
        let mut states = States::new();
        let db = options(&place.path("archive")).open(place.path("store"))?;
        run(&db, &mut states, 4, 10)?;
        db.backup(place.path("copy"))?;
        // A file where the directory is to be: nothing can be made in it.
        fs::rename(place.path("archive"), place.path("elsewhere")).unwrap();
        fs::write(place.path("archive"), "in the way").unwrap();
        run(&db, &mut states, 30, 100)?;
        db.checkpoint()?;
        run(&db, &mut states, 1, 100)?;
        let told = db.stats().archive_error.expect("it is told");
        assert!(told.contains("archive/"), "{told}");
        let back = || {
            fs::remove_file(place.path("archive")).unwrap();
            fs::rename(place.path("elsewhere"), place.path("archive")).unwrap();
        };
        if is_killed {
            copy(&place.path("store"), &place.path("killed"));
            drop(db);
            back();
            let db = options(&place.path("archive")).open(place.path("killed"))?;
            run(&db, &mut states, 5, 100)?;
            db.close()?;
        } else {
            back();
            run(&db, &mut states, 6, 100)?;
            db.checkpoint()?;
            run(&db, &mut states, 1, 100)?;
            assert_eq!(db.stats().archive_error, None);
            db.close()?;
        }
        for epoch in states.keys().copied().filter(|epoch| epoch % 5 == 0) {
            let name = format!("epoch-{epoch}");
            match place.restore(&name, Moment::Epoch(epoch)) {
                Ok(_) => assert_eq!(place.opened(&name)?, (epoch, states[&epoch]), "{is_killed}"),
                Err(error) => assert!(error.to_string().contains("is before"), "{error}"),
            }
        }
        let (last, hash) = states.last_key_value().unwrap();
        assert!(place.restore("newest", Moment::Newest)? >= *last);
        assert_eq!(place.opened("newest")?.1, *hash);
    }
    Ok(())
}

/// Where the log has no room because of that, the error says so.
#[test]
fn o_43_a_full_log_says_that_its_archive_fails() -> Result<(), Error> {
    let place = Place::new();
    let small = |archive| options(archive).log_bytes_max(1 << 20);
    let db = small(&place.path("archive")).open(place.path("store"))?;
    db.call(Deposit { account: 1, cents: 1 })?;
    fs::remove_dir_all(place.path("archive")).unwrap();
    fs::write(place.path("archive"), "in the way").unwrap();
    let error = (0..1000).find_map(|n| db.call(Deposit { account: 1, cents: n }).err());
    let error = error.expect("the log gets full");
    assert!(error.is_full() && error.to_string().contains("its archive fails"), "{error}");
    fs::remove_file(place.path("archive")).unwrap();
    fs::create_dir(place.path("archive")).unwrap();
    db.checkpoint()?;
    db.call(Deposit { account: 1, cents: 1 })?;
    db.close()
}
