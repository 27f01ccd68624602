//! Random queries.

use super::dice::Dice;
use super::expressions::{Maker, Named};
use super::schema::Table;
use super::statement::Statement;
use crate::tree::{Kind, Tree};

/// What a query reads: the words of FROM, the columns, and the columns that number its rows.
struct Source {
    from: Tree,
    scope: Vec<Named>,
    keys: Vec<String>,
}

/// A random query of tables.
pub(crate) fn query(dice: &mut Dice, tables: &[Table]) -> Statement {
    let mut statement = match dice.between(0, 11) {
        0..=3 => plain(dice, tables),
        4..=6 => grouped(dice, tables),
        7 | 8 => set_operation(dice, tables),
        9 => distinct(dice, tables),
        10 => windows(dice, tables),
        _ => with(dice, tables),
    };
    statement.is_strict = false;
    statement
}

fn maker<'a>(dice: &'a mut Dice, tables: &'a [Table], source: &Source) -> Maker<'a> {
    Maker { dice, tables, scope: source.scope.clone(), may_query: true }
}

/// One table, or several that are joined.
fn source(dice: &mut Dice, tables: &[Table]) -> Source {
    let first = dice.pick(tables).called("a");
    let sample = match dice.between(0, 30) {
        0 => " TABLESAMPLE BERNOULLI (0)",
        1 => " TABLESAMPLE SYSTEM (100)",
        _ => "",
    };
    let is_table = first.name.starts_with('t');
    let sample = if is_table { sample } else { "" };
    let mut source = Source {
        from: Tree::form(&format!("{}{{}}", first.source()), vec![Tree::text(sample)]),
        scope: first.named("a"),
        keys: first.key.iter().map(|key| format!("a.{key}")).collect(),
    };
    if dice.one_in(2) {
        return source;
    }
    for alias in ["b", "c"].iter().take(dice.between(1, 2)) {
        join(dice, tables, &mut source, alias);
    }
    source
}

/// Joins another table, or a query, to a source.
fn join(dice: &mut Dice, tables: &[Table], source: &mut Source, alias: &str) {
    let table = dice.pick(tables).called(alias);
    let mut scope = source.scope.clone();
    scope.extend(table.named(alias));
    let word = dice.word(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN"]);
    let before = source.from.clone();
    source.keys.extend(table.key.iter().map(|key| format!("{alias}.{key}")));
    source.from = match dice.between(0, 7) {
        0 => Tree::form("{} CROSS JOIN {}", vec![before, Tree::text(table.source())]),
        1 => {
            let mut inner = maker(dice, tables, source);
            inner.scope.extend(table.named("z"));
            let condition = inner.condition(1);
            let from = Tree::text(table.called("z").source());
            let parts = vec![before, from, condition];
            let pattern =
                format!("{{}} CROSS JOIN LATERAL (SELECT z.* FROM {{}} WHERE {{}}) {alias}");
            Tree::form(&pattern, parts)
        }
        choice => {
            let mut maker = Maker { dice, tables, scope: scope.clone(), may_query: choice > 5 };
            let kind = maker.ordered_kind();
            let of_kind = |named: &&Named| named.kind == kind;
            let left = source.scope.iter().find(of_kind).map(|named| named.name.clone());
            let right = table.named(alias);
            let right = right.iter().find(of_kind).map(|named| named.name.clone());
            let on = match (left, right) {
                (Some(left), Some(right)) if word == "FULL JOIN" || choice > 2 => {
                    Tree::text(format!("{left} = {right}"))
                }
                // A FULL JOIN needs a condition of equality.
                _ if word == "FULL JOIN" => Tree::text("true"),
                _ => maker.condition(1),
            };
            Tree::form(
                &format!("{{}} {word} {{}} ON {{}}"),
                vec![before, Tree::text(table.source()), on],
            )
        }
    };
    source.scope = scope;
}

fn filter(dice: &mut Dice, tables: &[Table], source: &Source) -> Tree {
    if dice.one_in(4) {
        return Tree::text("");
    }
    let condition = maker(dice, tables, source).condition(2);
    Tree::optional(Tree::form(" WHERE {}", vec![condition]))
}

/// ORDER BY of all rows' numbers, in random directions.
fn total_order(dice: &mut Dice, keys: &[String]) -> String {
    let terms: Vec<_> = keys
        .iter()
        .map(|key| {
            format!("{key}{}", dice.word(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]))
        })
        .collect();
    format!(" ORDER BY {}", terms.join(", "))
}

