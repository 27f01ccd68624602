//! No text makes the server stop: what is too deep, too long or no statement is refused, and text
//! of random tokens is parsed, bound and run, or refused.

mod session;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use session::Session;
use sql::parse::{DEPTH_MAX, LEVELS_MAX, parse, with_stack};
use values::Position;

fn state(text: &str) -> String {
    with_stack(|| match Session::new().run(text) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.state().code().to_owned(),
    })
}

#[test]
fn deep_and_long_statements_are_refused_before_they_are_parsed() {
    let chain =
        |operator: &str, count: usize| format!("SELECT 1{}", format!("{operator}1").repeat(count));
    let nested = |open: &str, close: &str, count: usize| {
        format!("SELECT {}1{}", open.repeat(count), close.repeat(count))
    };
    assert_eq!(state(&chain("+", LEVELS_MAX - 10)), "ok");
    for operator in ["+", " OR ", " AND ", "::int+", " - -", "||"] {
        assert_eq!(state(&chain(operator, 100_000)), "54001", "{operator}");
    }
    assert_eq!(state(&nested("(", ")", DEPTH_MAX - 1)), "ok");
    for (open, close) in
        [("(", ")"), ("CASE WHEN true THEN ", " END"), ("abs(", ")"), ("ARRAY[", "]")]
    {
        assert_eq!(state(&nested(open, close, 10_000)), "54001", "{open}");
    }
    for prefix in ["NOT ", "- ", "+ ", "~ "] {
        assert_eq!(state(&format!("SELECT {}1", prefix.repeat(10_000))), "54001", "{prefix}");
    }
    let unions = "SELECT 1".to_owned() + &" UNION ALL SELECT 1".repeat(100_000);
    assert_eq!(state(&unions), "54001");
    let list = (0..60_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(state(&format!("SELECT 1 IN ({list})")), "ok");
    assert_eq!(state(&format!("SELECT '{}'", "x".repeat(17 << 20))), "54000");
}

#[test]
fn groups_and_aggregates_have_a_limit() {
    let query = |count: usize| {
        let sums = (0..count).map(|number| format!("sum({number})")).collect::<Vec<_>>();
        let keys = vec!["'x'"; 64_000].join(",");
        format!("SELECT ARRAY[{}] GROUP BY {keys}", sums.join(","))
    };
    assert_eq!(state(&query(10)), "ok");
    assert_eq!(state(&query(2_000)), "54011");
}

/// What a join looks up for one row is given back before the next; what was collected is not.
#[test]
fn rows_beside_rows_that_are_looked_up_are_counted() {
    let lateral = |rows: usize| {
        format!(
            "SELECT repeat('x', 10000) FROM generate_series(1, {rows}) g, \
             LATERAL (SELECT repeat('y', 10000), g) x"
        )
    };
    assert_eq!(state(&lateral(5_000)), "ok");
    assert_eq!(state(&lateral(7_000)), "53200");
}

#[test]
fn joins_and_queries_in_queries_have_limits() {
    let table = |count: usize| {
        let tables = (0..count).map(|at| format!("(SELECT {at} AS c) t{at}")).collect::<Vec<_>>();
        format!("SELECT t0.c FROM {}", tables.join(", "))
    };
    assert_eq!(state(&table(64)), "ok");
    assert_eq!(state(&table(65)), "54001");
    let nested = |count: usize| format!("{}1{}", "SELECT (".repeat(count), ")".repeat(count));
    assert_eq!(state(&nested(DEPTH_MAX - 1)), "ok");
    assert_eq!(state(&nested(DEPTH_MAX + 1)), "54001");
    let chain = |what: &str, count: usize| format!("SELECT 1{}", what.repeat(count));
    assert_eq!(state(&chain(" UNION ALL SELECT 1", 999)), "ok");
    assert_eq!(state(&chain(" UNION SELECT 1", 999)), "ok");
    // Queries of WITH, each of which needs the one before.
    let with = |count: usize| {
        let mut parts = vec!["w0 AS (SELECT 1 AS n)".to_owned()];
        parts.extend((1..count).map(|at| format!("w{at} AS (SELECT n FROM w{})", at - 1)));
        format!("WITH {} SELECT n FROM w{}", parts.join(", "), count - 1)
    };
    assert_eq!(state(&with(60)), "ok");
    assert_eq!(state(&with(64)), "54001");
    let wide = vec!["1"; 1_665].join(", ");
    assert_eq!(state(&format!("SELECT {wide}")), "54011");
}

#[test]
fn joins_and_subqueries_count_steps_and_memory() {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    let rows = (0..900).map(|number| format!("({number}, 'x')")).collect::<Vec<_>>().join(",");
    session.run(&format!("INSERT INTO t VALUES {rows}")).unwrap();
    let mut code = |text: &str| match session.run(text) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.state().code().to_owned(),
    };
    assert_eq!(code("SELECT count(*) FROM t x, t y, t z WHERE x.a + y.a + z.a = -1"), "54001");
    assert_eq!(code("SELECT count(*) FROM t x JOIN t y ON x.a = y.a"), "ok");
    assert_eq!(code("SELECT x.a FROM t x, t y, t z LIMIT 10"), "ok");
    let long = "SELECT repeat(b, 100000) AS c FROM t";
    assert_eq!(code(long), "53200");
    // What is only counted is not kept.
    assert_eq!(code(&format!("SELECT count(*) FROM ({long}) x")), "ok");
    assert_eq!(code(&format!("SELECT count(*) FROM ({long} UNION ALL {long}) x")), "ok");
    assert_eq!(code(&format!("SELECT count(*) FROM ({long} UNION {long}) x")), "53200");
    let distinct = "SELECT DISTINCT repeat(b, 100000) || a AS c FROM t";
    assert_eq!(code(&format!("SELECT count(*) FROM ({distinct}) x")), "53200");
    assert_eq!(code(&format!("WITH w AS ({long}) SELECT count(*) FROM w x, w y")), "53200");
    assert_eq!(code(&format!("SELECT 1 FROM ({long}) x ORDER BY c LIMIT 5")), "ok");
    assert_eq!(code(&format!("SELECT 1 FROM ({long}) x ORDER BY c")), "53200");
    assert_eq!(
        code("SELECT max(c) FROM (SELECT repeat(b, 100000) AS c, a FROM t) x GROUP BY a"),
        "53200"
    );
    // What is computed for a row is gone with the next one.
    let array = "SELECT count((SELECT max(repeat(y.b, 100000)) FROM t y WHERE y.a = x.a)) FROM t x";
    assert_eq!(code(array), "ok");
    let lateral = "SELECT count(*) FROM t x, LATERAL (SELECT repeat(x.b, 100000) AS c) y \
                   WHERE length(y.c) = 1";
    assert_eq!(code(lateral), "ok");
}

