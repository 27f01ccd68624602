//! A run that was stopped or killed goes on as if it never had been (O-25, O-30), with other
//! workers too (O-44); and what contradicts the store or the acknowledgements is told.

use std::fs;

use crate::support::{Background, Room, SMALL, run, wait_for_lines};

#[test]
fn a_resumed_run_acknowledges_the_same_digests_as_an_uninterrupted_one() {
    for (workload, size) in SMALL {
        let room = Room::new();
        let (store, acks, whole) = (room.text("store"), room.text("acks"), room.text("whole"));
        let base = format!("bench {workload} {size} --ack-log");
        run(&format!("{base} {whole} --epochs 7 --device dram --workers 1")).succeeded();
        let resumed = format!("{base} {acks} --device file:{store} --resume --verify");
        for (epochs, workers) in [(2, 2), (3, 1), (7, 4)] {
            run(&format!("{resumed} --epochs {epochs} --workers {workers}")).succeeded();
        }
        let text = |path: &str| fs::read_to_string(path).expect("an acknowledgement log");
        assert_eq!(text(&acks), text(&whole), "{workload}");
    }
}

#[test]
fn a_killed_run_is_recovered_and_goes_on() {
    for (workload, size) in SMALL {
        let room = Room::new();
        let (store, acks, whole) = (room.text("store"), room.text("acks"), room.text("whole"));
        let base = format!("bench {workload} {size} --epochs 40");
        run(&format!("{base} --ack-log {whole} --device dram --no-check")).succeeded();
        let line = format!("{base} --ack-log {acks} --device file:{store} --checkpoint-every 15");
        for (lines, resume) in [(2, ""), (9, "--resume"), (20, "--resume")] {
            let running = Background::start(&format!("{line} {resume}"));
            wait_for_lines(&room.path("acks"), lines);
            running.kill();
            run(&format!("check {store}")).succeeded();
        }
        run(&format!("{line} --resume --verify --workers 3")).succeeded();
        let text = |path: &str| fs::read_to_string(path).expect("an acknowledgement log");
        assert_eq!(text(&acks), text(&whole), "{workload}");
    }
}

/// A killed store all of whose epochs are only in the log, and its acknowledgements.
fn killed(room: &Room) -> String {
    let (store, acks) = (room.text("store"), room.text("acks"));
    let (_, size) = SMALL[1];
    let line = format!(
        "bench smallbank {size} --device file:{store} --ack-log {acks} --checkpoint-every 1000"
    );
    let running = Background::start(&format!("{line} --epochs 100000"));
    wait_for_lines(&room.path("acks"), 12);
    running.kill();
    line
}

#[test]
fn lost_or_changed_acknowledged_epochs_are_told() {
    let room = Room::new();
    let line = killed(&room);
    let check = run(&format!("check {} --json", room.text("store"))).succeeded().json();
    let recovers_to = check["recovers_to_epoch"].as_u64().expect("an epoch");
    assert!(recovers_to >= 12, "{check}");
    let acks = fs::read_to_string(room.path("acks")).expect("the acknowledgements");
    let digest = "00112233445566778899aabbccddeeff";
    let last = recovers_to + 1;
    fs::write(room.path("acks"), format!("{acks}{last} {digest}\n")).expect("a written file");
    run(&format!("{line} --resume")).failed(1, &["acknowledged epochs were lost"]);
    fs::write(room.path("acks"), format!("{recovers_to} {digest}\n")).expect("a written file");
    run(&format!("{line} --resume")).failed(1, &[digest, "the recovered store has"]);
    fs::write(room.path("acks"), "not a log\n").expect("a written file");
    run(&format!("{line} --resume")).failed(1, &["acks: line 1"]);
    fs::write(room.path("acks"), acks).expect("a written file");
    run(&format!("{line} --resume --verify --epochs 30")).succeeded();
}

#[test]
fn a_store_that_was_removed_is_told() {
    let room = Room::new();
    let line = killed(&room);
    fs::remove_dir_all(room.path("store")).expect("a removed store");
    run(&format!("{line} --resume")).failed(1, &["acknowledged epochs were lost"]);
    assert!(!room.path("store").exists());
    fs::remove_file(room.path("acks")).expect("a removed file");
    let ran = run(&format!("{line} --resume --epochs 1")).succeeded();
    assert!(ran.stderr.contains("nothing to resume"), "{ran:#?}");
}

#[test]
fn a_log_that_was_cut_off_is_seen_by_those_who_were_answered() {
    let room = Room::new();
    let line = killed(&room);
    let log = fs::OpenOptions::new().write(true).open(room.path("store/log")).expect("the log");
    log.set_len(64 << 10).expect("a shorter log");
    let ran = run(&format!("{line} --resume"));
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
}

#[test]
fn other_parameters_are_named() {
    let room = Room::new();
    let store = room.text("store");
    let line = format!("--device file:{store} --epochs 2");
    run(&format!("bench smallbank --customers 2000 --epoch-size 100 {line}")).succeeded();
    let resume = |options: &str| run(&format!("bench {options} {line} --resume"));
    resume("smallbank").succeeded();
    resume("smallbank --customers 2000 --workers 3 --checkpoint-every 1").succeeded();
    for (options, said) in [
        ("smallbank --customers 2001", "customers is 2000 in the store, 2001 was asked for"),
        ("smallbank --epoch-size 7", "epoch_size is 100 in the store, 7 was asked for"),
        ("smallbank --seed 9", "seed is 1 in the store, 9 was asked for"),
        (
            "smallbank --contention high",
            "contention is \"low\" in the store, \"high\" was asked for",
        ),
        ("ycsb", "workload is \"smallbank\" in the store, \"ycsb\" was asked for"),
    ] {
        resume(options).failed(2, &[said]);
    }
    run(&format!("bench smallbank {line}")).failed(1, &["already holds a store", "--resume"]);
}
