//! LISTEN and NOTIFY over the wire.

use crate::support::{Client, PATIENCE, Said, Server, bind, execute, parse, query, with_table_a};
use std::collections::BTreeSet;
use std::time::Instant;

/// The parts of a notification: who has told it, the channel and the payload.
fn parts(said: &Said) -> (i32, String, String) {
    assert_eq!(said.kind, b'A', "{said:?}");
    let (process, rest) = said.body.split_first_chunk().expect("a number");
    let mut texts = rest.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text));
    let mut next = || texts.next().expect("two texts").into_owned();
    (i32::from_be_bytes(*process), next(), next())
}

/// The next notification of an idle client, in short.
fn told(client: &mut Client) -> String {
    let (_, channel, payload) = parts(&client.next().expect("a notification"));
    format!("{channel} {payload}")
}

/// The answers to a text, with notifications among them in short.
fn asked(client: &mut Client, text: &str) -> Vec<String> {
    client.send(&query(text));
    let short = |said: &Said| match said.kind {
        b'A' => {
            let (_, channel, payload) = parts(said);
            Some(format!("told {channel} {payload}"))
        }
        _ => said.short(),
    };
    client.until_ready().iter().filter_map(short).collect()
}

fn process(client: &mut Client) -> String {
    client.query("SELECT pg_backend_pid()")[0].replace("row ", "")
}

#[test]
fn a_session_is_told_at_once_if_it_is_idle_and_else_before_it_is_ready() {
    let server = Server::start();
    let (mut one, mut two) = (server.client(), server.client());
    assert_eq!(one.query("LISTEN a"), ["LISTEN", "ready"]);
    assert_eq!(two.query("NOTIFY a, 'first'"), ["NOTIFY", "ready"]);
    let said = one.next().expect("a notification");
    let second = process(&mut two);
    assert_eq!(parts(&said), (second.parse().unwrap(), "a".to_owned(), "first".to_owned()));
    // Its own, too; equal ones of a transaction once.
    let text = "SELECT pg_notify('a', 'x'), pg_notify('a', NULL), pg_notify('b', 'x')";
    let expected = ["row ||", "SELECT 1", "told a x", "told a ", "ready"];
    assert_eq!(asked(&mut one, text), expected);
    let text = "NOTIFY a; NOTIFY a, 'y'; NOTIFY A, ''";
    let expected = ["NOTIFY", "NOTIFY", "NOTIFY", "told a ", "told a y", "ready"];
    assert_eq!(asked(&mut one, text), expected);
    let text = "SELECT pg_notify('a', 'x'); SELECT 1; SELECT pg_notify('a', 'x')";
    let answers = ["row ", "SELECT 1", "row 1", "SELECT 1", "row ", "SELECT 1"];
    let expected = [&answers[..], &["told a x", "ready"]].concat();
    assert_eq!(asked(&mut one, text), expected);
    // In a block it is told nothing.
    assert_eq!(one.query("BEGIN"), ["BEGIN", "ready T"]);
    two.query("NOTIFY a, 'meanwhile'");
    assert_eq!(asked(&mut one, "SELECT 1"), ["row 1", "SELECT 1", "ready T"]);
    assert_eq!(asked(&mut one, "COMMIT"), ["COMMIT", "told a meanwhile", "ready"]);
    assert_eq!(one.query("UNLISTEN a"), ["UNLISTEN", "ready"]);
    assert_eq!(asked(&mut one, "NOTIFY a"), ["NOTIFY", "ready"]);
}

#[test]
fn notifications_are_those_of_what_has_committed() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    two.query("LISTEN a");
    for lost in [
        "BEGIN; NOTIFY a, 'lost'; ROLLBACK",
        "NOTIFY a, 'lost'; SELECT 1 / 0",
        "INSERT INTO a VALUES (1), (1) RETURNING pg_notify('a', 'lost')",
        "SELECT pg_notify('a', 'lost'), 1 / 0",
    ] {
        one.query(lost);
    }
    one.query("BEGIN");
    one.query("NOTIFY a, '1'");
    one.query("SAVEPOINT s");
    one.query("NOTIFY a, 'lost'");
    one.query("INSERT INTO a VALUES (7)");
    one.query("ROLLBACK TO s");
    one.query("SELECT pg_notify('a', '2')");
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!([told(&mut two), told(&mut two)], ["a 1", "a 2"]);
    assert_eq!(one.query("SELECT count(*) FROM a")[0], "row 0");
    // One that conflicts tells nothing.
    one.query("BEGIN");
    one.query("SELECT count(*) FROM a");
    one.query("NOTIFY a, 'lost'");
    let mut three = server.client();
    three.query("INSERT INTO a VALUES (1)");
    assert_eq!(one.query("COMMIT"), ["error 40001", "ready"]);
    three.query("NOTIFY a, 'last'");
    assert_eq!(told(&mut two), "a last");
}

