//! Foreign keys with all actions, over few key values, so that rows meet.

use super::dice::Dice;
use super::expressions::Named;
use super::schema::Table;
use super::statement::Statement;
use crate::tree::{Kind, Tree};

/// Tables that refer to each other, and the statements that make them.
pub(crate) fn tables(dice: &mut Dice) -> (Vec<Table>, Vec<Statement>) {
    match dice.one_in(3) {
        true => pairs(dice),
        false => single(dice),
    }
}

fn actions(dice: &mut Dice) -> String {
    const ACTIONS: &[&str] = &["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];
    let (delete, update) = (dice.word(ACTIONS), dice.word(ACTIONS));
    format!("ON DELETE {delete} ON UPDATE {update}")
}

fn named(names: &[&str]) -> Vec<Named> {
    names.iter().map(|name| Named { name: (*name).to_owned(), kind: Kind::Int }).collect()
}

fn table(name: &str, columns: &[&str], key: &[&str]) -> Table {
    Table {
        name: name.to_owned(),
        alias: name.to_owned(),
        columns: named(columns),
        key: key.iter().map(|column| (*column).to_owned()).collect(),
        unique: Vec::new(),
    }
}

fn single(dice: &mut Dice) -> (Vec<Table>, Vec<Statement>) {
    let default = dice.word(&["", " DEFAULT 1", " DEFAULT 1", " DEFAULT 9"]);
    let own = dice.word(&["", " DEFAULT 1"]);
    let (one, two, three) = (actions(dice), actions(dice), actions(dice));
    let statements = [
        "CREATE TABLE p (id int PRIMARY KEY, v int)".to_owned(),
        format!("CREATE TABLE c (id int PRIMARY KEY, v int{default} REFERENCES p (id) {one})"),
        format!("CREATE TABLE d (id int PRIMARY KEY, v int{default} REFERENCES c (id) {two})"),
        format!("CREATE TABLE s (id int PRIMARY KEY, v int{own} REFERENCES s (id) {three})"),
    ];
    let rows = [
        "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO c VALUES (1, 1), (2, 2), (3, 1)",
        "INSERT INTO d VALUES (1, 1), (2, 3)",
        "INSERT INTO s VALUES (1, 1), (2, 1), (3, 2)",
    ];
    let tables = ["p", "c", "d", "s"].map(|name| table(name, &["id", "v"], &["id"])).to_vec();
    (tables, texts(&statements, &rows))
}

fn pairs(dice: &mut Dice) -> (Vec<Table>, Vec<Statement>) {
    let default = dice.word(&["", " DEFAULT 1", " DEFAULT 1"]);
    let statements = [
        "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b))".to_owned(),
        format!(
            "CREATE TABLE c (id int PRIMARY KEY, a int{default}, b int{default}, \
             FOREIGN KEY (a, b) REFERENCES p (a, b) {})",
            actions(dice)
        ),
        format!(
            "CREATE TABLE s (a int, b int, x int{default}, y int{default}, PRIMARY KEY (a, b), \
             FOREIGN KEY (x, y) REFERENCES s (a, b) {})",
            actions(dice)
        ),
    ];
    let rows = [
        "INSERT INTO p VALUES (1, 1), (1, 2), (2, 1), (2, 2)",
        "INSERT INTO c VALUES (1, 1, 1), (2, 1, 2), (3, 2, 2), (4, NULL, 2)",
        "INSERT INTO s VALUES (1, 1, 1, 1), (2, 2, 1, 1), (1, 2, 2, 2)",
    ];
    let tables = vec![
        table("p", &["a", "b"], &["a", "b"]),
        table("c", &["id", "a", "b"], &["id"]),
        table("s", &["a", "b", "x", "y"], &["a", "b"]),
    ];
    (tables, texts(&statements, &rows))
}

fn texts(definitions: &[String], rows: &[&str]) -> Vec<Statement> {
    let definitions = definitions.iter().map(|text| Statement::text(text.as_str()));
    definitions.chain(rows.iter().map(|text| Statement::text(*text))).collect()
}

fn number(dice: &mut Dice) -> Tree {
    let text = match dice.one_in(9) {
        true => None,
        false => Some(dice.between(1, 3).to_string()),
    };
    Tree::value(Kind::Int, Tree::Constant { kind: Kind::Int, text })
}

/// A change of one of the tables.
pub(crate) fn change(dice: &mut Dice, tables: &[Table]) -> Statement {
    let table = dice.pick(tables).clone();
    let column = dice.pick(&table.columns).name.clone();
    let name = &table.name;
    let tree = match dice.between(0, 9) {
        0..=3 => insert(dice, &table),
        4 | 5 => {
            let key = table.key[0].clone();
            let parts = vec![number(dice), number(dice)];
            Tree::form(&format!("UPDATE {name} SET {column} = {{}} WHERE {key} = {{}}"), parts)
        }
        6 => Tree::text(format!("UPDATE {name} SET {0} = {0} + 3", table.key[0])),
        7 | 8 => Tree::form(
            &format!("DELETE FROM {name} WHERE {column} = {{}} RETURNING *"),
            vec![number(dice)],
        ),
        _ => Tree::text(format!("DELETE FROM {name}")),
    };
    Statement::new(tree)
}

/// INSERT of one or two rows; what is there already stays.
pub(crate) fn insert(dice: &mut Dice, table: &Table) -> Tree {
    let rows = (0..dice.between(1, 2))
        .map(|_| {
            let marks = vec!["{}"; table.columns.len()].join(", ");
            let values = table.columns.iter().map(|_| number(dice)).collect();
            Tree::form(&format!("({marks})"), values)
        })
        .collect();
    let conflict = if dice.one_in(2) { " ON CONFLICT DO NOTHING" } else { "" };
    Tree::form(
        &format!("INSERT INTO {} VALUES {{}}{conflict}", table.name),
        vec![Tree::list(rows, 1)],
    )
}
