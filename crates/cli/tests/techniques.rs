//! `--without` and `--with`: what they accept, what the report and the tools say then. That they
//! change no digest is in same_digest.rs.

mod support;

use support::{Room, run};

const SIZE: &str = "bench smallbank --customers 2000 --epoch-size 500 --epochs 3 --no-progress";

#[test]
fn a_report_names_what_was_turned_over() {
    let usual = run(&format!("{SIZE} --device dram --json -")).succeeded().json();
    let line = format!("{SIZE} --device dram --without prefetch,state-hash --with initial-copy");
    let turned = run(&format!("{line} --json -")).succeeded().json();
    let is_on = |report: &serde_json::Value| {
        let names =
            ["prefetch", "initial-copy", "reuse", "changed-lines", "past-cache", "state-hash"];
        names.map(|name| report["techniques"][name].as_bool().expect("a switch"))
    };
    assert_eq!(is_on(&usual), [true, false, true, true, true, true]);
    assert_eq!(is_on(&turned), [false, true, true, true, true, false]);
    assert_eq!(usual["state_digest_from"], "running_hash");
    assert_eq!(turned["state_digest_from"], "scan");
    assert_eq!(usual["state_digest"], turned["state_digest"]);
    let table = run(&line).succeeded().stdout;
    assert!(table.contains("without prefetch, with initial-copy, without state-hash"), "{table}");
    assert!(table.contains("computed from all rows"), "{table}");
}

#[test]
fn unknown_names_are_refused_with_the_list() {
    let all = ["prefetch", "reuse", "changed-lines", "past-cache", "state-hash"];
    for bad in ["prefetching", "prefetch,", "initial-copy", "prefetch,x"] {
        run(&format!("{SIZE} --device dram --without {bad}")).failed(2, &all);
    }
    for bad in ["prefetch", "copy"] {
        run(&format!("{SIZE} --device dram --with {bad}")).failed(2, &["initial-copy"]);
    }
    let help = run("bench ycsb --help").succeeded().stdout;
    for word in all.into_iter().chain(["--without", "--with", "initial-copy"]) {
        assert!(help.contains(word), "{word} is not in {help}");
    }
}

/// O-48: without a hash there is nothing to acknowledge epochs with.
#[test]
fn o_48_an_acknowledgement_log_needs_the_state_hash() {
    let room = Room::new();
    let acks = room.text("acks");
    let line = format!("{SIZE} --device dram --ack-log {acks} --without state-hash");
    run(&line).failed(2, &["acknowledgement log", "state-hash"]);
    assert!(!room.path("acks").exists(), "nothing is created");
}

/// O-48: what does not know its hash says so wherever it is asked, until the hash is kept up again.
#[test]
fn o_48_the_tools_say_that_a_hash_is_not_known() {
    let room = Room::new();
    let store = room.text("store");
    let first = run(&format!("{SIZE} --device file:{store} --without state-hash --json -"));
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
    assert_eq!(recovered["recovered_hash"], "verified");
}
