//! Damaged bytes of the store are an error of the statement that meets them, or read as other
//! values: rows, entries of indexes and the catalog's own rows.

mod session;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use session::Session;
use sql::bind::Choice;
use sql::catalog::Catalog;
use sql::ir::Space;
use sql::run::Rows;

const ROUNDS: usize = 2_000;

const STATEMENTS: [&str; 6] = [
    "SELECT * FROM t WHERE b >= 'x'",
    "SELECT c, count(*), max(a), sum(d) FROM t GROUP BY c",
    "SELECT a FROM t WHERE d > 1 ORDER BY e",
    "UPDATE t SET d = d + 1, b = b || 'y' WHERE a > 0",
    "INSERT INTO t VALUES (1, 'x', 2, 3, NULL) ON CONFLICT (b) DO UPDATE SET d = excluded.d",
    "DELETE FROM t WHERE c IS NOT NULL",
];

fn session() -> Session {
    let mut session = Session::new();
    session
        .run(
            "CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL UNIQUE, c int, \
             d numeric CHECK (d > 0), e timestamp)",
        )
        .unwrap();
    session.run("CREATE INDEX ON t (d, c DESC)").unwrap();
    session
        .run("INSERT INTO t VALUES (1, 'x', 7, 1.5, '2024-01-01'), (2, 'y', NULL, NULL, NULL)")
        .unwrap();
    session
}

#[test]
fn damaged_rows_and_entries_are_read_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let good = session();
    let mut refused = 0;
    for round in 0..ROUNDS {
        let mut session = good.clone();
        let rows: Vec<_> =
            good.state().into_iter().filter(|(space, ..)| *space != Space::Catalog).collect();
        let (space, mut key, mut row) = rows[random.random_range(0..rows.len())].clone();
        session.memory.delete(space, &key).unwrap();
        let bytes = if row.is_empty() || random.random_bool(0.3) { &mut key } else { &mut row };
        let at = random.random_range(0..bytes.len());
        bytes[at] = random.random();
        session.memory.put(space, &key, &row).unwrap();
        session.choice = [Choice::Best, Choice::Scan, Choice::Only(1), Choice::Only(2)][round % 4];
        for text in STATEMENTS {
            if let Err(error) = session.clone().run(text) {
                let state = error.state().code().to_owned();
                assert!(state != "XX000", "round {round}: {text}: {error}");
                refused += usize::from(state == "XX001");
            }
        }
    }
    assert!(refused > ROUNDS / 4, "{refused} were refused");
}

#[test]
fn damaged_catalogs_are_opened_or_refused() {
    let mut random = ChaCha8Rng::seed_from_u64(18);
    let good = session();
    let mut rows: Vec<_> =
        good.state().into_iter().filter(|(space, ..)| *space == Space::Catalog).collect();
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let place = random.random_range(0..rows.len());
        let at = random.random_range(0..rows[place].2.len());
        let before = std::mem::replace(&mut rows[place].2[at], random.random());
        let opened = Catalog::open(rows.iter().map(|(_, key, row)| (&key[..], &row[..])));
        match opened {
            Ok(catalog) => {
                let mut session = Session { catalog, ..good.clone() };
                STATEMENTS.iter().for_each(|text| drop(session.run(text)));
            }
            Err(error) => {
                assert_eq!(error.state().code(), "XX001");
                refused += 1;
            }
        }
        rows[place].2[at] = before;
    }
    assert!(refused > ROUNDS / 4, "{refused} were refused");
}
