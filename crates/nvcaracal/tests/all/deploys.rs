//! A program that meets the log of the one before it: a store is killed under load, and opened once
//! by a program with corrected bodies, a renamed table, a new index and a new field (O-107, O-108).

use std::path::Path;
use std::thread;

use nvcaracal::{
    Data, Database, HashTable, Index, Options, Procedure, Stop, Table, Transaction, Tuning,
    WriteSet, procedure,
};
use sim::disk::Disk;
use sim::history::Random;

use crate::common::{bytes, copy, refusal};

/// Accounts that there are.
const ACCOUNTS_COUNT: u64 = 8;

/// The program that was killed. Its transfers take no fee, which is the mistake.
mod before {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Data)]
    pub(crate) struct Account {
        pub(crate) cents: i64,
    }

    pub(crate) const ACCOUNTS: Table<u64, Account> = Table::ordered("accounts");
    /// What calls came to, by their ids.
    pub(crate) const ENTRIES: HashTable<u64, i64> = Table::hash("entries");

    /// Predicts nothing: its first calls are deferred.
    #[procedure]
    pub(crate) fn pay(tx: &mut Transaction, id: u64, from: u64, cents: i64) -> Result<i64, Stop> {
        let left = tx.get(ACCOUNTS, from)?.map_or(0, |account| account.cents) - cents;
        tx.insert(ACCOUNTS, from, &Account { cents: left })?;
        tx.insert(ENTRIES, id, &left)?;
        Ok(left)
    }

    fn declare_credit(credit: &Credit, set: &mut WriteSet) {
        set.insert(ACCOUNTS, credit.to);
        set.insert(ENTRIES, credit.id);
    }

    #[procedure(write_set = declare_credit)]
    pub(crate) fn credit(tx: &mut Transaction, id: u64, to: u64, cents: i64) -> Result<i64, Stop> {
        let sum = tx.get(ACCOUNTS, to)?.map_or(0, |account| account.cents) + cents;
        tx.insert(ACCOUNTS, to, &Account { cents: sum })?;
        tx.insert(ENTRIES, id, &sum)?;
        Ok(sum)
    }

    fn declare_note(note: &Note, set: &mut WriteSet) {
        set.insert(ENTRIES, note.id);
    }

    #[procedure(write_set = declare_note)]
    pub(crate) fn note(tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        let found = tx.get(ENTRIES, id % 10)?.unwrap_or(-1);
        tx.insert(ENTRIES, id, &found)?;
        Ok(found)
    }

    pub(crate) fn options() -> Options {
        let procedures = base().procedure::<Pay>().procedure::<Credit>().procedure::<Note>();
        procedures.table(ACCOUNTS).table(ENTRIES)
    }
}

