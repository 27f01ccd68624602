//! Definitions between the statements of many connections.

use crate::client::{Client, copy, memory, on_disk};
use crate::script::Target;
use server::store::{BlockOperation, Modes};

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
    // An open alone changes nothing that it need not.
    let _client = Client::new(&store);
    // Two rows of the catalog are left: that of the next id, at most, and none of the table.
    for _ in 0..600 {
        if store.database().stats().rows <= 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{} rows are left", store.database().stats().rows);
}

#[test]
fn tables_that_were_altered_are_the_same_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    for text in [
        "CREATE TABLE t (a int, b int, c text)",
        "CREATE TABLE child (a int PRIMARY KEY, t int)",
        "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (3, NULL, 'z')",
        "INSERT INTO child VALUES (1, 1), (2, 3)",
        "ALTER TABLE t ADD PRIMARY KEY (a), ADD CONSTRAINT big UNIQUE (b)",
        "ALTER TABLE child ADD FOREIGN KEY (t) REFERENCES t ON DELETE CASCADE",
        "ALTER TABLE t DROP COLUMN c, ADD COLUMN d text NOT NULL DEFAULT 'old'",
        "ALTER TABLE t ALTER COLUMN d SET DEFAULT 'new'",
        "INSERT INTO t VALUES (4, 40)",
        "ALTER TABLE t ALTER COLUMN b TYPE text",
        "ALTER TABLE t RENAME TO parent",
    ] {
        client.run(text).unwrap();
    }
    // What fails leaves nothing behind.
    let before = client.state();
    for (text, code) in [
        ("ALTER TABLE parent DROP COLUMN d, ALTER COLUMN b SET NOT NULL", "23502"),
        ("ALTER TABLE parent ADD COLUMN e int DEFAULT 1, ADD UNIQUE (e)", "23505"),
        ("ALTER TABLE parent ADD COLUMN e int, ADD CHECK (a > 1)", "23514"),
        ("ALTER TABLE parent ALTER COLUMN b TYPE int USING (b || 'x')::int", "22P02"),
        ("ALTER TABLE child ALTER COLUMN t SET DEFAULT 9, DROP COLUMN nothing", "42703"),
        ("ALTER TABLE parent ALTER COLUMN d TYPE text USING (SELECT 'x')", "0A000"),
        ("ALTER TABLE parent RENAME d TO e, ADD COLUMN f int", "42601"),
        ("ALTER TABLE child ADD COLUMN e int DEFAULT 77 REFERENCES parent", "23503"),
    ] {
        assert_eq!(client.run(text).unwrap_err().state().code(), code, "{text}");
    }
    assert!(client.state() == before);
    copy(&store, &path, &killed);
    drop(client);
    drop(store);
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == before, "{}", path.display());
        let rows = client.query("SELECT * FROM parent ORDER BY a");
        let expected =
            [["1", "10", "old"], ["2", "20", "old"], ["3", "NULL", "old"], ["4", "40", "new"]];
        assert_eq!(rows, expected);
        let error = client.run("INSERT INTO parent VALUES (5, '20')").unwrap_err();
        assert_eq!(error.constraint(), Some("big"));
        client.run("DELETE FROM parent WHERE a = 1").unwrap();
        assert_eq!(client.value("SELECT a FROM child"), "2");
    }
}

#[test]
fn columns_come_without_writing_rows_and_more_rows_than_fit_a_block_are_refused() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    for part in 0..11 {
        let rows: Vec<_> = (0..10_000).map(|n| format!("({}, {n})", part * 10_000 + n)).collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(","))).unwrap();
    }
    client.run("ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 5, DROP COLUMN b").unwrap();
    assert_eq!(client.value("SELECT sum(c) FROM t"), "550000");
    for text in [
        "ALTER TABLE t ALTER COLUMN c TYPE text",
        "ALTER TABLE t ADD UNIQUE (c, a)",
        "CREATE INDEX ON t (c)",
    ] {
        client.begin(Modes::default());
        let error = client.within(text).unwrap_err();
        assert_eq!(error.state().code(), "54000", "{text}");
        assert!(error.hint().unwrap().contains("outside of a block"), "{text}");
        client.block(BlockOperation::RollBack).unwrap();
    }
    assert_eq!(client.value("SELECT c + 1 FROM t WHERE a = 7"), "6");
    // Outside of blocks they are written in parts.
    client.run("ALTER TABLE t ALTER COLUMN c TYPE text, ADD UNIQUE (c, a)").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t WHERE c = '5'"), "110000");
}

#[test]
fn altered_sequences_and_keys_go_on_after_a_crash_and_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    for text in [
        "CREATE SEQUENCE numbers",
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n bigint)",
        "INSERT INTO t (n) SELECT nextval('numbers') FROM generate_series(1, 50)",
        "ALTER SEQUENCE numbers INCREMENT 100",
        "ALTER TABLE t ALTER id RESTART WITH 1000",
        "INSERT INTO t (n) VALUES (nextval('numbers'))",
        // Each row gets a key that no statement sees, and another one later.
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "INSERT INTO t (n) VALUES (nextval('numbers'))",
        "ALTER TABLE t ADD COLUMN place serial",
        "INSERT INTO t (n) VALUES (nextval('numbers'))",
    ] {
        client.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let state = client.state();
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == state, "{}", path.display());
        assert_eq!(
            client.query("SELECT id, n, place FROM t WHERE n > 100"),
            [["1000", "150", "51"], ["1001", "250", "52"], ["1002", "350", "53"]]
        );
        let more = "INSERT INTO t (n) VALUES (nextval('numbers')) RETURNING id, n, place";
        assert_eq!(client.query(more), [["1003", "450", "54"]]);
        client.run("ALTER SEQUENCE numbers RESTART").unwrap();
        assert_eq!(client.query("SELECT nextval('numbers')"), [["1"]]);
        assert_eq!(client.value("SELECT count(*) FROM t"), "54");
    }
}

/// While others take numbers, a block changes how the sequence counts: no number comes twice.
#[test]
fn a_sequence_is_altered_in_a_block_among_writers() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (id serial PRIMARY KEY, w int)").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                for _ in 0..60 {
                    client.run(&format!("INSERT INTO t (w) VALUES ({writer})")).unwrap();
                }
            });
        }
        let mut committed = 0;
        while committed < 5 {
            client.begin(Modes::default());
            let done = client.within("INSERT INTO t (w) VALUES (9)").and_then(|_| {
                client.within("ALTER SEQUENCE t_id_seq INCREMENT 3")?;
                client.within("INSERT INTO t (w) VALUES (9)")?;
                client.within("ALTER SEQUENCE t_id_seq INCREMENT 1")?;
                client.within("INSERT INTO t (w) VALUES (9)")
            });
            let ended = done.and_then(|_| client.commit());
            match ended {
                Ok(_) => committed += 1,
                Err(error) => {
                    assert_eq!(error.state().code(), "40001", "{error}");
                    // A block whose COMMIT has failed is over.
                    let _ = client.block(BlockOperation::RollBack);
                }
            }
        }
    });
    assert_eq!(client.value("SELECT count(*) FROM t WHERE w < 9"), "240");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE w = 9"), "15");
}
