//! All trees that are one step smaller than a tree.

use super::{Kind, Tree};

impl Tree {
    /// Trees that are smaller by one clause, item, or expression, the smallest first.
    pub(crate) fn reductions(&self) -> Vec<Tree> {
        let size = self.size();
        let mut found: Vec<_> = self.smaller();
        found.retain(|tree| tree.size() < size);
        found.sort_by_key(Tree::size);
        found.dedup();
        found
    }

    fn smaller(&self) -> Vec<Tree> {
        match self {
            Tree::Text(_) => Vec::new(),
            Tree::Join(parts) => within(parts, Tree::Join),
            Tree::Optional(tree) => {
                let mut found = vec![Tree::text("")];
                found.extend(tree.smaller().into_iter().map(Tree::optional));
                found
            }
            Tree::List { items, separator, least } => {
                let list = |items| Tree::List { items, separator, least: *least };
                let mut found = Vec::new();
                if items.len() > *least {
                    for at in 0..items.len() {
                        let mut fewer = items.clone();
                        fewer.remove(at);
                        found.push(list(fewer));
                    }
                }
                found.extend(within(items, list));
                found
            }
            Tree::Value { kind, tree } => {
                let mut found = Vec::new();
                tree.values_of(*kind, &mut found);
                if !matches!(**tree, Tree::Constant { .. }) {
                    found.push(Tree::value(*kind, kind.simplest()));
                }
                found.extend(tree.smaller().into_iter().map(|tree| Tree::value(*kind, tree)));
                found
            }
            Tree::Constant { kind, text } => match (text, kind.simplest()) {
                (Some(_), simple) if simple != *self => vec![simple],
                _ => Vec::new(),
            },
        }
    }

    /// Adds the expressions of a kind within this tree.
    fn values_of(&self, wanted: Kind, found: &mut Vec<Tree>) {
        match self {
            Tree::Text(_) | Tree::Constant { .. } => {}
            Tree::Join(parts) | Tree::List { items: parts, .. } => {
                parts.iter().for_each(|part| part.values_of(wanted, found));
            }
            Tree::Optional(tree) => tree.values_of(wanted, found),
            Tree::Value { kind, tree } => {
                if *kind == wanted {
                    found.push(self.clone());
                }
                tree.values_of(wanted, found);
            }
        }
    }
}

/// Trees of parts of which one is smaller.
fn within(parts: &[Tree], whole: impl Fn(Vec<Tree>) -> Tree) -> Vec<Tree> {
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        for smaller in part.smaller() {
            let mut others = parts.to_vec();
            others[at] = smaller;
            found.push(whole(others));
        }
    }
    found
}
