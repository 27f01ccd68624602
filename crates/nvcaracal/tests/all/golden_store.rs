//! Stores of releases: each is opened by every later one, with all that is in it (docs/format.md).
//!
//! A store is kept as text: its state hash, then of each file the length and its lines of 64 bytes
//! that are not zero. Those of a new format are made by
//! `NVCARACAL_BLESS=1 cargo test -p nvcaracal --test all golden_store::`, which replaces none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use nvcaracal::{
    Data, Database, HashTable, Index, Options, Procedure, Sequence, Stop, Table, Transaction,
    Tuning, WriteSet, procedure,
};

use crate::common::{bytes, copy};

/// Versions of image and files of which stores are kept: one that was closed and one that was
/// killed.
const VERSIONS: [(u32, u32); 1] = [(9, 3)];
/// What is not opened any more.
const REFUSED: [(u32, u32); 1] = [(9, 2)];
const KINDS: [&str; 2] = ["closed", "killed"];
const LINE: usize = 64;
/// Calls of [`Put`], and after which of them there is a checkpoint.
const PUTS: u64 = 30;
const CHECKPOINT_AFTER: u64 = 12;

const TEXTS: HashTable<u64, String> = Table::hash("texts").with_value_bytes(3000);
const PAIRS: Table<(u32, u32), i64> = Table::ordered("pairs");
const LENGTHS: HashTable<u64, u64> = Table::hash("lengths");
const PEOPLE: Table<str, Person> = Table::ordered("people");
const BY_AGE: Index<u32, str, Person> = PEOPLE.index("by age", |_, person| person.age);
const IDS: Sequence = Sequence::new("ids");

/// The program that made the store first.
mod before {
    use super::*;

    #[derive(Data)]
    pub(super) struct Person {
        pub(super) number: u64,
    }

    const PEOPLE: Table<str, Person> = Table::ordered("people");

    #[procedure]
    pub(super) fn join(tx: &mut Transaction, name: &str, number: u64) -> Result<(), Stop> {
        tx.insert(PEOPLE, name, &Person { number })
    }

    pub(super) fn options() -> Options {
        sized(Database::options().table(PEOPLE).procedure::<Join>())
    }
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = before::Person)]
struct Person {
    number: u64,
    age: Option<u32>,
}

