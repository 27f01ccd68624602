use std::fs;

use super::*;

const ORDERS: TableId = TableId(3);
const OTHERS: TableId = TableId(4);
const LARGE: u64 = 1 << 30;

fn change(table: TableId, key: &[u8], after: Option<&[u8]>) -> Change {
    Change {
        table,
        key: key.into(),
        before: Some((*b"before").into()),
        after: after.map(Box::from),
    }
}

fn changes(epoch: u64) -> EpochChanges {
    let mut rows = vec![
        change(ORDERS, &epoch.to_be_bytes(), Some(&[epoch as u8; 100])),
        change(ORDERS, b"z", None),
        change(OTHERS, b"a", Some(b"")),
    ];
    rows[1].before = None;
    EpochChanges { rows, are_too_many: false }
}

/// The instance number of the store.
const STORE: u64 = 77;

fn open_with(directory: &Path, bytes_max: u64) -> ChangeLog {
    let log = ChangeLog::open(directory, bytes_max, None).unwrap();
    let has_had_consumers = log.state().followed.instance().is_some();
    log.begin_store(STORE, has_had_consumers);
    log
}

fn open(directory: &Path) -> ChangeLog {
    open_with(directory, LARGE)
}

/// The only file of changes.
fn only_file(directory: &Path) -> PathBuf {
    let names = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = names.filter(|path| path.to_str().unwrap().ends_with("changes")).collect();
    assert_eq!(files.len(), 1);
    files.into_iter().next().unwrap()
}

fn add(log: &ChangeLog, epochs: std::ops::RangeInclusive<u64>) {
    for epoch in epochs {
        log.add(EpochNumber(epoch), &changes(epoch), true).unwrap();
    }
}

/// The epochs after `after` of which changes of the orders are read, each checked.
fn read(log: &ChangeLog, after: u64) -> Vec<u64> {
    let all = log.read(ORDERS, (EpochNumber(after), EpochNumber(u64::MAX)), LARGE).unwrap();
    let epoch = |(epoch, rows): (EpochNumber, Vec<Change>)| {
        assert_eq!(rows, changes(epoch.0).rows[..2], "epoch {epoch}");
        epoch.0
    };
    all.into_iter().map(epoch).collect()
}

fn kept_after(log: &ChangeLog) -> u64 {
    log.kept(ORDERS).unwrap().after.0
}

fn follow(directory: &Path, epoch: u64) -> ChangeLog {
    let log = open(directory);
    log.add_consumer("mailer", (ORDERS, "orders"), EpochNumber(epoch)).unwrap();
    log
}

#[test]
fn without_consumers_there_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("changes");
    let log = open(&directory);
    add(&log, 1..=3);
    log.settle(EpochNumber(3)).unwrap();
    assert!(!directory.exists() && log.kept(ORDERS).is_none());
}

#[test]
fn changes_are_there_when_the_log_is_open_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 10);
    add(&log, 11..=20);
    assert_eq!(read(&log, 10), (11..=20).collect::<Vec<_>>());
    drop(log);
    let log = open(dir.path());
    assert_eq!((kept_after(&log), read(&log, 15)), (10, (16..=20).collect()));
    assert_eq!(log.consumers()[0].epoch, EpochNumber(10));
    // A replay comes to what is there, and goes on.
    add(&log, 18..=22);
    assert_eq!(read(&log, 10), (11..=22).collect::<Vec<_>>());
    // A table that is followed later has nothing in what is replayed of before.
    log.add_consumer("other", (OTHERS, "others"), EpochNumber(22)).unwrap();
    let replayed = tempfile::tempdir().unwrap();
    let of_replay = follow(replayed.path(), 10);
    of_replay.add_consumer("other", (OTHERS, "others"), EpochNumber(22)).unwrap();
    add(&of_replay, 11..=22);
    let files = [dir.path(), replayed.path()].map(|dir| fs::read(only_file(dir)).unwrap());
    assert!(files[0] == files[1], "the same records");
    // Of other tables nothing is kept.
    assert!(log.read(OTHERS, (EpochNumber(0), EpochNumber(99)), LARGE).unwrap().is_empty());
    // A part is a part.
    let part = log.read(ORDERS, (EpochNumber(12), EpochNumber(20)), 1).unwrap();
    assert_eq!(part.iter().map(|part| part.0.0).collect::<Vec<_>>(), [13]);
}

