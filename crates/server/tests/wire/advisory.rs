//! Advisory locks over the wire.

use crate::support::{Client, PATIENCE, Server, bind, execute, parse, query, with_table_a};
use std::time::{Duration, Instant};

/// Waits until a session waits for a lock.
fn until_waiting(client: &mut Client, count: usize) {
    let asked = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    let began = Instant::now();
    while client.query(asked)[0] != format!("row {count}") {
        assert!(began.elapsed() < PATIENCE, "no session waits");
    }
}

fn held(client: &mut Client) -> Vec<String> {
    let asked = "SELECT objid, mode, granted FROM pg_locks WHERE locktype = 'advisory' \
                 ORDER BY 1, 2, 3";
    let mut said = client.query(asked);
    said.truncate(said.len() - 2);
    said
}

#[test]
fn locks_are_counted_and_given_back() {
    let server = Server::start();
    let (mut one, mut two) = (server.client(), server.client());
    assert_eq!(one.query("SELECT pg_advisory_lock(1)"), ["row ", "SELECT 1", "ready"]);
    let lock = "SELECT pg_advisory_lock(1), pg_try_advisory_lock(1, 2), \
                pg_try_advisory_lock_shared(3)";
    assert_eq!(one.query(lock)[0], "row |t|t");
    let asked = "SELECT pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1, 2), \
                 pg_try_advisory_lock(3), pg_try_advisory_lock_shared(3), pg_try_advisory_lock(2)";
    assert_eq!(two.query(asked)[0], "row f|f|f|t|t");
    assert_eq!(one.query("SELECT pg_advisory_unlock(1)")[0], "row t");
    assert_eq!(two.query("SELECT pg_try_advisory_lock(1)")[0], "row f");
    assert_eq!(one.query("SELECT pg_advisory_unlock(1)")[0], "row t");
    assert_eq!(two.query("SELECT pg_try_advisory_lock(1)")[0], "row t");
    let said = one.query("SELECT pg_advisory_unlock(1), pg_advisory_unlock_shared(9)");
    assert_eq!(said, ["notice 01000", "notice 01000", "row f|f", "SELECT 1", "ready"]);
    one.query("SET client_min_messages = error");
    assert_eq!(one.query("SELECT pg_advisory_unlock(1)")[0], "row f");
    assert_eq!(one.query("SELECT pg_advisory_lock(NULL)")[0], "row NULL");
    assert_eq!(one.query("SELECT pg_advisory_unlock_all()")[0], "row ");
    assert_eq!(two.query("SELECT pg_try_advisory_lock(1, 2)")[0], "row t");
    assert_eq!(two.query("DISCARD ALL"), ["DISCARD ALL", "ready"]);
    assert_eq!(held(&mut one), [""; 0]);
    // The end of a session is that of its locks.
    two.query("SELECT pg_advisory_lock(5)");
    drop(two);
    assert_eq!(one.query("SELECT pg_advisory_lock(5)"), ["row ", "SELECT 1", "ready"]);
    assert_eq!(held(&mut one), ["row 5|ExclusiveLock|t"]);
}

#[test]
fn locks_of_a_transaction_end_with_it() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    let lock = "SELECT pg_advisory_xact_lock(1)";
    assert_eq!(one.query(lock)[0], "row ");
    assert_eq!(held(&mut two), [""; 0], "a statement is a transaction");
    for end in ["COMMIT", "ROLLBACK", "SELECT 1 / 0; ROLLBACK"] {
        one.query("BEGIN");
        one.query(lock);
        one.query("INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING");
        assert_eq!(two.query("SELECT pg_try_advisory_lock(1)")[0], "row f");
        one.query(end);
        assert_eq!(held(&mut two), [""; 0], "{end}");
        one.query("ROLLBACK");
    }
    // One that failed gives them back at once.
    one.query("BEGIN");
    one.query("SELECT pg_advisory_xact_lock(1), pg_advisory_lock(2)");
    assert_eq!(one.query("SELECT pg_advisory_xact_lock(3), 1 / 0")[0], "error 22012");
    assert_eq!(held(&mut two), ["row 2|ExclusiveLock|t"]);
    one.query("ROLLBACK");
    one.query("BEGIN; SELECT pg_advisory_xact_lock_shared(4); SAVEPOINT a");
    one.query("SELECT pg_advisory_xact_lock(5), pg_advisory_lock(6), pg_advisory_xact_lock(4)");
    assert_eq!(held(&mut two).len(), 5);
    one.query("ROLLBACK TO a");
    let left = ["row 2|ExclusiveLock|t", "row 4|ShareLock|t", "row 6|ExclusiveLock|t"];
    assert_eq!(held(&mut two), left);
    one.query("SELECT pg_advisory_xact_lock(5)");
    one.query("RELEASE a");
    assert_eq!(held(&mut two).len(), 4);
    one.query("COMMIT");
    assert_eq!(held(&mut two), [left[0], left[2]]);
    // Of a text, and of what is between two Syncs.
    let text = "SELECT pg_advisory_xact_lock(7); INSERT INTO a VALUES (7); SELECT 1 / 0";
    assert_eq!(one.query(text), ["row ", "SELECT 1", "INSERT 0 1", "error 22012", "ready"]);
    let all = [
        parse("", "SELECT pg_advisory_xact_lock($1)"),
        bind("", "", &[Some("8")]),
        execute("", 0),
        parse("", "INSERT INTO a VALUES (8)"),
        bind("", "", &[]),
        execute("", 0),
    ];
    let said = one.segment(&all);
    let expected =
        ["parsed", "bound", "row ", "SELECT 1", "parsed", "bound", "INSERT 0 1", "ready"];
    assert_eq!(said, expected);
    assert_eq!(held(&mut two), [left[0], left[2]]);
}

