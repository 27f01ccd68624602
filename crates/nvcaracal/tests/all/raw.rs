//! Tables, procedures and calls that are known at run time only.

use std::sync::Arc;

use nvcaracal::{
    Abort, Database, DeviceSpec, HashTable, Options, Part, Sequence, Sequences, Stop, Table,
    Transaction, Tuning, WriteSet, raw,
};

const NUMBERS: Sequence = Sequence::new("numbers");

/// The tables of an interpreter, in the order of their numbers.
#[derive(Clone)]
struct Catalog {
    ordered: Vec<Table<[u8], Vec<u8>>>,
    hash: Vec<HashTable<[u8], Vec<u8>>>,
}

impl Catalog {
    fn new() -> Self {
        let names = ["one", "two"].map(String::from);
        Self {
            ordered: names.iter().map(|name| raw::ordered(&format!("o {name}"), 8, 900)).collect(),
            hash: names.iter().map(|name| raw::hash(&format!("h {name}"), 30, 4)).collect(),
        }
    }

    fn options(&self) -> Options {
        let options = Database::options().sequence(NUMBERS);
        let options = self.ordered.iter().fold(options, |options, table| options.table(*table));
        self.hash.iter().fold(options, |options, table| options.table(*table))
    }
}

/// `op table key=value`, where the operation is one letter.
struct Interpreter {
    catalog: Catalog,
    semantics: &'static str,
}

fn parse(call: &[u8]) -> (u8, usize, &[u8], &[u8]) {
    let rest = &call[2..];
    let at = rest.iter().position(|&byte| byte == b'=').unwrap_or(rest.len());
    (call[0], usize::from(call[1] - b'0'), &rest[..at], rest.get(at + 1..).unwrap_or(&[]))
}

impl raw::Procedure for Interpreter {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn semantics(&self) -> String {
        self.semantics.into()
    }

    fn has_sequences(&self) -> bool {
        true
    }

    fn sequences(&self, call: &[u8], sequences: &mut Sequences) -> Result<(), Abort> {
        if call[0] == b'n' {
            sequences.allocate(NUMBERS.at(7));
        }
        Ok(())
    }

    fn write_set(&self, call: &[u8], set: &mut WriteSet) {
        match parse(call) {
            (b'p' | b's', table, key, _) => set.insert(self.catalog.ordered[table], key),
            (b'h', table, key, _) => set.insert(self.catalog.hash[table], key),
            (b'n' | b'a', ..) => {}
            _ => set.unknown(),
        }
    }

    fn run(&self, call: &[u8], tx: &mut Transaction) -> Result<Vec<u8>, Stop> {
        let (op, table, key, value) = parse(call);
        match op {
            b'p' => {
                let before = tx.get(self.catalog.ordered[table], key)?;
                tx.insert(self.catalog.ordered[table], key, &value.to_vec())?;
                Ok(before.unwrap_or_default())
            }
            b'h' => tx.insert(self.catalog.hash[table], key, &value.to_vec()).map(|()| vec![]),
            b's' => {
                let sum = value.iter().map(|&byte| u64::from(byte)).sum::<u64>().to_le_bytes();
                tx.insert(self.catalog.ordered[table], key, &sum.to_vec())?;
                Ok(sum.to_vec())
            }
            b'n' => Ok(tx.sequence_number(0).to_le_bytes().to_vec()),
            b'a' => Err(Abort { payload: value.to_vec(), ..Abort::code(5) }.into()),
            _ => {
                let rows = tx.range(self.catalog.ordered[table], ..);
                let keys = rows.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Stop>>()?;
                for key in &keys {
                    tx.delete(self.catalog.ordered[table], &key[..])?;
                }
                Ok(keys.concat())
            }
        }
    }
}

