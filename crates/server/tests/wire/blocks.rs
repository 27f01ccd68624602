//! Blocks, message by message.

use crate::support::{Server, bind, execute, message, parse, query, run, sync, with_table_a};

#[test]
fn ready_says_how_a_block_stands() {
    let (_server, mut client) = with_table_a();
    assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
    assert_eq!(client.query("INSERT INTO a VALUES (1)"), ["INSERT 0 1", "ready T"]);
    assert_eq!(client.query("INSERT INTO a VALUES (1)"), ["error 23505", "ready E"]);
    assert_eq!(client.query("SELECT 1"), ["error 25P02", "ready E"]);
    assert_eq!(client.query("SELEC 1"), ["error 42601", "ready E"]);
    assert_eq!(client.segment(&[run("SELECT 1")]), ["error 25P02", "ready E"]);
    assert_eq!(client.query("COMMIT"), ["ROLLBACK", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a"), ["row 0", "SELECT 1", "ready"]);
    assert_eq!(client.query("BEGIN"), ["BEGIN", "ready T"]);
    assert_eq!(client.query("SELECT nothing"), ["error 42703", "ready E"]);
    assert_eq!(client.query("ROLLBACK"), ["ROLLBACK", "ready"]);
    assert_eq!(client.query("START TRANSACTION"), ["START TRANSACTION", "ready T"]);
    assert_eq!(client.query("BEGIN"), ["notice 25001", "BEGIN", "ready T"]);
    assert_eq!(client.query("CREATE TABLE b (id int)"), ["CREATE TABLE", "ready T"]);
    assert_eq!(client.query("ROLLBACK"), ["ROLLBACK", "ready"]);
    assert_eq!(client.query("SELECT id FROM b"), ["error 42P01", "ready"]);
    assert_eq!(client.query("SAVEPOINT s"), ["error 25P01", "ready"]);
}

#[test]
fn a_conflict_is_told_at_commit() {
    let server = Server::start();
    let (mut one, mut other) = (server.client(), server.client());
    one.query("CREATE TABLE a (id int PRIMARY KEY, n int)");
    one.query("INSERT INTO a VALUES (1, 0)");
    one.query("BEGIN");
    assert_eq!(one.query("SELECT n FROM a WHERE id = 1"), ["row 0", "SELECT 1", "ready T"]);
    assert_eq!(one.query("UPDATE a SET n = 7"), ["UPDATE 1", "ready T"]);
    assert_eq!(other.query("SELECT n FROM a WHERE id = 1"), ["row 0", "SELECT 1", "ready"]);
    assert_eq!(other.query("UPDATE a SET n = n + 1"), ["UPDATE 1", "ready"]);
    one.send(&query("COMMIT"));
    let said = one.until_ready();
    assert_eq!(said[0].field(b'C').as_deref(), Some("40001"));
    let detail = said[0].field(b'D').unwrap();
    assert!(detail.contains("Statement 1") && detail.contains("SELECT n FROM a"), "{detail}");
    assert_eq!(said[1].body, b"I");
    assert_eq!(one.query("SELECT n FROM a"), ["row 1", "SELECT 1", "ready"]);
}

#[test]
fn a_block_may_begin_in_a_segment_and_its_portals_stay() {
    let (_server, mut client) = with_table_a();
    let begun = client.segment(&[run("BEGIN"), run("INSERT INTO a VALUES (1), (2), (3)")]);
    assert_eq!(begun, ["parsed", "bound", "BEGIN", "parsed", "bound", "INSERT 0 3", "ready T"]);
    let select = [parse("s", "SELECT id FROM a"), bind("p", "s", &[]), execute("p", 2)].concat();
    let first = client.segment(&[select]);
    assert_eq!(first, ["parsed", "bound", "row 1", "row 2", "suspended", "ready T"]);
    assert_eq!(client.segment(&[execute("p", 2)]), ["row 3", "SELECT 1", "ready T"]);
    let failed = client.segment(&[run("SELECT 1/0"), run("SELECT 1")]);
    assert_eq!(failed, ["parsed", "bound", "error 22012", "ready E"]);
    // COMMIT of a block that has failed, and a block behind it, in one pipeline.
    client.send(&[run("COMMIT"), sync(), run("BEGIN"), run("INSERT INTO a VALUES (9)")].concat());
    client.send(&[run("COMMIT"), sync()].concat());
    assert_eq!(client.answers(), ["parsed", "bound", "ROLLBACK", "ready"]);
    let committed = client.answers();
    assert_eq!(committed[committed.len() - 2..], ["COMMIT", "ready"]);
    assert_eq!(client.query("SELECT id FROM a"), ["row 9", "SELECT 1", "ready"]);
    assert_eq!(client.segment(&[execute("p", 2)]), ["error 34000", "ready"]);
}

#[test]
fn a_text_may_have_a_block() {
    let (_server, mut client) = with_table_a();
    let both = "BEGIN; INSERT INTO a VALUES (1); INSERT INTO a VALUES (2); COMMIT";
    let said = client.query(both);
    assert_eq!(said, ["BEGIN", "INSERT 0 1", "INSERT 0 1", "COMMIT", "ready"]);
    let said = client.query(both);
    assert_eq!(said, ["BEGIN", "error 23505", "ready E"]);
    assert_eq!(client.query("ROLLBACK; SELECT count(*) FROM a")[1], "row 2");
}

#[test]
fn a_client_that_does_nothing_is_disconnected_only_in_a_block() {
    let server = Server::start();
    let (mut outside, mut within) = (server.client(), server.client());
    outside.query("CREATE TABLE a (id int PRIMARY KEY)");
    for client in [&mut outside, &mut within] {
        client.query("SET idle_in_transaction_session_timeout = '50ms'");
    }
    // From here on the one outside has done nothing for longer than the other.
    within.query("BEGIN");
    within.query("INSERT INTO a VALUES (1)");
    let last = within.next().unwrap();
    assert_eq!(last.field(b'C').as_deref(), Some("25P03"));
    assert!(within.next().is_none());
    assert_eq!(outside.query("SELECT count(*) FROM a")[0], "row 0");
}

#[test]
fn t_13_what_arrives_together_is_all_there_or_nothing() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY, n int)");
    client.query("CREATE TABLE s (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int)");
    let said = client.query(
        "INSERT INTO a VALUES (1, 1); INSERT INTO a VALUES (2, 2); SELECT sum(n) FROM a; \
         UPDATE a SET n = n + 1 RETURNING n",
    );
    let expected =
        ["INSERT 0 1", "INSERT 0 1", "row 3", "SELECT 1", "row 2", "row 3", "UPDATE 2", "ready"];
    assert_eq!(said, expected);
    // The answers before the error come, and nothing else.
    let said = client.query("INSERT INTO a VALUES (3, 3); INSERT INTO a VALUES (1, 1); SELECT 1");
    assert_eq!(said, ["INSERT 0 1", "error 23505", "ready"]);
    let insert = |id: u8| run(&format!("INSERT INTO a VALUES ({id}, 0)"));
    let said = client.segment(&[insert(3), insert(4), run("SELECT count(*) FROM a"), insert(1)]);
    assert_eq!(said.iter().filter(|said| *said == "INSERT 0 1").count(), 2);
    assert!(said.contains(&"row 4".to_owned()), "{said:?}");
    assert_eq!(said[said.len() - 2..], ["error 23505", "ready"]);
    let said = client.segment(&[insert(3), parse("", "SELECT nothing"), insert(4)]);
    assert_eq!(said[said.len() - 2..], ["error 42703", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2");
    // Each sees what is before it, numbers are dense, and none is given twice.
    let said = client.query(
        "INSERT INTO s (n) VALUES (7) RETURNING id; \
         INSERT INTO s (n) SELECT n FROM s RETURNING id; \
         INSERT INTO s (n) VALUES (1) RETURNING id",
    );
    assert_eq!([&said[0], &said[2], &said[4]], ["row 1", "row 2", "row 3"]);
    let said = client.segment(&[insert(3), run("UPDATE a SET n = 9 WHERE id = 3 RETURNING id")]);
    assert_eq!(said[2..].last().unwrap(), "ready");
    assert_eq!(client.query("SELECT n FROM a WHERE id = 3")[0], "row 9");
}

/// Nothing of a text is seen before its end, so it is one call, which conflicts with no other.
#[test]
fn t_13_texts_of_several_writes_never_conflict() {
    const CLIENTS: usize = 4;
    const TEXTS: usize = 50;
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE a (id int PRIMARY KEY, n int)");
    client.query("INSERT INTO a VALUES (1, 0), (2, 0)");
    let updates = "UPDATE a SET n = n + 1 WHERE id = 1; UPDATE a SET n = n + 1 WHERE id = 2";
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..TEXTS {
                    assert_eq!(client.query(updates), ["UPDATE 1", "UPDATE 1", "ready"]);
                    let block = client.query(&format!("BEGIN; {updates}; COMMIT"));
                    assert_eq!(block, ["BEGIN", "UPDATE 1", "UPDATE 1", "COMMIT", "ready"]);
                }
            });
        }
    });
    let row = format!("row {}", 2 * CLIENTS * TEXTS);
    let said = client.query("SELECT n FROM a ORDER BY id");
    assert_eq!(said, [&row, &row, "SELECT 2", "ready"]);
}

