//! The archive of the log, and databases that are restored to a moment from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvcaracal::{Database, Error, Moment, Options};
use pmem::{DiskCall, DiskFile, DiskHook, DiskOperation, Outcome};

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
    let made = db.backup(place.path("copy"))?;
    assert_eq!(made.written_bytes, made.bytes, "all of a new copy is written");
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

/// S23: a database that was restored, and whose log was cut before it was opened, is damaged.
#[test]
fn s_23_the_log_of_a_restored_database_has_an_end() -> Result<(), Error> {
    let place = Place::new();
    archived(&place, 40)?;
    let last = place.restore("whole", Moment::Newest)?;
    let log = std::fs::read(place.path("whole").join("log")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap();
    for keep in [end / 2, end * 9 / 10, end - 8] {
        let name = format!("cut-{keep}");
        place.restore(&name, Moment::Newest)?;
        let mut cut = log[..keep].to_vec();
        cut.resize(log.len(), 0);
        std::fs::write(place.path(&name).join("log"), cut).unwrap();
        let error = place.opened(&name).unwrap_err();
        assert!(error.is_corrupt(), "{keep} of {end}: {error}");
    }
    assert_eq!(place.opened("whole")?.0, last);
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

/// S23: a database that lost epochs which are archived, and wrote others of the same numbers while
/// it had no archive, does not archive beside them.
#[test]
fn s_23_a_database_that_lost_epochs_does_not_archive_beside_them() -> Result<(), Error> {
    let place = Place::new();
    let (store, old, archive) = (place.path("store"), place.path("old"), place.path("archive"));
    let mut states = States::new();
    let db = options(&archive).open(&store)?;
    run(&db, &mut states, 10, 10)?;
    copy(&store, &old);
    run(&db, &mut states, 10, 20)?;
    db.close()?;
    let without = || common::options().checkpoint_every(3);
    let db = without().open(&old)?;
    run(&db, &mut States::new(), 30, 30)?;
    db.close()?;
    for _ in 0..2 {
        let files = place.files();
        let error = options(&archive).open(&old).map(|_| ()).unwrap_err().to_string();
        let said = "epochs of this database up to";
        assert!(error.contains(said) && error.contains("it lost them"), "{error}");
        assert_eq!(place.files(), files);
        // Neither after further openings.
        without().open(&old)?.close()?;
    }
    let db = options(&archive).open(&store)?;
    run(&db, &mut states, 10, 40)?;
    db.close()
}

/// S23: what is archived is not put behind a copy that has others of the epochs before.
#[test]
fn s_23_a_copy_does_not_go_on_with_other_epochs_than_its_own() -> Result<(), Error> {
    let place = Place::new();
    let (store, old) = (place.path("store"), place.path("old"));
    let db = common::options().checkpoint_every(3).open(&store)?;
    run(&db, &mut States::new(), 10, 10)?;
    copy(&store, &old);
    run(&db, &mut States::new(), 10, 20)?;
    let copied = db.backup(place.path("copy"))?.epoch;
    db.close()?;
    let db = options(&place.path("archive")).open(&old)?;
    run(&db, &mut States::new(), 30, 30)?;
    db.close()?;
    let error = place.restore("newest", Moment::Newest).unwrap_err().to_string();
    assert!(error.contains("goes on from other epochs than the copy has"), "{error}");
    assert!(!place.path("newest").exists());
    assert_eq!(place.restore("own", Moment::Epoch(copied))?, copied);
    place.opened("own").map(|_| ())
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

/// A database whose archive cannot be is refused before anything of it is there, and an archive is
/// not made for a database that is refused.
#[test]
fn a_refused_archive_or_database_leaves_nothing() -> Result<(), Error> {
    let place = Place::new();
    fs::write(place.path("file"), "not ours").unwrap();
    for archive in ["file", "file/archive"] {
        let archive = place.path(archive);
        let refused = options(&archive).open(place.path("store")).unwrap_err().to_string();
        assert!(refused.contains(&archive.display().to_string()), "{refused}");
        assert!(!place.path("store").exists(), "{refused}");
    }
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "not ours");

    fs::create_dir(place.path("taken")).unwrap();
    fs::write(place.path("taken/file"), "not ours").unwrap();
    let archive = place.path("made/for/it");
    options(&archive).open(place.path("taken")).unwrap_err();
    assert!(!place.path("made").exists());
    // A directory that was there stays.
    fs::create_dir(place.path("made")).unwrap();
    options(&archive).open(place.path("taken")).unwrap_err();
    assert!(place.path("made").exists() && !place.path("made/for").exists());
    options(&archive).open(place.path("store"))?.close()
}

/// Who waits for an epoch has it in the archive, or is told why not.
#[test]
fn an_archived_epoch_is_waited_for() -> Result<(), Error> {
    let place = Place::new();
    let none = common::options().open(place.path("none"))?;
    assert!(none.wait_archived(1).unwrap_err().is_mistake());
    none.close()?;

    let delay = Duration::from_millis(20);
    let options = || common::options().checkpoint_every(1_000_000).wall_clock(clock);
    let options = || options().archive(place.path("archive")).archive_delay(delay);
    let mut states = States::new();
    let db = options().open(place.path("store"))?;
    run(&db, &mut states, 2, 10)?;
    let (last, _) = states.last_key_value().unwrap();
    db.wait_archived(*last)?;
    assert!(!place.files().is_empty(), "it is there");
    db.wait_archived(1)?;

    // One that cannot come.
    fs::remove_dir_all(place.path("archive")).unwrap();
    fs::write(place.path("archive"), "in the way").unwrap();
    run(&db, &mut states, 1, 10)?;
    let (last, _) = states.last_key_value().unwrap();
    let told = db.wait_archived(*last).unwrap_err().to_string();
    assert!(told.contains("archive"), "{told}");
    fs::remove_file(place.path("archive")).unwrap();
    fs::create_dir(place.path("archive")).unwrap();
    // It is tried again: the error of before may still be told once.
    while db.wait_archived(*last).is_err() {
        db.checkpoint()?;
    }

    // One that never comes, of a database that is closed.
    let closed = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| db.wait_archived(u64::MAX));
        db.clone().close()?;
        let waited = waiting.join().expect("no panic");
        Ok::<_, Error>(waited.unwrap_err().is_stopped())
    })?;
    assert!(closed, "it does not wait for ever");
    Ok(())
}

