//! Random tables: their columns, keys, constraints and indexes.

use super::dice::Dice;
use super::expressions::{Maker, Named};
use super::signatures::IMMUTABLE;
use crate::tree::{Kind, Tree};

/// A table or view, and the name by which a statement calls it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) alias: String,
    pub(crate) columns: Vec<Named>,
    /// Columns of the primary key; none for a view.
    pub(crate) key: Vec<String>,
    /// Columns of the key and of unique constraints: changed row by row only.
    pub(crate) unique: Vec<String>,
}

impl Table {
    /// Its columns under an alias.
    pub(crate) fn named(&self, alias: &str) -> Vec<Named> {
        let qualified =
            |column: &Named| Named { name: format!("{alias}.{}", column.name), kind: column.kind };
        self.columns.iter().map(qualified).collect()
    }

    /// The same table under an alias.
    pub(crate) fn called(&self, alias: &str) -> Table {
        Table { alias: alias.to_owned(), ..self.clone() }
    }

    /// What stands in FROM.
    pub(crate) fn source(&self) -> String {
        format!("{} {}", self.name, self.alias)
    }

    /// The columns of the key for ORDER BY, or nothing.
    pub(crate) fn key_order(&self) -> String {
        let columns: Vec<_> = self.key.iter().map(|c| format!("{}.{c}", self.alias)).collect();
        columns.join(", ")
    }
}

/// Kinds of keys: those whose equal values look different among them.
const KEY_KINDS: &[Kind] = &[
    Kind::Int,
    Kind::Int,
    Kind::Long,
    Kind::Text,
    Kind::Char,
    Kind::Varchar,
    Kind::Numeric,
    Kind::Date,
    Kind::Uuid,
    Kind::Timestamp,
    Kind::Mood,
    Kind::Short,
    Kind::Double,
    Kind::Zoned,
    Kind::Interval,
    Kind::Bytea,
];

/// A table of random columns, with the statements that make it.
pub(crate) fn table(dice: &mut Dice, number: usize) -> (Table, Vec<Tree>) {
    let name = format!("t{number}");
    let mut columns = Vec::new();
    let keys = dice.between(1, 2);
    for at in 0..keys {
        columns.push(Named { name: format!("k{at}"), kind: *dice.pick(KEY_KINDS) });
    }
    for at in 0..dice.between(2, 5) {
        let kinds = if dice.one_in(4) { Kind::ARRAYS } else { Kind::SCALARS };
        columns.push(Named { name: format!("c{at}"), kind: *dice.pick(kinds) });
    }
    let key: Vec<_> = columns[..keys].iter().map(|column| column.name.clone()).collect();
    let mut unique = key.clone();
    let mut parts = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        parts.push(definition(dice, column, at < keys, &mut unique));
    }
    parts.push(Tree::text(format!("PRIMARY KEY ({})", key.join(", "))));
    if dice.one_in(4) {
        parts.push(check(dice, &columns[keys..]));
    }
    let mut statements =
        vec![Tree::form(&format!("CREATE TABLE {name} ({{}})"), vec![Tree::list(parts, 1)])];
    for at in 0..dice.between(0, 2) {
        statements.push(index(dice, &name, &columns, at));
    }
    (Table { alias: name.clone(), name, columns, key, unique }, statements)
}

/// A column as CREATE TABLE defines it. Notes it in `unique` if it is.
fn definition(dice: &mut Dice, column: &Named, is_key: bool, unique: &mut Vec<String>) -> Tree {
    let mut parts = vec![Tree::text(format!("{} {}", column.name, column.kind.name()))];
    if !is_key && dice.one_in(5) {
        let literal = column.kind.literal(Some(&{
            let mut maker = Maker { dice, tables: &[], scope: Vec::new(), may_query: false };
            maker.constant_text(column.kind)
        }));
        parts.push(Tree::optional(Tree::text(format!(" DEFAULT {literal}"))));
    }
    if !is_key && dice.one_in(8) {
        parts.push(Tree::optional(Tree::text(" NOT NULL")));
    }
    if !is_key && column.kind.is_keyable() && dice.one_in(9) {
        unique.push(column.name.clone());
        parts.push(Tree::optional(Tree::text(" UNIQUE")));
    }
    Tree::Join(parts)
}

fn check(dice: &mut Dice, columns: &[Named]) -> Tree {
    let scope: Vec<_> = columns.iter().filter(|named| named.kind.is_ordered()).cloned().collect();
    let Some(column) = scope.first() else { return Tree::text("CHECK (true)") };
    let text = (*column.kind.edges().first().unwrap_or(&"{}")).to_owned();
    let operator = dice.word(&["<>", ">=", "<="]);
    Tree::text(format!("CHECK ({} {operator} {})", column.name, column.kind.literal(Some(&text))))
}

/// An index of columns, of a part of the rows, or over an expression.
fn index(dice: &mut Dice, table: &str, columns: &[Named], number: usize) -> Tree {
    let ordered: Vec<_> = columns.iter().filter(|named| named.kind.is_keyable()).collect();
    let first = (*dice.pick(&ordered)).clone();
    let name = format!("{table}_i{number}");
    let what = match dice.between(0, 3) {
        0 => {
            let fitting: Vec<_> = IMMUTABLE
                .iter()
                .filter_map(|(pattern, _, takes)| {
                    let column = columns.iter().find(|column| column.kind == takes[0])?;
                    Some(pattern.replace("{}", &column.name))
                })
                .collect();
            if fitting.is_empty() {
                first.name.clone()
            } else {
                format!("({})", dice.pick(&fitting))
            }
        }
        1 => {
            let second = &dice.pick(&ordered).name;
            let is_other = *second != first.name;
            if is_other { format!("{}, {second}", first.name) } else { first.name.clone() }
        }
        _ => first.name.clone(),
    };
    let part = match dice.between(0, 3) {
        0 => format!(" WHERE {} IS NOT NULL", first.name),
        1 if !matches!(first.kind, Kind::Array(_) | Kind::Zoned | Kind::Mood) => {
            let text = *dice.pick(first.kind.edges());
            let operator = dice.word(&["=", ">", "<=", "<>"]);
            format!(" WHERE {} {operator} {}", first.name, first.kind.literal(Some(text)))
        }
        _ => String::new(),
    };
    Tree::form(
        &format!("CREATE INDEX {name} ON {table} ({what}){{}}"),
        vec![Tree::optional(Tree::text(part))],
    )
}

/// A view of a table, and the statement that makes it.
pub(crate) fn view(dice: &mut Dice, of: &Table, number: usize) -> (Table, Tree) {
    let name = format!("v{number}");
    let mut maker = Maker { dice, tables: &[], scope: of.named(&of.alias), may_query: false };
    let condition = maker.condition(1);
    let statement = Tree::form(
        &format!("CREATE VIEW {name} AS SELECT * FROM {} WHERE {{}}", of.name),
        vec![condition],
    );
    let table = Table { name: name.clone(), alias: name, ..of.clone() };
    (table, statement)
}
