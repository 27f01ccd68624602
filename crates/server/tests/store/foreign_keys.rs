//! No child is without its parent, however many clients write both.

use crate::client::{Client, copy, memory, on_disk};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use server::store::{Pending, Store};
use std::collections::BTreeSet;

const TABLES: [&str; 4] = [
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE kept (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent)",
    "CREATE TABLE gone (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE freed (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE SET NULL)",
];

/// What one client does: half of it is refused.
fn write(client: &mut Client, seed: u64, count: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut under_way = Vec::new();
    for _ in 0..count {
        let (parent, child) = (random.random_range(0..6), random.random_range(0..100_000));
        let table = ["kept", "gone", "freed"][random.random_range(0..3)];
        let text = match random.random_range(0..8) {
            0..4 => format!("INSERT INTO {table} VALUES ({child}, {parent})"),
            4 => format!("DELETE FROM {table} WHERE parent = {parent}"),
            5 => format!("DELETE FROM parent WHERE id = {parent}"),
            _ => format!("INSERT INTO parent VALUES ({parent}) ON CONFLICT DO NOTHING"),
        };
        under_way.push(client.submit(&text, Vec::new()).unwrap());
        if under_way.len() == 16 {
            under_way.drain(..).for_each(wait);
        }
    }
    // What is dropped takes place, too, but perhaps only while the rows are checked.
    under_way.into_iter().for_each(wait);
}

fn wait(pending: Pending) {
    if let Err(error) = pending.wait() {
        assert!(["23503", "23505"].contains(&error.state().code()), "{error}");
    }
}

/// Each child's parent is there, and its entry is in the index.
fn check(client: &mut Client) -> usize {
    let ids = |client: &mut Client, text: &str| -> Vec<String> {
        client.query(text).into_iter().map(|row| row[0].clone()).collect()
    };
    let parents: BTreeSet<String> = ids(client, "SELECT id FROM parent").into_iter().collect();
    let mut count = 0;
    for table in ["kept", "gone", "freed"] {
        let of = format!("SELECT DISTINCT parent FROM {table} WHERE parent IS NOT NULL");
        for parent in ids(client, &of) {
            assert!(parents.contains(&parent), "{table} has children of {parent}, which is gone");
            let all = format!("SELECT count(*) FROM {table} WHERE parent = {parent}");
            let scanned = format!("SELECT count(*) FROM {table} WHERE parent + 0 = {parent}");
            assert_eq!(client.value(&all), client.value(&scanned), "{table} {parent}");
            count += client.value(&all).parse::<usize>().unwrap();
        }
    }
    count
}

fn make(store: &Store) {
    let mut client = Client::new(store);
    TABLES.iter().for_each(|text| {
        client.run(text).unwrap();
    });
}

#[test]
fn children_come_while_parents_go_and_none_is_an_orphan() {
    let store = memory();
    make(&store);
    for round in 0..4 {
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let store = &store;
                scope.spawn(move || write(&mut Client::new(store), round * 8 + writer, 300));
            }
        });
        assert!(check(&mut Client::new(&store)) > 0, "children are left");
    }
}

#[test]
fn o_25_what_foreign_keys_did_is_there_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    make(&store);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || write(&mut Client::new(store), writer, 150));
        }
    });
    copy(&store, &path, &killed);
    let state = store.rows().unwrap();
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        assert!(store.rows().unwrap() == state, "{}", path.display());
        let mut client = Client::new(&store);
        check(&mut client);
        let error = client.run("INSERT INTO kept VALUES (-1, 77)").unwrap_err();
        assert_eq!(error.state().code(), "23503", "the key is there");
        store.close().unwrap();
    }
}
