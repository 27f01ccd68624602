//! A load is whole or refused, changes no value, and takes nothing away from anybody.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nvcaracal::{Data, Database, Options, Sequence, Stop, Table, Transaction, procedure};
use rustix::process::Signal;

use crate::dump::{bytes_of_files, dumped};
use crate::served::Server;
use crate::support::{Background, Room, command, run, run_command};

/// Rows of a table of texts.
fn lines(rows: impl Iterator<Item = (u64, String)>) -> String {
    let rows: Vec<_> = rows.collect();
    let mut text = head(rows.len());
    for (key, value) in rows {
        text += &format!("{{\"key\":{key},\"value\":\"{value}\"}}\n");
    }
    text
}

fn head(rows: usize) -> String {
    format!(
        "{{\"table\":\"texts\",\"index\":\"ordered\",\"key_bytes_max\":8,\"value_bytes_max\":100,\
         \"row_bytes\":256,\"types\":[\"u64 -> String\"],\"rows\":{rows}}}\n"
    )
}

const TEXTS: Table<u64, String> = Table::ordered("texts").with_value_bytes(100);

#[procedure]
fn write_text(tx: &mut Transaction, key: u64, text: String) -> Result<(), Stop> {
    tx.insert(TEXTS, key, &text)
}

fn program() -> Options {
    Database::options().table(TEXTS).procedure::<WriteText>().workers(1)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Regression: a load that was killed left a store which `check` found clean, and of which `dump`
/// and every program took the part that was there for all.
#[test]
fn a_load_that_is_cut_short_is_refused_until_it_is_done_again() {
    let room = Room::new();
    let (file, other) = (room.text("rows.jsonl"), room.text("other.jsonl"));
    let all = lines((0..40_000).map(|n| (n, format!("row {n} of a file, {}", "x".repeat(60)))));
    fs::write(&file, &all).unwrap();
    fs::write(&other, lines((0..9).map(|n| (n, "another".to_string())))).unwrap();
    let older = lines((0..3).map(|n| (n * 7, format!("older {n}"))));
    let points = ["log-write:1", "log-torn:2", "table-write:3", "table-torn:3", "data-write:3"];
    for (number, point) in points.into_iter().enumerate() {
        for is_new in [true, false] {
            let store = room.text(&format!("store-{number}-{is_new}"));
            if !is_new {
                let before = room.text("older.jsonl");
                fs::write(&before, &older).unwrap();
                run(&format!("load {store} {before} --without-end")).succeeded();
            }
            let died = run(&format!("load {store} {file} --without-end --die-at {point}"));
            assert_ne!(died.code, 0, "{point}: {died:#?}");
            for command in ["check", "dump", "inspect"] {
                run(&format!("{command} {store}")).failed(1, &["was cut short", "load"]);
            }
            let error = program().open(&store).unwrap_err();
            assert!(error.to_string().contains("cut short"), "{error}");
            run(&format!("load {store} {other} --without-end"))
                .failed(1, &["40000", "9 other rows"]);
            let again = run(&format!("load {store} {file} --without-end")).succeeded().stdout;
            assert!(again.contains("had been cut short"), "{again}");
            run(&format!("check {store}")).succeeded();
            let now = dumped(&format!("dump {store}"));
            assert_eq!(sorted(&now), sorted(&all), "{point}");
            program().open(&store).unwrap().close().unwrap();
        }
    }
}

/// Regression: one key twice was counted as two rows, and the second one stored; rows behind one
/// that was too long stayed away, those before it did not.
#[test]
fn everything_is_checked_before_anything_is_changed() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("rows.jsonl"));
    let row = |key: u64, len: usize| (key, "x".repeat(len));
    let whole = lines([row(1, 5), row(2, 5)].into_iter());
    let cut = &whole[..whole.len() - 5];
    let wrong = [
        (lines([row(1, 5), row(2, 5), row(1, 5)].into_iter()), "line 4: its key came in line 2"),
        (lines([row(1, 5), row(2, 101)].into_iter()), "line 3: value: 101 bytes, at most 100"),
        (
            lines([row(1, 5)].into_iter()).replace("\"key\":1", "\"key_bytes\":\"0x01\""),
            "line 2: key: 1 bytes, all keys of the table have 8",
        ),
        (String::new(), "line 1: the file is empty"),
        (cut.to_string(), "line 3"),
        (head(1), "1 rows are missing"),
    ];
    for is_new in [true, false] {
        if !is_new {
            fs::write(&file, lines([row(1, 7)].into_iter())).unwrap();
            run(&format!("load {store} {file} --without-end")).succeeded();
        }
        for (text, words) in &wrong {
            fs::write(&file, text).unwrap();
            run(&format!("load {store} {file} --without-end")).failed(1, &[words]);
            assert_eq!(Path::new(&store).exists(), !is_new, "{words}");
            if !is_new {
                let now = dumped(&format!("dump {store}"));
                assert_eq!(now, lines([row(1, 7)].into_iter()), "{words}");
            }
        }
        // Tables that no store can have.
        fs::write(&file, head(0).replace("_max\":100", "_max\":4000000000")).unwrap();
        if is_new {
            run(&format!("load {store} {file} --without-end")).failed(1, &["longest value"]);
            assert!(!Path::new(&store).exists());
        }
    }
    // What was done is said.
    fs::write(&file, lines([row(1, 7), row(2, 2), row(3, 3)].into_iter())).unwrap();
    let said = run(&format!("load {store} {file} --without-end")).succeeded().stdout;
    assert!(said.contains("texts: 3 rows: 2 inserted, 0 replaced, 1 were there"), "{said}");
    fs::write(&file, lines([row(1, 8)].into_iter())).unwrap();
    let said = run(&format!("load {store} {file} --without-end --json")).succeeded().json();
    assert_eq!(said["tables"][0]["replaced"], 1, "{said}");
    assert_eq!(said["new"], false);
}

