//! Cursors of SQL beside what is written behind DECLARE, and at the ends of blocks and savepoints.

use crate::support::{Client, Server};

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