#[test]
fn a_wait_ends_by_the_lock_or_by_what_ends_statements() {
    let server = Server::start();
    let (mut one, (mut two, key)) = (server.client(), server.keyed_client());
    let mut three = server.client();
    one.query("SELECT pg_advisory_lock(1)");
    two.send(&query("SELECT pg_advisory_lock(1)"));
    until_waiting(&mut three, 1);
    one.query("SELECT pg_advisory_unlock(1)");
    assert_eq!(two.answers(), ["row ", "SELECT 1", "ready"]);
    assert_eq!(
        one.query("SET lock_timeout = '20ms'; SELECT pg_advisory_lock(1)")[1],
        "error 55P03"
    );
    let waits = "SET lock_timeout = 0; SET statement_timeout = '20ms'; SELECT pg_advisory_lock(1)";
    assert_eq!(one.query(waits)[2], "error 57014");
    one.query("RESET ALL");
    one.query("SELECT pg_advisory_lock(2)");
    two.send(&query("SELECT pg_advisory_lock_shared(2)"));
    until_waiting(&mut three, 1);
    server.cancel(&key);
    assert_eq!(two.answers(), ["error 57014", "ready"]);
    // In a block, and by the end of the connection.
    two.query("BEGIN");
    two.send(&query("SELECT pg_advisory_xact_lock(2)"));
    until_waiting(&mut three, 1);
    drop(two);
    until_waiting(&mut three, 0);
    assert_eq!(held(&mut three), ["row 2|ExclusiveLock|t"]);
    // By the end of the server.
    three.send(&query("SELECT pg_advisory_lock(2)"));
    until_waiting(&mut one, 1);
    server.stop();
    // It may have the lock before, as the session that had it ends, too.
    let said = three.answers();
    let last = said.last().map(String::as_str);
    assert!(matches!(last, Some("error 57P01" | "ready")), "{said:?}");
}

/// Many that wait keep no thread from others.
#[test]
fn who_waits_holds_up_nobody() {
    let (server, mut one) = with_table_a();
    one.query("SELECT pg_advisory_lock(1)");
    let mut all: Vec<Client> = (0..24).map(|_| server.client()).collect();
    for (at, client) in all.iter_mut().enumerate() {
        if at % 2 == 0 {
            client.query("BEGIN");
        }
        client.send(&query("SELECT pg_advisory_lock(1)"));
        until_waiting(&mut one, at + 1);
    }
    assert_eq!(one.query("CREATE TABLE b (id int PRIMARY KEY)")[0], "CREATE TABLE");
    assert_eq!(one.query("INSERT INTO b SELECT generate_series(1, 9)")[0], "INSERT 0 9");
    assert_eq!(one.query("SELECT sum(id) FROM b")[0], "row 45");
    one.query("SELECT pg_advisory_unlock(1)");
    let mut left: Vec<usize> = (0..all.len()).collect();
    let began = Instant::now();
    while !left.is_empty() {
        assert!(began.elapsed() < PATIENCE);
        // One after the other has it, in the order in which they came.
        let next = left.remove(0);
        assert_eq!(all[next].answers()[..2], ["row ", "SELECT 1"]);
        assert_eq!(all[next].query("SELECT pg_advisory_unlock(1)")[0], "row t");
    }
}

#[test]
fn a_circle_of_waiting_sessions_is_found() {
    let server = Server::start();
    let mut all: Vec<Client> = (0..3).map(|_| server.client()).collect();
    let mut other = server.client();
    for (at, client) in all.iter_mut().enumerate() {
        client.query(&format!("BEGIN; SELECT pg_advisory_xact_lock({at})"));
    }
    for (at, client) in all.iter_mut().take(2).enumerate() {
        client.send(&query(&format!("SELECT pg_advisory_xact_lock({})", at + 1)));
        until_waiting(&mut other, at + 1);
    }
    all[2].send(&query("SELECT pg_advisory_xact_lock(0)"));
    let said = all[2].until_ready();
    let error = said.iter().find(|said| said.kind == b'E').expect("an error");
    assert_eq!(error.field(b'C').unwrap(), "40P01");
    assert_eq!(error.field(b'D').unwrap().lines().count(), 3);
    // It has given back its own, and the others go on one after the other.
    assert_eq!(all[1].answers(), ["row ", "SELECT 1", "ready T"]);
    all[1].query("COMMIT");
    assert_eq!(all[0].answers(), ["row ", "SELECT 1", "ready T"]);
}

