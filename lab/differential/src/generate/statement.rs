//! What a scenario is made of.

use crate::tree::Tree;

/// What of the order of an answer's rows is fixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The statement says it.
    Total,
    /// The rows are a multiset.
    Any,
}

/// A statement and what may be asked of its answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Statement {
    pub(crate) tree: Tree,
    pub(crate) order: Order,
    /// Whether any of several equal values may stand for them (the key of a group).
    pub(crate) is_loose: bool,
    /// Whether a failing value must fail on both servers: there is one order of evaluation.
    pub(crate) is_strict: bool,
    /// Whether it takes numbers of a sequence for several rows: how many, if not all rows come, is
    /// free.
    pub(crate) takes_numbers: bool,
}

impl Statement {
    /// A statement whose rows are a multiset.
    pub(crate) fn new(tree: Tree) -> Statement {
        Statement {
            tree,
            order: Order::Any,
            is_loose: false,
            is_strict: true,
            takes_numbers: false,
        }
    }

    /// A statement of words alone.
    pub(crate) fn text(words: impl Into<String>) -> Statement {
        Statement::new(Tree::text(words))
    }

    /// The statement as one whose rows are ordered.
    #[must_use]
    pub(crate) fn ordered(mut self) -> Statement {
        self.order = Order::Total;
        self
    }
}

/// How statements are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    /// All in one text.
    Simple,
    /// Each with Parse, Bind, Describe and Execute, and one Sync for all.
    Extended(Extended),
}

/// The extended protocol's choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extended {
    pub(crate) are_parameters_binary: bool,
    pub(crate) are_results_binary: bool,
    /// The row limit of the first Execute; 0 is none.
    pub(crate) rows_max: i32,
    /// How often the portal is executed again, without a limit.
    pub(crate) again: u8,
}

/// Statements that are sent together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) statements: Vec<Statement>,
    pub(crate) sending: Sending,
}

impl Step {
    /// One statement by the simple protocol.
    pub(crate) fn simple(statement: Statement) -> Step {
        Step { statements: vec![statement], sending: Sending::Simple }
    }
}
