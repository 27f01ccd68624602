//! Every command that writes, killed at any moment, run twice at once, and run beside an owner:
//! what is left is whole, or refused, and nobody loses anything (O-52).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use pmem::{File, FileOptions};

use nvcaracal::{Database, Options, Stop, Table, Transaction, procedure};
use sim::history::{Random, effort};

use crate::dump::dumped;
use crate::repair::{self, kept};
use crate::support::{Background, PAUSE, Ran, Room, command, run};

const NOTES: Table<u64, String> = Table::ordered("notes").with_value_bytes(100);

#[procedure]
fn write_note(tx: &mut Transaction, key: u64, text: String) -> Result<(), Stop> {
    tx.insert(NOTES, key, &text)
}

fn program() -> Options {
    Database::options().table(NOTES).procedure::<WriteNote>().workers(1)
}

/// What `dump` says of a store with so many notes.
fn notes(count: u64) -> String {
    let mut text = format!(
        "{{\"table\":\"notes\",\"index\":\"ordered\",\"key_bytes_max\":8,\"value_bytes_max\":100,\
         \"row_bytes\":256,\"types\":[\"u64 -> String\"],\"rows\":{count}}}\n"
    );
    for key in 0..count {
        text += &format!("{{\"key\":{key},\"value\":\"note {key} of {count}\"}}\n");
    }
    text
}

/// Two processes of one command line at once.
fn duplicate(line: &str) -> [Background; 2] {
    [0, 1].map(|_| {
        let mut command = command(line);
        piped(&mut command);
        Background::start_command(&mut command)
    })
}

