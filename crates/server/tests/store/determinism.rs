//! Answers and rows are those of the statements' order, whatever the workers and the epochs.

use crate::client::{Client, noon};
use crate::script::{Target, shown};
use crate::session::Session;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use server::store::{Store, StoreOptions, Tuning};

/// What statements are about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum About {
    Rows,
    /// Numbers of sequences; only statements that are never deferred, as each of their numbers is
    /// given once.
    Numbers,
    ForeignKeys,
    /// Rows with entries in indexes of a part of the rows, and over expressions.
    Indexes,
    /// Statements with parts that write.
    Parts,
}

/// A statement between parents and children.
fn family(random: &mut ChaCha8Rng) -> String {
    let (key, other) = (random.random_range(0..30), random.random_range(0..12));
    let child = ["kept", "gone", "freed"][random.random_range(0..3)];
    match random.random_range(0..14) {
        0..3 => format!("INSERT INTO parent VALUES ({other}, 'p{other}') RETURNING id"),
        3..7 => format!("INSERT INTO {child} VALUES ({key}, {other})"),
        7 => format!("INSERT INTO {child} VALUES ({key}, NULL), ({}, {other})", key + 100),
        8 => format!("UPDATE {child} SET parent = {other} WHERE id = {key} RETURNING id"),
        9 => format!("DELETE FROM {child} WHERE id = {key}"),
        10 => format!("UPDATE parent SET id = id + 50 WHERE id = {other}"),
        11 => format!("UPDATE parent SET name = 'x' WHERE id = {other}"),
        12 => format!("SELECT count(*), sum(parent) FROM {child}"),
        _ => format!("DELETE FROM parent WHERE id = {other} RETURNING id"),
    }
}

/// A statement of rows that have entries in some indexes, by their values.
fn indexed(random: &mut ChaCha8Rng) -> String {
    let (key, other) = (random.random_range(0..40), random.random_range(0..12));
    let gone = ["true", "false", "NULL"][random.random_range(0..3)];
    match random.random_range(0..12) {
        0..4 => format!("INSERT INTO i VALUES ({key}, 'U{other}', {other}, {gone}) RETURNING *"),
        4 => format!(
            "INSERT INTO i VALUES ({key}, 'u{other}', 3, false) \
             ON CONFLICT (lower(name)) WHERE NOT gone DO UPDATE SET n = i.n + 1 RETURNING id"
        ),
        5 => format!("INSERT INTO i VALUES ({key}, 'x{key}', 3, {gone}) ON CONFLICT DO NOTHING"),
        6 => format!("UPDATE i SET gone = {gone} WHERE id = {key} RETURNING name"),
        7 => format!("UPDATE i SET name = upper(name), n = n + 1 WHERE id = {key}"),
        8 => format!("UPDATE i SET n = {other} WHERE n + id = {key} RETURNING id"),
        9 => format!("DELETE FROM i WHERE lower(name) = 'u{other}' AND NOT gone RETURNING id"),
        10 => format!("DELETE FROM i WHERE id = {key}"),
        _ => format!("SELECT id FROM i WHERE n + id > {key} AND n > 2 ORDER BY id"),
    }
}

/// A statement with parts that write.
fn parted(random: &mut ChaCha8Rng) -> String {
    let (key, other) = (random.random_range(0..40), random.random_range(0..40));
    match random.random_range(0..6) {
        0 | 1 => {
            format!("INSERT INTO t VALUES ({key}, 'u{other}', {other}) ON CONFLICT DO NOTHING")
        }
        2 => format!(
            "WITH d AS (DELETE FROM t WHERE a BETWEEN {other} AND {key} RETURNING *) \
             INSERT INTO i SELECT a, b, c, false FROM d RETURNING id"
        ),
        3 => format!(
            "WITH d AS (DELETE FROM i WHERE id = {key} RETURNING *), \
             u AS (UPDATE t SET c = c + 1 WHERE a = {other} RETURNING c), \
             n AS (INSERT INTO t SELECT id, name, n FROM d RETURNING a) \
             SELECT (SELECT count(*) FROM d), (SELECT max(c) FROM u), (SELECT sum(a) FROM n)"
        ),
        4 => format!(
            "WITH u AS (UPDATE t SET b = 'v' || a WHERE a = {key} RETURNING a, c) \
             UPDATE i SET n = u.c FROM u WHERE i.id = {other} RETURNING i.id, u.a"
        ),
        _ => "SELECT count(*), sum(c), max(b) FROM t".to_owned(),
    }
}

