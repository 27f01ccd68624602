//! Isolation levels and READ ONLY: what they mean for blocks, texts and pipelines, and how they are
//! set and shown.

use crate::support::{Client, Server, bind, execute, flush, parse, run, sync};

fn started() -> Server {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE t (id int PRIMARY KEY, a int)");
    client.query("INSERT INTO t VALUES (1, 0), (2, 0)");
    server
}

fn shown(client: &mut Client, name: &str) -> String {
    let text = client.query(&format!("SHOW {name}"));
    let function = client.query(&format!("SELECT current_setting('{name}')"));
    assert_eq!(text[0], function[0], "{name}");
    let planned = client.query(&format!("SELECT current_setting(lower('{name}'))"));
    assert_eq!(text[0], planned[0], "{name}");
    text[0].clone()
}

/// Takes messages up to the command tag.
fn until_complete(client: &mut Client) {
    while client.next().expect("an answer").kind != b'C' {}
}

/// A pipeline reads what it was told before its Sync as part of its one transaction.
#[test]
fn a_pipeline_is_one_transaction_at_its_level() {
    for (level, committed) in
        [("read committed", true), ("repeatable read", false), ("serializable", false)]
    {
        let server = started();
        let (mut one, mut other) = (server.client(), server.client());
        one.query(&format!("SET default_transaction_isolation = '{level}'"));
        one.send(&[run("SELECT a FROM t WHERE id = 2"), flush()].concat());
        until_complete(&mut one);
        let text = "SELECT a FROM t WHERE id = 1; UPDATE t SET a = a + 1 WHERE id = 2";
        assert_eq!(other.query(text), ["row 0", "SELECT 1", "UPDATE 1", "ready"]);
        let said = one.segment(&[run("UPDATE t SET a = a + 1 WHERE id = 1")]);
        assert_eq!(said.iter().any(|said| said == "error 40001"), !committed, "{level}: {said:?}");
        let now = one.query("SELECT a FROM t WHERE id = 1");
        assert_eq!(now[0], if committed { "row 1" } else { "row 0" }, "{level}");
    }
}

