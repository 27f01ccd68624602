//! The protocol itself: row limits, portals that run again, pipelines that fail, settings and
//! modes.

use super::dice::Dice;
use super::script::Script;
use super::statement::{Extended, Sending, Statement, Step};
use crate::tree::{Kind, Tree};

/// Blocks and pipelines over a small table, with every choice of the extended protocol.
pub(crate) fn script(dice: &mut Dice) -> Script {
    let mut script = Script::default();
    script.text("CREATE TABLE t (a int PRIMARY KEY, b text, CHECK (a < 900))");
    script.text("INSERT INTO t SELECT g, 'x' || g FROM generate_series(1, 6) g");
    for _ in 0..dice.between(4, 12) {
        let count = if dice.one_in(3) { dice.between(2, 4) } else { 1 };
        let statements = (0..count).map(|_| statement(dice)).collect();
        let sending = match dice.one_in(4) {
            true => Sending::Simple,
            false => Sending::Extended(Extended {
                are_parameters_binary: dice.one_in(2),
                are_results_binary: dice.one_in(2),
                rows_max: *dice.pick(&[0, 0, 1, 2, 3, 50]),
                again: *dice.pick(&[0, 0, 1, 2]),
            }),
        };
        script.steps.push(Step { statements, sending });
    }
    script.text("ROLLBACK");
    script.text("RESET ALL");
    script.text("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
    script.tables_by_name(&["t"]);
    script
}

fn integer(text: String) -> Tree {
    Tree::value(Kind::Int, Tree::Constant { kind: Kind::Int, text: Some(text) })
}

const NAMES: &[&str] = &[
    "transaction_read_only",
    "default_transaction_read_only",
    "transaction_isolation",
    "default_transaction_isolation",
    "TimeZone",
    "statement_timeout",
];

fn statement(dice: &mut Dice) -> Statement {
    let one = integer(dice.between(1, 9).to_string());
    let words = match dice.between(0, 30) {
        0..=2 => "BEGIN",
        3 | 4 => "COMMIT",
        5 => "ROLLBACK",
        6 => "SAVEPOINT s",
        7 => "ROLLBACK TO s",
        8 => "RELEASE s",
        9 => "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        10 => "SET TRANSACTION READ ONLY",
        11 => "SET TRANSACTION READ WRITE",
        12 => "SELECT 1 / (a - 3) FROM t ORDER BY a",
        13 => "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        14 => "SELECT a, b FROM t ORDER BY a",
        15 => "UPDATE t SET b = b || 'y' WHERE a < 4",
        16 => "UPDATE t SET b = 'z' WHERE a > 4 RETURNING a",
        17 => "DELETE FROM t WHERE a = 2",
        18 => "SET default_transaction_read_only = on",
        19 => "SET default_transaction_read_only = off",
        20 => "INSERT INTO t VALUES (1000, 'no')",
        21 => "",
        22 => {
            let name = Tree::Constant { kind: Kind::Text, text: Some(dice.word(NAMES).to_owned()) };
            return Statement::new(Tree::form("SELECT current_setting({})", vec![name]));
        }
        23 => return Statement::text(format!("SHOW {}", dice.word(NAMES))),
        24 => "SELECT g FROM generate_series(1, 4) g ORDER BY g",
        25 => {
            return Statement::new(Tree::form("DELETE FROM t WHERE a = {} RETURNING b", vec![one]));
        }
        26 => {
            let pattern =
                "INSERT INTO t VALUES ({}, 'n'), (20, 'm') ON CONFLICT DO NOTHING RETURNING a";
            return Statement::new(Tree::form(pattern, vec![one])).ordered();
        }
        27 => {
            let pattern = "INSERT INTO t VALUES ({}, 'o')";
            return Statement::new(Tree::form(pattern, vec![one]));
        }
        28 => return Statement::new(Tree::form("SELECT b FROM t WHERE a = {}", vec![one])),
        29 => "SELECT nothing FROM t",
        _ => "WITH w AS (DELETE FROM t WHERE a = 5 RETURNING a) SELECT * FROM w",
    };
    let statement = Statement::text(words);
    if words.contains("ORDER BY") { statement.ordered() } else { statement }
}
