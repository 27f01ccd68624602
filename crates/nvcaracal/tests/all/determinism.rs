//! O-47: every epoch runs twice, on copies. Programs that are deterministic do not notice, the
//! others are named.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use nvcaracal::{
    Abort, Database, DeviceSpec, Error, ErrorKind, HashTable, Index, Options, Piece, PieceResult,
    PieceResults, Procedure, Sequence, Sequences, Stop, Table, Transaction, Tuning, WriteSet,
    plain, procedure,
};

const TASKS: Table<u64, String> = Table::ordered("tasks");
const BY_TEXT: Index<str, u64, String> =
    TASKS.index("by_text", |_, text: &String| Some(text.clone()));
const SUMS: HashTable<str, u64> = Table::hash("sums");
const COUNTS: HashTable<u64, u64> = Table::hash("counts");
const NUMBERS: Sequence = Sequence::new("numbers");

/// A new task; gives up for a text that is there.
#[procedure(sequences(NUMBERS))]
fn add_task(tx: &mut Transaction, text: &str) -> Result<u64, Stop> {
    let number = tx.sequence_number(0);
    if tx.range_by(BY_TEXT, text..=text).next().transpose()?.is_some() {
        Err(format!("{text} is there, it would have been {number}"))?;
    }
    tx.insert(TASKS, number, &text.to_string())?;
    Ok(number)
}

/// Takes the first task, and makes use of the clock and the dice that there are; or panics.
#[procedure]
fn take_task(tx: &mut Transaction, fails: bool) -> Result<(u64, u64), Stop> {
    let (number, text) = tx.range(TASKS, ..).next().transpose()?.ok_or("there is none")?;
    tx.delete(TASKS, number)?;
    let sum = tx.get(SUMS, text.as_str())?.unwrap_or(0) + tx.timestamp_ns() % 7 + tx.seed() % 7;
    tx.insert(SUMS, text.as_str(), &sum)?;
    assert!(!fails, "a mistake");
    Ok((number, sum))
}

plain! {
    struct Count { counter: u64 }
}

/// Counts in a piece.
impl Procedure for Count {
    const NAME: &'static str = "count";
    const PIECES: bool = true;
    type Output = u64;

    fn write_set(&self, set: &mut WriteSet) {
        set.update_piece(COUNTS, self.counter, 1);
        set.insert(COUNTS, 100 + self.counter);
    }

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        tx.insert(COUNTS, 100 + self.counter, &1)?;
        Ok(0)
    }

    fn piece(&self, piece: &mut Piece) -> Result<PieceResult, Stop> {
        let count = piece.value::<u64>()?.unwrap_or(0) + 1;
        piece.update(&count)?;
        Ok(count.into())
    }

    fn finish(&self, _: u64, results: PieceResults) -> u64 {
        results.get(0)
    }
}

fn predicted(call: &Stray, set: &mut WriteSet) {
    set.insert(COUNTS, call.from);
}

/// Writes another row than it predicts.
#[procedure(write_set = predicted)]
fn stray(tx: &mut Transaction, from: u64, to: u64) -> Result<u64, Stop> {
    let count = tx.get(COUNTS, from)?.unwrap_or(0) + 1;
    tx.insert(COUNTS, to, &count)?;
    Ok(count)
}

fn options() -> Options {
    let options = Database::options().table(TASKS).index(BY_TEXT).table(SUMS).table(COUNTS);
    let options = options.sequence(NUMBERS).procedure::<AddTask>().procedure::<TakeTask>();
    let options = options.procedure::<Count>().procedure::<Stray>();
    options.workers(2).data_bytes_max(1 << 30).log_bytes_max(1 << 30)
}

