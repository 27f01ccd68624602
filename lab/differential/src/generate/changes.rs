//! Random changes of tables: rows that come, change and go, alone and in blocks.

use super::dice::Dice;
use super::expressions::{Maker, Named};
use super::schema::Table;
use super::statement::Statement;
use crate::tree::Tree;

/// A random statement that writes.
pub(crate) fn change(dice: &mut Dice, tables: &[Table]) -> Statement {
    let table = dice.pick(tables).clone();
    match dice.between(0, 9) {
        0..=3 => insert(dice, &table),
        4 => insert_query(dice, tables, &table),
        5 | 6 => update(dice, tables, &table),
        7 => delete(dice, tables, &table),
        8 => upsert(dice, &table),
        _ => with(dice, tables, &table),
    }
}

/// INSERT of one to four rows.
pub(crate) fn insert(dice: &mut Dice, table: &Table) -> Statement {
    let tree = Tree::Join(vec![insert_words(dice, table), Tree::optional(returning(dice, table))]);
    Statement::new(tree)
}

fn insert_words(dice: &mut Dice, table: &Table) -> Tree {
    let mut columns: Vec<_> = table.columns.clone();
    if dice.one_in(4) && columns.len() > table.key.len() + 1 {
        columns.pop();
    }
    let names: Vec<_> = columns.iter().map(|column| column.name.clone()).collect();
    let rows = (0..dice.between(1, 4)).map(|_| row(dice, &columns)).collect();
    Tree::form(
        &format!("INSERT INTO {} ({}) VALUES {{}}", table.name, names.join(", ")),
        vec![Tree::list(rows, 1)],
    )
}

fn row(dice: &mut Dice, columns: &[Named]) -> Tree {
    let mut parts = vec![Tree::text("(")];
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            parts.push(Tree::text(", "));
        }
        let is_default = dice.one_in(25);
        let mut maker = Maker { dice, tables: &[], scope: Vec::new(), may_query: false };
        parts.push(match is_default {
            true => Tree::text("DEFAULT"),
            false => maker.constant(column.kind),
        });
    }
    parts.push(Tree::text(")"));
    Tree::Join(parts)
}

fn returning(dice: &mut Dice, table: &Table) -> Tree {
    if dice.one_in(2) {
        return Tree::text("");
    }
    if dice.one_in(2) {
        return Tree::text(" RETURNING *");
    }
    let scope = table.named(&table.name);
    let mut maker = Maker { dice, tables: &[], scope, may_query: false };
    let kind = maker.kind();
    Tree::form(" RETURNING {}, 1", vec![maker.value(kind, 1)])
}

fn insert_query(dice: &mut Dice, tables: &[Table], table: &Table) -> Statement {
    let other = dice.pick(tables).called("s");
    let mut maker = Maker { dice, tables, scope: other.named("s"), may_query: false };
    let items: Vec<_> = table.columns.iter().map(|column| maker.value(column.kind, 1)).collect();
    let condition = maker.condition(1);
    let mut parts = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            parts.push(Tree::text(", "));
        }
        parts.push(item);
    }
    let pattern = format!("INSERT INTO {} SELECT {{}} FROM {{}} WHERE {{}}{{}}", table.name);
    // Of rows with one key the first stays, so there is an order.
    let end = Tree::text(match other.key.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY {} ON CONFLICT DO NOTHING", other.key_order()),
    });
    let parts = vec![Tree::Join(parts), Tree::text(other.source()), condition, Tree::optional(end)];
    Statement::new(Tree::form(&pattern, parts))
}

/// A condition that one row meets: its whole key is said.
fn one_row(dice: &mut Dice, table: &Table) -> Tree {
    let mut parts = Vec::new();
    for (at, key) in table.key.iter().enumerate() {
        let column = table.columns.iter().find(|column| column.name == *key);
        let kind = column.expect("a key is of columns").kind;
        let mut maker = Maker { dice, tables: &[], scope: Vec::new(), may_query: false };
        let and = if at > 0 { " AND " } else { "" };
        parts.push(Tree::form(
            &format!("{and}{}.{key} = {{}}", table.name),
            vec![maker.constant(kind)],
        ));
    }
    Tree::Join(parts)
}

