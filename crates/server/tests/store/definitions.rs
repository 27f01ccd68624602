//! Definitions between the statements of many connections.

use crate::client::{Client, copy, memory, on_disk};
use crate::script::Target;

#[test]
fn definitions_among_many_writers_leave_each_index_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int, c text)").unwrap();
    client.run("CREATE TABLE emptied (a serial PRIMARY KEY, b int UNIQUE)").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let store = &store;
            scope.spawn(move || write(&mut Client::new(store), writer));
        }
        for round in 0..8 {
            client.run("CREATE INDEX by_b ON t (b)").unwrap();
            client.run(&format!("CREATE UNIQUE INDEX by_c{round} ON t (c, a)")).unwrap();
            client.run("TRUNCATE emptied").unwrap();
            client.run(&format!("CREATE TABLE extra{round} (a int)")).unwrap();
            client.run("DROP INDEX by_b").unwrap();
            if round % 2 == 0 {
                client.run(&format!("DROP INDEX by_c{round}")).unwrap();
                client.run(&format!("DROP TABLE extra{round}")).unwrap();
            }
        }
    });
    client.run("CREATE INDEX by_b ON t (b)").unwrap();
    let state = client.state();
    copy(&store, &path, &killed);
    check(&mut client);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == state, "{}", path.display());
        check(&mut client);
        // Ids are never used again.
        client.run("CREATE TABLE another (a int PRIMARY KEY, b int)").unwrap();
        assert_eq!(client.value("SELECT count(*) FROM another"), "0");
    }
}

fn write(client: &mut Client, writer: i32) {
    let mut pending = Vec::new();
    for number in 0..60 {
        let key = writer * 1000 + number;
        for text in [
            format!("INSERT INTO t VALUES ({key}, {number}, 'c{number}')"),
            format!("UPDATE t SET b = b + 1 WHERE a = {key}"),
            format!("INSERT INTO emptied (b) VALUES ({key})"),
            format!("UPDATE t SET c = c || 'x' WHERE a = {}", key - 1),
        ] {
            pending.push(client.submit(&text, vec![]).unwrap());
        }
        if number % 10 == 9 {
            pending.drain(..).for_each(|pending| {
                pending.wait().unwrap();
            });
        }
    }
}

fn check(client: &mut Client) {
    assert_eq!(client.value("SELECT count(*) FROM t"), "360");
    for number in 0..=60 {
        let by_index = client.query(&format!("SELECT a, b, c FROM t WHERE b = {number}"));
        let by_scan = client.query(&format!("SELECT a, b, c FROM t WHERE b + 0 = {number}"));
        assert_eq!(by_index, by_scan);
    }
    let all = client.query("SELECT a, c FROM t");
    for row in all.iter().step_by(7) {
        let found =
            client.query(&format!("SELECT a FROM t WHERE c = '{}' AND a = {}", row[1], row[0]));
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_statement_that_was_prepared_before_a_definition_is_planned_again() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("INSERT INTO t VALUES (1, 10)").unwrap();
    let prepare = |client: &Client, text: &str| client.prepare(text).unwrap();
    let insert = prepare(&client, "INSERT INTO t VALUES (2, 20) RETURNING b");
    let all = prepare(&client, "SELECT * FROM t");
    let gone = prepare(&client, "DELETE FROM t WHERE b = 1");
    Client::new(&store).run("CREATE UNIQUE INDEX ON t (b)").unwrap();
    client.connection.submit(&insert, vec![]).wait().unwrap();
    assert_eq!(client.value("SELECT a FROM t WHERE b = 20"), "2");
    let error = client.run("INSERT INTO t VALUES (3, 20)").unwrap_err();
    assert_eq!(error.state().code(), "23505");
    client.run("DROP TABLE t").unwrap();
    let error = client.connection.submit(&gone, vec![]).wait().unwrap_err();
    assert_eq!(error.state().code(), "42P01");
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    let error = client.connection.submit(&all, vec![]).wait().unwrap_err();
    assert_eq!(error.state().code(), "0A000");
    assert!(client.query("SELECT * FROM t").is_empty());
}

#[test]
fn what_is_dropped_is_deleted_in_the_background_or_at_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = on_disk(&dir.path().join("store"));
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("CREATE INDEX ON t (b)").unwrap();
    for part in 0..4 {
        let rows: Vec<_> = (0..1500).map(|n| format!("({}, {n})", part * 1500 + n)).collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(","))).unwrap();
    }
    client.run("DROP TABLE t").unwrap();
    drop(client);
    store.close().unwrap();
    let store = on_disk(&dir.path().join("store"));
    // Two rows of the catalog are left: that of the next id, at most, and none of the table.
    for _ in 0..600 {
        if store.database().stats().rows <= 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{} rows are left", store.database().stats().rows);
}
