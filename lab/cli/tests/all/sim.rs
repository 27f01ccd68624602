//! `nvcaracal-lab sim`: a seed gives the same exploration again, and the result is whole.

use std::process::{Command, Output};

use serde_json::Value;

fn sim(arguments: &[&str]) -> Output {
    Command::new(crate::BINARY).arg("sim").args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same seed explores the same, whatever the machine does meanwhile; what was counted adds up.
#[test]
fn a_seed_gives_the_same_again() {
    // A case that one worker runs, and one each of its recoveries: with more the order of their
    // stores differs from run to run.
    let arguments =
        ["--seed", "8", "--cases", "1", "--images-per-case", "150", "--jobs", "1", "--json", "-"];
    let (mut one, mut other) = (json(&sim(&arguments)), json(&sim(&arguments)));
    assert_eq!((one["images"].as_u64(), one["violations"].as_u64()), (Some(150), Some(0)));
    let classes = one["classes"].as_array().unwrap();
    let images = classes.iter().flat_map(|class| class["images"].as_array().unwrap());
    assert_eq!(images.map(|count| count.as_u64().unwrap()).sum::<u64>(), 150);
    for result in [&mut one, &mut other] {
        let rates = ["images_per_second", "images_per_core_second", "histories_per_core_second"];
        for measured in rates.into_iter().chain(["seconds"]) {
            assert!(result.as_object_mut().unwrap().remove(measured).unwrap().as_f64() > Some(0.0));
        }
    }
    assert_eq!(one, other);
}

/// The text names what was never hit, and the seed.
#[test]
fn a_short_exploration_says_what_it_missed() {
    let output = sim(&["--seed", "77", "--cases", "1", "--images-per-case", "5", "--run-on", "0"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["5 images recovered", "seed 77", "never hit: closing", "0 violations"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_device_that_it_cannot_crash_is_refused() {
    let output = sim(&["--device", "dram"]);
    assert_eq!(output.status.code(), Some(2));
}

/// O-29, O-57, O-58: the `file` device is crashed on a simulated disk.
#[test]
fn the_file_device_has_a_lab_too() {
    let result = json(&sim(&["--device", "file", "--seed", "1", "--cases", "1", "--json", "-"]));
    assert_eq!((&result["device"], &result["histories"]), (&"file".into(), &1.into()));
    assert_eq!((&result["violations"], &result["interrupted"]), (&0.into(), &false.into()));
    for counted in ["images", "power_cuts", "bad_reads"] {
        assert!(result[counted].as_u64() > Some(0), "{counted}: {result}");
    }
}

/// Most histories of a campaign are explored a little, some deeply, and the report says how many.
#[test]
fn a_campaign_is_broad_and_says_so() {
    let arguments = ["--seed", "3", "--cases", "12", "--jobs", "1", "--json", "-"];
    let result = json(&sim(&arguments));
    assert_eq!(result["histories"].as_u64(), Some(12));
    let (deep, images) = (result["histories_deep"].as_u64(), result["images"].as_u64());
    assert!(deep < Some(12) && images > Some(500), "{result}");
    assert!(result["kills"].as_u64() > Some(0), "{result}");
    let never = result["never_hit"].as_array().unwrap().len() as u64;
    assert_eq!(result["rows_hit"].as_u64().unwrap() + never, result["rows"].as_u64().unwrap());
}
