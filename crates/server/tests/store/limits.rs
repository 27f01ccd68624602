//! What is too much is refused with its code, and changes nothing.

use crate::client::{Client, copy, memory, noon, options};
use crate::script::Target;
use server::store::{BlockOperation, DeviceSpec, Modes, Store, StoreOptions};
use std::path::Path;
use values::Datum;

fn refused(client: &mut Client, text: &str, code: &str) {
    let before = client.state();
    let error = client.run(text).unwrap_err();
    assert_eq!(error.state().code(), code, "{text}: {error}");
    assert!(client.state() == before, "{text}");
}

#[test]
fn large_answers_long_runs_and_long_rows_are_refused() {
    let mut client = Client::new(&memory());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    let rows: Vec<_> = (0..100).map(|n| format!("({n}, repeat('x', 200000))")).collect();
    client.run(&format!("INSERT INTO t VALUES {}", rows.join(","))).unwrap();
    refused(&mut client, "UPDATE t SET a = a + 1000 RETURNING b", "54000");
    refused(&mut client, "UPDATE t SET b = repeat('x', 16777210) WHERE a = 1", "54000");
    refused(&mut client, "INSERT INTO t VALUES (1, 'again')", "23505");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE length(b) = 200000"), "100");
}

#[test]
fn steps_of_many_rows_and_of_long_values_are_limited() {
    let options = StoreOptions { steps_max: 20_000, clock: noon, ..StoreOptions::memory() };
    let mut client = Client::new(&Store::open(options).unwrap());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    client.run("INSERT INTO t VALUES (1, repeat('x', 200000)), (2, '')").unwrap();
    let many: Vec<_> = (0..9000).map(|n| format!("({}, '')", 1000 + n)).collect();
    refused(&mut client, &format!("INSERT INTO t VALUES {}", many.join(",")), "54001");
    // Two rows, each of which makes text of 16 MB that nothing keeps.
    let long = "UPDATE t SET a = a + length(repeat('x', 16000000))";
    refused(&mut client, long, "54001");
    refused(&mut client, "UPDATE t SET a = 3 WHERE repeat(b, 80) LIKE '%y%z'", "54001");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE a < 3"), "2");
}

/// Statements on both sides of the limit, which the bytes of their values decide, are told the same
/// and change the same in a replay, whatever the limit of the store that replays them is.
#[test]
fn o_25_what_the_weight_of_bytes_refused_is_refused_in_replay() {
    let dir = tempfile::tempdir().unwrap();
    let (path, killed) = (dir.path().join("store"), dir.path().join("killed"));
    let open = |path: &Path, steps_max| {
        let at = StoreOptions::at(DeviceSpec::File(path.to_owned()));
        Store::open(StoreOptions { steps_max, ..options(at) }).unwrap()
    };
    let store = open(&path, 10_000);
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, n int NOT NULL)").unwrap();
    client.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)").unwrap();
    let mut refusals = 0;
    for bytes in (0..40).map(|part| part * 50_000) {
        let update = format!("UPDATE t SET n = length(repeat('x', {bytes} + a))");
        if let Err(error) = client.run(&update) {
            assert_eq!(error.state().code(), "54001", "{error}");
            refusals += 1;
        }
    }
    assert!((5..35).contains(&refusals), "{refusals} of 40 are refused");
    let state = client.state();
    copy(&store, &path, &killed);
    drop(client);
    store.close().unwrap();
    for steps_max in [100, 10_000, 1_000_000] {
        let again = dir.path().join(format!("replayed with {steps_max}"));
        std::fs::create_dir(&again).unwrap();
        for file in std::fs::read_dir(&killed).unwrap().map(|file| file.unwrap()) {
            std::fs::copy(file.path(), again.join(file.file_name())).unwrap();
        }
        let store = open(&again, steps_max);
        assert!(Client::new(&store).state() == state, "steps_max {steps_max}");
        store.close().unwrap();
    }
}

/// A statement that is refused for what its block has done before says so, also if it only reads.
#[test]
fn a_block_says_whose_steps_are_used_up() {
    let options = StoreOptions { steps_max: 20_000, clock: noon, ..StoreOptions::memory() };
    let mut client = Client::new(&Store::open(options).unwrap());
    client.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    client.run("INSERT INTO t SELECT * FROM generate_series(1, 500)").unwrap();
    let query = "SELECT count(*) FROM t WHERE a + 0 > 0";
    let of_a_query = |client: &mut Client| {
        (0..100).find_map(|_| client.within(query).err()).map(|error| error.message().to_owned())
    };
    client.begin(Modes::default());
    assert_eq!(of_a_query(&mut client), None, "a block that has not written reads on");
    client.block(BlockOperation::RollBack).unwrap();
    client.begin(Modes::default());
    client.within("INSERT INTO t VALUES (501)").unwrap();
    let message = of_a_query(&mut client).expect("the limit of the block is met");
    let of_block = "the statements of a block that writes do more than 20000 steps";
    assert!(message.starts_with(of_block), "{message}");
    client.block(BlockOperation::RollBack).unwrap();
    client.begin(Modes::default());
    let much = "UPDATE t SET a = a + 1000 WHERE length(repeat('x', 16000000)) > 0";
    let error = client.within(much).unwrap_err();
    assert_eq!(error.message(), "statement does more than 20000 steps");
}

