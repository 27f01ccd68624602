use super::super::pending::block_on;
use super::super::{Answer, BlockOperation, Connection, Modes, Store, StoreOptions};
use super::*;
use values::Datum;

fn run_in(client: &mut Connection, text: &str, is_in_block: bool) -> Result<Answer> {
    let parsed = block_on(client.parse(text))?;
    let statement = block_on(client.prepare(&parsed[0], &[]))?;
    match is_in_block {
        true => client.submit_in_block(&statement, Vec::new()).wait(),
        false => client.submit(&statement, Vec::new()).wait(),
    }
}

fn run(client: &mut Connection, text: &str) -> Result<Answer> {
    run_in(client, text, false)
}

fn code<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_owned(), |error| error.state().code().to_owned())
}

fn count(client: &mut Connection) -> Datum {
    run(client, "SELECT count(*) FROM a").unwrap().rows[0][0].clone()
}

/// A statement of each way, which panics there.
const STATEMENTS: [(&str, Place); 8] = [
    ("SELECT 1", Place::Parse),
    ("SELECT 1", Place::Plan),
    ("INSERT INTO a VALUES (7)", Place::Plan),
    ("SELECT id FROM a ORDER BY id DESC", Place::Query),
    ("SELECT id FROM a WHERE id = 1", Place::LookUp),
    ("CREATE TABLE b (id int)", Place::Definition),
    ("CREATE INDEX i ON a (id)", Place::Definition),
    ("CREATE TABLE c AS SELECT id FROM a", Place::Definition),
];

#[test]
fn a_panic_is_an_error_of_its_statement() {
    let store = Store::open(StoreOptions::memory()).unwrap();
    let (mut client, mut other) = (store.connect(), store.connect());
    run(&mut client, "CREATE TABLE a (id int PRIMARY KEY)").unwrap();
    run(&mut client, "INSERT INTO a VALUES (1)").unwrap();
    for (statement, place) in STATEMENTS {
        let text = format!("{statement} /* panic in {place:?} */");
        assert_eq!(code(run(&mut client, &text)), "XX000", "{text}");
        // Neither the gate nor a lock is held, and what it would have done was not.
        assert_eq!(count(&mut other), Datum::Int8(1), "{text}");
        assert_eq!(count(&mut client), Datum::Int8(1), "{text}");
        run(&mut other, "CREATE TABLE b (id int)").unwrap();
        run(&mut client, "DROP TABLE b").unwrap();
    }
}

#[test]
fn statements_behind_a_panic_run() {
    let store = Store::open(StoreOptions::memory()).unwrap();
    let mut client = store.connect();
    run(&mut client, "CREATE TABLE a (id int PRIMARY KEY)").unwrap();
    let prepare = |text: &str| {
        let parsed = block_on(client.parse(text)).unwrap();
        block_on(client.prepare(&parsed[0], &[])).unwrap()
    };
    let all: Vec<_> = [
        "SELECT count(*) FROM a",
        "SELECT count(*) FROM a /* panic in Query */",
        "INSERT INTO a VALUES (1)",
        "SELECT count(*) FROM a",
    ]
    .map(prepare)
    .into();
    let pending: Vec<_> = all.iter().map(|one| client.submit(one, Vec::new())).collect();
    let codes: Vec<String> = pending.into_iter().map(|one| code(one.wait())).collect();
    assert_eq!(codes, ["no error", "XX000", "no error", "no error"]);
    assert_eq!(count(&mut client), Datum::Int8(1));
}