#[test]
fn what_must_be_answered_earlier_makes_a_block_of_a_segment() {
    let (server, mut client) = with_table_a();
    let insert = |id: u8| run(&format!("INSERT INTO a VALUES ({id})"));
    client.send(&[insert(1), message(b'H', b"")].concat());
    let first: Vec<u8> = (0..3).map(|_| client.next().unwrap().kind).collect();
    assert_eq!(first, b"12C", "it is answered before the Sync");
    assert_eq!(server.client().query("SELECT count(*) FROM a")[0], "row 0");
    let said = client.segment(&[insert(2), run("SELECT count(*) FROM a")]);
    assert!(said.contains(&"row 2".to_owned()), "{said:?}");
    assert_eq!(said.last().unwrap(), "ready");
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2");
    client.segment(&[insert(3), message(b'H', b""), insert(1)]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2", "nothing of it");
    // BEGIN makes it a block of the client's, with all before it.
    let said = client.segment(&[insert(3), run("BEGIN"), insert(4)]);
    assert_eq!(said.last().unwrap(), "ready T");
    client.query("ROLLBACK");
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2");
    let text = "INSERT INTO a VALUES (3); SHOW timezone; INSERT INTO a VALUES (4); SELECT 1/0";
    let said = client.query(text);
    assert_eq!(said, ["INSERT 0 1", "row UTC", "SHOW", "INSERT 0 1", "error 22012", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 2");
    let said = client.query("INSERT INTO a VALUES (3); SHOW timezone; INSERT INTO a VALUES (4)");
    assert_eq!(said.last().unwrap(), "ready");
    assert_eq!(client.query("SAVEPOINT s; SELECT 1"), ["error 25P01", "ready"]);
    let said = client.query("INSERT INTO a VALUES (5); COMMIT; SELECT 1/0");
    assert_eq!(said, ["INSERT 0 1", "notice 25P01", "COMMIT", "error 22012", "ready"]);
    assert_eq!(client.query("SELECT count(*) FROM a")[0], "row 5");
    // Much is not held without bound.
    let many: Vec<u8> = (0..3_000).flat_map(|_| run("DELETE FROM a WHERE id = 99")).collect();
    let said = client.segment(&[many]);
    assert_eq!(said.iter().filter(|said| *said == "DELETE 0").count(), 3_000);
}
