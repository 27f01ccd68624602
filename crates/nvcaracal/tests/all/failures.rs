//! What goes wrong in a procedure is that caller's answer, and the database goes on.

use crate::common::{ACCOUNTS, Deposit, Transfer, dram, options, sum};
use nvcaracal::{
    Abort, Data, Database, Error, HashTable, Procedure, Sequences, Stop, Table, Transaction,
    Tuning, WriteSet, plain, procedure,
};

const NOTES: Table<str, String> = Table::ordered("notes").with_key_bytes(20).with_value_bytes(100);
const TOO_LONG: &str = "much longer than twenty bytes";
const STRANGERS: HashTable<u64, u64> = Table::hash("strangers");
const STRANGERS_IN_ORDER: Table<u64, u64> = Table::ordered("strangers");

plain! {
    /// Does what its number says.
    struct Misbehave { how: u64 }
}

impl Procedure for Misbehave {
    const NAME: &'static str = "misbehave";
    type Output = u64;

    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        match self.how {
            0 => Err(Abort::code(42)),
            1 => {
                let _ = sequences.get(STRANGERS, 5);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write_set(&self, set: &mut WriteSet) {
        match self.how {
            2 => set.insert(STRANGERS, 1),
            3 => panic!("while declaring"),
            _ => set.insert(ACCOUNTS, 1),
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<u64, Stop> {
        tx.insert(ACCOUNTS, 1, &1_000_000)?;
        match self.how {
            4 => panic!("half way"),
            5 => tx.insert(ACCOUNTS, 77, &1).map(|()| 0),
            6 => tx.get(STRANGERS, 1).map(|_| 0),
            7 => Err(Abort { message: "nine".into(), ..Abort::code(9) }.into()),
            8 => {
                tx.commit_point()?;
                panic!("after the commit point")
            }
            how => Ok(how),
        }
    }
}

plain! {
    /// Makes a mistake, ignores it, and ends as it is told.
    struct Careless { mistake: u64, end: u64 }
}

/// The table of accounts as a program sees it that stored other values in it: they do not decode.
const AS_TEXT: Table<u64, String> = Table::ordered("accounts");
const BYTES: HashTable<u64, Vec<u8>> = Table::hash("bytes").with_value_bytes(8);
const BYTES_AS_WORDS: HashTable<u64, u64> = Table::hash("bytes");
const BYTES_IN_ORDER: Table<u64, Vec<u8>> = Table::ordered("bytes in order").with_value_bytes(8);
const WORDS_IN_ORDER: Table<u64, u64> = Table::ordered("bytes in order");

impl Procedure for Careless {
    const NAME: &'static str = "careless";
    type Output = ();

    fn sequences(&self, sequences: &mut Sequences) -> Result<(), Abort> {
        if self.mistake == 100 {
            let _ = sequences.get(STRANGERS, 5);
            return self.end();
        }
        Ok(())
    }

    fn write_set(&self, set: &mut WriteSet) {
        set.update(ACCOUNTS, 1);
        if self.mistake == 101 {
            let _ = set.get(BYTES_AS_WORDS, 1);
            set.insert(NOTES, TOO_LONG);
            let _ = self.end();
        }
    }

    fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
        tx.update(ACCOUNTS, 1, &1_000_000)?;
        match self.mistake {
            0 => drop(tx.get(STRANGERS, 1)),
            1 => drop(tx.get(BYTES_AS_WORDS, 1)),
            2 => drop(tx.get_many(BYTES_AS_WORDS, [1u64])),
            3 => drop(tx.insert(NOTES, TOO_LONG, &String::new())),
            4 => drop(tx.update(NOTES, TOO_LONG, &String::new())),
            5 => drop(tx.delete(NOTES, TOO_LONG)),
            6 => drop(tx.modify_bytes(NOTES, TOO_LONG, 0..1, |_, _| {})),
            7 => drop(tx.range(STRANGERS_IN_ORDER, ..).next()),
            8 => drop(tx.piece_result::<u64>(0)),
            9 => drop(tx.get(AS_TEXT, 1)),
            10 => drop(tx.get_bytes(STRANGERS, 1)),
            11 => drop(tx.insert(NOTES, "k", &"x".repeat(101))),
            _ => drop(tx.range(WORDS_IN_ORDER, ..).next_back()),
        }
        tx.update(ACCOUNTS, 1, &2_000_000)?;
        Ok(self.end()?)
    }
}

impl Careless {
    fn end(&self) -> Result<(), Abort> {
        match self.end {
            0 => Ok(()),
            1 => Err(Abort::new("aborted instead")),
            _ => panic!("panicked instead"),
        }
    }
}

/// A procedure that ignored an error and returned `Ok` committed what it wrote before and after.
#[test]
fn an_ignored_mistake_is_the_answer_and_nothing_is_written() {
    plain! { struct Fill {} }
    impl Procedure for Fill {
        const NAME: &'static str = "fill";
        type Output = ();
        fn write_set(&self, set: &mut WriteSet) {
            set.insert(BYTES, 1);
            set.insert(BYTES_IN_ORDER, 1);
        }
        fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
            tx.insert(BYTES_IN_ORDER, 1, &vec![1, 2, 3])?;
            tx.insert(BYTES, 1, &vec![1, 2, 3])
        }
    }
    let options = options().table(NOTES).table(BYTES).table(BYTES_IN_ORDER);
    let db = dram(options.procedure::<Careless>().procedure::<Fill>());
    db.call(Deposit { account: 1, cents: 10 }).unwrap();
    db.call(Fill {}).unwrap();
    let undecodable = "written with another type";
    let words = [
        "\"strangers\"",
        undecodable,
        undecodable,
        "29 bytes",
        "29 bytes",
        "29 bytes",
        "29 bytes",
        "\"strangers\"",
        "piece 0 of 0",
        "not registered",
        "\"strangers\"",
        "(key \"k\")",
        undecodable,
    ];
    let in_body = (0..).zip(words);
    for (mistake, words) in in_body.chain([(100, "\"strangers\""), (101, undecodable)]) {
        for end in 0..3 {
            let error = db.call(Careless { mistake, end }).unwrap_err();
            assert!(error.is_failed(), "mistake {mistake}, end {end}: {error}");
            assert!(error.to_string().contains(words), "mistake {mistake}, end {end}: {error}");
            assert_eq!(sum(&db), 10, "mistake {mistake}, end {end}");
        }
    }
}

/// Writes a note.
#[derive(Debug, Clone, PartialEq, Data)]
struct Write {
    key: String,
    text: String,
}

impl Procedure for Write {
    const NAME: &'static str = "write";
    type Output = Option<String>;

    fn write_set(&self, set: &mut WriteSet) {
        set.insert(NOTES, self.key.as_str());
    }

    fn run(&self, tx: &mut Transaction) -> Result<Option<String>, Stop> {
        let before = tx.get(NOTES, self.key.as_str())?;
        tx.insert(NOTES, self.key.as_str(), &self.text)?;
        Ok(before)
    }
}

/// Its epochs are not serial, however small.
fn open() -> Database {
    let options = options()
        .tuning(Tuning { serial_calls_max: 0, ..Tuning::default() })
        .table(NOTES)
        .procedure::<Misbehave>()
        .procedure::<Write>();
    let db = dram(options);
    db.call(Deposit { account: 1, cents: 10 }).unwrap();
    db
}

fn fail(db: &Database, how: u64) -> Error {
    let error = db.call(Misbehave { how }).unwrap_err();
    assert_eq!(sum(db), 10, "nothing was written: {error}");
    assert_eq!(db.call(Deposit { account: 1, cents: 0 }).unwrap(), 10, "it goes on");
    error
}

#[test]
fn a_panic_is_the_answer_of_its_caller() {
    let db = open();
    for (how, text) in [(3, "while declaring"), (4, "half way")] {
        let error = fail(&db, how);
        assert!(error.is_failed() && !error.is_stopped());
        assert_eq!(error.to_string(), format!("the procedure panicked: {text}"));
    }
    assert_eq!(db.stats().failed, 2);
}

#[test]
fn an_abort_arrives_with_code_and_words() {
    let db = open();
    let error = fail(&db, 7);
    assert!(error.is_user_abort());
    assert_eq!(error.abort(), Some(&Abort { message: "nine".into(), ..Abort::code(9) }));
    assert_eq!(error.to_string(), "aborted with code 9: nine");
    assert_eq!(fail(&db, 0).abort(), Some(&Abort::code(42)));
    let error = db.call(Transfer { from: 1, to: 2, cents: 11 }).unwrap_err();
    assert_eq!(error.to_string(), "aborted with code 7: -1 is not enough");
}

/// O-69: a write that was not predicted is no mistake: the call is deferred, and counted.
#[test]
fn o_69_an_undeclared_write_takes_place_in_the_next_epoch() {
    let db = open();
    // Its first call runs in the serial part, which shows that it has a write set.
    fail(&db, 7);
    db.call(Misbehave { how: 5 }).unwrap();
    assert_eq!(sum(&db), 1_000_001, "both rows that it wrote");
    assert_eq!((db.stats().failed, db.stats().deferred), (0, 1));
    assert_eq!(db.stats().deferred_calls, 0, "it has run");
    let stats = db.stats();
    let misbehave = stats.procedures.iter().find(|of| of.name == Misbehave::NAME).unwrap();
    let counts = (misbehave.aborted, misbehave.committed, misbehave.deferred, misbehave.failed);
    assert_eq!(counts, (1, 1, 1, 0), "the deferred call is counted when it is answered, too");
}

#[test]
fn a_table_that_is_not_registered_is_named() {
    let db = open();
    for how in [1, 2, 6] {
        let error = fail(&db, how);
        assert!(error.is_failed());
        assert_eq!(
            error.to_string(),
            "table \"strangers\" (hash, keys of up to 8 bytes, values of up to 8) is not \
             registered with this database: add it to its options"
        );
    }
    assert!(db.get(STRANGERS, 1).unwrap_err().is_mistake());
    // The same name with other types is another table.
    const OTHER_TYPES: Table<u64, u8> = Table::ordered("accounts");
    assert!(db.get(OTHER_TYPES, 1).unwrap_err().is_mistake());
}

#[test]
fn a_procedure_that_is_not_registered_is_named() {
    let db = dram(Database::options().table(ACCOUNTS).procedure::<Deposit>().workers(1));
    let error = db.submit(Transfer { from: 1, to: 2, cents: 1 }).unwrap_err();
    assert!(error.is_mistake());
    assert!(error.to_string().contains("\"transfer\" is not registered"), "{error}");
    assert!(db.batch().add(&Transfer { from: 1, to: 2, cents: 1 }).is_err());
}

#[test]
fn keys_and_values_beyond_their_limits_are_refused() {
    let db = open();
    let write = |key: &str, len: usize| db.call(Write { key: key.into(), text: "x".repeat(len) });
    let (fits, too_long) = ("k".repeat(20), "k".repeat(21));
    assert_eq!(write(&fits, 100).unwrap(), None);
    assert_eq!(write(&fits, 0).unwrap(), Some("x".repeat(100)));
    assert_eq!(db.get(NOTES, fits.as_str()).unwrap(), Some(String::new()));
    for (key, len, words) in
        [(too_long.as_str(), 1, "21 bytes"), ("", 1, "0 bytes"), ("k", 101, "101")]
    {
        let error = write(key, len).unwrap_err();
        assert!(error.is_failed(), "{error}");
        assert!(
            error.to_string().contains("\"notes\"") && error.to_string().contains(words),
            "{error}"
        );
    }
    let error = db.get(NOTES, too_long.as_str()).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let error = write("k", 1 << 20).unwrap_err();
    assert!(error.is_limit(), "{error}");
    let notes: Vec<_> = db.snapshot().unwrap().range(NOTES, ..).map(Result::unwrap).collect();
    assert_eq!(notes, [(fits, String::new())]);
}

#[test]
fn mistakes_in_options_are_told_at_open() {
    struct Impostor;
    impl nvcaracal::Data for Impostor {
        fn encode(&self, _: &mut Vec<u8>) {}
        fn decode(_: &mut &[u8]) -> Option<Self> {
            Some(Self)
        }
    }
    impl Procedure for Impostor {
        const NAME: &'static str = "deposit";
        type Output = ();
        fn write_set(&self, _: &mut WriteSet) {}
        fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
            Ok(())
        }
    }
    const TWIN: HashTable<u64, u64> = Table::hash("accounts");
    let open =
        |options: nvcaracal::Options| options.open_device("dram".parse().unwrap()).unwrap_err();
    assert_eq!(
        open(options().procedure::<Impostor>()).to_string(),
        "two procedures have the name \"deposit\""
    );
    assert!(open(options().table(TWIN)).to_string().contains("registered a second time"));
    assert!(open(options().workers(0)).is_limit());
    assert!(open(options().workers(65)).is_limit());
    assert!(open(options().tuning(Tuning { queue_calls_max: 0, ..Tuning::default() })).is_limit());
    assert!(open(options().tuning(Tuning { queue_bytes_max: 5, ..Tuning::default() })).is_limit());
    assert!(
        open(options().tuning(Tuning { epoch_calls_max: 1 << 24, ..Tuning::default() })).is_limit()
    );
    assert!(options().open_device("crash".parse().unwrap()).unwrap_err().is_mistake());
    assert!(open(options().table(HashTable::<u64, u64>::hash(""))).is_limit());
}

#[test]
fn an_epoch_without_space_runs_as_far_as_there_is_space() {
    let tuning = Tuning {
        segment_bytes: 4096,
        epoch_calls_max: 1_000_000,
        queue_calls_max: 1_000_000,
        ..Tuning::default()
    };
    let db = dram(options().tuning(tuning).data_bytes_max(12 << 20));
    let mut batch = db.batch();
    let added: Vec<_> =
        (0..200_000).map(|account| batch.add(&Deposit { account, cents: 1 }).unwrap()).collect();
    let submitted = batch.submit().unwrap();
    let results = added.into_iter().map(|added| submitted.ticket(added).wait());
    let (done, refused): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
    assert!(!done.is_empty() && !refused.is_empty());
    assert!(refused.iter().all(|r| r.as_ref().is_err_and(Error::is_limit)));
    assert_eq!(sum(&db), done.len() as i64);
    assert_eq!(db.stats().refused, refused.len() as u64);
}

#[test]
fn a_failure_after_the_commit_point_stops_the_database() {
    let db = open();
    // The first call of a procedure runs alone, whatever it does.
    fail(&db, 7);
    let later = db.submit(Misbehave { how: 8 }).unwrap();
    let error = later.wait().unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert!(error.to_string().contains("after its commit point"), "{error}");
    assert!(db.call(Deposit { account: 1, cents: 1 }).unwrap_err().is_stopped());
    assert!(db.get(ACCOUNTS, 1).unwrap_err().is_stopped());
    assert!(db.close().unwrap_err().is_stopped());
}

/// O-79: in the serial part a failure after the commit point is that of its call alone, because
/// nobody has seen anything of it.
#[test]
fn o_79_a_failure_after_the_commit_point_fails_the_call_where_it_ran_alone() {
    let db = dram(options().procedure::<Misbehave>());
    db.call(Deposit { account: 1, cents: 10 }).unwrap();
    let error = fail(&db, 8);
    assert!(error.is_failed() && error.to_string().contains("after the commit point"), "{error}");
}

/// Gives up with a number.
#[procedure]
fn refuse(_tx: &mut Transaction, number: u64) -> Result<(), Stop> {
    Err(number.into())
}

#[test]
fn a_value_that_a_procedure_gave_up_with_is_read_as_its_type_only() {
    let db = dram(options().procedure::<Refuse>().procedure::<Misbehave>());
    db.call(Deposit { account: 1, cents: 10 }).unwrap();
    let error = db.call(Refuse { number: 5 }).unwrap_err();
    assert!(error.is_user_abort() && error.to_string() == "aborted: 5", "{error}");
    assert_eq!((error.abort_as::<u64>(), error.abort_as::<i64>()), (Some(5), None));
    assert_eq!(fail(&db, 7).abort_as::<u64>(), None, "it has none");
    assert_eq!(fail(&db, 4).abort_as::<u64>(), None, "it is no abort");
}

/// A log that is full takes a checkpoint by itself and goes on, whatever the interval.
#[test]
fn a_full_log_takes_a_checkpoint_and_goes_on() {
    for serial_calls_max in [64, 0] {
        let db = Database::options()
            .table(NOTES)
            .procedure::<Write>()
            .tuning(Tuning { serial_calls_max, log_segment_bytes: 64 << 10, ..Tuning::default() })
            .checkpoint_every(1_000_000)
            .log_bytes_max(2 << 20)
            .open_device(nvcaracal::DeviceSpec::Dram)
            .unwrap();
        for round in 0..100 {
            let text = format!("note {round}");
            db.call(Write { key: "k".into(), text }).unwrap();
        }
        let stats = db.stats();
        assert_eq!((stats.epoch, stats.refused), (100, 0));
        assert!(stats.checkpoint_epoch > 50, "{}", stats.checkpoint_epoch);
    }
}

/// O-83: a body that calls its database would wait for itself.
#[test]
fn o_83_a_body_that_calls_the_database_is_told_so() {
    static DATABASE: std::sync::OnceLock<Database> = std::sync::OnceLock::new();
    plain! { struct Reenter { how: u64 } }
    impl Procedure for Reenter {
        const NAME: &'static str = "reenter";
        type Output = ();
        fn run(&self, _: &mut Transaction) -> Result<(), Stop> {
            let db = DATABASE.get().expect("it is set before the first call");
            let error = match self.how {
                0 => db.call(Deposit { account: 1, cents: 1 }).unwrap_err(),
                1 => db.submit(Deposit { account: 1, cents: 1 }).unwrap_err(),
                2 => db.snapshot().unwrap_err(),
                _ => db.get(ACCOUNTS, 1).unwrap_err(),
            };
            assert!(error.is_mistake(), "{error}");
            Err(Abort::new(error.to_string()).into())
        }
    }
    for serial_calls_max in [64, 0] {
        let db = dram(
            options()
                .tuning(Tuning { serial_calls_max, ..Tuning::default() })
                .procedure::<Reenter>(),
        );
        let db = DATABASE.get_or_init(|| db);
        for how in 0..4 {
            let error = db.call(Reenter { how }).unwrap_err();
            assert!(error.to_string().contains("which waits for it"), "{error}");
        }
    }
}

/// A panic whose payload panics when it is dropped stopped the database for everybody.
#[test]
fn a_panic_whose_payload_panics_is_that_of_its_caller() {
    struct Again;
    impl Drop for Again {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::panic_any(Again);
            }
        }
    }
    plain! { struct Burst { how: u64 } }
    fn burst(is_now: bool) {
        if is_now {
            std::panic::panic_any(Again);
        }
    }
    impl Procedure for Burst {
        const NAME: &'static str = "burst";
        type Output = ();
        const PIECES: bool = true;
        fn sequences(&self, _: &mut Sequences) -> Result<(), Abort> {
            burst(self.how == 0);
            Ok(())
        }
        fn write_set(&self, set: &mut WriteSet) {
            burst(self.how == 1);
            set.insert(ACCOUNTS, 1);
        }
        fn run(&self, tx: &mut Transaction) -> Result<(), Stop> {
            tx.insert(ACCOUNTS, 1, &1_000_000)?;
            if self.how == 3 {
                // The mistake counts, and the panic goes with it.
                let _ = tx.get(STRANGERS, 1);
            }
            burst(self.how >= 2);
            Ok(())
        }
    }
    for serial_calls_max in [64, 0] {
        let db = dram(
            options().tuning(Tuning { serial_calls_max, ..Tuning::default() }).procedure::<Burst>(),
        );
        for how in 0..4 {
            let error = db.call(Burst { how }).unwrap_err();
            assert!(error.is_failed(), "{how}: {error}");
            assert_eq!(db.call(Deposit { account: 1, cents: 1 }).unwrap(), how as i64 + 1);
        }
    }
}
