//! A process with a consumer that is killed (`SIGKILL`), again and again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use nvcaracal::{Change, Database};
use sim::history::Random;

use super::{Put, STOCK, options, rows_of};
use crate::common::directory;

/// Where the child opens a store, and its seed.
const STORE: &str = "NVCARACAL_CONSUMER_STORE";
const SEED: &str = "NVCARACAL_CONSUMER_SEED";
/// What the lines of the child's journal begin with.
const MARK: &str = "journal: ";

fn open(store: &Path, every: u64) -> Database {
    options().checkpoint_every(every).open(store).unwrap()
}

/// What a child does until it is killed: calls, and a consumer that confirms now and then, with a
/// journal of what it has seen.
#[test]
fn child_with_a_consumer() {
    let Some(store) = std::env::var_os(STORE) else { return };
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    let db = open(Path::new(&store), 1 + random.below(4));
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    println!("{MARK}begin {}", consumer.changes().epoch());
    loop {
        let puts = (0..1 + random.below(4))
            .map(|_| db.submit(Put { item: random.below(30), pieces: random.below(9) }).unwrap());
        puts.collect::<Vec<_>>().into_iter().for_each(|put| put.wait().unwrap());
        while let Some(change) = consumer.changes().try_next().unwrap() {
            let Change { epoch, key, before, after, .. } = change;
            let (before, after) = (before.unwrap_or(0), after.unwrap_or(0));
            println!("{MARK}change {epoch} {key} {before} {after}");
        }
        if random.below(4) == 0 {
            println!("{MARK}confirms {}", consumer.changes().epoch());
            consumer.confirm().unwrap();
            println!("{MARK}confirmed {}", consumer.changes().epoch());
        }
    }
}

/// What a parent makes of a journal.
#[derive(Default)]
struct Journal {
    rows: BTreeMap<u64, u64>,
    /// The rows where the consumer has confirmed, or was about to.
    at: BTreeMap<u64, BTreeMap<u64, u64>>,
    confirmed: u64,
    epoch: u64,
}

impl Journal {
    fn read(&mut self, line: &str, what: &str) {
        let (kind, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers.split(' ').map(|word| word.parse().unwrap()).collect();
        match (kind, numbers.as_slice()) {
            ("begin", &[epoch]) => {
                assert!(epoch >= self.confirmed, "{what}: begins before {}", self.confirmed);
                let known = self.at.get(&epoch).cloned();
                assert!(known.is_some() || self.at.is_empty(), "{what}: begins after {epoch}");
                self.rows = known.unwrap_or_default();
                self.at.insert(epoch, self.rows.clone());
                self.epoch = epoch;
            }
            ("change", &[epoch, key, before, after]) => {
                assert!(epoch >= self.epoch, "{what}: epoch {epoch} after {}", self.epoch);
                self.epoch = epoch;
                let was = match after {
                    0 => self.rows.remove(&key),
                    _ => self.rows.insert(key, after),
                };
                assert_eq!(was.unwrap_or(0), before, "{what}: {key} before epoch {epoch}");
            }
            ("confirms", &[epoch]) => drop(self.at.insert(epoch, self.rows.clone())),
            ("confirmed", &[epoch]) => self.confirmed = epoch,
            _ => panic!("{what}: {line}"),
        }
    }
}

/// O-112: the consumer of a process that is killed goes on behind what it has confirmed.
#[test]
fn o_112_a_consumer_goes_on_in_the_next_process() {
    let dir = directory();
    let store = dir.path().join("store");
    let (mut journal, mut random) = (Journal::default(), Random::new(112));
    for life in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "consumers::kills::child_with_a_consumer", "--nocapture"]);
        child.env(STORE, &store).env(SEED, life.to_string()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 20 + random.below(200);
        for line in lines.map_while(Result::ok) {
            // A line that the kill has cut short says nothing.
            let Some(line) = line.strip_prefix(MARK) else { continue };
            if left > 0 {
                left -= 1;
            } else {
                child.kill().unwrap();
            }
            if line.split(' ').count() == if line.starts_with("change") { 5 } else { 2 } {
                journal.read(line, &format!("life {life}"));
            }
        }
        let status = child.wait().unwrap();
        assert!(!status.success(), "it ends by the kill only");
    }
    let db = open(&store, 1);
    let mut consumer = db.consumer("copy", STOCK).unwrap();
    journal.read(&format!("begin {}", consumer.changes().epoch()), "at the end");
    super::follow(&mut consumer, &mut journal.rows).unwrap();
    assert_eq!(journal.rows, rows_of(&db));
    assert!(journal.confirmed > 0, "something was confirmed");
}