/// A statement of random rows.
fn statement(random: &mut ChaCha8Rng, about: About) -> String {
    match about {
        About::ForeignKeys => return family(random),
        About::Indexes => return indexed(random),
        About::Parts => return parted(random),
        About::Rows | About::Numbers => {}
    }
    let (key, other) = (random.random_range(0..40), random.random_range(0..40));
    if about == About::Numbers {
        return match random.random_range(0..4) {
            0 => format!("INSERT INTO n (name) VALUES ('{key}') RETURNING id, name"),
            1 => "INSERT INTO n (name) SELECT name FROM n WHERE id < 4 RETURNING id".to_owned(),
            2 => format!("DELETE FROM n WHERE name = '{other}'"),
            _ => "SELECT nextval('s')".to_owned(),
        };
    }
    match random.random_range(0..12) {
        0..4 => format!("INSERT INTO t VALUES ({key}, 'u{other}', {other}) RETURNING *"),
        4 => format!("INSERT INTO t VALUES ({key}, 'u{key}', 1) ON CONFLICT DO NOTHING"),
        5 => format!(
            "INSERT INTO t VALUES ({key}, 'u{other}', 1) ON CONFLICT (a) DO UPDATE SET c = t.c + 1"
        ),
        6 => format!("UPDATE t SET c = c + {other} WHERE a = {key} RETURNING c"),
        7 => format!("UPDATE t SET b = 'u{other}' WHERE a = {key} RETURNING a, b"),
        8 => format!("UPDATE t SET a = a + 100 WHERE a = {key}"),
        9 => format!("DELETE FROM t WHERE a = {key} RETURNING b"),
        10 => format!("UPDATE t SET c = 100 / (c - 5) WHERE a BETWEEN {other} AND {key}"),
        _ => format!("SELECT count(*), sum(c), max(b) FROM t WHERE c > {key}"),
    }
}

const TABLES: [&str; 14] = [
    "CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE, c int CHECK (c < 1000))",
    "CREATE INDEX ON t (c)",
    "CREATE SEQUENCE s",
    "CREATE TABLE n (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)",
    "CREATE INDEX ON n (name)",
    "CREATE TABLE parent (id int PRIMARY KEY, name text)",
    "CREATE TABLE kept (id int PRIMARY KEY, parent int REFERENCES parent)",
    "CREATE TABLE gone (id int PRIMARY KEY, parent bigint REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE freed (id int PRIMARY KEY, \
     parent int REFERENCES parent ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE i (id int PRIMARY KEY, name text, n int, gone boolean)",
    "CREATE UNIQUE INDEX i_name ON i (lower(name)) WHERE NOT gone",
    "CREATE INDEX i_sum ON i ((n + id) DESC, name) WHERE n > 2",
    "CREATE INDEX i_upper ON i (upper(name), gone)",
    "CREATE TABLE grandchild (gone int PRIMARY KEY REFERENCES gone ON DELETE CASCADE)",
];

/// What a statement came to: its rows, or its code.
type Outcome = Result<Vec<Vec<String>>, String>;

fn outcome(rows: values::Result<Vec<Vec<String>>>) -> Outcome {
    rows.map_err(|error| error.state().code().to_owned())
}

fn in_memory(statements: &[String]) -> (Vec<Outcome>, Session) {
    let mut session = Session::new();
    for text in TABLES {
        session.run(text).unwrap();
    }
    let run = |text: &String| outcome(session.run(text).map(|answer| answer.rows));
    (statements.iter().map(run).collect(), session)
}

fn on_store(
    statements: &[String],
    workers: usize,
    epoch_calls_max: usize,
) -> (Vec<Outcome>, Client) {
    // No epoch is serial as a whole.
    let tuning = Tuning { serial_calls_max: 0, epoch_calls_max, ..Tuning::default() };
    let options = StoreOptions { workers, tuning, clock: noon, ..StoreOptions::memory() };
    let mut client = Client::new(&Store::open(options).unwrap());
    for text in TABLES {
        client.run(text).unwrap();
    }
    let pending: Vec<_> =
        statements.iter().map(|text| client.submit(text, Vec::new()).unwrap()).collect();
    let shown_rows = |rows: Vec<Vec<values::Datum>>| rows.iter().map(|row| shown(row)).collect();
    let outcomes = pending
        .into_iter()
        .map(|pending| outcome(pending.wait().map(|answer| shown_rows(answer.rows))))
        .collect();
    (outcomes, client)
}

#[test]
fn o_46_answers_rows_and_numbers_are_the_same_for_any_workers_and_epochs() {
    let all = [About::Rows, About::Numbers, About::ForeignKeys, About::Indexes, About::Parts];
    for about in all {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let statements: Vec<String> = (0..600).map(|_| statement(&mut random, about)).collect();
        let (expected, session) = in_memory(&statements);
        let failed = expected.iter().filter(|outcome| outcome.is_err()).count();
        let may_all_succeed = matches!(about, About::Numbers | About::Parts);
        assert!(may_all_succeed || (50..400).contains(&failed), "{failed} statements fail");
        for (workers, calls) in [(1, 20_000), (2, 20_000), (4, 20_000), (2, 1), (2, 7), (4, 50)] {
            let (found, client) = on_store(&statements, workers, calls);
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let place = format!("{workers} workers, {calls} calls, {at}: {}", statements[at]);
                assert_eq!(found, expected, "{place}");
            }
            assert!(client.state() == Target::state(&session), "{workers} workers, {calls} calls");
        }
    }
}

impl Target for Session {
    fn rows(&mut self, text: &str) -> values::Result<Vec<Vec<String>>> {
        self.run(text).map(|answer| answer.rows)
    }

    fn state(&self) -> Vec<(sql::ir::Space, Vec<u8>, Vec<u8>)> {
        Session::state(self)
    }
}
