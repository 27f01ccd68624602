//! A queue whose workers are killed: what SKIP LOCKED has passed by is in the log, so that a replay
//! comes to what was answered.

use crate::client::{Client, copy, on_disk};
use server::store::Modes;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STORE: &str = "NVCARACAL_TEST_QUEUE";
const WORKERS: u32 = 8;
const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };
const TAKE: &str =
    "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

/// Takes a job in a block; its number, once it is committed. Some blocks are rolled back.
fn take(client: &mut Client, who: u32, rolls_back: bool) -> Option<String> {
    client.begin(READ_COMMITTED);
    let found = client.within(TAKE).unwrap();
    let id = found.rows.first().map(|row| crate::script::shown(row)[0].clone());
    let Some(id) = id.filter(|_| !rolls_back) else {
        client.block(server::store::BlockOperation::RollBack).unwrap();
        return None;
    };
    let take = format!("INSERT INTO taken (job, who) VALUES ({id}, {who})");
    client.within(&take).unwrap();
    client.within(&format!("UPDATE job SET state = 'done' WHERE id = {id}")).unwrap();
    client.commit().is_ok().then_some(id)
}

/// What the killed process does: run by its test's name, with the place of the store.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = on_disk(&PathBuf::from(path));
    let mut client = Client::new(&store);
    client.run("CREATE TABLE IF NOT EXISTS job (id int PRIMARY KEY, state text)").unwrap();
    client.run("CREATE INDEX IF NOT EXISTS job_new ON job (id) WHERE state = 'new'").unwrap();
    client.run("CREATE TABLE IF NOT EXISTS taken (job int, who int)").unwrap();
    let fill = "INSERT INTO job SELECT id, 'new' FROM generate_series(1, 2000) id \
                ON CONFLICT DO NOTHING";
    client.run(fill).unwrap();
    std::thread::scope(|scope| {
        for who in 0..WORKERS {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                for number in 0.. {
                    let is_alone = number % 7 == 6;
                    let taken = if is_alone {
                        let alone = format!(
                            "WITH c AS (UPDATE job SET state = 'done' WHERE id = ({TAKE}) \
                              RETURNING id) \
                             INSERT INTO taken SELECT id, {who} FROM c RETURNING job"
                        );
                        client.query(&alone).pop().map(|row| row[0].clone())
                    } else {
                        take(&mut client, who, number % 5 == 4)
                    };
                    if let Some(id) = taken {
                        writeln!(std::io::stdout(), "taken {id}").unwrap();
                    }
                }
            });
        }
    });
}

/// Runs the child until it has taken so many jobs, and kills it: what it said.
fn killed_after(path: &Path, lines: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "claims::child", "--nocapture", "--test-threads=1"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut said, mut line) = (Vec::new(), String::new());
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let is_whole = |line: &str| line.starts_with("taken") && line.ends_with('\n');
    while said.len() < lines && reader.read_line(&mut line).unwrap() > 0 {
        if is_whole(&line) {
            said.push(line.trim().to_owned());
        }
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while reader.read_line(&mut line).unwrap() > 0 {
        if is_whole(&line) {
            said.push(line.trim().to_owned());
        }
        line.clear();
    }
    assert!(said.len() >= lines, "the child ended by itself: {said:?}");
    said
}

#[test]
fn no_job_is_taken_twice_or_lost_over_kills() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut said = BTreeSet::new();
    for round in 0..6 {
        for line in killed_after(&path, 20 + 15 * round) {
            assert!(said.insert(line.clone()), "{line} twice");
        }
        let store = on_disk(&path);
        let mut client = Client::new(&store);
        let twice = "SELECT job FROM taken GROUP BY job HAVING count(*) > 1";
        assert!(client.query(twice).is_empty());
        let done = "SELECT count(*) FROM job WHERE state = 'done'";
        assert_eq!(client.value(done), client.value("SELECT count(*) FROM taken"));
        for line in &said {
            let id = line.strip_prefix("taken ").unwrap();
            let found = client.value(&format!("SELECT count(*) FROM taken WHERE job = {id}"));
            assert_eq!(found, "1", "{line}");
        }
        store.close().unwrap();
    }
}

/// A crash behind the answers, with no checkpoint of them: the replay passes by the same rows,
/// although nobody has claimed them then.
#[test]
fn a_replay_passes_by_what_was_claimed_then() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copied) = (dir.path().join("store"), dir.path().join("copy"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    client.run("CREATE TABLE job (id int PRIMARY KEY, state text)").unwrap();
    client.run("CREATE TABLE taken (job int, who int)").unwrap();
    client.run("INSERT INTO job SELECT id, 'new' FROM generate_series(1, 9) id").unwrap();
    let mut holder = Client::new(&store);
    holder.begin(READ_COMMITTED);
    holder.within(&TAKE.replace("LIMIT 1", "LIMIT 3")).unwrap();
    assert_eq!(take(&mut client, 1, false).as_deref(), Some("4"));
    let alone = format!("UPDATE job SET state = 'done' WHERE id = ({TAKE}) RETURNING id");
    assert_eq!(client.value(&alone), "5");
    let together =
        client.connection.submit_together(vec![(client.prepare(&alone).unwrap(), Vec::new())]);
    together.0.wait().unwrap();
    let state = store.rows().unwrap();
    copy(&store, &path, &copied);
    let again = on_disk(&copied);
    assert_eq!(again.rows().unwrap(), state);
    let mut client = Client::new(&again);
    let done = "SELECT id FROM job WHERE state = 'done' ORDER BY id";
    assert_eq!(client.query(done), [["4"], ["5"], ["6"]]);
}