#[test]
fn a_consumer_stays_where_it_is_until_it_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 10);
    let add_again = |log: &ChangeLog, table| {
        log.add_consumer("mailer", table, EpochNumber(50)).map(|epoch| epoch.0)
    };
    assert_eq!(add_again(&log, (ORDERS, "orders")).unwrap(), 10);
    let error = add_again(&log, (OTHERS, "others")).unwrap_err();
    assert!(error.to_string().contains("\"orders\""), "{error}");
    log.confirm("mailer", EpochNumber(30)).unwrap();
    let log = open(dir.path());
    assert_eq!(add_again(&log, (ORDERS, "orders")).unwrap(), 30);
    assert!(log.drop_consumer("mailer").unwrap() && !log.drop_consumer("mailer").unwrap());
    assert!(log.confirm("mailer", EpochNumber(31)).is_err());
    assert!(open(dir.path()).consumers().is_empty());
    // What was kept for others is not kept for one that comes later.
    let log = open(dir.path());
    add(&log, 31..=40);
    assert_eq!(add_again(&log, (ORDERS, "orders")).unwrap(), 50);
    assert_eq!((kept_after(&log), read(&log, 0).len()), (50, 0));
}

/// Wherever the last file is cut, what comes before is there, and a replay brings the rest back.
#[test]
fn a_cut_end_is_what_a_replay_brings_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 0);
    add(&log, 1..=5);
    drop(log);
    let path = only_file(dir.path());
    let whole = fs::read(&path).unwrap();
    for len in 0..=whole.len() {
        for damage in [false, true] {
            let mut bytes = whole[..len].to_vec();
            if damage {
                bytes.resize(whole.len(), 0);
            }
            fs::write(&path, &bytes).unwrap();
            let log = open(dir.path());
            assert_eq!(fs::read(&path).unwrap(), bytes, "an open only reads");
            let there = read(&log, 0);
            assert_eq!(there, (1..=there.len() as u64).collect::<Vec<_>>());
            log.begin_replay(EpochNumber(0));
            add(&log, 1..=5);
            log.end_replay(EpochNumber(5));
            assert!(fs::read(&path).unwrap() == whole, "the same bytes, cut at {len}");
            add(&log, 6..=7);
            assert_eq!(read(&log, 0), (1..=7).collect::<Vec<_>>(), "cut at {len}");
            assert_eq!(read(&open(dir.path()), 0), (1..=7).collect::<Vec<_>>());
        }
    }
}

#[test]
fn files_that_nobody_needs_go_and_the_oldest_beyond_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let large = |epoch: u64| {
        let rows = vec![change(ORDERS, &epoch.to_be_bytes(), Some(&vec![7; 3 << 20]))];
        EpochChanges { rows, are_too_many: false }
    };
    let files = || fs::read_dir(dir.path()).unwrap().count() - 1;
    let log = open_with(dir.path(), 40 << 20);
    log.add_consumer("mailer", (ORDERS, "orders"), EpochNumber(0)).unwrap();
    for epoch in 1..=9 {
        log.add(EpochNumber(epoch), &large(epoch), true).unwrap();
    }
    assert_eq!((files(), kept_after(&log)), (3, 0));
    log.confirm("mailer", EpochNumber(4)).unwrap();
    assert_eq!((files(), kept_after(&log)), (2, 3));
    for epoch in 10..=30 {
        log.add(EpochNumber(epoch), &large(epoch), true).unwrap();
    }
    let after = kept_after(&log);
    assert!(log.bytes() <= 40 << 20 && after > 4, "{} bytes, kept after {after}", log.bytes());
    let log = open(dir.path());
    assert_eq!(kept_after(&log), after);
    let all = log.read(ORDERS, (EpochNumber(after), EpochNumber(99)), LARGE).unwrap();
    assert!(all.iter().map(|part| part.0.0).eq(after + 1..=30));
}

#[test]
fn what_is_not_known_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 0);
    add(&log, 1..=2);
    let too_many = EpochChanges { rows: Vec::new(), are_too_many: true };
    log.add(EpochNumber(3), &too_many, true).unwrap();
    add(&log, 4..=5);
    assert_eq!(kept_after(&log), 3);
    assert_eq!(kept_after(&open(dir.path())), 3);
    // A state of before was restored: its epochs are others.
    log.confirm("mailer", EpochNumber(5)).unwrap();
    let log = open(dir.path());
    log.end_replay(EpochNumber(4));
    assert_eq!((kept_after(&log), log.consumers()[0].epoch), (4, EpochNumber(0)));
    assert!(log.kept(ORDERS).unwrap().why.unwrap().contains("another past"));
    assert_eq!(open(dir.path()).consumers()[0].epoch, EpochNumber(5), "an open only reads");
    log.agree(|_, name| Some(name.into())).unwrap();
    assert_eq!(open(dir.path()).consumers()[0].epoch, EpochNumber(0));
    add(&log, 5..=6);
    assert_eq!((kept_after(&log), read(&log, 4)), (4, vec![5, 6]));
    // The table was renamed, then dropped.
    log.agree(|table, _| (table == ORDERS).then(|| "sales".into())).unwrap();
    assert_eq!(open(dir.path()).consumers()[0].table_name, "sales");
    log.agree(|_, _| None).unwrap();
    assert!(open(dir.path()).consumers().is_empty());
}

