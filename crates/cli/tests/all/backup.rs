//! `backup` of a store that another process writes to, and `restore`.

use std::collections::BTreeMap;

use crate::kill::acknowledged;
use crate::repair::copy;
use crate::support::{Background, PAUSE, Room, run};

/// Recovers a copy of a store, and gives the digest of the state that it comes to.
fn recovered(of: &str, store: &str, epoch: u64) -> String {
    // What `bench` writes beside its stores, to know them again, is no part of them.
    std::fs::copy(format!("{of}/bench.json"), format!("{store}/bench.json")).expect("a file");
    run(&format!("recover {store} --workers 1")).succeeded();
    let found = run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(found["epoch"].as_u64(), Some(epoch), "{found:#}");
    found["state_digest"].as_str().expect("a digest").to_string()
}

/// O-59, S6, O-13: copies of a store that a process goes on with have every acknowledged epoch, and
/// come to the states that were acknowledged; so do stores that are restored to an earlier epoch.
#[test]
fn o_59_copies_of_a_running_store_have_what_was_acknowledged() {
    let room = Room::new();
    let (store, acks) = (room.text("store"), room.text("acks"));
    let mut process = Background::start(&format!(
        "bench smallbank --customers 3600 --epoch-size 400 --epochs 100000 --checkpoint-every 3 \
         --no-progress --segment-bytes 16384 --device file:{store} --ack-log {acks}"
    ));
    let newest = || acknowledged(&room.path("acks")).keys().last().copied().unwrap_or(0);
    let mut wait_for = |epoch| {
        while newest() < epoch {
            assert!(process.status().is_none(), "the process goes on");
            std::thread::sleep(PAUSE);
        }
    };
    let mut copies = BTreeMap::new();
    for number in 0..6 {
        wait_for(newest() + 7);
        let copy = room.text(&format!("copy-{number}"));
        let before = newest();
        let made = run(&format!("backup {store} {copy} --json")).succeeded().json();
        let epoch = |field: &str| made[field].as_u64().expect("an epoch");
        assert!(epoch("epoch") >= before, "epoch {before} was acknowledged: {made:#}");
        copies.insert(copy, (epoch("checkpoint_epoch"), epoch("epoch")));
    }
    wait_for(copies.values().map(|(_, last)| *last).max().expect("copies"));
    process.kill();
    let states = acknowledged(&room.path("acks"));
    for (copy, (checkpoint, last)) in copies {
        for epoch in [checkpoint, (checkpoint + last) / 2, last] {
            let target = format!("{copy}-at-{epoch}");
            if !room.path(&target).exists() {
                let line = format!("restore {copy} {target} --to-epoch {epoch}");
                assert!(run(&line).succeeded().stdout.contains("nvcaracal check"));
                assert_eq!(Some(&recovered(&store, &target, epoch)), states.get(&epoch), "{line}");
            }
        }
        run(&format!("restore {copy} {copy}-later --to-epoch {}", last + 1))
            .failed(1, &["is after the last one of the copy", &format!("to {last}:")]);
        assert_eq!(Some(&recovered(&store, &copy, last)), states.get(&last));
    }
}

#[test]
fn what_cannot_be_copied_is_refused_in_words() {
    let room = Room::new();
    let (none, other) = (room.text("none"), room.text("other"));
    run(&format!("backup {none} {other}")).failed(1, &["holds no database"]);
    std::fs::create_dir(room.path("none")).expect("a directory");
    run(&format!("backup {none} {other}")).failed(1, &["holds no database"]);
    std::fs::write(room.path("file"), "text").expect("a file");
    let file = room.text("file");
    run(&format!("backup {file} {other}")).failed(2, &["is no directory"]);
    let store = room.text("store");
    let line = format!("bench smallbank --customers 3600 --epochs 3 --device file:{store}");
    run(&line).succeeded();
    run(&format!("backup {store} {file}")).failed(1, &["is no directory: choose a new directory"]);
    run(&format!("backup {store} {}", room.text("no/copy"))).failed(1, &["no/copy.incomplete"]);
    let said = run(&format!("backup file:{store} {other}")).succeeded().stdout;
    assert!(said.contains("last epoch   5\n"), "{said}");
    let again = run(&format!("backup {store} {other}")).succeeded().stdout;
    assert!(again.contains(", 0 of them written\n"), "{again}");
    run(&format!("restore {store} {other}")).failed(1, &["is not empty"]);
    for itself in [&store, &other] {
        run(&format!("backup {itself} {itself}/")).failed(1, &["is the database itself"]);
    }
    run(&format!("backup {other} {store}")).failed(1, &["not one of its copies"]);
}

