//! A process that is killed under load: every answered statement is there, once.

use crate::client::{Client, on_disk};
use crate::indexes::assert_agree;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STORE: &str = "NVCARACAL_TEST_STORE";

/// What the killed process does: run by its test's name, with the place of the store.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = on_disk(&PathBuf::from(path));
    let mut client = Client::new(&store);
    // The process before this one may have made them.
    client.run("CREATE TABLE IF NOT EXISTS sum (id int PRIMARY KEY, total int)").unwrap();
    client.run("INSERT INTO sum VALUES (1, 0) ON CONFLICT DO NOTHING").unwrap();
    let log = "CREATE TABLE IF NOT EXISTS log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
               who int, note text UNIQUE)";
    client.run(log).unwrap();
    // Half of the rows have an entry by an expression.
    let half = "CREATE UNIQUE INDEX IF NOT EXISTS log_half ON log (upper(note)) WHERE id % 2 = 0";
    client.run(half).unwrap();
    client.run("CREATE INDEX IF NOT EXISTS log_sum ON log ((who + id))").unwrap();
    std::thread::scope(|scope| {
        for who in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                for number in 0..u32::MAX {
                    let note = format!("{}-{who}-{number}", std::process::id());
                    let insert = format!(
                        "INSERT INTO log (who, note) VALUES ({who}, '{note}') RETURNING id"
                    );
                    let add =
                        client.submit("UPDATE sum SET total = total + 1 WHERE id = 1", vec![]);
                    let id = client.value(&insert);
                    add.unwrap().wait().unwrap();
                    writeln!(std::io::stdout(), "answered {id} {note}").unwrap();
                    if who == 0 && number % 5 == 4 {
                        let name = std::process::id();
                        let table = format!("x{name}_{number}");
                        client.run(&format!("CREATE TABLE {table} (a int)")).unwrap();
                        client.run(&format!("INSERT INTO {table} VALUES (1), (2)")).unwrap();
                        let alter = "ADD PRIMARY KEY (a), ADD b int NOT NULL DEFAULT 7";
                        client.run(&format!("ALTER TABLE {table} {alter}")).unwrap();
                        writeln!(std::io::stdout(), "made x{name}_{number}").unwrap();
                    }
                }
            });
        }
    });
}

/// Runs the child until it has answered so much, and kills it: what it said.
fn killed_after(path: &Path, lines: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child", "--nocapture", "--test-threads=1"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while said.len() < lines && reader.read_line(&mut line).unwrap() > 0 {
        if line.starts_with("answered") || line.starts_with("made") {
            said.push(line.trim().to_owned());
        }
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed counts, too; its last line may be cut.
    while reader.read_line(&mut line).unwrap() > 0 {
        if line.ends_with('\n') && (line.starts_with("answered") || line.starts_with("made")) {
            said.push(line.trim().to_owned());
        }
        line.clear();
    }
    assert!(said.len() >= lines, "the child ended by itself: {said:?}");
    said
}

#[test]
fn o_25_every_answered_statement_is_there_once_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let (mut ids, mut said) = (BTreeSet::new(), Vec::new());
    for round in 0..4 {
        said.extend(killed_after(&path, 20 + 30 * round));
        let store = on_disk(&path);
        let mut client = Client::new(&store);
        for line in &said {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["answered", id, note] => {
                    let found = client.query(&format!("SELECT id FROM log WHERE note = '{note}'"));
                    assert_eq!(found, [[id]], "{line}");
                    ids.insert(id.to_owned());
                }
                ["made", table] => {
                    let rows = client.query(&format!("SELECT * FROM {table} WHERE b = 7"));
                    assert_eq!(rows, [["1", "7"], ["2", "7"]], "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        let answered = said.iter().filter(|line| line.starts_with("answered")).count();
        assert_eq!(ids.len(), answered, "an id was given twice");
        let total: usize = client.value("SELECT total FROM sum").parse().unwrap();
        assert!(total >= answered, "{total} of {answered}");
        assert_agree(&mut client);
        // The sequence goes on behind the numbers that were given.
        let last = client.value("SELECT max(id) FROM log").parse::<i64>().unwrap();
        let insert = format!("INSERT INTO log (who, note) VALUES (9, 'r{round}') RETURNING id");
        assert!(client.value(&insert).parse::<i64>().unwrap() > last);
        store.close().unwrap();
    }
}