/// Answers to a round of calls, as text.
fn round(db: &Database, round: u64) -> Vec<String> {
    let mut batch = db.batch();
    let adds: Vec<_> = (0..40)
        .map(|call| {
            let text = format!("task {}", (round * 7 + call) % 50);
            batch.add(&AddTask { text }).unwrap()
        })
        .collect();
    let takes: Vec<_> =
        (0..30).map(|call| batch.add(&TakeTask { fails: call == 5 }).unwrap()).collect();
    let strays: Vec<_> =
        (0..20).map(|call| batch.add(&Stray { from: call, to: call + 1 }).unwrap()).collect();
    let counts: Vec<_> =
        (0..20).map(|call| batch.add(&Count { counter: call % 3 }).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    let mut answers = Vec::new();
    answers.extend(adds.into_iter().map(|added| format!("{:?}", submitted.ticket(added).wait())));
    let took = |taken| submitted.ticket(taken).wait().map(|(number, _)| number);
    answers.extend(takes.into_iter().map(|taken| format!("{:?}", took(taken))));
    let rest = strays.into_iter().chain(counts);
    answers.extend(rest.map(|added| format!("{:?}", submitted.ticket(added).wait())));
    answers
}

/// Alone before all others, or beside each other as far as their predictions allow it.
#[test]
fn a_deterministic_program_does_the_same_with_the_check_and_without() {
    for serial_calls_max in [1000, 0] {
        does_the_same(Tuning { serial_calls_max, ..Tuning::default() });
    }
}

fn does_the_same(tuning: Tuning) {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["plain", "checked"].map(|name| dir.path().join(name));
    let mut answers = BTreeMap::new();
    for reopened in 0..2 {
        // In the same order: calls that are deferred come later.
        let open = |check: bool| {
            let options = options().tuning(tuning).check_determinism(check);
            options.open(&paths[usize::from(check)]).unwrap()
        };
        let (plain, checked) = (open(false), open(true));
        for number in 0..8 {
            let (expected, found) = (round(&plain, number), round(&checked, number));
            assert_eq!(found.len(), 110);
            assert_eq!(found, expected, "round {number}");
            found.iter().for_each(|answer| {
                *answers.entry(answer.split(' ').next().unwrap().to_string()).or_insert(0) += 1;
            });
        }
        checked.check_indexes().unwrap();
        assert_eq!(checked.stats().rows, plain.stats().rows);
        let [one, other] = [&plain, &checked].map(|db| {
            let snapshot = db.snapshot().unwrap();
            let rows: Result<Vec<_>, Error> = snapshot.range(TASKS, ..).collect();
            rows.unwrap()
        });
        assert_eq!(one, other, "opened {} times", reopened + 1);
        plain.close().unwrap();
        checked.close().unwrap();
    }
    assert!(answers["Err(aborted:"] > 20 && answers["Err(the"] == 16, "{answers:?}");
}

/// What a call answers with or writes that is not deterministic, by its number.
#[procedure]
fn odd(tx: &mut Transaction, kind: u8, writes: bool) -> Result<u64, Stop> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let odd = match kind {
        0 => COUNTER.fetch_add(1, Ordering::Relaxed),
        1 => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.unwrap_or_default().as_nanos() as u64
        }
        // Two orders of so many numbers are as good as never the same.
        _ => {
            let numbers: HashSet<u64> = (0..1000).collect();
            numbers.into_iter().fold(0, |hash: u64, number| {
                hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7) ^ number
            })
        }
    };
    if writes {
        tx.insert(COUNTS, 1, &odd)?;
        return Ok(0);
    }
    Ok(odd)
}

/// Leaves a row of its own each time.
#[procedure]
fn odd_key(tx: &mut Transaction) -> Result<(), Stop> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    tx.insert(COUNTS, COUNTER.fetch_add(1, Ordering::Relaxed), &5)
}

fn odd_set(_: &OddPrediction, set: &mut WriteSet) {
    static SETS: AtomicU64 = AtomicU64::new(0);
    set.insert(COUNTS, SETS.fetch_add(1, Ordering::Relaxed) % 2);
}

/// Predicts another row each time, and writes one of them.
#[procedure(write_set = odd_set)]
fn odd_prediction(tx: &mut Transaction) -> Result<(), Stop> {
    tx.insert(COUNTS, 0, &7)
}

fn of_row(call: &AddOdd, set: &mut WriteSet) {
    set.insert(COUNTS, call.predicted);
}

