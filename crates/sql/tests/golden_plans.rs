//! The logged form stays readable: golden bytes of plans, and any bytes are decoded or refused.
//!
//! `GOLDEN=write cargo test -p nvcaracal-sql --test golden_plans` writes the file anew; then the
//! version of the form must change, unless only new variants were added.

mod session;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use session::Session;
use sql::bind::Options;
use sql::run::{Context, run};
use sql::{ir, parse, prepare};
use std::fmt::Write;
use values::{Datum, Timestamp};

const TABLE: &str =
    "CREATE TABLE t (a int PRIMARY KEY, b varchar(8) UNIQUE, c numeric(6,2) CHECK (c >= 0))";

const ENUM: [&str; 2] = [
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TABLE e (m mood PRIMARY KEY, n mood[] DEFAULT '{ok}')",
];

const INDEXED: [&str; 3] = [
    "CREATE TABLE i (a int PRIMARY KEY, b text, c int)",
    "CREATE UNIQUE INDEX i_b ON i (lower(b)) WHERE c > 0 AND b IS NOT NULL",
    "CREATE INDEX i_c ON i ((a + c) DESC, c)",
];

const STATEMENTS: [&str; 31] = [
    "SELECT 1",
    "SELECT b, a + 1 FROM t WHERE a = 5 AND b > 'x' ORDER BY c DESC LIMIT 10 OFFSET 2",
    "SELECT b, count(*), sum(c) FILTER (WHERE a > 1) FROM t GROUP BY b HAVING max(a) > 1",
    "INSERT INTO t VALUES (1, 'x', 2.50), (2, NULL, DEFAULT) RETURNING *",
    "INSERT INTO t (a) VALUES ($1) ON CONFLICT (b) DO UPDATE SET c = excluded.c WHERE t.a > 0",
    "INSERT INTO t (a) SELECT a + 100 FROM t",
    "UPDATE t SET c = CASE WHEN c IS NULL THEN 0 ELSE COALESCE(c, 1) * 2 END WHERE b = $1",
    "DELETE FROM t WHERE a BETWEEN 1 AND 10 RETURNING a",
    "SELECT x.a, y.b FROM t x LEFT JOIN t y ON y.a = x.a + 1 AND y.c > 1 WHERE x.b <> 'q'",
    "SELECT x.a FROM t x FULL JOIN t y ON y.c = x.c, \
     LATERAL (SELECT max(a) m FROM t WHERE a < x.a) z",
    "SELECT a, (SELECT count(*) FROM t y WHERE y.b = t.b) FROM t WHERE a IN (SELECT a FROM t) \
     AND EXISTS (SELECT 1 FROM t) AND a > ALL (SELECT 0) OR ARRAY(SELECT a FROM t) IS NULL",
    "SELECT a FROM t UNION ALL (VALUES (1), (2)) EXCEPT SELECT 2 INTERSECT ALL SELECT 2 ORDER BY 1",
    "UPDATE t SET c = y.c FROM t y WHERE y.a = t.a + 1 RETURNING t.a, y.a",
    "WITH w AS (SELECT a FROM t) INSERT INTO t (a) SELECT a + 200 FROM w WHERE a = $1",
    "SELECT b, array_agg(a ORDER BY c DESC NULLS LAST, a), jsonb_object_agg(a, c) FROM t \
     GROUP BY b",
    "INSERT INTO t (a, c) SELECT a + row_number() OVER w, sum(c) OVER (w ROWS 1 PRECEDING) FROM t \
     WINDOW w AS (PARTITION BY b ORDER BY a)",
    "SELECT lag(a, 1, 0) OVER (ORDER BY a), ntile(2) OVER (ORDER BY a), count(*) OVER (ORDER BY c \
     RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING), \
     nth_value(a, 2) OVER (ORDER BY a GROUPS 1 PRECEDING) FROM t",
    "SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, c DESC",
    "WITH RECURSIVE w(n) AS (SELECT 1 UNION SELECT n + a FROM w JOIN t ON t.a = w.n WHERE n < 9) \
     INSERT INTO t (a) SELECT n + 300 FROM w",
    "INSERT INTO e (m) VALUES ($1) RETURNING m::text",
    "INSERT INTO i VALUES (1, $1, 2) ON CONFLICT (lower(b)) WHERE c > 0 AND b > '' DO NOTHING",
    "SELECT a FROM i WHERE a + c = 7 AND c < $1",
    "WITH d AS (DELETE FROM t WHERE a = $1 RETURNING *), \
     j AS (INSERT INTO i SELECT a, b, 1 FROM d) SELECT b FROM d WHERE c > 0",
    "SELECT ARRAY[m, 'ok'], ARRAY(SELECT m FROM e), enum_range('ok', m) FROM e WHERE m > 'sad'",
    "SELECT b, a + 1 FROM t WHERE a > 5 AND b > 'x' ORDER BY c DESC LIMIT 10 OFFSET 2",
    "UPDATE t SET c = 1 WHERE a IN (1, $1, 3000000000)",
    "DELETE FROM i WHERE a = ANY ($1)",
    "SELECT a FROM t WHERE (a, b) IN (SELECT c, b FROM i) AND c > 0",
    "SELECT min(a), max(b) FROM t WHERE a < 9",
    "SELECT a FROM i WHERE a + c > 7 OR a + c = 7 AND c > $1 ORDER BY a + c DESC, c LIMIT 3",
    "SELECT t.b FROM t JOIN i USING (a) ORDER BY i.c LIMIT 1 \
     FOR KEY SHARE OF i SKIP LOCKED FOR UPDATE OF t",
];

fn plans() -> Vec<Vec<u8>> {
    let mut session = Session::new();
    session.run(TABLE).unwrap();
    ENUM.iter().chain(&INDEXED).for_each(|text| drop(session.run(text).unwrap()));
    let plan = |text: &&str| {
        let statement = parse::parse(text).unwrap().remove(0);
        ir::encode(&prepare(&session.catalog, &statement, &Options::default()).unwrap().plan)
    };
    STATEMENTS.iter().map(plan).collect()
}

#[test]
fn plans_have_the_bytes_that_logs_have() {
    let mut shown = String::new();
    for (text, bytes) in STATEMENTS.iter().zip(plans()) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(shown, "{text}\n{digits}").unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/plans.golden");
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(path, &shown).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert_eq!(shown, golden);
    for line in golden.lines().skip(1).step_by(2) {
        let byte = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..line.len()).step_by(2).map(byte).collect();
        assert_eq!(ir::encode(&ir::decode(&bytes).unwrap()), bytes);
    }
}

#[test]
fn changed_plans_are_run_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut session = Session::new();
    session.run(TABLE).unwrap();
    session.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2.5), (5, NULL, NULL)").unwrap();
    let mut context = Context::at(Timestamp::parse("2024-02-29 12:00:00").unwrap());
    context.parameters = vec![Datum::Int4(1)];
    for plan in plans() {
        for _ in 0..3_000 {
            let mut bytes = plan.clone();
            for _ in 0..random.random_range(1..3) {
                let at = random.random_range(0..bytes.len());
                bytes[at] = random.random();
            }
            // A plan of other bytes may be one: nothing is asked of it but an end.
            if let Ok(decoded) = ir::decode(&bytes) {
                assert_eq!(ir::decode(&ir::encode(&decoded)).unwrap(), decoded);
                let mut memory = session.memory.clone();
                memory.begin();
                let _ = run(&decoded, &context, &mut memory);
            }
        }
    }
}