impl From<before::Person> for Person {
    fn from(before::Person { number }: before::Person) -> Self {
        Self { number, age: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Data)]
enum Kind {
    Short,
    Long { bytes: u32 },
}

fn declare_put(put: &Put, set: &mut WriteSet) {
    set.insert(TEXTS, put.id % 20);
    set.insert(PAIRS, (put.id as u32 % 3, put.id as u32));
}

/// Writes a row of each of two tables; answers with a number that is given once.
#[procedure(sequences(IDS), write_set = declare_put)]
fn put(tx: &mut Transaction, id: u64, kind: Kind) -> Result<u64, Stop> {
    let bytes = if let Kind::Long { bytes } = kind { bytes as usize } else { 3 };
    tx.insert(TEXTS, id % 20, &"x".repeat(bytes))?;
    tx.insert(PAIRS, (id as u32 % 3, id as u32), &-(id as i64))?;
    Ok(tx.sequence_number(0))
}

fn declare_measure(measure: &Measure, set: &mut WriteSet) {
    set.insert(LENGTHS, measure.id);
}

/// Counts a text by its length, which its write set does not know: the call is deferred.
#[procedure(write_set = declare_measure)]
fn measure(tx: &mut Transaction, id: u64) -> Result<u64, Stop> {
    let bytes = tx.get(TEXTS, id)?.ok_or("no such text")?.len() as u64;
    let count = tx.get(LENGTHS, bytes)?.unwrap_or(0) + 1;
    tx.insert(LENGTHS, bytes, &count)?;
    Ok(count)
}

fn declare_forget(forget: &Forget, set: &mut WriteSet) {
    set.delete(TEXTS, forget.id);
}

#[procedure(write_set = declare_forget)]
fn forget(tx: &mut Transaction, id: u64) -> Result<bool, Stop> {
    tx.delete(TEXTS, id)
}

#[procedure]
fn ages(tx: &mut Transaction, name: &str, age: u32) -> Result<(), Stop> {
    let person = tx.get(PEOPLE, name)?.ok_or("no such person")?;
    tx.update(PEOPLE, name, &Person { age: Some(age), ..person })?;
    Ok(())
}

fn declare_enroll(enroll: &Enroll, set: &mut WriteSet) {
    set.insert(PEOPLE, &*enroll.name);
}

/// Adds a person, to the index by age, too. Answers with how many are that old.
#[procedure(write_set = declare_enroll)]
fn enroll(tx: &mut Transaction, name: &str, age: u32) -> Result<u64, Stop> {
    tx.insert(PEOPLE, name, &Person { number: 0, age: Some(age) })?;
    Ok(tx.range_by(BY_AGE, age..=age).count() as u64)
}

fn options() -> Options {
    let tables = Database::options().table(TEXTS).table(PAIRS).table(LENGTHS).table(PEOPLE);
    let options = tables.sequence(IDS).index(BY_AGE).procedure::<Put>().procedure::<Measure>();
    sized(options.procedure::<Forget>().procedure::<Ages>())
}

/// Small, with one worker, and no call in the serial part that is not to be there.
fn sized(options: Options) -> Options {
    let (segment_bytes, log_segment_bytes) = (4096, 4096);
    let small =
        Tuning { serial_calls_max: 0, segment_bytes, log_segment_bytes, ..Tuning::default() };
    let options = options.data_bytes_max(1 << 24).log_bytes_max(1 << 20).tuning(small);
    options.workers(1).checkpoint_every(1_000_000).learns(false)
}

fn kind(id: u64) -> Kind {
    if id % 4 == 3 { Kind::Long { bytes: 90 * id as u32 } } else { Kind::Short }
}

/// Rows of the golden stores.
#[derive(Default)]
struct Rows {
    texts: BTreeMap<u64, usize>,
    pairs: BTreeMap<(u32, u32), i64>,
    lengths: BTreeMap<u64, u64>,
}

/// What the calls of [`fill`] come to, by hand.
fn rows() -> Rows {
    let mut rows = Rows::default();
    for id in 0..PUTS {
        let bytes = if let Kind::Long { bytes } = kind(id) { bytes as usize } else { 3 };
        rows.texts.insert(id % 20, bytes);
        rows.pairs.insert((id as u32 % 3, id as u32), -(id as i64));
        if id % 5 == 3 {
            *rows.lengths.entry(bytes as u64).or_default() += 1;
        }
        if id % 7 == 6 {
            rows.texts.remove(&((id + 1) % 20));
        }
    }
    rows
}

/// The value that is answered; each call is in an epoch of its own.
fn answer<P: Procedure>(db: &Database, call: P) -> (P::Output, bool) {
    let ticket = db.submit(call).unwrap();
    while ticket.was_deferred().is_none() {
        std::thread::yield_now();
    }
    let was_deferred = ticket.was_deferred() == Some(true);
    (ticket.wait().unwrap(), was_deferred)
}

/// Makes a store, which stays open.
fn fill(dir: &Path) -> Database {
    let db = before::options().open(dir).unwrap();
    for (number, name) in (1..).zip(["Ada", "Grace"]) {
        db.call(before::Join { name: name.into(), number }).unwrap();
    }
    db.close().unwrap();
    let db = options().open(dir).unwrap();
    let mut deferred = 0;
    for id in 0..PUTS {
        assert_eq!(answer(&db, Put { id, kind: kind(id) }).0, id);
        if id % 5 == 3 {
            deferred += u32::from(answer(&db, Measure { id: id % 20 }).1);
        }
        if id % 7 == 6 {
            answer(&db, Forget { id: (id + 1) % 20 });
        }
        if id == CHECKPOINT_AFTER {
            answer(&db, Ages { name: "Ada".into(), age: 36 });
            db.checkpoint().unwrap();
            deferred = 0;
        }
    }
    assert!(deferred > 0, "the log has a deferred call");
    db
}

fn path_of((image, files): (u32, u32), kind: &str) -> PathBuf {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    room.join(format!("store-{image}-files-{files}-{kind}.txt"))
}

/// The files of a store as text.
fn pack(dir: &Path, state_hash: u128) -> String {
    let mut text = format!("hash {state_hash:032x}\n");
    for (path, bytes) in bytes(dir) {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        writeln!(text, "{name} {}", bytes.len()).unwrap();
        for (at, line) in bytes.chunks(LINE).enumerate().filter(|(_, l)| l.iter().any(|b| *b > 0)) {
            let line = &line[..=line.iter().rposition(|byte| *byte > 0).unwrap()];
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{at} {hex}").unwrap();
        }
    }
    text
}

/// Puts the files of a store into an empty directory; its state hash.
fn unpack(text: &str, dir: &Path) -> u128 {
    let (head, rest) = text.split_once('\n').unwrap();
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut name = "";
    for line in rest.lines() {
        let (first, second) = line.split_once(' ').unwrap();
        let Ok(at) = first.parse::<usize>() else {
            name = first;
            files.insert(name, vec![0; second.parse().unwrap()]);
            continue;
        };
        let hex = second.as_bytes().chunks(2);
        let hex = hex.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap());
        let file = files.get_mut(name).unwrap();
        file[at * LINE..].iter_mut().zip(hex).for_each(|(byte, kept)| *byte = kept);
    }
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
    }
    u128::from_str_radix(head.strip_prefix("hash ").unwrap(), 16).unwrap()
}