fn piped(command: &mut Command) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// A command line that is killed after so many looks, unless it has ended.
fn killed(line: &str, looks: u64) {
    let mut process = Background::start(line);
    for _ in 0..looks {
        if process.status().is_some() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    drop(process);
}

/// What was done, where something is not as it should be.
#[track_caller]
fn refused(ran: &Ran, words: &[&str], seed: u64) {
    let is_said = words.iter().any(|word| ran.stderr.contains(word));
    assert!(ran.code == 1 && is_said, "seed {seed}: none of {words:?} in {ran:#?}");
}

/// Each seed with its own random numbers.
fn for_each_seed(each: impl Fn(u64, &mut Random)) {
    let first = effort("NVCARACAL_FIRST_SEED", 0);
    for seed in first..first + effort("NVCARACAL_ACTORS", 4) {
        each(seed, &mut Random::new(seed));
    }
}

#[test]
fn a_load_is_whole_or_refused_whatever_happens_to_it() {
    let room = Room::new();
    let file = room.text("notes.jsonl");
    fs::write(&file, notes(3000)).unwrap();
    for_each_seed(|seed, random| {
        let store = room.text(&format!("store-{seed}"));
        if random.percent(50) {
            let db = program().open(&store).unwrap();
            db.call(WriteNote { key: 7, text: "older".into() }).unwrap();
            db.close().unwrap();
        }
        let load = format!("load {store} {file} --without-end");
        let points = ["any-any", "any-write", "log-sync", "log-torn", "table-torn", "data-sync"];
        for _ in 0..4 {
            match random.below(3) {
                0 => killed(&load, random.below(30)),
                1 => {
                    let (point, number) = (random.pick(&points), 1 + random.below(40));
                    run(&format!("{load} --die-at {point}:{number}"));
                }
                _ => {
                    let [one, other] = duplicate(&load);
                    if random.percent(50) {
                        other.kill();
                    } else {
                        other.ended();
                    }
                    one.ended();
                }
            }
            // Rows of a part are nobody's store.
            let found = run(&format!("dump {store}"));
            let is_older = found.stdout.contains("\"rows\":1}") && found.stdout.contains("older");
            if found.code != 0 {
                refused(&found, &["cut short", "holds no database", "no store here"], seed);
            } else if !is_older {
                assert_eq!(dumped(&format!("dump {store}")), notes(3000), "seed {seed}");
                run(&format!("check {store}")).succeeded();
            }
        }
        run(&load).succeeded();
        // Beside an owner.
        let db = program().open(&store).unwrap();
        refused(&run(&load), &["is locked"], seed);
        db.call(WriteNote { key: 7, text: "mine".into() }).unwrap();
        db.close().unwrap();
        let mine = notes(3000).replace("\"note 7 of 3000\"", "\"mine\"");
        assert_eq!(dumped(&format!("dump {store}")), mine, "seed {seed}");
    });
}

#[test]
fn a_dump_is_whole_or_refused_whatever_happens_to_it() {
    let room = Room::new();
    let (file, store) = (room.text("notes.jsonl"), room.text("store"));
    fs::write(&file, notes(3000)).unwrap();
    run(&format!("load {store} {file} --without-end")).succeeded();
    let db = program().open(&store).unwrap();
    refused(&run(&format!("dump {store} --out {}", room.text("none"))), &["is locked"], 0);
    assert!(!Path::new(&room.text("none")).exists());
    db.close().unwrap();
    for_each_seed(|seed, random| {
        let (out, again) = (room.text(&format!("out-{seed}")), room.text(&format!("again-{seed}")));
        let format = random.pick(&["jsonl", "csv"]);
        let dump = format!("dump {store} --format {format} --out {out}");
        match random.percent(50) {
            true => killed(&dump, random.below(12)),
            false => {
                let codes = duplicate(&dump).map(|one| one.ended().code);
                assert!(codes.contains(&1), "seed {seed}: two dumps into one place: {codes:?}");
            }
        }
        let loaded = run(&format!("load {again} {out}"));
        if loaded.code == 0 {
            assert_eq!(dumped(&format!("dump {again}")), notes(3000), "{seed}");
        } else {
            let words = ["did not come to its end", "cannot read", "there is no file", "dump.end"];
            let is_said = words.iter().any(|word| loaded.stderr.contains(word));
            assert!(is_said, "seed {seed}: {loaded:#?}");
            assert!(!Path::new(&again).exists(), "seed {seed}");
        }
        assert_eq!(dumped(&format!("dump {store}")), notes(3000), "seed {seed}");
    });
}

#[test]
fn a_benchmark_is_made_resumed_and_recovered_whatever_happens_to_it() {
    let room = Room::new();
    let bench = |store: &str| {
        format!("bench smallbank --customers 540 --epochs 6 --epoch-size 100 --device file:{store}")
    };
    let digest = |store: &str| {
        let found = run(&format!("check {store} --json")).succeeded().json();
        (found["epoch"].clone(), found["state_digest"].clone())
    };
    let reference = room.text("reference");
    run(&bench(&reference)).succeeded();
    let longer = |line: &str| line.replace("--epochs 6", "--epochs 8");
    let longer_reference = room.text("longer");
    run(&longer(&bench(&longer_reference))).succeeded();
    for_each_seed(|seed, random| {
        let store = room.text(&format!("store-{seed}"));
        let line = bench(&store);
        // Cut short before there is a store, it is made again; afterwards it goes on.
        let early = random.pick(&["meta-grow", "meta-sync", "image-sync", "directory-sync"]);
        assert_ne!(run(&format!("{line} --die-at {early}")).code, 0, "seed {seed}");
        let later = format!("any-any:{}", 60 + random.below(60));
        assert_ne!(run(&format!("{line} --die-at {later}")).code, 0, "seed {seed}: {later}");
        for _ in 0..2 {
            match random.below(3) {
                0 => killed(&format!("{line} --resume"), random.below(20)),
                1 => killed(&format!("recover {store}"), random.below(8)),
                _ => {
                    let resume = format!("{line} --resume");
                    let (one, other) =
                        (Background::start(&resume), run(&format!("recover {store}")));
                    one.ended();
                    if other.code != 0 {
                        refused(&other, &["is locked", "holds no database", "no store here"], seed);
                    }
                }
            }
        }
        let codes = duplicate(&format!("{line} --resume")).map(|one| one.ended().code);
        assert!(codes.contains(&0), "seed {seed}: {codes:?}");
        assert_eq!(digest(&store), digest(&reference), "seed {seed}");
        refused(&run(&line), &["already holds a store"], seed);
        assert_eq!(digest(&store), digest(&reference), "seed {seed}");
        // Beside an owner.
        let longer = longer(&line);
        let owner = File::open(Path::new(&store), &FileOptions::new(1 << 30, 1 << 30)).unwrap();
        refused(&run(&format!("{longer} --resume")), &["is locked"], seed);
        drop(owner);
        assert_eq!(digest(&store), digest(&reference), "seed {seed}");
        run(&format!("{longer} --resume")).succeeded();
        assert_eq!(digest(&store), digest(&longer_reference), "seed {seed}");
    });
}

/// A decision about a store, killed before any call to its files and at any moment, made twice at
/// once, and beside an owner: the store is as it was, or as the decision leaves it, and the same
/// decision is made again.
fn decide(room: &Room, store: &Path, decision: &str, seed: u64, random: &mut Random) {
    let state = |store: &str| {
        let found = run(&format!("recover {store} --json")).succeeded().json();
        run(&format!("check {store}")).succeeded();
        (found["epoch"].clone(), found["state_digest"].clone(), found["skipped"].clone())
    };
    let fresh = |name: &str| {
        let _ = fs::remove_dir_all(room.path(name));
        repair::copy(store, &room.path(name));
        room.text(name)
    };
    let reference = fresh("reference");
    run(&format!("recover {decision} {reference}")).succeeded();
    let expected = state(&reference);
    let died_at = |number: u64| {
        let killed = fresh("killed");
        let line = format!("recover {decision} {killed}");
        let is_dead = run(&format!("{line} --die-at any-any:{number}")).code != 0;
        run(&line).succeeded();
        assert_eq!(state(&killed), expected, "seed {seed}: {decision}, killed at call {number}");
        is_dead
    };
    assert!(died_at(1), "seed {seed}: {decision} makes no call to a file");
    for calls in [8, 64] {
        died_at(1 + random.below(calls));
    }
    let store = fresh("disturbed");
    let line = format!("recover {decision} {store}");
    killed(&line, random.below(3));
    let owner = File::open(Path::new(&store), &FileOptions::new(1 << 30, 1 << 30)).unwrap();
    refused(&run(&line), &["is locked"], seed);
    drop(owner);
    for ran in duplicate(&line).map(Background::ended) {
        if ran.code != 0 {
            refused(&ran, &["is locked"], seed);
        }
    }
    run(&line).succeeded();
    assert_eq!(state(&store), expected, "seed {seed}: {decision}");
}

#[test]
fn an_accepted_loss_is_accepted_as_a_whole_whatever_happens_to_the_command() {
    let room = Room::new();
    repair::killed(&room);
    let log = fs::read(room.path("store/log")).unwrap();
    let headers = log.chunks(4096).enumerate().filter(|(_, page)| page[..4] == *b"NVIL");
    let pages: Vec<usize> = headers.map(|(page, _)| page).collect();
    for_each_seed(|seed, random| {
        let damaged = 4096 * random.pick(&pages[pages.len() / 4..pages.len() / 2]);
        let mut log = log.clone();
        log[damaged..damaged + 4096].fill(0);
        fs::write(room.path("store/log"), &log).unwrap();
        let said = run(&format!("recover {}", room.text("store")));
        // A damaged record of the program needs no decision about epochs.
        if said.stderr.contains("--accept-loss-after") {
            let decision = format!("--accept-loss-after {}", kept(&said.stderr));
            decide(&room, &room.path("store"), &decision, seed, random);
        }
    });
}

#[test]
fn a_call_is_left_out_as_a_whole_whatever_happens_to_the_command() {
    for_each_seed(|seed, random| {
        let room = Room::new();
        let store = room.text("store");
        let bench = "bench smallbank --customers 540 --epoch-size 100 --checkpoint-every 1000";
        // Ends when an epoch is in the log, and nothing of it was answered. The first ones load.
        let point = format!("log-sync:{}", 12 + random.below(8));
        let died = run(&format!("{bench} --epochs 100 --device file:{store} --die-at {point}"));
        assert_ne!(died.code, 0, "seed {seed}");
        let found = run(&format!("check {store} --json")).succeeded().json();
        let last = found["recovers_to_epoch"].as_u64().unwrap();
        // One that loads has few calls.
        let decision = format!("--skip-call {last}:{}", random.below(6));
        decide(&room, &room.path("store"), &decision, seed, random);
    });
}
