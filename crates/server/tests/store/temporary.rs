//! Temporary tables: what writes other tables by them is there after a crash and comes to the same
//! in a replay; nothing else of them is in the store; and no session sees those of another one.

use crate::client::{Client, copy, memory, noon, on_disk};
use crate::script::Target;
use server::store::{BlockOperation, DeviceSpec, Modes, Store, StoreOptions};

/// Statements of both kinds of tables.
const TEXTS: [&str; 12] = [
    "CREATE TABLE item (id int PRIMARY KEY, name text UNIQUE, n int)",
    "CREATE TABLE told (id serial PRIMARY KEY, what text)",
    "INSERT INTO item SELECT g, 'item ' || g, g FROM generate_series(1, 50) g",
    "CREATE TEMP TABLE new (id int PRIMARY KEY, n int)",
    "CREATE INDEX ON new (n)",
    "INSERT INTO new SELECT id + 40, n * 2 FROM item WHERE id <= 20",
    "DELETE FROM new WHERE n > 38",
    "INSERT INTO item SELECT id, 'new ' || id, n FROM new WHERE id > 50",
    "UPDATE item SET n = item.n + new.n FROM new WHERE new.id = item.id",
    "DELETE FROM item USING new WHERE item.id = new.id AND new.n = 4",
    "INSERT INTO told (what) SELECT 'n is ' || n FROM new ORDER BY id",
    "INSERT INTO item SELECT id, 'again ' || id, n FROM new \
     ON CONFLICT (id) DO UPDATE SET n = excluded.n + item.n",
];

/// The same in a block, with a savepoint.
fn block(client: &mut Client) {
    client.begin(Modes::default());
    for text in [
        "UPDATE new SET n = n + 100 WHERE id < 50",
        "UPDATE item SET n = new.n FROM new WHERE item.id = new.id AND item.id < 46",
        "CREATE TEMP TABLE more AS SELECT id + 1000 AS id FROM new WHERE id < 44",
        "INSERT INTO item SELECT id, 'more ' || id, 0 FROM more",
    ] {
        client.within(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    client.block(BlockOperation::Savepoint("a".to_owned())).unwrap();
    client.within("DELETE FROM new").unwrap();
    client.within("DELETE FROM item WHERE id NOT IN (SELECT id FROM new)").unwrap();
    client.block(BlockOperation::RollBackTo("a".to_owned())).unwrap();
    client.within("INSERT INTO told (what) SELECT name FROM item JOIN new USING (id)").unwrap();
    client.commit().unwrap();
}

fn run_all(client: &mut Client) {
    for text in TEXTS {
        client.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    block(client);
}

#[test]
fn o_25_what_was_written_by_temporary_tables_is_there_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let mut client = Client::new(&store);
    run_all(&mut client);
    assert_eq!(client.value("SELECT count(*) FROM new"), "19");
    assert_eq!(client.value("SELECT count(*) FROM more"), "3");
    let state = client.state();
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == state, "{}", path.display());
        assert_eq!(client.run("SELECT 1 FROM new").unwrap_err().state().code(), "42P01");
        store.close().unwrap();
    }
}

#[test]
fn o_47_a_replay_with_any_number_of_workers_comes_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let open = |path: &std::path::Path, workers| {
        let options = StoreOptions::at(DeviceSpec::File(path.to_owned()));
        Store::open(StoreOptions { clock: noon, workers, ..options }).unwrap()
    };
    let store = open(&path, 2);
    let mut client = Client::new(&store);
    run_all(&mut client);
    let state = client.state();
    for workers in [1, 2, 8] {
        let killed = dir.path().join(format!("killed {workers}"));
        copy(&store, &path, &killed);
        let again = open(&killed, workers);
        assert!(again.rows().unwrap() == state, "{workers} workers");
        again.close().unwrap();
    }
}

#[test]
fn no_session_sees_the_temporary_tables_of_another_one() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    let before = store.rows().unwrap();
    for (client, value) in [(&mut one, 1), (&mut other, 2)] {
        client.run("CREATE TEMP TABLE t (a int PRIMARY KEY)").unwrap();
        client.run(&format!("INSERT INTO t VALUES ({value})")).unwrap();
    }
    assert_eq!(one.value("SELECT a FROM t"), "1");
    assert_eq!(other.value("SELECT a FROM t"), "2");
    assert_eq!(other.value("SELECT count(*) FROM pg_class WHERE relpersistence = 't'"), "2");
    assert!(store.rows().unwrap() == before, "nothing of them is in the store");
    let mut third = Client::new(&store);
    assert_eq!(third.value("SELECT count(*) FROM pg_class WHERE relpersistence = 't'"), "0");
    assert_eq!(third.run("SELECT 1 FROM t").unwrap_err().state().code(), "42P01");
    // Rows that one of them locks are nothing to the other.
    one.begin(Modes::default());
    one.within("SELECT a FROM t FOR UPDATE").unwrap();
    other.run("UPDATE t SET a = 1").unwrap();
    other.begin(Modes::default());
    other.within("SELECT a FROM t FOR UPDATE NOWAIT").unwrap();
    other.commit().unwrap();
    one.commit().unwrap();
}