/// What is made inside of a database would be copied, moved and removed with it.
#[test]
fn nothing_is_made_inside_of_a_database() {
    let room = Room::new();
    let (store, copy) = (room.text("store"), room.text("copy"));
    let line = format!("bench smallbank --customers 3600 --epochs 3 --device file:{store}");
    run(&line).succeeded();
    run(&format!("backup {store} {copy}")).succeeded();
    std::fs::create_dir(room.path("store/empty")).expect("a directory");
    std::os::unix::fs::symlink(room.path("store"), room.path("link")).expect("a link");
    std::os::unix::fs::symlink(room.path("copy"), room.path("store/out")).expect("a link");
    let (link, names) = (room.text("link"), || {
        let found = std::fs::read_dir(room.path("store")).expect("a store");
        let mut names: Vec<_> = found.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    });
    let before = names();
    for (line, code) in [
        (format!("backup {store} {store}/inside"), 1),
        (format!("backup {store} {store}/empty"), 1),
        (format!("backup {store} {link}/inside"), 1),
        (format!("backup {link} {store}/inside"), 1),
        (format!("backup {store} {store}/out"), 1),
        (format!("restore {copy} {copy}/inside"), 1),
        (format!("restore {copy} {link}/inside"), 1),
        (format!("dump {store} --at-checkpoint --out {link}/dump"), 1),
        (format!("recover {store} --salvage {store}/saved"), 2),
        (format!("serve {store}/other --listen 127.0.0.1:0"), 1),
        (format!("serve {} --listen 127.0.0.1:0 --archive {link}/a", room.text("new")), 1),
    ] {
        run(&line).failed(code, &["is inside of the database", "outside of it"]);
        assert_eq!(names(), before, "{line}");
        assert!(!room.path("new").exists() && !room.path("copy/inside").exists(), "{line}");
    }
    let itself = format!("{store}/inside is inside of the database");
    run(&format!("backup {store} {store}/inside")).failed(1, &[&itself]);
    run(&format!("backup {store} {copy}")).succeeded();
}

const LINE: &str = "bench smallbank --customers 3600 --epoch-size 400 --checkpoint-every 1000 \
                    --no-progress --device";

/// Goes on with a store, and tries to bring a copy up to date that has epochs which it lacks.
fn check_is_kept(store: &str, copy: &str) {
    run(&format!("{LINE} file:{store} --resume --epochs 40")).succeeded();
    let digest = || run(&format!("check {copy} --json")).succeeded().json();
    let before = digest();
    run(&format!("backup {store} {copy}"))
        .failed(1, &["that this database does not have", "in another directory"]);
    assert_eq!(digest(), before, "the copy is as it was");
    run(&format!("backup {store} {copy}-2")).succeeded();
    run(&format!("backup {store} {copy}-2")).succeeded();
}

/// S23: an older state that was put back with `cp`, and went on, replaces no copy of later epochs.
#[test]
fn s_23_an_older_state_that_went_on_replaces_no_copy() {
    let room = Room::new();
    let [store, old, made] = ["store", "old", "copy"].map(|name| room.text(name));
    run(&format!("{LINE} file:{store} --epochs 5")).succeeded();
    copy(&room.path("store"), &room.path("old"));
    run(&format!("{LINE} file:{store} --resume --epochs 10")).succeeded();
    run(&format!("backup {store} {made}")).succeeded();
    check_is_kept(&old, &made);
    run(&format!("{LINE} file:{store} --resume --epochs 15")).succeeded();
    run(&format!("backup {store} {made}")).succeeded();
}

/// S23: a killed store whose disk lost the end of the log and both marks replaces no copy that has
/// the epochs.
#[test]
fn s_23_a_lost_end_of_the_log_replaces_no_copy() {
    let room = Room::new();
    let [store, acks, made] = ["store", "acks", "copy"].map(|name| room.text(name));
    let line = format!("{LINE} file:{store} --epochs 100000 --ack-log {acks}");
    let mut process = Background::start(&line);
    while acknowledged(&room.path("acks")).len() < 15 {
        assert!(process.status().is_none(), "the process goes on");
        std::thread::sleep(PAUSE);
    }
    let copied = run(&format!("backup {store} {made} --json")).succeeded().json();
    process.kill();
    let mut log = std::fs::read(room.path("store/log")).expect("a log");
    let [kept, end] = [made.as_str(), store.as_str()].map(|of| {
        let log = std::fs::read(format!("{of}/log")).expect("a log");
        log.iter().rposition(|byte| *byte != 0).expect("a record")
    });
    assert!(kept <= end, "the copy has no more log than the store");
    log[kept / 4096 * 4096..].fill(0);
    std::fs::write(room.path("store/log"), log).expect("a log");
    let mut meta = std::fs::read(room.path("store/meta")).expect("a file");
    meta[2 * 4096..].fill(0);
    std::fs::write(room.path("store/meta"), meta).expect("a file");
    let found = run(&format!("recover {store} --json")).succeeded().json();
    assert!(found["epoch"].as_u64() < copied["epoch"].as_u64(), "epochs were lost: {found:#}");
    check_is_kept(&store, &made);
}
