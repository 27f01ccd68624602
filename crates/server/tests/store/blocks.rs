//! Blocks: a commit takes place as its client saw it, or not at all.

use crate::client::{Client, copy, memory, noon, on_disk};
use crate::script::{Target, shown};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use server::store::{BlockOperation, Modes, Store, StoreOptions, Tuning};
use std::sync::atomic::{AtomicUsize, Ordering};
use values::Result;

const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };
const REPEATABLE_READ: Modes = Modes { keeps_snapshot: true, is_read_only: false };

fn code<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().state().code().to_owned()
}

fn counters() -> Store {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    store
}

#[test]
fn what_others_change_conflicts_only_if_the_client_saw_it() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    // An update that shows no value does not conflict.
    one.begin(READ_COMMITTED);
    assert_eq!(one.within("UPDATE t SET b = b + 1 WHERE a = 1").unwrap().tag, "UPDATE 1");
    other.run("UPDATE t SET b = b + 10 WHERE a = 1").unwrap();
    assert_eq!(one.commit().unwrap().tag, "COMMIT");
    assert_eq!(one.value("SELECT b FROM t WHERE a = 1"), "11");
    // One that shows it does.
    one.begin(READ_COMMITTED);
    let seen = one.within("UPDATE t SET b = b + 1 WHERE a = 1 RETURNING b").unwrap();
    assert_eq!(shown(&seen.rows[0]), ["12"]);
    one.within("UPDATE t SET b = 5 WHERE a = 2").unwrap();
    other.run("UPDATE t SET b = b + 10 WHERE a = 1").unwrap();
    let error = one.commit().unwrap_err();
    assert_eq!(error.state().code(), "40001");
    let detail = error.detail().unwrap();
    assert!(detail.contains("Statement 1") && detail.contains("RETURNING b"), "{detail}");
    assert_eq!(one.value("SELECT b FROM t WHERE a = 1"), "21");
    assert_eq!(one.value("SELECT b FROM t WHERE a = 2"), "0", "all or nothing");
    // A phantom is seen by the statement that did not see it.
    one.begin(READ_COMMITTED);
    one.within("SELECT count(*) FROM t WHERE a > 5").unwrap();
    one.within("INSERT INTO t VALUES (3, 0)").unwrap();
    other.run("INSERT INTO t VALUES (7, 0)").unwrap();
    assert_eq!(code(one.commit()), "40001");
    assert_eq!(one.value("SELECT count(*) FROM t"), "3");
}

#[test]
fn reads_have_the_newest_state_or_that_of_the_first() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    let reads = ["SELECT b FROM t WHERE a = 1", "SELECT sum(b) FROM t"];
    for (modes, later) in [(READ_COMMITTED, "1"), (REPEATABLE_READ, "0")] {
        other.run("UPDATE t SET b = 0").unwrap();
        for read in reads {
            other.run("UPDATE t SET b = 0").unwrap();
            one.begin(modes);
            assert_eq!(shown(&one.within(read).unwrap().rows[0]), ["0"]);
            other.run("UPDATE t SET b = 1 WHERE a = 1").unwrap();
            assert_eq!(shown(&one.within(read).unwrap().rows[0]), [later], "{read}");
            // A block that writes nothing does not conflict.
            one.commit().unwrap();
        }
    }
    one.begin(REPEATABLE_READ);
    one.within(reads[1]).unwrap();
    other.run("UPDATE t SET b = b + 1").unwrap();
    one.within("UPDATE t SET b = 9 WHERE a = 2").unwrap();
    assert_eq!(code(one.commit()), "40001");
}

#[test]
fn t_19_what_was_rolled_back_was_seen() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    for changes in [false, true] {
        one.begin(READ_COMMITTED);
        one.block(BlockOperation::Savepoint("s".to_owned())).unwrap();
        let insert = "INSERT INTO t VALUES (9, 1)";
        one.within(insert).unwrap();
        assert_eq!(code(one.within(insert)), "23505");
        one.block(BlockOperation::RollBackTo("s".to_owned())).unwrap();
        let count = one.within("SELECT count(*) FROM t").unwrap();
        assert_eq!(shown(&count.rows[0]), ["2"]);
        one.within("UPDATE t SET b = b + 1 WHERE a = 1").unwrap();
        if changes {
            // The client was told that there was no such row.
            other.run(insert).unwrap();
            other.run("DELETE FROM t WHERE a = 2").unwrap();
            assert_eq!(code(one.commit()), "40001");
        } else {
            one.commit().unwrap();
        }
        assert_eq!(one.value("SELECT b FROM t WHERE a = 1"), "1");
    }
}