/// Where the list of consumers is missing, or that of another store, each consumer is told.
#[test]
fn a_list_that_was_lost_is_not_forgotten() {
    for is_of_another in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let log = follow(dir.path(), 3);
        add(&log, 4..=5);
        drop(log);
        if !is_of_another {
            fs::remove_file(dir.path().join("consumers")).unwrap();
        }
        let log = ChangeLog::open(dir.path(), LARGE, None).unwrap();
        log.begin_store(if is_of_another { STORE + 1 } else { STORE }, true);
        log.begin_replay(EpochNumber(5));
        log.end_replay(EpochNumber(5));
        assert!(log.consumers().is_empty());
        for _ in 0..2 {
            let at = log.add_consumer("mailer", (ORDERS, "orders"), EpochNumber(5)).unwrap();
            let kept = log.kept(ORDERS).unwrap();
            assert_eq!((at, kept.after), (EpochNumber(0), EpochNumber(5)));
            assert!(kept.why.unwrap().contains("list of consumers was lost"));
        }
        log.confirm("mailer", EpochNumber(5)).unwrap();
        add(&log, 6..=7);
        let store = if is_of_another { STORE + 1 } else { STORE };
        let log = ChangeLog::open(dir.path(), LARGE, None).unwrap();
        log.begin_store(store, true);
        log.begin_replay(EpochNumber(5));
        assert_eq!((log.consumers()[0].epoch.0, read(&log, 5)), (5, vec![6, 7]));
        // So is one that is new: nobody knows.
        let at = log.add_consumer("new", (ORDERS, "orders"), EpochNumber(7)).unwrap();
        assert_eq!(at, EpochNumber(0));
    }
}

