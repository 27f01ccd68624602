//! EXPLAIN ANALYZE runs its statement, within the transaction around it.

use crate::support::{Server, run};

/// What is answered, without times.
fn told(said: Vec<String>) -> Vec<String> {
    let is_told = |said: &&String| said.starts_with("row ") || said.starts_with("error ");
    said.iter().filter(is_told).cloned().collect()
}

#[test]
fn a_statement_that_is_analyzed_takes_place() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE t (id int PRIMARY KEY, a int)");
    let analyze = "EXPLAIN (ANALYZE, TIMING off, SUMMARY off)";
    let mut ask = |text: &str| told(client.query(text));
    assert_eq!(
        ask(&format!("{analyze} INSERT INTO t VALUES (1, 0), (2, 0) RETURNING id")),
        ["row Insert on t (actual rows=2 loops=1)", "row   ->  Values Scan"]
    );
    assert_eq!(ask("SELECT count(*) FROM t"), ["row 2"]);
    assert_eq!(ask("EXPLAIN DELETE FROM t"), ["row Delete on t", "row   ->  Seq Scan on t"]);
    assert_eq!(ask("SELECT count(*) FROM t"), ["row 2"]);
    assert_eq!(
        ask(&format!("BEGIN; {analyze} DELETE FROM t; SELECT count(*) FROM t; ROLLBACK")),
        ["row Delete on t (actual rows=0 loops=1)", "row   ->  Seq Scan on t", "row 0"]
    );
    ask(&format!("{analyze} DELETE FROM t; SELECT 1 / 0"));
    assert_eq!(ask("SELECT count(*) FROM t"), ["row 2"]);
    let refused = ask(&format!("BEGIN READ ONLY; {analyze} DELETE FROM t"));
    assert!(refused[0].starts_with("error 25006"), "{refused:?}");
    ask("ROLLBACK; PREPARE p(int) AS SELECT * FROM t WHERE id = $1");
    assert_eq!(
        ask(&format!("{analyze} EXECUTE p(2)"))[0],
        "row Index Scan using t_pkey on t (actual rows=1 loops=1)"
    );
    let shown = ask("EXPLAIN (FORMAT JSON) SELECT a FROM t").concat();
    assert!(shown.contains("\"Node Type\": \"Seq Scan\""), "{shown}");
}

/// What a pipeline has behind it may still fail, and takes it back.
#[test]
fn a_pipeline_that_fails_takes_back_what_was_analyzed() {
    let server = Server::start();
    let mut client = server.client();
    client.query("CREATE TABLE t (id int PRIMARY KEY, a int)");
    let insert = run("EXPLAIN ANALYZE INSERT INTO t VALUES (1, 0)");
    let failing = run("SELECT 1 / (SELECT count(*) - count(*) FROM t)");
    client.segment(&[insert.clone(), failing]);
    assert_eq!(told(client.query("SELECT count(*) FROM t")), ["row 0"]);
    client.segment(&[insert]);
    assert_eq!(told(client.query("SELECT count(*) FROM t")), ["row 1"]);
}
