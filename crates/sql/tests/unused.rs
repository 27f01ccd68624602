//! Whatever the parser takes is used or refused: for each field of the parser's tree that no plan
//! has a use for, a text that sets it, and the code of the answer. That no field is forgotten is
//! for the compiler to say: see `bind::door` and `ddl::door`.

mod session;

use session::Session;
use sql::ir::Name;
use sql::parse::with_stack;

const REFUSED: &[(&str, &str)] = &[
    // Queries.
    ("SELECT DISTINCT a FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES", "0A000"),
    ("SELECT * FROM t FETCH FIRST 50 PERCENT ROWS ONLY", "0A000"),
    ("SELECT * FROM t LIMIT 1 FETCH FIRST 1 ROW ONLY", "42601"),
    ("SELECT * FROM t ORDER BY ALL", "42703"),
    ("SELECT * FROM t FOR UPDATE OF u", "42P01"),
    ("SELECT a INTO TEMP x FROM t", "0A000"),
    (
        "MERGE INTO t USING (SELECT random() AS r) s ON t.a = s.r WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED THEN DO NOTHING",
        "0A000",
    ),
    ("SELECT a FROM t LIMIT 1 BY a", "42601"),
    ("SELECT a FROM t LIMIT 1, 2", "42601"),
    ("SELECT TOP 1 a FROM t", "0A000"),
    ("SELECT a FROM t QUALIFY a = 1", "0A000"),
    ("SELECT a FROM t CLUSTER BY a", "42601"),
    ("SELECT a FROM t SORT BY a", "42601"),
    ("SELECT a FROM t DISTRIBUTE BY a", "42601"),
    ("SELECT sum(sum(a)) OVER () FROM t GROUP BY ROLLUP (a)", "0A000"),
    ("SELECT DISTINCT ON (a) a FROM t GROUP BY CUBE (a)", "0A000"),
    ("SELECT rank() OVER () FROM t GROUP BY GROUPING SETS (a)", "0A000"),
    ("SELECT a FROM t GROUP BY ALL", "0A000"),
    ("SELECT a FROM t LATERAL VIEW explode(a) x AS y", "0A000"),
    ("SELECT 1 UNION BY NAME SELECT 1", "0A000"),
    // FROM.
    ("SELECT * FROM t TABLESAMPLE SYSTEM (1)", "0A000"),
    ("SELECT * FROM t TABLESAMPLE BERNOULLI (1) REPEATABLE (2)", "0A000"),
    ("SELECT * FROM (SELECT 1) s TABLESAMPLE SYSTEM (1)", "0A000"),
    ("SELECT * FROM v TABLESAMPLE SYSTEM (1)", "0A000"),
    ("SELECT * FROM t WITH ORDINALITY", "42601"),
    ("SELECT * FROM t AS x (a int)", "0A000"),
    ("SELECT * FROM (SELECT 1) AS x (a int)", "0A000"),
    ("SELECT * FROM generate_series(1, 2) AS x (a int)", "0A000"),
    ("SELECT * FROM t JOIN t u USING (a) AS j", "0A000"),
    ("SELECT * FROM ROWS FROM (generate_series(1, 2))", "42601"),
    ("WITH x (a int) AS (SELECT 1) SELECT * FROM x", "0A000"),
    ("UPDATE t TABLESAMPLE SYSTEM (1) SET b = 1", "0A000"),
    ("DELETE FROM t TABLESAMPLE SYSTEM (1)", "0A000"),
    // Calls.
    ("SELECT count(DISTINCT *) FROM t", "42601"),
    ("SELECT count(ALL *) FROM t", "42601"),
    ("SELECT count(* ORDER BY 1) FROM t", "42601"),
    ("SELECT count(*, 1) FROM t", "42601"),
    ("SELECT first_value(a) IGNORE NULLS OVER () FROM t", "0A000"),
    ("SELECT first_value(a) RESPECT NULLS OVER () FROM t", "0A000"),
    ("SELECT count(a) IGNORE NULLS FROM t", "0A000"),
    ("SELECT rank(1) WITHIN GROUP (ORDER BY a) FROM t", "0A000"),
    ("SELECT abs(x => 1)", "0A000"),
    ("SELECT abs(DISTINCT 1)", "42809"),
    ("SELECT abs(1 ORDER BY 1)", "42809"),
    ("SELECT abs(1) FILTER (WHERE true)", "42809"),
    ("SELECT abs(1) OVER ()", "42809"),
    ("SELECT generate_series(1, 2) FILTER (WHERE false)", "42809"),
    ("SELECT generate_series(1, 2) OVER ()", "42809"),
    ("SELECT generate_series(DISTINCT 1, 2)", "42809"),
    ("SELECT (SELECT count(*) FILTER (WHERE t.b > 0)) FROM t", "0A000"),
    ("SELECT sum(a) OVER (ROWS 1 PRECEDING EXCLUDE TIES) FROM t", "42601"),
    ("SELECT a COLLATE \"de_DE\" FROM t", "0A000"),
    // Changes.
    ("INSERT INTO t VALUES (9, 9) ON DUPLICATE KEY UPDATE b = 1", "0A000"),
    ("INSERT IGNORE INTO t VALUES (9, 9)", "42601"),
    ("INSERT OVERWRITE t VALUES (9, 9)", "42601"),
    ("INSERT t VALUES (9, 9)", "42601"),
    ("INSERT INTO TABLE t VALUES (9, 9)", "42601"),
    ("INSERT INTO t SET a = 9", "42601"),
    ("INSERT INTO t PARTITION (a = 1) VALUES (9, 9)", "42601"),
    ("REPLACE INTO t VALUES (9, 9)", "42601"),
    ("MERGE t USING t u ON t.a = u.a WHEN MATCHED THEN DELETE", "0A000"),
    ("MERGE INTO t USING t u ON t.a = u.a WHEN NOT MATCHED BY SOURCE THEN DELETE", "0A000"),
    ("MERGE INTO t USING t u ON t.a = u.a WHEN NOT MATCHED THEN INSERT ROW", "42601"),
    ("MERGE INTO t USING t u ON t.a = u.a WHEN MATCHED THEN UPDATE SET *", "0A000"),
    ("MERGE INTO t USING t u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = 1 WHERE true", "0A000"),
    ("MERGE INTO t USING t u ON t.a = u.a WHEN MATCHED THEN DELETE RETURNING a", "0A000"),
    ("UPDATE t SET b = 1 LIMIT 1", "0A000"),
    ("UPDATE t SET b = 1 ORDER BY a", "42601"),
    ("UPDATE OR IGNORE t SET b = 1", "0A000"),
    ("UPDATE t ON CLUSTER c SET b = 1", "0A000"),
    ("DELETE FROM t LIMIT 1", "0A000"),
    ("DELETE FROM t ORDER BY a", "0A000"),
    ("DELETE t FROM t", "0A000"),
    // Definitions.
    ("CREATE TEMP TABLE x (a int)", "0A000"),
    ("CREATE GLOBAL TEMPORARY TABLE x (a int)", "0A000"),
    ("CREATE TABLE x (a int) ON COMMIT DROP", "42P16"),
    ("CREATE TABLE x (a int) WITH (oids = true)", "0A000"),
    ("CREATE TABLE x (a int) PARTITION BY RANGE (a)", "0A000"),
    ("CREATE TABLE x (a int) INHERITS (t)", "0A000"),
    ("CREATE TABLE x (a int) CLUSTER BY (a)", "42601"),
    ("CREATE TABLE x (a int) COMMENT 'x'", "0A000"),
    ("CREATE TABLE x (a int UNIQUE DEFERRABLE)", "0A000"),
    ("CREATE TABLE x (a int, b int, PRIMARY KEY (a) INCLUDE (b))", "0A000"),
    ("CREATE TABLE x (a int, CHECK (a > 0) NOT ENFORCED)", "0A000"),
    ("CREATE TABLE x (a int GENERATED ALWAYS AS (1) VIRTUAL)", "42601"),
    ("CREATE TABLE x (a int GENERATED ALWAYS AS (1))", "42601"),
    ("CREATE EXTENSION IF NOT EXISTS hstore", "0A000"),
    ("COMMENT ON FUNCTION x(int) IS 'x'", "0A000"),
    ("COMMENT ON ROLE x IS 'x'", "0A000"),
    ("COMMENT ON SCHEMA pg_catalog IS 'x'", "0A000"),
    ("COMMENT ON EXTENSION hstore IS 'x'", "42704"),
    ("CREATE TABLE x (a int, b int, FOREIGN KEY (a, b) REFERENCES t MATCH FULL)", "0A000"),
    ("CREATE TABLE x (a int REFERENCES t NOT ENFORCED)", "0A000"),
    ("CREATE INDEX x ON t USING hash (a)", "0A000"),
    ("CREATE INDEX x ON t (a) WITH (deduplicate_items = off)", "0A000"),
    ("CREATE TEMP VIEW x AS SELECT 1", "0A000"),
    ("CREATE MATERIALIZED VIEW x AS SELECT 1", "0A000"),
    ("CREATE VIEW x WITH (security_barrier) AS SELECT 1", "0A000"),
    ("CREATE VIEW x AS SELECT 1 WITH CHECK OPTION", "0A000"),
    ("CREATE TEMP SEQUENCE x", "0A000"),
    ("ALTER TABLE t ADD COLUMN x int FIRST", "42601"),
    ("ALTER TABLE t ADD CHECK (a > 0) NOT VALID", "0A000"),
    ("TRUNCATE TABLE IF EXISTS t", "0A000"),
    ("DROP TABLE t PURGE", "0A000"),
    ("DROP TEMPORARY TABLE t", "42601"),
];