fn assert_whole(db: &Database) {
    let rows = rows();
    let people = [("Ada", 1, Some(36)), ("Grace", 2, None)];
    let count = rows.texts.len() + rows.pairs.len() + rows.lengths.len() + people.len();
    // The sequence is a row, too.
    assert_eq!(db.stats().rows, count as u64 + 1);
    for key in 0..20 {
        let text = rows.texts.get(&key).map(|bytes| "x".repeat(*bytes));
        assert_eq!(db.get(TEXTS, key).unwrap(), text, "{key}");
    }
    for (key, length) in &rows.lengths {
        assert_eq!(db.get(LENGTHS, *key).unwrap().as_ref(), Some(length), "{key}");
    }
    let snapshot = db.snapshot().unwrap();
    let pairs: BTreeMap<_, _> = snapshot.range(PAIRS, ..).map(|row| row.unwrap()).collect();
    assert_eq!(pairs, rows.pairs);
    let found: Vec<_> = snapshot.range(PEOPLE, ..).map(|row| row.unwrap()).collect();
    let people = people.map(|(name, number, age)| (name.to_string(), Person { number, age }));
    assert_eq!(found, people);
    let aged: Vec<_> = snapshot.range_by(BY_AGE, ..).map(|row| row.unwrap()).collect();
    assert_eq!(aged, people[..1]);
    db.check_indexes().unwrap();
}

/// Opens a store that was kept, sees that all is in it, and goes on with it.
fn assert_opens(text: &str, kind: &str, what: &str) {
    let dir = tempfile::tempdir().unwrap();
    let state_hash = unpack(text, dir.path());
    let db = options().open(dir.path()).unwrap();
    let report = db.recovery();
    assert_eq!(report.epochs_replayed > 0, kind == "killed", "{what}");
    assert_eq!(report.epochs_replayed, report.epochs_verified);
    assert_eq!(db.stats().state_hash, state_hash, "{what}, {kind}");
    assert_whole(&db);
    assert_eq!(answer(&db, Put { id: PUTS, kind: Kind::Short }).0, PUTS);
    db.close().unwrap();
    let db = options().open(dir.path()).unwrap();
    assert_eq!(answer(&db, Put { id: PUTS + 1, kind: Kind::Short }).0, PUTS + 1);
}

/// Stores of this program as they are kept, one of each kind.
fn made() -> [String; 2] {
    let room = tempfile::tempdir().unwrap();
    let (alive, killed) = (room.path().join("alive"), room.path().join("killed"));
    let db = fill(&alive);
    assert_whole(&db);
    let state_hash = db.stats().state_hash;
    copy(&alive, &killed);
    db.close().unwrap();
    [alive, killed].map(|dir| pack(&dir, state_hash))
}