fn limit(dice: &mut Dice) -> Tree {
    Tree::text(match dice.between(0, 3) {
        0 => format!(" LIMIT {}", dice.between(0, 5)),
        1 => format!(" LIMIT {} OFFSET {}", dice.between(1, 5), dice.between(0, 3)),
        2 => format!(" OFFSET {}", dice.between(0, 4)),
        _ => String::new(),
    })
}

fn plain(dice: &mut Dice, tables: &[Table]) -> Statement {
    let source = source(dice, tables);
    let count = dice.between(1, 4);
    let mut items: Vec<_> = (0..count)
        .map(|_| {
            let mut maker = maker(dice, tables, &source);
            let kind = maker.kind();
            maker.value(kind, 2)
        })
        .collect();
    if dice.one_in(3) {
        items.push(Tree::text("*"));
    }
    let condition = filter(dice, tables, &source);
    let mut parts = vec![Tree::list(items, 1), source.from.clone(), condition];
    let is_total = !source.keys.is_empty() && !dice.one_in(3);
    let mut tail = String::new();
    if is_total {
        tail = total_order(dice, &source.keys);
    }
    let limit = if is_total { limit(dice) } else { Tree::text("") };
    parts.push(Tree::optional(limit));
    let tree = Tree::form(&format!("SELECT {{}} FROM {{}}{{}}{tail}{{}}"), parts);
    let statement = loose_if_it_chooses(Statement::new(tree));
    if is_total { statement.ordered() } else { statement }
}

/// Marks a statement in whose answer one of several equal values may stand for all.
fn loose_if_it_chooses(mut statement: Statement) -> Statement {
    let text = statement.tree.to_sql();
    statement.is_loose = ["max(", "min(", "greatest(", "least(", "GROUP BY", "DISTINCT"]
        .iter()
        .any(|word| text.contains(word));
    statement
}

/// Aggregates by the kinds of what they take; the marks are for the value and the order.
const AGGREGATES: &[(&str, Option<Kind>)] = &[
    ("count({})", None),
    ("count(DISTINCT {})", None),
    ("min({})", Some(Kind::Int)),
    ("max({})", Some(Kind::Text)),
    ("min({})", Some(Kind::Numeric)),
    ("max({})", Some(Kind::Double)),
    ("max({})", Some(Kind::Date)),
    ("min({})", Some(Kind::Interval)),
    ("max({})", Some(Kind::Char)),
    ("min({})", Some(Kind::Mood)),
    ("max({})", Some(Kind::Array(&Kind::Int))),
    ("sum({})", Some(Kind::Int)),
    ("sum({})", Some(Kind::Long)),
    ("sum({})", Some(Kind::Short)),
    ("sum({})", Some(Kind::Numeric)),
    ("sum(DISTINCT {})", Some(Kind::Numeric)),
    ("sum({})", Some(Kind::Interval)),
    ("avg({})", Some(Kind::Int)),
    ("avg({})", Some(Kind::Numeric)),
    ("avg({})", Some(Kind::Double)),
    ("bool_and({})", Some(Kind::Bool)),
    ("bool_or({})", Some(Kind::Bool)),
];

fn aggregate(maker: &mut Maker, keys: &[String]) -> Tree {
    let order = keys.join(", ");
    let tree = match maker.dice.between(0, 6) {
        0 => Tree::text("count(*)"),
        1 if !keys.is_empty() => {
            let function = maker.dice.word(&["array_agg", "jsonb_agg"]);
            let kind = match maker.ordered_kind() {
                Kind::Array(element) => *element,
                kind => kind,
            };
            let pattern = format!("{function}({{}} ORDER BY {order})");
            Tree::form(&pattern, vec![maker.value(kind, 1)])
        }
        2 if !keys.is_empty() => {
            let pattern = format!("string_agg({{}}, ',' ORDER BY {order})");
            Tree::form(&pattern, vec![maker.value(Kind::Text, 1)])
        }
        _ => {
            let (pattern, kind) = *maker.dice.pick(AGGREGATES);
            let kind = kind.unwrap_or_else(|| maker.ordered_kind());
            Tree::form(pattern, vec![maker.value(kind, 1)])
        }
    };
    let filter = match maker.dice.one_in(4) {
        true => Tree::form(" FILTER (WHERE {})", vec![maker.condition(1)]),
        false => Tree::text(""),
    };
    Tree::Join(vec![tree, Tree::optional(filter)])
}