/// Appends a digit to a row; which, is not deterministic if that is asked for. Answers with what it
/// predicted.
#[procedure(write_set = of_row)]
fn add_odd(tx: &mut Transaction, predicted: u64, row: u64, is_odd: bool) -> Result<u64, Stop> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let digit = if is_odd { COUNTER.fetch_add(1, Ordering::Relaxed) % 10 } else { 1 };
    let before = tx.get(COUNTS, row)?.unwrap_or(0);
    tx.insert(COUNTS, row, &(before.wrapping_mul(10) + digit))?;
    Ok(predicted)
}

plain! {
    struct OddAllocation { unused: u64 }
}

/// Allocates from one sequence or another.
impl Procedure for OddAllocation {
    const NAME: &'static str = "odd_allocation";
    type Output = ();

    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        sequences.allocate(NUMBERS.at(COUNTER.fetch_add(1, Ordering::Relaxed)));
        Ok(())
    }

    fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
        Ok(())
    }
}

/// Gives up every other time.
#[procedure]
fn odd_abort(_tx: &mut Transaction) -> Result<u64, Stop> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    match COUNTER.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => Ok(7),
        _ => Err("not this time")?,
    }
}

/// Runs one epoch of 30 calls, of which one is not deterministic; what its caller hears.
fn blamed<P: Procedure>(call: &P, name: &str) -> String {
    let options = options().procedure::<Odd>().procedure::<OddKey>().check_determinism(true);
    let options = options.procedure::<OddAllocation>().procedure::<OddAbort>();
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    db.call(AddTask { text: "before".into() }).unwrap();
    let mut batch = db.batch();
    let before: Vec<_> =
        (0..17).map(|number| batch.add(&AddTask { text: format!("{number}") }).unwrap()).collect();
    let odd = batch.add(call).unwrap();
    for _ in 0..12 {
        batch.add(&TakeTask { fails: false }).unwrap();
    }
    let submitted = batch.submit().unwrap();
    let error = submitted.ticket(odd).wait().err().expect("it must be found");
    let text = error.to_string();
    assert!(error.is_not_deterministic() && error.is_stopped(), "{text}");
    let expected = format!("procedure {name:?} is not deterministic: call 17 of epoch 2 ");
    assert!(text.starts_with(&expected), "{text}");
    // Nothing of the epoch was answered, and the database has stopped.
    for added in before {
        let error = submitted.ticket(added).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotDeterministic);
    }
    let error = db.call(TakeTask { fails: false }).unwrap_err();
    assert!(error.is_not_deterministic(), "{error}");
    assert!(db.close().unwrap_err().is_not_deterministic());
    text
}

#[test]
fn other_answers_are_found_and_named() {
    for kind in 0..3 {
        let text = blamed(&Odd { kind, writes: false }, "odd");
        assert!(
            text.contains(" answered ") && text.contains(" and, run again, answered "),
            "{text}"
        );
    }
    let text = blamed(&OddAbort {}, "odd_abort");
    assert!(text.contains("answered 7 and, run again, gave up (aborted: not this"));
}

#[test]
fn other_writes_with_the_same_answers_are_found_and_named() {
    for kind in 0..3 {
        let text = blamed(&Odd { kind, writes: true }, "odd");
        let row = "to row 0000000000000001 of table \"counts\" and, run again, wrote ";
        assert!(text.contains(" wrote ") && text.contains(row), "{text}");
    }
    let text = blamed(&OddKey {}, "odd_key");
    // Which row, depends on how often it ran.
    let [wrote, not] =
        ["wrote 0500000000000000 to row 00000000000000", "run again, did not write it"];
    assert!(text.contains(wrote) && text.contains(not), "{text}");
    let text = blamed(&OddAllocation { unused: 0 }, "odd_allocation");
    assert!(text.contains("allocated from sequences and, run again, drew others"), "{text}");
}

