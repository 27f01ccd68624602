//! A definition that takes long comes to the right end, whatever others write and define meanwhile.

use crate::availability::{alone, release, server, stopped, until};
use crate::support::{Client, Server, query};

/// A new client that waits for the answer to a text.
fn sent(server: &Server, text: &str) -> Client {
    let mut client = server.client();
    client.send(&query(text));
    client
}

/// Begins a definition, which stands still in the middle.
fn begin(server: &Server, text: &str) -> Client {
    let client = sent(server, text);
    stopped(1);
    client
}

fn says(client: &mut Client, text: &str, expected: &str) {
    assert_eq!(client.query(text).join(", "), expected, "{text}");
}

/// Nothing of definitions that failed is left, once it is cleared.
fn is_clear(server: &Server) {
    until("what failed is cleared", || !server.store.is_clearing());
}

#[test]
fn writers_of_the_table_wait_and_are_in_its_index() {
    let _one = alone();
    let server = server();
    let mut definition = begin(&server, "CREATE UNIQUE INDEX ON a (n)");
    let mut writers = [
        "UPDATE a SET n = 100000 WHERE id = 1",
        "INSERT INTO a VALUES (100001, 5)",
        "BEGIN; DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (2, 200000); COMMIT",
    ]
    .map(|text| sent(&server, text));
    let mut other = server.client();
    says(&mut other, "SELECT n FROM a WHERE id = 1", "row 1, SELECT 1, ready");
    release();
    assert_eq!(definition.answers(), ["CREATE INDEX", "ready"]);
    assert_eq!(writers[0].answers(), ["UPDATE 1", "ready"]);
    assert_eq!(writers[1].answers(), ["error 23505", "ready"], "the index has all rows");
    assert_eq!(writers[2].answers().last().unwrap(), "ready");
    says(&mut other, "SELECT id FROM a WHERE n = 100000", "row 1, SELECT 1, ready");
    says(&mut other, "SELECT id FROM a WHERE n IN (1, 2, 200000)", "row 2, SELECT 1, ready");
}

#[test]
fn other_definitions_of_its_table_wait() {
    let _one = alone();
    let server = server();
    let mut definition = begin(&server, "ALTER TABLE a ADD CHECK (n > 0)");
    let mut others = ["CREATE INDEX ON a (n)", "ALTER TABLE a RENAME COLUMN n TO m"]
        .map(|text| sent(&server, text));
    // One of another table does not.
    let mut other = server.client();
    says(&mut other, "CREATE INDEX ON b (n)", "CREATE INDEX, ready");
    release();
    assert_eq!(definition.answers(), ["ALTER TABLE", "ready"]);
    // In which order they come is not said.
    let said = [others[0].answers(), others[1].answers()];
    assert_eq!(said[1], ["ALTER TABLE", "ready"]);
    let index = said[0][0].as_str();
    assert!(["CREATE INDEX", "error 42703"].contains(&index), "{index}");
    says(&mut other, "INSERT INTO a VALUES (0, 0)", "error 23514, ready");
    says(&mut other, "SELECT m FROM a WHERE id = 3", "row 3, SELECT 1, ready");
}

#[test]
fn what_others_have_defined_meanwhile_counts() {
    let _one = alone();
    let server = server();
    let mut other = server.client();

    let mut definition = begin(&server, "CREATE INDEX i ON a (n)");
    says(&mut other, "CREATE INDEX i ON b (n)", "CREATE INDEX, ready");
    release();
    assert_eq!(definition.answers(), ["error 42P07", "ready"]);
    is_clear(&server);
    drop(definition);

    // A query of other columns by now.
    crate::availability::stop_again();
    let mut definition = begin(&server, "CREATE TABLE x AS SELECT * FROM a WHERE n < 3");
    says(&mut other, "ALTER TABLE a ADD z int DEFAULT 7", "ALTER TABLE, ready");
    release();
    assert_eq!(definition.answers(), ["SELECT 2", "ready"]);
    says(&mut other, "SELECT z FROM x ORDER BY id", "row 7, row 7, SELECT 2, ready");

    crate::availability::stop_again();
    let mut definition = begin(&server, "CREATE TABLE y AS SELECT a.n FROM a, c WHERE a.n < 0");
    says(&mut other, "DROP TABLE c", "DROP TABLE, ready");
    release();
    assert_eq!(definition.answers(), ["error 42P01", "ready"]);
    is_clear(&server);
    says(&mut other, "SELECT count(*) FROM y", "error 42P01, ready");
}

#[test]
fn a_block_with_definitions_commits_what_it_has_seen() {
    let _one = alone();
    let server = server();
    let mut other = server.client();
    let mut client = server.client();
    release();
    says(&mut client, "BEGIN", "BEGIN, ready T");
    says(&mut client, "SELECT sum(n) FROM a", "row 40504500, SELECT 1, ready T");
    says(&mut client, "CREATE INDEX ON a (n)", "CREATE INDEX, ready T");
    says(&mut client, "UPDATE a SET n = n + 1 WHERE id = 1", "UPDATE 1, ready T");
    crate::availability::stop_again();
    client.send(&query("COMMIT"));
    stopped(1);
    let mut writer = sent(&server, "UPDATE a SET n = 70000 WHERE id = 7");
    says(&mut other, "UPDATE b SET n = 0 WHERE id = 1", "UPDATE 1, ready");
    release();
    assert_eq!(client.answers(), ["COMMIT", "ready"]);
    assert_eq!(writer.answers(), ["UPDATE 1", "ready"]);
    says(&mut other, "SELECT id FROM a WHERE n = 70000", "row 7, SELECT 1, ready");
    says(&mut other, "SELECT id FROM a WHERE n = 2 ORDER BY id", "row 1, row 2, SELECT 2, ready");
}