/// A call that fails leaves a log that goes on.
#[test]
fn a_record_that_cannot_be_written_is_written_next_time() {
    #[derive(Debug)]
    struct Fails(std::sync::atomic::AtomicBool);
    impl ChangeLogHook for Fails {
        fn reach(&self, _: ChangeLogCall) -> io::Result<()> {
            match self.0.load(std::sync::atomic::Ordering::Relaxed) {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    drop(follow(dir.path(), 0));
    let hook = Arc::new(Fails(false.into()));
    let log = ChangeLog::open(dir.path(), LARGE, Some(hook.clone())).unwrap();
    log.begin_store(STORE, true);
    add(&log, 1..=2);
    hook.0.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = log.add(EpochNumber(3), &changes(3), true).unwrap_err();
    assert!(error.to_string().contains("append to"), "{error}");
    assert!(log.settle(EpochNumber(2)).is_err());
    hook.0.store(false, std::sync::atomic::Ordering::Relaxed);
    add(&log, 3..=4);
    log.settle(EpochNumber(4)).unwrap();
    assert_eq!(read(&open(dir.path()), 0), [1, 2, 3, 4]);
}

/// A replay writes nothing before its last epoch, and holds no more than its limit.
#[test]
fn a_replay_holds_what_it_may_not_write() {
    let dir = tempfile::tempdir().unwrap();
    drop(follow(dir.path(), 0));
    let path = only_file(dir.path());
    let empty = fs::read(&path).unwrap();
    // Of a limit of 4,000 bytes, an epoch may have 1,000, and a replay twice that and two files.
    let large = |epoch: u64| {
        let rows = vec![change(ORDERS, &epoch.to_be_bytes(), Some(&[7; 900]))];
        EpochChanges { rows, are_too_many: false }
    };
    let held_max = 2 * (segments::SEGMENT_BYTES + 1000);
    for (last, after) in [(5_u64, 0), (held_max / 900, held_max / 960)] {
        fs::write(&path, &empty).unwrap();
        let log = open_with(dir.path(), 4000);
        log.begin_replay(EpochNumber(0));
        for epoch in 1..last {
            log.add(EpochNumber(epoch), &large(epoch), false).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), empty);
        log.add(EpochNumber(last), &large(last), true).unwrap();
        log.end_replay(EpochNumber(last));
        let kept = log.kept(ORDERS).unwrap();
        assert!((after..=after + after / 50).contains(&kept.after.0), "{kept:?}");
        assert_eq!(kept.why.is_some(), after > 0);
        let range = (kept.after, EpochNumber(last));
        let all = log.read(ORDERS, range, LARGE).unwrap();
        assert!(all.iter().map(|part| part.0.0).eq(kept.after.0 + 1..=last));
        // More than may be kept of one epoch.
        let rows = vec![change(ORDERS, b"key", Some(&[7; 1000]))];
        let too_large = EpochChanges { rows, are_too_many: false };
        log.add(EpochNumber(last + 1), &too_large, true).unwrap();
        let kept = log.kept(ORDERS).unwrap();
        assert!(kept.after.0 == last + 1 && kept.why.unwrap().contains("of one epoch"));
    }
}

#[test]
fn a_damaged_list_of_consumers_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(follow(dir.path(), 7));
    let path = dir.path().join("consumers");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = ChangeLog::open(dir.path(), LARGE, None).unwrap_err();
        assert!(error.to_string().contains("consumers"), "{error}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(open(dir.path()).consumers().len(), 1);
}

#[test]
fn a_file_that_is_missing_takes_what_was_before_it_along() {
    let large = |epoch: u64| {
        let rows = vec![change(ORDERS, &epoch.to_be_bytes(), Some(&vec![7; 9 << 20]))];
        EpochChanges { rows, are_too_many: false }
    };
    for (missing, after) in [(vec![1], 1), (vec![2], 2), (vec![3], 0), (vec![1, 2, 3], 0)] {
        let dir = tempfile::tempdir().unwrap();
        let log = follow(dir.path(), 0);
        for epoch in 1..=3 {
            log.add(EpochNumber(epoch), &large(epoch), true).unwrap();
        }
        drop(log);
        for &file in &missing {
            fs::remove_file(dir.path().join(format!("{file:020}.changes"))).unwrap();
        }
        let log = open(dir.path());
        // Without the last file the epochs that it had are to be replayed.
        assert_eq!(kept_after(&log), after, "without {missing:?}");
        log.begin_replay(EpochNumber(3));
        let kept = log.kept(ORDERS).unwrap();
        let is_short = missing.contains(&3);
        assert_eq!(kept.after.0, if is_short { 3 } else { after });
        let what = if is_short { "has no changes of epochs" } else { "are missing" };
        // That the oldest are missing may be as it should be.
        let says_so = kept.why.map_or(missing == [1], |why| why.contains(what));
        assert!(says_so, "without {missing:?}");
        log.end_replay(EpochNumber(3));
        log.add(EpochNumber(4), &large(4), true).unwrap();
        let log = open(dir.path());
        assert_eq!(kept_after(&log), if is_short { 3 } else { after });
        // Of the files nothing is left that nobody reads.
        let names = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names - 1, log.state().segments.files_after(EpochNumber(0)).unwrap().len());
    }
}

/// Whatever is damaged in an epoch that is not replayed any more, it is known that something is.
#[test]
fn o_112_damage_before_the_checkpoint_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 0);
    add(&log, 1..=7);
    log.settle(EpochNumber(7)).unwrap();
    let settled = fs::metadata(only_file(dir.path())).unwrap().len() as usize;
    add(&log, 8..=9);
    drop(log);
    let path = only_file(dir.path());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        // What the turn before has begun anew.
        drop(fs::remove_file(dir.path().join("00000000000000000008.changes")));
        let log = open(dir.path());
        log.begin_replay(EpochNumber(7));
        let kept = log.kept(ORDERS).unwrap();
        assert_eq!(kept.after.0, if at < settled { 7 } else { 0 }, "byte {at}");
        let says = |why: String| why.contains("damaged at byte") || why.contains("no changes of");
        assert_eq!(kept.why.is_some_and(says), at < settled);
        add(&log, 8..=9);
        for log in [log, open(dir.path())] {
            let all = log.read(ORDERS, (EpochNumber(7), EpochNumber(99)), LARGE).unwrap();
            assert!(all.iter().map(|part| part.0.0).eq(8..=9), "byte {at}");
        }
    }
}

/// A file that is damaged while it is open is an error that names it.
#[test]
fn damage_that_comes_later_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let log = follow(dir.path(), 0);
    add(&log, 1..=3);
    let path = only_file(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let read = log.read(ORDERS, (EpochNumber(0), EpochNumber(3)), LARGE);
    let error = read.unwrap_err();
    assert!(error.kind() == io::ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("00000000000000000001.changes is damaged at byte 16"));
}
