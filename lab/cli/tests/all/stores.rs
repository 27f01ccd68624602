//! The commands about stores, with those that the engine alone made.

use crate::support::{Room, run};

/// Of a store without types rows are bytes.
#[test]
fn rows_without_types_are_bytes() {
    let room = Room::new();
    let store = room.text("store");
    run(&format!("bench smallbank --customers 54 --epochs 1 --epoch-size 5 --device file:{store}"))
        .succeeded();
    let rows = run(&format!("dump {store} --table accounts")).succeeded().stdout;
    let first = rows.lines().nth(1).expect("a row");
    assert_eq!(first, r#"{"key":"0x0000000000000000","value":"0x0000000000000000"}"#);
    assert_eq!(rows.lines().count(), 56, "with the line that ends them");
}

/// Stores of the library and of the engine are told from each other: each is recovered and resumed
/// by what made it.
#[test]
fn a_store_is_recovered_by_what_made_it() {
    let room = Room::new();
    let store = room.text("store");
    let line = format!(
        "bench smallbank --customers 540 --epoch-size 50 --epochs 30 --device file:{store} \
         --die-at log-sync:14 --checkpoint-every 1000"
    );
    assert_ne!(run(&line).code, 0);
    let check = run(&format!("check {store} --json")).succeeded().json();
    assert!(
        check["committed_epochs"].as_array().is_some_and(|epochs| !epochs.is_empty()),
        "{check}"
    );
    let recovered = run(&format!("recover {store} --json")).succeeded().json();
    assert_eq!(recovered["epoch"], check["recovers_to_epoch"]);
    let made = room.path("store/bench.json");
    let text = std::fs::read_to_string(&made).expect("the description");
    let other = text.replace("\"engine\"", "\"library\"");
    assert_ne!(text, other);
    std::fs::write(&made, other).expect("a written description");
    let resume = format!("bench smallbank --device file:{store} --resume");
    run(&resume).failed(1, &["made by `nvcaracal bench`", "continue it with nvcaracal"]);
}