/// Reads alone have one snapshot.
#[test]
fn a_pipeline_that_only_reads_has_one_snapshot_where_its_level_says_so() {
    for (level, second) in [("read committed", "row 1"), ("serializable", "row 0")] {
        let server = started();
        let (mut one, mut other) = (server.client(), server.client());
        one.query(&format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"));
        one.send(&[run("SELECT a FROM t WHERE id = 2"), flush()].concat());
        until_complete(&mut one);
        assert_eq!(other.query("UPDATE t SET a = a + 1")[0], "UPDATE 2");
        let said = one.segment(&[run("SELECT a FROM t WHERE id = 1")]);
        assert_eq!(said[2..], [second, "SELECT 1", "ready"], "{level}");
    }
}

#[test]
fn answers_of_texts_and_pipelines_are_those_of_any_level() {
    let server = started();
    let mut client = server.client();
    for level in ["read committed", "repeatable read", "serializable"] {
        client.query(&format!("SET default_transaction_isolation = '{level}'"));
        assert_eq!(client.query("SELECT 1")[0], "row 1");
        let said = client.query("SELECT a FROM t WHERE id = 2; SELECT count(*) FROM t");
        assert_eq!(said, ["row 0", "SELECT 1", "row 2", "SELECT 1", "ready"], "{level}");
        let said = client.query("SELECT a FROM t WHERE id = 2; UPDATE t SET a = 0 RETURNING id");
        assert_eq!(said, ["row 0", "SELECT 1", "row 1", "row 2", "UPDATE 2", "ready"]);
        let said = client.query("SELECT 1; SHOW timezone; UPDATE t SET a = 0; SELECT 2");
        assert_eq!(
            said,
            ["row 1", "SELECT 1", "row UTC", "SHOW", "UPDATE 2", "row 2", "SELECT 1", "ready"]
        );
        let said = client.query("SELECT 1; SELECT nothing; SELECT 2");
        assert_eq!(said, ["row 1", "SELECT 1", "error 42703", "ready"]);
        let said = client.query("SELECT 1; BEGIN; SELECT 2; COMMIT; SELECT 3; SELECT 4");
        let without = |said: Vec<String>| said.into_iter().filter(|one| !one.starts_with("notice"));
        let said: Vec<String> = without(said).collect();
        let expected = [
            "row 1", "SELECT 1", "BEGIN", "row 2", "SELECT 1", "COMMIT", "row 3", "SELECT 1",
            "row 4", "SELECT 1", "ready",
        ];
        assert_eq!(said, expected, "{level}");
        let text = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT a FROM t WHERE id = 1; \
                    UPDATE t SET a = 0; COMMIT";
        assert_eq!(
            client.query(text),
            ["BEGIN", "row 0", "SELECT 1", "UPDATE 2", "COMMIT", "ready"]
        );
        let said = client.segment(&[run("SELECT 1"), run("SELECT 2"), run("SELECT 3")]);
        let rows: Vec<_> = said.iter().filter(|said| said.starts_with("row")).collect();
        assert_eq!(rows, ["row 1", "row 2", "row 3"], "{level}");
        let said =
            client.segment(&[run("SELECT a FROM t WHERE id = 1"), run("UPDATE t SET a = 0")]);
        assert_eq!(said.last().unwrap(), "ready");
        assert!(said.contains(&"row 0".to_owned()) && said.contains(&"UPDATE 2".to_owned()));
        let said = client.segment(&[run("SELECT a FROM t WHERE id = 1"), run("BEGIN")]);
        assert_eq!(said.last().unwrap(), "ready T", "{level}");
        assert_eq!(client.query("COMMIT"), ["COMMIT", "ready"]);
        let said = client.segment(&[run("SELECT 1/0"), run("SELECT 2")]);
        assert_eq!(said[said.len() - 2..], ["error 22012", "ready"], "{level}");
        let said = client.segment(&[run("SELECT 1"), parse("", "SELECT nothing"), run("SELECT 2")]);
        assert_eq!(said, ["parsed", "bound", "row 1", "SELECT 1", "error 42703", "ready"]);
        // Without a row limit, and with one.
        let limited = [parse("", "SELECT id FROM t"), bind("", "", &[])];
        let limited = [limited.concat(), execute("", 1)].concat();
        client.send(&[limited, execute("", 0), sync()].concat());
        let said = client.answers();
        assert_eq!(said[2..], ["row 1", "suspended", "row 2", "SELECT 1", "ready"], "{level}");
    }
}

#[test]
fn modes_are_shown_as_they_are() {
    let server = started();
    let mut client = server.client();
    let mut check = |text: &str, level: &str, read_only: &str| {
        client.query(text);
        assert_eq!(shown(&mut client, "transaction_isolation"), format!("row {level}"), "{text}");
        assert_eq!(
            shown(&mut client, "transaction_read_only"),
            format!("row {read_only}"),
            "{text}"
        );
    };
    check("SELECT 1", "read committed", "off");
    check("SET default_transaction_isolation = 'serializable'", "serializable", "off");
    check("SET default_transaction_read_only = on", "serializable", "on");
    check("BEGIN", "serializable", "on");
    check("COMMIT", "serializable", "on");
    check("BEGIN READ WRITE ISOLATION LEVEL READ COMMITTED", "read committed", "off");
    check("COMMIT; BEGIN; SET transaction_isolation = 'repeatable read'", "repeatable read", "on");
    let text = "COMMIT; BEGIN READ WRITE; SET LOCAL transaction_isolation = 'repeatable read'";
    check(text, "repeatable read", "off");
    check("SET LOCAL transaction_read_only = true", "repeatable read", "on");
    check("RESET ALL", "repeatable read", "on");
    check("ROLLBACK", "serializable", "on");
    check("RESET ALL", "read committed", "off");
    let session =
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
    check(session, "repeatable read", "on");
    check("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "repeatable read", "off");
    check("BEGIN; SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "repeatable read", "off");
    check("COMMIT", "repeatable read", "on");
    check("SET default_transaction_read_only = off", "repeatable read", "off");
    let mut refused = |text: &str, code: &str| {
        assert_eq!(client.query(text)[0], format!("error {code}"), "{text}");
    };
    refused("SET transaction_isolation = 'none'", "22023");
    refused("SET default_transaction_read_only = 'perhaps'", "22023");
    refused("SET extra_float_digits = 0", "0A000");
    refused("SET TIME ZONE INTERVAL '3' DAY", "0A000");
    // What would be too late for SET is too late for RESET.
    for (begin, mode) in [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "isolation"),
        ("BEGIN READ ONLY", "read_only"),
        ("BEGIN DEFERRABLE", "deferrable"),
    ] {
        for before in ["SELECT 1", "SAVEPOINT s"] {
            client.query(begin);
            client.query(before);
            let said = client.query(&format!("RESET transaction_{mode}"));
            assert_eq!(said, ["error 25001", "ready E"], "{begin}; {before}");
            client.query("ROLLBACK");
        }
        client.query(begin);
        assert_eq!(client.query(&format!("RESET transaction_{mode}")), ["RESET", "ready T"]);
        client.query("ROLLBACK");
    }
}

/// What a statement by the extended protocol is answered.
fn piped(client: &mut Client, text: &str) -> Vec<String> {
    let said = client.segment(&[run(text)]);
    said.into_iter().filter(|one| !matches!(one.as_str(), "parsed" | "bound")).collect()
}

#[test]
fn what_would_lock_rows_is_refused_where_nothing_may_be_written() {
    let server = started();
    let mut client = server.client();
    client.query("CREATE TABLE locked (id int PRIMARY KEY)");
    let queries = ["SELECT id FROM locked FOR UPDATE", "SELECT id FROM locked FOR SHARE NOWAIT"];
    for query in queries {
        assert_eq!(piped(&mut client, query), ["SELECT 0", "ready"], "{query}");
        for begin in ["BEGIN READ ONLY", "BEGIN; SELECT 1; SET TRANSACTION READ ONLY"] {
            client.query(begin);
            let said = piped(&mut client, query);
            assert_eq!(said, ["error 25006", "ready E"], "{begin}; {query}");
            client.query("ROLLBACK");
        }
        client.query("SET default_transaction_read_only = on");
        assert_eq!(client.query(query), ["error 25006", "ready"], "{query}");
        assert_eq!(piped(&mut client, query), ["error 25006", "ready"], "{query}");
        client.query("RESET default_transaction_read_only");
    }
}

#[test]
fn statements_of_the_protocol_are_shown() {
    let server = started();
    let mut client = server.client();
    let named = [parse("n", "SELECT $1::int, $2::text"), parse("", "SELECT 2")].concat();
    client.segment(&[named]);
    let shown = "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements";
    let row = "row n|SELECT $1::int, $2::text|{integer,text}|f";
    assert_eq!(client.query(shown), [row, "SELECT 1", "ready"]);
    assert_eq!(piped(&mut client, shown), [row, "SELECT 1", "ready"]);
    assert_eq!(client.query("DEALLOCATE n"), ["DEALLOCATE", "ready"]);
    assert_eq!(client.query(shown), ["SELECT 0", "ready"]);
}

#[test]
fn a_session_that_only_reads_refuses_whatever_writes() {
    let server = started();
    let mut client = server.client();
    client.query("CREATE SEQUENCE s");
    client.query("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY");
    for level in ["read committed", "serializable"] {
        client.query(&format!("SET default_transaction_isolation = '{level}'"));
        for text in [
            "INSERT INTO t VALUES (3, 0)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "WITH w AS (UPDATE t SET a = 1 RETURNING id) SELECT * FROM w",
            "CREATE TABLE u (a int)",
            "CREATE TABLE u AS SELECT 1 AS a",
            "TRUNCATE t",
            "DROP TABLE t",
            "SELECT nextval('s')",
            "SELECT setval('s', 7)",
            "COPY t FROM STDIN",
        ] {
            assert_eq!(client.query(text), ["error 25006", "ready"], "{text}");
            let is_copy = text.starts_with("COPY");
            let code = if is_copy { "error 0A000" } else { "error 25006" };
            assert_eq!(client.query(&format!("{text}; SELECT 1"))[0], code, "{text}");
            let two = client.query(&format!("SELECT 7; {text}"));
            assert_eq!(two[..2], ["row 7", "SELECT 1"], "{text}");
            assert!(two[2].starts_with("error"), "{text}: {two:?}");
            let said = client.segment(&[run(text)]);
            assert_eq!(said[said.len() - 2..], ["error 25006", "ready"], "{text}");
            assert_eq!(client.query(&format!("BEGIN; {text}; COMMIT"))[1], code, "{text}");
            assert_eq!(client.query("ROLLBACK"), ["ROLLBACK", "ready"]);
        }
        assert_eq!(client.query("SELECT sum(a) FROM t")[0], "row 0");
        assert_eq!(client.query("SELECT 1; SELECT count(*) FROM t")[2], "row 2");
        // READ WRITE is said by the block.
        let text = "BEGIN READ WRITE; UPDATE t SET a = 0; COMMIT";
        assert_eq!(client.query(text), ["BEGIN", "UPDATE 2", "COMMIT", "ready"]);
    }
    client.query("SET default_transaction_read_only = off");
    assert_eq!(client.query("UPDATE t SET a = 0")[0], "UPDATE 2");
}

/// What a client was told by an error of the catalog, of EXPLAIN and of names that are looked up
/// counts when its block writes.
#[test]
fn a_block_commits_on_the_catalog_that_errors_were_of() {
    for (ask, code) in [
        ("SELECT 1 FROM u", "error 42P01"),
        ("EXPLAIN SELECT 1 FROM t WHERE a = 1", ""),
        ("ANALYZE u", "error 42P01"),
        ("ANALYZE t", ""),
    ] {
        let server = started();
        let (mut one, mut other) = (server.client(), server.client());
        one.query("BEGIN");
        one.query("SAVEPOINT s");
        let said = one.query(ask);
        assert!(code.is_empty() || said[0] == code, "{said:?}");
        one.query("ROLLBACK TO s");
        other.query("CREATE TABLE u (a int)");
        assert_eq!(one.query("UPDATE t SET a = 7")[0], "UPDATE 2", "{ask}");
        assert_eq!(one.query("COMMIT"), ["error 40001", "ready"], "{ask}");
    }
}

/// Also if the statement was rolled back to a savepoint.
#[test]
fn a_block_that_met_a_limit_of_steps_does_not_commit() {
    let server = started();
    let mut client = server.client();
    client.query("BEGIN");
    client.query("UPDATE t SET a = 7");
    client.query("SAVEPOINT s");
    let many = "SELECT count(*) FROM t, generate_series(1, 2000000)";
    assert_eq!(client.query(many)[0], "error 54001");
    client.query("ROLLBACK TO s");
    assert_eq!(client.query("SELECT sum(a) FROM t")[0], "row 14");
    assert_eq!(client.query("COMMIT"), ["error 54001", "ready"]);
    assert_eq!(client.query("SELECT sum(a) FROM t")[0], "row 0");
}
