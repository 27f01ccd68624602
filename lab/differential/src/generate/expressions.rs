//! Random expressions over the columns that are in scope.

use super::dice::Dice;
use super::schema::Table;
use super::signatures::{QUERIES_ONLY, SIGNATURES, Signature};
use crate::tree::{Kind, Tree};

/// A column that expressions may name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Makes expressions.
pub(crate) struct Maker<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) tables: &'a [Table],
    pub(crate) scope: Vec<Named>,
    /// Whether queries and what only queries may have can stand in expressions.
    pub(crate) may_query: bool,
}

impl Maker<'_> {
    /// A constant of a kind, seldom NULL.
    pub(crate) fn constant(&mut self, kind: Kind) -> Tree {
        let text = if self.dice.one_in(14) { None } else { Some(self.constant_text(kind)) };
        Tree::value(kind, Tree::Constant { kind, text })
    }

    /// The text of a constant that is not NULL.
    pub(crate) fn constant_text(&mut self, kind: Kind) -> String {
        let Kind::Array(element) = kind else {
            return (*self.dice.pick(kind.edges())).to_owned();
        };
        let elements: Vec<_> = (0..*self.dice.pick(&[0, 1, 1, 2, 3]))
            .map(|_| match self.dice.one_in(8) {
                true => "NULL".to_owned(),
                false => {
                    let text = self.constant_text(*element);
                    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
                }
            })
            .collect();
        let bounds = if elements.is_empty() || !self.dice.one_in(9) { "" } else { "[0:#]=" };
        let bounds = bounds.replace('#', &elements.len().saturating_sub(1).to_string());
        format!("{bounds}{{{}}}", elements.join(","))
    }

    /// An expression of a kind, at most `depth` levels deep.
    pub(crate) fn value(&mut self, kind: Kind, depth: usize) -> Tree {
        let tree = match self.dice.between(0, if depth == 0 { 4 } else { 9 }) {
            0 => return self.constant(kind),
            1..=4 => return self.column(kind),
            5 => self.choice(kind, depth - 1),
            6 if self.may_query => self.scalar_query(kind, depth - 1),
            7 if kind == Kind::Bool => self.comparison(depth - 1),
            _ => self.call(kind, depth - 1),
        };
        Tree::value(kind, tree)
    }

    /// A condition.
    pub(crate) fn condition(&mut self, depth: usize) -> Tree {
        let tree = match self.dice.between(0, 9) {
            0 | 1 => self.call(Kind::Bool, depth),
            2 if depth > 0 => Tree::form(
                self.dice.word(&["({} AND {})", "({} OR {})"]),
                vec![self.condition(depth - 1), self.condition(depth - 1)],
            ),
            3 if self.may_query => self.subquery_test(depth.saturating_sub(1)),
            _ => self.comparison(depth),
        };
        Tree::value(Kind::Bool, tree)
    }

    /// A kind that something in scope has, or any one.
    pub(crate) fn kind(&mut self) -> Kind {
        if !self.scope.is_empty() && !self.dice.one_in(5) {
            return self.dice.pick(&self.scope).kind;
        }
        match self.dice.one_in(5) {
            true => *self.dice.pick(Kind::ARRAYS),
            false => *self.dice.pick(Kind::SCALARS),
        }
    }

    pub(crate) fn column(&mut self, kind: Kind) -> Tree {
        let of_kind: Vec<_> = self.scope.iter().filter(|named| named.kind == kind).collect();
        match of_kind.is_empty() {
            true => self.constant(kind),
            false => Tree::value(kind, Tree::text(&self.dice.pick(&of_kind).name)),
        }
    }

    pub(crate) fn call(&mut self, kind: Kind, depth: usize) -> Tree {
        let mut found: Vec<&Signature> =
            SIGNATURES.iter().flat_map(|list| list.iter()).filter(|one| one.1 == kind).collect();
        if self.may_query {
            found.extend(QUERIES_ONLY.iter().filter(|one| one.1 == kind));
        }
        if found.is_empty() {
            return self.column(kind);
        }
        let (pattern, _, takes) = **self.dice.pick(&found);
        let parts = takes.iter().map(|kind| self.value(*kind, depth)).collect();
        Tree::form(pattern, parts)
    }

    fn choice(&mut self, kind: Kind, depth: usize) -> Tree {
        match self.dice.between(0, 3) {
            0 => Tree::form(
                "coalesce({}, {})",
                vec![self.value(kind, depth), self.value(kind, depth)],
            ),
            1 if kind.is_ordered() => {
                Tree::form("nullif({}, {})", vec![self.value(kind, depth), self.value(kind, depth)])
            }
            2 => {
                let over = self.ordered_kind();
                let branch = Tree::form(
                    " WHEN {} THEN {}",
                    vec![self.value(over, depth), self.value(kind, depth)],
                );
                let subject = self.value(over, depth);
                let other = Tree::form(" ELSE {}", vec![self.value(kind, depth)]);
                Tree::form("CASE {}{}{} END", vec![subject, branch, Tree::optional(other)])
            }
            _ => Tree::form(
                "CASE WHEN {} THEN {} ELSE {} END",
                vec![self.condition(depth), self.value(kind, depth), self.value(kind, depth)],
            ),
        }
    }

    /// A kind that has an order.
    pub(crate) fn ordered_kind(&mut self) -> Kind {
        loop {
            let kind = self.kind();
            if kind.is_ordered() {
                return kind;
            }
        }
    }

    fn comparison(&mut self, depth: usize) -> Tree {
        let kind = self.ordered_kind();
        let others = kind.comparable();
        let other =
            if others.is_empty() || self.dice.one_in(2) { kind } else { *self.dice.pick(others) };
        let operator = self.dice.word(&["=", "=", "<>", "<", "<=", ">", ">="]);
        let left = self.column(kind);
        match self.dice.between(0, 8) {
            0 => Tree::form(
                self.dice.word(&["({} IS DISTINCT FROM {})", "({} IS NOT DISTINCT FROM {})"]),
                vec![left, self.value(other, depth)],
            ),
            1 => Tree::form(self.dice.word(&["({} IS NULL)", "({} IS NOT NULL)"]), vec![left]),
            2 => {
                let items = (0..self.dice.between(1, 3)).map(|_| self.value(other, 0)).collect();
                let pattern = self.dice.word(&["({} IN ({}))", "({} NOT IN ({}))"]);
                Tree::form(pattern, vec![left, Tree::list(items, 1)])
            }
            3 => Tree::form(
                self.dice.word(&["({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})"]),
                vec![left, self.value(other, depth), self.value(other, 0)],
            ),
            4 if !matches!(other, Kind::Array(_)) => {
                let items = (0..self.dice.between(1, 3)).map(|_| self.value(other, 0)).collect();
                let pattern = match self.dice.between(0, 8) {
                    0 => format!("({{}} {operator} ANY (array[{{}}]))"),
                    1..=4 => "({} <> ALL (array[{}]))".to_owned(),
                    _ => "({} = ANY (array[{}]))".to_owned(),
                };
                Tree::form(&pattern, vec![left, Tree::list(items, 1)])
            }
            5 => self.row_comparison(operator),
            _ => {
                Tree::form(&format!("({{}} {operator} {{}})"), vec![left, self.value(other, depth)])
            }
        }
    }

    fn row_comparison(&mut self, operator: &str) -> Tree {
        let (one, two) = (self.ordered_kind(), self.ordered_kind());
        let parts =
            vec![self.column(one), self.column(two), self.constant(one), self.constant(two)];
        Tree::form(&format!("(({{}}, {{}}) {operator} ({{}}, {{}}))"), parts)
    }

    /// A table as a query in an expression reads it: its columns in scope beside those outside.
    fn inner(&mut self) -> Option<(Table, Vec<Named>)> {
        if self.tables.is_empty() {
            return None;
        }
        let table = self.dice.pick(self.tables).clone();
        let alias = format!("q{}", self.scope.len());
        let outer = self.scope.clone();
        self.scope.extend(table.named(&alias));
        Some((table.called(&alias), outer))
    }

    fn scalar_query(&mut self, kind: Kind, depth: usize) -> Tree {
        let Some((table, outer)) = self.inner() else { return self.column(kind) };
        let aggregate = match kind {
            Kind::Long => Some("count(*)"),
            Kind::Int | Kind::Numeric | Kind::Text | Kind::Date | Kind::Timestamp => {
                Some("max({})")
            }
            _ => None,
        };
        let condition = self.condition(depth);
        let tree = match aggregate {
            Some("count(*)") => {
                let filter = match self.dice.one_in(4) {
                    true => Tree::form(" FILTER (WHERE {})", vec![self.condition(0)]),
                    false => Tree::text(""),
                };
                let from = Tree::text(table.source());
                let filter = Tree::optional(filter);
                Tree::form("(SELECT count(*){} FROM {} WHERE {})", vec![filter, from, condition])
            }
            Some(pattern) => {
                let value = Tree::form(pattern, vec![self.value(kind, depth)]);
                let parts = vec![value, Tree::text(table.source()), condition];
                Tree::form("(SELECT {} FROM {} WHERE {})", parts)
            }
            None => {
                let value = self.value(kind, depth);
                let parts = vec![value, Tree::text(table.source()), condition];
                let order = table.key_order();
                match order.is_empty() {
                    true => Tree::value(kind, kind.simplest()),
                    false => {
                        let limit = format!(" ORDER BY {order} LIMIT 1)");
                        Tree::form(&format!("(SELECT {{}} FROM {{}} WHERE {{}}{limit}"), parts)
                    }
                }
            }
        };
        self.scope = outer;
        tree
    }

    fn subquery_test(&mut self, depth: usize) -> Tree {
        let kind = self.ordered_kind();
        let left = self.value(kind, 0);
        let Some((table, outer)) = self.inner() else { return self.comparison(depth) };
        let from = Tree::text(table.source());
        let condition = self.condition(depth);
        let tree = match self.dice.between(0, 2) {
            0 => Tree::form(
                self.dice.word(&[
                    "EXISTS (SELECT 1 FROM {} WHERE {})",
                    "NOT EXISTS (SELECT 1 FROM {} WHERE {})",
                ]),
                vec![from, condition],
            ),
            1 => Tree::form(
                self.dice.word(&[
                    "({} IN (SELECT {} FROM {} WHERE {}))",
                    "({} NOT IN (SELECT {} FROM {} WHERE {}))",
                ]),
                vec![left, self.value(kind, 0), from, condition],
            ),
            _ => Tree::form(
                self.dice.word(&[
                    "({} >= ALL (SELECT {} FROM {} WHERE {}))",
                    "({} = ANY (SELECT {} FROM {} WHERE {}))",
                    "({} < ANY (SELECT {} FROM {} WHERE {}))",
                ]),
                vec![left, self.value(kind, 0), from, condition],
            ),
        };
        self.scope = outer;
        tree
    }
}