const NUMBERS: Sequence = Sequence::new("numbers");

#[procedure(sequences(NUMBERS.at(7)))]
fn allocate(tx: &mut Transaction) -> Result<u64, Stop> {
    Ok(tx.sequence_number(0))
}

/// Regression: a sequence was brought to its number by allocating, from where it was: two loads
/// added up, and a large number took for ever.
#[test]
fn a_sequence_is_set() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("rows.jsonl"));
    let text = |next: u64| {
        format!(
            "{{\"table\":\"numbers\",\"index\":\"sequence\",\"key_bytes_max\":8,\
             \"value_bytes_max\":8,\"row_bytes\":64,\"types\":[\"sequence\"],\"rows\":2}}\n\
             {{\"key\":7,\"value\":{next}}}\n{{\"key\":8,\"value\":3}}\n"
        )
    };
    let load = |next| {
        fs::write(&file, text(next)).unwrap();
        run(&format!("load {store} {file} --without-end"))
    };
    for next in [1 << 60, 5, 5, 0, u64::MAX - 1] {
        load(next).succeeded();
        assert_eq!(dumped(&format!("dump {store}")), text(next));
    }
    load(u64::MAX).failed(1, &["line 2", "no number of a sequence"]);
    load(12).succeeded();
    let db = Database::options().sequence(NUMBERS).procedure::<Allocate>().open(&store).unwrap();
    assert_eq!(db.call(Allocate {}).unwrap(), 12);
    assert_eq!(db.call(Allocate {}).unwrap(), 13);
    db.close().unwrap();
    run(&format!("check {store}")).succeeded();
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Old {
    cents: i64,
    only_old: String,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Old)]
struct Middle {
    cents: i32,
    only_old: String,
}

#[derive(Debug, Clone, PartialEq, Data)]
#[data(was = Middle)]
struct New {
    /// Dollars now.
    cents: i64,
    only_old: String,
    only_new: Option<u8>,
}

impl From<Old> for Middle {
    fn from(old: Old) -> Self {
        Self { cents: old.cents as i32, only_old: old.only_old }
    }
}

impl From<Middle> for New {
    fn from(old: Middle) -> Self {
        Self { cents: i64::from(old.cents) / 100, only_old: old.only_old, only_new: None }
    }
}

const OLD: Table<String, Old> = Table::ordered("prices");
const MIDDLE: Table<String, Middle> = Table::ordered("prices");
const NEW: Table<String, New> = Table::ordered("prices");

#[procedure]
fn write_old(tx: &mut Transaction, key: String, cents: i64) -> Result<(), Stop> {
    tx.insert(OLD, key, &Old { cents, only_old: "old".into() })
}

#[procedure]
fn write_middle(tx: &mut Transaction, key: String, cents: i32) -> Result<(), Stop> {
    tx.insert(MIDDLE, key, &Middle { cents, only_old: "middle".into() })
}

#[procedure]
fn write_new(tx: &mut Transaction, key: String, cents: i64) -> Result<(), Stop> {
    tx.insert(NEW, key, &New { cents, only_old: "new".into(), only_new: Some(7) })
}

