//! Random statements whose rows keys find and put in order, against the same statements by a scan
//! of the whole table and a sort by expressions that no key has.

use super::session::Session;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sql::bind::Choice;

const TABLES: [&str; 11] = [
    "CREATE TABLE t (id int PRIMARY KEY, a int, b smallint NOT NULL, c text, d numeric(6,2), \
     e bigint UNIQUE)",
    "CREATE INDEX t_a ON t (a)",
    "CREATE INDEX t_ba ON t (b DESC, a)",
    "CREATE INDEX t_c ON t (c)",
    "CREATE INDEX t_ac ON t (a, c DESC NULLS LAST)",
    "CREATE INDEX t_ad ON t (a DESC NULLS LAST, d)",
    "CREATE INDEX t_lower ON t (lower(c), b)",
    "CREATE INDEX t_part ON t (d, b) WHERE a > 2",
    "CREATE TABLE u (x int, y text, z int, PRIMARY KEY (y, x))",
    "CREATE INDEX u_z ON u (z DESC)",
    "CREATE UNIQUE INDEX u_zx ON u (z, x)",
];

/// The columns of both tables, and an expression with each one's values that no key has.
const OF_T: [(&str, &str); 7] = [
    ("id", "id + 0"),
    ("a", "a + 0"),
    ("b", "b + 0"),
    ("c", "c || ''"),
    ("d", "d + 0"),
    ("e", "e + 0"),
    ("lower(c)", "lower(c) || ''"),
];
const OF_U: [(&str, &str); 3] = [("x", "x + 0"), ("y", "y || ''"), ("z", "z + 0")];

/// A text; some are so long that keys of them are cut.
fn text(random: &mut ChaCha8Rng) -> String {
    let number = random.random_range(0..6);
    let letter = ["k", "K", "m"].choose(random).unwrap();
    match random.random_range(0..3) {
        0 => format!("'{}{number}'", letter.repeat(random.random_range(195..250))),
        1 => format!("'{}{number}'", letter.repeat(240)),
        _ => format!("'{letter}{number}'"),
    }
}

fn number(random: &mut ChaCha8Rng) -> String {
    random.random_range(0..7).to_string()
}

/// A value as a column has it.
fn value(column: &str, random: &mut ChaCha8Rng) -> String {
    match column {
        "id" | "e" => random.random_range(0..90).to_string(),
        "c" | "y" => text(random),
        "lower(c)" => text(random).to_lowercase(),
        "d" => format!("{}.{}", number(random), number(random)),
        _ => number(random),
    }
}

fn or_null(value: String, random: &mut ChaCha8Rng) -> String {
    if random.random_range(0..5) == 0 { "NULL".to_owned() } else { value }
}

fn filled(random: &mut ChaCha8Rng) -> Session {
    let mut session = Session::new();
    for text in TABLES {
        session.run(text).unwrap();
    }
    for id in 0..80 {
        let a = or_null(number(random), random);
        let c = or_null(text(random), random);
        let d = or_null(value("d", random), random);
        let e = or_null((id * 7 % 80).to_string(), random);
        let b = number(random);
        session.run(&format!("INSERT INTO t VALUES ({id}, {a}, {b}, {c}, {d}, {e})")).unwrap();
        let (x, y, z) = (id / 2, text(random), or_null(number(random), random));
        let inserted = format!("INSERT INTO u VALUES ({x}, {y}, {z}) ON CONFLICT DO NOTHING");
        session.run(&inserted).unwrap();
    }
    session
}

/// A list in which values may be of a wider type, NULL, and there twice.
fn list(column: &str, random: &mut ChaCha8Rng) -> Vec<String> {
    let count = random.random_range(1..6);
    let item = |_| {
        let own = or_null(value(column, random), random);
        match random.random_range(0..9) {
            0 if matches!(column, "id" | "a" | "b" | "e") => format!("{own}::bigint"),
            1 if matches!(column, "id" | "a" | "b" | "e") => format!("{own}::numeric"),
            2 if matches!(column, "id" | "a" | "e") => "3000000000".to_owned(),
            3 if matches!(column, "id" | "a" | "e") => "1.5".to_owned(),
            _ => own,
        }
    };
    (0..count).map(item).collect()
}

fn condition(columns: &[(&str, &str)], random: &mut ChaCha8Rng) -> String {
    let (column, _) = columns.choose(random).unwrap();
    let (other, _) = columns.choose(random).unwrap();
    let own = value(column, random);
    let sign = *["<", "<=", ">", ">="].choose(random).unwrap();
    match random.random_range(0..11) {
        0 => format!("{column} = {own}"),
        1 => exists(columns, random),
        9 => format!("{column} {sign} {own}"),
        2 => format!("{column} BETWEEN {own} AND {}", value(column, random)),
        3 | 4 => format!("{column} IN ({})", list(column, random).join(", ")),
        5 => {
            let list: Vec<String> =
                (0..random.random_range(1..5)).map(|_| value(column, random)).collect();
            format!("{column} = ANY (ARRAY[{}, NULL])", list.join(", "))
        }
        6 => format!(
            "({column} = {own} AND {other} = {} OR {other} = {} AND {column} = {})",
            value(other, random),
            value(other, random),
            value(column, random),
        ),
        7 => format!("({column}, {other}) {sign} ({own}, {})", value(other, random)),
        8 => {
            format!("{column} IN (SELECT {column} FROM {} WHERE {column} < {own})", table(columns))
        }
        _ => format!("({column} = {own} OR {column} = {})", value(column, random)),
    }
}

