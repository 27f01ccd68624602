//! An open that is refused leaves every byte, whatever was damaged, whichever command opened the
//! store, with a limit of memory and without: with the right bytes put back nothing is lost.
//!
//! The file `replay` is no part of a store: it is what a recovery says to the next one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sim::history::{Random, effort};

use crate::served::Server;
use crate::support::{Room, run};

type Files = BTreeMap<String, Vec<u8>>;

/// The files that are damaged.
const NAMES: [&str; 4] = ["meta", "data", "table", "log"];
const PAGE: usize = 4096;
const ROWS: i64 = 60;

/// The commands that open a store: those that serve it, and others.
const SERVE: [&str; 2] = ["serve", "serve --memory-limit-bytes 33554432"];
const COMMANDS: [&str; 5] = ["check", "inspect", "dump", "recover", "compact"];

fn read(store: &Path) -> Files {
    let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let files = entries.filter(|path| path.is_file() && name(path) != "replay");
    files.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

fn write(store: &Path, files: &Files) {
    let _ = fs::remove_dir_all(store);
    fs::create_dir(store).unwrap();
    for (name, bytes) in files {
        fs::write(store.join(name), bytes).unwrap();
    }
}

/// A store at several moments of its life: the last is that on which damage is done.
struct Life {
    name: &'static str,
    moments: Vec<Files>,
}

impl Life {
    fn last(&self) -> &Files {
        self.moments.last().unwrap()
    }
}

/// A store before its second snapshot, one with a log behind its snapshot, one that was closed, and
/// a copy that was not opened yet.
async fn lives(room: &Room) -> Vec<Life> {
    let (store, copy) = (room.text("store"), room.text("copy"));
    let server = Server::start(&store);
    let client = server.connect().await.expect("a server");
    let begun = read(&room.path("store"));
    client.batch_execute("CREATE TABLE t (id serial PRIMARY KEY, n int, x text)").await.unwrap();
    for row in 0..ROWS {
        let text = "x".repeat(if row % 9 == 0 { 5000 } else { 100 });
        client
            .batch_execute(&format!("INSERT INTO t (n, x) VALUES ({row}, '{text}')"))
            .await
            .unwrap();
    }
    drop((client, server));
    let young = Life { name: "young", moments: vec![begun.clone(), read(&room.path("store"))] };
    let server = Server::start(&store);
    let client = server.connect().await.expect("a server");
    client.batch_execute("CREATE INDEX by_n ON t (n)").await.unwrap();
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let first = read(&room.path("store"));
    let server = Server::start(&store);
    let client = server.connect().await.expect("a server");
    for row in 0..ROWS / 4 {
        client
            .batch_execute(&format!("UPDATE t SET n = n + 1 WHERE id = {}", row + 1))
            .await
            .unwrap();
    }
    run(&format!("backup {store} {copy}")).succeeded();
    drop((client, server));
    let killed = read(&room.path("store"));
    let server = Server::start(&store);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(tokio::task::block_in_place(|| server.ended()), Some(0));
    let closed = read(&room.path("store"));
    vec![
        young,
        Life { name: "killed", moments: vec![begun, first.clone(), killed] },
        Life { name: "closed", moments: vec![first, closed] },
        Life { name: "copy", moments: vec![read(&room.path("copy"))] },
    ]
}

/// Damages of all parts of the roots and marks, which are few.
fn of_meta(meta: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut damaged = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = meta.to_vec();
        change(&mut bytes);
        damaged.push((what, bytes));
    };
    for page in 0..4 {
        let at = page * PAGE;
        add(format!("page {page} zeroed"), &|bytes| bytes[at..at + PAGE].fill(0));
        add(format!("zeroed from page {page}"), &|bytes| bytes[at..].fill(0));
        add(format!("bit of page {page} flipped"), &|bytes| bytes[at + 40] ^= 4);
        add(format!("cut at page {page}"), &|bytes| bytes.truncate(at));
        add(format!("cut in page {page}"), &|bytes| bytes.truncate(at + 64));
        let with = (page + 1) % 4 * PAGE;
        add(format!("page {page} is that behind it"), &|bytes| {
            bytes.copy_within(with..with + PAGE, at);
        });
    }
    add("both roots changed places".into(), &|bytes| bytes[..2 * PAGE].rotate_left(PAGE));
    damaged
}