/// Rows of three versions of their type.
fn versions_at(store: &str) {
    let db = Database::options().table(OLD).procedure::<WriteOld>().open(store).unwrap();
    db.call(WriteOld { key: "old".into(), cents: 50_100 }).unwrap();
    db.close().unwrap();
    let db = Database::options().table(MIDDLE).procedure::<WriteMiddle>().open(store).unwrap();
    db.call(WriteMiddle { key: "middle".into(), cents: 700 }).unwrap();
    db.close().unwrap();
    let db = Database::options().table(NEW).procedure::<WriteNew>().open(store).unwrap();
    db.call(WriteNew { key: "new".into(), cents: 9 }).unwrap();
    db.close().unwrap();
}

/// Regression: a row of an older version was dumped without saying so and read as one of the
/// newest: 501 dollars became 50100. CSV left out what only older versions have.
#[test]
fn rows_of_older_versions_stay_what_they_are() {
    let room = Room::new();
    let store = room.text("store");
    versions_at(&store);
    let now = dumped(&format!("dump {store}"));
    for row in [
        r#"{"key":"old","version":0,"value":{"cents":50100,"only_old":"old"}}"#,
        r#"{"key":"middle","version":1,"value":{"cents":700,"only_old":"middle"}}"#,
        r#"{"key":"new","version":2,"value":{"cents":9,"only_old":"new","only_new":7}}"#,
    ] {
        assert!(now.contains(row), "{row} is not in\n{now}");
    }
    let hash = |store: &str| {
        let checked = run(&format!("check {store} --json")).succeeded().json();
        checked["state_digest"].as_str().unwrap().to_string()
    };
    for format in ["jsonl", "csv"] {
        let (out, again) = (room.text(&format!("out-{format}")), room.text(format));
        let ran = run(&format!("dump {store} --format {format} --out {out}")).succeeded();
        assert!(ran.stderr.contains("3 rows dumped, read back"), "{ran:#?}");
        run(&format!("load {again} {out}")).succeeded();
        assert_eq!(hash(&again), hash(&store), "{format}");
        let db = Database::options().table(NEW).procedure::<WriteNew>().open(&again).unwrap();
        let cents = |key: &str| db.get(NEW, key.to_string()).unwrap().unwrap().cents;
        assert_eq!((cents("old"), cents("middle"), cents("new")), (501, 7, 9), "{format}");
        db.close().unwrap();
    }
    let csv = fs::read_to_string(Path::new(&room.text("out-csv")).join("prices.csv")).unwrap();
    let expected = "key,version,cents,only_old,only_new\r\nmiddle,1,700,middle,\r\n\
                    new,2,9,new,7\r\nold,0,50100,old,\r\n";
    assert_eq!(csv, expected);
    // What says nothing of its version, and may be of two, is not guessed.
    let file = room.text("rows.jsonl");
    fs::write(&file, now.replace(",\"version\":0", "")).unwrap();
    let new = room.text("new");
    run(&format!("load {new} {file} --without-end"))
        .failed(1, &["line 4: value", "version 0 or 1"]);
    fs::write(&file, now.replace("\"version\":2", "\"version\":0")).unwrap();
    run(&format!("load {new} {file} --without-end"))
        .failed(1, &["line 3: value", "no field \"only_new\""]);
    // A dump from before there were versions.
    let first = now.lines().nth(3).unwrap().replace(",\"version\":0", "");
    let head = now.lines().next().unwrap();
    let (first_type, end) = (head.find("\",\"String").unwrap(), head.find("],\"rows\"").unwrap());
    let head = format!("{}\"{}", &head[..first_type], &head[end..]).replace(":3}", ":1}");
    fs::write(&file, format!("{head}\n{first}\n")).unwrap();
    let said = run(&format!("load {store} {file} --without-end")).succeeded().stdout;
    assert!(said.contains("1 rows: 0 inserted, 0 replaced, 1 were there"), "{said}");
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Odd {
    number: f64,
    key: String,
}

const ODD: Table<String, Odd> = Table::ordered("odd");

#[procedure]
fn write_odd(tx: &mut Transaction, key: String, bits: u64) -> Result<(), Stop> {
    tx.insert(ODD, key, &Odd { number: f64::from_bits(bits), key: "0x41".into() })
}

/// A number that is none has bits that no text says.
#[test]
fn what_has_no_other_form_is_dumped_as_bytes() {
    let room = Room::new();
    let (store, again, out) = (room.text("store"), room.text("again"), room.text("out"));
    let open =
        |store: &str| Database::options().table(ODD).procedure::<WriteOdd>().open(store).unwrap();
    let bits = [0x7ff8_0000_dead_beef, (-0.0f64).to_bits(), f64::INFINITY.to_bits(), 1];
    let db = open(&store);
    for (key, bits) in ["a", "b", "c", "d"].into_iter().zip(bits) {
        db.call(WriteOdd { key: key.into(), bits }).unwrap();
    }
    db.close().unwrap();
    run(&format!("dump {store} --out {out}")).succeeded();
    run(&format!("load {again} {out}")).succeeded();
    let db = open(&again);
    for (key, bits) in ["a", "b", "c", "d"].into_iter().zip(bits) {
        let row = db.get(ODD, key.to_string()).unwrap().unwrap();
        assert_eq!((row.number.to_bits(), row.key.as_str()), (bits, "0x41"), "{key}");
    }
    db.close().unwrap();
    let csv = room.text("csv");
    run(&format!("dump {store} --format csv --out {csv}"))
        .failed(1, &["key \"a\"", "--format jsonl"]);
    run(&format!("load {} {csv}", room.text("new"))).failed(1, &["did not come to its end"]);
    run(&format!("dump {store} --out {csv}")).failed(1, &["dump.unfinished"]);
}

/// Regression: a load that found a store of somebody else where it had seen none removed it.
#[test]
fn a_load_beside_somebody_else_takes_nothing_away() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("rows.jsonl"));
    fs::write(&file, lines((0..3).map(|n| (n, "loaded".to_string())))).unwrap();
    // An owner that is there.
    let db = program().open(&store).unwrap();
    run(&format!("load {store} {file} --without-end")).failed(1, &["is locked"]);
    db.call(WriteText { key: 1, text: "mine".into() }).unwrap();
    db.close().unwrap();
    assert!(run(&format!("dump {store}")).succeeded().stdout.contains("\"rows\":1"));
    // Two at once, into one place: one of them loads.
    let new = room.text("new");
    let loads: Vec<_> = (0..3)
        .map(|_| {
            let mut command = command(&format!("load {new} {file} --without-end"));
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            Background::start_command(&mut command)
        })
        .collect();
    let mut loaded = 0;
    for load in loads {
        let ran = load.ended();
        match ran.code {
            0 => loaded += 1,
            _ => drop(ran.failed(1, &[])),
        }
    }
    assert!(loaded > 0);
    let now = dumped(&format!("dump {new}"));
    assert_eq!(now, lines((0..3).map(|n| (n, "loaded".to_string()))));
}