#[test]
fn each_row_of_a_statement_notifies() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    two.query("LISTEN a");
    let mut check = |text: &str, expected: &[&str]| {
        let said = one.query(text);
        assert!(!said[0].starts_with("error"), "{text}: {said:?}");
        let all: Vec<String> = expected.iter().map(|_| told(&mut two)).collect();
        assert_eq!(all, expected, "{text}");
    };
    check("INSERT INTO a VALUES (1), (2) RETURNING pg_notify('a', id::text)", &["a 1", "a 2"]);
    check("SELECT pg_notify('a', 'n' || id) FROM a ORDER BY id", &["a n1", "a n2"]);
    check(
        "WITH x AS (UPDATE a SET id = id + 10 RETURNING id) SELECT pg_notify('a', id::text) FROM x",
        &["a 11", "a 12"],
    );
    check("DELETE FROM a WHERE id = 11 RETURNING pg_notify('a', 'gone ' || id)", &["a gone 11"]);
    one.query("CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)");
    let mut check = |text: &str, expected: &[&str]| {
        let said = one.query(text);
        assert!(!said[0].starts_with("error"), "{text}: {said:?}");
        let all: Vec<String> = expected.iter().map(|_| told(&mut two)).collect();
        assert_eq!(all, expected, "{text}");
    };
    let numbered = "RETURNING pg_notify('a', id || v)";
    check(&format!("INSERT INTO b (v) VALUES ('x') {numbered}"), &["a 1x"]);
    let two_rows = format!("INSERT INTO b (v) SELECT 'y' FROM generate_series(1, 2) {numbered}");
    check(&two_rows, &["a 2y", "a 3y"]);
    check(&format!("{two_rows}; NOTIFY a, 'z'"), &["a 4y", "a 5y", "a z"]);
    // With a definition in the same block.
    check("BEGIN; CREATE TABLE c (id int PRIMARY KEY); NOTIFY a, 'c'; COMMIT", &["a c"]);
    check("BEGIN; INSERT INTO b (v) VALUES ('k'); NOTIFY a, 'k'; COMMIT", &["a k"]);
    let prepared = [
        parse("", "SELECT pg_notify($1, $2)"),
        bind("", "", &[Some("a"), Some("p")]),
        execute("", 0),
        parse("", "NOTIFY a, 'q'"),
        bind("", "", &[]),
        execute("", 0),
    ];
    let said = one.segment(&prepared);
    let expected = ["parsed", "bound", "row ", "SELECT 1", "parsed", "bound", "NOTIFY", "ready"];
    assert_eq!(said, expected);
    assert_eq!([told(&mut two), told(&mut two)], ["a p", "a q"]);
}

