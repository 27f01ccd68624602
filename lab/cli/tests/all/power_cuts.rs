//! Power cuts of a real file system (O-25): the library loses nothing that it answered, and a
//! database that does not wait for the disk loses some, or this could not fail.

use serde_json::Value;
use sim::history::effort;

use crate::support::{Room, run};

/// What came of power cuts; none where they cannot be.
fn cuts_of(database: &str, more: &str) -> Option<(i32, Value)> {
    let room = Room::new();
    let (keep, images) = (room.text("kept"), room.text("images"));
    for directory in [&keep, &images] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let line = format!(
        "power-cuts --database {database} --keep {keep} --directory {images} --json - {more}"
    );
    let ran = run(&line);
    for needed in ["only root may", "no loop devices", "which is not installed", "unshare"] {
        if ran.stderr.contains(needed) {
            eprintln!("SKIPPED: {}", ran.stderr.trim());
            return None;
        }
    }
    assert!([0, 1].contains(&ran.code), "{ran:#?}");
    assert_eq!(std::fs::read_dir(images).expect("it is there").count(), 0, "images are left");
    let report = ran.json();
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1), "{report:#}");
    Some((ran.code, report["rows"][0].clone()))
}

#[test]
fn o_25_the_library_loses_nothing_that_it_answered() {
    let cuts = effort("NVCARACAL_POWER_CUTS", 20);
    let seed = effort("NVCARACAL_FIRST_SEED", 1);
    let Some((code, row)) = cuts_of("nvcaracal", &format!("--cuts {cuts} --seed {seed}")) else {
        return;
    };
    assert_eq!(code, 0, "seed {seed}: {row:#}");
    assert_eq!(row["cuts"].as_u64(), Some(cuts), "{row:#}");
    for figure in ["answered", "verified"] {
        assert!(row[figure].as_u64() > Some(0), "{figure} of {row:#}");
    }
    for figure in ["lost", "lost_after_errors", "wrong", "refused", "not_made", "damaged", "failed"]
    {
        assert_eq!(row[figure], 0, "{figure} of {row:#}");
    }
}

#[test]
fn answers_that_do_not_wait_for_the_disk_are_lost() {
    let Some((code, row)) = cuts_of("sqlite", "--cuts 10 --seed 1 --unsynced") else { return };
    let lost = |figure| row[figure].as_u64().expect("a number");
    assert!(lost("lost") + lost("lost_after_errors") > 0, "{row:#}");
    assert_eq!(code, 0, "only the library's losses are failures");
    let kept = row["violations"][0]["kept"].as_str().expect("files are kept");
    assert!(kept.contains("power-cut-sqlite-1-"), "{row:#}");
}

#[test]
fn what_cannot_be_is_refused() {
    run("power-cuts --cuts 0").failed(2, &["--cuts"]);
    run("power-cuts --database oracle").failed(2, &["oracle"]);
    run("power-cuts --file-system fat").failed(2, &["fat"]);
}