#[test]
fn a_block_goes_on_behind_definitions_of_what_it_has_not_written() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    other.run("CREATE TABLE u (a int PRIMARY KEY, b int)").unwrap();
    let definitions = [
        ("CREATE INDEX u_b ON u (b)", true),
        ("CREATE TABLE v (a int)", true),
        ("ALTER TABLE u ADD c int DEFAULT 1", true),
        ("CREATE VIEW w AS SELECT * FROM t", true),
        ("CREATE TYPE mood AS ENUM ('a')", true),
        ("DROP TABLE v", true),
        ("CREATE INDEX t_b ON t (b)", false),
        ("ALTER TABLE t ADD CHECK (b <> 9)", false),
        ("DROP INDEX t_b", false),
        ("CREATE TABLE x (a int PRIMARY KEY REFERENCES t)", true),
        ("ALTER TABLE t ADD c int DEFAULT 1", false),
        ("TRUNCATE u", true),
        ("DROP TABLE u", true),
    ];
    let write = "INSERT INTO t (a, b) VALUES (50, 1)";
    let goes_on = "UPDATE t SET b = b + 1 WHERE a = 50";
    for (at, (definition, goes)) in definitions.into_iter().enumerate() {
        one.begin(READ_COMMITTED);
        one.within(write).unwrap();
        one.within(goes_on).unwrap();
        other.run(definition).unwrap();
        // A statement of before, one that is new, and a definition.
        let found = one.within(goes_on).map(drop);
        if !goes {
            assert_eq!(code(found), "40001", "{definition}");
            one.block(BlockOperation::RollBack).unwrap();
            continue;
        }
        found.unwrap_or_else(|error| panic!("{definition}: {error}"));
        one.within(&format!("UPDATE t SET b = b + {at} WHERE a = 50")).unwrap();
        one.within("CREATE TABLE own (a int)").unwrap();
        one.within("DROP TABLE own").unwrap();
        one.within(goes_on).unwrap();
        one.commit().unwrap_or_else(|error| panic!("{definition}: {error}"));
        let expected = (at + 4).to_string();
        assert_eq!(one.value("SELECT b FROM t WHERE a = 50"), expected, "{definition}");
        one.run("DELETE FROM t WHERE a = 50").unwrap();
    }
    // One snapshot for all statements is of one catalog.
    one.begin(REPEATABLE_READ);
    one.within(write).unwrap();
    other.run("CREATE TABLE y (a int)").unwrap();
    assert_eq!(code(one.within(goes_on)), "40001");
    one.block(BlockOperation::RollBack).unwrap();
    // At READ COMMITTED a block goes on that was told what the catalog of before is.
    one.begin(READ_COMMITTED);
    one.within(write).unwrap();
    one.within("SELECT relname FROM pg_class WHERE relname = 'z'").unwrap();
    other.run("CREATE TABLE z (a int)").unwrap();
    one.within(goes_on).unwrap();
    one.commit().unwrap();
}

#[test]
fn a_block_of_a_table_that_a_definition_changes_is_run_again() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    one.begin(READ_COMMITTED);
    one.within("UPDATE t SET b = 7 WHERE a = 1").unwrap();
    other.run("CREATE INDEX ON t (b)").unwrap();
    // Its plan is made again, with the index.
    one.commit().unwrap();
    assert_eq!(one.value("SELECT a FROM t WHERE b = 7"), "1");
    one.begin(READ_COMMITTED);
    one.within("UPDATE t SET b = 8 WHERE a = 1").unwrap();
    other.run("CREATE INDEX u ON t (b)").unwrap();
    assert_eq!(code(one.within("SELECT a FROM t WHERE b = 8")), "40001");
    one.block(BlockOperation::RollBack).unwrap();
    one.begin(READ_COMMITTED);
    one.within("UPDATE t SET b = 8 WHERE a = 1").unwrap();
    other.run("DROP TABLE t").unwrap();
    assert_eq!(code(one.commit()), "40001");
}

