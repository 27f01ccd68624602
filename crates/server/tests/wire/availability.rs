//! No statement keeps others waiting, however long it takes, and each hears what ends it.
//!
//! A statement that computes for long is stopped between two of its slices. It stays there until it
//! is told to end. Meanwhile a probe does everything that a client does: it may wait for no step of
//! the long statement. No time is measured: a fault shows itself as a wait without end, which
//! `support::PATIENCE` turns into a failure.

use crate::support::{Client, PATIENCE, Server, bind, execute, parse, query, run, sync};
use server::ServerOptions;
use server::store::StoreOptions;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time stops statements.
static ONE: Mutex<()> = Mutex::new(());
/// How many statements stand still.
static STOPPED: AtomicUsize = AtomicUsize::new(0);
/// Those that may go on.
static RELEASED: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    stop_again();
    one
}

/// Stops a statement until it was told to end, or all may go on. It stands for computing, so it
/// keeps looking whether it was told: nothing wakes what computes.
fn stop(is_told: &dyn Fn() -> bool) {
    STOPPED.fetch_add(1, Ordering::SeqCst);
    while !is_told() && RELEASED.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    STOPPED.fetch_sub(1, Ordering::SeqCst);
}

/// Waits for a condition, and says which one does not come.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not come");
        std::thread::yield_now();
    }
}

pub(crate) fn stopped(count: usize) {
    until("a long statement computes", || STOPPED.load(Ordering::SeqCst) == count);
}

/// A server whose long statements stand still. Table `a` has rows that take long with `SLOW`.
pub(crate) fn server() -> Server {
    let store = StoreOptions {
        pace: stop,
        threads: 2,
        computing_max: 1,
        slice: Duration::ZERO,
        steps_max: 50_000_000,
        ..StoreOptions::memory()
    };
    let server = Server::on(ServerOptions::at("127.0.0.1:0"), store);
    let mut client = server.client();
    for text in [
        "CREATE TABLE a (id int PRIMARY KEY, n int)",
        "CREATE TABLE b (id int PRIMARY KEY, n int)",
        "CREATE TABLE c (id int PRIMARY KEY, n int)",
        "CREATE SEQUENCE s",
        "INSERT INTO a SELECT g, g FROM generate_series(1, 9000) g",
        "INSERT INTO b SELECT g, g FROM generate_series(1, 20) g",
        "INSERT INTO c VALUES (1, 1)",
    ] {
        let said = client.query(text);
        assert_eq!(said.last().map(String::as_str), Some("ready"), "{text}: {said:?}");
        assert!(!said[0].starts_with("error"), "{text}: {said:?}");
    }
    server
}

/// A query that would take days.
const ENDLESS: &str = "SELECT count(*) FROM a x, a y, a z WHERE x.n + y.n + z.n < 0";

/// What may take long, and whether it holds the writers of table `a`.
fn kinds() -> Vec<(&'static str, String, bool)> {
    vec![
        ("query", ENDLESS.to_owned(), false),
        ("rows of a function", "SELECT count(*) FROM generate_series(1, 1000000000)".into(), false),
        ("COPY TO", format!("COPY ({ENDLESS}) TO STDOUT"), false),
        ("CREATE TABLE AS", format!("CREATE TABLE x AS {ENDLESS}"), false),
        ("SELECT INTO", ENDLESS.replace("count(*)", "count(*) AS n INTO x"), false),
        ("setval", format!("SELECT setval('s', ({ENDLESS}))"), false),
        ("CREATE INDEX", "CREATE INDEX ON a (n)".into(), true),
        ("CREATE INDEX of expressions", "CREATE INDEX ON a ((n * 2)) WHERE n + 1 > 0".into(), true),
        ("ADD UNIQUE", "ALTER TABLE a ADD UNIQUE (n)".into(), true),
        ("ADD CHECK", "ALTER TABLE a ADD CHECK (n > 0)".into(), true),
        ("ALTER TYPE", "ALTER TABLE a ALTER n TYPE bigint USING n + 1".into(), true),
        ("SET NOT NULL", "ALTER TABLE a ALTER n SET NOT NULL".into(), true),
        (
            "ADD PRIMARY KEY",
            "ALTER TABLE a DROP CONSTRAINT a_pkey, ADD PRIMARY KEY (n)".into(),
            true,
        ),
        ("ADD FOREIGN KEY", "ALTER TABLE a ADD FOREIGN KEY (id) REFERENCES a".into(), true),
    ]
}