/// O-25: what was answered comes to the archive of a database that is idle and makes no checkpoint,
/// and with each checkpoint before that is answered; a process that is killed then leaves no gap.
#[test]
fn o_25_epochs_are_archived_without_a_checkpoint() -> Result<(), Error> {
    let place = Place::new();
    let options = |delay| {
        let options = common::options().checkpoint_every(1_000_000).wall_clock(clock);
        options.archive(place.path("archive")).archive_delay(Duration::from_millis(delay))
    };
    let mut states = States::new();
    let db = options(20).open(place.path("store"))?;
    db.backup(place.path("copy"))?;
    for round in 0..3 {
        run(&db, &mut states, 2, 10)?;
        let (last, hash) = states.last_key_value().unwrap();
        db.wait_archived(*last)?;
        let name = format!("round-{round}");
        assert_eq!(place.restore(&name, Moment::Newest)?, *last);
        assert_eq!(place.opened(&name)?, (*last, *hash));
    }
    assert_eq!(db.stats().checkpoint_epoch, 0, "none was made");
    // As the end of a killed process, whose archive is ahead of its checkpoint.
    copy(&place.path("store"), &place.path("killed"));
    db.close()?;
    let db = options(3_600_000).open(place.path("killed"))?;
    run(&db, &mut states, 5, 1000)?;
    let last = *states.keys().last().unwrap();
    assert!(place.restore("too-early", Moment::Epoch(last)).is_err(), "it waits for an hour");
    db.checkpoint()?;
    for (epoch, hash) in &states {
        let name = format!("epoch-{epoch}");
        assert_eq!(place.restore(&name, Moment::Epoch(*epoch))?, *epoch);
        assert_eq!(place.opened(&name)?, (*epoch, *hash));
    }
    Ok(())
}

/// O-59: a time behind the newest epoch that is known is refused with that epoch and its time: what
/// was answered until then may be missing.
#[test]
fn o_59_a_time_that_is_not_reached_is_refused() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 10)?;
    let (last, hash) = states.last_key_value().unwrap();
    let error = place.restore("late", Moment::Time(SystemTime::now())).unwrap_err();
    assert!(error.is_limit() && error.to_string().contains(&format!("newest is {last}, of ")));
    assert!(!place.path("late").exists(), "nothing is made");
    let text = error.to_string();
    let newest = text.split("newest is ").nth(1).unwrap().split(' ').nth(2).unwrap();
    let newest = UNIX_EPOCH + Duration::from_nanos(newest.parse().unwrap());
    let error = place.restore("late", Moment::Time(newest + Duration::from_nanos(1)));
    assert!(error.is_err(), "a nanosecond later is not reached");
    assert_eq!(place.restore("newest", Moment::Time(newest))?, *last);
    assert_eq!(place.opened("newest")?, (*last, *hash));
    // The file with the last epochs is lost.
    fs::remove_file(place.files().last().unwrap()).unwrap();
    assert!(place.restore("lost", Moment::Time(newest)).is_err());
    Ok(())
}

