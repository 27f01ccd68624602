//! Whatever the client of a block was told is compared when the block writes: COMMIT takes place
//! as it was told, or not at all.

use crate::client::{Client, noon};
use crate::script::shown;
use server::store::{BlockOperation, Modes, Store, StoreOptions};
use values::Result;

const READ_COMMITTED: Modes = Modes { keeps_snapshot: false, is_read_only: false };
const SERIALIZABLE: Modes = Modes { keeps_snapshot: true, is_read_only: false };
/// What one block writes, and what another transaction changes of what the block was told.
const WRITE: &str = "UPDATE t SET b = b + 1 WHERE a = 1";
const CHANGE: &str = "UPDATE t SET b = 1 WHERE a = 2";

fn code<T: std::fmt::Debug>(result: &Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.state().code().to_owned(),
    }
}

/// Rows 1 and 2 of 0; few steps and little memory.
fn counters() -> Store {
    let limits =
        StoreOptions { steps_max: 20_000, memory_bytes_max: 4 << 20, ..StoreOptions::memory() };
    let store = Store::open(StoreOptions { clock: noon, ..limits }).unwrap();
    let mut client = Client::new(&store);
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int, UNIQUE (a, b))").unwrap();
    client.run("INSERT INTO t VALUES (1, 0), (2, 0)").unwrap();
    store
}

/// Where the block writes, and is made READ ONLY.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    WriteFirst,
    WriteLast,
    ThenReadOnly,
}

/// Statements, each with its code while row 2 is 0, and the code of a COMMIT behind it if it has
/// changed since, and if it has not.
const TOLD: &[(&str, &str, &str, &str)] = &[
    ("SELECT b FROM t WHERE a = 2", "ok", "40001", "ok"),
    ("SELECT b FROM t WHERE a = 2 FOR UPDATE", "ok", "40001", "ok"),
    ("SELECT sum(b) FROM t WHERE a > 1", "ok", "40001", "ok"),
    ("COPY (SELECT b FROM t WHERE a > 1) TO STDOUT", "ok", "40001", "ok"),
    ("SELECT version(), pg_backend_pid(), b FROM t WHERE a = 2", "ok", "40001", "ok"),
    ("SELECT 1 / b FROM t WHERE a = 2", "22012", "40001", "ok"),
    ("SELECT (b || 'x')::int + 1 / b FROM t WHERE a = 2 AND b = 0", "22P02", "40001", "ok"),
    // Limits of values, and of what a statement collects, are those of COMMIT.
    (
        "SELECT length(repeat('xx', 2000000000 * (1 - b))) FROM t WHERE a = 2",
        "54000",
        "40001",
        "ok",
    ),
    ("SELECT repeat('x', 6000000 * (1 - b)) FROM t WHERE a = 2 ORDER BY 1", "53200", "40001", "ok"),
    // So many steps are not: the block does not commit.
    (
        "SELECT count(*) FROM t, generate_series(1, 100000) WHERE a = 2 AND b = 0",
        "54001",
        "54001",
        "54001",
    ),
];

#[test]
fn each_result_counts_wherever_the_block_writes() {
    for modes in [READ_COMMITTED, SERIALIZABLE] {
        for order in [Order::WriteFirst, Order::WriteLast, Order::ThenReadOnly] {
            for told in TOLD {
                for is_undone in [false, true] {
                    for changes in [true, false] {
                        check(modes, order, *told, is_undone, changes);
                    }
                }
            }
        }
    }
}

fn check(
    modes: Modes,
    order: Order,
    (ask, expected, changed, same): (&str, &str, &str, &str),
    is_undone: bool,
    changes: bool,
) {
    let case = format!("{modes:?} {order:?} {ask}, undone {is_undone}, changes {changes}");
    let store = counters();
    let (mut one, mut other) = (Client::new(&store), Client::new(&store));
    one.begin(modes);
    if order != Order::WriteLast {
        one.within(WRITE).unwrap();
    }
    if order == Order::ThenReadOnly {
        one.block(BlockOperation::Set(Modes { is_read_only: true, ..modes })).unwrap();
        assert_eq!(code(&one.within(WRITE)), "25006", "{case}");
    }
    if is_undone {
        one.block(BlockOperation::Savepoint("s".to_owned())).unwrap();
    }
    assert_eq!(code(&one.within(ask)), expected, "{case}");
    if is_undone {
        one.block(BlockOperation::RollBackTo("s".to_owned())).unwrap();
    }
    let mut refused = String::new();
    if order == Order::WriteLast {
        refused = code(&one.within(WRITE));
        assert_eq!(refused, if expected == "54001" { "54001" } else { "ok" }, "{case}");
    }
    if changes {
        other.run(CHANGE).unwrap();
    }
    let committed = code(&one.commit());
    let wanted = match refused.as_str() {
        // Nothing is written, and nothing is compared.
        "54001" => "ok",
        _ if changes => changed,
        _ => same,
    };
    assert_eq!(committed, wanted, "{case}");
    let is_written = committed == "ok" && refused != "54001";
    assert_eq!(
        one.value("SELECT b FROM t WHERE a = 1"),
        i32::from(is_written).to_string(),
        "{case}"
    );
}