#[test]
fn a_panic_in_a_block_leaves_nothing_but_its_end() {
    let store = Store::open(StoreOptions::memory()).unwrap();
    let mut client = store.connect();
    run(&mut client, "CREATE TABLE a (id int PRIMARY KEY)").unwrap();
    for statement in [
        "INSERT INTO a VALUES (2) /* panic in Block */",
        "SELECT id FROM a WHERE id = 1 /* panic in Block */",
        "SELECT count(*) FROM a /* panic in Block */",
        "CREATE TABLE b (id int) /* panic in Definition */",
    ] {
        client.block(BlockOperation::Begin(Modes::default())).wait().unwrap();
        run_in(&mut client, "INSERT INTO a VALUES (1)", true).unwrap();
        client.block(BlockOperation::Savepoint("s".to_owned())).wait().unwrap();
        assert_eq!(code(run_in(&mut client, statement, true)), "XX000", "{statement}");
        // What the block has written may be half done.
        let back = BlockOperation::RollBackTo("s".to_owned());
        assert_eq!(code(client.block(back).wait()), "25P02", "{statement}");
        assert_eq!(code(run_in(&mut client, "SELECT 1", true)), "25P02", "{statement}");
        client.block(BlockOperation::RollBack).wait().unwrap();
        assert_eq!(count(&mut client), Datum::Int8(0), "{statement}");
    }
    client.block(BlockOperation::Begin(Modes::default())).wait().unwrap();
    let statement = "INSERT INTO a VALUES (1) /* panic in Block */";
    assert_eq!(code(run_in(&mut client, statement, true)), "XX000");
    assert_eq!(code(client.block(BlockOperation::Commit).wait()), "25P02");
    // No block is left.
    client.block(BlockOperation::Begin(Modes::default())).wait().unwrap();
    client.block(BlockOperation::RollBack).wait().unwrap();
    assert_eq!(count(&mut client), Datum::Int8(0));
    run(&mut client, "INSERT INTO a VALUES (1)").unwrap();
}

/// A snapshot may have to wait for the epoch that runs. What reads no table takes none, except in a
/// block whose statements all see one.
#[test]
fn a_query_without_tables_takes_no_snapshot() {
    let store = Store::open(StoreOptions::memory()).unwrap();
    let mut client = store.connect();
    run(&mut client, "CREATE TABLE a (id int PRIMARY KEY)").unwrap();
    let begin = |client: &mut Connection, keeps_snapshot| {
        let modes = Modes { keeps_snapshot, ..Modes::default() };
        client.block(BlockOperation::Begin(modes)).wait().unwrap();
    };
    for (query, reads) in [
        ("SELECT 1", false),
        ("SELECT now(), version(), pg_backend_pid()", false),
        ("VALUES (1), (2)", false),
        ("SELECT sum(g) FROM generate_series(1, 5) g", false),
        ("WITH RECURSIVE r AS (SELECT 1 n UNION SELECT 2 FROM r) SELECT n FROM r", false),
        ("SELECT relname FROM pg_catalog.pg_class WHERE relname = 'a'", false),
        ("SELECT count(*) FROM a", true),
        ("SELECT 1 WHERE EXISTS (SELECT FROM a WHERE id > 7)", true),
        ("SELECT (SELECT max(id) FROM a)", true),
        ("SELECT 1 UNION SELECT id FROM a", true),
        ("SELECT relname FROM pg_catalog.pg_class, a", true),
    ] {
        let text = format!("{query} /* panic in Snapshot */");
        let expected = if reads { "XX000" } else { "no error" };
        assert_eq!(code(run(&mut client, &text)), expected, "{query}");
        for keeps_snapshot in [false, true] {
            begin(&mut client, keeps_snapshot);
            let expected = if reads || keeps_snapshot { "XX000" } else { "no error" };
            assert_eq!(code(run_in(&mut client, &text, true)), expected, "{query} in a block");
            client.block(BlockOperation::RollBack).wait().unwrap();
        }
    }
    // A write reads what it may violate.
    begin(&mut client, false);
    run_in(&mut client, "INSERT INTO a SELECT generate_series(1, 3)", true).unwrap();
    let again = run_in(&mut client, "INSERT INTO a SELECT generate_series(3, 4)", true);
    assert_eq!(code(again), "23505");
}

#[test]
fn a_panic_that_panics_when_it_is_dropped_is_an_error() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    let caught: Result<()> = caught(|| std::panic::panic_any(Bad));
    assert_eq!(code(caught), "XX000");
    let caught = block_on(caught_in(async { panic!("of {}", "two parts") }));
    let said: Error = Result::<std::convert::Infallible>::unwrap_err(caught);
    assert_eq!(said.message(), "internal error: of two parts");
}