#[test]
fn a_block_with_definitions_is_all_there_or_nothing_after_a_crash_too() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let store = on_disk(&path);
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    one.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    one.run("INSERT INTO t VALUES (1, 10), (2, 20)").unwrap();
    let before = one.state();
    let migrate = |client: &mut Client| {
        client.begin(READ_COMMITTED);
        for text in [
            "CREATE TABLE s (id serial PRIMARY KEY, t int REFERENCES t, note text DEFAULT 'x')",
            "INSERT INTO s (t) SELECT a FROM t",
            "ALTER TABLE t ADD COLUMN c text NOT NULL DEFAULT 'old'",
            "UPDATE t SET c = 'new' WHERE a = 2",
            "CREATE INDEX by_c ON t (c)",
            "CREATE TABLE gone (a int)",
            "INSERT INTO gone VALUES (1), (2)",
            "DROP TABLE gone",
        ] {
            client.within(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        let rows = client.within("SELECT s.id, c FROM s JOIN t ON s.t = a WHERE c = 'new'");
        assert_eq!(shown(&rows.unwrap().rows[0]), ["2", "new"]);
        // A savepoint takes definitions back.
        client.block(BlockOperation::Savepoint("s".to_owned())).unwrap();
        client.within("DROP TABLE s").unwrap();
        client.within("CREATE TABLE s (other int)").unwrap();
        assert_eq!(code(client.within("CREATE TABLE s (other int)")), "42P07");
        client.block(BlockOperation::RollBackTo("s".to_owned())).unwrap();
        client.within("INSERT INTO s (t) VALUES (1)").unwrap();
    };
    migrate(&mut one);
    assert_eq!(code(other.run("SELECT * FROM s")), "42P01", "others see nothing of it");
    assert_eq!(other.query("SELECT * FROM t").len(), 2);
    one.block(BlockOperation::RollBack).unwrap();
    assert!(one.state() == before, "nothing stays of it");
    migrate(&mut one);
    one.commit().unwrap();
    assert_eq!(other.value("SELECT count(*) FROM s"), "3");
    other.run("INSERT INTO s (t) VALUES (2)").unwrap();
    assert_eq!(other.value("SELECT max(id) FROM s"), "4", "its sequence goes on");
    let error = other.run("INSERT INTO s (t) VALUES (3)").unwrap_err();
    assert_eq!(error.constraint(), Some("s_t_fkey"));
    let after = one.state();
    copy(&store, &path, &killed);
    drop((one, other));
    store.close().unwrap();
    for path in [&killed, &path] {
        let store = on_disk(path);
        let mut client = Client::new(&store);
        assert!(client.state() == after, "{}", path.display());
        assert_eq!(client.query("SELECT a FROM t WHERE c = 'old'"), [["1"]]);
        client.run("INSERT INTO s (t) VALUES (2)").unwrap();
        // One number went with the insert that failed.
        assert_eq!(client.value("SELECT max(id) FROM s"), "6");
    }
}

#[test]
fn a_block_with_definitions_commits_only_on_what_it_saw() {
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    // A definition of others: also where it comes before the next statement.
    one.begin(READ_COMMITTED);
    one.within("CREATE INDEX ON t (b)").unwrap();
    other.run("CREATE TABLE u (a int)").unwrap();
    assert_eq!(code(one.within("SELECT a FROM t")), "40001");
    assert_eq!(code(one.commit()), "40001");
    // Rows of others that no statement showed.
    one.begin(READ_COMMITTED);
    one.within("ALTER TABLE t ADD COLUMN c int DEFAULT 1").unwrap();
    one.within("UPDATE t SET b = b + c WHERE a = 1").unwrap();
    other.run("UPDATE t SET b = 5 WHERE a = 1").unwrap();
    other.run("INSERT INTO t VALUES (9, 90)").unwrap();
    one.commit().unwrap();
    assert_eq!(one.query("SELECT * FROM t WHERE a <> 2"), [["1", "6", "1"], ["9", "90", "1"]]);
    // Rows of others for which a definition fails, and for which a statement shows others.
    one.begin(READ_COMMITTED);
    one.within("CREATE UNIQUE INDEX u_b ON t (b)").unwrap();
    other.run("INSERT INTO t (a, b) VALUES (10, 90)").unwrap();
    let error = one.commit().unwrap_err();
    assert_eq!(error.state().code(), "40001");
    assert!(error.detail().unwrap().contains("Statement 1"), "{:?}", error.detail());
    one.begin(READ_COMMITTED);
    one.within("CREATE TABLE v (a int)").unwrap();
    one.within("SELECT count(*) FROM t").unwrap();
    other.run("DELETE FROM t WHERE a = 10").unwrap();
    let error = one.commit().unwrap_err();
    assert!(error.detail().unwrap().contains("Statement 2"), "{:?}", error.detail());
    assert_eq!(code(one.run("SELECT a FROM v")), "42P01");
    // A definition that may not be.
    one.begin(Modes { is_read_only: true, ..READ_COMMITTED });
    assert_eq!(code(one.within("CREATE TABLE v (a int)")), "25006");
    one.commit().unwrap();
    assert_eq!(code(one.run("SELECT a FROM v")), "42P01");
}

#[test]
fn blocks_with_definitions_among_writers_leave_each_row_once() {
    let store = counters();
    let committed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let store = &store;
            scope.spawn(move || {
                let mut client = Client::new(store);
                for number in 0..150 {
                    let key = 100 + writer * 1_000 + number;
                    client.run(&format!("INSERT INTO t (a, b) VALUES ({key}, 1)")).unwrap();
                    client.run("UPDATE t SET b = b + 1 WHERE a = 1").unwrap();
                }
            });
        }
        for definer in 0..2 {
            let (store, committed) = (&store, &committed);
            scope.spawn(move || {
                let mut client = Client::new(store);
                for round in 0..20 {
                    client.begin(READ_COMMITTED);
                    let all = [
                        format!("ALTER TABLE t ADD COLUMN c{definer}_{round} int DEFAULT 7"),
                        format!("CREATE INDEX i{definer}_{round} ON t (b)"),
                        "UPDATE t SET b = b + 1 WHERE a = 2".to_owned(),
                    ];
                    let ran = all.iter().try_for_each(|text| client.within(text).map(|_| ()));
                    let ended = match ran {
                        Ok(()) => client.commit().map(|_| ()),
                        Err(error) => {
                            client.block(BlockOperation::RollBack).unwrap();
                            Err(error)
                        }
                    };
                    match ended {
                        Ok(()) => drop(committed.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.state().code(), "40001"),
                    }
                }
            });
        }
    });
    let committed = committed.into_inner();
    assert!(committed > 0);
    let mut client = Client::new(&store);
    assert_eq!(client.value("SELECT b FROM t WHERE a = 1"), "450");
    assert_eq!(client.value("SELECT b FROM t WHERE a = 2"), committed.to_string());
    assert_eq!(client.value("SELECT count(*) FROM t"), "452");
    assert_eq!(client.query("SELECT * FROM t WHERE a = 1")[0].len(), 2 + committed);
    assert_eq!(client.query("SELECT a FROM t WHERE b = 1 AND b + 0 = 1").len(), 450);
}

