//! Definitions that write more rows than one call has.

use crate::client::{Client, assert_cleared, cleared, copy, small_parts};
use server::store::{DeviceSpec, Store, StoreOptions};
use std::path::Path;

fn memory() -> Store {
    Store::open(small_parts(StoreOptions::memory())).unwrap()
}

fn on_disk(path: &Path) -> Store {
    let device = DeviceSpec::File(path.to_owned());
    Store::open(small_parts(StoreOptions::at(device))).unwrap()
}

/// A table with rows from 0 on, of which every second refers to parent 7.
fn table(client: &mut Client, rows: i32) {
    client.run("CREATE TABLE parent (id int PRIMARY KEY)").unwrap();
    client.run("INSERT INTO parent VALUES (7)").unwrap();
    client.run("CREATE TABLE t (a int, b text, c int)").unwrap();
    let all = format!(
        "INSERT INTO t SELECT n, 'row ' || n, CASE WHEN n % 2 = 0 THEN 7 END \
         FROM generate_series(0, {}) n",
        rows - 1
    );
    client.run(&all).unwrap();
}

#[test]
fn keys_and_indexes_of_many_rows_are_made_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    table(&mut client, 3_000);
    for text in [
        "ALTER TABLE t ADD PRIMARY KEY (a)",
        "CREATE UNIQUE INDEX by_b ON t (b)",
        "ALTER TABLE t ADD FOREIGN KEY (c) REFERENCES parent",
        "ALTER TABLE t ALTER COLUMN a TYPE bigint, ADD d serial",
    ] {
        client.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(client.value("SELECT count(*) FROM t"), "3000", "{text}");
    }
    assert_eq!(client.value("SELECT b FROM t WHERE a = 2999"), "row 2999");
    assert_eq!(client.value("SELECT a FROM t WHERE b = 'row 17'"), "17");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE c = 7"), "1500");
    assert_eq!(client.value("SELECT count(DISTINCT d) FROM t WHERE d <= 3000"), "3000");
    for (text, code) in [
        ("INSERT INTO t VALUES (2999, 'new')", "23505"),
        ("INSERT INTO t VALUES (9999, 'row 17')", "23505"),
        ("INSERT INTO t VALUES (9999, 'new', 8)", "23503"),
        ("DELETE FROM parent", "23503"),
    ] {
        assert_eq!(client.run(text).unwrap_err().state().code(), code, "{text}");
    }
    cleared(&store);
    let state = store.rows().unwrap();
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        assert!(store.rows().unwrap() == state, "{}", path.display());
        store.close().unwrap();
    }
}

#[test]
fn a_definition_that_fails_behind_its_first_part_leaves_nothing() {
    let store = memory();
    let mut client = Client::new(&store);
    table(&mut client, 3_000);
    client.run("INSERT INTO t VALUES (5, 'row 5', 8)").unwrap();
    let before = cleared(&store);
    for (text, code) in [
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "23505"),
        ("CREATE UNIQUE INDEX ON t (b)", "23505"),
        ("ALTER TABLE t ADD FOREIGN KEY (c) REFERENCES parent", "23503"),
    ] {
        let error = client.run(text).unwrap_err();
        assert_eq!(error.state().code(), code, "{text}: {error}");
        // The next table has none of the ids.
        client.run("CREATE TABLE made (a int PRIMARY KEY, b int UNIQUE)").unwrap();
        assert_eq!(client.value("SELECT count(*) FROM made"), "0");
        client.run("INSERT INTO made SELECT n, n FROM generate_series(1, 100) n").unwrap();
        assert_eq!(client.value("SELECT count(*) FROM made"), "100");
        client.run("DROP TABLE made").unwrap();
        assert_cleared(&store, before);
        assert_eq!(client.value("SELECT count(*) FROM t"), "3001");
    }
}
