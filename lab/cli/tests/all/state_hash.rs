//! `--no-state-hash`: what the report and the tools say then. That it changes no digest is in
//! same_digest.rs.

use crate::support::{Room, run};

const SIZE: &str = "bench smallbank --customers 2000 --epoch-size 500 --epochs 3 --no-progress";

#[test]
fn a_report_says_whether_the_state_hash_was_maintained() {
    let usual = run(&format!("{SIZE} --device dram --json -")).succeeded().json();
    let line = format!("{SIZE} --device dram --no-state-hash");
    let without = run(&format!("{line} --json -")).succeeded().json();
    assert_eq!((&usual["state_hash"], &without["state_hash"]), (&true.into(), &false.into()));
    assert_eq!(usual["state_digest_from"], "running_hash");
    assert_eq!(without["state_digest_from"], "scan");
    assert_eq!(usual["state_digest"], without["state_digest"]);
    let table = run(&format!("{line} --details")).succeeded().stdout;
    assert!(table.contains("without the state hash"), "{table}");
    assert!(table.contains("computed from all rows"), "{table}");
    let table = run(&format!("{SIZE} --device dram")).succeeded().stdout;
    assert!(!table.contains("without the state hash"), "{table}");
    let help = run("bench ycsb --help").succeeded().stdout;
    assert!(help.contains("--no-state-hash") && help.contains("For experiments"), "{help}");
}

/// O-48: without a hash there is nothing to acknowledge epochs with.
#[test]
fn o_48_an_acknowledgement_log_needs_the_state_hash() {
    let room = Room::new();
    let acks = room.text("acks");
    let line = format!("{SIZE} --device dram --ack-log {acks} --no-state-hash");
    run(&line).failed(2, &["acknowledgement log", "without the state hash"]);
    assert!(!room.path("acks").exists(), "nothing is created");
}

/// O-48: what does not know its hash says so wherever it is asked, until the hash is maintained
/// again.
#[test]
fn o_48_the_tools_say_that_a_hash_is_not_known() {
    let room = Room::new();
    let store = room.text("store");
    let first = run(&format!("{SIZE} --device file:{store} --no-state-hash --json -"));
    let digest = first.succeeded().json()["state_digest"].clone();
    let check = run(&format!("check {store}")).succeeded().stdout;
    assert!(check.contains("compared with none") && check.contains("is clean"), "{check}");
    assert!(check.contains(digest.as_str().expect("a digest")), "{check}");
    let inspect = || run(&format!("inspect {store} superblock")).succeeded().stdout;
    assert!(inspect().contains("not known"));
    let recovered = run(&format!("recover {store}")).succeeded().stdout;
    assert!(recovered.contains("did not know its state hash"), "{recovered}");

    let longer = SIZE.replace("--epochs 3", "--epochs 5");
    let resumed = run(&format!("{longer} --device file:{store} --resume --json -"));
    let resumed = resumed.succeeded().json();
    assert_eq!(resumed["recovered_hash"], "computed");
    let check = run(&format!("check {store} --json")).succeeded().json();
    assert_eq!(check["state_digest_stored"], true);
    assert_eq!(check["state_digest"], resumed["state_digest"]);
    assert!(!inspect().contains("not known"));
    let recovered = run(&format!("recover {store} --json")).succeeded().json();
    assert_eq!(recovered["recovered_hash"], "kept");
}