/// What a process that was killed has begun to archive goes at the next open of any database that
/// archives there; what a process still writes stays.
#[test]
fn what_was_begun_to_be_archived_is_removed() -> Result<(), Error> {
    let place = Place::new();
    archived(&place, 10)?;
    let file = place.files().pop().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let own = file.with_extension("incomplete");
    let later = own.with_file_name(format!("{}-000000009999-000000010000.incomplete", &name[..33]));
    let other = own.with_file_name(format!("{:016x}{}", 77, &name[16..name.len() - 6]));
    let other = other.with_extension("incomplete");
    let foreign = own.with_file_name("holiday.incomplete");
    let written = own.with_file_name(format!("{:016x}{}", 78, &name[16..name.len() - 6]));
    let written = written.with_extension("incomplete");
    for path in [&own, &later, &other, &foreign, &written] {
        fs::write(path, "a part").unwrap();
    }
    let writer = fs::File::open(&written).unwrap();
    writer.lock().unwrap();
    options(&place.path("archive")).open(place.path("store"))?.close()?;
    let are_there = [&own, &later, &other, &foreign, &written].map(|path| path.exists());
    assert_eq!(are_there, [false, false, false, true, true]);
    Ok(())
}

/// Reads of the log fail.
#[derive(Debug)]
struct Unread(AtomicBool);

impl DiskHook for Unread {
    fn before(&self, call: &DiskCall<'_>) -> Outcome {
        let is_read = matches!(call.operation, DiskOperation::Read { .. });
        match call.file == DiskFile::Log && is_read && self.0.load(Ordering::Relaxed) {
            true => Outcome::Fail(5),
            false => Outcome::Proceed,
        }
    }
}

/// Each try has more epochs, and so a file of another name.
#[test]
fn a_try_to_archive_that_fails_leaves_no_file() -> Result<(), Error> {
    let place = Place::new();
    let hook = Arc::new(Unread(AtomicBool::new(false)));
    let db = options(&place.path("archive")).disk_hook(hook.clone()).open(place.path("store"))?;
    hook.0.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        run(&db, &mut States::new(), 6, 10)?;
        db.checkpoint()?;
    }
    assert!(db.stats().archive_error.is_some(), "it is told");
    assert_eq!(place.files(), [] as [PathBuf; 0]);
    hook.0.store(false, Ordering::Relaxed);
    run(&db, &mut States::new(), 6, 10)?;
    db.close()?;
    let finished = |path: &PathBuf| path.extension().is_some_and(|what| what == "epochs");
    assert!(!place.files().is_empty() && place.files().iter().all(finished), "{:?}", place.files());
    Ok(())
}

/// Nothing is archived into another database: it would be copied and removed with that.
#[test]
fn an_archive_inside_of_another_database_is_refused() -> Result<(), Error> {
    let place = Place::new();
    common::options().open(place.path("other"))?.close()?;
    std::os::unix::fs::symlink(place.path("other"), place.path("link")).unwrap();
    for name in ["other", "other/a/b", "link/c"] {
        let archive = place.path(name);
        let before = common::bytes(&place.path("other"));
        let error = options(&archive).open(place.path("store")).unwrap_err();
        assert!(error.is_mistake(), "{error}");
        assert!(error.to_string().contains("is inside of the database"), "{error}");
        assert!(!place.path("store").exists() && common::bytes(&place.path("other")) == before);
    }
    options(&place.path("archive")).open(place.path("store"))?.close()
}

/// O-59: a time that falls among epochs that are missing is refused: they may be of then or before.
#[test]
fn o_59_a_time_among_missing_epochs_is_refused() -> Result<(), Error> {
    let place = Place::new();
    archived(&place, 40)?;
    let files = place.files();
    // The one behind what the copy has itself: all that is left is later.
    fs::remove_file(&files[files.len() / 2]).unwrap();
    let mut refusals = 0;
    for seconds in 2..CLOCK.load(Ordering::Relaxed) / 1_000_000_000 {
        let moment = Moment::Time(UNIX_EPOCH + Duration::from_secs(seconds));
        let name = format!("time-{seconds}");
        match place.restore(&name, moment) {
            Ok(epoch) => {
                // What is restored to a time is what restoring to its epoch gives.
                place.restore(&format!("again-{seconds}"), Moment::Epoch(epoch))?;
                let later = Moment::Epoch(epoch + 1);
                let has_next = place.restore(&format!("next-{seconds}"), later).is_ok();
                assert!(has_next, "{seconds} s: epoch {} is missing and may be wanted", epoch + 1);
            }
            Err(error) if error.to_string().contains("lacks epochs") => refusals += 1,
            Err(error) => assert!(error.is_limit(), "{error}"),
        }
    }
    assert!(refusals > 0, "a time fell among them");
    Ok(())
}

