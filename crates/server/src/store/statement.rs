//! Statements as clients have them: parsed, and planned.

use super::pool::Pool;
use sql::bind::OutputColumn;
use sql::parse::Control;
use std::sync::Arc;
use values::{Type, Zone};

/// A tree that may be too deep to be dropped on any stack.
struct Tree {
    tree: Option<sql::parse::Statement>,
    pool: Arc<Pool>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        let tree = self.tree.take();
        self.pool.spawn(async move { drop(tree) });
    }
}

/// One statement of a text. Cheap to clone.
#[derive(Clone)]
pub struct Parsed {
    tree: Arc<Tree>,
    text: Arc<str>,
    /// Which of the text's statements it is.
    place: usize,
}

impl Parsed {
    pub(super) fn new(
        tree: sql::parse::Statement,
        text: Arc<str>,
        place: usize,
        pool: Arc<Pool>,
    ) -> Parsed {
        Parsed { tree: Arc::new(Tree { tree: Some(tree), pool }), text, place }
    }

    pub(super) fn tree(&self) -> &sql::parse::Statement {
        self.tree.tree.as_ref().expect("it is there until the drop")
    }

    /// The text that it is from, to which positions of errors belong.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// What it says about the session: such statements are not prepared here.
    #[must_use]
    pub fn control(&self) -> Option<Control> {
        self.tree().control()
    }

    /// Whether it defines something.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.tree().is_definition()
    }

    /// Whether it is a query, which may write only through functions.
    #[must_use]
    pub fn is_query(&self) -> bool {
        self.tree().is_query()
    }

    /// The columns, if it is a query of functions of the session.
    #[must_use]
    pub fn session_columns(&self) -> Option<Vec<sql::parse::SessionColumn>> {
        self.tree().session_columns()
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }
}

/// A statement that can be submitted, any number of times.
pub struct Statement {
    /// The types of its parameters.
    pub parameters: Vec<Type>,
    /// The columns of its answer; none if there are no rows.
    pub columns: Vec<OutputColumn>,
    pub(super) parsed: Parsed,
    pub(super) types: Vec<Option<Type>>,
    pub(super) zone: Zone,
    /// The version of the catalog that it was planned with.
    pub(super) version: u64,
    /// `None` of a definition.
    pub(super) plan: Option<sql::ir::Plan>,
}

impl Statement {
    /// Whether it only reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(&self.plan, Some(sql::ir::Plan::Select(_)))
    }
}