fn open(device: DeviceSpec, semantics: &'static str) -> nvcaracal::Result<(Database, Catalog)> {
    let catalog = Catalog::new();
    let procedure = Interpreter { catalog: catalog.clone(), semantics };
    let tuning = Tuning { argument_bytes_max: 8 << 20, ..Tuning::default() };
    let options = catalog.options().raw_procedure(Arc::new(procedure)).tuning(tuning);
    Ok((options.open_device(device)?, catalog))
}

#[test]
fn calls_answers_and_aborts_are_bytes() {
    let (db, catalog) = open(DeviceSpec::Dram, "").unwrap();
    let (run, by) = (db.raw_procedure("interpreter").unwrap(), db.submitter());
    let call = |call: &[u8]| by.submit_raw(run, call).unwrap().wait();
    assert_eq!(call(b"p0k1=first").unwrap(), b"");
    assert_eq!(call(b"p0k1=second").unwrap(), b"first");
    assert_eq!(call(b"p0k0=").unwrap(), b"");
    assert_eq!(call(b"h1key=abcd").unwrap(), b"");
    let abort = call(b"a0=why").unwrap_err();
    assert_eq!(
        (abort.abort().unwrap().code, &abort.abort().unwrap().payload[..]),
        (5, &b"why"[..])
    );
    assert!(call(b"h1key=abcde").unwrap_err().is_failed(), "a value beyond its limit");
    assert!(call(b"p00123456789=").unwrap_err().is_failed(), "a key beyond its limit");
    assert_eq!(call(b"n0").unwrap(), 0_u64.to_le_bytes());
    assert_eq!(call(b"n0").unwrap(), 1_u64.to_le_bytes());

    assert_eq!(db.get(catalog.ordered[0], &b"k1"[..]).unwrap().unwrap(), b"second");
    assert_eq!(db.get(catalog.hash[1], &b"key"[..]).unwrap().unwrap(), b"abcd");
    let snapshot = db.snapshot().unwrap();
    let rows: Vec<_> = snapshot.range(catalog.ordered[0], ..).map(Result::unwrap).collect();
    assert_eq!(rows, [(b"k0".to_vec(), b"".to_vec()), (b"k1".to_vec(), b"second".to_vec())]);

    let mut changes = db.changes(catalog.ordered[0], None).unwrap();
    let parallel = by.part(Part::Parallel);
    let mut batch = parallel.batch();
    let put = batch.add_raw(run, b"p0k2=third").unwrap();
    let clear = batch.add_raw(run, b"c0").unwrap();
    let submitted = batch.submit().unwrap();
    assert_eq!(submitted.ticket(clear).wait().unwrap(), b"k0k1k2");
    assert_eq!(submitted.ticket(put).wait().unwrap(), b"");
    let keys: Vec<_> = (0..2).map(|_| changes.next_change().unwrap().key).collect();
    assert_eq!(keys, [b"k0".to_vec(), b"k1".to_vec()]);

    assert!(db.raw_procedure("another").unwrap_err().is_mistake());
    assert!(by.submit_raw(run, &vec![b'a'; (8 << 20) + 1]).unwrap_err().is_limit());
    assert_eq!(db.stats().procedures[0].name, "interpreter");
}

#[test]
fn o_109_a_call_runs_alone_where_none_is_under_way_and_after_those_of_before() {
    let (db, _) = open(DeviceSpec::Dram, "").unwrap();
    let (run, by) = (db.raw_procedure("interpreter").unwrap(), db.submitter());
    let mut value = Vec::new();
    let mut put = |ticket: nvcaracal::Ticket<Vec<u8>>, next: &str| {
        assert_eq!(ticket.wait().unwrap(), std::mem::replace(&mut value, next.into()));
    };
    for number in 0..2_000 {
        let (first, second) = (format!("{number}"), format!("{number} alone"));
        let submitted = by.try_submit_raw(run, format!("p0k={first}").as_bytes()).unwrap();
        let alone = by.run_raw_alone(run, format!("p0k={second}").as_bytes()).unwrap();
        put(submitted, &first);
        alone.into_iter().for_each(|ticket| put(ticket, &second));
    }
    // Once the sequencer has done its last epoch it always runs.
    let alone = std::iter::repeat_with(|| by.run_raw_alone(run, b"p0k=last").unwrap());
    put(alone.flatten().next().expect("the iterator has no end"), "last");
    assert!(by.run_raw_alone(run, &vec![b'a'; (8 << 20) + 1]).unwrap_err().is_limit());
}

