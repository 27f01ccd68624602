//! `dump` and `inspect --table` show the rows of any program's store, by the types that it has in
//! words.

use std::fs;
use std::path::Path;

use nvcaracal::{Data, Database, HashTable, Key, Sequence, Stop, Table, Transaction, procedure};

use crate::support::{Room, command, run, run_command};

#[derive(Debug, Clone, Copy, PartialEq, Data, Key)]
struct UserId(u64);

#[derive(Debug, Clone, PartialEq, Data)]
enum State {
    Free,
    Sold { to: UserId, note: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Seat {
    cents: i64,
    state: State,
}

const SEATS: Table<(u32, String), Seat> = Table::ordered("seats");
const NAMES: HashTable<UserId, String> = Table::hash("names/of users");
const NUMBERS: Sequence = Sequence::new("numbers");

#[procedure(sequences(NUMBERS.at(7)))]
fn build(tx: &mut Transaction) -> Result<(), Stop> {
    assert_eq!(tx.sequence_number(0), 0);
    tx.insert(SEATS, (2, "b".to_string()), &Seat { cents: -5, state: State::Free })?;
    let note = Some("a, \"b\"".to_string());
    let state = State::Sold { to: UserId(9), note };
    tx.insert(SEATS, (1, "a".to_string()), &Seat { cents: 100, state })?;
    tx.insert(NAMES, UserId(9), &"Ada".to_string())?;
    tx.insert(NAMES, UserId(3), &"Grace\nHopper".to_string())
}

/// The lines that a `dump` command writes, without the one that ends them.
#[track_caller]
pub(crate) fn dumped(line: &str) -> String {
    let text = run(line).succeeded().stdout;
    let end = text.rfind("{\"end_of_dump\":1,").expect("a dump says where it ends");
    assert_eq!(text[end..].matches('\n').count(), 1, "{text}");
    text[..end].to_string()
}

fn options() -> nvcaracal::Options {
    let options = Database::options().table(SEATS).table(NAMES).sequence(NUMBERS);
    options.procedure::<Build>().workers(1)
}

/// A store that another program than this binary made, closed.
fn build_at(store: &str) {
    let db = options().open(store).unwrap();
    db.call(Build {}).unwrap();
    db.close().unwrap();
}

/// The types of seats in words.
const SEAT: &str = "(u32, String) -> Seat { cents: i64, state: enum State { Free, Sold(to: u64, \
                    note: Option<String>) } }";

fn head(name: &str, index: &str, [key, value, row]: [u32; 3], types: &str, rows: u32) -> String {
    format!(
        "{{\"table\":\"{name}\",\"index\":\"{index}\",\"key_bytes_max\":{key},\
         \"value_bytes_max\":{value},\"row_bytes\":{row},\"types\":[\"{types}\"],\
         \"rows\":{rows}}}\n"
    )
}

fn seats_lines() -> String {
    head("seats", "ordered", [64, 1024, 256], SEAT, 2)
        + r#"{"key":[1,"a"],"value":{"cents":100,"state":{"Sold":{"to":9,"note":"a, \"b\""}}}}
{"key":[2,"b"],"value":{"cents":-5,"state":"Free"}}
"#
}

fn all_lines() -> String {
    let names = head("names/of users", "hash", [8, 1024, 256], "u64 -> String", 2);
    let numbers = head("numbers", "sequence", [8, 8, 64], "sequence", 1);
    let rows = "{\"key\":3,\"value\":\"Grace\\nHopper\"}\n{\"key\":9,\"value\":\"Ada\"}\n";
    [&seats_lines(), &names, rows, &numbers, "{\"key\":7,\"value\":1}\n"].concat()
}

pub(crate) fn bytes_of_files(store: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn all_rows_are_dumped_by_their_types_in_the_order_of_their_keys() {
    let room = Room::new();
    let (store, out) = (room.text("store"), room.text("out"));
    build_at(&store);
    let before = bytes_of_files(&store);
    let all = dumped(&format!("dump {store}"));
    assert_eq!(all, all_lines());
    let one = dumped(&format!("dump {store} --table seats"));
    assert_eq!(one, seats_lines());
    for line in all.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    }
    let csv = run(&format!("dump {store} --table seats --format csv")).succeeded().stdout;
    let rows = [
        "key,cents,state\r\n",
        r#""[1,""a""]",100,"{""Sold"":{""to"":9,""note"":""a, \""b\""""}}""#,
        "\r\n\"[2,\"\"b\"\"]\",-5,\"\"\"Free\"\"\"\r\n",
    ];
    assert_eq!(csv, rows.concat());
    run(&format!("dump {store} --format csv --out {out}")).succeeded();
    let text = |name: &str| fs::read_to_string(Path::new(&out).join(name)).unwrap();
    assert_eq!(text("names%2fof%20users.csv"), "key,value\r\n3,\"Grace\nHopper\"\r\n9,Ada\r\n");
    assert_eq!(text("numbers.csv"), "key,value\r\n7,1\r\n");
    assert_eq!(text("seats.csv"), csv);
    assert!(text("tables.jsonl").contains("\"rows\":0,\"csv_rows\":2}"));
    assert_eq!(bytes_of_files(&store), before, "a dump changes nothing");
    // Nothing is mixed with another dump, and nothing guessed.
    run(&format!("dump {store} --out {out}")).failed(1, &["is not empty"]);
    run(&format!("dump {store} --format csv")).failed(2, &["--table", "--out"]);
    run(&format!("dump {store} --table seat")).failed(2, &["no table \"seat\"", "there are seats"]);
    run("dump /no/such/store").failed(1, &["/no/such/store"]);
}

/// A reader that went away is no error, but a disk that is full is: half a dump is none.
#[cfg(target_os = "linux")]
#[test]
fn a_dump_that_cannot_be_written_fails() {
    let room = Room::new();
    let store = room.text("store");
    build_at(&store);
    for format in ["jsonl", "csv --table seats"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let dump = format!("dump {store} --format {format}");
        let what = "cannot write to standard output";
        run_command(command(&dump).stdout(full)).failed(1, &[what]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        run_command(command(&dump).stdout(writer)).succeeded();
    }
}

#[test]
fn rows_are_found_by_their_keys_as_they_are_shown() {
    let room = Room::new();
    let store = room.text("store");
    build_at(&store);
    let seats = run(&format!("inspect {store} --table seats")).succeeded().stdout;
    for word in [
        "table \"seats\" (ordered), 2 rows",
        "(u32, String) -> Seat {",
        "[2,\"b\"]  {\"cents\":-5,",
    ] {
        assert!(seats.contains(word), "{word:?} is not in\n{seats}");
    }
    let few = run(&format!("inspect {store} --table seats --limit 1")).succeeded().stdout;
    assert!(
        few.contains("[1,\"a\"]") && !few.contains("[2,\"b\"]") && few.ends_with("(1 of 2 rows)\n")
    );
    let one = run(&format!("inspect {store} --table seats --key [2,\"b\"] --json")).succeeded();
    assert_eq!(one.json()["found"][0]["value"]["cents"], -5);
    run(&format!("inspect {store} --table names")).failed(2, &["no table \"names\""]);
    run(&format!("inspect {store} --table seats --key 5")).failed(2, &["no row with key 5"]);
    run(&format!("inspect {store} --key 5")).failed(2, &["--table"]);
    run(&format!("inspect {store} log --table seats")).failed(2, &["cannot be used with"]);
}

/// Nothing that was answered is left out without a word.
#[test]
fn epochs_after_the_checkpoint_are_told() {
    let room = Room::new();
    let store = room.text("store");
    let db = options().open(&store).unwrap();
    db.call(Build {}).unwrap();
    run(&format!("dump {store}")).failed(1, &["open"]);
    // As the end of a killed process: nothing is written any more.
    let copy = room.text("copy");
    fs::create_dir(&copy).unwrap();
    for (path, bytes) in bytes_of_files(&store) {
        fs::write(Path::new(&copy).join(Path::new(&path).file_name().unwrap()), bytes).unwrap();
    }
    db.close().unwrap();
    let words = ["1 epochs with 1 calls after the checkpoint", "--at-checkpoint", "open the store"];
    run(&format!("dump {copy}")).failed(1, &words);
    let ran = run(&format!("dump {copy} --at-checkpoint")).succeeded();
    assert!(ran.stderr.contains("1 epochs with 1 calls"), "{ran:#?}");
    assert!(ran.stdout.contains("\"table\":\"seats\"") && ran.stdout.contains("\"rows\":0"));
    run(&format!("recover {copy}")).failed(1, &[words[0], "its procedures are build"]);
    let ran = run(&format!("inspect {copy} --table seats")).succeeded();
    assert!(ran.stderr.contains("1 epochs with 1 calls") && ran.stdout.contains("0 rows"));
    // Its program runs them, and all is there.
    options().open(&copy).unwrap().close().unwrap();
    let recovered = run(&format!("recover {copy}")).succeeded().stdout;
    assert!(recovered.contains("is clean") && recovered.contains("seats: 2 rows"), "{recovered}");
    let all = dumped(&format!("dump {copy}"));
    assert_eq!(all, all_lines());
}

/// A shared heap is named by who shows tables, and there again after loading.
#[test]
fn a_shared_heap_is_shown_dumped_and_loaded() {
    let room = Room::new();
    let (store, again) = (room.text("store"), room.text("again"));
    let rows = "--row-bytes 256 --shared-heap-bytes 168";
    let bench = "bench smallbank --customers 54 --epochs 1 --epoch-size 5";
    run(&format!("{bench} {rows} --device file:{store}")).succeeded();
    let before = run(&format!("dump {store}")).succeeded().stdout;
    assert!(before.contains("\"row_bytes\":256,\"shared_heap_bytes\":168,"), "{before}");
    let file = room.text("all.jsonl");
    fs::write(&file, &before).unwrap();
    run(&format!("load {again} {file}")).succeeded();
    let now = run(&format!("dump {again}")).succeeded().stdout;
    let rows = |text: &str| text[..text.rfind("{\"end_of").unwrap()].to_string();
    assert_eq!(sorted(&rows(&now)), sorted(&rows(&before)));
    let page = run(&format!("inspect {again} tables --json")).succeeded().json();
    assert_eq!(page["tables"][0]["shared_heap_bytes"], 168);
    let page = run(&format!("inspect {again} tables")).succeeded().stdout;
    assert!(page.contains("shared heap") && page.contains(" 168 "), "{page}");
}

/// A dump that is loaded is the same store to its program.
#[test]
fn what_was_dumped_is_loaded_and_its_program_goes_on() {
    let room = Room::new();
    let (store, out, again) = (room.text("store"), room.text("out"), room.text("again"));
    build_at(&store);
    run(&format!("dump {store} --out {out}")).succeeded();
    let loaded = run(&format!("load {again} {out}")).succeeded().stdout;
    for word in ["seats: 2 rows", "names/of users: 2 rows", "numbers: 1 rows", "state digest "] {
        assert!(loaded.contains(word), "{word:?} is not in\n{loaded}");
    }
    assert_eq!(sorted(&dumped(&format!("dump {again}"))), sorted(&all_lines()));
    let digest = |store: &str| run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(digest(&again)["clean"], true);

    let db = options().open(&again).unwrap();
    let seat = db.get(SEATS, (1, "a".to_string())).unwrap().unwrap();
    assert_eq!(seat.cents, 100);
    assert_eq!(db.get(NAMES, UserId(3)).unwrap().as_deref(), Some("Grace\nHopper"));
    assert_eq!(db.snapshot().unwrap().sequence(NUMBERS.at(7)).unwrap(), 1);
    let failed = db.call(Build {}).unwrap_err().to_string();
    assert!(failed.contains("left == right"), "the next number is 1: {failed}");
    db.close().unwrap();

    // Into a store that is there: rows are replaced, others stay.
    let one = room.text("one.jsonl");
    let cheaper = "{\"key\":[2,\"b\"],\"value\":{\"state\":\"Free\",\"cents\":-6}}\n";
    let lines = head("seats", "ordered", [64, 1024, 256], SEAT, 1) + cheaper;
    fs::write(&one, lines).unwrap();
    run(&format!("load {again} {one} --without-end")).succeeded();
    let seats = dumped(&format!("dump {again} --table seats"));
    assert_eq!(seats, seats_lines().replace("\"cents\":-5", "\"cents\":-6"));
    options().open(&again).unwrap().close().unwrap();
}

/// CSV says nothing of types: those are in a file beside it.
#[test]
fn csv_that_was_dumped_is_loaded_and_its_program_goes_on() {
    let room = Room::new();
    let (store, out, again) = (room.text("store"), room.text("out"), room.text("again"));
    build_at(&store);
    run(&format!("dump {store} --format csv --out {out}")).succeeded();
    run(&format!("load {again} {out}")).succeeded();
    assert_eq!(sorted(&dumped(&format!("dump {again}"))), sorted(&all_lines()));
    options().open(&again).unwrap().close().unwrap();

    // Into a table that is there, in another order of columns.
    let seats = room.text("seats.csv");
    let cheaper = "state,key,cents\n\"\"\"Free\"\"\",\"[2,\"\"b\"\"]\",-6\n";
    fs::write(&seats, cheaper).unwrap();
    run(&format!("load {again} {seats}")).succeeded();
    let now = dumped(&format!("dump {again} --table seats"));
    assert_eq!(now, seats_lines().replace("\"cents\":-5", "\"cents\":-6"));
}

#[derive(Debug, Clone, PartialEq, Data)]
struct Note {
    text: String,
    perhaps: Option<String>,
    number: Option<i8>,
}

const NOTES: Table<String, Note> = Table::ordered("notes");

#[procedure]
fn write_note(tx: &mut Transaction, key: String, note: Note) -> Result<(), Stop> {
    tx.insert(NOTES, key, &note)
}

/// Null, an empty text, and texts that look like something else are told apart.
#[test]
fn csv_keeps_what_texts_are() {
    let room = Room::new();
    let (store, out, again) = (room.text("store"), room.text("out"), room.text("again"));
    let options = || Database::options().table(NOTES).procedure::<WriteNote>().workers(1);
    let db = options().open(&store).unwrap();
    let notes = [
        ("0", "", None, None),
        ("1", "", Some(""), Some(-1)),
        ("2", "null", Some("null"), None),
        ("3", "\"quoted\"", Some("a\r\nb"), Some(7)),
        ("4", "7", Some("{}"), None),
        ("5", ",", Some(" "), None),
    ];
    let note_of = |&(_, text, perhaps, number): &(&str, &str, Option<&str>, Option<i8>)| Note {
        text: text.into(),
        perhaps: perhaps.map(str::to_string),
        number,
    };
    for row in &notes {
        db.call(WriteNote { key: row.0.into(), note: note_of(row) }).unwrap();
    }
    db.close().unwrap();
    run(&format!("dump {store} --format csv --out {out}")).succeeded();
    let csv = fs::read_to_string(Path::new(&out).join("notes.csv")).unwrap();
    assert!(csv.starts_with("key,text,perhaps,number\r\n0,\"\",,\r\n1,\"\",\"\",-1\r\n"), "{csv}");
    run(&format!("load {again} {out}")).succeeded();
    let db = options().open(&again).unwrap();
    for row in &notes {
        assert_eq!(
            db.get(NOTES, row.0.to_string()).unwrap().as_ref(),
            Some(&note_of(row)),
            "{row:?}"
        );
    }
    db.close().unwrap();
}

#[test]
fn csv_that_cannot_be_loaded_is_told_with_its_line() {
    let room = Room::new();
    let (store, out) = (room.text("store"), room.text("out"));
    build_at(&store);
    let before = bytes_of_files(&store);
    let file = room.text("seats.csv");
    for (text, words) in [
        ("key,cents\n", "line 1: the columns are key, cents, those of the table key, cents, state"),
        ("key,cents,state,cents\n", "line 1: the columns are"),
        ("", "line 1: the file is empty"),
        ("key,cents,state\n", "line 2: the file ends, and there is no row in it"),
        ("key,cents,state\r1,2,3\r", "line 1: the line ends in CR alone: end lines in LF or CR LF"),
        ("key,cents,state\n\"[1,\"\"a\"\"]\",10", "line 2: the last line does not end"),
        ("\u{feff}key,cents\n", "line 1: the columns are key, cents, those"),
        ("key,cents,state\n1,2\n", "line 2: 2 cells, there are 3 columns"),
        ("key,cents,state\n\"[1,\"\"a\"\"]\",5,\"\"\"Free\n", "line 2: a quoted cell does not end"),
        ("key,cents,state\n\"[1]\"2,5,\n", "line 2: something follows the end of a quoted cell"),
        (
            "key,cents,state\n\"[1,\"\"a\"\"]\",x,\"\"\"Free\"\"\"\n",
            "line 2: cents: \"x\": expected",
        ),
        ("key,cents,state\n\"[1,\"\"\na\"\"]\",5,5\n\n", "line 2: key: "),
        (
            "key,cents,state\n\"[1,\"\"a\"\"]\",,\"\"\"Free\"\"\"\n",
            "value: field \"cents\" is missing",
        ),
    ] {
        fs::write(&file, text).unwrap();
        run(&format!("load {store} {file}")).failed(1, &[words]);
        assert_eq!(bytes_of_files(&store), before, "{text}");
    }
    let other = room.text("seat.csv");
    fs::write(&other, "key,value\n").unwrap();
    run(&format!("load {store} {other}"))
        .failed(1, &["there is no table \"seat\"", "tables.jsonl"]);
    let new = room.text("new");
    run(&format!("load {new} {file}")).failed(1, &["there is no table \"seats\"", "of its dump"]);
    // The end of a file is lost.
    run(&format!("dump {store} --format csv --out {out}")).succeeded();
    let names = Path::new(&out).join("names%2fof%20users.csv");
    fs::write(names, "key,value\r\n9,Ada\r\n").unwrap();
    run(&format!("load {new} {out}")).failed(1, &["names%2fof%20users.csv is not as it was"]);
    run(&format!("load {new} {out} --without-end")).failed(1, &["the file ends after 1 rows of 2"]);
    assert!(!Path::new(&new).exists());
}

/// Tables are in the order of the files.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn what_cannot_be_loaded_is_told_with_its_line_and_nothing_is_made_of_it() {
    let room = Room::new();
    let (new, file) = (room.text("new"), room.text("rows.jsonl"));
    let of_texts = head("t", "ordered", [5, 1024, 256], "String -> String", 1);
    let of_texts = |key: &str| format!("{of_texts}{{\"key\":\"{key}\",\"value\":\"\"}}\n");
    let head = |rows| head("t", "ordered", [8, 1024, 256], "u64 -> Seat { cents: u8 }", rows);
    for (text, words) in [
        (of_texts(""), "line 2: key: 0 bytes, must be 1 to 5"),
        (of_texts("abcdef"), "line 2: key: 6 bytes, must be 1 to 5"),
        (head(1), "line 2: the file ends, and 1 rows are missing"),
        (head(0) + "{\"key\":1,\"value\":{\"cents\":1}}\n", "line 2: more rows than the line"),
        ("{\"key\":1,\"value\":1}\n".to_string(), "line 1: more rows than the line"),
        (head(0) + &head(0), "line 2: table \"t\" comes twice"),
        (head(0).replace("rows", "row"), "line 1: unknown field `row`"),
        ("no JSON\n".to_string(), "line 1: expected"),
        (head(0).replace("u8 }", "u9 }"), "no type"),
        (head(0).replace("ordered", "sorted"), "\"sorted\" is no index"),
        (head(1) + "{\"key\":1,\"value\":{\"cents\":256}}\n", "line 2: value: cents: 256 is not"),
        (head(1) + "{\"key\":1,\"value\":{}}\n", "line 2: value: field \"cents\" is missing"),
        (head(1) + "{\"key\":-1,\"value\":{\"cents\":1}}\n", "line 2: key: -1 is not a number"),
    ] {
        fs::write(&file, &text).unwrap();
        run(&format!("load {new} {file} --without-end")).failed(1, &[words]);
        assert!(!Path::new(&new).exists(), "{text}");
    }
    let store = room.text("store");
    build_at(&store);
    for len in 0..3 {
        fs::write(&file, &"\u{feff}".as_bytes()[..len]).unwrap();
        run(&format!("load {new} {file}")).failed(1, &["line 1"]);
    }
    fs::write(&file, head(0)).unwrap();
    let load = format!("load {store} {file} --without-end");
    run(&load).failed(1, &["there is no table \"t\""]);
    fs::write(&file, head(0).replace("\"t\"", "\"seats\"")).unwrap();
    run(&load).failed(1, &["of the store is ordered of", "Sold", "u8"]);
    run(&format!("load {new} /no/such/file")).failed(1, &["cannot read /no/such/file"]);
    run(&format!("load {new} {store}")).failed(2, &[".jsonl"]);
}

/// A dump that lost its end, wherever that begins, is refused; so is one of which a line was
/// changed. What is there is loaded if that is asked for, and what was written in two dumps is.
#[test]
fn a_dump_without_its_end_is_refused() {
    let room = Room::new();
    let (store, new, file) = (room.text("store"), room.text("new"), room.text("all.jsonl"));
    build_at(&store);
    let whole = run(&format!("dump {store}")).succeeded().stdout;
    for (end, _) in whole.match_indices('\n').chain([(whole.len() - 9, "")]) {
        let cut = &whole[..whole.len().min(end + 1)];
        if cut.len() < whole.len() {
            fs::write(&file, cut).unwrap();
            run(&format!("load {new} {file}")).failed(1, &["all.jsonl, line"]);
            assert!(!Path::new(&new).exists(), "{cut}");
        }
    }
    // Between two tables: only the end says that there was another.
    let tables = whole.find("{\"table\":\"numbers\"").unwrap();
    fs::write(&file, &whole[..tables]).unwrap();
    run(&format!("load {new} {file}")).failed(1, &["without the line", "--without-end"]);
    run(&format!("load {new} {file} --without-end")).succeeded();
    assert!(!dumped(&format!("dump {new}")).contains("numbers"));
    fs::remove_dir_all(&new).unwrap();
    for (changed, words) in [
        (whole.replace("\"Ada\"", "\"Eve\""), "by their SHA-256"),
        (whole.replace("{\"key\":7,\"value\":1}\n", ""), "1 rows of the table before"),
        (whole.replace("\"tables\":3", "\"tables\":4"), "had 4 tables with 5 rows, here are 3"),
        (whole.replace("end_of_dump\":1", "end_of_dump\":2"), "a later release"),
        (whole.clone() + &seats_lines().replace("seats", "more"), "without the line"),
    ] {
        fs::write(&file, changed).unwrap();
        run(&format!("load {new} {file}")).failed(1, &[words]);
        assert!(!Path::new(&new).exists(), "{words}");
    }
    let parts = ["seats", "numbers"].map(|table| format!("dump {store} --table {table}"));
    fs::write(&file, parts.map(|part| run(&part).succeeded().stdout).concat()).unwrap();
    run(&format!("load {new} {file}")).succeeded();
    assert!(dumped(&format!("dump {new}")).contains("numbers"));
}

/// A directory that lost a file of its dump, or has another, is refused.
#[test]
fn a_directory_without_all_files_of_its_dump_is_refused() {
    let room = Room::new();
    let (store, new) = (room.text("store"), room.text("new"));
    build_at(&store);
    for format in ["jsonl", "csv"] {
        let out = room.text(format);
        run(&format!("dump {store} --format {format} --out {out}")).succeeded();
        let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        for name in names.collect::<Vec<_>>() {
            let bytes = fs::read(&name).unwrap();
            fs::remove_file(&name).unwrap();
            let ran = run(&format!("load {new} {out}")).failed(1, &["dump.end"]);
            assert!(ran.stderr.contains("is missing") || ran.stderr.contains("--without-end"));
            fs::write(&name, bytes).unwrap();
        }
        let other = Path::new(&out).join(format!("other.{format}"));
        fs::write(&other, "").unwrap();
        run(&format!("load {new} {out}")).failed(1, &["is not of this dump"]);
        fs::remove_file(&other).unwrap();
        assert!(!Path::new(&new).exists());
        // The same files, each by its name.
        let mut names: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .map(|file| file.unwrap().path().display().to_string())
            .collect();
        names.sort();
        let rows: Vec<_> = names.iter().filter(|name| !name.ends_with("dump.end")).collect();
        let some = rows[1..].iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
        let refused =
            run(&format!("load {new} {some}")).failed(1, &["is missing", "--without-end"]);
        assert!(refused.stderr.contains("dump.end"));
        assert!(!Path::new(&new).exists());
        for all in [out, names.join(" ")] {
            run(&format!("load {new} {all}")).succeeded();
            fs::remove_dir_all(&new).unwrap();
        }
    }
}