/// A query outside of blocks does as many steps as it needs, and an aggregate keeps no rows.
#[test]
fn aggregates_of_more_rows_than_memory_has_room_for_are_answered() {
    let mut options = StoreOptions { steps_max: 60_000, clock: noon, ..StoreOptions::memory() };
    (options.memory_bytes_max, options.threads) = (200_000, 1);
    let mut client = Client::new(&Store::open(options).unwrap());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int, c float8, d text)").unwrap();
    client.run("CREATE INDEX ON t (b)").unwrap();
    for part in 0..20 {
        let row = |n: u32| format!("({n}, {}, 0.1, repeat('x', 1000))", n % 7);
        let rows: Vec<_> = (part * 100..part * 100 + 100).map(row).collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(","))).unwrap();
    }
    assert_eq!(
        client.value("SELECT count(*) FROM t WHERE length(d) = 1000 AND a + 0 >= 0"),
        "2000"
    );
    assert_eq!(client.value("SELECT sum(a) FROM t WHERE b < 7"), "1999000");
    client.run("CREATE TABLE u (a int PRIMARY KEY)").unwrap();
    client.run("INSERT INTO u SELECT a FROM t WHERE a < 500").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM (SELECT a, d FROM t) x, u"), "1000000");
    let all = "SELECT count(*) FROM (SELECT a, d FROM t UNION ALL SELECT a, d FROM t) x";
    assert_eq!(client.value(all), "4000");
    let groups = client.query("SELECT b, count(*), max(length(d)) FROM t GROUP BY b ORDER BY 1");
    assert_eq!(groups.len(), 7);
    assert_eq!(client.query("SELECT d FROM t ORDER BY c, a DESC LIMIT 20").len(), 20);
    assert_eq!(client.query("SELECT d FROM t LIMIT 20 OFFSET 1900").len(), 20);
    // Sums of floats have the order of the primary key, also through an index.
    let sums = [
        client.value("SELECT sum(c * a) FROM t WHERE b + 0 >= 1"),
        client.value("SELECT sum(c * a) FROM t WHERE b >= 1"),
    ];
    assert_eq!(sums[0], sums[1]);
    let rows = [
        client.query("SELECT a FROM t WHERE b >= 3 AND length(d) = 1000 LIMIT 500 OFFSET 600"),
        client.query("SELECT a FROM t WHERE b + 0 >= 3 AND length(d) = 1000 LIMIT 500 OFFSET 600"),
    ];
    assert_eq!(rows[0], rows[1]);
    refused(&mut client, "SELECT d FROM t", "53200");
    refused(&mut client, "SELECT string_agg(d, '') FROM t", "53200");
    refused(&mut client, "SELECT max(d || a) FROM t GROUP BY a", "53200");
    refused(
        &mut client,
        "UPDATE t SET c = c + 1 WHERE (SELECT count(*) FROM u x, u y) = 0",
        "54001",
    );
}

/// What follows from a statement is collected like its own rows.
#[test]
fn rows_that_foreign_keys_change_count_as_memory() {
    let options = StoreOptions { memory_bytes_max: 1 << 20, clock: noon, ..StoreOptions::memory() };
    let mut client = Client::new(&Store::open(options).unwrap());
    client.run("CREATE TABLE p (a int PRIMARY KEY)").unwrap();
    let key = "CREATE TABLE d (a int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, b text)";
    client.run(key).unwrap();
    client.run("INSERT INTO p VALUES (1), (2)").unwrap();
    for n in 0..20 {
        let parent = if n == 0 { 2 } else { 1 };
        let row = format!("INSERT INTO d VALUES ({n}, {parent}, repeat('x', 100000))");
        client.run(&row).unwrap();
    }
    refused(&mut client, "DELETE FROM p WHERE a = 1", "53200");
    client.run("DELETE FROM p WHERE a = 2").unwrap();
    assert_eq!(client.query("SELECT a FROM d WHERE a = 0").len(), 0);
    assert_eq!(client.query("SELECT a FROM d WHERE a = 1").len(), 1);
}

#[test]
fn errors_keep_what_they_say() {
    let mut client = Client::new(&memory());
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int CHECK (b > 0))").unwrap();
    client.run("INSERT INTO t VALUES (1, 1)").unwrap();
    let error = client.run("INSERT INTO t VALUES (1, 1)").unwrap_err();
    assert_eq!(error.message(), "duplicate key value violates unique constraint \"t_pkey\"");
    assert_eq!(error.detail(), Some("Key (a)=(1) already exists."));
    assert_eq!(error.constraint(), Some("t_pkey"));
    let error = client.run("UPDATE t SET b = nothing").unwrap_err();
    assert_eq!(error.position().unwrap().number(), 18);
    let wrong = client.submit("SELECT $1 + 1", vec![Datum::text("x")]).unwrap();
    assert_eq!(wrong.wait().unwrap_err().state().code(), "42804");
}

#[test]
fn deep_statements_are_refused_or_run_and_never_stop_the_store() {
    let mut client = Client::new(&memory());
    let chain = format!("SELECT 1{}", "+1".repeat(1900));
    assert_eq!(client.value(&chain), "1901");
    let nested = format!("SELECT {}1{}", "(".repeat(48), ")".repeat(48));
    assert_eq!(client.value(&nested), "1");
    let error = client.run(&format!("SELECT 1{}", " OR true".repeat(100_000))).unwrap_err();
    assert_eq!(error.state().code(), "54001");
}

#[test]
fn after_a_close_statements_are_answered_with_an_error() {
    let store = memory();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES (1)").unwrap();
    let select = client.prepare("SELECT a FROM t").unwrap();
    store.close().unwrap();
    for statement in [insert, select] {
        let error = client.connection.submit(&statement, vec![]).wait().unwrap_err();
        assert_eq!(error.state().code(), "57P01");
    }
}