#[test]
fn two_objects_of_one_name_are_a_mistake() {
    let catalog = Catalog::new();
    let make = || Arc::new(Interpreter { catalog: catalog.clone(), semantics: "" });
    let one: Arc<dyn raw::Procedure> = make();
    let options = catalog.options().raw_procedure(Arc::clone(&one)).raw_procedure(one);
    let twice = options.clone().raw_procedure(make());
    assert!(twice.open_device(DeviceSpec::Dram).unwrap_err().is_mistake());
    options.open_device(DeviceSpec::Dram).unwrap();
}

#[test]
fn objects_are_told_apart_by_their_names() {
    let catalog = Catalog::new();
    let ranges = raw::Ranges::new(catalog.ordered.clone());
    let interpreter = Interpreter { catalog: catalog.clone(), semantics: "" };
    let options = catalog.options().raw_procedure(ranges.clone());
    let options = options.raw_procedure(Arc::new(interpreter));
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    let by = db.submitter();
    assert_eq!(ranges.load(&by, catalog.ordered[0], [(b"k1".to_vec(), vec![1])]).unwrap(), 1);
    let run = db.raw_procedure("interpreter").unwrap();
    assert_eq!(by.submit_raw(run, b"p0k1=").unwrap().wait().unwrap(), [1]);
    let names: Vec<_> = db.stats().procedures.iter().map(|of| (of.name, of.committed)).collect();
    assert_eq!(names, [("interpreter", 1), (raw::Ranges::NAME, 1)]);
}

/// Rows are declared, so a load may run beside other calls and is never deferred.
#[test]
fn loads_of_ranges_say_which_rows_they_write() {
    let catalog = Catalog::new();
    let ranges = raw::Ranges::new(catalog.ordered.clone());
    let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
    let options = catalog.options().raw_procedure(ranges.clone()).tuning(tuning);
    let db = options.open_device(DeviceSpec::Dram).unwrap();
    let by = db.submitter().part(Part::Parallel);
    let rows = (0..3000_u32).map(|number| (number.to_be_bytes().to_vec(), vec![1]));
    assert_eq!(ranges.load(&by, catalog.ordered[1], rows).unwrap(), 3000);
    let stats = db.stats();
    assert_eq!((stats.committed, stats.deferred), (3, 0), "three calls of 1000 rows");
    assert_eq!(stats.last_epoch.work.serial, 0);
}

#[test]
fn o_65_a_log_of_other_semantics_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let device = || DeviceSpec::File(path.clone());
    let copy = dir.path().join("killed");
    let (db, _) = open(device(), "1").unwrap();
    let run = db.raw_procedure("interpreter").unwrap();
    db.submitter().submit_raw(run, b"p0k1=first").unwrap().wait().unwrap();
    crate::common::copy(&path, &copy);
    db.close().unwrap();
    // Where nothing is to run again they may be others.
    open(device(), "2").unwrap();

    let killed = || DeviceSpec::File(copy.clone());
    let refused = open(killed(), "2").err().unwrap();
    assert!(refused.is_schema(), "{refused}");
    assert!(refused.to_string().contains("interpreter"), "{refused}");
    let (db, catalog) = open(killed(), "1").unwrap();
    assert_eq!(db.get(catalog.ordered[0], &b"k1"[..]).unwrap().unwrap(), b"first");
}