/// A database on which calls run beside each other that predict what they write.
fn in_parallel() -> Database {
    let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
    let options = options().procedure::<AddOdd>().procedure::<OddPrediction>().tuning(tuning);
    let db = options.check_determinism(true).open_device(DeviceSpec::Dram).unwrap();
    // The first calls of a procedure run alone.
    db.call(AddOdd { predicted: 5, row: 5, is_odd: false }).unwrap();
    db.call(OddPrediction {}).unwrap();
    db
}

/// All answers are the same, and later calls have written the row, too.
#[test]
fn a_call_beside_others_is_found_by_the_state_that_it_leaves() {
    for odd in [0, 17, 39] {
        let db = in_parallel();
        let epoch = db.stats().epoch + 1;
        let mut batch = db.batch();
        for call in 0..40 {
            batch.add(&AddOdd { predicted: 5, row: 5, is_odd: call == odd }).unwrap();
        }
        batch.submit().unwrap().wait();
        let error = db.close().unwrap_err();
        assert!(error.is_not_deterministic(), "{error}");
        let text = error.to_string();
        let start = format!(
            "procedure \"add_odd\" is not deterministic: call {odd} of epoch {epoch} wrote "
        );
        let row = "to row 0000000000000005 of table \"counts\" and, run again, wrote ";
        assert!(text.starts_with(&start) && text.contains(row), "{text}");
    }
}

#[test]
fn a_prediction_that_defers_a_call_once_is_found() {
    let db = in_parallel();
    let error = db.call(OddPrediction {}).unwrap_err();
    let text = error.to_string();
    assert!(error.is_not_deterministic() && text.contains("\"odd_prediction\""), "{text}");
    assert!(text.contains("was deferred") && text.contains("answered"), "{text}");
}

#[test]
fn a_deferred_call_is_found() {
    let db = in_parallel();
    let deferred = db.stats().deferred;
    let error = db.call(AddOdd { predicted: 6, row: 7, is_odd: true }).unwrap_err();
    let text = error.to_string();
    assert_eq!(db.stats().deferred, deferred + 1, "it ran in the parallel part first");
    let start = "procedure \"add_odd\" is not deterministic: call 0 of epoch ";
    assert!(error.is_not_deterministic() && text.starts_with(start), "{text}");
    assert!(text.contains("row 0000000000000007 of table \"counts\""), "{text}");
}

/// Deletes a task.
#[procedure]
fn drop_task(tx: &mut Transaction, number: u64) -> Result<bool, Stop> {
    tx.delete(TASKS, number)
}

#[test]
fn a_full_database_refuses_calls_and_goes_on() {
    let options = options().procedure::<DropTask>().check_determinism(true);
    let tuning = Tuning { segment_bytes: 4096, ..Tuning::default() };
    let options = options.data_bytes_max(1 << 20).tuning(tuning);
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    let add = |number: u64| db.call(AddTask { text: format!("{number:0>200}") });
    let there = (0..).find(|&number| add(number).is_err()).unwrap();
    for number in there..there + 3 {
        let error = add(number).unwrap_err();
        assert!(error.is_full(), "{error}");
    }
    for number in 0..there / 2 {
        assert!(db.call(DropTask { number }).unwrap());
    }
    for number in 0..10 {
        add(number).unwrap();
    }
    db.check_indexes().unwrap();
    db.close().unwrap();
}

#[test]
fn a_store_of_a_program_that_was_found_out_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let all = || options().procedure::<Odd>().check_determinism(true);
    let db = all().open(&path).unwrap();
    assert_eq!(db.call(AddTask { text: "a".into() }).unwrap(), 0);
    let error = db.call(Odd { kind: 0, writes: true }).unwrap_err();
    assert!(error.is_not_deterministic(), "{error}");
    drop(db);
    let db = all().open(&path).unwrap();
    assert_eq!(db.get(COUNTS, 1).unwrap(), None);
    // Nor was anything allocated.
    assert_eq!(db.call(AddTask { text: "b".into() }).unwrap(), 1);
    assert_eq!(db.call(TakeTask { fails: false }).unwrap().0, 0);
    db.check_indexes().unwrap();
    db.close().unwrap();
}
