//! SIGINT and SIGTERM end a benchmark in good order (O-62): the epoch that runs is finished and
//! acknowledged, the store is closed, the report is written. A second signal ends it at once.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::support::{Background, PATIENCE, PAUSE, Room, command, run, wait_for_lines};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use serde_json::Value;

/// More epochs than anybody waits for, and each is over soon.
const ENDLESS: &str = "--epoch-size 20 --epochs 100000000 --no-progress";
const SMALLBANK: &str = "smallbank --customers 2000";

/// Starts a run in a temporary store, which is to be the only thing in the room's `tmp`.
fn start_temporary(room: &Room, options: &str) -> Background {
    let temporary = room.path("tmp");
    fs::create_dir_all(&temporary).expect("a directory");
    let mut command = command(&format!("bench {SMALLBANK} {ENDLESS} {options}"));
    // The current directory is where the store goes if /tmp is a file system in memory.
    command.env("TMPDIR", &temporary).current_dir(&temporary);
    Background::start_command(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn temporary_stores(room: &Room) -> usize {
    fs::read_dir(room.path("tmp")).expect("a directory").count()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

#[test]
fn o_62_a_signal_ends_a_run_with_a_report_and_without_its_temporary_store() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let room = Room::new();
        let (acks, report) = (room.text("acks"), room.text("report.json"));
        let options = format!("--verify --ack-log {acks} --json {report}");
        let running = start_temporary(&room, &options);
        wait_for_lines(&room.path("acks"), 5);
        running.signal(signal);
        let ran = running.ended();
        assert_eq!(ran.code, code, "{ran:#?}");
        assert!(!ran.stderr.contains("error: "), "{ran:#?}");
        assert_eq!(temporary_stores(&room), 0, "{ran:#?}");

        let report = json(&text(&room.path("report.json")));
        assert_eq!(report["interrupted"], true);
        assert_eq!((&report["verified"], &report["checked"]), (&true.into(), &true.into()));
        let number = |name: &str| report[name].as_u64().expect("a number");
        let (epoch, epochs) = (number("epoch"), number("epochs"));
        assert_eq!(epoch, number("loading_epochs") + epochs);
        assert_eq!(number("committed") + number("aborted"), 20 * epochs);
        // The last epoch that ran was acknowledged.
        let digest = report["state_digest"].as_str().expect("a digest");
        let acks = text(&room.path("acks"));
        assert_eq!(acks.lines().last(), Some(format!("{epoch} {digest}").as_str()));

        let last = ran.stdout.lines().last().expect("a report");
        assert_eq!(last, format!("interrupted after epoch {epoch} ({epochs} of the stream)"));
        assert!(ran.stdout.contains("\nthroughput  "), "{ran:#?}");
    }
}

#[test]
fn o_62_a_kept_store_is_closed_and_goes_on_with_the_same_digests() {
    for workload in [SMALLBANK, "ycsb --rows 1000 --value-bytes 100"] {
        let room = Room::new();
        let (store, acks, whole) = (room.text("store"), room.text("acks"), room.text("whole"));
        let kept = format!("--device file:{store} --ack-log {acks} --checkpoint-every 1000000");
        let line = format!("bench {workload} {ENDLESS} {kept} --json -");
        let mut command = command(&line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Background::start_command(&mut command);
        wait_for_lines(&room.path("acks"), 8);
        running.signal(Signal::TERM);
        let ran = running.ended();
        assert_eq!(ran.code, 143, "{ran:#?}");
        let resume = format!("--device file:{store} --resume goes on");
        assert!(ran.stderr.contains(&resume), "{ran:#?}");
        let report = ran.json();
        assert_eq!(report["interrupted"], true);

        // A checkpoint of the last epoch, which no epoch before it would have made.
        let check = run(&format!("check {store} --json")).succeeded().json();
        assert_eq!(check["clean"], true);
        assert_eq!(check["epoch"], report["epoch"]);
        assert_eq!(check["state_digest"], report["state_digest"]);
        assert_eq!(check["committed_epochs"].as_array().map(Vec::len), Some(0));

        let epochs = report["epochs"].as_u64().expect("a number") + 3;
        let base = format!("bench {workload} --epoch-size 20 --epochs {epochs} --json -");
        let resumed = run(&format!("{base} {kept} --resume --verify")).succeeded().json();
        let expected = run(&format!("{base} --device dram --ack-log {whole}")).succeeded().json();
        assert_eq!((&resumed["epochs"], &resumed["interrupted"]), (&3.into(), &false.into()));
        assert_eq!(resumed["state_digest"], expected["state_digest"], "{workload}");
        assert_eq!(text(&room.path("acks")), text(&room.path("whole")), "{workload}");
    }
}

/// Starts a run whose `--json` is a pipe without a reader, and waits until it has its temporary
/// store: from then on it waits for the reader, before anything is loaded.
fn start_and_hold(room: &Room) -> Background {
    let pipe = room.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let running = start_temporary(room, &format!("--json {}", pipe.display()));
    let started = Instant::now();
    while temporary_stores(room) == 0 {
        assert!(started.elapsed() < PATIENCE, "no temporary store is made");
        std::thread::sleep(PAUSE);
    }
    running
}

#[test]
fn o_62_a_signal_while_loading_ends_the_run_without_a_table() {
    let room = Room::new();
    let running = start_and_hold(&room);
    running.signal(Signal::TERM);
    // Now there is a reader. The signal comes before the run can get to its first epoch.
    let reader =
        rustix::fs::open(room.path("pipe"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    let mut reader = fs::File::from(reader.expect("a pipe"));
    let ran = running.ended();
    assert_eq!(ran.code, 143, "{ran:#?}");
    assert_eq!(temporary_stores(&room), 0, "{ran:#?}");
    let said = "interrupted after epoch 0 (loading), with no epoch of the stream to report\n";
    assert_eq!(ran.stdout, said, "{ran:#?}");
    let mut report = String::new();
    reader.read_to_string(&mut report).expect("a report in the pipe");
    let report = json(&report);
    assert_eq!((&report["interrupted"], &report["epochs"]), (&true.into(), &0.into()));
    assert_eq!((&report["verified"], &report["checked"]), (&false.into(), &false.into()));
}

#[test]
fn o_62_a_second_signal_ends_the_process_at_once() {
    let room = Room::new();
    let mut running = start_and_hold(&room);
    // Nobody will read, so a process that only took note of signals would wait for ever.
    let started = Instant::now();
    let status = loop {
        running.signal(Signal::TERM);
        std::thread::sleep(PAUSE);
        if let Some(status) = running.status() {
            break status;
        }
        assert!(started.elapsed() < PATIENCE, "the process does not end");
    };
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
}

/// Clients stop, too: what they have in flight is answered, and their stores are no longer there.
#[test]
fn o_62_a_signal_ends_clients_of_the_library() {
    let room = Room::new();
    let (temporary, report) = (room.path("tmp"), room.text("report.json"));
    fs::create_dir_all(&temporary).expect("a directory");
    let line = "smallbank --customers 2000 --clients 3 --in-flight 30 --seconds 36000";
    let mut command = command(&format!("bench {line} --no-progress --json {report}"));
    command.env("TMPDIR", &temporary).current_dir(&temporary);
    let running = Background::start_command(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let started = Instant::now();
    let has_log = || {
        let stores = fs::read_dir(&temporary).expect("a directory").flatten();
        stores.map(|store| store.path().join("log")).any(|log| log.exists())
    };
    while !has_log() {
        assert!(started.elapsed() < PATIENCE, "no store was made");
        std::thread::sleep(PAUSE);
    }
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert!(!ran.stderr.contains("error: "), "{ran:#?}");
    assert_eq!(temporary_stores(&room), 0, "{ran:#?}");
    let report = json(&text(&room.path("report.json")));
    assert_eq!((&report["interrupted"], &report["failed"]), (&true.into(), &0.into()));
    assert_eq!(report["problems"], Value::Array(Vec::new()));
}