#[test]
fn listening_begins_and_ends_with_the_transaction() {
    let server = Server::start();
    let mut one = server.client();
    let channels = "SELECT pg_listening_channels()";
    assert_eq!(one.query("LISTEN b; LISTEN \"A\""), ["LISTEN", "LISTEN", "ready"]);
    assert_eq!(one.query(channels), ["row A", "row b", "SELECT 2", "ready"]);
    one.query("BEGIN; LISTEN c; UNLISTEN b");
    assert_eq!(one.query("SELECT * FROM pg_listening_channels()").len(), 4);
    one.query("ROLLBACK");
    one.query("LISTEN d; SELECT 1 / 0");
    one.query("BEGIN; LISTEN e; SAVEPOINT s; LISTEN f; ROLLBACK TO s; COMMIT");
    assert_eq!(one.query(channels)[..3], ["row A", "row b", "row e"]);
    one.query("UNLISTEN *");
    assert_eq!(one.query(channels)[0], "SELECT 0");
    one.query("LISTEN a");
    one.query("DISCARD ALL");
    assert_eq!(one.query(channels)[0], "SELECT 0");
    let said = asked(&mut one, "LISTEN c; NOTIFY c, 'own'");
    assert_eq!(said, ["LISTEN", "NOTIFY", "told c own", "ready"]);
    for round in 0..20 {
        let said = asked(&mut one, "LISTEN g; NOTIFY g, 'before'");
        assert_eq!(said[2], "told g before");
        let said = asked(&mut one, "BEGIN; UNLISTEN g; NOTIFY g, 'own'; COMMIT");
        assert_eq!(said, ["BEGIN", "UNLISTEN", "NOTIFY", "COMMIT", "ready"], "round {round}");
    }
    let said = asked(&mut one, "UNLISTEN c; LISTEN d; NOTIFY d; SELECT 1 / 0; NOTIFY d");
    assert_eq!(said, ["UNLISTEN", "LISTEN", "NOTIFY", "error 22012", "ready"]);
    assert_eq!(one.query(channels)[0], "row c");
    let said = asked(&mut one, "BEGIN; LISTEN a; NOTIFY a, 'own'; COMMIT");
    assert_eq!(said, ["BEGIN", "LISTEN", "NOTIFY", "COMMIT", "told a own", "ready"]);
}

#[test]
fn what_is_wrong_with_a_notification_is_told() {
    let (server, mut one) = with_table_a();
    let long = "x".repeat(64);
    let check = |client: &mut Client, text: &str, code: &str| {
        assert_eq!(client.query(text)[0], format!("error {code}"), "{text:.60}");
    };
    check(&mut one, "SELECT pg_notify('', '')", "22023");
    check(&mut one, "SELECT pg_notify(NULL, 'x')", "22023");
    check(&mut one, &format!("SELECT pg_notify('{long}', '')"), "22023");
    // Names are cut at 63 bytes, as everywhere.
    assert_eq!(one.query(&format!("LISTEN {long}; NOTIFY {long}")).len(), 4);
    check(&mut one, "SELECT pg_notify('a', repeat('x', 8000))", "22023");
    let most = "SELECT pg_notify('a', repeat('x', 7999))";
    assert_eq!(one.query(most), ["row ", "SELECT 1", "ready"]);
    check(&mut one, "CREATE TABLE b AS SELECT pg_notify('a', '')", "0A000");
    check(&mut one, "CREATE TABLE b (id text PRIMARY KEY DEFAULT pg_notify('a', ''))", "0A000");
    one.query("BEGIN READ ONLY");
    check(&mut one, "NOTIFY a", "25006");
    one.query("ROLLBACK");
    let many = "SELECT pg_notify('a', g || repeat('x', 7000)) FROM generate_series(1, 5000) g";
    check(&mut one, many, "54000");
    server.works();
}

#[test]
fn a_session_that_takes_nothing_is_told_so_and_writers_go_on() {
    let server = Server::start();
    let (mut one, mut two) = (server.client(), server.client());
    one.query("LISTEN a");
    one.query("BEGIN");
    let many =
        "SELECT count(pg_notify('a', g || repeat('x', 7000))) FROM generate_series(1, 900) g";
    for _ in 0..2 {
        assert_eq!(two.query(many)[0], "row 900");
    }
    one.send(&query("COMMIT"));
    let said = one.until_ready();
    let error = said.iter().find(|said| said.kind == b'E').expect("an error");
    assert_eq!(error.field(b'C').unwrap(), "53400");
    assert_eq!(said.last().unwrap().kind, b'E', "nothing comes behind what ends the connection");
    while one.next().is_some() {}
    assert_eq!(two.query("NOTIFY a"), ["NOTIFY", "ready"]);
}

