//! Of which plans it is said before they run which rows they write. The session of these tests
//! compares what is said with what is written; here is for which statements there is something.

mod session;

use session::Session;
use sql::bind::Options;
use sql::run::is_predicted;
use sql::{parse, prepare};

const DEFINITIONS: [&str; 7] = [
    "CREATE TABLE plain (id int PRIMARY KEY, n int, word text DEFAULT 'x')",
    "CREATE TABLE keyed (id int PRIMARY KEY, n int UNIQUE, word text, other int)",
    "CREATE INDEX keyed_word ON keyed (lower(word)) WHERE other > 0",
    "CREATE TABLE pair (a int, b int, PRIMARY KEY (a, b))",
    "CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, n int)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, \
     code int REFERENCES parent (code) ON UPDATE SET NULL)",
    "CREATE TABLE leaf (id int PRIMARY KEY REFERENCES child)",
];

const PREDICTED: [&str; 19] = [
    "INSERT INTO plain VALUES (1, 2), (2, 3)",
    "INSERT INTO plain VALUES (1, 2) ON CONFLICT DO NOTHING",
    "INSERT INTO plain VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
    "INSERT INTO keyed VALUES (1, 2)",
    "UPDATE plain SET n = n + 1 WHERE id = 1",
    "UPDATE plain SET id = 2 WHERE id = 1 AND n > 3",
    "UPDATE keyed SET n = 5, word = 'x' WHERE id = 1",
    "DELETE FROM keyed WHERE id = 1",
    "UPDATE plain SET n = 1 WHERE id IN (1, 2, $1)",
    "UPDATE keyed SET n = n + 9 WHERE id = 1 OR id = $1",
    "UPDATE plain SET n = 1 WHERE id = $1::bigint",
    "DELETE FROM keyed WHERE id = ANY ($1)",
    "DELETE FROM pair WHERE a = 1 AND b IN (2, 3)",
    "DELETE FROM pair WHERE (a, b) IN ((1, 2), (3, $1))",
    "INSERT INTO child VALUES (1, 1, 1)",
    "UPDATE child SET parent = 2 WHERE id = 1",
    "DELETE FROM child WHERE id = 1",
    "UPDATE parent SET n = 1 WHERE id = 1",
    "UPDATE parent SET id = 1 WHERE id = 1",
];

const OTHERS: [&str; 17] = [
    "SELECT * FROM plain WHERE id = 1",
    "INSERT INTO plain SELECT 1, 2",
    "INSERT INTO keyed VALUES (1, 2) ON CONFLICT (n) DO UPDATE SET other = 1",
    "INSERT INTO keyed VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = 1",
    "INSERT INTO keyed VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET word = 'x'",
    "INSERT INTO keyed VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET other = 1",
    "INSERT INTO plain VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET id = 2",
    "UPDATE plain SET n = 1 WHERE n = 2",
    "UPDATE keyed SET other = 1 WHERE n = 2",
    "DELETE FROM plain",
    "UPDATE keyed SET other = 1 WHERE n IN (2, 3)",
    "DELETE FROM plain WHERE id IN (SELECT 1)",
    "DELETE FROM pair WHERE a IN (2, 3)",
    "DELETE FROM parent WHERE id IN (1, 2)",
    "DELETE FROM parent WHERE id = 1",
    "UPDATE parent SET code = 1 WHERE id = 1",
    "WITH w AS (DELETE FROM plain WHERE id = 1 RETURNING n) SELECT * FROM w",
];

#[test]
fn what_one_row_or_a_list_decides_is_said_before() {
    let mut session = Session::new();
    for definition in DEFINITIONS {
        session.run(definition).unwrap();
    }
    let said = |text: &str| {
        let statement = parse::parse(text).unwrap().remove(0);
        is_predicted(&prepare(&session.catalog, &statement, &Options::default()).unwrap().plan)
    };
    for text in PREDICTED {
        assert!(said(text), "{text}");
    }
    for text in OTHERS {
        assert!(!said(text), "{text}");
    }
}