#[test]
fn steps_and_memory_have_limits() {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a int PRIMARY KEY, b text)").unwrap();
    let rows = (0..2_000).map(|number| format!("({number}, 'x')")).collect::<Vec<_>>().join(",");
    session.run(&format!("INSERT INTO t VALUES {rows}")).unwrap();
    session.memory = {
        let mut small = sql::run::Memory::new(5_000);
        for (space, key, row) in session.memory.rows() {
            sql::run::Rows::put(&mut small, space, key, row).unwrap();
        }
        small
    };
    let before = session.state();
    let error = session.run("UPDATE t SET b = b || 'y' WHERE a >= 0").unwrap_err();
    assert_eq!(error.state().code(), "54001");
    assert_eq!(session.state(), before);
    let error = session.run("SELECT repeat('abcdefgh', 100000000)").unwrap_err();
    assert_eq!(error.state().code(), "54000");
}

#[test]
fn the_rows_of_an_answer_count_as_memory() {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    let rows = (0..90).map(|number| format!("({number})")).collect::<Vec<_>>().join(",");
    session.run(&format!("INSERT INTO t VALUES {rows}")).unwrap();
    let before = session.state();
    for text in [
        "SELECT repeat('x', 1000000) FROM t",
        "UPDATE t SET a = a + 1000 RETURNING repeat('x', 1000000)",
    ] {
        let error = session.run(text).unwrap_err();
        assert_eq!(error.state().code(), "53200", "{text}");
    }
    assert_eq!(session.state(), before);
    assert!(session.run("SELECT repeat('x', 1000000) FROM t WHERE a < 9").is_ok());
}