/// A random damage of a file.
fn random_damage(name: &str, life: &Life, other: &Life, random: &mut Random) -> (String, Vec<u8>) {
    let mut bytes = life.last()[name].clone();
    let pages: Vec<usize> = (0..bytes.len() / PAGE)
        .map(|page| page * PAGE)
        .filter(|at| bytes[*at..at + PAGE].iter().any(|byte| *byte != 0))
        .collect();
    let at = if pages.is_empty() { 0 } else { random.pick(&pages) };
    let end = bytes.len().min(at + PAGE);
    let what = match random.below(8) {
        0 | 1 => {
            bytes[at..end].fill(0);
            format!("page at {at} zeroed")
        }
        2 | 3 => {
            let bit = at + random.below(200) as usize;
            bytes[bit.min(end - 1)] ^= 1;
            format!("bit at {bit} flipped")
        }
        4 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        5 => {
            let with = random.pick(&pages);
            let (one, two) = (bytes[at..end].to_vec(), bytes[with..with + PAGE].to_vec());
            bytes[at..end].copy_from_slice(&two);
            bytes[with..with + PAGE].copy_from_slice(&one);
            format!("pages at {at} and {with} changed places")
        }
        6 => {
            let moment = random.below(life.moments.len() as u64) as usize;
            bytes.clone_from(&life.moments[moment][name]);
            format!("of moment {moment}")
        }
        _ => {
            bytes.clone_from(&other.last()[name]);
            format!("of store {}", other.name)
        }
    };
    (what, bytes)
}

/// Opens a damaged store with a command. Whether it was refused, and then nothing has changed.
fn is_refused(store: &Path, command: &str, what: &str) -> bool {
    let (before, path) = (read(store), store.display());
    let code = match command.strip_prefix("serve") {
        // One that listens has opened the store: what it does then is another matter.
        Some(options) => i32::from(Server::try_start(&format!("{path}{options}")).is_none()),
        None => run(&format!("{command} {path}")).code,
    };
    if code == 0 {
        return false;
    }
    let after = read(store);
    let changed: Vec<&String> =
        before.keys().filter(|name| before[*name] != after[*name]).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{what}, {command}: {changed:?}");
    true
}

/// With the right bytes all rows are there.
async fn check_rows(store: &Path, life: &Life) {
    write(store, life.last());
    let server = Server::start(&store.display().to_string());
    let client = server.connect().await.expect("a server");
    let row = client.query_one("SELECT count(*), sum(length(x)) FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), ROWS, "{}", life.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_open_leaves_every_byte() {
    let seed = effort("NVCARACAL_FIRST_SEED", 1);
    let mut random = Random::new(seed);
    let room = Room::new();
    let lives = lives(&room).await;
    let store = room.path("damaged");
    let mut refused = BTreeMap::<&str, u64>::new();
    for life in &lives {
        write(&store, life.last());
        for (name, what, bytes) in damages(life, &lives, &mut random) {
            let what = format!("seed {seed}, {}, {name}: {what}", life.name);
            fs::write(store.join(name), &bytes).unwrap();
            for command in SERVE.into_iter().chain([random.pick(&COMMANDS)]) {
                if is_refused(&store, command, &what) {
                    *refused.entry(command).or_default() += 1;
                } else {
                    // It has changed, and rightly.
                    write(&store, life.last());
                    fs::write(store.join(name), &bytes).unwrap();
                }
            }
            fs::write(store.join(name), &life.last()[name]).unwrap();
        }
        check_rows(&store, life).await;
    }
    let count = |command| refused.get(command).copied().unwrap_or_default();
    assert!(SERVE.into_iter().all(|command| count(command) > 20), "{refused:?}");
    assert!(COMMANDS.into_iter().all(|command| count(command) > 0), "{refused:?}");
}

/// All damages of `meta` of the store without a second snapshot, some of others; and random ones
/// of the other files.
fn damages(
    life: &Life,
    lives: &[Life],
    random: &mut Random,
) -> Vec<(&'static str, String, Vec<u8>)> {
    let all = of_meta(&life.last()["meta"]).into_iter();
    let mut damages: Vec<_> = all.map(|(what, bytes)| ("meta", what, bytes)).collect();
    while life.name != "young" && damages.len() > 5 {
        damages.swap_remove(random.below(damages.len() as u64) as usize);
    }
    let others: Vec<&Life> = lives.iter().filter(|other| other.name != life.name).collect();
    for _ in 0..effort("NVCARACAL_DAMAGES", 6) {
        let (name, other) = (random.pick(&NAMES[1..]), random.pick(&others));
        let (what, bytes) = random_damage(name, life, other, random);
        damages.push((name, what, bytes));
    }
    damages.retain(|(name, _, bytes)| life.last()[*name] != *bytes);
    damages
}

fn has_one_snapshot(life: &Life) -> bool {
    ["young", "copy"].contains(&life.name)
}

/// The newest root of a store that has no other but that of its creation is what says that there is
/// anything: without it the log, the marks or `origin` say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_root_is_no_creation_that_was_cut_short() {
    let room = Room::new();
    let store = room.path("damaged");
    for life in lives(&room).await.iter().filter(|life| has_one_snapshot(life)) {
        for zeroed in [PAGE..2 * PAGE, PAGE..4 * PAGE] {
            let mut files = life.last().clone();
            files.get_mut("meta").unwrap()[zeroed.clone()].fill(0);
            write(&store, &files);
            for command in SERVE.into_iter().chain(["check", "recover"]) {
                let what = format!("{}, {zeroed:?}", life.name);
                assert!(is_refused(&store, command, &what), "{what}, {command}: opened");
            }
        }
        check_rows(&store, life).await;
    }
}
