//! Blocks: a commit takes place as its client saw it, or not at all.

use crate::client::{Client, copy, memory, noon, on_disk};
use crate::script::shown;
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
    client.commit().unwrap();
    assert_eq!(client.value("SELECT b FROM t"), ran.to_string());
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