#[test]
fn a_block_that_met_a_limit_says_so_at_its_commit() {
    let store = counters();
    let mut one = Client::new(&store);
    one.begin(READ_COMMITTED);
    one.within(WRITE).unwrap();
    one.within("SELECT count(*) FROM t, generate_series(1, 100000)").unwrap_err();
    one.within("SELECT b FROM t").unwrap();
    assert_eq!(code(&one.within(WRITE)), "54001");
    assert_eq!(code(&one.within("CREATE TABLE u (a int)")), "54001");
    let error = one.commit().unwrap_err();
    assert!(error.message().contains("cannot commit"), "{error}");
    assert!(error.hint().is_some());
    // Definitions and rows of COPY need no steps of the block, and are refused, too.
    one.begin(READ_COMMITTED);
    one.within("SELECT count(*) FROM t, generate_series(1, 100000)").unwrap_err();
    assert_eq!(code(&one.within("CREATE TABLE u (a int)")), "54001");
    one.commit().unwrap();
    // One that only reads goes on.
    one.begin(Modes { is_read_only: true, ..READ_COMMITTED });
    one.within("SELECT count(*) FROM t, generate_series(1, 100000)").unwrap_err();
    one.within("SELECT b FROM t").unwrap();
    one.commit().unwrap();
}

/// A snapshot is of one catalog; at READ COMMITTED each query reads the newest.
#[test]
fn a_block_commits_on_the_catalog_of_its_level() {
    let tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'own%' AND relkind = 'r'";
    for modes in [READ_COMMITTED, SERIALIZABLE] {
        let store = counters();
        let (mut one, mut other) = (Client::new(&store), Client::new(&store));
        one.begin(modes);
        assert_eq!(shown(&one.within(tables).unwrap().rows[0]), ["0"]);
        other.run("CREATE TABLE own (a int)").unwrap();
        let again = one.within(tables);
        if modes == SERIALIZABLE {
            assert_eq!(code(&again), "40001");
            continue;
        }
        assert_eq!(shown(&again.unwrap().rows[0]), ["1"]);
        one.within(WRITE).unwrap();
        one.commit().unwrap();
    }
}

#[test]
fn a_block_may_ask_for_tables_and_the_session() {
    let store = counters();
    let mut one = Client::new(&store);
    one.begin(READ_COMMITTED);
    let answer = one.within("SELECT current_user, pg_backend_pid(), b FROM t WHERE a = 2").unwrap();
    assert_eq!(shown(&answer.rows[0]), ["nvcaracal", "0", "0"]);
    let error = one.within("SELECT b FROM t WHERE current_setting('none') = 'x'").unwrap_err();
    assert_eq!(error.state().code(), "42704");
    let missing = "SELECT b FROM t WHERE current_setting('none', true) IS NULL AND a = 2";
    assert_eq!(shown(&one.within(missing).unwrap().rows[0]), ["0"]);
    // COMMIT does not ask the catalog again, so the steps of that do not count.
    one.within("SELECT count(*) FROM pg_class, generate_series(1, 1000)").unwrap();
    one.within(WRITE).unwrap();
    one.commit().unwrap();
    // Values of the session stay what was told, also where the catalog is another one by COMMIT.
    let mut other = Client::new(&store);
    one.begin(READ_COMMITTED);
    one.within("SELECT current_setting('none', true), b FROM t WHERE a = 2").unwrap();
    one.within(WRITE).unwrap();
    other.run("CREATE TABLE u (a int)").unwrap();
    one.commit().unwrap();
}