#[test]
fn a_row_has_16_mib_at_most() {
    let insert = |characters: usize| {
        let mut session = Session::new();
        session.run("CREATE TABLE t (a text, b text)").unwrap();
        let value = format!("repeat('x', {characters})");
        session.run(&format!("INSERT INTO t VALUES ({value}, {value})"))
    };
    // Layout, NULLs, the hidden key and the ends of both texts take 20 bytes.
    assert!(insert((8 << 20) - 10).is_ok());
    assert_eq!(insert((8 << 20) - 9).unwrap_err().state().code(), "54000");
}

#[test]
fn errors_have_positions() {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a int)").unwrap();
    for (text, position) in [
        ("SELECT a, nothing FROM t", 11),
        ("SELECT '\u{e9}', nothing FROM t", 13),
        ("SELECT a\nFROM nothing", 15),
        ("SELECT a FROM t WHERE a = 'x'", 27),
        ("SELEC a", 1),
        ("SELECT a FROM t WHERE", 22),
        ("INSERT INTO t VALUES (true)", 23),
        ("SELECT $", 8),
    ] {
        let error = session.run(text).unwrap_err();
        assert_eq!(error.position().map(Position::number), Some(position), "{text}: {error}");
    }
}

#[test]
fn parameters_get_their_types() {
    let mut session = Session::new();
    session.run("CREATE TABLE t (a bigint PRIMARY KEY, b numeric(5,1), c timestamptz)").unwrap();
    let insert = "INSERT INTO t VALUES ($1, $2, $3) RETURNING b";
    let answer = session.run_with(insert, &[Some("7"), Some("1.25"), None]).unwrap();
    assert_eq!(answer.rows, [["1.3"]]);
    let answer =
        session.run_with("SELECT a + $1 FROM t WHERE a = $2", &[Some("1"), Some("7")]).unwrap();
    assert_eq!(answer.rows, [["8"]]);
    let answer = session.run_with("SELECT a FROM t WHERE a = $1", &[None]).unwrap();
    assert!(answer.rows.is_empty());
    assert_eq!(session.run("SELECT $2::int").unwrap_err().state().code(), "42P18");
    assert_eq!(session.run("SELECT $0").unwrap_err().state().code(), "42P02");
}

#[test]
fn windows_and_recursion_have_limits() {
    let mut session = Session::new();
    session.memory = sql::run::Memory::new(u64::MAX);
    let code = |session: &mut Session, text: &str| match session.run(text) {
        Ok(answer) => answer.rows.concat().concat(),
        Err(error) => error.state().code().to_owned(),
    };
    let rows = "SELECT count(*) FROM (SELECT count(t) OVER () FROM \
                (SELECT repeat('x', 1000) AS t FROM generate_series(1, 100000)) s) q";
    assert_eq!(code(&mut session, rows), "53200", "rows that wait");
    let results = "SELECT count(r) FROM (SELECT array_agg(g) OVER (ORDER BY g) AS r \
                   FROM generate_series(1, 5000) g) q";
    assert_eq!(code(&mut session, results), "53200", "results");
    let known = "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t) SELECT max(n) FROM t";
    assert_eq!(code(&mut session, known), "53200", "rows of a UNION");
    // What a step needs is free for the next one, so many steps need little.
    let long = "WITH RECURSIVE t(n, x) AS (SELECT 1, repeat('x', 10000) UNION ALL \
                SELECT n + 1, x FROM t WHERE n < 10000) SELECT max(n) FROM t";
    assert_eq!(code(&mut session, long), "10000");
    let wide = "SELECT count(*) FROM (SELECT sum(g) OVER (ORDER BY g), lag(g) OVER (ORDER BY g) \
                FROM generate_series(1, 20000) g) q";
    assert_eq!(code(&mut session, wide), "20000");
    session.memory = sql::run::Memory::new(100_000);
    let endless =
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT max(n) FROM t";
    assert_eq!(code(&mut session, endless), "54001");
    let frames = "SELECT count(c) FROM (SELECT count(*) OVER (ORDER BY g ROWS 1000 PRECEDING) AS c \
                  FROM generate_series(1, 2000) g) q";
    assert_eq!(code(&mut session, frames), "54001", "rows of frames are steps");
    let json = "WITH RECURSIVE t(n, j) AS (SELECT 1, '1'::jsonb UNION ALL \
                SELECT n + 1, jsonb_build_array(j) FROM t WHERE n < 200) SELECT max(n) FROM t";
    assert_eq!(code(&mut session, json), "54001", "JSON in JSON");
}