/// The program that finds the log.
mod after {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Data)]
    #[data(was = before::Account)]
    pub(crate) struct Account {
        pub(crate) cents: i64,
        pub(crate) owner: Option<String>,
    }

    impl From<before::Account> for Account {
        fn from(before::Account { cents }: before::Account) -> Self {
            Self { cents, owner: None }
        }
    }

    pub(crate) const ACCOUNTS: Table<u64, Account> = Table::ordered("accounts");
    pub(crate) const LEDGER: HashTable<u64, i64> = Table::hash("ledger");
    pub(crate) const BY_CENTS: Index<i64, u64, Account> =
        ACCOUNTS.index("by cents", |_, account| Some(account.cents));

    /// With the fee.
    #[procedure(version = 2, was = before::Pay)]
    pub(crate) fn pay(tx: &mut Transaction, id: u64, from: u64, cents: i64) -> Result<i64, Stop> {
        let account = tx.get(ACCOUNTS, from)?.unwrap_or(Account { cents: 0, owner: None });
        let left = account.cents - cents - 1;
        tx.insert(ACCOUNTS, from, &Account { cents: left, ..account })?;
        tx.insert(LEDGER, id, &left)?;
        Ok(left)
    }

    #[procedure(version = 2, was = before::Credit)]
    pub(crate) fn credit(
        tx: &mut Transaction,
        id: u64,
        to: u64,
        cents: i64,
        owner: &str,
    ) -> Result<i64, Stop> {
        let sum = tx.get(ACCOUNTS, to)?.map_or(0, |account| account.cents) + cents;
        tx.insert(ACCOUNTS, to, &Account { cents: sum, owner: Some(owner.to_string()) })?;
        tx.insert(LEDGER, id, &sum)?;
        Ok(sum)
    }

    fn declare_note(note: &Note, set: &mut WriteSet) {
        set.insert(LEDGER, note.id);
    }

    /// As it was, but for the name of the table.
    #[procedure(write_set = declare_note)]
    pub(crate) fn note(tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        let found = tx.get(LEDGER, id % 10)?.unwrap_or(-1);
        tx.insert(LEDGER, id, &found)?;
        Ok(found)
    }

    pub(crate) fn tables() -> Options {
        base().table(ACCOUNTS).table(LEDGER).rename_table("entries", "ledger").index(BY_CENTS)
    }

    pub(crate) fn options() -> Options {
        tables().procedure::<Pay>().procedure::<Credit>().procedure::<Note>()
    }
}

/// The program that finds the log, with nothing that it was.
mod forgetful {
    use super::*;

    #[procedure(version = 2)]
    pub(crate) fn pay(_tx: &mut Transaction, id: u64, from: u64, cents: i64) -> Result<i64, Stop> {
        Err(format!("nobody pays {id}, {from}, {cents}"))?
    }

    pub(crate) fn options() -> Options {
        after::tables().procedure::<Pay>().procedure_was::<before::Credit>()
    }
}

fn base() -> Options {
    let tuning = Tuning { segment_bytes: 4096, log_segment_bytes: 4096, ..Tuning::default() };
    let base = Database::options().workers(2).tuning(tuning).checkpoint_every(1_000_000);
    base.data_bytes_max(1 << 26).log_bytes_max(1 << 26)
}

/// What a call was told, and how many changes the disk had seen by then.
struct Told {
    id: u64,
    answer: i64,
    changes: usize,
}