#[test]
fn limits_end_the_statement_not_the_commit() {
    let options = StoreOptions { steps_max: 5_000, clock: noon, ..StoreOptions::memory() };
    let store = Store::open(options).unwrap();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)").unwrap();
    client.run("INSERT INTO t VALUES (1, 0)").unwrap();
    client.begin(READ_COMMITTED);
    let mut ran = 0;
    let refused = loop {
        match client.within("UPDATE t SET b = b + 1 WHERE a = 1") {
            Ok(_) => ran += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.state().code(), "54001");
    assert!(ran > 100, "{ran}");
    // What it was told then is not compared: it does not commit.
    assert_eq!(code(client.commit()), "54001");
    assert_eq!(client.value("SELECT b FROM t"), "0");
    // Blocks that only read go on; they cannot write any more.
    client.begin(READ_COMMITTED);
    for _ in 0..10_001 {
        client.within("SELECT b FROM t WHERE a = 1").unwrap();
    }
    assert_eq!(code(client.within("UPDATE t SET b = 0")), "54000");
    client.within("SELECT count(*) FROM t").unwrap();
    client.commit().unwrap();
}

const ACCOUNTS: i32 = 40;
const TELLERS: i32 = 6;

fn bank(store: &Store) {
    let mut client = Client::new(store);
    for table in ["branch", "teller", "account"] {
        client.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, sum int)")).unwrap();
    }
    client.run("CREATE TABLE history (delta int, note text UNIQUE)").unwrap();
    client.run("INSERT INTO branch VALUES (0, 0), (1, 0)").unwrap();
    for (table, count) in [("teller", TELLERS), ("account", ACCOUNTS)] {
        for id in 0..count {
            client.run(&format!("INSERT INTO {table} VALUES ({id}, 0)")).unwrap();
        }
    }
}

