//! The crash script, short; and that it fails when something is wrong.

use std::process::Command;

use crate::support::{Ran, Room, repository, run_command};

fn script(room: &Room, words: &str) -> Ran {
    let mut command = Command::new("bash");
    command
        .arg(repository().join("scripts/crash_and_return.sh"))
        .args(words.split_whitespace())
        .args(["--binary", crate::BINARY, "--directory", &room.text("work")]);
    run_command(&mut command)
}

const SHORT: &str = "--kills 5 --epochs 24";

#[test]
fn smallbank_is_killed_and_comes_back() {
    let ran = script(&Room::new(), &format!("smallbank {SHORT}")).succeeded();
    assert!(ran.stdout.contains("killed 5 times: no acknowledged epoch was lost"), "{ran:#?}");
}

#[test]
fn tpcc_is_killed_and_comes_back() {
    let ran = script(&Room::new(), &format!("tpcc {SHORT}")).succeeded();
    assert!(ran.stdout.contains("killed 5 times: no acknowledged epoch was lost"), "{ran:#?}");
}

#[test]
fn planted_violations_are_found() {
    for (plant, said) in
        [("lost", "was acknowledged, the store recovers to"), ("digest", "acknowledged digest")]
    {
        let ran = script(&Room::new(), &format!("smallbank {SHORT} --plant {plant}"));
        assert_eq!(ran.code, 1, "{plant}: {ran:#?}");
        assert!(ran.stdout.contains("VIOLATION") && ran.stdout.contains(said), "{plant}: {ran:#?}");
    }
}
