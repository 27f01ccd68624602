//! Indexes of a part of the rows, and over expressions, agree with the rows: they have the entries
//! that they get when they are made anew.

use crate::client::{Client, copy, memory, on_disk};
use crate::script::Target;
use sql::ir::Space;
use std::collections::BTreeSet;

/// The entries below ids other than these, without their ids.
fn entries(client: &Client, left_out: &BTreeSet<Vec<u8>>) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
    let all = client
        .state()
        .into_iter()
        .filter(|(space, key, _)| *space != Space::Catalog && !left_out.contains(&key[..4]));
    let mut all: Vec<_> =
        all.map(|(space, key, value)| (space, key[4..].to_vec(), value)).collect();
    all.sort();
    all
}

fn ids(client: &Client) -> BTreeSet<Vec<u8>> {
    client.state().into_iter().map(|(_, key, _)| key[..4].to_vec()).collect()
}

/// Makes each index of the tables anew, and compares its entries with those of before.
pub(crate) fn assert_agree(client: &mut Client) {
    let found = client.query(
        "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%WHERE%' \
         OR indexdef LIKE '%(%(%' ORDER BY indexname",
    );
    for index in found {
        let [name, definition] = &index[..] else { panic!("two columns") };
        let before = ids(client);
        let all = client.state();
        client.run(&format!("DROP INDEX {name}")).unwrap();
        let without = ids(client);
        let own: BTreeSet<Vec<u8>> = before.difference(&without).cloned().collect();
        let is_own = |key: &[u8]| own.contains(&key[..4]);
        let mut old: Vec<_> = all
            .into_iter()
            .filter(|(space, key, _)| *space != Space::Catalog && is_own(key))
            .map(|(space, key, value)| (space, key[4..].to_vec(), value))
            .collect();
        old.sort();
        client.run(definition).unwrap();
        assert_eq!(entries(client, &without), old, "{definition}");
    }
}

const TABLES: [&str; 4] = [
    "CREATE TABLE i (id int PRIMARY KEY, name text, n int, gone boolean NOT NULL)",
    "CREATE UNIQUE INDEX i_name ON i (lower(name)) WHERE NOT gone",
    "CREATE INDEX i_sum ON i ((n + id) DESC, name) WHERE n > 2",
    "CREATE INDEX i_upper ON i (upper(name), gone)",
];

/// Some rows that come, change and go.
fn change(client: &mut Client, round: i32) {
    for id in 0..20 {
        let name = format!("Name {}", (id * 7 + round) % 13);
        let (n, gone) = ((id + round) % 6, (id * round) % 3 == 0);
        // Some are refused, as others have the name.
        let _ = client.run(&format!("INSERT INTO i VALUES ({id}, '{name}', {n}, {gone})"));
        let _ = client.run(&format!("UPDATE i SET name = '{name}' WHERE id = {}", 19 - id));
        let _ = client.run(&format!("UPDATE i SET n = n + 1, gone = NOT gone WHERE id = {n}"));
        if id % 4 == 1 {
            client.run(&format!("DELETE FROM i WHERE lower(name) = lower('{name}')")).unwrap();
        }
        let upsert = "ON CONFLICT (lower(name)) WHERE NOT gone DO UPDATE SET n = excluded.n";
        let _ = client.run(&format!("INSERT INTO i VALUES ({}, 'x', 3, false) {upsert}", id + 40));
    }
}

#[test]
fn entries_are_those_of_an_index_that_is_made_anew() {
    let mut client = Client::new(&memory());
    for text in TABLES {
        client.run(text).unwrap();
    }
    for round in 1..4 {
        change(&mut client, round);
        assert_agree(&mut client);
    }
    assert!(client.query("SELECT 1 FROM i WHERE NOT gone").len() > 3);
    client.run("ALTER TABLE i ADD COLUMN more int DEFAULT 3").unwrap();
    client.run("CREATE INDEX i_more ON i (more) WHERE more > 2").unwrap();
    change(&mut client, 4);
    client.run("ALTER TABLE i DROP CONSTRAINT i_pkey").unwrap();
    assert_agree(&mut client);
}

#[test]
fn o_25_rows_and_entries_agree_after_a_crash_and_after_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    for text in TABLES {
        client.run(text).unwrap();
    }
    change(&mut client, 1);
    change(&mut client, 2);
    let state = client.state();
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == state, "{}", path.display());
        assert_agree(&mut client);
        change(&mut client, 3);
        assert_agree(&mut client);
        drop(client);
        store.close().unwrap();
    }
}
