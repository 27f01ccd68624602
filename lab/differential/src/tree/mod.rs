//! Statements as trees that know how they become smaller. They know words, places and types of
//! values, not what the words mean.

mod kind;
mod reduce;

pub(crate) use kind::{Kind, MOODS};

/// A part of a statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tree {
    /// Words as they are.
    Text(String),
    /// Parts one behind the other.
    Join(Vec<Tree>),
    /// A clause that may be left out.
    Optional(Box<Tree>),
    /// Items between separators, of which at least `least` stay.
    List { items: Vec<Tree>, separator: &'static str, least: usize },
    /// An expression, which any other one of its kind may replace.
    Value { kind: Kind, tree: Box<Tree> },
    /// A constant of a kind, `None` for NULL: a literal or a parameter.
    Constant { kind: Kind, text: Option<String> },
}

/// A parameter of a statement in the extended protocol.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Parameter {
    pub(crate) kind: Kind,
    pub(crate) text: Option<String>,
}

impl Tree {
    /// Words.
    pub(crate) fn text(words: impl Into<String>) -> Tree {
        Tree::Text(words.into())
    }

    /// An expression of a kind.
    pub(crate) fn value(kind: Kind, tree: Tree) -> Tree {
        Tree::Value { kind, tree: Box::new(tree) }
    }

    /// A clause that may be left out.
    pub(crate) fn optional(tree: Tree) -> Tree {
        Tree::Optional(Box::new(tree))
    }

    /// Items between commas, of which at least `least` stay.
    pub(crate) fn list(items: Vec<Tree>, least: usize) -> Tree {
        Tree::List { items, separator: ", ", least }
    }

    /// A pattern whose marks `{}` stand for the parts, in their order.
    pub(crate) fn form(pattern: &str, parts: Vec<Tree>) -> Tree {
        let mut joined = Vec::new();
        let mut parts = parts.into_iter();
        for (at, words) in pattern.split("{}").enumerate() {
            if at > 0 {
                joined.push(parts.next().unwrap_or_else(|| panic!("too few parts: {pattern}")));
            }
            if !words.is_empty() {
                joined.push(Tree::text(words));
            }
        }
        assert!(parts.next().is_none(), "too many parts: {pattern}");
        Tree::Join(joined)
    }

    /// The text with all constants as literals.
    pub(crate) fn to_sql(&self) -> String {
        let mut sql = String::new();
        self.write(&mut sql, &mut None);
        sql
    }

    /// The text with constants as parameters `$1`, `$2`, and the parameters.
    pub(crate) fn to_parameters(&self) -> (String, Vec<Parameter>) {
        let mut sql = String::new();
        let mut parameters = Some(Vec::new());
        self.write(&mut sql, &mut parameters);
        (sql, parameters.unwrap_or_default())
    }

    fn write(&self, sql: &mut String, parameters: &mut Option<Vec<Parameter>>) {
        match self {
            Tree::Text(words) => sql.push_str(words),
            Tree::Join(parts) => parts.iter().for_each(|part| part.write(sql, parameters)),
            Tree::Optional(tree) | Tree::Value { tree, .. } => tree.write(sql, parameters),
            Tree::List { items, separator, .. } => {
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        sql.push_str(separator);
                    }
                    item.write(sql, parameters);
                }
            }
            Tree::Constant { kind, text } => match parameters {
                Some(parameters) => {
                    parameters.push(Parameter { kind: *kind, text: text.clone() });
                    sql.push_str(&format!("${}::{}", parameters.len(), kind.name()));
                }
                None => sql.push_str(&kind.literal(text.as_deref())),
            },
        }
    }

    /// How many bytes the text has, which the search for a smaller statement lowers.
    pub(crate) fn size(&self) -> usize {
        self.to_sql().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(text: &str) -> Tree {
        Tree::Constant { kind: Kind::Int, text: Some(text.to_owned()) }
    }

    #[test]
    fn constants_become_literals_or_parameters() {
        let tree = Tree::form("SELECT {} + {}", vec![constant("1"), constant("2")]);
        assert_eq!(tree.to_sql(), "SELECT '1'::integer + '2'::integer");
        let (sql, parameters) = tree.to_parameters();
        assert_eq!(sql, "SELECT $1::integer + $2::integer");
        assert_eq!(parameters[1].text.as_deref(), Some("2"));
    }

    #[test]
    fn a_tree_is_reduced_to_each_smaller_one() {
        let inner = Tree::value(Kind::Int, constant("1"));
        let sum = Tree::value(Kind::Int, Tree::form("({} + {})", vec![inner.clone(), inner]));
        let tree = Tree::form("SELECT {}{}", vec![sum, Tree::optional(Tree::text(" LIMIT 1"))]);
        let smaller: Vec<_> = tree.reductions().iter().map(Tree::to_sql).collect();
        assert!(smaller.contains(&"SELECT '1'::integer LIMIT 1".to_owned()), "{smaller:?}");
        assert!(smaller.contains(&"SELECT ('1'::integer + '1'::integer)".to_owned()));
        assert!(smaller.iter().all(|text| text.len() < tree.size()));
    }
}