fn grouped(dice: &mut Dice, tables: &[Table]) -> Statement {
    let source = source(dice, tables);
    let condition = filter(dice, tables, &source);
    let mut maker = maker(dice, tables, &source);
    let mut keys = Vec::new();
    for _ in 0..maker.dice.between(0, 2) {
        let kind = maker.ordered_kind();
        keys.push(match maker.dice.one_in(3) {
            true => maker.call_of_columns(kind),
            false => maker.column(kind),
        });
    }
    keys.retain(
        |key| !matches!(key, Tree::Value { tree, .. } if matches!(**tree, Tree::Constant { .. })),
    );
    let mut items = keys.clone();
    for _ in 0..maker.dice.between(1, 3) {
        items.push(aggregate(&mut maker, &source.keys));
    }
    let having = match maker.dice.one_in(4) {
        true => Tree::optional(Tree::form(" HAVING {} > 1", vec![aggregate_of_number(&mut maker)])),
        false => Tree::text(""),
    };
    let group = match keys.is_empty() {
        true => Tree::text(""),
        false => Tree::form(" GROUP BY {}", vec![Tree::Join(separated(&keys))]),
    };
    let parts = vec![Tree::Join(separated(&items)), source.from.clone(), condition, group, having];
    let mut statement = Statement::new(Tree::form("SELECT {} FROM {}{}{}{}", parts));
    statement.is_loose = true;
    statement
}

fn aggregate_of_number(maker: &mut Maker) -> Tree {
    match maker.dice.one_in(2) {
        true => Tree::text("count(*)"),
        false => Tree::form("sum({})", vec![maker.value(Kind::Int, 0)]),
    }
}

/// Parts with commas between them, none of which can go.
fn separated(parts: &[Tree]) -> Vec<Tree> {
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            found.push(Tree::text(", "));
        }
        found.push(part.clone());
    }
    found
}

fn distinct(dice: &mut Dice, tables: &[Table]) -> Statement {
    let source = source(dice, tables);
    let condition = filter(dice, tables, &source);
    let mut maker = maker(dice, tables, &source);
    let kind = maker.ordered_kind();
    let key = maker.column(kind);
    if source.keys.is_empty() || maker.dice.one_in(2) {
        let kind = maker.ordered_kind();
        let items = vec![key, maker.column(kind)];
        let parts = vec![Tree::list(items, 1), source.from.clone(), condition];
        let mut statement = Statement::new(Tree::form("SELECT DISTINCT {} FROM {}{}", parts));
        statement.is_loose = true;
        return statement;
    }
    let kind = maker.kind();
    let value = maker.value(kind, 1);
    let order = source.keys.join(", ");
    let pattern = format!("SELECT DISTINCT ON ({{}}) {{}} FROM {{}}{{}} ORDER BY {{}}, {order}");
    let parts = vec![key.clone(), value, source.from.clone(), condition, key];
    loose_if_it_chooses(Statement::new(Tree::form(&pattern, parts)))
}

fn set_operation(dice: &mut Dice, tables: &[Table]) -> Statement {
    let first = source(dice, tables);
    let kinds: Vec<_> = {
        let mut maker = maker(dice, tables, &first);
        (0..maker.dice.between(1, 2)).map(|_| maker.ordered_kind()).collect()
    };
    let mut parts = vec![branch(dice, tables, &first, &kinds)];
    for _ in 0..dice.between(1, 2) {
        let operation = dice.word(&[
            " UNION ",
            " UNION ALL ",
            " INTERSECT ",
            " EXCEPT ",
            " EXCEPT ALL ",
            " INTERSECT ALL ",
        ]);
        let source = source(dice, tables);
        let next = branch(dice, tables, &source, &kinds);
        parts.push(Tree::optional(Tree::Join(vec![Tree::text(operation), next])));
    }
    let mut statement = Statement::new(Tree::Join(parts));
    statement.is_loose = true;
    statement
}

