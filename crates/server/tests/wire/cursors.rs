//! Cursors of SQL beside what is written behind DECLARE, and at the ends of blocks and savepoints.

use crate::support::{Client, Server, bind, execute, parse};

fn rows(client: &mut Client, text: &str) -> Vec<String> {
    let said = client.query(text);
    let rows = said.iter().filter_map(|line| line.strip_prefix("row "));
    rows.map(str::to_owned).collect()
}

/// The standing of the session behind a FETCH of a cursor that there is not.
fn is_missing(client: &mut Client, cursor: &str, standing: &str) {
    assert_eq!(client.query(&format!("FETCH {cursor}")), ["error 34000", standing], "{cursor}");
}

fn table(client: &mut Client) {
    client.query("CREATE TABLE t (id int PRIMARY KEY)");
    client.query("INSERT INTO t VALUES (1), (2), (3)");
}

#[test]
fn its_rows_are_those_of_declare_in_every_direction() {
    let server = Server::start();
    let (mut one, mut other) = (server.client(), server.client());
    table(&mut one);
    one.query("BEGIN");
    one.query("DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id");
    assert_eq!(rows(&mut one, "FETCH c"), ["1"]);
    assert_eq!(one.query("INSERT INTO t VALUES (0), (4)"), ["INSERT 0 2", "ready T"]);
    assert_eq!(other.query("DELETE FROM t WHERE id = 2"), ["DELETE 1", "ready"]);
    assert_eq!(rows(&mut one, "FETCH ALL c"), ["2", "3"]);
    assert_eq!(rows(&mut one, "FETCH BACKWARD ALL FROM c"), ["3", "2", "1"]);
    assert_eq!(rows(&mut one, "FETCH LAST c"), ["3"]);
}

#[test]
fn it_stays_behind_its_block_only_if_that_commits_and_holds_it() {
    let server = Server::start();
    let mut client = server.client();
    table(&mut client);
    for (end, held) in [("COMMIT", 2), ("ROLLBACK", 0)] {
        client.query("BEGIN");
        client.query("INSERT INTO t VALUES (9)");
        client.query("DECLARE held CURSOR WITH HOLD FOR SELECT id FROM t WHERE id > 2");
        client.query("DECLARE plain CURSOR FOR SELECT id FROM t");
        client.query(end);
        assert_eq!(rows(&mut client, "FETCH ALL held").len(), held, "{end}");
        is_missing(&mut client, "plain", "ready");
        client.query("CLOSE ALL");
        client.query("DELETE FROM t WHERE id = 9");
    }
}

#[test]
fn it_goes_with_the_savepoint_that_it_was_declared_behind() {
    let server = Server::start();
    let mut client = server.client();
    table(&mut client);
    client.query("BEGIN");
    client.query("SAVEPOINT a");
    client.query("INSERT INTO t VALUES (9)");
    client.query("DECLARE since CURSOR WITH HOLD FOR SELECT id FROM t WHERE id > 2");
    client.query("SAVEPOINT b");
    client.query("RELEASE b");
    assert_eq!(rows(&mut client, "FETCH since"), ["3"]);
    client.query("ROLLBACK TO a");
    is_missing(&mut client, "since", "ready E");
    client.query("ROLLBACK TO a");
    client.query("DECLARE kept CURSOR WITH HOLD FOR SELECT id FROM t WHERE id > 2");
    client.query("RELEASE a");
    client.query("COMMIT");
    assert_eq!(rows(&mut client, "FETCH ALL kept"), ["3"]);
    is_missing(&mut client, "since", "ready");
}

/// The next row of a portal; nothing behind the last one, and an error if it is not there.
fn next_row(client: &mut Client, portal: &str) -> String {
    let said = client.segment(&[execute(portal, 1)]);
    said.into_iter().find(|said| !said.starts_with("ready")).unwrap_or_default()
}

#[test]
fn portals_go_with_the_savepoint_that_they_were_bound_behind() {
    let server = Server::start();
    let mut client = server.client();
    table(&mut client);
    client.segment(&[parse("s", "SELECT id FROM t ORDER BY id")]);
    client.query("BEGIN");
    client.segment(&[bind("before", "s", &[])]);
    assert_eq!(next_row(&mut client, "before"), "row 1");
    client.query("SAVEPOINT a");
    client.segment(&[bind("since", "s", &[])]);
    assert_eq!(next_row(&mut client, "since"), "row 1");
    assert_eq!(next_row(&mut client, "before"), "row 2");
    client.query("SAVEPOINT b");
    client.segment(&[bind("released", "s", &[])]);
    client.query("RELEASE b");
    assert_eq!(next_row(&mut client, "released"), "row 1");
    client.query("ROLLBACK TO a");
    // One of before goes on where it was.
    assert_eq!(next_row(&mut client, "before"), "row 3");
    for portal in ["since", "released"] {
        assert_eq!(next_row(&mut client, portal), "error 34000", "{portal}");
        client.query("ROLLBACK TO a");
    }
    // Its name is free again, as that of one that was never bound.
    let again = client.segment(&[bind("since", "s", &[]), execute("since", 2)]);
    assert_eq!(again, ["bound", "row 1", "row 2", "suspended", "ready T"]);
    client.query("RELEASE a");
    assert_eq!(next_row(&mut client, "since"), "row 3");
    client.query("COMMIT");
    assert_eq!(next_row(&mut client, "since"), "error 34000");
}

#[test]
fn rows_that_a_block_writes_are_answered_part_by_part() {
    let server = Server::start();
    let mut client = server.client();
    table(&mut client);
    client.query("BEGIN");
    let update = "UPDATE t SET id = id + 10 RETURNING id";
    let bound = client.segment(&[parse("u", update), bind("u", "u", &[]), execute("u", 2)]);
    assert_eq!(bound, ["parsed", "bound", "row 11", "row 12", "suspended", "ready T"]);
    assert_eq!(client.segment(&[execute("u", 2)]), ["row 13", "UPDATE 1", "ready T"]);
    assert_eq!(client.segment(&[execute("u", 2)]), ["UPDATE 0", "ready T"]);
    client.query("ROLLBACK");
}

#[test]
fn a_query_without_columns_has_rows() {
    let server = Server::start();
    let mut client = server.client();
    table(&mut client);
    client.send(&crate::support::query("SELECT FROM t WHERE id < 3"));
    let kinds: Vec<u8> = client.until_ready().iter().map(|said| said.kind).collect();
    assert_eq!(kinds, *b"TDDCZ");
    let describe = crate::support::message(b'D', b"P\0");
    client.send(&[parse("", "SELECT"), bind("", "", &[]), describe, execute("", 0)].concat());
    client.send(&crate::support::sync());
    let kinds: Vec<u8> = client.until_ready().iter().map(|said| said.kind).collect();
    assert_eq!(kinds, *b"12TDCZ");
}