/// A store that was killed under version 3 of the rules by which calls run: one of the parallel
/// part that changes an index was deferred. It was made by the function that follows.
const OF_RULES_3: &str = "store-9-files-3-rules-3.txt";
const ENROLLED: u32 = 9;

/// Makes a store in whose log there are calls that change an index; whether all were deferred.
fn enroll_all(db: &Database) -> Vec<bool> {
    let calls = (0..ENROLLED).map(|at| {
        let call = Enroll { name: format!("person {at}"), age: 20 + at % 2 };
        let (count, was_deferred) = answer(db, call);
        assert_eq!(count, u64::from(at / 2 + 1));
        was_deferred
    });
    calls.collect()
}

/// O-53, O-97, O-107: calls are replayed by the rules under which they ran, and go on by those of
/// now.
#[test]
fn o_53_a_log_is_replayed_by_the_rules_of_its_release() {
    let options = || options().procedure::<Enroll>();
    let path = path_of((0, 0), "").with_file_name(OF_RULES_3);
    let dir = tempfile::tempdir().unwrap();
    let (alive, killed) = (dir.path().join("alive"), dir.path().join("killed"));
    let db = options().open(&alive).unwrap();
    let were_deferred = enroll_all(&db);
    copy(&alive, &killed);
    let state_hash = db.stats().state_hash;
    if std::env::var_os("NVCARACAL_BLESS").is_some() && !path.exists() {
        assert!(were_deferred.iter().all(|deferred| *deferred), "by the rules of before");
        fs::write(&path, pack(&killed, state_hash)).unwrap();
    }
    assert!(were_deferred.iter().all(|deferred| !*deferred), "no such call is deferred now");
    fs::create_dir(dir.path().join("before")).unwrap();
    let before = dir.path().join("before");
    assert_eq!(unpack(&fs::read_to_string(&path).unwrap(), &before), state_hash);
    for store in [killed, before] {
        let db = options().open(&store).unwrap();
        let report = db.recovery();
        assert!(report.epochs_replayed > 0 && report.epochs_replayed == report.epochs_verified);
        assert_eq!(db.stats().state_hash, state_hash);
        db.check_indexes().unwrap();
        let next = Enroll { name: "another".into(), age: 20 };
        assert_eq!(answer(&db, next), (u64::from(ENROLLED / 2 + 2), false));
        db.close().unwrap();
        options().open(&store).unwrap().check_indexes().unwrap();
    }
}

#[test]
fn o_53_stores_are_kept_with_all_that_is_in_them() {
    let newest = *VERSIONS.last().unwrap();
    assert_eq!(storage::format::FORMAT_VERSION, newest.0, "keep a store of this format, too");
    for (kind, text) in KINDS.into_iter().zip(made()) {
        assert_opens(&text, kind, "made now");
        let path = path_of(newest, kind);
        if std::env::var_os("NVCARACAL_BLESS").is_some() && !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

#[test]
fn o_53_stores_of_releases_are_opened_with_all_that_is_in_them() {
    for version in VERSIONS {
        for kind in KINDS {
            let text = fs::read_to_string(path_of(version, kind)).unwrap();
            assert_opens(&text, kind, &format!("version {version:?}"));
        }
    }
}

/// O-53: with words that say how to go on, and every byte as it was.
#[test]
fn o_53_stores_of_other_files_are_refused_by_their_version() {
    for version in REFUSED {
        for kind in KINDS {
            let dir = tempfile::tempdir().unwrap();
            unpack(&fs::read_to_string(path_of(version, kind)).unwrap(), dir.path());
            let before = bytes(dir.path());
            let error = options().open(dir.path()).expect_err("files of an earlier version");
            let text = error.to_string();
            assert!(text.contains("files have format version 2"), "{text}");
            assert!(text.contains("`dump` it with the program that wrote it"), "{text}");
            assert_eq!(bytes(dir.path()), before, "{kind}: something was touched");
        }
    }
}