/// Where a statement runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// As a text of its own.
    Text,
    /// As messages, with others of the connection behind it.
    Pipeline,
    /// In a block.
    Block,
    /// In the COMMIT of a block.
    Commit,
}

/// What ends it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Cancel,
    Timeout,
    Close,
    Shutdown,
}

/// Everything that a client does, while a long statement stands still.
fn probe(server: &Server, what: &str) {
    let mut client = server.client();
    let mut says = |text: &str, expected: &str| {
        let said = client.query(text);
        assert_eq!(said.join(", "), expected, "{what}: {text}");
    };
    says("SELECT n FROM a WHERE id = 7", "row 7, SELECT 1, ready");
    says("SELECT n FROM b WHERE id = 1", "row 1, SELECT 1, ready");
    says("SELECT count(*) FROM b", "row 20, SELECT 1, ready");
    says("SELECT n FROM a WHERE id < 3 ORDER BY id", "row 1, row 2, SELECT 2, ready");
    says("INSERT INTO b VALUES (100, 1)", "INSERT 0 1, ready");
    says("UPDATE b SET n = 2 WHERE id = 100", "UPDATE 1, ready");
    says("DELETE FROM b WHERE id = 100", "DELETE 1, ready");
    says("BEGIN", "BEGIN, ready T");
    says("SELECT n FROM a WHERE id = 7", "row 7, SELECT 1, ready T");
    says("SELECT count(*) FROM b", "row 20, SELECT 1, ready T");
    says("UPDATE b SET n = n WHERE id = 1", "UPDATE 1, ready T");
    says("COMMIT", "COMMIT, ready");
    says("CREATE TABLE probe (id int PRIMARY KEY)", "CREATE TABLE, ready");
    says("INSERT INTO probe VALUES (1)", "INSERT 0 1, ready");
    says("ALTER TABLE probe ADD n int", "ALTER TABLE, ready");
    says("DROP TABLE probe", "DROP TABLE, ready");
    let prepared = [parse("", "SELECT n FROM b WHERE id = $1"), bind("", "", &[Some("2")])];
    let said = client.segment(&[prepared.concat(), execute("", 0)]);
    assert_eq!(said, ["parsed", "bound", "row 2", "SELECT 1", "ready"], "{what}");
}

/// Lets all statements that stand still go on, and all later ones.
pub(crate) fn release() {
    RELEASED.store(1, Ordering::SeqCst);
}

/// From now on long statements stand still again.
pub(crate) fn stop_again() {
    RELEASED.store(0, Ordering::SeqCst);
}

/// Begins a long statement, and waits until it stands still.
fn begin(client: &mut Client, text: &str, state: State, end: End, what: &str) {
    if end == End::Timeout && state != State::Commit {
        assert_eq!(client.query("SET statement_timeout = '100ms'")[0], "SET");
    }
    match state {
        State::Text => client.send(&query(text)),
        State::Pipeline => {
            let behind = run("SELECT 1");
            client.send(&[run(text), sync(), behind, sync()].concat());
        }
        State::Block => {
            assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
            client.send(&query(text));
        }
        State::Commit => {
            release();
            client.query("BEGIN");
            let said = client.query(text);
            assert_eq!(said.last().map(String::as_str), Some("ready T"), "{what}: {said:?}");
            assert!(!said[0].starts_with("error"), "{what}: {said:?}");
            stop_again();
            if end == End::Timeout {
                assert_eq!(client.query("SET statement_timeout = '100ms'")[0], "SET");
            }
            client.send(&query("COMMIT"));
        }
    }
    if end != End::Timeout {
        stopped(1);
    }
}