fn update(dice: &mut Dice, tables: &[Table], table: &Table) -> Statement {
    let is_one_row = dice.one_in(2);
    let may_set = |column: &&Named| is_one_row || !table.unique.contains(&column.name);
    let columns: Vec<_> = table.columns.iter().filter(may_set).collect();
    if columns.is_empty() {
        return delete(dice, tables, table);
    }
    let column = (*dice.pick(&columns)).clone();
    let other = dice.pick(tables).called("s");
    let is_from = !other.key.is_empty() && other.name != table.name && dice.one_in(5);
    let scope = table.named(&table.name);
    let condition = match is_one_row {
        true => one_row(dice, table),
        false => Maker { dice, tables, scope: scope.clone(), may_query: true }.condition(2),
    };
    let (from, partner) = match is_from {
        true => (
            Tree::text(format!(" FROM {}", other.source())),
            // One partner at most, since the whole key of the other table is said.
            Tree::form(
                " AND {}",
                vec![one_row(dice, &Table { name: "s".into(), ..other.clone() })],
            ),
        ),
        false => (Tree::text(""), Tree::text("")),
    };
    let mut maker = Maker { dice, tables: &[], scope, may_query: false };
    let value = maker.value(column.kind, 1);
    let returning = if is_from { Tree::text("") } else { returning(dice, table) };
    let pattern =
        format!("UPDATE {} SET {} = {{}}{{}} WHERE {{}}{{}}{{}}", table.name, column.name);
    Statement::new(Tree::form(
        &pattern,
        vec![value, from, condition, partner, Tree::optional(returning)],
    ))
}

fn delete(dice: &mut Dice, tables: &[Table], table: &Table) -> Statement {
    let scope = table.named(&table.name);
    let condition = match dice.one_in(3) {
        true => one_row(dice, table),
        false => Maker { dice, tables, scope, may_query: true }.condition(1),
    };
    let pattern = format!("DELETE FROM {} WHERE {{}}{{}}", table.name);
    let returning = Tree::optional(returning(dice, table));
    Statement::new(Tree::form(&pattern, vec![condition, returning]))
}

fn upsert(dice: &mut Dice, table: &Table) -> Statement {
    let words = insert_words(dice, table);
    let key = table.key.join(", ");
    let settable: Vec<_> =
        table.columns.iter().filter(|column| !table.unique.contains(&column.name)).collect();
    let action = match settable.is_empty() || dice.one_in(3) {
        true => Tree::text("DO NOTHING"),
        false => {
            let column = (*dice.pick(&settable)).clone();
            let mut scope = table.named(&table.name);
            scope.extend(table.named("excluded"));
            let mut maker = Maker { dice, tables: &[], scope, may_query: false };
            let value = maker.value(column.kind, 1);
            let condition = match maker.dice.one_in(3) {
                true => Tree::form(" WHERE {}", vec![maker.condition(1)]),
                false => Tree::text(""),
            };
            let pattern = format!("DO UPDATE SET {} = {{}}{{}}", column.name);
            Tree::form(&pattern, vec![value, Tree::optional(condition)])
        }
    };
    let pattern = format!("{{}} ON CONFLICT ({key}) {{}}{{}}");
    let parts = vec![words, action, Tree::optional(returning(dice, table))];
    Statement::new(Tree::form(&pattern, parts))
}

/// WITH parts that write, which all read what was there before.
fn with(dice: &mut Dice, tables: &[Table], table: &Table) -> Statement {
    let part = match dice.between(0, 2) {
        0 => insert_words(dice, table),
        1 => Tree::form(
            &format!("DELETE FROM {} WHERE {{}}", table.name),
            vec![one_row(dice, table)],
        ),
        _ => delete_words(dice, tables, table),
    };
    let pattern = "WITH w AS ({} RETURNING *) SELECT count(*) FROM w";
    Statement::new(Tree::form(pattern, vec![part]))
}

fn delete_words(dice: &mut Dice, tables: &[Table], table: &Table) -> Tree {
    let scope = table.named(&table.name);
    let condition = Maker { dice, tables, scope, may_query: false }.condition(1);
    Tree::form(&format!("DELETE FROM {} WHERE {{}}", table.name), vec![condition])
}