/// Every session is told everything, once, in one order, which is that of each writer.
#[test]
fn all_sessions_are_told_the_same_in_the_same_order() {
    const WRITERS: usize = 8;
    const LISTENERS: usize = 8;
    const ROUNDS: usize = 40;
    let (server, mut first) = with_table_a();
    first.query("INSERT INTO a SELECT generate_series(0, 7)");
    let mut listeners: Vec<Client> = (0..LISTENERS).map(|_| server.client()).collect();
    listeners.iter_mut().for_each(|listener| drop(listener.query("LISTEN a")));
    let writers: Vec<Client> = (0..WRITERS).map(|_| server.client()).collect();
    let write = |writer: usize, mut client: Client| {
        for round in 0..ROUNDS {
            let payload = format!("{writer} {round}");
            let text = match round % 5 {
                0 => format!("NOTIFY a, '{payload}'"),
                1 => format!("SELECT pg_notify('a', '{payload}')"),
                2 => format!(
                    "UPDATE a SET id = id WHERE id = {writer} RETURNING \
                              pg_notify('a', '{payload}')"
                ),
                3 => format!(
                    "BEGIN; UPDATE a SET id = id WHERE id = {writer}; \
                              NOTIFY a, '{payload}'; COMMIT"
                ),
                _ => format!("BEGIN;; NOTIFY a, '{payload}'"),
            };
            let said = client.query(&text);
            assert!(!said[0].starts_with("error"), "{text}: {said:?}");
            if round % 5 == 4 {
                assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"]);
            }
        }
    };
    let began = Instant::now();
    let all: Vec<Vec<String>> = std::thread::scope(|scope| {
        for (writer, client) in writers.into_iter().enumerate() {
            scope.spawn(move || write(writer, client));
        }
        let listen = |mut listener: Client| {
            (0..WRITERS * ROUNDS).map(|_| told(&mut listener)).collect::<Vec<_>>()
        };
        let threads = listeners.into_iter().map(|listener| scope.spawn(move || listen(listener)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(began.elapsed() < PATIENCE);
    assert!(all.iter().all(|told| *told == all[0]), "all are told the same");
    assert_eq!(all[0].iter().collect::<BTreeSet<_>>().len(), WRITERS * ROUNDS, "each once");
    for writer in 0..WRITERS {
        let own = all[0].iter().filter(|told| told.starts_with(&format!("a {writer} ")));
        let expected = (0..ROUNDS).map(|round| format!("a {writer} {round}"));
        assert!(own.eq(expected.collect::<Vec<_>>().iter()), "the order of writer {writer}");
    }
}

/// What was told before a crash is not told again.
#[test]
fn what_a_client_was_told_it_sees() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    two.query("LISTEN a");
    for id in 0..100 {
        one.send(&query(&format!("INSERT INTO a VALUES ({id}) RETURNING pg_notify('a', '{id}')")));
        assert_eq!(told(&mut two), format!("a {id}"));
        assert_eq!(two.query(&format!("SELECT id FROM a WHERE id = {id}"))[0], format!("row {id}"));
        one.answers();
    }
}

/// What notifies waits for rows that others have locked, or passes by them.
#[test]
fn rows_that_are_locked_notify_nobody() {
    let (server, mut one) = with_table_a();
    one.query("CREATE SEQUENCE s");
    one.query("INSERT INTO a SELECT generate_series(1, 3)");
    let (mut two, mut listener) = (server.client(), server.client());
    listener.query("LISTEN a");
    one.query("BEGIN");
    assert_eq!(one.query("SELECT id FROM a WHERE id < 3 FOR UPDATE")[..2], ["row 1", "row 2"]);
    let free = "SELECT pg_notify('a', id::text) FROM a FOR UPDATE SKIP LOCKED";
    assert_eq!(two.query(free), ["row ", "SELECT 1", "ready"]);
    assert_eq!(told(&mut listener), "a 3");
    let counted = free.replace("'a', id::text", "'a', id || ' ' || nextval('s')");
    assert_eq!(two.query(&counted), ["row ", "SELECT 1", "ready"]);
    assert_eq!(told(&mut listener), "a 3 1");
    assert_eq!(two.query(&format!("NOTIFY a, 'x'; {free}"))[..3], ["NOTIFY", "row ", "SELECT 1"]);
    assert_eq!([told(&mut listener), told(&mut listener)], ["a x", "a 3"]);
    // What has notified keeps its rows until its COMMIT is answered.
    two.send(&query("SELECT pg_notify('a', 'new ' || id) FROM a WHERE id IN (2, 4) FOR UPDATE"));
    one.query("UPDATE a SET id = 4 WHERE id = 1");
    one.query("NOTIFY a, 'old'");
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(two.answers()[..3], ["row ", "row ", "SELECT 2"]);
    let all = [told(&mut listener), told(&mut listener), told(&mut listener)];
    assert_eq!(all, ["a old", "a new 2", "a new 4"]);
}
