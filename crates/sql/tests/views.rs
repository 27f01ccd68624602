//! Views where PostgreSQL says something else, and what other definitions do to them.

mod session;

use session::Session;
use sql::catalog::Delta;
use sql::parse::with_stack;
use values::Error;

fn session(texts: &[&str]) -> Session {
    let mut session = Session::new();
    for text in texts {
        session.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    session
}

fn refused(session: &mut Session, text: &str, code: &str) -> Error {
    let error = session.run(text).unwrap_err();
    assert_eq!(error.state().code(), code, "{text}: {error}");
    error
}

#[test]
fn a_view_keeps_its_names_and_never_selects_from_itself() {
    let mut session = session(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE VIEW v AS SELECT a, b FROM t",
        "CREATE VIEW w AS SELECT a FROM v",
    ]);
    refused(&mut session, "CREATE OR REPLACE VIEW v AS SELECT a, b AS c FROM t", "42P16");
    refused(&mut session, "CREATE OR REPLACE VIEW v AS SELECT a, b FROM v", "42P17");
    refused(&mut session, "CREATE OR REPLACE VIEW v AS SELECT w.a, b FROM w, t", "42P17");
    session.run("CREATE OR REPLACE VIEW v AS SELECT a, b, a + 1 AS c FROM t").unwrap();
    session.run("INSERT INTO t VALUES (1, 'x')").unwrap();
    assert_eq!(session.run("SELECT * FROM v, w").unwrap().rows, [["1", "x", "2", "1"]]);
}

#[test]
fn what_is_not_done_through_views_is_refused() {
    let mut session = session(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE VIEW counted AS SELECT count(*) AS a FROM t",
    ]);
    for text in [
        "INSERT INTO v VALUES (1) ON CONFLICT DO NOTHING",
        "COPY v FROM STDIN",
        "CREATE MATERIALIZED VIEW m AS SELECT 1",
        "CREATE TEMPORARY VIEW m AS SELECT 1",
        "CREATE VIEW m WITH (security_barrier) AS SELECT 1",
        "CREATE VIEW m AS SELECT a FROM t WITH CHECK OPTION",
        "CREATE VIEW m AS SELECT a FROM t WITH LOCAL CHECK OPTION",
        "CREATE VIEW m AS SELECT a FROM t WITH CASCADED CHECK OPTION",
    ] {
        refused(&mut session, text, "0A000");
    }
    refused(&mut session, "CREATE VIEW m AS SELECT $1 + 1 AS a", "42P02");
    let error = refused(&mut session, "DELETE FROM counted", "55000");
    assert!(error.hint().unwrap().contains("Write to the table"));
}

/// A condition on a view's columns finds rows by the table's key.
#[test]
fn conditions_reach_through_views() {
    let mut session = session(&[
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "CREATE VIEW v AS SELECT b + 1 AS c, a AS key FROM t WHERE b >= 0",
        "CREATE VIEW w (x, y) AS SELECT key, c * 2 FROM v WHERE c > 0",
    ]);
    let rows: Vec<String> = (0..1_000).map(|n| format!("({n}, {n})")).collect();
    session.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    session.run("SELECT x FROM w").unwrap();
    let all = session.memory.steps_done();
    assert_eq!(session.run("SELECT y FROM w WHERE x = 5").unwrap().rows, [["12"]]);
    assert!(session.memory.steps_done() * 20 < all);
    session.run("SELECT t.a, w.y FROM t JOIN w ON w.x = t.a WHERE t.a = 7").unwrap();
    assert!(session.memory.steps_done() * 20 < all);
}

#[test]
fn views_in_views_have_limits() {
    with_stack(|| {
        let mut session = session(&["CREATE TABLE t (a int)", "CREATE VIEW v0 AS SELECT a FROM t"]);
        for at in 1..32 {
            session.run(&format!("CREATE VIEW v{at} AS SELECT a FROM v{}", at - 1)).unwrap();
        }
        refused(&mut session, "CREATE VIEW v32 AS SELECT a FROM v31", "54001");
        session.run("SELECT a FROM v31").unwrap();
        // Each level doubles the queries.
        session.run("CREATE VIEW d0 AS SELECT DISTINCT a FROM t").unwrap();
        let double = |at: usize| {
            let inner = at - 1;
            format!("CREATE VIEW d{at} AS SELECT DISTINCT x.a FROM d{inner} x, d{inner} y")
        };
        let refused = (1..20).find_map(|at| session.run(&double(at)).err());
        assert_eq!(refused.unwrap().state().code(), "54001");
    });
}

/// Any definition after which a view would not find its columns is refused: here one that another
/// program could have made.
#[test]
fn a_view_has_the_columns_that_it_had() {
    let session = session(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text, c int)",
        "CREATE VIEW v AS SELECT *, 'a' AS more FROM t",
    ]);
    let mut table =
        sql::catalog::Table::clone(session.catalog.table(&sql::ir::Name::public("t")).unwrap());
    let mut column = table.relation.columns[2].clone();
    column.name = "later".to_owned();
    table.relation.columns.push(column);
    table.columns.push(Default::default());
    let mut delta = Delta::default();
    delta.put_table(&table);
    let mut wider = session.clone();
    wider.catalog = session.catalog.with(&delta).unwrap();
    assert_eq!(wider.run("SELECT * FROM v").unwrap().columns, ["a", "b", "c", "more"]);
    assert_eq!(wider.run("SELECT * FROM t").unwrap().columns, ["a", "b", "c", "later"]);
}