/// Rows of the other table with values of a row, or without.
fn exists(columns: &[(&str, &str)], random: &mut ChaCha8Rng) -> String {
    let pairs = ["t.a = u.z", "u.x = t.id", "t.c = u.y", "t.b = u.z AND u.x = t.a", "t.d = u.z"];
    let pair = *pairs.choose(random).unwrap();
    let other = if table(columns) == "t" { "u" } else { "t" };
    let own = if other == "u" { "x < 30" } else { "id < 60" };
    if random.random_range(0..3) == 0 {
        let pair = if other == "u" { "t.a IN (SELECT u.z" } else { "u.z IN (SELECT t.a" };
        return format!("{pair} FROM {other} WHERE t.b = u.x AND {own})");
    }
    let not = *["", "NOT "].choose(random).unwrap();
    format!("{not}EXISTS (SELECT FROM {other} WHERE {pair} AND {own})")
}

fn table(columns: &[(&str, &str)]) -> &'static str {
    if columns.len() == OF_T.len() { "t" } else { "u" }
}

/// ORDER BY by columns, and the same by expressions that no key has.
fn order(columns: &[(&str, &str)], random: &mut ChaCha8Rng) -> [String; 2] {
    let count = random.random_range(1..4);
    let keys: Vec<&(&str, &str)> = columns.choose_multiple(random, count).collect();
    let direction = *["", " DESC"].choose(random).unwrap();
    let suffixes: Vec<&str> = keys
        .iter()
        .map(|_| match random.random_range(0..6) {
            0 => " DESC NULLS LAST",
            1 => " NULLS FIRST",
            2 => "",
            _ => direction,
        })
        .collect();
    [0, 1].map(|at| {
        let of = |(key, suffix): (&&(&str, &str), &&str)| {
            format!("{}{suffix}", if at == 0 { key.0 } else { key.1 })
        };
        let keys: Vec<String> = keys.iter().zip(&suffixes).map(of).collect();
        format!("ORDER BY {}", keys.join(", "))
    })
}

fn conditions(columns: &[(&str, &str)], random: &mut ChaCha8Rng) -> String {
    let count = random.random_range(0..3);
    let all: Vec<String> = (0..count).map(|_| condition(columns, random)).collect();
    if all.is_empty() { String::new() } else { format!("WHERE {}", all.join(" AND ")) }
}

/// The same statement twice: as keys may find and order its rows, and as only a sort can.
fn queries(random: &mut ChaCha8Rng) -> [String; 2] {
    let columns: &[(&str, &str)] = if random.random_range(0..3) > 0 { &OF_T } else { &OF_U };
    let table = table(columns);
    let conditions = conditions(columns, random);
    if random.random_range(0..4) == 0 {
        let count = random.random_range(1..3);
        let two: Vec<&(&str, &str)> = columns.choose_multiple(random, count).collect();
        return [0, 1].map(|at| {
            let of = |pair: &&(&str, &str)| {
                let value = if at == 0 { pair.0 } else { pair.1 };
                format!("min({value}), max({value})")
            };
            let all: Vec<String> = two.iter().map(of).collect();
            format!("SELECT {} FROM {table} {conditions}", all.join(", "))
        });
    }
    let orders = order(columns, random);
    let limit = match random.random_range(0..4) {
        0 => String::new(),
        1 => format!("LIMIT {} OFFSET {}", random.random_range(0..5), random.random_range(0..5)),
        _ => format!("LIMIT {}", random.random_range(1..40)),
    };
    orders.map(|order| format!("SELECT * FROM {table} {conditions} {order} {limit}"))
}

/// The paths that are compared with a scan.
fn choices() -> impl Iterator<Item = Choice> {
    (0..9).map(Choice::Only).chain([Choice::Best, Choice::Loop])
}

#[test]
fn keys_find_and_order_the_rows_that_a_scan_and_a_sort_do() {
    for seed in 0..4 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let mut session = filled(random);
        for _ in 0..600 {
            let [text, sorted] = queries(random);
            session.choice = Choice::Scan;
            let expected = session.run(&sorted).unwrap().rows;
            for choice in choices() {
                session.choice = choice;
                let found = session.run(&text).unwrap().rows;
                assert_eq!(found, expected, "seed {seed}, {choice:?}: {text}");
            }
        }
    }
}

#[test]
fn rows_are_written_in_one_order_by_all_keys() {
    for seed in 0..4 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let full = filled(random);
        for _ in 0..200 {
            let columns: &[(&str, &str)] =
                if random.random_range(0..3) > 0 { &OF_T } else { &OF_U };
            let (table, conditions) = (table(columns), conditions(columns, random));
            let own = if table == "t" { "id" } else { "x" };
            let text = match random.random_range(0..4) {
                0 => format!("DELETE FROM {table} {conditions} RETURNING *"),
                1 => format!("UPDATE {table} SET {own} = {own} + 1000 {conditions} RETURNING *"),
                2 => format!(
                    "UPDATE {table} SET {own} = {own} + 1000 + n FROM (VALUES (3, 1), (5, 2), \
                     (3, 3), (NULL, 4), (7, 5)) v (k, n) WHERE {own} = v.k RETURNING *"
                ),
                _ => format!(
                    "DELETE FROM {table} USING generate_series(2, 40, 3) k WHERE {own} = k \
                     RETURNING *"
                ),
            };
            let mut outcomes = Vec::new();
            for choice in [Choice::Scan, Choice::Backward].into_iter().chain(choices()) {
                let mut session = full.clone();
                session.choice = choice;
                let answer = session.run(&text).map(|answer| (answer.tag, answer.rows));
                outcomes.push((answer.map_err(|error| error.to_string()), session.state()));
            }
            let is_same = outcomes.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(is_same, "seed {seed}: {text}");
        }
    }
}