/// A write of a table whose writers wait, which is answered only behind the definition.
fn held_writer(server: &Server, writes_wait: bool) -> Option<Client> {
    let mut client = server.client();
    client.send(&query("UPDATE a SET n = n WHERE id = 1"));
    if writes_wait {
        return Some(client);
    }
    assert_eq!(client.answers(), ["UPDATE 1", "ready"], "no definition holds its table");
    None
}

/// Runs one statement in one state to one end.
fn check(server: Server, kind: &(&str, String, bool), state: State, end: End) -> Option<Server> {
    let (name, text, holds) = kind;
    let what = format!("{name} in {state:?}, ended by {end:?}");
    let (mut client, key) = server.keyed_client();
    begin(&mut client, text, state, end, &what);
    if end != End::Timeout {
        probe(&server, &what);
    }
    // What a block has not committed holds nothing.
    let writer = match end {
        End::Timeout => None,
        _ => held_writer(&server, *holds && state != State::Block),
    };
    let error = match end {
        End::Cancel => {
            server.cancel(&key);
            "error 57014"
        }
        End::Timeout => "error 57014",
        End::Close => {
            drop(client);
            until(&what, || server.store.computing() == 0);
            return finish(server, writer, &what);
        }
        End::Shutdown => {
            server.stop();
            until(&what, || server.has_ended());
            return None;
        }
    };
    let said = client.answers();
    assert!(said.iter().any(|said| said == error), "{what}: {said:?}");
    match state {
        State::Pipeline => {
            let behind = client.answers();
            assert_eq!(behind, ["parsed", "bound", "row 1", "SELECT 1", "ready"], "{what}");
        }
        State::Block => {
            assert_eq!(said.last().unwrap(), "ready E", "{what}");
            assert_eq!(client.query("COMMIT"), ["ROLLBACK", "ready"], "{what}");
        }
        State::Text | State::Commit => assert_eq!(said.last().unwrap(), "ready", "{what}"),
    }
    finish(server, writer, &what)
}

/// Nothing is left of the statement.
fn finish(server: Server, writer: Option<Client>, what: &str) -> Option<Server> {
    if let Some(mut writer) = writer {
        assert_eq!(writer.answers(), ["UPDATE 1", "ready"], "{what}: a writer that was held");
    }
    until(what, || server.store.computing() == 0);
    let mut client = server.client();
    let said = client.query("INSERT INTO c VALUES (2, 2)");
    assert_eq!(said, ["INSERT 0 1", "ready"], "{what}");
    assert_eq!(client.query("DELETE FROM c WHERE id = 2"), ["DELETE 1", "ready"], "{what}");
    Some(server)
}

/// Each kind in each state, the ends in turn: so each end comes with each kind and each state.
#[test]
fn nothing_waits_for_a_long_statement_and_that_hears_its_end() {
    let _one = alone();
    let ends = [End::Cancel, End::Timeout, End::Close, End::Shutdown];
    let states = [State::Text, State::Pipeline, State::Block, State::Commit];
    let mut idle = None;
    for (at, kind) in kinds().iter().enumerate() {
        for (place, state) in states.into_iter().enumerate() {
            let is_definition = kind.2;
            if state == State::Commit && !is_definition || kind.0 == "COPY TO" && place == 1 {
                continue;
            }
            let end = ends[(at + place) % ends.len()];
            idle = check(idle.take().unwrap_or_else(server), kind, state, end);
        }
    }
}

/// However many compute for long, a new one that is short is answered at once.
#[test]
fn short_queries_wait_for_no_long_ones() {
    let _one = alone();
    let server = server();
    let mut long: Vec<_> = (0..12).map(|_| server.client()).collect();
    for (at, client) in long.iter_mut().enumerate() {
        client.send(&query(ENDLESS));
        until("it computes", || server.store.computing() == at + 1);
    }
    // It has the only turn.
    stopped(1);
    probe(&server, "beside 12 queries");
    // They are threads of their own, which go with them.
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let many = threads();
    drop(long);
    until("all end", || server.store.computing() == 0);
    until("their threads end", || threads() + 12 <= many);
}