/// Runs calls of the first program from several threads.
fn load(db: &Database, disk: &Disk) -> Vec<Told> {
    thread::scope(|scope| {
        let callers = (0..4u64).map(|caller| {
            scope.spawn(move || {
                let mut told = Vec::new();
                for round in 0..25 {
                    let (id, account) = (round * 4 + caller, (round + caller) % ACCOUNTS_COUNT);
                    let answer = match (round + caller) % 3 {
                        0 => db.call(before::Pay { id, from: account, cents: 3 }),
                        1 => db.call(before::Credit { id, to: account, cents: 10 }),
                        _ => db.call(before::Note { id }),
                    };
                    let (answer, changes) = (answer.unwrap(), disk.changes());
                    told.push(Told { id, answer, changes });
                }
                told
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    })
}

/// The new program finds all that was answered, and goes on.
fn assert_new(db: &Database, told: &[Told], at: usize) {
    let now = db.snapshot().unwrap();
    for told in told.iter().filter(|told| told.changes <= at) {
        let found = now.get(after::LEDGER, told.id).unwrap();
        assert_eq!(found, Some(told.answer), "call {} at {at}", told.id);
    }
    db.check_indexes().unwrap();
    let accounts: Vec<_> = now.range(after::ACCOUNTS, ..).collect::<Result<_, _>>().unwrap();
    assert_eq!(now.range_by(after::BY_CENTS, ..).count(), accounts.len());
    let cents = db.call(after::Credit { id: 1000, to: 1, cents: 7, owner: "Ada".into() }).unwrap();
    assert_eq!(db.call(after::Pay { id: 1001, from: 1, cents: 2 }).unwrap(), cents - 3);
    let account = db.get(after::ACCOUNTS, 1).unwrap().unwrap();
    assert_eq!(account, after::Account { cents: cents - 3, owner: Some("Ada".into()) });
    assert_eq!(db.get(after::LEDGER, 1001).unwrap(), Some(cents - 3));
}

/// A store of the first program on a disk that remembers, as the load left it, and what was told.
fn loaded(path: &Path) -> (Disk, Vec<Told>) {
    let disk = Disk::default();
    let db = before::options().disk_hook(disk.hook()).open(path).unwrap();
    let told = load(&db, &disk);
    // The log is as full as it gets: nothing closes it.
    let end = disk.changes();
    db.close().unwrap();
    assert!(told.iter().all(|told| told.changes <= end));
    (disk, told)
}

/// O-107, O-108: killed or without power at any moment of a load, the store is opened once by the
/// next program, which finds every answer; and that open may be cut after each of its changes.
#[test]
fn o_108_a_store_killed_under_load_opens_with_the_next_program() {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = dir.unwrap();
    let (disk, told) = loaded(&dir.path().join("alive"));
    let (mut random, mut number, mut replayed, mut deferred) = (Random::new(1), 0, 0, 0);
    let mut place = || {
        number += 1;
        dir.path().join(number.to_string())
    };
    let last = told.iter().map(|told| told.changes).max().unwrap();
    let first = told.iter().map(|told| told.changes).min().unwrap();
    for at in (first..=last).rev().step_by(((last - first) / 12).max(1)) {
        let killed = place();
        std::fs::create_dir(&killed).unwrap();
        let next = disk.crash(at, &mut random, &killed).unwrap();
        let error = refusal(&killed, forgetful::options());
        let text = error.to_string();
        assert!(error.is_schema() && text.contains("is version 2 only"), "{text}");
        let db = after::options().disk_hook(next.hook()).open(&killed).unwrap();
        replayed += db.recovery().epochs_replayed;
        deferred += u64::from(db.recovery().epoch.0 > db.recovery().epochs_replayed);
        let needed: Vec<_> = db.recovery().kept_procedures.iter().map(|k| k.was_needed).collect();
        assert_eq!(needed, [true, true], "{at}");
        let changes = next.changes();
        assert_new(&db, &told, at);
        drop(db);
        // From now on the log is of the new program, and nothing of before is needed.
        let db = after::options().open(&killed).unwrap();
        let needed: Vec<_> = db.recovery().kept_procedures.iter().map(|k| k.was_needed).collect();
        assert_eq!(needed, [false, false], "{at}");
        drop(db);
        for cut in (0..=changes).step_by(if at == last { 1 } else { 9 }) {
            let left = place();
            std::fs::create_dir(&left).unwrap();
            next.crash(cut, &mut random, &left).unwrap();
            let old = place();
            copy(&left, &old);
            let db = after::options().open(&left).unwrap_or_else(|e| panic!("{at}, {cut}: {e}"));
            assert_new(&db, &told, at);
            drop(db);
            // Either program opens it, as long as the change has not taken place.
            match before::options().open(&old) {
                Ok(db) => {
                    for told in told.iter().filter(|told| told.changes <= at) {
                        assert_eq!(db.get(before::ENTRIES, told.id).unwrap(), Some(told.answer));
                    }
                }
                Err(error) => assert!(error.is_schema(), "{at}, {cut}: {error}"),
            }
            std::fs::remove_dir_all(&left).unwrap();
            std::fs::remove_dir_all(&old).unwrap();
        }
    }
    assert!(replayed > 50, "{replayed} epochs");
    println!("{replayed} epochs replayed, {deferred} opens ran deferred calls, {number} images");
}

/// Ten calls of the first program in the log.
fn killed(dir: &Path) -> std::path::PathBuf {
    let (alive, killed) = (dir.join("alive"), dir.join("killed"));
    let db = before::options().open(&alive).unwrap();
    for id in 0..10 {
        db.call(before::Credit { id, to: id % 3, cents: 5 }).unwrap();
        db.call(before::Note { id: 100 + id }).unwrap();
    }
    copy(&alive, &killed);
    killed
}

/// O-107: what a program lacks is named, and every byte stays as it was.
#[test]
fn o_107_what_a_log_needs_is_named_where_it_is_missing() {
    /// The same name and version, and it uses what the log was not written for.
    #[procedure]
    fn note(tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        Ok(tx.get(after::ACCOUNTS, id % 3)?.map_or(0, |account| account.cents))
    }
    #[procedure(name = "credit", version = 1)]
    fn credit_of_other_types(_tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        Ok(id as i64)
    }
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(dir.path());
    let pays = || after::tables().procedure::<after::Pay>();
    let credits = || pays().procedure::<after::Credit>();
    let cases = [
        (credits(), "procedure \"note\" is not registered"),
        (credits().procedure::<Note>(), "version 1 of procedure \"note\" uses table \"accounts\""),
        (
            pays().procedure::<after::Note>().procedure_was::<CreditOfOtherTypes>(),
            "procedure \"credit\" was Credit { id: u64, to: u64, cents: i64 } -> i64 and is",
        ),
        (
            after::tables().procedure::<after::Note>().procedure_was::<before::Credit>(),
            "procedure \"pay\" is not registered",
        ),
    ];
    for (options, words) in cases {
        let error = refusal(&killed, options);
        let text = error.to_string();
        assert!(error.is_schema() && text.contains(words) && text.contains("keep"), "{text}");
    }
    let db = credits().procedure_was::<before::Note>().open(&killed).unwrap();
    assert_eq!(db.recovery().kept_procedures.len(), 3);
    assert_eq!(db.get(after::LEDGER, 105).unwrap(), Some(10), "{:?}", db.recovery());
    assert!(db.call(before::Note { id: 1 }).unwrap_err().is_mistake(), "it is not called");
}

/// O-107: a program that only reads replays such a log in memory, as often as it is opened, and
/// changes the schema there; no file changes.
#[test]
fn o_107_a_log_of_before_is_read_without_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = before::options().open(&alive).unwrap();
    for id in 0..10 {
        db.call(before::Pay { id, from: id % 3, cents: 5 }).unwrap();
    }
    // Deferred calls are in the log, too.
    let pays = (10..20).map(|id| db.submit(before::Pay { id, from: 1, cents: 5 }).unwrap());
    let left = pays.collect::<Vec<_>>().into_iter().map(|pay| pay.wait().unwrap());
    let left = left.min().unwrap();
    copy(&alive, &killed);
    let files = bytes(&killed);
    let read = || after::options().read_only(true);
    for workers in [1, 3] {
        let reader = read().workers(workers).open(&killed).unwrap();
        let account = reader.get(after::ACCOUNTS, 1).unwrap().unwrap();
        assert_eq!(account, after::Account { cents: left, owner: None });
        let now = reader.snapshot().unwrap();
        assert_eq!(now.range_by(after::BY_CENTS, ..).count(), 3);
        assert!((0..20).all(|id| now.get(after::LEDGER, id).unwrap().is_some()));
        let needed: Vec<_> =
            reader.recovery().kept_procedures.iter().map(|kept| kept.was_needed).collect();
        assert_eq!(needed, [true, true]);
        reader.check_indexes().unwrap();
        drop(now);
        reader.close().unwrap();
        assert!(bytes(&killed) == files, "a file has changed");
    }
    let error = refusal(&killed, forgetful::options().read_only(true));
    assert!(error.is_schema(), "{error}");
    drop(after::options().open(&killed).unwrap());
    assert!(read().open(&killed).unwrap().recovery().kept_procedures.iter().all(|k| !k.was_needed));
}

/// O-107: two bodies of one version are a mistake, and so is one of the version that is called.
#[test]
fn o_107_each_body_has_a_version_of_its_own() {
    #[procedure(name = "pay", was = before::Pay)]
    fn pay_again(_tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        Ok(id as i64)
    }
    let options = base().procedure::<PayAgain>();
    let error = options.open_device(nvcaracal::DeviceSpec::Dram).unwrap_err();
    assert!(error.is_mistake() && error.to_string().contains("two bodies of version 1"), "{error}");
    let options = base().procedure::<before::Note>().procedure_was::<before::Note>();
    options.open_device(nvcaracal::DeviceSpec::Dram).unwrap();
}

/// O-108: indexes that change over a log: the replay runs with those of before, which the program
/// keeps; a new unique one that the rows do not allow is refused behind the replay.
#[test]
fn o_108_a_log_is_replayed_with_the_indexes_that_there_were() {
    use before::{ACCOUNTS, Account};
    const OWN: Index<u64, u64, Account> = ACCOUNTS.unique_index("own", |key, _| Some(*key));
    const SUMS: Index<i64, u64, Account> = ACCOUNTS.index("sums", |_, account| Some(account.cents));
    const SAME: Index<bool, u64, Account> = ACCOUNTS.unique_index("same", |_, _| Some(true));
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = before::options().index(OWN).open(&alive).unwrap();
    for id in 0..6 {
        db.call(before::Credit { id, to: id % 3, cents: 5 }).unwrap();
    }
    copy(&alive, &killed);
    let error = refusal(&killed, before::options().index(SUMS));
    assert!(error.to_string().contains("unique index \"own\""), "{error}");
    let error = before::options().index(SAME).index_was(OWN).open(&killed).unwrap_err();
    assert!(error.to_string().contains("two rows under key"), "{error}");
    // The log has been replayed, and the schema is the one of before.
    let db = before::options().index(OWN).open(&killed).unwrap();
    assert_eq!(db.recovery().epochs_replayed, 0);
    db.call(before::Credit { id: 6, to: 0, cents: 5 }).unwrap();
    let again = dir.path().join("again");
    copy(&killed, &again);
    drop(db);
    let db = before::options().index(SUMS).index_was(OWN).open(&again).unwrap();
    assert!(db.recovery().epochs_replayed > 0);
    let sums: Vec<_> = db.snapshot().unwrap().range_by(SUMS, ..).map(|r| r.unwrap().0).collect();
    assert_eq!(sums.len(), 3);
    assert_eq!(sums.last(), Some(&0), "the largest sum");
}

/// O-108: a chain of versions, of which the log is of the first.
#[test]
fn o_107_a_log_of_long_ago_finds_its_body() {
    #[procedure(name = "note", version = 2, was = before::Note)]
    fn note_two(_tx: &mut Transaction, id: u64) -> Result<i64, Stop> {
        Ok(id as i64)
    }
    #[procedure(name = "note", version = 7, was = NoteTwo)]
    fn note_seven(_tx: &mut Transaction, id: u64, by: u64) -> Result<u64, Stop> {
        Ok(id + by)
    }
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(dir.path());
    let options = || {
        let base = base().table(before::ACCOUNTS).table(before::ENTRIES);
        base.procedure::<NoteSeven>().procedure::<before::Credit>().procedure::<before::Pay>()
    };
    let db = options().open(&killed).unwrap();
    let kept = &db.recovery().kept_procedures;
    let kept: Vec<_> = kept.iter().map(|k| (k.name.as_str(), k.version, k.was_needed)).collect();
    assert_eq!(kept, [("note", 1, true), ("note", 2, false)]);
    assert_eq!(db.recovery().calls_replayed, 20);
    assert_eq!(db.call(NoteSeven { id: 1, by: 2 }).unwrap(), 3);
    assert_eq!(NoteSeven::VERSION, 7);
    drop(db);
    let db = options().open(&killed).unwrap();
    assert_eq!(db.get(before::ENTRIES, 105).unwrap(), Some(10));
}