#[test]
fn a_query_calls_each_function_once_however_often_it_waits() {
    let (server, mut one) = with_table_a();
    let (mut two, mut three) = (server.client(), server.client());
    one.query("INSERT INTO a SELECT generate_series(1, 5)");
    two.query("SELECT pg_advisory_lock(2), pg_advisory_lock(4)");
    let lock = "SELECT id, pg_advisory_lock(id) FROM a ORDER BY id";
    one.send(&query(lock));
    until_waiting(&mut three, 1);
    two.query("SELECT pg_advisory_unlock(2)");
    until_waiting(&mut three, 1);
    two.query("SELECT pg_advisory_unlock(4)");
    assert_eq!(one.answers().len(), 7);
    let unlock = "SELECT bool_and(pg_advisory_unlock(id)) FROM a";
    assert_eq!(one.query(unlock)[0], "row t");
    assert_eq!(held(&mut three), [""; 0], "each was taken once");
    // The order of sleeps and locks is that of the query.
    let began = Instant::now();
    one.query("SELECT pg_sleep(0.05), pg_advisory_lock(1), pg_sleep(0.05), pg_advisory_unlock(1)");
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_block_commits_whatever_its_locks_answered() {
    let (server, mut one) = with_table_a();
    let mut two = server.client();
    one.query("BEGIN");
    assert_eq!(one.query("SELECT pg_try_advisory_xact_lock(1)")[0], "row t");
    assert_eq!(two.query("SELECT pg_try_advisory_lock(2)")[0], "row t");
    assert_eq!(one.query("SELECT pg_try_advisory_xact_lock(2)")[0], "row f");
    one.query("INSERT INTO a VALUES (1)");
    two.query("SELECT pg_advisory_unlock_all()");
    two.query("CREATE TABLE c (id int PRIMARY KEY)");
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    // Migrations of two that begin at the same time.
    let begin = "BEGIN; SELECT pg_advisory_xact_lock(7)";
    one.query(begin);
    two.send(&query(begin));
    one.query("CREATE TABLE d (id int PRIMARY KEY)");
    one.query("INSERT INTO d VALUES (1)");
    assert_eq!(one.query("COMMIT"), ["COMMIT", "ready"]);
    assert_eq!(two.answers(), ["BEGIN", "row ", "SELECT 1", "ready T"]);
    assert_eq!(two.query("SELECT count(*) FROM d")[0], "row 1");
    assert_eq!(two.query("INSERT INTO d VALUES (2)")[0], "INSERT 0 1");
    assert_eq!(two.query("COMMIT"), ["COMMIT", "ready"]);
}

#[test]
fn what_is_logged_has_no_locks() {
    let (server, mut client) = with_table_a();
    for text in [
        "INSERT INTO a VALUES (1) RETURNING pg_advisory_lock(1)",
        "INSERT INTO a SELECT 1 WHERE pg_try_advisory_lock(1)",
        "WITH x AS (DELETE FROM a RETURNING id) SELECT pg_advisory_xact_lock(id) FROM x",
        "CREATE TABLE b AS SELECT pg_advisory_lock(1)",
        "CREATE TABLE b (id int PRIMARY KEY, v text DEFAULT pg_advisory_lock(1))",
        "CREATE TABLE b (id int PRIMARY KEY CHECK (pg_try_advisory_lock(1)))",
        "UPDATE a SET id = 1 WHERE pg_sleep(1) IS NULL",
        "SELECT pg_try_advisory_lock(id) FROM a FOR UPDATE SKIP LOCKED",
        "SELECT FROM a WHERE pg_sleep(1) IS NULL FOR SHARE",
    ] {
        assert_eq!(client.query(text)[0], "error 0A000", "{text}");
    }
    client.query("BEGIN");
    let of_tables = "SELECT pg_advisory_xact_lock(id) FROM a";
    assert_eq!(client.query(of_tables), ["error 0A000", "ready E"]);
    client.query("ROLLBACK");
    client.query("BEGIN READ ONLY");
    assert_eq!(client.query(of_tables), ["SELECT 0", "ready T"]);
    drop(client);
    server.works();
}

#[test]
fn locks_are_bounded() {
    let server = Server::start();
    let mut client = server.client();
    let many = "SELECT count(pg_advisory_lock(g)) FROM generate_series(1, 20000) g";
    assert_eq!(client.query(many)[0], "error 53200");
    assert_eq!(client.query("SELECT pg_advisory_unlock_all()")[0], "row ");
    let some = "SELECT count(pg_advisory_xact_lock(g)) FROM generate_series(1, 16384) g";
    assert_eq!(client.query(some)[0], "row 16384");
    assert_eq!(held(&mut client), [""; 0]);
}