#[test]
fn a_block_that_was_told_of_rows_by_temporary_tables_conflicts() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    one.run("CREATE TABLE item (id int PRIMARY KEY, n int)").unwrap();
    one.run("INSERT INTO item VALUES (1, 1), (2, 2)").unwrap();
    one.run("CREATE TEMP TABLE copied (id int, n int)").unwrap();
    one.begin(Modes::default());
    one.within("INSERT INTO copied SELECT * FROM item WHERE id = 1").unwrap();
    one.within("UPDATE item SET n = copied.n + 1 FROM copied WHERE item.id = 2").unwrap();
    other.run("UPDATE item SET n = 7 WHERE id = 1").unwrap();
    assert_eq!(one.commit().unwrap_err().state().code(), "40001");
    assert_eq!(one.value("SELECT count(*) FROM copied"), "0", "they go back with their block");
    // Without anything that is logged nothing is compared.
    one.begin(Modes::default());
    one.within("INSERT INTO copied SELECT * FROM item").unwrap();
    other.run("UPDATE item SET n = 8 WHERE id = 1").unwrap();
    one.commit().unwrap();
    assert_eq!(one.value("SELECT sum(n) FROM copied"), "9");
}

/// What a block has read into temporary tables is compared as it read it, and no more.
#[test]
fn a_block_compares_what_its_temporary_tables_got() {
    let store = memory();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    one.run("CREATE TABLE item (id int PRIMARY KEY, n int)").unwrap();
    one.run("CREATE TABLE told (id serial PRIMARY KEY, n int)").unwrap();
    one.run("INSERT INTO item SELECT g, g FROM generate_series(1, 9) g").unwrap();
    one.run("CREATE TEMP TABLE copied (n int)").unwrap();
    one.run("CREATE TEMP SEQUENCE s").unwrap();
    for (read, changed, code) in [
        ("INSERT INTO copied SELECT n FROM item WHERE id = 1", 1, Some("40001")),
        ("INSERT INTO copied SELECT n FROM item WHERE id = 1", 2, None),
        ("INSERT INTO copied SELECT n + nextval('s') FROM item WHERE id < 3", 3, None),
        ("INSERT INTO copied SELECT n + nextval('s') FROM item WHERE id < 3", 2, Some("40001")),
        ("UPDATE copied SET n = item.n FROM item WHERE item.id = 4", 4, Some("40001")),
        ("UPDATE copied SET n = item.n FROM item WHERE item.id = 4", 5, None),
        ("CREATE TEMP TABLE made AS SELECT * FROM item WHERE id > 8", 9, Some("40001")),
        ("CREATE TEMP TABLE made AS SELECT * FROM item WHERE id > 8", 8, None),
        ("CREATE TEMP TABLE more AS SELECT i.* FROM item i JOIN copied USING (n)", 7, None),
        ("SELECT count(*) FROM item JOIN copied USING (n)", 6, None),
    ] {
        one.begin(Modes::default());
        one.within("INSERT INTO copied VALUES (20)").unwrap();
        one.within(read).unwrap_or_else(|error| panic!("{read}: {error}"));
        one.within("INSERT INTO told (n) SELECT n FROM copied").unwrap();
        other.run(&format!("UPDATE item SET n = n + 100 WHERE id = {changed}")).unwrap();
        let found = one.commit().err().map(|error| error.state().code().to_owned());
        assert_eq!(found.as_deref(), code, "{read}, and a change of {changed}");
    }
    assert_eq!(one.value("SELECT count(*) FROM made"), "1");
    assert_eq!(one.value("SELECT count(*) = (SELECT count(*) FROM copied) FROM told"), "f");
}

#[test]
fn what_calls_cannot_be_given_is_refused() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE item (id int PRIMARY KEY)").unwrap();
    client.run("CREATE TABLE item_b (b text)").unwrap();
    client.run("CREATE TEMP TABLE t (id int)").unwrap();
    for text in [
        "WITH gone AS (DELETE FROM t RETURNING id) INSERT INTO item SELECT id FROM gone",
        "CREATE TABLE made AS SELECT * FROM t",
        "CREATE VIEW v AS SELECT * FROM t",
        "DROP TABLE t, item",
        "TRUNCATE t, item",
    ] {
        let error = client.run(text).err().unwrap_or_else(|| panic!("{text} is done"));
        assert_eq!(error.state().code(), "0A000", "{text}: {error}");
    }
    client.run("CREATE TEMP TABLE large (b text)").unwrap();
    client
        .run("INSERT INTO large SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
        .unwrap();
    let error = client.run("INSERT INTO item_b SELECT b FROM large LIMIT 1").unwrap_err();
    assert_eq!(error.state().code(), "54000", "{error}");
}