/// Tokens that are likely to make statements.
const TOKENS: [&str; 98] = [
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "VALUES",
    "UPDATE",
    "SET",
    "DELETE",
    "t",
    "a",
    "b",
    "c",
    "*",
    ",",
    "(",
    ")",
    "1",
    "2.5",
    "'x'",
    "'2024-01-01'",
    "NULL",
    "true",
    "=",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "IS",
    "ORDER BY",
    "GROUP BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "count(*)",
    "sum(a)",
    "max(b)",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "::int",
    "::text",
    "::numeric(3,1)",
    "::date",
    "RETURNING",
    "ON CONFLICT",
    "DO NOTHING",
    "DO UPDATE SET",
    "excluded.b",
    "$1",
    "now()",
    "coalesce(",
    "abs(",
    "CREATE TABLE u (",
    "int",
    "PRIMARY KEY",
    "DEFAULT",
    "nextval('s')",
    "ARRAY[",
    "]",
    "interval '1 day'",
    "JOIN t x ON",
    "LEFT JOIN t y ON",
    "FULL JOIN t z USING (a)",
    ", t u",
    "NATURAL JOIN t v",
    "x.a",
    "y.b",
    "EXISTS (SELECT 1 FROM t w WHERE w.a =",
    "(SELECT max(a) FROM t)",
    "IN (SELECT a FROM t)",
    "= ANY (SELECT a FROM t)",
    "ARRAY(SELECT b FROM t)",
    "UNION SELECT",
    "EXCEPT ALL SELECT a FROM t",
    "(SELECT a AS k, b FROM t WHERE",
    ") q",
    "OVER (ORDER BY a)",
    "OVER (PARTITION BY b ORDER BY a ROWS 1 PRECEDING)",
    "OVER w",
    "WINDOW w AS (ORDER BY b)",
    "rank()",
    "lag(a, 1)",
    "DISTINCT ON (b)",
    "WITH RECURSIVE t(a, b) AS (SELECT 1, 'x' UNION SELECT a + 1, b FROM t WHERE",
];

#[test]
fn text_of_random_tokens_is_run_or_refused() {
    with_stack(|| {
        let mut base = Session::new();
        base.run("CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE, c numeric)").unwrap();
        base.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2.5), (3, NULL, NULL)").unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let forms = [
            "SELECT # FROM t WHERE #",
            "SELECT #",
            "SELECT a, # FROM t ORDER BY #",
            "UPDATE t SET b = # WHERE #",
            "DELETE FROM t WHERE #",
            "INSERT INTO t VALUES (#, #, #) RETURNING #",
            "#",
            "SELECT # FROM t GROUP BY #",
            "SELECT # FROM t JOIN t x ON # LEFT JOIN t y ON # WHERE #",
            "SELECT # FROM t, LATERAL (SELECT # FROM t x WHERE #) q WHERE (SELECT # FROM t) = #",
        ];
        let mut ran = 0;
        for round in 0..30_000 {
            let form = forms[random.random_range(0..forms.len())];
            let mut text = String::new();
            for part in form.split_inclusive('#') {
                text += part.trim_end_matches('#');
                if part.ends_with('#') {
                    let most = if random.random_bool(0.6) { 3 } else { 9 };
                    for _ in 0..random.random_range(1..=most) {
                        text += TOKENS[random.random_range(0..TOKENS.len())];
                        text.push(' ');
                    }
                }
            }
            if parse(&text).map_or(0, |statements| statements.len()) != 1 {
                continue;
            }
            let mut session = base.clone();
            match session.run_with(&text, &[Some("1")]) {
                Ok(_) => ran += 1,
                Err(error) => {
                    let state = error.state().code().to_owned();
                    assert!(!state.starts_with("XX"), "round {round}: {text}: {error}");
                }
            }
        }
        assert!(ran > 200, "only {ran} ran");
    });
}
