//! Stores that every open refuses, and what a person may decide about them: `recover
//! --accept-loss-after` and `--skip-call`.

use std::fs;
use std::path::Path;

use crate::support::{Background, Room, SMALL, run, wait_for_lines};

/// A killed store with at least a dozen acknowledged epochs, all of them only in the log.
pub(crate) fn killed(room: &Room) -> String {
    let (store, acks) = (room.text("store"), room.text("acks"));
    let line = format!("bench smallbank {} --device file:{store} --ack-log {acks}", SMALL[1].1);
    let running = Background::start(&format!("{line} --epochs 100000 --checkpoint-every 1000"));
    wait_for_lines(&room.path("acks"), 12);
    running.kill();
    store
}

/// The epoch up to which the message says that nothing is lost.
pub(crate) fn kept(said: &str) -> u64 {
    let after = said.split("--accept-loss-after ").nth(1).expect("what to do");
    after.split(' ').next().and_then(|epoch| epoch.parse().ok()).expect("an epoch")
}

#[test]
fn o_24_a_damaged_log_is_refused_until_the_loss_is_accepted() {
    let room = Room::new();
    killed(&room);
    let whole = fs::read(room.path("store/log")).expect("a log");
    let headers = whole.chunks(4096).enumerate().filter(|(_, page)| page[..4] == *b"NVIL");
    let places: Vec<usize> = headers.map(|(page, _)| page * 4096).collect();
    let middle = places[places.len() / 2];
    let mut damaged = whole.clone();
    damaged[middle..middle + 4096].fill(0);
    let cases = [
        ("damaged in the middle", damaged),
        ("zeroed", vec![0; whole.len()]),
        ("cut off", whole[..middle].to_vec()),
        ("empty", Vec::new()),
    ];
    let mut kept_of = Vec::new();
    for (what, log) in cases {
        let store = room.text("damaged");
        copy(&room.path("store"), &room.path("damaged"));
        fs::write(room.path("damaged/log"), &log).expect("a written log");
        run(&format!("check {store}")).failed(1, &["--accept-loss-after"]);
        let refused = run(&format!("recover {store}")).failed(1, &["--accept-loss-after"]);
        assert_eq!(fs::read(room.path("damaged/log")).expect("a log"), log, "{what}: untouched");
        let last = kept(&refused.stderr);
        kept_of.push(last);
        let accepted = run(&format!("recover --accept-loss-after {last} --json {store}"));
        assert_eq!(accepted.succeeded().json()["epoch"], last, "{what}");
        let recovered = run(&format!("recover --json {store}")).succeeded().json();
        assert_eq!(recovered["epoch"], last, "{what}");
        run(&format!("check {store}")).succeeded();
        fs::remove_dir_all(&store).expect("a directory of ours");
    }
    let [damaged, zeroed, cut_off, empty] = kept_of[..] else { panic!("four cases: {kept_of:?}") };
    assert_eq!((zeroed, empty), (0, 0));
    assert!(damaged > 1 && cut_off == damaged, "whole epochs before the cut are kept: {kept_of:?}");
}

/// Copies the files of a store.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new directory");
    for file in fs::read_dir(from).expect("a store") {
        let file = file.expect("a file of the store");
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

#[test]
fn what_is_not_lost_cannot_be_given_up_by_a_slip() {
    let room = Room::new();
    let store = killed(&room);
    let before = fs::read(room.path("store/log")).expect("a log");
    run(&format!("recover --accept-loss-after 999999 {store}"))
        .failed(1, &["is not in the input log", "the last one that can be is"]);
    run(&format!("recover --skip-call 1:0 {store}")).failed(1, &["last epoch of the log only"]);
    run(&format!("recover --skip-call 1 {store}")).failed(2, &["EPOCH:POSITION"]);
    assert_eq!(fs::read(room.path("store/log")).expect("a log"), before);
    run(&format!("recover {store}")).succeeded();
}