fn branch(dice: &mut Dice, tables: &[Table], source: &Source, kinds: &[Kind]) -> Tree {
    let condition = filter(dice, tables, source);
    let mut maker = maker(dice, tables, source);
    let items: Vec<_> = kinds.iter().map(|kind| maker.column(*kind)).collect();
    Tree::form(
        "SELECT {} FROM {}{}",
        vec![Tree::Join(separated(&items)), source.from.clone(), condition],
    )
}

/// Window functions whose values the order of the rows of one rank does not change.
const RANKED: &[&str] = &["rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)"];
const NUMBERED: &[&str] = &["row_number()", "ntile(3)"];

fn windows(dice: &mut Dice, tables: &[Table]) -> Statement {
    let source = source(dice, tables);
    let condition = filter(dice, tables, &source);
    let keys = source.keys.join(", ");
    let mut maker = maker(dice, tables, &source);
    let partition = match maker.dice.one_in(2) {
        true => Tree::text(""),
        false => {
            let kind = maker.ordered_kind();
            Tree::optional(Tree::form("PARTITION BY {} ", vec![maker.column(kind)]))
        }
    };
    let kind = maker.ordered_kind();
    let order = maker.column(kind);
    let direction = maker.dice.word(&["", " DESC", " NULLS FIRST"]);
    let value_kind = maker.kind();
    let value = maker.value(value_kind, 1);
    let frame = maker.dice.word(&[
        "",
        " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
        " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    ]);
    let choice = maker.dice.between(0, 3);
    let (function, over) = match choice {
        0 => {
            let over = format!("({{}}ORDER BY {{}}{direction})");
            (Tree::text(maker.dice.word(RANKED)), Tree::form(&over, vec![partition, order]))
        }
        1 if !keys.is_empty() => {
            let over = format!("({{}}ORDER BY {{}}{direction}, {keys})");
            (Tree::text(maker.dice.word(NUMBERED)), Tree::form(&over, vec![partition, order]))
        }
        2 if !keys.is_empty() => {
            let function = maker.dice.word(&[
                "lag({})",
                "lead({})",
                "lag({}, 2)",
                "first_value({})",
                "last_value({})",
                "nth_value({}, 2)",
            ]);
            let over = format!("({{}}ORDER BY {{}}{direction}, {keys}{frame})");
            (Tree::form(function, vec![value]), Tree::form(&over, vec![partition, order]))
        }
        _ => {
            let over = format!("({{}}ORDER BY {{}}{direction})");
            let function = aggregate(&mut maker, &[]);
            let is_distinct = function.to_sql().contains("DISTINCT");
            let function = if is_distinct { Tree::text("count(*)") } else { function };
            (function, Tree::form(&over, vec![partition, order]))
        }
    };
    let numbers = if keys.is_empty() { "1".to_owned() } else { keys };
    let pattern = format!("SELECT {numbers}, {{}} OVER {{}} FROM {{}}{{}}");
    let parts = vec![function, over, source.from.clone(), condition];
    let mut statement = Statement::new(Tree::form(&pattern, parts));
    statement.is_loose = true;
    statement
}

fn with(dice: &mut Dice, tables: &[Table]) -> Statement {
    if dice.one_in(4) {
        let text = format!(
            "WITH RECURSIVE n(i, j) AS (SELECT 1, 2.50 UNION ALL SELECT i + 1, j * 2 FROM n \
             WHERE i < {}) SELECT i, j, i % 2 FROM n ORDER BY 1",
            dice.between(0, 6)
        );
        return Statement::text(text).ordered();
    }
    let part = dice.pick(tables).clone();
    let mut inner = Maker { dice, tables, scope: part.named(&part.alias), may_query: true };
    let condition = inner.condition(1);
    let columns: Vec<_> = part.columns.clone();
    let view = Table { name: "w".to_owned(), alias: "w".to_owned(), columns, ..part.clone() };
    let mut all = tables.to_vec();
    all.push(view);
    let query = plain(dice, &all);
    let pattern = format!("WITH w AS (SELECT * FROM {} WHERE {{}}) {{}}", part.name);
    Statement { tree: Tree::form(&pattern, vec![condition, query.tree]), ..query }
}

impl Maker<'_> {
    /// A function of columns for the key of a group.
    fn call_of_columns(&mut self, kind: Kind) -> Tree {
        Tree::value(kind, self.call(kind, 0))
    }
}