/// Files of other systems, and names that are no text.
#[test]
fn edges_of_the_command_line() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("rows.jsonl"));
    let text = lines([(1, "x".to_string())].into_iter());
    fs::write(&file, format!("\u{feff}{text}")).unwrap();
    run(&format!("load {store} {file} --without-end")).succeeded();
    assert_eq!(dumped(&format!("dump {store}")), text);
    for utf_16 in [[0xff, 0xfe, b'{', 0], [0xfe, 0xff, 0, b'{']] {
        fs::write(&file, utf_16).unwrap();
        run(&format!("load {store} {file} --without-end")).failed(1, &["line 1", "UTF-16"]);
    }
    let latin = lines([(1, "\u{e9}".to_string())].into_iter()).into_bytes();
    let latin: Vec<u8> = latin.into_iter().filter(|byte| *byte != 0xc3).collect();
    fs::write(&file, latin).unwrap();
    run(&format!("load {store} {file} --without-end")).failed(1, &["line 2", "no UTF-8"]);

    let odd = room.path("st").with_file_name(std::ffi::OsStr::from_bytes(b"st\xffore"));
    fs::rename(&store, &odd).unwrap();
    for name in ["check", "dump", "inspect", "recover"] {
        run_command(command(name).arg(&odd)).succeeded();
    }
    fs::write(&file, lines([(1, "y".to_string())].into_iter())).unwrap();
    run_command(command("load --without-end").arg(&odd).arg(&file)).succeeded();

    // What somebody would have to write into.
    let pipe = room.path("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    for name in ["check", "dump", "inspect", "recover"] {
        run_command(command(name).arg(&pipe)).failed(1, &["pipe"]);
    }
    run_command(command("load").arg(&odd).arg(&pipe)).failed(1, &["is no file"]);
}

const UNIQUE: nvcaracal::Index<str, u64, String> =
    TEXTS.unique_index("by text", |_, text| Some(text.clone()));

