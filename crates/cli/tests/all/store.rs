//! What the commands about a store say agrees with the run that made it.

use crate::support::{Room, command, golden, run, run_command};

const SIZE: &str = "--customers 2000 --epoch-size 500 --epochs 3 --no-progress";

#[test]
fn check_recover_and_inspect_agree_with_the_run() {
    let room = Room::new();
    let store = room.text("store");
    let report = run(&format!("bench smallbank {SIZE} --device file:{store} --json -"));
    let report = report.succeeded().json();

    let check = run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(check["clean"], true);
    assert_eq!(check["epoch"], report["epoch"]);
    assert_eq!(check["state_digest"], report["state_digest"]);
    assert_eq!(check["problems"].as_array().map(Vec::len), Some(0));

    let recover = run(&format!("recover {store} --workers 3 --json")).succeeded().json();
    assert_eq!(recover["epoch"], report["epoch"]);
    assert_eq!(recover["state_digest"], report["state_digest"]);
    assert_eq!(recover["rows"], report["rows"]);
    for part in ["load_log_ms", "scan_ms", "rebuild_ms", "replay_ms", "total_ms"] {
        assert!(recover[part].is_f64(), "{part} in {recover}");
    }

    let inspect = run(&format!("inspect {store} --json")).succeeded().json();
    assert_eq!(inspect["superblock"]["state_digest"], report["state_digest"]);
    assert_eq!(inspect["tables"][0]["name"], "accounts");
    assert!(inspect["pools"][0]["slots_allocated"].as_u64() >= Some(2000));
    let page = run(&format!("inspect {store} log --json")).succeeded().json();
    assert!(page.get("log").is_some() && page.get("tables").is_none());
    for page in ["", "superblock", "pools", "tables", "log"] {
        assert!(!run(&format!("inspect {store} {page}")).succeeded().stdout.is_empty());
    }
}

#[test]
fn a_temporary_store_is_named_and_removed_unless_it_is_kept() {
    let room = Room::new();
    for (keep, left) in [("", 0), ("--keep", 1)] {
        let mut command = command(&format!("bench smallbank {SIZE} {keep}"));
        // Under /tmp: a file system in memory would send it to the current directory.
        command.env("TMPDIR", room.path("")).current_dir(room.path(""));
        let ran = run_command(&mut command).succeeded();
        assert!(ran.stderr.contains("nvcaracal-bench-"), "{ran:#?}");
        let entries = std::fs::read_dir(room.path("")).expect("a directory").count();
        assert_eq!(entries, left, "{ran:#?}");
    }
}

#[test]
fn the_format_page_is_the_golden_one() {
    let page = run("inspect format").succeeded().stdout;
    let expected = golden("format.txt", &page);
    assert_eq!(
        page, expected,
        "bytes on the device changed: that needs a new format version or feature bit; then run \
         with NVCARACAL_BLESS=1"
    );
    let structs = run("inspect format --json").succeeded().json();
    assert!(structs.as_array().map(Vec::len) >= Some(10));
}
