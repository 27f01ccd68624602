//! Definitions: what they accept, what they refuse, and the rows behind them.

use super::dice::Dice;
use super::script::Script;
use super::statement::{Extended, Sending, Statement, Step};
use crate::tree::{Kind, Tree};

/// Definitions of a table and what depends on it, with rows that meet them.
pub(crate) fn script(dice: &mut Dice) -> Script {
    let mut script = Script::default();
    script.text(
        "CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c text DEFAULT 'x', d numeric(6,2), \
         CONSTRAINT small CHECK (b < 100))",
    );
    script.text("CREATE TABLE u (a int, b int, CONSTRAINT pair UNIQUE (a, b))");
    script.text("INSERT INTO t VALUES (1, 1, 'p', 1.5), (2, 2, 'q', NULL), (3, NULL, NULL, 2.25)");
    let is_block = dice.one_in(3);
    if is_block {
        script.text("BEGIN");
    }
    for _ in 0..dice.between(4, 12) {
        match dice.one_in(4) {
            true => script.steps.push(with_parameter(dice)),
            false => {
                let text = text(dice);
                script.push(dice, Statement::text(text));
            }
        }
    }
    if is_block {
        script.text("COMMIT");
    }
    script.tables_by_name(&["t", "u"]);
    script
}

/// A definition with a parameter in it, which has no value when rows come.
fn with_parameter(dice: &mut Dice) -> Step {
    let pattern = dice.word(&[
        "ALTER TABLE t ADD COLUMN e int DEFAULT {}",
        "CREATE TABLE x (a int DEFAULT {})",
        "CREATE TABLE x (a int CHECK (a > {}))",
        "CREATE VIEW y AS SELECT a FROM t WHERE a > {}",
        "CREATE INDEX z ON t (b) WHERE b > {}",
        "CREATE INDEX z ON t ((b + {}))",
        "ALTER TABLE t ALTER b SET DEFAULT {}",
        "ALTER TABLE t ADD CHECK (a < {})",
        "ALTER TABLE t ALTER b TYPE bigint USING b + {}",
    ]);
    let constant = match dice.one_in(3) {
        true => Tree::Constant { kind: Kind::Int, text: Some("5".to_owned()) },
        // Nothing is bound to it.
        false => Tree::text("$1"),
    };
    let statements = vec![Statement::new(Tree::form(pattern, vec![constant]))];
    let sending = match dice.one_in(2) {
        true => Sending::Simple,
        false => Sending::Extended(Extended::default()),
    };
    Step { statements, sending }
}

const LONG: &str = "a_name_that_is_longer_than_the_sixty_three_bytes_that_postgresql_keeps_of_it";

fn text(dice: &mut Dice) -> String {
    let texts = [
        "DROP INDEX t_b_key",
        "DROP INDEX pair",
        "DROP INDEX t_pkey",
        "DROP INDEX i",
        "CREATE UNIQUE INDEX i ON t (c)",
        "CREATE UNIQUE INDEX i ON t (lower(c)) WHERE c IS NOT NULL",
        "ALTER TABLE t DROP CONSTRAINT t_b_key",
        "ALTER TABLE t DROP CONSTRAINT small",
        "ALTER TABLE t ADD CONSTRAINT small CHECK (b > 1)",
        "ALTER TABLE t ADD COLUMN e int DEFAULT 7 NOT NULL",
        "ALTER TABLE t ADD COLUMN f text",
        "ALTER TABLE t ADD COLUMN g numeric(5,1) DEFAULT 1.25",
        "ALTER TABLE t ADD COLUMN h int NOT NULL",
        "ALTER TABLE t DROP COLUMN c",
        "ALTER TABLE t DROP COLUMN d",
        "ALTER TABLE t DROP COLUMN nothing",
        "ALTER TABLE t ALTER c SET DEFAULT 'new'",
        "ALTER TABLE t ALTER c DROP DEFAULT",
        "ALTER TABLE t ALTER c SET NOT NULL",
        "ALTER TABLE t ALTER d TYPE numeric(6,1)",
        "ALTER TABLE t ALTER d TYPE text USING 'v' || d",
        "ALTER TABLE t ALTER d TYPE int",
        "ALTER TABLE t RENAME COLUMN d TO dd",
        "ALTER TABLE t RENAME COLUMN b TO a",
        "ALTER TABLE u ADD FOREIGN KEY (a) REFERENCES t",
        "ALTER TABLE u ADD PRIMARY KEY (a)",
        "ALTER TABLE u DROP CONSTRAINT pair",
        "ALTER TABLE u ADD CONSTRAINT other UNIQUE (b)",
        "CREATE VIEW v AS SELECT a, b FROM t WHERE b IS NOT NULL",
        "SELECT * FROM v",
        "INSERT INTO v VALUES (9, 9)",
        "DROP VIEW v",
        "DROP TABLE u",
        "TRUNCATE u",
        "INSERT INTO t (a, b) VALUES (4, 1)",
        "INSERT INTO t (a, b) VALUES (5, 5) RETURNING *",
        "INSERT INTO t (a, b) VALUES (6, 500)",
        "INSERT INTO u VALUES (1, 1), (1, 1)",
        "INSERT INTO u VALUES (7, 1)",
        "INSERT INTO u VALUES (2, 2)",
        "UPDATE t SET b = 9 WHERE a = 1",
        "SELECT * FROM t WHERE b = 1",
        "SELECT count(DISTINCT *) FROM t",
        "SELECT (SELECT count(*) FILTER (WHERE t.a > 1)) FROM t",
        "CREATE TABLE w AS SELECT a, d FROM t",
        "SELECT * FROM w",
        "DROP TABLE IF EXISTS w",
        "ALTER TYPE mood ADD VALUE 'new' BEFORE 'ok'",
        "SELECT enum_range(NULL::mood)",
        "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass \
         AND attnum > 0 \
         AND NOT attisdropped",
        "SELECT conname, contype FROM pg_constraint WHERE conrelid = 't'::regclass",
    ];
    match dice.between(0, 12) {
        0 => format!("CREATE TABLE {LONG} (a int)"),
        1 => format!("SELECT count(*) FROM {}", &LONG[..63]),
        2 => format!("ALTER TABLE u ADD COLUMN {LONG} int"),
        3 => format!("SELECT 1 AS {LONG}"),
        _ => (*dice.pick(&texts)).to_owned(),
    }
}