fn session() -> Session {
    let mut session = Session::new();
    for text in [
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "CREATE VIEW v AS SELECT a FROM t",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    ] {
        session.run(text).unwrap();
    }
    session
}

#[test]
fn what_nothing_uses_is_refused() {
    with_stack(|| {
        let base = session();
        let mut wrong = Vec::new();
        for (text, code) in REFUSED {
            let code = *code;
            let found = match base.clone().run(text) {
                Ok(answer) => format!("ok, {} rows", answer.rows.len()),
                Err(error) if error.state().code() == code => continue,
                Err(error) => error.to_string(),
            };
            wrong.push(format!("{text}: {found} instead of {code}"));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn what_was_ignored_is_used() {
    with_stack(|| {
        let mut session = session();
        let mut rows = |text: &str| session.run(text).unwrap().rows;
        assert_eq!(rows("SELECT a FROM t ORDER BY a FETCH FIRST ROW ONLY"), [["1"]]);
        assert_eq!(rows("SELECT a FROM t ORDER BY a FETCH NEXT 2 ROWS ONLY").len(), 2);
        rows("INSERT INTO t VALUES (5, 5), (6, 6) LIMIT 1");
        assert_eq!(rows("SELECT a FROM t WHERE a > 3"), [["5"]]);
        rows("INSERT INTO t VALUES (8, 8), (7, 7) ORDER BY 1 LIMIT 1");
        assert_eq!(rows("SELECT a FROM t WHERE a > 6"), [["7"]]);
        rows("CREATE TABLE i (a int GENERATED BY DEFAULT AS IDENTITY, b text)");
        rows("INSERT INTO i OVERRIDING USER VALUE VALUES (10, 'x'), (20, 'y')");
        rows("INSERT INTO i OVERRIDING USER VALUE SELECT 30, 'z'");
        assert_eq!(rows("SELECT a FROM i ORDER BY a"), [["1"], ["2"], ["3"]]);
        rows("INSERT INTO i OVERRIDING SYSTEM VALUE VALUES (10, 'x')");
        assert_eq!(rows("SELECT max(a) FROM i"), [["10"]]);
    });
}

#[test]
fn definitions_have_no_parameters() {
    with_stack(|| {
        let base = session();
        for text in [
            "CREATE TABLE x (a int DEFAULT $1)",
            "CREATE TABLE x (a int CHECK (a > $1))",
            "CREATE TABLE x (a int, CHECK (a > $1))",
            "CREATE VIEW x AS SELECT a + $1 AS y FROM t",
            "CREATE VIEW x AS SELECT a FROM t WHERE a > $1",
            "CREATE INDEX x ON t (b) WHERE b > $1",
            "CREATE INDEX x ON t ((b + $1))",
            "ALTER TABLE t ALTER COLUMN b SET DEFAULT $1",
            "ALTER TABLE t ADD COLUMN x int DEFAULT $1",
            "ALTER TABLE t ADD CHECK (b > $1)",
            "ALTER TABLE t ALTER COLUMN b TYPE bigint USING b + $1",
            "CREATE TABLE x AS SELECT $1::int AS q",
        ] {
            let mut session = base.clone();
            let before = session.state();
            let refused = session.run(text).unwrap_err();
            assert_eq!(refused.state().code(), "42P02", "{text}: {refused}");
            assert_eq!(session.state(), before, "{text}");
        }
    });
}

#[test]
fn the_index_of_a_constraint_stays() {
    with_stack(|| {
        let mut session = session();
        session.run("CREATE TABLE u (a int UNIQUE, b int, CONSTRAINT c UNIQUE (b))").unwrap();
        session.run("CREATE UNIQUE INDEX u_i ON u (a, b)").unwrap();
        for index in ["u_a_key", "c", "t_pkey"] {
            let refused = session.run(&format!("DROP INDEX {index}")).unwrap_err();
            assert_eq!(refused.state().code(), "2BP01", "{index}: {refused}");
        }
        // An index that is no constraint goes, and has duplicates refused until then.
        session.run("CREATE UNIQUE INDEX t_b ON t (b)").unwrap();
        let refused = session.run("INSERT INTO t VALUES (9, 1)").unwrap_err();
        assert_eq!(refused.state().code(), "23505");
        session.run("INSERT INTO t VALUES (9, 1) ON CONFLICT (b) DO NOTHING").unwrap();
        session.run("CREATE TABLE child (b int REFERENCES t (b))").unwrap();
        let refused = session.run("DROP INDEX t_b").unwrap_err();
        assert_eq!(refused.state().code(), "2BP01");
        session.run("DROP TABLE child").unwrap();
        session.run("DROP INDEX t_b").unwrap();
        session.run("INSERT INTO t VALUES (9, 1)").unwrap();
        session.run("ALTER TABLE u DROP CONSTRAINT c").unwrap();
        assert!(
            session.reopened().index(&Name::public("u_i")).is_some()
                && session.catalog.index(&Name::public("c")).is_none()
        );
    });
}