#[test]
fn o_51_long_arguments_are_logged_and_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("db"), dir.path().join("killed"));
    let (db, _) = open(DeviceSpec::File(path.clone()), "").unwrap();
    let run = db.raw_procedure("interpreter").unwrap();
    let mut sums = Vec::new();
    for (number, len) in [(0, 8 << 20), (1, 3), (2, (5 << 20) + 3)] {
        let mut call = format!("s1k{number}=").into_bytes();
        let from = call.len();
        call.extend((from..len.max(from + 2)).map(|at| (at * 7) as u8));
        let sum: u64 = call[from..].iter().map(|&byte| u64::from(byte)).sum();
        assert_eq!(
            db.submitter().submit_raw(run, &call).unwrap().wait().unwrap(),
            sum.to_le_bytes()
        );
        sums.push(sum);
    }
    crate::common::copy(&path, &killed);
    drop(db);
    let (db, catalog) = open(DeviceSpec::File(killed), "").unwrap();
    assert!(db.recovery().calls_replayed >= 3);
    for (number, sum) in sums.into_iter().enumerate() {
        let key = format!("k{number}");
        let found = db.get(catalog.ordered[1], key.as_bytes()).unwrap().unwrap();
        assert_eq!(found, sum.to_le_bytes());
    }
    for bytes in [0, (64 << 20) + 1] {
        let tuning = Tuning { argument_bytes_max: bytes, ..Tuning::default() };
        let error = Database::options().tuning(tuning).open_device(DeviceSpec::Dram).unwrap_err();
        assert!(error.to_string().contains("argument_bytes_max"), "{error}");
    }
}

#[test]
fn ranges_are_loaded_where_they_are_empty_and_deleted_in_steps() {
    let catalog = Catalog::new();
    let table = raw::ordered("rows", 20, 3000);
    let ranges = raw::Ranges::new([catalog.ordered[0], table]);
    let options = catalog.options().table(table).raw_procedure(ranges.clone());
    let dir = tempfile::tempdir().unwrap();
    let open = || options.clone().open(dir.path().join("db")).unwrap();
    let db = open();
    let key = |number: u32| [&b"rel"[..], &number.to_be_bytes()].concat();
    let rows = |numbers: std::ops::Range<u32>| {
        numbers.map(move |number| (key(number), vec![number as u8; number as usize % 700]))
    };
    let by = db.submitter();
    assert_eq!(ranges.load(&by, table, rows(0..0)).unwrap(), 0);
    assert_eq!(ranges.load(&by, table, rows(100..4100)).unwrap(), 4000);
    assert_eq!(ranges.load(&by, table, rows(0..100)).unwrap(), 100);
    let error = ranges.load(&by, table, rows(4099..4200)).unwrap_err();
    assert!(error.is_user_abort() && error.to_string().contains("has a row"), "{error}");
    let back = [(key(9000), vec![]), (key(8999), vec![])];
    assert!(ranges.load(&by, table, back).unwrap_err().is_mistake());
    assert!(ranges.load(&by, catalog.ordered[1], rows(0..1)).unwrap_err().is_mistake());
    let loaded: Vec<_> = db.snapshot().unwrap().range(table, ..).map(Result::unwrap).collect();
    assert!(loaded.into_iter().eq(rows(0..4100)));

    let epochs = db.stats().epochs;
    assert_eq!(ranges.delete(&by, table, &key(50), &key(3000), 100).unwrap(), 2950);
    assert!(db.stats().epochs - epochs >= 30, "each step is a call");
    assert_eq!(ranges.delete(&by, table, &key(50), &key(3000), 100).unwrap(), 0);
    assert_eq!(ranges.load(&by, table, rows(60..2000)).unwrap(), 1940);
    drop((by, db));
    let db = open();
    let kept = db.snapshot().unwrap().range(table, ..).map(Result::unwrap).collect::<Vec<_>>();
    assert!(kept.into_iter().eq(rows(0..50).chain(rows(60..2000)).chain(rows(3000..4100))));
}