/// Regression: two rows with one key of a unique index were loaded, and the program could never
/// open its store again.
#[test]
fn rows_are_not_loaded_past_an_index() {
    let room = Room::new();
    let (store, file) = (room.text("store"), room.text("rows.jsonl"));
    let open = || program().index(UNIQUE).open(&store);
    let db = open().unwrap();
    db.call(WriteText { key: 1, text: "one".into() }).unwrap();
    db.close().unwrap();
    fs::write(&file, lines([(2, "one".to_string())].into_iter())).unwrap();
    for _ in 0..2 {
        run(&format!("load {store} {file} --without-end"))
            .failed(1, &["\"by text\"", "--unchecked-indexes"]);
        open().unwrap().close().unwrap();
    }
    fs::write(&file, lines([(2, "two".to_string())].into_iter())).unwrap();
    run(&format!("load {store} {file} --without-end --unchecked-indexes")).succeeded();
    // The store has not forgotten that there is one.
    run(&format!("load {store} {file} --without-end")).failed(1, &["\"by text\""]);
    let db = open().unwrap();
    let found = db.snapshot().unwrap().get_by(UNIQUE, "two").unwrap();
    assert_eq!(found.map(|row| row.0), Some(2));
    db.close().unwrap();
}

/// Serves a store for some statements; gives the texts of the last one's first column.
async fn served(store: &str, statements: &[&str], query: &str) -> Vec<String> {
    let server = Server::start(store);
    let client = server.connect().await.expect("a server");
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
    let rows = client.query(query, &[]).await.unwrap();
    drop(client);
    server.signal(Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    rows.iter().map(|row| row.get(0)).collect()
}

const PEOPLE: &str = "CREATE TABLE people (id int PRIMARY KEY, name text UNIQUE)";
const ANN_AND_BOB: &str = "INSERT INTO people VALUES (1, 'ann'), (2, 'bob')";
const NAMES: &str = "SELECT name FROM people ORDER BY id";

/// Regression: rows of one server replaced those of another one, whose objects have the same
/// numbers: tables were lost, and unique keys came twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_of_a_server_is_not_loaded_over_rows_of_another() {
    let room = Room::new();
    let [people, money, sequence, file, directory, csv] =
        ["people", "money", "sequence", "people.jsonl", "out", "sql%3a%20key64.csv"]
            .map(|name| room.text(name));
    served(&people, &[PEOPLE, ANN_AND_BOB], NAMES).await;
    let create = "CREATE TABLE money (id int PRIMARY KEY, cents bigint)";
    let insert = "INSERT INTO money VALUES (1, 100), (3, 300)";
    let cents = "SELECT cents::text FROM money ORDER BY id";
    served(&money, &[create, insert], cents).await;
    // Nothing but an object of the catalog.
    served(&sequence, &["CREATE SEQUENCE numbers"], "SELECT 'x'").await;
    let dump = run(&format!("dump {people}")).succeeded().stdout;
    fs::write(&file, dump).unwrap();
    run(&format!("dump {people} --out {directory}")).succeeded();
    fs::write(&csv, "key,value\n").unwrap();
    for store in [&money, &sequence, &people] {
        let before = bytes_of_files(store);
        for files in [&file, &directory, &csv] {
            run(&format!("load {store} {files} --unchecked-indexes"))
                .failed(1, &["\"sql: ", store, "new directory", "COPY", "nothing was loaded"]);
            assert!(bytes_of_files(store) == before, "{files} was loaded into {store}");
        }
    }
    assert_eq!(served(&money, &[], cents).await, ["100", "300"]);
    // Where nothing is, it is loaded.
    for files in [&file, &directory] {
        let new = room.text(&format!("new-{}", Path::new(files).extension().is_some()));
        run(&format!("load {new} {files}")).succeeded();
        assert_eq!(served(&new, &[], NAMES).await, ["ann", "bob"]);
    }
}

/// The rows that a load has left behind are no reason to refuse its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_into_empty_tables_of_a_server_is_brought_to_its_end() {
    let room = Room::new();
    let [people, new, heads, file] = ["people", "new", "heads", "rows"].map(|name| room.text(name));
    served(&people, &[PEOPLE, ANN_AND_BOB], NAMES).await;
    let rows = dumped(&format!("dump {people}"));
    fs::write(&file, &rows).unwrap();
    let mut empty = String::new();
    for line in rows.lines() {
        let mut head: serde_json::Value = serde_json::from_str(line).unwrap();
        if head["rows"].is_u64() {
            head["rows"] = 0.into();
            empty += &format!("{head}\n");
        }
    }
    fs::write(&heads, empty).unwrap();
    run(&format!("load {new} {heads} --without-end")).succeeded();
    let load = format!("load {new} {file} --without-end");
    // All rows are there, and the mark as well.
    assert_ne!(run(&format!("{load} --die-at table-write:1")).code, 0);
    let again = run(&load).succeeded().stdout;
    assert!(again.contains("had been cut short"), "{again}");
    run(&load).failed(1, &["nothing was loaded"]);
    assert_eq!(served(&new, &[], NAMES).await, ["ann", "bob"]);
}