/// One block of TPC-B's kind. What it reads is seen, so it may conflict.
fn transfer(client: &mut Client, random: &mut ChaCha8Rng, note: &str) -> Result<()> {
    let delta = random.random_range(-100..100);
    let (account, teller) = (random.random_range(0..ACCOUNTS), random.random_range(0..TELLERS));
    let modes = if random.random_bool(0.5) { READ_COMMITTED } else { REPEATABLE_READ };
    client.begin(modes);
    let statements = [
        format!("UPDATE account SET sum = sum + {delta} WHERE id = {account}"),
        format!("SELECT sum FROM account WHERE id = {account}"),
        format!("UPDATE teller SET sum = sum + {delta} WHERE id = {teller}"),
        format!("UPDATE branch SET sum = sum + {delta} WHERE id = {}", teller % 2),
        format!("INSERT INTO history VALUES ({delta}, '{note}')"),
    ];
    for text in &statements {
        if let Err(error) = client.within(text) {
            client.block(BlockOperation::RollBack).unwrap();
            return Err(error);
        }
    }
    client.commit().map(|_| ())
}

/// The sum of all tables, which is the same.
fn checked_sum(client: &mut Client) -> String {
    let queries = [
        "SELECT coalesce(sum(sum), 0) FROM branch",
        "SELECT coalesce(sum(sum), 0) FROM teller",
        "SELECT coalesce(sum(sum), 0) FROM account",
        "SELECT coalesce(sum(delta), 0) FROM history",
    ];
    let sums = queries.map(|query| client.value(query));
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    sums[0].clone()
}

#[test]
fn sums_of_many_connections_are_kept_with_any_workers_and_after_a_crash() {
    for workers in [1, 2, 4] {
        let dir = tempfile::tempdir().unwrap();
        let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
        let device = server::store::DeviceSpec::File(path.clone());
        let tuning = Tuning { serial_calls_max: 0, ..Tuning::default() };
        let options = StoreOptions { workers, tuning, ..StoreOptions::at(device) };
        let store = Store::open(options).unwrap();
        bank(&store);
        let refused = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for who in 0..6 {
                let (store, refused) = (&store, &refused);
                scope.spawn(move || {
                    let mut random = ChaCha8Rng::seed_from_u64(who);
                    let mut client = Client::new(store);
                    for number in 0..15 {
                        let note = format!("{who}-{number}");
                        while let Err(error) = transfer(&mut client, &mut random, &note) {
                            assert_eq!(error.state().code(), "40001", "{error}");
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut client = Client::new(&store);
        assert_eq!(client.value("SELECT count(*) FROM history"), "90");
        checked_sum(&mut client);
        let rows = store.rows().unwrap();
        copy(&store, &path, &killed);
        drop(client);
        store.close().unwrap();
        for path in [&killed, &path] {
            let store = on_disk(path);
            checked_sum(&mut Client::new(&store));
            assert!(store.rows().unwrap() == rows, "{workers} workers: {}", path.display());
            store.close().unwrap();
        }
    }
}