/// O-59: a directory with nothing in it is no archive: what it should have is not left out.
#[test]
fn o_59_an_empty_archive_is_refused() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 10)?;
    let own = *states.keys().nth(3).unwrap();
    fs::remove_dir_all(place.path("archive")).unwrap();
    for moment in [Moment::Newest, Moment::Epoch(own), Moment::Epoch(own + 1)] {
        let error = place.restore("missing", moment).unwrap_err();
        assert!(error.to_string().contains("archive"), "{error}");
    }
    fs::create_dir(place.path("archive")).unwrap();
    fs::write(place.path("archive").join("notes"), "of somebody else").unwrap();
    for moment in [Moment::Newest, Moment::Epoch(own), Moment::Epoch(own + 1)] {
        let error = place.restore("empty", moment).unwrap_err();
        let text = error.to_string();
        assert!(error.is_limit() && text.contains("has no archived epochs"), "{text}");
        assert!(text.contains("restore without an archive"), "{text}");
        assert!(!place.path("empty").exists(), "nothing is made");
    }
    Ok(())
}

/// O-59: times that no epoch can have are mistakes, and no other time is taken for them.
#[test]
fn o_59_times_that_no_epoch_has_are_refused() -> Result<(), Error> {
    let place = Place::new();
    archived(&place, 10)?;
    for time in
        [UNIX_EPOCH - Duration::from_nanos(1), UNIX_EPOCH + Duration::from_secs(20_000_000_000)]
    {
        let error = place.restore("never", Moment::Time(time)).unwrap_err();
        assert!(error.is_mistake(), "{error}");
        assert!(error.to_string().contains("from 1970 to 2554"), "{error}");
        assert!(!place.path("never").exists(), "nothing is made");
    }
    Ok(())
}

/// O-59: the empty state before the first epoch has no time. A time before that epoch is refused,
/// also if the copy has no checkpoint; the state itself is epoch 0.
#[test]
fn o_59_a_time_before_the_first_epoch_is_refused() -> Result<(), Error> {
    let place = Place::new();
    let mut states = States::new();
    let db = options(&place.path("archive")).checkpoint_every(1000).open(place.path("store"))?;
    run(&db, &mut states, 2, 10)?;
    assert_eq!(db.backup(place.path("copy"))?.checkpoint_epoch, 0);
    run(&db, &mut states, 5, 10)?;
    db.close()?;
    // The clock begins with a second.
    let time = Moment::Time(UNIX_EPOCH + Duration::from_millis(500));
    let error = place.restore("early", time).unwrap_err();
    assert!(error.is_limit() && error.to_string().contains("is of a later time"), "{error}");
    assert!(error.to_string().contains("begins with epoch 1,"), "{error}");
    assert!(!place.path("early").exists(), "nothing is made");
    assert_eq!(place.restore("empty", Moment::Epoch(0))?, 0);
    Ok(())
}

/// O-59: an epoch that is not there is refused with those that are, with an archive and without.
#[test]
fn o_59_an_epoch_that_is_not_there_is_refused_with_those_that_are() -> Result<(), Error> {
    let place = Place::new();
    let states = archived(&place, 10)?;
    let [first, last] = {
        let made = Database::restore(place.path("copy"), place.path("whole"), None)?;
        [made.checkpoint_epoch, made.epoch]
    };
    let restore = |epoch| Database::restore(place.path("copy"), place.path("never"), Some(epoch));
    let range = format!("has epochs {first} to {last}");
    for epoch in [first - 1, last + 1, u64::MAX] {
        let error = restore(epoch).unwrap_err();
        assert!(error.is_limit() && error.to_string().contains(&range), "{error}");
    }
    let error = place.restore("never", Moment::Epoch(first - 1)).unwrap_err().to_string();
    assert!(error.contains("is before") && error.contains(&range), "{error}");
    let newest = *states.keys().last().unwrap();
    let error = place.restore("never", Moment::Epoch(newest + 100)).unwrap_err().to_string();
    assert!(error.contains("or restore to epoch") && error.contains("at most"), "{error}");
    assert!(!place.path("never").exists(), "nothing is made");
    Ok(())
}
